//! The tables a run prints, for people or for the documentation, and the gates it must pass.

use std::ops::RangeBounds;

use crate::gate::Gate;
use crate::machine;

/// What the run has to say.
pub(crate) struct Report {
    is_markdown: bool,
    gate: Gate,
    /// Checks, told after their table.
    checks: Vec<(String, f64, (f64, f64))>,
}

impl Report {
    /// Begins with what was measured where.
    pub(crate) fn new(is_markdown: bool) -> Self {
        println!("{}\n", machine::describe());
        Self {
            is_markdown,
            gate: Gate::default(),
            checks: Vec::new(),
        }
    }

    /// Prints a table; the first row holds the heads of its columns.
    pub(crate) fn table(&self, title: &str, rows: &[Vec<String>]) {
        let columns = rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        println!("{}{title}\n", if self.is_markdown { "## " } else { "" });
        for (number, row) in rows.iter().enumerate() {
            self.row(row, &widths);
            if number == 0 && self.is_markdown {
                let dashes: Vec<&str> = (0..columns)
                    .map(|column| if column == 0 { "---" } else { "---:" })
                    .collect();
                println!("|{}|", dashes.join("|"));
            }
        }
        println!();
    }

    fn row(&self, row: &[String], widths: &[usize]) {
        if self.is_markdown {
            println!("| {} |", row.join(" | "));
            return;
        }
        let cells = row.iter().zip(widths).enumerate();
        let padded = cells.map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        println!("{}", padded.collect::<Vec<_>>().join("  "));
    }

    /// Says something about the tables.
    pub(crate) fn note(&self, text: &str) {
        println!("{text}\n");
    }

    /// Has a ratio be in a range at the end of the run.
    pub(crate) fn check(&mut self, what: &str, ratio: f64, range: impl RangeBounds<f64>) {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let least = match range.start_bound() {
            Included(least) | Excluded(least) => *least,
            Unbounded => f64::NEG_INFINITY,
        };
        let most = match range.end_bound() {
            Included(most) | Excluded(most) => *most,
            Unbounded => f64::INFINITY,
        };
        self.checks.push((what.to_owned(), ratio, (least, most)));
    }

    /// Tells which gates were passed, and ends the run with a failure when one was not.
    pub(crate) fn close(mut self) {
        if self.is_markdown {
            println!("```text");
        }
        for (what, ratio, (least, most)) in self.checks {
            if least.is_finite() {
                self.gate.check(&what, ratio, least..);
            } else {
                self.gate.check(&what, ratio, ..=most);
            }
        }
        if self.is_markdown {
            println!("```");
        }
        self.gate.close();
    }
}
