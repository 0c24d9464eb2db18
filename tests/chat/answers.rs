//! Whole answers: what runs, what is shown, and what the model gets back.

use std::sync::Arc;

use karyi::approval::Mode;
use karyi::chat::turn::TurnEnd;
use karyi::model::StopReason;
use karyi::model::scripted::{ScriptedModel, Step};
use tokio::sync::Semaphore;

use super::harness::{Chat, Seen, messages};

const FIRST: &str = "I look.\n<tools><command>echo hi</command></tools>\nNow I know.\n";
const REPORT: &str = "<results>\n  <result id=\"1\" tool=\"command\" status=\"ok\"><output>hi\n</output></result>\n</results>";

#[test]
fn an_answer_with_calls_is_run_and_one_without_is_the_last() {
    let chat = Chat::new();
    let mut seen = Seen::default();
    let model = ScriptedModel::texts(&[FIRST, "It says hi.\n"]);
    let (report, requests) = chat.turn(model, &mut seen);
    assert_eq!(report.end, TurnEnd::Done);
    assert_eq!((report.answer.as_str(), report.steps), ("It says hi.", 2));
    assert_eq!(seen.text, "I look.\n\nNow I know.\nIt says hi.\n");
    assert_eq!(
        seen.calls,
        ["started 1", "finished 1 ok", "warning no-block"]
    );
    assert_eq!(requests.len(), 2);
    assert_eq!(messages(&requests[0]), ["user: Do it."]);
    let expected = [
        "user: Do it.".to_owned(),
        format!("model: {FIRST}"),
        format!("user: {REPORT}"),
    ];
    assert_eq!(messages(&requests[1]), expected);
}

#[test]
fn every_cut_of_an_answer_gives_the_same() {
    let text = "Sö.\n<tools>\n<read><file src=\"f\"/></read>\n</tools>\nEnd `<tools>` <b>\n";
    let run = |pieces: &[&str]| {
        let chat = Chat::new();
        std::fs::write(chat.work().join("f"), "x\n").unwrap();
        let mut first: Vec<Step> = pieces.iter().map(|piece| Step::text(piece)).collect();
        first.push(Step::stop(StopReason::End));
        let last = vec![Step::text("Done."), Step::stop(StopReason::End)];
        let mut seen = Seen::default();
        let (report, requests) = chat.turn(ScriptedModel::new(vec![first, last]), &mut seen);
        let asked: Vec<_> = requests.iter().map(messages).collect();
        // A warning comes before or after the result of a call.
        seen.calls.sort();
        (report.end, report.answer, seen.text, seen.calls, asked)
    };
    let whole = run(&[text]);
    assert_eq!(whole.2, "Sö.\n\nEnd `<tools>` <b>\nDone.");
    for at in (1..text.len()).filter(|at| text.is_char_boundary(*at)) {
        assert_eq!(run(&[&text[..at], &text[at..]]), whole, "cut at {at}");
    }
    let single: Vec<String> = text.chars().map(String::from).collect();
    let single: Vec<&str> = single.iter().map(String::as_str).collect();
    assert_eq!(run(&single), whole);
}

#[test]
fn a_call_starts_while_the_answer_is_written() {
    let chat = Chat::new();
    let started = Arc::new(Semaphore::new(0));
    let mut seen = Seen {
        started: Some(Arc::clone(&started)),
        ..Seen::default()
    };
    let first = vec![
        Step::text("<tools><read><file src=\"f\"/></read>"),
        Step::Wait(started),
        Step::text("</tools>\nMore."),
        Step::stop(StopReason::End),
    ];
    let last = vec![Step::text("Done."), Step::stop(StopReason::End)];
    let (report, _) = chat.turn(ScriptedModel::new(vec![first, last]), &mut seen);
    assert_eq!(report.end, TurnEnd::Done);
    assert_eq!(seen.text, "\nMore.Done.");
}

