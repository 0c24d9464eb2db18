//! Values of a session by name, with their lifetimes.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::Origin;
use super::checks::{case_conflict, name_taken};
use crate::policy::Policy;
use karyi_core::error::ToolError;
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};

/// Values of a session.
#[derive(Default)]
pub(super) struct Values {
    pub(super) current: BTreeMap<SecretName, Secret>,
    /// Stored values that are only masked; a store may hold several under one name.
    pub(super) masked: BTreeMap<SecretName, Vec<SecretValue>>,
    pub(super) former: FormerValues,
    /// Stored secrets that calls used.
    pub(super) used: BTreeSet<SecretName>,
    pub(super) policy_history: PolicyHistory,
}

/// Policies in force: a value that is removed and added again gains no permissions.
#[derive(Default)]
pub(super) struct PolicyHistory {
    /// Random key of the hashes of values, which mean nothing outside this session.
    key: RandomState,
    policies: HashMap<(SecretName, u64), Policy>,
}

impl PolicyHistory {
    /// Returns the policy of a stored value, narrowed by the policy it had before.
    pub(super) fn on(&mut self, name: &SecretName, value: &SecretValue, policy: Policy) -> Policy {
        let at = (name.clone(), self.key.hash_one(value.expose()));
        let policy = match self.policies.get(&at) {
            Some(before) => before.within(&policy),
            None => policy,
        };
        // Early entries stay: they are the policies at the start of the session.
        let has_place = self.policies.len() < limits::MAX_FORMER_SECRETS;
        if has_place || self.policies.contains_key(&at) {
            self.policies.insert(at, policy.clone());
        }
        policy
    }
}

/// Replaced and removed values, by age.
#[derive(Default)]
pub(super) struct FormerValues {
    values: VecDeque<(SecretName, SecretValue)>,
    bytes: usize,
    /// True when old values were dropped.
    has_forgotten: bool,
}

impl FormerValues {
    pub(super) fn iter(&self) -> impl Iterator<Item = &(SecretName, SecretValue)> {
        self.values.iter()
    }

    pub(super) fn has_forgotten(&self) -> bool {
        self.has_forgotten
    }

    fn add(&mut self, name: SecretName, value: SecretValue) {
        self.bytes += value.expose().len();
        self.values.push_back((name, value));
        while self.bytes > limits::MAX_FORMER_BYTES
            || self.values.len() > limits::MAX_FORMER_SECRETS
        {
            let Some((_, oldest)) = self.values.pop_front() else {
                return;
            };
            self.bytes -= oldest.expose().len();
            self.has_forgotten = true;
        }
    }
}

/// Value with its policy, origin and lifetime.
pub(super) struct Secret {
    pub(super) value: SecretValue,
    pub(super) policy: Arc<Policy>,
    pub(super) origin: Origin,
    pub(super) life: Life,
    /// Former value, which returns after a one-time value.
    pub(super) shadowed: Option<Box<Secret>>,
}

/// Lifetime of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// Until the end of the session.
    Session,
    /// For the next block.
    NextBlock,
    /// For the current block.
    ThisBlock,
}

impl Secret {
    pub(super) fn new(value: SecretValue, policy: Policy, origin: Origin) -> Self {
        Self {
            value,
            policy: Arc::new(policy),
            origin,
            life: Life::Session,
            shadowed: None,
        }
    }
}

impl Values {
    /// Replaces an old value; a lasting one returns after a one-time value.
    pub(super) fn retire_in_favour(
        &mut self,
        name: &SecretName,
        secret: &mut Secret,
        mut old: Secret,
    ) {
        let shadowed = old.shadowed.take();
        self.remember(name, secret, &old.value);
        let lasting = match old.life {
            Life::Session => Some(Box::new(old)),
            Life::NextBlock | Life::ThisBlock => shadowed,
        };
        if secret.life != Life::Session {
            secret.shadowed = lasting;
        }
    }

    fn remember(&mut self, name: &SecretName, secret: &Secret, old: &SecretValue) {
        if secret.value.expose() != old.expose() {
            self.retire(name.clone(), old.duplicate());
        }
    }

    pub(super) fn begin_block(&mut self, name: SecretName) {
        let Some(secret) = self.current.get_mut(&name) else {
            return;
        };
        match secret.life {
            Life::Session => {}
            Life::NextBlock => secret.life = Life::ThisBlock,
            Life::ThisBlock => {
                let shadowed = secret.shadowed.take();
                if let Some(old) = self.current.remove(&name) {
                    self.retire(name.clone(), old.value);
                }
                if let Some(lasting) = shadowed {
                    self.current.insert(name, *lasting);
                }
            }
        }
    }

    pub(super) fn other_case(&self, name: &SecretName) -> Option<&SecretName> {
        self.current
            .keys()
            .find(|other| other.differs_only_in_case(name))
    }

    /// Checks that a name has no value, not even a masked one, and differs from other names in more than case.
    ///
    /// # Errors
    /// `bad_arguments`.
    pub(super) fn check_unknown(&self, name: &SecretName) -> Result<(), ToolError> {
        if self.current.contains_key(name) || self.masked.contains_key(name) {
            return Err(name_taken(name));
        }
        let mut names = self.current.keys().chain(self.masked.keys());
        match names.find(|other| other.differs_only_in_case(name)) {
            Some(other) => Err(case_conflict(other, name)),
            None => Ok(()),
        }
    }

    /// Retains a replaced value for masking, unless it is masked anyway.
    pub(super) fn retire(&mut self, name: SecretName, old: SecretValue) {
        if !self.knows(&old) {
            self.former.add(name, old);
        }
    }

    /// Returns true when a current, masked or former value equals this one.
    fn knows(&self, value: &SecretValue) -> bool {
        let is = |known: &SecretValue| known.expose() == value.expose();
        self.current.values().any(|secret| is(&secret.value))
            || self.masked.values().flatten().any(is)
            || self.former.iter().any(|(_, known)| is(known))
    }

    /// Returns true when a name has this value already, usable or masked.
    pub(super) fn is_shown_as(&self, name: &SecretName, value: &SecretValue) -> bool {
        let is = |known: &SecretValue| known.expose() == value.expose();
        let usable = self.current.get(name);
        usable.is_some_and(|secret| is(&secret.value))
            || self.masked.get(name).is_some_and(|all| all.iter().any(is))
    }

    /// Sets a stored value aside until a one-time value ends, in place of an earlier stored one.
    pub(super) fn set_aside(&mut self, name: &SecretName, value: SecretValue, policy: Policy) {
        let once = self.current.get_mut(name);
        let Some(once) = once.filter(|secret| secret.life != Life::Session) else {
            return;
        };
        let stays =
            |old: &Secret| old.origin != Origin::Stored || old.value.expose() == value.expose();
        if !once.shadowed.as_deref().is_some_and(stays) {
            let stored = Secret::new(value, policy, Origin::Stored);
            once.shadowed = Some(Box::new(stored));
        }
    }
}
