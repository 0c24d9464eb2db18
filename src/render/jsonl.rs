//! The report as one JSON object per event and line, the moment it happens.

use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::outcome::Outcome;
use crate::render::json::summary_fields;
use crate::render::{Noted, Printed, Started, Style, Summary, wire};

/// Writes JSON lines.
pub struct Jsonl<W> {
    out: W,
}

impl<W: Write> Jsonl<W> {
    /// Makes a writer.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    fn line(&mut self, event: &str, fields: Map<String, Value>) -> io::Result<()> {
        let mut map = Map::new();
        map.insert("event".into(), event.into());
        map.extend(fields);
        serde_json::to_writer(&mut self.out, &map)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}

impl<W: Write> Style for Jsonl<W> {
    fn started(&mut self, call: &Started<'_>) -> io::Result<()> {
        let fields = [("id", call.id), ("tool", call.tool), ("title", call.title)];
        let fields = fields.map(|(key, value)| (key.to_owned(), Value::from(value)));
        self.line("started", Map::from_iter(fields))
    }

    fn output(&mut self, output: &Printed<'_>) -> io::Result<()> {
        let fields = [("id", output.id), ("text", output.text)];
        let fields = fields.map(|(key, value)| (key.to_owned(), Value::from(value)));
        self.line("output", Map::from_iter(fields))
    }

    fn result(&mut self, _: u64, outcome: &Outcome) -> io::Result<()> {
        self.line("finished", wire::result(outcome))
    }

    fn diagnostic(&mut self, noted: &Noted) -> io::Result<()> {
        self.line("diagnostic", wire::diagnostic(noted))
    }

    /// Results were told one by one; the report counts them.
    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        let mut fields = Map::new();
        fields.insert("calls".into(), summary.calls.into());
        fields.extend(summary_fields(summary));
        self.line("report", fields)
    }

    fn is_unordered(&self) -> bool {
        true
    }
}
