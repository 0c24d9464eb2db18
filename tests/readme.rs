//! The sessions shown in the README come out as they are shown there.

use crate::harness::{Karyi, without_durations, without_temporary_names};

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
        output: output.to_owned(),
    }
}

#[test]
fn the_sessions_of_the_readme() {
    let sessions = sessions();
    assert_eq!(sessions.len(), 3);
    for session in sessions {
        let format = if session.is_piped { "xml" } else { "text" };
        let ran = Karyi::with_args(&["run", "--no-interactive", "--format", format, &session.file])
            .file(&session.file, &session.content)
            .run();
        let found = without_temporary_names(&ran.stdout()).replace("ROOT/tmp", "/tmp");
        assert_eq!(
            found,
            without_durations(&session.output),
            "{}",
            session.file
        );
    }
}

#[test]
fn the_two_commands_are_there() {
    let readme = include_str!("../README.md");
    assert!(readme.contains("cargo run --release -- run examples/01-hello.xml\n./tests/run\n"));
}
