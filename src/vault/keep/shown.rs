//! Notes and policies are listed and shown to everybody: they must hold no value.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{ErrorCode, ToolError};
use crate::secret::{SecretName, SecretValue};
use crate::vault::index::Index;
use crate::vault::keep::room::usable_bytes;
use crate::vault::policy::Policy;
use crate::vault::redact::Redactor;
use crate::vault::session::{Secrets, check_value};
use crate::vault::store::record;
use crate::vault::store::{Key, Store};

/// A look at index and store.
pub(super) struct Look<'a> {
    pub(super) store: &'a dyn Store,
    /// The index, as it was read before anything of the store was.
    pub(super) index: &'a Index,
    /// Whether nobody else can change anything meanwhile.
    pub(super) is_locked: bool,
    /// Whether the store was read since the look began: that is new enough for all of it.
    pub(super) was_read: Cell<bool>,
}

impl Look<'_> {
    /// Returns the generation for which what is read of the store holds.
    fn generation(&self) -> Option<u64> {
        match self.is_locked {
            true => Some(self.index.generation),
            false => self.index.settled(),
        }
    }
}

/// What is known of values and texts while a vault is open: values are read once, and again when another program has
/// changed the store, and a text is compared with them once.
#[derive(Default)]
pub(super) struct Shown {
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// What the store had at the last look.
    kept: Option<Kept>,
    /// What is kept since, or is about to be.
    coming: Known,
    /// What was let pass of that.
    passed: Vec<(SecretName, SecretValue)>,
}

/// What a store has.
struct Kept {
    /// For which generation of the index.
    generation: Option<u64>,
    known: Known,
    /// How long the values are, by name.
    sizes: BTreeMap<SecretName, usize>,
}

/// Values, and texts that show none of them.
#[derive(Default)]
struct Known {
    secrets: Secrets,
    /// Whether a value is not among them, since all together would be too long.
    lacks_some: bool,
    redactor: Option<Redactor>,
    clean: BTreeSet<String>,
}

impl Known {
    fn add(&mut self, name: &SecretName, value: SecretValue) {
        let before = self.secrets.generation();
        // What cannot be masked cannot be kept either.
        if check_value(name, value.expose()).is_ok() {
            self.lacks_some |= self.secrets.mask_only(name, value).is_err();
        }
        if self.secrets.generation() != before {
            self.clean.clear();
        }
    }

    /// Whether a text may show a value: not all of them are known.
    fn may_be_in(&mut self, text: &str) -> bool {
        self.lacks_some || self.is_in(text)
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

impl Kept {
    fn read(look: &Look<'_>) -> Result<Self, ToolError> {
        let mut kept = Self {
            generation: look.generation(),
            known: Known::default(),
            sizes: BTreeMap::new(),
        };
        for name in look.store.list()? {
            let every = match look.store.every(&Key::of(&name)) {
                Ok(every) => every.lost.map_or(Ok(every.texts), Err)?,
                // One that is damaged hides none of the others.
                Err(error) if error.code == ErrorCode::BadVault => continue,
                Err(error) => return Err(error),
            };
            let mut size = 0;
            for text in every {
                let value = record::split(&name, &text).map(|record| record.value);
                let value = value.unwrap_or_else(|_| record::value_alone(&text));
                size += usable_bytes(&name, &value);
                kept.known.add(&name, value);
            }
            kept.sizes.insert(name, size);
        }
        Ok(kept)
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
        look: &Look<'_>,
        (name, value): (&SecretName, &SecretValue),
        policy: &Policy,
        note: Option<&str>,
    ) -> Result<(), ToolError> {
        let mut seen = self.seen();
        seen.coming.add(name, value.duplicate());
        for text in texts(policy, note) {
            if seen.kept(look)?.known.is_in(&text) || seen.shows(name, value, &text) {
                return Err(shown_value(name));
            }
        }
        seen.passed.push((name.clone(), value.duplicate()));
        Ok(())
    }

    /// Checks that what is listed and shown of other secrets does not hold a new value.
    ///
    /// # Errors
    /// `bad_arguments`.
    pub(super) fn check_others(
        &self,
        index: &Index,
        name: &SecretName,
        value: &SecretValue,
    ) -> Result<(), ToolError> {
        let mut seen = self.seen();
        seen.coming.add(name, value.duplicate());
        let mut alone = Known::default();
        alone.add(name, value.duplicate());
        let others = index
            .names
            .iter()
            .filter(|(other, _)| *other != name.as_str());
        for (other, listed) in others {
            for text in texts(&listed.policy, listed.note.as_deref()) {
                // One look for all that is about to come.
                if seen.coming.may_be_in(&text) && alone.is_in(&text) {
                    return Err(shown_by(other, name));
                }
            }
        }
        Ok(())
    }

    /// Returns how long all values of the store are together, but for that of one name.
    ///
    /// # Errors
    /// What the store says.
    pub(super) fn bytes_beside(
        &self,
        look: &Look<'_>,
        name: &SecretName,
    ) -> Result<usize, ToolError> {
        let mut seen = self.seen();
        let sizes = seen.kept(look)?.sizes.iter();
        Ok(sizes
            .filter(|(other, _)| *other != name)
            .map(|(_, size)| size)
            .sum())
    }

    /// Notes that a value was kept, by which the index came from one generation to another.
    pub(super) fn is_kept(
        &self,
        (from, to): (u64, u64),
        (name, value): (&SecretName, &SecretValue),
    ) {
        let mut seen = self.seen();
        let kept = seen.kept.as_mut();
        if let Some(kept) = kept.filter(|kept| kept.generation == Some(from)) {
            kept.generation = Some(to);
            kept.sizes.insert(name.clone(), usable_bytes(name, value));
        }
    }

    // A poisoned lock only means that another thread panicked between two whole changes.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// Returns what the store has, read at the first time and when it was changed since.
    fn kept(&mut self, look: &Look<'_>) -> Result<&mut Kept, ToolError> {
        let wanted = look.generation();
        let was_read = look.was_read.replace(true);
        let is_true = |kept: &Kept| was_read || wanted.is_some() && kept.generation == wanted;
        let kept = match self.kept.take().filter(is_true) {
            Some(kept) => kept,
            None => Kept::read(look)?,
        };
        Ok(self.kept.insert(kept))
    }

    /// Whether a text shows this value or one that was let pass before. Of those that are about to come some may be
    /// refused, and count for nothing.
    fn shows(&mut self, name: &SecretName, value: &SecretValue, text: &str) -> bool {
        if !self.coming.may_be_in(text) {
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

/// Returns the error for a new value that is listed and shown already.
fn shown_by(other: &str, name: &SecretName) -> ToolError {
    let message = format!("the note or policy of {other} holds the value of {name}");
    let hint = format!(
        "both are shown; say it in other words first: `karyi var set {other} --keep-value --note TEXT`, or its policy"
    );
    ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
}
