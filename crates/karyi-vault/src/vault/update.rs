//! Keeps a value in place of what is there, and goes by what that is under the lock.

use crate::index::{Index, IndexEntry};
use crate::policy::Policy;
use crate::session::check_value;
use crate::store::Key;
use crate::store::record::{self, Facts, Record};
use crate::vault::{SecretDetails, Vault, leak_check, mutex};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{SecretName, SecretValue};

/// What there is under a name before it is changed.
pub struct CurrentSecret {
    /// What the store holds, when it can be read.
    pub record: Option<Record>,
    /// Why that cannot be read.
    pub damage: Option<ToolError>,
    /// The policy that a new value begins with: that of the record; where it cannot be read, or is gone, the copy in the
    /// index. Nothing when nobody knows what the secret may be used for.
    pub policy: Option<Policy>,
    /// What the index lists.
    pub listed: Option<IndexEntry>,
}

impl CurrentSecret {
    /// Whether nothing is there.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.record.is_none() && self.damage.is_none() && self.listed.is_none()
    }

    fn note(&self) -> Option<&str> {
        let kept = self.record.as_ref().map(|record| &record.facts.note);
        let listed = self.listed.as_ref().map(|listed| &listed.note);
        kept.and_then(Option::as_deref)
            .or(listed.and_then(Option::as_deref))
    }

    fn facts(&self) -> Facts {
        let kept = self.record.as_ref().map(|record| record.facts.clone());
        kept.unwrap_or_default()
    }
}

/// What is to be kept under a name.
pub struct NewSecret {
    /// The value.
    pub value: SecretValue,
    /// What is said of it.
    pub terms: SecretDetails,
}

/// Says what is to be kept in place of what is there; nothing leaves that as it is. It is asked under the lock.
pub type SecretUpdate<'a> = dyn Fn(&CurrentSecret) -> Result<Option<NewSecret>, ToolError> + 'a;

impl Vault {
    /// Keeps a value, in place of an earlier one.
    ///
    /// # Errors
    /// As [`Vault::check`], or what the store or the system says.
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

    /// Keeps what `make` makes of what is there. Returns whether it wanted anything.
    ///
    /// # Errors
    /// As [`Vault::set`], or what `make` says.
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
            let kept = (name, &wanted);
            leak_check::check(self.store.as_ref(), &after, &mut clean, kept, note)?;
            drop(clean);
            let facts = self.index_secret(&mut after, name, terms, earlier.facts());
            let text = record::join(value, &terms.policy, &facts)?;
            locked.change_store(after, || self.store.set(&Key::of(name), &text))?;
            Ok(true)
        })
    }

    /// Returns what there is under a name.
    ///
    /// # Errors
    /// What the store or the system says; damage of the one value is a part of the answer.
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
            // No text, or more than one: none of karyi's, which has a policy.
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

    /// Returns what there is, for whoever changes what is there.
    ///
    /// # Errors
    /// `undefined_variable` when there is nothing, `bad_vault` when it cannot be read.
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

/// Returns a copy of what is to be kept.
fn new_secret(value: &SecretValue, terms: &SecretDetails) -> NewSecret {
    NewSecret {
        value: value.duplicate(),
        terms: terms.clone(),
    }
}
