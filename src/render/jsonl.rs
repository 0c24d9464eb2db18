//! The report as one JSON object per event and line, the moment it happens.

use std::io::{self, Write};

use serde_json::Map;

use crate::render::fields::{Field, Fields};
use crate::render::json::summary_fields;
use crate::render::{Noted, Printed, Started, Style, Summary, wire};
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
        let mut line = Fields::default();
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
    fn started(&mut self, call: &Started<'_>) -> io::Result<()> {
        let fields = [("id", call.id), ("tool", call.tool), ("title", call.title)];
        self.line("started", fields.map(text))
    }

    fn output(&mut self, output: &Printed<'_>) -> io::Result<()> {
        let fields = [("id", output.id), ("text", output.text)];
        self.line("output", fields.map(text))
    }

    fn result(&mut self, _: u64, outcome: &Outcome) -> io::Result<()> {
        self.line("finished", wire::result(outcome).iter())
    }

    fn diagnostic(&mut self, noted: &Noted) -> io::Result<()> {
        self.line("diagnostic", Fields::of(&wire::diagnostic(noted)).iter())
    }

    /// Results were told one by one; the report counts them.
    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        let mut fields = Map::new();
        fields.insert("calls".into(), summary.calls.into());
        fields.extend(summary_fields(summary));
        self.line("report", Fields::of(&fields).iter())
    }

    fn is_unordered(&self) -> bool {
        true
    }
}
