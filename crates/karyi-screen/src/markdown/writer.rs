//! Writes the events of one Markdown block as styled lines.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::markdown::table::Table;
use crate::safe_text::safe_line;
use crate::styled_line::{Line, Span, Style, width, wrap};
use crate::theme;

/// Returns the lines of a block, with a margin on the left.
pub(super) fn lines(block: &str, columns: usize, margin: usize) -> Vec<Line<'static>> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer {
        columns,
        lines: Vec::new(),
        inline: Vec::new(),
        styles: Vec::new(),
        prefixes: vec![Prefix {
            first: None,
            rest: Span::raw(" ".repeat(margin)),
        }],
        numbers: Vec::new(),
        links: Vec::new(),
        table: None,
        is_code: false,
    };
    for event in Parser::new_ext(block, options) {
        writer.event(event);
    }
    writer.end_row();
    writer.lines
}

struct Writer {
    columns: usize,
    lines: Vec<Line<'static>>,
    /// Text of the row that is not written yet.
    inline: Vec<Span<'static>>,
    styles: Vec<Style>,
    prefixes: Vec<Prefix>,
    /// Next number of each list that is open; none for bullets.
    numbers: Vec<Option<u64>>,
    /// Targets of links that are open, with the text so far.
    links: Vec<(String, String)>,
    table: Option<Table>,
    is_code: bool,
}

/// Text before each row of a quote or an item.
struct Prefix {
    /// Text of the first row, until it was written.
    first: Option<Span<'static>>,
    rest: Span<'static>,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_code => self.code(&text),
            Event::Html(text) => self.code(&text),
            Event::Text(text) | Event::InlineHtml(text) => self.text(&text, Style::new()),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text, theme::CODE);
            }
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]"), Style::new()),
            Event::SoftBreak => self.text(" ", Style::new()),
            Event::HardBreak => self.end_row(),
            Event::Rule => {
                let rule = Span::styled("─".repeat(8), theme::FAINT);
                self.inline.push(rule);
                self.end_row();
            }
            Event::TaskListMarker(is_done) => {
                let mark = if is_done { "[x] " } else { "[ ] " };
                self.text(mark, Style::new());
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.styles.push(theme::HEADING);
                let marks = "#".repeat(depth(level));
                self.text(&format!("{marks} "), Style::new());
            }
            Tag::BlockQuote(_) => self.prefixes.push(Prefix {
                first: None,
                rest: Span::styled("│ ", theme::FAINT),
            }),
            Tag::CodeBlock(_) => self.is_code = true,
            Tag::List(number) => {
                self.end_row();
                self.numbers.push(number);
            }
            Tag::Item => self.start_item(),
            Tag::Emphasis => self.styles.push(theme::EMPHASIS),
            Tag::Strong => self.styles.push(theme::STRONG),
            Tag::Strikethrough => self.styles.push(theme::DELETED),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.styles.push(theme::LINK);
                self.links.push((dest_url.into_string(), String::new()));
            }
            Tag::Table(alignments) => self.table = Some(Table::new(alignments)),
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.start_row();
                }
            }
            _ => {}
        }
    }

    fn start_item(&mut self) {
        self.end_row();
        let mark = match self.numbers.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            _ => "- ".to_owned(),
        };
        self.prefixes.push(Prefix {
            rest: Span::raw(" ".repeat(width(&mark))),
            first: Some(Span::styled(mark, theme::FAINT)),
        });
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_row(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_row();
            }
            TagEnd::BlockQuote(_) => {
                self.end_row();
                self.prefixes.pop();
            }
            TagEnd::CodeBlock => self.is_code = false,
            TagEnd::List(_) => {
                self.numbers.pop();
            }
            TagEnd::Item => {
                let is_unused = |prefix: &Prefix| prefix.first.is_some();
                if !self.inline.is_empty() || self.prefixes.last().is_some_and(is_unused) {
                    self.write_row();
                }
                self.prefixes.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(table) = &mut self.table {
                    table.push_cell(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let rest: usize = self.prefixes.iter().map(|p| p.rest.width()).sum();
                    for line in table.lines(self.columns.saturating_sub(rest)) {
                        let mut spans = self.take_prefix();
                        spans.extend(line.spans);
                        self.lines.push(Line::from(spans));
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds the target of a link, unless its text is the target.
    fn end_link(&mut self) {
        self.styles.pop();
        let Some((target, text)) = self.links.pop() else {
            return;
        };
        if !target.is_empty() && target != text {
            self.text(&format!(" ({target})"), theme::FAINT);
        }
    }

    fn text(&mut self, text: &str, style: Style) {
        if let Some((_, shown)) = self.links.last_mut() {
            shown.push_str(text);
        }
        let outer = self.styles.iter();
        let style = outer
            .fold(Style::new(), |all, one| all.patch(*one))
            .patch(style);
        let text = safe_line(text).into_owned();
        self.inline.push(Span::styled(text, style));
    }

    /// Writes lines as they are, unwrapped.
    fn code(&mut self, text: &str) {
        for line in text.lines() {
            let mut spans = self.take_prefix();
            spans.push(Span::raw(safe_line(line).into_owned()));
            self.lines.push(Line::from(spans));
        }
    }

    fn end_row(&mut self) {
        if !self.inline.is_empty() {
            self.write_row();
        }
    }

    fn write_row(&mut self) {
        let inline = std::mem::take(&mut self.inline);
        let first = self.take_prefix();
        let rest = self.take_prefix();
        let rows = wrap(&inline, self.columns, &first, &rest);
        self.lines.extend(rows);
    }

    /// Returns the prefix of the next row.
    fn take_prefix(&mut self) -> Vec<Span<'static>> {
        let next = |prefix: &mut Prefix| prefix.first.take().unwrap_or_else(|| prefix.rest.clone());
        let spans = self.prefixes.iter_mut().map(next);
        spans.filter(|span| !span.content.is_empty()).collect()
    }
}

fn depth(level: HeadingLevel) -> usize {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}
