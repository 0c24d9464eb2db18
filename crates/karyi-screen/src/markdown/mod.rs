//! Turns Markdown that streams into lines for the history, each of them written once.
//!
//! A paragraph is written when the next line cannot change it, a table and a list item likewise, and the lines of a code
//! block one by one, unwrapped, so that copying gives the original. Only whole lines decide, so the same text gives the
//! same lines however it was cut.

mod table;
mod writer;

use crate::highlight::CodeHighlighter;
use crate::safe_text::safe;
use crate::styled_line::{Line, Span};
use crate::theme;
use karyi_core::limits;

/// Markdown that arrives in pieces.
pub struct MarkdownStream {
    columns: usize,
    is_highlighted: bool,
    /// Whole lines of the block that is not finished.
    block: String,
    /// The line that is not finished.
    line: String,
    fence: Option<Fence>,
    /// True while indented blocks belong to the item of a list.
    is_in_list: bool,
    /// True when a blank line stands before the next block.
    has_gap: bool,
    has_written: bool,
}

/// A code block that is open.
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    code: Option<CodeHighlighter>,
}

impl MarkdownStream {
    /// Starts a text that is wrapped to a number of columns.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self {
            columns,
            is_highlighted: false,
            block: String::new(),
            line: String::new(),
            fence: None,
            is_in_list: false,
            has_gap: false,
            has_written: false,
        }
    }

    /// Turns on colours in code blocks.
    #[must_use]
    pub fn with_highlighting(self) -> Self {
        Self {
            is_highlighted: true,
            ..self
        }
    }

    /// Wraps what follows to another number of columns.
    pub fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
    }

    /// Takes a piece of the text; returns the lines that are final.
    pub fn push(&mut self, text: &str) -> Vec<Line<'static>> {
        let mut out = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let room = limits::MAX_MARKDOWN_BLOCK_BYTES.saturating_sub(self.line.len());
            let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
            // A character that does not fit begins the next piece of a line without end.
            let end = end.min(rest.floor_char_boundary(room));
            let (piece, after) = rest.split_at(end);
            self.line.push_str(piece);
            rest = after;
            if piece.ends_with('\n') || !rest.is_empty() {
                let line = std::mem::take(&mut self.line);
                self.whole_line(line.trim_end_matches(['\n', '\r']), &mut out);
            }
        }
        out
    }

    /// Ends the text; returns the rest of its lines.
    pub fn finish(&mut self) -> Vec<Line<'static>> {
        let mut out = Vec::new();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.whole_line(&line, &mut out);
        }
        self.end_block(&mut out);
        self.fence = None;
        self.is_in_list = false;
        self.has_gap = false;
        self.has_written = false;
        out
    }

    /// Returns the unfinished block as it looks so far.
    #[must_use]
    pub fn preview(&self) -> Vec<Line<'static>> {
        if self.fence.is_some() {
            let line = safe(&self.line).into_owned();
            return match line.is_empty() {
                true => Vec::new(),
                false => vec![Line::from(line)],
            };
        }
        let block = format!("{}{}", self.block, self.line);
        let start = block.len().saturating_sub(limits::MARKDOWN_PREVIEW_BYTES);
        let start = block.ceil_char_boundary(start);
        let shown = block.get(start..).unwrap_or_default();
        match shown.trim().is_empty() {
            true => Vec::new(),
            false => self.rendered(shown),
        }
    }

    fn whole_line(&mut self, line: &str, out: &mut Vec<Line<'static>>) {
        if let Some(fence) = &mut self.fence {
            if fence.is_closed_by(line) {
                self.fence = None;
                out.push(Line::styled("```", theme::FAINT));
            } else {
                out.push(fence.code_line(line));
            }
            return;
        }
        if line.trim().is_empty() {
            self.end_block(out);
            self.has_gap = self.has_written;
            return;
        }
        if let Some(fence) = Fence::opened_by(line, self.is_highlighted) {
            self.end_block(out);
            self.gap(out);
            let shown = safe(line.trim()).into_owned();
            out.push(Line::styled(shown, theme::FAINT));
            self.fence = Some(fence);
            return;
        }
        self.text_line(line, out);
    }

    fn text_line(&mut self, line: &str, out: &mut Vec<Line<'static>>) {
        let text = line.trim_start();
        let is_open = !self.block.is_empty();
        // A line below a paragraph makes it a heading.
        let is_underline = is_open && is_made_of(text, "=-");
        let is_alone = is_heading(text) || is_rule(text);
        let begins = is_list_item(text)
            || is_alone && !is_underline
            || text.starts_with('>') && !self.block.trim_start().starts_with('>');
        if begins {
            self.end_block(out);
        }
        self.block.push_str(line);
        self.block.push('\n');
        let is_too_long = self.block.len() >= limits::MAX_MARKDOWN_BLOCK_BYTES;
        if is_alone || is_underline || is_too_long {
            self.end_block(out);
        }
    }

    /// Writes the block that ends here.
    fn end_block(&mut self, out: &mut Vec<Line<'static>>) {
        let block = std::mem::take(&mut self.block);
        if block.is_empty() {
            return;
        }
        self.gap(out);
        let lines = self.rendered(&block);
        out.extend(lines);
        let text = block.trim_start();
        let is_indented = block.len() > text.len() + 1;
        self.is_in_list = is_list_item(text) || self.is_in_list && is_indented;
    }

    fn gap(&mut self, out: &mut Vec<Line<'static>>) {
        if std::mem::take(&mut self.has_gap) {
            out.push(Line::default());
        }
        self.has_written = true;
    }

    /// Returns the lines of a block. One that is indented after an item of a list belongs to it.
    fn rendered(&self, block: &str) -> Vec<Line<'static>> {
        let indent = block.len() - block.trim_start_matches(' ').len();
        let is_nested = indent > 0 && (self.is_in_list || is_list_item(block.trim_start()));
        if !is_nested {
            return writer::lines(block, self.columns, 0);
        }
        let lines = block.split_inclusive('\n');
        let block: String = lines.map(|line| without_indent(line, indent)).collect();
        writer::lines(&block, self.columns, indent)
    }
}

