//! Recognises files whose change deserves a second look: secrets, keys, databases.

use std::ffi::OsStr;
use std::path::Path;

/// File names, in lower case.
const FILE_NAMES: &[(&str, &str)] = &[
    (".envrc", "environment"),
    (".flaskenv", "environment"),
    (".dev.vars", "environment"),
    (".netrc", "credentials"),
    ("_netrc", "credentials"),
    (".authinfo", "credentials"),
    (".pgpass", "credentials"),
    ("pgpass.conf", "credentials"),
    (".my.cnf", "credentials"),
    (".mylogin.cnf", "credentials"),
    (".npmrc", "credentials"),
    (".yarnrc.yml", "credentials"),
    (".pypirc", "credentials"),
    (".terraformrc", "credentials"),
    ("terraform.rc", "credentials"),
    (".git-credentials", "credentials"),
    (".dockercfg", "credentials"),
    (".dockerconfigjson", "credentials"),
    (".s3cfg", "credentials"),
    (".boto", "credentials"),
    (".vault-token", "credentials"),
    (".msmtprc", "credentials"),
    (".fetchmailrc", "credentials"),
    ("auth.json", "credentials"),
    ("accesskeys.csv", "credentials"),
    ("rclone.conf", "credentials"),
    ("wp-config.php", "credentials"),
    ("passwd", "credentials"),
    ("master.passwd", "credentials"),
    ("shadow", "credentials"),
    ("gshadow", "credentials"),
    ("sudoers", "credentials"),
    ("authorized_keys", "key"),
    ("authorized_keys2", "key"),
];

/// Names that are significant only in their directory, in lower case.
const IN_DIRECTORIES: &[(&str, &str, &str)] = &[
    (".aws", "config", "credentials"),
    (".docker", "config.json", "credentials"),
    (".kube", "config", "credentials"),
    ("gh", "hosts.yml", "credentials"),
];

/// Suffixes, in lower case.
const SUFFIXES: &[(&str, &str)] = &[
    (".env", "environment"),
    (".tfvars", "credentials"),
    (".tfvars.json", "credentials"),
    ("kubeconfig", "credentials"),
    (".htpasswd", "credentials"),
    (".keytab", "credentials"),
    (".ovpn", "credentials"),
    (".pem", "key"),
    (".key", "key"),
    (".p8", "key"),
    (".pk8", "key"),
    (".p12", "key"),
    (".pkcs12", "key"),
    (".pfx", "key"),
    (".ppk", "key"),
    (".jks", "key"),
    (".jceks", "key"),
    (".bcfks", "key"),
    (".keystore", "key"),
    (".kdb", "key"),
    (".kdbx", "key"),
    (".age", "key"),
    (".gpg", "key"),
    (".asc", "key"),
    (".db", "database"),
    (".db3", "database"),
    (".sqlite", "database"),
    (".sqlite3", "database"),
    (".sqlitedb", "database"),
    (".duckdb", "database"),
    (".mdb", "database"),
    (".accdb", "database"),
    (".rdb", "database"),
    (".dump", "database"),
    (".tfstate", "state"),
];

/// Base names of SSH keys, which may have suffixes: `id_rsa`, `id_ecdsa_sk`, `id_ed25519-work`.
const SSH_KEYS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss"];

/// Last words of data files with credentials: `google-credentials.json`, `secrets.yaml`.
const WORDS: &[&str] = &[
    "credential",
    "credentials",
    "secret",
    "secrets",
    "password",
    "passwords",
    "serviceaccount",
    "service-account",
    "service_account",
    "kubeconfig",
];

/// Extensions of data files. Source code such as `credentials.rs` is not one.
const DATA_EXTENSIONS: &[&str] = &[
    "",
    "cfg",
    "conf",
    "config",
    "csv",
    "db",
    "enc",
    "env",
    "ini",
    "json",
    "json5",
    "plist",
    "properties",
    "toml",
    "txt",
    "xml",
    "yaml",
    "yml",
];

/// Suffixes of backup copies and of files beside a database.
const BACKUP_SUFFIXES: &[&str] = &[
    ".bak", ".backup", ".old", ".orig", ".save", ".swp", ".tmp", "~", "-", "-journal", "-shm",
    "-wal",
];

/// Returns the risk of a change: `environment`, `credentials`, `key`, `database`, `state`, or `git` for files
/// inside a repository's git directory.
#[must_use]
pub fn risk(path: &Path) -> Option<&'static str> {
    if is_in_git(path) {
        return Some("git");
    }
    let lower = |name: &OsStr| name.to_string_lossy().to_ascii_lowercase();
    let name = lower(path.file_name()?);
    let name = strip_backup_suffixes(&name);
    let above = path.parent().and_then(Path::file_name).map(lower);
    let is_there = |(directory, known, _): &&(&str, &str, &str)| {
        above.as_deref() == Some(*directory) && name == *known
    };
    let whole = FILE_NAMES.iter().find(|(known, _)| name == *known);
    let end = || SUFFIXES.iter().find(|(end, _)| name.ends_with(end));
    let found = whole.or_else(end).map(|(_, risk)| *risk);
    let placed = || IN_DIRECTORIES.iter().find(is_there).map(|(.., risk)| *risk);
    found.or_else(placed).or_else(|| by_parts(name))
}

