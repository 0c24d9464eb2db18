//! The values of a session by their names, and how long each is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Origin;
use crate::limits;
use crate::secret::{SecretName, SecretValue};
use crate::vault::policy::Policy;

/// The values of a session.
#[derive(Default)]
pub(super) struct Values {
    pub(super) current: BTreeMap<SecretName, Secret>,
    /// Values that are kept and cannot be used here.
    pub(super) masked: BTreeMap<SecretName, SecretValue>,
    pub(super) former: Vec<(SecretName, SecretValue)>,
    /// Stored secrets that went into a call.
    pub(super) used: BTreeSet<SecretName>,
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
        let lasting = if old.life == Life::Session {
            self.remember(name, secret, &old.value);
            Some(Box::new(old))
        } else {
            self.remember(name, secret, &old.value);
            shadowed
        };
        if secret.life != Life::Session {
            secret.shadowed = lasting;
        }
    }

    pub(super) fn remember(&mut self, name: &SecretName, secret: &Secret, old: &SecretValue) {
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

    pub(super) fn retire(&mut self, name: SecretName, old: SecretValue) {
        let still_current =
            (self.current.get(&name)).is_some_and(|secret| secret.value.expose() == old.expose());
        if still_current {
            return;
        }
        if self.former.len() >= limits::MAX_FORMER_SECRETS {
            self.former.remove(0);
        }
        self.former.push((name, old));
    }
}
