//! The secrets of one session, in memory.
//!
//! Every part of the program that needs values holds a clone of the same [`Secrets`]. Each change
//! raises the generation, so that whoever derived something from the values knows when to do it
//! again. Values that were replaced or removed stay known to redaction: they may still be printed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::{SecretName, SecretValue};

/// A handle on the session's secrets; clones share them.
#[derive(Clone, Default)]
pub struct Secrets {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    generation: AtomicU64,
    keep: OnceLock<fn(&[u8])>,
    values: RwLock<Values>,
}

#[derive(Default)]
struct Values {
    current: BTreeMap<SecretName, SecretValue>,
    former: Vec<(SecretName, SecretValue)>,
}

impl Secrets {
    /// Stores a value under a name, in place of an earlier one.
    ///
    /// # Errors
    /// `bad_value` for a value that holds NUL or is too short or too long; `bad_arguments` for a
    /// name that differs from a known one only in case.
    pub fn insert(&self, name: SecretName, value: SecretValue) -> Result<(), ToolError> {
        check_value(&name, value.expose())?;
        if let Some(keep) = self.shared.keep.get() {
            keep(value.expose().as_bytes());
        }
        let mut values = self.write();
        if let Some(other) = values.other_case(&name) {
            let message = format!("the names {other} and {name} differ only in case");
            let hint = format!("use {other}, or another name");
            return Err(ToolError::new(ErrorCode::BadArguments, message).with_hint(hint));
        }
        let others = values.current.iter().filter(|(other, _)| **other != name);
        let bytes: usize = others.map(|(_, value)| value.expose().len()).sum();
        if bytes + value.expose().len() > limits::MAX_SECRETS_BYTES {
            let most = limits::MAX_SECRETS_BYTES;
            let message = format!("with {name} all values together are longer than {most} bytes");
            return Err(ToolError::new(ErrorCode::BadValue, message));
        }
        if let Some(old) = values.current.insert(name.clone(), value) {
            values.retire(name, old);
        }
        self.shared.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Forgets a value; redaction goes on knowing it. Returns whether there was one.
    pub fn remove(&self, name: &SecretName) -> bool {
        let mut values = self.write();
        let Some(old) = values.current.remove(name) else {
            return false;
        };
        values.retire(name.clone(), old);
        self.shared.generation.fetch_add(1, Ordering::Release);
        true
    }

    /// Lets `keep` protect the memory of every value there is and will be.
    pub fn keep_with(&self, keep: fn(&[u8])) {
        let _ = self.shared.keep.set(keep);
        self.for_each(|_, value| keep(value.expose().as_bytes()));
    }

    /// Whether there is a value under the name.
    #[must_use]
    pub fn contains(&self, name: &SecretName) -> bool {
        self.read().current.contains_key(name)
    }

    /// Returns a copy of the value, wiped on its own.
    #[must_use]
    pub fn get(&self, name: &SecretName) -> Option<SecretValue> {
        self.read().current.get(name).map(SecretValue::duplicate)
    }

    /// Returns the names that have values, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<SecretName> {
        self.read().current.keys().cloned().collect()
    }

    /// Whether no name has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.read().current.is_empty()
    }

    /// Returns a number that grows with every change.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// Shows every value that must not be printed, current ones first, each group by age or name.
    pub(super) fn for_each(&self, mut show: impl FnMut(&SecretName, &SecretValue)) -> u64 {
        let values = self.read();
        let generation = self.generation();
        values
            .current
            .iter()
            .for_each(|(name, value)| show(name, value));
        values
            .former
            .iter()
            .for_each(|(name, value)| show(name, value));
        generation
    }

    // A poisoned lock only means that another thread panicked between two whole changes.
    fn read(&self) -> RwLockReadGuard<'_, Values> {
        self.shared
            .values
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Values> {
        self.shared
            .values
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secrets").field(&self.names()).finish()
    }
}

impl Values {
    fn other_case(&self, name: &SecretName) -> Option<&SecretName> {
        let same = |other: &&SecretName| other.as_str().eq_ignore_ascii_case(name.as_str());
        self.current
            .keys()
            .filter(same)
            .find(|other| *other != name)
    }

