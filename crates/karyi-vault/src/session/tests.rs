//! Names, lifetimes and limits of a session's values.

use super::*;
use crate::policy::Approval;
use karyi_core::error::ErrorCode;

fn name(text: &str) -> SecretName {
    SecretName::parse(text).unwrap()
}

fn insert(secrets: &Secrets, key: &str, value: &str) -> Result<(), ErrorCode> {
    let value = SecretValue::new(value.into());
    secrets.insert(name(key), value).map_err(|error| error.code)
}

/// Returns the value of `A`.
fn shown(secrets: &Secrets) -> Option<String> {
    let value = secrets.get(&name("A"));
    value.map(|value| value.expose().to_owned())
}

/// Gives `A` a one-time value.
fn once(secrets: &Secrets, value: &str) {
    let value = SecretValue::new(value.into());
    secrets.insert_once(name("A"), value).unwrap();
}

#[test]
fn a_value_for_once_is_there_in_the_next_block_only() {
    let secrets = Secrets::default();
    let (shown, once) = (|| shown(&secrets), |value: &str| once(&secrets, value));
    once("value-1");
    secrets.begin_block();
    assert_eq!(shown().as_deref(), Some("value-1"));
    secrets.begin_block();
    assert_eq!(shown(), None);
    insert(&secrets, "A", "value-2").unwrap();
    once("value-3");
    once("value-4");
    secrets.begin_block();
    assert_eq!(shown().as_deref(), Some("value-4"));
    secrets.begin_block();
    assert_eq!(shown().as_deref(), Some("value-2"));
    let mut known = Vec::new();
    secrets.for_each(|_, value| known.push(value.expose().to_owned()));
    known.sort();
    known.dedup();
    assert_eq!(known, ["value-1", "value-2", "value-3", "value-4"]);
}

#[test]
fn a_value_for_once_waits_for_the_call_that_uses_it() {
    let secrets = Secrets::default();
    let (shown, once) = (|| shown(&secrets), |value: &str| once(&secrets, value));
    insert(&secrets, "A", "lasting").unwrap();
    once("value-1");
    drop(secrets.claim_once(&[]));
    drop(secrets.claim_once(&[name("B")]));
    assert_eq!(shown().as_deref(), Some("value-1"));
    let claim = secrets.claim_once(&[name("A"), name("A")]).unwrap();
    assert_eq!(shown().as_deref(), Some("value-1"));
    // A concurrent call neither gets it nor removes it.
    let other = secrets.claim_once(&[name("A")]).map(drop);
    assert_eq!(other, Err(vec![name("A")]));
    assert_eq!(shown().as_deref(), Some("value-1"));
    once("value-2");
    drop(claim);
    assert_eq!(shown().as_deref(), Some("value-2"));
    drop(secrets.claim_once(&[name("A")]));
    assert_eq!(shown().as_deref(), Some("lasting"));
}

#[test]
fn unfit_values_are_refused() {
    let check = |value: &str, expected: Result<(), ErrorCode>| {
        assert_eq!(
            insert(&Secrets::default(), "A", value),
            expected,
            "{} bytes",
            value.len()
        );
    };
    check("abcd", Ok(()));
    check("密码", Ok(()));
    check(&"x".repeat(limits::MAX_SECRET_BYTES), Ok(()));
    check("", Err(ErrorCode::BadValue));
    check("abc", Err(ErrorCode::BadValue));
    check("a b c d", Ok(()));
    check("       a  ", Err(ErrorCode::BadValue));
    check(" \t\r\n \t\r\n \t\r\n", Err(ErrorCode::BadValue));
    check("\x1b[31m\x1b[0mabc", Err(ErrorCode::BadValue));
    check("abcd\0efgh", Err(ErrorCode::BadValue));
    check(
        &"x".repeat(limits::MAX_SECRET_BYTES + 1),
        Err(ErrorCode::BadValue),
    );
}

