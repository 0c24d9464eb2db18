//! The difference between two texts, in unified form.
//!
//! What both texts start and end with is left out first. The rest is compared line by line; when it is
//! large, lines are only compared in their order, so that no pair of texts takes long. Lines shown
//! are capped, the counts are exact.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::limits;

/// Lines around a change.
const CONTEXT: usize = 3;

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    /// The hunks, with a header for each; cut when there are many.
    pub text: String,
    /// Lines that are new.
    pub added: usize,
    /// Lines that are gone.
    pub removed: usize,
    /// Lines of both that are not shown.
    pub omitted: usize,
}

/// A stretch of lines that differs: in the old text, and in the new one.
type Block = (Range<usize>, Range<usize>);

/// Compares two texts.
#[must_use]
pub fn diff(old: &str, new: &str) -> Diff {
    if old == new {
        return Diff::default();
    }
    let (start, old, new) = middle(old, new);
    let (old, new): (Vec<&str>, Vec<&str>) = (lines(old), lines(new));
    let mut writer = Writer {
        old: &old,
        new: &new,
        start,
        diff: Diff::default(),
        shown: 0,
        is_full: false,
    };
    let mut pending: Vec<Block> = Vec::new();
    each_block(&old, &new, &mut |block| writer.take(block, &mut pending));
    writer.hunk(&mut pending);
    writer.diff.omitted = writer.diff.added + writer.diff.removed - writer.shown;
    writer.diff
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Cuts off what both texts start and end with, but for some lines of context; returns how many
/// lines are gone from the start.
fn middle<'a>(old: &'a str, new: &'a str) -> (usize, &'a str, &'a str) {
    let same = common(
        old.as_bytes().chunks(4096),
        new.as_bytes().chunks(4096),
        |a, b| a.iter().zip(b).take_while(|(a, b)| a == b).count(),
    );
    let head = old.as_bytes().get(..same).unwrap_or_default();
    let from = back(head, CONTEXT + 1);
    let most = old.len().min(new.len()) - from;
    let same = common(
        old.as_bytes().rchunks(4096),
        new.as_bytes().rchunks(4096),
        |a, b| {
            let pairs = a.iter().rev().zip(b.iter().rev());
            pairs.take_while(|(a, b)| a == b).count()
        },
    );
    let same = same.min(most);
    // The line in which the texts begin to be the same belongs to what differs.
    let tail = old.as_bytes().get(old.len() - same..).unwrap_or_default();
    let mut breaks = memchr::memchr_iter(b'\n', tail).skip(CONTEXT);
    let kept = breaks.next().map_or(same, |at| at + 1);
    let cut = |text: &'a str| {
        let end = text.len() - (same - kept);
        text.get(from..end).unwrap_or(text)
    };
    // Both cuts are at line starts, so never inside a character.
    let before = old.as_bytes().get(..from).unwrap_or_default();
    let start = memchr::memchr_iter(b'\n', before).count();
    (start, cut(old), cut(new))
}

/// Returns the offset where the last `count` lines of a text start, the unfinished one included.
fn back(text: &[u8], count: usize) -> usize {
    let mut breaks = memchr::memrchr_iter(b'\n', text).skip(count - 1);
    breaks.next().map_or(0, |at| at + 1)
}

/// Returns how many bytes two sequences of chunks have in common.
fn common<'a>(
    a: impl Iterator<Item = &'a [u8]>,
    b: impl Iterator<Item = &'a [u8]>,
    within: impl Fn(&[u8], &[u8]) -> usize,
) -> usize {
    let mut same = 0;
    for (a, b) in a.zip(b) {
        if a == b {
            same += a.len();
            continue;
        }
        return same + within(a, b);
    }
    same
}

