//! `karyi parse`: shows the calls of a message, or the error in it, without running anything.
//!
//! Calls go to stdout; warnings, repairs and the diagnostic go to stderr, so that stdout is one JSON value
//! or a plain list. The plain list is written call by call. JSON is written at the end, since only then it
//! is known whether it is a list or an error object; until then calls are stored as JSON.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Stderr, Stdout, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Map, Value};

use crate::cli::args::ParseArgs;
use crate::cli::run::{CHUNK_BYTES, Input, is_broken_pipe, open};
use crate::cli::screen::colour;
use crate::cli::{BROKEN_PIPE, USAGE, fail};
use crate::render::call_list::{self, CallList};
use crate::render::call_text::{self, CallText};
use crate::render::paint::{Colour, Ink, safe_line};
use crate::render::{SeverityDiagnostic, diagnostic};
use crate::tool::Registry;
use crate::tools::Call;
use karyi_core::call::RawCall;
use karyi_core::error::{Diagnostic, Severity};
use karyi_core::limits::MAX_AFTER_ERROR_BYTES;
use karyi_syntax::{Event, Mode, Parser};

/// Runs `karyi parse`.
pub(super) fn parse(args: &ParseArgs) -> ExitCode {
    match listed(args) {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(USAGE),
        Err(error) if is_broken_pipe(&error) => ExitCode::from(BROKEN_PIPE),
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// Writes the list; returns true when the message was refused.
fn listed(args: &ParseArgs) -> anyhow::Result<bool> {
    let mut input = input(args.file.as_deref())?;
    let mut listing = Listing::new(args)?;
    let chunk = args.chunk.and_then(|bytes| usize::try_from(bytes).ok());
    let chunk = chunk.unwrap_or(CHUNK_BYTES);
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut after_error = 0;
    loop {
        let length = match input.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result.context("reading the text")?,
        };
        let bytes = buffer.get(..length).unwrap_or_default();
        for piece in bytes.chunks(chunk) {
            listing.feed(piece)?;
        }
        after_error = listing.refusal.as_ref().map_or(0, |_| after_error + length);
        if length == 0 || after_error > MAX_AFTER_ERROR_BYTES {
            break;
        }
    }
    listing.finish()
}

fn input(file: Option<&Path>) -> anyhow::Result<Source> {
    let Some(path) = file else {
        if io::stdin().is_terminal() {
            anyhow::bail!("no text: name a file, or pipe it in (see `karyi parse --help`)");
        }
        return Ok(Source::Stdin(io::stdin()));
    };
    match open(path)? {
        Input::File(_, file) => Ok(Source::File(file)),
        Input::Text(_) | Input::Stdin => Ok(Source::Stdin(io::stdin())),
    }
}

/// Source of the message.
enum Source {
    File(File),
    Stdin(io::Stdin),
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Stdin(stdin) => stdin.read(buffer),
        }
    }
}

/// The list of calls in progress.
struct Listing {
    registry: Registry<Call>,
    parser: Parser,
    events: Vec<Event>,
    calls: Calls,
    notes: Stderr,
    colour: Colour,
    refusal: Option<Box<Diagnostic>>,
    has_calls: bool,
    is_binary: bool,
}

/// Output of the calls.
enum Calls {
    /// Written at once, for people.
    Text(CallText<BufWriter<Stdout>>),
    /// Written at the end.
    Json(CallList),
}

impl Listing {
    fn new(args: &ParseArgs) -> anyhow::Result<Self> {
        let registry = args.offer.offer()?.registry();
        let mode = if args.strict {
            Mode::Strict
        } else {
            Mode::Repair
        };
        let out = || BufWriter::new(io::stdout());
        Ok(Self {
            parser: Parser::new(Arc::new(registry.grammar()), mode),
            registry,
            events: Vec::new(),
            calls: match args.json {
                true => Calls::Json(CallList::default()),
                false => Calls::Text(CallText::new(out(), colour(&io::stdout()))),
            },
            notes: io::stderr(),
            colour: colour(&io::stderr()),
            refusal: None,
            has_calls: false,
            is_binary: false,
        })
    }

