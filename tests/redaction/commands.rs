//! What commands print of a value, whole outputs compared: real bash, real programs.

use std::path::Path;

use karyi::outcome::{Outcome, Status};
use karyi::secret::{SecretName, SecretValue};
use karyi::vault::session::Secrets;

use crate::execution::run_with;
use crate::harness::skip;

const T: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";
const Q: &str = "it's \"a\" $HOME `id` $(touch pwn);touch pwn #\\";
const M: &str =
    "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n";
const L: &str =
    "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0U1v2W3x4Y5z6a7B8c9D0e1F2g3H4i5J6k7L8m9N0o1P2q3R4s5T";
const URL: &str = "postgres://admin:Zk7qPw2LmX9v@db.example.com:5432/prod";

fn secrets(value: &str) -> Secrets {
    let secrets = Secrets::default();
    let name = SecretName::parse("K").unwrap();
    secrets
        .insert(name, SecretValue::new(value.into()))
        .unwrap();
    secrets
}

fn run(value: &str, script: &str) -> Outcome {
    let message = format!("<tools><command><![CDATA[{script}]]></command></tools>");
    let mut outcomes = run_with(&secrets(value), &message, |_, _| {});
    outcomes.remove(0)
}

#[track_caller]
fn check(value: &str, script: &str, expected: &str) {
    let outcome = run(value, script);
    let output = outcome.output.map(|view| view.text);
    assert_eq!(output.as_deref(), Some(expected), "{script}");
}

/// Checks that nothing of a value is left, whatever the rest of the output is.
#[track_caller]
fn check_clean(value: &str, script: &str) {
    let outcome = run(value, script);
    assert_eq!(outcome.error, None, "{script}");
    let output = outcome.output.map(|view| view.text).unwrap_or_default();
    let visible: String = output.chars().filter(|c| *c > ' ').collect();
    assert!(visible.contains("KARYI"), "{script}: {output}");
    let secret: Vec<char> = value.chars().filter(|c| *c > ' ').collect();
    for run in secret.windows(12) {
        let run: String = run.iter().collect();
        assert!(!visible.contains(&run), "{script}: {output}");
    }
}

fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    let is_there = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    if !is_there {
        skip(&format!("no {program}"));
    }
    is_there
}

#[test]
fn printed_values_are_placeholders() {
    check(T, "echo \"$KARYI{K}\"", "$KARYI{K}\n");
    check(
        T,
        "printf 'a=%s;\\n' \"$KARYI{K}\" \"$KARYI{K}\"",
        "a=$KARYI{K};\na=$KARYI{K};\n",
    );
    check(Q, "printf '%s\\n' \"$KARYI{K}\"", "$KARYI{K}\n");
    check(
        "hunter2x",
        "echo $KARYI{K}; echo hunter2",
        "$KARYI{K}\nhunter2\n",
    );
    check("pw1!z", "echo $KARYI{K} 'apw1!zb'", "$KARYI{K} apw1!zb\n");
    check(
        T,
        "echo '[REDACTED] $$KARYI{UNKNOWN}'",
        "[REDACTED] $$KARYI{UNKNOWN}\n",
    );
}

#[test]
fn the_shell_tells_nothing_about_its_variables() {
    check_clean(
        T,
        "set -x; : \"$KARYI{K}\"; v=$KARYI{K}; set +x; declare -p; set; history; fc -l 2>/dev/null; true",
    );
    check_clean(
        Q,
        "v=$KARYI{K}; printf '%q\\n' \"$v\"; echo \"${v@Q}\"; declare -p v; set -x; : \"$v\"; set +x",
    );
}

#[test]
fn encodings_are_masked() {
    check(
        T,
        "printf %s \"$KARYI{K}\" | base64; printf 'user:%s' \"$KARYI{K}\" | base64 -w0; echo; printf %s \"$KARYI{K}\" | base64 -w 20",
        "[KARYI:K:base64]\ndXNlcjp[KARYI:K:base64]o=\n[KARYI:K:base64]\n",
    );
}

#[test]
fn dumps_are_masked() {
    check(
        T,
        "printf %s \"$KARYI{K}\" | od -An -tx1 -v",
        " [KARYI:K:hex]\n",
    );
    if has("xxd") {
        check_clean(
            T,
            "printf %s \"$KARYI{K}\" | xxd; printf %s \"$KARYI{K}\" | xxd -p",
        );
    }
    if has("hexdump") {
        check_clean(T, "printf %s \"$KARYI{K}\" | hexdump -C");
    }
}

