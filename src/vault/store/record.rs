//! A value and its policy as one text: they are kept, read and removed together, so that a policy
//! holds exactly as long as its value is what it was said about.
//!
//! ```text
//! karyi-secret 1 {"tools":["url_fetch"],...}
//! THE VALUE
//! ```
//!
//! A text without this first line was put into the store by another program: it is a value with the
//! default policy.

use zeroize::Zeroizing;

use crate::error::{ErrorCode, ToolError};
use crate::secret::{SecretName, SecretValue};
use crate::vault::policy::Policy;

const HEAD: &str = "karyi-secret 1 ";

/// How the first line of every version begins, its number and a blank after it.
const ANY_HEAD: &str = "karyi-secret ";

/// A value and what it may be used for.
pub struct Record {
    /// The value.
    pub value: SecretValue,
    /// Its policy.
    pub policy: Policy,
}

/// Joins a value and its policy.
///
/// # Errors
/// `internal_error` for a policy that cannot be written.
pub fn join(value: &SecretValue, policy: &Policy) -> Result<SecretValue, ToolError> {
    let policy = serde_json::to_string(policy)
        .map_err(|error| ToolError::new(ErrorCode::Internal, error.to_string()))?;
    let size = HEAD.len() + policy.len() + 1 + value.expose().len();
    let mut text = Zeroizing::new(String::with_capacity(size));
    for part in [HEAD, &policy, "\n", value.expose()] {
        text.push_str(part);
    }
    Ok(SecretValue::new(std::mem::take(&mut *text)))
}

/// Takes a text apart.
///
/// # Errors
/// `bad_vault` when the policy cannot be read: a value whose limits are unknown is not used.
pub fn split(name: &SecretName, text: &SecretValue) -> Result<Record, ToolError> {
    let text = text.expose();
    let rest = text.strip_prefix(HEAD);
    if rest.is_none() && policy_line(text).is_none() {
        return Ok(Record {
            value: SecretValue::new(text.to_owned()),
            policy: Policy::default(),
        });
    }
    let parts = rest.and_then(|rest| rest.split_once('\n'));
    let parsed =
        parts.and_then(|(policy, value)| Some((serde_json::from_str(policy).ok()?, value)));
    let Some((policy, value)) = parsed else {
        let message = format!("the policy of {name} in the store cannot be read");
        let hint = format!("set it anew with `karyi var set {name}`");
        return Err(ToolError::new(ErrorCode::BadVault, message).with_hint(hint));
    };
    Ok(Record {
        value: SecretValue::new(value.to_owned()),
        policy,
    })
}

/// Returns the value of a text whose policy cannot be read, to be masked and not used. Without a line of its own
/// all of it may be the value.
#[must_use]
pub fn value_alone(text: &SecretValue) -> SecretValue {
    let text = text.expose();
    let after = policy_line(text).and_then(|line| text.get(line + 1..));
    let value = after.filter(|value| !value.is_empty());
    SecretValue::new(value.unwrap_or(text).to_owned())
}

/// Returns the length of the first line when it says what a secret may be used for, whatever version of karyi
/// wrote it.
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
    fn value_and_policy_come_back() {
        let policy = Policy {
            write: true,
            ..Policy::default()
        };
        for value in ["abcd", "a\nb\n", "karyi-secret 1 {}\nx", ""] {
            let text = join(&SecretValue::new(value.into()), &policy).unwrap();
            assert_eq!(parts(text.expose()), Ok((value.into(), policy.clone())));
        }
    }

    #[test]
    fn what_another_program_kept_is_a_value() {
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
            "karyi-secret 10 ",
        ] {
            assert_eq!(parts(text), Err(ErrorCode::BadVault), "{text}");
        }
    }

    #[test]
    fn a_value_is_known_without_its_policy() {
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
