//! The first secret on a machine without a keyring.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::home::Home;
use crate::harness::Karyi;
use crate::harness::terminal::Terminal;

const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";
const USE: &str = "<tools><command>printf %s \"$KARYI{TOKEN}\" | wc -c</command></tools>";

fn set(home: &Home) -> Terminal {
    Karyi::with_args(&["var", "set", "TOKEN"])
        .env("KARYI_HOME", home.path().join("karyi"))
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/none")
        .on_terminal()
}

/// Everything works without further flags, also in later sessions, and the identity is private.
fn assert_works(home: &Home) {
    let run = ["run", "--format", "xml", "-c", USE];
    assert!(home.karyi(&run, "").exit(0).stdout.contains(">39"));
    let identity = home.path().join("karyi/data/vault-identity.txt");
    let mode = fs::metadata(&identity).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Where the index is lost the identity is found again.
    fs::remove_file(home.index()).unwrap();
    assert!(home.karyi(&run, "").exit(0).stdout.contains(">39"));
    home.assert_nowhere(VALUE);
}

#[test]
fn the_encrypted_file_is_offered_where_there_is_no_keyring() {
    let home = Home::new();
    let mut terminal = set(&home);
    terminal.expect("No keyring here. Keep secrets in an encrypted file instead (");
    terminal.expect("vault.age)? [Y/n] ").keys("\r");
    terminal.expect("vault-identity.txt opens it: keep a copy of both");
    terminal.expect("Esc gives up): ").keys(VALUE).keys("\r");
    let (screen, status) = terminal.end();
    assert!(
        screen.contains("TOKEN is stored in the store age"),
        "{screen}"
    );
    assert_eq!(status, 0, "{screen}");
    assert_works(&home);
}

#[test]
fn nothing_is_made_without_agreement() {
    let home = Home::new();
    let mut terminal = set(&home);
    terminal.expect("[Y/n] ").keys("n");
    let (screen, status) = terminal.end();
    assert!(
        screen.contains("karyi var set TOKEN --vault age"),
        "{screen}"
    );
    assert_eq!(status, 3, "{screen}");
    assert!(!home.path().join("karyi/data").exists());
}

#[test]
fn the_hint_without_a_terminal_is_the_whole_command() {
    let home = Home::new().env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/none");
    let words = ["var", "set", "TOKEN", "--stdin", "--note", "for deploys"];
    let refused = home.karyi(&words, VALUE).exit(3);
    let refused = refused.error("keyring_unavailable");
    let command = "karyi var set TOKEN --stdin --note 'for deploys' --vault age\n";
    assert!(refused.stderr.contains(command), "{}", refused.stderr);
    home.karyi(&[&words[..], &["--vault", "age"]].concat(), VALUE)
        .exit(0);
    assert_works(&home);
}

#[test]
fn the_doctor_keeps_a_value_to_try_the_store() {
    let home = Home::new();
    let age = ["var", "set", "TOKEN", "--stdin", "--vault", "age"];
    home.karyi(&age, VALUE).exit(0);
    home.karyi(&["var", "doctor"], "").exit(0);
    let listed = home.karyi(&["var", "list"], "").exit(0).stdout;
    assert!(
        listed.contains("TOKEN") && !listed.contains("probe"),
        "{listed}"
    );
}

#[test]
fn the_identity_may_move_with_the_vault_or_alone() {
    let home = Home::new();
    let age = ["var", "set", "TOKEN", "--stdin", "--vault", "age"];
    home.karyi(&age, VALUE).exit(0);
    let data = home.index().with_file_name("");
    // The index names the identity where it was.
    let index = fs::read_to_string(home.index()).unwrap();
    let moved = index.replace("vault-identity.txt", "gone/vault-identity.txt");
    assert_ne!(index, moved);
    fs::write(home.index(), moved).unwrap();
    let run = ["run", "--format", "xml", "-c", USE];
    assert!(home.karyi(&run, "").exit(0).stdout.contains(">39"));
    // One that is named for a change is found from then on.
    let elsewhere = home.path().join("elsewhere.txt");
    fs::rename(data.join("vault-identity.txt"), &elsewhere).unwrap();
    let named = ["--age-identity", elsewhere.to_str().unwrap()];
    let more = ["var", "set", "MORE", "--stdin"];
    home.karyi(&[&more[..], &named].concat(), "another-Val-1029")
        .exit(0);
    assert!(home.karyi(&run, "").exit(0).stdout.contains(">39"));
}
