//! Records of a transcript, and their form as lines of JSON.
//!
//! A line is one object with `type` and `at`, the time. Readers skip types that they do not know, so a later version
//! may add some; another meaning of a type that exists is another [`VERSION`].

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::tool::plan_board::{PlanStep, StepState};
use karyi_model::Usage;
use karyi_vault::redact::{Redacted, Redactor};

/// Version of the records.
pub const VERSION: u64 = 1;

/// Record of a transcript. Its texts are redacted.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// The start of the chat; the first record of every transcript.
    Start(ChatStart),
    /// Text of the user.
    User {
        /// Text that the user typed.
        text: Redacted,
        /// Files and the like that belong to it; may be empty.
        attached: Redacted,
    },
    /// Text for the model that neither the user nor a tool wrote.
    Told(Redacted),
    /// Answer of the model with its blocks, as it is sent back.
    Answer(Redacted),
    /// Result of a call.
    Call(CallRecord),
    /// Diffs of an edit that ran without a question; the model has not got them.
    Changes(Redacted),
    /// Report that the model got.
    Report(Redacted),
    /// Tokens and cost of an answer.
    Usage(UsageRecord),
    /// Old reports were left out to save room.
    Shortening,
    /// The messages so far were replaced by this one; the records before it stay.
    Compaction(Redacted),
    /// The last compaction was undone.
    CompactionUndo,
    /// A text of the user, by its number from 0, and all that follows it were taken back.
    Rewind(usize),
    /// Title that the user gave the chat.
    Title(Redacted),
    /// Steps of the model's plan.
    Plan(Vec<PlanStep>),
    /// Name of the model that answers from here on.
    Model(Redacted),
    /// End of a turn.
    TurnEnd(TurnEndRecord),
}

/// Start of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatStart {
    /// Version of the records.
    pub version: u64,
    /// Directory.
    pub cwd: Redacted,
    /// Name of the model.
    pub model: Redacted,
}

/// Result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// Id of the call.
    pub id: Redacted,
    /// Name of its tool.
    pub tool: Redacted,
    /// Title, as people see it.
    pub title: Redacted,
    /// Word of its status.
    pub status: Redacted,
}

/// Tokens and cost of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsageRecord {
    /// Tokens.
    pub usage: Usage,
    /// Cost, when it is known.
    pub cost: Option<f64>,
}

/// End of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEndRecord {
    /// Reason, such as `done`.
    pub end: Redacted,
    /// Number of requests.
    pub steps: u64,
}

/// Record with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedRecord {
    /// Time of writing.
    pub at: Timestamp,
    /// The record.
    pub record: Record,
}

impl Record {
    /// Returns the line of the record, with its end.
    #[must_use]
    pub fn to_line(&self, at: Timestamp) -> String {
        format!("{}\n", self.to_json(at))
    }

    /// Returns the record as a JSON object.
    #[must_use]
    pub fn to_json(&self, at: Timestamp) -> Value {
        let mut object = Map::new();
        object.insert("type".into(), self.kind().into());
        object.insert("at".into(), at.to_string().into());
        if let Value::Object(fields) = self.fields() {
            object.extend(fields);
        }
        Value::Object(object)
    }

    /// Reads a line. A text is redacted again, since more secrets may be known by now. Returns nothing for a type of a
    /// later version.
    ///
    /// # Errors
    /// The line is no record: the reason.
    pub fn parse(line: &[u8], redactor: &Redactor) -> Result<Option<TimedRecord>, String> {
        let value: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let fields = Fields {
            value: &value,
            redactor,
        };
        let at = fields.word("at")?.parse::<Timestamp>();
        let at = at.map_err(|error| error.to_string())?;
        let record = fields.record()?;
        Ok(record.map(|record| TimedRecord { at, record }))
    }

