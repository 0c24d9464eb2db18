//! Resolves paths and confines them to the root of a run.
//!
//! Symlinks are resolved here, component by component, because the end of a path need not exist yet: a
//! symlink to a missing file still has a target. The answer is only valid at the time of the call; reads and
//! changes open the result relative to the root and follow no symlink.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// Maximum number of symlinks in one path, as on Linux.
const MAX_LINKS: usize = 40;

/// Directory that a run is confined to, if any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Root {
    directory: Option<PathBuf>,
    private_paths: Arc<PrivatePaths>,
}

/// Files and directories of karyi itself, and those among them that may be read.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct PrivatePaths {
    private: Vec<PathBuf>,
    shown: Vec<PathBuf>,
}

impl PrivatePaths {
    /// Tells whether nothing may show a resolved path.
    pub(super) fn hides(&self, real: &Path) -> bool {
        self.is_private(real) && !self.shown.iter().any(|dir| real.starts_with(dir))
    }

    /// Tells whether a file is a hard link to one of the private files.
    pub(super) fn is_linked(&self, found: &Metadata) -> bool {
        may_be_linked(found) && self.linked().contains(&identity(found))
    }

    /// Returns the private files with several hard links.
    pub(super) fn linked(&self) -> HashSet<(u64, u64)> {
        let mut linked = HashSet::new();
        let mut left = self.private.clone();
        let mut seen = 0;
        while let Some(path) = left.pop().filter(|_| seen < limits::MAX_OWN_FILES) {
            seen += 1;
            let Ok(found) = std::fs::symlink_metadata(&path) else {
                continue;
            };
            if found.is_dir() && self.hides(&path) {
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                left.extend(entries.map(|entry| entry.path()));
            } else if may_be_linked(&found) && self.hides(&path) {
                linked.insert(identity(&found));
            }
        }
        linked
    }

    /// Tells whether a resolved directory can contain private paths, so that a walk has to check.
    pub(super) fn may_be_below(&self, top: &Path) -> bool {
        let meets = |dir: &PathBuf| dir.starts_with(top) || top.starts_with(dir);
        self.private.iter().any(meets)
    }

    fn is_private(&self, real: &Path) -> bool {
        self.private.iter().any(|dir| real.starts_with(dir))
    }
}

/// Tells whether a file has several hard links.
pub(super) fn may_be_linked(found: &Metadata) -> bool {
    found.is_file() && found.nlink() > 1
}

/// Returns device and inode number.
pub(super) fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

impl Root {
    /// Creates a root that allows every path.
    #[must_use]
    pub fn unconfined() -> Self {
        Self::default()
    }

    /// Confines paths to a directory.
    ///
    /// # Errors
    /// It does not exist or is not a directory.
    pub fn confined(directory: &Path) -> Result<Self, ToolError> {
        let io = |error| ToolError::from_io(directory, &error);
        let real = directory.canonicalize().map_err(io)?;
        if !real.is_dir() {
            let message = format!("{}: expected a directory", directory.display());
            return Err(ToolError::new(ErrorCode::NotADirectory, message));
        }
        Ok(Self {
            directory: Some(real),
            ..Self::default()
        })
    }

    /// Hides karyi's own files from tools, except those in `shown`, which may be read.
    #[must_use]
    pub fn with_private(self, private: &[PathBuf], shown: &[PathBuf]) -> Self {
        let real = |paths: &[PathBuf]| paths.iter().map(|path| canonical_for_plan(path)).collect();
        let private_paths = PrivatePaths {
            private: real(private),
            shown: real(shown),
        };
        Self {
            private_paths: Arc::new(private_paths),
            ..self
        }
    }

    /// Returns the paths that walks must skip.
    pub(super) fn private_paths(&self) -> &Arc<PrivatePaths> {
        &self.private_paths
    }

    /// Returns the directory that paths are confined to.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Resolves every symlink of a path; the file need not exist.
    ///
    /// # Errors
    /// `bad_arguments` for an empty path, `policy_denied` for karyi's own files, `outside_root` for a path
    /// outside the root.
    pub fn resolve(&self, cwd: &Path, path: &Path) -> Result<PathBuf, ToolError> {
        if path.as_os_str().is_empty() {
            let error = ToolError::new(ErrorCode::BadArguments, "the path is empty");
            return Err(error.with_hint("name a file or directory, such as README.md"));
        }
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            let message = format!("{}: no path holds a NUL character", path.display());
            return Err(ToolError::new(ErrorCode::BadArguments, message));
        }
        refuse_home(cwd, path)?;
        let real = canonical_for_plan(&cwd.join(path));
        let written = path.as_os_str().as_encoded_bytes();
        if written.ends_with(b"/") || written.ends_with(b"/.") {
            check_is_directory(path, &real)?;
        }
        let is_linked = || {
            let found = std::fs::symlink_metadata(&real);
            found.is_ok_and(|found| self.private_paths.is_linked(&found))
        };
        if self.private_paths.hides(&real) || is_linked() {
            return Err(own_file(path));
        }
        match &self.directory {
            Some(root) if !real.starts_with(root) => Err(outside(root, cwd, path)),
            _ => Ok(real),
        }
    }

    /// Resolves the path of a file to be changed, created or removed.
    ///
    /// # Errors
    /// As [`Root::resolve`], and `policy_denied` for karyi's own files that may only be read.
    pub fn resolve_to_change(&self, cwd: &Path, path: &Path) -> Result<PathBuf, ToolError> {
        let real = self.resolve(cwd, path)?;
        if self.private_paths.is_private(&real) {
            return Err(own_file(path));
        }
        Ok(real)
    }
}

