//! A vault with a passphrase: when it is asked for, what is said, and what Ctrl+C ends.

use std::fs::File;
use std::sync::{Arc, Mutex};

use karyi::secret::{SecretName, SecretValue};
use karyi::vault::store::age::{AgeKey, AgeStore};
use karyi::vault::store::{Key, Store, private_file};

use super::home::Home;
use crate::harness::Karyi;
use crate::harness::terminal::Terminal;

const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";
const ASKED: &str = "passphrase of the vault (hidden): ";
const ASKED_AGAIN: &str = "wrong passphrase, try again\r\npassphrase of the vault (hidden): ";
const USE: &str = "<tools><command>printf %s \"$KARYI{TOKEN}\" | wc -c</command></tools>\n";

fn start(home: &Home, args: &[&str], script: &str) -> Terminal {
    Karyi::with_args(&["run", "--format", "xml"])
        .args(args)
        .arg("a.xml")
        .file("a.xml", script)
        .env("KARYI_HOME", home.path().join("karyi"))
        .on_terminal()
}

/// Types something at the question that stands there now, and waits for no later one.
fn type_at(terminal: &mut Terminal, question: &str, keys: &str) {
    terminal.expect(question).forget().keys(keys);
}

#[test]
fn a_wrong_passphrase_is_told_and_asked_for_again() {
    let home = Home::locked(VALUE);
    let mut terminal = start(&home, &[], USE);
    type_at(&mut terminal, ASKED, "mistyped\r");
    type_at(&mut terminal, ASKED_AGAIN, "pass-1\r");
    let (screen, status) = terminal.end();
    assert!(screen.contains("<output>39"), "{screen}");
    assert!(!screen.contains("redaction_incomplete"), "{screen}");
    assert_eq!(status, 0, "{screen}");
}

#[test]
fn a_vault_that_opens_in_the_end_leaves_no_warning() {
    let home = Home::locked(VALUE);
    for pace in [&[][..], &["--stream"]] {
        let mut terminal = start(&home, pace, USE);
        type_at(&mut terminal, ASKED, "mistyped\r");
        type_at(&mut terminal, ASKED_AGAIN, "mistyped\r");
        type_at(&mut terminal, ASKED_AGAIN, "mistyped\r");
        // Now the block needs it.
        type_at(&mut terminal, ASKED_AGAIN, "pass-1\r");
        let (screen, status) = terminal.end();
        assert!(screen.contains("<output>39"), "{screen}");
        assert!(!screen.contains("redaction_incomplete"), "{screen}");
        assert_eq!(status, 0, "{screen}");
    }
}

#[test]
fn a_vault_that_stays_closed_is_warned_of() {
    let home = Home::locked(VALUE);
    let script = "<tools><command>echo went on</command></tools>";
    let mut terminal = start(&home, &[], script);
    type_at(&mut terminal, ASKED, "mistyped\r");
    type_at(&mut terminal, ASKED_AGAIN, "mistyped\r");
    type_at(&mut terminal, ASKED_AGAIN, "mistyped\r");
    let (screen, status) = terminal.end();
    for part in ["redaction_incomplete", "wrong_key", "went on"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert_eq!(status, 0, "{screen}");
}

/// Whoever presses Ctrl+C at a question that karyi itself asks wants the run to end, whenever it is asked.
#[test]
fn ctrl_c_at_a_later_question_ends_the_run() {
    let home = Home::locked(VALUE);
    let script = format!(
        "<tools><command>echo the first ran</command></tools>\n{USE}\
         <tools><command>echo the third ran</command></tools>"
    );
    for pace in [&[][..], &["--stream"]] {
        let mut terminal = start(&home, pace, &script);
        type_at(&mut terminal, ASKED, "\x1b");
        let first = terminal.expect(ASKED).screen();
        assert!(first.contains("<output>the first ran"), "{first}");
        type_at(&mut terminal, ASKED, "\x03");
        let (screen, status) = terminal.end();
        assert!(!screen.contains(ASKED), "asked once more: {screen}");
        assert_eq!(screen.matches("code=\"cancelled\"").count(), 2, "{screen}");
        assert!(!screen.contains("the third ran"), "{screen}");
        // The one of the first block, which ran without the values.
        assert_eq!(
            screen.matches("severity=\"warning\"").count(),
            1,
            "{screen}"
        );
        assert_eq!(status, 130, "{screen}");
    }
}

/// To check a passphrase takes seconds, and so does waiting for another program that does it.
#[test]
fn who_waits_for_a_passphrase_is_told() {
    let home = Home::locked(VALUE);
    let other = File::open(home.path().join("karyi/data/vault.lock")).unwrap();
    other.lock().unwrap();
    let mut terminal = start(&home, &[], USE);
    type_at(&mut terminal, ASKED, "pass-1\r");
    terminal.expect("karyi: waiting for the vault: its passphrase takes seconds to check");
    drop(other);
    let (screen, status) = terminal.end();
    assert!(screen.contains("<output>39"), "{screen}");
    assert_eq!(status, 0, "{screen}");
}

#[test]
fn reading_and_writing_the_file_are_told() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("vault.age");
    let name = SecretName::parse("TOKEN").unwrap();
    // The file is locked until somebody is told of it.
    let check = |work: &dyn Fn(&AgeStore)| {
        let held = Arc::new(Mutex::new(Some(private_file::lock(&path).unwrap())));
        let told = Arc::clone(&held);
        let pass = || SecretValue::new("pass-1".into());
        let key = Arc::new(move |_| Ok(AgeKey::with_work(&pass(), 1)));
        let store = AgeStore::new(path.clone(), key);
        work(&store.with_notice(Arc::new(move |_| told.lock().unwrap().take().is_some())));
        assert!(held.lock().unwrap().is_none());
    };
    check(&|store| {
        let value = SecretValue::new(VALUE.into());
        store.set(&Key::of(&name), &value).unwrap();
    });
    check(&|store| assert!(store.list().unwrap().contains(&name)));
}
