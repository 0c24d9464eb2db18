//! Secrets in the shells of a session: one variable for each secret that a script has named.
//!
//! A variable stays, so that functions, traps and jobs can use it. It is set again when its secret changes, and unset
//! when the secret has no value any more. Restarted and forked shells begin with all variables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use zeroize::Zeroizing;

use karyi_core::secret::{Binding, SecretName, SecretValue, VariableContent};

use crate::shell::Dialect;

/// Access to secrets for the shells of a session; the default has none. Clones belong to one session.
#[derive(Clone, Default)]
pub struct ShellSecrets {
    detector: Option<Arc<SecretDetector>>,
    value_of: Option<Arc<ValueLookup>>,
    /// Secrets that scripts of the session have named.
    named: Arc<Mutex<BTreeSet<SecretName>>>,
}

type SecretDetector = dyn Fn(&[u8]) -> bool + Send + Sync;
type ValueLookup = dyn Fn(&SecretName) -> Option<SecretValue> + Send + Sync;

impl ShellSecrets {
    /// Creates access with a function that tells whether bytes contain a secret.
    #[must_use]
    pub fn new(detector: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self {
            detector: Some(Arc::new(detector)),
            ..Self::default()
        }
    }

    /// Adds a function that returns the current value of a name.
    #[must_use]
    pub fn with_values(
        mut self,
        value_of: impl Fn(&SecretName) -> Option<SecretValue> + Send + Sync + 'static,
    ) -> Self {
        self.value_of = Some(Arc::new(value_of));
        self
    }

    /// Returns true if bytes contain a secret.
    pub(crate) fn are_contained_in(&self, text: &[u8]) -> bool {
        self.detector
            .as_ref()
            .is_some_and(|detector| detector(text))
    }

    /// Records the secrets that a script names.
    pub(crate) fn remember(&self, bindings: &[Binding]) {
        let values = bindings
            .iter()
            .filter(|b| b.holds == VariableContent::Value);
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        for binding in values {
            if !named.contains(&binding.name) {
                named.insert(binding.name.clone());
            }
        }
    }

    /// Forgets all named secrets, after the shell has failed to take values.
    pub(crate) fn forget(&self) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.clear();
    }

    /// Returns the secrets that scripts have named and that have a value now.
    pub(crate) fn named(&self) -> Vec<Binding> {
        let Some(value_of) = &self.value_of else {
            return Vec::new();
        };
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let bindings = named.iter().filter_map(|name| {
            Some(Binding {
                value: value_of(name)?,
                name: name.clone(),
                holds: VariableContent::Value,
            })
        });
        bindings.collect()
    }
}

impl fmt::Debug for ShellSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ShellSecrets")
            .field(&self.detector.is_some())
            .finish()
    }
}

/// Returns the first commands of a new shell: one assignment for each secret.
pub(crate) fn assignments(dialect: &dyn Dialect, bindings: &[Binding]) -> Zeroizing<Vec<u8>> {
    let lengths = bindings.iter().map(|b| b.value.expose().len() * 4 + 256);
    // Allocated in its whole size: growing would leave copies behind.
    let mut commands = Zeroizing::new(Vec::with_capacity(lengths.sum()));
    for binding in bindings {
        let variable = binding.variable();
        commands.extend(format!("{variable}='").bytes());
        for byte in binding.value.expose().bytes() {
            match byte {
                b'\'' => commands.extend_from_slice(br"'\''"),
                _ => commands.push(byte),
            }
        }
        let builtin = dialect.builtin();
        commands.extend(format!("'; {builtin} typeset +x {variable}\n").bytes());
    }
    commands
}

/// Secrets that a shell has variables for, with digests of their values under a random key.
#[derive(Default)]
pub(crate) struct ShellVariables {
    digests: BTreeMap<SecretName, u64>,
    key: RandomState,
}

/// Changes that update the variables of a shell.
pub(crate) struct VariableChanges {
    /// Secrets to set.
    pub(crate) sent: Vec<Binding>,
    /// Secrets to unset.
    pub(crate) removed: Vec<SecretName>,
}

impl ShellVariables {
    /// Returns the variables of a shell that begins with these secrets.
    pub(crate) fn of(bindings: &[Binding]) -> Self {
        let mut variables = Self::default();
        for binding in bindings {
            variables.set(binding);
        }
        variables
    }

