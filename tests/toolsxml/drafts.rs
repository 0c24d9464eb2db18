//! Blocks that are drafts or follow made-up results, and lines that start like calls: at every split.

use karyi::call::RawBody;
use karyi::syntax::{Event, Mode, Parser};

use super::{as_case, grammar};

/// Returns the texts of the commands that count, with their ids, then the codes of the warnings.
fn outline(events: &[Event]) -> Vec<String> {
    let mut found = Vec::new();
    let mut warnings = Vec::new();
    for event in events {
        match event {
            Event::Call(call) => match &call.element.body {
                RawBody::Text(text) => found.push(format!("{} {}", call.id, text.text)),
                _ => panic!("no text"),
            },
            Event::DraftsEnded => found.clear(),
            Event::Warning(warning) => warnings.push(warning.code.as_str().to_owned()),
            Event::Error(error) => warnings.push(format!("error {}", error.code.as_str())),
            Event::BlockOpened { .. } | Event::BlockClosed => {}
        }
    }
    found.extend(warnings);
    found
}

/// Parses a message in pieces of `chunk` bytes; also returns the line that starts like a call.
fn parse(message: &str, pieces: &[&[u8]]) -> (Vec<Event>, Option<u64>) {
    let mut parser = Parser::new(grammar::core(), Mode::Repair);
    let mut events = Vec::new();
    assert_eq!(pieces.concat(), message.as_bytes());
    for piece in pieces {
        parser.feed(piece, &mut events);
    }
    parser.finish(&mut events);
    let line = parser.bare_call().map(|bare| bare.position.line);
    (events, line)
}

fn everywhere(message: &str) -> (Vec<Event>, Option<u64>) {
    let bytes = message.as_bytes();
    let whole = parse(message, &[bytes]);
    for at in 0..bytes.len() {
        let (before, after) = bytes.split_at(at);
        assert_eq!(
            parse(message, &[before, after]),
            whole,
            "{message:?} split at {at}"
        );
    }
    for chunk in [1, 2, 3] {
        let pieces: Vec<&[u8]> = bytes.chunks(chunk).collect();
        assert_eq!(
            parse(message, &pieces),
            whole,
            "{message:?} in chunks of {chunk}"
        );
    }
    whole
}

#[track_caller]
fn check(message: &str, expected: &[&str]) {
    assert_eq!(outline(&everywhere(message).0), expected, "{message:?}");
}

const DRAFT: &str = "<tools><command>draft</command></tools>";
const REAL: &str = "<tools><command>real</command></tools>";

#[test]
fn blocks_in_drafts_do_not_run() {
    for (open, close) in [
        ("<think>", "</think>"),
        ("<thinking time='3'>", "</THINKING >"),
        ("<Reasoning>", "</reasoning>"),
        ("[THINK]", "[/THINK]"),
        ("<!-- e.g.", "-->"),
        ("<pre>", "</pre>"),
        ("  <think>", "</think>"),
        ("Hm. <think>", "</think>"),
        ("Like: <pre>", "</pre>"),
        ("Like: <!-- one of", "-->"),
    ] {
        let message = format!("{open}\nwhat if\n{DRAFT}\n```\n{close}\nSo:\n{REAL}\n");
        check(&message, &["1 real", "ignored-block"]);
        check(&format!("{open}\n{close}\n{REAL}"), &["1 real"]);
    }
    check(&format!("<think>{DRAFT}</think>"), &["ignored-block"]);
    check(&format!("<think>x</think>{REAL}"), &["1 real"]);
    check(
        &format!("<think>x</think>\n```xml\n{REAL}\n```"),
        &["1 real"],
    );
    check(&format!("<!--->\n{REAL}"), &["1 real"]);
    check(
        "<think>x</think>\n{\"tools\": \"<tools><ctrl>c</ctrl></tools>\"}",
        &["1 c"],
    );
    check(
        "{\"tools\": \"<think>\\n<tools><ctrl>c</ctrl></tools>\\n</think>\"}",
        &["ignored-block"],
    );
}

