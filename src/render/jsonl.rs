//! The report as one JSON object per event and line, written as events happen.

use std::io::{self, Write};

use serde_json::Map;

use crate::render::borrowed_fields::{BorrowedFields, Field};
use crate::render::json::summary_fields;
use crate::render::{CallOutput, CallStart, SeverityDiagnostic, Style, Summary, wire};
use karyi_core::outcome::Outcome;

/// Writes JSON lines.
pub struct Jsonl<W> {
    out: W,
}

impl<W: Write> Jsonl<W> {
    /// Makes a writer.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    fn line<'a>(
        &mut self,
        event: &'a str,
        fields: impl IntoIterator<Item = (&'a str, Field<'a>)>,
    ) -> io::Result<()> {
        let mut line = BorrowedFields::default();
        line.set("event", Field::Text(event));
        for (name, field) in fields {
            line.set(name, field);
        }
        serde_json::to_writer(&mut self.out, &line)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}

fn text<'a>((name, text): (&'a str, &'a str)) -> (&'a str, Field<'a>) {
    (name, Field::Text(text))
}

impl<W: Write> Style for Jsonl<W> {
    fn started(&mut self, call: &CallStart<'_>) -> io::Result<()> {
        let fields = [("id", call.id), ("tool", call.tool), ("title", call.title)];
        let label = call.label.map(|label| ("label", label));
        self.line("started", fields.into_iter().chain(label).map(text))
    }

    fn output(&mut self, output: &CallOutput<'_>) -> io::Result<()> {
        let fields = [("id", output.id), ("text", output.text)];
        self.line("output", fields.map(text))
    }

    fn result(&mut self, _: u64, outcome: &Outcome) -> io::Result<()> {
        self.line("finished", wire::result(outcome).iter())
    }

    fn diagnostic(&mut self, noted: &SeverityDiagnostic) -> io::Result<()> {
        self.line(
            "diagnostic",
            BorrowedFields::of(&wire::diagnostic(noted)).iter(),
        )
    }

    /// Results were written one by one, so the report only counts them.
    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        let mut fields = Map::new();
        fields.insert("calls".into(), summary.calls.into());
        fields.extend(summary_fields(summary));
        self.line("report", BorrowedFields::of(&fields).iter())
    }

    fn is_unordered(&self) -> bool {
        true
    }
}
