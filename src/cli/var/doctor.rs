//! `karyi var doctor`: whether index and store can be used and agree.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::json;

use crate::cli::var::{Done, Shape, existing, list, quiet_place, to_a_person};
use crate::cli::vault::{Place, VaultFlags};
use crate::cli::{print, secret_lints};
use crate::error::{ErrorCode, ToolError};
use crate::pty::health::{Check, Health};
use crate::pty::{inherited, quote};
use crate::render::paint::safe_line;
use crate::secret::{SecretName, SecretValue};
use crate::vault::index::{Chosen, FILE_NAME, Index};
use crate::vault::keep::{State, Vault, check_agreement, elsewhere};
use crate::vault::session::listed;
use crate::vault::store::record::{self, Record};
use crate::vault::store::{Key, Kind, Store, read_by_key};

/// Checks the vault; with `repair` the index is made anew from the store first.
pub(super) fn doctor(flags: &VaultFlags, shape: Shape, repair: bool) -> Done {
    if repair {
        let (added, removed) = chosen_by_hand(flags)?.repair()?;
        let names = |names: &[crate::secret::SecretName]| {
            names
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        for (what, list) in [("added", &added), ("removed", &removed)] {
            if !list.is_empty() {
                crate::cli::say(&format!("{what}: {}", names(list)));
            }
        }
    }
    let place = quiet_place(flags)?;
    let checks = checks(&place, true);
    let is_well = checks.iter().all(|check| check.health == Health::Ok);
    match shape {
        Shape::Json => print(&json_of(&checks, is_well)),
        Shape::Text => print(&text_of(&checks)),
    };
    Ok(list::verdict(is_well))
}

/// Returns the vault that is to be listed anew.
fn chosen_by_hand(flags: &VaultFlags) -> Result<Vault, ToolError> {
    existing(flags).map_err(|error| match error.code {
        ErrorCode::UndefinedVariable => ToolError::new(
            ErrorCode::BadArguments,
            "no index says which store there is",
        )
        .with_hint("name it: --vault os, or --vault age with --age-identity FILE"),
        _ => error,
    })
}

/// Returns what there is to say about the vault; with `is_written` a value is kept and removed to try the store.
pub(in crate::cli) fn checks(place: &Place, is_written: bool) -> Vec<Check> {
    let index = match Index::read(&place.directory) {
        Ok(index) => index,
        Err(error) => return vec![failed("index", &error)],
    };
    let chosen = place.chosen(&index);
    let mut checks = vec![index_check(place, &index)];
    // Before anything is locked: that closes the directory.
    checks.extend(modes(place, chosen.as_ref()));
    let Some(chosen) = chosen else {
        checks.push(no_store(place));
        return checks;
    };
    checks.extend(other_stores(&index, chosen.kind));
    checks.extend(other_file(place, &index, chosen.kind));
    if inherited::is_inside_session() {
        let found = format!(
            "{}, not asked: this runs inside a session of karyi",
            chosen.kind
        );
        checks.push(Check::ok("store", found, "the vault stays closed there"));
        return checks;
    }
    checks.extend(left_in_keyring(place, &index, chosen.kind));
    if !place.is_quiet(&chosen) {
        let found = format!("{}, not opened: it needs its passphrase", chosen.kind);
        checks.push(Check::ok("store", found, "values are encrypted in a file"));
        return checks;
    }
    let store = place.store(&chosen);
    // A file that is gone asks for no key, and would be a new one to the probe.
    let agreed = store
        .list()
        .and_then(|names| check_agreement(&index, chosen.kind, &names));
    if let Err(error) = agreed {
        checks.push(failed("store", &error));
        return checks;
    }
    let is_written = is_written && (chosen.kind == Kind::Os || place.has_age_file());
    checks.push(store_check(chosen.kind, store.as_ref(), is_written));
    let held = Held::read(store.as_ref());
    checks.extend(agreement(place, &held.unreadable));
    checks.extend(policies(&held.unreadable));
    checks.extend(held.records.iter().flat_map(of_record));
    checks.extend(strangers(&held.strangers));
    checks
}

/// Tells whether values can be kept in a store.
fn store_check(kind: Kind, store: &dyn Store, is_written: bool) -> Check {
    let meaning = match kind {
        Kind::Os => "values are in the keyring of the system",
        Kind::Age => "values are encrypted in a file",
        Kind::Memory | Kind::Env => "values end with the run",
    };
    let tried = store
        .probe()
        .and_then(|()| match kind.is_persistent() && is_written {
            true => try_value(store),
            false => Ok(()),
        });
    match tried {
        Ok(()) => Check::ok("store", kind.to_string(), meaning),
        Err(error) => unchangeable(kind, &error),
    }
}

/// Keeps a value, reads it back and removes it.
fn try_value(store: &dyn Store) -> Result<(), ToolError> {
    let key = Key::probe();
    let value = SecretValue::new(format!("karyi-probe-{}", std::process::id()));
    store.set(&key, &value)?;
    let read = store.get(&key);
    store.remove(&key)?;
    match read? {
        Some(read) if read.expose() == value.expose() => Ok(()),
        _ => {
            let message = "a value that was kept to try the store was not read back";
            Err(ToolError::new(ErrorCode::VaultUnavailable, message))
        }
    }
}

/// Tells of a store that could be read, and takes no change.
fn unchangeable(kind: Kind, error: &ToolError) -> Check {
    let (code, message) = (error.code.as_str(), &error.message);
    let found = format!("{kind}, and nothing can be changed: {code}: {message}");
    let meaning = "secrets can be used, and none can be kept or removed";
    Check::limited("store", found, meaning, &error.hint)
}

/// Tells how many names are listed, or that the index is gone.
fn index_check(place: &Place, index: &Index) -> Check {
    let path = place.directory.join(FILE_NAME);
    if place.has_unlisted(index) {
        let (path, file) = (path.display(), place.age_file());
        let found = format!("{path} lists nothing, and {} is there", file.display());
        let meaning = "names, notes and the chosen store were lost; values were not";
        let advice = "make it anew: karyi var doctor --repair, with --vault age --age-identity FILE if an identity opens the file";
        return Check::limited("index", found, meaning, advice);
    }
    let found = format!("{}, {} names", path.display(), index.kept().count());
    Check::ok("index", found, "secrets are listed without their values")
}

/// Tells that no store was chosen, or of a keyring whose index is gone. Only somebody who wants to know has the
/// keyring asked; no value is read.
fn no_store(place: &Place) -> Check {
    let is_open = !inherited::is_inside_session();
    let held = is_open.then(|| place.store(&Chosen::os()).list().ok());
    let names = held.flatten().unwrap_or_default();
    if names.is_empty() {
        let found = "none was chosen yet".to_owned();
        let meaning = "`karyi var set` keeps the first value in the keyring of the system";
        return Check::ok("store", found, meaning);
    }
    let names: Vec<&str> = names.iter().map(SecretName::as_str).collect();
    let found = format!("no index, and the keyring holds {}", listed(&names));
    let meaning = "runs neither use nor mask them";
    let advice = "make the index anew: karyi var doctor --repair --vault os";
    Check::limited("store", found, meaning, advice)
}

/// Names what others than the owner can read or write.
fn modes(place: &Place, chosen: Option<&Chosen>) -> Option<Check> {
    let open = place.open_to_others(chosen);
    if open.is_empty() {
        return None;
    }
    let shown = |(path, mode): &(PathBuf, u32)| format!("{} ({mode:04o})", path.display());
    let found: Vec<String> = open.iter().map(shown).collect();
    let close = |(path, _): &(PathBuf, u32)| {
        let mode = if path.is_dir() { "700" } else { "600" };
        format!("chmod {mode} {}", quoted(path))
    };
    let advice: Vec<String> = open.iter().map(close).collect();
    let found = format!("others can read or write {}", found.join(", "));
    let meaning = "who writes there can put another store in the place of this one";
    Some(Check::limited("modes", found, meaning, &advice.join("; ")))
}

/// Returns a path as a word of a shell, as it is where it means nothing else.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    match text.chars().all(is_plain) {
        true => text.into_owned(),
        false => quote(path.as_os_str()),
    }
}

