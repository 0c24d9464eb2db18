//! Lays out words: lines, empty lines between paragraphs, indents.

/// Deepest indent that is written: a deeper one would fill the text.
const MAX_INDENTS: usize = 8;

/// Space between two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Gap {
    /// None.
    #[default]
    None,
    /// The end of a line.
    Line,
    /// An empty line.
    Paragraph,
}

/// Text that is laid out.
#[derive(Debug, Default)]
pub(super) struct Layout {
    text: String,
    gap: Gap,
    has_space: bool,
    /// Text that the next line begins with, such as the sign of an item.
    mark: String,
    indents: Vec<&'static str>,
    /// True between the start of a row and its first cell.
    is_row_open: bool,
}

impl Layout {
    /// Returns the length of the text so far.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Asks for a gap before the next text; the larger one counts.
    pub(super) fn gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
        if gap != Gap::None {
            self.has_space = false;
            self.is_row_open = false;
        }
    }

    /// Ends a line; a second one makes an empty line.
    pub(super) fn line(&mut self) {
        self.gap = match self.gap {
            Gap::None => Gap::Line,
            Gap::Line | Gap::Paragraph => Gap::Paragraph,
        };
        self.has_space = false;
    }

    /// Sets the text at the start of the next line.
    pub(super) fn mark(&mut self, mark: &str) {
        mark.clone_into(&mut self.mark);
    }

    /// Begins each line with a text, until the indent ends.
    pub(super) fn indent(&mut self, text: &'static str) {
        self.indents.push(text);
    }

    /// Ends the last indent.
    pub(super) fn outdent(&mut self) {
        self.indents.pop();
    }

    /// Begins a cell of a row.
    pub(super) fn cell(&mut self) {
        if self.is_row_open {
            self.has_space = false;
            self.place();
            let is_first = self.text.is_empty() || self.text.ends_with('\n');
            self.text.push_str(if is_first { "|" } else { " |" });
            self.has_space = true;
        }
        self.is_row_open = true;
    }

    /// Adds words; white space between them is one blank.
    pub(super) fn words(&mut self, text: &str) {
        let mut words = text.split(is_blank).peekable();
        while let Some(word) = words.next() {
            if !word.is_empty() {
                self.place();
                self.text.push_str(word);
            }
            self.has_space |= words.peek().is_some();
        }
    }

    /// Adds a text with its lines and blanks.
    pub(super) fn exact(&mut self, text: &str) {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.line_of_program();
            }
            let line = line.trim_end_matches('\r');
            if !line.is_empty() {
                self.has_space = false;
                self.place();
                self.text.push_str(line);
            }
        }
    }

    /// Adds a text to the last word.
    pub(super) fn suffix(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Returns the text.
    pub(super) fn finish(mut self) -> String {
        let length = self.text.trim_end().len();
        self.text.truncate(length);
        self.text
    }

    fn line_of_program(&mut self) {
        // The first line of a program stands after the gap before it.
        if self.gap == Gap::None && !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// Writes the gap, or the blank, before a text.
    fn place(&mut self) {
        let has_space = std::mem::take(&mut self.has_space);
        let gap = std::mem::take(&mut self.gap);
        if gap != Gap::None {
            let length = self.text.trim_end_matches('\n').len();
            self.text.truncate(length);
        }
        let ends = match gap {
            _ if self.text.is_empty() => "",
            Gap::None if has_space => " ",
            Gap::None => "",
            Gap::Line => "\n",
            Gap::Paragraph => "\n\n",
        };
        self.text.push_str(ends);
        if gap != Gap::None || self.text.is_empty() {
            // The sign of an item stands in the indent of its list.
            let shown = self
                .indents
                .len()
                .saturating_sub(usize::from(self.has_item()));
            for indent in self.indents.iter().take(shown.min(MAX_INDENTS)) {
                self.text.push_str(indent);
            }
            self.text.push_str(&std::mem::take(&mut self.mark));
        }
    }

    fn has_item(&self) -> bool {
        self.mark.ends_with("- ") || self.mark.ends_with(". ")
    }
}

fn is_blank(sign: char) -> bool {
    sign.is_whitespace()
}