    /// Records and returns the changes before a script that names the secrets `own`, while the secrets `named` have
    /// values. The secrets in `own` are always sent: an earlier script may have changed their variables.
    pub(crate) fn update(&mut self, own: Vec<Binding>, named: Vec<Binding>) -> VariableChanges {
        let is_value_of = |name: &SecretName, all: &[Binding]| {
            all.iter()
                .any(|b| b.holds == VariableContent::Value && b.name == *name)
        };
        let gone = self.digests.keys();
        let gone = gone.filter(|name| !is_value_of(name, &named) && !is_value_of(name, &own));
        let removed: Vec<SecretName> = gone.cloned().collect();
        self.digests.retain(|name, _| !removed.contains(name));
        let mut sent = own;
        for binding in named {
            if !is_value_of(&binding.name, &sent) && self.differs(&binding) {
                sent.push(binding);
            }
        }
        for binding in &sent {
            if binding.holds == VariableContent::Value {
                self.set(binding);
            }
        }
        VariableChanges { sent, removed }
    }

    /// Forgets all variables, when the state of the shell is unknown.
    pub(crate) fn forget(&mut self) {
        self.digests.clear();
    }

    fn differs(&self, binding: &Binding) -> bool {
        self.digests.get(&binding.name) != Some(&self.digest(binding))
    }

    fn digest(&self, binding: &Binding) -> u64 {
        self.key.hash_one(binding.value.expose())
    }

    fn set(&mut self, binding: &Binding) {
        let digest = self.digest(binding);
        self.digests.insert(binding.name.clone(), digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(name: &str, value: &str, holds: VariableContent) -> Binding {
        Binding {
            name: SecretName::parse(name).unwrap(),
            value: SecretValue::new(value.into()),
            holds,
        }
    }

    fn value(name: &str, value: &str) -> Binding {
        binding(name, value, VariableContent::Value)
    }

    #[test]
    fn a_shell_gets_changed_and_new_secrets() {
        let mut variables = ShellVariables::of(&[value("A", "a1")]);
        let mut check =
            |own: Vec<Binding>, named: Vec<Binding>, sent: &[&str], removed: &[&str]| {
                let changes = variables.update(own, named);
                let names: Vec<String> = changes.sent.iter().map(Binding::variable).collect();
                assert_eq!(names, sent);
                let names: Vec<&str> = changes.removed.iter().map(SecretName::as_str).collect();
                assert_eq!(names, removed);
            };
        check(vec![], vec![value("A", "a1")], &[], &[]);
        check(vec![], vec![value("A", "a2")], &["__karyi_A"], &[]);
        check(
            vec![value("A", "a2")],
            vec![value("A", "a2")],
            &["__karyi_A"],
            &[],
        );
        check(
            vec![value("B", "b")],
            vec![value("A", "a2")],
            &["__karyi_B"],
            &[],
        );
        check(vec![], vec![value("A", "a2"), value("B", "b")], &[], &[]);
        let path = binding("B", "b", VariableContent::Path);
        check(
            vec![path],
            vec![value("A", "a2")],
            &["__karyifile_B"],
            &["B"],
        );
        check(vec![], vec![], &[], &["A"]);
        variables.update(vec![value("A", "a2")], vec![]);
        variables.forget();
        let changes = variables.update(vec![], vec![value("A", "a2")]);
        assert_eq!(changes.sent.len(), 1);
    }

    #[test]
    fn a_new_shell_gets_assignments() {
        let commands = assignments(
            &crate::shell::bash::Bash,
            &[value("A", "it's"), value("B", "x")],
        );
        let expected = "__karyi_A='it'\\''s'; \\builtin typeset +x __karyi_A\n\
                        __karyi_B='x'; \\builtin typeset +x __karyi_B\n";
        assert_eq!(String::from_utf8_lossy(&commands), expected);
    }

    #[test]
    fn clones_share_named_secrets() {
        let secrets = ShellSecrets::default()
            .with_values(|name| (name.as_str() != "GONE").then(|| SecretValue::new("v".into())));
        let beside = secrets.clone();
        secrets.remember(&[
            value("A", "v"),
            value("GONE", "v"),
            binding("F", "v", VariableContent::Path),
        ]);
        let names: Vec<String> = beside.named().iter().map(Binding::variable).collect();
        assert_eq!(names, ["__karyi_A"]);
        secrets.forget();
        assert!(beside.named().is_empty());
    }
}
