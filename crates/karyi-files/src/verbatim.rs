//! Refuses an edit that would not put a value in as it is.
//!
//! Line breaks are kept as the file has them, which is right for the text a model writes and would change a
//! value. So a value with line breaks goes only into a text whose line breaks, and those of the replacement, are
//! all of one kind: then nothing is changed.

use memchr::memmem;

use super::document::count_breaks;
use super::encoding::Encoding;
use super::request::{EditPair, FileEdit};
use karyi_core::error::{ErrorCode, ToolError};

/// What all line breaks of a text are.
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

    /// Whether texts of these two kinds can be joined and none is changed. One without line breaks takes LF.
    fn suits(self, text: Self) -> bool {
        matches!(
            (self, text),
            (_, Self::None) | (Self::None | Self::Lf, Self::Lf) | (Self::CrLf, Self::CrLf)
        )
    }
}

/// Checks that the values of all pairs arrive as they are.
///
/// # Errors
/// `unsafe_context`.
pub(super) fn check(edit: &FileEdit, before: &str, encoding: Encoding) -> Result<(), ToolError> {
    // To count those of a large file takes time, and few values have any.
    let mut known = None;
    for (index, pair) in edit.pairs.iter().enumerate() {
        let texts = || {
            let written = pair.written.as_ref().map(|written| &written.replace);
            std::iter::once(&pair.replace).chain(written)
        };
        // An empty file takes its text as it is.
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
        .with_hint("write the value to a file of its own: one that is new takes it as it is")
}
