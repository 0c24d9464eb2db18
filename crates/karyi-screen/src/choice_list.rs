//! A list of choices below the input: completions, and earlier inputs.

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};

use crate::safe_text::safe_line;
use crate::styled_line::{Line, Span, fit};
use crate::theme;
use karyi_core::limits;

/// A choice of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Text that it stands for.
    pub text: String,
    /// Explanation beside it.
    pub detail: String,
}

/// A list of choices, of which one is marked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChoiceList {
    choices: Vec<Choice>,
    marked: usize,
}

impl ChoiceList {
    /// Creates a list with the first choice marked.
    #[must_use]
    pub fn new(choices: Vec<Choice>) -> Self {
        Self { choices, marked: 0 }
    }

    /// Returns true when there is nothing to choose from.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }

    /// Returns the marked choice.
    #[must_use]
    pub fn marked(&self) -> Option<&Choice> {
        self.choices.get(self.marked)
    }

    /// Returns the place of the marked choice in the list.
    #[must_use]
    pub fn place(&self) -> usize {
        self.marked
    }

    /// Marks the next choice; after the last one the first.
    pub fn next(&mut self) {
        let count = self.choices.len().max(1);
        self.marked = (self.marked + 1) % count;
    }

    /// Marks the choice before.
    pub fn previous(&mut self) {
        let count = self.choices.len().max(1);
        self.marked = (self.marked + count - 1) % count;
    }

    /// Returns the lines of the list around the marked choice.
    #[must_use]
    pub fn lines(&self, columns: usize) -> Vec<Line<'static>> {
        let rows = limits::CHOICE_ROWS;
        let start = self.marked.saturating_sub(rows - 1);
        let shown = self.choices.iter().enumerate().skip(start).take(rows);
        let line = |(number, choice): (usize, &Choice)| {
            let text = safe_line(&choice.text).into_owned();
            let detail = format!("  {}", safe_line(&choice.detail));
            let spans = match number == self.marked {
                true => vec![Span::styled(format!("› {text}"), theme::CHOSEN)],
                false => vec![Span::raw(format!("  {text}"))],
            };
            let mut line = Line::from(spans);
            line.push_span(Span::styled(detail, theme::FAINT));
            fit(&line, columns)
        };
        shown.map(line).collect()
    }
}

/// Returns the candidates that match a text best, best first.
#[must_use]
pub fn best<T: AsRef<str>>(text: &str, candidates: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let pattern = Pattern::new(
        text,
        CaseMatching::Smart,
        Normalization::Smart,
        AtomKind::Fuzzy,
    );
    let matches = pattern.match_list(candidates, &mut matcher);
    matches
        .into_iter()
        .map(|(candidate, _)| candidate)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_line::plain_text;

    #[test]
    fn the_best_match_comes_first() {
        let names = ["src/lib.rs", "src/live.rs", "README.md"];
        assert_eq!(best("live", names), ["src/live.rs"]);
        assert_eq!(best("readme", names), ["README.md"]);
        assert_eq!(best("", names).len(), 3);
    }

    #[test]
    fn the_list_follows_its_mark() {
        let choice = |number: usize| Choice {
            text: format!("c{number}\x1b"),
            detail: "d".into(),
        };
        let mut list = ChoiceList::new((0..8).map(choice).collect());
        assert_eq!(plain_text(&list.lines(40)[0]), "› c0␛  d");
        list.previous();
        let shown: Vec<String> = list.lines(40).iter().map(plain_text).collect();
        assert_eq!(shown.len(), limits::CHOICE_ROWS);
        assert_eq!(shown[5], "› c7␛  d");
        list.next();
        assert_eq!(list.marked().unwrap().text, "c0\x1b");
        let mut empty = ChoiceList::default();
        empty.next();
        empty.previous();
        assert!(empty.is_empty() && empty.marked().is_none());
    }
}
