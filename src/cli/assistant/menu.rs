//! The menu at Ctrl+C: what the conversation has cost, and what may be done next.

use std::time::Duration;

use crate::chat::turn::TurnReport;
use crate::cli::assistant::commands::SlashCommand;
use karyi_screen::card::elapsed_text;
use karyi_screen::keys::{Key, KeyPress};
use karyi_screen::styled_line::{Line, Span, fit};
use karyi_screen::theme;

/// Sums of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) turns: u64,
    pub(super) requests: u64,
    pub(super) input: u64,
    pub(super) output: u64,
    /// Nothing when that of a turn is unknown.
    pub(super) cost: Option<f64>,
    pub(super) has_unknown_cost: bool,
    pub(super) has_unknown_tokens: bool,
}

impl Totals {
    /// Adds a turn.
    pub(super) fn add(&mut self, report: &TurnReport) {
        self.turns += 1;
        self.requests += report.steps;
        self.input = self
            .input
            .saturating_add(report.usage.input.unwrap_or_default());
        self.output = self
            .output
            .saturating_add(report.usage.output.unwrap_or_default());
        self.has_unknown_tokens |= report.usage.input.is_none();
        match report.cost {
            Some(cost) => self.cost = Some(self.cost.unwrap_or_default() + cost),
            None => self.has_unknown_cost = true,
        }
    }

    /// Returns the cost of everything.
    pub(super) fn cost(&self) -> Option<f64> {
        match (self.cost, self.turns) {
            (_, 0) => Some(0.0),
            (cost, _) => cost.filter(|_| !self.has_unknown_cost),
        }
    }

    /// Returns the counted tokens of everything.
    pub(super) fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Returns a sentence for people.
    pub(super) fn text(&self) -> String {
        let Self {
            turns,
            requests,
            input,
            output,
            ..
        } = self;
        let cost = self
            .cost()
            .map_or("?".to_owned(), |cost| format!("{cost:.4}"));
        let tokens = match (self.has_unknown_tokens, self.tokens()) {
            (true, 0) => "? tokens".to_owned(),
            (true, _) => format!("over {input} tokens in, {output} out"),
            (false, _) => format!("{input} tokens in, {output} out"),
        };
        let (turns, requests) = (counted(*turns, "turn"), counted(*requests, "request"));
        format!("{turns}, {requests}, {tokens}, cost {cost}")
    }
}

/// Result of a key in the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MenuChoice {
    /// Nothing is chosen yet.
    Open,
    /// The menu closes.
    Back,
    /// It closes, and this runs.
    Command(SlashCommand),
    /// It closes, and the input begins a command of the shell.
    ShellCommand,
}

/// Items: key, words, what they do.
const ITEMS: &[(char, &str, MenuChoice)] = {
    use MenuChoice::Command;
    &[
        ('r', "resume", MenuChoice::Back),
        ('d', "changed files", Command(SlashCommand::Diff)),
        (
            'u',
            "undo the files of the last turn",
            Command(SlashCommand::Undo),
        ),
        ('t', "take over the shell", Command(SlashCommand::Shell)),
        ('!', "one command in the shell", MenuChoice::ShellCommand),
        ('j', "jobs", Command(SlashCommand::Jobs)),
        ('s', "status", Command(SlashCommand::Status)),
        ('q', "quit", Command(SlashCommand::Quit)),
    ]
};

/// Changes, secrets and jobs of the session so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SessionFacts {
    /// Changes of files that were not undone.
    pub(super) changes: usize,
    /// Names of the secrets that calls have used.
    pub(super) secrets: Vec<String>,
    /// Shells that a command holds.
    pub(super) jobs: usize,
}

impl SessionFacts {
    /// Returns a line for people; empty when there is nothing to tell.
    fn text(&self) -> String {
        let mut parts = Vec::new();
        if self.changes > 0 {
            parts.push(counted(self.changes as u64, "change") + " of files");
        }
        if !self.secrets.is_empty() {
            parts.push(format!("secrets used: {}", self.secrets.join(", ")));
        }
        if self.jobs > 0 {
            parts.push(counted(self.jobs as u64, "job"));
        }
        parts.join(" · ")
    }
}

/// The open menu.
#[derive(Debug, Default)]
pub(super) struct Menu {
    facts: SessionFacts,
    marked: usize,
}

impl Menu {
    /// Opens the menu.
    pub(super) fn new(facts: SessionFacts) -> Self {
        Self { facts, marked: 0 }
    }

