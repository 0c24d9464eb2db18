//! The report as text for people at a terminal.
//!
//! Each call has a heading, then its live output, then its result; what was read is one line, and of an output the
//! first and last lines are shown. A spinner appears below a call that is silent for a while, or that has printed a
//! line without its end.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Instant;

use serde_json::{Map, Value};

use crate::render::line_window::LineWindow;
use crate::render::paint::{Colour, Ink, safe, safe_in_colour, safe_line};
use crate::render::spinner::Spinner;
use crate::render::{
    CallOutput, CallStart, SeverityDiagnostic, Style, Summary, call_text, diagnostic, diff_text,
    item_text,
};
use karyi_core::error::ErrorCode;
use karyi_core::limits;
use karyi_core::outcome::{JobNews, JobState, Outcome, ReportStatus, Status};

/// Amount of detail in a text report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Only calls that failed or wait.
    Quiet,
    /// Every call; of texts the ends.
    #[default]
    Normal,
    /// Everything.
    Verbose,
}

/// Numbers of calls without success.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct BadCalls {
    failed: u64,
    not_run: u64,
}

/// Writes text.
pub struct TextReport<W> {
    out: W,
    colour: Colour,
    detail: Detail,
    /// The spinner, when there is a terminal for it.
    spinner: Option<Spinner>,
    /// Index of the next result.
    next_index: u64,
    /// Calls that have started and have no result yet.
    running: Vec<Running>,
    bad: BadCalls,
    /// True when a call was only described.
    is_dry_run: bool,
    /// True when a command was left waiting for input.
    has_waited: bool,
    is_mid_line: bool,
}

struct Running {
    index: u64,
    title: String,
    line_count: usize,
    heading: String,
    label: Option<String>,
    /// Lines of its output.
    window: LineWindow,
    /// The line that has no end yet.
    unfinished: String,
    since: Instant,
    last_output: Instant,
    /// True when its heading is written and its output is live.
    is_live: bool,
}

