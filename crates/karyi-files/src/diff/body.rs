//! Body of one hunk, limited by the caps.

use super::DiffCaps;

/// Bytes reserved for a header or a marker.
const MARK_BYTES: usize = 64;
const NO_BREAK: &str = "\\ no line break at the end of the file\n";

/// Body of one hunk.
pub(super) struct Body {
    /// Text so far.
    pub(super) text: String,
    /// Lines of the old text.
    pub(super) old: usize,
    /// Lines of the new text.
    pub(super) new: usize,
    /// Removed and added lines.
    pub(super) changed: usize,
    lines_left: usize,
    bytes_left: usize,
    line_bytes: usize,
    /// True if a line did not fit.
    pub(super) is_full: bool,
}

/// Saved state of a hunk.
pub(super) struct Mark {
    text: usize,
    old: usize,
    new: usize,
    changed: usize,
    lines_left: usize,
    bytes_left: usize,
}

impl Body {
    /// Starts a hunk after the text already written.
    pub(super) fn new(caps: DiffCaps, written: &str) -> Self {
        let used = memchr::memchr_iter(b'\n', written.as_bytes()).count();
        Self {
            text: String::new(),
            old: 0,
            new: 0,
            changed: 0,
            lines_left: caps.lines.saturating_sub(used + 1),
            bytes_left: caps.bytes.saturating_sub(written.len() + MARK_BYTES),
            line_bytes: caps.line_bytes,
            is_full: false,
        }
    }

    /// Returns the current state.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            text: self.text.len(),
            old: self.old,
            new: self.new,
            changed: self.changed,
            lines_left: self.lines_left,
            bytes_left: self.bytes_left,
        }
    }

    /// Restores an earlier state.
    pub(super) fn back_to(&mut self, mark: Mark) {
        self.text.truncate(mark.text);
        (self.old, self.new, self.changed) = (mark.old, mark.new, mark.changed);
        (self.lines_left, self.bytes_left) = (mark.lines_left, mark.bytes_left);
        self.is_full = false;
    }

    /// Writes lines with one sign until the caps are reached.
    pub(super) fn lines(&mut self, sign: char, lines: &[&str]) {
        for line in lines {
            if self.is_full {
                return;
            }
            self.line(sign, line, None);
        }
    }

    /// Writes changed lines of one side until the caps are reached. Of a long line it shows the part that
    /// differs from the line at the same position of the other side.
    pub(super) fn changed(&mut self, sign: char, lines: &[&str], others: &[&str]) {
        let others = others.iter().copied().map(Some);
        for (line, other) in lines.iter().zip(others.chain(std::iter::repeat(None))) {
            if self.is_full {
                return;
            }
            self.line(sign, line, other);
        }
    }

    /// Writes a proportional prefix of both sides of a change that does not fit.
    pub(super) fn part(&mut self, gone: &[&str], added: &[&str]) {
        let start = self.mark();
        let (mut olds, mut news) = (0, 0);
        while !self.is_full {
            // Compares the shares without division.
            let is_old = olds * added.len() <= news * gone.len() && olds < gone.len();
            match is_old {
                true => self.changed('-', part(gone, olds), part(added, olds)),
                false if news < added.len() => {
                    self.changed('+', part(added, news), part(gone, news));
                }
                false => break,
            }
            if !self.is_full {
                olds += usize::from(is_old);
                news += usize::from(!is_old);
            }
        }
        self.back_to(start);
        if gone.len() == added.len() {
            (olds, news) = (olds.min(news), olds.min(news));
        }
        // A line of one side alone would read as a pure insertion or removal.
        if !gone.is_empty() && !added.is_empty() && (olds == 0 || news == 0) {
            return;
        }
        self.changed('-', gone.get(..olds).unwrap_or_default(), added);
        self.changed('+', added.get(..news).unwrap_or_default(), gone);
    }

    fn line(&mut self, sign: char, line: &str, other: Option<&str>) {
        let whole = line.strip_suffix('\n');
        let body = whole.unwrap_or(line);
        let from = self.first_shown(body, other);
        let rest = body.get(from..).unwrap_or(body);
        let most = rest.floor_char_boundary(self.line_bytes);
        let shown = rest.get(..most).unwrap_or(rest);
        let is_cut = shown.len() < rest.len();
        let marks = usize::from(whole.is_none()) + usize::from(is_cut) + usize::from(from > 0);
        let (lines, bytes) = (
            1 + usize::from(whole.is_none()),
            shown.len() + 2 + MARK_BYTES * marks,
        );
        self.is_full |= self.lines_left < lines || self.bytes_left < bytes;
        if self.is_full {
            return;
        }
        self.lines_left -= lines;
        self.bytes_left -= bytes;
        self.text.push(sign);
        if from > 0 {
            self.text.push_str(&format!("[... {from} bytes before]"));
        }
        self.text.push_str(shown);
        if is_cut {
            self.text
                .push_str(&format!("[... {} more bytes]", rest.len() - shown.len()));
        }
        self.text.push('\n');
        if whole.is_none() {
            self.text.push_str(NO_BREAK);
        }
        self.old += usize::from(sign != '+');
        self.new += usize::from(sign != '-');
        self.changed += usize::from(sign != ' ');
    }

    /// Returns where the shown part of a line starts: shortly before the first difference when the line is
    /// too long to be shown from its start.
    fn first_shown(&self, body: &str, other: Option<&str>) -> usize {
        let Some(other) = other.filter(|_| body.len() > self.line_bytes) else {
            return 0;
        };
        let pairs = body.bytes().zip(other.bytes());
        let same = pairs.take_while(|(a, b)| a == b).count();
        match same > self.line_bytes / 2 {
            true => body.floor_char_boundary(same.min(body.len()) - self.line_bytes / 4),
            false => 0,
        }
    }
}

fn part<'a, 'b>(lines: &'a [&'b str], index: usize) -> &'a [&'b str] {
    lines.get(index..=index).unwrap_or_default()
}
