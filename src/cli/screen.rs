//! The thread that writes the report, the only writer to stdout.
//!
//! Its channel is bounded, so that a slow reader slows the command down instead of filling the memory.

use std::io::{self, BufWriter, IsTerminal};
use std::os::fd::AsFd;
use std::path::PathBuf;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::cli::terminal_lock::{ReportEvent, TerminalLock};
use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::render::json::Json;
use crate::render::jsonl::Jsonl;
use crate::render::paint::Colour;
use crate::render::spinner::Spinner;
use crate::render::text_report::{Detail, TextReport};
use crate::render::xml::Xml;
use crate::render::{Format, Reporter, Style};
use crate::tool::context::ShownTexts;
use karyi_core::limits;
use karyi_core::outcome::Tally;

/// How a report is shown.
pub(super) struct Shown {
    pub(super) format: Format,
    /// Directory of the session.
    pub(super) cwd: PathBuf,
    /// Limits of its texts.
    pub(super) texts: ShownTexts,
    pub(super) colour: Colour,
    pub(super) detail: Detail,
    /// Called when the first call starts.
    pub(super) on_start: Option<Box<dyn FnOnce() + Send>>,
}

/// The report of one message.
pub(super) struct Screen {
    done: oneshot::Receiver<io::Result<Tally>>,
    cancel: Cancel,
}

impl Screen {
    /// Starts the thread; events go into the sender.  The run is cancelled when stdout is closed.
    ///
    /// Must be called within a runtime that lives as long as the report.
    pub(super) fn open(
        shown: Shown,
        cancel: Cancel,
        terminal_lock: TerminalLock,
    ) -> io::Result<(Self, mpsc::Sender<ReportEvent>)> {
        let (sender, receiver) = mpsc::channel(limits::CHANNEL_DEPTH);
        terminal_lock.attach_report(&sender);
        let runtime = Handle::current();
        let (finished, done) = oneshot::channel();
        let stop = cancel.clone();
        std::thread::Builder::new()
            .name("report".into())
            .spawn(move || {
                let guard = CancelOnPanic(stop);
                let _ = finished.send(runtime.block_on(report(
                    shown,
                    receiver,
                    &guard.0,
                    &terminal_lock,
                )));
            })?;
        Ok((Self { done, cancel }, sender))
    }

    /// Waits for the end of the report; after cancellation only for a moment.
    pub(super) async fn close(self) -> io::Result<Tally> {
        tokio::select! {
            biased;
            result = self.done => result.unwrap_or_else(|_| Ok(broken())),
            () = self.cancel.cancelled_for(limits::CANCEL_GRACE) => Ok(Tally::default()),
        }
    }
}

/// Cancels the run when the report, or the run itself, panics.
pub(super) struct CancelOnPanic(pub(super) Cancel);

impl Drop for CancelOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}

/// Returns the tally of a report that panicked.
fn broken() -> Tally {
    let mut tally = Tally::default();
    tally.add_bug();
    tally
}

/// Returns true when the report has a spinner, which needs ticks.
pub(super) fn has_spinner(format: Format, detail: Detail) -> bool {
    format == Format::Text
        && detail != Detail::Quiet
        && io::stdout().is_terminal()
        && io::stderr().is_terminal()
        && !is_dumb()
}

/// Returns the width of the terminal.
fn columns() -> usize {
    let (columns, _) = crossterm::terminal::size().unwrap_or_default();
    match columns {
        // A terminal that does not know its size.
        0 => limits::DEFAULT_COLUMNS,
        columns => columns.into(),
    }
}

async fn report(
    mut shown: Shown,
    mut events: mpsc::Receiver<ReportEvent>,
    cancel: &Cancel,
    terminal_lock: &TerminalLock,
) -> io::Result<Tally> {
    let mut reporter = Reporter::new(style(&shown), shown.texts.report_bytes);
    let mut failure = None;
    let mut write = |event: ReportEvent| {
        let is_last = matches!(event.get(), Event::MessageEnded { .. });
        let is_output = matches!(event.get(), Event::Output { .. });
        let starts = matches!(event.get(), Event::Started { .. });
        if let Some(start) = shown.on_start.take_if(|_| starts) {
            start();
        }
        if failure.is_none()
            && let Err(error) = reporter.event(event)
        {
            cancel.cancel();
            failure = Some(error);
        }
        // The lines between the ends of an output are not written, so no write fails.
        if failure.is_none() && is_output && reader_left() {
            cancel.cancel();
            failure = Some(io::ErrorKind::BrokenPipe.into());
        }
        is_last
    };
    while terminal_lock.next(&mut events, &mut write).await == Some(false) {}
    match failure {
        Some(error) => Err(error),
        None => reporter.finish(),
    }
}

fn style(shown: &Shown) -> Box<dyn Style + Send> {
    let out = BufWriter::with_capacity(limits::REPORT_BUFFER_BYTES, io::stdout());
    match shown.format {
        Format::Xml => Box::new(Xml::new(out, shown.cwd.to_string_lossy().into_owned())),
        Format::Json => Box::new(Json::new(out)),
        Format::Jsonl => Box::new(Jsonl::new(
            out,
            (shown.texts.output_bytes, shown.texts.report_bytes),
        )),
        Format::Text => {
            let spinner = has_spinner(shown.format, shown.detail)
                .then(|| Spinner::new(Box::new(io::stderr()), columns));
            Box::new(TextReport::new(out, (shown.colour, shown.detail), spinner))
        }
    }
}

/// Returns true when nobody reads standard output any more.
fn reader_left() -> bool {
    let stdout = io::stdout();
    let mut polled = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let is_polled = poll(&mut polled, PollTimeout::ZERO).is_ok();
    let [stdout] = polled;
    let gone = PollFlags::POLLERR | PollFlags::POLLHUP;
    is_polled
        && stdout
            .revents()
            .is_some_and(|events| events.intersects(gone))
}

/// Returns true when the terminal can only print.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Uses colours on terminals, unless NO_COLOR is set or the terminal is dumb.
pub(super) fn colour(out: &impl IsTerminal) -> Colour {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if out.is_terminal() && !is_refused && !is_dumb() {
        Colour::On
    } else {
        Colour::Off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_cancels_the_run_and_nothing_else_does() {
        let cancel = Cancel::default();
        drop(CancelOnPanic(cancel.clone()));
        assert!(!cancel.is_cancelled());
        let guard = CancelOnPanic(cancel.clone());
        let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = guard;
            std::panic::resume_unwind(Box::new(()));
        }));
        assert!(broken.is_err() && cancel.is_cancelled());
    }
}