/// Error of a path outside the root; explains where relative paths start when that is outside, too.
fn outside(root: &Path, cwd: &Path, path: &Path) -> ToolError {
    let (shown, root_shown) = (path.display(), root.display());
    let message = format!("{shown}: outside of {root_shown}");
    let error = ToolError::new(ErrorCode::OutsideRoot, message);
    if path.is_absolute() || canonical_for_plan(cwd).starts_with(root) {
        return error;
    }
    error.with_hint(format!(
        "paths start in the working directory {}, which is outside of the root: start karyi with --cwd \
         {root_shown} too, change there with `cd`, or write whole paths",
        cwd.display()
    ))
}

fn own_file(path: &Path) -> ToolError {
    let message = format!("{}: a file of karyi itself", path.display());
    ToolError::new(ErrorCode::PolicyDenied, message)
        .with_hint("karyi's settings, state and vault are for its user alone; choose another path")
}

/// Refuses `~`, which only shells expand: the file would end up in a directory of that name.
fn refuse_home(cwd: &Path, path: &Path) -> Result<(), ToolError> {
    let is_home = path.starts_with("~");
    if !is_home || std::fs::symlink_metadata(cwd.join("~")).is_ok() {
        return Ok(());
    }
    let shown = path.display();
    let message =
        format!("{shown}: ~ is no home directory here, and there is no file of that name");
    let hint = "write the whole path; the command `echo ~` prints where ~ is";
    Err(ToolError::new(ErrorCode::BadArguments, message).with_hint(hint))
}

/// Checks that a path with a trailing slash is a directory; taking it for a file would be a guess.
fn check_is_directory(shown: &Path, real: &Path) -> Result<(), ToolError> {
    let io = |error| ToolError::from_io(shown, &error);
    let found = std::fs::metadata(real).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => io(error).with_hint(
            "a path that ends with a slash, or with a dot behind one, names a directory, and there is none; to name \
             a file, or a new one, leave out the slash",
        ),
        _ => io(error),
    });
    if found?.is_dir() {
        return Ok(());
    }
    let message = format!("{}: expected a directory, found a file", shown.display());
    Err(ToolError::new(ErrorCode::NotADirectory, message)
        .with_hint("leave out the slash at the end, and a dot behind it, to name a file"))
}

/// Returns the canonical form of an absolute path: symlinks are resolved as far as the path exists, and `.`
/// and `..` are removed.
#[must_use]
pub fn canonical_for_plan(path: &Path) -> PathBuf {
    follow(path, &mut |_| {})
}

/// Canonicalises a path and reports the symlinks on it.
pub(super) fn follow(path: &Path, on_link: &mut dyn FnMut(&Path)) -> PathBuf {
    let mut real = PathBuf::from("/");
    let mut left: VecDeque<PathStep> = steps(path).collect();
    let mut links = 0;
    while let Some(step) = left.pop_front() {
        match step {
            PathStep::Top => real = PathBuf::from("/"),
            PathStep::Up => {
                real.pop();
            }
            PathStep::Down(name) => {
                real.push(name);
                if links < MAX_LINKS
                    && let Ok(target) = std::fs::read_link(&real)
                {
                    links += 1;
                    on_link(&real);
                    real.pop();
                    steps(&target).rev().for_each(|step| left.push_front(step));
                }
            }
        }
    }
    real
}

