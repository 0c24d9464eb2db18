//! The shell of a session and its settings: which shell runs, its start-up files, programs without an editor.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Karyi, results, skip};
use crate::mcp::Client;

/// A repository with two branches that can be merged.
const REPOSITORY: &str = "git init -q -b main r && cd r && git config user.email a@b && git config user.name n \
    && echo 1 >a && git add a && git commit -qm one && git checkout -qb feat && echo f >f && git add f \
    && git commit -qm feat && git checkout -q main && echo m >m && git add m && git commit -qm main2 \
    && git config core.editor vim && git config core.pager less";

fn statuses(karyi: Karyi, commands: &[&str]) -> Vec<(String, Value)> {
    let calls: String = commands
        .iter()
        .map(|script| format!("<command timeout=\"30\"><![CDATA[{script}]]></command>"))
        .collect();
    let ran = karyi
        .arg("--json")
        .stdin(format!("<tools>{calls}</tools>"))
        .run();
    let report = ran.json();
    let one = |result: &Value| {
        let output = result["output"].as_str().unwrap_or_default();
        (output.to_owned(), result["exit_code"].clone())
    };
    results(&report).iter().map(one).collect()
}

fn zsh() -> bool {
    let is_there = Path::new("/usr/bin/zsh").exists();
    if !is_there {
        skip("no zsh");
    }
    is_there
}

#[test]
fn git_needs_no_editor_and_no_pager() {
    let commands = [
        (REPOSITORY, 0),
        ("git merge feat >/dev/null", 0),
        ("git log --format=%s -3", 0),
        (
            "git revert --no-edit HEAD^1 >/dev/null && git revert HEAD >/dev/null",
            0,
        ),
        ("git commit -q --amend", 0),
        ("git tag -a v1", 128),
        ("git rebase -i HEAD~1", 1),
        ("echo 2 >a; git commit -a", 1),
        (
            "git checkout -q -- a && git checkout -q feat && echo X >m && git add m && git commit -qm c; \
             git rebase main >/dev/null 2>&1 || { echo Y >m; git add m; git rebase --continue >/dev/null; }",
            0,
        ),
    ];
    let scripts: Vec<&str> = commands.iter().map(|(script, _)| *script).collect();
    let found = statuses(Karyi::new(), &scripts);
    for ((script, expected), (output, status)) in commands.iter().zip(&found) {
        assert_eq!(status, expected, "{script}: {output}");
    }
    assert_eq!(found[2].0.lines().count(), 3, "{}", found[2].0);
}

#[test]
fn editors_stay_the_users_and_env_has_the_last_word() {
    let karyi = Karyi::new()
        .env("EDITOR", "vi")
        .env("VISUAL", "vis")
        .env("PAGER", "less");
    let script = "echo $EDITOR $VISUAL $PAGER $MANPAGER $SYSTEMD_PAGER $GIT_EDITOR $TERM";
    let found = statuses(karyi, &[script]);
    assert_eq!(found[0].0, "vi vis cat cat cat true xterm-256color\n");
    let karyi = Karyi::new().args(&[
        "--env",
        "PAGER=less -R",
        "--env",
        "GIT_EDITOR=vim",
        "--env",
        "TERM=dumb",
        "--env",
        "COLUMNS=60",
    ]);
    let found = statuses(
        karyi,
        &["echo $PAGER $GIT_EDITOR $TERM $COLUMNS $GIT_PAGER"],
    );
    assert_eq!(found[0].0, "less -R vim dumb 60 cat\n");
}

#[test]
fn a_script_runs_in_bash_without_start_up_files() {
    let home = |karyi: Karyi| {
        let home = karyi.work().join("../home");
        std::fs::write(home.join(".bashrc"), "export RC=bash\n").unwrap();
        std::fs::write(home.join(".zshrc"), "export RC=zsh\n").unwrap();
        karyi.env("SHELL", "/usr/bin/zsh")
    };
    let script = "echo ${BASH_VERSION:+bash}${ZSH_VERSION:+zsh} ${RC-none}";
    let check = |karyi: Karyi, expected: &str| {
        assert_eq!(statuses(home(karyi), &[script])[0].0, expected);
    };
    check(Karyi::new(), "bash none\n");
    check(Karyi::new().args(&["--shell", "bash"]), "bash bash\n");
    if !zsh() {
        return;
    }
    check(Karyi::new().args(&["--shell", "zsh"]), "zsh zsh\n");
    check(
        Karyi::new().args(&["--shell", "zsh", "--no-rc"]),
        "zsh none\n",
    );
    check(Karyi::new().env("KARYI_SHELL", "zsh"), "zsh zsh\n");
    let karyi = Karyi::new()
        .env("KARYI_SHELL", "zsh")
        .args(&["--shell", "bash"]);
    check(karyi, "bash bash\n");
    let karyi = Karyi::new();
    let config = karyi.work().join("../home/.config/karyi");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "shell = \"zsh\"\n").unwrap();
    check(karyi, "zsh zsh\n");
}

