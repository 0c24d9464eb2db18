//! `karyi chats`, through the program.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::Karyi;

/// Starts of the ids of two chats.
const FIRST: &str = "20261128-115700-aa";
const SECOND: &str = "20261129-080000-bb";

/// A directory for `KARYI_HOME` with chats.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, id: &str) -> PathBuf {
        self.0
            .path()
            .join("state/chats")
            .join(format!("{id}.jsonl"))
    }

    /// Keeps a chat of a directory; its title holds an escape sequence.
    fn keep(&self, id: &str, cwd: &Path, text: &str) {
        let records = [
            json!({"type": "start", "at": "2026-11-28T11:57:00Z", "version": 1, "cwd": cwd, "model": "local"}),
            json!({"type": "user", "at": "2026-11-28T11:57:01Z", "text": text}),
            json!({"type": "call", "at": "2026-11-28T11:57:02Z", "id": "1", "tool": "read", "title": "a\u{1b}[2Jb", "status": "ok"}),
            json!({"type": "answer", "at": "2026-11-28T11:57:03Z", "text": "I look.\n<tools>\n<read><file src=\"a\"/></read>\n</tools>\n"}),
            json!({"type": "report", "at": "2026-11-28T11:57:03Z", "text": "<results>```</results>"}),
            json!({"type": "later", "at": "2026-11-28T11:57:04Z"}),
            json!({"type": "answer", "at": "2026-11-28T11:57:04Z", "text": "Done."}),
            json!({"type": "turn_end", "at": "2026-11-28T11:58:00Z", "end": "done", "steps": 2}),
        ];
        let lines = records.iter().map(|record| format!("{record}\n"));
        fs::create_dir_all(self.file(id).parent().unwrap()).unwrap();
        fs::write(self.file(id), lines.collect::<String>()).unwrap();
    }

    fn karyi(&self, args: &[&str]) -> Karyi {
        Karyi::with_args(args).env("KARYI_HOME", self.0.path())
    }
}

#[test]
fn chats_are_listed_for_their_directory_or_all() {
    let home = Home::new();
    home.karyi(&["chats", "list"])
        .run()
        .stdout_text("")
        .stderr("karyi: there are no chats of this directory; --all lists the others\n")
        .exit(0);
    let here = home.karyi(&["chats", "list"]);
    home.keep(FIRST, &here.work().canonicalize().unwrap(), "Mend\nit.");
    home.keep(SECOND, Path::new("/elsewhere"), "Look.");
    fs::write(home.file("broken"), "no chat").unwrap();
    fs::write(home.0.path().join("state/chats/other.txt"), "").unwrap();
    let line = format!("{FIRST}  2026-11-28 11:58    1 turn  Mend\n");
    here.run().stdout_text(&line).stderr("").exit(0);
    let all = home.karyi(&["chats", "list", "--all"]).run().exit(0);
    assert_eq!(all.stdout().lines().count(), 2, "{}", all.stdout());
    let other = format!("{SECOND}  2026-11-28 11:58    1 turn  Look.  (/elsewhere)\n");
    assert!(all.stdout().contains(&other), "{}", all.stdout());
    let list = home
        .karyi(&["chats", "list", "--all", "--json"])
        .run()
        .exit(0);
    let list = list.json();
    let found = list.as_array().unwrap().iter();
    let mut titles: Vec<&Value> = found.map(|chat| &chat["title"]).collect();
    titles.sort_by_key(|title| title.as_str());
    assert_eq!(titles, ["Look.", "Mend"]);
}

