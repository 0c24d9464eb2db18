//! `karyi import`, through the program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::Karyi;

const SETTINGS: &str = r#"{"permissions": {"allow": ["Bash(git status)", "WebFetch(domain:x)"], "deny": ["Bash(rm:*)"]}, "model": "claude-x"}"#;

/// Prepares the program with settings of Claude Code, and a login that nobody can read.
fn karyi(args: &[&str]) -> Karyi {
    let karyi = Karyi::with_args(args)
        .file("../home/.claude/settings.json", SETTINGS)
        .file(
            "../home/.claude/.credentials.json",
            "{\"key\": \"sk-secret\"}",
        )
        .file(".mcp.json", "{\"mcpServers\": {\"git\\u001b[2Jhub\": {}}}");
    let login = karyi.work().join("../home/.claude/.credentials.json");
    fs::set_permissions(login, fs::Permissions::from_mode(0o000)).unwrap();
    karyi
}

const FOUND: &str = "read ROOT/home/.claude/settings.json\nread ROOT/work/.mcp.json\n\
    allow: git status\ndeny: rm *\nmodel: anthropic:claude-x\n\
    not taken over: allow: WebFetch(domain:x): karyi has rules about commands and changes of files\nMCP server, not taken over: git␛[2Jhub\n";

#[test]
fn rules_and_the_model_go_into_the_settings_once() {
    for end in ["\n", "\r\n"] {
        let run = karyi(&["import", "claude-code"]);
        let file = run.work().join("../home/.config/karyi/config.toml");
        let before = "# mine\n[approval]\nallow = [\"ls\", \"git status\"]\n";
        let ran = run
            .file(
                "../home/.config/karyi/config.toml",
                before.replace('\n', end),
            )
            .run()
            .exit(0);
        let expected = FOUND.replace("allow: git status\n", "");
        let expected = expected + "written to ROOT/home/.config/karyi/config.toml\n";
        let ran = ran.stdout_text(&expected);
        let text = "model = \"anthropic:claude-x\"\n# mine\n[approval]\nallow = [\"ls\", \"git status\"]\ndeny = [\"rm *\"]\n";
        let found = fs::read_to_string(file).unwrap();
        drop(ran);
        assert_eq!(found, text.replace('\n', end));
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let run = karyi(&["import", "claude-code", "--dry-run"]);
    let end =
        "nothing is written: without --dry-run it goes into ROOT/home/.config/karyi/config.toml\n";
    let file = run.work().join("../home/.config/karyi");
    let ran = run.run().exit(0).stdout_text(&(FOUND.to_owned() + end));
    assert!(!file.exists());
    drop(ran);
    Karyi::with_args(&["import", "codex"])
        .run()
        .stdout_text("no settings were found\n")
        .exit(0);
    Karyi::with_args(&["import", "gemini"])
        .file(".gemini/settings.json", "{")
        .run()
        .stderr("karyi: ROOT/work/.gemini/settings.json: EOF while parsing an object at line 1 column 1\n")
        .exit(2);
}
