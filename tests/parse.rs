//! `karyi parse` from the outside: the corpus through the program, and what people are shown.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Karyi, Ran};
use crate::toolsxml::choices::is_full;
use crate::toolsxml::{expected, inputs};
use karyi::syntax::Mode;

fn parse(args: &[&str]) -> Karyi {
    Karyi::with_args(&["parse"]).args(args)
}

/// Compares both outputs and the exit status.
#[track_caller]
fn check(karyi: Karyi, stdout: &str, stderr: &str, exit: i32) {
    karyi.run().stdout_text(stdout).stderr(stderr).exit(exit);
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .map(|map| map.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

#[test]
fn every_case_comes_out_of_the_program_in_every_chunking() {
    let karyi = parse(&[]);
    let mut wrong = Vec::new();
    for (number, (name, message)) in inputs().into_iter().enumerate() {
        let file = karyi.work().join("case");
        std::fs::write(&file, &message).unwrap();
        let chunkings = [
            (Mode::Repair, "1"),
            (Mode::Strict, "64"),
            (Mode::Repair, "7"),
            (Mode::Strict, "1000000000"),
            (Mode::Repair, "4096"),
            (Mode::Strict, "1"),
        ];
        // The small count takes every case in both modes, and each chunking in turn.
        let few = chunkings.chunks(2).nth(number % 3).unwrap();
        let chosen = if is_full() { &chunkings } else { few };
        for &(mode, chunk) in chosen {
            let mut command = karyi.command();
            command.args(["--json", "--chunk", chunk, "case"]);
            if mode == Mode::Strict {
                command.arg("--strict");
            }
            let output = command.output().unwrap();
            let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let wanted = expected(&name, mode);
            let exit = if wanted.is_array() { 0 } else { 2 };
            let is_same = found == wanted
                && keys(&found) == keys(&wanted)
                && output.status.code() == Some(exit);
            if !is_same {
                wrong.push(format!(
                    "{name} {mode:?} in chunks of {chunk}, {}\n  found {found}\n  expected {wanted}",
                    output.status
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn calls_for_people() {
    check(
        parse(&["answer.txt"]).file(
            "answer.txt",
            "I'll look and mend it.\n\n<tools>\n  <command timeout=\"2.5\">\n    cd a && make\n  </command>\n  \
             <edit id=\"mend\">\n    <file src=\"a.html\">\n      <find>&lt;p></find><replace></replace>\n    </file>\n  </edit>\n  \
             <read><file src=\"a.html\"/><file src=\"b\" lines=\"3-7\"/><search pattern=\"TODO\" max=\"5\"/></read>\n  \
             <get_value key=\"TOKEN\" reason=\"to deploy\"/>\n  <input>yes\\n</input>\n  <ctrl> C </ctrl>\n</tools>\n",
        ),
        "1 command\n  timeout: 2.5\n  text:\n    |\n    |     cd a && make\n    |   \n\
         mend edit\n  files:\n    - src: a.html\n      edits:\n        - find: <p>\n          replace:\n            |\n\
         3 read\n  files:\n    - a.html\n    - src: b\n      lines: 3-7\n  searches:\n    - pattern: TODO\n      max: 5\n\
         4 get_value\n  key: TOKEN\n  reason: to deploy\n\
         5 input\n  text: yes\\n\n\
         6 ctrl\n  key: c\n",
        "repaired[R4]: call 1, command: a text with bare < or & was taken as it is written\n",
        0,
    );
}

#[test]
fn a_refusal_for_people() {
    check(
        parse(&["-"])
            .stdin("<tools>\n <command>ls</command>\n\t<command x='中文'>😀</command>\n</tools>"),
        "1 command\n  text: ls\n",
        "error[unknown-attribute]: <command> has no attribute `x`\n  --> 3:2\n   |\n 3 |  <command x='中文'>😀</command>\n   \
         |  ^^^^^^^^^^^^^^^^^^\n  hint: remove it; <command> takes timeout, cwd, name\n",
        2,
    );
}

#[test]
fn wide_characters_keep_the_caret_in_place() {
    check(
        parse(&["--strict"]).stdin("<tools><command>\n\t中😀e\u{301} & x</command></tools>"),
        "",
        "error[bad-reference]: `&` starts no reference\n  --> 2:7\n   |\n 2 |  中😀e\u{301} & x</command></tools>\n   |        ^\n  \
         hint: write &amp; for &, or wrap the text in <![CDATA[...]]>\n",
        2,
    );
}

#[test]
fn arguments_that_do_not_fit_are_refused_as_in_a_run() {
    check(
        parse(&["--json"])
            .stdin("<tools>\n<ctrl>c</ctrl>\n<command timeout='soon'>x</command></tools>"),
        "{\"error\":\"bad-attribute\",\"offset\":23,\"line\":3,\"column\":1,\"nodes\":[{\"type\":\"ctrl\",\"key\":\"c\"}]}\n",
        "error[bad-attribute]: `timeout` of command must be a number from 0 to 31536000, found \"soon\"\n  --> 3:1\n   |\n \
         3 | <command timeout=\"soon\">\n   | ^^^^^^^^^^^^^^^^^^^^^^^^\n  \
         hint: see `karyi tools command` for the arguments and their types\n",
        2,
    );
    let ran = parse(&["--json"])
        .stdin(r#"{"tools":"\n<tools><command timeout='soon'>x</command></tools>"}"#)
        .run();
    assert_eq!(
        ran.json(),
        json!({"error": "bad-attribute", "offset": 8, "line": 2, "column": 8, "in": "tools", "nodes": []})
    );
}

#[test]
fn warnings_are_told_on_stderr_in_json_too() {
    let message = "Use `<tools>`.\n```\n<tools>\n```\n<tools><edit><file src='a'><find><b>&amp;</find><replace/></file></edit>";
    let told = |ran: &Ran| {
        let lines = ran.stderr_text();
        let heads = lines.lines().filter(|line| !line.starts_with(' '));
        heads
            .map(|line| line.split(':').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let heads = [
        "warning[ignored-block]",
        "warning[ignored-block]",
        "warning[mixed-escapes]",
        "repaired[R4]",
        "repaired[R5]",
        "warning[unclosed-tools]",
    ];
    let ran = parse(&[]).stdin(message).run().exit(0);
    assert_eq!(told(&ran), heads);
    let ran = parse(&["--json"]).stdin(message).run().exit(0);
    assert_eq!(told(&ran), heads);
    assert_eq!(
        ran.json(),
        json!([{"type": "edit", "files": [{"src": "a", "edits": [{"find": "<b>&amp;", "replace": ""}]}]}])
    );
}

#[test]
fn nothing_to_call_is_no_error() {
    check(parse(&[]).stdin("just words\n"), "no calls\n", "", 0);
    check(parse(&["--json"]).stdin(""), "[]\n", "", 0);
    check(
        parse(&[]).stdin(b"\x7fELF\0\0\xFF<to"),
        "no calls\n",
        "note: the text contains NUL bytes; is it text?\n",
        0,
    );
}

#[test]
fn terminal_escapes_are_shown_and_never_sent() {
    let message =
        "<tools><command name='\u{9b}31m'>a\u{202E}b</command><input>\u{7f}</input></tools>";
    let ran = parse(&[]).stdin(message).run().exit(0);
    assert_eq!(
        ran.stdout(),
        "1 command\n  name: \u{FFFD}31m\n  text: a\u{FFFD}b\n2 input\n  text: ␡\n"
    );
    let ran = parse(&[])
        .stdin("<tools>\n<command a='\x1b]52;c;eA==\x07'>")
        .run()
        .exit(2);
    assert!(
        !ran.stderr_text().contains(['\x1b', '\x07']),
        "{}",
        ran.stderr_text()
    );
}

#[test]
fn an_id_cannot_forge_a_call() {
    let message = "<tools>\n<command id='1 input&#10;  text: ls&#10;2' name='a&#9;b'>echo <b></command>\n</tools>";
    let ran = parse(&[]).stdin(message).run().exit(0);
    assert_eq!(
        ran.stdout(),
        "1 input␊  text: ls␊2 command\n  name:\n    | a\tb\n  text: echo <b>\n"
    );
    assert_eq!(
        ran.stderr_text().lines().count(),
        1,
        "{}",
        ran.stderr_text()
    );
}

#[test]
fn texts_that_cannot_be_read_are_named() {
    let refused = |karyi: Karyi, message: &str| check(karyi, "", message, 2);
    refused(
        parse(&["missing.txt"]),
        "karyi: opening the script missing.txt: No such file or directory (os error 2)\n",
    );
    refused(
        parse(&["dir"]).file("dir/x", ""),
        "karyi: the script dir is a directory\n",
    );
    let ran = parse(&[]).stdin(b"\xFF\xFE<\0").run().exit(2);
    assert!(
        ran.stderr_text()
            .starts_with("error[encoding]: the message is UTF-16, not UTF-8\n  --> 1:1\n")
    );
    let ran = parse(&["--chunk", "0"]).stdin("").run().exit(2);
    assert!(
        ran.stderr_text().contains("--chunk"),
        "{}",
        ran.stderr_text()
    );
    parse(&["a", "b"]).run().exit(2);
}

#[test]
fn a_text_that_may_not_be_read_is_named() {
    if !crate::harness::is_root() {
        return crate::harness::skip("running as another user needs root");
    }
    use std::os::unix::fs::PermissionsExt;
    let karyi = parse(&["closed.txt"]).file("closed.txt", "").run_as(65534);
    let path = karyi.work().join("closed.txt");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o0)).unwrap();
    check(
        karyi,
        "",
        "karyi: opening the script closed.txt: Permission denied (os error 13)\n",
        2,
    );
}

/// Starts the program with all three pipes.
fn start(karyi: &Karyi) -> std::process::Child {
    let mut command = karyi.command();
    let pipes = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    pipes.spawn().unwrap()
}

#[test]
fn calls_are_shown_while_the_text_goes_on() {
    let karyi = parse(&[]);
    let mut child = start(&karyi);
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(b"<tools>\n<ctrl>c</ctrl>\n<command>")
        .unwrap();
    let wanted = b"1 ctrl\n  key: c\n";
    let mut found = vec![0; wanted.len()];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut found)
        .unwrap();
    assert_eq!(found, wanted);
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn an_endless_text_is_read_to_its_first_error() {
    for args in [&[][..], &["--json"]] {
        let karyi = parse(args);
        let mut child = start(&karyi);
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || {
            let _ = stdin.write_all(b"words <b>\n<tools><ctrl>c</ctrl></tools>\n<tools><oops/>");
            while stdin.write_all(b" and on and on and on\n").is_ok() {}
        });
        assert_eq!(
            crate::harness::wait(child).status.code(),
            Some(2),
            "{args:?}"
        );
        writer.join().unwrap();
    }
}

#[test]
fn a_reader_that_goes_away_is_no_reason_to_complain() {
    let karyi = parse(&[]);
    let mut child = start(&karyi);
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(b"<tools>");
        while stdin.write_all(b"<ctrl>c</ctrl>\n").is_ok() {}
    });
    let output = crate::harness::wait(child);
    writer.join().unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_message_without_calls_says_so_in_every_report() {
    let bare = "I'll look:\n\n<command>echo ran</command>\n";
    let dialect = "<execute_command>\n<command>npm test</command>\n</execute_command>\n";
    let cases = [
        (bare, 2),
        (dialect, 2),
        ("<tool_call>\n{\"name\": \"command\"}\n</tool_call>", 2),
        ("&lt;tools>\n&lt;command>ls&lt;/command>", 2),
        ("{\"tools\": \"<command>ls</command>\"}", 2),
        ("<tools></tools>\n<command>ls</command>", 2),
        ("Run this:\n\n```bash\nnpm test\n```", 0),
        ("Use <command> to run.\n", 0),
        ("", 0),
        ("<tools></tools>", 0),
        ("Done: use <tools> blocks.\n", 0),
        (
            "Done: use `<tools>` and `<command>`, or `<tools></tools>`.\n",
            0,
        ),
        ("Each of your\n<tools> blocks ran.\n", 0),
        ("| `<tools>` | a block |\n", 0),
        ("<tools>ls</tools>\n", 2),
        ("<tools>\nls\n</tools>\n", 2),
        ("Sure: <tools><command>ls</command></tools>", 2),
        ("Sure:\n> <tools>\n> <command>ls</command>\n> </tools>\n", 2),
        ("<!-- hm\n<tools>\n<command>x</command>\n</tools>\n", 2),
        (
            "So:\n```\n<tools>\n<command>x</command>\n</tools>\n```\n",
            2,
        ),
        ("{\"reply\": \"<tools><command>ls</command></tools>\"}", 2),
        ("<results>\nok\n</results>\n", 2),
        ("<tools><command>x</command></tools>\n</think>\n", 2),
    ];
    for (message, exit) in cases {
        for format in ["xml", "json", "jsonl", "text"] {
            let karyi = Karyi::new().args(&["--format", format]).stdin(message);
            let ran = karyi.run().exit(exit);
            let report = ran.stdout();
            assert!(
                report.contains("no-block"),
                "{format} {message:?}\n{report}"
            );
            ran.stderr("");
        }
    }
    let with_block = format!("{bare}<tools><command>true</command></tools>");
    let ran = Karyi::new().stdin(with_block).run().exit(0);
    assert!(!ran.stdout().contains("no-block"), "{}", ran.stdout());
}

#[test]
fn drafts_do_not_run() {
    let thought = "<tools><command id=\"a\">echo dra''ft</command></tools>\nNo.\n</think>\n\
                   <tools><command id=\"a\">echo re''al</command></tools>\n";
    let ran = Karyi::new().stdin(thought).run().exit(0);
    let report = ran.stdout();
    assert!(
        report.contains("real") && !report.contains("draft\n"),
        "{report}"
    );
    assert!(report.contains("ignored-block"), "{report}");
    for error in [
        "<command>draft</comand>",
        "<command timeout=\"soon\">draft</command>",
    ] {
        let thought = format!(
            "<tools>{error}</tools>\n</think>\n<tools><command>echo re''al</command></tools>\n"
        );
        let listed = parse(&["--json"]).stdin(thought.clone()).run().exit(0);
        assert_eq!(listed.json()[0]["text"], "echo re''al", "{error}");
        let ran = Karyi::new().stdin(thought).run().exit(0);
        assert!(ran.stdout().contains("real"), "{}", ran.stdout());
    }
    // What ran already has run, and the ids stay apart.
    let streamed = thought.replace(" id=\"a\"", "");
    let ran = Karyi::new()
        .args(&["--stream"])
        .stdin(streamed)
        .run()
        .exit(0);
    let report = ran.stdout();
    for part in ["draft", "real", "id=\"1\"", "id=\"2\"", "have run already"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    let open = "<think>\n<tools><command>echo dra''ft</command></tools>\n</think>\nNothing.\n";
    for args in [&[][..], &["--stream"]] {
        let ran = Karyi::new().args(args).stdin(open).run().exit(2);
        assert!(!ran.stdout().contains("draft\n"), "{}", ran.stdout());
    }
}

#[test]
fn made_up_results_end_the_message() {
    let message = "<tools><command>echo one</command></tools>\n<results>\n</results>\n\
                   <tools><command>echo tw''o</command></tools>\n";
    for args in [&[][..], &["--stream"]] {
        let ran = Karyi::new().args(args).stdin(message).run().exit(0);
        let report = ran.stdout();
        assert!(
            report.contains("one") && !report.contains("two"),
            "{report}"
        );
        assert!(report.contains("invented-results"), "{report}");
    }
}

#[test]
fn a_text_in_place_of_elements_is_answered_with_the_elements() {
    for (xml, tags) in [
        (
            "<read>a.txt</read>",
            "<file src=\"...\"/> or <search pattern=\"...\"/>",
        ),
        ("<plan>do it</plan>", "<step>"),
        (
            "<edit><file src=\"a\">text</file></edit>",
            "<find> or <content>",
        ),
    ] {
        let ran = parse(&["m"])
            .file("m", format!("<tools>{xml}</tools>"))
            .run();
        let told = ran.exit(2).stderr_text();
        let hint = format!("hint: write {tags} instead of the text\n");
        assert!(told.ends_with(&hint), "{told}");
    }
}
