//! `karyi var list` and `karyi var show`: what is known of secrets. No value is read for it.

use std::process::ExitCode;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::cli::var::{Done, Shape, quiet_place};
use crate::cli::vault::{self, Place, StoreName, VaultFlags};
use crate::cli::{print, say};
use crate::error::{ErrorCode, ToolError};
use crate::pty::inherited;
use crate::render::paint::safe_line;
use crate::secret::SecretName;
use crate::vault::index::{Chosen, Index, Listed};
use crate::vault::keep::{self, Row, State};
use crate::vault::policy::Policy;
use crate::vault::store::Kind;

/// The secrets there are, and the store that was asked about them.
pub(super) struct Listing {
    /// The store that was chosen.
    pub(super) store: Option<Kind>,
    /// The secrets.
    pub(super) rows: Vec<Row>,
    /// Why the store could not be asked.
    pub(super) problem: Option<ToolError>,
}

/// What may be done to find out what a store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Whatever asks nobody.
    Values,
    /// Nothing for which a value is read.
    Names,
}

/// Lists the secrets, by the index and, where that asks nobody, by the store.
pub(super) fn listing(place: &Place, reading: Reading) -> Result<Listing, ToolError> {
    let index = Index::read(&place.directory)?;
    let was_chosen = place.chosen(&index);
    // Where none is known the keyring may hold what an index listed that is gone.
    let chosen = was_chosen.clone().unwrap_or_else(Chosen::os);
    let chosen = Some(chosen).filter(|chosen| chosen.kind.is_persistent());
    let is_askable = |chosen: &&Chosen| {
        place.is_quiet(chosen) && (reading == Reading::Values || !is_whole(place, &index, chosen))
    };
    let askable = chosen.as_ref().filter(is_askable);
    let is_inside = inherited::is_inside_session();
    let vault = askable.filter(|_| !is_inside);
    let vault = vault.map(|chosen| place.vault(chosen.clone()));
    let asked = vault.as_ref().map(|vault| vault.store().list());
    let index = match (&vault, &asked) {
        (Some(vault), Some(Ok(names))) => keep::agreed(vault, index, names),
        _ => index,
    };
    let chosen = chosen.filter(|_| was_chosen.is_some() || index.store.is_some());
    let (kept, problem) = match &asked {
        _ if chosen.is_none() => (None, None),
        Some(Ok(names)) => (Some(names.as_slice()), None),
        Some(Err(error)) => (None, Some(error.clone())),
        None if !place.has_unlisted(&index) => (None, None),
        None if is_inside => (None, Some(vault::inside_session())),
        None => (None, Some(closed(place))),
    };
    let store = chosen.map(|chosen| chosen.kind);
    Ok(Listing {
        store,
        rows: keep::rows(&index, store, kept),
        problem,
    })
}

/// Whether names come out of the store together with their values only: out of an encrypted file. One that is gone
/// holds none, and one that no index lists is all there is to go by.
fn is_whole(place: &Place, index: &Index, chosen: &Chosen) -> bool {
    let is_known = index.store.is_some() && index.is_whole();
    chosen.kind == Kind::Age && is_known && place.has_age_file()
}

/// Returns why a file that no index lists was not asked.
fn closed(place: &Place) -> ToolError {
    let message = format!("{} needs its passphrase", place.age_file().display());
    ToolError::new(ErrorCode::SecretPromptUnavailable, message).with_hint(
        "give it with --age-passphrase-fd N; `karyi var doctor --repair` makes the index anew",
    )
}

/// Lists the secrets.
pub(super) fn list(flags: &VaultFlags, shape: Shape) -> Done {
    let place = quiet_place(flags)?;
    let listing = listing(&place, Reading::Names)?;
    if let Some(problem) = &listing.problem {
        say(&format!(
            "the store could not be asked, this is the index alone: {}: {} ({})",
            problem.code.as_str(),
            problem.message,
            problem.hint
        ));
    }
    Ok(match shape {
        Shape::Text if listing.rows.is_empty() && listing.problem.is_none() => {
            say(match flags.vault {
                StoreName::Env => {
                    "the store env keeps nothing: runs take its values as KARYI_VAR_NAME"
                }
                _ => "no secrets yet; `karyi var set NAME` keeps one",
            });
            ExitCode::SUCCESS
        }
        Shape::Text => print(&table(&listing.rows)),
        Shape::Json => {
            let names: Vec<Value> = listing.rows.iter().map(|row| json_of(row).into()).collect();
            let store = listing.store.map(Kind::as_str);
            print(&format!(
                "{:#}\n",
                json!({ "store": store, "secrets": names })
            ))
        }
    })
}

