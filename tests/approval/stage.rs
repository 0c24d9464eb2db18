//! When calls start, when the person is asked, and what becomes of the answers.

use karyi::approval::{CallAnswer, Mode};

use super::support::{Stage, block_on};

fn no(reason: &str) -> CallAnswer {
    CallAnswer::No(reason.to_owned())
}

#[test]
fn allowed_calls_run_at_once_and_nothing_after_an_asked_one_before_the_end() {
    block_on(async {
        let mut stage = Stage::new("/bin/bash", Mode::Ask, &["touch after"]);
        let first = "<tools>\n<command>echo one</command><!--ran-->\n<read><file src=\".\"/></read><!--ran-->\n";
        let rest = "<command>touch asked</command>\n<command>touch after</command>\n<command>echo last</command>\n";
        stage
            .person
            .answers(vec![vec![no("not now")], vec![no("no")]]);
        let after = stage.file("after");
        let person = stage.person.clone();
        let results = stage
            .pieces(&[first, rest, " ", "</tools>"], |results| {
                assert_eq!(results.len(), 2, "{results:?}");
                assert_eq!(person.asked(), Vec::<Vec<String>>::new());
            })
            .await;
        assert!(results[0].starts_with("1 ok: one"), "{results:?}");
        assert_eq!(
            results[2..],
            [
                "3 refused denied: the user does not want it: not now",
                "4 refused denied: the user does not want it: no",
                "5 ok: last",
            ]
        );
        assert!(!after.exists());
        let asked = stage.person.asked();
        assert_eq!(
            asked,
            [
                vec!["3: touch asked: no rule allows it"],
                vec!["4: touch after: it may build on call 3, which was denied"],
            ]
        );
        stage.close().await;
    });
}

#[test]
fn answers_are_applied() {
    block_on(async {
        let mut stage = Stage::new("/bin/bash", Mode::Ask, &[]);
        let block = "<tools><command>touch a; touch b</command><command>touch c</command></tools>";
        let rules = vec!["touch a".to_owned(), "touch b".to_owned()];
        let edited = CallAnswer::Edited("touch d".to_owned());
        stage
            .person
            .answers(vec![vec![CallAnswer::Always(rules.clone()), edited]]);
        let results = stage.message(block).await;
        assert_eq!(results, ["1 ok", "2 ok"]);
        let there = ["a", "b", "c", "d"].map(|name| stage.file(name).exists());
        assert_eq!(there, [true, true, false, true]);
        assert_eq!(*stage.person.stored.lock().unwrap(), rules);
        assert_eq!(stage.person.asked().len(), 1);
        // The rules hold from now on; the edited text was approved once.
        let results = stage
            .message("<tools><command>touch b</command></tools>")
            .await;
        assert_eq!(
            (results, stage.person.asked().len()),
            (vec!["1 ok".to_owned()], 0)
        );
        let results = stage
            .message("<tools><command>touch d</command></tools>")
            .await;
        assert_eq!(results, ["1 refused denied: the user does not want it"]);
        stage.close().await;
    });
}

#[test]
fn calls_after_a_changed_one_are_asked_about_again() {
    block_on(async {
        let mut stage = Stage::new("/bin/bash", Mode::Ask, &["touch b"]);
        let block = "<tools><command>touch a</command><command>touch b</command><command>echo c</command></tools>";
        let edited = CallAnswer::Edited("touch d".to_owned());
        stage.person.answers(vec![vec![edited], vec![no("")]]);
        let results = stage.message(block).await;
        assert_eq!(
            results,
            [
                "1 ok",
                "2 refused denied: the user does not want it",
                "3 ok: c"
            ]
        );
        let there = ["a", "b", "d"].map(|name| stage.file(name).exists());
        assert_eq!(there, [false, false, true]);
        let asked = stage.person.asked();
        let again = "2: touch b: it may build on call 1, which was changed";
        assert_eq!(asked[1], [again]);
        stage.close().await;
    });
}

#[test]
fn without_an_end_nobody_is_asked_and_nothing_runs() {
    block_on(async {
        let mut stage = Stage::new("/bin/bash", Mode::Ask, &[]);
        let results = stage
            .message("<tools><command>touch a</command><command>ls</command>")
            .await;
        let held = results
            .iter()
            .filter(|result| result.contains("needs_approval: the block has no end"));
        assert_eq!(held.count(), results.len(), "{results:?}");
        assert!(!stage.file("a").exists());
        assert_eq!(stage.person.asked(), Vec::<Vec<String>>::new());
        stage.close().await;
    });
}

#[test]
fn a_mode_is_changed_between_calls() {
    block_on(async {
        let mut stage = Stage::new("/bin/bash", Mode::ReadOnly, &[]);
        let block = "<tools><edit><file src=\"a\"><content>x</content></file></edit></tools>";
        let results = stage.message(block).await;
        assert_eq!(
            results,
            ["1 refused denied: the mode read-only does not permit it"]
        );
        stage.approvals.set_mode(Mode::Edits);
        assert_eq!(stage.message(block).await, ["1 ok"]);
        let outside = block.replace("\"a\"", "\"../a\"");
        let results = stage.message(&outside).await;
        assert_eq!(results, ["1 refused denied: the user does not want it"]);
        stage.approvals.set_mode(Mode::Full);
        assert_eq!(stage.message(&outside).await, ["1 ok"]);
        stage.close().await;
    });
}

#[test]
fn a_file_is_judged_again_when_its_turn_has_come() {
    block_on(async {
        let mut stage = Stage::new("/bin/bash", Mode::Edits, &[]);
        let block = "<tools><command>cd ..</command><edit><file src=\"a\"><content>x</content></file></edit></tools>";
        let results = stage.message(block).await;
        assert_eq!(
            results,
            ["1 ok", "2 refused denied: the user does not want it"]
        );
        assert!(!stage.dir.path().join("a").exists());
        assert_eq!(
            stage.person.asked(),
            [["2: a: it writes a file outside of the project"]]
        );
        stage.close().await;
    });
}

#[test]
fn text_for_a_job_needs_no_question_unless_it_may_be_a_command() {
    block_on(async {
        let mut stage = Stage::new("/bin/bash", Mode::Ask, &[]);
        let block = "<tools><command>read -r -p 'name? ' x; echo \"hi $x\"</command><input>Ada\\n</input></tools>";
        let results = stage.message(block).await;
        assert!(
            results[1].starts_with("2 ok") && results[1].ends_with("hi Ada"),
            "{results:?}"
        );
        assert_eq!(stage.person.asked(), Vec::<Vec<String>>::new());
        stage.person.answers(vec![vec![CallAnswer::Yes, no("")]]);
        let block = "<tools><command>bash --norc</command><input>touch a\\n</input></tools>";
        let results = stage.message(block).await;
        assert!(results[1].contains("denied"), "{results:?}");
        assert!(!stage.file("a").exists());
        let reason = "touch a\\n: the program that gets it may take it for a command";
        let asked = stage.person.asked();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0][1], format!("2: {reason}"));
        let results = stage
            .message("<tools><input>touch a\\n</input></tools>")
            .await;
        assert_eq!(results, ["1 refused denied: the user does not want it"]);
        assert_eq!(
            stage
                .message("<tools><ctrl end=\"true\">c</ctrl></tools>")
                .await
                .len(),
            1
        );
        stage.close().await;
    });
}
