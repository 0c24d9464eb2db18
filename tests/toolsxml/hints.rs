//! Every refusal and warning there can be: it points at its place, and its hint is one line that
//! names something to do.

use std::collections::BTreeSet;

use karyi::error::{Code, Diagnostic};
use karyi::render::wire;
use karyi::span::Position;
use karyi::syntax::{Event, Mode};
use unicode_width::UnicodeWidthStr;

use super::{grammar, inputs, parse_with};

/// A message for every code, in the order of the codes.
const MESSAGES: &[(Code, &str)] = &[
    (Code::UnknownTool, "<tools>\n  <shell>ls</shell></tools>"),
    (
        Code::UnexpectedElement,
        "<tools><read><dir src='a'/></read></tools>",
    ),
    (
        Code::UnexpectedText,
        "<tools><read>中文<file src='a'/></read></tools>",
    ),
    (
        Code::TextBetweenTools,
        "<tools><ctrl>c</ctrl><read><file src='a'/></read> 然后 </tools>",
    ),
    (
        Code::UnexpectedAfterEndTag,
        "<tools><command>😀</command> x </tools>",
    ),
    (
        Code::AmbiguousEndTag,
        "<tools><command><command></command></tools>",
    ),
    (
        Code::MismatchedEnd,
        "<tools><read><file src='é'></read></tools>",
    ),
    (Code::UnclosedElement, "<tools>\n\t<command>ls"),
    (Code::UnclosedTag, "<tools><command cwd='a"),
    (
        Code::UnclosedCdata,
        "<tools><command><![CDATA[ls</command></tools>",
    ),
    (Code::UnclosedComment, "<tools><!-- ls</tools>"),
    (Code::UnclosedTools, "<tools><ctrl>c</ctrl>"),
    (
        Code::MissingChild,
        "<tools><edit><file src='a'><find>x</find></file></edit></tools>",
    ),
    (
        Code::MissingAttribute,
        "<tools><edit><file><find/><replace/></file></edit></tools>",
    ),
    (
        Code::UnknownAttribute,
        "<tools><command shell='中'>x</command></tools>",
    ),
    (
        Code::DuplicateAttribute,
        "<tools><command cwd='a' cwd='b'>x</command></tools>",
    ),
    (
        Code::DuplicateId,
        "<tools><ctrl id='a'>c</ctrl><ctrl id='a'>c</ctrl></tools>",
    ),
    (
        Code::BadAttribute,
        "<tools order='random'><ctrl>c</ctrl></tools>",
    ),
    (Code::BadTag, "<tools>< command>x</command></tools>"),
    (Code::BadCtrl, "<tools><ctrl>strg</ctrl></tools>"),
    (Code::BadEscape, "<tools><input>한글 \\x1</input></tools>"),
    (Code::BadJson, "{\"reply\": \"好\", tools: 1}"),
    (Code::NestedTools, "<tools><tools></tools></tools>"),
    (
        Code::MixedEscapes,
        "<tools><command>a && b &amp; c</command></tools>",
    ),
    (
        Code::IllegalChar,
        "<tools><command>中\u{1}</command></tools>",
    ),
    (Code::Encoding, "<tools><command>\u{FF}</command></tools>"),
    (Code::ProcessingInstruction, "<tools><?php ?></tools>"),
    (Code::UnexpectedMarkup, "<tools><![CDATA[x]]></tools>"),
    (Code::TooLarge, "<tools><command "),
    (Code::IgnoredBlock, "用 `<tools>` 写"),
    (Code::InventedResults, "好\n<results>\n"),
    (
        Code::MarkupInText,
        "<tools><command>a < b</command></tools>",
    ),
    (
        Code::BadReference,
        "<tools><command>e\u{301}e\u{301} && b</command></tools>",
    ),
    (
        Code::CdataEndInText,
        "<tools><command>a[b[0]]>c</command></tools>",
    ),
    (
        Code::BadComment,
        "<tools><!-- a -- b --><ctrl>c</ctrl></tools>",
    ),
];

fn bytes(code: Code, text: &str) -> Vec<u8> {
    match code {
        Code::Encoding => text
            .chars()
            .map(|c| u8::try_from(u32::from(c)).unwrap())
            .collect(),
        Code::TooLarge => format!("{text}{}", "x='1' ".repeat(20_000)).into_bytes(),
        _ => text.as_bytes().to_vec(),
    }
}

fn diagnostics(mode: Mode, message: &[u8]) -> Vec<Diagnostic> {
    let grammar = grammar::core();
    let events = parse_with(&grammar, mode, message, usize::MAX);
    let found = events.into_iter().filter_map(|event| match event {
        Event::Warning(diagnostic) | Event::Error(diagnostic) => Some(diagnostic),
        Event::BlockOpened { .. } | Event::BlockClosed | Event::DraftsEnded | Event::Call(_) => {
            None
        }
    });
    found.collect()
}

/// What a hint may tell to do.
const ACTIONS: &[&str] = &[
    "add",
    "close",
    "did you mean",
    "end",
    "escape",
    "give",
    "name",
    "only",
    "put",
    "remove",
    "send",
    "split",
    "start",
    "use",
    "wrap",
    "write",
];

/// Says what is wrong with a hint.
fn bad_hint(hint: &str) -> Option<&'static str> {
    let is_action = |action: &str| {
        let words = hint.split([' ', ';', ',', ':']);
        match action.contains(' ') {
            true => hint.contains(action),
            false => words.into_iter().any(|word| word == action),
        }
    };
    match hint {
        "" => Some("is empty"),
        _ if hint.contains(['\n', '\r', '\t']) => Some("is not one line"),
        _ if hint.len() > 200 => Some("is long"),
        _ if hint.ends_with('.') || hint.trim() != hint => Some("is a sentence"),
        _ if !ACTIONS.iter().any(|action| is_action(action)) => Some("names nothing to do"),
        _ => None,
    }
}

