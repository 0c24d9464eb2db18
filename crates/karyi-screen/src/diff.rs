//! A unified diff for people: line numbers and signs in a margin, in colour.

use crate::safe_text::safe;
use crate::styled_line::{Line, Span};
use crate::theme;

/// Returns a diff as lines with their numbers and signs.
#[must_use]
pub fn lines(diff: &str) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let (mut old, mut new) = (0, 0);
    let faint = |text: String| Line::from(Span::styled(text, theme::FAINT));
    for line in diff.lines() {
        if let Some((old_from, new_from)) = places(line) {
            if !lines.is_empty() {
                lines.push(faint("       ...".to_owned()));
            }
            (old, new) = (old_from, new_from);
            continue;
        }
        let body = safe(line.get(1..).unwrap_or_default());
        let (number, sign, style) = match line.as_bytes().first() {
            Some(b'-') => (&mut old, '-', Some(theme::BAD)),
            Some(b'+') => (&mut new, '+', Some(theme::GOOD)),
            Some(b'\\') => {
                lines.push(faint(format!("        {body}")));
                continue;
            }
            _ => {
                old += 1;
                (&mut new, ' ', None)
            }
        };
        let side = Span::styled(format!("{number:>6}"), theme::FAINT);
        *number += 1;
        let marked = format!("{sign} {body}");
        let marked = Span::styled(marked.trim_end().to_owned(), style.unwrap_or_default());
        lines.push(match marked.content.is_empty() {
            true => Line::from(side),
            false => Line::from(vec![side, Span::raw(" "), marked]),
        });
    }
    lines
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
    use crate::styled_line::plain_text;

    #[test]
    fn lines_have_numbers_signs_and_colours() {
        let diff = "@@ -2,3 +2,3 @@\n a\n-b\u{1b}[2J\n+c\n d\n@@ -9 +9,0 @@\n-x\n\\ no end\n";
        let lines = lines(diff);
        let texts: Vec<String> = lines.iter().map(plain_text).collect();
        let expected = [
            "     2   a",
            "     3 - b\u{241b}[2J",
            "     3 + c",
            "     4   d",
            "       ...",
            "     9 - x",
            "         no end",
        ];
        assert_eq!(texts, expected);
        assert_eq!(lines[1].spans[2].style, theme::BAD);
        assert_eq!(lines[2].spans[2].style, theme::GOOD);
    }
}
