//! Chooses the shell of a session.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use karyi_core::error::{ErrorCode, ToolError};

use crate::shell::{DIALECTS, Dialect, Shell};

/// The shell of a session, and the reason when it is not the user's usual one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShellChoice {
    pub(crate) shell: Shell,
    pub(crate) fallback: Option<String>,
}

/// Returns the first shell with a name.
fn shell_in(directories: &[PathBuf], name: &str) -> Option<Shell> {
    let mut candidates = directories.iter().map(|directory| directory.join(name));
    candidates.find_map(|path| Shell::at(&path))
}

/// Directories searched after the search path.
const STANDARD_DIRECTORIES: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Supported shells, in the words of an error.
const SUPPORTED: &str = "bash, zsh, dash, ksh, mksh, busybox or sh";

/// Returns the directories to search for shells.
pub(crate) fn directories(search_path: &OsStr) -> Vec<PathBuf> {
    let standard = STANDARD_DIRECTORIES.into_iter().map(PathBuf::from);
    let all = std::env::split_paths(search_path).chain(standard);
    all.filter(|directory| directory.is_absolute()).collect()
}

/// Chooses the shell: the requested one, by name or path; else the user's if it is supported; else bash; else sh.
///
/// # Errors
/// `no_shell` when the requested one cannot be used, or when there is none.
pub(crate) fn choose(
    requested: Option<&Path>,
    preferred: Option<&Path>,
    directories: &[PathBuf],
) -> Result<ShellChoice, ToolError> {
    if let Some(requested) = requested {
        let path = find_by_name(requested, directories).unwrap_or_else(|| requested.to_owned());
        let shell = Shell::at(&path).ok_or_else(|| no_shell(&refusal(&path)))?;
        return Ok(ShellChoice {
            shell,
            fallback: None,
        });
    }
    // An empty $SHELL names no shell.
    let preferred = preferred.filter(|path| !path.as_os_str().is_empty());
    if let Some(shell) = preferred.and_then(Shell::at) {
        return Ok(ShellChoice {
            shell,
            fallback: None,
        });
    }
    let reason = preferred.map(refusal);
    let found = ["bash", "sh"]
        .into_iter()
        .find_map(|name| shell_in(directories, name));
    match (found, reason) {
        (Some(shell), reason) => Ok(ShellChoice {
            fallback: reason.map(|reason| format!("{reason}; {} runs instead", shell.name)),
            shell,
        }),
        (None, None) => Err(no_shell("found neither bash nor sh")),
        (None, Some(reason)) => Err(no_shell(&format!("{reason}; found neither bash nor sh"))),
    }
}

/// Returns the path of the shell that a session would run for a name, if there is one.
#[must_use]
pub fn find(name: &Path, search_path: &OsStr) -> Option<PathBuf> {
    find_by_name(name, &directories(search_path))
}

/// Returns the path of the shell that a session would run: the requested one, else the preferred one if it is
/// supported, else bash, else sh.
///
/// # Errors
/// `no_shell` when the requested one cannot be used, or when there is none.
pub fn usable(
    requested: Option<&Path>,
    preferred: Option<&Path>,
    search_path: &OsStr,
) -> Result<PathBuf, ToolError> {
    let choice = choose(requested, preferred, &directories(search_path))?;
    Ok(choice.shell.path)
}

/// Returns the path of a shell that is named without a directory.
fn find_by_name(requested: &Path, directories: &[PathBuf]) -> Option<PathBuf> {
    if requested.components().count() != 1 || requested.is_absolute() {
        return None;
    }
    let mut candidates = directories
        .iter()
        .map(|directory| directory.join(requested));
    candidates.find(|path| is_program(path))
}

fn no_shell(message: &str) -> ToolError {
    ToolError::new(ErrorCode::NoShell, message)
}

fn refusal(path: &Path) -> String {
    let shown = path.display();
    if !is_program(path) {
        return format!("expected a shell at {shown}, found {}", describe_path(path));
    }
    if path.file_name() == Some(OsStr::new("fish")) {
        return format!(
            "{shown} does not read the language of sh; use {SUPPORTED} instead, and start fish \
             in it where you need it (`fish -c '...'`)"
        );
    }
    format!("{shown} is not supported; expected {SUPPORTED}")
}

/// Returns a description of a path that is not a program.
fn describe_path(path: &Path) -> String {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => "a directory".to_owned(),
        Ok(found) if found.is_file() => "a file that this user may not execute".to_owned(),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            "a directory on the way that this user may not enter".to_owned()
        }
        _ => "no program there".to_owned(),
    }
}

