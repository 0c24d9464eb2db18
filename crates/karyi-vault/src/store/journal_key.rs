//! Key of the undo journal. It is in the store of secrets, so that the journal on disk cannot be read without the
//! store.

use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

use crate::store::{Key, Store};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::SecretValue;

/// Length of the key, in bytes.
pub const KEY_BYTES: usize = 32;

/// A key, wiped when dropped.
pub type JournalKey = Zeroizing<[u8; KEY_BYTES]>;

/// Creates a key in a store that has none.
///
/// # Errors
/// Errors of the store; `bad_vault` when it does not return the key that was written.
pub fn create(store: &dyn Store) -> Result<JournalKey, ToolError> {
    let made = random()?;
    store.set(&Key::journal(), &to_hex(&made))?;
    // The stored key counts, not the generated one.
    stored_key(store)?.ok_or_else(damaged)
}

/// Returns the key if the store has one.
///
/// # Errors
/// Errors of the store; `bad_vault` when the key is malformed.
pub fn stored_key(store: &dyn Store) -> Result<Option<JournalKey>, ToolError> {
    let text = store.get(&Key::journal())?;
    text.map(|text| parse(text.expose())).transpose()
}

fn random() -> Result<JournalKey, ToolError> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    let no_bytes = |_| ToolError::new(ErrorCode::Io, "the system gives no random bytes");
    SystemRandom::new().fill(&mut *key).map_err(no_bytes)?;
    Ok(key)
}

fn to_hex(key: &JournalKey) -> SecretValue {
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
    use crate::store::memory::MemoryStore;

    #[test]
    fn a_created_key_is_stored() {
        let store = MemoryStore::default();
        assert_eq!(stored_key(&store).unwrap(), None);
        let first = create(&store).unwrap();
        assert_eq!(stored_key(&store).unwrap().as_ref(), Some(&first));
        assert_ne!(*first, [0; KEY_BYTES]);
        assert_eq!(store.list().unwrap(), []);
        assert_ne!(create(&MemoryStore::default()).unwrap(), first);
    }

    #[test]
    fn a_damaged_key_is_an_error() {
        let store = MemoryStore::default();
        for text in ["", "00", &"g".repeat(64), &"é".repeat(32)] {
            store
                .set(&Key::journal(), &SecretValue::new(text.into()))
                .unwrap();
            assert_eq!(stored_key(&store).unwrap_err().code, ErrorCode::BadVault);
        }
    }
}
