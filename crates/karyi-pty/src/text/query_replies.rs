//! Replies of a terminal to queries of its type and its cursor position.
//!
//! A reply consists of our own digits only: no output of a program can come back as input.

use karyi_core::limits;

use super::escape::Sequence;

/// Replies that wait to be typed.
#[derive(Debug, Default, Clone)]
pub(super) struct QueryReplies(String);

impl QueryReplies {
    /// Adds the reply to a query; `place` returns the cursor's row and column.
    pub(super) fn push(&mut self, query: &Sequence, place: impl FnOnce() -> (usize, usize)) {
        if !query.is_control
            || query.intermediate != 0
            || self.0.len() > limits::MAX_TERMINAL_ANSWER_BYTES
        {
            return;
        }
        match (query.private, query.last, query.number(0)) {
            (0, b'n', 5) => self.0.push_str("\x1b[0n"),
            (0, b'n', 6) => {
                let (row, column) = place();
                self.0.push_str(&format!("\x1b[{row};{column}R"));
            }
            (b'?', b'n', 6) => {
                let (row, column) = place();
                self.0.push_str(&format!("\x1b[?{row};{column}R"));
            }
            // A terminal with cursor keys and nothing more.
            (0, b'c', 0) => self.0.push_str("\x1b[?1;2c"),
            (b'>', b'c', 0) => self.0.push_str("\x1b[>0;0;0c"),
            _ => {}
        }
    }

    /// Takes the replies.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.0)
    }
}
