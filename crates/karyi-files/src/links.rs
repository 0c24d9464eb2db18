//! Confines changes through symlinks: the target of a symlink in a root or repository must lie in the same
//! one.

use std::ffi::OsString;
use std::fs::DirEntry;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::root::{Root, canonical_for_plan, follow};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// Resolves every symlink of a path; the file need not exist.
///
/// # Errors
/// `symlink_loop` for a cycle, `symlink_escape` for a symlink that leaves its root or repository, and the
/// errors of the root.
pub(super) fn resolve(root: &Root, cwd: &Path, path: &Path) -> Result<PathBuf, ToolError> {
    let mut links = Vec::new();
    let start = canonical_for_plan(cwd);
    let real = follow(&start.join(path), &mut |link| links.push(link.to_owned()));
    // After too many hops the path still contains a symlink.
    if !links.is_empty() && real.ancestors().any(Path::is_symlink) {
        let message = format!("{}: its symlinks lead in a circle", path.display());
        return Err(ToolError::new(ErrorCode::SymlinkLoop, message));
    }
    for link in links {
        if let Some(home) = home(root, &link)
            && !real.starts_with(&home)
        {
            let message = format!(
                "{}: the symlink {} leads out of {}, to {}",
                path.display(),
                link.display(),
                home.display(),
                real.display()
            );
            return Err(ToolError::new(ErrorCode::SymlinkEscape, message));
        }
    }
    let resolved = root.resolve_to_change(cwd, path)?;
    refuse_long(path, &resolved).map(|()| resolved)
}

/// Returns the directory that a symlink must not leave: the root, else its repository.
fn home(root: &Root, link: &Path) -> Option<PathBuf> {
    if let Some(root) = root.directory().filter(|root| link.starts_with(root)) {
        return Some(root.to_owned());
    }
    let mut above = link.ancestors().skip(1);
    let found = above.find(|directory| directory.join(".git").exists());
    found.map(Path::to_owned)
}

/// Returns the name of a leftover hard link to the file that an interrupted change made beside it.
pub(super) fn leftover_name(real: &Path, identity: (u64, u64)) -> Option<OsString> {
    let entries = std::fs::read_dir(real.parent()?).ok()?.flatten();
    let mut leftovers =
        entries.filter(|entry| entry.file_name().as_bytes().starts_with(b".karyi-"));
    let is_it = |entry: &DirEntry| {
        let found = entry.metadata();
        found.is_ok_and(|found| (found.dev(), found.ino()) == identity)
    };
    leftovers.find(is_it).map(|entry| entry.file_name())
}

/// Refuses a path that is a symlink: whether the link or its target is meant would be a guess.
///
/// # Errors
/// `not_a_file` for a symlink.
pub(super) fn refuse_link(cwd: &Path, path: &Path) -> Result<(), ToolError> {
    let whole = cwd.join(path);
    match std::fs::read_link(&whole) {
        Err(_) => Ok(()),
        Ok(target) => {
            let message = format!(
                "{}: is a symlink to {}; expected a file",
                path.display(),
                target.display()
            );
            let hint = "name the file it leads to, or change the link itself with a command";
            Err(ToolError::new(ErrorCode::NotAFile, message).with_hint(hint))
        }
    }
}

/// Refuses a new name that a symlink already has.
///
/// # Errors
/// `file_exists` for a symlink.
pub(super) fn refuse_taken(cwd: &Path, to: &Path) -> Result<(), ToolError> {
    if !cwd.join(to).is_symlink() {
        return Ok(());
    }
    let message = format!("{}: a symlink of this name already exists", to.display());
    let hint = "choose another name, or remove the symlink with `rm` first";
    Err(ToolError::new(ErrorCode::FileExists, message).with_hint(hint))
}

/// Refuses a path that is too long to be opened.
///
/// # Errors
/// `name_too_long`.
fn refuse_long(path: &Path, real: &Path) -> Result<(), ToolError> {
    let (found, most) = (real.as_os_str().len(), limits::MAX_PATH_BYTES);
    if found <= most {
        return Ok(());
    }
    let message = format!(
        "{}: expected a path of at most {most} bytes, found {found}",
        // Keeps the message short.
        path.display()
            .to_string()
            .chars()
            .take(80)
            .collect::<String>()
            + "[...]"
    );
    Err(ToolError::new(ErrorCode::NameTooLong, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn symlinks_must_not_leave_their_root_or_repository() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("repo/.git")).unwrap();
        std::fs::create_dir_all(top.join("repo/src")).unwrap();
        std::fs::create_dir_all(top.join("other")).unwrap();
        for (link, target) in [
            ("repo/in", "src/file"),
            ("repo/out", "../other/file"),
            ("repo/dir", "../other"),
            ("free", "other/file"),
            ("repo/back", "../other/again"),
            ("other/again", "../repo/src/file"),
            ("loop", "pool"),
            ("pool", "loop"),
        ] {
            symlink(target, top.join(link)).unwrap();
        }
        let check = |root: &Root, cwd: &str, path: &str, expected: Result<&str, ErrorCode>| {
            let found = resolve(root, &top.join(cwd), Path::new(path)).map_err(|e| e.code);
            assert_eq!(found, expected.map(|path| top.join(path)), "{cwd} {path}");
        };
        let all = Root::unconfined();
        check(&all, "repo", "in", Ok("repo/src/file"));
        check(&all, "repo", "out", Err(ErrorCode::SymlinkEscape));
        check(&all, "repo", "dir/new", Err(ErrorCode::SymlinkEscape));
        check(&all, "repo", "back", Ok("repo/src/file"));
        check(&all, "", "free", Ok("other/file"));
        check(&all, "repo/dir", "new", Ok("other/new"));
        check(&all, "", "loop", Err(ErrorCode::SymlinkLoop));
        check(&all, "", "loop/new", Err(ErrorCode::SymlinkLoop));
        let root = Root::confined(&top.join("repo")).unwrap();
        check(&root, "repo", "in", Ok("repo/src/file"));
        check(&root, "repo", "out", Err(ErrorCode::SymlinkEscape));
        check(&root, "repo", "../other/file", Err(ErrorCode::OutsideRoot));
    }
}
