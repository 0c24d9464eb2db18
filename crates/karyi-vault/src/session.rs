//! Secrets of one session, in memory.
//!
//! Every part of the program that needs values holds a clone of the same [`Secrets`]. Each change raises the
//! generation, so that derived data can be rebuilt. Replaced and removed values stay masked, because they may still be
//! printed.

mod checks;
mod load_issue;
mod values;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::policy::Policy;
use karyi_core::error::ToolError;
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};
use load_issue::forgotten_values;
use values::{Life, Secret, Values};

pub use checks::{case_conflict, name_taken};
pub(crate) use checks::{check_total, check_value};
pub use load_issue::{LoadIssue, LoadIssueKind, listed};

/// Origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Entered by the user at a prompt, for this session.
    Asked,
    /// Supplied at the start of the run: `--vars-fd` or the environment.
    Given,
    /// Loaded from a store.
    Stored,
}

/// Reason for a refresh of stored values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Redaction may miss a listed value.
    Listed,
    /// A name without a value is used.
    Used,
}

/// Source of stored values.
pub trait Source: Send + Sync {
    /// Updates the secrets. It may block.
    fn refresh(&self, secrets: &Secrets, need: Need);

    /// Returns true when stored values may have changed since the last refresh, or a failed read may succeed now.
    /// Blocks no longer than a `stat` call.
    fn is_behind(&self) -> bool {
        false
    }

    /// Returns the issues of the last refresh, one of each kind.
    fn load_issues(&self) -> Vec<LoadIssue>;

    /// Returns the reason why a name has no value, when a stored value may exist.
    fn load_issue_of(&self, name: &str) -> Option<LoadIssue>;
}

/// Behaviour when a name has a value already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InsertMode {
    /// Replaces the value.
    Replace,
    /// Refuses the new value.
    OnlyNew,
}

/// Handle to the secrets of a session; clones share them.
#[derive(Clone, Default)]
pub struct Secrets {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    generation: AtomicU64,
    accepts_short: AtomicBool,
    protect: OnceLock<fn(&[u8])>,
    values: RwLock<Values>,
    source: OnceLock<Arc<dyn Source>>,
}

impl Secrets {
    /// Stores a value that the user entered, in place of an earlier one.
    ///
    /// # Errors
    /// As [`Secrets::insert_with`].
    pub fn insert(&self, name: SecretName, value: SecretValue) -> Result<(), ToolError> {
        self.insert_with(name, value, Policy::default(), Origin::Asked)
    }

    /// Stores a value with its policy, in place of an earlier one.
    ///
    /// # Errors
    /// `bad_value` for a value that contains NUL or is too short or too long; `bad_arguments` for a name that differs
    /// from another one only in case.
    pub fn insert_with(
        &self,
        name: SecretName,
        value: SecretValue,
        policy: Policy,
        origin: Origin,
    ) -> Result<(), ToolError> {
        let secret = Secret::new(value, policy, origin);
        self.insert_secret(name, secret, InsertMode::Replace)
    }

    /// Stores a value that arrived from outside during the session, under a new name: names of a running script never
    /// change their meaning.
    ///
    /// # Errors
    /// As [`Secrets::insert_with`]; `bad_arguments` for a name that is in use, and `bad_policy`.
    pub fn insert_new(
        &self,
        name: SecretName,
        value: SecretValue,
        policy: Policy,
    ) -> Result<(), ToolError> {
        policy.check()?;
        check_value(&name, value.expose())?;
        let asked = Policy {
            allow_short: policy.allow_short || self.accepts_short(),
            ..Policy::default()
        };
        asked.check_length(&name, value.expose())?;
        let secret = Secret::new(value, policy, Origin::Asked);
        self.insert_secret(name, secret, InsertMode::OnlyNew)
    }

