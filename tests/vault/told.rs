//! What `karyi var` says to its users: mistakes, doubts and damage, and what to do about them.

use std::fs;
use std::path::Path;

use karyi::secret::{SecretName, SecretValue};
use karyi::vault::store::age::{AgeKey, AgeStore};
use karyi::vault::store::{Key, Store};

use super::home::Home;
use super::var::VALUE;
use crate::harness::program;

#[test]
fn likely_mistakes_are_told() {
    let home = Home::new();
    home.set("FIRST", VALUE, &[]);
    let set = |name: &str, value: &str| home.karyi(&["var", "set", name, "--stdin"], value).exit(0);
    assert!(
        set("A", "Bearer abcdefgh")
            .stderr
            .contains("scheme of a header")
    );
    assert!(set("C", "token-12 \n").stderr.contains("white space"));
    let raw = home
        .karyi(&["var", "set", "D", "--stdin", "--raw"], "token-12\n")
        .exit(0);
    assert!(raw.stderr.contains("line break"), "{}", raw.stderr);
    let used = "<tools><command>printf %s \"$KARYI{D}\" | wc -c</command></tools>";
    assert!(home.script(used).exit(0).stdout.contains(">9\n"));
}

#[test]
fn what_is_said_helps() {
    let home = Home::new();
    let long = home.karyi(
        &[
            "var",
            "set",
            "A",
            "--stdin",
            "--vault",
            "age",
            "--age-identity",
            home.identity().to_str().unwrap(),
        ],
        &"x".repeat(61 << 10),
    );
    let long = long.exit(2).error("bad_value");
    assert!(
        long.stderr.contains("longer than 61440") && !long.stderr.contains("4 bytes"),
        "{}",
        long.stderr
    );
    home.set("TOKEN", VALUE, &["--expires", "30d"]);
    let json = home.karyi(&["var", "list", "--json"], "").json();
    let secret = &json["secrets"][0];
    for time in [
        &secret["created"],
        &secret["updated"],
        &secret["policy"]["expires"],
    ] {
        assert!(
            time.as_str().unwrap().ends_with('Z') && !time.as_str().unwrap().contains('.'),
            "{json:#}"
        );
    }
    assert_eq!(secret["used"], serde_json::Value::Null);
    home.script("<tools><command>: $KARYI{TOKEN}</command></tools>")
        .exit(0);
    let shown = home.karyi(&["var", "show", "TOKEN", "--json"], "").json();
    let used: jiff::Timestamp = shown["used"].as_str().unwrap().parse().unwrap();
    let age = jiff::Timestamp::now().duration_since(used);
    assert!(age.as_secs().abs() < 3600, "{shown:#}");
    let past = [
        "var",
        "set",
        "TOKEN",
        "--keep-value",
        "--expires",
        "2020-01-01",
    ];
    let past = home.karyi(&past, "").exit(0);
    let told = "warning: TOKEN expired on 2020-01-01 23:59 UTC, and it cannot be used until --expires sets";
    assert!(past.stderr.contains(told), "{}", past.stderr);
}

#[test]
fn the_day_that_was_typed_is_listed() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &["--expires", "2999-12-31"]);
    for args in [
        &["var", "list"][..],
        &["var", "show", "TOKEN"],
        &["var", "list", "--json"],
    ] {
        let shown = home.karyi(args, "").exit(0).stdout;
        assert!(
            shown.contains("2999-12-31") && !shown.contains("3000-01"),
            "{shown}"
        );
    }
}

/// A vault with a passphrase, and nobody there to type it.
#[test]
fn a_missing_passphrase_is_told() {
    let home = Home::new();
    let set = "var set TOKEN --stdin --vault age --age-passphrase-fd 3 3<<<passphrase-42";
    let script = format!("exec '{}' {set} <<<'{VALUE}'", program().display());
    home.spawn(Path::new("/bin/bash"), &["-c", &script], "")
        .exit(0);
    let ran = home
        .script("<tools><command>echo $KARYI{OTHER}</command></tools>")
        .exit(3);
    let ran = ran.error("secret_prompt_unavailable");
    assert!(
        ran.stdout.contains("--age-passphrase-fd") && !ran.stdout.contains("--stdin"),
        "{}",
        ran.stdout
    );
    let set = home
        .karyi(&["var", "set", "OTHER"], "")
        .exit(3)
        .error("secret_prompt_unavailable");
    assert!(!set.stderr.contains("--stdin"), "{}", set.stderr);
}

