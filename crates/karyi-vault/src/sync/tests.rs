//! Tests of loading: usable and only masked values.

mod changes;
mod parts;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::index::{IndexEntry, StoreChoice};
use crate::policy::{Approval, Policy};
use crate::redact::Redactor;
use crate::store::memory::MemoryStore;
use crate::store::record::Facts;
use crate::store::{Key, StoredEntry, record};
use karyi_core::error::ErrorCode;
use karyi_core::limits;
use karyi_core::secret::SecretValue;

const VALUE: &str = "S3cr3t-T0ken/Val+ue";

fn name() -> SecretName {
    SecretName::parse("K").unwrap()
}

/// Loads a store; returns the secrets and the error.
fn loaded(store: &Arc<MemoryStore>, secrets: &Secrets) -> Option<ErrorCode> {
    let dir = tempfile::tempdir().unwrap();
    let opened = Arc::clone(store) as Arc<dyn Store>;
    let open: OpenStore = Box::new(move || Ok(Arc::clone(&opened)));
    let sync = StoreSync::new(dir.path().to_owned(), open);
    sync.refresh(secrets, Need::Used);
    let issues = sync.load_issues();
    issues.first().map(|issue| issue.error.code)
}

#[test]
fn a_value_whose_policy_cannot_be_read_is_masked_and_not_used() {
    for head in [
        "karyi-secret 1 {\"unknown\":1}",
        "karyi-secret 2 {}",
        "karyi-secret 1 no json",
    ] {
        let (store, secrets) = (Arc::new(MemoryStore::default()), Secrets::default());
        let text = SecretValue::new(format!("{head}\n{VALUE}"));
        store.set(&Key::of(&name()), &text).unwrap();
        assert_eq!(
            loaded(&store, &secrets),
            Some(ErrorCode::BadVault),
            "{head}"
        );
        assert!(!secrets.contains(&name()), "{head}");
        let shown = Redactor::new(&secrets).redact_str(VALUE).into_owned();
        assert_eq!(shown, "$KARYI{K}", "{head}");
    }
}

#[test]
fn a_policy_that_becomes_unreadable_ends_the_use() {
    let (store, secrets) = (Arc::new(MemoryStore::default()), Secrets::default());
    let good = record::join(
        &SecretValue::new(VALUE.into()),
        &Policy::default(),
        &Facts::default(),
    )
    .unwrap();
    store.set(&Key::of(&name()), &good).unwrap();
    assert_eq!(loaded(&store, &secrets), None);
    assert!(secrets.contains(&name()));
    let bad = SecretValue::new(format!("karyi-secret 2 {{}}\n{VALUE}"));
    store.set(&Key::of(&name()), &bad).unwrap();
    assert_eq!(loaded(&store, &secrets), Some(ErrorCode::BadVault));
    assert!(!secrets.contains(&name()));
}

#[test]
fn the_key_of_the_journal_is_not_shown() {
    let (store, secrets) = (Arc::new(MemoryStore::default()), Secrets::default());
    let key = "4404b0ca17557b3ee47fb6e7a59e6ccb68b9c1bb8bcf91ed2f20218966f23a89";
    store
        .set(&Key::journal(), &SecretValue::new(key.into()))
        .unwrap();
    assert_eq!(loaded(&store, &secrets), None);
    let shown = Redactor::new(&secrets).redact_str(key).into_owned();
    assert_eq!(shown, "$KARYI{KARYI_JOURNAL_KEY}");
}

#[test]
fn another_key_of_the_journal_is_not_shown_either() {
    let session = Session::new();
    session.list("K", 2);
    for (key, generation) in [("a-key-of-before", 4), ("the-key-of-now", 6)] {
        session.store.keep("K", VALUE);
        let text = SecretValue::new(key.into());
        session.store.memory.set(&Key::journal(), &text).unwrap();
        session.list("K", generation);
        session.secrets.refresh(Need::Listed);
        assert!(session.masks(key), "{key}");
    }
    assert!(session.masks("a-key-of-before"));
}

