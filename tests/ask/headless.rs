//! Requests without a conversation: output, exit status, approval, secrets, interruption.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::server::{ModelServer, Reply};
use crate::harness::scripted_server::{ScriptedServer, answer};
use crate::harness::{Karyi, wait};

const BLOCK: &str = "I look.\n<tools><command>echo hi</command></tools>\n";

pub fn ask(server: &ModelServer, args: &[&str]) -> Karyi {
    let all: Vec<&str> = ["ask", "--no-rc", "--shell", "bash"]
        .iter()
        .chain(args)
        .copied()
        .collect();
    Karyi::with_args(&all)
        .env("KARYI_MODEL", "openai_chat:tiny")
        .env("KARYI_MODEL_URL", &server.url)
        .env("OPENAI_API_KEY", "sk-test-9f8e7d6c5b4a")
}

pub fn run(karyi: &Karyi) -> Output {
    let mut command = karyi.command();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_answer_comes_on_standard_output_and_a_line_for_each_call_on_standard_error() {
    let server = ModelServer::start(vec![Reply::text(BLOCK), Reply::text("It says hi.")]);
    let output = run(&ask(&server, &["--approve", "full", "what does it say?"]));
    assert_eq!(text(&output.stdout), "I look.\n\nIt says hi.\n");
    assert_eq!(text(&output.stderr), "> command echo hi: ok\n");
    assert_eq!(output.status.code(), Some(0));
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let messages = requests[1]["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert!(
        messages[1]["content"]
            .as_str()
            .unwrap()
            .ends_with("what does it say?\n")
    );
    assert!(
        messages[3]["content"]
            .as_str()
            .unwrap()
            .contains("<output>hi\n</output>")
    );
    // The start of the second request is the first one.
    assert_eq!(requests[0]["messages"][0], requests[1]["messages"][0]);
    assert_eq!(requests[0]["messages"][1], requests[1]["messages"][1]);
}

#[test]
fn the_first_request_is_small() {
    let server = ModelServer::start(vec![Reply::text("Yes.")]);
    run(&ask(&server, &["--approve", "full", "THE TEXT"]));
    let (_, body) = &server.raw()[0];
    let before = body.find("THE TEXT").unwrap();
    assert!(before <= 6_500, "{before} bytes");
}

#[test]
fn json_has_the_answer_and_every_call() {
    let server = ModelServer::start(vec![Reply::text(BLOCK), Reply::text("It says hi.")]);
    let output = run(&ask(&server, &["--json", "--approve", "full", "what?"]));
    let mut whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    let call = whole["calls"][0].as_object_mut().unwrap();
    assert_eq!(
        (&call["tool"], &call["output"]),
        (&json!("command"), &json!("hi\n"))
    );
    whole.as_object_mut().unwrap().remove("calls");
    let expected = json!({
        "version": 1, "model": "openai_chat:tiny", "end": "done", "answer": "It says hi.", "steps": 2,
        "usage": {"input": 200, "cached": null, "output": 40, "reasoning": null}, "cost": null,
    });
    assert_eq!(whole, expected);
}

#[test]
fn an_answer_that_is_a_json_object_is_the_answer() {
    let server = ModelServer::start(vec![Reply::text("{\"name\": \"karyi\"}\n")]);
    let output = run(&ask(&server, &["--json", "what is the name, as JSON?"]));
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&whole["answer"], &whole["end"]),
        (&json!("{\"name\": \"karyi\"}"), &json!("done"))
    );
}

#[test]
fn json_lines_tell_what_happens_in_order() {
    let server = ModelServer::start(vec![Reply::text(BLOCK), Reply::text("Done.")]);
    let output = run(&ask(&server, &["--jsonl", "--approve", "full", "what?"]));
    let lines: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut events: Vec<&str> = lines.iter().map(|l| l["event"].as_str().unwrap()).collect();
    events.dedup();
    let last = ["request", "text", "diagnostic", "step", "end"];
    assert_eq!(events[..3], ["turn", "request", "text"], "{events:?}");
    assert!(events.ends_with(&last), "{events:?}");
    for event in ["started", "output", "finished"] {
        assert_eq!(
            events.iter().filter(|e| **e == event).count(),
            1,
            "{event} {events:?}"
        );
    }
    assert_eq!(lines[0]["version"], 1);
    assert_eq!(lines.last().unwrap()["answer"], "Done.");
}

