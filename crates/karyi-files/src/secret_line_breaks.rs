//! Refuses an edit that would alter an inserted secret.
//!
//! Replacements take the line endings of the file, which is right for model text and would corrupt a secret.
//! So a secret with line breaks is only inserted where the file and the replacement use the same kind of line
//! break throughout.

use memchr::memmem;

use super::document::count_breaks;
use super::encoding::Encoding;
use super::request::{EditPair, FileEdit};
use karyi_core::error::{ErrorCode, ToolError};

/// Kind of line breaks in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineBreaks {
    None,
    Lf,
    CrLf,
    Mixed,
}

impl LineBreaks {
    fn of(text: &str) -> Self {
        let pairs = memmem::find_iter(text.as_bytes(), b"\r\n").count();
        match (count_breaks(text), pairs) {
            (0, _) => Self::None,
            (_, 0) => Self::Lf,
            (all, pairs) if all == pairs => Self::CrLf,
            _ => Self::Mixed,
        }
    }

    /// Tells whether a text fits into this one unchanged. A text without line breaks takes LF.
    fn suits(self, text: Self) -> bool {
        matches!(
            (self, text),
            (_, Self::None) | (Self::None | Self::Lf, Self::Lf) | (Self::CrLf, Self::CrLf)
        )
    }
}

/// Checks that the secrets of all pairs are inserted unchanged.
///
/// # Errors
/// `unsafe_context`.
pub(super) fn check(edit: &FileEdit, before: &str, encoding: Encoding) -> Result<(), ToolError> {
    // Counted lazily: it takes time for a large file, and few secrets have line breaks.
    let mut known = None;
    for (index, pair) in edit.pairs.iter().enumerate() {
        let texts = || {
            let written = pair.written.as_ref().map(|written| &written.replace);
            std::iter::once(&pair.replace).chain(written)
        };
        // An empty file takes its text unchanged.
        let is_first = index == 0 && before.is_empty();
        if has_breaks(pair) && !is_first {
            let breaks = *known.get_or_insert_with(|| LineBreaks::of(before));
            if !texts().all(|text| breaks.suits(LineBreaks::of(text))) {
                return Err(changed(edit, "line breaks are not those of the file"));
            }
        }
        let starts_with_mark = |text: &String| text.starts_with(MARK);
        if encoding.has_mark() && pair.values.may_hold(MARK) && texts().any(starts_with_mark) {
            return Err(changed(
                edit,
                "first character would be taken for a byte order mark",
            ));
        }
        if is_first {
            known = Some(LineBreaks::of(&pair.replace));
        }
    }
    Ok(())
}

const MARK: char = '\u{FEFF}';

fn has_breaks(pair: &EditPair) -> bool {
    pair.values.has(b'\n') || pair.values.has(b'\r')
}

fn changed(edit: &FileEdit, what: &str) -> ToolError {
    let message = format!(
        "{}: the value of a secret would be changed, since its {what}",
        edit.path.display()
    );
    ToolError::new(ErrorCode::UnsafeContext, message)
        .with_hint("write the value to a new file of its own, which takes it unchanged")
}
