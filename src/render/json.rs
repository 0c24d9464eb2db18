//! The report as one JSON object on one line, written incrementally.

use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::render::{Style, Summary, wire};
use karyi_core::outcome::Outcome;

/// Writes JSON.
pub struct Json<W> {
    out: W,
    has_results: bool,
}

impl<W: Write> Json<W> {
    /// Makes a writer.
    pub fn new(out: W) -> Self {
        Self {
            out,
            has_results: false,
        }
    }
}

/// Returns the fields that follow the results of a report.
pub(crate) fn summary_fields(summary: &Summary<'_>) -> Map<String, Value> {
    let objects =
        |maps: Vec<Map<String, Value>>| Value::Array(maps.into_iter().map(Value::Object).collect());
    let mut map = Map::new();
    map.insert(
        "diagnostics".into(),
        objects(summary.diagnostics.iter().map(wire::diagnostic).collect()),
    );
    if summary.omitted_diagnostics > 0 {
        map.insert(
            "omitted_diagnostics".into(),
            summary.omitted_diagnostics.into(),
        );
    }
    if !summary.jobs.is_empty() {
        map.insert(
            "jobs".into(),
            objects(summary.jobs.iter().map(wire::job).collect()),
        );
    }
    if summary.omitted_jobs > 0 {
        map.insert("omitted_jobs".into(), summary.omitted_jobs.into());
    }
    map.insert("status".into(), summary.status.as_str().into());
    if let Some(shell) = summary.shell {
        map.insert("shell".into(), shell.into());
    }
    if let Some(note) = summary.note {
        map.insert("note".into(), note.into());
    }
    map
}

impl<W: Write> Style for Json<W> {
    fn result(&mut self, _: u64, outcome: &Outcome) -> io::Result<()> {
        self.out.write_all(if self.has_results {
            b","
        } else {
            b"{\"results\":["
        })?;
        self.has_results = true;
        serde_json::to_writer(&mut self.out, &wire::result(outcome))?;
        self.out.flush()
    }

    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        if !self.has_results {
            self.out.write_all(b"{\"results\":[")?;
        }
        self.out.write_all(b"]")?;
        for (key, value) in summary_fields(summary) {
            self.out.write_all(b",")?;
            serde_json::to_writer(&mut self.out, &key)?;
            self.out.write_all(b":")?;
            serde_json::to_writer(&mut self.out, &value)?;
        }
        self.out.write_all(b"}\n")?;
        self.out.flush()
    }
}
