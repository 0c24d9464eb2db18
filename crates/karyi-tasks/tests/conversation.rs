//! Questions, history, memory, the inbox and the log.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use karyi_core::error::ErrorCode;
use karyi_tasks::event::{AnswerSource, EventContent};
use karyi_tasks::history::{self, Message, Speaker};
use karyi_tasks::instance_lock::InstanceLock;
use karyi_tasks::memory::{self, MemoryKind};
use karyi_tasks::question::{self, QuestionRequest};
use karyi_tasks::settle::settle;
use karyi_tasks::task_id::TaskId;
use karyi_tasks::task_log::{LogReader, log};
use karyi_tasks::{inbox, teller_input};
use serde_json::{Map, json};

use crate::harness::Home;

fn options() -> Vec<String> {
    ["staging", "production"].map(str::to_owned).to_vec()
}

fn ask(home: &Home, default: Option<&str>) -> TaskId {
    let request = QuestionRequest::new("选择部署环境", &options(), Some(1800), default).unwrap();
    let id = TaskId::random().unwrap();
    question::ask(&home.state, id, request, home.now)
        .unwrap()
        .question_id
}

fn answers(home: &Home) -> Vec<(String, AnswerSource)> {
    let events = teller_input::waiting(&home.state).unwrap().events;
    let answer = |content| match content {
        EventContent::Answer { answer, source, .. } => Some((answer, source)),
        _ => None,
    };
    events
        .into_iter()
        .filter_map(|event| answer(event.content))
        .collect()
}

#[test]
fn a_question_is_one_file_and_goes_with_its_answer() {
    let home = Home::new();
    let id = ask(&home, Some("staging"));
    let expected = json!({
        "questionId": id, "question": "选择部署环境", "options": ["staging", "production"],
        "timeout": 1800, "default": "staging",
        "createdAt": "2026-01-31T10:00:00Z", "expiresAt": "2026-01-31T10:30:00Z",
    });
    assert_eq!(home.json("pending_question.json"), expected);
    let request = QuestionRequest::new("another?", &[], None, None).unwrap();
    let other = TaskId::random().unwrap();
    let second = question::ask(&home.state, other.clone(), request.clone(), home.now).unwrap_err();
    assert_eq!(second.code, ErrorCode::QuestionPending);
    assert!(second.message.contains(id.as_str()), "{second}");
    // The session that asked is made again.
    assert_eq!(
        question::ask(&home.state, id.clone(), request, home.now)
            .unwrap()
            .question_id,
        id
    );
    let answer = |text| question::answer(&home.state, None, text, home.now);
    let wrong = answer("maybe").unwrap_err();
    assert_eq!(wrong.code, ErrorCode::BadArguments);
    assert!(wrong.message.contains("staging, production"), "{wrong}");
    for text in ["", " ", "0", "3", "-1", "Staging"] {
        assert!(answer(text).is_err(), "{text}");
    }
    let stale = question::answer(&home.state, Some(&other), "1", home.now).unwrap_err();
    assert_eq!(stale.code, ErrorCode::NotFound);
    assert_eq!(answer("2").unwrap(), "production");
    assert_eq!(answer("2").unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(
        answers(&home),
        [("production".to_owned(), AnswerSource::User)]
    );
    assert!(!home.file("pending_question.json").exists());
    let said = history::recent(&home.state, 10, 0).unwrap();
    let said: Vec<_> = said
        .iter()
        .map(|message| (message.role, &*message.text))
        .collect();
    let shown = "选择部署环境\n1. staging\n2. production\nDefault: staging";
    assert_eq!(
        said,
        [(Speaker::Assistant, shown), (Speaker::User, "production")]
    );
}

#[test]
fn a_question_ends_also_while_nobody_runs() {
    for (default, expected) in [
        (
            Some("staging"),
            ("staging".to_owned(), AnswerSource::Default),
        ),
        (None, (String::new(), AnswerSource::Timeout)),
    ] {
        let mut home = Home::new();
        ask(&home, default);
        home.pass(1799);
        assert_eq!(question::expire(&home.state, home.now).unwrap(), None);
        home.pass(1801);
        let late = question::answer(&home.state, None, "1", home.now).unwrap_err();
        assert_eq!(late.code, ErrorCode::NotFound);
        let lock = InstanceLock::take(&home.state).unwrap();
        assert!(
            settle(&home.state, &lock, home.now)
                .unwrap()
                .answer
                .is_some()
        );
        assert_eq!(settle(&home.state, &lock, home.now).unwrap().answer, None);
        assert_eq!(answers(&home), [expected]);
    }
}

#[test]
fn who_looks_whether_a_supervisor_works_keeps_none_from_starting() {
    let home = Home::new();
    assert!(!InstanceLock::is_taken(&home.state).unwrap());
    assert!(!home.file("supervisor.lock").exists());
    let lock = InstanceLock::take(&home.state).unwrap();
    assert!(InstanceLock::is_taken(&home.state).unwrap());
    drop(lock);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    InstanceLock::is_taken(&home.state).unwrap();
                }
            });
        }
        let failure = (0..1000).find_map(|_| InstanceLock::take(&home.state).err());
        is_over.store(true, Ordering::Relaxed);
        assert!(failure.is_none(), "{failure:?}");
    });
}

