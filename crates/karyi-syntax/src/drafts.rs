//! Parts of a message that are not meant to run: thoughts, comments and preformatted text.

use super::chars::is_space;
use super::event::Mode;
use super::source::Mark;
use super::tools_tag::{TOOLS, is_opener};

/// Longest tag of a draft, and the most bytes examined after a `<tools` in one.
const MAX_TAG: usize = 256;

/// Most blanks that are examined after a tag inside a line.
const MAX_BLANKS: usize = 64;

/// Kind of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftKind {
    /// A thought: the index of its tags in [`THOUGHTS`].
    Thought(usize),
    /// `<!-- -->`.
    Comment,
    /// `<pre>`.
    Preformatted,
}

/// Tags of thoughts. Those of elements lack their `>`.
const THOUGHTS: &[(&[u8], &[u8])] = &[
    (b"<think", b"</think"),
    (b"<thinking", b"</thinking"),
    (b"<reasoning", b"</reasoning"),
    (b"[THINK]", b"[/THINK]"),
];

const COMMENT: (&[u8], &[u8]) = (b"<!--", b"-->");
const PREFORMATTED: (&[u8], &[u8]) = (b"<pre", b"</pre");

/// An open draft.
#[derive(Debug)]
pub(super) struct Draft {
    /// Its kind.
    pub(super) kind: DraftKind,
    /// Its opening tag.
    pub(super) mark: Mark,
    /// True when it holds a block.
    pub(super) has_block: bool,
    /// True when only white space came before it.
    pub(super) was_blank: bool,
}

/// A tag of a draft, with its length.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DraftTag {
    /// There is none.
    No,
    /// More bytes decide.
    Cut,
    /// A draft opens.
    Open(DraftKind, usize),
    /// A thought ends.
    Close(usize),
}

/// Result of comparing the input with one tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// Something else stands there.
    No,
    /// More bytes decide.
    Cut,
    /// The tag, with its length.
    Yes(usize),
}

impl DraftKind {
    fn tags(self) -> (&'static [u8], &'static [u8]) {
        match self {
            Self::Thought(at) => THOUGHTS.get(at).copied().unwrap_or(PREFORMATTED),
            Self::Comment => COMMENT,
            Self::Preformatted => PREFORMATTED,
        }
    }

    /// Returns the opening and the closing tag, as a reader writes them.
    pub(super) fn shown(self) -> (String, String) {
        let whole = |tag: &[u8]| {
            let end = if tag.ends_with(b"]") || tag.contains(&b'-') {
                ""
            } else {
                ">"
            };
            format!("{}{end}", String::from_utf8_lossy(tag))
        };
        let (open, close) = self.tags();
        (whole(open), whole(close))
    }

    /// Returns the first byte of the closing tag.
    pub(super) fn close_byte(self) -> u8 {
        self.tags().1.first().copied().unwrap_or(b'<')
    }

    /// Compares `rest` with the closing tag.
    pub(super) fn closes(self, rest: &[u8], is_last: bool) -> Match {
        tag(rest, self.tags().1, is_last)
    }

    /// Tells whether what follows the draft is the start of a line again.
    pub(super) fn is_thought(self) -> bool {
        matches!(self, Self::Thought(_))
    }

    /// Tells whether the tag opens a draft inside a line, where prose may mention it: `<!--` only before other text,
    /// any other only at the end of the line or before another tag.
    pub(super) fn opens_inside_line(self, after: &[u8], is_last: bool) -> Match {
        let near = after.get(..MAX_BLANKS).unwrap_or(after);
        let next = near.iter().find(|b| !matches!(b, b' ' | b'\t'));
        match (self, next) {
            (Self::Comment, Some(b'\n' | b'\r')) => Match::No,
            (Self::Thought(_) | Self::Preformatted, Some(b'\n' | b'\r' | b'<')) => Match::Yes(0),
            (Self::Comment, Some(_)) => Match::Yes(0),
            (_, None) if near.len() < MAX_BLANKS && !is_last => Match::Cut,
            _ => Match::No,
        }
    }

    /// Tells whether prose goes on after the closing tag of a thought inside a line, so that it only mentions the tag.
    pub(super) fn is_mentioned(after: &[u8], is_last: bool) -> Match {
        let near = after.get(..MAX_BLANKS).unwrap_or(after);
        let blanks = near.iter().take_while(|b| matches!(b, b' ' | b'\t'));
        let length = blanks.count();
        match near.get(length) {
            Some(b'\n' | b'\r' | b'<') => Match::No,
            Some(next) if length > 0 || b".,;:!?)]|'\"".contains(next) => Match::Yes(0),
            None if near.len() < MAX_BLANKS && !is_last => Match::Cut,
            Some(_) | None => Match::No,
        }
    }

    /// Returns the number of consumed bytes of an opening tag of `length`: `<!-->` is a whole comment.
    pub(super) fn consumed(self, length: usize) -> usize {
        match self {
            Self::Comment => 2,
            Self::Thought(_) | Self::Preformatted => length,
        }
    }
}

