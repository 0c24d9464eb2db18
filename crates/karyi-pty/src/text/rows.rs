//! Finds the rows of the terminal in text that is only written, one character after the other.

use super::cell::{COLUMNS, TAB, split_ascii, width};

/// Returns where the tab stop after a column is; the last column is one.
pub(super) fn next_stop(column: usize) -> usize {
    ((column / TAB + 1) * TAB).min(COLUMNS - 1)
}

/// Returns true if text that begins a row goes on in the next one.
pub(super) fn overflow(text: &str) -> bool {
    (text.len() > COLUMNS || text.contains('\t')) && start_of_last(text) > 0
}

/// Returns where the last row begins in text that begins a row. It may hold lines, and colours.
pub(super) fn start_of_last(text: &str) -> usize {
    let (mut start, mut column) = (0, 0);
    let mut rest = text;
    loop {
        let (simple, others) = split_ascii(rest);
        let end = text.len() - others.len();
        column += simple.len();
        if column > COLUMNS {
            column = (column - 1) % COLUMNS + 1;
            start = end - column;
        }
        let mut others = others.chars();
        let Some(character) = others.next() else {
            return start;
        };
        rest = others.as_str();
        match character {
            '\n' => (start, column) = (text.len() - rest.len(), 0),
            '\t' => column = column.max(next_stop(column)),
            '\x1b' => rest = rest.split_once('m').map_or("", |(_, after)| after),
            _ if column + width(character) > COLUMNS => {
                (start, column) = (end, width(character));
            }
            _ => column += width(character),
        }
    }
}

#[cfg(test)]
mod tests;
