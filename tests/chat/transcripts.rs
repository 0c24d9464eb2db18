//! Transcripts: what is written, what is left after any death, and what a resumed chat sends.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use karyi::chat::transcript::file::Transcript;
use karyi::chat::transcript::record::Record;
use karyi::chat::transcript::state::ChatState;
use karyi::chat::turn::Prompt;
use karyi::model::scripted::{ScriptedModel, Step};
use karyi::model::{ModelRequest, StopReason};
use karyi::secret::{SecretName, SecretValue};
use karyi::vault::redact::Redactor;
use karyi::vault::session::Secrets;

use super::harness::{Chat, Seen, messages, request, run};

const CALL: &str = "Sö 🎉.\n<tools>\n<read><file src=\"f\"/></read>\n</tools>\n";

fn done() -> Vec<Step> {
    vec![Step::text("Done."), Step::stop(StopReason::End)]
}

fn path(chat: &Chat, id: &str) -> PathBuf {
    chat.work().join("chats").join(format!("{id}.jsonl"))
}

fn redactor() -> Redactor {
    Redactor::new(&Secrets::default())
}

fn kinds(transcript: &Transcript) -> Vec<&'static str> {
    let records = transcript.records.iter();
    records.map(|timed| timed.record.kind()).collect()
}

/// Works on two texts; returns the id of the chat and the last request.
fn two_turns(chat: &Chat) -> (String, ModelRequest) {
    fs::write(chat.work().join("f"), "x\n").unwrap();
    let model = Arc::new(ScriptedModel::texts(&[CALL, "Yes.", CALL, "No."]));
    run(async {
        let mut talk = chat.saved(&model);
        assert!(!path(chat, talk.chat_id().unwrap()).exists());
        talk.tell("The date is known.");
        talk.turn("Do \"it\".\nNow.", &mut Seen::default()).await;
        talk.rename("A title");
        let cancel = talk.turn_cancel();
        let prompt = Prompt {
            text: "Again.",
            attached: "<results>a file</results>",
        };
        talk.turn_until(prompt, &cancel, &mut Seen::default()).await;
        let id = talk.chat_id().unwrap().to_owned();
        let last = talk.state().history().request().clone();
        talk.close().await;
        (id, last)
    })
}

#[test]
fn a_chat_is_a_private_file_of_records() {
    let chat = Chat::new();
    let (id, last) = two_turns(&chat);
    let file = path(&chat, &id);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    let transcript = chat.store().read(&id).unwrap();
    let turn = [
        "user", "call", "usage", "answer", "report", "usage", "answer", "turn_end",
    ];
    let expected = [&["told"][..], &turn, &["title"], &turn].concat();
    assert_eq!(kinds(&transcript), expected);
    let Record::Call(call) = &transcript.records[2].record else {
        panic!("{:?}", transcript.records[2]);
    };
    let shown = [&call.id, &call.tool, &call.title, &call.status].map(|text| text.as_str());
    assert_eq!(shown, ["1", "read", "f", "ok"]);
    let state = ChatState::replay(request(), &transcript);
    assert_eq!(state.history().request(), &last);
    assert_eq!(state.title().as_deref(), Some("A title"));
    let texts: Vec<String> = state
        .history()
        .user_texts()
        .into_iter()
        .map(|(_, text)| text.into_string())
        .collect();
    assert_eq!(texts, ["Do \"it\".\nNow.", "Again."]);
    let told = messages(&last);
    assert_eq!(told[5], "user: Again.\n\n<results>a file</results>");
    let list = chat.store().list(Some(chat.work())).unwrap();
    assert_eq!((list.len(), list[0].turns), (1, 2));
    assert_eq!(
        (list[0].id.as_str(), list[0].title.as_str()),
        (id.as_str(), "A title")
    );
    assert_eq!(chat.store().list(Some(&chat.work().join("x"))).unwrap(), []);
    assert_eq!(chat.store().find(&id[..id.len() - 1]).unwrap(), id);
    assert_eq!(
        chat.store().find("x").unwrap_err().code.as_str(),
        "not_found"
    );
    chat.store().remove(&id).unwrap();
    assert_eq!(chat.store().list(None).unwrap(), []);
}

