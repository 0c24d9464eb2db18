//! Stores that a session does not open, and what it lacks of them.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::index::Index;
use crate::keep::elsewhere;
use crate::session::{self, Lack, LackKind, Need, Secrets, Source};
use crate::store::Kind;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::SecretName;

/// What there is of an encrypted file that no index lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unlisted {
    /// No such file.
    #[default]
    Nothing,
    /// It is the store of the session.
    InUse,
    /// The session has another store, or none.
    NotInUse,
}

/// Returns what a session lacks of a store that cannot be read.
pub(super) fn of_the_store(error: ToolError) -> Lack {
    Lack {
        kind: LackKind::Unread,
        error,
        names: Vec::new(),
    }
}

/// Whether the store of a session was named by its user, and not by the index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    Yes,
    No,
}

/// Returns what a session with a store of some kind lacks of another store.
pub(super) fn lack_elsewhere(
    names: &[(SecretName, Kind)],
    kind: Kind,
    named: Named,
) -> Option<Lack> {
    let (_, store) = names.first()?;
    let listed: Vec<String> = names
        .iter()
        .map(|(name, store)| format!("{name} ({store})"))
        .collect();
    let message = format!(
        "secrets are kept in another store than the one in use, which is {kind}: {}",
        session::listed(&listed)
    );
    let way = match (kind.is_persistent(), named) {
        (true, _) => format!("have all in one: `karyi var migrate --to {store}`"),
        (false, Named::Yes) => "leave --vault away".to_owned(),
        // The index lists them and names no store.
        (false, Named::No) => "keep something there, which chooses it".to_owned(),
    };
    let hint = format!("use that store with --vault {store}, or {way}");
    Some(Lack {
        kind: LackKind::Elsewhere,
        error: ToolError::new(ErrorCode::VaultUnavailable, message).with_hint(hint),
        names: names.iter().map(|(name, _)| name.clone()).collect(),
    })
}

/// Returns what a session lacks of an encrypted file that no index lists.
pub(super) fn lack_unlisted(unlisted: Unlisted) -> Option<Lack> {
    let message = "the encrypted file vault.age is there, no index lists what it holds, and it is not the store in use";
    let hint = "use it with --vault age, and have it listed again with `karyi var doctor --repair --vault age` and \
                --age-identity FILE or its passphrase; or move it away";
    (unlisted == Unlisted::NotInUse).then(|| Lack {
        kind: LackKind::Elsewhere,
        error: ToolError::new(ErrorCode::VaultUnavailable, message).with_hint(hint),
        names: Vec::new(),
    })
}

/// A session whose user named a store that does not last: it knows nothing of what the index lists.
pub struct Unopened {
    directory: PathBuf,
    kind: Kind,
    unlisted: Unlisted,
    elsewhere: Mutex<Result<Vec<(SecretName, Kind)>, ToolError>>,
}

impl Unopened {
    /// Names the directory of the index, and what the session has instead of a store.
    #[must_use]
    pub fn new(directory: PathBuf, kind: Kind, unlisted: Unlisted) -> Self {
        Self {
            directory,
            kind,
            unlisted,
            elsewhere: Mutex::new(Ok(Vec::new())),
        }
    }

    fn names(&self) -> MutexGuard<'_, Result<Vec<(SecretName, Kind)>, ToolError>> {
        self.elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Unopened {
    fn refresh(&self, _: &Secrets, _: Need) {
        let index = Index::read(&self.directory).and_then(|index| index.known(&self.directory));
        *self.names() = index.map(|index| elsewhere(&index, self.kind));
    }

    fn lacks(&self) -> Vec<Lack> {
        let elsewhere = match &*self.names() {
            Ok(names) => lack_elsewhere(names, self.kind, Named::Yes),
            // What it lists in a store is not masked here.
            Err(error) => Some(of_the_store(error.clone())),
        };
        let all = [elsewhere, lack_unlisted(self.unlisted)];
        all.into_iter().flatten().collect()
    }

    fn lack_of(&self, name: &str) -> Option<Lack> {
        let names = self.names();
        let names = names.as_ref().ok()?;
        let there = names.iter().find(|(other, _)| other.as_str() == name)?;
        lack_elsewhere(std::slice::from_ref(there), self.kind, Named::Yes)
    }
}
