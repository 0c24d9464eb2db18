//! Lays out the table of a Markdown text.

use pulldown_cmark::Alignment;

use crate::styled_line::{Line, Span, wrap};
use crate::theme;

/// Text between two columns.
const GAP: &str = " │ ";
/// Fewest columns of a cell, when a table is too wide.
const LEAST: usize = 4;

/// A table that is read row by row.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<Span<'static>>>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
        }
    }

    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn push_cell(&mut self, cell: Vec<Span<'static>>) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Returns the lines of the table in that many columns.
    pub(super) fn lines(self, columns: usize) -> Vec<Line<'static>> {
        let widths = self.widths(columns);
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            self.add_row(&mut lines, row, &widths);
            if number == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::styled(rule.join("─┼─"), theme::FAINT));
            }
        }
        lines
    }

    /// Returns the columns of each cell: as wide as its texts, unless all of them together do not fit.
    fn widths(&self, columns: usize) -> Vec<usize> {
        let mut widths = vec![1; self.alignments.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell_width(cell));
            }
        }
        let gaps = 3 * widths.len().saturating_sub(1);
        let room = columns.saturating_sub(gaps);
        while widths.iter().sum::<usize>() > room {
            match widths.iter_mut().max() {
                Some(widest) if *widest > LEAST => *widest -= 1,
                _ => break,
            }
        }
        widths
    }

    fn add_row(
        &self,
        lines: &mut Vec<Line<'static>>,
        row: &[Vec<Span<'static>>],
        widths: &[usize],
    ) {
        let empty = Vec::new();
        let cells: Vec<Vec<Line<'static>>> = widths
            .iter()
            .enumerate()
            .map(|(number, width)| wrap(row.get(number).unwrap_or(&empty), *width, &[], &[]))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        for at in 0..height {
            let mut spans = Vec::new();
            for (number, (cell, width)) in cells.iter().zip(widths).enumerate() {
                if number > 0 {
                    spans.push(Span::styled(GAP, theme::FAINT));
                }
                let text = cell.get(at).cloned().unwrap_or_default();
                let alignment = self.alignments.get(number).copied();
                spans.extend(padded(text, *width, alignment.unwrap_or(Alignment::None)));
            }
            lines.push(Line::from(spans));
        }
    }
}

fn cell_width(cell: &[Span<'_>]) -> usize {
    cell.iter().map(Span::width).sum()
}

fn padded(text: Line<'static>, width: usize, alignment: Alignment) -> Vec<Span<'static>> {
    let blanks = width.saturating_sub(text.width());
    let before = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => blanks / 2,
        Alignment::Right => blanks,
    };
    let blank = |count: usize| Span::raw(" ".repeat(count));
    let mut spans = vec![blank(before)];
    spans.extend(text.spans);
    spans.push(blank(blanks - before));
    spans
}
