//! Creates the identity of an encrypted file, when the user names none.

use std::fs::DirBuilder;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use karyi_core::error::ToolError;
use karyi_vault::store::age::new_identity;

/// Name of the identity file, beside the encrypted file.
pub(super) const IDENTITY_FILE: &str = "vault-identity.txt";

/// Creates an identity file that only its user can read, unless it exists. Returns true when it was created.
///
/// # Errors
/// It cannot be written.
pub(super) fn make_identity(path: &Path) -> Result<bool, ToolError> {
    let (public, identity) = new_identity()?;
    let made = || {
        let directory = path.parent().unwrap_or(path);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(directory)?;
        // With mode 0600, and atomically.
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        writeln!(
            file,
            "# made by karyi; opens vault.age\n# public key: {public}"
        )?;
        writeln!(file, "{}", identity.expose())?;
        file.as_file().sync_all()?;
        match file.persist_noclobber(path) {
            Ok(_) => Ok(true),
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.error),
        }
    };
    made().map_err(|error| ToolError::from_io(path, &error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_identity_is_private_and_made_once() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("data").join(IDENTITY_FILE);
        assert!(make_identity(&path).unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("\nAGE-SECRET-KEY-1"));
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        assert!(!make_identity(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}