/// Shows one secret.
pub(super) fn show(flags: &VaultFlags, name: &str, shape: Shape) -> Done {
    let name: SecretName = vault::name(name)?;
    let listing = listing(&quiet_place(flags)?, Reading::Names)?;
    let Some(row) = listing.rows.iter().find(|row| row.name == name) else {
        let message = format!("there is no secret called {name}");
        return Err(ToolError::new(ErrorCode::NotFound, message).with_hint("see `karyi var list`"));
    };
    let fields = json_of(row);
    Ok(match shape {
        Shape::Json => print(&format!("{:#}\n", Value::from(fields))),
        Shape::Text => print(&lines(&fields)),
    })
}

/// Returns what is known of a secret, for programs.
fn json_of(row: &Row) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("name".into(), row.name.as_str().into());
    fields.insert("state".into(), row.state.as_str().into());
    if let Some(listed) = &row.listed {
        fields.insert("note".into(), listed.note.clone().into());
        fields.insert("created".into(), listed.created.to_string().into());
        fields.insert("updated".into(), listed.updated.to_string().into());
        fields.insert("expired".into(), has_ended(row).into());
        let used = listed.used.map(|used| used.to_string());
        fields.insert("used".into(), used.into());
        fields.insert("store".into(), listed.store.as_str().into());
        let policy = serde_json::to_value(&listed.policy).unwrap_or_default();
        fields.insert("policy".into(), policy);
    }
    fields
}

/// Returns one line for each field; those of the policy too.
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

/// Returns the name of a field as flags and policy files have it.
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

/// Returns the parts of a policy that are not as they are by default.
fn summary(policy: &Policy) -> String {
    let fields = |policy: &Policy| serde_json::to_value(policy).unwrap_or_default();
    let (own, usual) = (fields(policy), fields(&Policy::default()));
    let own = own.as_object().cloned().unwrap_or_default();
    let parts = own
        .iter()
        .filter(|(key, value)| usual.get(key) != Some(value));
    let parts: Vec<String> = parts
        .map(|(key, value)| match value {
            Value::Bool(true) => flag(key),
            value => format!("{}={}", flag(key), plain(value)),
        })
        .collect();
    parts.join(" ")
}

/// Whether the policy in the index says that the secret has ended.
fn has_ended(row: &Row) -> bool {
    let listed = row.listed.as_ref();
    listed.is_some_and(|listed| {
        listed
            .policy
            .check_end(&row.name, Timestamp::now())
            .is_err()
    })
}

/// Returns what is to be known of a secret before it is used.
fn state_of(row: &Row) -> String {
    let state = match row.state {
        State::Kept | State::Unknown => None,
        State::MissingValue | State::Untracked | State::Elsewhere => Some(row.state.as_str()),
    };
    let ended = has_ended(row).then_some("expired");
    let parts: Vec<&str> = state.into_iter().chain(ended).collect();
    parts.join(", ")
}

fn table(rows: &[Row]) -> String {
    let cells = |row: &Row| {
        let date = |listed: &Listed| listed.updated.strftime("%Y-%m-%d").to_string();
        let listed = row.listed.as_ref();
        [
            row.name.to_string(),
            listed.map_or("", |listed| listed.store.as_str()).to_owned(),
            listed.map(date).unwrap_or_default(),
            state_of(row),
            listed
                .map(|listed| summary(&listed.policy))
                .unwrap_or_default(),
            listed
                .and_then(|listed| listed.note.clone())
                .unwrap_or_default(),
        ]
    };
    let head = ["NAME", "STORE", "UPDATED", "STATE", "POLICY", "NOTE"].map(str::to_owned);
    let lines: Vec<[String; 6]> = rows.iter().map(cells).collect();
    if lines.is_empty() {
        return String::new();
    }
    let all = || std::iter::once(&head).chain(&lines);
    let width = |column: usize| {
        let widths = all()
            .filter_map(|line| line.get(column))
            .map(|cell| cell.chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for line in all() {
        let padded = line.iter().zip(&widths);
        let cells: Vec<String> = padded
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(safe_line(cells.join("  ").trim_end()).as_ref());
        text.push('\n');
    }
    text
}

/// Returns success when nothing is wrong with the listed secrets, else failure.
pub(super) fn verdict(is_well: bool) -> ExitCode {
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
