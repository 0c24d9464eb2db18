//! Well-formed documents mean the same to strict mode, to repair mode and to a second reader.

use karyi::syntax::{Event, Mode};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::choices::{Choices, check_all};
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

/// Writes a JSON string in one of the many ways there are.
fn json_string(text: &str, choices: &mut Choices<'_>) -> String {
    let mut string = String::from("\"");
    for c in text.chars() {
        let plain = serde_json::to_string(&c).unwrap();
        match choices.chance(20) {
            true => {
                let units = c.encode_utf16(&mut [0; 2]).to_vec();
                string.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
            }
            false => string.push_str(&plain[1..plain.len() - 1]),
        }
    }
    string + "\""
}

#[test]
fn an_envelope_changes_nothing() {
    let documents = any_document(grammar::with_generic_tools());
    let strategy = (documents, vec(any::<u8>(), 0..600));
    check_all((150, 20_000), &strategy, |(document, bytes)| {
        let text = document.text.trim_start_matches('\u{FEFF}');
        let string = json_string(text, &mut Choices::new(bytes));
        let envelope = format!("{{\"reply\": \"a \\n\", \"tools\": {string}, \"x\": [1]}}");
        for mode in [Mode::Repair, Mode::Strict] {
            let plain = parse_with(&grammar::shared(), mode, text.as_bytes(), usize::MAX);
            for chunk in [1, 7, usize::MAX] {
                let found = parse_with(&grammar::shared(), mode, envelope.as_bytes(), chunk);
                prop_assert_eq!(without_warnings(&found), without_warnings(&plain));
            }
        }
        Ok(())
    });
}

#[test]
fn well_formed_documents_mean_the_same_to_three_readers() {
    check_all(
        (500, 100_000),
        &any_document(grammar::with_generic_tools()),
        check,
    );
}
