//! Stores whose index is gone, and files that are not what they were.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use nix::sys::stat::Mode;

use super::bus::{Bus, Provider};
use super::home::{Home, Ran};
use super::var::VALUE;
use crate::harness::{program, skip};

const FINE: &str = "<tools><command>echo fine</command></tools>";

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} not in {text}");
    }
}

/// Runs karyi with the identity that opens the encrypted file.
fn with_identity(home: &Home, args: &[&str], stdin: &str) -> Ran {
    let identity = home.identity();
    let mut all = args.to_vec();
    all.extend(["--age-identity", identity.to_str().unwrap()]);
    home.karyi(&all, stdin)
}

/// A home whose encrypted file holds a TOKEN, without its index.
fn without_index() -> Home {
    let home = Home::new();
    home.set("TOKEN", VALUE, &["--use", "session"]);
    fs::remove_file(home.index()).unwrap();
    home
}

#[test]
fn a_file_without_its_index_is_a_store_in_use() {
    let home = without_index();
    let listed = home.karyi(&["var", "list"], "").exit(0);
    says(
        &listed.stderr,
        &["could not be asked", "wrong_key", "--age-identity"],
    );
    assert!(!listed.stderr.contains("no secrets"), "{}", listed.stderr);
    // A run cannot open it, and says so; with the key it masks and uses what is there.
    let ran = home.script(FINE).exit(0);
    says(&ran.stdout, &["redaction_incomplete", "--age-identity"]);
    let required = ["run", "--require-vault", "-c", FINE];
    home.karyi(&required, "").exit(3).error("wrong_key");
    // One with another store knows that it does not know them.
    for store in ["memory", "env"] {
        let ran = home.karyi(&["run", "--vault", store, "-c", FINE], "");
        says(&ran.exit(0).stdout, &["redaction_incomplete", "vault.age"]);
    }
    assert!(!home.index().exists());
    let script = format!("<tools><command>echo {VALUE} $KARYI{{TOKEN}}</command></tools>");
    let ran = with_identity(&home, &["run", "--require-vault", "-c", &script], "");
    let ran = ran.exit(0).hides(VALUE);
    says(&ran.stdout, &["$KARYI{TOKEN} $KARYI{TOKEN}"]);
    assert!(!ran.stdout.contains("redaction_incomplete"));
    // By then the index is made anew, and says what opens it.
    let listed = home.karyi(&["var", "list", "--json"], "").exit(0).json();
    assert_eq!(
        (&listed["store"], &listed["secrets"][0]["name"]),
        (&"age".into(), &"TOKEN".into())
    );
    home.script(&script).exit(0).hides(VALUE);
}

#[test]
fn an_index_is_made_anew_from_its_file() {
    let home = without_index();
    // Nothing is kept elsewhere meanwhile.
    home.karyi(&["var", "set", "OTHER", "--stdin"], "another-value")
        .exit(3)
        .error("wrong_key");
    assert!(!home.index().exists());
    let told = home.karyi(&["var", "doctor"], "").exit(1).stdout;
    says(&told, &["lists nothing, and", "vault.age", "--repair"]);
    home.karyi(&["var", "doctor", "--repair"], "")
        .exit(3)
        .error("wrong_key");
    with_identity(&home, &["var", "doctor", "--repair"], "").exit(0);
    let listed = home.karyi(&["var", "list"], "").exit(0);
    assert!(listed.stdout.contains("TOKEN") && !listed.stdout.contains("untracked"));
    let script = format!("<tools><command>echo {VALUE}</command></tools>");
    home.karyi(&["run", "--require-vault", "-c", &script], "")
        .exit(0)
        .hides(VALUE);
    // One that holds nothing any more is listed as well.
    home.karyi(&["var", "rm", "TOKEN"], "").exit(0);
    fs::remove_file(home.index()).unwrap();
    home.karyi(&["var", "doctor"], "").exit(1);
    with_identity(&home, &["var", "doctor", "--repair"], "").exit(0);
    home.karyi(&["var", "doctor"], "").exit(0);
}