#[test]
fn mentions_open_no_draft() {
    for mention in [
        "Use `<think>` here.",
        "`<think>` is a tag.",
        "``a ` <think>`` too",
        "So:\n```\n<think>\n<!--\n```",
        "It starts with `<!-- this`.",
        "It starts with <!--",
        "It starts with <!-- and ends with -->.",
        "a <pre> element",
        "<thinker>",
        "<think/>",
        "[think]",
        "`</think>` ends it",
        "So:\n```\n</think>\n```",
        "I will add a <thinking> element to the page.",
        "I use <think> tags sometimes.",
        "| `a` | [THINK] |",
        "a <reasoning> and a </reasoning> tag",
        "Wrap it in <think>...</think>.",
        "Hm. <think>x</think>",
        "Hm. <think>x\ny</think>",
    ] {
        check(&format!("{mention}\n{REAL}"), &["1 real"]);
        check(&format!("{REAL}\n{mention}\n"), &["1 real"]);
    }
    for mention in [
        "The tag </think> closes a thought.",
        "Not [/THINK], and not </thinking>.",
    ] {
        check(&format!("{REAL}\n{mention}\n"), &["1 real"]);
    }
    check(
        &format!("Hm. <think>What if\n{DRAFT}\nNo.</think>\n{REAL}"),
        &["1 real", "ignored-block"],
    );
    check(
        &format!("Hm.\n{DRAFT}\nNo.</think>So:\n{REAL}"),
        &["1 real", "ignored-block"],
    );
    check(
        &format!("<think>I write a <tools> block.</think>\n{REAL}"),
        &["1 real"],
    );
}

#[test]
fn a_fence_without_the_block_hides_nothing_after_it() {
    for shown in [
        "<think>",
        "<!-- x",
        "<pre>",
        "[THINK]",
        "<results>",
        "</think>",
    ] {
        for end in ["```", " ```` \t"] {
            check(&format!("```\n{shown}\n{end}\n{REAL}"), &["1 real"]);
        }
        check(&format!("```xml\n{shown}\nx\n```\n{REAL}\n"), &["1 real"]);
    }
    for (open, close) in [("<think>", "</think>"), ("<!-- x", "-->")] {
        check(
            &format!("```xml\n{open}\n{DRAFT}\n{close}\n{REAL}\n```\n"),
            &["1 real", "ignored-block"],
        );
        check(
            &format!("```xml\n{open}\n```py\n{DRAFT}\n``\n{close}\n{REAL}\n```"),
            &["1 real", "ignored-block"],
        );
    }
    check(
        &format!("```\n{REAL}\n<results>\n{DRAFT}\n```\n{DRAFT}"),
        &["1 real", "invented-results"],
    );
}

#[test]
fn an_open_thought_ignores_the_rest_and_says_so() {
    check(
        &format!("<think>\n{DRAFT}\n{REAL}\n"),
        &["ignored-block"; 3],
    );
    check(
        &format!("{REAL}\n<think>\n{DRAFT}"),
        &["1 real", "ignored-block", "ignored-block"],
    );
    check(&format!("{REAL}\n<think> done"), &["1 real"]);
    let (events, _) = everywhere(&format!("The tag is <think>\n{REAL}\n"));
    let Some(Event::Warning(warning)) = events.last() else {
        panic!("{events:?}");
    };
    assert_eq!(
        warning.hint,
        "close it with </think>, or write <think> in backticks"
    );
    check(
        &format!("<think>\n</thinking>\n{REAL}"),
        &["ignored-block"; 2],
    );
}

#[test]
fn a_closer_without_opener_makes_drafts_of_all_before_it() {
    check(&format!("</thinking>\n{REAL}"), &["1 real"]);
    let draft = "<tools><command id='a'>draft</command></tools>";
    let real = "<tools><command id='a'>real</command></tools>";
    check(
        &format!("Hm.\n{draft}\nNo.\n</think>\n{real}"),
        &["a real", "ignored-block"],
    );
    check(
        &format!("Hm.\n{DRAFT}\nNo. [/THINK]{REAL}"),
        &["1 real", "ignored-block"],
    );
    check(
        &format!("{DRAFT}\n<results>\nx\n</results>\n</think>\n{REAL}"),
        &["1 real", "invented-results", "ignored-block"],
    );
}

