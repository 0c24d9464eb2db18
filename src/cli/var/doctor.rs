//! `karyi var doctor`: whether index and store can be used and agree.

use serde_json::json;

use crate::cli::print;
use crate::cli::var::{Done, Shape, existing, list, quiet_place};
use crate::cli::vault::{Place, VaultFlags};
use crate::error::{ErrorCode, ToolError};
use crate::pty::health::{Check, Health};
use crate::render::paint::safe_line;
use crate::secret::SecretName;
use crate::vault::index::{FILE_NAME, Index};
use crate::vault::keep::{State, Vault, check_agreement};
use crate::vault::store::record;
use crate::vault::store::{Key, Kind, Store};

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
    let checks = checks(&place);
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

/// Returns what there is to say about the vault.
pub(in crate::cli) fn checks(place: &Place) -> Vec<Check> {
    let index = match Index::read(&place.directory) {
        Ok(index) => index,
        Err(error) => return vec![failed("index", &error)],
    };
    let path = place.directory.join(FILE_NAME);
    let found = format!("{}, {} names", path.display(), index.kept().count());
    let listed = Check::ok("index", found, "secrets are listed without their values");
    let mut checks = vec![listed];
    let Some(chosen) = place.chosen(&index) else {
        let found = "none was chosen yet";
        let meaning = "`karyi var set` keeps the first value in the keyring of the system";
        checks.push(Check::ok("store", found.to_owned(), meaning));
        return checks;
    };
    if !place.is_quiet(&chosen) {
        let found = format!("{}, not opened: it needs its passphrase", chosen.kind);
        checks.push(Check::ok("store", found, "values are encrypted in a file"));
        return checks;
    }
    let store = place.store(&chosen);
    // A file that is gone asks for no key, and would be a new one to the probe.
    if let Ok(held) = store.list()
        && let Err(error) = check_agreement(&index, chosen.kind, &held)
    {
        checks.push(failed("store", &error));
        return checks;
    }
    match store.probe() {
        Ok(()) => {
            let meaning = match chosen.kind {
                Kind::Os => "values are in the keyring of the system",
                Kind::Age => "values are encrypted in a file",
                Kind::Memory | Kind::Env => "values end with the run",
            };
            checks.push(Check::ok("store", chosen.kind.to_string(), meaning));
            checks.extend(agreement(place));
            checks.extend(policies(store.as_ref()));
        }
        Err(error) => checks.push(failed("store", &error)),
    }
    checks
}

/// Compares index and store.
fn agreement(place: &Place) -> Option<Check> {
    let listing = list::listing(place).ok()?;
    let odd: Vec<String> = listing
        .rows
        .iter()
        .filter(|row| matches!(row.state, State::MissingValue | State::Untracked))
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

/// Looks whether what is kept with each value can be read.
fn policies(store: &dyn Store) -> Option<Check> {
    let problem = |name: &SecretName| {
        let text = store.get(&Key::of(name)).transpose()?;
        let error = text.and_then(|text| record::split(name, &text)).err()?;
        Some((name.clone(), error))
    };
    let problems: Vec<_> = store.list().ok()?.iter().filter_map(problem).collect();
    let (_, first) = problems.first()?;
    let names: Vec<String> = problems.iter().map(|(name, _)| name.to_string()).collect();
    let found = format!(
        "{}: {} ({})",
        first.code.as_str(),
        first.message,
        names.join(", ")
    );
    let meaning = "values that cannot be used, and are masked";
    Some(Check::limited("policies", found, meaning, &first.hint))
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