impl<W: Write> TextReport<W> {
    /// Makes a writer.
    pub fn new(out: W, (colour, detail): (Colour, Detail), spinner: Option<Spinner>) -> Self {
        Self {
            out,
            colour,
            detail,
            spinner,
            next_index: 0,
            running: Vec::new(),
            bad: BadCalls::default(),
            is_dry_run: false,
            has_waited: false,
            is_mid_line: false,
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.hide_spinner()?;
        self.out.write_all(text.as_bytes())?;
        // A colour reset does not occupy a column.
        if let Some(last) = text.trim_end_matches("\x1b[0m").as_bytes().last() {
            self.is_mid_line = *last != b'\n';
        }
        Ok(())
    }

    /// Writes a line. Line breaks in it, as in a file name, are shown as symbols.
    fn line(&mut self, ink: Ink, text: &str) -> io::Result<()> {
        self.lines(ink, &safe_line(text))
    }

    /// Writes a safe text of one or more lines.
    fn lines(&mut self, ink: Ink, text: &str) -> io::Result<()> {
        self.end_line()?;
        let painted = self.colour.paint(ink, text);
        self.write(&painted)?;
        self.write("\n")
    }

    fn end_line(&mut self) -> io::Result<()> {
        if self.is_mid_line {
            self.write("\n")?;
        }
        Ok(())
    }

    fn hide_spinner(&mut self) -> io::Result<()> {
        self.spinner.as_mut().map_or(Ok(()), Spinner::hide)
    }

    /// Writes what runs, with the label beside its first line.
    fn heading(&mut self, heading: &str, title: &str, label: Option<&str>) -> io::Result<()> {
        // The lines of a command belong to it; other titles name files.
        let title = match heading {
            COMMAND_HEADING => below(title),
            _ => safe_line(title).into_owned(),
        };
        let (first, rest) = title.split_once('\n').unwrap_or((&title, ""));
        let label = label.map_or_else(String::new, |label| format!("  # {}", safe_line(label)));
        let rest = if rest.is_empty() {
            String::new()
        } else {
            format!("\n{rest}")
        };
        let line = format!("{heading} {first}");
        self.lines(Ink::Heading, &format!("{}{label}{rest}", line.trim_end()))
    }

    fn window(&self) -> LineWindow {
        LineWindow::new(match self.detail {
            Detail::Quiet | Detail::Normal => limits::SHOWN_LINES,
            Detail::Verbose => usize::MAX,
        })
    }

    /// Writes the end of an output; `hidden` counts lines between that were never there.
    fn end_of(&mut self, window: &mut LineWindow, hidden: u64) -> io::Result<()> {
        let (omitted, last) = window.take_end();
        if omitted + hidden > 0 {
            self.line(Ink::Faint, &format!("... {} lines ...", omitted + hidden))?;
        }
        self.write_output(&last)
    }

    fn write_output(&mut self, text: &str) -> io::Result<()> {
        match self.colour {
            Colour::On => self.write(&safe_in_colour(text)),
            Colour::Off => self.write(&safe(text)),
        }
    }

    /// Writes a text that is known as a whole.
    fn body(&mut self, text: &str, hidden: u64) -> io::Result<()> {
        let mut window = self.window();
        let first = window.push(text);
        self.write(&first)?;
        self.end_of(&mut window, hidden)
    }

    /// Writes the heading of the next call in order, once it runs.
    fn show_next(&mut self) -> io::Result<()> {
        let next = self.next_index;
        if self.detail == Detail::Quiet {
            return Ok(());
        }
        let Some(call) = self
            .running
            .iter_mut()
            .find(|call| call.index == next && !call.is_live && !is_one_line(&call.heading))
        else {
            return Ok(());
        };
        // Earlier output is in the result; showing only the rest would mislead.
        if call.last_output > call.since {
            return Ok(());
        }
        call.is_live = true;
        let (heading, title) = (call.heading.clone(), call.title.clone());
        let label = call.label.clone();
        self.heading(&heading, &title, label.as_deref())?;
        self.out.flush()
    }

    fn ending(&mut self, outcome: &Outcome) -> io::Result<()> {
        self.has_waited = outcome.job_waits.unwrap_or(self.has_waited);
        let seconds = outcome.duration_ms as f64 / 1000.0;
        let time = if outcome.duration_ms < 1000 {
            String::new()
        } else {
            format!(" after {seconds:.1} s")
        };
        let says = match (outcome.status, outcome.fields.get("exit_code")) {
            (Status::Ok, _) if time.is_empty() => None,
            (Status::Ok, _) => Some((Ink::Faint, format!("done{time}"))),
            (Status::Failed, Some(code)) => Some((Ink::Bad, format!("exit status {code}{time}"))),
            (Status::Provided | Status::Saved | Status::Exists, _) => {
                Some((Ink::Good, outcome.status.as_str().to_owned()))
            }
            (Status::AwaitingInput, _) => Some((
                Ink::Warning,
                format!("waits for input{}", echo_note(outcome)),
            )),
            (Status::AcceptsInput, _) => {
                Some((Ink::Warning, format!("goes on and accepts input{time}")))
            }
            (Status::Running, _) => Some((Ink::Warning, format!("still runs{time}"))),
            (status, _) if outcome.error.is_none() => {
                Some((Ink::Bad, format!("{}{time}", status.as_str())))
            }
            _ => None,
        };
        if let Some((ink, text)) = says {
            self.line(ink, &text)?;
        }
        if let Some(error) = outcome
            .error
            .as_ref()
            .filter(|error| error.code != ErrorCode::DryRun)
        {
            self.end_line()?;
            let code = self.colour.paint(
                Ink::Bad,
                &format!("{}[{}]", outcome.status.as_str(), error.code.as_str()),
            );
            self.write(&format!("{code}: {}\n", below(&error.message)))?;
            let hint = diagnostic::hint(&error.hint, self.colour);
            self.write(&hint)?;
        }
        Ok(())
    }

    /// Lists the repairs of the call.
    fn repairs(&mut self, codes: &[&str]) -> io::Result<()> {
        if self.detail == Detail::Verbose {
            for code in codes {
                self.line(Ink::Faint, &format!("note: {}", call_text::repair(code)))?;
            }
        }
        Ok(())
    }

    /// Writes what became of each file: a line each, or one for all when they were read, and diffs below.
    fn files(&mut self, heading: &str, fields: &Map<String, Value>) -> io::Result<()> {
        let list = |name| {
            fields
                .get(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        let items: Vec<&Map<String, Value>> = list("files")
            .chain(list("searches"))
            .filter_map(Value::as_object)
            .collect();
        let is_edit = items.iter().any(|item| item.contains_key("change"));
        if !is_edit {
            let words: Vec<String> = items.iter().map(|item| item_text::words(item)).collect();
            self.lines(Ink::Heading, &format!("{heading} {}", words.join(", ")))?;
        }
        for item in &items {
            if is_edit {
                self.lines(
                    Ink::Heading,
                    &format!("{heading} {}", item_text::words(item)),
                )?;
            } else if self.detail == Detail::Verbose && items.len() > 1 {
                self.lines(Ink::Faint, &format!("{}:", item_text::words(item)))?;
            }
            let text = |name| item.get(name).and_then(Value::as_str);
            if let Some(diff) = text("diff") {
                let painted = diff_text::paint(diff, self.colour);
                let hidden = item.get("diff_omitted_lines").and_then(Value::as_u64);
                self.body(&painted, hidden.unwrap_or(0))?;
            }
            if let Some(output) = text("output").filter(|_| self.detail == Detail::Verbose) {
                self.numbered(output, item.get("first_line").and_then(Value::as_u64))?;
            }
            if let (Some(message), true) = (text("message"), items.len() > 1) {
                self.lines(Ink::Bad, &below(message))?;
            }
        }
        Ok(())
    }

    /// Writes the fields of a result: words first, then lists and texts.
    fn fields(&mut self, fields: &Map<String, Value>) -> io::Result<()> {
        let mut words = Vec::new();
        for (key, value) in fields {
            match value {
                Value::Array(_) | Value::Object(_) | Value::Null => {}
                _ if TEXTS.contains(&key.as_str()) || HIDDEN.contains(&key.as_str()) => {}
                Value::String(word) if PLAIN.contains(&key.as_str()) => {
                    words.push(format!("{key} {}", below(word)));
                }
                Value::String(word) => words.push(format!("{key} {}", safe_line(word))),
                Value::Bool(_) | Value::Number(_) => words.push(format!("{key} {value}")),
            }
        }
        if !words.is_empty() {
            self.lines(Ink::Faint, &words.join(" · "))?;
        }
        for (key, value) in fields {
            match value {
                Value::Array(_) if FILES.contains(&key.as_str()) => {}
                Value::Array(items) => {
                    for item in items {
                        self.item(key, item)?;
                    }
                }
                Value::Object(map) => self.fields(map)?,
                Value::String(text) if TEXTS.contains(&key.as_str()) => {
                    self.body(&safe(text), 0)?
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn item(&mut self, key: &str, item: &Value) -> io::Result<()> {
        match item {
            Value::Object(map) => self.fields(map),
            Value::String(word) => self.line(Ink::Faint, &format!("{key}: {word}")),
            other => self.line(Ink::Faint, &format!("{key}: {other}")),
        }
    }

    fn numbered(&mut self, text: &str, first_line: Option<u64>) -> io::Result<()> {
        self.end_line()?;
        let Some(first) = first_line else {
            return self.write(&safe(text));
        };
        for (number, line) in (first..).zip(text.lines()) {
            let number = self.colour.paint(Ink::Faint, &format!("{number:>6}"));
            self.write(&format!("{number}  {}\n", safe(line)))?;
        }
        Ok(())
    }
}

/// Prefix of a command's heading.
const COMMAND_HEADING: &str = "$";

/// Fields in words, which may have several lines.
const PLAIN: &[&str] = &["message", "hint", "warning"];

/// Makes a text safe and indents its further lines, so that none looks like a line of the report.
fn below(text: &str) -> String {
    safe(text).replace('\n', "\n  ")
}

/// Fields whose content is already in the heading or the ending, or that only a model needs.
const HIDDEN: &[&str] = &["exit_code", "cwd", "echo", "name", "key", "label", "hint"];

/// Lists that the heading describes.
const FILES: &[&str] = &["files", "searches"];

/// Fields with texts of several lines.
const TEXTS: &[&str] = &["output", "text", "body"];

/// Returns true for calls whose heading says what they found, so that it comes with their result.
fn is_one_line(heading: &str) -> bool {
    ["> read", "> edit"].contains(&heading)
}

/// Describes the state of a job in one line.
fn job_line(job: &JobNews) -> String {
    let place = if job.is_background {
        " in the background"
    } else {
        ""
    };
    let age = job.age_ms as f64 / 1000.0;
    let state = match (job.state, job.signal, job.exit_code) {
        (JobState::Killed, Some(signal), _) => format!("still ran and was ended with {signal}"),
        (JobState::Ended, _, Some(code)) => format!("has ended with exit status {code}"),
        (JobState::Ended, _, None) => "has ended".to_owned(),
        (JobState::AwaitingInput, ..) => "waits for input".to_owned(),
        (JobState::AcceptsInput, ..) => "goes on and accepts input".to_owned(),
        (JobState::Stopped, ..) => "is stopped".to_owned(),
        (JobState::Running | JobState::Killed, ..) => format!("runs since {age:.1} s"),
    };
    let last = job
        .last_line
        .as_ref()
        .map_or_else(String::new, |line| format!(": {line}"));
    let line = format!("job {} ({}){place} {state}{last}", job.id, job.command);
    safe_line(&line).into_owned()
}

fn echo_note(outcome: &Outcome) -> &'static str {
    match outcome.fields.get("echo").and_then(Value::as_str) {
        Some("off") => " (what is typed is not shown)",
        _ => "",
    }
}

impl<W: Write> TextReport<W> {
    /// Writes the heading and the output of a call that was not shown while it ran.
    fn whole(&mut self, call: Option<Running>, outcome: &Outcome) -> io::Result<()> {
        let title = outcome.fields.get("title").and_then(Value::as_str);
        let title = title.or(outcome.title.as_deref());
        let (heading, title, label) = match call {
            Some(call) => (call.heading, call.title, call.label),
            None => {
                let heading = match outcome.tool.as_str() {
                    "command" => COMMAND_HEADING.to_owned(),
                    tool => format!("> {tool}"),
                };
                let label = outcome.fields.get("label").and_then(Value::as_str);
                (
                    heading,
                    title.unwrap_or_default().to_owned(),
                    label.map(str::to_owned),
                )
            }
        };
        let has_files = FILES.iter().any(|list| outcome.fields.contains_key(*list));
        match has_files && is_one_line(&heading) {
            true => self.files(&heading, &outcome.fields)?,
            false => self.heading(&heading, &title, label.as_deref())?,
        }
        match &outcome.output {
            Some(view) => self.body(&safe(&view.text), view.omitted_lines.saturating_sub(1)),
            None => Ok(()),
        }
    }
}

impl<W: Write> Style for TextReport<W> {
    fn started(&mut self, call: &CallStart<'_>) -> io::Result<()> {
        let now = Instant::now();
        self.running.push(Running {
            index: call.index,
            title: call.title.to_owned(),
            line_count: call.line_count,
            label: call.label.map(str::to_owned),
            window: self.window(),
            unfinished: String::new(),
            heading: call.heading.to_owned(),
            since: now,
            last_output: now,
            is_live: false,
        });
        self.show_next()
    }

    fn output(&mut self, output: &CallOutput<'_>) -> io::Result<()> {
        let Some(call) = self
            .running
            .iter_mut()
            .find(|call| call.index == output.index)
        else {
            return Ok(());
        };
        call.last_output = Instant::now();
        call.unfinished.clear();
        if !call.is_live {
            return Ok(());
        }
        let first = call.window.push(output.text);
        self.write_output(&first)?;
        self.out.flush()
    }

    fn result(&mut self, index: u64, outcome: &Outcome) -> io::Result<()> {
        let position = self.running.iter().position(|call| call.index == index);
        let call = position.map(|position| self.running.swap_remove(position));
        self.next_index = index + 1;
        let is_bad = outcome.status.is_failure() && !outcome.status.goes_on();
        let is_planned = outcome
            .error
            .as_ref()
            .is_some_and(|error| error.code == ErrorCode::DryRun);
        self.is_dry_run |= is_planned;
        let is_started = outcome.title.is_none();
        self.bad.failed += u64::from(is_bad && is_started && !is_planned);
        self.bad.not_run += u64::from(is_bad && !is_started);
        let is_quiet = self.detail == Detail::Quiet;
        if is_quiet && !is_bad && !outcome.status.goes_on() {
            return Ok(());
        }
        let mut fields = Cow::Borrowed(&outcome.fields);
        match call {
            Some(mut call) if call.is_live => self.end_of(&mut call.window, 0)?,
            Some(call) => self.whole(Some(call), outcome)?,
            None => {
                self.whole(None, outcome)?;
                // It is in the heading.
                fields.to_mut().shift_remove("title");
            }
        }
        self.end_line()?;
        self.fields(&fields)?;
        self.repairs(&outcome.repairs)?;
        self.ending(outcome)?;
        self.show_next()?;
        self.out.flush()
    }

    fn diagnostic(&mut self, noted: &SeverityDiagnostic) -> io::Result<()> {
        self.end_line()?;
        let lines = diagnostic::text(noted, self.colour);
        self.write(&lines)?;
        self.out.flush()
    }

    fn unfinished(&mut self, index: u64, line: &str) -> io::Result<()> {
        let call = self.running.iter_mut().find(|call| call.index == index);
        let (Some(call), Some(spinner), false) = (call, &mut self.spinner, self.is_mid_line) else {
            return Ok(());
        };
        line.clone_into(&mut call.unfinished);
        match line {
            "" => spinner.hide(),
            line => spinner.show_change(self.colour, call.since, line),
        }
    }

    fn tick(&mut self) -> io::Result<()> {
        let is_open = |call: &&Running| !call.unfinished.is_empty();
        let mut calls = self.running.iter();
        let call = calls.clone().find(is_open).or_else(|| calls.next());
        let (Some(call), Some(spinner), false) = (call, &mut self.spinner, self.is_mid_line) else {
            return Ok(());
        };
        if spinner.is_fresh() {
            return Ok(());
        }
        if is_open(&call) {
            return spinner.show(self.colour, call.since, (&call.unfinished, ""));
        }
        if call.last_output.elapsed() < limits::SPINNER_DELAY {
            return Ok(());
        }
        let first = call.title.lines().next().unwrap_or_default();
        let end = match call.line_count {
            0 | 1 => String::new(),
            2 => " (+1 line)".to_owned(),
            lines => format!(" (+{} lines)", lines - 1),
        };
        let label = call.label.as_ref().map(|label| format!("  # {label}"));
        let end = end + &label.unwrap_or_default();
        spinner.show(self.colour, call.since, (first, &end))
    }

    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        self.end_line()?;
        for job in summary.jobs {
            self.line(Ink::Warning, &job_line(job))?;
        }
        if let Some(note) = summary.note {
            self.line(Ink::Faint, note)?;
        }
        let calls = summary.calls;
        match summary.status {
            ReportStatus::Ok if self.is_dry_run => {
                self.line(Ink::Faint, "dry run: nothing was run or changed")?;
            }
            ReportStatus::Ok => {}
            ReportStatus::Failed if self.bad == BadCalls::default() => {}
            ReportStatus::Failed | ReportStatus::Bug => self.line(
                Ink::Bad,
                &match (self.bad.failed, self.bad.not_run) {
                    (failed, 0) => format!("{failed} of {calls} calls failed"),
                    (0, not_run) => format!("{not_run} of {calls} calls did not run"),
                    (failed, not_run) => {
                        format!("{failed} of {calls} calls failed, {not_run} did not run")
                    }
                },
            )?,
            ReportStatus::Refused => self.line(Ink::Bad, "refused: see above")?,
            ReportStatus::NeedsInput if self.has_waited => self.line(
                Ink::Warning,
                "a command was left waiting for input: put <input>ANSWER</input> after it",
            )?,
            ReportStatus::NeedsInput => self.line(
                Ink::Warning,
                "an answer is needed and nobody could be asked",
            )?,
            ReportStatus::Interrupted => self.line(Ink::Warning, "interrupted")?,
        }
        self.out.flush()
    }
}