#[test]
fn a_value_that_is_kept_beside_a_lost_index_joins_its_file() {
    let home = without_index();
    with_identity(&home, &["var", "set", "OTHER", "--stdin"], "another-value").exit(0);
    let names = || {
        let listed = home.karyi(&["var", "list", "--json"], "").exit(0).json();
        let secrets = listed["secrets"].as_array().unwrap();
        let names = secrets.iter().map(|secret| secret["name"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(), ["OTHER", "TOKEN"]);
}

#[test]
fn a_file_with_a_passphrase_and_no_index_asks_for_it() {
    let home = Home::new();
    let fd = ["--age-passphrase-fd", "3"];
    let value = home.work().join("value");
    fs::write(&value, VALUE).unwrap();
    let script = format!(
        "exec '{}' var set TOKEN --stdin --vault age --age-passphrase-fd 3 3<<<passphrase-42 <'{}'",
        program().display(),
        value.display()
    );
    home.spawn(Path::new("/bin/bash"), &["-c", &script], "")
        .exit(0);
    fs::remove_file(value).unwrap();
    fs::remove_file(home.index()).unwrap();
    let listed = home.karyi(&["var", "list"], "").exit(0);
    says(
        &listed.stderr,
        &["needs its passphrase", "--age-passphrase-fd"],
    );
    assert!(!listed.stderr.contains("no secrets"), "{}", listed.stderr);
    let ran = home.script(FINE).exit(0);
    says(
        &ran.stdout,
        &["redaction_incomplete", "secret_prompt_unavailable"],
    );
    let repair = ["var", "doctor", "--repair", fd[0], fd[1]];
    home.karyi_with_fd(&repair, b"passphrase-42\n").exit(0);
    says(&home.karyi(&["var", "list"], "").stdout, &["TOKEN"]);
}

#[test]
fn an_index_that_is_gone_is_made_anew_from_the_keyring_by_a_list() {
    let bus_home = Home::new();
    let Some(bus) = Bus::start(bus_home.path(), Provider::Unlocked) else {
        return;
    };
    let home = Home::new().env("DBUS_SESSION_BUS_ADDRESS", &bus.address);
    home.karyi(&["var", "set", "TOKEN", "--stdin", "--note", "n0te"], VALUE)
        .exit(0);
    fs::remove_file(home.index()).unwrap();
    let told = home.karyi(&["var", "doctor"], "").exit(1).stdout;
    says(&told, &["the keyring holds TOKEN"]);
    let listed = home.karyi(&["var", "list"], "").exit(0);
    says(&listed.stdout, &["TOKEN", "n0te"]);
    home.karyi(&["var", "doctor"], "").exit(0);
    let script = format!("<tools><command>echo {VALUE}</command></tools>");
    home.script(&script).exit(0).hides(VALUE);
    // One that is cut off is made anew by a run, too, and is not thrown away.
    fs::write(home.index(), "{\"version\":1,").unwrap();
    home.script(&script).exit(0).hides(VALUE);
    says(&home.karyi(&["var", "list"], "").stdout, &["TOKEN", "n0te"]);
    let old = fs::read_to_string(home.index().with_extension("json.damaged"));
    assert_eq!(old.unwrap(), "{\"version\":1,");
}

#[test]
fn a_file_beside_the_keyring_is_told_until_it_is_empty() {
    let bus_home = Home::new();
    let Some(bus) = Bus::start(bus_home.path(), Provider::Unlocked) else {
        return;
    };
    let home = Home::new().env("DBUS_SESSION_BUS_ADDRESS", &bus.address);
    home.set("TOKEN", VALUE, &[]);
    fs::remove_file(home.index()).unwrap();
    let set = ["var", "set", "OTHER", "--stdin", "--vault", "os"];
    home.karyi(&set, "another-value").exit(0);
    let told = home.karyi(&["var", "doctor"], "").exit(1).stdout;
    says(&told, &["vault.age is there", "lists nothing in it"]);
    let migrate = ["var", "migrate", "--vault", "age", "--to", "os"];
    with_identity(&home, &migrate, "").exit(0);
    assert!(!home.path().join("karyi/data/vault.age").exists());
    with_identity(&home, &["var", "doctor", "--repair"], "").exit(0);
    says(
        &home.karyi(&["var", "list"], "").stdout,
        &["OTHER", "TOKEN"],
    );
}

#[test]
fn an_identity_file_that_is_no_file_is_told_at_once() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    fs::remove_file(home.identity()).unwrap();
    nix::unistd::mkfifo(&home.identity(), Mode::S_IRWXU).unwrap();
    let expected = "expected a regular file or a link to one";
    let used = home.script("<tools><command>echo $KARYI{TOKEN}</command></tools>");
    let used = used.exit(3).error("bad_vault");
    says(&used.stdout, &[expected]);
    let set = home.karyi(&["var", "set", "OTHER", "--stdin"], "another-value");
    says(&set.exit(1).error("bad_vault").stderr, &[expected]);
    says(
        &home.karyi(&["var", "doctor"], "").exit(1).stdout,
        &[expected],
    );
}

#[test]
fn an_identity_file_may_be_a_link() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let real = home.work().join("dotfiles-key");
    fs::rename(home.identity(), &real).unwrap();
    symlink(&real, home.identity()).unwrap();
    let key = fs::read_to_string(&real).unwrap();
    let calls = "<tools><command>echo $KARYI{TOKEN}; cat dotfiles-key</command>\
        <read><file src=\"dotfiles-key\"/></read><read><file src=\"../identity\"/></read></tools>";
    let ran = home.karyi(&["run", "--json", "--require-vault", "-c", calls], "");
    let report = ran.exit(1).hides(key.trim()).json();
    let codes: Vec<_> = (0..3).map(|at| &report["results"][at]["code"]).collect();
    let denied = serde_json::Value::from("policy_denied");
    assert_eq!(
        codes,
        [&serde_json::Value::Null, &denied, &denied],
        "{report:#}"
    );
    home.karyi(&["var", "doctor"], "").exit(0);
}

