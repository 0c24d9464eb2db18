//! The thread that writes the report.
//!
//! It alone writes to stdout. Its channel is bounded, so that a slow reader slows the command down
//! instead of filling the memory.

use std::io::{self, BufWriter, IsTerminal};
use std::thread::JoinHandle;

use tokio::sync::mpsc;

use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::limits;
use crate::outcome::Tally;
use crate::render::json::Json;
use crate::render::jsonl::Jsonl;
use crate::render::paint::Colour;
use crate::render::text::Text;
use crate::render::xml::Xml;
use crate::render::{Format, Reporter, Style};

/// The screen of one message.
pub(super) struct Screen {
    thread: JoinHandle<io::Result<Tally>>,
}

impl Screen {
    /// Starts the thread; events go into the sender. When stdout is gone the run is cancelled.
    pub(super) fn open(format: Format, cancel: Cancel) -> io::Result<(Self, mpsc::Sender<Event>)> {
        let (sender, receiver) = mpsc::channel(limits::CHANNEL_DEPTH);
        let thread = std::thread::Builder::new()
            .name("report".into())
            .spawn(move || report(format, receiver, &cancel))?;
        Ok((Self { thread }, sender))
    }

    /// Waits for the end of the report.
    pub(super) fn close(self) -> io::Result<Tally> {
        match self.thread.join() {
            Ok(result) => result,
            Err(_) => Err(io::Error::other("the report could not be finished")),
        }
    }
}

/// Whether time must be told, so that a spinner can move.
pub(super) fn wants_ticks(format: Format) -> bool {
    format == Format::Text && io::stdout().is_terminal() && io::stderr().is_terminal()
}

fn report(format: Format, mut events: mpsc::Receiver<Event>, cancel: &Cancel) -> io::Result<Tally> {
    let mut reporter = Reporter::new(style(format));
    let mut failure = None;
    while let Some(event) = events.blocking_recv() {
        if matches!(event, Event::MessageEnded) {
            break;
        }
        if failure.is_some() {
            continue;
        }
        if let Err(error) = reporter.event(event) {
            cancel.cancel();
            failure = Some(error);
        }
    }
    match failure {
        Some(error) => Err(error),
        None => reporter.finish(),
    }
}

fn style(format: Format) -> Box<dyn Style + Send> {
    let out = BufWriter::new(io::stdout());
    match format {
        Format::Xml => Box::new(Xml::new(out)),
        Format::Json => Box::new(Json::new(out)),
        Format::Jsonl => Box::new(Jsonl::new(out)),
        Format::Text => {
            let spinner =
                wants_ticks(format).then(|| Box::new(io::stderr()) as Box<dyn io::Write + Send>);
            Box::new(Text::new(out, colour(), spinner))
        }
    }
}

/// Colours are for terminals, unless NO_COLOR is set or the terminal is dumb.
fn colour() -> Colour {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if io::stdout().is_terminal() && !is_refused && !is_dumb {
        Colour::On
    } else {
        Colour::Off
    }
}
