//! A list from which the user picks an earlier chat or another model.

use std::path::Path;

use jiff::Timestamp;

use crate::chat::transcript::store::ChatSummary;
use crate::cli::assistant::short_path::short_path;
use karyi_screen::choice_list::{Choice, ChoiceList};
use karyi_screen::keys::{Key, KeyPress};
use karyi_screen::styled_line::{Line, Span, fit};
use karyi_screen::theme;

/// Kind of the things to pick from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PickedKind {
    Chat,
    Model,
}

/// End of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pick {
    /// This chat goes on.
    Chat(String),
    /// This model answers.
    Model(String),
    /// The list closes.
    Nothing,
}

/// The open list.
#[derive(Debug)]
pub(super) struct Picker {
    kind: PickedKind,
    /// Ids of chats or names of models, in the order of the list.
    names: Vec<String>,
    list: ChoiceList,
}

impl Picker {
    /// Lists chats with title, age and directory; nothing without any.
    pub(super) fn of_chats(
        chats: &[ChatSummary],
        now: Timestamp,
        home: Option<&Path>,
    ) -> Option<Self> {
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
        Self::of(PickedKind::Chat, names, chats.iter().map(choice).collect())
    }

    /// Lists models, with a sign at the one in use; nothing without any.
    pub(super) fn of_models(names: Vec<String>, used: &str) -> Option<Self> {
        let choice = |name: &String| Choice {
            text: name.clone(),
            detail: if name == used { "in use" } else { "" }.to_owned(),
        };
        let choices = names.iter().map(choice).collect();
        Self::of(PickedKind::Model, names, choices)
    }

    fn of(kind: PickedKind, names: Vec<String>, choices: Vec<Choice>) -> Option<Self> {
        let list = ChoiceList::new(choices);
        (!list.is_empty()).then_some(Self { kind, names, list })
    }

    /// Takes a key; nothing is chosen yet when it returns nothing.
    pub(super) fn key(&mut self, press: KeyPress) -> Option<Pick> {
        match press.key {
            Key::Up => self.list.previous(),
            Key::Down | Key::Tab => self.list.next(),
            Key::Enter => {
                let name = self.names.get(self.list.place()).cloned();
                return Some(match (self.kind, name) {
                    (PickedKind::Chat, Some(id)) => Pick::Chat(id),
                    (PickedKind::Model, Some(name)) => Pick::Model(name),
                    (_, None) => Pick::Nothing,
                });
            }
            Key::Escape => return Some(Pick::Nothing),
            Key::Char('c') if press.modifiers.control => return Some(Pick::Nothing),
            _ => {}
        }
        None
    }

    /// Returns the lines of the list.
    pub(super) fn lines(&self, columns: usize) -> Vec<Line<'static>> {
        let question = match self.kind {
            PickedKind::Chat => "go on with which chat?",
            PickedKind::Model => "which model?",
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
