//! The report as one JSON object per event and line, written as events happen.
//!
//! The events of an output show no more of it than its result: `is_cut` says that the rest is left out.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::render::borrowed_fields::{BorrowedFields, Field};
use crate::render::json::summary_fields;
use crate::render::{CallOutput, CallStart, SeverityDiagnostic, Style, Summary, wire};
use karyi_core::head_tail::before_marker;
use karyi_core::outcome::Outcome;

/// Writes JSON lines.
pub struct Jsonl<W> {
    out: W,
    /// Bytes of the output of one call that events may show.
    most: usize,
    /// Bytes of all outputs that events may still show.
    left: usize,
    /// Bytes that events may still show of each running call; `None` after a cut.
    rooms: HashMap<u64, Option<usize>>,
}

impl<W: Write> Jsonl<W> {
    /// Makes a writer. Events show that many bytes of one output, and of all together.
    pub fn new(out: W, (most, all): (usize, usize)) -> Self {
        Self {
            out,
            most,
            left: all,
            rooms: HashMap::new(),
        }
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
        let room = self.rooms.entry(output.index).or_insert(Some(self.most));
        let Some(free) = room.map(|free| free.min(self.left)) else {
            return Ok(());
        };
        let all = output.text;
        let (end, cut) = match all.len() > free {
            true => (
                before_marker(all.as_bytes(), all.floor_char_boundary(free)),
                Some(Value::Bool(true)),
            ),
            false => (all.len(), None),
        };
        *room = cut.is_none().then(|| free - end);
        self.left -= end;
        let shown = all.get(..end).unwrap_or_default();
        let fields = [("id", output.id), ("text", shown)].map(text);
        let cut = cut.as_ref().map(|cut| ("is_cut", Field::Value(cut)));
        self.line("output", fields.into_iter().chain(cut))
    }

    fn result(&mut self, index: u64, outcome: &Outcome) -> io::Result<()> {
        self.rooms.remove(&index);
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
