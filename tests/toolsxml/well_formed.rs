//! Well-formed documents mean the same to strict mode, to repair mode and to a second reader.

use karyi::syntax::{Event, Mode};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::choices::check_all;
use super::documents::{Document, any_document};
use super::reader::{Meaning, tree};
use super::{grammar, parse_with};

fn check(document: &Document) -> Result<(), TestCaseError> {
    let grammar = grammar::shared();
    let mut meaning = Meaning::new(&grammar, Some(&document.text));
    for block in &document.blocks {
        let tree = tree(&document.text, block.start, block.end);
        meaning.block(tree.map_err(TestCaseError::fail)?);
    }
    let expected = meaning.events;
    let message = document.text.as_bytes();
    let strict = parse_with(&grammar, Mode::Strict, message, usize::MAX);
    prop_assert_eq!(&without_warnings(&strict), &expected, "strict mode");
    let repaired = parse_with(&grammar, Mode::Repair, message, usize::MAX);
    prop_assert_eq!(&repaired, &strict, "repair mode");
    let chunk = 1 + message.len() % 7;
    let cut = parse_with(&grammar, Mode::Repair, message, chunk);
    prop_assert_eq!(&cut, &strict, "repair mode, chunks of {}", chunk);
    Ok(())
}

/// Blocks in prose and in fences are warned of; the reader knows nothing of them.
fn without_warnings(events: &[Event]) -> Vec<Event> {
    let is_warning = |event: &&Event| matches!(event, Event::Warning(_));
    events
        .iter()
        .filter(|event| !is_warning(event))
        .cloned()
        .collect()
}

#[test]
fn well_formed_documents_mean_the_same_to_three_readers() {
    check_all(
        (2_000, 100_000),
        &any_document(grammar::with_generic_tools()),
        check,
    );
}
