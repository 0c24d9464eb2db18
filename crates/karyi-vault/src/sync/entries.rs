//! Loads single entries of a store into a session, usable or only masked.

use crate::session::Secrets;
use crate::store::record::{self, Record};
use crate::store::{Key, StoredEntries};
use crate::visible_bytes;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};

/// Error of one value.
pub(super) struct DamagedValue {
    pub(super) error: ToolError,
    /// True when redaction masks everything stored under the name.
    pub(super) is_masked: bool,
}

/// Loads the entries under one name. Unusable values are masked.
pub(super) fn load_value(
    name: &SecretName,
    texts: &[Result<SecretValue, ToolError>],
    secrets: &Secrets,
) -> Result<(), DamagedValue> {
    let record = record::only(name, texts);
    let used = record.and_then(|Record { value, policy, .. }| {
        // The session may refuse it for the case of its name or for lack of space.
        secrets.insert_stored(name, value, policy)
    });
    used.map_err(|error| {
        if error.code == ErrorCode::BadVault {
            // The former value must not be used any more, and the new one must not be shown.
            secrets.remove_stored(name);
        }
        let mask = |text: &&Result<SecretValue, ToolError>| {
            let text = text.as_ref().ok();
            text.is_some_and(|text| secrets.mask_only(name, value_of(name, text)).is_ok())
        };
        let is_masked = texts.iter().filter(mask).count() == texts.len();
        DamagedValue { error, is_masked }
    })
}

/// Returns the value of a record, even when its policy is unreadable.
fn value_of(name: &SecretName, text: &SecretValue) -> SecretValue {
    match record::split(name, text) {
        Ok(record) => record.value,
        Err(_) => record::value_alone(text),
    }
}

/// Masks entries other than secrets: the key of the undo journal, and entries of other programs. Returns the error of
/// entries that cannot be masked, except those that are too short to be masked.
pub(super) fn mask_other_entries(held: StoredEntries, secrets: &Secrets) -> Option<ToolError> {
    let (mut strangers, mut count) = (0, 0);
    for (key, texts) in held {
        let name = if key == Key::journal() {
            "KARYI_JOURNAL_KEY".to_owned()
        } else if key.is_foreign() {
            strangers += 1;
            format!("KARYI_KEYRING_{strangers}")
        } else {
            continue;
        };
        let Some(name) = SecretName::parse(&name) else {
            continue;
        };
        let is_masked = |text: Result<SecretValue, ToolError>| {
            text.is_ok_and(|text| {
                let value = value_of(&name, &text);
                let is_short = visible_bytes(value.expose()) < limits::MIN_SECRET_BYTES;
                secrets.mask_only(&name, value).is_ok() || is_short
            })
        };
        count += texts
            .into_iter()
            .map(is_masked)
            .filter(|masked| !masked)
            .count();
    }
    let message = format!(
        "{count} of the entries that other programs put into the store cannot be masked: they are no text, or too \
         long"
    );
    let hint = "see `karyi var doctor`, and remove them with the keyring's own program";
    (count > 0).then(|| ToolError::new(ErrorCode::BadVault, message).with_hint(hint))
}
