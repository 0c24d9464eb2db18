//! The vault: one store and the index beside it, changed in an order that loses nothing.
//!
//! A value is kept before the index lists it, and the index says that a secret goes before its value
//! does. Whatever breaks in between shows up as `missing value` or `untracked`, and
//! [`Vault::repair`] mends it from the store.

mod shown;

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use crate::error::{ErrorCode, ToolError};
use crate::secret::{SecretName, SecretValue};
use crate::vault::index::{Chosen, Index, Listed};
use crate::vault::policy::Policy;
use crate::vault::session::{check_value, only_case};
use crate::vault::store::record::{self, Record};
use crate::vault::store::{Key, Kind, Store};
use shown::Shown;

/// One store and the index.
pub struct Vault {
    directory: PathBuf,
    chosen: Chosen,
    store: Arc<dyn Store>,
    shown: Shown,
}

/// What is said of a secret when it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// What its user wrote about it; the earlier note stays when `None`.
    pub note: Option<String>,
    /// Its policy.
    pub policy: Policy,
}

/// How index and store agree about a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Both know it.
    Kept,
    /// The index lists it, and the store has no value.
    MissingValue,
    /// The store has a value, and the index does not list it.
    Untracked,
    /// The index lists it for another store than the one that is used.
    Elsewhere,
    /// The store was not asked.
    Unknown,
}

impl State {
    /// Returns the word used on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::MissingValue => "missing value",
            Self::Untracked => "untracked",
            Self::Elsewhere => "other store",
            Self::Unknown => "unknown",
        }
    }
}

/// One line of a list of secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: SecretName,
    /// What the index knows of it.
    pub listed: Option<Listed>,
    /// How index and store agree.
    pub state: State,
}

impl Vault {
    /// Joins a store and the index in a directory.
    #[must_use]
    pub fn new(directory: PathBuf, chosen: Chosen, store: Arc<dyn Store>) -> Self {
        Self {
            directory,
            chosen,
            store,
            shown: Shown::default(),
        }
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Finds out whether values can be kept now.
    ///
    /// # Errors
    /// The reason why not; `vault_unavailable` when the store has nothing of what the index lists.
    pub fn probe(&self) -> Result<(), ToolError> {
        if self.store.kind() == Kind::Env {
            let message = "the store env holds what karyi was started with";
            return Err(ToolError::new(ErrorCode::VaultReadOnly, message));
        }
        let index = Index::read(&self.directory)?;
        // Before a key is made up for a file that is gone.
        if self.chosen.kind == Kind::Age && index.kept().next().is_some() {
            check_agreement(&index, self.chosen.kind, &self.store.list()?)?;
        }
        self.store.probe()?;
        if self.chosen.kind == Kind::Os && index.kept().next().is_some() {
            check_agreement(&index, self.chosen.kind, &self.store.list()?)?;
        }
        Ok(())
    }

    /// Checks that the index does not list a name for another store: its value there would stay, and nothing
    /// would tell of it.
    ///
    /// # Errors
    /// `bad_arguments`.
    pub fn check_place(&self, name: &SecretName) -> Result<(), ToolError> {
        self.check_store(&Index::read(&self.directory)?, name)
    }

    fn check_store(&self, index: &Index, name: &SecretName) -> Result<(), ToolError> {
        let own = self.chosen.kind;
        match index.get(name).filter(|listed| listed.store != own) {
            Some(listed) => Err(in_another(name, listed.store, own)),
            None => Ok(()),
        }
    }

    /// Checks that a value may be kept under a name; nothing is written.
    ///
    /// # Errors
    /// `bad_value` or `bad_arguments`.
    pub fn check(
        &self,
        name: &SecretName,
        value: &SecretValue,
        policy: &Policy,
    ) -> Result<(), ToolError> {
        check_value(name, value.expose())?;
        policy.check_length(name, value.expose())?;
        let index = Index::read(&self.directory)?;
        self.check_store(&index, name)?;
        index.check_new(name)
    }

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
        let text = record::join(value, &terms.policy)?;
        self.unlock()?;
        self.check_shown(name, value, terms)?;
        // Under the lock, or two processes could keep names that differ only in case.
        Index::change(&self.directory, |index| {
            self.check_store(index, name)?;
            index.check_new(name)?;
            self.check_kept(name, None)?;
            self.store.set(&Key::of(name), &text)?;
            self.list_in(index, name, terms);
            Ok(())
        })
    }

