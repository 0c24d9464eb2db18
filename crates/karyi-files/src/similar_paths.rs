//! Suggests similar names for a path that does not exist.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::opener::{Opener, names};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::similar_names::similar_names;

/// Adds the suggestions to a "not found" error.
pub(super) fn explain(opener: &Opener, shown: &Path, real: &Path, error: &io::Error) -> ToolError {
    let plain = ToolError::from_io(shown, error);
    if plain.code != ErrorCode::NotFound {
        return plain;
    }
    match hint(opener, shown, real) {
        Some(hint) => plain.with_hint(hint),
        None => plain,
    }
}

/// Names the first missing part of a path and similar entries beside it, each as a path that can replace
/// `shown`.
pub(super) fn hint(opener: &Opener, shown: &Path, real: &Path) -> Option<String> {
    let missing = real.ancestors().take_while(|path| !path.exists()).last()?;
    let name = missing.file_name()?.to_string_lossy();
    let above = missing.parent()?;
    let names: Vec<OsString> = names(&opener.directory(above).ok()?)
        .ok()?
        .take(limits::MAX_COMPARED_NAMES)
        .collect();
    if names.iter().any(|known| known.to_string_lossy() == name) {
        let hint = "its name is not UTF-8; reach it through a pattern in a command";
        return Some(hint.to_owned());
    }
    let mut close = similar_names(&name, names.iter().filter_map(|name| name.to_str()));
    close.sort_unstable();
    let rest = real.strip_prefix(missing).ok()?;
    let start = as_shown(shown, real, above);
    let paths = close.iter().map(|name| {
        // The whole path if it exists there, else only the directory.
        let whole = Path::new(name).join(rest);
        let leads = !rest.as_os_str().is_empty() && above.join(&whole).exists();
        in_words(&start.join(if leads { &whole } else { Path::new(name) }))
    });
    let paths: Vec<String> = paths.collect();
    let below = match missing == real {
        true => String::new(),
        false => format!("there is no directory {}; ", in_words(&start.join(&*name))),
    };
    match paths.is_empty() {
        true if below.is_empty() => None,
        true => Some(format!("{below}list the one above it")),
        false => Some(format!("{below}did you mean {}?", paths.join(" or "))),
    }
}

/// Returns a directory above a missing file in the form of the given path: relative when that is, and empty
/// for the directory that relative paths start from.
fn as_shown(shown: &Path, real: &Path, above: &Path) -> PathBuf {
    let (mut start, mut at) = (shown, real);
    while at != above {
        // After `..` or a symlink the forms diverge.
        let parents = start.parent().zip(at.parent());
        let Some(parents) = parents.filter(|_| start.file_name() == at.file_name()) else {
            return above.to_owned();
        };
        (start, at) = parents;
    }
    start.to_owned()
}

/// Escapes only control characters, so that the path can be copied.
fn in_words(path: &Path) -> String {
    let mut words = String::new();
    for c in path.to_string_lossy().chars() {
        match c.is_control() {
            true => words.extend(c.escape_debug()),
            false => words.push(c),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::canonical_for_plan;

    #[test]
    fn similar_names_are_suggested() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(temp.path().join("src/deep")).unwrap();
        for name in ["main.rs", "Main.rs", "other.txt"] {
            std::fs::write(temp.path().join("src").join(name), "").unwrap();
        }
        for name in ["it's.txt", "a\\b\"c", "tab\there"] {
            std::fs::write(temp.path().join(name), "").unwrap();
        }
        let top = temp.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("src/deep", top.join("link")).unwrap();
        let check = |path: &str, expected: Option<&str>| {
            let shown = Path::new(path);
            let found = hint(&Opener::Path, shown, &canonical_for_plan(&top.join(shown)));
            let expected = expected.map(|hint| hint.replace("TOP", top.to_str().unwrap()));
            assert_eq!(found, expected, "{path}");
        };
        check(
            "src/mian.rs",
            Some("did you mean src/Main.rs or src/main.rs?"),
        );
        check("srcs", Some("did you mean src?"));
        check("./sr", Some("did you mean ./src?"));
        check("src/zzzzzzzzz", None);
        check("it.txt", Some("did you mean it's.txt?"));
        check("a-b\"c", Some("did you mean a\\b\"c?"));
        check("tab-here", Some("did you mean tab\\there?"));
        check(
            "sr/main.rs",
            Some("there is no directory sr; did you mean src/main.rs?"),
        );
        check(
            "sr/none.rs",
            Some("there is no directory sr; did you mean src?"),
        );
        check(
            "src/dep/x",
            Some("there is no directory src/dep; did you mean src/deep?"),
        );
        check(
            "qqqqqq/x/y",
            Some("there is no directory qqqqqq; list the one above it"),
        );
        check(
            "src/../src/other.tx",
            Some("did you mean src/../src/other.txt?"),
        );
        check("link/../other.tx", Some("did you mean link/../other.txt?"));
        // The symlink's own name differs from the missing one.
        std::os::unix::fs::symlink("src/othr.txt", top.join("dangling")).unwrap();
        check("dangling", Some("did you mean TOP/src/other.txt?"));
        let absolute = top.join("src/mian.rs");
        check(
            absolute.to_str().unwrap(),
            Some("did you mean TOP/src/Main.rs or TOP/src/main.rs?"),
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn non_utf8_names_are_explained() {
        use std::os::unix::ffi::OsStrExt;
        let temp = tempfile::tempdir().unwrap();
        let name = std::ffi::OsStr::from_bytes(b"caf\xE9");
        std::fs::write(temp.path().join(name), "").unwrap();
        let shown = Path::new("caf\u{FFFD}");
        let found = hint(&Opener::Path, shown, &temp.path().join(shown)).unwrap();
        assert!(found.starts_with("its name is not UTF-8"), "{found}");
    }
}
