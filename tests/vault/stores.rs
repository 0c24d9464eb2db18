//! Secrets of one user in more than one store, and entries of a keyring that are no secrets of karyi's.

use std::path::Path;

use karyi::secret::{SecretName, SecretValue};
use karyi::vault::store::age::{AgeKey, AgeStore};
use karyi::vault::store::{Key, Store};

use super::bus::{Bus, Provider, is_there};
use super::home::{Home, Ran};
use crate::harness::skip;

const HERE: &str = "v4lue-0f-the-keyring";
const THERE: &str = "Qz-ag3-secret-tw1xy";

/// A home with the secret HERE in the keyring, which is the store in use.
fn with_keyring() -> Option<((Bus, Home), Home)> {
    let bus_home = Home::new();
    let bus = Bus::start(bus_home.path(), Provider::Unlocked)?;
    let home = Home::new().env("DBUS_SESSION_BUS_ADDRESS", &bus.address);
    let set = ["var", "set", "HERE", "--stdin", "--vault", "os"];
    home.karyi(&set, HERE).exit(0);
    // The bus goes before the home that its keyring writes to.
    Some(((bus, bus_home), home))
}

/// Runs karyi with the encrypted file as its store.
fn with_file(home: &Home, args: &[&str], stdin: &str) -> Ran {
    let identity = home.identity();
    let file = [
        "--vault",
        "age",
        "--age-identity",
        identity.to_str().unwrap(),
    ];
    home.karyi(&[args, &file].concat(), stdin)
}

#[track_caller]
fn says(ran: &Ran, parts: &[&str]) {
    let all = format!("{}{}", ran.stdout, ran.stderr);
    for part in parts {
        assert!(all.contains(part), "{part:?} not in: {all}");
    }
}

/// Checks that a run with no lasting store tells of both, and gives advice that can be followed.
fn tells_memory_of_both(home: &Home, script: &str) {
    let run = ["run", "--no-interactive", "--vault", "memory", "-c", script];
    let ran = home.karyi(&run, "").exit(0);
    let told = [
        "redaction_incomplete",
        "HERE (os), THERE (age)",
        "or omit --vault",
    ];
    says(&ran, &told);
    assert!(!ran.stdout.contains("migrate"), "{}", ran.stdout);
}

#[test]
fn what_is_kept_in_another_store_is_told() {
    let Some((_bus, home)) = with_keyring() else {
        return;
    };
    home.set("THERE", THERE, &[]);
    let listed = home.karyi(&["var", "list"], "").exit(0).stdout;
    let states: Vec<bool> = listed
        .lines()
        .map(|line| line.contains("other store"))
        .collect();
    assert_eq!(states, [false, false, true], "{listed}");
    let shown = home.karyi(&["var", "show", "THERE", "--json"], "").exit(0);
    assert_eq!(shown.json()["state"], "other store");
    let told = home.karyi(&["var", "doctor"], "").exit(1);
    says(
        &told,
        &[
            "stores     THERE (age)",
            "karyi var migrate --vault age --to os",
        ],
    );
    let prompt = home.karyi(&["tools", "prompt"], "").exit(0).stdout;
    assert!(
        prompt.contains("$KARYI{HERE}") && !prompt.contains("$KARYI{THERE}"),
        "{prompt}"
    );

    let script = format!(
        "<tools><command>echo {HERE}</command></tools>\n<tools><command>true</command></tools>"
    );
    let ran = home.script(&script).exit(0).hides(HERE);
    says(&ran, &["redaction_incomplete", "which is os: THERE (age)"]);
    assert_eq!(ran.stdout.matches("redaction_incomplete").count(), 1);
    let ran = with_file(&home, &["run", "--no-interactive", "-c", &script], "");
    says(
        &ran.exit(0),
        &["redaction_incomplete", "which is age: HERE (os)"],
    );
    tells_memory_of_both(&home, &script);
    for store in ["auto", "memory"] {
        let required = ["run", "--require-vault", "--vault", store, "-c", &script];
        let ran = home.karyi(&required, "").exit(3).error("vault_unavailable");
        says(&ran, &["THERE (age)"]);
        assert!(!ran.stdout.contains("<result"), "{}", ran.stdout);
    }
    let used = home.script("<tools><command>echo $KARYI{THERE}</command></tools>");
    let used = used.exit(2).error("undefined_variable");
    says(&used, &["THERE (age)", "--vault age"]);
}

