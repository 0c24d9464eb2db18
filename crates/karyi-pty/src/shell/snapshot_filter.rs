//! Removes secrets from a shell snapshot before it is restored into a new shell.

use std::sync::Arc;

use karyi_core::limits;

use crate::shell::secrets::ShellSecrets;
use crate::shell::snapshot::Snapshot;

impl Snapshot {
    /// Returns the snapshot without statements that contain a secret, and what was removed: `export NAME`, `alias
    /// NAME`. One secret removes all functions.
    pub(crate) fn without_secrets(&self, secrets: &ShellSecrets) -> (Self, Vec<String>) {
        let mut left_out = Vec::new();
        let mut commands = Vec::with_capacity(self.commands.len());
        for section in self.sections() {
            commands.extend_from_slice(section.heading);
            if section.name.ends_with(b"functions") {
                if !contains_secret(secrets, section.text) {
                    commands.extend_from_slice(section.text);
                }
                continue;
            }
            let kind = if section.name.ends_with(b"aliases") {
                "alias"
            } else {
                "export"
            };
            for statement in statements(section.text) {
                if !contains_secret(secrets, statement) {
                    commands.extend_from_slice(statement);
                } else if left_out.len() < limits::MAX_LEFT_OUT_NAMES {
                    left_out.extend(name(statement).map(|name| format!("{kind} {name}")));
                }
            }
        }
        let commands = Arc::new(commands);
        (
            Self {
                commands,
                ..self.clone()
            },
            left_out,
        )
    }
}

/// Returns true if shell text contains a secret, literally or after unquoting.
fn contains_secret(secrets: &ShellSecrets, text: &[u8]) -> bool {
    secrets.are_contained_in(text) || secrets.are_contained_in(&unquoted(text))
}

/// Returns the name that a statement assigns, if it is a plain one.
fn name(statement: &[u8]) -> Option<String> {
    let end = memchr::memchr(b'=', statement)?;
    let word = statement.get(..end)?.rsplit(|byte| *byte == b' ').next()?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let fits = !word.is_empty() && word.len() <= 64 && word.iter().all(is_plain);
    fits.then(|| String::from_utf8_lossy(word).into_owned())
}

/// Splits text after the line breaks outside quotes.
fn statements(text: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut reader = QuoteReader::default();
    for (at, byte) in text.iter().enumerate() {
        reader.read(*byte);
        if *byte == b'\n' && reader.quote.is_none() {
            found.extend(text.get(start..=at));
            start = at + 1;
        }
    }
    found.extend(text.get(start..).filter(|rest| !rest.is_empty()));
    found
}

/// Returns the text as a shell reads it, without quotes.
fn unquoted(text: &[u8]) -> zeroize::Zeroizing<Vec<u8>> {
    let mut plain = zeroize::Zeroizing::new(Vec::with_capacity(text.len()));
    let mut reader = QuoteReader::default();
    for byte in text {
        plain.extend(reader.read(*byte));
        if reader.begins_ansi {
            plain.pop();
            reader.begins_ansi = false;
        }
    }
    plain
}

/// Reads quoted text byte by byte.
#[derive(Default)]
struct QuoteReader {
    quote: Option<Quote>,
    is_escaped: bool,
    is_after_dollar: bool,
    /// True if the last byte turned the `$` before it into a part of a quote.
    begins_ansi: bool,
    /// An octal escape: its value and number of digits so far.
    octal: Option<(u8, u8)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    Single,
    Double,
    Ansi,
}

impl QuoteReader {
    /// Reads a byte; returns the bytes it stands for.
    fn read(&mut self, byte: u8) -> Vec<u8> {
        let mut output = Vec::new();
        if let Some((value, digits)) = self.octal.take() {
            if digits < 3 && matches!(byte, b'0'..=b'7') {
                self.octal = Some((value.wrapping_mul(8).wrapping_add(byte - b'0'), digits + 1));
                return output;
            }
            output.push(value);
        }
        let was_after_dollar = std::mem::take(&mut self.is_after_dollar);
        if std::mem::take(&mut self.is_escaped) {
            self.escaped(byte, &mut output);
            return output;
        }
        match (self.quote, byte) {
            (None | Some(Quote::Double | Quote::Ansi), b'\\') => self.is_escaped = true,
            (None, b'\'') if was_after_dollar => {
                self.quote = Some(Quote::Ansi);
                self.begins_ansi = true;
            }
            (None, b'\'') => self.quote = Some(Quote::Single),
            (None, b'"') => self.quote = Some(Quote::Double),
            (Some(Quote::Single | Quote::Ansi), b'\'') | (Some(Quote::Double), b'"') => {
                self.quote = None;
            }
            _ => {
                self.is_after_dollar = self.quote.is_none() && byte == b'$';
                output.push(byte);
            }
        }
        output
    }

    fn escaped(&mut self, byte: u8, output: &mut Vec<u8>) {
        match (self.quote, byte) {
            (Some(Quote::Ansi), b'0'..=b'7') => self.octal = Some((byte - b'0', 1)),
            (Some(Quote::Ansi), b'n') => output.push(b'\n'),
            (Some(Quote::Ansi), b't') => output.push(b'\t'),
            (Some(Quote::Ansi), b'r') => output.push(b'\r'),
            (Some(Quote::Ansi), b'e' | b'E') => output.push(0x1b),
            (Some(Quote::Double), byte) if !b"\\\"$`".contains(&byte) => {
                output.extend([b'\\', byte]);
            }
            (_, byte) => output.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn shell_text_is_read_as_a_shell_does() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                String::from_utf8_lossy(&unquoted(text.as_bytes())),
                expected,
                "{text}"
            );
        };
        check(
            r#"declare -x A="x \"y\" \$z \n""#,
            r#"declare -x A=x "y" $z \n"#,
        );
        check(r"export A='it'\''s'", "export A=it's");
        check(r#"export A='it'"'"'s'"#, "export A=it's");
        check(r"A=$'1\n2\303\2513\'x'", "A=1\n2é3'x");
        check(r"A=a\ b", "A=a b");
    }

    #[test]
    fn statements_with_secrets_are_removed() {
        let text = "#environment n\ndeclare -x A=\"1\"\ndeclare -x B=\"my\nS3\\\"cret\nx\"\nexport C=3\n\
                    #=aliases n\na='S3\"cret'\nb='c'\n#functions n\nf () { S3\\\"cret; }\n\
                    #+options n\nset -o noclobber\n";
        let snapshot = Snapshot {
            cwd: "/".into(),
            commands: Arc::new(text.into()),
            taken: Instant::now(),
        };
        let secrets = ShellSecrets::new(|bytes| memchr::memmem::find(bytes, b"S3\"cret").is_some());
        let (rest, left_out) = snapshot.without_secrets(&secrets);
        let expected = "#environment n\ndeclare -x A=\"1\"\nexport C=3\n#=aliases n\nb='c'\n\
                        #functions n\n#+options n\nset -o noclobber\n";
        assert_eq!(String::from_utf8_lossy(&rest.commands), expected);
        assert_eq!(left_out, ["export B", "alias a"]);
    }
}
