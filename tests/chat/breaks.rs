//! Answers that break off, and models that do not get on.

use std::sync::Arc;
use std::time::Duration;

use karyi::chat::turn::{TurnEnd, TurnLimits};
use karyi::model::scripted::{ScriptedModel, Step};
use karyi::model::{ModelError, ModelErrorKind, ModelEvent, StopReason, Usage};
use tokio::sync::Semaphore;

use super::harness::{Chat, Seen, messages};

fn fails(kind: ModelErrorKind) -> Step {
    Step::Fail(ModelError::new(kind, "cut"))
}

fn done() -> Vec<Step> {
    vec![Step::text("Done."), Step::stop(StopReason::End)]
}

/// A block whose first call counts how often it ran, and whose second one is cut at any place.
const COUNT: &str = "Go.\n<tools><command>echo x >> count</command>\n<command>echo never > never";

#[test]
fn an_answer_that_breaks_off_after_a_call_is_not_repeated() {
    let end = COUNT.find("<command>echo never").unwrap() + "<".len();
    for cut in end..=COUNT.len() {
        for broken in [
            fails(ModelErrorKind::Network),
            Step::stop(StopReason::Length),
        ] {
            let chat = Chat::new();
            let first = vec![Step::text(&COUNT[..cut]), broken];
            let model = ScriptedModel::new(vec![first, done()]);
            let (report, requests) = chat.turn(model, &mut Seen::default());
            assert_eq!(report.end, TurnEnd::Done, "cut at {cut}");
            let count = std::fs::read_to_string(chat.work().join("count")).unwrap_or_default();
            let told = messages(&requests[1]);
            if count.is_empty() {
                // The end of the first call was not certain yet, so the answer was asked for again.
                assert_eq!(told, ["user: Do it."], "cut at {cut}");
                continue;
            }
            assert_eq!(count, "x\n", "cut at {cut}");
            assert!(!chat.work().join("never").exists());
            assert_eq!(
                told[1],
                "model: Go.\n<tools><command>echo x >> count</command>\n</tools>"
            );
            assert!(
                told[2].contains("Your answer broke off here"),
                "{}",
                told[2]
            );
        }
    }
}

#[test]
fn an_answer_that_breaks_off_before_a_call_is_asked_for_once_more() {
    for (kind, end) in [
        (ModelErrorKind::Network, "done"),
        (ModelErrorKind::Auth, "model_failed"),
        (ModelErrorKind::Content, "model_failed"),
    ] {
        let chat = Chat::new();
        let first = vec![Step::text("Let me s"), fails(kind)];
        let model = ScriptedModel::new(vec![first, done()]);
        let (report, _) = chat.turn(model, &mut Seen::default());
        assert_eq!(report.end.as_str(), end, "{kind:?}");
    }
    let chat = Chat::new();
    let twice = || vec![Step::text("Let me s"), fails(ModelErrorKind::Network)];
    let model = ScriptedModel::new(vec![twice(), twice(), done()]);
    let (report, requests) = chat.turn(model, &mut Seen::default());
    assert_eq!((report.end.as_str(), requests.len()), ("model_failed", 2));
}

#[test]
fn an_answer_with_a_call_ends_the_repetition() {
    let chat = Chat::new();
    let cut = || vec![Step::text("Let me s"), fails(ModelErrorKind::Network)];
    let after_call = vec![Step::text(COUNT), fails(ModelErrorKind::Network)];
    let model = ScriptedModel::new(vec![cut(), after_call, cut(), done()]);
    let mut seen = Seen::default();
    let (report, requests) = chat.turn(model, &mut seen);
    assert_eq!((report.end, requests.len()), (TurnEnd::Done, 4));
    let again = "note the answer is asked for again";
    assert_eq!(seen.notes, [again, again]);
    let count = std::fs::read_to_string(chat.work().join("count")).unwrap();
    assert_eq!(count, "x\n");
}