#[test]
fn without_approval_only_reads_run() {
    let block = "<tools><read><file src=\"f\"/></read><command>touch ran</command></tools>";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("I may not.")]);
    let karyi = ask(&server, &["why?"]).file("f", "seen\n");
    let output = run(&karyi);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("--approve full"),
        "{}",
        text(&output.stderr)
    );
    assert!(!karyi.work().join("ran").exists());
    let report = server.requests()[1]["messages"][3]["content"].to_string();
    assert!(
        report.contains("seen") && report.contains("needs_approval"),
        "{report}"
    );
}

#[test]
fn a_host_is_asked_for_until_a_rule_allows_it() {
    let page = ScriptedServer::once(vec![answer(
        "200 OK",
        "content-type: text/plain\r\n",
        "the page",
    )]);
    let block = format!("<tools><url_fetch url=\"{}\"/></tools>", page.url("/a"));
    let asking = |settings: &str| {
        let server = ModelServer::start(vec![Reply::text(&block), Reply::text("Done.")]);
        let config = format!("[guard]\nallow = [\"{}\"]\n{settings}", page.url(""));
        let karyi = ask(&server, &["--tools", "url_fetch", "look"]);
        let karyi = karyi.file("../home/.config/karyi/config.toml", config);
        let status = run(&karyi).status.code();
        (
            status,
            server.requests()[1]["messages"][3]["content"].to_string(),
        )
    };
    let (status, report) = asking("");
    assert_eq!(status, Some(3), "{report}");
    let rule = format!("fetch:{}", page.address());
    assert!(report.contains("needs_approval"), "{report}");
    assert!(
        report.contains(&format!("`karyi policy add {rule}`")),
        "{report}"
    );
    assert_eq!(page.requests(), []);
    let (status, report) = asking(&format!("[approval]\nallow = [\"{rule}\"]\n"));
    assert_eq!(status, Some(0), "{report}");
    assert!(report.contains("the page"), "{report}");
}

#[test]
fn a_project_that_is_not_trusted_permits_nothing_and_that_is_told_once() {
    let block = "<tools><command>touch ran</command><command>touch ran</command></tools>";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("I may not.")]);
    let karyi = ask(&server, &["why?"]).file(
        ".karyi/config.toml",
        "[approval]\nmode = \"full\"\nallow = [\"touch *\"]\n",
    );
    let output = run(&karyi);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(!karyi.work().join("ran").exists());
    assert_eq!(error.matches("which does not count").count(), 1, "{error}");
    let report = server.requests()[1]["messages"][3]["content"].to_string();
    assert!(
        report.contains("`karyi policy add 'touch ran'`"),
        "{report}"
    );
}

#[test]
fn files_and_standard_input_are_context() {
    let server = ModelServer::start(vec![Reply::text("Yes.")]);
    let karyi = ask(&server, &["--approve", "none", "--file", "f", "is it so?"])
        .file("f", "from the file\n");
    let mut command = karyi.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"from the pipe\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout), "Yes.\n");
    let asked = server.requests()[0]["messages"][1]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    let (file, pipe) = (
        asked.find("from the file"),
        asked.find("Standard input:\nfrom the pipe\n"),
    );
    assert!(file.is_some() && pipe > file, "{asked}");
}

