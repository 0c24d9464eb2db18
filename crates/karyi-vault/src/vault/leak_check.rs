//! Checks that notes and policies, which anybody can list, contain no secret value.

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

/// Checks that the note and policy of a secret contain neither its value nor another stored value, and that no other
/// note or policy contains its value, in any form. Texts in `clean` are not checked against the store again.
///
/// # Errors
/// `bad_arguments`, or an error of the store.
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
            // Values that cannot be masked cannot be found in a text either.
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

/// Returns the texts of a secret that are displayed.
fn shown_texts(policy: &Policy, note: Option<&str>) -> Vec<String> {
    let hosts = policy.hosts.iter().flatten().map(ToString::to_string);
    let dirs = policy.dirs.iter().flatten();
    let dirs = dirs.map(|dir| dir.to_string_lossy().into_owned());
    let commands = policy.commands.iter().flatten().cloned();
    let all = hosts.chain(dirs).chain(commands);
    all.chain(note.map(str::to_owned)).collect()
}

/// Returns the error for a note or policy that contains a value.
fn value_in_note(name: &SecretName) -> ToolError {
    let message = format!("the note or policy of {name} holds the value of a secret");
    ToolError::new(ErrorCode::BadArguments, message)
        .with_hint("both are displayed; describe the purpose of the value in words")
}

/// Returns the error for a new value that another note or policy contains.
fn value_in_other_note(other: &str, name: &SecretName) -> ToolError {
    let message = format!("the note or policy of {other} holds the value of {name}");
    let hint = format!(
        "both are displayed; change the text first: `karyi var set {other} --keep-value --note TEXT`, or its policy"
    );
    ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
}