    fn feed(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.is_binary |= memchr::memchr(0, bytes).is_some();
        self.parser.feed(bytes, &mut self.events);
        self.write_items()
    }

    /// Writes the decoded items; after an error only those that follow a draft.
    fn write_items(&mut self) -> anyhow::Result<()> {
        for event in std::mem::take(&mut self.events) {
            if self.refusal.is_some() && event != Event::DraftsEnded {
                continue;
            }
            match event {
                Event::BlockOpened { .. } | Event::BlockClosed => {}
                Event::DraftsEnded => self.forget_calls(),
                Event::Call(call) => self.call(&call)?,
                Event::Warning(diagnostic) => self.note(Severity::Warning, diagnostic)?,
                Event::Error(diagnostic) => self.refusal = Some(Box::new(diagnostic)),
            }
        }
        self.flush()
    }

    fn call(&mut self, raw: &RawCall) -> anyhow::Result<()> {
        let map = match self.read(raw) {
            Ok(map) => map,
            Err(mut diagnostic) => {
                diagnostic.is_in_json = self.parser.is_envelope();
                self.refusal = Some(diagnostic);
                return Ok(());
            }
        };
        self.has_calls = true;
        match &mut self.calls {
            Calls::Text(text) => text.call(&raw.id, &raw.element.name, &map)?,
            Calls::Json(list) => list.push(&map)?,
        }
        for code in &raw.repairs {
            self.repair(raw, code)?;
        }
        Ok(())
    }

    /// Leaves drafts out of the list. What was written stays: the warning tells of it.
    fn forget_calls(&mut self) {
        self.refusal = None;
        if let Calls::Json(list) = &mut self.calls {
            *list = CallList::default();
        }
    }

    /// Checks a call as a run would and returns it as JSON; for people without the fields in its heading.
    fn read(&self, raw: &RawCall) -> Result<Map<String, Value>, Box<Diagnostic>> {
        self.registry.decode(raw)?;
        let Some(entry) = self.registry.get(&raw.element.name) else {
            return Ok(Map::new());
        };
        let mut map = call_list::call(raw, entry)?;
        if let Calls::Text(_) = self.calls {
            map.shift_remove("type");
            map.shift_remove("id");
        }
        Ok(map)
    }

    fn repair(&mut self, raw: &RawCall, code: &str) -> anyhow::Result<()> {
        self.flush()?;
        let head = self
            .colour
            .paint(Ink::Warning, &format!("repaired[{code}]"));
        let (id, tool) = (safe_line(&raw.id), &raw.element.name);
        let line = format!("{head}: call {id}, {tool}: {}\n", call_text::repair(code));
        write_stderr(&mut self.notes, &line);
        Ok(())
    }

    fn note(&mut self, severity: Severity, diagnostic: Diagnostic) -> anyhow::Result<()> {
        self.flush()?;
        let noted = SeverityDiagnostic {
            severity,
            diagnostic,
        };
        write_stderr(&mut self.notes, &diagnostic::text(&noted, self.colour));
        Ok(())
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if let Calls::Text(text) = &mut self.calls {
            text.out().flush()?;
        }
        Ok(())
    }

    /// Ends the message; returns true when it was refused.
    fn finish(mut self) -> anyhow::Result<bool> {
        self.parser.finish(&mut self.events);
        self.write_items()?;
        let refusal = self.refusal.take();
        match &mut self.calls {
            Calls::Json(list) => {
                let mut out = BufWriter::new(io::stdout());
                list.write(&mut out, refusal.as_deref())?;
                out.flush()?;
            }
            Calls::Text(text) if !self.has_calls && refusal.is_none() => {
                text.nothing()?;
                if self.is_binary {
                    write_stderr(
                        &mut self.notes,
                        "note: the text contains NUL bytes; is it text?\n",
                    );
                }
            }
            Calls::Text(_) => {}
        }
        self.flush()?;
        let is_refused = refusal.is_some();
        if let Some(diagnostic) = refusal {
            self.note(Severity::Error, *diagnostic)?;
        }
        Ok(is_refused)
    }
}

/// Writes to stderr; a failure cannot be reported.
fn write_stderr(notes: &mut Stderr, text: &str) {
    let _ = notes.write_all(text.as_bytes());
}