    /// Returns the word for the type.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Start(_) => "start",
            Self::User { .. } => "user",
            Self::Told(_) => "told",
            Self::Answer(_) => "answer",
            Self::Call(_) => "call",
            Self::Changes(_) => "changes",
            Self::Report(_) => "report",
            Self::Usage(_) => "usage",
            Self::Shortening => "shortening",
            Self::Compaction(_) => "compaction",
            Self::CompactionUndo => "compaction_undo",
            Self::Rewind(_) => "rewind",
            Self::Title(_) => "title",
            Self::Plan(_) => "plan",
            Self::Model(_) => "model",
            Self::TurnEnd(_) => "turn_end",
        }
    }

    fn fields(&self) -> Value {
        match self {
            Self::Start(start) => json!({
                "version": start.version, "cwd": start.cwd.as_str(), "model": start.model.as_str(),
            }),
            Self::User { text, attached } if attached.is_empty() => json!({"text": text.as_str()}),
            Self::User { text, attached } => {
                json!({"text": text.as_str(), "attached": attached.as_str()})
            }
            Self::Told(text)
            | Self::Answer(text)
            | Self::Changes(text)
            | Self::Report(text)
            | Self::Compaction(text)
            | Self::Title(text) => json!({"text": text.as_str()}),
            Self::Model(name) => json!({"name": name.as_str()}),
            Self::Call(call) => json!({
                "id": call.id.as_str(), "tool": call.tool.as_str(), "title": call.title.as_str(),
                "status": call.status.as_str(),
            }),
            Self::Usage(UsageRecord { usage, cost }) => json!({
                "input": usage.input, "cached": usage.cached, "output": usage.output,
                "reasoning": usage.reasoning, "cost": cost,
            }),
            Self::Shortening | Self::CompactionUndo => json!({}),
            Self::Rewind(turn) => json!({"turn": turn}),
            Self::Plan(steps) => {
                let step = |step: &PlanStep| json!({"state": step.state.as_str(), "text": step.text.as_str()});
                json!({"steps": steps.iter().map(step).collect::<Vec<_>>()})
            }
            Self::TurnEnd(end) => json!({"end": end.end.as_str(), "steps": end.steps}),
        }
    }
}

/// Reads the fields of a record.
struct Fields<'a> {
    value: &'a Value,
    redactor: &'a Redactor,
}