#[test]
fn a_chat_is_shown_and_exported() {
    let home = Home::new();
    home.keep(FIRST, Path::new("/p"), "Mend\nit.");
    let shown = "chat 20261128-115700-aa: Mend\n/p, local, started 2026-11-28 11:57 UTC\n\n\
        > Mend\n> it.\n\nI look.\n[read a\u{1b}[2Jb: ok]\nDone.\n";
    home.karyi(&["chats", "show", "2026"])
        .run()
        .stdout_text(shown)
        .stderr("")
        .exit(0);
    let json = home
        .karyi(&["chats", "show", FIRST, "--json"])
        .run()
        .exit(0)
        .json();
    assert_eq!(
        (&json["turns"], &json["model"]),
        (&json!(1), &json!("local"))
    );
    assert_eq!(json["records"].as_array().unwrap().len(), 6);
    let page = home
        .karyi(&["chats", "export", FIRST])
        .run()
        .exit(0)
        .stdout();
    let expected = "# Mend\n\n- chat 20261128-115700-aa, started 2026-11-28 11:57 UTC\n- directory /p\n- model local\n\n\
        ## User\n\nMend\nit.\n\n\
        ## Model\n\nI look.\n```\n<tools>\n<read><file src=\"a\"/></read>\n</tools>\n```\n\n\
        ### Results\n\n```\n<results>```</results>\n```\n\n\
        ## Model\n\nDone.\n";
    assert_eq!(page, expected);
    let exported = home
        .karyi(&["chats", "export", FIRST, "--format", "json"])
        .run();
    assert_eq!(exported.exit(0).json(), json);
}

#[test]
fn chats_are_removed_and_unknown_ones_named() {
    let home = Home::new();
    home.keep(FIRST, Path::new("/p"), "One.");
    home.keep(SECOND, Path::new("/p"), "Two.");
    let several = "karyi: bad_arguments: \"2026112\" is the start of several chats: ";
    let error = home
        .karyi(&["chats", "show", "2026112"])
        .run()
        .exit(2)
        .stderr_text();
    assert!(error.starts_with(several), "{error}");
    home.karyi(&["chats", "rm", "20261129", "x"])
        .run()
        .stderr("karyi: not_found: there is no chat \"x\"\nkaryi: hint: `karyi chats list --all` lists the chats\n")
        .exit(2);
    assert!(home.file(SECOND).exists());
    home.karyi(&["chats", "rm", "20261129"])
        .run()
        .stdout_text("")
        .exit(0);
    assert!(home.file(FIRST).exists() && !home.file(SECOND).exists());
    for name in ["../../state/chats/20261128-115700-aa", "", "."] {
        home.karyi(&["chats", "rm", name]).run().exit(2);
    }
    assert!(home.file(FIRST).exists());
}

#[test]
fn damage_is_said() {
    let home = Home::new();
    home.keep(FIRST, Path::new("/p"), "One.");
    let file = home.file(FIRST);
    let text = fs::read_to_string(&file).unwrap() + "{\"type\":";
    fs::write(&file, text).unwrap();
    let damage =
        format!("karyi: {FIRST}: the last record was not complete, and 8 bytes are left out\n");
    home.karyi(&["chats", "show", FIRST])
        .run()
        .stderr(&damage)
        .exit(0);
    let list = home
        .karyi(&["chats", "list", "--all"])
        .run()
        .exit(0)
        .stdout();
    assert!(list.ends_with("[damaged]\n"), "{list}");
}

#[test]
fn json_escapes_what_a_terminal_would_act_on() {
    let home = Home::new();
    let text = "a\u{202E}b\u{9B}2Jc\u{200B}d";
    let list = home.karyi(&["chats", "list", "--json"]);
    home.keep(FIRST, &list.work().canonicalize().unwrap(), text);
    let show = home.karyi(&["chats", "show", FIRST, "--json"]);
    let export = home.karyi(&["chats", "export", FIRST, "--format", "json"]);
    for karyi in [list, show, export] {
        let output = karyi.run().exit(0).stdout();
        assert!(output.contains(r"a\u202eb\u009b2Jc\u200bd"), "{output}");
        let value: Value = serde_json::from_str(&output).unwrap();
        let chat = value.get(0).unwrap_or(&value);
        assert_eq!(chat["title"], text);
    }
}
