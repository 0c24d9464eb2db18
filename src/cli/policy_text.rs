//! Reads a policy file, which may be a pipe such as `<(...)`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use karyi_core::limits;

/// Reads the text with a time limit: a pipe may have no writer, and a device may never end.
///
/// # Errors
/// The error of the system, or `TimedOut`.
pub(super) fn policy_text(path: &Path) -> io::Result<String> {
    text_within(path, limits::VARS_TIMEOUT)
}

fn text_within(path: &Path, patience: Duration) -> io::Result<String> {
    if fs::metadata(path)?.is_file() {
        return read(path);
    }
    let (sender, receiver) = mpsc::channel();
    let path = path.to_owned();
    let work = move || {
        let _ = sender.send(read(&path));
    };
    thread::Builder::new().name("policy".into()).spawn(work)?;
    let seconds = patience.as_secs();
    let late = format!(
        "expected a file, or a pipe whose writer ends; it did not end in {seconds} seconds"
    );
    let received = receiver.recv_timeout(patience);
    received.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, late))?
}

fn read(path: &Path) -> io::Result<String> {
    let most = limits::MAX_VAULT_FILE_BYTES;
    let mut text = String::new();
    File::open(path)?.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        let message = format!("it is larger than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_waited_for_and_not_for_ever() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let late = text_within(&path, Duration::from_millis(20)).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        // The thread that timed out still reads first.
        let other = root.path().join("other");
        nix::unistd::mkfifo(&other, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let writer = thread::spawn({
            let other = other.clone();
            move || fs::write(other, "[secret.A]\n")
        });
        let text = text_within(&other, limits::VARS_TIMEOUT).unwrap();
        writer.join().unwrap().unwrap();
        assert_eq!(text, "[secret.A]\n");
    }

    #[test]
    fn what_is_no_text_of_a_policy_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("policy");
        fs::write(&path, "[secret.A]\n").unwrap();
        assert_eq!(policy_text(&path).unwrap(), "[secret.A]\n");
        let kind = |path: &Path| policy_text(path).unwrap_err().kind();
        assert_eq!(kind(root.path()), io::ErrorKind::IsADirectory);
        assert_eq!(kind(&root.path().join("none")), io::ErrorKind::NotFound);
        assert_eq!(kind(Path::new("/dev/zero")), io::ErrorKind::FileTooLarge);
    }
}
