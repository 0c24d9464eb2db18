//! `karyi var doctor`: checks that the index and the store work and agree.

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::json;

use crate::cli::doctor::list_of;
use crate::cli::var::{CommandResult, existing, to_a_person};
use crate::cli::vault::{VaultFlags, VaultLocation};
use crate::cli::{print, say};
use crate::render::paint::safe_line;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{SecretName, SecretValue};
use karyi_core::shell_word::quote;
use karyi_pty::health::{Check, Health};
use karyi_pty::inherited;
use karyi_vault::index::{FILE_NAME, Index, StoreChoice};
use karyi_vault::session::listed;
use karyi_vault::store::record;
use karyi_vault::store::{Key, Kind, Store, read_entries};
use karyi_vault::vault::{SecretState, check_same_store, names_in_other_stores, secret_statuses};

/// Checks the vault; with `repair` the index is first rebuilt from the store.
pub(super) fn doctor(flags: &VaultFlags, is_json: bool, repair: bool) -> CommandResult {
    if repair {
        let vault = existing(flags).map_err(|error| match error.code {
            ErrorCode::UndefinedVariable => {
                let message = "no index says which store there is";
                ToolError::new(ErrorCode::BadArguments, message)
                    .with_hint("name it: --vault os, or --vault age with --age-identity FILE")
            }
            _ => error,
        })?;
        let (added, removed) = vault.repair()?;
        for (what, names) in [("added", added), ("removed", removed)] {
            if !names.is_empty() {
                let names: Vec<&str> = names.iter().map(SecretName::as_str).collect();
                say(&format!("{what}: {}", names.join(", ")));
            }
        }
    }
    let checks = checks(&VaultLocation::find(flags, None)?, true);
    let is_well = checks.iter().all(|check| check.health == Health::Ok);
    let status = if is_well { "ok" } else { "limited" };
    print(&match is_json {
        true => format!(
            "{:#}\n",
            json!({ "status": status, "checks": list_of(&checks) })
        ),
        false => checks.iter().map(text_of).collect(),
    });
    Ok(u8::from(!is_well).into())
}

/// Returns the checks of the vault; with `is_written` a test value is stored and removed.
pub(in crate::cli) fn checks(place: &VaultLocation, is_written: bool) -> Vec<Check> {
    let index = match Index::read(&place.directory) {
        Ok(index) => index,
        Err(error) => return vec![failed("index", &error)],
    };
    let chosen = place.chosen(&index);
    let mut checks = vec![index_check(place, &index)];
    // Check before locking, which tightens the mode of the directory.
    checks.extend(modes(place, chosen.as_ref()));
    let Some(chosen) = chosen else {
        checks.push(no_store(place));
        return checks;
    };
    checks.extend(other_stores(place, &index, chosen.kind));
    let kind = chosen.kind;
    let unasked = if inherited::is_inside_session() {
        Some("not asked: this runs inside a session of karyi")
    } else {
        let why = "not opened: it needs its passphrase, which --age-passphrase-fd N gives";
        (!place.is_quiet(&chosen)).then_some(why)
    };
    if let Some(why) = unasked {
        checks.push(Check::ok("store", format!("{kind}, {why}"), meaning(kind)));
        return checks;
    }
    let store = place.store(&chosen);
    // A missing file needs no key, and the probe would create a new one.
    let names = store.list().and_then(|names| {
        check_same_store(&index, kind, &names)?;
        Ok(names)
    });
    match names {
        Ok(names) => {
            let is_written = is_written && (kind == Kind::Os || place.has_age_file());
            checks.push(store_check(store.as_ref(), is_written));
            let (unusable, unreadable) = policies(store.as_ref());
            checks.push(agreement(&index, kind, &names, &unreadable));
            checks.extend(unusable);
        }
        Err(error) => checks.push(failed("store", &error)),
    }
    checks
}

fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::Os => "values are in the keyring of the system",
        Kind::Age => "values are encrypted in a file",
        Kind::Memory | Kind::Env => "values end with the run",
    }
}

