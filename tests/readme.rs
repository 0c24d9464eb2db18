//! The sessions shown in the README print what it shows, and the pages of `docs/` are readable.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::harness::{Karyi, without_durations, without_slow, without_temporary_names};

/// A session of the README: a file, a command and what it prints.
struct Session {
    file: String,
    content: String,
    is_piped: bool,
    output: String,
}

fn sessions() -> Vec<Session> {
    let readme = include_str!("../README.md");
    let blocks = readme.split("```console\n").skip(1);
    blocks
        .map(|block| session(block.split("```\n").next().unwrap()))
        .collect()
}

fn session(block: &str) -> Session {
    let rest = block.strip_prefix("$ cat ").unwrap();
    let (file, rest) = rest.split_once('\n').unwrap();
    let run = format!("$ karyi run {file}");
    let (content, rest) = rest.split_once(&run).unwrap();
    let (pipe, output) = rest.split_once('\n').unwrap();
    Session {
        file: file.to_owned(),
        content: content.to_owned(),
        is_piped: pipe == " | cat",
        output: match output {
            "" => picture(),
            _ => output.to_owned(),
        },
    }
}

/// Returns the lines of the picture below the command that prints them.
fn picture() -> String {
    let text = Regex::new("<text [^>]*>(.*)</text>").unwrap();
    let tag = Regex::new("<[^>]*>").unwrap();
    let picture = include_str!("../docs/terminal.svg");
    let lines = text.captures_iter(picture).map(|line| {
        let line = tag.replace_all(&line[1], "");
        let line = line.replace("&lt;", "<").replace("&gt;", ">");
        line.replace("&amp;", "&") + "\n"
    });
    lines.skip(1).collect()
}

#[test]
fn the_sessions_of_the_readme() {
    let sessions = sessions();
    assert_eq!(sessions.len(), 3);
    for session in sessions {
        let format = if session.is_piped { "xml" } else { "text" };
        for shell in ["/bin/bash", "/usr/bin/zsh"] {
            let ran =
                Karyi::with_args(&["run", "--no-interactive", "--format", format, &session.file])
                    .env("SHELL", shell)
                    .file(&session.file, &session.content)
                    .run();
            let found = without_temporary_names(&ran.stdout()).replace("ROOT/tmp", "/tmp");
            assert_eq!(
                without_slow(&found),
                without_slow(&without_durations(&session.output)),
                "{shell} {}",
                session.file
            );
        }
    }
}

#[test]
fn the_two_commands_are_there() {
    let readme = include_str!("../README.md");
    assert!(readme.contains("cargo run -- run examples/01-hello.xml\n./tests/run\n"));
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = |directory: &str| fs::read_dir(root.join(directory)).unwrap();
    let pages = list("docs").chain(list("docs/decisions"));
    let pages = pages.map(|entry| entry.unwrap().path());
    pages
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect()
}

#[test]
fn pages_are_short() {
    let mut offenders = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let wide = text
            .lines()
            .filter(|line| line.chars().count() > 120)
            .count();
        if text.lines().count() > 150 || wide > 0 {
            let page = page.display();
            offenders.push(format!(
                "{page}: {} lines, {wide} over 120",
                text.lines().count()
            ));
        }
    }
    assert_eq!(offenders, [""; 0]);
}

#[test]
fn links_lead_to_files() {
    let link = Regex::new(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)").unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let others = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "grammar/README.md",
        "fuzz/README.md",
    ];
    let mut broken = Vec::new();
    for page in pages()
        .into_iter()
        .chain(others.map(|other| root.join(other)))
    {
        let text = fs::read_to_string(&page).unwrap();
        for found in link.captures_iter(&text) {
            if !page.parent().unwrap().join(&found[1]).exists() {
                broken.push(format!("{}: {}", page.display(), &found[1]));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let contents = include_str!("../docs/README.md");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let pages = pages()
        .into_iter()
        .filter(|page| page.parent() == Some(&docs));
    let names = pages.map(|page| page.file_name().unwrap().to_string_lossy().into_owned());
    let lost: Vec<String> = names
        .filter(|name| name != "README.md" && !contents.contains(&format!("({name})")))
        .collect();
    assert_eq!(lost, [""; 0]);
}
