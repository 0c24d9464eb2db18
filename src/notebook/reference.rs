//! Ids of people and channels, and references to them in a text: `[John](tg:1001)`.

use std::fmt;

/// Id of a person or channel that a message can reach.
///
/// One of `tg:NUMBER`, `tg:@NAME`, `maep:PEER`, `slack:CHANNEL` and `discord:CHANNEL`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReferenceId(String);

impl ReferenceId {
    /// Reads an id; nothing when it has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (service, rest) = text.split_once(':')?;
        let is_made_of = |signs: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
            !rest.is_empty() && rest.chars().all(fits)
        };
        let is_valid = match service {
            "tg" => match rest.strip_prefix('@') {
                Some(name) => !name.is_empty() && name.chars().all(is_word),
                None => !rest.starts_with('+') && rest.parse::<i64>().is_ok(),
            },
            "maep" => is_made_of("._-"),
            "slack" | "discord" => is_made_of("._:-"),
            _ => false,
        };
        is_valid.then(|| Self(text.to_owned()))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ReferenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the ids that a text refers to, in order.
///
/// Every Markdown link counts, except one to a web address, which has `://` in it.
///
/// # Errors
/// The first target that is no id.
pub fn references(text: &str) -> Result<Vec<ReferenceId>, &str> {
    let mut ids = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once("](") {
        let Some((target, behind)) = after.split_once(')') else {
            break;
        };
        rest = behind;
        if name.contains('[') && !target.contains("://") {
            ids.push(ReferenceId::parse(target).ok_or(target)?);
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_service_and_a_name() {
        for text in [
            "tg:1",
            "tg:-1001",
            "tg:@john_1",
            "maep:12D3Koo.W-x",
            "slack:T1:C2",
            "discord:a.b",
        ] {
            assert_eq!(
                ReferenceId::parse(text).map(|id| id.to_string()).as_deref(),
                Some(text)
            );
        }
        for text in [
            "",
            "tg",
            "tg:",
            "tg:@",
            "tg:john",
            "tg:1.5",
            "tg:+1",
            "tg:9223372036854775808",
            "tg:@j n",
            "TG:1",
            "foo:1",
            "maep:a:b",
            "maep:",
            "slack:a b",
            "discord:é",
        ] {
            assert_eq!(ReferenceId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn references_are_links_to_ids() {
        let check = |text: &str, expected: Result<&[&str], &str>| {
            let found = references(text).map(|ids| ids.iter().map(ToString::to_string).collect());
            let expected = expected.map(|ids| ids.iter().map(ToString::to_string).collect());
            assert_eq!(found, expected as Result<Vec<String>, &str>, "{text}");
        };
        check("do (something) to [it]", Ok(&[]));
        check(
            "Call [John](tg:1) and [Ann](tg:@ann)",
            Ok(&["tg:1", "tg:@ann"]),
        );
        check("[X](foo:1)", Err("foo:1"));
        check("[X]()", Err(""));
        check(
            "see [the page](https://example.com/a) and [John](tg:1)",
            Ok(&["tg:1"]),
        );
        check("open [John](tg:1", Ok(&[]));
        check("a](tg:x) b", Ok(&[]));
    }

    #[test]
    fn hostile_texts_are_read_once() {
        assert_eq!(references(&"[](".repeat(100_000)), Ok(Vec::new()));
        assert_eq!(references(&"](".repeat(100_000)), Ok(Vec::new()));
    }
}