    /// Takes a key.
    pub(super) fn key(&mut self, press: KeyPress) -> MenuChoice {
        match press.key {
            Key::Char('c' | 'd') if press.modifiers.control => {
                return MenuChoice::Command(SlashCommand::Quit);
            }
            _ if !press.is_plain() => {}
            Key::Char(letter) => {
                let item = ITEMS.iter().find(|(key, _, _)| *key == letter);
                return item.map_or(MenuChoice::Open, |(_, _, choice)| *choice);
            }
            Key::Up => self.marked = (self.marked + ITEMS.len() - 1) % ITEMS.len(),
            Key::Down | Key::Tab => self.marked = (self.marked + 1) % ITEMS.len(),
            Key::Enter => {
                let item = ITEMS.get(self.marked);
                return item.map_or(MenuChoice::Back, |(_, _, choice)| *choice);
            }
            Key::Escape => return MenuChoice::Back,
            _ => {}
        }
        MenuChoice::Open
    }

    /// Returns the lines of the menu.
    pub(super) fn lines(
        &self,
        totals: &Totals,
        age: Duration,
        columns: usize,
    ) -> Vec<Line<'static>> {
        let heading = format!("{}: {}", elapsed_text(age), totals.text());
        let mut lines = vec![Line::from(Span::styled(heading, theme::FAINT))];
        let facts = self.facts.text();
        if !facts.is_empty() {
            lines.push(Line::from(Span::styled(facts, theme::FAINT)));
        }
        for (number, (key, words, _)) in ITEMS.iter().enumerate() {
            let text = format!("{key}  {words}");
            lines.push(Line::from(match number == self.marked {
                true => Span::styled(format!("› {text}"), theme::CHOSEN),
                false => Span::raw(format!("  {text}")),
            }));
        }
        lines.iter().map(|line| fit(line, columns)).collect()
    }
}

fn counted(count: u64, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::turn::TurnEnd;
    use karyi_model::Usage;
    use karyi_screen::styled_line::plain_text;

    #[test]
    fn items_are_chosen_by_letter_or_mark() {
        let mut menu = Menu::default();
        assert_eq!(menu.key(KeyPress::plain(Key::Down)), MenuChoice::Open);
        let lines = menu.lines(&Totals::default(), Duration::from_secs(70), 80);
        let texts: Vec<String> = lines.iter().map(plain_text).collect();
        assert_eq!(
            texts[..3],
            [
                "1:10 min: 0 turns, 0 requests, 0 tokens in, 0 out, cost 0.0000",
                "  r  resume",
                "› d  changed files"
            ]
        );
        let quit = MenuChoice::Command(SlashCommand::Quit);
        assert_eq!(
            menu.key(KeyPress::plain(Key::Enter)),
            MenuChoice::Command(SlashCommand::Diff)
        );
        assert_eq!(menu.key(KeyPress::plain(Key::Char('q'))), quit);
        assert_eq!(menu.key(KeyPress::control('c')), quit);
        assert_eq!(menu.key(KeyPress::plain(Key::Escape)), MenuChoice::Back);
        assert_eq!(menu.key(KeyPress::plain(Key::Char('x'))), MenuChoice::Open);
        assert_eq!(menu.key(KeyPress::control('q')), MenuChoice::Open);
        let mut alt = KeyPress::plain(Key::Char('u'));
        alt.modifiers.alt = true;
        assert_eq!(menu.key(alt), MenuChoice::Open);
        let bang = menu.key(KeyPress::plain(Key::Char('!')));
        assert_eq!(bang, MenuChoice::ShellCommand);
    }

    #[test]
    fn what_was_done_stands_in_a_line() {
        let menu = Menu::new(SessionFacts {
            changes: 2,
            secrets: vec!["TOKEN".into(), "KEY".into()],
            jobs: 1,
        });
        let lines = menu.lines(&Totals::default(), Duration::ZERO, 80);
        let expected = "2 changes of files · secrets used: TOKEN, KEY · 1 job";
        assert_eq!(plain_text(&lines[1]), expected);
    }

    #[test]
    fn more_tokens_than_a_number_holds_are_the_largest_number() {
        let mut totals = Totals {
            input: u64::MAX,
            output: u64::MAX,
            ..Totals::default()
        };
        let usage = Usage {
            input: Some(u64::MAX),
            output: Some(1),
            ..Usage::default()
        };
        let report = TurnReport {
            end: TurnEnd::Done,
            answer: String::new(),
            steps: 1,
            usage,
            tokens: 0,
            cost: None,
            needs_approval: false,
        };
        totals.add(&report);
        assert_eq!(totals.tokens(), u64::MAX);
    }

    #[test]
    fn an_unknown_cost_is_a_question_mark() {
        let totals = Totals {
            turns: 1,
            cost: Some(1.0),
            has_unknown_cost: true,
            has_unknown_tokens: true,
            ..Totals::default()
        };
        assert_eq!(totals.text(), "1 turn, 0 requests, ? tokens, cost ?");
        assert_eq!((totals.cost(), totals.tokens()), (None, 0));
        let totals = Totals {
            input: 200,
            output: 40,
            ..totals
        };
        let text = "1 turn, 0 requests, over 200 tokens in, 40 out, cost ?";
        assert_eq!(totals.text(), text);
    }
}
