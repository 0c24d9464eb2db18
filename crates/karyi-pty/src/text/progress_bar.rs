//! Finds states of a progress bar that are erased for the next one, and so need not be drawn.

use super::cell::{COLUMNS, width};
use super::escape::Sequence;
use super::scan::after_sequence;

/// Sequences that erase a line and return to its start, as most bars print before each state.
const STARTS: [&[u8]; 2] = [b"\r\x1b[K", b"\r\x1b[2K"];

/// Returns true if bytes begin by erasing the line.
pub(super) fn starts_anew(bytes: &[u8]) -> bool {
    STARTS.iter().any(|start| bytes.starts_with(start))
}

/// Returns the position of the last erasure of the cursor's line, if all states before take a single row. Stops at the
/// line's end, so that many lines do not make this quadratic.
pub(super) fn last_start(bytes: &[u8]) -> usize {
    let is_kind = |sequence: &Sequence| sequence.stays_in_line() && !sequence.moves_right();
    let (mut last, mut at, mut unseen) = (0, 0, 0);
    while let Some(rest) = bytes.get(at..)
        && let Some(length) = memchr::memchr3(0x1b, b'\n', b'\t', rest)
        && let Some(sequence) = rest.get(length..)
        && let Some(after) = after_sequence(sequence, is_kind)
    {
        let start = (at + length).saturating_sub(1);
        if starts_anew(bytes.get(start..).unwrap_or_default()) {
            let state = bytes.get(last..start).unwrap_or_default();
            // There are never fewer bytes than columns.
            if state.len() > COLUMNS + unseen && !fits_row(state) {
                break;
            }
            (last, unseen) = (start, 0);
        }
        unseen += sequence.len() - after.len();
        at = bytes.len() - after.len();
    }
    last
}

/// Returns true if the text between sequences takes at most one row.
fn fits_row(state: &[u8]) -> bool {
    let mut columns = 0;
    let mut rest = state;
    while !rest.is_empty() {
        let (run, sequence) = rest.split_at(memchr::memchr(0x1b, rest).unwrap_or(rest.len()));
        let run = String::from_utf8_lossy(run);
        let seen = run.chars().filter(|character| !character.is_control());
        columns += seen.map(width).sum::<usize>();
        rest = after_sequence(sequence, |_| true).unwrap_or_default();
    }
    columns <= COLUMNS
}