#[test]
fn no_value_of_a_secret_is_sent_and_the_key_only_as_a_header() {
    let block = "<tools><command>env | grep -i key; cat f | base64 -w0; cat f</command></tools>";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("Done.")]);
    let value = "kP7-vQ2.zL9-tR4w";
    let karyi = ask(
        &server,
        &[
            "--approve",
            "full",
            "--vault",
            "env",
            &format!("is {value} good?"),
        ],
    )
    .env("KARYI_VAR_TOKEN", value)
    .file("f", format!("token={value}\n"));
    let output = run(&karyi);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let all: String = server.raw().iter().map(|(_, body)| body.clone()).collect();
    let shown = text(&output.stdout) + &text(&output.stderr);
    let key = "sk-test-9f8e7d6c5b4a";
    for part in [value, key, &base64(&format!("token={value}\n"))[..20]] {
        assert!(!all.contains(part), "{part} in {all}");
        assert!(!shown.contains(part), "{part} in {shown}");
    }
    assert!(
        all.contains("OPENAI_API_KEY=$KARYI{OPENAI_API_KEY}"),
        "{all}"
    );
    let (head, _) = &server.raw()[0];
    assert!(head.contains(&format!("Bearer {key}")), "{head}");
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn ctrl_c_closes_the_connection_and_ends_the_call() {
    let open = "<tools><command>echo $$ > pid; exec sleep 600</command>\n<read>";
    let server = ModelServer::start(vec![Reply::Silence(open.to_owned())]);
    let karyi = ask(&server, &["--jsonl", "--approve", "full", "wait"]);
    let mut command = karyi.command();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = karyi.work().join("pid");
    while !std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')) {
        std::thread::yield_now();
    }
    let asking = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(asking, Signal::SIGINT).unwrap();
    server.gone.recv().unwrap();
    assert_eq!(wait(child).status.code(), Some(130));
    let pid: i32 = std::fs::read_to_string(&pid)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn a_model_that_cannot_be_used_is_exit_4_with_one_message() {
    let unauthorized = Reply::Status(
        401,
        "{\"error\":{\"message\":\"Incorrect API key provided\"}}",
    );
    let server = ModelServer::start(vec![unauthorized]);
    let output = run(&ask(&server, &["hello"]));
    assert_eq!(output.status.code(), Some(4));
    let told = text(&output.stderr);
    assert!(told.starts_with("karyi: model_auth: "), "{told}");
    assert!(
        told.contains("OPENAI_API_KEY") && !told.contains("sk-test"),
        "{told}"
    );
    assert_eq!(server.raw().len(), 1);
    let nobody = Karyi::with_args(&["ask", "hello"]);
    let output = run(&nobody);
    assert_eq!(output.status.code(), Some(4));
    let told = text(&output.stderr);
    assert!(
        told.starts_with("karyi: no language model is chosen."),
        "{told}"
    );
    assert_eq!(told.lines().count(), 5, "{told}");
}

#[test]
fn the_example_hook_writes_the_message_of_a_commit() {
    let server = ModelServer::start(vec![Reply::text("Add f\n\nIt is needed.")]);
    let hook = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/hooks/prepare-commit-msg"
    );
    let karyi = ask(&server, &[]).file("f", "x\n");
    let script = format!(
        "git init -q . && cp {hook} .git/hooks/ && git add f && \
         PATH={}:$PATH GIT_EDITOR=true git -c user.name=a -c user.email=a@b commit -q && git log --format=%B",
        crate::harness::program().parent().unwrap().display()
    );
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(&script).current_dir(karyi.work());
    for (name, value) in karyi.command().get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let output = command.output().unwrap();
    assert_eq!(
        text(&output.stdout).trim(),
        "Add f\n\nIt is needed.",
        "{}",
        text(&output.stderr)
    );
    let asked = server.requests()[0]["messages"][1]["content"].to_string();
    assert!(asked.contains("+x"), "{asked}");
}

#[test]
fn nothing_to_ask_is_wrong_usage_and_nothing_is_sent() {
    let server = ModelServer::start(Vec::new());
    let output = run(&ask(&server, &[]));
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(told.starts_with("karyi: nothing to ask: "), "{told}");
    assert!(server.raw().is_empty());
}

