//! What is listed without a value, what is removed together, and a home that is not there.

use std::fs;

use serde_json::{Value, json};

use super::home::Home;
use super::var::VALUE;

/// The names and states that are listed.
fn states(home: &Home, more: &[&str]) -> Vec<(Value, Value)> {
    let listed = home.karyi(&[&["var", "list", "--json"], more].concat(), "");
    let listed = listed.exit(0);
    assert_eq!(listed.stderr, "");
    let secrets = listed.json()["secrets"].as_array().unwrap().clone();
    let pair = |secret: &Value| (secret["name"].clone(), secret["state"].clone());
    secrets.iter().map(pair).collect()
}

#[test]
fn a_file_is_listed_without_its_values() {
    let home = Home::new();
    home.set("ONE", VALUE, &["--note", "for deploys"]);
    home.set("TWO", VALUE, &[]);
    let all = |state: &str| {
        let pair = |name: &str| (json!(name), json!(state));
        vec![pair("ONE"), pair("TWO")]
    };
    assert_eq!(states(&home, &[]), all("unknown"));
    // Nothing that opens the file is there, and nothing to be opened.
    let (identity, vault) = (home.identity(), home.path().join("karyi/data/vault.age"));
    let (aside, kept) = (home.work().join("aside"), fs::read(&vault).unwrap());
    fs::rename(&identity, &aside).unwrap();
    fs::write(&vault, "no file of age").unwrap();
    assert_eq!(states(&home, &[]), all("unknown"));
    let named = [
        "--vault",
        "age",
        "--age-identity",
        identity.to_str().unwrap(),
    ];
    assert_eq!(states(&home, &named), all("unknown"));
    let shown = home.karyi(&["var", "show", "ONE"], "").exit(0);
    assert_eq!(shown.stderr, "");
    for line in ["state        unknown\n", "note         for deploys\n"] {
        assert!(shown.stdout.contains(line), "{}", shown.stdout);
    }
    let table = home.karyi(&["var", "list"], "").exit(0).stdout;
    assert!(!table.contains("unknown"), "{table}");
    // The comparison is for the doctor.
    home.karyi(&["var", "doctor"], "").exit(1);
    fs::rename(&aside, &identity).unwrap();
    fs::write(&vault, kept).unwrap();
    home.karyi(&["var", "doctor"], "").exit(0);
    // That the file is gone is seen without it.
    fs::remove_file(&vault).unwrap();
    assert_eq!(states(&home, &[]), all("missing value"));
}

#[test]
fn all_that_are_named_are_removed_or_none() {
    let home = Home::new();
    for name in ["ONE", "TWO", "THREE"] {
        home.set(name, VALUE, &[]);
    }
    let names = || {
        let states = states(&home, &[]).into_iter();
        states.map(|(name, _)| name).collect::<Vec<_>>()
    };
    let told = |args: &[&str]| {
        let ran = home.karyi(&[&["var", "rm"], args].concat(), "").exit(1);
        assert_eq!(names(), ["ONE", "THREE", "TWO"]);
        ran.stderr
    };
    assert_eq!(
        told(&["ONE", "NOPE", "TWO", "NEITHER"]),
        "karyi: not_found: there is no secret called NEITHER, NOPE; nothing was removed\n\
         karyi: hint: see `karyi var list`; without them the others are removed\n"
    );
    assert_eq!(
        told(&["NOPE"]),
        "karyi: not_found: there is no secret called NOPE\nkaryi: hint: see `karyi var list`\n"
    );
    home.karyi(&["var", "rm", "ONE", "TWO", "ONE"], "").exit(0);
    assert_eq!(names(), ["THREE"]);
}

#[test]
fn a_home_behind_a_link_to_nothing_is_told() {
    let home = Home::new();
    let (link, target) = (home.path().join("karyi"), home.path().join("disk"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let said = format!(
        "does not exist: {} is a link to {}, which does not exist",
        link.display(),
        target.display()
    );
    let identity = home.identity();
    let set = [
        "var",
        "set",
        "TOKEN",
        "--stdin",
        "--vault",
        "age",
        "--age-identity",
        identity.to_str().unwrap(),
    ];
    for args in [
        set.as_slice(),
        &["var", "list"],
        &["var", "doctor"],
        &[
            "run",
            "--no-interactive",
            "-c",
            "<tools><command>touch ran</command></tools>",
        ],
    ] {
        let ran = home.karyi(args, VALUE).exit(3).error("vault_unavailable");
        assert!(ran.stderr.contains(&said), "{args:?}: {}", ran.stderr);
    }
    for args in [["history"].as_slice(), &["serve", "--port", "0"]] {
        let ran = home.karyi(args, "");
        assert!(ran.stderr.contains(&said), "{args:?}: {}", ran.stderr);
    }
    assert!(!home.work().join("ran").exists() && !target.exists());
    // A link to a directory is as good as the directory.
    fs::create_dir(&target).unwrap();
    home.karyi(&set, VALUE).exit(0);
    assert!(target.join("data/vault.age").exists());
}
