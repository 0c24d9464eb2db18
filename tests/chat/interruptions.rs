//! A turn that the user interrupts: its command ends, and the shell lives on.

use std::sync::Arc;
use std::time::Duration;

use karyi::chat::turn::{Prompt, TurnEnd};
use karyi::model::StopReason;
use karyi::model::scripted::{ScriptedModel, Step};
use tokio::sync::Semaphore;

use super::harness::{Chat, Seen, messages, run};

/// Interrupts a turn when the call with an id starts; returns what the model got in the next one.
fn interrupted(answer: &str, at: &'static str) -> (Vec<String>, Duration) {
    let chat = Chat::new();
    let first = vec![
        Step::text(answer),
        Step::Wait(Arc::new(Semaphore::new(0))),
        Step::stop(StopReason::End),
    ];
    let second = vec![
        Step::text("<tools><command>echo $X; pwd | grep -o '/sub$'; jobs</command></tools>"),
        Step::stop(StopReason::End),
    ];
    let last = vec![Step::text("Done."), Step::stop(StopReason::End)];
    let model = Arc::new(ScriptedModel::new(vec![first, second, last]));
    std::fs::create_dir(chat.work().join("sub")).unwrap();
    run(async {
        let mut talk = chat.conversation(&model);
        let cancel = talk.turn_cancel();
        let mut seen = Seen {
            cancelled_at: Some((at, cancel.clone())),
            ..Seen::default()
        };
        let report = talk.turn_until(Prompt::of("Go."), &cancel, &mut seen).await;
        let time = seen.cancelled_time.unwrap().elapsed();
        assert_eq!(report.end, TurnEnd::Cancelled);
        let cancel = talk.turn_cancel();
        let prompt = Prompt::of("And now?");
        let report = talk.turn_until(prompt, &cancel, &mut Seen::default()).await;
        assert_eq!(report.end, TurnEnd::Done);
        talk.close().await;
        assert_eq!(model.open_answers(), 0);
        (messages(&model.requests()[2]), time)
    })
}

#[test]
fn the_command_ends_and_the_shell_lives_on() {
    let answer = "Go.\n<tools>\n<command>cd sub; X=kept</command>\n<command>sh -c 'echo begun; while :; do sleep 0.01; done'</command>\n<command>touch never</command>\n</tools>";
    let (told, time) = interrupted(answer, "output 2");
    // It takes some 10 ms where nothing else runs.
    assert!(time < Duration::from_secs(3), "{time:?}");
    eprintln!("the turn ended {time:?} after its cancellation");
    assert_eq!(told[0], "user: Go.");
    assert_eq!(told[1], format!("model: {answer}"));
    let report = &told[2];
    assert!(report.contains("status=\"killed\""), "{report}");
    assert!(report.contains("<output>begun\n"), "{report}");
    assert!(report.contains("interrupted"), "{report}");
    assert!(report.contains("The user interrupted you here. Of your calls"));
    assert!(
        report.contains("id=\"3\" tool=\"command\" status=\"skipped\""),
        "{report}"
    );
    assert_eq!(told[3], "user: And now?");
    assert!(
        told[5].contains("<output>kept\n/sub\n</output>"),
        "{}",
        told[5]
    );
    assert!(!told[5].contains("<job"), "{}", told[5]);
}

#[test]
fn a_command_that_begins_just_then_ends_as_well() {
    let answer = "<tools>\n<command>sleep 600</command>\n</tools>";
    let (told, _) = interrupted(answer, "1");
    assert!(told[2].contains("killed"), "{}", told[2]);
    assert!(!told[5].contains("<job"), "{}", told[5]);
}

#[test]
fn a_command_that_ignores_interrupts_gets_stronger_signals() {
    let answer =
        "<tools>\n<command>:</command>\n<command>trap '' INT; sleep 600</command>\n</tools>";
    let (told, time) = interrupted(answer, "2");
    assert!(told[2].contains("killed"), "{}", told[2]);
    assert!(time < Duration::from_secs(10), "{time:?}");
}

#[test]
fn an_answer_that_is_cut_is_closed() {
    let answer =
        "One.\n<tools>\n<command>X=1</command>\n<command>sleep 600</command>\n<command>never";
    let (told, _) = interrupted(answer, "2");
    let expected =
        "model: One.\n<tools>\n<command>X=1</command>\n<command>sleep 600</command>\n</tools>";
    assert_eq!(told[1], expected);
}

#[test]
fn equal_calls_that_an_interruption_skips_are_no_failures() {
    let call = "<command>while :; do sleep 0.01; done</command>";
    let answer = format!("<tools>{}</tools>", call.repeat(5));
    let chat = Chat::new();
    let steps = vec![Step::text(&answer), Step::stop(StopReason::End)];
    let model = Arc::new(ScriptedModel::new(vec![steps]));
    run(async {
        let mut talk = chat.conversation(&model);
        let cancel = talk.turn_cancel();
        let mut seen = Seen {
            cancelled_at: Some(("1", cancel.clone())),
            ..Seen::default()
        };
        let report = talk.turn_until(Prompt::of("Go."), &cancel, &mut seen).await;
        assert_eq!(report.end, TurnEnd::Cancelled);
        talk.close().await;
    });
}