#[test]
fn an_answer_whose_question_is_still_there_counts_once() {
    let home = Home::new();
    ask(&home, None);
    let question = fs::read(home.file("pending_question.json")).unwrap();
    question::answer(&home.state, None, "1", home.now).unwrap();
    fs::write(home.file("pending_question.json"), question).unwrap();
    assert_eq!(
        question::answer(&home.state, None, "2", home.now)
            .unwrap_err()
            .code,
        ErrorCode::NotFound
    );
    assert_eq!(answers(&home), [("staging".to_owned(), AnswerSource::User)]);
    assert_eq!(history::recent(&home.state, 10, 0).unwrap().len(), 2);
    assert!(!home.file("pending_question.json").exists());
}

#[test]
fn questions_are_checked() {
    let check = |question: &str, options: &[&str], timeout, default, field: &str| {
        let options: Vec<String> = options.iter().map(|text| (*text).to_owned()).collect();
        let error = QuestionRequest::new(question, &options, timeout, default).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadArguments);
        assert!(error.message.starts_with(&format!("`{field}`")), "{error}");
    };
    check(" ", &[], None, None, "question");
    check("q", &["a", ""], None, None, "options");
    check("q", &["a", "a"], None, None, "options");
    check("q", &["a"; 21], None, None, "options");
    check("q", &["a", "b"], None, Some("c"), "default");
    check("q", &[], None, Some(" "), "default");
    for timeout in [0, -1, 8 * 24 * 3600] {
        check("q", &[], Some(timeout), None, "timeout");
    }
    assert!(QuestionRequest::new("q", &[], None, Some("any")).is_ok());
}

fn thirty(home: &mut Home) {
    for number in 1..=30 {
        let role = if number % 2 == 0 {
            Speaker::Assistant
        } else {
            Speaker::User
        };
        history::add(&home.state, role, &format!("m{number}"), home.now).unwrap();
        home.pass(60);
    }
}

fn texts(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| &*message.text).collect()
}

#[test]
fn history_is_read_by_place() {
    let mut home = Home::new();
    assert_eq!(history::recent(&home.state, 3, 0).unwrap(), []);
    thirty(&mut home);
    let recent = |count, offset| history::recent(&home.state, count, offset);
    assert_eq!(texts(&recent(3, 0).unwrap()), ["m28", "m29", "m30"]);
    assert_eq!(texts(&recent(3, 2).unwrap()), ["m26", "m27", "m28"]);
    assert_eq!(texts(&recent(3, 28).unwrap()), ["m1", "m2"]);
    assert_eq!(recent(3, 100).unwrap(), []);
    let fields = serde_json::to_value(&recent(1, 0).unwrap()[0]).unwrap();
    let expected = json!({"role": "assistant", "text": "m30", "createdAt": "2026-01-31T10:29:00Z"});
    assert_eq!(fields, expected);
    for (count, offset) in [(0, 0), (-1, 0), (1001, 0), (1, -1)] {
        assert_eq!(
            recent(count, offset).unwrap_err().code,
            ErrorCode::BadArguments
        );
    }
}

