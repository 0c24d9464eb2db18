//! Actions of the list of texts: the talk, the files, or both go back.

use crate::cli::assistant::app::{App, Overlay};
use crate::cli::assistant::rewind_list::{Parts, RewindChoice, RewindList};
use karyi_screen::keys::KeyPress;

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

    fn rewind(&mut self, turn: usize, text: &str, parts: Parts) {
        if parts.files
            && let Some(change) = self.turn_starts.of(turn)
        {
            self.undo_since(change);
        }
        let Some(open) = self.talk.idle() else {
            return self.say_busy();
        };
        if parts.talk {
            open.conversation.rewind(turn);
            self.turn_starts.forget_from(turn);
            self.input.set_text(text);
            self.say_faint(&format!("back to before text {}", turn + 1));
        } else {
            let told = format!(
                "The user undid your edits of files since their text {}: read a file again before you edit it.",
                turn + 1
            );
            open.conversation.tell(&told);
        }
    }
}