#[test]
fn only_the_text_of_an_answer_runs() {
    let chat = Chat::new();
    let block = "<tools><command>touch ran</command></tools>";
    let mut seen = Seen::default();
    let first = vec![
        Step::reasoning(&format!("\n{block}\n")),
        Step::text(&format!(
            "As in\n```sh\n{block}\n```\nand <think>\n{block}\n</think>.\n"
        )),
        Step::stop(StopReason::End),
    ];
    let last = vec![Step::text("Done."), Step::stop(StopReason::End)];
    let (report, requests) = chat.turn(ScriptedModel::new(vec![first, last]), &mut seen);
    assert_eq!(report.end, TurnEnd::Done);
    assert!(!chat.work().join("ran").exists());
    assert_eq!(seen.reasoning, format!("\n{block}\n"));
    let told = messages(&requests[1]);
    assert!(told[2].contains("ignored-block"), "{}", told[2]);
    // Reasoning is not sent back.
    assert_eq!(told[1].matches(block).count(), 2, "{}", told[1]);
}

#[test]
fn results_that_the_model_makes_up_end_its_answer() {
    let chat = Chat::new();
    let made_up = "<tools><command>echo hi</command></tools>\n<results>\n<result>bye</result>";
    let never = Arc::new(Semaphore::new(0));
    let first = vec![
        Step::text(made_up),
        Step::text("\nSo it is bye."),
        Step::Wait(never),
    ];
    let last = vec![Step::text("It is hi."), Step::stop(StopReason::End)];
    let mut seen = Seen::default();
    let (report, requests) = chat.turn(ScriptedModel::new(vec![first, last]), &mut seen);
    assert_eq!(
        (report.end, report.answer.as_str()),
        (TurnEnd::Done, "It is hi.")
    );
    let told = messages(&requests[1]);
    assert_eq!(
        told[1],
        "model: <tools><command>echo hi</command></tools>\n"
    );
    assert!(told[2].contains("<output>hi"), "{}", told[2]);
    assert!(told[2].contains("invented-results"), "{}", told[2]);
}

#[test]
fn results_that_the_model_makes_up_are_not_shown_at_any_cut() {
    let answer = "Hi <b>\n\n <results>\n<result>fake</result>\n</results>\nAll passes.\n";
    for size in 1..=answer.len() {
        let chat = Chat::new();
        let pieces = answer.as_bytes().chunks(size);
        let mut first: Vec<Step> = pieces
            .map(|piece| Step::text(str::from_utf8(piece).unwrap()))
            .collect();
        first.push(Step::stop(StopReason::End));
        let last = vec![Step::text("Done."), Step::stop(StopReason::End)];
        let mut seen = Seen::default();
        let (report, _) = chat.turn(ScriptedModel::new(vec![first, last]), &mut seen);
        assert_eq!(report.answer, "Done.", "pieces of {size}");
        assert_eq!(
            seen.text.trim_end_matches("Done.").trim_end(),
            "Hi <b>",
            "pieces of {size}"
        );
    }
}

#[test]
fn calls_that_nobody_permitted_do_not_run() {
    let text = "<tools><read><file src=\"f\"/></read><command>touch ran</command></tools>";
    for (mode, expected) in [
        (Mode::Full, ["finished 1 ok", "finished 2 ok"]),
        (Mode::Ask, ["finished 1 ok", "finished 2 refused"]),
        (Mode::Nothing, ["finished 1 refused", "finished 2 refused"]),
    ] {
        let chat = Chat {
            mode,
            ..Chat::new()
        };
        std::fs::write(chat.work().join("f"), "x\n").unwrap();
        let mut seen = Seen::default();
        let model = ScriptedModel::texts(&[text, "I may not."]);
        let (report, requests) = chat.turn(model, &mut seen);
        let finished: Vec<&String> = seen.calls.iter().filter(|c| c.starts_with("fin")).collect();
        assert_eq!(finished, expected, "{mode:?}");
        let is_permitted = mode == Mode::Full;
        assert_eq!(chat.work().join("ran").exists(), is_permitted);
        assert_eq!(report.needs_approval, !is_permitted);
        let told = messages(&requests[1]).join("\n");
        assert_eq!(told.contains("needs_approval"), !is_permitted, "{told}");
    }
}
