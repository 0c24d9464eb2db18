//! Record of one secret: value, policy, note and dates in one text of the store. A policy thus lives exactly as long
//! as its value, and the index can be rebuilt from the store.
//!
//! ```text
//! karyi-secret 2 {"policy":{"tools":["url_fetch"],...},"note":"...","created":"...","updated":"..."}
//! THE VALUE
//! ```
//!
//! The first line of version 1 had only the policy; it is still read, and written as version 2 at the next change. A
//! text without such a line is from another program: a value with the default policy.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::policy::Policy;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{SecretName, SecretValue};

const HEAD: &str = "karyi-secret 2 ";

/// Header of version 1, before the policy.
const OLD_HEAD: &str = "karyi-secret 1 ";

/// Header of every version, followed by its number and a space.
const ANY_HEAD: &str = "karyi-secret ";

/// Value with its policy and metadata.
pub struct Record {
    /// The value.
    pub value: SecretValue,
    /// Its policy.
    pub policy: Policy,
    /// Its note and dates.
    pub facts: Facts,
}

/// Note and dates of a secret; version 1 and other programs have none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Note of the user.
    pub note: Option<String>,
    /// Time of creation.
    pub created: Option<Timestamp>,
    /// Time of the last change of value, policy or note.
    pub updated: Option<Timestamp>,
}

/// The first line of a record.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    policy: Policy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated: Option<Timestamp>,
}

impl Facts {
    /// Completes missing facts from others.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            note: self.note.or(other.note),
            created: self.created.or(other.created),
            updated: self.updated.or(other.updated),
        }
    }
}

/// Encodes a record.
///
/// # Errors
/// `internal_error` for a policy that cannot be encoded.
pub fn join(value: &SecretValue, policy: &Policy, facts: &Facts) -> Result<SecretValue, ToolError> {
    let Facts {
        note,
        created,
        updated,
    } = facts.clone();
    let line = serde_json::to_string(&Head {
        policy: policy.clone(),
        note,
        created,
        updated,
    });
    let line = line.map_err(|error| ToolError::new(ErrorCode::Internal, error.to_string()))?;
    let size = HEAD.len() + line.len() + 1 + value.expose().len();
    let mut text = Zeroizing::new(String::with_capacity(size));
    for part in [HEAD, &line, "\n", value.expose()] {
        text.push_str(part);
    }
    Ok(SecretValue::new(std::mem::take(&mut *text)))
}

/// Decodes a record.
///
/// # Errors
/// `bad_vault` when the first line is malformed: a value with an unknown policy is not used.
pub fn split(name: &SecretName, text: &SecretValue) -> Result<Record, ToolError> {
    let text = text.expose();
    let Some(length) = policy_line(text) else {
        return Ok(Record {
            value: SecretValue::new(text.to_owned()),
            policy: Policy::default(),
            facts: Facts::default(),
        });
    };
    let parsed = text.split_at_checked(length).and_then(|(line, rest)| {
        let value = rest.strip_prefix('\n')?;
        Some((parse_line(line)?, value))
    });
    let Some((head, value)) = parsed else {
        let message = format!("the policy of {name} in the store cannot be read");
        let hint = format!("set it again with `karyi var set {name}`");
        return Err(ToolError::new(ErrorCode::BadVault, message).with_hint(hint));
    };
    Ok(Record {
        value: SecretValue::new(value.to_owned()),
        policy: head.policy,
        facts: Facts {
            note: head.note,
            created: head.created,
            updated: head.updated,
        },
    })
}

/// Decodes the only record under a name. Another program may have stored several.
///
/// # Errors
/// As [`split`]; `bad_vault` for several texts; the error of an unreadable one.
pub fn only(
    name: &SecretName,
    texts: &[Result<SecretValue, ToolError>],
) -> Result<Record, ToolError> {
    match texts {
        [Ok(text)] => split(name, text),
        [Err(error)] => Err(error.clone()),
        several => {
            let message = format!("the keyring holds {} values under {name}", several.len());
            Err(ToolError::new(ErrorCode::BadVault, message)
                .with_hint("remove all but one of them with the keyring's own program"))
        }
    }
}

