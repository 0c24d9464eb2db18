//! A card for a call: its title, its state, the time it takes, and the last lines that it printed.

use std::collections::VecDeque;
use std::time::Duration;

use crate::safe_text::{safe_in_colour, safe_line};
use crate::styled_line::{Line, Span, Style, fit};
use crate::theme;
use karyi_core::limits;

/// A call on the screen.
#[derive(Debug, Clone, Default)]
pub struct Card {
    tool: String,
    title: String,
    tail: OutputTail,
    /// Lines of what it has changed.
    changes: Vec<Line<'static>>,
    /// State that differs from running, such as waiting for input.
    note: Option<String>,
}

/// End of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardEnd {
    /// It did what was asked.
    Good,
    /// It goes on, or was not started.
    Open,
    /// It failed.
    Bad,
}

/// The last lines of an output.
#[derive(Debug, Clone, Default)]
struct OutputTail {
    lines: VecDeque<String>,
    /// Line without its end, as far as its output has come.
    open: String,
    /// The same line as the terminal shows it before its output comes; empty when nothing is ahead of the output.
    preview: String,
    /// Lines of the output, kept or not.
    count: usize,
}

impl Card {
    /// Creates the card of a call.
    #[must_use]
    pub fn new(tool: &str, title: &str) -> Self {
        let mut rows = title.trim().lines();
        let first = rows.next().unwrap_or_default();
        let more = if rows.next().is_some() { " …" } else { "" };
        Self {
            tool: tool.to_owned(),
            title: format!("{}{more}", safe_line(first)),
            ..Self::default()
        }
    }

    /// Takes output. Only the end of a long one is looked at.
    pub fn push_output(&mut self, text: &str) {
        self.tail.push(text);
    }

    /// Takes the newest state of the line without an end.
    pub fn set_open_line(&mut self, line: &str) {
        line.clone_into(&mut self.tail.preview);
    }

    /// Takes the lines of what it has changed, shown once it has ended.
    pub fn set_changes(&mut self, lines: Vec<Line<'static>>) {
        self.changes = lines;
    }

    /// Returns true when it has lines of what it has changed.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Sets the state beside the title.
    pub fn set_note(&mut self, note: Option<String>) {
        self.note = note;
    }

    /// Returns the lines of a call that runs.
    #[must_use]
    pub fn running_lines(&self, elapsed: Duration, columns: usize) -> Vec<Line<'static>> {
        let mut lines = vec![
            self.title_line(Span::styled("● ", theme::WARNING), columns, {
                let time = elapsed_text(elapsed);
                match &self.note {
                    Some(note) => {
                        Span::styled(format!("  {time}  {}", safe_line(note)), theme::WARNING)
                    }
                    None => Span::styled(format!("  {time}"), theme::FAINT),
                }
            }),
        ];
        lines.extend(self.tail_lines(limits::CARD_TAIL_LINES, columns));
        lines
    }

    /// Returns the lines of a call that has ended: for the history.
    #[must_use]
    pub fn ended_lines(&self, end: CardEnd, status: &str, columns: usize) -> Vec<Line<'static>> {
        let (mark, style): (_, Style) = match end {
            CardEnd::Good => ("✓ ", theme::GOOD),
            CardEnd::Open => ("● ", theme::WARNING),
            CardEnd::Bad => ("✗ ", theme::BAD),
        };
        let status = match status.is_empty() {
            true => Span::raw(""),
            false => Span::styled(format!("  {}", safe_line(status)), style),
        };
        let mut lines = vec![self.title_line(Span::styled(mark, style), columns, status)];
        let shown = limits::CARD_RESULT_LINES;
        let left_out = self.tail.count.saturating_sub(shown);
        if left_out > 0 {
            let text = format!("  │ … {left_out} more lines");
            lines.push(Line::styled(text, theme::FAINT));
        }
        lines.extend(self.tail_lines(shown, columns));
        lines.extend(self.change_lines(columns));
        lines
    }

    /// Returns the first lines of the changes, and how many there are more.
    fn change_lines(&self, columns: usize) -> Vec<Line<'static>> {
        let shown = self.changes.iter().take(limits::CARD_DIFF_LINES);
        let mut lines: Vec<_> = shown.map(|line| fit(line, columns)).collect();
        let left_out = self.changes.len() - lines.len();
        if left_out > 0 {
            let text = format!("       … {left_out} more lines");
            lines.push(fit(&Line::styled(text, theme::FAINT), columns));
        }
        lines
    }

    fn title_line(
        &self,
        mark: Span<'static>,
        columns: usize,
        after: Span<'static>,
    ) -> Line<'static> {
        let room = columns.saturating_sub(mark.width() + after.width());
        let title = Line::from(vec![
            Span::styled(format!("{} ", self.tool), theme::STRONG),
            Span::raw(self.title.clone()),
        ]);
        let mut spans = vec![mark];
        spans.extend(fit(&title, room.max(8)).spans);
        spans.push(after);
        fit(&Line::from(spans), columns)
    }

    fn tail_lines(&self, most: usize, columns: usize) -> Vec<Line<'static>> {
        let lines = self.tail.lines.iter().map(String::as_str);
        let open = [&self.tail.preview, &self.tail.open];
        let open = open.into_iter().map(String::as_str);
        let open = open.filter(|line| !line.is_empty()).take(1);
        let all: Vec<&str> = lines.chain(open).collect();
        let start = all.len().saturating_sub(most);
        let line = |text: &&str| {
            let text = safe_line(&without_colours(text)).into_owned();
            fit(&Line::styled(format!("  │ {text}"), theme::FAINT), columns)
        };
        all.iter().skip(start).map(line).collect()
    }
}