#[test]
fn a_damaged_value_says_nothing_about_other_names() {
    let (store, secrets) = (Arc::new(MemoryStore::default()), Secrets::default());
    let bad = SecretValue::new(format!("karyi-secret 2 {{}}\n{VALUE}"));
    store.set(&Key::of(&name()), &bad).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let opened = Arc::clone(&store) as Arc<dyn Store>;
    let open: OpenStore = Box::new(move || Ok(Arc::clone(&opened)));
    let sync = Arc::new(StoreSync::new(dir.path().to_owned(), open));
    secrets.attach(Arc::clone(&sync) as Arc<dyn Source>);
    secrets.refresh(Need::Used);
    assert!(secrets.source_failure().is_some());
    let stored = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        secrets.load_issue_of(&names).is_some()
    };
    let found = [stored(&["K"]), stored(&["OTHER"]), stored(&["OTHER", "K"])];
    assert_eq!(found, [true, false, true]);
    // A store that cannot be listed may contain any name.
    let open: OpenStore = Box::new(|| Err(ToolError::new(ErrorCode::KeyringLocked, "locked")));
    let sync = StoreSync::new(dir.path().to_owned(), open);
    sync.refresh(&Secrets::default(), Need::Used);
    assert!(sync.load_issue_of("OTHER").is_some());
}

/// Store that can be unavailable, with entries of another program.
#[derive(Default)]
struct Shared {
    memory: MemoryStore,
    is_away: AtomicBool,
    /// Callback that runs once, between reading and returning the value of K.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// Number of listings.
    asked: AtomicUsize,
    /// Further texts under K.
    more: Mutex<Vec<String>>,
    /// Texts under a key that is no name.
    foreign: Mutex<Vec<String>>,
}

impl Shared {
    fn check(&self) -> Result<(), ToolError> {
        match self.is_away.load(Ordering::SeqCst) {
            true => Err(ToolError::new(ErrorCode::KeyringLocked, "on purpose")),
            false => Ok(()),
        }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn keep(&self, name: &str, value: &str) {
        let key = Key::of(&SecretName::parse(name).unwrap());
        let value = SecretValue::new(value.into());
        self.memory.set(&key, &value).unwrap();
    }
}

impl Store for Shared {
    fn kind(&self) -> Kind {
        Kind::Os
    }
    fn probe(&self) -> Result<(), ToolError> {
        self.check()
    }
    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.check()?;
        self.memory.list()
    }
    fn get(&self, key: &Key) -> Result<Option<SecretValue>, ToolError> {
        let got = self.memory.get(key);
        let meanwhile = match *key == Key::of(&name()) {
            true => self.meanwhile.lock().unwrap().take(),
            false => None,
        };
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        got
    }
    fn read_all(&self) -> Result<Vec<StoredEntry>, ToolError> {
        let names = self.list()?;
        let keys = names.iter().map(Key::of).chain([Key::journal()]);
        let mut all = Vec::new();
        for key in keys {
            let text = self.get(&key).transpose();
            all.extend(text.map(|text| StoredEntry { key, text }));
        }
        let own = Key::of(&name());
        for text in self.more.lock().unwrap().iter() {
            let text = Ok(SecretValue::new(text.clone()));
            let key = own.clone();
            all.push(StoredEntry { key, text });
        }
        for text in self.foreign.lock().unwrap().iter() {
            let key = Key::foreign("no name");
            let text = match text.as_str() {
                "cut off" => Err(ToolError::new(ErrorCode::BadVault, "no text")),
                text => Ok(SecretValue::new(text.to_owned())),
            };
            all.push(StoredEntry { key, text });
        }
        Ok(all)
    }
    fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError> {
        self.memory.set(key, text)
    }
    fn remove(&self, key: &Key) -> Result<bool, ToolError> {
        self.memory.remove(key)
    }
}

/// A session with that store.
struct Session {
    dir: tempfile::TempDir,
    store: Arc<Shared>,
    secrets: Secrets,
}