#[test]
fn what_languages_make_of_it_is_masked() {
    if !has("python3") {
        return;
    }
    let script = "V=$KARYI{K} python3 - <<'END'\nimport os, json, html, shlex, base64, urllib.parse\n\
        v = os.environ['V']\nprint(repr(v)); print(json.dumps(v)); print(json.dumps(json.dumps(v)))\n\
        print(urllib.parse.quote(v)); print(html.escape(v)); print(shlex.quote(v)); print(repr(v.encode()))\n\
        print(base64.urlsafe_b64encode(v.encode()).decode())\nEND";
    check_clean(T, script);
    check_clean(Q, script);
}

#[test]
fn what_stands_between_the_characters_hides_nothing() {
    check(
        L,
        "v=$KARYI{K}; for ((i = 0; i < ${#v}; i++)); do printf %s \"${v:i:1}\"; done; echo",
        "$KARYI{K}\n",
    );
    check(
        T,
        "v=$KARYI{K}; for ((i = 0; i < ${#v}; i++)); do printf '\\e[3%dm%s' $((i % 8)) \"${v:i:1}\"; done; printf '\\e[0m\\n'",
        "$KARYI{K}\n",
    );
    check(
        T,
        "printf '\\e]8;;http://x\\e\\\\%s\\e]8;;\\e\\\\\\n' \"$KARYI{K}\"",
        "$KARYI{K}\n",
    );
    check(
        T,
        "echo \"$KARYI{K}\" | grep --color=always 0",
        "$KARYI{K}\n",
    );
    check(T, "echo \"$KARYI{K}\" | fold -w 7", "[KARYI:K:part]\n");
    check(
        T,
        "v=$KARYI{K}; printf '\\e[2J'; for start in 0 1; do for ((i = start; i < ${#v}; i += 2)); do printf '\\e[5;%dH%s' $((i + 4)) \"${v:i:1}\"; done; done; printf '\\e[7;1H.'",
        "   $KARYI{K}\n\n.",
    );
}

/// The line editor of an interactive shell writes `" \r"` where the terminal wraps, and the character
/// before it again.
#[test]
fn what_a_line_editor_echoes_and_wraps_is_masked() {
    if !has("python3") {
        return;
    }
    let script = "F=$KARYI{K|file} python3 - <<'END'\nimport fcntl, os, pty, select, struct, sys, termios, time\n\
        value = open(os.environ['F']).read()\npid, fd = pty.fork()\n\
        if pid == 0: os.execvpe('bash', ['bash', '--norc', '-i'], {'PATH': os.environ['PATH'], 'TERM': 'xterm', 'PS1': '> ', 'HISTFILE': ''})\n\
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))\nseen = b''\n\
        def more(limit):\n    global seen\n    while select.select([fd], [], [], limit)[0]:\n        try: part = os.read(fd, 4096)\n        except OSError: return\n\
        \x20       if not part: return\n        seen += part; sys.stdout.buffer.write(part); sys.stdout.buffer.flush()\n\
        while b'> ' not in seen: more(0.1)\n\
        for c in '# ' + value:\n    os.write(fd, c.encode()); time.sleep(0.004); more(0)\n\
        while value[-6:].encode() not in seen: more(0.1)\n\
        os.write(fd, b'\\nexit\\n')\nmore(5)\nassert value.encode() not in seen, 'it did not wrap'\nprint('wrapped')\nEND";
    check_clean(L, script);
    let shown = format!("{:?}", run(L, script).output);
    assert!(shown.contains("wrapped"), "{shown}");
}

#[test]
fn values_of_several_lines_are_masked() {
    check(M, "printf %s \"$KARYI{K}\"", "$KARYI{K}");
    check(M, "v=$KARYI{K}; echo $v", "[KARYI:K:part]\n");
    check(
        M,
        "printf %s \"$KARYI{K}\" | tr '\\n' ' '",
        "[KARYI:K:part] ",
    );
    check(M, "printf %s \"$KARYI{K}\" | sed 's/$/\\r/'", "$KARYI{K}");
    check(
        M,
        "printf %s \"$KARYI{K}\" | while read -r l; do echo \"> $l\"; done",
        "> -----BEGIN KEY-----\n> [KARYI:K:part]\n> [KARYI:K:part]\n> -----END KEY-----\n",
    );
}

#[test]
fn the_host_of_a_connection_string_stays() {
    check(
        URL,
        "v=$KARYI{K}; echo $v; v=${v#*admin:}; echo \"${v%%@*}\"; echo db.example.com:5432",
        "$KARYI{K}\n[KARYI:K:part]\ndb.example.com:5432\n",
    );
}

