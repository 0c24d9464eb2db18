//! A vault with a passphrase: when it is asked for, what is said, and what Ctrl+C ends.

use std::fs;

use super::home::Home;
use crate::harness::Karyi;
use crate::harness::terminal::Terminal;

const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";
const RIGHT: &str = "pass-1";
const ASKED: &str = "passphrase of the vault (hidden): ";
const ASKED_AGAIN: &str = "wrong passphrase, try again\r\npassphrase of the vault (hidden): ";
const USE: &str = "<tools><command>printf %s \"$KARYI{TOKEN}\" | wc -c</command></tools>\n";

/// A home with a secret behind a passphrase.
fn locked() -> Home {
    let home = Home::new();
    let file = home.path().join("p.env");
    fs::write(&file, format!("TOKEN={VALUE}\n")).unwrap();
    let import = ["var", "import", file.to_str().unwrap(), "--all"];
    let age = ["--vault", "age", "--age-passphrase-fd", "3"];
    home.karyi_with_fd(&[import, age].concat(), RIGHT.as_bytes())
        .exit(0);
    fs::remove_file(file).unwrap();
    home
}

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
    let home = locked();
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
    let home = locked();
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
    let home = locked();
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
    let home = locked();
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
