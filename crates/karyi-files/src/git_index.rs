//! Looks files up in the index of a git repository: tracked content may be published.
//!
//! The index is read directly, since running git would execute programs that the repository's settings name.
//! Index versions with compressed paths are searched by file name only, so false positives are possible.

use std::fs;
use std::path::{Path, PathBuf};

use karyi_core::limits;

/// Tells whether the index of the surrounding repository contains a file, given by its real path.
#[must_use]
pub fn is_tracked(path: &Path) -> bool {
    find(path).unwrap_or(false)
}

fn find(path: &Path) -> Option<bool> {
    let (root, git) = path.ancestors().skip(1).find_map(repository)?;
    let index = git.join("index");
    let found = fs::metadata(&index).ok()?;
    // Reading a pipe in its place would block.
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

/// Tells whether a path of this length starts at this offset of the index. Flags with the length precede it,
/// in some entries followed by two more bytes.
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

/// Returns the directory and its git directory when it is the top of a repository.
fn repository(dir: &Path) -> Option<(&Path, PathBuf)> {
    let git = dir.join(".git");
    let metadata = fs::metadata(&git).ok()?;
    if metadata.is_dir() {
        return Some((dir, git));
    }
    if !metadata.is_file() {
        return None;
    }
    // A worktree names its git directory in a file.
    let text = fs::read_to_string(&git).ok()?;
    let target = text.strip_prefix("gitdir:")?.trim();
    Some((dir, dir.join(target)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_pipe_instead_of_an_index_does_not_block() {
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
