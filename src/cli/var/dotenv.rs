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
    let (mut entries, mut odd) = (Vec::new(), Vec::new());
    let mut lines = text.lines().enumerate();
    // What stands behind a quotation mark that is not closed may be a part of a value.
    let mut is_doubtful = false;
    while let Some((number, line)) = lines.next() {
        let plain = line.trim_start();
        if plain.is_empty() || plain.starts_with('#') {
            continue;
        }
        let plain = match plain.strip_prefix("export") {
            Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
            _ => plain,
        };
        let Some((key, value)) = plain.split_once('=') else {
            odd.push(number + 1);
            continue;
        };
        if is_doubtful && (value.trim().is_empty() || value.starts_with('=')) {
            odd.push(number + 1);
            continue;
        }
        let mut rest = Zeroizing::new(value.trim_start().to_owned());
        let next = lines.clone();
        // A value in quotation marks may have several lines.
        while is_open(&rest)
            && let Some((_, more)) = lines.next()
        {
            rest.push('\n');
            rest.push_str(more);
        }
        match value_of(&rest) {
            Some(value) => entries.push(Entry {
                line: number + 1,
                key: key.trim_end().to_owned(),
                value,
            }),
            None => {
                // It takes no other line with it.
                is_doubtful |= rest.contains('\n') || is_open(&rest);
                odd.push(number + 1);
                lines = next;
            }
        }
    }
    (entries, odd)
}

/// Whether a text starts with a quotation mark that is not closed.
fn is_open(text: &str) -> bool {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => closing(text, quote).is_none(),
        _ => false,
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

fn value_of(text: &str) -> Option<SecretValue> {
    let quote = text.chars().next().filter(|c| ['"', '\''].contains(c));
    let Some(quote) = quote else {
        // A comment needs white space before it: `#` is a good character of a password.
        let end = text
            .find(" #")
            .or_else(|| text.find("\t#"))
            .unwrap_or(text.len());
        let text = text.get(..end).unwrap_or_default();
        return Some(SecretValue::new(text.trim_end().to_owned()));
    };
    let end = closing(text, quote)?;
    // What stands behind it would be a part of the value for a shell, and is lost to others.
    let after = text.get(end + 1..)?;
    let is_comment = after.starts_with([' ', '\t']) && after.trim_start().starts_with('#');
    if !after.trim().is_empty() && !is_comment {
        return None;
    }
    let inside = text.get(1..end)?;
    if quote == '\'' {
        return Some(SecretValue::new(inside.to_owned()));
    }
    let mut value = Zeroizing::new(String::with_capacity(inside.len()));
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
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
        ];
        for value in values {
            check(&line("K", value), &[(1, "K", value)], &[]);
        }
    }
}
