//! Commands of karyi itself that the assistant runs, and the changes of files that it undoes and shows.

use anyhow::Context as _;

use crate::cli::assistant::app::App;
use crate::cli::assistant::start::changes_since;
use crate::cli::assistant::talk::WorkEnd;
use crate::cli::{history, undo};
use karyi_screen::theme;

impl App {
    /// Runs a command of karyi itself, and shows what it prints.
    pub(super) fn run_own(&self, arguments: &[&str]) {
        let view = self.view.clone();
        let mut command = match self.start.own_options.command(arguments) {
            Ok(command) => command,
            Err(error) => return self.say_bad(&format!("{error:#}")),
        };
        tokio::spawn(async move {
            match command.output().await.context("starting karyi") {
                Ok(output) => {
                    let bytes = [output.stdout, output.stderr].concat();
                    view.lock()
                        .say(&String::from_utf8_lossy(&bytes), theme::FAINT);
                }
                Err(error) => view.lock().say(&format!("{error:#}"), theme::BAD),
            }
            view.changed.notify_one();
        });
    }

    /// Undoes the changes of files that the last turn made, newest first.
    pub(super) fn undo(&mut self) {
        if self.talk.is_busy() {
            return self.say_busy();
        }
        let undo = self.undone_since(self.turn_began_at);
        self.talk.start_own(undo, |_| WorkEnd::Command);
    }

    /// Returns the work that undoes the changes of files since a change, newest first.
    pub(super) fn undone_since(&self, since: u64) -> impl Future<Output = ()> + Send + use<> {
        let setup = &self.start.setup;
        let (recorder, redactor) = (setup.context.recorder.clone(), setup.redactor.clone());
        let view = self.view.clone();
        let undo = move || {
            let numbers = changes_since(&recorder, since);
            if numbers.is_empty() {
                return "the last turn changed no files by <edit>; /rewind goes back further, and what commands changed is not recorded".to_owned();
            }
            let numbers = numbers.iter().rev();
            let texts = numbers.map(|number| undo::in_session(&recorder, &redactor, *number));
            texts.collect()
        };
        async move {
            if let Ok(text) = tokio::task::spawn_blocking(undo).await {
                view.lock().say(&text, theme::FAINT);
            }
        }
    }

    /// Shows the changes of files of this session.
    pub(super) fn show_changes(&self) {
        let setup = &self.start.setup;
        let (recorder, redactor) = (setup.context.recorder.clone(), setup.redactor.clone());
        let view = self.view.clone();
        let shown = move || {
            let numbers = changes_since(&recorder, 0);
            let journal = recorder.journal.as_ref().filter(|_| !numbers.is_empty());
            let Some(journal) = journal else {
                return "no files were changed; what commands changed is not recorded".to_owned();
            };
            let texts = numbers.iter();
            let texts = texts.map(|number| history::in_session(journal, &redactor, *number));
            texts.collect()
        };
        tokio::spawn(async move {
            if let Ok(text) = tokio::task::spawn_blocking(shown).await {
                view.lock().say(&text, theme::FAINT);
                view.changed.notify_one();
            }
        });
    }
}