/// Says what is wrong with the source line and the caret under it.
fn bad_caret(diagnostic: &Diagnostic, message: &[u8]) -> Option<String> {
    let excerpt = diagnostic.excerpt.as_ref()?;
    let text = wire::excerpt_text(excerpt);
    let (line, caret) = text.split_once('\n').unwrap();
    let before: String = line.chars().take(excerpt.caret_start).collect();
    let columns = caret.len() - caret.trim_start().len();
    if columns != before.width() {
        return Some(format!("stands in column {columns} below {before:?}"));
    }
    let column = usize::try_from(diagnostic.position.column).unwrap();
    if !line.starts_with('…') && before.chars().count() + 1 != column {
        return Some(format!("stands after {before:?}, not in column {column}"));
    }
    // Inside an envelope offsets count in the decoded string, which is not at hand here.
    if diagnostic.is_in_json {
        return None;
    }
    let rest = String::from_utf8_lossy(&message[at(diagnostic.position)..]).into_owned();
    let wanted = rest.chars().next().unwrap_or('\n');
    let found = line.chars().nth(excerpt.caret_start).unwrap_or('\n');
    let is_shown_otherwise = wanted.is_control() || found == '\u{FFFD}' || found == '…';
    (wanted != found && !is_shown_otherwise).then(|| format!("{wanted:?} is shown as {found:?}"))
}

fn at(position: Position) -> usize {
    usize::try_from(position.offset).unwrap()
}

/// Codes that no message alone gives.
const OF_THE_RUN: &[Code] = &[
    Code::RedactionIncomplete,
    Code::UnusableSecret,
    Code::UnknownSecret,
    Code::NoBlock,
];

#[test]
fn every_code_says_what_to_do_and_points_at_its_place() {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    let messages = MESSAGES
        .iter()
        .map(|(code, text)| (code.as_str().to_owned(), bytes(*code, text)));
    for (name, message) in messages.chain(inputs()) {
        for mode in [Mode::Repair, Mode::Strict] {
            for diagnostic in diagnostics(mode, &message) {
                seen.insert(diagnostic.code.as_str());
                let hint = &diagnostic.hint;
                let code = diagnostic.code.as_str();
                if let Some(what) = bad_hint(hint) {
                    wrong.push(format!("{name} {mode:?} {code}: the hint {hint:?} {what}"));
                }
                if let Some(what) = bad_caret(&diagnostic, &message) {
                    wrong.push(format!("{name} {mode:?} {code}: the caret {what}"));
                }
                if diagnostic.excerpt.is_none() || diagnostic.message.contains('\n') {
                    wrong.push(format!("{name} {mode:?} {code}: {diagnostic:?}"));
                }
            }
        }
    }
    let missing = Code::ALL
        .iter()
        .filter(|code| !seen.contains(code.as_str()) && !OF_THE_RUN.contains(code));
    wrong.extend(missing.map(|code| format!("no message gives {}", code.as_str())));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_message_gives_its_code() {
    let listed: Vec<Code> = MESSAGES.iter().map(|(code, _)| *code).collect();
    let all = Code::ALL.iter().filter(|code| !OF_THE_RUN.contains(code));
    assert_eq!(listed, all.copied().collect::<Vec<_>>());
    for (code, text) in MESSAGES {
        let message = bytes(*code, text);
        let gives = |mode| diagnostics(mode, &message).iter().any(|d| d.code == *code);
        let (repair, strict) = (gives(Mode::Repair), gives(Mode::Strict));
        assert!(
            repair || strict,
            "{}: {:?}",
            code.as_str(),
            diagnostics(Mode::Repair, &message)
        );
    }
}

/// What was written wrongly is told with the form it has to have.
#[test]
fn the_form_is_told() {
    let edit = "<edit><file src=\"...\"><find>...</find><replace>...</replace></file></edit>";
    let file = "<file src=\"...\"><find>...</find><replace>...</replace></file>";
    let read = "<read><file src=\"...\"/><search pattern=\"...\"/></read>";
    for (call, hint) in [
        ("<edit path=\"a\"/>", format!("<edit> takes no attribute here; remove it; write {edit}")),
        ("<edit><path>a</path></edit>", format!("write {edit}")),
        ("<edit><file src=\"a\"><old>x</old></file></edit>", format!("write {file}")),
        ("<edit><file src=\"a\"><fnd>x</fnd></file></edit>", format!("did you mean `find`?; write {file}")),
        (
            "<edit><file owner=\"a\"/></edit>",
            format!("remove it; <file> takes src, to, delete, break_links; write {file}"),
        ),
        ("<read path=\"a\"/>", format!("<read> takes no attribute here; remove it; write {read}")),
        ("<read><path>a</path></read>", format!("write {read}")),
        ("<read/>", format!("add <file> or <search> inside <read>; write {read}")),
        (
            "<read><search query=\"a\"/></read>",
            "remove it; <search> takes pattern, path, glob, regex, ignore_case, all, max, context; write \
             <search pattern=\"...\"/>"
                .to_owned(),
        ),
        ("<read><file scr=\"a\"/></read>", "did you mean `src`?; write <file src=\"...\"/>".to_owned()),
        (
            "<command shell=\"x\">ls</command>",
            "remove it; <command> takes timeout, cwd, name".to_owned(),
        ),
    ] {
        let message = format!("<tools>{call}</tools>");
        let found = diagnostics(Mode::Repair, message.as_bytes());
        let found = found.last().map(|found| found.hint.as_str());
        assert_eq!(found, Some(hint.as_str()), "{call}");
    }
}
