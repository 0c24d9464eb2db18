//! Output of `karyi supervise`: what the user is told on standard output, progress on a terminal.

use std::io::{IsTerminal as _, Write as _};

use serde_json::{Map, Value};

use crate::cli::{log, say};
use crate::exec::cancel::Cancel;
use crate::render::paint::{safe, safe_json, safe_line};
use crate::supervisor::announcer::TakeNotice;
use crate::supervisor::notice::Notice;

/// Prints notices.
pub(super) struct NoticeOutput {
    is_json: bool,
    shows_progress: bool,
    /// Ends the supervisor when the reader of its output is gone.
    stop: Cancel,
}

impl NoticeOutput {
    pub(super) fn new(is_json: bool, stop: Cancel) -> Self {
        Self {
            is_json,
            shows_progress: std::io::stderr().is_terminal(),
            stop,
        }
    }

    /// Returns the function that prints.
    pub(super) fn into_take(self) -> TakeNotice {
        Box::new(move |notice| self.print(notice))
    }

    fn print(&self, notice: &Notice) {
        let line = match (self.is_json, notice.is_for_user) {
            (true, _) => json_line(notice),
            (false, true) => format!("{}\n", safe(&notice.text)),
            (false, false) => {
                let line = safe_line(&notice.text);
                match self.shows_progress {
                    true => say(&line),
                    false => log::write(&line),
                }
                return;
            }
        };
        let mut out = std::io::stdout().lock();
        if out
            .write_all(line.as_bytes())
            .and_then(|()| out.flush())
            .is_err()
        {
            self.stop.cancel();
        }
    }
}

fn json_line(notice: &Notice) -> String {
    let mut line = Map::new();
    line.insert("event".to_owned(), notice.event.into());
    line.insert("time".to_owned(), notice.time.to_string().into());
    line.extend(notice.fields.clone());
    format!("{}\n", safe_json(&Value::Object(line).to_string()))
}
