//! Finds the rows of the terminal in text that is only appended.

use super::cell::{COLUMNS, TAB, split_ascii, width};

/// Returns the tab stop after a column; the last column is one.
pub(super) fn next_stop(column: usize) -> usize {
    ((column / TAB + 1) * TAB).min(COLUMNS - 1)
}

/// Returns true if text that begins a row does not fit into it.
pub(super) fn overflow(text: &str) -> bool {
    (text.len() > COLUMNS || text.contains('\t')) && start_of_last(text) > 0
}

/// Returns the position of the last row in text that begins a row. The text may contain lines and colours.
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
