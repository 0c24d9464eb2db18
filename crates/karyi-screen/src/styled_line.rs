//! Lines of styled text: their width, how they are cut and wrapped, and their bytes for a terminal.
//!
//! Text is measured in grapheme clusters, as terminals advance their cursor.

use ratatui_core::style::Modifier;
pub use ratatui_core::style::{Color, Style};
pub use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Text in place of a tab where columns are counted.
const TAB: &str = "    ";

/// Colours of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// The 16 colours that the user has chosen.
    Ansi,
    /// Plain text.
    Plain,
}

/// One cluster of a line.
#[derive(Clone, Copy)]
struct Cell<'a> {
    text: &'a str,
    style: Style,
    width: usize,
}

impl Cell<'_> {
    fn is_blank(&self) -> bool {
        self.text == " "
    }
}

/// Returns the columns of a text.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// Returns the columns of each cluster of a line, in order.
#[must_use]
pub fn cluster_widths(line: &Line<'_>) -> Vec<usize> {
    cells(line.style, &line.spans)
        .iter()
        .map(|cell| cell.width)
        .collect()
}

/// Returns a line that owns its text, with tabs as spaces, cut to a number of columns.
#[must_use]
pub fn fit(line: &Line<'_>, columns: usize) -> Line<'static> {
    let cells = cells(line.style, &line.spans);
    let total: usize = cells.iter().map(|cell| cell.width).sum();
    if total <= columns {
        return joined(&cells);
    }
    let mut used = 0;
    let fits = |cell: &&Cell<'_>| {
        used += cell.width;
        used < columns
    };
    let kept: Vec<Cell<'_>> = cells.iter().take_while(fits).copied().collect();
    let mut line = joined(&kept);
    if columns > 0 {
        line.push_span(Span::raw("…"));
    }
    line
}

/// Splits a line before the cluster that begins at or after a column.
#[must_use]
pub fn split_at_column(line: &Line<'_>, column: usize) -> (Line<'static>, Line<'static>) {
    let cells = cells(line.style, &line.spans);
    let mut used = 0;
    let before = |cell: &&Cell<'_>| {
        let is_before = used < column;
        used += cell.width;
        is_before
    };
    let count = cells.iter().take_while(before).count();
    let (head, tail) = cells.split_at(count);
    (joined(head), joined(tail))
}