#[test]
fn a_failure_after_all_attempts_is_not_repeated() {
    let chat = Chat::new();
    let error = ModelError {
        is_final: true,
        ..ModelError::new(ModelErrorKind::Overloaded, "busy")
    };
    let model = ScriptedModel::new(vec![vec![Step::Fail(error)], done()]);
    let (report, requests) = chat.turn(model, &mut Seen::default());
    assert_eq!((report.end.as_str(), requests.len()), ("model_failed", 1));
}

#[test]
fn an_answer_that_is_too_long_is_not_done() {
    let chat = Chat::new();
    let long = vec![Step::text("Fix the par"), Step::stop(StopReason::Length)];
    let (report, _) = chat.turn(ScriptedModel::new(vec![long]), &mut Seen::default());
    assert_eq!(report.end, TurnEnd::AnswerLength);
    assert_eq!(report.end.as_str(), "tokens");
}

#[test]
fn tokens_that_the_server_does_not_count_are_estimated() {
    let mut chat = Chat::new();
    chat.limits.tokens = Some(20);
    let step = |n: u32| {
        let text = format!("<tools><command>echo {n}</command></tools>");
        vec![Step::text(&text), Step::stop(StopReason::End)]
    };
    let model = ScriptedModel::new((0..9).map(step).collect());
    let (report, requests) = chat.turn(model, &mut Seen::default());
    assert_eq!(report.end, TurnEnd::Tokens);
    assert!(requests.len() <= 2, "{}", requests.len());
}

#[test]
fn an_error_holds_no_value_in_any_form() {
    use base64::Engine as _;
    let chat = Chat::new();
    let value = "kP7-vQ2.zL9-tR4w";
    let name = karyi::secret::SecretName::parse("KEY").unwrap();
    let secret = karyi::secret::SecretValue::new(value.to_owned());
    chat.secrets.insert(name, secret).unwrap();
    let encoded = base64::engine::general_purpose::STANDARD.encode(value);
    let message = format!("bad credential {encoded}, $KARYI{{OTHER}}");
    let error = ModelError::new(ModelErrorKind::Auth, message);
    let model = ScriptedModel::new(vec![vec![Step::Fail(error)]]);
    let (report, _) = chat.turn(model, &mut Seen::default());
    let TurnEnd::ModelFailed(error) = report.end else {
        panic!("{:?}", report.end);
    };
    // The rest of the last, unfinished group of digits tells nothing.
    let masked = "bad credential [KARYI:KEY:base64]";
    assert!(error.message.starts_with(masked), "{}", error.message);
    assert!(
        error.message.ends_with(", $KARYI{OTHER}"),
        "{}",
        error.message
    );
}

#[test]
fn an_empty_answer_is_asked_for_once_more() {
    let chat = Chat::new();
    let model = ScriptedModel::texts(&["", "Done."]);
    let (report, requests) = chat.turn(model, &mut Seen::default());
    assert_eq!((report.end, requests.len()), (TurnEnd::Done, 2));
    let (report, _) = chat.turn(ScriptedModel::texts(&["", " \n"]), &mut Seen::default());
    assert_eq!(report.end.as_str(), "model_failed");
}

#[test]
fn half_a_block_that_the_provider_stopped_does_not_run() {
    let chat = Chat::new();
    let block = "<tools><command>touch ran</command>";
    let first = vec![Step::text(block), Step::stop(StopReason::Content)];
    let (report, _) = chat.turn(ScriptedModel::new(vec![first]), &mut Seen::default());
    let TurnEnd::ModelFailed(error) = report.end else {
        panic!("{:?}", report.end);
    };
    assert_eq!(error.message, "the provider stopped the answer: scripted");
    assert!(!chat.work().join("ran").exists());
}