    /// Names values that are about to be kept one after the other: what is shown of them is then compared with all
    /// values at once.
    pub fn announce<'a>(&self, values: impl Iterator<Item = (&'a SecretName, &'a SecretValue)>) {
        self.shown.announce(values);
    }

    /// Checks that what is listed and shown of a secret holds no value, of this one or another, in any form.
    fn check_shown(
        &self,
        name: &SecretName,
        value: &SecretValue,
        terms: &Terms,
    ) -> Result<(), ToolError> {
        self.shown.check(self.store.as_ref(), (name, value), terms)
    }

    /// Has the store opened, where that takes a user, before the index is locked: a dialogue may stand
    /// for a minute, and others wait for the index for seconds.
    fn unlock(&self) -> Result<(), ToolError> {
        match self.store.kind() {
            Kind::Os | Kind::Age => self.probe(),
            Kind::Memory | Kind::Env => Ok(()),
        }
    }

    /// Checks that the store has no name that differs from this one only in case, listed or not.
    fn check_kept(&self, name: &SecretName, except: Option<&SecretName>) -> Result<(), ToolError> {
        let kept = self.store.list()?;
        let mut others = kept.iter().filter(|other| Some(*other) != except);
        match others.find(|other| other.differs_only_in_case(name)) {
            Some(other) => Err(only_case(other, name)),
            None => Ok(()),
        }
    }

    /// Writes a secret that the store has into the index.
    fn list_in(&self, index: &mut Index, name: &SecretName, terms: &Terms) {
        let now = now();
        index.generation += 1;
        if self.chosen.kind.is_persistent() && index.store.is_none() {
            index.store = Some(self.chosen.clone());
        }
        let earlier = index.get(name).cloned();
        let listed = Listed {
            note: terms
                .note
                .clone()
                .or(earlier.as_ref().and_then(|e| e.note.clone())),
            created: earlier.as_ref().map_or(now, |earlier| earlier.created),
            updated: now,
            used: earlier.and_then(|earlier| earlier.used),
            store: self.chosen.kind,
            policy: terms.policy.clone(),
            is_going: false,
        };
        index.names.insert(name.as_str().to_owned(), listed);
    }

    /// Returns a value and its policy.
    ///
    /// # Errors
    /// `undefined_variable` when there is none, or what the store says.
    pub fn get(&self, name: &SecretName) -> Result<Record, ToolError> {
        match self.store.get(&Key::of(name))? {
            Some(text) => record::split(name, &text),
            None => Err(self.no_value(name)),
        }
    }

    /// Returns the error for a name without a value.
    fn no_value(&self, name: &SecretName) -> ToolError {
        let kind = self.store.kind();
        let message = format!("the store {kind} has no value for {name}");
        let hint = match self.check_place(name) {
            Err(elsewhere) if elsewhere.code == ErrorCode::BadArguments => {
                return ToolError {
                    code: ErrorCode::UndefinedVariable,
                    ..elsewhere
                };
            }
            _ => format!("give it one with `karyi var set {name}`"),
        };
        ToolError::new(ErrorCode::UndefinedVariable, message).with_hint(hint)
    }

    /// Whether the index has an entry for a name, also one that says that it goes.
    ///
    /// # Errors
    /// As [`Index::read`].
    pub fn is_listed(&self, name: &SecretName) -> Result<bool, ToolError> {
        let index = Index::read(&self.directory)?;
        Ok(index.names.contains_key(name.as_str()))
    }

    /// Removes a value. Returns whether there was one, in the store or in the index.
    ///
    /// # Errors
    /// `bad_arguments` for a name in another store, or what the store or the system says.
    pub fn remove(&self, name: &SecretName) -> Result<bool, ToolError> {
        self.check_place(name)?;
        // Of a store that cannot be opened nothing goes, and the name stays listed.
        self.store.list()?;
        let was_listed = Index::change(&self.directory, |index| {
            self.check_store(index, name)?;
            let Some(listed) = index.names.get_mut(name.as_str()) else {
                return Ok(false);
            };
            listed.is_going = true;
            index.generation += 1;
            Ok(true)
        })?;
        let was_kept = match self.store.remove(&Key::of(name)) {
            Ok(was_kept) => was_kept,
            Err(error) => {
                self.stays(name)?;
                return Err(error);
            }
        };
        Index::change(&self.directory, |index| {
            let listed = index.names.get(name.as_str());
            if listed.is_some_and(|listed| listed.is_going) {
                index.names.remove(name.as_str());
            }
            if was_kept {
                index.generation += 1;
            }
            Ok(())
        })?;
        Ok(was_listed || was_kept)
    }

    /// Removes the value that this store has under a name which the index lists for another one; there it stays.
    /// Returns the other store; nothing when the index does not say so or there is no value.
    ///
    /// # Errors
    /// What the store or the system says.
    pub fn remove_copy(&self, name: &SecretName) -> Result<Option<Kind>, ToolError> {
        Index::change(&self.directory, |index| {
            let other = index.get(name).map(|listed| listed.store);
            let Some(other) = other.filter(|other| *other != self.chosen.kind) else {
                return Ok(None);
            };
            if !self.store.remove(&Key::of(name))? {
                return Ok(None);
            }
            index.generation += 1;
            Ok(Some(other))
        })
    }

    /// Lists a secret again that could not be removed.
    fn stays(&self, name: &SecretName) -> Result<(), ToolError> {
        Index::change(&self.directory, |index| {
            if let Some(listed) = index.names.get_mut(name.as_str()) {
                listed.is_going = false;
                index.generation += 1;
            }
            Ok(())
        })
    }

    /// Gives a secret another name; value, policy and note stay.
    ///
    /// # Errors
    /// `bad_arguments` when the new name is taken or differs from a third one only in case, or what
    /// the store or the system says.
    pub fn rename(&self, from: &SecretName, to: &SecretName) -> Result<(), ToolError> {
        self.unlock()?;
        Index::change(&self.directory, |index| {
            self.check_store(index, from)?;
            if from == to || index.get(to).is_some() || self.store.get(&Key::of(to))?.is_some() {
                return Err(taken(to));
            }
            let record = self.get(from)?;
            let listed = index.names.remove(from.as_str());
            index.check_new(to)?;
            self.check_kept(to, Some(from))?;
            let terms = Terms {
                note: listed.as_ref().and_then(|listed| listed.note.clone()),
                policy: record.policy,
            };
            // A change of case is one name for every other reader: both stand only in here.
            let text = record::join(&record.value, &terms.policy)?;
            self.store.set(&Key::of(to), &text)?;
            self.store.remove(&Key::of(from))?;
            self.list_in(index, to, &terms);
            if let (Some(new), Some(old)) = (index.names.get_mut(to.as_str()), listed) {
                new.created = old.created;
                new.used = old.used;
            }
            Ok(())
        })
    }

    /// Lists what index and store know, without reading a value.
    ///
    /// # Errors
    /// What the store or the system says.
    pub fn rows(&self) -> Result<Vec<Row>, ToolError> {
        let kept = self.store.list()?;
        let index = Index::read(&self.directory)?;
        Ok(rows(&index, Some(self.chosen.kind), Some(&kept)))
    }

    /// Makes the index say what the store holds. Returns the names that were added and removed; what is damaged
    /// stays as it is.
    ///
    /// # Errors
    /// What the store or the system says.
    pub fn repair(&self) -> Result<(Vec<SecretName>, Vec<SecretName>), ToolError> {
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for row in self.rows()? {
            match row.state {
                State::Kept | State::Unknown | State::Elsewhere => {}
                State::MissingValue => {
                    self.remove(&row.name)?;
                    removed.push(row.name);
                }
                State::Untracked => {
                    let policy = match self.get(&row.name) {
                        Ok(record) => record.policy,
                        Err(error) if error.code == ErrorCode::BadVault => continue,
                        Err(error) => return Err(error),
                    };
                    let terms = Terms { note: None, policy };
                    Index::change(&self.directory, |index| {
                        self.list_in(index, &row.name, &terms);
                        Ok(())
                    })?;
                    added.push(row.name);
                }
            }
        }
        // A file that could be read and holds no name is listed, too.
        if self.chosen.kind == Kind::Age {
            Index::change(&self.directory, |index| {
                index.store.get_or_insert_with(|| self.chosen.clone());
                Ok(())
            })?;
        }
        Ok((added, removed))
    }

    /// Checks that another store has nothing else under the names of this one: it would be lost.
    fn check_apart(&self, to: &Self, names: &[SecretName]) -> Result<(), ToolError> {
        let there = to.store.list()?;
        for name in names.iter().filter(|name| there.contains(name)) {
            let key = Key::of(name);
            let (own, theirs) = (self.store.get(&key)?, to.store.get(&key));
            let is_same = match (&own, &theirs) {
                (Some(own), Ok(Some(theirs))) => own.expose() == theirs.expose(),
                _ => false,
            };
            if !is_same {
                let (own, theirs) = (self.store.kind(), to.store.kind());
                let message =
                    format!("the stores {own} and {theirs} both hold a {name}, and not the same");
                let hint =
                    format!("remove one: `karyi var rm {name} --vault {own}` or --vault {theirs}");
                return Err(ToolError::new(ErrorCode::BadArguments, message).with_hint(hint));
            }
        }
        Ok(())
    }

    /// Copies everything into another store, makes that the chosen one, and removes it here. Returns
    /// the names.
    ///
    /// # Errors
    /// What the stores or the system say. What was copied before stays in both.
    pub fn migrate(&self, to: &Self) -> Result<Vec<SecretName>, ToolError> {
        to.probe()?;
        let names = self.store.list()?;
        let index = Index::read(&self.directory)?;
        check_agreement(&index, self.chosen.kind, &names)?;
        self.check_apart(to, &names)?;
        for name in &names {
            let record = self.get(name)?;
            let text = record::join(&record.value, &record.policy)?;
            to.store.set(&Key::of(name), &text)?;
            let back = to.get(name)?;
            if back.value.expose() != record.value.expose() || back.policy != record.policy {
                let message = format!("the store {} gives {name} back changed", to.store.kind());
                return Err(ToolError::new(ErrorCode::BadVault, message));
            }
        }
        // The key that runs used until now goes on; that of a store that was not in use replaces none.
        let was_used = index.store.is_none_or(|used| used.kind == self.chosen.kind);
        let moves_key = was_used || to.store.get(&Key::journal())?.is_none();
        let journal = Some(Key::journal()).filter(|_| moves_key);
        if let Some(journal) = &journal
            && let Some(key) = self.store.get(journal)?
        {
            to.store.set(journal, &key)?;
        }
        Index::change(&self.directory, |index| {
            index.generation += 1;
            index.store = Some(to.chosen.clone());
            for name in &names {
                if let Some(listed) = index.names.get_mut(name.as_str()) {
                    listed.store = to.chosen.kind;
                }
            }
            Ok(())
        })?;
        for key in names.iter().map(Key::of).chain(journal) {
            self.store.remove(&key)?;
        }
        self.store.clear_away()?;
        Ok(names)
    }
}