#[test]
fn what_is_to_be_done_about_a_damaged_vault_leads_out() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    fs::write(home.index(), "{").unwrap();
    let told = home.karyi(&["var", "doctor"], "").exit(1).stdout;
    assert!(
        told.contains("--repair") && told.contains("--vault age"),
        "{told}"
    );
    fs::remove_file(home.index()).unwrap();
    let told = home
        .karyi(&["var", "doctor", "--repair"], "")
        .exit(3)
        .error("wrong_key")
        .stderr;
    assert!(told.contains("--repair --vault age"), "{told}");
    fs::remove_file(home.path().join("karyi/data/vault.age")).unwrap();
    let told = home
        .karyi(&["var", "doctor", "--repair"], "")
        .exit(2)
        .stderr;
    assert!(told.contains("name it: --vault os"), "{told}");
    home.set("TOKEN", VALUE, &[]);
    fs::write(home.path().join("karyi/data/vault.age"), "no age file").unwrap();
    let told = home.karyi(&["var", "doctor"], "").exit(1).stdout;
    assert!(!told.contains("see `karyi var doctor`"), "{told}");
}

#[test]
fn doubts_about_a_value_are_told_however_it_comes() {
    let home = Home::new();
    home.set("KEPT_TOKEN", VALUE, &[]);
    let url = "postgres://u:pw1@db.example.com/prod";
    let expected = [
        "warning: the password in the value of DB_DSN is too short to be masked where it stands alone",
        "warning: the value of API_TOKEN ends in white space",
    ];
    let check = |stderr: &str| {
        for warning in expected {
            assert!(stderr.contains(warning), "{warning:?} not in {stderr}");
        }
    };
    let text = format!("DB_DSN={url}\nAPI_TOKEN='a-long-token '\n");
    fs::write(home.work().join(".env"), text).unwrap();
    check(
        &home
            .karyi(&["var", "import", ".env", "--all"], "")
            .exit(0)
            .stderr,
    );
    let pairs = format!("DB_DSN\0{url}\0API_TOKEN\0a-long-token \0");
    let script = "<tools><command>true</command></tools>";
    let given = ["run", "--no-interactive", "--vars-fd", "0", "-c", script];
    check(&home.karyi(&given, &pairs).exit(0).stderr);
    let set = home
        .karyi(&["var", "set", "DB_DSN", "--stdin"], url)
        .exit(0);
    assert!(set.stderr.contains(expected[0]), "{}", set.stderr);
}

#[test]
fn a_damaged_index_is_made_anew_once_its_store_can_be_opened() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &["--note", "n0te"]);
    fs::write(home.index(), "{").unwrap();
    // Nobody knows what opens the file; nothing is lost for that.
    for args in [
        ["var", "rm", "TOKEN"].as_slice(),
        &["var", "rename", "TOKEN", "OTHER"],
        &["var", "set", "TOKEN", "--stdin"],
    ] {
        let told = home.karyi(args, VALUE).exit(3).error("wrong_key");
        assert!(told.stderr.contains("--age-identity"), "{}", told.stderr);
    }
    assert_eq!(fs::read_to_string(home.index()).unwrap(), "{");
    let ran = home
        .script("<tools><command>echo fine</command></tools>")
        .exit(0);
    assert!(
        ran.stdout.contains("redaction_incomplete"),
        "{}",
        ran.stdout
    );
    home.karyi(&["var", "doctor"], "").exit(1);
    let identity = home.identity();
    let list = ["var", "list", "--age-identity", identity.to_str().unwrap()];
    home.karyi(&list, "").exit(0);
    let listed = home.karyi(&["var", "list"], "").exit(0);
    assert!(
        listed.stdout.contains("TOKEN") && listed.stdout.contains("n0te"),
        "{}",
        listed.stdout
    );
    home.karyi(&["var", "doctor"], "").exit(0);
}

