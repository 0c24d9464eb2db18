//! Properties of any message: chunks change nothing, nothing panics, every refusal says where and
//! what to do, and what strict mode accepts repair mode reads the same.

use karyi::call::{RawBody, RawElement};
use karyi::error::Code;
use karyi::syntax::{Event, Mode, Parser};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::choices::check_all;
use super::mutants::mutant;
use super::{calls, error, grammar, warnings};

/// Parses in pieces of the given sizes, again and again.
fn parse_in(mode: Mode, message: &[u8], sizes: &[usize]) -> Vec<Event> {
    let mut parser = Parser::new(grammar::shared(), mode);
    let (mut events, mut rest) = (Vec::new(), message);
    for size in sizes.iter().cycle() {
        let (piece, more) = rest.split_at((*size).min(rest.len()));
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

/// Checks what holds for the events of any message.
fn check_sane(events: &[Event], message: &[u8]) -> Result<(), TestCaseError> {
    let mut from = 0;
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::BlockOpened { position, .. } => {
                prop_assert!(position.offset >= from, "blocks stand in order");
                from = position.offset;
            }
            Event::Call(call) => {
                check_spans(&call.element, from, message.len() as u64)?;
                from = call.element.span.end_offset;
            }
            Event::BlockClosed => {}
            Event::Warning(diagnostic) | Event::Error(diagnostic) => {
                let is_error = matches!(event, Event::Error(_));
                prop_assert!(!is_error || at + 1 == events.len(), "the error is the last");
                let position = diagnostic.position;
                prop_assert!(position.offset <= message.len() as u64);
                prop_assert!(position.line <= position.offset + 1);
                prop_assert!(position.column <= position.offset + 1);
                let excerpt = diagnostic.excerpt.as_ref().unwrap();
                let width = excerpt.line.chars().count();
                prop_assert!(excerpt.caret_start <= width && excerpt.caret_len > 0);
                prop_assert!(!excerpt.line.contains(char::is_control));
                for text in [&diagnostic.message, &diagnostic.hint] {
                    prop_assert!(!text.is_empty() && !text.contains('\n'));
                }
            }
        }
    }
    Ok(())
}

/// Checks that an element stands between two offsets, and what it holds in it, in order.
fn check_spans(element: &RawElement, from: u64, to: u64) -> Result<(), TestCaseError> {
    let span = element.span;
    prop_assert!(from <= span.start.offset && span.start.offset < span.end_offset);
    prop_assert!(span.end_offset <= to);
    match &element.body {
        RawBody::Empty => {}
        RawBody::Text(text) => {
            prop_assert!(span.start.offset < text.span.start.offset);
            prop_assert!(text.span.start.offset <= text.span.end_offset);
            prop_assert!(text.span.end_offset <= span.end_offset);
        }
        RawBody::Elements(children) => {
            let mut from = span.start.offset + 1;
            for child in children {
                check_spans(child, from, span.end_offset)?;
                from = child.span.end_offset;
            }
        }
    }
    Ok(())
}

#[test]
fn any_chunking_gives_the_same_events() {
    let strategy = (mutant(), vec(1..30_usize, 1..6));
    check_all((3_000, 200_000), &strategy, |(message, sizes)| {
        for mode in [Mode::Repair, Mode::Strict] {
            let whole = parse(mode, &message.0);
            check_sane(&whole, &message.0)?;
            let bytes = parse_in(mode, &message.0, &[1]);
            prop_assert_eq!(&bytes, &whole, "byte by byte, {:?}", mode);
            let pieces = parse_in(mode, &message.0, sizes);
            prop_assert_eq!(&pieces, &whole, "pieces of {:?}, {:?}", sizes, mode);
        }
        Ok(())
    });
}

#[test]
fn a_call_without_repairs_is_well_formed() {
    check_all((3_000, 200_000), &mutant(), |message| {
        let repaired = parse(Mode::Repair, &message.0);
        let is_clean = repaired.iter().all(|event| match event {
            Event::Call(call) => call.repairs.is_empty(),
            Event::Warning(_) | Event::Error(_) => false,
            Event::BlockOpened { .. } | Event::BlockClosed => true,
        });
        // A comment that strict mode refuses changes no call, so it is reported nowhere.
        let strict = parse(Mode::Strict, &message.0);
        let is_comment = error(&strict).is_some_and(|error| error.code == Code::BadComment);
        if is_clean && !is_comment {
            prop_assert_eq!(calls(&strict), calls(&repaired));
        }
        Ok(())
    });
}

#[test]
fn what_strict_mode_accepts_repair_mode_reads_the_same() {
    check_all((3_000, 200_000), &mutant(), |message| {
        let strict = parse(Mode::Strict, &message.0);
        // Strict mode does not know <TOOLS>, and says so by a warning.
        let has_other_case = warnings(&strict).iter().any(|warning| {
            let start = usize::try_from(warning.position.offset).unwrap();
            warning.code == Code::IgnoredBlock
                && (warning.is_in_json || !message.0[start..].starts_with(b"<tools"))
        });
        if error(&strict).is_none() && !has_other_case {
            prop_assert_eq!(parse(Mode::Repair, &message.0), strict);
        }
        Ok(())
    });
}