impl Fields<'_> {
    fn record(&self) -> Result<Option<Record>, String> {
        Ok(Some(match self.word("type")? {
            "start" => Record::Start(ChatStart {
                version: self.count("version")?,
                cwd: self.text("cwd")?,
                model: self.text("model")?,
            }),
            "user" => Record::User {
                text: self.text("text")?,
                attached: match self.value.get("attached") {
                    Some(_) => self.text("attached")?,
                    None => Redacted::default(),
                },
            },
            "told" => Record::Told(self.text("text")?),
            "answer" => Record::Answer(self.text("text")?),
            "changes" => Record::Changes(self.text("text")?),
            "report" => Record::Report(self.text("text")?),
            "call" => Record::Call(CallRecord {
                id: self.text("id")?,
                tool: self.text("tool")?,
                title: self.text("title")?,
                status: self.text("status")?,
            }),
            "usage" => Record::Usage(UsageRecord {
                usage: Usage {
                    input: self.optional_count("input"),
                    cached: self.optional_count("cached"),
                    output: self.optional_count("output"),
                    reasoning: self.optional_count("reasoning"),
                },
                cost: self.value.get("cost").and_then(Value::as_f64),
            }),
            "shortening" => Record::Shortening,
            "compaction" => Record::Compaction(self.text("text")?),
            "compaction_undo" => Record::CompactionUndo,
            "rewind" => Record::Rewind(usize::try_from(self.count("turn")?).unwrap_or(usize::MAX)),
            "title" => Record::Title(self.text("text")?),
            "plan" => Record::Plan(self.steps()?),
            "model" => Record::Model(self.text("name")?),
            "turn_end" => Record::TurnEnd(TurnEndRecord {
                end: self.text("end")?,
                steps: self.count("steps")?,
            }),
            _ => return Ok(None),
        }))
    }

    fn steps(&self) -> Result<Vec<PlanStep>, String> {
        let steps = self.value.get("steps").and_then(Value::as_array);
        let steps = steps.ok_or("expected a list `steps`")?;
        let step = |value| -> Result<PlanStep, String> {
            let fields = Fields {
                value,
                redactor: self.redactor,
            };
            let word = fields.word("state")?;
            let state = StepState::parse(word).ok_or_else(|| format!("unknown state {word:?}"))?;
            let text = fields.text("text")?;
            Ok(PlanStep { state, text })
        };
        steps.iter().map(step).collect()
    }

    fn word(&self, name: &str) -> Result<&str, String> {
        let word = self.value.get(name).and_then(Value::as_str);
        word.ok_or_else(|| format!("expected a text `{name}`"))
    }

    fn text(&self, name: &str) -> Result<Redacted, String> {
        Ok(self.redactor.redact_whole_again(self.word(name)?))
    }

    fn count(&self, name: &str) -> Result<u64, String> {
        let count = self.optional_count(name);
        count.ok_or_else(|| format!("expected a number `{name}`"))
    }

    fn optional_count(&self, name: &str) -> Option<u64> {
        self.value.get(name).and_then(Value::as_u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_vault::session::Secrets;

    #[test]
    fn every_record_comes_back_as_it_was() {
        let redactor = Redactor::new(&Secrets::default());
        let text = |text: &str| redactor.redact(text);
        let usage = Usage {
            input: Some(1),
            cached: None,
            output: Some(2),
            reasoning: None,
        };
        let hostile = text("a\u{0}\n\u{2028}\"\\ 日本語🎉é");
        let records = [
            Record::Start(ChatStart {
                version: VERSION,
                cwd: text("/x"),
                model: text("m"),
            }),
            Record::User {
                text: hostile.clone(),
                attached: Redacted::default(),
            },
            Record::User {
                text: text("a"),
                attached: text("b"),
            },
            Record::Told(text("a")),
            Record::Answer(hostile.clone()),
            Record::Report(text("r")),
            Record::Changes(text("a (edited)\n@@ -1 +1 @@\n-b\n+c\n")),
            Record::Call(CallRecord {
                id: text("1"),
                tool: text("command"),
                title: hostile.clone(),
                status: text("ok"),
            }),
            Record::Usage(UsageRecord {
                usage,
                cost: Some(0.25),
            }),
            Record::Shortening,
            Record::Compaction(text("s")),
            Record::CompactionUndo,
            Record::Rewind(3),
            Record::Title(hostile),
            Record::Plan(vec![PlanStep {
                state: StepState::Active,
                text: text("s"),
            }]),
            Record::Model(text("m")),
            Record::TurnEnd(TurnEndRecord {
                end: text("done"),
                steps: 2,
            }),
        ];
        let at = Timestamp::UNIX_EPOCH;
        for record in records {
            let line = record.to_line(at);
            assert!(line.ends_with('\n') && line.matches('\n').count() == 1);
            let read = Record::parse(line.as_bytes(), &redactor);
            assert_eq!(read, Ok(Some(TimedRecord { at, record })), "{line}");
        }
    }

    #[test]
    fn a_later_type_is_skipped_and_anything_else_is_an_error() {
        let redactor = Redactor::new(&Secrets::default());
        let parse = |line: &str| Record::parse(line.as_bytes(), &redactor);
        let at = "\"at\": \"1970-01-01T00:00:00Z\"";
        assert_eq!(parse(&format!("{{\"type\": \"later\", {at}}}")), Ok(None));
        for line in [
            "",
            "[]",
            "{\"type\": \"told\", \"text\": \"a\"}",
            &format!("{{\"type\": \"told\", {at}}}"),
            &format!("{{\"type\": \"rewind\", \"turn\": -1, {at}}}"),
            &format!(
                "{{\"type\": \"plan\", \"steps\": [{{\"state\": \"x\", \"text\": \"\"}}], {at}}}"
            ),
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