/// Finds the stretches that differ, in order.
fn each_block(old: &[&str], new: &[&str], found: &mut dyn FnMut(Block)) {
    if old.len() + new.len() <= limits::MAX_COMPARED_LINES {
        for op in capture_diff_slices(Algorithm::Myers, old, new) {
            if !matches!(op, DiffOp::Equal { .. }) {
                found((op.old_range(), op.new_range()));
            }
        }
        return;
    }
    if old.len() != new.len() {
        let same = |a: &[&str], b: &[&str]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let head = same(old, new);
        let tails = old.iter().rev().zip(new.iter().rev());
        let most = old.len().min(new.len()) - head;
        let tail = tails.take(most).take_while(|(a, b)| a == b).count();
        return found((head..old.len() - tail, head..new.len() - tail));
    }
    let differs = |at: usize| old.get(at) != new.get(at);
    let mut at = 0;
    while at < old.len() {
        let from = at;
        while at < old.len() && differs(at) {
            at += 1;
        }
        if at > from {
            found((from..at, from..at));
        }
        at += 1;
    }
}

/// Writes hunks until the caps are reached.
struct Writer<'a> {
    old: &'a [&'a str],
    new: &'a [&'a str],
    /// Lines before the compared ones.
    start: usize,
    diff: Diff,
    /// Changed lines that are shown.
    shown: usize,
    is_full: bool,
}

impl Writer<'_> {
    fn take(&mut self, block: Block, pending: &mut Vec<Block>) {
        self.diff.removed += block.0.len();
        self.diff.added += block.1.len();
        if self.is_full {
            return;
        }
        let is_near = |last: &Block| block.0.start - last.0.end <= 2 * CONTEXT;
        if !pending.last().is_none_or(is_near) {
            self.hunk(pending);
        }
        pending.push(block);
    }

    /// Writes the blocks as one hunk.
    fn hunk(&mut self, blocks: &mut Vec<Block>) {
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
            return;
        };
        let (first, last) = (first.clone(), last.clone());
        let before = first.0.start.min(CONTEXT);
        let (old_from, new_from) = (first.0.start - before, first.1.start - before);
        let mut body = Body::new(
            limits::MAX_DIFF_LINES,
            limits::MAX_DIFF_BYTES,
            &self.diff.text,
        );
        let mut at = old_from;
        for (old, new) in blocks.drain(..) {
            body.lines(' ', self.old.get(at..old.start));
            body.lines('-', self.old.get(old.clone()));
            body.lines('+', self.new.get(new));
            at = old.end;
        }
        body.lines(
            ' ',
            self.old.get(at..self.old.len().min(last.0.end + CONTEXT)),
        );
        self.is_full |= body.is_full;
        if body.changed == 0 {
            return;
        }
        let place = |from: usize, count: usize| {
            let from = self.start + from + usize::from(count > 0);
            if count == 1 {
                format!("{from}")
            } else {
                format!("{from},{count}")
            }
        };
        self.shown += body.changed;
        let header = format!(
            "@@ -{} +{} @@\n",
            place(old_from, body.old),
            place(new_from, body.new)
        );
        self.diff.text.push_str(&header);
        self.diff.text.push_str(&body.text);
    }
}

/// The lines of a hunk.
struct Body {
    text: String,
    old: usize,
    new: usize,
    changed: usize,
    lines_left: usize,
    bytes_left: usize,
    is_full: bool,
}

impl Body {
    fn new(lines: usize, bytes: usize, written: &str) -> Self {
        let used = memchr::memchr_iter(b'\n', written.as_bytes()).count();
        Self {
            text: String::new(),
            old: 0,
            new: 0,
            changed: 0,
            lines_left: lines.saturating_sub(used),
            bytes_left: bytes.saturating_sub(written.len()),
            is_full: false,
        }
    }

    fn lines(&mut self, sign: char, lines: Option<&[&str]>) {
        for line in lines.unwrap_or_default() {
            self.line(sign, line);
        }
    }

