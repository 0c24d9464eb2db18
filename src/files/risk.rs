//! Names the files whose change deserves a second look: secrets, keys, databases.

use std::path::Path;

/// Whole names, in lower case.
const NAMES: &[(&str, &str)] = &[
    (".env", "environment"),
    (".envrc", "environment"),
    (".netrc", "credentials"),
    (".pgpass", "credentials"),
    (".npmrc", "credentials"),
    (".pypirc", "credentials"),
    (".git-credentials", "credentials"),
    ("credentials", "credentials"),
    ("credentials.json", "credentials"),
    (".htpasswd", "credentials"),
    ("shadow", "credentials"),
    ("sudoers", "credentials"),
    ("authorized_keys", "key"),
    ("id_rsa", "key"),
    ("id_dsa", "key"),
    ("id_ecdsa", "key"),
    ("id_ed25519", "key"),
    ("terraform.tfstate", "state"),
];

/// Ends of names, in lower case.
const ENDS: &[(&str, &str)] = &[
    (".pem", "key"),
    (".key", "key"),
    (".p12", "key"),
    (".pfx", "key"),
    (".jks", "key"),
    (".keystore", "key"),
    (".kdbx", "key"),
    (".age", "key"),
    (".gpg", "key"),
    (".asc", "key"),
    (".db", "database"),
    (".db3", "database"),
    (".sqlite", "database"),
    (".sqlite3", "database"),
    (".mdb", "database"),
    (".dump", "database"),
];

/// Returns what a file holds that makes its change a risk: `environment`, `credentials`, `key`,
/// `database`, `state`, or `git` for the inner files of a repository.
#[must_use]
pub fn risk(path: &Path) -> Option<&'static str> {
    if is_in_git(path) {
        return Some("git");
    }
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let whole = NAMES.iter().find(|(known, _)| name == *known);
    let end = || ENDS.iter().find(|(end, _)| name.ends_with(end));
    let found = whole.or_else(end).map(|(_, risk)| *risk);
    found.or_else(|| name.starts_with(".env.").then_some("environment"))
}

/// Whether a path lies inside the directory where git keeps a repository.
#[must_use]
pub fn is_in_git(path: &Path) -> bool {
    path.components()
        .any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_matter_are_named() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(risk(Path::new(path)), expected, "{path}");
        };
        check("/w/.env", Some("environment"));
        check("/w/.ENV.local", Some("environment"));
        check("/w/app.DB", Some("database"));
        check("/w/server.pem", Some("key"));
        check("/home/u/.ssh/id_ed25519", Some("key"));
        check("/w/.git/config", Some("git"));
        check("/w/.aws/credentials", Some("credentials"));
        check("/w/.gitignore", None);
        check("/w/environment.rs", None);
        check("/w/keys.rs", None);
    }
}
