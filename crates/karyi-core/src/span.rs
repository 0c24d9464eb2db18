//! Places in a message: byte offset, line and column.
//!
//! Every diagnostic and every parsed element has its position in the bytes the model wrote.
//! Offsets count every byte from 0, a byte order mark too. Lines and columns count from 1; CR, LF
//! and CRLF each end a line; a column is one Unicode scalar, an invalid byte is one column and a
//! byte order mark is none.

use serde::Serialize;

/// One place in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Position {
    /// Bytes from the start of the message.
    pub offset: u64,
    /// Line, from 1.
    pub line: u64,
    /// Column in Unicode scalars, from 1.
    pub column: u64,
}

impl Position {
    /// The first byte of a message.
    pub const START: Self = Self {
        offset: 0,
        line: 1,
        column: 1,
    };
}

impl Default for Position {
    fn default() -> Self {
        Self::START
    }
}

/// A stretch of a message: where it starts and the offset just after its last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Span {
    /// Where the stretch starts.
    pub start: Position,
    /// Offset of the first byte after it.
    pub end_offset: u64,
}