/// Checks that values can be stored.
fn store_check(store: &dyn Store, is_written: bool) -> Check {
    let kind = store.kind();
    let tried = store.probe().and_then(|()| match is_written {
        true => try_value(store),
        false => Ok(()),
    });
    let Err(error) = tried else {
        return Check::ok("store", kind.to_string(), meaning(kind));
    };
    let (code, message) = (error.code.as_str(), &error.message);
    let found = format!("{kind}, but nothing can be changed: {code}: {message}");
    let meaning = "secrets can be used, but not stored or removed";
    Check::limited("store", found, meaning, &error.hint)
}

/// Stores a value, reads it back and removes it.
fn try_value(store: &dyn Store) -> Result<(), ToolError> {
    let key = Key::probe();
    let value = SecretValue::new(format!("karyi-probe-{}", std::process::id()));
    store.set(&key, &value)?;
    let read = store.get(&key);
    store.remove(&key)?;
    if read?.is_some_and(|read| read.expose() == value.expose()) {
        return Ok(());
    }
    let message = "a test value was stored and could not be read back";
    Err(ToolError::new(ErrorCode::VaultUnavailable, message))
}

/// Checks that the index exists and counts its names.
fn index_check(place: &VaultLocation, index: &Index) -> Check {
    let path = place.directory.join(FILE_NAME);
    let path = path.display();
    if place.has_unlisted(index) {
        let found = format!(
            "{path} lists nothing, and {} is there",
            place.age_file().display()
        );
        let meaning = "names, notes and the choice of the store were lost; values were not";
        let advice = "make it anew: karyi var doctor --repair, with --vault age --age-identity FILE if an identity opens the file";
        return Check::limited("index", found, meaning, advice);
    }
    let found = format!("{path}, {} names", index.secret_names().count());
    Check::ok("index", found, "secrets are listed without their values")
}

/// Checks where the first value would go when no store was chosen, or finds a keyring whose index is lost. Reads
/// no value.
fn no_store(place: &VaultLocation) -> Check {
    let is_open = !inherited::is_inside_session();
    let held = is_open.then(|| place.store(&StoreChoice::os()).list());
    let meaning = "`karyi var set` keeps the first value in the keyring of the system";
    let names = match held {
        Some(Err(error)) => {
            let code = error.code.as_str();
            let found = format!(
                "none was chosen yet, and the keyring cannot be used ({code}): `karyi var set NAME --vault age` makes \
                 an encrypted file"
            );
            return Check::ok("store", found, meaning);
        }
        held => held.and_then(Result::ok).unwrap_or_default(),
    };
    if names.is_empty() {
        return Check::ok("store", "none was chosen yet", meaning);
    }
    let names: Vec<&str> = names.iter().map(SecretName::as_str).collect();
    let found = format!("no index, and the keyring holds {}", listed(&names));
    let advice = "make the index anew: karyi var doctor --repair --vault os";
    Check::limited("store", found, UNUSED, advice)
}

/// Lists files that other users can read or write.
fn modes(place: &VaultLocation, chosen: Option<&StoreChoice>) -> Option<Check> {
    let open = place.open_to_others(chosen);
    let shown = |(path, mode): &(PathBuf, u32)| format!("{} ({mode:04o})", path.display());
    let found: Vec<String> = open.iter().map(shown).collect();
    let found = format!("others can read or write {}", found.join(", "));
    let paths: Vec<String> = open
        .iter()
        .map(|(path, _)| quote(path.as_os_str()))
        .collect();
    let meaning = "anyone who writes there can replace the store";
    let advice = format!("chmod go-rwx {}", paths.join(" "));
    (!open.is_empty()).then(|| Check::limited("modes", found, meaning, &advice))
}

/// Consequence for values in an unused store.
const UNUSED: &str = "runs neither use nor mask them";

