//! What holds for every message, whatever it is. The fuzzer checks the same.

use std::ops::Range;

use karyi::call::{RawBody, RawCall, RawElement};
use karyi::error::{Code, Diagnostic};
use karyi::syntax::{Event, Mode, Parser};

use super::grammar;
use super::reader::{Meaning, tree};

/// What is wrong, if anything is.
pub(super) type CheckResult = Result<(), String>;

/// Both modes.
const MODES: [Mode; 2] = [Mode::Repair, Mode::Strict];

fn ensure(holds: bool, what: impl FnOnce() -> String) -> CheckResult {
    if holds { Ok(()) } else { Err(what()) }
}

/// Parses in pieces of the given sizes, again and again.
pub(super) fn parse_in(mode: Mode, message: &[u8], sizes: &[usize]) -> Vec<Event> {
    let mut parser = Parser::new(grammar::shared(), mode);
    let (mut events, mut rest) = (Vec::new(), message);
    for size in sizes.iter().cycle() {
        let (piece, more) = rest.split_at((*size).clamp(1, rest.len().max(1)).min(rest.len()));
        parser.feed(piece, &mut events);
        rest = more;
        if rest.is_empty() {
            break;
        }
    }
    parser.finish(&mut events);
    events
}

fn parse(mode: Mode, message: &[u8]) -> Vec<Event> {
    parse_in(mode, message, &[usize::MAX])
}

/// Chunks change nothing, and what comes out is sane.
pub(super) fn check_chunks(message: &[u8], sizes: &[usize]) -> CheckResult {
    for mode in MODES {
        let whole = parse(mode, message);
        check_sane(&whole, message.len() as u64)?;
        for sizes in [&[1], sizes] {
            let found = parse_in(mode, message, sizes);
            ensure(found == whole, || {
                format!("{mode:?}, pieces of {sizes:?}:\n{found:?}\nwhole:\n{whole:?}")
            })?;
        }
    }
    Ok(())
}

/// What is known when part of a message has come does not depend on chunks either: here the rest of
/// the envelope around it is broken, so that nothing but that part counts.
pub(super) fn check_part(part: &[u8], sizes: &[usize]) -> CheckResult {
    let mut envelope = b"{\"tools\":\"".to_vec();
    for byte in part {
        match byte {
            b'"' | b'\\' => envelope.extend([b'\\', *byte]),
            0..b' ' => envelope.extend(format!("\\u{byte:04x}").bytes()),
            _ => envelope.push(*byte),
        }
    }
    envelope.extend(b"\\q");
    check_chunks(&envelope, sizes)
}

/// Blocks, calls and what is in them stand in order, and every refusal says where and what to do.
fn check_sane(events: &[Event], length: u64) -> CheckResult {
    let mut from = 0;
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::BlockOpened { position, .. } => {
                ensure(position.offset >= from, || {
                    format!("out of order: {event:?}")
                })?;
                from = position.offset;
            }
            Event::Call(call) => {
                check_spans(&call.element, from, length)?;
                from = call.element.span.end_offset;
            }
            Event::BlockClosed | Event::DraftsEnded => {}
            Event::Warning(diagnostic) => check_diagnostic(diagnostic, length)?,
            Event::Error(diagnostic) => {
                check_diagnostic(diagnostic, length)?;
                ensure(at + 1 == events.len(), || {
                    "something follows the error".into()
                })?;
            }
        }
    }
    Ok(())
}

fn check_diagnostic(diagnostic: &Diagnostic, length: u64) -> CheckResult {
    let position = diagnostic.position;
    let is_inside = position.offset <= length
        && (1..=position.offset + 1).contains(&position.line)
        && (1..=position.offset + 1).contains(&position.column);
    let is_shown = diagnostic.excerpt.as_ref().is_some_and(|excerpt| {
        let width = excerpt.line.chars().count();
        excerpt.caret_start <= width
            && excerpt.caret_len > 0
            && !excerpt.line.contains(char::is_control)
    });
    let is_said = [&diagnostic.message, &diagnostic.hint]
        .iter()
        .all(|text| !text.is_empty() && !text.contains(char::is_control));
    ensure(is_inside && is_shown && is_said, || {
        format!("{diagnostic:?}")
    })
}

/// An element stands between two offsets, and what it holds in it, in order.
fn check_spans(element: &RawElement, from: u64, to: u64) -> CheckResult {
    let span = element.span;
    let is_inside =
        from <= span.start.offset && span.start.offset < span.end_offset && span.end_offset <= to;
    ensure(is_inside, || format!("not in {from}..{to}: {element:?}"))?;
    match &element.body {
        RawBody::Empty | RawBody::Text(_) => Ok(()),
        RawBody::Elements(children) => {
            let mut from = span.start.offset + 1;
            for child in children {
                check_spans(child, from, span.end_offset)?;
                from = child.span.end_offset;
            }
            Ok(())
        }
    }
}