/// Finds the tag of a draft at the start of `rest`.
pub(super) fn draft_tag(rest: &[u8], is_last: bool) -> DraftTag {
    let mut is_cut = false;
    let thoughts = (0..THOUGHTS.len()).map(DraftKind::Thought);
    for kind in thoughts.chain([DraftKind::Comment, DraftKind::Preformatted]) {
        let (open, close) = kind.tags();
        match tag(rest, open, is_last) {
            Match::Yes(length) => return DraftTag::Open(kind, length),
            found => is_cut |= found == Match::Cut,
        }
        if !kind.is_thought() {
            continue;
        }
        match tag(rest, close, is_last) {
            Match::Yes(length) => return DraftTag::Close(length),
            found => is_cut |= found == Match::Cut,
        }
    }
    if is_cut { DraftTag::Cut } else { DraftTag::No }
}

/// Tells whether the `<tools` here is the tag of a block, which some tool's tag follows; else prose mentions it.
pub(super) fn is_block(rest: &[u8], is_last: bool) -> Match {
    if !is_opener(rest, Mode::Repair) {
        return Match::No;
    }
    let near = rest.get(..MAX_TAG).unwrap_or(rest);
    let mut after = near
        .iter()
        .skip(TOOLS.len())
        .skip_while(|b| **b != b'>')
        .skip(1);
    // A quotation marks its lines with `>`; a JSON string writes a line break as `\n`.
    match after.find(|b| !is_space(**b) && **b != b'>') {
        Some(b'<') => match after.next() {
            Some(b'/') => Match::No,
            None if near.len() < MAX_TAG && !is_last => Match::Cut,
            Some(_) | None => Match::Yes(0),
        },
        Some(b'\\') => Match::Yes(0),
        Some(_) => Match::No,
        None if near.len() == MAX_TAG || is_last => Match::No,
        None => Match::Cut,
    }
}

/// Compares `rest` with a tag: a whole one, or that of an element up to its name, in any case.
fn tag(rest: &[u8], word: &[u8], is_last: bool) -> Match {
    let is_whole = word.ends_with(b"]") || word.contains(&b'-');
    let length = rest.len().min(word.len());
    let (head, start) = (
        rest.get(..length).unwrap_or_default(),
        word.get(..length).unwrap_or_default(),
    );
    let is_same = if is_whole {
        head == start
    } else {
        head.eq_ignore_ascii_case(start)
    };
    let cut = if is_last { Match::No } else { Match::Cut };
    match (is_same, rest.get(word.len())) {
        (false, _) => Match::No,
        (true, _) if is_whole && length == word.len() => Match::Yes(length),
        (true, None) => cut,
        (true, Some(next)) if !is_space(*next) && *next != b'>' => Match::No,
        (true, Some(_)) => {
            let near = rest.get(..MAX_TAG).unwrap_or(rest);
            let end = near
                .iter()
                .skip(1)
                .position(|b| matches!(b, b'>' | b'<' | b'\n' | b'\r'));
            match end.map(|at| at + 1) {
                Some(at) if near.get(at) == Some(&b'>') && near.get(at - 1) != Some(&b'/') => {
                    Match::Yes(at + 1)
                }
                Some(_) => Match::No,
                None if near.len() == MAX_TAG => Match::No,
                None => cut,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rest: &str, expected: &DraftTag) {
        assert_eq!(&draft_tag(rest.as_bytes(), true), expected, "{rest:?}");
        let whole = draft_tag(rest.as_bytes(), false);
        assert!(
            whole == *expected || whole == DraftTag::Cut,
            "{rest:?} {whole:?}"
        );
    }

    #[test]
    fn tags_of_drafts_are_known() {
        check("<think>", &DraftTag::Open(DraftKind::Thought(0), 7));
        check("<THINKING >x", &DraftTag::Open(DraftKind::Thought(1), 11));
        check(
            "<reasoning time='3'>",
            &DraftTag::Open(DraftKind::Thought(2), 20),
        );
        check("[THINK]", &DraftTag::Open(DraftKind::Thought(3), 7));
        check("<!-- a", &DraftTag::Open(DraftKind::Comment, 4));
        check(
            "<pre class=x>",
            &DraftTag::Open(DraftKind::Preformatted, 13),
        );
        check("</think>\n", &DraftTag::Close(8));
        check("</Reasoning\t>", &DraftTag::Close(13));
        check("[/THINK]", &DraftTag::Close(8));
        for none in [
            "<thinks>",
            "<think/>",
            "<think\n>",
            "</pre>",
            "-->",
            "[think]",
            "<t",
            "<think a<b>",
            "[",
        ] {
            check(none, &DraftTag::No);
        }
        assert_eq!(draft_tag(b"<th", false), DraftTag::Cut);
        assert_eq!(draft_tag(b"[/T", false), DraftTag::Cut);
    }

    #[test]
    fn a_mention_of_a_block_is_none() {
        for (rest, expected) in [
            ("<tools><command>", Match::Yes(0)),
            ("<TOOLS order='auto'>\n <", Match::Yes(0)),
            ("<tools>\n> <command>", Match::Yes(0)),
            ("<tools>\\n<command>", Match::Yes(0)),
            ("<tools> </tools>", Match::No),
            ("<tools> block", Match::No),
            ("<tools`", Match::No),
            ("<tools", Match::No),
        ] {
            assert_eq!(is_block(rest.as_bytes(), true), expected, "{rest:?}");
        }
        assert_eq!(is_block(b"<tools >  ", false), Match::Cut);
    }
}
