//! Actions of the lists from which the user picks a chat or a model.

use jiff::Timestamp;

use crate::cli::assistant::app::{App, Overlay};
use crate::cli::assistant::picker::{Pick, Picker};
use crate::cli::chats;
use crate::cli::config::Settings;
use karyi_screen::keys::KeyPress;

impl App {
    /// Opens the list of earlier chats of all directories, newest first.
    pub(super) fn pick_chat(&mut self) {
        let Some(parts) = self.talk.idle() else {
            return self.say_busy();
        };
        let own = parts.conversation.chat_id().map(str::to_owned);
        let store = chats::store(self.start.setup.redactor.clone());
        match store.and_then(|store| store.list(None)) {
            Ok(mut chats) => {
                chats.retain(|chat| Some(&chat.id) != own.as_ref());
                let picker = Picker::of_chats(&chats, Timestamp::now(), self.start.home.as_deref());
                self.open_picker(picker, "there is no earlier chat");
            }
            Err(error) => self.say_bad(&error.message),
        }
    }

    /// Opens the list of the models in the settings.
    pub(super) fn pick_model(&mut self) {
        let used = &self.start.setup.model.name;
        let names = Settings::load().map(|settings| {
            let names = settings.models().into_iter();
            names.map(str::to_owned).collect()
        });
        match names {
            Ok(names) => {
                let without = format!("model: {used}; /model NAME changes it");
                self.open_picker(Picker::of_models(names, used), &without);
            }
            Err(error) => self.say_bad(&error.to_string()),
        }
    }

    fn open_picker(&mut self, picker: Option<Picker>, without: &str) {
        match picker {
            Some(picker) => self.overlay = Overlay::Picker(picker),
            None => self.say_faint(without),
        }
    }

    /// Takes a key in the list. Texts that wait are sent once it is closed.
    pub(super) fn picker_key(&mut self, mut picker: Picker, press: KeyPress) {
        match picker.key(press) {
            None => return self.overlay = Overlay::Picker(picker),
            Some(Pick::Chat(id)) => self.resume(&id),
            Some(Pick::Model(name)) => self.change_model(&name),
            Some(Pick::Nothing) => {}
        }
        self.send_waiting();
    }
}