    /// Stores a value that the user entered for the next block only. The former value returns afterwards.
    ///
    /// # Errors
    /// As [`Secrets::insert_with`].
    pub fn insert_once(&self, name: SecretName, value: SecretValue) -> Result<(), ToolError> {
        let mut secret = Secret::new(value, Policy::default(), Origin::Asked);
        secret.life = Life::NextBlock;
        self.insert_secret(name, secret, InsertMode::Replace)
    }

    /// Accepts short values from now on, which are masked as whole words only.
    pub fn accept_short(&self) {
        self.shared.accepts_short.store(true, Ordering::Release);
    }

    /// Returns true when short values are accepted.
    #[must_use]
    pub fn accepts_short(&self) -> bool {
        self.shared.accepts_short.load(Ordering::Acquire)
    }

    /// Returns the minimum length of a supplied value, without white space.
    #[must_use]
    pub fn least_bytes(&self) -> usize {
        match self.accepts_short() {
            true => limits::MIN_SECRET_BYTES,
            false => limits::GOOD_SECRET_BYTES,
        }
    }

    /// Checks that a value is long enough for this session.
    ///
    /// # Errors
    /// `bad_value`.
    pub fn check_given(&self, name: &SecretName, value: &SecretValue) -> Result<(), ToolError> {
        check_value(name, value.expose())?;
        let policy = Policy {
            allow_short: self.accepts_short(),
            ..Policy::default()
        };
        policy.check_length(name, value.expose())
    }

    /// Begins a block and drops values that were for the block before it.
    pub fn begin_block(&self) {
        let lives = |secret: &Secret| secret.life == Life::Session;
        if self.read().current.values().all(lives) {
            return;
        }
        let mut values = self.write();
        let names: Vec<SecretName> = values.current.keys().cloned().collect();
        for name in names {
            values.begin_block(name);
        }
        self.shared.generation.fetch_add(1, Ordering::Release);
    }

    /// Claims the one-time values among `names` for one call; they are dropped with the claim. Other one-time values
    /// stay for a later call.
    ///
    /// # Errors
    /// Names whose values another call has claimed.
    pub fn claim_once(&self, names: &[SecretName]) -> Result<Claim, Vec<SecretName>> {
        let mut claim = Claim {
            secrets: self.clone(),
            names: Vec::new(),
        };
        let is_lasting = |name| {
            let values = self.read();
            let secret = values.current.get(name);
            secret.is_none_or(|secret| secret.life == Life::Session)
        };
        if names.iter().all(is_lasting) {
            return Ok(claim);
        }
        let mut values = self.write();
        let is = |values: &Values, name, life| {
            let secret = values.current.get(name);
            secret.is_some_and(|secret| secret.life == life)
        };
        let taken = names
            .iter()
            .filter(|name| is(&values, name, Life::ThisBlock));
        let mut taken: Vec<SecretName> = taken.cloned().collect();
        if !taken.is_empty() {
            taken.dedup();
            return Err(taken);
        }
        for name in names {
            if is(&values, name, Life::NextBlock) {
                values.begin_block(name.clone());
                claim.names.push(name.clone());
            }
        }
        Ok(claim)
    }