/// Strips the suffixes of backup copies.
fn strip_backup_suffixes(mut name: &str) -> &str {
    let shorter = |name: &'_ str| {
        BACKUP_SUFFIXES
            .iter()
            .find_map(|end| name.strip_suffix(end).map(str::len))
    };
    while let Some(length) = shorter(name).filter(|length| *length > 0) {
        name = name.get(..length).unwrap_or_default();
    }
    name
}

/// Judges a name by its first word and by the last word before its extensions.
fn by_parts(name: &str) -> Option<&'static str> {
    let goes_on = |rest: &str| rest.starts_with(['.', '-', '_']);
    if name.strip_prefix(".env").is_some_and(goes_on) {
        return Some("environment");
    }
    let is_key = |known: &str| {
        let rest = name.strip_prefix(known);
        rest.is_some_and(|rest| rest.is_empty() || goes_on(rest) && !rest.contains('.'))
    };
    let is_host_key = name.starts_with("ssh_host_") && name.ends_with("_key");
    if is_host_key || SSH_KEYS.iter().any(|known| is_key(known)) {
        return Some("key");
    }
    let bare = name.strip_prefix('.').unwrap_or(name);
    let (stem, ends) = bare.split_once('.').unwrap_or((bare, ""));
    let is_data = ends.split('.').all(|end| DATA_EXTENSIONS.contains(&end));
    let is_word = |word: &str| {
        let before = stem.strip_suffix(word);
        before.is_some_and(|before| before.is_empty() || before.ends_with(['-', '_']))
    };
    // Google appends an id to the name.
    let is_client = stem.starts_with("client_secret") && ends.ends_with("json");
    let is_secret = is_data && WORDS.iter().any(|word| is_word(word));
    (is_client || is_secret).then_some("credentials")
}

/// Tells whether a path is inside a git directory.
#[must_use]
pub fn is_in_git(path: &Path) -> bool {
    path.components()
        .any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(paths: &[&str], expected: Option<&str>) {
        for path in paths {
            assert_eq!(risk(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn risky_files_are_recognised() {
        let environments = [
            "/w/.env",
            "/w/.ENV.local",
            "/w/prod.env",
            "/w/.env-prod",
            "/w/.env_prod",
            "/w/.envrc",
            "/w/.env.bak",
            "/w/prod.env~",
            "/w/.flaskenv",
        ];
        check(&environments, Some("environment"));
        let databases = [
            "/w/app.DB",
            "/w/app.sqlite3-wal",
            "/w/app.db.bak",
            "/w/a.duckdb",
        ];
        check(&databases, Some("database"));
        let keys = [
            "/w/server.pem",
            "/w/server.key.old",
            "/w/cert.p12",
            "/w/AuthKey.p8",
            "/w/putty.ppk",
            "/home/u/.ssh/id_ed25519",
            "/home/u/.ssh/id_ecdsa_sk",
            "/home/u/.ssh/id_ed25519_sk",
            "/home/u/.ssh/id_rsa-work",
            "/home/u/.ssh/id_rsa.bak",
            "/etc/ssh/ssh_host_rsa_key",
            "/home/u/.ssh/authorized_keys",
        ];
        check(&keys, Some("key"));
        check(
            &["/w/x.tfstate", "/w/terraform.tfstate.backup"],
            Some("state"),
        );
        check(&["/w/.git/config"], Some("git"));
    }

    #[test]
    fn credentials_are_recognised() {
        let credentials = [
            "/w/.aws/credentials",
            "/w/.aws/config",
            "/w/.kube/config",
            "/w/.docker/config.json",
            "/w/kubeconfig",
            "/w/prod.kubeconfig",
            "/w/kubeconfig.yaml",
            "/w/prod-kubeconfig",
            "/w/.npmrc",
            "/w/.netrc",
            "/w/_netrc",
            "/w/.pypirc",
            "/w/.pgpass",
            "/w/.my.cnf",
            "/w/credentials.json",
            "/w/credentials.toml",
            "/w/google-credentials.json",
            "/w/config/credentials.yml.enc",
            "/w/.credentials",
            "/w/secrets.yaml",
            "/w/.secrets",
            "/w/client_secret_12-a.apps.googleusercontent.com.json",
            "/w/client_secret.json",
            "/w/service-account.json",
            "/w/prod.tfvars",
            "/etc/shadow",
            "/etc/shadow-",
            "/etc/krb5.keytab",
        ];
        check(&credentials, Some("credentials"));
    }

    #[test]
    fn other_files_are_not() {
        let others = [
            "/w/.gitignore",
            "/w/environment.rs",
            "/w/keys.rs",
            "/w/env",
            "/w/.environment",
            "/w/id_map.rs",
            "/w/id_rsa.pub",
            "/w/id_rsa_test.rs",
            "/w/id_rsable",
            "/w/config",
            "/w/config.json",
            "/w/hosts.yml",
            "/w/credentials.rs",
            "/w/credentials_test.go",
            "/w/secret.rs",
            "/w/secretary.json",
            "/w/server.crt",
            "/w/monkey",
            "/w/~",
            "/w/.bak",
        ];
        check(&others, None);
    }
}
