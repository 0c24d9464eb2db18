//! Lends the terminal to another program; the conversation goes on meanwhile.

use crate::cli::assistant::app::App;
use crate::cli::assistant::outside::{Outside, edit_text, page, suspend};
use crate::cli::prompt::tty::is_in_front;

impl App {
    /// Runs the program that was asked for, if one was.
    pub(super) async fn run_outside(&mut self) {
        let Some(outside) = self.outside.take() else {
            return;
        };
        let stop = self.start.setup.stop_source.clone();
        self.leave_terminal();
        // Ctrl+C is for the program.
        stop.received.lend(true);
        let text = self.input.text();
        let terminal = self.screen.terminal();
        let run = async {
            match outside {
                Outside::Editor => edit_text(&text).await.map(Some),
                Outside::Pager(text) => page(&text).await.map(|()| None),
                Outside::Shell => {
                    suspend(terminal).await;
                    Ok(None)
                }
            }
        };
        let ended = tokio::select! {
            ended = run => ended,
            () = stop.cancel.cancelled() => Ok(None),
        };
        stop.received.lend(false);
        match ended {
            Ok(Some(text)) => self.input.set_text(text.trim_end_matches('\n')),
            Ok(None) => {}
            Err(error) => self.say_bad(&format!("{error:#}")),
        }
        // A signal may have ended the program while its shell has the terminal.
        if is_in_front(self.screen.terminal()) {
            self.take_terminal();
        }
    }

    /// Lets the pager show the whole chat.
    pub(super) fn open_transcript(&mut self) {
        match self.start.chat_page() {
            Ok(text) => self.outside = Some(Outside::Pager(text)),
            Err(error) => self.say_bad(&format!("{error:#}")),
        }
    }

    /// Lets the running command go on as a job.
    pub(super) fn hand_over(&self) {
        for terminal in self.start.setup.context.sessions.all() {
            terminal.session.hand_over();
        }
    }
}