#[test]
fn history_is_read_by_time_with_both_ends() {
    let mut home = Home::new();
    thirty(&mut home);
    let time = |text: &str| karyi_tasks::argument::read_time("after", text).unwrap();
    let between =
        |after: &str, before: &str| history::between(&home.state, time(after), time(before));
    let range = between("2026-01-31T10:01:00Z", "2026-01-31T18:03:00+08:00").unwrap();
    assert_eq!(
        (texts(&range.messages), range.omitted),
        (vec!["m2", "m3", "m4"], 0)
    );
    let error = between("2026-01-31T10:01:00Z", "2026-01-31T10:00:00Z").unwrap_err();
    assert!(error.message.starts_with("`after`"), "{error}");
    for text in ["", "yesterday", "2026-01-31", "2026-01-31T10:00:00"] {
        assert!(
            karyi_tasks::argument::read_time("after", text).is_err(),
            "{text}"
        );
    }
}

#[test]
fn half_a_line_of_a_killed_process_is_cut() {
    let mut home = Home::new();
    thirty(&mut home);
    let path = home.file("history.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"id\":\"x\",\"role\":\"us");
    fs::write(&path, bytes).unwrap();
    assert_eq!(texts(&history::recent(&home.state, 1, 0).unwrap()), ["m30"]);
    history::add(&home.state, Speaker::User, "next", home.now).unwrap();
    assert_eq!(
        texts(&history::recent(&home.state, 2, 0).unwrap()),
        ["m30", "next"]
    );
}

#[test]
fn a_message_whose_line_was_cut_is_added_again() {
    let mut home = Home::new();
    thirty(&mut home);
    inbox::add(&home.state, "hello", home.now).unwrap();
    let input = teller_input::waiting(&home.state).unwrap();
    teller_input::begin(&home.state, &input).unwrap();
    let path = home.file("history.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 5);
    fs::write(&path, bytes).unwrap();
    teller_input::begin(&home.state, &input).unwrap();
    let last = history::recent(&home.state, 2, 0).unwrap();
    assert_eq!(texts(&last), ["m30", "hello"]);
}

#[test]
fn a_session_that_is_cut_twice_keeps_the_place_at_which_it_began() {
    let mut home = Home::new();
    thirty(&mut home);
    inbox::add(&home.state, "hello", home.now).unwrap();
    let input = teller_input::waiting(&home.state).unwrap();
    teller_input::begin(&home.state, &input).unwrap();
    let place = teller_input::cut_session(&home.state).unwrap();
    history::reply(&home.state, "not shown", home.now).unwrap();
    teller_input::begin(&home.state, &input).unwrap();
    assert_eq!(teller_input::cut_session(&home.state).unwrap(), place);
}

#[test]
fn a_large_history_goes_on_in_a_new_file() {
    let mut home = Home::new();
    thirty(&mut home);
    let file = fs::File::options()
        .append(true)
        .open(home.file("history.jsonl"))
        .unwrap();
    // A hole and the end of a line: a message that cannot be read.
    file.set_len(64 << 20).unwrap();
    std::io::Write::write_all(&mut &file, b"\n").unwrap();
    history::add(&home.state, Speaker::User, "next", home.now).unwrap();
    assert!(home.file("history-1.jsonl").exists());
    assert!(fs::metadata(home.file("history.jsonl")).unwrap().len() < 1000);
    assert_eq!(
        texts(&history::recent(&home.state, 3, 0).unwrap()),
        ["m29", "m30", "next"]
    );
}

/// Bytes that this thread has read.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn the_end_of_a_large_history_is_read_without_the_rest() {
    let home = Home::new();
    history::add(&home.state, Speaker::User, &"x".repeat(1000), home.now).unwrap();
    let line = fs::read_to_string(home.file("history.jsonl")).unwrap();
    fs::write(home.file("history.jsonl"), line.repeat(50_000)).unwrap();
    // A line that is longer than what is read at once.
    let long = "y".repeat(200 << 10);
    history::add(&home.state, Speaker::Assistant, &long, home.now).unwrap();
    history::add(&home.state, Speaker::User, "last", home.now).unwrap();
    let before = bytes_read();
    let messages = history::recent(&home.state, 20, 0).unwrap();
    let read = bytes_read() - before;
    assert_eq!(messages.len(), 20);
    assert_eq!((&*messages[19].text, &messages[18].text), ("last", &long));
    assert!(read < 1 << 20, "{read} bytes");
    let (_, end) = history::since(&home.state, u64::MAX).unwrap();
    history::add(&home.state, Speaker::Assistant, "news", home.now).unwrap();
    let before = bytes_read();
    let (said, _) = history::since(&home.state, end).unwrap();
    let read = bytes_read() - before;
    assert_eq!(said.len(), 1);
    assert!(read < 16 << 10, "{read} bytes");
}

