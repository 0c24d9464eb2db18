//! Notes and policies are listed and shown to everybody: they must hold no value.

use std::collections::BTreeSet;

use crate::index::{Index, IndexEntry};
use crate::policy::Policy;
use crate::redact::Redactor;
use crate::session::Secrets;
use crate::store::record;
use crate::store::{Store, StoredEntry};
use crate::vault::NewSecret;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::SecretName;

/// Checks that what is listed and shown of a secret holds neither its value nor another one that the store has, and what
/// is listed of others not its value, in no form. Of texts that are `clean` the store is not asked again.
///
/// # Errors
/// `bad_arguments`, or what the store says.
pub(super) fn check(
    store: &dyn Store,
    index: &Index,
    clean: &mut BTreeSet<String>,
    (name, wanted): (&SecretName, &NewSecret),
    note: Option<&str>,
) -> Result<(), ToolError> {
    let secrets = Secrets::default();
    secrets.mask_only(name, wanted.value.duplicate())?;
    let redactor = Redactor::new(&secrets);
    let listed = |listed: &IndexEntry| shown_texts(&listed.policy, listed.note.as_deref());
    let mut others = index
        .names
        .iter()
        .filter(|(other, _)| *other != name.as_str());
    if let Some((other, _)) = others.find(|(_, other)| contains_value(&redactor, &listed(other))) {
        return Err(value_in_other_note(other, name));
    }
    let mut own = shown_texts(&wanted.terms.policy, note);
    if contains_value(&redactor, &own) {
        return Err(value_in_note(name));
    }
    let before = index.get(name).map(listed).unwrap_or_default();
    own.retain(|text| !clean.contains(text) && !before.contains(text));
    if own.is_empty() {
        return Ok(());
    }
    for StoredEntry { key, text } in store.read_all()? {
        if let (Some(other), Ok(text)) = (SecretName::parse(key.as_str()), text) {
            // What is too short to be masked, or too much, is in no text for certain.
            let value = record::split(&other, &text).map(|record| record.value);
            let _ = value.map(|value| secrets.mask_only(&other, value));
        }
    }
    if contains_value(&Redactor::new(&secrets), &own) {
        return Err(value_in_note(name));
    }
    clean.extend(own);
    Ok(())
}

fn contains_value(redactor: &Redactor, texts: &[String]) -> bool {
    let mut texts = texts.iter();
    texts.any(|text| redactor.redact_again(text) != *text)
}

/// Returns what is listed and shown of a secret.
fn shown_texts(policy: &Policy, note: Option<&str>) -> Vec<String> {
    let hosts = policy.hosts.iter().flatten().map(ToString::to_string);
    let dirs = policy.dirs.iter().flatten();
    let dirs = dirs.map(|dir| dir.to_string_lossy().into_owned());
    let commands = policy.commands.iter().flatten().cloned();
    let all = hosts.chain(dirs).chain(commands);
    all.chain(note.map(str::to_owned)).collect()
}

/// Returns the error for a value in what is listed.
fn value_in_note(name: &SecretName) -> ToolError {
    let message = format!("the note or policy of {name} holds the value of a secret");
    ToolError::new(ErrorCode::BadArguments, message)
        .with_hint("both are shown; say in words what the value is for")
}

/// Returns the error for a new value that is listed and shown already.
fn value_in_other_note(other: &str, name: &SecretName) -> ToolError {
    let message = format!("the note or policy of {other} holds the value of {name}");
    let hint = format!(
        "both are shown; say it in other words first: `karyi var set {other} --keep-value --note TEXT`, or its policy"
    );
    ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
}
