//! Notes and policies are listed and shown to everybody: they must hold no value.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{ErrorCode, ToolError};
use crate::secret::{SecretName, SecretValue};
use crate::vault::policy::Policy;
use crate::vault::redact::Redactor;
use crate::vault::session::Secrets;
use crate::vault::store::record;
use crate::vault::store::{Key, Store};

/// What is known of values and texts while a vault is open: values are read once, and a text is compared with them
/// once.
#[derive(Default)]
pub(super) struct Shown {
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// What the store had at the first look.
    kept: Option<Known>,
    /// What is kept since, or is about to be.
    coming: Known,
    /// What was let pass of that.
    passed: Vec<(SecretName, SecretValue)>,
}

/// Values, and texts that show none of them.
#[derive(Default)]
struct Known {
    secrets: Secrets,
    redactor: Option<Redactor>,
    clean: BTreeSet<String>,
}

impl Known {
    fn add(&mut self, name: &SecretName, value: SecretValue) {
        let before = self.secrets.generation();
        // What cannot be masked cannot be kept either.
        let _ = self.secrets.mask_only(name, value);
        if self.secrets.generation() != before {
            self.clean.clear();
        }
    }

    /// Whether a text shows a value, in any form.
    fn is_in(&mut self, text: &str) -> bool {
        if self.clean.contains(text) {
            return false;
        }
        let secrets = &self.secrets;
        let redactor = self.redactor.get_or_insert_with(|| Redactor::new(secrets));
        let is_shown = redactor.redact_again(text) != text;
        if !is_shown {
            self.clean.insert(text.to_owned());
        }
        is_shown
    }
}

impl Shown {
    /// Names values that are about to be kept, so that texts are compared with all of them at once.
    pub(super) fn announce<'a>(
        &self,
        values: impl Iterator<Item = (&'a SecretName, &'a SecretValue)>,
    ) {
        let mut seen = self.seen();
        for (name, value) in values {
            seen.coming.add(name, value.duplicate());
        }
    }

    /// Checks that what is listed and shown of a secret holds no value, of this one or another.
    ///
    /// # Errors
    /// `bad_arguments`, or what the store says.
    pub(super) fn check(
        &self,
        store: &dyn Store,
        (name, value): (&SecretName, &SecretValue),
        policy: &Policy,
        note: Option<&str>,
    ) -> Result<(), ToolError> {
        let mut seen = self.seen();
        seen.coming.add(name, value.duplicate());
        for text in texts(policy, note) {
            if seen.kept(store)?.is_in(&text) || seen.shows(name, value, &text) {
                return Err(shown_value(name));
            }
        }
        seen.passed.push((name.clone(), value.duplicate()));
        Ok(())
    }

    // A poisoned lock only means that another thread panicked between two whole changes.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// Returns what the store has, read at the first time.
    fn kept(&mut self, store: &dyn Store) -> Result<&mut Known, ToolError> {
        if self.kept.is_none() {
            let mut kept = Known::default();
            for name in store.list()? {
                let every = store.every(&Key::of(&name)).ok();
                for text in every.into_iter().flat_map(|every| every.texts) {
                    let value = record::split(&name, &text).map(|record| record.value);
                    kept.add(&name, value.unwrap_or_else(|_| record::value_alone(&text)));
                }
            }
            self.kept = Some(kept);
        }
        Ok(self.kept.get_or_insert_default())
    }

    /// Whether a text shows this value or one that was let pass before. Of those that are about to come some may be
    /// refused, and count for nothing.
    fn shows(&mut self, name: &SecretName, value: &SecretValue, text: &str) -> bool {
        if !self.coming.is_in(text) {
            return false;
        }
        let mut known = Known::default();
        known.add(name, value.duplicate());
        for (name, value) in &self.passed {
            known.add(name, value.duplicate());
        }
        known.is_in(text)
    }
}

/// Returns what is listed and shown of a secret.
fn texts(policy: &Policy, note: Option<&str>) -> Vec<String> {
    let hosts = policy.hosts.iter().flatten().map(ToString::to_string);
    let dirs = policy.dirs.iter().flatten();
    let dirs = dirs.map(|dir| dir.to_string_lossy().into_owned());
    let commands = policy.commands.iter().flatten().cloned();
    let all = hosts.chain(dirs).chain(commands);
    all.chain(note.map(str::to_owned)).collect()
}

/// Returns the error for a value in what is listed.
fn shown_value(name: &SecretName) -> ToolError {
    let message = format!("the note or policy of {name} holds the value of a secret");
    ToolError::new(ErrorCode::BadArguments, message)
        .with_hint("both are shown; say in words what the value is for")
}