#[test]
fn a_value_cut_off_by_its_end_is_masked() {
    let message = "<tools><command timeout=\"1\">v=$KARYI{K}; printf %s \"${v:0:8}\"; sleep 100</command></tools>";
    let outcome = run_with(&secrets(T), message, |_, _| {}).remove(0);
    assert_eq!(outcome.status, Status::Running);
    let output = outcome.output.map(|view| view.text);
    assert_eq!(output.as_deref(), Some("[KARYI:K:part]"));
    check(
        T,
        "v=$KARYI{K}; bash -c 'printf %s \"$1\"; kill -9 $$' x \"${v:0:20}\"",
        "[KARYI:K:part]Killed\n",
    );
}

/// What a signal ends may have printed the start of a value only.
#[test]
fn a_value_cut_off_by_a_signal_is_masked() {
    let part = "v=$KARYI{K}; ";
    for script in [
        "printf %s \"${v:0:8}\"; kill -9 $$",
        "exec bash -c 'printf %s \"$1\"; kill -9 $$' x \"${v:0:11}\"",
        "(printf %s \"${v:0:8}\"; kill -PIPE $BASHPID)",
    ] {
        check(T, &format!("{part}{script}"), "[KARYI:K:part]");
    }
    // Too short to be told from anything else, or a normal end.
    check(
        T,
        &format!("{part}printf %s \"${{v:0:3}}\"; kill -9 $$"),
        "S3c",
    );
    check(
        T,
        &format!("{part}printf %s \"${{v:0:8}}\"; (exit 3)"),
        "S3cr3t-T",
    );
}

#[test]
fn scripts_hold_what_the_user_wrote() {
    let outcome = run(T, &format!("x={T}; echo ${{#x}}"));
    let output = outcome.output.map(|view| view.text);
    assert_eq!(output.as_deref(), Some("39\n"));
}

#[test]
fn files_and_names_are_masked_when_read() {
    let dir = tempfile::tempdir().unwrap();
    let name = T.replace('/', "_");
    std::fs::write(dir.path().join(&name), "x\n").unwrap();
    std::fs::write(
        dir.path().join("b64"),
        "UzNjcjN0LVQwa2VuL1ZhbCt1ZV9BYkNkRWYwMTIzNDU2Nzg5eHl6\n",
    )
    .unwrap();
    std::fs::write(
        dir.path().join("bin"),
        [&b"\0\x01"[..], name.as_bytes(), b"\xFF"].concat(),
    )
    .unwrap();
    let message = format!(
        "<tools><read><file src=\"{0}\"/><file src=\"{0}/b64\"/><file src=\"{0}/bin\"/></read></tools>",
        dir.path().display()
    );
    let outcomes = run_with(&secrets(&name), &message, |_, _| {});
    let shown = format!("{outcomes:?}");
    assert!(shown.contains("KARYI{K}"), "{shown}");
    assert!(
        !shown.contains(&name[..12]) && !shown.contains("UzNjcjN0LVQwa2Vu"),
        "{shown}"
    );
}

#[test]
fn what_is_cut_from_a_file_shows_no_start_of_a_value() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("f");
    std::fs::write(&file, format!("TOKEN={T}\nnext\n")).unwrap();
    let read = |bytes: usize| {
        let message = format!(
            "<tools><read><file src=\"{}\" max_bytes=\"{bytes}\"/></read></tools>",
            file.display()
        );
        let outcome = run_with(&secrets(T), &message, |_, _| {}).remove(0);
        let output = &outcome.fields["files"][0]["output"];
        output.as_str().unwrap().to_owned()
    };
    for (bytes, expected) in [
        (6, "TOKEN="),
        (9, "TOKEN=S3c"),
        (10, "TOKEN=[KARYI:K:part]"),
        (17, "TOKEN=[KARYI:K:part]"),
        (44, "TOKEN=[KARYI:K:part]"),
        (46, "TOKEN=$KARYI{K}\n"),
        (48, "TOKEN=$KARYI{K}\n"),
        (500, "TOKEN=$KARYI{K}\nnext\n"),
    ] {
        assert_eq!(read(bytes), expected, "{bytes}");
    }
}

#[test]
fn benign_output_is_the_same_with_and_without_secrets() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/karyi-core/src/limits.rs");
    let text = std::fs::read_to_string(&file).unwrap();
    check(T, &format!("cat {}", file.display()), &text);
}

