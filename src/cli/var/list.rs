//! `karyi var list` and `karyi var show`: metadata of secrets. No value is read.

use std::process::ExitCode;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::cli::var::CommandResult;
use crate::cli::vault::{self, VaultFlags, VaultLocation};
use crate::cli::{print, say};
use crate::render::paint::safe_line;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::SecretName;
use karyi_pty::inherited;
use karyi_vault::index::{Index, IndexEntry, StoreChoice};
use karyi_vault::policy::Policy;
use karyi_vault::store::Kind;
use karyi_vault::vault::{SecretState, SecretStatus, secret_statuses};

/// The secrets, and the store that was queried.
struct Listing {
    store: Option<Kind>,
    rows: Vec<SecretStatus>,
    /// Reason why the store could not be queried.
    problem: Option<ToolError>,
}

/// Lists the secrets from the index and, where it needs no question and no value, from the store.
fn listing(place: &VaultLocation) -> Result<Listing, ToolError> {
    let index = Index::read(&place.directory)?;
    let was_chosen = place.chosen(&index);
    // Without a known store the keyring may hold values of a lost index.
    let chosen = was_chosen.clone().unwrap_or_else(StoreChoice::os);
    let chosen = Some(chosen).filter(|chosen| chosen.kind.is_persistent());
    let is_askable =
        |chosen: &&StoreChoice| place.is_quiet(chosen) && !is_whole(place, &index, chosen);
    let is_inside = inherited::is_inside_session();
    let asked = chosen.as_ref().filter(is_askable).filter(|_| !is_inside);
    let asked = asked.map(|chosen| place.vault(chosen.clone()).statuses());
    let store = chosen.as_ref().map(|chosen| chosen.kind);
    let (rows, problem) = match asked {
        Some(Ok(rows)) => (Some(rows), None),
        Some(Err(_)) if was_chosen.is_none() => (None, None),
        Some(Err(error)) => (None, Some(error)),
        None if !place.has_unlisted(&index) => (None, None),
        None if is_inside => (None, Some(vault::inside_session())),
        None => {
            let message = format!("{} needs its passphrase", place.age_file().display());
            let error = ToolError::new(ErrorCode::SecretPromptUnavailable, message);
            (None, Some(error.with_hint(
                "give it with --age-passphrase-fd N; `karyi var doctor --repair` rebuilds the index",
            )))
        }
    };
    let rows = rows.unwrap_or_else(|| secret_statuses(&index, store, None));
    let is_known = was_chosen.is_some() || !rows.is_empty();
    Ok(Listing {
        store: store.filter(|_| is_known),
        rows,
        problem,
    })
}

/// Returns true when the store can list names only with their values: an encrypted file. A missing file has none,
/// and one without an index is the only source.
fn is_whole(place: &VaultLocation, index: &Index, chosen: &StoreChoice) -> bool {
    let is_known = index.store.is_some() && index.is_whole();
    chosen.kind == Kind::Age && is_known && place.has_age_file()
}

/// Lists the secrets.
pub(super) fn list(flags: &VaultFlags, is_json: bool) -> CommandResult {
    let listing = listing(&VaultLocation::find(flags, None)?)?;
    if let Some(problem) = &listing.problem {
        say(&format!(
            "the store could not be asked, this is the index alone: {}: {} ({})",
            problem.code.as_str(),
            problem.message,
            problem.hint
        ));
    }
    if is_json {
        let names: Vec<Value> = listing.rows.iter().map(|row| json_of(row).into()).collect();
        let store = listing.store.map(Kind::as_str);
        let all = json!({ "store": store, "secrets": names });
        return Ok(print(&format!("{all:#}\n")));
    }
    if listing.rows.is_empty() && listing.problem.is_none() {
        say(match flags.vault.0 {
            Some(Kind::Env) => {
                "the store env stores nothing: runs read its values from KARYI_VAR_NAME"
            }
            _ => "no secrets yet; `karyi var set NAME` stores one",
        });
        return Ok(ExitCode::SUCCESS);
    }
    Ok(print(&table(&listing.rows)))
}