/// What strict mode made of a message.
pub(super) struct Strict {
    /// All events.
    pub(super) events: Vec<Event>,
    /// Where the blocks stand that were read to their end; none in an envelope, where places count
    /// in the string.
    pub(super) blocks: Vec<Range<usize>>,
    /// How many events these blocks have, and what stands between them.
    pub(super) complete: usize,
}

/// Parses in strict mode, byte by byte, to see where blocks end.
pub(super) fn parse_strictly(message: &[u8]) -> Strict {
    let mut parser = Parser::new(grammar::shared(), Mode::Strict);
    let (mut events, mut blocks, mut start, mut complete) = (Vec::new(), Vec::new(), 0, 0);
    for (at, byte) in message.iter().enumerate() {
        let seen = events.len();
        parser.feed(&[*byte], &mut events);
        for (index, event) in events.iter().enumerate().skip(seen) {
            match event {
                Event::BlockOpened { position, .. } => {
                    start = usize::try_from(position.offset).unwrap_or(usize::MAX);
                }
                Event::BlockClosed => {
                    blocks.push(start..at + 1);
                    complete = index + 1;
                }
                Event::Call(_) | Event::DraftsEnded | Event::Warning(_) | Event::Error(_) => {}
            }
        }
    }
    parser.finish(&mut events);
    if may_be_envelope(message) {
        blocks.clear();
        complete = 0;
    }
    Strict {
        events,
        blocks,
        complete,
    }
}

fn may_be_envelope(message: &[u8]) -> bool {
    let text = message.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(message);
    let text = text.trim_ascii_start();
    text.starts_with(b"{") || text.starts_with(b"```") && text.contains(&b'{')
}

/// What strict mode reads a second reader reads the same.
pub(super) fn check_reader(message: &[u8]) -> CheckResult {
    let Ok(text) = std::str::from_utf8(message) else {
        return Ok(());
    };
    let strict = parse_strictly(message);
    // Ids start anew after drafts, which the reader does not know.
    if strict.events.contains(&Event::DraftsEnded) {
        return Ok(());
    }
    let grammar = grammar::shared();
    let mut meaning = Meaning::new(&grammar, Some(text));
    for block in &strict.blocks {
        meaning.block(tree(text, block.start, block.end)?);
    }
    let found = strict.events.into_iter().take(strict.complete);
    let found: Vec<Event> = found.filter(|e| !matches!(e, Event::Warning(_))).collect();
    ensure(found == meaning.events, || {
        format!("strict mode\n{found:?}\nthe reader\n{:?}", meaning.events)
    })
}

/// What strict mode accepts repair mode reads the same, and what repair mode reads without repairs
/// strict mode accepts.
pub(super) fn check_modes(message: &[u8]) -> CheckResult {
    let [repaired, strict] = MODES.map(|mode| parse(mode, message));
    if is_accepted(&strict, message) {
        ensure(repaired == strict, || {
            format!("strict mode accepts\n{strict:?}\nrepair mode reads\n{repaired:?}")
        })?;
    }
    let is_clean = repaired.iter().all(|event| match event {
        Event::Call(call) => call.repairs.is_empty(),
        Event::Warning(_) | Event::Error(_) => false,
        Event::BlockOpened { .. } | Event::BlockClosed | Event::DraftsEnded => true,
    });
    // A comment that strict mode refuses changes no call, so it is reported nowhere.
    let is_comment =
        matches!(strict.last(), Some(Event::Error(error)) if error.code == Code::BadComment);
    // Repairs are told with the calls of a block; one without calls has none to tell them with.
    let is_bare = |pair: &[Event]| matches!(pair, [Event::BlockOpened { .. }, Event::BlockClosed]);
    let has_bare_block = repaired.windows(2).any(is_bare);
    if is_clean && !is_comment && !has_bare_block {
        ensure(calls(&strict) == calls(&repaired), || {
            format!("nothing was repaired in\n{repaired:?}\nstrict mode reads\n{strict:?}")
        })?;
    }
    Ok(())
}

fn calls(events: &[Event]) -> Vec<&RawCall> {
    let calls = events.iter().filter_map(|event| match event {
        Event::Call(call) => Some(call),
        _ => None,
    });
    calls.collect()
}

/// Tells whether strict mode took all blocks: <TOOLS> it does not know, and says so by a warning.
fn is_accepted(events: &[Event], message: &[u8]) -> bool {
    events.iter().all(|event| match event {
        Event::Error(_) => false,
        Event::Warning(warning) if warning.code == Code::IgnoredBlock => {
            let start = usize::try_from(warning.position.offset).unwrap_or(usize::MAX);
            let rest = message.get(start..).unwrap_or_default();
            !warning.is_in_json && rest.starts_with(b"<tools")
        }
        Event::Warning(_)
        | Event::BlockOpened { .. }
        | Event::Call(_)
        | Event::BlockClosed
        | Event::DraftsEnded => true,
    })
}
