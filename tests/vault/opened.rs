//! Which store a run opens, and what it is given to open it with.

use std::fs;

use super::home::Home;
use super::var::VALUE;

#[test]
fn a_damaged_index_changes_no_choice() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let index = fs::read_to_string(home.index()).unwrap();
    fs::write(home.work().join("whole"), &index).unwrap();
    // The index is mended while the run goes on.
    let mend = format!(
        "<tools><command>cat whole > '{}'</command></tools>\n",
        home.index().display()
    );
    let used = "<tools><command>printf %s \"$KARYI{TOKEN}\" | wc -c; echo VALUE</command></tools>";
    let run = |store: &str| {
        fs::write(home.index(), "{").unwrap();
        let script = format!("{mend}{}", used.replace("VALUE", VALUE));
        home.karyi(&["run", "--no-interactive", "--vault", store, "-"], &script)
    };
    for store in ["auto", "age"] {
        let ran = run(store).exit(0).hides(VALUE);
        assert!(
            ran.stdout.contains(">39\n$KARYI{TOKEN}\n"),
            "{}",
            ran.stdout
        );
        let told = ran.stdout.matches("redaction_incomplete").count();
        assert_eq!(told, 1, "{}", ran.stdout);
    }
    for store in ["memory", "env", "os"] {
        let ran = run(store).exit(2).error("undefined_variable");
        assert!(
            ran.stdout.contains("redaction_incomplete"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn a_descriptor_without_a_passphrase_is_wrong_usage() {
    let home = Home::new();
    let run = |content: &[u8]| {
        let args = ["run", "--no-interactive", "--age-passphrase-fd", "3", "-c"];
        let script = "<tools><command>touch ran</command></tools>";
        home.karyi_with_fd(&[&args[..], &[script]].concat(), content)
    };
    for content in [&b""[..], b"\n", b"\xff\xfe", &[b'x'; 5000]] {
        run(content).exit(2).error("bad_value");
    }
    let closed = [
        "run",
        "--no-interactive",
        "--age-passphrase-fd",
        "77",
        "-c",
        "<tools/>",
    ];
    home.karyi(&closed, "").exit(2).error("bad_arguments");
    assert!(!home.work().join("ran").exists());
    run(b"a passphrase\n").exit(0);
}

#[test]
fn a_program_that_cannot_be_run_is_told_as_shells_do() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    fs::write(home.work().join("plain"), "no program").unwrap();
    for (program, status) in [("no-such-program-here", 127), ("./plain", 126), (".", 126)] {
        let ran = home.karyi(&["var", "exec", "TOKEN", "--", program], "");
        let ran = ran.exit(status);
        assert!(
            ran.stderr.contains("cannot be run") && !ran.stderr.contains("<read>"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn directories_may_be_named_from_here() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &["--dirs", "../home,./sub"]);
    let shown = home.karyi(&["var", "show", "TOKEN", "--json"], "").exit(0);
    let expected = [home.path().join("home"), home.work().join("sub")];
    let expected = expected.map(|path| path.display().to_string());
    assert_eq!(shown.json()["policy"]["dirs"], serde_json::json!(expected));
    let away = ["var", "set", "TOKEN", "--keep-value", "--dirs", "../none"];
    let refused = home.karyi(&away, "").exit(2).error("bad_policy");
    assert!(
        refused.stderr.contains("without .. in it") && refused.stderr.contains("pwd"),
        "{}",
        refused.stderr
    );
}
