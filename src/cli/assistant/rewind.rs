//! Actions of the list of texts: the talk, the files, or both go back.

use crate::cli::assistant::app::{App, Overlay};
use crate::cli::assistant::rewind_list::{RewindChoice, RewindList, RewindParts};
use crate::cli::assistant::talk::WorkEnd;
use karyi_screen::keys::KeyPress;
use karyi_screen::theme;

impl App {
    /// Opens the list of texts.
    pub(super) fn open_rewind(&mut self) {
        let Some(parts) = self.talk.idle() else {
            return self.say_busy();
        };
        match RewindList::of(parts.conversation.state().history()) {
            Some(list) => self.overlay = Overlay::Rewind(list),
            None => self.say_faint("there is no text to go back to"),
        }
    }

    /// Takes a key in the list of texts.
    pub(super) fn rewind_key(&mut self, mut list: RewindList, press: KeyPress) {
        match list.key(press) {
            RewindChoice::Open => self.overlay = Overlay::Rewind(list),
            RewindChoice::Back => {}
            RewindChoice::Turn(turn) => {
                let change = self.turn_starts.of(turn);
                let changes = change.map(|change| self.start.changes_since(change));
                list.ask(turn, changes.is_some_and(|changes| !changes.is_empty()));
                self.overlay = Overlay::Rewind(list);
            }
            RewindChoice::Go(turn, parts) => {
                let text = list.text(turn).unwrap_or_default();
                self.rewind(turn, text, parts);
            }
        }
    }

    fn rewind(&mut self, turn: usize, text: &str, parts: RewindParts) {
        if self.talk.is_busy() {
            return self.say_busy();
        }
        let change = self.turn_starts.of(turn).filter(|_| parts.files);
        let undo = change.map(|change| self.undone_since(change));
        let files = async {
            if let Some(undo) = undo {
                undo.await;
            }
        };
        if !parts.talk {
            let told = format!(
                "The user undid your edits of files since their text {}: read a file again before you edit it.",
                turn + 1
            );
            return self.talk.start_own(files, move |conversation| {
                conversation.tell(&told);
                WorkEnd::Command
            });
        }
        self.turn_starts.forget_from(turn);
        let (view, text) = (self.view.clone(), text.to_owned());
        self.talk.start_own(files, move |conversation| {
            conversation.rewind(turn);
            let said = format!("back to before text {}", turn + 1);
            view.lock().say(&said, theme::FAINT);
            WorkEnd::Rewound(text)
        });
    }
}
