//! The report as text for people at a terminal.
//!
//! Each call has a heading, then its live output, then its result. A spinner with the elapsed time appears below
//! a call that is silent for a while; it is erased before anything else is written.

use std::io::{self, Write};
use std::time::Instant;

use serde_json::{Map, Value};

use crate::render::paint::{Colour, Ink, safe, safe_in_colour, safe_line};
use crate::render::{
    CallOutput, CallStart, SeverityDiagnostic, Style, Summary, diagnostic, diff_text,
};
use karyi_core::limits;
use karyi_core::outcome::{JobNews, JobState, Outcome, ReportStatus, Status};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Moves the cursor to the start of the line and clears it.
const CLEAR_LINE: &[u8] = b"\r\x1b[2K";

/// Writes text.
pub struct TextReport<W> {
    out: W,
    colour: Colour,
    /// The terminal for the spinner, when there is one.
    spinner: Option<Box<dyn Write + Send>>,
    spinner_is_shown: bool,
    spinner_step: usize,
    /// Index of the next result.
    next_index: u64,
    /// Calls that have started and have no result yet.
    running: Vec<Running>,
    failed: u64,
    /// True when a command was left waiting for input.
    has_waited: bool,
    is_mid_line: bool,
}

struct Running {
    index: u64,
    title: String,
    heading: String,
    since: Instant,
    last_output: Instant,
    /// True when its heading is written and its output is live.
    is_live: bool,
}

impl<W: Write> TextReport<W> {
    /// Makes a writer; `spinner` is the terminal to draw the spinner on.
    pub fn new(out: W, colour: Colour, spinner: Option<Box<dyn Write + Send>>) -> Self {
        Self {
            out,
            colour,
            spinner,
            spinner_is_shown: false,
            spinner_step: 0,
            next_index: 0,
            running: Vec::new(),
            failed: 0,
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
        if let Some(spinner) = &mut self.spinner
            && std::mem::take(&mut self.spinner_is_shown)
        {
            spinner.write_all(CLEAR_LINE)?;
            spinner.flush()?;
        }
        Ok(())
    }

    fn heading(&mut self, heading: &str, title: &str) -> io::Result<()> {
        // The lines of a command belong to it; other titles name files.
        let title = match heading {
            COMMAND_HEADING => safe(title),
            _ => safe_line(title),
        };
        self.lines(Ink::Heading, format!("{heading} {title}").trim_end())
    }

    /// Writes the heading of the next call in order, once it runs.
    fn show_next(&mut self) -> io::Result<()> {
        let next = self.next_index;
        let Some(call) = self
            .running
            .iter_mut()
            .find(|call| call.index == next && !call.is_live)
        else {
            return Ok(());
        };
        // Earlier output is in the result; showing only the rest would mislead.
        if call.last_output > call.since {
            return Ok(());
        }
        call.is_live = true;
        let (heading, title) = (call.heading.clone(), call.title.clone());
        self.heading(&heading, &title)?;
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
        if let Some(error) = &outcome.error {
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
        match codes.is_empty() {
            true => Ok(()),
            false => self.line(Ink::Faint, &format!("repaired {}", codes.join(", "))),
        }
    }

    /// Writes the fields of a result: texts unchanged, numbered where the first line number is known; the others in
    /// words.
    fn fields(&mut self, fields: &Map<String, Value>) -> io::Result<()> {
        let mut words = Vec::new();
        let mut diff = None;
        for (key, value) in fields {
            match value {
                Value::Array(items) => {
                    for item in items {
                        self.item(key, item)?;
                    }
                }
                Value::Object(map) => self.fields(map)?,
                Value::String(text) if key == "output" || key == "text" => {
                    self.numbered(text, fields.get("first_line").and_then(Value::as_u64))?;
                }
                Value::String(text) if key == "diff" => diff = Some(text),
                Value::Null => {}
                _ if HIDDEN.contains(&key.as_str()) => {}
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
        match diff {
            Some(diff) => self.write(&diff_text::paint(diff, self.colour)),
            None => Ok(()),
        }
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

/// Fields whose content is already in the ending.
const HIDDEN: &[&str] = &[
    "exit_code",
    "cwd",
    "echo",
    "name",
    "key",
    "first_line",
    "lines",
];

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

impl<W: Write> Style for TextReport<W> {
    fn started(&mut self, call: &CallStart<'_>) -> io::Result<()> {
        let now = Instant::now();
        self.running.push(Running {
            index: call.index,
            title: call.title.to_owned(),
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
        if !call.is_live {
            return Ok(());
        }
        match self.colour {
            Colour::On => self.write(&safe_in_colour(output.text))?,
            Colour::Off => self.write(&safe(output.text))?,
        }
        self.out.flush()
    }

    fn result(&mut self, index: u64, outcome: &Outcome) -> io::Result<()> {
        let position = self.running.iter().position(|call| call.index == index);
        let call = position.map(|position| self.running.swap_remove(position));
        let is_live = call.as_ref().is_some_and(|call| call.is_live);
        if !is_live {
            let (heading, title) = match call {
                Some(call) => (call.heading, call.title),
                None => (format!("> {}", outcome.tool), String::new()),
            };
            self.heading(&heading, &title)?;
            if let Some(view) = &outcome.output {
                self.write(&safe(&view.text))?;
            }
        }
        self.end_line()?;
        self.fields(&outcome.fields)?;
        self.repairs(&outcome.repairs)?;
        self.ending(outcome)?;
        self.failed += u64::from(outcome.status.is_failure());
        self.next_index = index + 1;
        self.show_next()?;
        self.out.flush()
    }

    fn diagnostic(&mut self, noted: &SeverityDiagnostic) -> io::Result<()> {
        self.end_line()?;
        let lines = diagnostic::text(noted, self.colour);
        self.write(&lines)?;
        self.out.flush()
    }

    fn tick(&mut self) -> io::Result<()> {
        if self.is_mid_line {
            return Ok(());
        }
        let Some(call) = self.running.first() else {
            return Ok(());
        };
        if call.last_output.elapsed() < limits::SPINNER_DELAY {
            return Ok(());
        }
        let seconds = call.since.elapsed().as_secs();
        let title: String = call.title.chars().take(60).collect();
        let picture = SPINNER[self.spinner_step % SPINNER.len()];
        let text = self.colour.paint(
            Ink::Faint,
            &format!("{picture} {seconds} s  {}", safe(&title)),
        );
        self.spinner_step += 1;
        if let Some(spinner) = &mut self.spinner {
            spinner.write_all(CLEAR_LINE)?;
            spinner.write_all(text.as_bytes())?;
            spinner.flush()?;
            self.spinner_is_shown = true;
        }
        Ok(())
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
            ReportStatus::Ok => {}
            ReportStatus::Failed if self.failed == 0 => {}
            ReportStatus::Failed | ReportStatus::Bug => self.line(
                Ink::Bad,
                &format!(
                    "{} of {calls} calls failed or outlived their time",
                    self.failed
                ),
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