#[test]
fn a_draft_with_an_error_is_a_draft() {
    for draft in [
        "<tools><command>draft</tools>",
        "<tools><cmd>é</cmd></tools>",
        "<tools order='x'><command>draft</command></tools>",
        "<tools>\n<command>draft</command>\n<edit>\n</TOOLS></tools>",
        "<tools><command>draft</command></command></tools>",
    ] {
        let message = format!("Hm.\n{draft}\nNo.\n</think>\n{REAL}\n");
        check(&message, &["1 real", "ignored-block"]);
        let message = format!("<tools><command>x</command></tools>\n{draft}[/THINK]{REAL}");
        check(&message, &["1 real", "ignored-block"]);
        let message = format!("{draft}\n<think>\n{DRAFT}</think>\n{REAL}");
        let (events, _) = everywhere(&message);
        assert!(matches!(events.last(), Some(Event::Error(_))), "{events:?}");
    }
    for text in [
        "<tools><command>x\n</think>\n",
        "<tools><command>x</tools>\n```\n</think>\n```\n",
        "{\"tools\": \"<tools><command>x</tools>\\n</think>\\n\"}",
    ] {
        let (events, _) = everywhere(text);
        assert!(matches!(events.as_slice(), [.., Event::Error(_)]), "{text}");
    }
    let many = "<tools><command>x</tools>\n</think>\n".repeat(20);
    let found = outline(&everywhere(&(many + REAL)).0);
    assert_eq!(
        found.last().map(String::as_str),
        Some("error ambiguous-end-tag")
    );
}

#[test]
fn tags_in_calls_are_text() {
    for text in [
        "echo <think>",
        "</think>",
        "cat <<E\n<!--\n<think>\nE",
        "<results>\n",
        "[/THINK]",
    ] {
        let message = format!("<tools><command>{text}</command></tools>\n{REAL}");
        check(&message, &[&format!("1 {text}"), "2 real"]);
    }
}

#[test]
fn made_up_results_end_the_message() {
    for results in ["<results>", "  <results status=\"ok\">", "<results/>"] {
        let message = format!("{REAL}\n{results}\n<command>x</command>\n</results>\n{DRAFT}\n");
        check(&message, &["1 real", "invented-results"]);
    }
    check(
        &format!("<results>\n</results>\n<think>\nx\n</think>\n{DRAFT}"),
        &["invented-results"],
    );
    check(&format!("in <results> they say\n{REAL}"), &["1 real"]);
    check(
        &format!("So:\n```\n<results>\n```\n<resultset>\n{REAL}"),
        &["1 real"],
    );
    check(
        &format!("<think>\n<results>\n</think>\n{REAL}"),
        &["1 real"],
    );
}

#[test]
fn lines_that_start_like_calls_are_noticed() {
    let bare = |message: &str| everywhere(message).1;
    for call in [
        "<command>ls</command>",
        "  <Ctrl >c</ctrl>",
        "<tool_call>",
        "<tool>",
        "<invoke name=\"x\">",
        "<function_calls>",
        "<function=bash>",
        "<execute_command>",
        "<str_replace_editor>",
        "<|tool_call_begin|>",
        "<x:invoke name=\"x\">",
        "&lt;tools>",
        "[TOOL_CALLS]",
        "<tools_block>",
        "<tools-use>",
        "<toolset>",
        "<tool-call>",
        "<karyi:tools>",
        "<my_tools>",
    ] {
        assert_eq!(bare(&format!("Let me see:\n\n{call}\n")), Some(3), "{call}");
        assert_eq!(bare(&format!("```\n{call}\n```\n")), None, "{call}");
        assert_eq!(
            bare(&format!("<think>\n{call}\n</think>\n")),
            None,
            "{call}"
        );
        assert_eq!(bare(&format!("see {call}\n")), None, "{call}");
    }
    for prose in [
        "<commands>x",
        "<tooltip>",
        "<toolbar>",
        "<div>",
        "&lt;",
        "<",
        "",
        "```bash\nnpm test\n```",
    ] {
        assert_eq!(bare(prose), None, "{prose}");
    }
    let envelope = "{\"tools\": \"a\\n<command>ls</command>\"}";
    assert_eq!(bare(envelope), Some(2));
    assert_eq!(bare("<tools>\n</tools>\n<command>ls</command>"), Some(3));
    assert_eq!(
        as_case(&everywhere("<command>ls</command>").0),
        serde_json::json!([])
    );
}
