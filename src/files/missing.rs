//! Says what could have been meant by a path that names nothing.

use std::io;
use std::path::Path;

use super::target::{Way, names};
use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::syntax::near;

/// Turns the error of a path into one that names what is there instead.
pub(super) fn explain(way: &Way, shown: &Path, real: &Path, error: &io::Error) -> ToolError {
    let plain = ToolError::from_io(shown, error);
    if plain.code != ErrorCode::NotFound {
        return plain;
    }
    match hint(way, real) {
        Some(hint) => plain.with_hint(hint),
        None => plain,
    }
}

/// Names the first part of a path that is missing, and entries beside it of a similar name.
pub(super) fn hint(way: &Way, real: &Path) -> Option<String> {
    let missing = real.ancestors().take_while(|path| !path.exists()).last()?;
    let name = missing.file_name()?.to_string_lossy();
    let parent = way.directory(missing.parent()?).ok()?;
    let names: Vec<String> = names(&parent)
        .ok()?
        .take(limits::MAX_COMPARED_NAMES)
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    if names.iter().any(|known| *known == name) {
        let hint = "its name is not UTF-8; reach it through a pattern in <command>";
        return Some(hint.to_owned());
    }
    let mut close = near(&name, names.iter().map(String::as_str));
    close.sort_unstable();
    let below = match missing == real {
        true => String::new(),
        false => format!("there is no directory {name}; "),
    };
    let shown: Vec<String> = close
        .iter()
        .map(|name| name.escape_debug().to_string())
        .collect();
    match shown.is_empty() {
        true if below.is_empty() => None,
        true => Some(format!("{below}list the one above it")),
        false => Some(format!("{below}did you mean {}?", shown.join(" or "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_told() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(temp.path().join("src/deep")).unwrap();
        for name in ["main.rs", "Main.rs", "other.txt"] {
            std::fs::write(temp.path().join("src").join(name), "").unwrap();
        }
        let check = |path: &str, expected: Option<&str>| {
            let found = hint(&Way::Path, &temp.path().join(path));
            assert_eq!(found.as_deref(), expected, "{path}");
        };
        check("src/mian.rs", Some("did you mean Main.rs or main.rs?"));
        check("src/zzzzzzzzz", None);
        check(
            "sr/main.rs",
            Some("there is no directory sr; did you mean src?"),
        );
        check(
            "qqqqqq/x/y",
            Some("there is no directory qqqqqq; list the one above it"),
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_that_is_no_text_is_told() {
        use std::os::unix::ffi::OsStrExt;
        let temp = tempfile::tempdir().unwrap();
        let name = std::ffi::OsStr::from_bytes(b"caf\xE9");
        std::fs::write(temp.path().join(name), "").unwrap();
        let found = hint(&Way::Path, &temp.path().join("caf\u{FFFD}")).unwrap();
        assert!(found.starts_with("its name is not UTF-8"), "{found}");
    }
}
