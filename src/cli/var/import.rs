//! `karyi var import`: keeps values of a .env file. Most of such a file are no secrets, so what looks
//! like one is listed first and nothing is kept without a choice.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::cli::var::args::ImportArgs;
use crate::cli::var::dotenv::{self, Entry};
use crate::cli::var::{Done, place, set, writable};
use crate::cli::vault::VaultFlags;
use crate::cli::{print, say, secret_lints};
use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::SecretName;
use crate::vault::keep::{Earlier, Terms, Vault, Wanted};
use crate::vault::redact::shortest_password;
use crate::vault::visible_bytes;

/// Parts of names that say that the value is a secret.
const TELLING: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASS",
    "PWD",
    "CREDENTIAL",
    "AUTH",
    "PRIVATE",
    "DSN",
    "SIGNING",
    "WEBHOOK",
];
/// Endings of names that say that it is none.
const HARMLESS: &[&str] = &[
    "_ID", "_NAME", "_USER", "_HOST", "_PORT", "_PATH", "_FILE", "_DIR", "_URL",
];
/// How a key in PEM begins.
const PEM: &str = "-----BEGIN ";
/// Shortest value that may be a token by its look, in bytes.
const MIN_TOKEN_BYTES: usize = 20;

/// Keeps values of a file.
pub(super) fn import(flags: &VaultFlags, args: &ImportArgs) -> Done {
    let bytes = bytes_of(&args.file)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| {
        let message = format!("{} is not UTF-8", args.file.display());
        ToolError::new(ErrorCode::BinaryFile, message).with_hint("name a file of KEY=value lines")
    })?;
    if let Some(kind) = whole_secret(text) {
        let message = format!(
            "{} is {kind} and no list of KEY=value lines",
            args.file.display()
        );
        return Err(ToolError::new(ErrorCode::BadArguments, message).with_hint(
            "keep it whole: `karyi var set NAME --stdin < FILE`; where a program wants a file, a script \
             writes $KARYI{NAME|file}",
        ));
    }
    let (entries, bad) = dotenv::read(text);
    let entries = last_ones(entries);
    for (line, reason) in bad {
        say(&format!("warning: line {line} {reason}"));
    }
    let is_chosen = args.yes || args.all || !args.select.is_empty();
    if !is_chosen {
        return propose(&entries);
    }
    let chosen = choose(entries, args)?;
    let command = format!("karyi var import {}", args.file.display());
    let vault = writable(&place(flags)?, &command)?;
    keep(&vault, args, &chosen)
}

/// Reads the file, which may be a pipe from another program: `<(sops -d .env)`.
fn bytes_of(path: &Path) -> Result<Zeroizing<Vec<u8>>, ToolError> {
    let failed = |error: io::Error| {
        let found = ToolError::from_io(path, &error);
        let message = match path.symlink_metadata() {
            Ok(_) => found.message,
            // A secret that was typed in the place of a file, for all anybody knows.
            Err(_) => "there is no such file to import".into(),
        };
        // The usual hints are for a model and its tools.
        ToolError::new(found.code, message)
            .with_hint("name a file of KEY=value lines that you can read")
    };
    let most = limits::MAX_VAULT_FILE_BYTES;
    let file = File::open(path).map_err(failed)?;
    // As much as may come at once: a buffer that grows leaves copies behind that nobody clears.
    let found = file.metadata().ok().filter(|found| found.is_file());
    let size = found.map_or(most, |found| found.len().min(most));
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 2));
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > most {
        let message = format!("{} is larger than {most} bytes", path.display());
        return Err(ToolError::new(ErrorCode::BadArguments, message)
            .with_hint("name a file of KEY=value lines"));
    }
    Ok(bytes)
}

/// Says what a file is that is one secret as a whole.
fn whole_secret(text: &str) -> Option<&'static str> {
    let text = text.trim_start();
    match text.starts_with(PEM) {
        true => Some("a key in PEM"),
        false => text.starts_with('{').then_some("JSON"),
    }
}

/// Leaves of entries with one name the last one, as programs that read such files do, and tells. What stands before the
/// equals sign may be a part of a value, so it is not repeated.
fn last_ones(entries: Vec<Entry>) -> Vec<Entry> {
    let mut last: BTreeMap<String, Entry> = BTreeMap::new();
    for entry in entries {
        if let Some(earlier) = last.get(&entry.key) {
            say(&format!(
                "warning: lines {} and {} have the same name; the last one counts",
                earlier.line, entry.line
            ));
        }
        last.insert(entry.key.clone(), entry);
    }
    let mut entries: Vec<Entry> = last.into_values().collect();
    entries.sort_by_key(|entry| entry.line);
    entries
}

/// Lists the entries that look like secrets, and the others with the reason.
fn propose(entries: &[Entry]) -> Done {
    let (found, left): (Vec<&Entry>, Vec<&Entry>) =
        entries.iter().partition(|entry| is_secret(entry));
    say(&format!(
        "{} of {} entries look like secrets; nothing was kept: --yes keeps these, --select NAMES others, --all everything",
        found.len(),
        entries.len()
    ));
    tell_of_left(left.into_iter());
    for entry in &found {
        if entry.value.expose().starts_with(PEM) {
            let key = &entry.key;
            say(&format!(
                "{key} is a key in PEM; where a program wants a file, a script writes $KARYI{{{key}|file}}"
            ));
        }
    }
    let list: String = found
        .iter()
        .map(|entry| format!("{}\n", entry.key))
        .collect();
    Ok(print(&list))
}

