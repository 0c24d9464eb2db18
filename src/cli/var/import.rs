//! `karyi var import`: stores values of a .env file. Most entries of such a file are no secrets, so likely
//! ones are listed first, and nothing is stored without an option.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::cli::var::args::ImportArgs;
use crate::cli::var::dotenv::{self, Entry};
use crate::cli::var::{CommandResult, place, set, shell_word, writable};
use crate::cli::vault::{VaultFlags, read_secretly};
use crate::cli::{print, say, secret_lints};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::SecretName;
use karyi_vault::redact::shortest_password;
use karyi_vault::store::concerns_one_value;
use karyi_vault::vault::{CurrentSecret, SecretDetails, Vault};
use karyi_vault::visible_bytes;

/// Parts of names that indicate a secret.
const TELLING: &str = "KEY TOKEN SECRET PASS PWD CREDENTIAL AUTH PRIVATE DSN SIGNING WEBHOOK";
/// Endings of names that indicate no secret.
const HARMLESS: &str = "_ID _NAME _USER _HOST _PORT _PATH _FILE _DIR _URL";
/// Start of a key in PEM.
const PEM: &str = "-----BEGIN ";

/// Stores values of a file.
pub(super) fn import(flags: &VaultFlags, args: &ImportArgs) -> CommandResult {
    let file = args.file.display();
    let bytes = bytes_of(&args.file)?;
    let (mut entries, bad) = dotenv::read(list_in(&bytes, &args.file)?);
    for (line, reason) in bad {
        say(&format!("warning: line {line} {reason}"));
    }
    // The last line with a name counts, as in other programs. The words may be part of a value.
    let mut later = BTreeMap::new();
    entries.reverse();
    entries.retain(
        |Entry { line, key, .. }| match later.insert(key.clone(), *line) {
            Some(other) => {
                say(&format!(
                    "warning: lines {line} and {other} have the same name; the last one counts"
                ));
                false
            }
            None => true,
        },
    );
    entries.reverse();
    let is_missing = |name: &String| entries.iter().all(|entry| entry.key != *name);
    if let Some(at) = args.select.iter().position(is_missing) {
        // The word may be a value and is not repeated.
        let message = format!(
            "{file} has no entry for name number {} after --select",
            at + 1
        );
        return Err(ToolError::new(ErrorCode::NotFound, message)
            .with_hint("leave out --select to see the entries"));
    }
    let count = entries.len();
    let chosen: Vec<(SecretName, Entry)> = entries
        .into_iter()
        .filter_map(|entry| choose(entry, args))
        .collect();
    if args.yes || args.all || !args.select.is_empty() {
        let vault = writable(&place(flags)?)?;
        return keep(&vault, args, &chosen);
    }
    say(&format!(
        "{} of {count} entries look like secrets; nothing was kept: `karyi var import {} --yes` keeps these, --select \
         NAMES others, --all everything",
        chosen.len(),
        shell_word(args.file.as_os_str())
    ));
    let keys = chosen.iter();
    for (name, _) in keys.filter(|(_, entry)| entry.value.expose().starts_with(PEM)) {
        say(&format!(
            "{name} is a key in PEM; where a program wants a file, a script writes $KARYI{{{name}|file}}"
        ));
    }
    let list = chosen.iter().map(|(name, _)| format!("{name}\n"));
    Ok(print(&list.collect::<String>()))
}

/// Reads the file, which may be a pipe from another program: `<(sops -d .env)`.
fn bytes_of(path: &Path) -> Result<Zeroizing<Vec<u8>>, ToolError> {
    let hint = "name a file of KEY=value lines that you can read";
    let failed = |error: io::Error| {
        let found = ToolError::from_io(path, &error);
        let message = match path.symlink_metadata() {
            Ok(_) => found.message,
            // The argument may be a secret, so it is not repeated.
            Err(_) => "there is no such file to import".into(),
        };
        ToolError::new(found.code, message).with_hint(hint)
    };
    let most = limits::MAX_VAULT_FILE_BYTES;
    let file = File::open(path).map_err(failed)?;
    let bytes = read_secretly(file, most + 1).map_err(failed)?;
    if bytes.len() as u64 > most {
        let message = format!("{} is larger than {most} bytes", path.display());
        return Err(ToolError::new(ErrorCode::BadArguments, message).with_hint(hint));
    }
    Ok(bytes)
}

/// Returns the text of a file that is a list of values.
fn list_in<'a>(bytes: &'a [u8], file: &Path) -> Result<&'a str, ToolError> {
    let file = file.display();
    let text = std::str::from_utf8(bytes).map_err(|_| {
        ToolError::new(ErrorCode::BinaryFile, format!("{file} is not UTF-8"))
            .with_hint("name a file of KEY=value lines")
    })?;
    let kind = match text.trim_start() {
        start if start.starts_with(PEM) => "a key in PEM",
        start if start.starts_with('{') => "JSON",
        _ => return Ok(text),
    };
    let message = format!("{file} is {kind} and no list of KEY=value lines");
    Err(ToolError::new(ErrorCode::BadArguments, message).with_hint(
        "keep it whole: `karyi var set NAME --stdin < FILE`; where a program wants a file, a script writes \
         $KARYI{NAME|file}",
    ))
}