#[test]
fn messages_become_history_once() {
    let mut home = Home::new();
    for text in ["one", "two"] {
        home.pass(1);
        inbox::add(&home.state, text, home.now).unwrap();
    }
    let input = teller_input::waiting(&home.state).unwrap();
    teller_input::begin(&home.state, &input).unwrap();
    home.pass(1);
    inbox::add(&home.state, "three", home.now).unwrap();
    // The session was cut: it begins again with the same items.
    let again = teller_input::waiting(&home.state).unwrap();
    assert_eq!(again, input);
    // It began before anything was said.
    let cut = teller_input::cut_session(&home.state).unwrap();
    assert_eq!(cut, Some(0));
    teller_input::begin(&home.state, &again).unwrap();
    let said = || history::recent(&home.state, 10, 0).unwrap();
    assert_eq!(texts(&said()), ["one", "two"]);
    teller_input::end(&home.state, &again).unwrap();
    assert_eq!(teller_input::cut_session(&home.state).unwrap(), None);
    let next = teller_input::waiting(&home.state).unwrap();
    teller_input::begin(&home.state, &next).unwrap();
    assert_eq!(texts(&said()), ["one", "two", "three"]);
    teller_input::end(&home.state, &next).unwrap();
    assert_eq!(
        teller_input::waiting(&home.state).unwrap(),
        teller_input::TellerInput::default()
    );
    assert!(inbox::add(&home.state, " ", home.now).is_err());
}

#[test]
fn memory_grows_and_nothing_is_overwritten() {
    let home = Home::new();
    let remember = |text: &str, kind| memory::remember(&home.state, text, kind, home.now);
    assert_eq!(
        remember("用户偏好使用 pnpm", MemoryKind::LongTerm).unwrap(),
        "memory.md"
    );
    let first = "[2026-01-31T10:00:00Z] 用户偏好使用 pnpm\n";
    assert_eq!(fs::read_to_string(home.file("memory.md")).unwrap(), first);
    // An editor that leaves the last line without an end.
    fs::write(home.file("memory.md"), first.trim_end()).unwrap();
    remember("two\n\nparagraphs", MemoryKind::LongTerm).unwrap();
    let both = format!("{first}\n[2026-01-31T10:00:00Z] two\n\nparagraphs\n");
    assert_eq!(fs::read_to_string(home.file("memory.md")).unwrap(), both);
    let name = "memory/2026-01-31-hello-world-deploy.md";
    let text = "Hello, World! — deploy";
    assert_eq!(remember(text, MemoryKind::Note).unwrap(), name);
    let note = fs::read_to_string(home.file(name)).unwrap();
    assert_eq!(
        note,
        format!("# 2026-01-31\n\n[2026-01-31T10:00:00Z] {text}\n")
    );
    assert_eq!(
        remember(text, MemoryKind::Note).unwrap(),
        "memory/2026-01-31-hello-world-deploy-1.md"
    );
    assert_eq!(fs::read_to_string(home.file(name)).unwrap(), note);
    let unnamed = remember("部署", MemoryKind::Note).unwrap();
    let hex = unnamed
        .strip_prefix("memory/2026-01-31-mem-")
        .unwrap()
        .strip_suffix(".md")
        .unwrap();
    assert!(
        hex.len() == 8 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{unnamed}"
    );
    let before = home.names("memory");
    for kind in [MemoryKind::LongTerm, MemoryKind::Note] {
        for text in [
            "",
            " \n ",
            "one\n[2020-01-01T00:00:00Z] false",
            &"x".repeat(1 << 20),
        ] {
            let error = remember(text, kind).unwrap_err();
            assert!(error.message.starts_with("`content`"), "{error}");
        }
    }
    assert_eq!(home.names("memory"), before);
    assert_eq!(fs::read_to_string(home.file("memory.md")).unwrap(), both);
}

