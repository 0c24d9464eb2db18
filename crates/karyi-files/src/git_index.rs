//! Whether git follows a file: what is written there may be published.
//!
//! The index is read, not git asked: a repository's settings can name programs that git runs. The
//! path is looked for as a whole, and by its last part where the index leaves out beginnings, so
//! the answer may be yes too often.

use std::fs;
use std::path::{Path, PathBuf};

use karyi_core::limits;

/// Whether a file, by its real path, is in the index of the repository around it.
#[must_use]
pub fn is_tracked(path: &Path) -> bool {
    find(path).unwrap_or(false)
}

fn find(path: &Path) -> Option<bool> {
    let (root, git) = path.ancestors().skip(1).find_map(repository)?;
    let index = git.join("index");
    let found = fs::metadata(&index).ok()?;
    // A pipe in its place would be waited for.
    if !found.is_file() || found.len() > limits::MAX_GIT_INDEX_BYTES {
        return None;
    }
    let bytes = fs::read(index).ok()?;
    let version = bytes.get(7).copied()?;
    let inside = path.strip_prefix(root).ok()?;
    let name = if version >= 4 {
        Path::new(path.file_name()?)
    } else {
        inside
    };
    let mut wanted = name.as_os_str().as_encoded_bytes().to_vec();
    wanted.push(0);
    let length = wanted.len() - 1;
    let is_whole = |at: usize| version >= 4 || begins_at(&bytes, at, length);
    Some(memchr::memmem::find_iter(&bytes, &wanted).any(is_whole))
}

/// Whether a path of that length begins at a place of the index: flags with the length stand before
/// it, and in some entries two more bytes between.
fn begins_at(index: &[u8], at: usize, length: usize) -> bool {
    const LENGTH_BITS: u16 = 0xFFF;
    let expected = u16::try_from(length).map_or(LENGTH_BITS, |length| length.min(LENGTH_BITS));
    [2, 4].into_iter().any(|back| {
        let flags = at
            .checked_sub(back)
            .and_then(|from| index.get(from..from + 2));
        let flags = flags.and_then(|flags| flags.try_into().ok());
        flags.is_some_and(|flags| u16::from_be_bytes(flags) & LENGTH_BITS == expected)
    })
}

/// Returns a directory and its repository, when it is the top of one.
fn repository(dir: &Path) -> Option<(&Path, PathBuf)> {
    let git = dir.join(".git");
    let metadata = fs::metadata(&git).ok()?;
    if metadata.is_dir() {
        return Some((dir, git));
    }
    if !metadata.is_file() {
        return None;
    }
    // A worktree names its repository in a file.
    let text = fs::read_to_string(&git).ok()?;
    let target = text.strip_prefix("gitdir:")?.trim();
    Some((dir, dir.join(target)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_pipe_in_the_place_of_an_index_is_not_waited_for() {
        let temp = tempfile::tempdir().unwrap();
        let (top, inner) = (temp.path(), temp.path().join("inner"));
        for git in [top.join(".git"), inner.clone()] {
            fs::create_dir(git).unwrap();
        }
        for pipe in [top.join(".git/index"), inner.join(".git")] {
            nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        assert!(!is_tracked(&top.join("file")));
        assert!(!is_tracked(&inner.join("file")));
    }

    #[test]
    fn files_in_the_index_are_tracked() {
        let temp = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let status = Command::new("git")
                .args(args)
                .current_dir(temp.path())
                .status();
            status.is_ok_and(|status| status.success())
        };
        if !git(&["init", "-q"]) {
            println!("skipped: no git");
            return;
        }
        fs::create_dir(temp.path().join("sub")).unwrap();
        for file in ["sub/in.env", "out.env"] {
            fs::write(temp.path().join(file), "x").unwrap();
        }
        assert!(!is_tracked(&temp.path().join("sub/in.env")));
        assert!(git(&["add", "sub/in.env"]));
        assert!(is_tracked(&temp.path().join("sub/in.env")));
        assert!(!is_tracked(&temp.path().join("out.env")));
        assert!(!is_tracked(&temp.path().join("in.env")));
        assert!(git(&["update-index", "--index-version", "4"]));
        assert!(is_tracked(&temp.path().join("sub/in.env")));
    }
}