#[test]
fn every_cut_of_an_answer_gives_one_record() {
    let records = |pieces: &[&str]| {
        let chat = Chat::new();
        fs::write(chat.work().join("f"), "x\n").unwrap();
        let mut first: Vec<Step> = pieces.iter().map(|piece| Step::text(piece)).collect();
        first.push(Step::stop(StopReason::End));
        let model = Arc::new(ScriptedModel::new(vec![first, done()]));
        run(async {
            let mut talk = chat.saved(&model);
            talk.turn("Do it.", &mut Seen::default()).await;
            let id = talk.chat_id().unwrap().to_owned();
            talk.close().await;
            let transcript = chat.store().read(&id).unwrap();
            let records = transcript.records.into_iter();
            records.map(|timed| timed.record).collect::<Vec<_>>()
        })
    };
    let whole = records(&[CALL]);
    let answers = whole.iter().filter(|record| record.kind() == "answer");
    assert_eq!(answers.count(), 2);
    for at in (1..CALL.len()).filter(|at| CALL.is_char_boundary(*at)) {
        assert_eq!(records(&[&CALL[..at], &CALL[at..]]), whole, "cut at {at}");
    }
}

#[test]
fn a_death_at_any_byte_leaves_every_complete_record() {
    let chat = Chat::new();
    let (id, _) = two_turns(&chat);
    let file = path(&chat, &id);
    let bytes = fs::read(&file).unwrap();
    let whole = Transcript::parse(&bytes, &redactor()).unwrap();
    let first_line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for length in 0..bytes.len() {
        let cut = &bytes[..length];
        fs::write(&file, cut).unwrap();
        let Ok((transcript, mut writer)) = chat.store().resume(&id) else {
            assert!(length < first_line, "cut at {length}");
            continue;
        };
        let complete = cut.iter().filter(|byte| **byte == b'\n').count() - 1;
        assert_eq!(transcript.records, whole.records[..complete]);
        let torn = length - (cut.iter().rposition(|byte| *byte == b'\n').unwrap() + 1);
        assert_eq!(transcript.damage.torn_bytes, torn as u64);
        assert_eq!(transcript.damage.sentence().is_some(), torn > 0);
        writer.write(&Record::Shortening).unwrap();
        drop(writer);
        let mended = chat.store().read(&id).unwrap();
        assert_eq!(mended.records.len(), complete + 1, "cut at {length}");
        assert_eq!(mended.damage.sentence(), None, "cut at {length}");
    }
}

#[test]
fn a_resumed_chat_sends_the_same_start_and_runs_nothing_again() {
    let chat = Chat::new();
    let (id, last) = two_turns(&chat);
    fs::remove_file(chat.work().join("f")).unwrap();
    let model = Arc::new(ScriptedModel::new(vec![done()]));
    run(async {
        let (transcript, writer) = chat.store().resume(&id).unwrap();
        let busy = chat.store().resume(&id).unwrap_err();
        assert_eq!(
            busy.message,
            format!("the chat {id} is open in another karyi")
        );
        let mut talk = chat.conversation(&model);
        talk.enter_chat(ChatState::replay(request(), &transcript), Some(writer));
        let mut seen = Seen::default();
        talk.turn("More.", &mut seen).await;
        assert_eq!(seen.calls, ["warning no-block"]);
        talk.close().await;
    });
    let asked = &model.requests()[0];
    assert_eq!(asked.system, last.system);
    let (start, added) = asked.messages.split_at(last.messages.len());
    assert_eq!(start, last.messages);
    assert_eq!(added.len(), 1);
    let transcript = chat.store().read(&id).unwrap();
    assert_eq!(
        kinds(&transcript)[18..],
        ["user", "usage", "answer", "turn_end"]
    );
}

#[test]
fn a_turn_that_a_death_cut_is_told_to_the_model() {
    let chat = Chat::new();
    let (id, _) = two_turns(&chat);
    let file = path(&chat, &id);
    let text = fs::read_to_string(&file).unwrap();
    // The call has ended, and its answer is not recorded yet.
    let lines: Vec<&str> = text.split_inclusive('\n').take(4).collect();
    fs::write(&file, lines.concat() + "{\"type\": \"ans").unwrap();
    let model = Arc::new(ScriptedModel::new(vec![done()]));
    run(async {
        let (transcript, writer) = chat.store().resume(&id).unwrap();
        let mut talk = chat.conversation(&model);
        talk.enter_chat(ChatState::replay(request(), &transcript), Some(writer));
        talk.turn("Well?", &mut Seen::default()).await;
        let live = talk.state().history().request().clone();
        talk.close().await;
        let read = chat.store().read(&id).unwrap();
        let state = ChatState::replay(request(), &read);
        assert_eq!(state.history().request(), &live);
        assert_eq!(state.interruption(), None);
    });
    let told = messages(&model.requests()[0]);
    assert!(
        told[2].contains("\n- 1: read f (ok)\n Nothing was run again"),
        "{}",
        told[2]
    );
}