/// Returns an entry to store, or reports why it is skipped. A malformed name may be part of a value and is not
/// repeated.
fn choose(entry: Entry, args: &ImportArgs) -> Option<(SecretName, Entry)> {
    let is_named = args.select.contains(&entry.key);
    if !args.select.is_empty() && !is_named {
        return None;
    }
    let line = entry.line;
    let Some(name) = SecretName::parse(&entry.key) else {
        say(&format!(
            "left out: line {line}: it has no name that can be kept"
        ));
        return None;
    };
    match reason_to_leave(&entry).filter(|_| !is_named && !args.all) {
        Some(reason) => {
            say(&format!("left out: line {line}, {name}: {reason}"));
            None
        }
        None => Some((name, entry)),
    }
}

fn keep(vault: &Vault, args: &ImportArgs, chosen: &[(SecretName, Entry)]) -> CommandResult {
    let (said, now) = (args.policy.terms(), Timestamp::now());
    // Check the policy before anything is stored.
    said.policy(now)?;
    let file = args.file.file_name().unwrap_or_default().to_string_lossy();
    let file = file.replace(char::is_control, " ");
    let note: String = format!("from {file}")
        .chars()
        .take(limits::MAX_NOTE_CHARS)
        .collect();
    let kind = vault.store().kind();
    let (mut kept, mut failed) = (0, 0);
    for (name, Entry { line, value, .. }) in chosen {
        // An existing secret stays unless it is to be replaced; its policy and note stay in any case.
        let terms = |earlier: &CurrentSecret| {
            if !earlier.is_nothing() && !args.replace {
                return Ok(None);
            }
            let listed = earlier.listed.as_ref();
            let has_note = listed.is_some_and(|listed| listed.note.is_some());
            Ok(Some(SecretDetails {
                note: (!has_note).then(|| note.clone()),
                policy: said.applied(&set::base(earlier, &said)?, now)?,
            }))
        };
        match set::keep(vault, name, Some(value), &terms) {
            Ok(Some(_)) => kept += 1,
            Ok(None) => say(&format!(
                "{name} is kept already; --replace takes the new value"
            )),
            Err(error) if concerns_one_value(&error) || error.code == ErrorCode::BadPolicy => {
                failed += 1;
                say(&format!(
                    "warning: line {line}: {}; {}",
                    error.message, error.hint
                ));
            }
            Err(error) => {
                let count = chosen.len();
                say(&format!(
                    "kept {kept} in the store {kind}, and stopped at line {line}, of {name}: the same command goes on \
                     with the others of {count}"
                ));
                return Err(error);
            }
        }
    }
    say(&format!("kept {kept} in the store {kind}"));
    Ok(u8::from(failed > 0).into())
}

/// Returns the reason why an entry does not look like a secret. Secrets are recognised by name, as a URL with a
/// password, a private key or a token.
fn reason_to_leave(entry: &Entry) -> Option<&'static str> {
    let value = entry.value.expose();
    let key = entry.key.to_ascii_uppercase();
    let is_private = value.starts_with(PEM) && value.contains("PRIVATE KEY");
    if visible_bytes(value) < limits::GOOD_SECRET_BYTES {
        Some("its value is shorter than 8 bytes")
    } else if shortest_password(value).is_some() || is_private {
        None
    } else if let Some(kind) = secret_lints::public_kind(value) {
        Some(kind)
    } else if secret_lints::is_token(value) {
        None
    } else if HARMLESS.split(' ').any(|end| key.ends_with(end)) {
        Some("its name says that it is no secret")
    } else if TELLING.split(' ').any(|part| key.contains(part)) {
        None
    } else {
        Some("neither its name nor its value looks like a secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_from_settings() {
        let check = |line: &str, expected: bool| {
            let (entries, _) = dotenv::read(line);
            assert_eq!(reason_to_leave(&entries[0]).is_none(), expected, "{line}");
        };
        check("API_KEY=abcdefgh", true);
        check("github_token=abcdefgh", true);
        check("DB_PASSWORD=hunter22", true);
        check(
            "DATABASE_URL=postgres://admin:Zk7qPw2L@db.example.com/prod",
            true,
        );
        check("BUILD=ghp4k2jh34k5jh23k4jh5", true);
        check("TLS=\"-----BEGIN PRIVATE KEY-----\nMIIE\n\"", true);
        check("TLS=\"-----BEGIN CERTIFICATE-----\nMIIE\n\"", false);
        check("PASSWORD=short", false);
        check("AWS_ACCESS_KEY_ID=someidentity", false);
        check("HOME_URL=https://example.com/a:b@c", false);
        check("NODE_ENV=production", false);
        check("DATA=/var/lib/app/data1/file22222", false);
        check("TITLE=a title of twenty two chars 12", false);
    }
}