#[test]
fn caps_cut_no_placeholder_in_two() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{}$KARYI{{OTHER}}{}", "x".repeat(20), "y".repeat(20));
    std::fs::write(dir.path().join("f"), &text).unwrap();
    for bytes in 20..40 {
        let message = format!(
            "<tools><read><file src=\"{}/f\" max_bytes=\"{bytes}\"/></read></tools>",
            dir.path().display()
        );
        let outcome = run_with(&secrets(T), &message, |_, _| {}).remove(0);
        let file = &outcome.fields["files"][0];
        let shown = file["output"]
            .as_str()
            .unwrap()
            .replace("$$KARYI{OTHER}", "");
        assert_eq!(shown.trim_matches(['x', 'y']), "", "{bytes}");
        let omitted = usize::try_from(file["omitted_bytes"].as_u64().unwrap()).unwrap();
        assert!(text.len() - omitted <= bytes, "{bytes}: {file}");
    }
}

/// Recovery codes, one on each line: each is shorter than a run.
#[test]
fn short_lines_of_a_value_are_masked_each() {
    let codes = "1a2b3-c4d5e\nf6a7b-8c9d0\ne1f2a-3b4c5\nd6e7f-8a9b0\n";
    let part = "[KARYI:K:part]";
    for (program, before, after) in [
        ("sed 's/^/> /'", "> ", "\n"),
        ("sed 's/$/;/'", "", ";\n"),
        ("while read -r l; do echo \"- $l\"; done", "- ", "\n"),
        ("cat -A", "", "$\n"),
        ("tr '\\n' ,", "", ","),
    ] {
        let script = format!("printf %s \"$KARYI{{K}}\" | {program}");
        check(codes, &script, &format!("{before}{part}{after}").repeat(4));
    }
    let numbered = |mark: &str| -> String {
        (1..=4)
            .map(|number| format!("{number}{mark}{part}\n"))
            .collect()
    };
    check(codes, "printf %s \"$KARYI{K}\" | grep -n .", &numbered(":"));
    let diff = "v=$KARYI{K}; diff -u --label a --label b /dev/null <(printf %s \"$v\")";
    let head = "--- a\n+++ b\n@@ -0,0 +1,4 @@\n";
    check(
        codes,
        diff,
        &format!("{head}{}", format!("+{part}\n").repeat(4)),
    );
    check(
        codes,
        "printf %s \"$KARYI{K}\" | paste -sd,",
        &format!("{}\n", [part; 4].join(",")),
    );
}

/// What a search shows has a path and a number before each line.
#[test]
fn lines_of_a_value_are_masked_in_a_search() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ed");
    let found = |value: &str, text: &str, pattern: &str| {
        std::fs::write(&file, text).unwrap();
        let message = format!(
            "<tools><read><search pattern=\"{pattern}\" regex=\"true\" path=\"{}\" context=\"9\"/></read></tools>",
            file.display()
        );
        let outcome = run_with(&secrets(value), &message, |_, _| {}).remove(0);
        let output = outcome.fields["searches"][0]["output"].as_str().unwrap();
        output.replace(file.to_str().unwrap(), "ed")
    };
    let part = "[KARYI:K:part]";
    // Codes, words, and a value that is folded.
    for lines in [
        "1a2b3-c4d5e\nf6a7b-8c9d0\ne1f2a-3b4c5",
        "abandon\nzebra\nquartz",
        "Tk9-wQ7/r\nX+2bZ=mLp\n4Vn",
    ] {
        let text = format!("title\n{lines}\ntail\n");
        for value in [lines.to_owned(), lines.replace('\n', "")] {
            assert_eq!(
                found(&value, &text, "tail"),
                format!("ed-1-title\ned-2-{part}\ned-3-{part}\ned-4-{part}\ned:5:tail\n"),
                "{value}"
            );
            assert_eq!(
                found(&value, &text, "."),
                format!("ed:1:title\ned:2:{part}\ned:3:{part}\ned:4:{part}\ned:5:tail\n"),
                "{value}"
            );
        }
    }
    let codes = "1a2b3-c4d5e\nf6a7b-8c9d0\n";
    assert_eq!(
        found(codes, &format!("x\n{codes}"), "f6a7b"),
        format!("ed-1-x\ned-2-{part}\ned:3:{part}\n")
    );
    let spread = "1a2b3-c4d5e\n\n1\n2\n3\n4\n5\n6\n7\n8\n9\nf6a7b-8c9d0\n".replace('\n', "\n\n");
    let shown = found(codes, &spread, "-");
    assert!(shown.starts_with(&format!("ed:1:{part}\n")), "{shown}");
    assert!(
        shown.contains(&format!(":{part}\n")) && !shown.contains("8c9d0"),
        "{shown}"
    );
}
