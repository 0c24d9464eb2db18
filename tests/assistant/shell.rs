//! The user in the shell of the conversation.

use super::assistant;
use super::tmux::Tmux;
use crate::ask::server::{ModelServer, Reply};
use crate::harness::process::wait_until;
use crate::harness::skip;

/// Start of the line below the prompt of the shell.
const AT_PROMPT: &str = "shell · ";

/// The assistant in tmux, with its shell taken over.
fn taken(server: &ModelServer) -> Option<Tmux> {
    let tmux = Tmux::start(assistant(server, &["--mode", "full"]), 80, 24)?;
    tmux.wait(|screen| screen.contains("openai_chat:tiny"));
    run(&tmux, "/shell ");
    tmux.wait(|screen| screen.contains(AT_PROMPT));
    Some(tmux)
}

fn run(tmux: &Tmux, line: &str) {
    tmux.text(line);
    tmux.key("Enter");
}

/// Returns the visible lines.
fn rows(tmux: &Tmux, is_so: impl Fn(&[&str]) -> bool) -> String {
    tmux.wait_visible(|screen| is_so(&screen.lines().collect::<Vec<_>>()))
}

#[test]
fn what_the_user_does_in_the_shell_stays_in_it() {
    let block = "<tools><command>echo $A; greet; basename $PWD</command></tools>\n";
    let server = ModelServer::start(vec![
        Reply::text("<tools><command>A=model; greet() { echo \"hi $A\"; }</command></tools>\n"),
        Reply::text("Set."),
        Reply::text(block),
        Reply::text("Seen."),
    ]);
    let Some(tmux) = Tmux::start(assistant(&server, &["--mode", "full"]), 80, 24) else {
        return skip("tmux is not installed");
    };
    tmux.wait(|screen| screen.contains("openai_chat:tiny"));
    run(&tmux, "set it");
    tmux.wait(|screen| screen.contains("Set.") && screen.contains("240 tokens"));
    // From the menu, and the state of the live shell is there.
    tmux.key("C-c");
    tmux.wait(|screen| screen.contains("t  take over the shell"));
    tmux.text("t");
    tmux.wait(|screen| screen.contains(AT_PROMPT));
    run(&tmux, "greet");
    tmux.wait(|screen| screen.contains("\nhi model\n"));
    run(&tmux, "mkdir -p deep; cd deep; A='typed by hand'");
    tmux.wait(|screen| screen.contains("/deep · Ctrl+]"));
    run(&tmux, "false");
    tmux.wait(|screen| screen.contains("/deep · exit 1 · Ctrl+]"));
    run(&tmux, "karyi-back");
    tmux.wait(|screen| screen.contains("back in the conversation"));
    run(&tmux, "go on");
    let all = tmux.wait(|screen| screen.contains("Seen."));
    assert!(
        all.contains("typed by hand\n") && all.contains("hi typed by hand"),
        "{all}"
    );
    let asked = server.requests()[2]["messages"].to_string();
    assert!(
        asked.contains("The user worked in the shell by hand. Its directory is "),
        "{asked}"
    );
    assert!(
        asked.contains("/deep; variables and files may have changed."),
        "{asked}"
    );
    assert!(!asked.contains("mkdir"), "{asked}");
    let told = server.requests()[3]["messages"].to_string();
    assert!(told.contains("hi typed by hand\\ndeep"), "{told}");
}

#[test]
fn a_pager_opens_follows_the_size_and_quits() {
    let server = ModelServer::start(vec![]);
    let Some(tmux) = taken(&server) else {
        return skip("tmux is not installed");
    };
    run(&tmux, "seq 1000 > numbers; less numbers");
    rows(&tmux, |rows| {
        rows.first() == Some(&"1") && rows.get(22) == Some(&"23")
    });
    tmux.key("Space");
    rows(&tmux, |rows| rows.first() == Some(&"24"));
    tmux.resize(60, 12);
    rows(&tmux, |rows| {
        rows.len() == 12 && rows.get(10) == Some(&"34")
    });
    tmux.text("q");
    let all = tmux.wait(|screen| screen.contains(AT_PROMPT) && !screen.contains("\n34\n"));
    assert!(all.contains("$ seq 1000 > numbers; less numbers"), "{all}");
    run(&tmux, "stty size");
    tmux.wait(|screen| screen.contains("\n12 60\n"));
}

