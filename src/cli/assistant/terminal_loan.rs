//! Lends the terminal to another program; the conversation goes on meanwhile.

use crate::cli::assistant::app::App;
use crate::cli::assistant::outside::{Outside, edit_text};

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
        let run = async {
            match outside {
                Outside::Editor => edit_text(&text).await,
            }
        };
        let ended = tokio::select! {
            ended = run => Some(ended),
            () = stop.cancel.cancelled() => None,
        };
        stop.received.lend(false);
        match ended {
            Some(Ok(text)) => self.input.set_text(text.trim_end_matches('\n')),
            Some(Err(error)) => self.say_bad(&format!("{error:#}")),
            None => {}
        }
        self.take_terminal();
    }
}
