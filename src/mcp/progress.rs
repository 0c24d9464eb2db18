//! Progress notifications for a call: elapsed time and the last line of output.

use std::time::Instant;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use crate::mcp::server::McpContext;
use karyi_core::head_tail;
use karyi_core::limits;
use karyi_vault::redact::Redacted;

/// Notifies the client about one call, if it asked for progress.
pub struct Progress {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    since: Instant,
    ticks: Interval,
    output: LastLine,
    sending: Option<JoinHandle<()>>,
}

/// Last line of output that arrives in pieces.
#[derive(Default)]
struct LastLine {
    /// Last line that is not blank, cut to the length of a notification.
    last: String,
    /// Start of the current line.
    open: String,
}

impl LastLine {
    /// Longest line in a notification, and a whole marker after it.
    const MAX_OPEN_BYTES: usize = limits::MAX_PROGRESS_CHARS * 4 + 100;

    fn push(&mut self, text: &str) {
        for piece in text.split_inclusive(['\n', '\r']) {
            let room = Self::MAX_OPEN_BYTES.saturating_sub(self.open.len());
            let fitting = piece.get(..piece.floor_char_boundary(room));
            self.open.push_str(fitting.unwrap_or_default());
            if !self.open.trim().is_empty() {
                self.last = shortened(self.open.trim());
            }
            if piece.ends_with(['\n', '\r']) {
                self.open.clear();
            }
        }
    }
}

impl Progress {
    /// Starts the clock.
    #[must_use]
    pub fn new(context: &McpContext) -> Self {
        let token = context.meta.get_progress_token();
        let start = tokio::time::Instant::now() + limits::PROGRESS_STEP;
        let mut ticks = interval_at(start, limits::PROGRESS_STEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            to: token.map(|token| (context.peer.clone(), token)),
            since: Instant::now(),
            ticks,
            output: LastLine::default(),
            sending: None,
        }
    }

    /// Tells whether the client asked for progress.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.to.is_some()
    }

    /// Adds output, which may end in the middle of a line.
    pub fn push_output(&mut self, text: &Redacted) {
        self.output.push(text.as_str());
    }

    /// Waits until the next notification is due.
    pub async fn due(&mut self) {
        match self.to.is_some() {
            true => drop(self.ticks.tick().await),
            false => std::future::pending().await,
        }
    }

    /// Sends a notification, unless the client has not read the last one.
    pub fn notify(&mut self) {
        let is_busy = |sending: &JoinHandle<()>| !sending.is_finished();
        let Some((peer, token)) = self.to.clone() else {
            return;
        };
        if self.sending.as_ref().is_some_and(is_busy) {
            return;
        }
        let seconds = self.since.elapsed().as_secs_f64();
        let message = match self.output.last.is_empty() {
            true => format!("{seconds:.0} s"),
            false => format!("{seconds:.0} s: {}", self.output.last),
        };
        let params = ProgressNotificationParam::new(token, seconds).with_message(message);
        self.sending = Some(tokio::spawn(async move {
            let _ = peer.notify_progress(params).await;
        }));
    }

    /// Waits, within a limit, until the last notification is written, so that none follows the
    /// response.
    pub async fn end(self) {
        if let Some(sending) = self.sending {
            let _ = tokio::time::timeout(limits::CANCEL_GRACE, sending).await;
        }
    }
}

/// Cuts a long line, but never inside a placeholder.
fn shortened(line: &str) -> String {
    let end = line.char_indices().nth(limits::MAX_PROGRESS_CHARS);
    let end = end.map_or(line.len(), |(end, _)| {
        head_tail::before_marker(line.as_bytes(), end)
    });
    line.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_line(pieces: &[&str]) -> String {
        let mut lines = LastLine::default();
        pieces.iter().for_each(|piece| lines.push(piece));
        lines.last
    }

    #[test]
    fn the_last_line_is_joined_from_pieces() {
        let text = "a line\nand $KARYI{X}";
        for (cut, _) in text.char_indices() {
            assert_eq!(
                last_line(&[&text[..cut], &text[cut..]]),
                "and $KARYI{X}",
                "{cut}"
            );
        }
        assert_eq!(last_line(&["one\ntwo", "\n", "\n  \n"]), "two");
        assert_eq!(last_line(&["10%\r", "20%\r"]), "20%");
        assert_eq!(last_line(&[""]), "");
    }

    #[test]
    fn a_long_line_is_cut_outside_of_placeholders() {
        let long = "x".repeat(195);
        assert_eq!(last_line(&[&long, "$KARYI{NAME}", &long]), long);
        assert_eq!(last_line(&[&long, &long, &long]), "x".repeat(200));
        let mut lines = LastLine::default();
        (0..10_000).for_each(|_| lines.push(&long));
        assert!(lines.open.len() < 1000);
    }
}
