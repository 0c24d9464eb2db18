//! The directory that contains the private directories of sessions.

use std::fs::{DirBuilder, symlink_metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use karyi_core::error::{ErrorCode, ToolError};

use crate::host::error_hints::{self, OTHER_DIRECTORY};

/// Creates the directory if it does not exist.
///
/// # Errors
/// `session_failed` when it cannot be created, belongs to another user, or is open to others.
pub fn prepare(path: &Path) -> Result<(), ToolError> {
    let shown = path.display();
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    let found = made.and_then(|()| symlink_metadata(path));
    let found = found.map_err(|error| unusable(path, &error))?;
    let user = nix::unistd::geteuid().as_raw();
    let mode = found.mode() & 0o777;
    if found.is_dir() && found.uid() == user && mode & 0o077 == 0 {
        return Ok(());
    }
    let message = format!(
        "{shown} must be a directory of user {user} with mode 700; found owner {}, mode {mode:o}{}",
        found.uid(),
        if found.is_dir() { "" } else { ", no directory" }
    );
    let hint = format!("remove {shown}, or {OTHER_DIRECTORY}");
    Err(ToolError::new(ErrorCode::SessionFailed, message).with_hint(hint))
}

/// Returns the error of a runtime directory, or of another resource that a session needs.
#[must_use]
pub fn unusable(path: &Path, error: &io::Error) -> ToolError {
    if error_hints::is_unrelated_to_directory(error) {
        return error_hints::failed(format!("no session can be created: {error}"), error);
    }
    let (shown, inode_note) = (path.display(), error_hints::inode_note(path, error));
    let message = format!("no session can be created in {shown}: {error}{inode_note}");
    let hint = error_hints::advice(error).unwrap_or(OTHER_DIRECTORY);
    ToolError::new(ErrorCode::SessionFailed, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_a_private_directory_of_the_user_is_taken() {
        let home = tempfile::tempdir().unwrap();
        let check = |path: &Path, expected: Option<&str>| {
            let found = prepare(path).err();
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            if let Some((error, expected)) = found.zip(expected) {
                assert_eq!(error.code, ErrorCode::SessionFailed);
                assert!(error.message.contains(expected), "{}", error.message);
                assert!(error.hint.contains("TMPDIR"), "{}", error.hint);
            }
        };
        let path = home.path().join("a/b");
        check(&path, None);
        check(&path, None);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        check(&path, Some("mode 755"));
        let link = home.path().join("link");
        std::os::unix::fs::symlink(home.path(), &link).unwrap();
        check(&link, Some("no directory"));
        std::fs::write(home.path().join("file"), "").unwrap();
        check(&home.path().join("file"), Some("file"));
        check(&home.path().join("file/in"), Some("file/in"));
    }
}
