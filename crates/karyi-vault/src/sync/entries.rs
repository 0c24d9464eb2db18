//! One text of a store after the other: what a session may use of it, and what it only must not show.

use crate::session::Secrets;
use crate::store::record::{self, Record};
use crate::store::{Key, StoredEntries};
use crate::visible_bytes;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};

/// What is wrong with one value.
pub(super) struct DamagedValue {
    pub(super) error: ToolError,
    /// Whether redaction knows everything that is kept under the name.
    pub(super) is_masked: bool,
}

/// Gives a session what a store holds under a name. What cannot be used is masked.
pub(super) fn load_value(
    name: &SecretName,
    texts: &[Result<SecretValue, ToolError>],
    secrets: &Secrets,
) -> Result<(), DamagedValue> {
    let record = record::only(name, texts);
    let used = record.and_then(|Record { value, policy, .. }| {
        // For its name's case, or the lack of place, it may be refused.
        secrets.insert_stored(name, value, policy)
    });
    used.map_err(|error| {
        if error.code == ErrorCode::BadVault {
            // Nobody may use it any more, and it must not be shown.
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

/// Returns the value of a text, whatever its policy is like.
fn value_of(name: &SecretName, text: &SecretValue) -> SecretValue {
    match record::split(name, text) {
        Ok(record) => record.value,
        Err(_) => record::value_alone(text),
    }
}

/// Lets redaction know what a store has beside secrets: the key of the undo journal, and what other programs put there.
/// Returns what is wrong with what cannot be masked, but for what is too short: karyi masks none of that.
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