enum PathStep {
    Top,
    Up,
    Down(OsString),
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = PathStep> + '_ {
    path.components().filter_map(|component| match component {
        Component::Prefix(_) | Component::CurDir => None,
        Component::RootDir => Some(PathStep::Top),
        Component::ParentDir => Some(PathStep::Up),
        Component::Normal(name) => Some(PathStep::Down(name.to_owned())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Creates `/dir/file`, `/dir/sub/`, and symlinks to a file, a directory, nothing, the outside, and each
    /// other.
    fn tree() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("dir/sub")).unwrap();
        std::fs::write(top.join("dir/file"), "x").unwrap();
        symlink("file", top.join("dir/to_file")).unwrap();
        symlink("../dir/sub/", top.join("dir/to_sub")).unwrap();
        symlink("missing/deep", top.join("dir/to_nothing")).unwrap();
        symlink("/etc", top.join("dir/out")).unwrap();
        symlink("loop", top.join("dir/loop")).unwrap();
        (temp, top)
    }

    #[test]
    fn paths_have_one_canonical_form() {
        let (_temp, top) = tree();
        let check = |path: &str, expected: &str| {
            assert_eq!(
                canonical_for_plan(&top.join(path)),
                top.join(expected),
                "{path}"
            );
        };
        check("dir/./file", "dir/file");
        check("dir//sub/../to_file", "dir/file");
        check("dir/to_sub/new/../x", "dir/sub/x");
        check("dir/to_sub/..", "dir");
        check("dir/to_nothing/a", "dir/missing/deep/a");
        check("none/../dir/new", "dir/new");
        check("dir/file/x", "dir/file/x");
        assert_eq!(canonical_for_plan(Path::new("/../..")), Path::new("/"));
        assert!(canonical_for_plan(&top.join("dir/loop/x")).ends_with("loop/x"));
    }

    #[test]
    fn a_root_confines_paths() {
        let (_temp, top) = tree();
        let root = Root::confined(&top.join("dir")).unwrap();
        let cwd = top.join("dir/sub");
        let check = |path: &str, expected: Result<&str, ErrorCode>| {
            let found = root
                .resolve(&cwd, Path::new(path))
                .map_err(|error| error.code);
            assert_eq!(found, expected.map(|path| top.join(path)), "{path}");
        };
        check("new", Ok("dir/sub/new"));
        check("../file", Ok("dir/file"));
        check("..", Ok("dir"));
        check("../../other", Err(ErrorCode::OutsideRoot));
        check("/etc/passwd", Err(ErrorCode::OutsideRoot));
        check("../out/passwd", Err(ErrorCode::OutsideRoot));
        check("../../dir2", Err(ErrorCode::OutsideRoot));
        check("", Err(ErrorCode::BadArguments));
        check("../file/", Err(ErrorCode::NotADirectory));
        check("../file/.", Err(ErrorCode::NotADirectory));
        check("../to_file/.", Err(ErrorCode::NotADirectory));
        check("../new/.", Err(ErrorCode::NotFound));
        check("../sub/.", Ok("dir/sub"));
        let hint = |cwd: &Path| {
            let error = root.resolve(cwd, Path::new("../../x")).unwrap_err();
            error.hint
        };
        assert_eq!(hint(&cwd), ErrorCode::OutsideRoot.hint());
        let shown = top.display();
        let expected = format!(
            "paths start in the working directory {shown}, which is outside of the root: start karyi with --cwd \
             {shown}/dir too, change there with `cd`, or write whole paths"
        );
        assert_eq!(hint(&top), expected);
        assert_eq!(
            Root::unconfined()
                .resolve(&cwd, Path::new("/etc/x"))
                .unwrap(),
            Path::new("/etc/x")
        );
    }

    #[test]
    fn a_root_is_a_directory() {
        let (_temp, top) = tree();
        let check = |path: &str| Root::confined(&top.join(path)).map_err(|error| error.code);
        assert_eq!(check("dir/file"), Err(ErrorCode::NotADirectory));
        assert_eq!(check("none"), Err(ErrorCode::NotFound));
    }

    #[test]
    fn private_paths_are_hidden() {
        let temp = tempfile::tempdir().unwrap();
        let private_paths = temp.path().join("own");
        std::fs::create_dir_all(private_paths.join("output")).unwrap();
        symlink(&private_paths, temp.path().join("link")).unwrap();
        let root = Root::unconfined().with_private(
            std::slice::from_ref(&private_paths),
            &[private_paths.join("output")],
        );
        let check = |path: &str, expected: bool| {
            let found = root.resolve(temp.path(), Path::new(path));
            assert_eq!(found.is_ok(), expected, "{path}: {found:?}");
            let changed = root.resolve_to_change(temp.path(), Path::new(path));
            assert_eq!(changed.is_ok(), path == "owner", "{path}: {changed:?}");
        };
        check("own/vault.age", false);
        check("own", false);
        check("link/vault.age", false);
        check("own/output/../vault.age", false);
        check("own/output/1", true);
        check("owner", true);
        let top = temp.path().canonicalize().unwrap();
        let below = |path: &str| root.private_paths().may_be_below(&top.join(path));
        let results = [
            "",
            "own",
            "own/keys",
            "own/output",
            "owner",
            "ow",
            "other/own",
        ]
        .map(below);
        assert_eq!(results, [true, true, true, true, false, false, false]);
    }
}
