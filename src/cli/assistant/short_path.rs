//! Paths as the user reads them.

use std::path::{Path, PathBuf};

/// Returns a path with `~` for the home directory.
pub(super) fn short_path(path: &Path, home: Option<&Path>) -> String {
    let below = home.and_then(|home| path.strip_prefix(home).ok());
    let short: PathBuf = match below {
        Some(below) if below.as_os_str().is_empty() => "~".into(),
        Some(below) => Path::new("~").join(below),
        None => path.to_owned(),
    };
    short.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_directory_is_short() {
        let check = |path: &str, expected: &str| {
            assert_eq!(
                short_path(Path::new(path), Some(Path::new("/home/a"))),
                expected
            );
        };
        check("/home/a", "~");
        check("/home/a/b", "~/b");
        check("/home/ab", "/home/ab");
    }
}