/// Checks that a store that answers is the one the index lists: it has a name of those listed for it,
/// or none is.
///
/// # Errors
/// `vault_unavailable`: the file is gone, or the keyring is another one.
pub fn check_agreement(index: &Index, kind: Kind, held: &[SecretName]) -> Result<(), ToolError> {
    let is_of_it = |name: &SecretName| index.get(name).is_some_and(|listed| listed.store == kind);
    let listed: Vec<SecretName> = index.kept().filter(is_of_it).collect();
    if listed.is_empty() || listed.iter().any(|name| held.contains(name)) {
        return Ok(());
    }
    let count = listed.len();
    let message = format!(
        "the index lists names in the store {kind} ({count} of them), and the store has none"
    );
    let place = match kind {
        Kind::Age => "the file vault.age",
        Kind::Os | Kind::Memory | Kind::Env => "the keyring",
    };
    let hint = format!(
        "bring {place} back that held them, or forget them ({count}) with `karyi var doctor --repair`"
    );
    Err(ToolError::new(ErrorCode::VaultUnavailable, message).with_hint(hint))
}

/// Returns the names that the index lists for another store than one of some kind, and that store.
#[must_use]
pub fn elsewhere(index: &Index, kind: Kind) -> Vec<(SecretName, Kind)> {
    let of = |name: SecretName| {
        let store = index.get(&name)?.store;
        (store != kind).then_some((name, store))
    };
    index.kept().filter_map(of).collect()
}