/// Checks unused stores: entries of the index, an encrypted file without entries, and keyring values left by an
/// interrupted migration.
fn other_stores(place: &VaultLocation, index: &Index, used: Kind) -> Vec<Check> {
    let mut checks = Vec::new();
    let others = names_in_other_stores(index, used);
    if let Some((_, other)) = others.first() {
        let names = others
            .iter()
            .map(|(name, store)| format!("{name} ({store})"));
        let advice = format!(
            "have all in one store: karyi var migrate --to {other}; or from there into the store {used}: \
             karyi var migrate --vault {other} --to {used}"
        );
        let found = listed(&names.collect::<Vec<_>>());
        checks.push(Check::limited("stores", found, UNUSED, &advice));
    }
    let is_in = |name: &SecretName, kind| index.get(name).is_some_and(|l| l.store == kind);
    let is_listed = index.secret_names().any(|name| is_in(&name, Kind::Age));
    if used != Kind::Age && !is_listed && place.has_age_file() {
        let file = place.age_file();
        let found = format!(
            "{} is there, and the index lists nothing in it",
            file.display()
        );
        let advice = "remove what the keyring holds alike: karyi var migrate --to os; see what it holds: karyi var list \
                      --vault age, with --age-identity FILE or its passphrase; move that with karyi var migrate --vault \
                      age --to os, or move the file away";
        checks.push(Check::limited("stores", found, UNUSED, advice));
    }
    // A keyring that does not answer says nothing about the file.
    let is_asked = used == Kind::Age && !inherited::is_inside_session();
    let held = is_asked.then(|| place.store(&StoreChoice::os()).list().ok());
    let held = held.flatten().unwrap_or_default();
    let names = held.iter().filter(|name| is_in(name, used));
    let names: Vec<&str> = names.map(SecretName::as_str).collect();
    if !names.is_empty() {
        let names = listed(&names);
        let found = format!("the keyring holds values of names that are in the store age: {names}");
        let meaning = "what a migration left there, or values of before";
        let advice = "remove what both hold alike: karyi var migrate --to age; other values: karyi var rm NAME --vault os";
        checks.push(Check::limited("stores", found, meaning, advice));
    }
    checks
}

/// Compares index and store. Unreadable values cannot be listed and have their own check.
fn agreement(index: &Index, kind: Kind, names: &[SecretName], unreadable: &[SecretName]) -> Check {
    let rows = secret_statuses(index, Some(kind), Some(names)).into_iter();
    let odd = rows.filter(|row| match row.state {
        SecretState::MissingValue => true,
        SecretState::Untracked => !unreadable.contains(&row.name),
        SecretState::Kept | SecretState::Unknown | SecretState::Elsewhere => false,
    });
    let odd: Vec<String> = odd
        .map(|row| format!("{} ({})", row.name, row.state.as_str()))
        .collect();
    if odd.is_empty() {
        let found = "index and store agree".to_owned();
        return Check::ok("agreement", found, "nothing was lost");
    }
    let meaning = "a value without an entry, or the other way round";
    Check::limited(
        "agreement",
        odd.join(", "),
        meaning,
        "karyi var doctor --repair",
    )
}

/// Checks for expired and unreadable secrets, each with a remedy. Returns the names of the unreadable ones, too.
fn policies(store: &dyn Store) -> (Vec<Check>, Vec<SecretName>) {
    let (mut checks, mut unreadable) = (Vec::new(), Vec::new());
    for (key, texts) in read_entries(store).unwrap_or_default() {
        let Some(name) = SecretName::parse(key.as_str()) else {
            continue;
        };
        match record::only(&name, &texts) {
            Ok(record) => {
                let ended = record.policy.check_end(&name, Timestamp::now()).err();
                let meaning = "it cannot be used; its value is masked";
                checks.extend(ended.map(|error| {
                    let advice = to_a_person(&error.hint);
                    Check::limited("policies", error.message, meaning, &advice)
                }));
            }
            Err(error) => {
                let found = format!("{name}: {}: {}", error.code.as_str(), error.message);
                let meaning = "a value that cannot be used; what is text of it is masked";
                checks.push(Check::limited("policies", found, meaning, &error.hint));
                unreadable.push(name);
            }
        }
    }
    (checks, unreadable)
}

fn failed(name: &str, error: &ToolError) -> Check {
    let found = format!("{}: {}", error.code.as_str(), error.message);
    // The usual advice is to run this command.
    let advice = match error.hint == error.code.hint() && error.code == ErrorCode::BadVault {
        true => "restore it from a backup, or move it away and keep the values anew",
        false => &error.hint,
    };
    Check::missing(name, found, "secrets cannot be used", advice)
}

fn text_of(check: &Check) -> String {
    let (health, name) = (check.health.as_str(), &check.name);
    let line = format!("{health:8} {name:10} {}", check.found);
    let mut text = format!("{}\n", safe_line(&line));
    if check.health != Health::Ok {
        text.push_str(&format!("{:20}to do: {}\n", "", safe_line(&check.advice)));
    }
    text
}
