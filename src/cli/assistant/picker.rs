//! A list from which the user picks an earlier chat or another model.

use std::path::Path;

use jiff::Timestamp;

use crate::chat::transcript::store::ChatSummary;
use crate::cli::assistant::app::{App, Overlay};
use crate::cli::assistant::frame::short_path;
use crate::cli::chats;
use crate::cli::config::Settings;
use karyi_screen::choice_list::{Choice, ChoiceList};
use karyi_screen::keys::{Key, KeyPress};
use karyi_screen::styled_line::{Line, Span, fit};
use karyi_screen::theme;

/// Kind of what is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Chat,
    Model,
}

/// The open list.
#[derive(Debug)]
pub(super) struct Picker {
    kind: Kind,
    /// Ids of chats or names of models, in the order of the list.
    names: Vec<String>,
    list: ChoiceList,
}

impl Picker {
    /// Lists chats with title, age and directory; nothing without any.
    fn of_chats(chats: &[ChatSummary], now: Timestamp, home: Option<&Path>) -> Option<Self> {
        let choice = |chat: &ChatSummary| Choice {
            text: match chat.title.as_str() {
                "" => chat.id.clone(),
                title => title.to_owned(),
            },
            detail: format!(
                "{} · {}",
                age(chat.changed, now),
                short_path(Path::new(&chat.cwd), home)
            ),
        };
        let names = chats.iter().map(|chat| chat.id.clone()).collect();
        Self::of(Kind::Chat, names, chats.iter().map(choice).collect())
    }

    /// Lists models, with a sign at the one in use; nothing without any.
    fn of_models(names: Vec<String>, used: &str) -> Option<Self> {
        let choice = |name: &String| Choice {
            text: name.clone(),
            detail: if name == used { "in use" } else { "" }.to_owned(),
        };
        let choices = names.iter().map(choice).collect();
        Self::of(Kind::Model, names, choices)
    }

    fn of(kind: Kind, names: Vec<String>, choices: Vec<Choice>) -> Option<Self> {
        let list = ChoiceList::new(choices);
        (!list.is_empty()).then_some(Self { kind, names, list })
    }

    /// Returns the lines of the list.
    pub(super) fn lines(&self, columns: usize) -> Vec<Line<'static>> {
        let question = match self.kind {
            Kind::Chat => "go on with which chat?",
            Kind::Model => "which model?",
        };
        let text = format!("{question}  Enter takes it, Esc closes the list");
        let heading = Line::from(Span::styled(text, theme::FAINT));
        let mut lines = vec![fit(&heading, columns)];
        lines.extend(self.list.lines(columns));
        lines
    }
}

/// Returns the time since a moment as people read it.
fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(since.as_second());
    match seconds {
        ..60 => "now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

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

    /// Takes a key in the list.
    pub(super) fn picker_key(&mut self, mut picker: Picker, press: KeyPress) {
        match press.key {
            Key::Up => picker.list.previous(),
            Key::Down | Key::Tab => picker.list.next(),
            Key::Enter => {
                let name = picker.names.get(picker.list.place()).cloned();
                let name = name.unwrap_or_default();
                match picker.kind {
                    Kind::Chat => self.resume(&name),
                    Kind::Model => self.change_model(&name),
                }
                return self.send_waiting();
            }
            Key::Escape => return self.send_waiting(),
            Key::Char('c') if press.modifiers.control => return self.send_waiting(),
            _ => {}
        }
        self.overlay = Overlay::Picker(picker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_screen::styled_line::plain_text;

    #[test]
    fn chats_are_listed_with_title_age_and_directory() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let chat = |id: &str, title: &str, seconds: i64| ChatSummary {
            id: id.into(),
            started: now,
            changed: Timestamp::from_second(1_000_000 - seconds).unwrap(),
            title: title.into(),
            cwd: "/home/a/p".into(),
            model: "m".into(),
            turns: 1,
            damage: None,
        };
        let chats = [
            chat("1", "why?", 59),
            chat("2", "", 3599),
            chat("3", "x", 86_399),
            chat("4", "y", 200_000),
        ];
        let picker = Picker::of_chats(&chats, now, Some(Path::new("/home/a"))).unwrap();
        let lines: Vec<String> = picker.lines(60)[1..].iter().map(plain_text).collect();
        let expected = [
            "› why?  now · ~/p",
            "  2  59 min ago · ~/p",
            "  x  23 h ago · ~/p",
            "  y  2 d ago · ~/p",
        ];
        assert_eq!(lines, expected);
        assert!(Picker::of_chats(&[], now, None).is_none());
    }
}
