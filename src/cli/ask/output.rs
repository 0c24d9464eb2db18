//! Output of `karyi ask`: prose as it comes and a line for each call, one JSON object, or JSON lines.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};

use serde_json::{Map, Value, json};

use crate::chat::observer::{ChatEvent, Observer};
use crate::chat::turn::{TurnEnd, TurnReport};
use crate::cli::ask::args::AskArgs;
use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::render::jsonl::Jsonl;
use crate::render::paint::{safe, safe_line};
use crate::render::{CallOutput, CallStart, SeverityDiagnostic, Style, wire};
use crate::tool::plan_board::PlanStep;
use karyi_core::error::{Code, Severity};
use karyi_core::limits;
use karyi_core::outcome::{Outcome, Status};
use karyi_model::Usage;

/// Version of the objects that are printed.
const VERSION: u64 = 1;

/// Longest title of a call in its line, in characters.
const TITLE_CHARS: usize = 100;

/// Shows a turn. A reader that is gone cancels it.
pub(super) struct AskOutput {
    form: Form,
    model: String,
    cancel: Cancel,
    failure: Option<io::Error>,
}

enum Form {
    Text(TextOutput),
    Json(Vec<Value>),
    Jsonl(Box<Jsonl<io::Stdout>>),
}

impl AskOutput {
    /// Makes the output that the arguments ask for.
    pub(super) fn new(args: &AskArgs, model: &str, cancel: Cancel) -> Self {
        let form = match (args.json, args.jsonl) {
            (true, _) => Form::Json(Vec::new()),
            (_, true) => {
                let most = args
                    .session
                    .max_output
                    .unwrap_or(limits::OUTPUT_HEAD_BYTES + limits::OUTPUT_TAIL_BYTES);
                Form::Jsonl(Box::new(Jsonl::new(io::stdout(), (most, usize::MAX))))
            }
            (false, false) => Form::Text(TextOutput::new(args.quiet)),
        };
        let mut output = Self {
            form,
            model: model.to_owned(),
            cancel,
            failure: None,
        };
        let started = json!({"event": "turn", "version": VERSION, "model": model});
        output.line(&started);
        output
    }

