//! Files of `KEY=value` lines, as many programs read them.

use zeroize::Zeroizing;

use crate::secret::SecretValue;

/// One assignment.
pub(super) struct Entry {
    /// The number of its line, from 1.
    pub(super) line: usize,
    /// Its key, as written.
    pub(super) key: String,
    /// Its value.
    pub(super) value: SecretValue,
}

/// Reads a file. Returns the entries and the numbers of the lines that are none.
pub(super) fn read(text: &str) -> (Vec<Entry>, Vec<usize>) {
    let mut found = Found::default();
    let breaks = Breaks::of(text);
    let (mut rest, mut line) = (text, 0);
    while !rest.is_empty() {
        line += 1;
        let from = rest;
        let (first, after) = split_line(rest);
        rest = after;
        let Some((key, value)) = found.assignment(first, line) else {
            continue;
        };
        // A value in quotation marks may have several lines.
        let from = from.get(first.len() - value.len()..).unwrap_or(value);
        let value = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => match quoted(from, quote) {
                Quoted::Whole { inside, behind } => {
                    rest = behind;
                    let value = value_of(inside, quote, breaks);
                    let value = value.map(|value| (value, inside.matches('\n').count()));
                    found.is_doubtful |= value.is_none() && inside.contains('\n');
                    value
                }
                Quoted::Broken { is_long } => {
                    found.is_doubtful |= is_long;
                    None
                }
            },
            _ => Some((plain(value), 0)),
        };
        match value {
            Some((value, more)) => {
                let key = key.trim_end().to_owned();
                found.entries.push(Entry { line, key, value });
                line += more;
            }
            // It takes no other line with it.
            None => {
                rest = after;
                found.odd.push(line);
            }
        }
    }
    (found.entries, found.odd)
}

/// What was read so far.
#[derive(Default)]
struct Found {
    entries: Vec<Entry>,
    odd: Vec<usize>,
    /// Whether lines may be parts of a value: they stand behind a quotation mark that is not closed.
    is_doubtful: bool,
}

impl Found {
    /// Returns key and value of a line, or notes that it is none.
    fn assignment<'a>(&mut self, text: &'a str, line: usize) -> Option<(&'a str, &'a str)> {
        let text = text.trim_start();
        if text.is_empty() || text.starts_with('#') {
            return None;
        }
        let text = match text.strip_prefix("export") {
            Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
            _ => text,
        };
        let is_part = |value: &str| value.trim().is_empty() || value.starts_with('=');
        match text.split_once('=') {
            Some((key, value)) if !(self.is_doubtful && is_part(value)) => {
                Some((key, value.trim_start()))
            }
            _ => {
                self.odd.push(line);
                None
            }
        }
    }
}

/// How the lines of a file end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    /// All with CR and LF: an editor's doing, and no part of any value.
    Windows,
    /// With LF: a CR before one belongs to its value.
    Unix,
}

impl Breaks {
    fn of(text: &str) -> Self {
        match text.matches("\r\n").count() == text.matches('\n').count() {
            true => Self::Windows,
            false => Self::Unix,
        }
    }
}

/// Returns the first line, without its end, and what comes behind it.
fn split_line(text: &str) -> (&str, &str) {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    (line.strip_suffix('\r').unwrap_or(line), rest)
}

/// What begins with a quotation mark.
enum Quoted<'a> {
    /// A value, and what comes behind its last line.
    Whole { inside: &'a str, behind: &'a str },
    /// The quotation mark is not closed, or something comes behind the value.
    Broken {
        /// Whether further lines may be parts of it.
        is_long: bool,
    },
}

/// Reads what begins with a quotation mark. No text is looked at twice for the same one: what it does not find, none
/// after it finds.
fn quoted(text: &str, quote: char) -> Quoted<'_> {
    let Some(end) = closing(text, quote) else {
        return Quoted::Broken { is_long: true };
    };
    let inside = text.get(1..end).unwrap_or_default();
    // What stands behind it would be a part of the value for a shell, and is lost to others.
    let (after, behind) = split_line(text.get(end + 1..).unwrap_or_default());
    let is_comment = after.starts_with([' ', '\t']) && after.trim_start().starts_with('#');
    match after.trim().is_empty() || is_comment {
        true => Quoted::Whole { inside, behind },
        false => Quoted::Broken {
            is_long: inside.contains('\n'),
        },
    }
}

/// Returns the place of the quotation mark that closes the one a text starts with.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (place, c) in text.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' && quote == '"' {
            is_escaped = true;
        } else if c == quote {
            return Some(place);
        }
    }
    None
}

