//! Stores a value, based on the current one under the lock.

use crate::index::{Index, IndexEntry};
use crate::policy::Policy;
use crate::session::check_value;
use crate::store::Key;
use crate::store::record::{self, Facts, Record};
use crate::vault::{SecretDetails, Vault, leak_check, mutex};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{SecretName, SecretValue};

/// Current state of a secret, before a change.
pub struct CurrentSecret {
    /// Record in the store, when it is readable.
    pub record: Option<Record>,
    /// Reason why the record is unreadable.
    pub damage: Option<ToolError>,
    /// Policy for a new value: that of the record, or the copy in the index when the record is missing or unreadable.
    /// `None` when the policy is unknown.
    pub policy: Option<Policy>,
    /// Entry of the index.
    pub listed: Option<IndexEntry>,
}

impl CurrentSecret {
    /// Returns true when neither store nor index has the secret.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.record.is_none() && self.damage.is_none() && self.listed.is_none()
    }

    fn note(&self) -> Option<&str> {
        let stored = self.record.as_ref().map(|record| &record.facts.note);
        let listed = self.listed.as_ref().map(|listed| &listed.note);
        stored
            .and_then(Option::as_deref)
            .or(listed.and_then(Option::as_deref))
    }

    fn facts(&self) -> Facts {
        let stored = self.record.as_ref().map(|record| record.facts.clone());
        stored.unwrap_or_default()
    }
}

/// Value to store, with its note and policy.
pub struct NewSecret {
    /// Value.
    pub value: SecretValue,
    /// Note and policy.
    pub terms: SecretDetails,
}

/// Computes the new secret from the current one; `None` leaves it unchanged. It runs under the lock.
pub type SecretUpdate<'a> = dyn Fn(&CurrentSecret) -> Result<Option<NewSecret>, ToolError> + 'a;

impl Vault {
    /// Stores a value, in place of an earlier one.
    ///
    /// # Errors
    /// As [`Vault::check`], or an error of the store or the file system.
    pub fn set(
        &self,
        name: &SecretName,
        value: &SecretValue,
        terms: &SecretDetails,
    ) -> Result<(), ToolError> {
        self.check(name, value, &terms.policy)?;
        let wanted = |_: &CurrentSecret| Ok(Some(new_secret(value, terms)));
        self.update(name, &wanted).map(drop)
    }

    /// Stores the result of `make`. Returns true when there was one.
    ///
    /// # Errors
    /// As [`Vault::set`], or an error of `make`.
    pub fn update(&self, name: &SecretName, make: &SecretUpdate<'_>) -> Result<bool, ToolError> {
        self.open_store()?;
        self.with_lock(|locked| {
            let mut after = locked.index().clone();
            self.check_store(&after, name)?;
            after.check_new(name)?;
            let earlier = self.current_in(&after, name)?;
            let Some(wanted) = make(&earlier)? else {
                return Ok(false);
            };
            let NewSecret { value, terms } = &wanted;
            check_value(name, value.expose())?;
            terms.policy.check_length(name, value.expose())?;
            let note = terms.note.as_deref().or(earlier.note());
            let mut clean = mutex(&self.clean);
            let stored = (name, &wanted);
            leak_check::check(self.store.as_ref(), &after, &mut clean, stored, note)?;
            drop(clean);
            let facts = self.index_secret(&mut after, name, terms, earlier.facts());
            let text = record::join(value, &terms.policy, &facts)?;
            locked.change_store(after, || self.store.set(&Key::of(name), &text))?;
            Ok(true)
        })
    }

    /// Returns the current state of a secret.
    ///
    /// # Errors
    /// Errors of the store or the file system; damage of this one value is part of the result.
    pub fn current(&self, name: &SecretName) -> Result<CurrentSecret, ToolError> {
        self.current_in(&Index::read(&self.directory)?, name)
    }

    fn current_in(&self, index: &Index, name: &SecretName) -> Result<CurrentSecret, ToolError> {
        let listed = index.get(name).cloned();
        let copy = listed.as_ref().map(|listed| listed.policy.clone());
        let (record, damage, policy) = match self.store.get(&Key::of(name)) {
            Ok(None) => (None, None, Some(copy.unwrap_or_default())),
            Ok(Some(text)) => match record::split(name, &text) {
                Ok(record) => {
                    let policy = record.policy.clone();
                    (Some(record), None, Some(policy))
                }
                Err(damage) => (None, Some(damage), copy),
            },
            // Not text, or several values: another program wrote it, so the default policy applies.
            Err(damage) if damage.code == ErrorCode::BadVault => {
                (None, Some(damage), Some(copy.unwrap_or_default()))
            }
            Err(error) => return Err(error),
        };
        Ok(CurrentSecret {
            record,
            damage,
            policy,
            listed,
        })
    }

    /// Returns the current record, for a change that needs one.
    ///
    /// # Errors
    /// `undefined_variable` when there is no value, `bad_vault` when it is unreadable.
    pub fn require_record<'a>(
        &self,
        name: &SecretName,
        earlier: &'a CurrentSecret,
    ) -> Result<&'a Record, ToolError> {
        match (&earlier.record, &earlier.damage) {
            (Some(record), _) => Ok(record),
            (None, Some(damage)) => Err(damage.clone()),
            (None, None) => Err(self.no_value(name)),
        }
    }
}

fn new_secret(value: &SecretValue, terms: &SecretDetails) -> NewSecret {
    NewSecret {
        value: value.duplicate(),
        terms: terms.clone(),
    }
}