#[test]
fn what_is_remembered_is_found_at_once() {
    let mut home = Home::new();
    let search =
        |home: &Home, text: &str| memory::search(&home.state, text, None, None, None).unwrap();
    assert_eq!(search(&home, "超时"), []);
    memory::remember(
        &home.state,
        "上次部署使用了云函数，遇到了超时问题",
        MemoryKind::Note,
        home.now,
    )
    .unwrap();
    assert_eq!(search(&home, "超时").len(), 1);
    home.pass(24 * 3600);
    memory::remember(&home.state, "超时 again", MemoryKind::LongTerm, home.now).unwrap();
    let hits = search(&home, "超时");
    assert_eq!(hits.len(), 2);
    assert!(hits[0].score >= hits[1].score);
    // A filter holds for long-term memory as well.
    let day = Some("2026-01-31T23:00:00Z".parse().unwrap());
    let old = memory::search(&home.state, "超时", None, day, None).unwrap();
    assert_eq!(old.len(), 1);
    assert!(
        old[0].source.starts_with("memory/2026-01-31-mem-"),
        "{old:?}"
    );
    for limit in [0, -1, 51] {
        assert!(memory::search(&home.state, "x", None, None, Some(limit)).is_err());
    }
    assert!(
        memory::search(
            &home.state,
            "x",
            day,
            Some("2026-01-01T00:00:00Z".parse().unwrap()),
            None
        )
        .is_err()
    );
}

#[test]
fn a_reader_of_the_log_follows_it_into_a_new_file() {
    let home = Home::new();
    let mut reader = LogReader::default();
    let add = |event: &str| log(&home.state, home.now, event, Map::new()).unwrap();
    let mut read = || {
        let lines = reader.lines(&home.state).unwrap().into_iter();
        let events = lines
            .map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap()["event"].clone());
        events.collect::<Vec<_>>()
    };
    assert_eq!(read(), [""; 0]);
    add("one");
    add("two");
    assert_eq!(read(), ["one", "two"]);
    assert_eq!(read(), [""; 0]);
    add("three");
    // A line that is being written.
    let path = home.file("log.jsonl");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole[..], b"{\"eve"].concat()).unwrap();
    assert_eq!(read(), ["three"]);
    assert_eq!(read(), [""; 0]);
    fs::remove_file(&path).unwrap();
    add("four");
    assert_eq!(read(), ["four"]);
}

#[test]
fn the_log_has_ten_files() {
    let home = Home::new();
    for number in 0..12 {
        let mut fields = Map::new();
        fields.insert("number".into(), number.into());
        log(&home.state, home.now, "tick", fields).unwrap();
        let file = fs::File::options()
            .append(true)
            .open(home.file("log.jsonl"))
            .unwrap();
        file.set_len((10 << 20) - 1).unwrap();
        std::io::Write::write_all(&mut &file, b"\n").unwrap();
    }
    let mut names = home.names("");
    names.retain(|name| name.starts_with("log."));
    assert_eq!(names.len(), 10);
    let last = fs::read(home.file("log.jsonl")).unwrap();
    let line = last.split(|byte| *byte == b'\n').next().unwrap();
    let line: serde_json::Value = serde_json::from_slice(line).unwrap();
    assert_eq!(
        line,
        json!({"timestamp": "2026-01-31T10:00:00Z", "event": "tick", "number": 11})
    );
}