#[test]
fn a_wrong_shell_is_an_error_before_anything_runs() {
    let check = |karyi: Karyi, place: &str| {
        let ran = karyi
            .stdin("<tools><command>touch made</command></tools>")
            .run();
        let message = ran.stderr_text();
        assert!(
            message.contains(place) && message.contains("/no/zsh"),
            "{message}"
        );
        ran.exit(2).tree(&[]);
    };
    check(Karyi::new().args(&["--shell", "/no/zsh"]), "--shell: ");
    check(Karyi::new().env("KARYI_SHELL", "/no/zsh"), "KARYI_SHELL: ");
    check(
        Karyi::with_args(&["mcp", "--shell", "/no/zsh"]),
        "--shell: ",
    );
    check(
        Karyi::with_args(&["tools", "prompt"]).env("KARYI_SHELL", "/no/zsh"),
        "KARYI_SHELL: ",
    );
}

#[test]
fn the_prompt_names_the_shell() {
    let prompt = |karyi: Karyi| karyi.run().exit(0).stdout();
    let text = prompt(Karyi::with_args(&["tools", "prompt"]).env("SHELL", "/usr/bin/zsh"));
    assert!(text.contains("Commands run in bash 5."), "{text}");
    if zsh() {
        let text = prompt(Karyi::with_args(&["tools", "prompt"]).env("KARYI_SHELL", "zsh"));
        assert!(text.contains("Commands run in zsh 5."), "{text}");
        assert!(text.len() <= 6000, "{}", text.len());
    }
}

#[test]
fn errors_name_no_private_path() {
    for shell in ["bash", "zsh", "dash", "ksh", "mksh", "busybox"] {
        if !Path::new("/usr/bin").join(shell).exists() {
            skip(&format!("no {shell}"));
            continue;
        }
        let scripts = [
            "nosuch",
            "if true; then",
            "x=${undefined?oops}",
            "echo $((1/0))",
        ];
        for (output, _) in statuses(Karyi::new().args(&["--shell", shell, "--no-rc"]), &scripts) {
            assert!(
                !output.is_empty() && !output.contains("/session-"),
                "{shell}: {output}"
            );
        }
    }
}

#[test]
fn zsh_gives_the_status_of_a_script() {
    if !zsh() {
        return;
    }
    let scripts = [
        "echo foo[bar]",
        "status=3",
        "x=${undefined?oops}",
        "echo $((1/0))",
        "if true; then",
        "ls *.nope",
        "f() { y=${undefined?oops} }; f",
        "/etc/passwd",
        "/etc",
        "sh -c /etc/passwd",
        "(exit 126)",
        "nosuch",
        "false",
    ];
    let found = statuses(Karyi::new().args(&["--shell", "zsh", "--no-rc"]), &scripts);
    for (script, (output, status)) in scripts.iter().zip(found) {
        let mut zsh = std::process::Command::new("/usr/bin/zsh");
        let expected = zsh
            .args(["-f", "-c", script])
            .output()
            .unwrap()
            .status
            .code();
        assert_eq!(status, json!(expected), "{script}: {output}");
    }
}

/// Start-up files that take longer than they may.
fn with_slow_files(karyi: Karyi) -> Karyi {
    let home = karyi.work().join("../home");
    for name in [".bashrc", ".zshrc"] {
        std::fs::write(home.join(name), "export FOO=1\nsleep 100\nexport FOO=2\n").unwrap();
    }
    karyi.args(&["--rc-timeout", "1"])
}

#[test]
fn slow_start_up_files_are_told_of_in_the_first_result() {
    let note = "bash stopped reading its start-up files after 1 s; what they had set by then stays, and \
                --rc-timeout SECONDS gives them longer";
    let script = "<tools><command>echo $FOO</command><command>echo $FOO</command></tools>";
    let report = with_slow_files(Karyi::new())
        .arg("--json")
        .stdin(script)
        .run()
        .exit(0)
        .json();
    let results = results(&report);
    assert_eq!(
        (&results[0]["output"], &results[0]["note"]),
        (&json!("1\n"), &json!(note))
    );
    assert_eq!(
        (&results[1]["output"], &results[1]["note"]),
        (&json!("1\n"), &Value::Null)
    );
    for format in ["xml", "text", "jsonl"] {
        let ran = with_slow_files(Karyi::new())
            .args(&["--format", format])
            .stdin(script)
            .run();
        assert_eq!(
            ran.stdout().matches(note).count(),
            1,
            "{format}: {}",
            ran.stdout()
        );
    }
}

#[test]
fn a_conversation_runs_in_the_users_shell() {
    let shells = [
        ("/bin/bash", "bash"),
        ("/usr/bin/zsh", "zsh"),
        ("/usr/bin/dash", "bash"),
    ];
    for (own, expected) in shells
        .into_iter()
        .filter(|(own, _)| Path::new(own).exists())
    {
        let karyi = with_slow_files(Karyi::with_args(&["mcp"])).env("SHELL", own);
        let mut client = Client::start(karyi);
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let hello = client.request("initialize", params);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let told = hello["result"]["instructions"].as_str().unwrap();
        assert!(
            told.contains(&format!("Commands run in {expected} 5.")),
            "{told}"
        );
        assert_eq!(told.contains("arrays from 1"), expected == "zsh", "{told}");
        let text = "echo ${BASH_VERSION:+bash}${ZSH_VERSION:+zsh} $FOO";
        let call = json!({"name": "command", "arguments": {"text": text}});
        let answer = client.request("tools/call", call)["result"]["structuredContent"].clone();
        assert_eq!(
            answer["output"],
            format!("{expected} 1\n"),
            "{own}: {answer}"
        );
        let note = answer["note"].as_str().unwrap_or_default();
        assert!(
            note.starts_with(&format!("{expected} stopped reading")),
            "{own}: {answer}"
        );
    }
}
