//! The values of a session by their names, and how long each is there.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::Origin;
use super::checks::{case_conflict, name_taken};
use crate::policy::Policy;
use karyi_core::error::ToolError;
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};

/// The values of a session.
#[derive(Default)]
pub(super) struct Values {
    pub(super) current: BTreeMap<SecretName, Secret>,
    /// Values that are kept and cannot be used here; a store may hold several under one name.
    pub(super) masked: BTreeMap<SecretName, Vec<SecretValue>>,
    pub(super) former: FormerValues,
    /// Stored secrets that went into a call.
    pub(super) used: BTreeSet<SecretName>,
    pub(super) policy_history: PolicyHistory,
}

/// The policies by which the session goes: a value that goes away and comes back gains nothing by that.
#[derive(Default)]
pub(super) struct PolicyHistory {
    /// What stands for a value here means nothing to anybody else.
    key: RandomState,
    policies: HashMap<(SecretName, u64), Policy>,
}

impl PolicyHistory {
    /// Returns the policy of a stored value: what it comes with, and no more than what it came with before.
    pub(super) fn on(&mut self, name: &SecretName, value: &SecretValue, policy: Policy) -> Policy {
        let at = (name.clone(), self.key.hash_one(value.expose()));
        let policy = match self.policies.get(&at) {
            Some(before) => before.within(&policy),
            None => policy,
        };
        // The first ones stay: those are what the session was started with.
        let has_place = self.policies.len() < limits::MAX_FORMER_SECRETS;
        if has_place || self.policies.contains_key(&at) {
            self.policies.insert(at, policy.clone());
        }
        policy
    }
}

/// Values that were replaced or removed, by age.
#[derive(Default)]
pub(super) struct FormerValues {
    values: VecDeque<(SecretName, SecretValue)>,
    bytes: usize,
    /// Whether the oldest made place for others.
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

/// A value with what is known about it.
pub(super) struct Secret {
    pub(super) value: SecretValue,
    pub(super) policy: Arc<Policy>,
    pub(super) origin: Origin,
    pub(super) life: Life,
    /// What the name stood for before, for the time after a value that is there once.
    pub(super) shadowed: Option<Box<Secret>>,
}

/// How long a value is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// As long as the session.
    Session,
    /// In the block that comes next.
    NextBlock,
    /// In the block that runs.
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
    /// Makes place for a new value: a lasting one comes back after one that is there once.
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

    /// Checks that a name stands for nothing, not even for a value that is only masked, and is like none that does.
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

    /// Goes on knowing a value that is no longer used; one that is known anyway takes no place.
    pub(super) fn retire(&mut self, name: SecretName, old: SecretValue) {
        if !self.knows(&old) {
            self.former.add(name, old);
        }
    }

    /// Whether a value that is there, masked or former is this one.
    fn knows(&self, value: &SecretValue) -> bool {
        let is = |known: &SecretValue| known.expose() == value.expose();
        self.current.values().any(|secret| is(&secret.value))
            || self.masked.values().flatten().any(is)
            || self.former.iter().any(|(_, known)| is(known))
    }

    /// Whether redaction knows a value under a name as one that is there.
    pub(super) fn is_shown_as(&self, name: &SecretName, value: &SecretValue) -> bool {
        let is = |known: &SecretValue| known.expose() == value.expose();
        let usable = self.current.get(name);
        usable.is_some_and(|secret| is(&secret.value))
            || self.masked.get(name).is_some_and(|all| all.iter().any(is))
    }

    /// Puts a stored value aside for the time after a value that is there once, in place of an earlier stored one.
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