#[test]
fn a_plan_and_all_changes_of_the_history_come_back() {
    let chat = Chat::new();
    let plan = "<tools>\n<plan><step state=\"active\">日本語</step></plan>\n</tools>";
    let model = Arc::new(ScriptedModel::texts(&[
        plan, "One.", "Two.", "Sum.", "Three.",
    ]));
    run(async {
        let mut talk = chat.saved(&model);
        let mut seen = Seen::default();
        talk.turn("1", &mut seen).await;
        talk.turn("2", &mut seen).await;
        talk.rewind(1);
        talk.turn("3", &mut seen).await;
        let cancel = talk.turn_cancel();
        talk.compact("", &cancel, &mut seen).await;
        let id = talk.chat_id().unwrap().to_owned();
        let compare = |live: &ChatState| {
            let state = ChatState::replay(request(), &chat.store().read(&id).unwrap());
            assert_eq!(state.history().request(), live.history().request());
            assert_eq!(state.plan(), live.plan());
            assert_eq!(state.history().user_texts(), live.history().user_texts());
        };
        compare(talk.state());
        assert_eq!(talk.state().plan()[0].text.as_str(), "日本語");
        talk.undo_compaction();
        compare(talk.state());
        talk.rewind(0);
        compare(talk.state());
        assert_eq!(talk.state().history().request(), &request());
        talk.close().await;
    });
}

#[test]
fn no_value_is_in_a_transcript() {
    const VALUE: &str = "kP7-vQ2.zL9-tR4w";
    let chat = Chat::new();
    let name = SecretName::parse("TOKEN").unwrap();
    let value = SecretValue::new(VALUE.to_owned());
    chat.secrets.insert(name, value).unwrap();
    fs::write(chat.work().join("f"), format!("key={VALUE}\n")).unwrap();
    let answer = format!(
        "I saw {VALUE}.\n<tools><read><file src=\"f\"/></read><plan><step>{VALUE}</step></plan><command># {VALUE}\ncat f | base64</command></tools>"
    );
    let model = Arc::new(ScriptedModel::texts(&[&answer, VALUE]));
    run(async {
        let mut talk = chat.saved(&model);
        talk.tell(VALUE);
        talk.rename(VALUE);
        talk.turn(&format!("My key is {VALUE}"), &mut Seen::default())
            .await;
        let file = path(&chat, talk.chat_id().unwrap());
        talk.close().await;
        let text = fs::read_to_string(file).unwrap();
        assert!(!text.contains(VALUE), "{text}");
        assert_eq!(text.matches("key=$KARYI{TOKEN}").count(), 1, "{text}");
        let encoded = "a2V5PWtQNy12UTIuekw5LXRSNHcK";
        assert!(!text.contains(encoded), "{text}");
    });
}

#[test]
fn a_disk_that_takes_no_more_ends_the_saving_and_is_told_once() {
    let chat = Chat::new();
    fs::write(chat.work().join("chats"), "no directory").unwrap();
    let model = Arc::new(ScriptedModel::texts(&["One.", "Two."]));
    let mut seen = Seen::default();
    run(async {
        let mut talk = chat.saved(&model);
        talk.turn("1", &mut seen).await;
        talk.turn("2", &mut seen).await;
        assert_eq!(talk.chat_id(), None);
        talk.close().await;
    });
    assert_eq!(seen.text, "One.Two.");
    assert_eq!(seen.notes.len(), 1, "{:?}", seen.notes);
    assert!(seen.notes[0].starts_with("note the chat is not saved any more: "));
}

#[test]
fn what_is_no_transcript_is_refused_and_a_bad_line_is_told() {
    let chat = Chat::new();
    let (id, _) = two_turns(&chat);
    let good = fs::read_to_string(path(&chat, &id)).unwrap();
    let start = good.lines().next().unwrap();
    let late = start.replace("\"version\":1", "\"version\":2");
    for text in ["", "\n", "{}\n", "no\n", "\u{0}\n", &format!("{late}\n")] {
        fs::write(path(&chat, "bad"), text).unwrap();
        let error = chat.store().read("bad").unwrap_err();
        assert!(
            error.message.contains("is no transcript"),
            "{}",
            error.message
        );
        assert!(chat.store().resume("bad").is_err());
    }
    let list = chat.store().list(None).unwrap();
    assert_eq!(list.len(), 1);
    let holed = good.replacen("{\"type\":\"answer\"", "{\"typ\u{0}", 1) + "{\"type\":\"usage\"";
    fs::write(path(&chat, &id), holed).unwrap();
    let read = chat.store().read(&id).unwrap();
    let damage = "the last record was not complete, and 15 bytes are left out; a line is no record and is left out";
    assert_eq!(read.damage.sentence().as_deref(), Some(damage));
}