#[test]
fn a_key_without_a_value_is_named() {
    let table = "model = 'm'\n[models.m]\nprovider = 'openai_chat'\nmodel = 'x'\nkey = '$KARYI{MISSING_KEY}'\n";
    let karyi = Karyi::with_args(&["ask", "--vault", "env", "hello"]);
    let home = karyi.work().join("home");
    std::fs::create_dir_all(home.join("config")).unwrap();
    std::fs::write(home.join("config/config.toml"), table).unwrap();
    let output = run(&karyi.env("KARYI_HOME", home));
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("karyi var set MISSING_KEY"));
}

#[test]
fn a_model_can_be_tried() {
    let server = ModelServer::start(vec![Reply::text("ready")]);
    let karyi = Karyi::with_args(&["model", "test", "--json"])
        .env("KARYI_MODEL", "openai_chat:tiny")
        .env("KARYI_MODEL_URL", &server.url);
    let output = run(&karyi);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&found["answer"], &found["is_small"]),
        (&json!("ready"), &json!(false))
    );
}

#[test]
fn only_the_last_answer_is_printed_quietly() {
    let server = ModelServer::start(vec![Reply::text(BLOCK), Reply::text("It says hi.")]);
    let output = run(&ask(&server, &["--quiet", "--approve", "full", "what?"]));
    assert_eq!(text(&output.stdout), "It says hi.\n");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn texts_reach_the_model_as_they_are_meant() {
    let server = ModelServer::start(vec![Reply::text("Yes.")]);
    let args = [
        "--vault",
        "env",
        "--file",
        "f",
        "use $KARYI{TOKEN} of kP7-vQ2.zL9-tR4w",
    ];
    let karyi = ask(&server, &args)
        .env("KARYI_VAR_TOKEN", "kP7-vQ2.zL9-tR4w")
        .file("f", "a=$KARYI{FOO} b=kP7-vQ2.zL9-tR4w\n");
    let output = run(&karyi);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let asked = server.requests()[0]["messages"][1]["content"].to_string();
    for part in [
        "use $KARYI{TOKEN} of $KARYI{TOKEN}",
        "a=$$KARYI{FOO} b=$KARYI{TOKEN}",
    ] {
        assert!(asked.contains(part), "{part} in {asked}");
    }
}

#[test]
fn a_value_in_pieces_is_masked_in_every_form_of_the_output() {
    let value = "kP7-vQ2.zL9-tR4w";
    let letters: Vec<char> = format!("It is {value}.").chars().collect();
    for size in [1, 3, 7, 12, 16, 17] {
        let pieces: Vec<String> = letters.chunks(size).map(|p| p.iter().collect()).collect();
        for form in [&[][..], &["--quiet"], &["--json"], &["--jsonl"]] {
            let server = ModelServer::start(vec![Reply::Text(pieces.clone())]);
            let args = [form, &["--vault", "env", "which?"]].concat();
            let output = run(&ask(&server, &args).env("KARYI_VAR_TOKEN", value));
            let shown = text(&output.stdout);
            assert!(shown.contains("$KARYI{TOKEN}."), "{size} {form:?} {shown}");
            let parts: Vec<char> = value.chars().collect();
            let parts = parts.windows(4).map(|part| part.iter().collect::<String>());
            for part in parts {
                assert!(!shown.contains(&part), "{size} {form:?} {shown}");
            }
        }
    }
}

#[test]
fn what_cannot_be_read_or_asked_is_wrong_usage() {
    let server = ModelServer::start(Vec::new());
    let karyi = ask(&server, &["--file", "pipe", "why?"]);
    nix::unistd::mkfifo(&karyi.work().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let output = run(&karyi);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "karyi: --file pipe: expected a file or a directory\n"
    );
    let outside = ask(&server, &["--root", "sub", "--file", "f", "why?"]).file("f", "x");
    let outside = outside.file("sub/g", "y");
    let output = run(&outside);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let output = run(&ask(&server, &[" ", ""]));
    assert_eq!(output.status.code(), Some(2));
    assert!(server.raw().is_empty());
}

#[test]
fn the_time_counts_before_the_first_request() {
    use crate::harness::scripted_server::{Act, ScriptedServer, signal};
    let (_never, wait) = signal();
    let server = ScriptedServer::start(vec![vec![Act::Wait(wait)]]);
    let karyi = Karyi::with_args(&["ask", "--json", "--max-time", "0.2", "why?"])
        .env("KARYI_MODEL", "openai_chat:tiny")
        .env("KARYI_MODEL_URL", server.url("/v1"));
    let output = run(&karyi);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&whole["end"], &whole["steps"]),
        (&json!("time"), &json!(0))
    );
}