#[test]
fn all_values_together_are_limited() {
    let secrets = Secrets::default();
    let large = "x".repeat(limits::MAX_SECRET_BYTES);
    let fit = limits::MAX_SECRETS_BYTES / limits::MAX_SECRET_BYTES;
    for index in 0..fit {
        insert(&secrets, &format!("N{index}"), &large).unwrap();
    }
    assert_eq!(insert(&secrets, "N0", &large), Ok(()));
    assert_eq!(insert(&secrets, "MORE", &large), Err(ErrorCode::BadValue));
}

#[test]
fn names_that_differ_only_in_case_are_refused() {
    let secrets = Secrets::default();
    insert(&secrets, "Token", "value-1").unwrap();
    assert_eq!(
        insert(&secrets, "TOKEN", "value-2"),
        Err(ErrorCode::BadArguments)
    );
    assert_eq!(insert(&secrets, "Token", "value-3"), Ok(()));
    assert_eq!(secrets.names(), [name("Token")]);
}

#[test]
fn every_change_raises_the_generation() {
    let secrets = Secrets::default();
    let other = secrets.clone();
    assert_eq!((secrets.generation(), secrets.is_empty()), (0, true));
    insert(&secrets, "A", "value-1").unwrap();
    insert(&secrets, "A", "value-2").unwrap();
    assert_eq!(other.get(&name("A")).unwrap().expose(), "value-2");
    assert!(other.remove(&name("A")) && !other.remove(&name("A")));
    assert_eq!(
        (secrets.generation(), secrets.contains(&name("A"))),
        (3, false)
    );
}

#[test]
fn former_values_stay_masked() {
    let secrets = Secrets::default();
    insert(&secrets, "A", "value-1").unwrap();
    insert(&secrets, "A", "value-2").unwrap();
    insert(&secrets, "A", "value-2").unwrap();
    let mut shown = Vec::new();
    secrets.for_each(|name, value| shown.push(format!("{name}={}", value.expose())));
    assert_eq!(shown, ["A=value-2", "A=value-1"]);
}