impl Session {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (store, secrets) = (Arc::new(Shared::default()), Secrets::default());
        let shared = Arc::clone(&store);
        let open: OpenStore = Box::new(move || Ok(Arc::clone(&shared) as Arc<dyn Store>));
        let sync = StoreSync::new(dir.path().to_owned(), open);
        secrets.attach(Arc::new(sync));
        Self {
            dir,
            store,
            secrets,
        }
    }

    /// Adds a name to the index, in a new file.
    fn list(&self, name: &str, generation: u64) {
        let index = self.dir.path().join(FILE_NAME);
        let _ = std::fs::rename(&index, self.dir.path().join(format!("before-{name}")));
        Index::change(self.dir.path(), |index| {
            index.generation = generation;
            index.store = Some(StoreChoice {
                kind: Kind::Os,
                identity: None,
            });
            index.names.insert(name.to_owned(), listed());
            Ok(())
        })
        .unwrap();
    }

    fn failure(&self) -> Option<ErrorCode> {
        self.secrets.source_failure().map(|error| error.code)
    }

    fn generation(&self) -> u64 {
        Index::read(self.dir.path()).unwrap().generation
    }

    /// Refreshes until the index is rebuilt: a program of another test may hold the lock for a moment.
    fn wait_for_a_whole_index(&self) {
        while !Index::read(self.dir.path()).unwrap().is_whole() {
            self.secrets.refresh(Need::Listed);
        }
    }

    fn masks(&self, text: &str) -> bool {
        Redactor::new(&self.secrets).redact_str(text) != text
    }
}

fn listed() -> IndexEntry {
    IndexEntry {
        note: None,
        created: jiff::Timestamp::UNIX_EPOCH,
        updated: jiff::Timestamp::UNIX_EPOCH,
        used: None,
        store: Kind::Os,
        policy: Policy::default(),
    }
}

#[test]
fn refreshes_of_a_name_with_two_values_drop_no_former_value() {
    let session = Session::new();
    let (store, secrets) = (&session.store, &session.secrets);
    store.keep("K", VALUE);
    store.keep("GOOD", "the-value-before");
    session.list("GOOD", 2);
    secrets.refresh(Need::Listed);
    assert!(secrets.contains(&name()));
    store.keep("GOOD", "another-one-77");
    store.more.lock().unwrap().push("a-stranger-is-here".into());
    session.list("GOOD", 4);
    secrets.refresh(Need::Listed);
    // Neither of two values can be used, and both are masked.
    assert!(!secrets.contains(&name()));
    let generation = secrets.generation();
    for _ in 0..200 {
        secrets.refresh(Need::Used);
    }
    assert_eq!(secrets.generation(), generation);
    for text in [
        VALUE,
        "a-stranger-is-here",
        "the-value-before",
        "another-one-77",
    ] {
        assert!(session.masks(text), "{text}");
    }
}

#[test]
fn a_store_that_failed_is_asked_again_after_a_change_or_for_a_name() {
    let session = Session::new();
    session.store.keep("K", VALUE);
    session.list("K", 2);
    session.store.is_away.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        session.secrets.refresh(Need::Listed);
        assert_eq!(session.failure(), Some(ErrorCode::KeyringLocked));
        assert!(!session.secrets.is_behind());
    }
    // A change may make the store available: one more attempt for each change.
    session.list("K", 4);
    for _ in 0..2 {
        session.secrets.refresh(Need::Listed);
        assert_eq!(session.store.asked(), 2);
    }
    session.secrets.refresh(Need::Used);
    assert_eq!(session.failure(), Some(ErrorCode::KeyringLocked));
    assert_eq!(session.store.asked(), 3);
    session.store.is_away.store(false, Ordering::SeqCst);
    session.secrets.refresh(Need::Used);
    assert!(session.secrets.contains(&name()));
    assert_eq!(session.failure(), None);
}

#[test]
fn another_index_of_the_same_generation_is_seen() {
    let session = Session::new();
    session.store.keep("K", VALUE);
    session.list("K", 2);
    session.secrets.refresh(Need::Listed);
    session.store.keep("OTHER", "another-one-77");
    session.list("OTHER", 2);
    session.secrets.refresh(Need::Listed);
    assert!(session.masks("another-one-77"));
}

#[test]
fn a_damaged_index_is_rebuilt() {
    let session = Session::new();
    session.store.keep("K", VALUE);
    let path = session.dir.path().join(FILE_NAME);
    for text in ["", "{", "[]"] {
        std::fs::write(&path, text).unwrap();
        session.wait_for_a_whole_index();
        assert_eq!(session.failure(), None);
        assert!(session.masks(VALUE));
        let index = Index::read(session.dir.path()).unwrap();
        assert_eq!(index.secret_names().collect::<Vec<_>>(), [name()]);
        assert_eq!(index.store, Some(StoreChoice::os()));
    }
}

