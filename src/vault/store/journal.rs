//! The key of the undo journal, which is kept in the store: what the journal holds can then be read
//! as long as the store can, and not from the disk alone.

use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use crate::error::{ErrorCode, ToolError};
use crate::secret::SecretValue;
use crate::vault::store::{Key, Store};

/// Length of the key, in bytes.
pub const KEY_BYTES: usize = 32;

/// A key, wiped when dropped.
pub type JournalKey = Zeroizing<[u8; KEY_BYTES]>;

/// Returns the key, made at the first time; nothing when the store keeps nothing.
///
/// # Errors
/// What the store says; `bad_vault` when the key in it is none.
pub fn journal_key(store: &dyn Store) -> Result<Option<JournalKey>, ToolError> {
    if !store.kind().is_persistent() {
        return Ok(None);
    }
    if let Some(key) = kept_key(store)? {
        return Ok(Some(key));
    }
    make(store).map(Some)
}

/// Makes a key in a store that has none.
///
/// # Errors
/// As [`journal_key`].
pub fn make(store: &dyn Store) -> Result<JournalKey, ToolError> {
    let made = random()?;
    store.set(&Key::journal(), &spell(&made))?;
    // What the store gives back counts.
    kept_key(store)?.ok_or_else(damaged)
}

/// Returns the key when there is one already.
///
/// # Errors
/// As [`journal_key`].
pub fn kept_key(store: &dyn Store) -> Result<Option<JournalKey>, ToolError> {
    let text = store.get(&Key::journal())?;
    text.map(|text| parse(text.expose())).transpose()
}

fn random() -> Result<JournalKey, ToolError> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    let no_bytes = |_| ToolError::new(ErrorCode::Io, "the system gives no random bytes");
    SystemRandom::new().fill(&mut *key).map_err(no_bytes)?;
    Ok(key)
}

fn spell(key: &JournalKey) -> SecretValue {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
    let mut text = Zeroizing::new(String::with_capacity(2 * KEY_BYTES));
    for byte in key.iter() {
        text.push(digit(byte >> 4));
        text.push(digit(*byte));
    }
    SecretValue::new(std::mem::take(&mut *text))
}

fn parse(text: &str) -> Result<JournalKey, ToolError> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if text.len() != 2 * KEY_BYTES || !text.is_ascii() {
        return Err(damaged());
    }
    for (place, byte) in key.iter_mut().enumerate() {
        let digits = text.get(2 * place..2 * place + 2).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).map_err(|_| damaged())?;
    }
    Ok(key)
}

fn damaged() -> ToolError {
    let message = "the key of the undo journal in the store cannot be read";
    ToolError::new(ErrorCode::BadVault, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::SecretName;
    use crate::vault::store::Kind;
    use crate::vault::store::memory::MemoryStore;

    /// A store that says of itself that it lasts.
    struct Lasting(MemoryStore);

    impl Store for Lasting {
        fn kind(&self) -> Kind {
            Kind::Age
        }
        fn probe(&self) -> Result<(), ToolError> {
            self.0.probe()
        }
        fn list(&self) -> Result<Vec<SecretName>, ToolError> {
            self.0.list()
        }
        fn get(&self, key: &Key) -> Result<Option<SecretValue>, ToolError> {
            self.0.get(key)
        }
        fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError> {
            self.0.set(key, text)
        }
        fn remove(&self, key: &Key) -> Result<bool, ToolError> {
            self.0.remove(key)
        }
    }

    #[test]
    fn the_key_is_made_once() {
        let store = Lasting(MemoryStore::default());
        let first = journal_key(&store).unwrap().unwrap();
        assert_eq!(journal_key(&store).unwrap().unwrap(), first);
        assert_ne!(*first, [0; KEY_BYTES]);
        assert_eq!(store.list().unwrap(), []);
        let other = Lasting(MemoryStore::default());
        assert_ne!(journal_key(&other).unwrap().unwrap(), first);
    }

    #[test]
    fn a_store_that_keeps_nothing_has_no_key() {
        assert_eq!(journal_key(&MemoryStore::default()).unwrap(), None);
    }

    #[test]
    fn a_damaged_key_is_not_replaced() {
        let store = Lasting(MemoryStore::default());
        for text in ["", "00", &"g".repeat(64), &"é".repeat(32)] {
            store
                .set(&Key::journal(), &SecretValue::new(text.into()))
                .unwrap();
            assert_eq!(journal_key(&store).unwrap_err().code, ErrorCode::BadVault);
        }
    }
}
