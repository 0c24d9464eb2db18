//! Issues of stores that a session does not open.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::index::Index;
use crate::session::{self, LoadIssue, LoadIssueKind, Need, Secrets, Source};
use crate::store::Kind;
use crate::vault::names_in_other_stores;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::SecretName;

/// State of an encrypted file that the index does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnlistedFile {
    /// There is no such file.
    #[default]
    Nothing,
    /// It is the store of the session.
    InUse,
    /// The session has another store, or none.
    NotInUse,
}

/// Returns the issue of a store that cannot be read.
pub(super) fn store_unreadable(error: ToolError) -> LoadIssue {
    LoadIssue {
        kind: LoadIssueKind::Unread,
        error,
        names: Vec::new(),
    }
}

/// Origin of the choice of a session's store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChosenBy {
    User,
    Index,
}

/// Returns the issue of names that are in another store than the session's.
pub(super) fn issue_elsewhere(
    names: &[(SecretName, Kind)],
    kind: Kind,
    chosen_by: ChosenBy,
) -> Option<LoadIssue> {
    let (_, store) = names.first()?;
    let listed: Vec<String> = names
        .iter()
        .map(|(name, store)| format!("{name} ({store})"))
        .collect();
    let message = format!(
        "secrets are kept in another store than the one in use, which is {kind}: {}",
        session::listed(&listed)
    );
    let way = match (kind.is_persistent(), chosen_by) {
        (true, _) => format!("move all secrets into one store: `karyi var migrate --to {store}`"),
        (false, ChosenBy::User) => "omit --vault".to_owned(),
        // The index lists names and no store.
        (false, ChosenBy::Index) => {
            "store a value there, which makes it the chosen store".to_owned()
        }
    };
    let hint = format!("use that store with --vault {store}, or {way}");
    Some(LoadIssue {
        kind: LoadIssueKind::Elsewhere,
        error: ToolError::new(ErrorCode::VaultUnavailable, message).with_hint(hint),
        names: names.iter().map(|(name, _)| name.clone()).collect(),
    })
}

/// Returns the issue of an encrypted file that the index does not list.
pub(super) fn issue_unlisted(unlisted: UnlistedFile) -> Option<LoadIssue> {
    let message = "the encrypted file vault.age is there, no index lists what it holds, and it is not the store in use";
    let hint = "use it with --vault age, and have it listed again with `karyi var doctor --repair --vault age` and \
                --age-identity FILE or its passphrase; or move it away";
    (unlisted == UnlistedFile::NotInUse).then(|| LoadIssue {
        kind: LoadIssueKind::Elsewhere,
        error: ToolError::new(ErrorCode::VaultUnavailable, message).with_hint(hint),
        names: Vec::new(),
    })
}

/// Source of a session with a store that is not persistent: it loads nothing and reports the names that the index
/// lists.
pub struct OtherStores {
    directory: PathBuf,
    kind: Kind,
    unlisted: UnlistedFile,
    elsewhere: Mutex<Result<Vec<(SecretName, Kind)>, ToolError>>,
}

impl OtherStores {
    /// Makes the source from the directory of the index and the kind of the session's store.
    #[must_use]
    pub fn new(directory: PathBuf, kind: Kind, unlisted: UnlistedFile) -> Self {
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

impl Source for OtherStores {
    fn refresh(&self, _: &Secrets, _: Need) {
        let index =
            Index::read(&self.directory).and_then(|index| index.require_readable(&self.directory));
        *self.names() = index.map(|index| names_in_other_stores(&index, self.kind));
    }

    fn load_issues(&self) -> Vec<LoadIssue> {
        let elsewhere = match &*self.names() {
            Ok(names) => issue_elsewhere(names, self.kind, ChosenBy::User),
            // Names listed in a damaged index are not masked.
            Err(error) => Some(store_unreadable(error.clone())),
        };
        let all = [elsewhere, issue_unlisted(self.unlisted)];
        all.into_iter().flatten().collect()
    }

    fn load_issue_of(&self, name: &str) -> Option<LoadIssue> {
        let names = self.names();
        let names = names.as_ref().ok()?;
        let there = names.iter().find(|(other, _)| other.as_str() == name)?;
        issue_elsewhere(std::slice::from_ref(there), self.kind, ChosenBy::User)
    }
}
