//! Lists pairs of characters that look alike or mean the same but differ, each pair once.

use std::ops::Range;

use super::super::skeleton::unit::{EscapeMode, Unit, units};
use super::super::skeleton::{is_blank, plain};

/// Listed pairs per line.
const MAX_KINDS: usize = 8;

/// Pairs that were listed so far.
#[derive(Default)]
pub(super) struct LookAlikes {
    /// Characters of the file with those of the text to find.
    named: Vec<(String, String)>,
    /// Lines that differ only in pairs that were already listed.
    lines: usize,
}

impl LookAlikes {
    /// Describes a line that differs from the wanted one only in look-alikes, escapes and white space; empty
    /// when every pair was listed before.
    pub(super) fn describe(&mut self, there: &str, wanted: &str) -> Option<String> {
        if !all(there).eq(all(wanted)) {
            return None;
        }
        let pairs = pairs(there, wanted);
        if pairs.is_empty() {
            return None;
        }
        let mut kinds: Vec<(&str, &str)> = Vec::new();
        for pair in pairs {
            if kinds.len() > MAX_KINDS {
                break;
            }
            let is_named = |(a, b): &(String, String)| (a.as_str(), b.as_str()) == pair;
            if !kinds.contains(&pair) && !self.named.iter().any(is_named) {
                kinds.push(pair);
            }
        }
        let has_other_blanks = !with_blanks(there).eq(with_blanks(wanted));
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
        let named = kinds.into_iter().take(MAX_KINDS);
        self.named
            .extend(named.map(|(a, b)| (a.to_owned(), b.to_owned())));
        Some(text)
    }

    /// Describes the number of lines that were not listed.
    pub(super) fn more(&self) -> Option<String> {
        match self.lines {
            0 => None,
            1 => Some("1 more line differs in these characters".into()),
            lines => Some(format!("{lines} more lines differ in these characters")),
        }
    }
}

fn in_words(kinds: &[(&str, &str)]) -> String {
    if kinds.is_empty() {
        return "the same characters differ".into();
    }
    let word = |(index, (a, b)): (usize, &(&str, &str))| match index {
        0 => format!(
            "the file has {} where the text to find has {}",
            code(a),
            code(b)
        ),
        _ => format!("{} where it has {}", code(a), code(b)),
    };
    let shown = kinds.iter().enumerate().take(MAX_KINDS).map(word);
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if kinds.len() > MAX_KINDS {
        text += ", and others";
    }
    let is_escaped = |(a, b): &&(&str, &str)| is_escape(a) || is_escape(b);
    let what = match kinds.iter().filter(is_escaped).count() {
        0 => "only look alike",
        count if count == kinds.len() => "stand for the same",
        _ => "only look alike or stand for the same",
    };
    text = format!("{text}, which {what}");
    // Most programs write a letter with combining marks as one character, so show the exact spelling.
    let apart = kinds.iter().map(|(there, _)| *there);
    if let Some(there) = apart
        .filter(|there| !is_escape(there))
        .find(|c| c.chars().nth(1).is_some())
    {
        text += &format!("; `{}` spells what the file has", as_references(there));
    }
    text
}

/// Writes a character with its code point, to tell it from look-alikes.
fn code(piece: &str) -> String {
    if is_escape(piece) {
        return format!("`{piece}`");
    }
    let codes: Vec<String> = piece
        .chars()
        .map(|c| format!("U+{:04X}", u32::from(c)))
        .collect();
    format!("{piece} ({})", codes.join(" "))
}

fn is_escape(piece: &str) -> bool {
    piece.len() > 1 && piece.starts_with(['&', '\\'])
}

/// Writes non-ASCII characters as XML references, which survive any normalisation.
fn as_references(piece: &str) -> String {
    let reference = |c: char| match c.is_ascii() {
        true => c.to_string(),
        false => format!("&#x{:X};", u32::from(c)),
    };
    piece.chars().map(reference).collect()
}

/// Returns the visible characters of a line, decomposed.
fn all(line: &str) -> impl Iterator<Item = char> + '_ {
    visible(line).flat_map(|unit| plain(unit.character))
}

/// Returns the characters of a line, decomposed, with the blanks between them.
fn with_blanks(line: &str) -> impl Iterator<Item = char> + '_ {
    units(line, EscapeMode::Escapes).flat_map(|unit| {
        let blank = Some(unit.character).filter(|c| is_blank(*c));
        let parts = plain(unit.character).filter(move |_| blank.is_none());
        blank.into_iter().chain(parts)
    })
}

fn visible(line: &str) -> impl Iterator<Item = Unit> + '_ {
    units(line, EscapeMode::Escapes).filter(|unit| !is_blank(unit.character))
}

/// Returns the shortest stretches of two lines that decompose to the same number of parts and differ.
fn pairs<'a>(there: &'a str, wanted: &'a str) -> Vec<(&'a str, &'a str)> {
    let stretch = |unit: Unit| (unit.range, plain(unit.character).count());
    let (mut a, mut b) = (visible(there).map(stretch), visible(wanted).map(stretch));
    let mut pairs = Vec::new();
    while let (Some(mut left), Some(mut right)) = (a.next(), b.next()) {
        while left.1 != right.1 {
            let (shorter, rest): (&mut (Range<usize>, usize), &mut dyn Iterator<Item = _>) =
                match left.1 < right.1 {
                    true => (&mut left, &mut a),
                    false => (&mut right, &mut b),
                };
            let Some((range, count)) = rest.next() else {
                return pairs;
            };
            *shorter = (shorter.0.start..range.end, shorter.1 + count);
        }
        let pair = (
            there.get(left.0).unwrap_or_default(),
            wanted.get(right.0).unwrap_or_default(),
        );
        if pair.0 != pair.1 {
            pairs.push(pair);
        }
    }
    pairs
}