#[test]
fn doctor_tells_of_the_vault() {
    let home = Home::new();
    let fresh = home.karyi(&["var", "doctor", "--json"], "").exit(0).json();
    assert_eq!(fresh["status"], "ok", "{fresh:#}");
    home.set("TOKEN", VALUE, &[]);
    let used = home.karyi(&["var", "doctor"], "").exit(0);
    assert!(
        used.stdout.contains("index and store agree"),
        "{}",
        used.stdout
    );
    let doctor = home.karyi(&["doctor", "--json"], "").exit(0).json();
    let checks = doctor["checks"].as_array().unwrap();
    let find = |name: &str| checks.iter().find(|check| check["name"] == name).unwrap();
    assert_eq!(find("keyring")["status"], "limited", "{doctor:#}");
    assert!(
        find("keyring")["found"]
            .as_str()
            .unwrap()
            .contains("keyring_unavailable")
    );
    assert_eq!(find("secrets")["status"], "ok", "{doctor:#}");
}

#[test]
fn the_prompt_names_the_secrets_that_can_be_used() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &["--note", "for deploys"]);
    home.set("PLAIN", "another-value", &[]);
    home.set("OLD", "expired-value", &["--expires", "2020-01-01"]);
    home.set(
        "SHUT",
        "sealed-value",
        &[
            "--output",
            "sealed",
            "--tools",
            "url_fetch",
            "--hosts",
            "a.com",
        ],
    );
    home.set("AWAY", "bound-value", &["--dirs", "/nowhere/at/all"]);
    let plain = home
        .karyi(&["tools", "prompt", "--no-var-names"], "")
        .exit(0);
    let named = home.karyi(&["tools", "prompt"], "").exit(0).hides(VALUE);
    let names = "\nSecrets you may use by name, without ever seeing a value:\n\
        - $KARYI{PLAIN}\n- $KARYI{TOKEN} for deploys\n";
    assert_eq!(named.stdout, plain.stdout + names);
}

#[test]
fn a_vault_file_that_is_gone_is_told_and_not_made_anew() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    home.set("OTHER", "another-value", &[]);
    let file = home.path().join("karyi/data/vault.age");
    let away = home.path().join("away.age");
    fs::rename(&file, &away).unwrap();
    let script = "<tools><command>echo fine</command></tools>";
    let ran = home.script(script).exit(0);
    assert!(
        ran.stdout.contains("redaction_incomplete"),
        "{}",
        ran.stdout
    );
    home.karyi(&["run", "--require-vault", "-c", script], "")
        .exit(3)
        .error("vault_unavailable");
    let told = home.karyi(&["var", "doctor"], "").exit(1);
    for part in ["the store has none", "remove them (2)", "--repair"] {
        assert!(told.stdout.contains(part), "{part}: {}", told.stdout);
    }
    for args in [
        ["var", "set", "Q1", "--stdin"].as_slice(),
        &["var", "rotate", "TOKEN", "--stdin"],
        &["var", "rename", "TOKEN", "TOKEN2"],
    ] {
        home.karyi(args, "the-value-of-q1")
            .exit(3)
            .error("vault_unavailable");
    }
    let env = home.work().join(".env");
    fs::write(&env, "API_TOKEN=abcdef0123456789\n").unwrap();
    home.karyi(&["var", "import", "--all", env.to_str().unwrap()], "")
        .exit(3)
        .error("vault_unavailable");
    assert!(!file.exists());
    // It comes back, and all is well.
    fs::rename(&away, &file).unwrap();
    home.karyi(&["run", "--require-vault", "-c", script], "")
        .exit(0);
    // Or it is forgotten, and a new one may be made.
    fs::remove_file(&file).unwrap();
    home.karyi(&["var", "doctor", "--repair"], "").exit(0);
    home.set("Q1", "the-value-of-q1", &[]);
}

#[test]
fn inside_a_session_doctor_says_that_it_asked_no_store() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let karyi = crate::harness::program().display().to_string();
    let script = format!("<tools><command>{karyi} var doctor; echo $?</command></tools>");
    let ran = home.script(&script).exit(0);
    assert!(
        ran.stdout
            .contains("age, not asked: this runs inside a session of karyi\n0\n"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("agree"), "{}", ran.stdout);
}

