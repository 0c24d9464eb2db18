//! Files of `KEY=value` lines, as `.env` files are. Nothing in them is expanded: `$X` is `$X`.

use zeroize::Zeroizing;

use crate::secret::SecretValue;

/// One value of a file.
pub(super) struct Entry {
    /// Its line, from 1.
    pub(super) line: usize,
    pub(super) key: String,
    pub(super) value: SecretValue,
}

/// A line that is no entry: its number, from 1, and the reason.
pub(super) type BadLine = (usize, &'static str);

/// Reads a file: its entries, and the lines that are none.
pub(super) fn read(text: &str) -> (Vec<Entry>, Vec<BadLine>) {
    let text = without_windows_breaks(text);
    let (mut entries, mut bad) = (Vec::new(), Vec::new());
    let (mut rest, mut line) = (text.as_str(), 1);
    while !rest.is_empty() {
        let (first, mut behind) = split_line(rest);
        let mut lines = 1;
        match assignment(first) {
            Ok(None) => {}
            Err(reason) => bad.push((line, reason)),
            Ok(Some((key, value))) => {
                let start = rest.get(first.len() - value.len()..).unwrap_or(value);
                let value = match start.chars().next() {
                    Some(quote @ ('"' | '\'')) => quoted(start, quote).map(|quoted| {
                        lines += quoted.inside.matches('\n').count();
                        behind = quoted.behind;
                        unescaped(quoted.inside, quote)
                    }),
                    _ => Ok(plain(value)),
                };
                match value {
                    Ok(value) => entries.push(Entry {
                        line,
                        key: key.to_owned(),
                        value,
                    }),
                    Err(reason) => {
                        bad.push((line, reason));
                        // Lines behind an open quotation mark may be parts of the value, and are no names.
                        if reason == OPEN {
                            break;
                        }
                    }
                }
            }
        }
        rest = behind;
        line += lines;
    }
    (entries, bad)
}

const NO_ASSIGNMENT: &str = "is no KEY=value";
const OPEN: &str = "has a quotation mark that is not closed, so nothing from there on was read";
const TEXT_BEHIND: &str = "has text behind its closing quotation mark";

/// Returns key and value of a line; nothing for an empty one or a comment.
fn assignment(line: &str) -> Result<Option<(&str, &str)>, &'static str> {
    let text = line.trim_start();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let text = match text.strip_prefix("export") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
        _ => text,
    };
    let (key, value) = text.split_once('=').ok_or(NO_ASSIGNMENT)?;
    Ok(Some((key.trim_end(), value.trim_start())))
}

/// Returns a text without the CR of its line breaks, where all of them have one.
fn without_windows_breaks(text: &str) -> Zeroizing<String> {
    let mut unix = Zeroizing::new(String::with_capacity(text.len()));
    let is_windows = text.matches("\r\n").count() == text.matches('\n').count();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if !(is_windows && c == '\r' && chars.peek() == Some(&'\n')) {
            unix.push(c);
        }
    }
    unix
}

/// Returns the first line, without its end, and the text behind it.
fn split_line(text: &str) -> (&str, &str) {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    (line.strip_suffix('\r').unwrap_or(line), rest)
}

/// A value in quotation marks.
struct QuotedValue<'a> {
    inside: &'a str,
    /// The lines behind it.
    behind: &'a str,
}

/// Reads a value that begins with a quotation mark; it may have several lines.
fn quoted(text: &str, quote: char) -> Result<QuotedValue<'_>, &'static str> {
    let mut is_escaped = false;
    let is_end = |(_, c): &(usize, char)| {
        let ends = *c == quote && !is_escaped;
        is_escaped = *c == '\\' && quote == '"' && !is_escaped;
        ends
    };
    let (end, _) = text.char_indices().skip(1).find(is_end).ok_or(OPEN)?;
    let (after, behind) = split_line(text.get(end + 1..).unwrap_or_default());
    let is_comment = after.starts_with([' ', '\t']) && after.trim_start().starts_with('#');
    match after.trim().is_empty() || is_comment {
        true => Ok(QuotedValue {
            inside: text.get(1..end).unwrap_or_default(),
            behind,
        }),
        false => Err(TEXT_BEHIND),
    }
}

/// Returns a value without quotation marks.
fn plain(text: &str) -> SecretValue {
    // A comment needs white space before it: `#` is a good character of a password.
    let end = text.find(" #").or_else(|| text.find("\t#"));
    let text = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
    SecretValue::new(text.trim_end().to_owned())
}

/// Returns the value between quotation marks.
fn unescaped(inside: &str, quote: char) -> SecretValue {
    let mut value = Zeroizing::new(String::with_capacity(inside.len()));
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' if quote == '"' => match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        value.push(c);
    }
    SecretValue::new(std::mem::take(&mut *value))
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
        let found_odd: Vec<usize> = found_odd.iter().map(|(line, _)| *line).collect();
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
        // Of a key whose quotation mark is not closed no line becomes a name.
        check("nothing\nA='open\nB=2", &[], &[1, 2]);
        check(
            "A=1\nK=\"-----BEGIN KEY-----\nAQEF=\n-----END KEY-----\nB=1",
            &[(1, "A", "1")],
            &[2],
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
