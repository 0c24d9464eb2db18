//! Line ends of the file, which the TOML library replaces by `\n`.

use std::iter;

/// Returns a changed text with the line ends that the text had before. New lines get the end of the first line,
/// except in a text of several lines.
pub(super) fn kept(before: &str, after: &str) -> String {
    if !before.contains('\r') {
        return after.to_owned();
    }
    let old: Vec<Line<'_>> = before.split_inclusive('\n').map(Line::parse).collect();
    let new: Vec<Line<'_>> = after.split_inclusive('\n').map(Line::parse).collect();
    let first = old.first().map_or("", |line| line.end);
    let is_same = |(old, new): &(&Line<'_>, &Line<'_>)| old.text == new.text;
    let start = old.iter().zip(&new).take_while(is_same).count();
    let most = old.len().min(new.len()) - start;
    let pairs = old.iter().rev().zip(new.iter().rev()).take(most);
    let end = pairs.take_while(is_same).count();
    let ends = old.iter().map(|line| line.end);
    let count = new.len() - start - end;
    let mut lines = new.iter().skip(start).take(count);
    // The line ends in a text of several lines are part of its value.
    let is_text = lines.any(|line| line.text.contains("\"\"\"") || line.text.contains("'''"));
    let changed = iter::repeat_n(if is_text { "\n" } else { first }, count);
    let ends = ends
        .clone()
        .take(start)
        .chain(changed)
        .chain(ends.skip(old.len() - end));
    let lines = new
        .iter()
        .zip(ends)
        .map(|(line, end)| match (line.end, end) {
            ("", _) => [line.text, ""],
            (_, "") => [line.text, first],
            (_, end) => [line.text, end],
        });
    lines.flatten().collect()
}

/// Line of a text.
struct Line<'t> {
    text: &'t str,
    /// `\n`, `\r\n`, or nothing at the end of the text.
    end: &'t str,
}

impl<'t> Line<'t> {
    fn parse(line: &'t str) -> Self {
        let text = line.strip_suffix('\n').unwrap_or(line);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let (text, end) = line.split_at(text.len());
        Self { text, end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, expected: &str) {
        assert_eq!(kept(before, after), expected, "{before:?}");
    }

    #[test]
    fn each_line_keeps_its_end() {
        check("a\r\nb\r\n", "a\nc\n", "a\r\nc\r\n");
        check("a\r\nb\nc\r\nd", "a\nb\nx\nc\nd", "a\r\nb\nx\r\nc\r\nd");
        check("a\nb\r\nc\r\n", "a\nc\n", "a\nc\r\n");
        check("a\r\nb", "a\nb\nc\n", "a\r\nb\r\nc\r\n");
        check("a\r\nb\r\n", "b\n", "b\r\n");
        check("a\r\na\r\n", "a\na\na\n", "a\r\na\r\na\r\n");
        check("a\r\n", "", "");
        check(
            "a\r\nb\r\n",
            "a\nx = \"\"\"\nx\"\"\"\nb\n",
            "a\r\nx = \"\"\"\nx\"\"\"\nb\r\n",
        );
        check("a\r\nb\r\n", "a\r\n", "a\r\n");
        check("a\nb", "a\nb\nc\n", "a\nb\nc\n");
        check("", "a\n", "a\n");
    }
}