/// Wraps text between words to a number of columns, with a prefix on the first row and another on the rest.
#[must_use]
pub fn wrap(
    text: &[Span<'_>],
    columns: usize,
    first: &[Span<'static>],
    rest: &[Span<'static>],
) -> Vec<Line<'static>> {
    let cells = cells(Style::new(), text);
    let mut rows = Vec::new();
    let mut start = 0;
    loop {
        let prefix = if rows.is_empty() { first } else { rest };
        let taken: usize = prefix.iter().map(Span::width).sum();
        // A wide character must fit.
        let room = columns.saturating_sub(taken).max(2);
        let end = row_end(&cells, start, room);
        let mut row = Line::from(prefix.to_vec());
        let trimmed = trimmed(cells.get(start..end).unwrap_or_default());
        row.spans.extend(joined(trimmed).spans);
        rows.push(row);
        start = end;
        while cells.get(start).is_some_and(Cell::is_blank) {
            start += 1;
        }
        if start >= cells.len() {
            return rows;
        }
    }
}

/// Returns the end of the row that begins at a cell.
fn row_end(cells: &[Cell<'_>], start: usize, room: usize) -> usize {
    let (mut used, mut end, mut break_at) = (0, start, None);
    while let Some(cell) = cells.get(end) {
        if used + cell.width > room {
            let may_break_here = cell.is_blank() || cell.width > 1;
            let cut = if may_break_here { Some(end) } else { break_at };
            let cut = cut.filter(|cut| *cut > start);
            return cut.unwrap_or(end.max(start + 1));
        }
        used += cell.width;
        end += 1;
        if cell.is_blank() || cell.width > 1 {
            break_at = Some(end);
        }
    }
    end
}

fn trimmed<'a, 'b>(mut cells: &'b [Cell<'a>]) -> &'b [Cell<'a>] {
    while let [rest @ .., last] = cells
        && last.is_blank()
    {
        cells = rest;
    }
    cells
}

/// Returns the clusters of some spans of a line with a style; tabs are spaces.
fn cells<'a>(base: Style, spans: &'a [Span<'_>]) -> Vec<Cell<'a>> {
    let mut cells = Vec::new();
    for span in spans {
        for cluster in span.content.graphemes(true) {
            let style = base.patch(span.style);
            if cluster == "\t" {
                let blank = TAB.graphemes(true).map(|text| Cell {
                    text,
                    style,
                    width: 1,
                });
                cells.extend(blank);
            } else {
                cells.push(Cell {
                    text: cluster,
                    style,
                    width: cluster.width(),
                });
            }
        }
    }
    cells
}

/// Joins clusters of equal style.
fn joined(cells: &[Cell<'_>]) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for cell in cells {
        match spans.last_mut() {
            Some(last) if last.style == cell.style => last.content.to_mut().push_str(cell.text),
            _ => spans.push(Span::styled(cell.text.to_owned(), cell.style)),
        }
    }
    Line::from(spans)
}

/// Returns the text of a line without its styles.
#[must_use]
pub fn plain_text(line: &Line<'_>) -> String {
    line.spans.iter().map(|span| &*span.content).collect()
}

/// Adds the bytes of a line for a terminal, without a line break.
pub fn write_line(out: &mut Vec<u8>, line: &Line<'_>, palette: Palette) {
    for span in &line.spans {
        let codes = match palette {
            Palette::Ansi => codes(line.style.patch(span.style)),
            Palette::Plain => String::new(),
        };
        if codes.is_empty() {
            out.extend_from_slice(span.content.as_bytes());
        } else {
            out.extend_from_slice(format!("\x1b[{codes}m{}\x1b[0m", span.content).as_bytes());
        }
    }
}

/// Returns the parameters of a style.
fn codes(style: Style) -> String {
    let modifiers = [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
        (Modifier::CROSSED_OUT, 9),
    ];
    let has = |modifier: &Modifier| style.add_modifier.contains(*modifier);
    let mut codes: Vec<String> = modifiers
        .iter()
        .filter(|(modifier, _)| has(modifier))
        .map(|(_, code)| code.to_string())
        .collect();
    codes.extend(style.fg.and_then(|colour| colour_code(colour, 30)));
    codes.extend(style.bg.and_then(|colour| colour_code(colour, 40)));
    codes.join(";")
}

/// Returns the parameter of a colour; `base` is that of black.
fn colour_code(colour: Color, base: u8) -> Option<String> {
    let ansi = |number: u8| Some((base + number).to_string());
    match colour {
        Color::Reset => None,
        Color::Black => ansi(0),
        Color::Red => ansi(1),
        Color::Green => ansi(2),
        Color::Yellow => ansi(3),
        Color::Blue => ansi(4),
        Color::Magenta => ansi(5),
        Color::Cyan => ansi(6),
        Color::Gray => ansi(7),
        Color::DarkGray => ansi(60),
        Color::LightRed => ansi(61),
        Color::LightGreen => ansi(62),
        Color::LightYellow => ansi(63),
        Color::LightBlue => ansi(64),
        Color::LightMagenta => ansi(65),
        Color::LightCyan => ansi(66),
        Color::White => ansi(67),
        Color::Indexed(number) => Some(format!("{};5;{number}", base + 8)),
        Color::Rgb(red, green, blue) => Some(format!("{};2;{red};{green};{blue}", base + 8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, columns: usize) -> Vec<String> {
        let rows = wrap(
            &[Span::raw(text)],
            columns,
            &[Span::raw("- ")],
            &[Span::raw("  ")],
        );
        rows.iter().map(plain_text).collect()
    }

    #[test]
    fn text_is_wrapped_between_words_and_long_words_are_cut() {
        assert_eq!(rows("one two three", 9), ["- one two", "  three"]);
        assert_eq!(rows("abcdefghij k", 6), ["- abcd", "  efgh", "  ij k"]);
        assert_eq!(
            rows("日本語のテキスト", 8),
            ["- 日本語", "  のテキ", "  スト"]
        );
        assert_eq!(rows("a  b", 80), ["- a  b"]);
        assert_eq!(rows("", 80), ["- "]);
        assert_eq!(rows("日本", 1), ["- 日", "  本"]);
    }

    #[test]
    fn clusters_are_never_cut() {
        let line = Line::from("e\u{301}🎉👨\u{200D}👩\u{200D}👧b");
        assert_eq!(cluster_widths(&line), [1, 2, 2, 1]);
        assert_eq!(plain_text(&fit(&line, 4)), "e\u{301}🎉…");
        let (head, tail) = split_at_column(&line, 3);
        assert_eq!(plain_text(&head), "e\u{301}🎉");
        assert_eq!(plain_text(&tail), "👨\u{200D}👩\u{200D}👧b");
    }

    #[test]
    fn a_line_is_cut_to_its_columns() {
        let fitted = |text: &str, columns| plain_text(&fit(&Line::from(text), columns));
        assert_eq!(fitted("abc", 3), "abc");
        assert_eq!(fitted("abcd", 3), "ab…");
        assert_eq!(fitted("日本語", 4), "日…");
        assert_eq!(fitted("\ta", 6), "    a");
        assert_eq!(fitted("abc", 0), "");
    }

    #[test]
    fn colours_are_those_of_the_palette() {
        let style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        let line = Line::from(vec![Span::styled("a", style), Span::raw("b")]);
        let bytes = |palette| {
            let mut out = Vec::new();
            write_line(&mut out, &line, palette);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(bytes(Palette::Ansi), "\x1b[1;31ma\x1b[0mb");
        assert_eq!(bytes(Palette::Plain), "ab");
    }
}
