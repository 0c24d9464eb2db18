//! Reads files of `KEY=value` lines such as `.env`. Nothing is expanded: `$X` stays `$X`.

use std::borrow::Cow;

use zeroize::Zeroizing;

use karyi_core::secret::SecretValue;

/// One value of a file.
pub(super) struct Entry {
    /// Its line, from 1.
    pub(super) line: usize,
    pub(super) key: String,
    pub(super) value: SecretValue,
}

/// An invalid line: its number, from 1, and the reason.
pub(super) type BadLine = (usize, &'static str);

const NO_ASSIGNMENT: &str = "is no KEY=value";
const OPEN: &str = "has a quotation mark that is not closed, so nothing from there on was read";
const TEXT_BEHIND: &str = "has text behind its closing quotation mark";

/// Reads a file: its entries and its invalid lines.
pub(super) fn read(text: &str) -> (Vec<Entry>, Vec<BadLine>) {
    // In a file with CR LF line ends, the CR does not belong to values of several lines.
    let is_windows = text.matches("\r\n").count() == text.matches('\n').count();
    let text = match is_windows {
        true => Cow::Owned(text.replace("\r\n", "\n")),
        false => Cow::Borrowed(text),
    };
    let (mut entries, mut bad) = (Vec::new(), Vec::new());
    let (mut rest, mut line) = (text.as_ref(), 1);
    while !rest.is_empty() {
        let start = rest;
        match entry(&mut rest) {
            Ok(Some((key, value))) => entries.push(Entry { line, key, value }),
            Ok(None) => {}
            Err(reason) => {
                bad.push((line, reason));
                // Lines after an open quotation mark may be parts of the value, so they are no names.
                if reason == OPEN {
                    break;
                }
            }
        }
        let read = start.get(..start.len() - rest.len()).unwrap_or_default();
        line += read.matches('\n').count();
    }
    (entries, bad)
}

/// Reads the first entry of a text; `None` for an empty line or a comment.
fn entry(rest: &mut &str) -> Result<Option<(String, SecretValue)>, &'static str> {
    let whole = *rest;
    let line = next_line(rest);
    let text = line.trim_start();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let text = match text.strip_prefix("export") {
        Some(behind) if behind.starts_with([' ', '\t']) => behind.trim_start(),
        _ => text,
    };
    let (key, value) = text.split_once('=').ok_or(NO_ASSIGNMENT)?;
    let value = value.trim_start();
    let value = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            *rest = whole.get(line.len() - value.len()..).unwrap_or_default();
            quoted(rest, quote)?
        }
        _ => {
            // A comment needs white space before it: `#` may be part of a password.
            let end = value.find(" #").or_else(|| value.find("\t#"));
            let value = value.get(..end.unwrap_or(value.len())).unwrap_or_default();
            value.trim_end().to_owned()
        }
    };
    Ok(Some((key.trim_end().to_owned(), SecretValue::new(value))))
}

/// Removes the first line from a text and returns it without its end.
fn next_line<'a>(rest: &mut &'a str) -> &'a str {
    let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
    *rest = behind;
    line.strip_suffix('\r').unwrap_or(line)
}

/// Reads a quoted value, possibly of several lines, and the rest of its last line.
fn quoted(rest: &mut &str, quote: char) -> Result<String, &'static str> {
    let whole = *rest;
    let mut value = Zeroizing::new(String::with_capacity(whole.len()));
    let mut chars = whole.char_indices().skip(1);
    let end = loop {
        let (at, c) = chars.next().ok_or(OPEN)?;
        match c {
            c if c == quote => break at,
            '\\' if quote == '"' => value.push(match chars.next().ok_or(OPEN)?.1 {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                other => other,
            }),
            c => value.push(c),
        }
    };
    *rest = whole.get(end + 1..).unwrap_or_default();
    let after = next_line(rest);
    let is_comment = after.starts_with([' ', '\t']) && after.trim_start().starts_with('#');
    match after.trim().is_empty() || is_comment {
        true => Ok(value.as_str().to_owned()),
        false => Err(TEXT_BEHIND),
    }
}

/// Returns the line of one value, readable by this module and by shells.
pub(super) fn line(key: &str, value: &str) -> Zeroizing<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,".contains(c);
    let mut line = Zeroizing::new(String::with_capacity(key.len() + 2 * value.len() + 4));
    line.extend([key, "="]);
    if value.chars().all(is_plain) && !value.is_empty() {
        line.push_str(value);
    } else if !value.contains('\'') {
        line.extend(["'", value, "'"]);
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
        // After an open quotation mark no line becomes a name.
        check("nothing\nA='open\nB=2", &[], &[1, 2]);
        check(
            "A=1\nK=\"-----BEGIN KEY-----\nAQEF=\n-----END KEY-----\nB=1",
            &[(1, "A", "1")],
            &[2],
        );
        check("A=密码'🔑'", &[(1, "A", "密码'🔑'")], &[]);
        // In a file with CR LF line ends, they are no part of a value.
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
