//! Path of the running program, which is started again as the shell of a session.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Returns the path of this program: as the system reports it, else as it was called.
///
/// # Errors
/// Neither is available.
pub(super) fn own_program() -> anyhow::Result<PathBuf> {
    // Without /proc Linux cannot report it.
    std::env::current_exe()
        .or_else(|error| called_as().ok_or(error))
        .context("finding karyi itself (call it by its full path)")
}

fn called_as() -> Option<PathBuf> {
    let name = PathBuf::from(std::env::args_os().next()?);
    let directory = std::env::current_dir().ok()?;
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    find(&name, &directory, &search_path).ok()
}

/// Finds a program as a shell does.
fn find(name: &Path, directory: &Path, search_path: &OsStr) -> io::Result<PathBuf> {
    if name.components().count() > 1 {
        return directory.join(name).canonicalize();
    }
    let mut candidates = std::env::split_paths(search_path).map(|place| place.join(name));
    let found = candidates.find(|path| path.is_absolute() && path.is_file());
    found.ok_or_else(|| io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        std::fs::create_dir(home.join("bin")).unwrap();
        let program = home.join("bin/karyi");
        std::fs::write(&program, "").unwrap();
        let check = |name: &str, search_path: &str, expected: Option<&Path>| {
            let search_path = search_path.replace('@', home.to_str().unwrap());
            let found = find(Path::new(name), &home, OsStr::new(&search_path));
            assert_eq!(found.ok().as_deref(), expected, "{name} {search_path}");
        };
        check("karyi", "/no:@/bin", Some(&program));
        check("karyi", "bin:", None);
        check("bin/karyi", "", Some(&program));
        check(program.to_str().unwrap(), "", Some(&program));
        check("./bin/other", "@/bin", None);
    }
}
