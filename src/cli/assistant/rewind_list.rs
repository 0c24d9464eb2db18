//! Going back to an earlier text: the list of texts, then the choice between talk and files.

use crate::chat::history::History;
use karyi_screen::choice_list::{Choice, ChoiceList};
use karyi_screen::keys::{Key, KeyPress};
use karyi_screen::styled_line::{Line, Span, fit};
use karyi_screen::theme;

/// Starts of the turns of this conversation: the number of the text, and the last change of files before it.
#[derive(Debug, Default)]
pub(super) struct TurnStarts(Vec<(usize, u64)>);

impl TurnStarts {
    /// Notes that a turn begins.
    pub(super) fn begin(&mut self, turn: usize, change: u64) {
        self.forget_from(turn);
        self.0.push((turn, change));
    }

    /// Forgets a turn and those after it.
    pub(super) fn forget_from(&mut self, turn: usize) {
        self.0.retain(|(known, _)| *known < turn);
    }

    /// Returns the last change of files before a turn; nothing for one that this program did not see begin.
    pub(super) fn of(&self, turn: usize) -> Option<u64> {
        let found = self.0.iter().find(|(known, _)| *known == turn);
        found.map(|(_, change)| *change)
    }
}

/// Parts of the conversation that go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RewindParts {
    pub(super) talk: bool,
    pub(super) files: bool,
}

/// Choices, each with its name and explanation.
const PARTS: [(&str, &str, RewindParts); 3] = [
    (
        "talk and files",
        "take both back; what commands changed stays",
        RewindParts {
            talk: true,
            files: true,
        },
    ),
    (
        "talk",
        "the model forgets this text and what followed; files stay",
        RewindParts {
            talk: true,
            files: false,
        },
    ),
    (
        "files",
        "undo the edits since; what commands changed stays, and so does the talk",
        RewindParts {
            talk: false,
            files: true,
        },
    ),
];

/// The open list.
#[derive(Debug)]
pub(super) struct RewindList {
    /// Numbers and texts, newest first.
    texts: Vec<(usize, String)>,
    list: ChoiceList,
    /// The text that was chosen, and what may go back.
    chosen: Option<(usize, Vec<RewindParts>)>,
}

/// Result of a key in the list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RewindChoice {
    /// Nothing is chosen yet.
    Open,
    /// The list closes.
    Back,
    /// This text was chosen.
    Turn(usize),
    /// This goes back to before the text.
    Go(usize, RewindParts),
}

impl RewindList {
    /// Lists the texts of a conversation; nothing without any.
    pub(super) fn of(history: &History) -> Option<Self> {
        let texts = history.user_texts().into_iter().rev();
        let texts: Vec<(usize, String)> = texts
            .map(|(turn, text)| (turn, text.into_string()))
            .collect();
        let choice = |(turn, text): &(usize, String)| {
            let first = text.lines().find(|line| !line.trim().is_empty());
            Choice {
                text: format!("{}  {}", turn + 1, first.unwrap_or_default()),
                detail: String::new(),
            }
        };
        let list = ChoiceList::new(texts.iter().map(choice).collect());
        (!list.is_empty()).then_some(Self {
            texts,
            list,
            chosen: None,
        })
    }

    /// Takes a key.
    pub(super) fn key(&mut self, press: KeyPress) -> RewindChoice {
        match press.key {
            Key::Up => self.list.previous(),
            Key::Down | Key::Tab => self.list.next(),
            Key::Enter => {
                let place = self.list.place();
                let turn = self.texts.get(place).map(|(turn, _)| *turn);
                return match (&self.chosen, turn) {
                    (Some((turn, parts)), _) => match parts.get(place) {
                        Some(parts) => RewindChoice::Go(*turn, *parts),
                        None => RewindChoice::Back,
                    },
                    (None, Some(turn)) => RewindChoice::Turn(turn),
                    (None, None) => RewindChoice::Back,
                };
            }
            Key::Escape => return RewindChoice::Back,
            Key::Char('c') if press.modifiers.control => return RewindChoice::Back,
            _ => {}
        }
        RewindChoice::Open
    }

    /// Asks what goes back to before a text.
    pub(super) fn ask(&mut self, turn: usize, has_files: bool) {
        let offered = PARTS
            .iter()
            .filter(|(_, _, parts)| has_files || !parts.files);
        let choice = |(name, detail, _): &(&str, &str, RewindParts)| Choice {
            text: (*name).to_owned(),
            detail: (*detail).to_owned(),
        };
        self.list = ChoiceList::new(offered.clone().map(choice).collect());
        self.chosen = Some((turn, offered.map(|(_, _, parts)| *parts).collect()));
    }

    /// Returns the lines of the list.
    pub(super) fn lines(&self, columns: usize) -> Vec<Line<'static>> {
        let heading = match self.chosen {
            None => "go back to before a text".to_owned(),
            Some((turn, _)) => format!("what goes back to before text {}", turn + 1),
        };
        let heading = Line::from(Span::styled(heading, theme::FAINT));
        let mut lines = vec![fit(&heading, columns)];
        lines.extend(self.list.lines(columns));
        lines
    }

    /// Returns a text by its number.
    pub(super) fn text(&self, turn: usize) -> Option<&str> {
        let mut texts = self.texts.iter();
        let (_, text) = texts.find(|(known, _)| *known == turn)?;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_of_turns_that_went_back_are_forgotten() {
        let mut starts = TurnStarts::default();
        for (turn, change) in [(0, 0), (1, 3), (3, 5), (1, 4)] {
            starts.begin(turn, change);
        }
        let known: Vec<Option<u64>> = (0..4).map(|turn| starts.of(turn)).collect();
        assert_eq!(known, [Some(0), Some(4), None, None]);
    }

    #[test]
    fn a_text_is_chosen_and_then_what_goes_back() {
        let texts = vec![(1, "b".to_owned()), (0, "a".to_owned())];
        let choice = |text: &str| Choice {
            text: text.into(),
            detail: String::new(),
        };
        let mut list = RewindList {
            texts,
            list: ChoiceList::new(vec![choice("b"), choice("a")]),
            chosen: None,
        };
        let key = |list: &mut RewindList, key| list.key(KeyPress::plain(key));
        assert_eq!(key(&mut list, Key::Down), RewindChoice::Open);
        assert_eq!(key(&mut list, Key::Enter), RewindChoice::Turn(0));
        list.ask(0, false);
        let talk = RewindParts {
            talk: true,
            files: false,
        };
        assert_eq!(key(&mut list, Key::Enter), RewindChoice::Go(0, talk));
        list.ask(0, true);
        assert_eq!(list.lines(80).len(), 4);
        key(&mut list, Key::Up);
        let files = RewindParts {
            talk: false,
            files: true,
        };
        assert_eq!(key(&mut list, Key::Enter), RewindChoice::Go(0, files));
        assert_eq!(key(&mut list, Key::Escape), RewindChoice::Back);
    }
}