    fn line(&mut self, sign: char, line: &str) {
        let whole = line.strip_suffix('\n');
        let body = whole.unwrap_or(line);
        let most = body.floor_char_boundary(limits::MAX_DIFF_LINE_BYTES);
        let shown = body.get(..most).unwrap_or(body);
        self.is_full |= self.lines_left == 0 || self.bytes_left < shown.len() + 16;
        if self.is_full {
            return;
        }
        self.lines_left -= 1;
        self.bytes_left -= shown.len() + 16;
        self.text.push(sign);
        self.text.push_str(shown);
        if shown.len() < body.len() {
            self.text
                .push_str(&format!("[... {} more bytes]", body.len() - shown.len()));
        }
        self.text.push('\n');
        if whole.is_none() {
            self.text
                .push_str("\\ no line break at the end of the file\n");
        }
        self.old += usize::from(sign != '+');
        self.new += usize::from(sign != '-');
        self.changed += usize::from(sign != ' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, expected: &str) {
        let found = diff(old, new);
        assert_eq!(found.text, expected, "{old:?} {new:?}");
        let signs = |sign| expected.lines().filter(|l| l.starts_with(sign)).count();
        assert_eq!(
            (found.added, found.removed, found.omitted),
            (signs('+'), signs('-'), 0)
        );
    }

    #[test]
    fn hunks_have_context_and_places() {
        check("a\n", "a\n", "");
        check("", "a\n", "@@ -0,0 +1 @@\n+a\n");
        check("a\n", "", "@@ -1 +0,0 @@\n-a\n");
        check(
            "a\nb\nc\n",
            "a\nB\nc\n",
            "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
        );
        check(
            "a\nb",
            "a\nc",
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ no line break at the end of the file\n+c\n\\ no line break at the end of the file\n",
        );
        let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n").replace("\n15\n", "\n");
        check(
            &old,
            &new,
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -12,7 +12,6 @@\n 12\n 13\n 14\n-15\n 16\n 17\n 18\n",
        );
        check("a\na\n", "a\na\na\n", "@@ -1,2 +1,3 @@\n a\n a\n+a\n");
        check(
            "caf\u{e9}\n",
            "caf\u{e8}\n",
            "@@ -1 +1 @@\n-caf\u{e9}\n+caf\u{e8}\n",
        );
    }

    #[test]
    fn a_diff_gives_the_new_text_again() {
        let mut seed = 7_u64;
        let mut next = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % most
        };
        for _ in 0..500 {
            let mut text = || -> String {
                let count = next(12);
                (0..count)
                    .map(|_| ["a\n", "b\n", "c\n", "\u{e9}\n"][next(4) as usize])
                    .collect()
            };
            let (old, new) = (text(), text());
            assert_eq!(
                applied(&old, &diff(&old, &new).text),
                new,
                "{old:?} {new:?}"
            );
        }
    }

    fn applied(old: &str, diff: &str) -> String {
        let lines: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut at, mut out) = (0, String::new());
        for line in diff.split_inclusive('\n') {
            if let Some(place) = line.strip_prefix("@@ -") {
                let (from, count) = place
                    .split_once(' ')
                    .unwrap()
                    .0
                    .split_once(',')
                    .unwrap_or((place.split_once(' ').unwrap().0, "1"));
                let from: usize = from.parse().unwrap();
                let from = if count == "0" { from } else { from - 1 };
                while at < from {
                    out += lines[at];
                    at += 1;
                }
                continue;
            }
            match line.chars().next().unwrap() {
                '-' => at += 1,
                '+' => out += &line[1..],
                _ => {
                    out += lines[at];
                    at += 1;
                }
            }
        }
        out + &lines[at..].concat()
    }

    #[test]
    fn caps_are_told_exactly() {
        let old = "old line\n".repeat(100_000);
        let new = "new line\n".repeat(100_000);
        let found = diff(&old, &new);
        assert_eq!((found.added, found.removed), (100_000, 100_000));
        let shown = found
            .text
            .lines()
            .filter(|l| l.starts_with(['+', '-']))
            .count();
        assert_eq!(found.omitted, 200_000 - shown);
        assert!(found.text.len() < 20_000);
        let found = diff(&old, &"new line\n".repeat(99_999));
        assert_eq!((found.added, found.removed), (99_999, 100_000));
        let long = diff("x", &"y".repeat(1 << 20));
        assert!(long.text.len() < 2000, "{}", long.text.len());
    }
}
