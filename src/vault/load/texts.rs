//! One text of a store after the other: what a session may use of it, and what it only must not show.

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::{SecretName, SecretValue};
use crate::vault::session::Secrets;
use crate::vault::store::record::{self, Record};
use crate::vault::store::{Every, Got, Key, Store, is_of_one};
use crate::vault::visible_bytes;

/// What is wrong with one value.
pub(super) struct Damage {
    pub(super) error: ToolError,
    /// Whether redaction knows everything that is kept under the name.
    pub(super) is_masked: bool,
}

/// Gives a session one value of a store, as it was got.
pub(super) fn load_one(
    store: &dyn Store,
    name: &SecretName,
    got: Got,
    secrets: &Secrets,
) -> Result<(), Damage> {
    let text = match got {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(()),
        Err(error) => {
            // Two values under one name: neither can be used, and both must not be shown. One of them may be locked.
            let is_bad = error.code == ErrorCode::BadVault;
            if is_bad {
                secrets.remove_stored(name);
            }
            let may_be_several = is_bad || error.code == ErrorCode::KeyringLocked;
            let is_masked = may_be_several && mask_all(store, &Key::of(name), name, secrets);
            return Err(Damage { error, is_masked });
        }
    };
    let Record { value, policy, .. } = match record::split(name, &text) {
        Ok(record) => record,
        Err(error) => {
            // Nobody may use it any more, and it must not be shown.
            secrets.remove_stored(name);
            let masked = secrets.mask_only(name, record::value_alone(&text));
            let is_masked = masked.is_ok();
            return Err(Damage { error, is_masked });
        }
    };
    let copy = value.duplicate();
    let inserted = secrets.insert_stored(name, value, policy);
    inserted.map_err(|error| {
        // It cannot be used, for its name's case or the lack of place, and is masked all the same.
        let is_masked = secrets.mask_only(name, copy).is_ok();
        Damage { error, is_masked }
    })
}

/// Lets redaction know everything that a store holds under a key, as `name`. Returns whether it knows all of it.
fn mask_all(store: &dyn Store, key: &Key, name: &SecretName, secrets: &Secrets) -> bool {
    let Ok(every) = store.every(key) else {
        return false;
    };
    let mask = |text: &SecretValue| secrets.mask_only(name, value_of(name, text)).is_ok();
    let masked = every.texts.iter().filter(|text| mask(text)).count();
    every.is_whole && every.lost.is_none() && masked == every.texts.len()
}

/// Returns the value of a text, whatever its policy is like.
fn value_of(name: &SecretName, text: &SecretValue) -> SecretValue {
    match record::split(name, text) {
        Ok(record) => record.value,
        Err(_) => record::value_alone(text),
    }
}

/// What is known of what a store has beside secrets.
#[derive(Default)]
pub(super) struct Beside {
    /// What is wrong with what no look will know, but for what is too short: karyi masks none of that.
    pub(super) damage: Option<ToolError>,
    /// Why other things could not be read now.
    pub(super) lost: Option<ToolError>,
}

/// Lets redaction know what a store has beside secrets: the key of the undo journal, and what is not of karyi.
pub(super) fn mask_beside(store: &dyn Store, secrets: &Secrets) -> Beside {
    let key = mask_journal_key(store, secrets);
    let mut beside = mask_strangers(store, secrets);
    match key {
        Ok(()) => {}
        Err(error) if is_of_one(&error) => drop(beside.damage.get_or_insert(error)),
        Err(error) => beside.lost = Some(error),
    }
    beside
}

/// Lets redaction know what other programs put into the store under words that are no names.
fn mask_strangers(store: &dyn Store, secrets: &Secrets) -> Beside {
    let mut strangers = Beside::default();
    let foreign = store.foreign().unwrap_or_else(|error| {
        strangers.lost = Some(error);
        Vec::new()
    });
    let mut count = 0;
    for (at, every) in foreign.into_iter().enumerate() {
        if !is_masked(at, &every, secrets) {
            count += 1;
        }
        strangers.lost = strangers.lost.or(every.lost);
    }
    let message = format!(
        "{count} of the entries that other programs put into the store cannot be masked: they are no text, or too \
         long"
    );
    let hint = "see `karyi var doctor`, and remove them with the keyring's own program";
    let damage = ToolError::new(ErrorCode::BadVault, message).with_hint(hint);
    strangers.damage = (count > 0).then_some(damage);
    strangers
}

/// Lets redaction know the entries of another program under one word. Returns whether it knows all that could be read.
fn is_masked(at: usize, every: &Every, secrets: &Secrets) -> bool {
    let Some(name) = SecretName::parse(&format!("KARYI_KEYRING_{}", at + 1)) else {
        return false;
    };
    let mask = |text: &SecretValue| {
        let value = value_of(&name, text);
        let is_short = visible_bytes(value.expose()) < limits::MIN_SECRET_BYTES;
        secrets.mask_only(&name, value).is_ok() || is_short
    };
    let masked = every.texts.iter().filter(|text| mask(text)).count();
    every.is_whole && masked == every.texts.len()
}

/// Lets redaction know the key of the undo journal, when there is one.
///
/// # Errors
/// The reason why not.
pub(super) fn mask_journal_key(store: &dyn Store, secrets: &Secrets) -> Result<(), ToolError> {
    let Some(name) = SecretName::parse("KARYI_JOURNAL_KEY") else {
        return Ok(());
    };
    let key = Key::journal();
    match store.get(&key) {
        Ok(Some(text)) => {
            // One that other programs made too long is masked nowhere, and is no key.
            let _ = secrets.mask_only(&name, text);
            Ok(())
        }
        Ok(None) => Ok(()),
        // Which of several is the key nobody knows, and one of them may be locked.
        Err(error) => {
            let may_be_several = is_of_one(&error) || error.code == ErrorCode::KeyringLocked;
            match may_be_several && mask_all(store, &key, &name, secrets) {
                true => Ok(()),
                false => Err(error),
            }
        }
    }
}