#[test]
fn a_missing_identity_file_is_told_as_the_wrong_key() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    fs::remove_file(home.identity()).unwrap();
    let used = home.script("<tools><command>echo $KARYI{TOKEN}</command></tools>");
    let used = used.exit(3).error("wrong_key");
    assert!(
        used.stdout.contains("there is no identity file"),
        "{}",
        used.stdout
    );
}

#[test]
fn what_is_imported_may_come_by_a_pipe_or_a_link() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    fs::write(home.work().join("real"), "API_TOKEN=abcdef0123456789\n").unwrap();
    std::os::unix::fs::symlink("real", home.work().join(".env")).unwrap();
    let import = ["var", "import", ".env"];
    assert_eq!(home.karyi(&import, "").exit(0).stdout, "API_TOKEN\n");
    let import = ["var", "import", "/dev/stdin"];
    let piped = home
        .karyi(&import, "OTHER_TOKEN=abcdef0123456789\n")
        .exit(0);
    assert_eq!(piped.stdout, "OTHER_TOKEN\n");
    home.karyi(&["var", "import", "/dev/null"], "").exit(0);
    home.karyi(&["var", "import", "/dev/zero"], "")
        .exit(2)
        .error("bad_arguments");
    home.karyi(&["var", "import", "none"], "")
        .exit(1)
        .error("not_found");
    home.karyi(&["var", "import", "."], "")
        .exit(1)
        .error("is_directory");
}

/// Puts a text into the encrypted file, as another program does.
pub fn put(home: &Home, key: &str, text: &str) {
    let identity = home.identity();
    let make = std::sync::Arc::new(move |_| AgeKey::identity(&identity, None));
    let store = AgeStore::new(home.path().join("karyi/data/vault.age"), make);
    let key = Key::of(&SecretName::parse(key).unwrap());
    store.set(&key, &SecretValue::new(text.into())).unwrap();
}

#[test]
fn a_new_value_for_a_damaged_record_loses_no_policy() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &["--use", "ask"]);
    put(&home, "TOKEN", "karyi-secret 2 {}\nvalue-of-a-newer-karyi");
    put(&home, "UNKNOWN", "karyi-secret 2 {}\nvalue-of-another-one");
    let set = |key: &str, more: &[&str]| {
        home.karyi(
            &[&["var", "set", key, "--stdin"], more].concat(),
            "a-new-value-1",
        )
    };
    let ran = set("TOKEN", &[]).exit(0);
    assert!(
        ran.stderr.contains(
            "the policy of TOKEN in the store cannot be read; what it may be used for is now what"
        ),
        "{}",
        ran.stderr
    );
    let shown = home.karyi(&["var", "show", "TOKEN", "--json"], "").exit(0);
    assert_eq!(shown.json()["policy"]["use"], "ask");
    // Nobody knows the policy of this one.
    let refused = set("UNKNOWN", &[]).exit(1).error("bad_vault");
    assert!(
        refused.stderr.contains("--use session"),
        "{}",
        refused.stderr
    );
    set("UNKNOWN", &["--use", "ask"]).exit(0);
    let shown = home
        .karyi(&["var", "show", "UNKNOWN", "--json"], "")
        .exit(0);
    assert_eq!(shown.json()["policy"]["use"], "ask");
}

#[test]
fn a_descriptor_forgets_no_identity_of_a_file_that_is_there() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let script = "<tools><command>printf %s $KARYI{TOKEN} | wc -c</command></tools>";
    let run = [
        "run",
        "--no-interactive",
        "--vault",
        "age",
        "--age-passphrase-fd",
        "3",
        "-c",
        script,
    ];
    let ran = home.karyi_with_fd(&run, b"a passphrase").exit(0);
    assert!(ran.stdout.contains(">39"), "{}", ran.stdout);
    // Where nothing is remembered the error names the flag.
    fs::remove_file(home.index()).unwrap();
    let repair = [
        "var",
        "doctor",
        "--repair",
        "--vault",
        "age",
        "--age-passphrase-fd",
        "3",
    ];
    let ran = home
        .karyi_with_fd(&repair, b"a passphrase")
        .exit(3)
        .error("wrong_key");
    assert!(ran.stderr.contains("--age-identity FILE"), "{}", ran.stderr);
}
