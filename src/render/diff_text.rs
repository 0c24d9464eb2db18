//! A unified diff for people: line numbers and signs in a margin, in colour.

use crate::render::paint::{Colour, Ink, safe};

/// Returns a diff as lines with their numbers and signs.
#[must_use]
pub fn paint(diff: &str, colour: Colour) -> String {
    let mut text = String::new();
    let (mut old, mut new) = (0, 0);
    let mut is_first = true;
    for line in diff.lines() {
        if let Some((old_from, new_from)) = places(line) {
            if !std::mem::take(&mut is_first) {
                text.push_str(&colour.paint(Ink::Faint, "       ..."));
                text.push('\n');
            }
            (old, new) = (old_from, new_from);
            continue;
        }
        let body = safe(line.get(1..).unwrap_or_default());
        let (number, sign, ink) = match line.as_bytes().first() {
            Some(b'-') => (&mut old, '-', Some(Ink::Bad)),
            Some(b'+') => (&mut new, '+', Some(Ink::Good)),
            Some(b'\\') => {
                text.push_str(&colour.paint(Ink::Faint, &format!("        {body}")));
                text.push('\n');
                continue;
            }
            _ => {
                old += 1;
                (&mut new, ' ', None)
            }
        };
        let side = colour.paint(Ink::Faint, &format!("{number:>6}"));
        *number += 1;
        let marked = format!("{sign} {body}");
        let marked = ink.map_or(marked.clone(), |ink| colour.paint(ink, &marked));
        text.push_str(&format!("{side} {}\n", marked.trim_end()));
    }
    text
}

/// Parses the first line numbers in a hunk header.
fn places(line: &str) -> Option<(usize, usize)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let first = |text: &str| text.split([',', ' ']).next()?.parse().ok();
    Some((first(old)?, first(rest)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers_and_signs() {
        let diff = "@@ -2,3 +2,3 @@\n a\n-b\u{1b}[2J\n+c\n d\n@@ -9 +9,0 @@\n-x\n\\ no end\n";
        let plain = "     2   a\n     3 - b\u{241b}[2J\n     3 + c\n     4   d\n       ...\n     9 - x\n         no end\n";
        assert_eq!(paint(diff, Colour::Off), plain);
        assert!(paint(diff, Colour::On).contains("\u{1b}[32m+ c"));
    }
}