fn is_program(path: &Path) -> bool {
    path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

impl Shell {
    /// Returns the shell at a path if it is a program with a known name.
    fn at(path: &Path) -> Option<Self> {
        if !is_program(path) {
            return None;
        }
        let name = path.file_name()?.to_str()?.to_owned();
        let real = path.canonicalize().ok();
        let real = real.as_deref().and_then(Path::file_name);
        let target = real.and_then(OsStr::to_str).map(without_version);
        let (dialect, arguments) = recognize(without_version(&name), target)?;
        Some(Self {
            path: path.to_owned(),
            name,
            dialect,
            arguments: arguments.to_vec(),
        })
    }
}

/// Returns the dialect of a program and the arguments it needs, by its name and by that of the file it is a link to.
fn recognize(
    name: &str,
    target: Option<&str>,
) -> Option<(&'static dyn Dialect, &'static [&'static str])> {
    DIALECTS
        .into_iter()
        .find_map(|dialect| Some((dialect, dialect.arguments(name, target)?)))
}

/// Returns a program's name without the version some systems add: `bash-5.2`, `ksh93`.
fn without_version(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_dialect() {
        let check = |name: &str, target: &str, expected: Option<(&str, &str)>| {
            let found = recognize(without_version(name), Some(without_version(target)));
            let found = found.map(|(dialect, arguments)| (dialect.name(), arguments.join(" ")));
            let expected = expected.map(|(name, text)| (name, text.to_owned()));
            assert_eq!(found, expected, "{name} {target}");
        };
        let bash = "--norc --noprofile --noediting -i";
        check("bash-5.2", "bash", Some(("bash", bash)));
        check("sh", "bash", Some(("bash", &format!("--posix {bash}"))));
        check("sh", "dash", Some(("posix", "-i")));
        check("sh", "busybox", Some(("posix", "-i")));
        check("sh", "mksh", Some(("mksh", "-i")));
        check("sh", "ksh93", Some(("ksh", "-i")));
        check("sh", "zsh5", Some(("zsh", "-f -i -s")));
        check("ksh", "ksh93", Some(("ksh", "-i")));
        check("ksh", "bash", Some(("bash", &format!("--posix {bash}"))));
        check("ksh", "lksh", Some(("mksh", "-i")));
        check("ksh", "mksh", Some(("mksh", "-i")));
        check("ksh93", "ksh93", Some(("ksh", "-i")));
        check("busybox", "busybox", Some(("posix", "ash -i")));
        check("ash", "busybox", Some(("posix", "-i")));
        check("zsh", "zsh5", Some(("zsh", "-f -i -s")));
        check("rbash", "bash", None);
        check("fish", "fish", None);
        check("", "", None);
    }

    /// Creates programs with these names in a directory.
    fn programs(names: &[&str]) -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            let path = directory.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        }
        directory
    }

    #[test]
    fn a_shell_must_be_a_program_of_a_known_name() {
        let home = programs(&["cat", "fish"]);
        let check = |requested: &str, expected: &str| {
            let directories = [home.path().to_owned()];
            let error = choose(Some(Path::new(requested)), None, &directories).unwrap_err();
            let expected = expected.replace('@', home.path().to_str().unwrap());
            assert_eq!((error.code, error.message), (ErrorCode::NoShell, expected));
        };
        check(
            "/no/bash",
            "expected a shell at /no/bash, found no program there",
        );
        check("zsh", "expected a shell at zsh, found no program there");
        check("/", "expected a shell at /, found a directory");
        let text = home.path().join("bash");
        std::fs::write(&text, "").unwrap();
        check(
            text.to_str().unwrap(),
            "expected a shell at @/bash, found a file that this user may not execute",
        );
        check(
            "cat",
            "@/cat is not supported; expected bash, zsh, dash, ksh, mksh, busybox or sh",
        );
        check(
            "fish",
            "@/fish does not read the language of sh; use bash, zsh, dash, ksh, mksh, busybox or \
             sh instead, and start fish in it where you need it (`fish -c '...'`)",
        );
    }

    #[test]
    fn a_shell_is_found_by_its_name() {
        let home = programs(&["zsh"]);
        let directories = [PathBuf::from("/no"), home.path().to_owned()];
        let choice = choose(Some(Path::new("zsh")), None, &directories).unwrap();
        assert_eq!(choice.shell.path, home.path().join("zsh"));
        assert_eq!(choice.fallback, None);
    }

    #[test]
    fn without_a_usable_preference_bash_is_taken_then_sh() {
        let check = |names: &[&str], preferred: Option<&str>, expected: Result<&str, &str>| {
            let home = programs(names);
            let own = |text: &str| text.replace('@', home.path().to_str().unwrap());
            let preferred = preferred.map(|path| PathBuf::from(own(path)));
            let found = choose(None, preferred.as_deref(), &[home.path().to_owned()]);
            let shown = |choice: ShellChoice| {
                let reason = choice.fallback.unwrap_or_default();
                format!("{} {reason}", choice.shell.name)
            };
            let found = found.map(shown).map_err(|error| error.message);
            assert_eq!(found, expected.map(own).map_err(own));
        };
        check(&["bash", "sh"], None, Ok("bash "));
        check(&["sh"], None, Ok("sh "));
        check(&["bash"], Some(""), Ok("bash "));
        check(&["bash", "zsh"], Some("@/zsh"), Ok("zsh "));
        check(
            &["bash"],
            Some("@/zsh"),
            Ok("bash expected a shell at @/zsh, found no program there; bash runs instead"),
        );
        check(
            &["bash", "cat"],
            Some("@/cat"),
            Ok(
                "bash @/cat is not supported; expected bash, zsh, dash, ksh, mksh, busybox or sh; \
                bash runs instead",
            ),
        );
        check(&[], None, Err("found neither bash nor sh"));
        check(
            &["cat"],
            Some("@/zsh"),
            Err("expected a shell at @/zsh, found no program there; found neither bash nor sh"),
        );
    }

    #[test]
    fn relative_directories_are_not_searched() {
        let found = directories(OsStr::new("/a:b:.:"));
        let expected = ["/a", "/usr/local/bin", "/usr/bin", "/bin"];
        assert_eq!(found, expected.map(PathBuf::from));
    }
}