#[test]
fn nothing_is_kept_or_removed_past_another_store() {
    let Some((_bus, home)) = with_keyring() else {
        return;
    };
    home.set("THERE", THERE, &[]);
    let before = home.karyi(&["var", "list"], "").exit(0).stdout;
    for args in [
        ["var", "set", "THERE", "--stdin"].as_slice(),
        &["var", "set", "THERE", "--keep-value", "--note", "n"],
        &["var", "rotate", "THERE", "--stdin"],
        &["var", "rename", "THERE", "NEW"],
        &["var", "rename", "HERE", "THERE"],
        &["var", "rm", "HERE", "THERE"],
        &["var", "rm", "THERE", "--vault", "os"],
    ] {
        home.karyi(args, "a-new-value-99")
            .exit(2)
            .error("bad_arguments");
    }
    let set = home.karyi(&["var", "set", "THERE", "--stdin"], "a-new-value-99");
    says(
        &set,
        &[
            "THERE is in the store age",
            "--vault age",
            "migrate --to age",
        ],
    );
    let exec = ["var", "exec", "THERE", "--", "true"];
    let exec = home.karyi(&exec, "").exit(2).error("undefined_variable");
    says(&exec, &["THERE is in the store age"]);
    std::fs::write(home.work().join(".env"), "THERE=a-new-value-99\n").unwrap();
    let import = ["var", "import", ".env", "--all", "--replace"];
    says(&home.karyi(&import, "").exit(1), &["in the store age"]);
    let other = with_file(&home, &["var", "set", "HERE", "--stdin"], "a-new-value-99");
    says(&other.exit(2), &["HERE is in the store os"]);
    assert_eq!(home.karyi(&["var", "list"], "").exit(0).stdout, before);

    // All of it into one store, and the warning is gone.
    let moved = with_file(&home, &["var", "migrate", "--to", "os"], "").exit(0);
    says(&moved, &["moved 1 to the store os"]);
    let script = format!("<tools><command>echo {HERE}; echo {THERE}</command></tools>");
    let ran = home
        .karyi(&["run", "--require-vault", "-"], &script)
        .exit(0);
    assert!(
        ran.stdout.contains("$KARYI{HERE}\n$KARYI{THERE}\n"),
        "{}",
        ran.stdout
    );
    home.karyi(&["var", "doctor"], "").exit(0);
    home.karyi(&["var", "rm", "THERE"], "").exit(0);
}

#[test]
fn a_migration_replaces_no_other_value() {
    let Some((_bus, home)) = with_keyring() else {
        return;
    };
    // As a karyi of old left it: the name in both stores.
    let identity = home.identity();
    let key = std::sync::Arc::new(move |_| AgeKey::identity(&identity, None));
    let file = AgeStore::new(home.path().join("karyi/data/vault.age"), key);
    let name = Key::of(&SecretName::parse("HERE").unwrap());
    file.set(&name, &SecretValue::new(THERE.into())).unwrap();
    let held = || {
        file.get(&name)
            .unwrap()
            .map(|value| value.expose().to_owned())
    };
    let identity = home.identity();
    let to_file = [
        "var",
        "migrate",
        "--to",
        "age",
        "--age-identity",
        identity.to_str().unwrap(),
    ];
    let refused = home.karyi(&to_file, "").exit(2).error("bad_arguments");
    says(
        &refused,
        &["the stores os and age hold different values of HERE"],
    );
    assert_eq!(held().as_deref(), Some(THERE));
    let removed = with_file(&home, &["var", "rm", "HERE"], "").exit(0);
    says(
        &removed,
        &["removed from the store age; HERE is still in the store os"],
    );
    assert_eq!(held(), None);
    home.karyi(&to_file, "").exit(0);
    let used = "<tools><command>printf %s $KARYI{HERE} | wc -c</command></tools>";
    let ran = home.script(used).exit(0);
    assert!(
        ran.stdout.contains(&format!(">{}\n", HERE.len())),
        "{}",
        ran.stdout
    );
}

