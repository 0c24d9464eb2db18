//! Keeps a value in place of what is there, and goes by what that is under the lock.

use std::cell::Cell;

use crate::error::{ErrorCode, ToolError};
use crate::secret::{SecretName, SecretValue};
use crate::vault::index::{Index, Listed};
use crate::vault::keep::room::{check_together, may_be_too_long};
use crate::vault::keep::shown::Look;
use crate::vault::keep::{Terms, Vault};
use crate::vault::policy::Policy;
use crate::vault::session::check_value;
use crate::vault::store::Key;
use crate::vault::store::record::{self, Facts, Record};

/// What there is under a name before it is changed.
pub struct Earlier {
    /// What the store holds, when it can be read.
    pub record: Option<Record>,
    /// Why that cannot be read.
    pub damage: Option<ToolError>,
    /// The policy that a new value begins with: that of the record; where it cannot be read, or is gone, the copy in the
    /// index. Nothing when nobody knows what the secret may be used for.
    pub policy: Option<Policy>,
    /// What the index lists.
    pub listed: Option<Listed>,
}

impl Earlier {
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
pub struct Wanted {
    /// The value.
    pub value: SecretValue,
    /// What is said of it.
    pub terms: Terms,
}

/// Says what is to be kept in place of what is there; nothing leaves that as it is. It is asked before the lock and
/// again under it.
pub type Make<'a> = dyn Fn(&Earlier) -> Result<Option<Wanted>, ToolError> + 'a;

impl Vault {
    /// Keeps a value, in place of an earlier one.
    ///
    /// # Errors
    /// As [`Vault::check`], or what the store or the system says.
    pub fn set(
        &self,
        name: &SecretName,
        value: &SecretValue,
        terms: &Terms,
    ) -> Result<(), ToolError> {
        self.check(name, value, &terms.policy)?;
        let wanted = |_: &Earlier| Ok(Some(wanted(value, terms)));
        self.update(name, &wanted).map(drop)
    }

    /// Keeps what `make` makes of what is there. Returns whether it wanted anything.
    ///
    /// # Errors
    /// As [`Vault::set`], or what `make` says.
    pub fn update(&self, name: &SecretName, make: &Make<'_>) -> Result<bool, ToolError> {
        self.unlock()?;
        // Checked before the lock, since that reads every value. The index comes first: whatever is changed after it is
        // seen by its generation.
        let seen = Index::read(&self.directory)?;
        let first = self.earlier_in(&seen, name)?;
        let Some(expected) = make(&first)? else {
            return Ok(false);
        };
        self.check_all(&self.look(&seen, false), name, &expected, &first)?;
        self.locked(|own, locked| {
            let index = locked.index();
            own.check_store(index, name)?;
            index.check_new(name)?;
            own.check_kept(name, None)?;
            let earlier = own.earlier_in(index, name)?;
            let Some(wanted) = make(&earlier)? else {
                return Ok(false);
            };
            let is_as_checked = seen.settled() == Some(index.generation)
                && wanted.terms == expected.terms
                && wanted.value.expose() == expected.value.expose()
                && earlier.note() == first.note();
            if !is_as_checked {
                own.check_all(&own.look(index, true), name, &wanted, &earlier)?;
            }
            let (from, mut after) = (index.generation, index.clone());
            let facts = own.list_in(&mut after, name, &wanted.terms, earlier.facts());
            let text = record::join(&wanted.value, &wanted.terms.policy, &facts)?;
            let meanwhile = index.coming(name, &after);
            let set = || own.store.set(&Key::of(name), &text);
            locked.around(meanwhile, after, set)?;
            let step = (from, locked.index().generation);
            own.shown.is_kept(step, (name, &wanted.value));
            Ok(true)
        })
    }

    fn look<'a>(&'a self, index: &'a Index, is_locked: bool) -> Look<'a> {
        Look {
            store: self.store.as_ref(),
            index,
            is_locked,
            was_read: Cell::new(false),
        }
    }

    /// Returns what there is under a name.
    ///
    /// # Errors
    /// What the store or the system says; damage of the one value is a part of the answer.
    pub fn earlier(&self, name: &SecretName) -> Result<Earlier, ToolError> {
        self.earlier_in(&Index::read(&self.directory)?, name)
    }

    fn earlier_in(&self, index: &Index, name: &SecretName) -> Result<Earlier, ToolError> {
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
        Ok(Earlier {
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
    pub fn record_of<'a>(
        &self,
        name: &SecretName,
        earlier: &'a Earlier,
    ) -> Result<&'a Record, ToolError> {
        match (&earlier.record, &earlier.damage) {
            (Some(record), _) => Ok(record),
            (None, Some(damage)) => Err(damage.clone()),
            (None, None) => Err(self.no_value(name)),
        }
    }

    /// Checks all that can be checked of what is to be kept.
    fn check_all(
        &self,
        look: &Look<'_>,
        name: &SecretName,
        wanted: &Wanted,
        earlier: &Earlier,
    ) -> Result<(), ToolError> {
        let Wanted { value, terms } = wanted;
        check_value(name, value.expose())?;
        terms.policy.check_length(name, value.expose())?;
        let old = earlier.record.as_ref().map(|old| old.value.expose());
        self.check_room(look, name, (value, old))?;
        if old != Some(value.expose()) {
            self.shown.check_others(look.index, name, value)?;
        }
        let note = terms.note.as_deref().or(earlier.note());
        self.shown.check(look, (name, value), &terms.policy, note)
    }

    /// Checks that runs can hold the value, in place of an old one, with all others.
    fn check_room(
        &self,
        look: &Look<'_>,
        name: &SecretName,
        (value, old): (&SecretValue, Option<&str>),
    ) -> Result<(), ToolError> {
        let size = value.expose().len();
        if old.is_some_and(|old| size <= old.len()) {
            return Ok(());
        }
        if !may_be_too_long(look.store.list()?.len() + 1) {
            return Ok(());
        }
        check_together(name, size + self.shown.bytes_beside(look, name)?)
    }
}

/// Returns a copy of what is to be kept.
fn wanted(value: &SecretValue, terms: &Terms) -> Wanted {
    Wanted {
        value: value.duplicate(),
        terms: terms.clone(),
    }
}
