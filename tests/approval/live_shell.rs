//! What an earlier call has made of a name is known before a call runs without a question.

use karyi::approval::{CallAnswer, Mode};
use karyi::pty::Meaning;

use super::support::{Stage, block_on};

/// Changes of the shell, with what is asked about the next `git status`.
const CHANGES: &[(&str, &str)] = &[
    (
        "git() { touch p; }",
        "git: it is a function or a remembered place in the shell",
    ),
    ("alias git='touch p'", "git: it is an alias in the shell"),
    ("PATH=$PWD:$PATH", "git: it is now the program"),
    ("hash -p \"$PWD/git\" git", "git: it is now the program"),
];

#[test]
fn a_name_with_another_meaning_is_asked_about() {
    for (shell, count) in [("/bin/bash", 4), ("/usr/bin/zsh", 3)] {
        for (change, question) in CHANGES.iter().take(count) {
            block_on(check(shell, change, question));
        }
    }
}

async fn check(shell: &str, change: &str, question: &str) {
    let mut stage = Stage::new(shell, Mode::Ask, &["git status"]);
    let fake = stage.file("git");
    std::fs::write(&fake, "#!/bin/sh\ntouch p\n").unwrap();
    std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let status = "<tools><command>git status; true</command></tools>";
    let results = stage.message(status).await;
    assert!(
        results[0].starts_with("1 ok"),
        "{shell} {change}: {results:?}"
    );
    assert_eq!(
        stage.person.asked(),
        Vec::<Vec<String>>::new(),
        "{shell} {change}"
    );
    stage.person.answers(vec![vec![CallAnswer::Yes]]);
    let results = stage
        .message(&format!("<tools><command>{change}</command></tools>"))
        .await;
    assert_eq!(results, ["1 ok"], "{shell} {change}");
    stage.person.asked();
    let results = stage.message(status).await;
    assert_eq!(
        results,
        ["1 refused denied: the user does not want it"],
        "{shell} {change}"
    );
    let asked = stage.person.asked();
    assert!(
        asked[0][0].starts_with(&format!("1: {question}")),
        "{shell} {change}: {asked:?}"
    );
    // In the same block as the change, the shell is asked when the turn of the call has come.
    let both =
        format!("<tools><command>cd .; {change}</command><command>git status</command></tools>");
    stage
        .person
        .answers(vec![vec![CallAnswer::Yes, CallAnswer::Yes]]);
    let results = stage.message(&both).await;
    assert_eq!(
        results[1], "2 refused denied: the user does not want it",
        "{shell} {change}"
    );
    assert!(!stage.file("p").exists(), "{shell} {change}");
    stage.close().await;
}

#[test]
fn the_question_to_the_shell_leaves_no_trace() {
    block_on(async {
        let mut stage = Stage::new("/bin/bash", Mode::Ask, &["touch *"]);
        stage
            .message("<tools><command>touch a; false</command></tools>")
            .await;
        let session = stage.run.context.sessions.current().unwrap().session;
        let names = session
            .names(&["cd", "sh", "no-such-command"])
            .await
            .unwrap();
        let path = std::env::var("PATH").unwrap();
        assert_eq!(names.search_path, path);
        assert_eq!(names.meanings[0], Meaning::Builtin);
        assert!(matches!(&names.meanings[1], Meaning::File(file) if file.ends_with("sh")));
        assert_eq!(names.meanings[2], Meaning::Nothing);
        let results = stage
            .message("<tools><command>echo $?</command></tools>")
            .await;
        assert_eq!(results, ["1 ok: 1"]);
        stage.close().await;
    });
}

#[test]
fn a_shell_that_does_not_answer_in_time_is_free_again() {
    block_on(async {
        let mut stage = Stage::new("/bin/bash", Mode::Full, &[]);
        let slow = "set -T; trap 'case $BASH_COMMAND in *such-name*) sleep 600;; esac' DEBUG";
        stage
            .message(&format!("<tools><command>{slow}</command></tools>"))
            .await;
        let session = stage.run.context.sessions.current().unwrap().session;
        let error = session.names(&["no-such-name"]).await.unwrap_err();
        assert!(error.message.contains("in time"), "{}", error.message);
        assert_eq!(session.job(), None);
        let results = stage
            .message("<tools><command>echo on</command></tools>")
            .await;
        assert_eq!(results, ["1 ok: on"]);
        stage.close().await;
    });
}

#[test]
fn another_text_is_no_answer_to_a_question_about_one_call() {
    block_on(async {
        let mut stage = Stage::new("/bin/bash", Mode::Ask, &["git status"]);
        let block =
            "<tools><command>git() { touch p; }</command><command>git status</command></tools>";
        let edited = CallAnswer::Edited("touch q".to_owned());
        stage
            .person
            .answers(vec![vec![CallAnswer::Yes, CallAnswer::Yes], vec![edited]]);
        let results = stage.message(block).await;
        assert_eq!(results[1], "2 refused denied: the user does not want it");
        let there = ["p", "q"].map(|name| stage.file(name).exists());
        assert_eq!(there, [false, false]);
        stage.close().await;
    });
}

#[test]
fn a_rule_that_cannot_be_stored_is_told() {
    block_on(async {
        let mut stage = Stage::new("/bin/bash", Mode::Ask, &["git status"]);
        stage
            .person
            .is_full
            .store(true, std::sync::atomic::Ordering::SeqCst);
        let block =
            "<tools><command>git() { touch p; }</command><command>git status</command></tools>";
        let always = CallAnswer::Always(vec!["git status".to_owned()]);
        stage
            .person
            .answers(vec![vec![CallAnswer::Yes], vec![always]]);
        assert_eq!(stage.message(block).await, ["1 ok", "2 ok"]);
        let note = "the rule holds for this session only: the disk is full";
        assert_eq!(stage.warnings, [note]);
        stage.close().await;
    });
}