/// Shows one secret.
pub(super) fn show(flags: &VaultFlags, name: &str, is_json: bool) -> CommandResult {
    let name: SecretName = vault::name(name)?;
    let listing = listing(&VaultLocation::find(flags, None)?)?;
    let Some(row) = listing.rows.iter().find(|row| row.name == name) else {
        let message = format!("there is no secret called {name}");
        return Err(ToolError::new(ErrorCode::NotFound, message).with_hint("see `karyi var list`"));
    };
    let fields = json_of(row);
    Ok(print(&match is_json {
        true => format!("{:#}\n", Value::from(fields)),
        false => lines(&fields),
    }))
}

/// Returns the metadata of a secret for programs.
fn json_of(row: &SecretStatus) -> Map<String, Value> {
    let mut fields = json!({ "name": row.name.as_str(), "state": row.state.as_str() });
    if let Some(listed) = &row.listed {
        let IndexEntry {
            note,
            created,
            updated,
            used,
            policy,
            ..
        } = listed;
        fields = json!({
            "name": row.name.as_str(), "state": row.state.as_str(), "note": note, "created": created,
            "updated": updated, "expired": has_ended(row), "used": used, "store": listed.store, "policy": policy,
        });
    }
    fields.as_object().cloned().unwrap_or_default()
}

/// Returns one line per field, including those of the policy.
fn lines(fields: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (key, value) in fields {
        match value {
            Value::Object(parts) => text.push_str(&lines(parts)),
            Value::Null => {}
            value => text.push_str(&format!("{:12} {}\n", flag(key), safe_line(&plain(value)))),
        }
    }
    text
}

/// Returns a field's name as in flags and policy files.
fn flag(key: &str) -> String {
    key.replace('_', "-")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Returns the parts of a policy that differ from the default.
fn summary(policy: &Policy) -> String {
    let fields = |policy: &Policy| serde_json::to_value(policy).unwrap_or_default();
    let (own, usual) = (fields(policy), fields(&Policy::default()));
    let own = own.as_object().into_iter().flatten();
    let own = own.filter(|(key, value)| usual.get(key) != Some(value));
    let parts = own.map(|(key, value)| match value {
        Value::Bool(true) => flag(key),
        value => format!("{}={}", flag(key), plain(value)),
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// Returns true when the secret has expired by the policy in the index.
fn has_ended(row: &SecretStatus) -> bool {
    let now = Timestamp::now();
    let listed = row.listed.as_ref();
    listed.is_some_and(|listed| listed.policy.check_end(&row.name, now).is_err())
}

/// Returns warnings to know before a secret is used.
fn state_of(row: &SecretStatus) -> String {
    let state = match row.state {
        SecretState::Kept | SecretState::Unknown => None,
        state => Some(state.as_str()),
    };
    let ended = has_ended(row).then_some("expired");
    let parts: Vec<&str> = state.into_iter().chain(ended).collect();
    parts.join(", ")
}

fn cells(row: &SecretStatus) -> [String; 6] {
    let listed = row.listed.as_ref();
    let of = |text: fn(&IndexEntry) -> String| listed.map(text).unwrap_or_default();
    [
        row.name.to_string(),
        of(|listed| listed.store.to_string()),
        of(|listed| listed.updated.strftime("%Y-%m-%d").to_string()),
        state_of(row),
        of(|listed| summary(&listed.policy)),
        of(|listed| listed.note.clone().unwrap_or_default()),
    ]
}

fn table(rows: &[SecretStatus]) -> String {
    let head = ["NAME", "STORE", "UPDATED", "STATE", "POLICY", "NOTE"].map(str::to_owned);
    let lines: Vec<_> = std::iter::once(head)
        .chain(rows.iter().map(cells))
        .collect();
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut text = String::new();
    for line in &lines {
        let padded = line.iter().zip(widths);
        let cells: Vec<String> = padded
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(safe_line(cells.join("  ").trim_end()).as_ref());
        text.push('\n');
    }
    text
}
