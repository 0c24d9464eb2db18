//! As many names as an index holds are compared in a moment: others wait for the lock for seconds.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use karyi::error::ErrorCode;
use karyi::secret::SecretName;
use karyi::vault::index::{Index, IndexEntry};
use karyi::vault::policy::Policy;
use karyi::vault::store::record::{self, Facts};
use karyi::vault::store::{Key, Kind, Store};
use karyi::vault::vault::{SecretState, SecretStatus, secret_statuses};

use super::races::{HookedStore, vault};
use super::{name, value};

/// Far more than it takes on a busy machine, and far less than each name compared with each.
const LIMIT: Duration = Duration::from_secs(60);

fn names(count: usize) -> Vec<SecretName> {
    let names = (0..count).map(|number| name(&format!("NAME_{number:06}")));
    names.collect()
}

/// What a migration that was killed before it removed anything left is moved by the same one.
#[test]
fn many_names_that_both_stores_hold_are_moved_at_once() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (HookedStore::new(Kind::Os), HookedStore::new(Kind::Age));
    let (old, new) = (vault(root.path(), &from), vault(root.path(), &to));
    let names = names(3000);
    for (number, name) in names.iter().enumerate() {
        let value = value(&format!("value-of-{number:06}"));
        let text = record::join(&value, &Policy::default(), &Facts::default()).unwrap();
        for store in [&from, &to] {
            store.memory.set(&Key::of(name), &text).unwrap();
        }
    }
    // One of those that do not move is like the last one that does.
    let other = Key::of(&name("name_002999"));
    to.memory.set(&other, &value("value-of-another")).unwrap();
    let begun = Instant::now();
    let refused = old.migrate(&new).unwrap_err();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (
            ErrorCode::BadArguments,
            "the names name_002999 and NAME_002999 differ only in case"
        )
    );
    to.memory.remove(&other).unwrap();
    assert_eq!(old.migrate(&new).unwrap(), names);
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    assert_eq!(from.list().unwrap(), []);
    assert_eq!(to.list().unwrap(), names);
}

#[test]
fn many_names_are_compared_with_the_index_at_once() {
    let names = names(100_000);
    let listed = IndexEntry {
        note: None,
        created: Timestamp::UNIX_EPOCH,
        updated: Timestamp::UNIX_EPOCH,
        used: None,
        store: Kind::Os,
        policy: Policy::default(),
    };
    let mut index = Index::default();
    for name in &names {
        let text = name.as_str().to_owned();
        index.names.insert(text, listed.clone());
    }
    let begun = Instant::now();
    let rows = secret_statuses(&index, Some(Kind::Os), Some(&names));
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    let is_kept = |row: &SecretStatus| row.state == SecretState::Kept;
    assert_eq!((rows.len(), rows.iter().all(is_kept)), (100_000, true));
}