/// Tells of an encrypted file beside another store, of which the index lists nothing.
fn other_file(place: &Place, index: &Index, used: Kind) -> Option<Check> {
    let is_of_it = |name: &SecretName| index.get(name).is_some_and(|l| l.store == Kind::Age);
    let is_listed = used == Kind::Age || index.kept().any(|name| is_of_it(&name));
    if is_listed || !place.has_age_file() {
        return None;
    }
    let file = place.age_file();
    let found = format!(
        "{} is there, and the index lists nothing in it",
        file.display()
    );
    let meaning = "runs neither use nor mask what it holds";
    let advice = "remove what the keyring holds alike: karyi var migrate --to os; see what it holds: karyi var list \
                  --vault age, with --age-identity FILE or its passphrase; move that with karyi var migrate --vault age \
                  --to os, or move the file away";
    Some(Check::limited("stores", found, meaning, advice))
}

/// Tells of values in the keyring whose names the index lists for the encrypted file that is used: a migration broke
/// off. No value is read; a keyring that does not answer is no matter of this store.
fn left_in_keyring(place: &Place, index: &Index, used: Kind) -> Option<Check> {
    if used != Kind::Age {
        return None;
    }
    let held = place.store(&Chosen::os()).list().ok()?;
    let is_listed = |name: &&SecretName| index.get(name).is_some_and(|l| l.store == used);
    let names: Vec<&str> = held
        .iter()
        .filter(is_listed)
        .map(SecretName::as_str)
        .collect();
    if names.is_empty() {
        return None;
    }
    let found = format!(
        "the keyring holds values of names that are in the store age: {}",
        listed(&names)
    );
    let meaning = "what a migration left there, or values of before";
    let advice = "remove what both hold alike: karyi var migrate --to age; other values: karyi var rm NAME --vault os";
    Some(Check::limited("stores", found, meaning, advice))
}

