//! Open files of `/proc` about one shell: resolving their paths after every command would cost more than reading them.
//!
//! They stay those of this process even when its pid is used again.

use std::fs::File;
use std::os::unix::fs::FileExt;

use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, fstatat};

/// Bytes of a list of processes that are read at once.
const LIST_BYTES: usize = 1024;

/// Files of `/proc` about a shell; absent where the kernel has none.
#[derive(Debug)]
pub(crate) struct ProcfsHandles {
    descriptors: Option<File>,
    children: Option<File>,
}

impl ProcfsHandles {
    /// Opens the files of a process.
    pub(crate) fn of(pid: i32) -> Self {
        Self {
            descriptors: File::open(format!("/proc/{pid}/fd")).ok(),
            children: File::open(format!("/proc/{pid}/task/{pid}/children")).ok(),
        }
    }

    /// Returns the standard input of the process.
    pub(crate) fn input(&self) -> Option<FileStat> {
        fstatat(self.descriptors.as_ref()?, "0", AtFlags::empty()).ok()
    }

    /// Returns true if the kernel lists the children of a process.
    pub(crate) fn lists_children(&self) -> bool {
        self.children.is_some()
    }

    /// Returns the children of the first thread of the process, where the kernel lists them.
    pub(crate) fn children(&self) -> Option<Vec<i32>> {
        let list = self.children.as_ref()?;
        let mut chunk = [0; LIST_BYTES];
        let mut text = Vec::new();
        while let Ok(count) = list.read_at(&mut chunk, text.len() as u64)
            && count > 0
        {
            text.extend_from_slice(chunk.get(..count).unwrap_or_default());
        }
        let ids = text.split(u8::is_ascii_whitespace);
        let ids = ids.filter_map(|id| std::str::from_utf8(id).ok()?.parse().ok());
        Some(ids.collect())
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn handles_follow_the_process() {
        let line = "exec </dev/null; i=0; while [ $i -lt 250 ]; do sleep 100 & i=$((i+1)); done; \
                    echo; exec cat /dev/zero";
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).stdin(Stdio::piped());
        let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
        let handles = ProcfsHandles::of(child.id().cast_signed());
        let input = || handles.input().map(|input| (input.st_dev, input.st_ino));
        // The first line comes when all children have started.
        let mut first = [0; 1];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
        let null = std::fs::metadata("/dev/null").unwrap();
        assert_eq!(input(), Some((null.dev(), null.ino())));
        let children = handles.children().unwrap();
        assert_eq!(children.len(), 250);
        for pid in children {
            let pid = nix::unistd::Pid::from_raw(pid);
            nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((input(), handles.children()), (None, Some(Vec::new())));
    }

    #[test]
    fn an_ended_process_has_no_handles() {
        let handles = ProcfsHandles::of(-1);
        assert!(handles.input().is_none() && handles.children().is_none());
    }
}