#[test]
fn a_full_context_leaves_old_reports_out_once() {
    let chat = Chat::new();
    let step = |n: u32| {
        let text = format!("<tools><command>echo r{n}</command></tools>");
        vec![Step::text(&text), Step::stop(StopReason::End)]
    };
    let full = || vec![fails(ModelErrorKind::Context)];
    let model = ScriptedModel::new(vec![step(1), step(2), step(3), full(), done()]);
    let (report, requests) = chat.turn(model, &mut Seen::default());
    assert_eq!(report.end, TurnEnd::Done);
    let last = messages(&requests[4]).join("\n");
    assert!(last.contains("left out to save room"), "{last}");
    let has = |n: u32| last.contains(&format!("<output>r{n}\n"));
    assert_eq!([has(1), has(2), has(3)], [false, true, true], "{last}");
    let model = ScriptedModel::new(vec![step(1), step(2), step(3), full(), full()]);
    let (report, requests) = chat.turn(model, &mut Seen::default());
    assert_eq!((report.end.as_str(), requests.len()), ("model_failed", 5));
}

#[test]
fn a_turn_ends_at_its_limits() {
    let call = "<tools><command>date +%N</command></tools>";
    let usage = ModelEvent::Usage(Usage {
        input: Some(90),
        output: Some(10),
        ..Usage::default()
    });
    let step = || {
        vec![
            Step::text(call),
            Step::Event(usage.clone()),
            Step::stop(StopReason::End),
        ]
    };
    let none = TurnLimits {
        steps: 20,
        tokens: None,
        time: None,
    };
    for (limits, end, steps) in [
        (TurnLimits { steps: 2, ..none }, "steps", 2),
        (
            TurnLimits {
                tokens: Some(250),
                ..none
            },
            "tokens",
            3,
        ),
    ] {
        let chat = Chat {
            limits,
            ..Chat::new()
        };
        let model = ScriptedModel::new(vec![step(), step(), step(), step()]);
        let (report, _) = chat.turn(model, &mut Seen::default());
        assert_eq!((report.end.as_str(), report.steps), (end, steps));
        assert_eq!(report.usage.input, Some(90 * steps));
    }
    // A model that says nothing, and a command that never ends.
    let silent = vec![Step::Wait(Arc::new(Semaphore::new(0)))];
    let endless = vec![
        Step::text("<tools><command>sleep 600</command></tools>"),
        Step::stop(StopReason::End),
    ];
    for first in [silent, endless] {
        let time = Some(Duration::from_millis(300));
        let chat = Chat {
            limits: TurnLimits { time, ..none },
            ..Chat::new()
        };
        let (report, _) = chat.turn(ScriptedModel::new(vec![first]), &mut Seen::default());
        assert_eq!(report.end, TurnEnd::Time);
    }
}

#[test]
fn a_model_that_repeats_itself_is_stopped() {
    for (text, reason) in [
        (
            "<tools><command>false</command></tools>",
            "the same call failed 3 times",
        ),
        (
            "<tools><command>true</command></tools>",
            "3 answers had the same calls and the same results",
        ),
        (
            "<tools>\n<nothing/>\n</tools>",
            "3 blocks in a row were refused",
        ),
    ] {
        let chat = Chat::new();
        let model = ScriptedModel::texts(&[text; 5]);
        let (report, requests) = chat.turn(model, &mut Seen::default());
        assert_eq!(report.end, TurnEnd::Refused(reason.to_owned()));
        assert_eq!(requests.len(), 3, "{reason}");
    }
}

#[test]
fn an_interruption_ends_the_answer_and_its_call() {
    let chat = Chat::new();
    let mut seen = Seen {
        cancelled_at_start: Some(chat.cancel.clone()),
        ..Seen::default()
    };
    let first = vec![
        Step::text("<tools><command>sleep 600</command><read><file src=\"f\"/></read>"),
        Step::Wait(Arc::new(Semaphore::new(0))),
    ];
    let (report, requests) = chat.turn(ScriptedModel::new(vec![first]), &mut seen);
    assert_eq!((report.end, requests.len()), (TurnEnd::Cancelled, 1));
}
