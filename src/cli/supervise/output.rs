//! Output of `karyi supervise`: what the user is told on standard output, problems on standard error, progress there
//! when it is a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::cli::{log, say};
use crate::exec::cancel::Cancel;
use crate::render::paint::{safe, safe_json, safe_line};
use crate::supervisor::announcer::TakeNotice;
use crate::supervisor::notice::{Audience, Notice};

/// Prints notices.
pub(super) struct NoticeOutput {
    is_json: bool,
    shows_progress: bool,
    /// Ends the supervisor when its output cannot be written.
    stop: Cancel,
    failure: OutputFailure,
}

/// Set when the output could not be written.
pub(super) type OutputFailure = Arc<OnceLock<()>>;

impl NoticeOutput {
    pub(super) fn new(is_json: bool, stop: Cancel) -> Self {
        Self {
            is_json,
            shows_progress: std::io::stderr().is_terminal(),
            stop,
            failure: OutputFailure::default(),
        }
    }

    /// Returns the mark that is set if the output cannot be written.
    pub(super) fn failure(&self) -> OutputFailure {
        Arc::clone(&self.failure)
    }

    /// Returns the function that prints.
    pub(super) fn into_take(self) -> TakeNotice {
        Box::new(move |notice| self.print(notice))
    }

    fn print(&self, notice: &Notice) -> io::Result<()> {
        let line = match (self.is_json, notice.audience) {
            (true, _) => json_line(notice),
            (false, Audience::User) => format!("{}\n", safe(&notice.text)),
            (false, audience) => {
                let line = safe_line(&notice.text);
                match self.shows_progress || audience == Audience::Operator {
                    true => say(&line),
                    false => log::write(&line),
                }
                return Ok(());
            }
        };
        let mut out = io::stdout().lock();
        let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        if written.is_err() {
            let _ = self.failure.set(());
            self.stop.cancel();
            if notice.audience == Audience::Operator {
                say(&safe_line(&notice.text));
            }
        }
        written
    }
}

fn json_line(notice: &Notice) -> String {
    let mut line = Map::new();
    line.insert("event".to_owned(), notice.event.into());
    line.insert("time".to_owned(), notice.time.to_string().into());
    line.extend(notice.fields.clone());
    format!("{}\n", safe_json(&Value::Object(line).to_string()))
}
