//! Maps errors of a keyring, without any secret in them.

use keyring_core::Error;
use zeroize::Zeroizing;

use karyi_core::error::{ErrorCode, ToolError};

/// Adds to the timeout of a change that its outcome is unknown.
pub(super) fn unknown_outcome(error: ToolError) -> ToolError {
    if error.code != ErrorCode::KeyringTimeout {
        return error;
    }
    let message = format!(
        "{}; the requested change may have been made, or may still be made",
        error.message
    );
    ToolError::new(error.code, message)
        .with_hint("once the keyring answers, check with `karyi var list` and repeat the command")
}

/// Maps an error of the keyring, and wipes the bytes that some errors hold.
pub(super) fn map_error(error: Error) -> ToolError {
    let unavailable = |message: String| ToolError::new(ErrorCode::KeyringUnavailable, message);
    match error {
        Error::NoStorageAccess(reason) => {
            let message = format!("the keyring is locked: {reason}");
            ToolError::new(ErrorCode::KeyringLocked, message)
        }
        Error::BadEncoding(bytes) | Error::BadDataFormat(bytes, _) => {
            drop(Zeroizing::new(bytes));
            let message = "the content of the keyring cannot be read";
            ToolError::new(ErrorCode::BadVault, message)
        }
        Error::TooLong(_, most) => {
            let message = format!("the keyring takes values of at most {most} bytes");
            ToolError::new(ErrorCode::BadValue, message)
                .with_hint("keep long values in a file: --vault age")
        }
        Error::Ambiguous(entries) => {
            let count = entries.len();
            let message = format!("the keyring holds {count} values under this name");
            ToolError::new(ErrorCode::BadVault, message)
                .with_hint("remove all but one of them with the keyring's own program")
        }
        Error::PlatformFailure(reason) => unavailable(format!("the keyring fails: {reason}")),
        Error::NoDefaultStore => unavailable("this system has no keyring".into()),
        Error::NoEntry => unavailable("the keyring lost the value".into()),
        other => unavailable(format!("the keyring fails: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_no_content_of_the_keyring() {
        let check = |error: Error, code: ErrorCode| {
            let found = map_error(error);
            assert_eq!(found.code, code);
            assert!(!format!("{found:?}").contains("115"), "{found:?}");
            assert!(!format!("{found:?}").contains("sesame"), "{found:?}");
        };
        let bytes = b"sesame".to_vec();
        check(Error::BadEncoding(bytes.clone()), ErrorCode::BadVault);
        let reason = Box::new(std::io::Error::other("x"));
        check(Error::BadDataFormat(bytes, reason), ErrorCode::BadVault);
        check(Error::Ambiguous(Vec::new()), ErrorCode::BadVault);
        check(Error::TooLong("value".into(), 2560), ErrorCode::BadValue);
        check(Error::NoDefaultStore, ErrorCode::KeyringUnavailable);
        let reason = Box::new(std::io::Error::other("x"));
        check(Error::NoStorageAccess(reason), ErrorCode::KeyringLocked);
    }
}
