//! Compaction: a summary takes the place of the messages, and can be taken back.

use std::sync::Arc;

use karyi::chat::compaction::CompactionEnd;
use karyi::chat::turn::TurnEnd;
use karyi::model::scripted::{ScriptedModel, Step};
use karyi::model::{ModelError, ModelErrorKind, ModelEvent, StopReason, Usage};

use super::harness::{Chat, Seen, messages, run};

fn answer(text: &str, tokens: u64) -> Vec<Step> {
    let usage = Usage {
        input: Some(tokens),
        output: Some(10),
        ..Usage::default()
    };
    vec![
        Step::text(text),
        Step::Event(ModelEvent::Usage(usage)),
        Step::stop(StopReason::End),
    ]
}

const PLAN: &str = "<tools>\n<plan><step state=\"done\">Look</step><step state=\"active\">Mend</step></plan>\n<command name=\"server\" timeout=\"0.1\">sleep 600</command>\n</tools>";

#[test]
fn a_conversation_that_fills_the_context_is_summed_up_in_the_middle_of_a_turn() {
    let chat = Chat::new();
    let model = Arc::new(ScriptedModel::new(vec![
        answer(PLAN, 100),
        answer("<tools><command>echo hi</command></tools>", 790),
        answer(
            "I looked. <tools>\n<command>touch never</command>\n</tools>",
            800,
        ),
        answer("Done.", 100),
        answer("Bye.", 100),
    ]));
    let mut seen = Seen::default();
    run(async {
        let mut talk = chat.conversation(&model).with_window(Some(1000));
        let report = talk.turn("Mend it.", &mut seen).await;
        assert_eq!((report.end, report.steps), (TurnEnd::Done, 3));
        assert_eq!(talk.context_use().tokens, 110);
        let whole = messages(talk.state().history().request());
        assert!(talk.undo_compaction());
        let told = messages(talk.state().history().request());
        assert_eq!(told.len(), 6);
        assert_eq!((told[0].as_str(), &told[5]), ("user: Mend it.", &whole[1]));
        assert!(!talk.undo_compaction());
        talk.close().await;
    });
    let requests = model.requests();
    let asked = messages(&requests[2]);
    assert_eq!(asked.len(), 6);
    assert!(asked[5].starts_with("user: Sum up this conversation"));
    // The start of the request is that of the one before.
    assert_eq!(asked[..3], messages(&requests[1])[..3]);
    let summary = &messages(&requests[3]);
    assert_eq!(summary.len(), 1);
    let expected = "\nYour plan:\n[x] Look\n[>] Mend\n\nJobs that go on:\n- 2: sleep 600 (running)\n\nThe last text of the user was:\n\nMend it.\n";
    assert!(summary[0].contains(expected), "{}", summary[0]);
    assert!(!chat.work().join("never").exists());
    let shown = "compacted I looked. <tools>\n<command>touch never</command>\n</tools>";
    assert_eq!(seen.notes, ["plan done Look", "plan active Mend", shown]);
}

#[test]
fn a_summary_that_fails_changes_nothing() {
    let chat = Chat::new();
    let call = "<tools><command>echo hi</command></tools>";
    let fails = vec![Step::Fail(ModelError::new(ModelErrorKind::Network, "cut"))];
    let model = Arc::new(ScriptedModel::new(vec![
        answer(call, 100),
        answer("Done.", 990),
        fails,
        answer("Go on.", 100),
        answer(" \n", 5),
        answer("Sum.", 5),
    ]));
    let mut seen = Seen::default();
    run(async {
        let mut talk = chat.conversation(&model).with_window(Some(1000));
        let cancel = talk.turn_cancel();
        let end = talk.compact("", &cancel, &mut seen).await;
        assert_eq!(end, CompactionEnd::Nothing);
        talk.turn("One.", &mut seen).await;
        talk.turn("Two.", &mut seen).await;
        let before = talk.state().history().request().clone();
        assert_eq!(before.messages.len(), 6);
        let end = talk.compact("", &cancel, &mut seen).await;
        assert!(matches!(end, CompactionEnd::Failed(_)), "{end:?}");
        assert_eq!(talk.state().history().request(), &before);
        let end = talk.compact("the tests", &cancel, &mut seen).await;
        assert_eq!(end, CompactionEnd::Done);
        talk.rewind(1);
        assert_eq!(
            talk.state().history().request().messages,
            before.messages[..4]
        );
        talk.close().await;
    });
    let asked = messages(&model.requests()[5]);
    assert!(
        asked[6].ends_with("What matters most: the tests"),
        "{}",
        asked[6]
    );
    let note = "note the conversation could not be summed up: cut";
    assert_eq!(seen.notes, [note, "compacted Sum."]);
}

#[test]
fn a_summary_that_is_cut_changes_nothing_and_its_tokens_count() {
    let chat = Chat::new();
    let cut = |stop: Option<StopReason>| {
        let mut steps = answer("Half a sum", 400);
        steps.pop();
        steps.extend(stop.map(Step::stop));
        steps
    };
    let model = Arc::new(ScriptedModel::new(vec![
        answer("<tools><command>echo hi</command></tools>", 100),
        answer("Done.", 990),
        cut(Some(StopReason::Length)),
        answer("Go on.", 100),
        cut(None),
    ]));
    let mut seen = Seen::default();
    run(async {
        let mut talk = chat.conversation(&model).with_window(Some(1000));
        talk.turn("One.", &mut seen).await;
        let report = talk.turn("Two.", &mut seen).await;
        assert_eq!(report.end, TurnEnd::Done);
        assert_eq!(report.usage.input, Some(500));
        let before = talk.state().history().request().clone();
        assert_eq!(before.messages.len(), 6);
        let cancel = talk.turn_cancel();
        let end = talk.compact("", &cancel, &mut seen).await;
        assert_eq!(end, CompactionEnd::Cut);
        assert_eq!(talk.state().history().request(), &before);
        talk.close().await;
    });
    let note = "note the conversation could not be summed up: the summary broke off before its end";
    assert_eq!(seen.notes, [note]);
}