impl Fence {
    /// Returns the fence that a line opens.
    fn opened_by(line: &str, is_highlighted: bool) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        if length < 3 || mark == '`' && info.contains('`') {
            return None;
        }
        let word = info.split_whitespace().next().unwrap_or_default();
        let language = word.split([',', '{']).next().unwrap_or_default();
        let is_coloured = is_highlighted && !language.is_empty();
        Some(Self {
            mark,
            length,
            indent: line.len() - text.len(),
            code: is_coloured.then(|| CodeHighlighter::new(language)),
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        let rest = text.trim_start_matches(self.mark);
        rest.is_empty() && text.len() >= self.length
    }

    fn code_line(&mut self, line: &str) -> Line<'static> {
        let text = safe(without_indent(line, self.indent)).into_owned();
        match &mut self.code {
            Some(code) => Line::from(code.spans(&text)),
            None => Line::from(Span::raw(text)),
        }
    }
}

/// Returns a line without that many blanks at its start.
fn without_indent(line: &str, indent: usize) -> &str {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    line.get(blanks.min(indent)..).unwrap_or_default()
}

/// Returns true for a line that consists of one of these marks.
fn is_made_of(text: &str, marks: &str) -> bool {
    let text = text.trim_end();
    let is_of = |mark: char| !text.is_empty() && text.chars().all(|c| c == mark);
    marks.chars().any(is_of)
}

fn is_heading(text: &str) -> bool {
    let rest = text.trim_start_matches('#');
    let count = text.len() - rest.len();
    (1..=6).contains(&count) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

fn is_rule(text: &str) -> bool {
    let marks: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    marks.len() >= 3 && is_made_of(&marks, "*-_")
}

fn is_list_item(text: &str) -> bool {
    if is_rule(text) {
        return false;
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = text.get(digits..).unwrap_or_default();
    let after = match digits {
        0 => rest.strip_prefix(['-', '*', '+']),
        1..=9 => rest.strip_prefix(['.', ')']),
        _ => None,
    };
    after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t']))
}

#[cfg(test)]
mod tests;
