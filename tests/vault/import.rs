//! `karyi var import`: what it keeps, and of what is there already.

use std::fs;
use std::path::Path;

use super::home::Home;
use super::told::put;
use super::var::VALUE;
use crate::harness::program;

fn import(home: &Home, text: &str, more: &[&str]) -> super::home::Ran {
    fs::write(home.work().join(".env"), text).unwrap();
    home.karyi(&[&["var", "import", ".env"], more].concat(), "")
}

#[test]
fn a_new_value_keeps_note_and_policy() {
    let home = Home::new();
    let dir = home.work().display().to_string();
    let policy = ["--use", "ask", "--dirs", &dir, "--commands", "gh"];
    home.set(
        "DEPLOY_KEY",
        VALUE,
        &[&policy[..], &["--note", "n"]].concat(),
    );
    home.set("PLAIN_KEY", VALUE, &[]);
    let shown = |name: &str| {
        let shown = home.karyi(&["var", "show", name, "--json"], "");
        let shown = shown.exit(0).json();
        (shown["note"].clone(), shown["policy"].clone())
    };
    let before = shown("DEPLOY_KEY");
    let text = "DEPLOY_KEY=the-second-value\nPLAIN_KEY=the-other-value\n";
    import(&home, text, &["--all", "--replace"]).exit(0);
    assert_eq!(shown("DEPLOY_KEY"), before);
    assert_eq!(shown("PLAIN_KEY").0, "from .env");
    // What is said counts, and the rest stays.
    import(&home, text, &["--all", "--replace", "--use", "session"]).exit(0);
    let (note, policy) = shown("DEPLOY_KEY");
    assert_eq!((&note, &policy["use"]), (&before.0, &"session".into()));
    assert_eq!(policy["commands"], before.1["commands"]);
    let used = "<tools><command>printf %s \"$KARYI{PLAIN_KEY}\" | wc -c</command></tools>";
    assert!(home.script(used).exit(0).stdout.contains(">15\n"));
}

#[test]
fn a_value_that_is_not_listed_is_not_replaced() {
    let home = Home::new();
    home.set("DEPLOY_KEY", VALUE, &[]);
    home.set("OTHER_KEY", "the-other-value", &[]);
    let index = fs::read_to_string(home.index()).unwrap();
    let mut index: serde_json::Value = serde_json::from_str(&index).unwrap();
    index["names"].as_object_mut().unwrap().remove("DEPLOY_KEY");
    fs::write(home.index(), index.to_string()).unwrap();
    let ran = import(&home, "DEPLOY_KEY=the-second-value\n", &["--all"]).exit(0);
    assert!(
        ran.stderr.contains("DEPLOY_KEY is kept already"),
        "{}",
        ran.stderr
    );
    let used = "<tools><command>printf %s \"$KARYI{DEPLOY_KEY}\" | wc -c</command></tools>";
    assert!(home.script(used).exit(0).stdout.contains(">39\n"));
}

#[test]
fn a_damaged_record_gets_no_other_policy_and_hinders_no_other_entry() {
    let home = Home::new();
    home.set("LISTED_KEY", VALUE, &["--use", "ask"]);
    put(
        &home,
        "LISTED_KEY",
        "karyi-secret 2 {}\nvalue-of-a-newer-karyi",
    );
    put(
        &home,
        "STRAY_KEY",
        "karyi-secret 2 {}\nvalue-of-another-one",
    );
    let text = "STRAY_KEY=the-first-value\nLISTED_KEY=the-second-value\nNEW_KEY=the-third-value\n";
    let ran = import(&home, text, &["--all", "--replace"]).exit(1);
    for told in [
        "warning: line 1: the policy of STRAY_KEY in the store cannot be read; say with the new value",
        "warning: the policy of LISTED_KEY in the store cannot be read; what it may be used for is now what",
        "kept 2 in the store age",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
    let shown = home.karyi(&["var", "show", "LISTED_KEY", "--json"], "");
    assert_eq!(shown.exit(0).json()["policy"]["use"], "ask");
    let used = "<tools><command>echo $KARYI{STRAY_KEY}</command></tools>";
    home.script(used).exit(3).error("vault_unavailable");
    import(&home, text, &["--all", "--replace", "--use", "ask"]).exit(0);
    let shown = home.karyi(&["var", "show", "STRAY_KEY", "--json"], "");
    assert_eq!(shown.exit(0).json()["policy"]["use"], "ask");
}

/// What is no file may be a value that was typed in its place.
#[test]
fn a_file_that_is_not_there_is_told_to_a_person_and_not_repeated() {
    let home = Home::new();
    fs::write(home.work().join("file"), "").unwrap();
    let long = format!("TOKEN={}", "a-value".repeat(50));
    for (path, code) in [
        ("nowhere/.env", "not_found"),
        ("TOKEN=a-value-of-somebody", "not_found"),
        ("ghp_a-value-of-somebody", "not_found"),
        ("file/a=a-value-of-somebody", "not_a_directory"),
        (&long, "name_too_long"),
    ] {
        let ran = home.karyi(&["var", "import", path], "").exit(1);
        let told = format!(
            "karyi: {code}: there is no such file to import\n\
             karyi: hint: name a file of KEY=value lines that you can read\n"
        );
        assert_eq!(ran.stderr, told);
    }
    let ran = home.karyi(&["var", "import", "."], "").exit(1);
    assert!(
        ran.stderr.contains("karyi: is_directory: .: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_was_kept_is_told_where_it_stops() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let large: String = (0..900).map(|number| format!("{number:016}")).collect();
    let text = format!("ONE_KEY=the-first-value\nTWO_KEY={large}\nTHREE_KEY=the-third-value\n");
    fs::write(home.work().join(".env"), text).unwrap();
    // No file may become larger than this many blocks, and the program is told instead of killed.
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" var import .env --all";
    let args = ["-c", limited, program().to_str().unwrap()];
    let ran = home.spawn(Path::new("/bin/bash"), &args, "").exit(1);
    let told = "kept 1 in the store age, and stopped at line 2, of TWO_KEY";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let listed = home.karyi(&["var", "list"], "").exit(0).stdout;
    assert!(
        listed.contains("ONE_KEY") && !listed.contains("THREE_KEY"),
        "{listed}"
    );
}

#[test]
fn of_lines_with_one_name_the_last_one_counts() {
    let home = Home::new();
    home.set("KEPT_TOKEN", VALUE, &[]);
    let text = "A_TOKEN=the-first-value\nB_TOKEN=another-value\nA_TOKEN=the-last-value\n";
    let warning = "lines 1 and 3 have the same name; the last one counts";
    let proposed = import(&home, text, &[]).exit(0);
    assert_eq!(proposed.stdout, "B_TOKEN\nA_TOKEN\n");
    let kept = import(&home, text, &["--all"]).exit(0);
    for told in [&proposed.stderr, &kept.stderr] {
        assert!(told.contains(warning), "{told}");
    }
    let used = "<tools><command>printf %s \"$KARYI{A_TOKEN}\" | wc -c</command></tools>";
    assert!(home.script(used).exit(0).stdout.contains(">14\n"));
    // What is no secret at last is none.
    let text = "C_TOKEN=the-first-value\nC_TOKEN=\n";
    assert_eq!(import(&home, text, &[]).exit(0).stdout, "");
}
