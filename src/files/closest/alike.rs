//! Names the characters that look alike and are not the same, each kind once.

use super::super::skeleton::{is_blank, plain};

/// Kinds that are named in one line.
const MAX_KINDS: usize = 8;

/// What was named so far.
#[derive(Default)]
pub(super) struct Alike {
    /// Characters of the file with those of the text to find.
    named: Vec<(char, char)>,
    /// Lines that differ in what was named already, and in nothing else.
    lines: usize,
}

impl Alike {
    /// Says how a line differs from the wanted one, when that is only in characters that look alike and in
    /// white space; nothing new is an empty text.
    pub(super) fn tell(&mut self, there: &str, wanted: &str) -> Option<String> {
        let (a, b) = (visible(there), visible(wanted));
        let is_alike = a.clone().map(plain).eq(b.clone().map(plain));
        if !is_alike || a.clone().eq(b.clone()) {
            return None;
        }
        let mut kinds: Vec<(char, char)> = Vec::new();
        for pair in a.zip(b).filter(|(a, b)| a != b) {
            if kinds.len() > MAX_KINDS {
                break;
            }
            if !kinds.contains(&pair) && !self.named.contains(&pair) {
                kinds.push(pair);
            }
        }
        let has_other_blanks = !(there.chars().map(plain)).eq(wanted.chars().map(plain));
        let blanks = if has_other_blanks {
            "; white space differs, too"
        } else {
            ""
        };
        if kinds.is_empty() && blanks.is_empty() {
            self.lines += 1;
            return Some(String::new());
        }
        let text = in_words(&kinds) + blanks;
        self.named.extend(kinds.into_iter().take(MAX_KINDS));
        Some(text)
    }

    /// Counts the lines of which nothing was told.
    pub(super) fn more(&self) -> Option<String> {
        match self.lines {
            0 => None,
            1 => Some("1 more line differs in these characters".into()),
            lines => Some(format!("{lines} more lines differ in these characters")),
        }
    }
}

fn in_words(kinds: &[(char, char)]) -> String {
    if kinds.is_empty() {
        return "the same characters differ".into();
    }
    let code = |c: char| format!("{c} (U+{:04X})", u32::from(c));
    let word = |(index, (a, b)): (usize, &(char, char))| match index {
        0 => format!(
            "the file has {} where the text to find has {}",
            code(*a),
            code(*b)
        ),
        _ => format!("{} where it has {}", code(*a), code(*b)),
    };
    let shown = kinds.iter().enumerate().take(MAX_KINDS).map(word);
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if kinds.len() > MAX_KINDS {
        text += ", and others";
    }
    text + ", which only look alike"
}

fn visible(text: &str) -> impl Iterator<Item = char> + Clone + '_ {
    text.chars().filter(|c| !is_blank(*c))
}
