//! Conversations on the screen: answers, calls, interruption, the user's own commands, signals.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::assistant;
use crate::ask::server::{ModelServer, Reply};

#[test]
fn an_answer_streams_and_its_calls_have_cards() {
    let block = "I **look**.\n<tools><command>echo h; echo i; exit 3</command></tools>\n";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("It says hi.")]);
    let mut terminal = assistant(&server, &["--mode", "full"]).on_terminal();
    terminal.expect("/help").keys("what does it say?\r");
    terminal.expect("I look.").expect("exit 3").expect("│ i");
    terminal
        .expect("It says hi.")
        .expect("exit 3 · openai_chat:tiny");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0]["messages"][1], requests[1]["messages"][1]);
    terminal
        .forget()
        .keys("/cost\r")
        .expect("1 turn, 2 requests, 200 tokens in, 40 out, cost ?");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_bold_word_is_bold_and_code_has_colours() {
    let answer = "I **look**.\n\n```sh\necho \"text\"\n```\n";
    let server = ModelServer::start(vec![Reply::text(answer)]);
    let karyi = assistant(&server, &[]).env("NO_COLOR", "");
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("go\r");
    terminal.expect("I \x1b[1mlook\x1b[0m.").expect("text");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn only_reads_run_in_the_mode_read_only() {
    let block = "<tools><read><file src=\"f\"/></read><command>touch ran</command></tools>";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("I may not.")]);
    let karyi = assistant(&server, &["--mode", "read-only"]).file("f", "seen\n");
    let work = karyi.work();
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("why?\r").expect("✓ read f");
    terminal.expect("✗ command touch ran").expect("I may not.");
    assert!(!work.join("ran").exists());
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn escape_ends_the_call_and_the_shell_lives_on() {
    let block =
        "<tools><command>cd /; A=kept; echo $$ > $OLDPWD/pid; sleep 600</command></tools>\n";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("Again.")]);
    let karyi = assistant(&server, &["--mode", "full"]);
    let pid = karyi.work().join("pid");
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("wait\r").expect("sleep 600");
    crate::harness::process::wait_until(|| {
        std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'))
    });
    terminal.forget().keys("\x1b").expect("interrupted");
    let pid = std::fs::read_to_string(&pid).unwrap();
    terminal
        .keys("!echo $A $$ $PWD\r")
        .expect(&format!("kept {} /", pid.trim()));
    terminal.keys("go on\r").expect("Again.");
    let told = server.requests()[1]["messages"].to_string();
    assert!(
        told.contains("The user ran a command") && told.contains("kept"),
        "{told}"
    );
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_text_joins_the_turn_at_its_next_request() {
    let block = "<tools><command>echo hi</command></tools>\n";
    let (reply, gate) = Reply::gated(vec![block.into()]);
    let server = ModelServer::start(vec![reply, Reply::text("Second."), Reply::text("Third.")]);
    let mut terminal = assistant(&server, &["--mode", "full"]).on_terminal();
    terminal
        .expect("/help")
        .keys("one\r")
        .expect("waiting for the model");
    terminal.keys("two\r").expect("next: two");
    terminal.keys("three\t").expect("after this: three");
    gate.send(()).unwrap();
    terminal
        .expect("> two")
        .expect("Second.")
        .expect("> three")
        .expect("Third.");
    let requests = server.requests();
    let messages = requests[1]["messages"].as_array().unwrap();
    let last = messages[3]["content"].as_str().unwrap();
    assert!(last.contains("<results") && last.ends_with("two"), "{last}");
    assert_eq!(requests.len(), 3);
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_text_that_waits_is_edited_again_and_returns_on_escape() {
    let server = ModelServer::start(vec![Reply::Silence("Hm".into())]);
    let mut terminal = assistant(&server, &[]).on_terminal();
    terminal.expect("/help").keys("one\r").expect("answering");
    terminal.keys("two\r").expect("next: two").forget();
    terminal
        .keys("\x1b[A")
        .expect("> two")
        .keys(" more\r")
        .expect("next: two more");
    terminal
        .forget()
        .keys("\x1b")
        .expect("interrupted")
        .expect("> two more");
    // Ctrl+C clears the input, and then opens the menu.
    terminal
        .keys("\x03")
        .keys("\x03")
        .expect("changed files")
        .keys("q");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_program_that_waits_is_named_in_the_status_line() {
    let name = "<tools><command>read -p 'name: ' x</command></tools>";
    let secret =
        "<tools><ctrl end=\"true\">c</ctrl><command>read -s -p 'secret: ' x</command></tools>";
    let server = ModelServer::start(vec![
        Reply::text(name),
        Reply::text("It asks."),
        Reply::text(secret),
        Reply::text("Type it."),
    ]);
    let mut terminal = assistant(&server, &["--mode", "full"]).on_terminal();
    terminal
        .expect("/help")
        .keys("go\r")
        .expect("waiting for input")
        .expect("It asks.");
    terminal
        .forget()
        .keys("go on\r")
        .expect("Type it.")
        .expect("waiting for a password");
    // What may be the password is not sent at once.
    terminal
        .keys("hunter2-hunter2\r")
        .expect("/shell lets you type it");
    terminal.keys("\x15\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_command_of_the_user_that_waits_has_their_keyboard() {
    let server = ModelServer::start(vec![Reply::text("Seen.")]);
    let mut terminal = assistant(&server, &[]).on_terminal();
    terminal
        .expect("/help")
        .keys("!read -s -p 'secret: ' x; echo got ${#x}\r")
        .expect("Ctrl+] returns")
        // The screen has left the terminal to the program.
        .expect("\x1b[?2004l");
    terminal
        .keys("hunter2-hunter2\r")
        .expect("got 15")
        .expect("back in the conversation");
    terminal.keys("what was it?\r").expect("Seen.");
    let sent = server.requests()[0].to_string();
    assert!(
        sent.contains("by hand") && !sent.contains("hunter2"),
        "{sent}"
    );
    terminal.keys("\x04");
    let (screen, status) = terminal.end();
    assert!(!screen.contains("hunter2"), "{screen}");
    assert_eq!(status, 0);
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let block = "<tools><command>echo $$ > pid; exec sleep 600</command></tools>\n";
    for (signal, status) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let server = ModelServer::start(vec![Reply::text(block)]);
        let karyi = assistant(&server, &["--mode", "full"]);
        let pid = karyi.work().join("pid");
        let mut terminal = karyi.on_terminal();
        terminal.expect("/help").keys("wait\r").expect("sleep 600");
        crate::harness::process::wait_until(|| {
            std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'))
        });
        let pid = std::fs::read_to_string(&pid).unwrap();
        let began = crate::harness::process::start_time(&pid);
        kill(Pid::from_raw(terminal.pid()), signal).unwrap();
        assert_eq!(terminal.echo_at_end(), (true, status), "{signal}");
        crate::harness::process::wait_for_end(&pid, began);
    }
}

#[test]
fn hostile_text_stays_visible_and_does_nothing() {
    let hostile = "a\x1b]52;c;eA==\x07b\x1b]0;title\x07\u{202E}c&#27;[2J\n\n";
    let block = "<tools><command>printf 'x\\033]52;c;eA==\\007y\\n'</command></tools>\n";
    let server = ModelServer::start(vec![
        Reply::text(&format!("{hostile}{block}")),
        Reply::text("Done."),
    ]);
    let mut terminal = assistant(&server, &["--mode", "full"]).on_terminal();
    terminal.expect("/help").keys("go\r").expect("Done.");
    let screen = terminal.screen();
    assert!(
        screen.contains("a␛]52;c;eA==␇b␛]0;title␇\u{FFFD}c␛[2J"),
        "{screen:?}"
    );
    for sequence in ["\x1b]", "\x1b[2J", "\u{202E}"] {
        assert!(!screen.contains(sequence), "{sequence:?} in {screen:?}");
    }
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn plain_lines_move_no_cursor() {
    let server = ModelServer::start(vec![Reply::text("It **is**.\n")]);
    let mut terminal = assistant(&server, &["--plain"]).on_terminal();
    terminal.expect("> ").keys("is it?\r").expect("It is.");
    terminal.keys("/quit\r");
    let (screen, status) = terminal.end();
    assert_eq!(status, 0);
    assert!(!screen.contains('\x1b'), "{screen:?}");
    assert!(screen.contains("goes on with this chat"), "{screen:?}");
}

#[test]
fn plain_lines_answer_questions_about_calls_and_for_values() {
    let block = "<tools><command>touch one</command><command>touch two</command></tools>";
    let value = "<tools><get_value key=\"TOKEN\" reason=\"to test\"/></tools>";
    let replies = vec![Reply::text(block), Reply::text(value), Reply::text("Done.")];
    let server = ModelServer::start(replies);
    let karyi = assistant(&server, &["--plain", "--mode", "ask", "--vault", "memory"]);
    let work = karyi.work();
    let mut terminal = karyi.on_terminal();
    terminal.expect("> ").keys("go\r").expect("(1 of 2)?");
    terminal.keys("why?\r").expect("q interrupt").forget();
    terminal.keys("y\r").expect("(2 of 2)?").keys("n not two\r");
    terminal
        .expect("value (hidden")
        .keys("kP7-vQ2.zL9\r")
        .expect("keep it")
        .keys("\r")
        .expect("Done.");
    assert!(work.join("one").exists() && !work.join("two").exists());
    terminal.keys("/quit\r");
    let (screen, status) = terminal.end();
    assert_eq!(status, 0);
    let sent: String = server.raw().into_iter().map(|(_, body)| body).collect();
    for text in [sent, screen] {
        assert!(!text.contains("kP7-vQ2.zL9"), "{text}");
    }
}

#[test]
fn a_line_before_a_question_is_no_answer_to_it() {
    let block = "<tools><command>touch one</command></tools>";
    let (reply, gate) = Reply::gated(vec!["One moment.\n\nI look.\n\n".into(), block.into()]);
    let server = ModelServer::start(vec![reply, Reply::text("Done.")]);
    let karyi = assistant(&server, &["--plain", "--mode", "ask"]);
    let work = karyi.work();
    let mut terminal = karyi.on_terminal();
    terminal.expect("> ").keys("go\r");
    gate.send(()).unwrap();
    terminal.expect("One moment.").keys("y\r").expect("y\r\n");
    gate.send(()).unwrap();
    terminal.expect("Enter sends").keys("n not now\r");
    terminal.expect("does not want it: not now").expect("Done.");
    assert!(!work.join("one").exists());
    terminal.keys("/quit\r");
    assert_eq!(terminal.end().1, 0);
}

#[test]
fn without_a_terminal_it_is_said_what_to_use() {
    let server = ModelServer::start(vec![]);
    let ran = assistant(&server, &[]).run().exit(2);
    let said = ran.stderr_text();
    assert!(said.contains("`karyi ask TEXT`"), "{said}");
}

#[test]
fn texts_that_wait_go_on_behind_a_command_and_return_after_a_failure() {
    let (reply, gate) = Reply::gated(vec!["First.".into()]);
    let server = ModelServer::start(vec![
        reply,
        Reply::text("Second."),
        Reply::Status(400, "{}"),
    ]);
    let mut terminal = assistant(&server, &[]).on_terminal();
    terminal.expect("/help").keys("one\r").expect("waiting for");
    terminal
        .keys("   \t")
        .keys("\x15/cost\t\t")
        .expect("after this: /cost");
    terminal.keys("two\t").keys("three\t").keys("four\t");
    terminal.expect("after this: four");
    gate.send(()).unwrap();
    terminal
        .expect("1 turn, 1 request")
        .expect("Second.")
        .expect("hint:");
    terminal.expect("\n> four");
    assert_eq!(server.requests().len(), 3);
    terminal.keys("\x03\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_new_conversation_shows_nothing_of_the_one_before() {
    let plan = "<tools><plan><step state=\"active\">look</step></plan></tools>";
    let server = ModelServer::start(vec![Reply::text(plan), Reply::text("Done.")]);
    let mut terminal = assistant(&server, &[]).on_terminal();
    terminal.expect("/help").keys("one\r").expect("Done.");
    terminal.keys("/todo\r").expect("[>] look").forget();
    terminal.keys("/clear\r").expect("a new conversation");
    terminal.keys("/todo\r").expect("the model has no plan");
    terminal.keys("/cost\r").expect("0 turns, 0 requests");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn undo_takes_back_the_edits_of_the_turn_while_the_screen_lives() {
    let block =
        "<tools><edit><file src=\"a\"><find>old</find><replace>new</replace></file></edit></tools>";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("Done.")]);
    let karyi = assistant(&server, &["--mode", "full"]).file("a", "old\n");
    let file = karyi.work().join("a");
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("go\r").expect("Done.");
    terminal.keys("/diff\r").expect("+ new").forget();
    terminal.keys("/undo\r").expect("undid change");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old\n");
    terminal
        .keys("/undo\r")
        .expect("the last turn changed no files");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn pieces_of_a_value_in_an_answer_never_reach_the_screen() {
    let value = "kP7-vQ2.zL9-tR4w";
    let pieces = [
        "The key is k",
        "P7",
        "-vQ2.z",
        "L9-tR4",
        "w, and **k",
        "P7-vQ2.zL9-tR4w",
        "** too.\n\nDone.",
    ];
    let (reply, gate) = Reply::gated(pieces.map(str::to_owned).into());
    let server = ModelServer::start(vec![reply]);
    let karyi = assistant(&server, &["--vault", "env"]).env("KARYI_VAR_TOKEN", value);
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("/help")
        .keys("what is it?\r")
        .expect("waiting for the model");
    for _ in pieces {
        gate.send(()).unwrap();
        // A frame comes between the pieces.
        terminal.keys("x").expect("x");
    }
    terminal.expect("Done.").expect("120 tokens");
    let screen = terminal.screen();
    assert_eq!(
        screen
            .matches("The key is $KARYI{TOKEN}, and $KARYI{TOKEN} too.")
            .count(),
        1,
        "{screen:?}"
    );
    for length in 3..=value.len() {
        for start in 0..=value.len() - length {
            let piece = &value[start..start + length];
            assert!(!screen.contains(piece), "{piece} in {screen:?}");
        }
    }
    terminal.keys("\x15\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}
