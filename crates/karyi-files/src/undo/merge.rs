//! Merges what an undo restores with what else changed in a file since.
//!
//! Two changes that touch are a conflict, also when they could both be made. Contents that are not text, or are in
//! different encodings, are not merged.

use similar::{MergeResolution, TextMerge};

use super::super::encoding::Encoding;

/// Result of a merge.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Merge {
    /// The present content without what karyi wrote.
    Merged {
        /// The content.
        bytes: Vec<u8>,
        /// True if a part was restored already.
        is_partly_restored: bool,
    },
    /// First and last lines of the present content that changed on both sides.
    Conflict(Vec<(usize, usize)>),
}

impl Merge {
    /// Returns the result where nothing else changed.
    pub(super) fn whole(bytes: Vec<u8>) -> Self {
        Self::Merged {
            bytes,
            is_partly_restored: false,
        }
    }
}

/// Merges the way from what karyi wrote to the present content with the way to the restored one. `None` when that
/// cannot be done or there is nothing left to restore.
pub(super) fn merge(wrote: &[u8], now: &[u8], goal: &[u8]) -> Option<Merge> {
    let (encoding, present) = Encoding::read(now).ok()?;
    let read = |bytes| {
        let mark = Encoding::read(bytes).ok()?.0.has_mark();
        let text = encoding.read_as(bytes)?;
        (mark == encoding.has_mark()).then_some(text)
    };
    let (wrote, goal) = (read(wrote)?, read(goal)?);
    let merge = TextMerge::from_lines(&*wrote, &*present, &*goal);
    let is_break = |at: &usize| {
        let line = merge.ours_line(*at);
        line.is_some_and(|line: &str| line.ends_with('\n'))
    };
    let line = |at: usize| (0..at).filter(is_break).count() + 1;
    let conflicts: Vec<(usize, usize)> = merge
        .conflicts()
        .map(|region| region.ours_range())
        .map(|range| {
            let last = range.end.saturating_sub(1);
            (line(range.start), line(last.max(range.start)))
        })
        .collect();
    if !conflicts.is_empty() {
        return Some(Merge::Conflict(conflicts));
    }
    let mut regions = merge.regions().iter();
    let is_partly_restored = regions.any(|region| region.resolution() == MergeResolution::Both);
    let bytes = encoding.write(merge.to_string()).ok()?;
    (bytes != now).then_some(Merge::Merged {
        bytes,
        is_partly_restored,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(contents: [&[u8]; 3], expected: Option<&[u8]>) {
        let [wrote, now, goal] = contents;
        let merged = match merge(wrote, now, goal) {
            Some(Merge::Merged { bytes, .. }) => Some(bytes),
            Some(Merge::Conflict(_)) | None => None,
        };
        assert_eq!(merged.as_deref(), expected, "{contents:?}");
    }

    #[test]
    fn changes_apart_are_merged_with_their_line_breaks() {
        check(
            [b"A\nb\nc\n", b"A\nb\nC\n", b"a\nb\nc\n"],
            Some(b"a\nb\nC\n"),
        );
        check(
            [b"A\r\nb\r\nc", b"A\r\nb\r\nC", b"a\r\nb\r\nc"],
            Some(b"a\r\nb\r\nC"),
        );
        check([b"A\nb\nc", b"A\nb\nc\nd", b"a\nb\nc"], Some(b"a\nb\nc\nd"));
        check([b"A\nb\nc\n", b"A\nb\n", b"a\nb\nc\n"], Some(b"a\nb\n"));
        check(
            [b"a\nb\nC", b"new\na\nb\nC", b"a\nb\nc\n"],
            Some(b"new\na\nb\nc\n"),
        );
        // One part was restored by hand.
        check(
            [b"A\nb\nC\n", b"a\nb\nC\n", b"a\nb\nc\n"],
            Some(b"a\nb\nc\n"),
        );
    }

    #[test]
    fn what_is_no_text_or_another_text_is_not_merged() {
        check([b"A\n\0\nc\n", b"A\n\0\nC\n", b"a\n\0\nc\n"], None);
        check([b"A\nb\nc\n", b"\xEF\xBB\xBFA\nb\nC\n", b"a\nb\nc\n"], None);
        check([b"A\nb\nc\n", b"a\nb\nc\n", b"a\nb\nc\n"], None);
        let wide = |text: &str| -> Vec<u8> {
            let text = format!("\u{feff}{text}");
            text.encode_utf16().flat_map(u16::to_le_bytes).collect()
        };
        let [wrote, now, goal] = ["Ä\nb\nc\n", "Ä\nb\nC\n", "ä\nb\nc\n"];
        check([wrote.as_bytes(), &wide(now), goal.as_bytes()], None);
        let all = [wrote, now, goal].map(wide);
        check([&all[0], &all[1], &all[2]], Some(&wide("ä\nb\nC\n")));
        let latin = |text: &str| -> Vec<u8> { text.chars().map(|c| c as u8).collect() };
        let all = [
            "caf\u{e9} A\nb\nc\n",
            "caf\u{e9} A\nb\nC\n",
            "caf\u{e9} a\nb\nc\n",
        ]
        .map(latin);
        check(
            [&all[0], &all[1], &all[2]],
            Some(&latin("caf\u{e9} a\nb\nC\n")),
        );
    }

    #[test]
    fn a_conflict_names_the_lines_of_the_present_content() {
        let lines = |now: &str| match merge(b"1\nA\nB\n4\n5\n", now.as_bytes(), b"1\na\nb\n4\n5\n")
        {
            Some(Merge::Conflict(lines)) => lines,
            other => panic!("{now}: {other:?}"),
        };
        assert_eq!(lines("1\nx\nB\n4\n5\n"), [(2, 3)]);
        assert_eq!(lines("0\n1\nA\nB\nx\n5\n"), [(3, 5)]);
        assert_eq!(lines("1\n4\n5\n"), [(2, 2)]);
        assert_eq!(lines("1\r\nA\r\nB\r\n4\r\n5\r\n"), [(1, 5)]);
        assert_eq!(lines(""), [(1, 1)]);
    }

    #[test]
    fn changes_that_keep_apart_commute() {
        let text = |lines: [&str; 5]| lines.concat().into_bytes();
        let [one, two] = [["x\n"], ["y\n"]];
        for (first, last) in [(0, 2), (0, 4), (1, 3), (2, 4)] {
            let base = ["1\n", "2\n", "3\n", "4\n", "5\n"];
            let (mut ours, mut theirs, mut both) = (base, base, base);
            (ours[first], both[first]) = (one[0], one[0]);
            (theirs[last], both[last]) = (two[0], two[0]);
            check([&text(base), &text(ours), &text(theirs)], Some(&text(both)));
            check([&text(base), &text(theirs), &text(ours)], Some(&text(both)));
        }
    }
}
