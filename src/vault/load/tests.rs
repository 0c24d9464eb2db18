//! What of a store a session may use, and what it only must not show.

use super::*;
use crate::vault::policy::Policy;
use crate::vault::redact::Redactor;
use crate::vault::store::memory::MemoryStore;

const VALUE: &str = "S3cr3t-T0ken/Val+ue";

fn name() -> SecretName {
    SecretName::parse("K").unwrap()
}

/// Loads a store; returns the secrets and the error.
fn loaded(store: &Arc<MemoryStore>, secrets: &Secrets) -> Option<ErrorCode> {
    let dir = tempfile::tempdir().unwrap();
    let opened = Arc::clone(store) as Arc<dyn Store>;
    let open: Open = Box::new(move || Ok(Arc::clone(&opened)));
    let loader = Loader::new(dir.path().to_owned(), open);
    loader.refresh(secrets, Need::Used);
    let lacks = loader.lacks();
    lacks.first().map(|lack| lack.error.code)
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
    let good = record::join(&SecretValue::new(VALUE.into()), &Policy::default()).unwrap();
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
fn a_damaged_value_says_nothing_about_other_names() {
    let (store, secrets) = (Arc::new(MemoryStore::default()), Secrets::default());
    let bad = SecretValue::new(format!("karyi-secret 2 {{}}\n{VALUE}"));
    store.set(&Key::of(&name()), &bad).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let opened = Arc::clone(&store) as Arc<dyn Store>;
    let open: Open = Box::new(move || Ok(Arc::clone(&opened)));
    let loader = Arc::new(Loader::new(dir.path().to_owned(), open));
    secrets.attach(Arc::clone(&loader) as Arc<dyn Source>);
    secrets.refresh(Need::Used);
    assert!(secrets.source_failure().is_some());
    let stored = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        secrets.lack_of(&names).is_some()
    };
    let found = [stored(&["K"]), stored(&["OTHER"]), stored(&["OTHER", "K"])];
    assert_eq!(found, [true, false, true]);
    // A store that cannot be listed may hold any name.
    let open: Open = Box::new(|| Err(ToolError::new(ErrorCode::KeyringLocked, "locked")));
    let loader = Loader::new(dir.path().to_owned(), open);
    loader.refresh(&Secrets::default(), Need::Used);
    assert!(loader.lack_of("OTHER").is_some());
}
