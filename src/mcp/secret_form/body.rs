//! Parses the body of the form.

use ring::digest::{SHA256, digest};
use zeroize::Zeroizing;

use crate::tool::context::{Lifetime, Reply};
use karyi_core::limits;
use karyi_core::secret::SecretValue;

/// Reads an answer.
///
/// # Errors
/// A message for the user.
pub(super) fn read(body: &[u8], csrf: &str, can_save: bool) -> Result<Reply, &'static str> {
    let mut fields = Fields::default();
    for pair in body.split(|byte| *byte == b'&') {
        let (name, value) = pair
            .iter()
            .position(|byte| *byte == b'=')
            .and_then(|at| Some((pair.get(..at)?, pair.get(at + 1..)?)))
            .unwrap_or((pair, b""));
        let value = decoded(value).ok_or("The answer is malformed.")?;
        match name {
            b"csrf" => fields.csrf = value,
            b"value" => fields.value = value,
            b"lines" => fields.lines = value,
            b"lifetime" => fields.lifetime = value,
            b"answer" => fields.answer = value,
            _ => {}
        }
    }
    fields.reply(csrf, can_save)
}

#[derive(Default)]
struct Fields {
    csrf: Zeroizing<String>,
    value: Zeroizing<String>,
    lines: Zeroizing<String>,
    lifetime: Zeroizing<String>,
    answer: Zeroizing<String>,
}

impl Fields {
    fn reply(self, csrf: &str, can_save: bool) -> Result<Reply, &'static str> {
        // Comparing hashes takes a time that is independent of the values.
        let hash = |text: &str| digest(&SHA256, text.as_bytes());
        if hash(&self.csrf).as_ref() != hash(csrf).as_ref() {
            return Err("The answer does not belong to this page.");
        }
        match self.answer.as_str() {
            "deny" => return Ok(Reply::Declined),
            "give" => {}
            _ => return Err("The answer is neither yes nor no."),
        }
        let lifetime = match self.lifetime.as_str() {
            "once" => Lifetime::Once,
            "session" => Lifetime::Session,
            "save" if can_save => Lifetime::Saved,
            _ => return Err("The answer does not say how long the value may be used."),
        };
        // Forms use CRLF line endings.
        let value = match (self.value.is_empty(), self.lines.is_empty()) {
            (false, true) => self.value.as_str().to_owned(),
            (true, false) => self.lines.replace("\r\n", "\n"),
            (true, true) => {
                return Err("The value is empty. Go back, reload the page and enter it.");
            }
            (false, false) => {
                return Err("There are two values. Go back, reload the page and leave one.");
            }
        };
        match value.len() <= limits::MAX_SECRET_BYTES {
            true => Ok(Reply::Value(SecretValue::new(value), lifetime)),
            false => Err("The value is too long."),
        }
    }
}

/// Decodes a form value.
fn decoded(text: &[u8]) -> Option<Zeroizing<String>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let (high, low) = (rest.next()?, rest.next()?);
                bytes.push(digit(*high)? << 4 | digit(*low)?);
            }
            byte => bytes.push(*byte),
        }
    }
    let text = std::str::from_utf8(&bytes).ok()?;
    Some(Zeroizing::new(text.to_owned()))
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expected: Result<(&str, Lifetime), &str>) {
        let found = match read(body.as_bytes(), "tok", false) {
            Ok(Reply::Value(value, lifetime)) => Ok((value.expose().to_owned(), lifetime)),
            Ok(Reply::Declined) => Err("declined"),
            Ok(_) => Err("another reply"),
            Err(problem) => Err(problem),
        };
        let expected = expected.map(|(value, lifetime)| (value.to_owned(), lifetime));
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn forms_are_parsed() {
        let good = "csrf=tok&answer=give&lifetime=session";
        check(
            &format!("{good}&value=a%2Bb+%26%E4%B8%A5&lines="),
            Ok(("a+b &严", Lifetime::Session)),
        );
        check(
            &format!("{good}&value=&lines=one%0D%0Atwo%0D%0A"),
            Ok(("one\ntwo\n", Lifetime::Session)),
        );
        check(
            "csrf=tok&answer=give&lifetime=once&value=x",
            Ok(("x", Lifetime::Once)),
        );
        check("csrf=tok&answer=deny&value=x", Err("declined"));
    }

    #[test]
    fn invalid_forms_are_refused() {
        let not_ours = "The answer does not belong to this page.";
        check("", Err(not_ours));
        check("csrf=other&answer=give&value=x", Err(not_ours));
        check(
            "csrf=tok&answer=give&lifetime=save&value=x",
            Err("The answer does not say how long the value may be used."),
        );
        check(
            "csrf=tok&answer=give&lifetime=once&value=%ff",
            Err("The answer is malformed."),
        );
        check(
            "csrf=tok&answer=give&lifetime=once&value=%4",
            Err("The answer is malformed."),
        );
        check(
            "csrf=tok&answer=give&lifetime=once",
            Err("The value is empty. Go back, reload the page and enter it."),
        );
    }
}