/// Joins what the index knows with the names that the store of some kind holds; without them the store was
/// not asked.
#[must_use]
pub fn rows(index: &Index, chosen: Option<Kind>, kept: Option<&[SecretName]>) -> Vec<Row> {
    let state = |name: &SecretName, store: Kind| match kept {
        _ if chosen.is_some_and(|kind| kind != store) => State::Elsewhere,
        Some(names) if names.contains(name) => State::Kept,
        Some(_) => State::MissingValue,
        None => State::Unknown,
    };
    let listed = index.kept().filter_map(|name| {
        let listed = index.get(&name)?.clone();
        let state = state(&name, listed.store);
        Some(Row {
            name,
            listed: Some(listed),
            state,
        })
    });
    let mut rows: Vec<Row> = listed.collect();
    let names = kept.unwrap_or_default();
    let untracked = names.iter().filter(|name| index.get(name).is_none());
    rows.extend(untracked.map(|name| Row {
        name: name.clone(),
        listed: None,
        state: State::Untracked,
    }));
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    rows
}

/// Returns the time in whole seconds: more would only make lists wide.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Returns the error for a new name that another secret has.
fn taken(name: &SecretName) -> ToolError {
    let message = format!("there is a secret called {name} already");
    let hint = format!("choose another name, or remove it with `karyi var rm {name}`");
    ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
}

/// Returns the error for a name that the index lists for another store.
fn in_another(name: &SecretName, theirs: Kind, own: Kind) -> ToolError {
    let message =
        format!("{name} is kept in the store {theirs}, and this is about the store {own}");
    let hint = format!(
        "use that store with --vault {theirs}, or have all in one: `karyi var migrate --to {theirs}`"
    );
    ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
}