#[test]
fn printing_shows_names_only() {
    let secrets = Secrets::default();
    insert(&secrets, "A", "value-1").unwrap();
    assert_eq!(format!("{secrets:?}"), r#"Secrets([SecretName("A")])"#);
}

/// Returns every masked value, sorted.
fn known(secrets: &Secrets) -> Vec<String> {
    let mut known = Vec::new();
    secrets.for_each(|_, value| known.push(value.expose().to_owned()));
    known.sort();
    known.dedup();
    known
}

#[test]
fn masked_values_are_stored_once() {
    let secrets = Secrets::default();
    insert(&secrets, "A", "the-first-value").unwrap();
    insert(&secrets, "A", "the-last-value").unwrap();
    let mask = |text: &str| {
        let value = SecretValue::new(text.into());
        secrets.mask_only(&name("TWICE"), value).unwrap();
    };
    mask("one-of-two");
    mask("two-of-two");
    let generation = secrets.generation();
    for _ in 0..limits::MAX_FORMER_SECRETS {
        mask("one-of-two");
        mask("two-of-two");
    }
    assert_eq!(secrets.generation(), generation);
    for _ in 0..200 {
        insert(&secrets, "A", "the-first-value").unwrap();
        insert(&secrets, "A", "the-last-value").unwrap();
    }
    let expected = [
        "one-of-two",
        "the-first-value",
        "the-last-value",
        "two-of-two",
    ];
    assert_eq!(known(&secrets), expected);
    assert_eq!(secrets.load_issues(), []);
}

#[test]
fn a_session_that_forgets_says_so() {
    let secrets = Secrets::default();
    let large = |number: usize| format!("{number:08}{}", "x".repeat(limits::MAX_SECRET_BYTES - 8));
    let fit = limits::MAX_FORMER_BYTES / limits::MAX_SECRET_BYTES;
    for number in 0..=fit {
        insert(&secrets, "A", &large(number)).unwrap();
    }
    assert_eq!(
        (known(&secrets).len(), secrets.load_issues()),
        (fit + 1, vec![])
    );
    insert(&secrets, "A", &large(fit + 1)).unwrap();
    let issues = secrets.load_issues();
    let kinds: Vec<LoadIssueKind> = issues.iter().map(|issue| issue.kind).collect();
    assert_eq!(kinds, [LoadIssueKind::Unread]);
    assert!(!known(&secrets).contains(&large(0)) && known(&secrets).contains(&large(1)));
    // It is independent of the store.
    assert_eq!(secrets.source_failure(), None);
}

#[test]
fn store_changes_reach_the_value_behind_a_one_time_value() {
    let stored = |secrets: &Secrets, value: &str| {
        let value = SecretValue::new(value.into());
        let stored = secrets.insert_stored(&name("A"), value, Policy::default());
        stored.unwrap();
    };
    let ended = |secrets: &Secrets| {
        secrets.begin_block();
        secrets.begin_block();
        shown(secrets)
    };
    let secrets = Secrets::default();
    stored(&secrets, "stored-1");
    once(&secrets, "for-once");
    secrets.remove_stored(&name("A"));
    assert_eq!(shown(&secrets).as_deref(), Some("for-once"));
    assert_eq!(ended(&secrets), None);
    assert_eq!(known(&secrets), ["for-once", "stored-1"]);

    stored(&secrets, "stored-2");
    once(&secrets, "for-once");
    stored(&secrets, "stored-3");
    assert_eq!(shown(&secrets).as_deref(), Some("for-once"));
    assert!(known(&secrets).contains(&"stored-3".to_owned()));
    assert_eq!(ended(&secrets).as_deref(), Some("stored-3"));
    assert_eq!(secrets.origin(&name("A")), Some(Origin::Stored));

    // A value that the user entered for the session takes precedence.
    insert(&secrets, "A", "for-long").unwrap();
    once(&secrets, "for-once");
    stored(&secrets, "stored-4");
    secrets.remove_stored(&name("A"));
    assert_eq!(ended(&secrets).as_deref(), Some("for-long"));
}

#[test]
fn a_stored_value_that_comes_back_gains_nothing() {
    let secrets = Secrets::default();
    let stored = |value: &str, policy: &Policy| {
        let value = SecretValue::new(value.into());
        let stored = secrets.insert_stored(&name("A"), value, policy.clone());
        stored.unwrap();
        secrets.policy(&name("A")).unwrap().as_ref().clone()
    };
    let asked = Policy {
        approval: Approval::Ask,
        ..Policy::default()
    };
    let written = Policy {
        write: true,
        ..Policy::default()
    };
    let plain = Policy::default();
    assert_eq!(stored("value-one", &asked), asked);
    secrets.remove_stored(&name("A"));
    assert_eq!(stored("value-one", &written), asked);
    // Another value is independent, and the first one stays unchanged.
    assert_eq!(stored("value-two", &written), written);
    assert_eq!(stored("value-one", &plain), asked);
    // A lost permission does not return, either.
    assert_eq!(stored("value-two", &plain), plain);
    secrets.remove_stored(&name("A"));
    assert_eq!(stored("value-two", &written), plain);
    // Nor after a one-time value.
    secrets.remove_stored(&name("A"));
    once(&secrets, "for-once");
    let value = SecretValue::new("value-one".into());
    secrets.insert_stored(&name("A"), value, written).unwrap();
    secrets.begin_block();
    secrets.begin_block();
    assert_eq!(secrets.policy(&name("A")).unwrap().as_ref(), &asked);
}

#[test]
fn a_new_name_is_like_none_that_is_only_masked() {
    let secrets = Secrets::default();
    let masked = SecretValue::new("value-in-the-store".into());
    secrets.mask_only(&name("Token"), masked).unwrap();
    let give = |text: &str| {
        let value = SecretValue::new("value-from-outside".into());
        secrets.insert_new(name(text), value, Policy::default())
    };
    assert_eq!(
        give("TOKEN"),
        Err(case_conflict(&name("Token"), &name("TOKEN")))
    );
    assert_eq!(give("Token"), Err(checks::name_taken(&name("Token"))));
    assert_eq!(give("OTHER"), Ok(()));
}