    fn insert_secret(
        &self,
        name: SecretName,
        mut secret: Secret,
        mode: InsertMode,
    ) -> Result<(), ToolError> {
        let value = &secret.value;
        check_value(&name, value.expose())?;
        if let Some(protect) = self.shared.protect.get() {
            protect(value.expose().as_bytes());
        }
        let mut values = self.write();
        if let Some(other) = values.other_case(&name) {
            return Err(case_conflict(other, &name));
        }
        if mode == InsertMode::OnlyNew {
            values.check_unknown(&name)?;
        }
        let others = values.current.iter().filter(|(other, _)| **other != name);
        let bytes: usize = others.map(|(_, secret)| secret.value.expose().len()).sum();
        check_total(&name, bytes + value.expose().len())?;
        let old = values.current.remove(&name);
        if let Some(old) = old {
            values.retire_in_favour(&name, &mut secret, old);
        }
        values.current.insert(name, secret);
        self.shared.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Masks a value that cannot be used: a stored value whose name has another value in this session, or differs from
    /// a usable name only in case.
    ///
    /// # Errors
    /// `bad_value` for a value that cannot be masked.
    pub fn mask_only(&self, name: &SecretName, value: SecretValue) -> Result<(), ToolError> {
        check_value(name, value.expose())?;
        let mut values = self.write();
        if values.is_shown_as(name, &value) {
            return Ok(());
        }
        let others = values.masked.values().flatten();
        let bytes: usize = others.map(|value| value.expose().len()).sum();
        check_total(name, bytes + value.expose().len())?;
        if let Some(protect) = self.shared.protect.get() {
            protect(value.expose().as_bytes());
        }
        // Values under the same name stay: a store may hold several.
        values.masked.entry(name.clone()).or_default().push(value);
        self.shared.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Adds a stored value. A value supplied for this run or entered at a prompt takes precedence, and the stored one
    /// is only masked; after a one-time value it becomes usable. A value that was loaded before never gains
    /// permissions.
    ///
    /// # Errors
    /// As [`Secrets::insert_with`].
    pub fn insert_stored(
        &self,
        name: &SecretName,
        value: SecretValue,
        policy: Policy,
    ) -> Result<(), ToolError> {
        let known = self
            .get(name)
            .filter(|_| self.origin(name) == Some(Origin::Stored));
        match self.origin(name) {
            // The policy stays as long as the value.
            Some(Origin::Stored) if known.is_some_and(|k| k.expose() == value.expose()) => Ok(()),
            None | Some(Origin::Stored) => {
                let policy = self.write().policy_history.on(name, &value, policy);
                self.insert_with(name.clone(), value, policy, Origin::Stored)
            }
            Some(Origin::Given | Origin::Asked) => {
                self.mask_only(name, value.duplicate())?;
                let mut values = self.write();
                let policy = values.policy_history.on(name, &value, policy);
                values.set_aside(name, value, policy);
                Ok(())
            }
        }
    }

    /// Removes the stored value of a name, also the one that a one-time value hides; it stays masked.
    pub fn remove_stored(&self, name: &SecretName) {
        if self.origin(name) == Some(Origin::Stored) {
            self.remove(name);
        } else if let Some(secret) = self.write().current.get_mut(name) {
            // It is masked since it was set aside.
            let shadowed = secret.shadowed.take();
            secret.shadowed = shadowed.filter(|old| old.origin != Origin::Stored);
        }
    }

    /// Removes a value; it stays masked. Returns true when there was one.
    pub fn remove(&self, name: &SecretName) -> bool {
        let mut values = self.write();
        let Some(old) = values.current.remove(name) else {
            return false;
        };
        values.retire(name.clone(), old.value);
        self.shared.generation.fetch_add(1, Ordering::Release);
        true
    }

    /// Attaches the source of stored values; only the first call has an effect.
    pub fn attach(&self, source: Arc<dyn Source>) {
        let _ = self.shared.source.set(source);
    }

    /// Refreshes stored values. It may block.
    pub fn refresh(&self, need: Need) {
        if let Some(source) = self.shared.source.get() {
            source.refresh(self, need);
        }
    }

    /// Returns true when stored values may have changed since the last refresh, or may be readable now. It does not
    /// block.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let source = self.shared.source.get();
        source.is_some_and(|source| source.is_behind())
    }

    /// Returns true when there is a source of stored values.
    #[must_use]
    pub fn has_source(&self) -> bool {
        self.shared.source.get().is_some()
    }

    /// Returns the issues of stored values.
    #[must_use]
    pub fn load_issues(&self) -> Vec<LoadIssue> {
        let forgotten = self.read().former.has_forgotten().then(forgotten_values);
        self.issues_of_source()
            .into_iter()
            .chain(forgotten)
            .collect()
    }

    fn issues_of_source(&self) -> Vec<LoadIssue> {
        let source = self.shared.source.get();
        source
            .map(|source| source.load_issues())
            .unwrap_or_default()
    }

    /// Returns the error when stored values could not all be read or used.
    #[must_use]
    pub fn source_failure(&self) -> Option<ToolError> {
        let mut issues = self.issues_of_source().into_iter();
        let failure = issues.find(|issue| issue.kind != LoadIssueKind::Elsewhere);
        failure.map(|issue| issue.error)
    }

    /// Returns the reason why one of these names has no value, when a stored value may exist.
    #[must_use]
    pub fn load_issue_of(&self, names: &[String]) -> Option<LoadIssue> {
        let source = self.shared.source.get()?;
        names.iter().find_map(|name| source.load_issue_of(name))
    }

    /// Calls `protect` on the memory of every present and future value.
    pub fn protect_memory_with(&self, protect: fn(&[u8])) {
        let _ = self.shared.protect.set(protect);
        self.for_each(|_, value| protect(value.expose().as_bytes()));
    }

    /// Checks that a name may be added.
    ///
    /// # Errors
    /// `bad_arguments` for a name that differs from a known one only in case.
    pub fn check_new(&self, name: &SecretName) -> Result<(), ToolError> {
        match self.read().other_case(name) {
            Some(other) => Err(case_conflict(other, name)),
            None => Ok(()),
        }
    }

    /// Returns true when there is a value under the name.
    #[must_use]
    pub fn contains(&self, name: &SecretName) -> bool {
        self.read().current.contains_key(name)
    }

    /// Returns a copy of the value, which is wiped on drop.
    #[must_use]
    pub fn get(&self, name: &SecretName) -> Option<SecretValue> {
        let values = self.read();
        let secret = values.current.get(name)?;
        Some(secret.value.duplicate())
    }

    /// Returns the policy of a secret.
    #[must_use]
    pub fn policy(&self, name: &SecretName) -> Option<Arc<Policy>> {
        let values = self.read();
        values
            .current
            .get(name)
            .map(|secret| Arc::clone(&secret.policy))
    }

    /// Returns the origin of a value.
    #[must_use]
    pub fn origin(&self, name: &SecretName) -> Option<Origin> {
        self.read().current.get(name).map(|secret| secret.origin)
    }

    /// Records the use of a value in a call.
    pub fn record_use(&self, name: &SecretName) {
        if self.origin(name) == Some(Origin::Stored) {
            self.write().used.insert(name.clone());
        }
    }

    /// Returns the names of stored values that calls used.
    #[must_use]
    pub fn used(&self) -> Vec<SecretName> {
        self.read().used.iter().cloned().collect()
    }

    /// Returns the names that have values, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<SecretName> {
        self.read().current.keys().cloned().collect()
    }

