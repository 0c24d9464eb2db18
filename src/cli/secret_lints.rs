//! What is probably a mistake about a value or its policy, told without showing anything of the value.

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::cli::say;
use crate::limits;
use crate::render::paint::safe_line;
use crate::secret::{SecretName, SecretValue};
use crate::vault::policy::Policy;
use crate::vault::redact::{is_guessable, shortest_password};
use crate::vault::visible_bytes;

/// Warns of what is probably a mistake about a value, and of what of it is masked less well.
pub(super) fn tell(name: &SecretName, value: &SecretValue) {
    warn_of(of_value(name, value));
}

/// Warns of a policy under which a secret cannot be used now.
pub(super) fn tell_of_policy(name: &SecretName, policy: &Policy) {
    let ended = policy.check_end(name, Timestamp::now()).err();
    let ended = ended.map(|error| {
        format!(
            "{}, and it cannot be used until --expires gives it a later end",
            error.message
        )
    });
    warn_of(ended.into_iter().chain(of_directories(name, policy)));
}

fn warn_of(doubts: impl IntoIterator<Item = String>) {
    for doubt in doubts {
        say(&format!("warning: {}", safe_line(&doubt)));
    }
}

/// Returns the directories that a secret is bound to and that are not there, each with the way out.
pub(super) fn of_directories(name: &SecretName, policy: &Policy) -> Vec<String> {
    let dirs = policy.dirs.iter().flatten().filter(|dir| !dir.is_dir());
    dirs.map(|dir| {
        let dir = dir.display();
        format!("{name} is bound to {dir}, and no such directory is there: --dirs names others, --no-dirs none")
    })
    .collect()
}

/// Returns what is probably a mistake about a value, and what of it is masked less well.
pub(super) fn of_value(name: &SecretName, value: &SecretValue) -> Vec<String> {
    let value = value.expose();
    let mut found = Vec::new();
    if shows(name.as_str(), value) {
        found.push(format!(
            "the name {name} shows its value, and names are shown everywhere: choose another one"
        ));
    }
    let likely = doubts(value).into_iter();
    found.extend(likely.map(|doubt| format!("the value of {name} {doubt}")));
    if visible_bytes(value) < limits::GOOD_SECRET_BYTES {
        found.push(format!(
            "the value of {name} is short: only whole words of it are masked"
        ));
    } else if is_guessable(value) {
        found.push(format!(
            "the value of {name} is easy to guess: only whole words of it are masked"
        ));
    }
    if let Some(kind) = public_kind(value) {
        found.push(format!("the value of {name} may be no secret: {kind}"));
    }
    let password = shortest_password(value).and_then(password_doubt);
    found.extend(password.map(|told| format!("the password in the value of {name} {told}")));
    found
}

/// Reason why a value looks like something public: a path, a public key or a certificate.
pub(super) fn public_kind(value: &str) -> Option<&'static str> {
    let starts = |heads: &[&str]| heads.iter().any(|head| value.starts_with(head));
    let is_word = !value.contains(char::is_whitespace);
    // Base64 may start with a slash, too, and has digits or signs in every part.
    let is_path = is_word
        && starts(&["/", "./", "../", "~/"])
        && value.split('/').filter(|part| !part.is_empty()).count() > 1
        && !value.contains(['+', '=']);
    if starts(&[
        "ssh-rsa ",
        "ssh-ed25519 ",
        "ecdsa-sha2-",
        "sk-ssh-",
        "age1",
        "-----BEGIN PUBLIC KEY",
        "-----BEGIN RSA PUBLIC KEY",
    ]) {
        Some("its value is a public key")
    } else if starts(&["-----BEGIN CERTIFICATE-----"]) && !value.contains("PRIVATE KEY") {
        Some("its value is a certificate")
    } else if is_path {
        Some("its value is a path")
    } else {
        None
    }
}