impl OutputTail {
    fn push(&mut self, text: &str) {
        self.preview.clear();
        let complete = text.bytes().filter(|byte| *byte == b'\n').count();
        self.count += complete;
        let start = text.len().saturating_sub(limits::CARD_TAIL_BYTES);
        let start = text.ceil_char_boundary(start);
        if start > 0 {
            self.open.clear();
        }
        for piece in text.get(start..).unwrap_or_default().split_inclusive('\n') {
            self.open.push_str(piece.trim_end_matches(['\n', '\r']));
            let surplus = self.open.len().saturating_sub(limits::CARD_TAIL_BYTES);
            let surplus = self.open.ceil_char_boundary(surplus);
            self.open.drain(..surplus);
            if piece.ends_with('\n') {
                self.lines.push_back(std::mem::take(&mut self.open));
            }
        }
        let kept = limits::CARD_TAIL_LINES.max(limits::CARD_RESULT_LINES);
        let surplus = self.lines.len().saturating_sub(kept);
        self.lines.drain(..surplus);
    }
}

/// Removes the colours of a program.
fn without_colours(text: &str) -> String {
    let shown = safe_in_colour(text);
    let mut plain = String::with_capacity(shown.len());
    for (number, piece) in shown.split('\x1b').enumerate() {
        let piece = match number {
            0 => piece,
            _ => piece.split_once('m').map_or("", |(_, after)| after),
        };
        plain.push_str(piece);
    }
    plain
}

/// Returns a time as people read it.
#[must_use]
pub fn elapsed_text(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds, time.subsec_millis() / 100) {
        (0, tenths) => format!("0.{tenths} s"),
        (1..=59, _) => format!("{seconds} s"),
        (60..=3599, _) => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_line::plain_text;

    fn texts(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(plain_text).collect()
    }

    #[test]
    fn a_running_call_shows_its_last_lines() {
        let mut card = Card::new("command", "cargo test\nmore");
        card.push_output("1\n2\n3\n4\n\x1b[31m5\x1b[0m\nhal");
        card.push_output("f\x1b]0;x\x07");
        let shown = card.running_lines(Duration::from_secs(75), 40);
        assert_eq!(
            texts(&shown),
            [
                "● command cargo test …  1:15 min",
                "  │ 3",
                "  │ 4",
                "  │ 5",
                "  │ half␛]0;x␇"
            ]
        );
        card.set_note(Some("waiting for input".into()));
        let shown = card.running_lines(Duration::from_millis(300), 60);
        assert_eq!(
            plain_text(&shown[0]),
            "● command cargo test …  0.3 s  waiting for input"
        );
    }

    #[test]
    fn a_line_that_was_shown_early_is_shown_once() {
        let mut card = Card::new("command", "echo half");
        card.push_output("ha");
        card.set_open_line("half");
        let check = |card: &Card, expected: &str| {
            let shown = card.running_lines(Duration::default(), 40);
            assert_eq!(texts(&shown)[1..], [format!("  │ {expected}")]);
        };
        check(&card, "half");
        card.push_output("lf\n");
        check(&card, "half");
        let ended = card.ended_lines(CardEnd::Good, "", 40);
        assert_eq!(texts(&ended), ["✓ command echo half", "  │ half"]);
    }

    #[test]
    fn an_ended_call_counts_what_it_leaves_out() {
        let mut card = Card::new("command", "seq 9");
        card.push_output("1\n2\n3\n4\n5\n6\n7\n8\n9\n");
        let shown = card.ended_lines(CardEnd::Bad, "exit 1", 12);
        assert_eq!(
            texts(&shown),
            [
                "✗ command… …",
                "  │ … 3 more lines",
                "  │ 4",
                "  │ 5",
                "  │ 6",
                "  │ 7",
                "  │ 8",
                "  │ 9"
            ]
        );
        let card = Card::new("read", "");
        assert_eq!(texts(&card.ended_lines(CardEnd::Good, "", 40)), ["✓ read "]);
    }

    #[test]
    fn a_long_change_is_folded() {
        let mut card = Card::new("edit", "a");
        let lines = |count: usize| (1..=count).map(|number| Line::raw(format!("+ {number}")));
        let shown = |card: &Card| texts(&card.ended_lines(CardEnd::Good, "", 22))[1..].to_vec();
        card.set_changes(lines(20).collect());
        assert_eq!(shown(&card), texts(&lines(20).collect::<Vec<_>>()));
        card.set_changes(lines(23).collect());
        let folded = shown(&card);
        assert_eq!(folded.len(), 21);
        assert_eq!(folded[20], "       … 3 more lines");
    }

    #[test]
    fn a_flood_costs_little_memory() {
        let mut card = Card::new("command", "yes");
        for _ in 0..100 {
            card.push_output(&"y\n".repeat(50_000));
            card.push_output(&"z".repeat(100_000));
        }
        assert!(card.tail.open.len() <= limits::CARD_TAIL_BYTES);
        assert_eq!(card.tail.count, 5_000_000);
    }
}