#[test]
fn the_key_of_the_journal_in_use_is_not_replaced() {
    let Some((_bus, home)) = with_keyring() else {
        return;
    };
    let edit = |name: &str, key: &str| {
        format!(
            "<tools><edit><file src=\"{name}\"><find></find><replace>$KARYI{{{key}}}</replace></file></edit></tools>"
        )
    };
    home.karyi(&["var", "set", "HERE", "--keep-value", "--write"], "")
        .exit(0);
    home.set("THERE", THERE, &["--write"]);
    home.script(&edit("of_keyring", "HERE")).exit(0);
    with_file(
        &home,
        &["run", "--no-interactive", "-"],
        &edit("of_file", "THERE"),
    )
    .exit(0);
    std::fs::remove_file(home.work().join("of_file")).unwrap();
    with_file(&home, &["var", "migrate", "--to", "os"], "").exit(0);
    let shown = home
        .karyi(&["history", "show", "1"], "")
        .exit(0)
        .hides(HERE);
    says(&shown, &["of_keyring"]);
}

/// Puts an entry beside HERE with secret-tool; `text` is what printf of a shell makes of it.
fn put(home: &Home, user: &str, text: &str) {
    put_under(home, &service(home), user, text);
}

fn put_under(home: &Home, service: &str, user: &str, text: &str) {
    let script = "printf \"$2\" | secret-tool store --label=x service \"$1\" username \"$0\"";
    let args = ["-c", script, user, service, text];
    home.spawn(Path::new("/bin/bash"), &args, "").exit(0);
}

/// Returns the service name of the entries in the keyring.
fn service(home: &Home) -> String {
    let found = home.spawn(
        Path::new("secret-tool"),
        &["search", "--all", "username", "HERE"],
        "",
    );
    let all = format!("{}{}", found.stdout, found.stderr);
    let line = all
        .lines()
        .find_map(|line| line.strip_prefix("attribute.service = "));
    line.unwrap_or_else(|| panic!("{all}")).to_owned()
}