#[test]
fn a_policy_comes_by_a_pipe() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let calls = "<tools><command>echo $KARYI{TOKEN}</command></tools>";
    let script = format!(
        "'{}' run --no-interactive --policy <(printf '[secret.TOKEN]\\ntools = [\"input\"]\\n') -c '{calls}'",
        program().display()
    );
    home.spawn(Path::new("/bin/bash"), &["-c", &script], "")
        .error("policy_denied");
}

#[test]
fn a_vault_that_others_can_write_is_told() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let (data, file) = (
        home.path().join("karyi/data"),
        home.path().join("karyi/data/vault.age"),
    );
    let chmod = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    home.karyi(&["var", "doctor"], "").exit(0);
    chmod(&data, 0o777).unwrap();
    let ran = home.script(FINE).exit(0);
    says(
        &ran.stderr,
        &["others can write to", "mode 0777", "chmod 700"],
    );
    // What a run writes, such as the key of the journal, closes the directory.
    chmod(&data, 0o777).unwrap();
    chmod(&file, 0o666).unwrap();
    chmod(&home.identity(), 0o644).unwrap();
    let told = home.karyi(&["var", "doctor"], "").exit(1).stdout;
    for (path, mode) in [(&data, "0777"), (&file, "0666"), (&home.identity(), "0644")] {
        says(&told, &[&format!("{} ({mode})", path.display())]);
    }
    // The advice is a command.
    let (_, advice) = told.split_once("to do: chmod ").unwrap();
    let command = format!("chmod {}", advice.lines().next().unwrap());
    home.spawn(Path::new("/bin/sh"), &["-c", &command], "")
        .exit(0);
    let ran = home.script(FINE).exit(0);
    assert!(!ran.stderr.contains("others"), "{}", ran.stderr);
    home.karyi(&["var", "doctor"], "").exit(0);
}

#[test]
fn a_lock_that_is_a_link_is_not_followed() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let (lock, target) = (
        home.index().with_extension("lock"),
        home.path().join("made"),
    );
    fs::remove_file(&lock).unwrap();
    symlink(&target, &lock).unwrap();
    home.karyi(&["var", "set", "OTHER", "--stdin"], "another-value")
        .exit(1)
        .error("bad_vault");
    assert!(!target.exists());
}

/// Its directory is on a file system that nobody can write to.
#[test]
fn a_store_that_takes_no_change_can_be_used() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let data = home.path().join("karyi/data").display().to_string();
    let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
    let begin = ["--user", "--map-root-user", "--mount", "sh", "-c", mount];
    let spawn = |program: &Path, args: &[&str]| {
        let program = [data.as_str(), program.to_str().unwrap()];
        let all = [&begin[..], &program, args].concat();
        home.spawn(Path::new("unshare"), &all, "")
    };
    if spawn(Path::new("true"), &[]).code != 0 {
        return skip("nothing can be mounted");
    }
    let script = format!("<tools><command>echo {VALUE}</command></tools>");
    let ran = spawn(program(), &["run", "--require-vault", "-c", &script]);
    ran.exit(0).hides(VALUE);
    let told = spawn(program(), &["var", "doctor"]).exit(1).stdout;
    says(
        &told,
        &[
            "nothing can be changed: read_only: ",
            "index and store agree",
        ],
    );
    assert!(!told.contains("missing"), "{told}");
    home.karyi(&["var", "doctor"], "").exit(0);
}

/// As a program leaves it that is killed while it keeps the first value, or removes the last one.
#[test]
fn what_a_change_left_that_broke_off_is_masked() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let whole: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(home.index()).unwrap()).unwrap();
    let script = format!("<tools><command>echo {VALUE}</command></tools>");
    for (is_listed, generation) in [(true, 3), (true, 4), (false, 3)] {
        let mut index = whole.clone();
        index["generation"] = generation.into();
        match is_listed {
            true => index["names"]["TOKEN"]["is_going"] = true.into(),
            false => index["names"] = serde_json::json!({}),
        }
        fs::write(home.index(), index.to_string()).unwrap();
        for _ in 0..2 {
            let ran = home.script(&script).exit(0).hides(VALUE);
            says(&ran.stdout, &["$KARYI{TOKEN}"]);
        }
    }
}
