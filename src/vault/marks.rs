//! Places of placeholders in a script.

use std::ops::Range;

use super::substitute;
use crate::error::ToolError;
use crate::secret::{Holds, Piece, SecretName};

/// A placeholder, or an escaped one, and where it stands.
pub(super) struct Mark {
    pub(super) hole: Range<usize>,
    pub(super) name: Option<(SecretName, Holds)>,
}

/// Returns the placeholders of a text, in order.
///
/// # Errors
/// `bad_placeholder`.
pub(super) fn marks(text: &str) -> Result<Vec<Mark>, ToolError> {
    let mut marks = Vec::new();
    let mut at = 0;
    for piece in substitute::pieces(text)? {
        let (end, name) = match piece {
            Piece::Literal(literal) => {
                at += literal.len();
                continue;
            }
            Piece::Escaped(_) => (escaped_end(text, at), None),
            Piece::Secret(name) => {
                let end = at + "$KARYI{}".len() + name.as_str().len();
                (end, Some((name, Holds::Value)))
            }
            Piece::File(name) => {
                let end = at + "$KARYI{|file}".len() + name.as_str().len();
                (end, Some((name, Holds::Path)))
            }
        };
        let is_escaped = name.is_none();
        // The rest of an escaped placeholder comes again as literal text.
        let piece_end = if is_escaped {
            at + "$$KARYI{".len()
        } else {
            end
        };
        marks.push(Mark {
            hole: at..end,
            name,
        });
        at = piece_end;
    }
    Ok(marks)
}

/// Returns the end of the escaped placeholder that starts at `start`: with name and closer when
/// they are there, so that a `>` is no redirection.
fn escaped_end(text: &str, start: usize) -> usize {
    let open = start + "$$KARYI{".len();
    let closer = if text.as_bytes().get(open - 1) == Some(&b'<') {
        b'>'
    } else {
        b'}'
    };
    let rest = text.as_bytes().get(open..).unwrap_or_default();
    let length = rest
        .iter()
        .take(SecretName::MAX_LEN + 1)
        .position(|byte| *byte == closer);
    let name = length
        .and_then(|length| text.get(open..open + length))
        .and_then(SecretName::parse);
    name.map_or(open, |name| open + name.as_str().len() + 1)
}