#[test]
fn an_editor_edits_and_quits() {
    let server = ModelServer::start(vec![]);
    let Some(tmux) = taken(&server) else {
        return skip("tmux is not installed");
    };
    if std::process::Command::new("vim")
        .arg("--version")
        .output()
        .is_err()
    {
        return skip("vim is not installed");
    }
    run(&tmux, "vim -u NONE -N new.txt; cat new.txt");
    rows(&tmux, |rows| rows.get(1) == Some(&"~"));
    tmux.text("ihello");
    tmux.key("Escape");
    tmux.resize(70, 20);
    rows(&tmux, |rows| {
        rows.first() == Some(&"hello") && rows.get(17) == Some(&"~")
    });
    run(&tmux, ":wq");
    tmux.wait(|screen| screen.contains("\nhello\n") && screen.contains(AT_PROMPT));
}

#[test]
fn one_key_leaves_a_program_that_goes_on_and_the_next_visit_returns_to_it() {
    let server = ModelServer::start(vec![Reply::text("Noted.")]);
    let Some(tmux) = taken(&server) else {
        return skip("tmux is not installed");
    };
    run(&tmux, "seq 1000 > numbers; less numbers");
    rows(&tmux, |rows| rows.get(22) == Some(&"23"));
    tmux.key("C-]");
    tmux.wait(|screen| screen.contains("the program goes on, and /shell returns to it"));
    run(&tmux, "what now?");
    tmux.wait(|screen| screen.contains("Noted.") && !screen.contains("● "));
    let asked = server.requests()[0]["messages"].to_string();
    assert!(
        asked.contains("A program of the user still has its terminal"),
        "{asked}"
    );
    run(&tmux, "/shell ");
    rows(&tmux, |rows| {
        rows.first() == Some(&"1") && rows.get(22) == Some(&"23")
    });
    tmux.text("q");
    tmux.wait(|screen| screen.contains(AT_PROMPT));
    // A program that only waits is left the same way, and Ctrl+C is for it alone.
    run(&tmux, "sleep 600");
    tmux.wait(|screen| screen.contains("$ sleep 600\n") && !screen.contains(AT_PROMPT));
    tmux.key("C-c");
    tmux.wait(|screen| screen.contains("exit 130"));
    tmux.key("C-]");
    tmux.wait(|screen| screen.matches("back in the conversation").count() == 2);
}

#[test]
fn values_are_masked_and_nothing_that_was_typed_is_kept() {
    let server = ModelServer::start(vec![Reply::text("Done.")]);
    let home = tempfile::tempdir().unwrap();
    let karyi = assistant(&server, &["--mode", "full"]).env("KARYI_HOME", home.path());
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("/shell \r").expect(AT_PROMPT);
    terminal
        .forget()
        .keys("printf '%s\\n' \"sk-test\"'-9f8e7d6c5b4a'; read -p 'name: ' x; (exit 3)\r");
    terminal
        .expect("$KARYI{OPENAI_API_KEY}")
        .expect("name: ")
        .keys("unheard-of\r");
    terminal
        .expect("unheard-of")
        .expect("exit 3 ·")
        .keys("\x04");
    terminal
        .expect("back in the conversation")
        .keys("hi\r")
        .expect("Done.");
    terminal.keys("\x04");
    let screen = terminal.screen();
    assert!(!screen.contains("sk-test-9f8e7d6c5b4a"), "{screen}");
    assert_eq!(terminal.echo_at_end(), (true, 0));
    let mut kept = String::new();
    for entry in ignore::WalkBuilder::new(home.path())
        .standard_filters(false)
        .build()
        .flatten()
    {
        if entry.path().is_file() {
            kept += &String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap());
        }
    }
    assert!(
        kept.contains("The user worked in the shell by hand"),
        "{kept}"
    );
    for text in ["unheard-of", "printf", "name: "] {
        assert!(!kept.contains(text), "{text} in {kept}");
    }
}

#[test]
fn the_terminal_is_given_back_when_a_signal_ends_it() {
    let server = ModelServer::start(vec![]);
    let karyi = assistant(&server, &[]);
    let pid = karyi.work().join("pid");
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("/shell \r").expect(AT_PROMPT);
    terminal.keys("echo $$ > pid; sleep 600\r");
    wait_until(|| std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
    let pid = std::fs::read_to_string(&pid).unwrap();
    let program = nix::unistd::Pid::from_raw(terminal.pid());
    nix::sys::signal::kill(program, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(terminal.echo_at_end(), (true, 143));
    let gone = format!("/proc/{}", pid.trim());
    wait_until(|| !std::path::Path::new(&gone).exists());
}
