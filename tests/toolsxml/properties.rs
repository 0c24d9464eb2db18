//! Properties of any message: chunks change nothing, nothing panics, every refusal says where and
//! what to do, and what strict mode accepts repair mode reads the same.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;

use super::choices::check_all;
use super::invariants::{check_chunks, check_modes, check_part, check_reader};
use super::mutants::mutant;

#[test]
fn any_chunking_gives_the_same_events() {
    let strategy = (mutant(), vec(1..30_usize, 1..6));
    check_all((800, 200_000), &strategy, |(message, sizes)| {
        check_chunks(&message.0, sizes).map_err(TestCaseError::fail)
    });
}

#[test]
fn any_chunking_gives_the_same_events_of_a_part() {
    let strategy = (mutant(), any::<Index>(), vec(1..30_usize, 1..6));
    check_all((800, 200_000), &strategy, |(message, end, sizes)| {
        let part = &message.0[..end.index(message.0.len() + 1)];
        check_part(part, sizes).map_err(TestCaseError::fail)
    });
}

#[test]
fn what_one_mode_accepts_as_it_is_the_other_reads_the_same() {
    check_all((1_000, 200_000), &mutant(), |message| {
        check_modes(&message.0).map_err(TestCaseError::fail)
    });
}

#[test]
fn what_strict_mode_accepts_a_second_reader_reads_the_same() {
    check_all((800, 200_000), &mutant(), |message| {
        check_reader(&message.0).map_err(TestCaseError::fail)
    });
}