/// Tells which entries are left out and why. A text that is no name may be a part of a value and is not repeated.
fn tell_of_left<'a>(left: impl Iterator<Item = &'a Entry>) {
    for (entry, reason) in left.filter_map(|entry| Some((entry, reason_to_leave(entry)?))) {
        let name = SecretName::parse(&entry.key);
        let name = name.map_or_else(String::new, |name| format!(", {name}"));
        say(&format!("left out: line {}{name}: {reason}", entry.line));
    }
}

fn choose(entries: Vec<Entry>, args: &ImportArgs) -> Result<Vec<(SecretName, Entry)>, ToolError> {
    let keys: BTreeSet<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    let is_missing = |name: &String| !keys.contains(name.as_str());
    if let Some(at) = args.select.iter().position(is_missing) {
        // What stands there may be a value and is not repeated.
        let message = format!(
            "{} has no entry for name number {} after --select",
            args.file.display(),
            at + 1
        );
        return Err(ToolError::new(ErrorCode::NotFound, message)
            .with_hint("leave out --select to see the entries"));
    }
    let selected: BTreeSet<&str> = args.select.iter().map(String::as_str).collect();
    let is_chosen = |entry: &Entry| {
        args.all || selected.contains(entry.key.as_str()) || (args.yes && is_secret(entry))
    };
    if args.yes {
        tell_of_left(entries.iter());
    }
    let mut chosen: Vec<(SecretName, Entry)> = Vec::new();
    for entry in entries.into_iter().filter(is_chosen) {
        let Some(name) = SecretName::parse(&entry.key) else {
            say(&format!(
                "warning: line {} has no name that can be kept",
                entry.line
            ));
            continue;
        };
        chosen.push((name, entry));
    }
    Ok(chosen)
}

fn keep(vault: &Vault, args: &ImportArgs, chosen: &[(SecretName, Entry)]) -> Done {
    // A policy that means nothing is told before anything is kept.
    set::new_policy(&args.policy)?;
    let kind = vault.store().kind();
    let (mut kept, mut failed) = (0, 0);
    for (name, entry) in chosen {
        match keep_one(vault, args, (name, entry)) {
            Ok(true) => kept += 1,
            Ok(false) => say(&format!(
                "{name} is kept already; --replace takes the new value"
            )),
            Err(error) if is_of_one(&error) => {
                failed += 1;
                say(&format!(
                    "warning: line {}: {}; {}",
                    entry.line, error.message, error.hint
                ));
            }
            Err(error) => {
                let count = chosen.len();
                say(&format!(
                    "kept {kept} in the store {kind}, and stopped at line {}, of {name}: the same command goes on \
                     with the others of {count}",
                    entry.line
                ));
                return Err(error);
            }
        }
    }
    say(&format!("kept {kept} in the store {kind}"));
    Ok(if failed > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Whether an error is about one entry and not about the store.
fn is_of_one(error: &ToolError) -> bool {
    matches!(
        error.code,
        ErrorCode::BadValue | ErrorCode::BadArguments | ErrorCode::BadPolicy
    )
}

/// Makes the error of a policy that nobody knows one of this entry alone: the others are kept.
fn of_one(error: ToolError) -> ToolError {
    ToolError {
        code: ErrorCode::BadPolicy,
        ..error
    }
}

/// Keeps one entry. Returns whether it is kept; one that is there already stays unless it is to be replaced, and then
/// policy and note stay as with `karyi var set`.
fn keep_one(
    vault: &Vault,
    args: &ImportArgs,
    (name, entry): (&SecretName, &Entry),
) -> Result<bool, ToolError> {
    let now = Timestamp::now();
    let told = RefCell::new((None, None));
    let is_kept = vault.update(name, &|earlier: &Earlier| {
        if !earlier.is_nothing() && !args.replace {
            return Ok(None);
        }
        let said = args.policy.terms();
        let policy = set::base(earlier, &said).map_err(of_one)?;
        let policy = said.applied(&policy, now)?;
        told.replace((earlier.damage.clone(), Some(policy.clone())));
        let listed = earlier.listed.as_ref();
        let has_note = listed.is_some_and(|listed| listed.note.is_some());
        Ok(Some(Wanted {
            value: entry.value.duplicate(),
            terms: Terms {
                note: (!has_note).then(|| format!("from {}", file_name(args))),
                policy,
            },
        }))
    })?;
    if let (true, (damage, Some(policy))) = (is_kept, told.take()) {
        secret_lints::tell_of_policy(name, &policy);
        secret_lints::tell(name, &entry.value);
        set::tell_of_damage(name, damage.as_ref());
    }
    Ok(is_kept)
}

fn file_name(args: &ImportArgs) -> String {
    let name = args.file.file_name().unwrap_or_default();
    let name = name.to_string_lossy().replace(char::is_control, " ");
    name.chars().take(limits::MAX_NOTE_CHARS / 2).collect()
}

fn is_secret(entry: &Entry) -> bool {
    reason_to_leave(entry).is_none()
}

/// Reason why an entry does not look like a secret; none for a secret by its name, a URL with a password, a private key
/// or a token.
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
    } else if HARMLESS.iter().any(|end| key.ends_with(end)) && !is_token(value) {
        Some("its name says that it is no secret")
    } else if TELLING.iter().any(|part| key.contains(part)) || is_token(value) {
        None
    } else {
        Some("neither its name nor its value looks like a secret")
    }
}

/// Whether a text looks random: long, of one piece, with letters and digits mixed.
fn is_token(value: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b"_-+/=".contains(&b);
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    value.len() >= MIN_TOKEN_BYTES
        && value.bytes().all(is_word)
        && digits * 8 >= value.len()
        && letters * 4 >= value.len()
        && !value.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_from_settings() {
        let check = |line: &str, expected: bool| {
            let (entries, _) = dotenv::read(line);
            assert_eq!(is_secret(&entries[0]), expected, "{line}");
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