    fn retire(&mut self, name: SecretName, old: SecretValue) {
        let still_current = self.current.get(&name).map(SecretValue::expose) == Some(old.expose());
        if still_current {
            return;
        }
        if self.former.len() >= limits::MAX_FORMER_SECRETS {
            self.former.remove(0);
        }
        self.former.push((name, old));
    }
}

fn check_value(name: &SecretName, value: &str) -> Result<(), ToolError> {
    let problem = if value.contains('\0') {
        "holds a NUL byte".to_owned()
    } else if value.len() < limits::MIN_SECRET_BYTES {
        format!("is shorter than {} bytes", limits::MIN_SECRET_BYTES)
    } else if value.len() > limits::MAX_SECRET_BYTES {
        format!("is longer than {} bytes", limits::MAX_SECRET_BYTES)
    } else {
        return Ok(());
    };
    Err(ToolError::new(
        ErrorCode::BadValue,
        format!("the value of {name} {problem}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SecretName {
        SecretName::parse(text).unwrap()
    }

    fn insert(secrets: &Secrets, key: &str, value: &str) -> Result<(), ErrorCode> {
        let value = SecretValue::new(value.into());
        secrets.insert(name(key), value).map_err(|error| error.code)
    }

    #[test]
    fn unfit_values_are_refused() {
        let check = |value: &str, expected: Result<(), ErrorCode>| {
            assert_eq!(
                insert(&Secrets::default(), "A", value),
                expected,
                "{} bytes",
                value.len()
            );
        };
        check("abcd", Ok(()));
        check("密码", Ok(()));
        check(&"x".repeat(limits::MAX_SECRET_BYTES), Ok(()));
        check("", Err(ErrorCode::BadValue));
        check("abc", Err(ErrorCode::BadValue));
        check("abcd\0efgh", Err(ErrorCode::BadValue));
        check(
            &"x".repeat(limits::MAX_SECRET_BYTES + 1),
            Err(ErrorCode::BadValue),
        );
    }

    #[test]
    fn all_values_together_are_limited() {
        let secrets = Secrets::default();
        let large = "x".repeat(limits::MAX_SECRET_BYTES);
        let fit = limits::MAX_SECRETS_BYTES / limits::MAX_SECRET_BYTES;
        for index in 0..fit {
            insert(&secrets, &format!("N{index}"), &large).unwrap();
        }
        assert_eq!(insert(&secrets, "N0", &large), Ok(()));
        assert_eq!(insert(&secrets, "MORE", &large), Err(ErrorCode::BadValue));
    }

    #[test]
    fn names_that_differ_only_in_case_are_refused() {
        let secrets = Secrets::default();
        insert(&secrets, "Token", "value-1").unwrap();
        assert_eq!(
            insert(&secrets, "TOKEN", "value-2"),
            Err(ErrorCode::BadArguments)
        );
        assert_eq!(insert(&secrets, "Token", "value-3"), Ok(()));
        assert_eq!(secrets.names(), [name("Token")]);
    }

    #[test]
    fn every_change_raises_the_generation() {
        let secrets = Secrets::default();
        let other = secrets.clone();
        assert_eq!((secrets.generation(), secrets.is_empty()), (0, true));
        insert(&secrets, "A", "value-1").unwrap();
        insert(&secrets, "A", "value-2").unwrap();
        assert_eq!(other.get(&name("A")).unwrap().expose(), "value-2");
        assert!(other.remove(&name("A")) && !other.remove(&name("A")));
        assert_eq!(
            (secrets.generation(), secrets.contains(&name("A"))),
            (3, false)
        );
    }

    #[test]
    fn former_values_stay_known() {
        let secrets = Secrets::default();
        insert(&secrets, "A", "value-1").unwrap();
        insert(&secrets, "A", "value-2").unwrap();
        insert(&secrets, "A", "value-2").unwrap();
        let mut shown = Vec::new();
        secrets.for_each(|name, value| shown.push(format!("{name}={}", value.expose())));
        assert_eq!(shown, ["A=value-2", "A=value-1"]);
    }

    #[test]
    fn printing_shows_names_only() {
        let secrets = Secrets::default();
        insert(&secrets, "A", "value-1").unwrap();
        assert_eq!(format!("{secrets:?}"), r#"Secrets([SecretName("A")])"#);
    }
}