/// Whether a name holds a value, in any case of letters.
fn shows(name: &str, value: &str) -> bool {
    let (name, value) = (
        name.to_ascii_lowercase(),
        Zeroizing::new(value.trim().to_ascii_lowercase()),
    );
    value.len() >= limits::MIN_SECRET_BYTES && name.contains(value.as_str())
}

/// Returns what there is to say of a password of so many bytes.
fn password_doubt(bytes: usize) -> Option<&'static str> {
    if bytes < limits::MIN_SECRET_BYTES {
        Some("is too short to be masked where it stands alone")
    } else if bytes < limits::GOOD_SECRET_BYTES {
        Some("is short: where it stands alone only whole words of it are masked")
    } else {
        None
    }
}

/// Returns what is probably a mistake about a value, without showing anything of it.
fn doubts(value: &str) -> Vec<&'static str> {
    let lower = Zeroizing::new(value.to_ascii_lowercase());
    let stand_ins = [
        "changeme",
        "your-",
        "your_",
        "xxxx",
        "placeholder",
        "example",
        "<",
        "todo",
    ];
    let has_head = |head: &str| lower.starts_with(head);
    let found = [
        (value.ends_with(['\n', '\r']), "ends in a line break"),
        (value.ends_with([' ', '\t']), "ends in white space"),
        (
            value.starts_with([' ', '\t', '\n']),
            "starts with white space",
        ),
        (
            has_head("bearer ") || has_head("basic "),
            "starts with the scheme of a header",
        ),
        (
            value.contains("$KARYI") || stand_ins.iter().any(|word| has_head(word)),
            "looks like a stand-in for a value",
        ),
        (
            value.len() > 1
                && ['"', '\'']
                    .iter()
                    .any(|q| value.starts_with(*q) && value.ends_with(*q)),
            "stands in quotation marks, which are part of it",
        ),
    ];
    found
        .iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, text)| *text)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_show_a_value_are_told() {
        assert!(shows("hunter2xx", "hunter2xx"));
        assert!(shows("MYHUNTERPASSWORD99", "HunterPassword99\n"));
        assert!(!shows("DB_PASSWORD", "hunter2xx"));
        assert!(!shows("ABC", "abc"));
    }

    #[test]
    fn what_is_guessed_or_public_is_told() {
        let name = SecretName::parse("DB").unwrap();
        let lints = |value: &str| of_value(&name, &SecretValue::new(value.to_owned()));
        let guessable = "the value of DB is easy to guess: only whole words of it are masked";
        for value in ["postgres", "correcthorse", "12345678", "00000000000"] {
            assert_eq!(lints(value), [guessable], "{value}");
        }
        for value in ["S3cr3t-T0ken", "correct horse battery", "密码密码密码密码"] {
            assert!(lints(value).is_empty(), "{value}");
        }
        for value in [
            "/home/me/.ssh/id_rsa",
            "~/key.pem",
            "ssh-ed25519 AAAA me",
            "age1qqqq",
        ] {
            assert!(public_kind(value).is_some(), "{value}");
        }
        for value in [
            "/a+b/c==",
            "S3cr3t/T0ken",
            "-----BEGIN PRIVATE KEY-----",
            "/x",
        ] {
            assert!(public_kind(value).is_none(), "{value}");
        }
    }

    #[test]
    fn likely_mistakes_are_told() {
        let check =
            |value: &str, expected: &[&str]| assert_eq!(doubts(value), expected, "{value:?}");
        check("S3cr3t-T0ken", &[]);
        check("a value", &[]);
        check("token\n", &["ends in a line break"]);
        check("token ", &["ends in white space"]);
        check(" token", &["starts with white space"]);
        check("Bearer abc", &["starts with the scheme of a header"]);
        check("$KARYI{A}", &["looks like a stand-in for a value"]);
        check("<your token>", &["looks like a stand-in for a value"]);
        check(
            "\"token\"",
            &["stands in quotation marks, which are part of it"],
        );
        check("\"", &[]);
    }
}