/// Names what the index lists for another store than the one that is used.
fn other_stores(index: &Index, used: Kind) -> Option<Check> {
    let others = elsewhere(index, used);
    let (_, other) = others.first()?;
    let names: Vec<String> = others
        .iter()
        .map(|(name, store)| format!("{name} ({store})"))
        .collect();
    let meaning = "runs neither use nor mask them";
    let advice = format!(
        "have all in one store: karyi var migrate --to {other}; or from there into the store {used}: \
         karyi var migrate --vault {other} --to {used}"
    );
    Some(Check::limited("stores", listed(&names), meaning, &advice))
}

/// Compares index and store. What cannot be read no repair can list; it is told of by itself.
fn agreement(place: &Place, unreadable: &[(SecretName, ToolError)]) -> Option<Check> {
    let listing = list::listing(place, list::Reading::Values).ok()?;
    let can_be_read = |name: &SecretName| unreadable.iter().all(|(other, _)| other != name);
    let odd: Vec<String> = listing
        .rows
        .iter()
        .filter(|row| match row.state {
            State::MissingValue => true,
            State::Untracked => can_be_read(&row.name),
            State::Kept | State::Unknown | State::Elsewhere => false,
        })
        .map(|row| format!("{} ({})", row.name, row.state.as_str()))
        .collect();
    if odd.is_empty() {
        let found = "index and store agree".to_owned();
        return Some(Check::ok("agreement", found, "nothing was lost on the way"));
    }
    let meaning = "a value without an entry, or the other way round";
    let advice = "karyi var doctor --repair";
    Some(Check::limited("agreement", odd.join(", "), meaning, advice))
}

