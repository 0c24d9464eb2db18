//! Unified diff of two texts.
//!
//! The common prefix and suffix are cut off first. The rest is compared line by line; a large rest is only
//! compared in order, so that every diff is fast. Output is capped in whole changes, so the shown hunks are
//! valid; the counts are exact.

mod body;

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use body::Body;

use super::document::count_breaks;
use karyi_core::limits;

/// Lines around a change.
const CONTEXT: usize = 3;
/// Total size from which only the first lines are compared one by one, if that fills the caps.
const LONG_BYTES: usize = 4 << 20;
/// Number of those lines.
const FIRST_LINES: usize = 16_000;

/// Diff of two texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    /// Hunks with headers; capped.
    pub text: String,
    /// Added lines.
    pub added: usize,
    /// Removed lines.
    pub removed: usize,
    /// Changed lines that are not shown.
    pub omitted: usize,
}

/// Limits of the shown diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffCaps {
    /// Lines, headers included.
    pub lines: usize,
    /// Bytes.
    pub bytes: usize,
    /// Bytes of one line; longer ones are cut and marked.
    pub line_bytes: usize,
}

impl DiffCaps {
    /// Limits for the result of a call.
    pub const RESULT: Self = Self {
        lines: limits::MAX_DIFF_LINES,
        bytes: limits::MAX_DIFF_BYTES,
        line_bytes: limits::MAX_DIFF_LINE_BYTES,
    };
    /// Limits for a person who asks for the whole diff.
    pub const WHOLE: Self = Self {
        lines: usize::MAX,
        bytes: limits::MAX_WHOLE_DIFF_BYTES,
        line_bytes: limits::MAX_WHOLE_DIFF_BYTES,
    };
}

/// Differing stretch of lines: in the old text and in the new one.
type Block = (Range<usize>, Range<usize>);

/// Compares two texts.
#[must_use]
pub fn diff(old: &str, new: &str, caps: DiffCaps) -> Diff {
    if old == new {
        return Diff::default();
    }
    let middle = middle(old, new);
    if let Some(found) = long_diff(&middle, caps) {
        return found;
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (lines(middle.old), lines(middle.new));
    let mut writer = Writer::new(middle.head, &old, &new, middle.tail, caps);
    let mut pending: Vec<Block> = Vec::new();
    each_block(&old, &new, &mut |block| writer.take(block, &mut pending));
    writer.hunk(&mut pending);
    writer.finish()
}

/// Returns the first and the last line of the new text that differ from the old one, from 1; `None` when the new
/// text is empty. Where lines were only removed, it is the line after them.
#[must_use]
pub fn changed_range(old: &str, new: &str) -> Option<(usize, usize)> {
    let lines = count_breaks(new) + usize::from(!new.is_empty() && !new.ends_with('\n'));
    let (old, new) = (old.as_bytes(), new.as_bytes());
    let head = common(old.chunks(4096), new.chunks(4096), |a, b| {
        a.iter().zip(b).take_while(|(a, b)| a == b).count()
    });
    let tail = common(old.rchunks(4096), new.rchunks(4096), |a, b| {
        let pairs = a.iter().rev().zip(b.iter().rev());
        pairs.take_while(|(a, b)| a == b).count()
    });
    let tail = tail.min(old.len().min(new.len()) - head);
    let changed = new.get(head..new.len() - tail).unwrap_or_default();
    let breaks = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count();
    let first = breaks(new.get(..head).unwrap_or_default()) + 1;
    let inner = changed.strip_suffix(b"\n").unwrap_or(changed);
    (lines > 0).then(|| (first.min(lines), (first + breaks(inner)).min(lines)))
}

/// Compares long texts with equal numbers of lines when the caps only admit the first changes. The other
/// changes are counted without a list of all lines.
fn long_diff(middle: &Middle<'_>, caps: DiffCaps) -> Option<Diff> {
    let (old, new) = (middle.old, middle.new);
    let count = |text: &str| count_breaks(text) + usize::from(!text.ends_with('\n'));
    if old.len() + new.len() < LONG_BYTES || count(old) != count(new) {
        return None;
    }
    let (first_old, rest_old) = first_lines(old);
    let (first_new, rest_new) = first_lines(new);
    let tail = if rest_old.is_empty() {
        middle.tail
    } else {
        rest_old
    };
    let mut writer = Writer::new(middle.head, &first_old, &first_new, tail, caps);
    let mut pending: Vec<Block> = Vec::new();
    in_order(&first_old, &first_new, &mut |block| {
        writer.take(block, &mut pending)
    });
    if !writer.is_full {
        return None;
    }
    let changed = changed_lines(rest_old.as_bytes(), rest_new.as_bytes());
    writer.diff.added += changed;
    writer.diff.removed += changed;
    Some(writer.finish())
}

/// Counts differing lines of two texts, compared in order. Equal stretches are skipped in bulk.
fn changed_lines(mut old: &[u8], mut new: &[u8]) -> usize {
    let mut changed = 0;
    loop {
        let same = common(old.chunks(64), new.chunks(64), |a, b| {
            a.iter().zip(b).take_while(|(a, b)| a == b).count()
        });
        let is_between_lines = same == 0 || old.get(same - 1) == Some(&b'\n');
        let is_end = same == old.len() || same == new.len();
        if is_end && (is_between_lines || old.len() == new.len()) {
            return changed;
        }
        changed += 1;
        (old, new) = (after_line(old, same), after_line(new, same));
    }
}

/// Returns the text after the line that contains an offset.
fn after_line(text: &[u8], place: usize) -> &[u8] {
    let rest = text.get(place..).unwrap_or_default();
    let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
    rest.get(end..).unwrap_or_default()
}

/// Splits a text after its first lines.
fn first_lines(text: &str) -> (Vec<&str>, &str) {
    let lines: Vec<&str> = text.split_inclusive('\n').take(FIRST_LINES).collect();
    let bytes: usize = lines.iter().map(|line| line.len()).sum();
    (lines, text.get(bytes..).unwrap_or_default())
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Two texts without their common prefix and suffix.
struct Middle<'a> {
    head: &'a str,
    old: &'a str,
    new: &'a str,
    tail: &'a str,
}

/// Cuts off the common prefix and suffix, except for some lines of context.
fn middle<'a>(old: &'a str, new: &'a str) -> Middle<'a> {
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
    // The line in which the common suffix starts still differs.
    let tail = old.as_bytes().get(old.len() - same..).unwrap_or_default();
    let mut breaks = memchr::memchr_iter(b'\n', tail).skip(CONTEXT);
    let context = breaks.next().map_or(same, |at| at + 1);
    let end = |text: &str| text.len() - (same - context);
    // Both cuts are at line starts, so never inside a character.
    Middle {
        head: old.get(..from).unwrap_or_default(),
        old: old.get(from..end(old)).unwrap_or(old),
        new: new.get(from..end(new)).unwrap_or(new),
        tail: old.get(end(old)..).unwrap_or_default(),
    }
}

/// Returns the offset at which the last `count` lines start, including an unfinished one.
fn back(text: &[u8], count: usize) -> usize {
    let mut breaks = memchr::memrchr_iter(b'\n', text).skip(count - 1);
    breaks.next().map_or(0, |at| at + 1)
}

/// Returns the length of the common prefix of two sequences of chunks.
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

/// Finds the differing stretches, in order.
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
    in_order(old, new, found);
}

