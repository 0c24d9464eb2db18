//! The line at the bottom: the live shell, and the conversation with the model.

use crate::safe_text::safe_line;
use crate::styled_line::{Line, Span, Style, fit};
use crate::theme;

/// State that the status line shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatusView {
    /// Directory of the shell.
    pub directory: String,
    /// Exit status of the last command, unless it was 0.
    pub exit: Option<i64>,
    /// State of the program in front: its name, or that it waits.
    pub program: Option<String>,
    /// True when the program in front waits for the user.
    pub is_waiting: bool,
    /// Number of jobs.
    pub jobs: usize,
    /// Name of the model.
    pub model: String,
    /// Used part of the model's context, in percent.
    pub context: Option<u64>,
    /// Tokens of the conversation that were counted.
    pub tokens: u64,
    /// True when not all of them were counted.
    pub has_more_tokens: bool,
    /// Cost of the conversation; unknown without.
    pub cost: Option<f64>,
    /// Name of the mode of approval.
    pub mode: String,
}

impl StatusView {
    /// Returns the line in that many columns: what matters least is left out first.
    #[must_use]
    pub fn line(&self, columns: usize) -> Line<'static> {
        let mut parts = self.parts();
        while total(&parts) > columns {
            let least = parts.iter().map(|part| part.weight).min();
            match least {
                Some(weight) if parts.len() > 1 => parts.retain(|part| part.weight != weight),
                _ => break,
            }
        }
        let mut spans = Vec::new();
        for part in parts {
            if !spans.is_empty() {
                spans.push(Span::styled(GAP, theme::FAINT));
            }
            spans.push(Span::styled(part.text, part.style));
        }
        fit(&Line::from(spans), columns)
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = vec![Part::new(8, &self.directory, theme::STRONG)];
        if let Some(exit) = self.exit {
            parts.push(Part::new(6, &format!("exit {exit}"), theme::BAD));
        }
        if let Some(program) = &self.program {
            let style = if self.is_waiting {
                theme::WARNING
            } else {
                theme::FAINT
            };
            parts.push(Part::new(9, program, style));
        }
        if self.jobs > 0 {
            let word = if self.jobs == 1 { "job" } else { "jobs" };
            parts.push(Part::new(5, &format!("{} {word}", self.jobs), theme::FAINT));
        }
        parts.push(Part::new(4, &self.model, theme::FAINT));
        if let Some(percent) = self.context {
            parts.push(Part::new(3, &format!("context {percent} %"), theme::FAINT));
        }
        let tokens = match (self.tokens, self.has_more_tokens) {
            (0, true) => "?".to_owned(),
            (tokens, true) => format!("over {}", short_count(tokens)),
            (tokens, false) => short_count(tokens),
        };
        parts.push(Part::new(1, &format!("{tokens} tokens"), theme::FAINT));
        let cost = self
            .cost
            .map_or_else(|| "?".into(), |cost| format!("{cost:.2}"));
        parts.push(Part::new(2, &format!("cost {cost}"), theme::FAINT));
        let is_unguarded = self.mode == "full";
        let style = if is_unguarded {
            theme::WARNING
        } else {
            theme::FAINT
        };
        parts.push(Part::new(7, &self.mode, style));
        parts.retain(|part| !part.text.is_empty());
        parts
    }
}

/// Text between two parts.
const GAP: &str = " · ";

/// Part of the line.
struct Part {
    /// Parts of the least weight are left out first.
    weight: u8,
    text: String,
    style: Style,
}

impl Part {
    fn new(weight: u8, text: &str, style: Style) -> Self {
        Self {
            weight,
            text: safe_line(text).into_owned(),
            style,
        }
    }
}

fn total(parts: &[Part]) -> usize {
    let text: usize = parts
        .iter()
        .map(|part| crate::styled_line::width(&part.text))
        .sum();
    text + GAP.chars().count() * parts.len().saturating_sub(1)
}

/// Returns a count as people read it.
fn short_count(count: u64) -> String {
    match count {
        0..=999 => count.to_string(),
        1_000..=999_999 => format!("{}.{} k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{} M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_line::plain_text;

    #[test]
    fn what_matters_least_is_left_out_first() {
        let view = StatusView {
            directory: "~/work\x1b".into(),
            exit: Some(2),
            program: Some("waiting for input".into()),
            is_waiting: true,
            jobs: 1,
            model: "tiny".into(),
            context: Some(12),
            tokens: 12_345,
            has_more_tokens: false,
            cost: None,
            mode: "ask".into(),
        };
        let text = |columns| plain_text(&view.line(columns));
        assert_eq!(
            text(120),
            "~/work␛ · exit 2 · waiting for input · 1 job · tiny · context 12 % · 12.3 k tokens · cost ? · ask"
        );
        assert_eq!(
            text(50),
            "~/work␛ · exit 2 · waiting for input · 1 job · ask"
        );
        assert_eq!(text(20), "waiting for input");
        assert_eq!(text(10), "waiting f…");
    }
}
