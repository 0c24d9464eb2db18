//! Which store a run opens, and what it is given to open it with.

use std::fs;

use super::bus::{Bus, Provider};
use super::home::{Home, Ran};
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

/// Runs a script behind a block that waits until something was done beside the session.
fn beside(home: &Home, script: &str, work: impl FnOnce()) -> Ran {
    let [come, go] = ["come", "go"].map(|name| home.work().join(name));
    for pipe in [&come, &go] {
        nix::unistd::mkfifo(pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let script = format!("<tools><command>: > come; cat go</command></tools>\n{script}");
    std::thread::scope(|scope| {
        let run = scope.spawn(|| home.script(&script));
        // It ends when the block has begun.
        fs::read(&come).unwrap();
        work();
        fs::write(&go, "").unwrap();
        run.join().unwrap()
    })
}

/// Blocks that show a value, use it, and change a file that holds it.
fn later() -> String {
    let edit = "<file src=\"held\"><find>one</find><replace>two</replace></file>";
    format!(
        "<tools><command>echo {VALUE}</command></tools>\n\
         <tools><command>printf %s \"$KARYI{{TOKEN}}\" | wc -c</command></tools>\n\
         <tools><edit>{edit}</edit></tools>"
    )
}

#[track_caller]
fn check_later(ran: &Ran) {
    for part in [">$KARYI{TOKEN}\n", ">39\n", "unavailable"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

#[test]
fn the_store_of_the_first_value_ever_is_used_by_sessions_that_run() {
    let home = Home::new();
    fs::write(home.work().join("held"), format!("{VALUE} one\n")).unwrap();
    let ran = beside(&home, &later(), || home.set("TOKEN", VALUE, &[]));
    let ran = ran.exit(0).hides(VALUE);
    check_later(&ran);
    assert!(
        !ran.stdout.contains("redaction_incomplete"),
        "{}",
        ran.stdout
    );
    fs::remove_file(home.work().join("held")).unwrap();
    home.assert_nowhere(VALUE);
}

#[test]
fn a_file_whose_index_comes_back_is_opened_by_sessions_that_run() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let index = fs::read(home.index()).unwrap();
    fs::remove_file(home.index()).unwrap();
    fs::write(home.work().join("held"), format!("{VALUE} one\n")).unwrap();
    let ran = beside(&home, &later(), || fs::write(home.index(), index).unwrap());
    let ran = ran.exit(0).hides(VALUE);
    check_later(&ran);
    let told = ran.stdout.matches("redaction_incomplete").count();
    assert_eq!(told, 1, "{}", ran.stdout);
}

#[test]
fn the_keyring_of_the_first_value_ever_is_used_by_sessions_that_run() {
    let bus_home = Home::new();
    let Some(bus) = Bus::start(bus_home.path(), Provider::Unlocked) else {
        return;
    };
    let home = Home::new().env("DBUS_SESSION_BUS_ADDRESS", &bus.address);
    fs::write(home.work().join("held"), format!("{VALUE} one\n")).unwrap();
    let set = ["var", "set", "TOKEN", "--stdin"];
    let ran = beside(&home, &later(), || {
        home.karyi(&set, VALUE).exit(0);
    });
    check_later(&ran.exit(0).hides(VALUE));
}