    /// Writes the end of the turn.
    ///
    /// # Errors
    /// The output could not be written.
    pub(super) fn end(mut self, report: &TurnReport) -> io::Result<()> {
        let mut fields = end_fields(report);
        match &mut self.form {
            Form::Text(text) => {
                let written = text.end(report);
                self.note(written);
            }
            Form::Json(calls) => {
                let mut whole = Map::new();
                whole.insert("version".into(), VERSION.into());
                whole.insert("model".into(), self.model.clone().into());
                whole.append(&mut fields);
                whole.insert("calls".into(), std::mem::take(calls).into());
                let whole = Value::Object(whole);
                self.note(writeln!(io::stdout(), "{whole}"));
            }
            Form::Jsonl(_) => {
                fields.insert("event".into(), "end".into());
                self.line(&Value::Object(fields));
            }
        }
        match self.failure {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Writes a line of JSON lines.
    fn line(&mut self, value: &Value) {
        if let Form::Jsonl(_) = &self.form {
            let mut out = io::stdout().lock();
            let written = writeln!(out, "{value}").and_then(|()| out.flush());
            self.note(written);
        }
    }

    fn note(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && self.failure.is_none()
        {
            self.failure = Some(error);
            self.cancel.cancel();
        }
    }
}

impl Observer for AskOutput {
    fn event(&mut self, event: &ChatEvent<'_>) {
        let written = match &mut self.form {
            Form::Text(text) => text.event(event),
            Form::Json(calls) => {
                if let ChatEvent::Call(Event::Finished { outcome, .. }) = event {
                    calls.push(json!(wire::result(outcome.get())));
                }
                Ok(())
            }
            Form::Jsonl(style) => match event {
                ChatEvent::Call(event) => call_line(style.as_mut(), event),
                other => {
                    let line = chat_line(other);
                    self.line(&line);
                    Ok(())
                }
            },
        };
        self.note(written);
    }
}

/// Returns the line of an event that is not about a call.
fn chat_line(event: &ChatEvent<'_>) -> Value {
    match event {
        ChatEvent::Request(step) => json!({"event": "request", "step": step}),
        ChatEvent::Retry(retry) => json!({
            "event": "retry",
            "code": retry.error.code(),
            "message": retry.error.message,
            "delay_ms": u64::try_from(retry.delay.as_millis()).unwrap_or(u64::MAX),
        }),
        ChatEvent::Reasoning(text) => json!({"event": "reasoning", "text": text}),
        ChatEvent::Text(text) => json!({"event": "text", "text": text}),
        ChatEvent::StepEnded(usage) => json!({"event": "step", "usage": usage_fields(*usage)}),
        ChatEvent::Plan(steps) => {
            let step =
                |step: &PlanStep| json!({"state": step.state.as_str(), "text": step.text.as_str()});
            json!({"event": "plan", "steps": steps.iter().map(step).collect::<Vec<_>>()})
        }
        ChatEvent::CompactionStarted => json!({"event": "compaction"}),
        ChatEvent::Compacted(text) => json!({"event": "compacted", "text": text}),
        ChatEvent::Joined(text) => json!({"event": "joined", "text": text}),
        ChatEvent::Note(text) => json!({"event": "note", "text": text}),
        ChatEvent::Call(_) => Value::Null,
    }
}

fn call_line(style: &mut dyn Style, event: &Event) -> io::Result<()> {
    if let Some(start) = CallStart::of(event) {
        return style.started(&start);
    }
    match event {
        Event::Output { index, id, text } => style.output(&CallOutput {
            index: *index,
            id: id.as_str(),
            text: text.as_str(),
        }),
        Event::Finished { index, outcome } => style.result(*index, outcome.get()),
        Event::Warning(diagnostic) => style.diagnostic(&SeverityDiagnostic {
            severity: Severity::Warning,
            diagnostic: (**diagnostic).clone(),
        }),
        Event::Refused(diagnostic) => style.diagnostic(&SeverityDiagnostic {
            severity: Severity::Error,
            diagnostic: (**diagnostic).clone(),
        }),
        Event::Started { .. }
        | Event::Changes { .. }
        | Event::Prose(_)
        | Event::Unfinished { .. }
        | Event::Jobs { .. }
        | Event::Unreadable
        | Event::Tick
        | Event::MessageEnded { .. } => Ok(()),
    }
}

fn end_fields(report: &TurnReport) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("end".into(), report.end.as_str().into());
    fields.insert("answer".into(), report.answer.clone().into());
    fields.insert("steps".into(), report.steps.into());
    fields.insert("usage".into(), usage_fields(report.usage));
    fields.insert("cost".into(), json!(report.cost));
    match &report.end {
        TurnEnd::ModelFailed(error) => {
            let error = json!({"code": error.code(), "message": error.message, "hint": error.hint});
            fields.insert("error".into(), error);
        }
        TurnEnd::Refused(reason) => {
            fields.insert("reason".into(), reason.clone().into());
        }
        _ if report.needs_approval => {
            fields.insert("reason".into(), "needs_approval".into());
        }
        _ => {}
    }
    fields
}

fn usage_fields(usage: Usage) -> Value {
    json!({
        "input": usage.input,
        "cached": usage.cached,
        "output": usage.output,
        "reasoning": usage.reasoning,
    })
}

/// Prose on standard output, and one line for each call on standard error.
struct TextOutput {
    is_quiet: bool,
    /// True when both are the terminal of a person.
    is_terminal: bool,
    /// True inside a line of prose.
    is_in_line: bool,
    /// True while the line of a running call stands on the terminal.
    has_running_line: bool,
    /// Titles of running calls.
    titles: HashMap<u64, String>,
}

impl TextOutput {
    fn new(is_quiet: bool) -> Self {
        Self {
            is_quiet,
            is_terminal: io::stdout().is_terminal() && io::stderr().is_terminal(),
            is_in_line: false,
            has_running_line: false,
            titles: HashMap::new(),
        }
    }

