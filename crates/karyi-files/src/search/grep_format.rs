//! Formats matches like grep.

use super::SearchOutcome;
use super::file_matches::{FileMatches, LineRole};
use crate::listing::one_line;

/// Approximate overhead of a line besides path and text: number, separators and line break.
const EXTRA_BYTES: usize = 8;

impl SearchOutcome {
    /// Formats matches as `path:line:text` and context as `path-line-text`, with `--` between groups.
    #[must_use]
    pub fn text(&self) -> String {
        // Avoids reallocation.
        let mut text = String::with_capacity(self.files.iter().map(room).sum());
        for found in &self.files {
            if self.has_context && !text.is_empty() {
                text.push_str("--\n");
            }
            push(&mut text, found, self.has_context);
        }
        text
    }
}

fn room(found: &FileMatches) -> usize {
    let beside = found.short_path().as_os_str().len() + EXTRA_BYTES;
    found.bytes() + found.lines().len() * beside
}

fn push(text: &mut String, found: &FileMatches, has_context: bool) {
    let path = one_line(&found.short_path().to_string_lossy());
    let mut last = None;
    for line in found.lines() {
        if has_context && last.is_some_and(|last| last + 1 != line.number) {
            text.push_str("--\n");
        }
        last = Some(line.number);
        let mark = match line.role {
            LineRole::Match => ':',
            LineRole::Before | LineRole::After => '-',
        };
        text.push_str(&path);
        text.push(mark);
        push_number(text, line.number);
        text.push(mark);
        text.push_str(line.text);
        text.push('\n');
    }
}

/// Appends a number. With thousands of lines, `format!` would dominate the cost.
fn push_number(text: &mut String, number: u64) {
    let digits = number.checked_ilog10().unwrap_or(0);
    for power in (0..=digits).rev() {
        let digit = number / 10_u64.pow(power) % 10;
        text.push(char::from(b'0' + u8::try_from(digit).unwrap_or(0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LineRole::{After, Before, Match};

    fn file(path: &str, lines: &[(LineRole, u64, &str)]) -> FileMatches {
        let mut found = FileMatches::named(path);
        for (role, number, text) in lines {
            found.push(*role, *number, text);
        }
        found
    }

    fn check(has_context: bool, files: &[FileMatches], expected: &str) {
        let found = SearchOutcome {
            has_context,
            files: files.to_vec(),
            ..SearchOutcome::default()
        };
        assert_eq!(found.text(), expected);
    }

    #[test]
    fn numbers_have_their_digits() {
        for number in [0, 7, 10, 99, 1000, 10_203, u64::MAX] {
            let mut text = String::new();
            push_number(&mut text, number);
            assert_eq!(text, number.to_string());
        }
    }

    #[test]
    fn groups_are_separated_when_context_is_requested() {
        let plain = file("./a", &[(Match, 2, "x"), (Match, 9, "")]);
        let around = file(
            "b\n",
            &[
                (Before, 1, "1"),
                (Match, 2, "x"),
                (After, 3, "3"),
                (Match, 4, "x"),
                (Match, 12345, "x"),
            ],
        );
        check(true, &[], "");
        check(false, std::slice::from_ref(&plain), "a:2:x\na:9:\n");
        // Also when there are no matches.
        check(true, std::slice::from_ref(&plain), "a:2:x\n--\na:9:\n");
        check(
            true,
            &[plain, around],
            "a:2:x\n--\na:9:\n--\nb\u{FFFD}-1-1\nb\u{FFFD}:2:x\nb\u{FFFD}-3-3\nb\u{FFFD}:4:x\n--\n\
             b\u{FFFD}:12345:x\n",
        );
    }
}