#[test]
fn foreign_entries_that_cannot_be_masked_are_reported() {
    let check = |text: &str, expected: Option<LoadIssueKind>| {
        let session = Session::new();
        session.store.foreign.lock().unwrap().push(text.into());
        session.secrets.refresh(Need::Used);
        let kind = session
            .secrets
            .load_issues()
            .first()
            .map(|issue| issue.kind);
        assert_eq!(kind, expected, "{} bytes", text.len());
    };
    check("a-stranger-is-here", None);
    // Too short to be masked.
    check("abc", None);
    check(
        &"x".repeat(limits::MAX_SECRET_BYTES + 1),
        Some(LoadIssueKind::Unread),
    );
    check("cut off", Some(LoadIssueKind::Unread));
}

#[test]
fn a_session_without_a_store_tells_of_an_index_it_cannot_read() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(FILE_NAME), "{").unwrap();
    let source = OtherStores::new(dir.path().to_owned(), Kind::Memory, UnlistedFile::Nothing);
    source.refresh(&Secrets::default(), Need::Listed);
    let kinds: Vec<LoadIssueKind> = source
        .load_issues()
        .iter()
        .map(|issue| issue.kind)
        .collect();
    assert_eq!(
        (kinds, source.load_issue_of("K")),
        (vec![LoadIssueKind::Unread], None)
    );
}

#[test]
fn a_date_of_use_is_no_reason_to_read_the_store() {
    let session = Session::new();
    session.store.keep("K", VALUE);
    session.list("K", 2);
    session.secrets.refresh(Need::Listed);
    let now = jiff::Timestamp::now();
    Index::record_use(session.dir.path(), &[name()], now).unwrap();
    assert!(session.secrets.is_behind());
    session.secrets.refresh(Need::Listed);
    assert_eq!(
        (session.store.asked(), session.secrets.is_behind()),
        (1, false)
    );
    // Any other change is one.
    session.list("K", 4);
    session.secrets.refresh(Need::Listed);
    assert_eq!(session.store.asked(), 2);
}

#[test]
fn values_of_another_store_are_masked_without_an_index_entry() {
    let session = Session::new();
    session.list("K", 2);
    session
        .store
        .keep("OTHER", &format!("karyi-secret 2 {{}}\n{VALUE}"));
    session.store.foreign.lock().unwrap().push("cut off".into());
    session.secrets.refresh(Need::Listed);
    assert_eq!(session.failure(), Some(ErrorCode::VaultUnavailable));
    let issue = |name: &str| {
        let issue = session.secrets.load_issue_of(&[name.to_owned()]);
        issue.map(|issue| (issue.kind, issue.error.code))
    };
    let expected = [
        Some((LoadIssueKind::Unusable, ErrorCode::BadVault)),
        Some((LoadIssueKind::Unread, ErrorCode::VaultUnavailable)),
        None,
    ];
    assert_eq!([issue("OTHER"), issue("K"), issue("NOBODY")], expected);
    assert!(session.masks(VALUE));
    // Names of the index are retained.
    let index = Index::read(session.dir.path()).unwrap();
    assert_eq!(index.secret_names().collect::<Vec<_>>(), [name()]);
}

#[test]
fn a_policy_that_a_session_went_by_does_not_widen_while_the_value_is_away() {
    let session = Session::new();
    let (store, secrets) = (&session.store, &session.secrets);
    let policy = Policy {
        approval: Approval::Ask,
        ..Policy::default()
    };
    let asked = record::join(&SecretValue::new(VALUE.into()), &policy, &Facts::default()).unwrap();
    store.keep("K", asked.expose());
    session.list("K", 2);
    secrets.refresh(Need::Listed);
    // Another entry under the name, then the bare value alone, as a command could have it.
    store.more.lock().unwrap().push("a-stranger-is-here".into());
    session.list("K", 4);
    secrets.refresh(Need::Listed);
    assert!(!secrets.contains(&name()));
    store.more.lock().unwrap().clear();
    store.keep("K", VALUE);
    secrets.refresh(Need::Used);
    assert_eq!(secrets.policy(&name()).as_deref(), Some(&policy));
}