/// Finds the differing stretches when each line is compared with the one at the same position.
fn in_order(old: &[&str], new: &[&str], found: &mut dyn FnMut(Block)) {
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
    /// Context right before and after the compared lines. Repeated lines can move a change next to them.
    head: Vec<&'a str>,
    old: &'a [&'a str],
    new: &'a [&'a str],
    tail: Vec<&'a str>,
    /// Number of lines before the compared ones.
    start: usize,
    caps: DiffCaps,
    diff: Diff,
    /// Shown changed lines.
    shown: usize,
    is_full: bool,
}

impl<'a> Writer<'a> {
    fn new(
        head: &'a str,
        old: &'a [&'a str],
        new: &'a [&'a str],
        tail: &'a str,
        caps: DiffCaps,
    ) -> Self {
        let near = head.len() - back(head.as_bytes(), CONTEXT);
        Self {
            head: lines(head.get(head.len() - near..).unwrap_or_default()),
            old,
            new,
            tail: tail.split_inclusive('\n').take(CONTEXT).collect(),
            start: count_breaks(head),
            caps,
            diff: Diff::default(),
            shown: 0,
            is_full: false,
        }
    }

    fn finish(mut self) -> Diff {
        self.diff.omitted = self.diff.added + self.diff.removed - self.shown;
        self.diff
    }

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

    /// Writes as many of the blocks as fit into one hunk.
    fn hunk(&mut self, blocks: &mut Vec<Block>) {
        let Some(first) = blocks.first().cloned() else {
            return;
        };
        if self.is_full {
            return;
        }
        let lead = self.before(first.0.start);
        let (old_from, new_from) = (
            self.start + first.0.start - lead.len(),
            self.start + first.1.start - lead.len(),
        );
        let mut body = Body::new(self.caps, &self.diff.text);
        body.lines(' ', &lead);
        let (mut at, mut is_cut) = (first.0.start, false);
        for (old, new) in blocks.drain(..) {
            let saved = body.mark();
            body.lines(' ', self.old.get(at..old.start).unwrap_or_default());
            let gone = self.old.get(old.clone()).unwrap_or_default();
            let added = self.new.get(new).unwrap_or_default();
            body.changed('-', gone, added);
            body.changed('+', added, gone);
            // The context after the block must fit, too.
            let end = body.mark();
            body.lines(' ', &self.after(old.end));
            if body.is_full {
                self.is_full = true;
                body.back_to(saved);
                if body.changed == 0 && self.diff.text.is_empty() {
                    body.part(gone, added);
                    is_cut = true;
                }
                break;
            }
            body.back_to(end);
            at = old.end;
        }
        if body.changed == 0 {
            return;
        }
        if !is_cut {
            body.lines(' ', &self.after(at));
        }
        self.shown += body.changed;
        let header = format!(
            "@@ -{} +{} @@\n",
            hunk_range(old_from, body.old),
            hunk_range(new_from, body.new)
        );
        self.diff.text.push_str(&header);
        self.diff.text.push_str(&body.text);
    }

    /// Returns the context that ends at a line of the old text.
    fn before(&self, end: usize) -> Vec<&str> {
        let lines = self.old.get(..end).unwrap_or_default().iter().rev();
        let lines = lines.chain(self.head.iter().rev()).take(CONTEXT);
        let mut lines: Vec<&str> = lines.copied().collect();
        lines.reverse();
        lines
    }

    /// Returns the context that starts at a line of the old text.
    fn after(&self, start: usize) -> Vec<&str> {
        let lines = self.old.get(start..).unwrap_or_default().iter();
        let lines = lines.chain(&self.tail).take(CONTEXT);
        lines.copied().collect()
    }
}

fn hunk_range(from: usize, count: usize) -> String {
    let from = from + usize::from(count > 0);
    match count {
        1 => format!("{from}"),
        _ => format!("{from},{count}"),
    }
}

#[cfg(test)]
mod tests;