/// Runs `karyi model test` against a server with one answer.
fn tried(server: &ModelServer) -> Output {
    let karyi = Karyi::with_args(&["model", "test"])
        .env("KARYI_MODEL", "openai_chat:tiny")
        .env("KARYI_MODEL_URL", &server.url);
    run(&karyi)
}

#[test]
fn a_model_that_gives_no_text_fails_its_test() {
    let check = |reply: Reply, expected: &str| {
        let output = tried(&ModelServer::start(vec![reply]));
        assert_eq!(output.status.code(), Some(4), "{expected}");
        assert_eq!(text(&output.stdout), "");
        let told = text(&output.stderr);
        assert!(
            told.starts_with(expected) && told.contains("\nkaryi: hint: "),
            "{told}"
        );
    };
    check(
        Reply::text(" \n"),
        "karyi: model_protocol: the answer has no text (it ended with stop)\n",
    );
    check(
        Reply::Ended("", "length"),
        "karyi: model_protocol: the answer reached its limit before any text (length)\n",
    );
    check(
        Reply::Ended("I can", "content_filter"),
        "karyi: model_content: the provider stopped the answer for safety (content_filter)\n",
    );
    let output = tried(&ModelServer::start(vec![Reply::Ended("ready", "length")]));
    assert_eq!(output.status.code(), Some(0));
}

/// The system's error for such a variable has the value in it.
#[test]
fn a_key_that_is_not_utf8_is_not_shown() {
    let key = OsStr::from_bytes(b"sk-hunter2\xff");
    let commands: [&[&str]; 3] = [
        &["ask", "hi"],
        &["model", "test"],
        &["model", "test", "--json"],
    ];
    for args in commands {
        let karyi = Karyi::with_args(args)
            .env("KARYI_MODEL", "openai_chat:tiny")
            .env("KARYI_MODEL_URL", "http://127.0.0.1:9/v1")
            .env("OPENAI_API_KEY", key);
        let output = run(&karyi);
        assert_eq!(output.status.code(), Some(4), "{args:?}");
        assert_eq!(
            (text(&output.stdout), text(&output.stderr)),
            (
                String::new(),
                "karyi: OPENAI_API_KEY is not UTF-8\n".to_owned()
            )
        );
    }
}

#[test]
fn a_quiet_answer_cannot_control_the_terminal() {
    let server = ModelServer::start(vec![Reply::text("a\x1b]52;c;eA==\x07b")]);
    let (screen, status) = ask(&server, &["--quiet", "what?"]).on_terminal().end();
    assert_eq!(status, 0);
    assert!(screen.contains("a␛]52;c;eA==␇b"), "{screen:?}");
    assert!(!screen.contains("\x1b]52"), "{screen:?}");
}

#[test]
fn the_page_names_every_event() {
    let page = include_str!("../../docs/ask.md");
    let source = include_str!("../../src/cli/ask/output.rs");
    let event = regex::Regex::new(r#""event": "([a-z]+)""#).unwrap();
    let found = event.captures_iter(source);
    let mut events: Vec<&str> = found.map(|found| found.get(1).unwrap().as_str()).collect();
    events.extend(["end", "started", "output", "finished", "diagnostic"]);
    events.sort_unstable();
    events.dedup();
    assert!(
        events.contains(&"plan") && events.contains(&"step"),
        "{events:?}"
    );
    // A request gets no further text.
    events.retain(|event| *event != "joined");
    for event in events {
        assert!(page.contains(&format!("`{event}`")), "{event}");
    }
}
