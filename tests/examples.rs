//! Every script in `examples/` runs and gives the report that stands beside it in `tests/examples/`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{Karyi, program, skip, without_slow, without_temporary_names};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn script(name: &str) -> String {
    fs::read_to_string(root().join("examples").join(format!("{name}.xml"))).unwrap()
}

/// Runs an example in an empty directory and compares its report. `KARYI_BLESS=1` writes it anew.
#[track_caller]
fn check(name: &str, exit: i32) {
    check_in(Karyi::new(), name, exit);
}

/// Runs an example with these options and files.
#[track_caller]
fn check_in(karyi: Karyi, name: &str, exit: i32) {
    let ran = karyi.stdin(script(name)).run();
    let path = root()
        .join("tests/examples")
        .join(format!("{name}.report.xml"));
    let minutes = regex::Regex::new("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}").unwrap();
    let found = without_temporary_names(&ran.stdout());
    let found = minutes.replace_all(&found, "2026-01-01 00:00");
    if std::env::var_os("KARYI_BLESS").is_some() {
        fs::write(&path, &*found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    // Any call may be a slow one on a busy machine.
    assert_eq!(without_slow(&found), without_slow(&expected), "{name}");
    ran.exit(exit).tree(&[]);
}

#[test]
fn every_example_is_run_here() {
    let mut names: Vec<String> = fs::read_dir(root().join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".xml"))
        .collect();
    names.sort();
    let source = fs::read_to_string(root().join("tests/examples.rs")).unwrap();
    for name in &names {
        let stem = name.trim_end_matches(".xml");
        assert!(
            source.contains(&format!("\"{stem}\"")),
            "{name} is run by no test"
        );
    }
    assert!(names.len() >= 8, "{names:?}");
}

#[test]
fn hello() {
    check("01-hello", 0);
}

#[test]
fn files_of_an_assistant() {
    let karyi = Karyi::new().args(&["--tools", "assistant"]);
    check_in(karyi, "11-files-of-an-assistant", 0);
}

#[test]
fn duties() {
    let settings = "[tools.todo_update]\nwithout_model = true\n";
    let karyi = Karyi::new()
        .args(&["--tools", "assistant"])
        .file("../home/.config/karyi/config.toml", settings);
    check_in(karyi, "12-duties", 1);
}

#[test]
fn a_page() {
    let karyi = Karyi::new().args(&["--tools", "core,assistant"]).file(
        "../home/.config/karyi/config.toml",
        "[guard]\nallow = [\"http://localhost:47813\"]\n",
    );
    check_in(karyi, "13-a-page", 2);
}

#[test]
fn session_state() {
    check("02-session-state", 1);
}

#[test]
fn edit_two_files() {
    check("03-edit-two-files", 0);
}

#[test]
fn read_and_search() {
    check("04-read-and-search", 0);
}

#[test]
fn answer_a_prompt() {
    check("05-answer-a-prompt", 0);
}

#[test]
fn interrupt_a_server() {
    check("06-interrupt-a-server", 0);
}

#[test]
fn a_secret_without_a_terminal() {
    check("07-a-secret", 3);
}

#[test]
fn a_secret_typed_by_a_person() {
    let karyi = Karyi::with_args(&["run", "secret.xml"]).file("secret.xml", script("07-a-secret"));
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("value (hidden")
        .answer("s3cret-token-value");
    let (screen, status) = terminal.end();
    assert!(screen.contains("token: $KARYI{API_TOKEN}"), "{screen}");
    assert!(screen.contains("length: 18"), "{screen}");
    assert!(!screen.contains("s3cret"), "{screen}");
    assert_eq!(status, 0);
}

#[test]
fn long_build() {
    check("08-long-build", 0);
}

#[test]
fn search() {
    check("09-search", 1);
}

#[test]
fn rename_and_delete() {
    check("10-rename-and-delete", 0);
}

#[test]
fn the_library_lists_calls() {
    use std::io::Write;
    use std::process::{Command, Stdio};

    // `cargo test` builds it as well, unless it is told which targets to build.
    let built = program().with_file_name("examples").join("library");
    if !built.exists() {
        return skip("no example is built; cargo build --example library does that");
    }
    let mut child = Command::new(built)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(script("05-answer-a-prompt").as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "block\n  1 command: read -p \"name? \" name; echo \"hi $name\"\n  2 input: Ada\\n\n"
    );
}

/// A model that asks for one command, and says at the end what its conversation was.
const MODEL: &str = r#"#!/bin/sh
talk=$(cat)
case $talk in
*'<output>42'*)
    # The text for models comes first, then the task, then each answer with its report.
    case $talk in
    *'<command>'*'The task: multiply'*'I compute.'*'<results>'*) echo "It is 42." ;;
    esac
    ;;
*'The task: multiply') printf 'I compute.\n<tools><command>echo $((6 * 7))</command></tools>\n' ;;
esac
"#;

#[test]
fn a_loop_with_a_model_ends_with_its_last_word() {
    let karyi = Karyi::with_args(&[]).program("a-model", MODEL);
    let karyi_command = karyi.command();
    let variable = |name: &str| karyi_command.get_envs().find(|(key, _)| *key == name);
    let path = variable("PATH").and_then(|(_, value)| value).unwrap();
    let own = karyi_command.get_program();
    let own = Path::new(own).parent().unwrap().display();
    let output = Command::new("sh")
        .arg(root().join("examples/loop.sh"))
        .args(["a-model", "multiply"])
        .env("PATH", format!("{own}:{}", path.display()))
        .env("TMPDIR", karyi.work())
        .output()
        .unwrap();
    let expected = "I compute.\n<tools><command>echo $((6 * 7))</command></tools>\nIt is 42.\n";
    let found = String::from_utf8(output.stdout).unwrap();
    assert_eq!((found.as_str(), output.status.code()), (expected, Some(0)));
    // The conversation is gone.
    let left = fs::read_dir(karyi.work()).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = left.filter(|name| name.starts_with("tmp.")).collect();
    assert_eq!(left, [""; 0]);
}