/// What a store holds under names of secrets.
#[derive(Default)]
struct Held {
    records: Vec<(SecretName, Record)>,
    /// Names whose values or policies cannot be read, and why.
    unreadable: Vec<(SecretName, ToolError)>,
    /// What other programs made up as names.
    strangers: Vec<String>,
}

impl Held {
    fn read(store: &dyn Store) -> Self {
        let mut held = Self::default();
        for (key, texts) in read_by_key(store).unwrap_or_default() {
            let Some(name) = SecretName::parse(key.as_str()) else {
                // One may be empty, or begin and end with blanks.
                let told = key.is_strange().then(|| format!("{:?}", key.as_str()));
                held.strangers.extend(told);
                continue;
            };
            match record::only(&name, &texts) {
                Ok(record) => held.records.push((name, record)),
                Err(error) => held.unreadable.push((name, error)),
            }
        }
        held
    }
}

/// Tells of a secret that has ended, and what is probably a mistake about a value and its policy, in the words of
/// `set`. Nothing needs to be done about the latter: what looks like a mistake may be meant.
fn of_record((name, held): &(SecretName, Record)) -> Vec<Check> {
    let policy = &held.policy;
    let ended = policy.check_end(name, Timestamp::now()).err();
    let ended = ended.map(|error| {
        let meaning = "it cannot be used; its value is masked";
        Check::limited(
            "policies",
            error.message,
            meaning,
            &to_a_person(&error.hint),
        )
    });
    let unused = "it can be used in its directories only";
    let dirs = secret_lints::of_directories(name, policy).into_iter();
    let dirs = dirs.map(|told| Check::ok("policies", told, unused));
    let kept = "it is kept and used as it is";
    let values = secret_lints::of_value(name, &held.value).into_iter();
    let values = values.map(|told| Check::ok("values", told, kept));
    ended.into_iter().chain(dirs).chain(values).collect()
}

/// Tells of what cannot be read, each with what is to be done about it.
fn policies(problems: &[(SecretName, ToolError)]) -> impl Iterator<Item = Check> {
    problems.iter().map(|(name, error)| {
        let found = format!("{name}: {}: {}", error.code.as_str(), error.message);
        let meaning = "a value that cannot be used; what is text of it is masked";
        Check::limited("policies", found, meaning, &error.hint)
    })
}

/// Names what another program put into the store under words that are no names.
fn strangers(keys: &[String]) -> Option<Check> {
    if keys.is_empty() {
        return None;
    }
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let found = format!("no names of secrets: {}", listed(&keys));
    let meaning = "values that cannot be used; what is text of them is masked";
    let advice = "remove them, or give them names, with the keyring's own program";
    Some(Check::limited("entries", found, meaning, advice))
}

fn failed(name: &str, error: &ToolError) -> Check {
    let found = format!("{}: {}", error.code.as_str(), error.message);
    // The usual advice is to look here.
    let advice = match error.hint == error.code.hint() && error.code == ErrorCode::BadVault {
        true => "restore it from a backup, or move it away and keep the values anew",
        false => &error.hint,
    };
    Check::missing(name, found, "secrets cannot be used", advice)
}

fn json_of(checks: &[Check], is_well: bool) -> String {
    let list: Vec<_> = checks
        .iter()
        .map(|check| {
            json!({
                "name": check.name, "status": check.health.as_str(), "found": check.found,
                "meaning": check.meaning, "advice": check.advice,
            })
        })
        .collect();
    let status = if is_well { "ok" } else { "limited" };
    format!("{:#}\n", json!({ "status": status, "checks": list }))
}

fn text_of(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let line = format!(
            "{:8} {:10} {}",
            check.health.as_str(),
            check.name,
            check.found
        );
        text.push_str(&format!("{}\n", safe_line(&line)));
        if check.health != Health::Ok {
            text.push_str(&format!("{:20}to do: {}\n", "", safe_line(&check.advice)));
        }
    }
    text
}