    /// Returns true when no name has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.read().current.is_empty()
    }

    /// Returns true when bytes contain a value literally, also a replaced or removed one.
    #[must_use]
    pub fn occur_in(&self, bytes: &[u8]) -> bool {
        let mut is_found = false;
        self.for_each(|_, value| {
            let value = value.expose().as_bytes();
            is_found = is_found || memchr::memmem::find(bytes, value).is_some();
        });
        is_found
    }

    /// Returns a counter of changes.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// Calls `show` with every value to mask, current ones first. Returns the generation.
    pub(super) fn for_each(&self, mut show: impl FnMut(&SecretName, &SecretValue)) -> u64 {
        let values = self.read();
        let generation = self.generation();
        values
            .current
            .iter()
            .for_each(|(name, secret)| show(name, &secret.value));
        for (name, masked) in &values.masked {
            masked.iter().for_each(|value| show(name, value));
        }
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

/// One-time values that belong to one call.
pub struct Claim {
    secrets: Secrets,
    names: Vec<SecretName>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.names.is_empty() {
            return;
        }
        let mut values = self.secrets.write();
        for name in self.names.drain(..) {
            // A newer value is for a later call.
            let secret = values.current.get(&name);
            if secret.is_some_and(|secret| secret.life == Life::ThisBlock) {
                values.begin_block(name);
            }
        }
        drop(values);
        self.secrets
            .shared
            .generation
            .fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