#[test]
fn what_is_masked_is_not_told_to_be_unmasked() {
    if !is_there("secret-tool") {
        return skip("no secret-tool");
    }
    let Some((_bus, home)) = with_keyring() else {
        return;
    };
    put(&home, "LATER", "karyi-secret 9 {}\\nl4ter-value-5678");
    put(&home, "here", "0ther-case-value-12");
    let script =
        "<tools><command>echo l4ter-value-5678; echo 0ther-case-value-12</command></tools>";
    let ran = home.script(script).exit(0).hides("l4ter").hides("0ther");
    says(
        &ran,
        &[
            "unusable_secret",
            "cannot be used, and are masked",
            "(LATER, here)",
        ],
    );
    assert!(
        !ran.stdout.contains("redaction_incomplete"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("not masked"), "{}", ran.stdout);
    // A name that is nowhere is that, whatever is wrong with others.
    let ran = home.script("<tools><command>echo $KARYI{NOWHERE}</command></tools>");
    let ran = ran.exit(2).error("undefined_variable");
    says(&ran, &["there is no value for NOWHERE<"]);
    // What is wrong with a name is told of that one.
    put(&home, "AB", "abc");
    let ran = home.script("<tools><command>echo $KARYI{AB}</command></tools>");
    says(
        &ran,
        &[
            "there is no value for AB, and what the store has cannot be used",
            "redaction_incomplete",
        ],
    );
    says(&ran, &["the value of AB has fewer than 4 bytes"]);
}

/// Has everything moved into the encrypted file.
fn to_file(home: &Home) -> Ran {
    let identity = home.identity();
    let identity = identity.to_str().unwrap();
    let args = ["var", "migrate", "--to", "age", "--age-identity", identity];
    home.karyi(&args, "")
}

#[test]
fn what_a_migration_left_in_the_keyring_is_told_and_removed_by_the_same_one() {
    if !is_there("secret-tool") {
        return skip("no secret-tool");
    }
    let Some((_bus, home)) = with_keyring() else {
        return;
    };
    let service = service(&home);
    to_file(&home).exit(0);
    home.karyi(&["var", "doctor"], "").exit(0);
    let refused = to_file(&home).exit(2).error("bad_arguments");
    says(&refused, &["the secrets are in the store age already"]);
    // As one left it that was killed.
    put_under(&home, &service, "HERE", HERE);
    put_under(&home, &service, "NEVER_LISTED", "of-another-vault-77");
    let told = home.karyi(&["var", "doctor"], "").exit(1);
    let found = "stores     the keyring holds values of names that are in the store age: HERE\n";
    says(
        &told,
        &[
            found,
            "to do: remove what both hold alike: karyi var migrate --to age;",
        ],
    );
    let done = to_file(&home).exit(0);
    let moved = "karyi: moved 2 to the store age; nothing is left in the store os\n";
    says(&done, &[moved]);
    home.karyi(&["var", "doctor"], "").exit(0);
    home.script("<tools><command>printf %s $KARYI{HERE} | wc -c</command></tools>")
        .exit(0);
    let listed = home.karyi(&["var", "list"], "").exit(0);
    says(&listed, &["NEVER_LISTED"]);
    // Another value is nobody's copy.
    put_under(&home, &service, "HERE", "v4lue-of-0ther-times");
    let refused = to_file(&home).exit(2).error("bad_arguments");
    says(
        &refused,
        &["the stores os and age hold different values of HERE"],
    );
    home.karyi(&["var", "doctor"], "").exit(1);
    home.karyi(&["var", "rm", "HERE", "--vault", "os"], "")
        .exit(0);
    home.karyi(&["var", "doctor"], "").exit(0);
}

#[test]
fn what_a_migration_left_in_the_file_is_removed_by_the_same_one() {
    let Some((_bus, home)) = with_keyring() else {
        return;
    };
    to_file(&home).exit(0);
    let file = home.path().join("karyi/data/vault.age");
    let copy = std::fs::read(&file).unwrap();
    home.karyi(&["var", "migrate", "--to", "os"], "").exit(0);
    std::fs::write(&file, copy).unwrap();
    let told = home.karyi(&["var", "doctor"], "").exit(1);
    says(&told, &["vault.age is there", "karyi var migrate --to os;"]);
    // Nothing says any more what opens it.
    let refused = home.karyi(&["var", "migrate", "--to", "os"], "").exit(2);
    let refused = refused.error("bad_arguments");
    says(
        &refused,
        &["could not be seen: wrong_key: ", "--age-identity"],
    );
    let identity = home.identity();
    let identity = identity.to_str().unwrap();
    let args = ["var", "migrate", "--to", "os", "--age-identity", identity];
    let done = home.karyi(&args, "").exit(0);
    says(
        &done,
        &["moved 1 to the store os; nothing is left in the store age\n"],
    );
    assert!(!file.exists());
    home.karyi(&["var", "doctor"], "").exit(0);
    // A keyring that is gone is told, and is no matter of a file in use.
    to_file(&home).exit(0);
    let gone = home.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/at/all");
    let refused = to_file(&gone).exit(2).error("bad_arguments");
    says(
        &refused,
        &["are left in the store os could not be seen: keyring_unavailable: "],
    );
    gone.karyi(&["var", "doctor"], "").exit(0);
}

#[test]
fn an_entry_that_is_no_text_can_be_got_rid_of() {
    if !is_there("secret-tool") {
        return skip("no secret-tool");
    }
    let Some((_bus, home)) = with_keyring() else {
        return;
    };
    put(&home, "BIN", "\\377\\376binary-bytes");
    put(&home, "NEWER", "karyi-secret 9 {}\\nvalue-of-a-newer-one");
    let ran = home
        .script("<tools><command>true</command></tools>")
        .exit(0);
    says(&ran, &["redaction_incomplete", "not masked", "(BIN)"]);
    let told = home.karyi(&["var", "doctor"], "").exit(1);
    // Each has what is to be done about it.
    says(&told, &["is no text", "karyi var rm BIN"]);
    says(&told, &["of NEWER in the store", "karyi var set NEWER"]);
    assert!(
        !told.stdout.contains("--repair") && !told.stdout.contains("see `karyi var doctor`"),
        "{}",
        told.stdout
    );
    home.karyi(&["var", "rm", "BIN", "NEWER"], "").exit(0);
    home.karyi(&["var", "doctor"], "").exit(0);
}

#[test]
fn an_entry_without_a_name_is_masked() {
    if !is_there("secret-tool") {
        return skip("no secret-tool");
    }
    let Some((_bus, home)) = with_keyring() else {
        return;
    };
    put(&home, "we/ird", "we1rd-value-345678");
    put(&home, "a b", "blank-va1ue-345678");
    put(&home, "", "namel3ss-value-345678");
    let script = "<tools><command>echo we1rd-value-345678; echo blank-va1ue-345678; echo namel3ss-value-345678</command></tools>";
    let ran = home.script(script).exit(0);
    let masked = "$KARYI{KARYI_KEYRING_3}\n$KARYI{KARYI_KEYRING_2}\n$KARYI{KARYI_KEYRING_1}\n";
    assert!(ran.stdout.contains(masked), "{}", ran.stdout);
}