/// Returns a value without quotation marks.
fn plain(text: &str) -> SecretValue {
    // A comment needs white space before it: `#` is a good character of a password.
    let end = text
        .find(" #")
        .or_else(|| text.find("\t#"))
        .unwrap_or(text.len());
    let text = text.get(..end).unwrap_or_default();
    SecretValue::new(text.trim_end().to_owned())
}

/// Returns the value between quotation marks.
fn value_of(inside: &str, quote: char, breaks: Breaks) -> Option<SecretValue> {
    let mut value = Zeroizing::new(String::with_capacity(inside.len()));
    let mut chars = inside.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if breaks == Breaks::Windows && chars.peek() == Some(&'\n') => {}
            '\\' if quote == '"' => match chars.next()? {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    Some(SecretValue::new(std::mem::take(&mut *value)))
}

/// Returns the line of one value, as this module and shells read it.
pub(super) fn line(key: &str, value: &str) -> Zeroizing<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,".contains(c);
    let mut line = Zeroizing::new(String::with_capacity(key.len() + 2 * value.len() + 4));
    line.push_str(key);
    line.push('=');
    if value.chars().all(is_plain) && !value.is_empty() {
        line.push_str(value);
    } else if !value.contains('\'') {
        line.push('\'');
        line.push_str(value);
        line.push('\'');
    } else {
        line.push('"');
        for c in value.chars() {
            if ['"', '\\', '$', '`'].contains(&c) {
                line.push('\\');
            }
            line.push(c);
        }
        line.push('"');
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(usize, &str, &str)], odd: &[usize]) {
        let (entries, found_odd) = read(text);
        let found = entries
            .iter()
            .map(|e| (e.line, e.key.as_str(), e.value.expose()));
        assert_eq!(
            (found.collect::<Vec<_>>(), found_odd.as_slice()),
            (expected.to_vec(), odd)
        );
    }

    #[test]
    fn lines_become_entries() {
        check("", &[], &[]);
        check(
            "# c\n\nA=1\nexport B = 2 # c\n",
            &[(3, "A", "1"), (4, "B", "2")],
            &[],
        );
        check("A=a#b\r\nB=\n", &[(1, "A", "a#b"), (2, "B", "")], &[]);
        check(
            "A='x $y\\n'\nB=\"a\\\"b\\nc\"",
            &[(1, "A", "x $y\\n"), (2, "B", "a\"b\nc")],
            &[],
        );
        check(
            "A=\"one\ntwo\"\nB=3",
            &[(1, "A", "one\ntwo"), (3, "B", "3")],
            &[],
        );
        check("nothing\nA='open\nB=2", &[(3, "B", "2")], &[1, 2]);
        check(
            "A=\"open\nB=two\nC=\"x\"\nD='y'",
            &[(2, "B", "two"), (3, "C", "x"), (4, "D", "y")],
            &[1],
        );
        // Of a key whose quotation mark is not closed no line becomes a name.
        check(
            "K=\"-----BEGIN KEY-----\nMIIEvQ==\nAQEF=\n-----END KEY-----\nA=1",
            &[(5, "A", "1")],
            &[1, 2, 3, 4],
        );
        check("A=密码'🔑'", &[(1, "A", "密码'🔑'")], &[]);
        // Of a file whose lines all end so, the ends are no part of a value.
        check(
            "A='one\r\ntwo'\r\nB=\"3\" # c\r\n",
            &[(1, "A", "one\ntwo"), (3, "B", "3")],
            &[],
        );
        check("A='one\r\ntwo'\n", &[(1, "A", "one\r\ntwo")], &[]);
        check("export \t A='1' # c", &[(1, "A", "1")], &[]);
        check(
            "A='a'\\''b'\nB=\"a\"'b'\nC=\"a\" b\nD='a'#b",
            &[],
            &[1, 2, 3, 4],
        );
    }

    /// Reading each line again for each quotation mark would take hours.
    #[test]
    fn many_open_quotation_marks_are_read_in_one_go() {
        let count = 400_000;
        let lines: String = (0..count).map(|line| format!("K{line}=1\n")).collect();
        let (entries, odd) = read(&format!("A='open\n{lines}B=\"open\n{lines}"));
        assert_eq!((entries.len(), odd), (2 * count, vec![1, count + 2]));
    }

    #[test]
    fn what_is_written_is_read() {
        let values = [
            "plain",
            "",
            "two words",
            "it's \"a\" $HOME `id` \\",
            "'",
            "\"",
            "a\nb\n",
            "密码🔑",
            "a # b",
            "\\n",
            "\r\ncrlf\r\n-value",
            "a\rb\r",
            "it's\r\n\"a\"\r\n",
        ];
        for value in values {
            check(&line("K", value), &[(1, "K", value)], &[]);
        }
    }
}
