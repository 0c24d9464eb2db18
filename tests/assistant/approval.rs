//! Questions about calls.

use super::assistant;
use crate::ask::server::{ModelServer, Reply};

#[test]
fn one_screen_asks_about_the_calls_of_a_block() {
    let block = "<tools><command>echo read</command><command>touch one</command><command>touch two</command></tools>";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("Done.")]);
    let karyi = assistant(&server, &["--mode", "ask"]);
    let work = karyi.work();
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("go\r");
    terminal.expect("? command 2").expect("? command 3");
    terminal.expect("(1 of 2)?").expect("y yes");
    assert!(!work.join("one").exists());
    terminal.forget().keys("y").expect("(2 of 2)?");
    terminal
        .keys("n")
        .expect("reason for the model")
        .keys("not two\r");
    terminal
        .expect("the user does not want it: not two")
        .expect("Done.");
    assert!(work.join("one").exists() && !work.join("two").exists());
    let report = server.requests()[1]["messages"][3]["content"].to_string();
    assert!(report.contains("not two"), "{report}");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn the_meanings_of_names_are_known_when_the_user_was_first_in_the_shell() {
    let replies =
        ["ls -d /", "pwd"].map(|script| format!("<tools><command>{script}</command></tools>"));
    let [first, second] = replies.each_ref().map(|text| Reply::text(text));
    let server = ModelServer::start(vec![
        first,
        Reply::text("Listed."),
        second,
        Reply::text("Done."),
    ]);
    let mut terminal = assistant(&server, &["--mode", "ask"]).on_terminal();
    let own = "!pwd() { echo my''own; }; echo de''fined\r";
    terminal.expect("/help").keys(own).expect("defined");
    terminal.keys("go\r").expect("Listed.");
    terminal
        .keys("on\r")
        .expect("it is a function")
        .expect("y yes");
    terminal.keys("y").expect("myown").expect("Done.");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn always_holds_for_the_next_call_with_the_same_words() {
    let block = "<tools><command>touch one</command></tools>";
    let replies = vec![Reply::text(block), Reply::text(block), Reply::text("Done.")];
    let server = ModelServer::start(replies);
    let mut terminal = assistant(&server, &["--mode", "ask"]).on_terminal();
    terminal
        .expect("/help")
        .keys("go\r")
        .expect("a always here: touch one");
    terminal.keys("a").expect("Done.");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn an_edited_call_runs_as_it_was_edited() {
    let block = "<tools><command>touch one</command></tools>";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("Done.")]);
    let karyi = assistant(&server, &["--mode", "ask"]);
    let work = karyi.work();
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("/help")
        .keys("go\r")
        .expect("e edit")
        .keys("e");
    terminal
        .expect("the text that runs in its place")
        .keys("-edited\r")
        .expect("Done.");
    assert!(work.join("one-edited").exists() && !work.join("one").exists());
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn the_mode_is_changed_by_command_and_key() {
    let server = ModelServer::start(vec![]);
    let mut terminal = assistant(&server, &[]).on_terminal();
    terminal
        .expect("cost 0.00 · ask")
        .keys("\x1b[Z")
        .expect("cost 0.00 · edits");
    terminal
        .keys("/mode read-only\r")
        .expect("cost 0.00 · read-only");
    terminal
        .keys("/mode everything\r")
        .expect("the modes are read-only, ask, edits, full");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_draft_answers_nothing() {
    let block = "<tools><command>touch made</command></tools>";
    let (reply, gate) = Reply::gated(vec![block.into()]);
    let server = ModelServer::start(vec![reply, Reply::text("Done.")]);
    let karyi = assistant(&server, &["--mode", "ask"]);
    let made = karyi.work().join("made");
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("/help")
        .keys("go\r")
        .expect("waiting for the model");
    terminal.keys("add tests for").expect("> add tests for");
    gate.send(()).unwrap();
    terminal.expect("then keys answer");
    terminal.keys(" your").expect("> add tests for your");
    assert!(!made.exists());
    terminal.forget().keys("\x15").expect("y yes");
    terminal.keys("y").expect("Done.");
    assert!(made.exists());
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_question_stands_below_the_text_before_it_and_shows_what_goes() {
    let block = "I replace it.\n<tools><edit><file src=\"f\"><content>new\n</content></file></edit></tools>";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("Done.")]);
    let karyi = assistant(&server, &["--mode", "ask"]).file("f", "old\nkept\n");
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("go\r").expect("Run edit 1?");
    let screen = terminal.screen();
    let place = |text: &str| {
        let found = screen.find(text);
        found.unwrap_or_else(|| panic!("{text:?} in {screen:?}"))
    };
    assert!(place("I replace it.") < place("? edit 1"));
    assert!(place("? edit 1") < place("f (edited)"));
    assert!(place("f (edited)") < place("-old") && place("-kept") < place("+new"));
    terminal.expect("y yes").keys("y").expect("Done.");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_plan_is_asked_for_before_anything_runs() {
    let block = "<tools><command>touch made</command></tools>";
    let server = ModelServer::start(vec![
        Reply::text(block),
        Reply::text("1. Make it."),
        Reply::text("Made."),
    ]);
    let karyi = assistant(&server, &["--mode", "ask"]);
    let made = karyi.work().join("made");
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("/plan make it\r");
    terminal.expect("> make it").expect("1. Make it.");
    assert!(!made.exists());
    terminal.keys("/mode full\r").expect("mode: full");
    terminal.keys("do it\r").expect("Made.");
    let requests = server.requests();
    let first = requests[0]["messages"].to_string();
    assert!(first.contains("Only calls that read run now"), "{first}");
    let last = requests[2]["messages"].to_string();
    assert!(
        last.contains("All calls run without a question now."),
        "{last}"
    );
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn a_value_is_masked_in_a_question_and_no_rule_with_it_is_stored() {
    let value = "kP7-vQ2.zL9-tR4w";
    let block =
        format!("<tools><command>touch {value}</command><command>touch two</command></tools>");
    let server = ModelServer::start(vec![Reply::text(&block), Reply::text("Done.")]);
    let karyi = assistant(&server, &["--mode", "ask", "--vault", "env"]);
    let karyi = karyi.env("KARYI_VAR_TOKEN", value);
    let work = karyi.work();
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("go\r");
    terminal.expect("touch $KARYI{TOKEN}").expect("(1 of 2)?");
    terminal.expect("· Esc interrupt").keys("a");
    assert!(
        !terminal.screen().contains("always here: touch k"),
        "{}",
        terminal.screen()
    );
    terminal.keys("y").expect("a always here: touch two");
    assert!(!terminal.screen().contains(value), "{}", terminal.screen());
    terminal.keys("y").expect("Done.");
    assert!(work.join(value).exists());
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn an_edit_without_a_question_shows_its_diff_and_the_model_gets_none() {
    let long: String = (1..=30).map(|number| format!("line {number}\n")).collect();
    let block = format!(
        "<tools><edit><file src=\"a\"><find>old</find><replace>new $KARYI{{TOKEN}}</replace></file></edit>\
         <edit><file src=\"b\"><content>{long}</content></file></edit>\
         <edit><file src=\"a\"><find>absent</find><replace>x</replace></file></edit></tools>"
    );
    let server = ModelServer::start(vec![Reply::text(&block), Reply::text("Done.")]);
    let value = "kP7-vQ2.zL9-tR4w";
    let karyi = assistant(&server, &["--mode", "edits", "--vault", "env"])
        .env("KARYI_VAR_TOKEN", value)
        .file("a", "old\nkept\n")
        .file("page", "cat \"$1\"; read a < /dev/tty\n");
    let pager = format!("sh {}", karyi.work().join("page").display());
    let file = karyi.work().join("a");
    let mut terminal = karyi.env("PAGER", &pager).on_terminal();
    terminal.expect("/help").keys("go\r").expect("Done.");
    let screen = terminal.screen();
    let plain = screen.replace('\r', "");
    for shown in [
        "✓ edit a\n     1 - old\n     1 + new $KARYI{TOKEN}\n     2   kept\n",
        "✓ edit b\n  b (created)\n     1 + line 1\n",
    ] {
        assert!(plain.contains(shown), "{plain:?}");
    }
    let folded = "    19 + line 19\n       … 11 more lines\n";
    assert!(plain.contains(folded), "{plain:?}");
    assert!(plain.contains("✗ edit a"), "{plain:?}");
    assert!(!plain.contains(value), "{plain:?}");
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        format!("new {value}\nkept\n")
    );
    let sent = server.requests()[1]["messages"][3].to_string();
    assert!(sent.contains("<results") && !sent.contains("@@"), "{sent}");
    // The whole chat has the whole diff.
    terminal.forget().keys("\x0f").expect("+line 30");
    terminal
        .forget()
        .keys("\r")
        .expect("240 tokens")
        .keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
}

#[test]
fn rules_that_change_beside_a_chat_count_from_the_next_call_on() {
    let call = |name: &str| format!("<tools><command>touch {name}</command></tools>");
    let replies = ["one", "two", "three", "four"].map(|name| Reply::text(&call(name)));
    let done = || Reply::text("Done.");
    let [one, two, three, four] = replies;
    let server = ModelServer::start(vec![one, done(), two, done(), three, done(), four, done()]);
    let karyi = assistant(&server, &["--mode", "ask"]);
    let work = karyi.work();
    let own = karyi.command();
    let policy = |arguments: &[&str]| {
        let mut command = std::process::Command::new(own.get_program());
        let variables = own
            .get_envs()
            .map(|(name, value)| (name, value.unwrap_or_default()));
        command.env_clear().envs(variables).current_dir(&work);
        let output = command.arg("policy").args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let mut terminal = karyi.on_terminal();
    terminal.expect("/help").keys("first\r").expect("y yes");
    terminal
        .keys("y")
        .expect("Done.")
        .expect("240 tokens")
        .forget();
    policy(&["add", "touch two"]);
    terminal.keys("next\r").expect("Done.").expect("480 tokens");
    assert!(work.join("two").exists() && !terminal.screen().contains("y yes"));
    policy(&["add", "touch four"]);
    policy(&["add", "--deny", "touch three"]);
    terminal
        .forget()
        .keys("next\r")
        .expect("does not permit it")
        .expect("720 tokens");
    // A mistake in a file: no rule allows, and the other ones stay.
    std::fs::create_dir_all(work.join(".karyi")).unwrap();
    std::fs::write(work.join(".karyi/config.toml"), "[approval]\nalow = []\n").unwrap();
    terminal.forget().keys("next\r").expect("Run command 1?");
    terminal.keys("\x1b").expect("interrupted").keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
    assert!(!work.join("three").exists() && !work.join("four").exists());
}

#[test]
fn consent_to_a_secret_is_asked_on_the_screen() {
    let other = "mN3-bV8.cX5-lK1q";
    let block = format!(
        "<tools><command>: {other}; printf %s $KARYI{{TOKEN}} | wc -c > out</command></tools>"
    );
    for (key, is_made) in [("y", true), ("n", false)] {
        let server = ModelServer::start(vec![Reply::text(&block), Reply::text("Done.")]);
        let karyi = assistant(
            &server,
            &["--mode", "full", "--vault", "env", "--policy", "p.toml"],
        )
        .env("KARYI_VAR_TOKEN", "kP7-vQ2.zL9-tR4w")
        .env("KARYI_VAR_OTHER", other)
        .file("p.toml", "[secret.TOKEN]\nuse = \"ask\"\n");
        let out = karyi.work().join("out");
        let mut terminal = karyi.on_terminal();
        terminal
            .expect("/help")
            .keys("go\r")
            .expect("? command with TOKEN");
        terminal
            .expect("Run command with TOKEN?")
            .expect("y yes · n no · Esc interrupt");
        // The screen keeps the terminal.
        assert!(
            !terminal.screen().contains("agree, for this session"),
            "{}",
            terminal.screen()
        );
        terminal.keys(key).expect("Done.");
        assert!(!terminal.screen().contains(other), "{}", terminal.screen());
        assert_eq!(out.exists(), is_made);
        terminal.keys("\x04");
        assert_eq!(terminal.echo_at_end(), (true, 0));
    }
}