/// Parses the first line of version 2 or 1.
fn parse_line(line: &str) -> Option<Head> {
    if let Some(head) = line.strip_prefix(HEAD) {
        return serde_json::from_str(head).ok();
    }
    let policy = serde_json::from_str(line.strip_prefix(OLD_HEAD)?).ok()?;
    Some(Head {
        policy,
        note: None,
        created: None,
        updated: None,
    })
}

/// Returns the value of a record with a malformed policy, to mask it. Without a line of its own the whole text may be
/// the value.
#[must_use]
pub fn value_alone(text: &SecretValue) -> SecretValue {
    let text = text.expose();
    let after = policy_line(text).and_then(|line| text.get(line + 1..));
    let value = after.filter(|value| !value.is_empty());
    SecretValue::new(value.unwrap_or(text).to_owned())
}

/// Returns the length of the first line if it is a header of any version.
fn policy_line(text: &str) -> Option<usize> {
    let (version, _) = text.strip_prefix(ANY_HEAD)?.split_once(' ')?;
    let is_number = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| memchr::memchr(b'\n', text.as_bytes()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> SecretName {
        SecretName::parse("TOKEN").unwrap()
    }

    fn parts(text: &str) -> Result<(String, Policy), ErrorCode> {
        split(&name(), &SecretValue::new(text.into()))
            .map(|record| (record.value.expose().to_owned(), record.policy))
            .map_err(|error| error.code)
    }

    #[test]
    fn value_policy_note_and_dates_come_back() {
        let policy = Policy {
            write: true,
            ..Policy::default()
        };
        let facts = Facts {
            note: Some("for \"CI\"\nonly".into()),
            created: Timestamp::from_second(1_700_000_000).ok(),
            updated: Timestamp::from_second(1_800_000_000).ok(),
        };
        for (value, facts) in [
            ("abcd", facts.clone()),
            ("a\nb\n", Facts::default()),
            ("karyi-secret 2 {}\nx", facts),
            ("", Facts::default()),
        ] {
            let text = join(&SecretValue::new(value.into()), &policy, &facts).unwrap();
            let record = split(&name(), &text).unwrap();
            assert_eq!(record.value.expose(), value);
            assert_eq!((record.policy, record.facts), (policy.clone(), facts));
        }
    }

    #[test]
    fn version_1_is_read() {
        let policy = Policy {
            write: true,
            ..Policy::default()
        };
        let text = "karyi-secret 1 {\"write\":true}\nva\nlue";
        assert_eq!(parts(text), Ok(("va\nlue".into(), policy)));
    }

    #[test]
    fn text_of_another_program_is_a_value() {
        assert_eq!(parts("tok\nen"), Ok(("tok\nen".into(), Policy::default())));
    }

    #[test]
    fn a_policy_that_cannot_be_read_is_no_policy() {
        for text in [
            "karyi-secret 1 ",
            "karyi-secret 1 {}",
            "karyi-secret 1 {\nvalue",
            "karyi-secret 1 {\"tool\":[]}\nvalue",
            "karyi-secret 2 {}\nvalue",
            "karyi-secret 2 {\"policy\":{},\"more\":1}\nvalue",
            "karyi-secret 2 {\"policy\":{}}",
            "karyi-secret 3 {\"policy\":{}}\nvalue",
            "karyi-secret 10 ",
        ] {
            assert_eq!(parts(text), Err(ErrorCode::BadVault), "{text}");
        }
    }

    #[test]
    fn a_value_is_found_without_its_policy() {
        let check = |text: &str, expected: &str| {
            let value = value_alone(&SecretValue::new(text.into()));
            assert_eq!(value.expose(), expected, "{text}");
        };
        check("karyi-secret 1 {\"tool\":[]}\nva\nlue", "va\nlue");
        check("karyi-secret 2 {}\nvalue", "value");
        check("karyi-secret 1 {", "karyi-secret 1 {");
        check("karyi-secret 1 {}\n", "karyi-secret 1 {}\n");
        check("karyi-secret x\nvalue", "karyi-secret x\nvalue");
    }
}