    fn event(&mut self, event: &ChatEvent<'_>) -> io::Result<()> {
        match event {
            ChatEvent::Text(text) => self.prose(text)?,
            ChatEvent::StepEnded(_) => self.end_line()?,
            ChatEvent::Retry(retry) => {
                let seconds = retry.delay.as_secs_f64();
                let message = safe_line(&retry.error.message).into_owned();
                self.note(&format!("{message}; asking again in {seconds:.1} s"))?;
            }
            ChatEvent::Call(Event::Started {
                index, tool, title, ..
            }) => {
                let named = named(tool, title);
                if self.is_terminal {
                    self.running(&named)?;
                }
                self.titles.insert(*index, named);
            }
            ChatEvent::Call(Event::Finished { index, outcome }) => {
                self.call(*index, outcome.get())?
            }
            // The model gets the warnings of its blocks, too; that an answer has none concerns nobody.
            ChatEvent::Call(Event::Warning(warning)) if warning.code != Code::NoBlock => {
                self.note(&format!("warning: {}", safe_line(&warning.message)))?;
            }
            ChatEvent::Call(Event::Refused(error)) => {
                self.note(&format!("refused: {}", safe_line(&error.message)))?;
            }
            // A request without a conversation gets no further text.
            ChatEvent::Joined(_) => {}
            ChatEvent::Note(text) => self.note(&safe_line(text))?,
            ChatEvent::Call(_)
            | ChatEvent::Request(_)
            | ChatEvent::Reasoning(_)
            | ChatEvent::Plan(_)
            | ChatEvent::CompactionStarted
            | ChatEvent::Compacted(_) => {}
        }
        Ok(())
    }

    fn prose(&mut self, text: &str) -> io::Result<()> {
        if self.is_quiet {
            return Ok(());
        }
        self.clear_running();
        self.is_in_line = !text.ends_with('\n');
        print(text)
    }

    fn end_line(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.is_in_line) {
            true => writeln!(io::stdout()),
            false => Ok(()),
        }
    }

    fn running(&mut self, title: &str) -> io::Result<()> {
        if !self.is_quiet {
            self.end_line()?;
            self.clear_running();
            // A failure shows when the output ends.
            let _ = write!(io::stderr(), "… {title}");
            self.has_running_line = true;
        }
        Ok(())
    }

    fn clear_running(&mut self) {
        if std::mem::take(&mut self.has_running_line) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    fn call(&mut self, index: u64, outcome: &Outcome) -> io::Result<()> {
        let own = || named(&outcome.tool, outcome.title.as_deref().unwrap_or_default());
        let mut line = self.titles.remove(&index).unwrap_or_else(own);
        let status = match (outcome.status, outcome.fields.get("exit_code")) {
            (Status::Failed, Some(code)) => format!("exit {code}"),
            (status, _) => status.as_str().to_owned(),
        };
        line.push_str(&format!(": {status}"));
        if let Some(error) = &outcome.error {
            line.push_str(&format!(", {}", safe_line(&error.message)));
        }
        if outcome.duration_ms >= limits::SHORT_CALL_MS {
            let seconds = outcome.duration_ms / 1000;
            line.push_str(&format!(", {seconds} s"));
        }
        self.note(&line)
    }

    /// Writes a line on standard error.
    fn note(&mut self, line: &str) -> io::Result<()> {
        if self.is_quiet {
            return Ok(());
        }
        self.clear_running();
        if self.is_terminal {
            self.end_line()?;
        }
        let _ = writeln!(io::stderr(), "> {line}");
        Ok(())
    }

    fn end(&mut self, report: &TurnReport) -> io::Result<()> {
        self.clear_running();
        if self.is_quiet && report.end == TurnEnd::Done {
            print(&format!("{}\n", report.answer))?;
        }
        if self.is_terminal && !self.is_quiet {
            let count =
                |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
            let Usage { input, output, .. } = report.usage;
            let cost = report
                .cost
                .map_or("?".to_owned(), |cost| format!("{cost:.4}"));
            let (input, output) = (count(input), count(output));
            let steps = report.steps;
            let _ = writeln!(
                io::stderr(),
                "({steps} requests, {input} tokens in, {output} out, cost {cost})"
            );
        }
        Ok(())
    }
}

/// Prints prose of the model; a terminal gets nothing of it that it would act on.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.is_terminal() {
        true => out.write_all(safe(text).as_bytes())?,
        false => out.write_all(text.as_bytes())?,
    }
    out.flush()
}

/// Returns tool and title of a call, on one line.
fn named(tool: &str, title: &str) -> String {
    let first = title.trim().lines().next().unwrap_or_default();
    let first = safe_line(first);
    let end = first.char_indices().nth(TITLE_CHARS);
    match end {
        Some((end, _)) => format!("{tool} {}…", first.get(..end).unwrap_or_default()),
        None if title.trim().lines().count() > 1 => format!("{tool} {first} …"),
        None => format!("{tool} {first}").trim_end().to_owned(),
    }
}
