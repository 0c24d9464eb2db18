//! Warns about probable mistakes in a value or its policy, without showing any part of the value.

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::cli::say;
use crate::render::paint::safe_line;
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};
use karyi_vault::policy::Policy;
use karyi_vault::redact::{has_guessable_password, is_guessable, shortest_password};
use karyi_vault::visible_bytes;

/// Minimum length of a value that may be a token, in bytes.
const MIN_TOKEN_BYTES: usize = 20;

/// Warns about a policy under which a secret cannot be used now, probable mistakes, and incomplete masking.
pub(super) fn warn(name: &SecretName, value: Option<&SecretValue>, policy: Option<&Policy>) {
    let mut likely_mistakes = Vec::new();
    if let Some(policy) = policy {
        let ended = policy.check_end(name, Timestamp::now()).err();
        let later = "and it cannot be used until --expires sets a later expiry";
        likely_mistakes.extend(ended.map(|error| format!("{}, {later}", error.message)));
        let dirs = policy.dirs.iter().flatten().filter(|dir| !dir.is_dir());
        likely_mistakes.extend(dirs.map(|dir| {
            let dir = dir.display();
            format!("{name} is bound to {dir}, and that directory does not exist: --dirs sets others, --no-dirs none")
        }));
    }
    likely_mistakes.extend(value.into_iter().flat_map(|value| of_value(name, value)));
    for doubt in likely_mistakes {
        say(&format!("warning: {}", safe_line(&doubt)));
    }
}

const WHOLE_WORDS: &str = "only whole words of it are masked";

/// Returns probable mistakes in a value, and limits of its masking.
pub(super) fn of_value(name: &SecretName, value: &SecretValue) -> Vec<String> {
    let value = value.expose();
    let mut found = Vec::new();
    if shows(name.as_str(), value) {
        found.push(format!(
            "the name {name} reveals its value, and names are visible everywhere: choose another one"
        ));
    }
    let about = |what: &str| format!("the value of {name} {what}");
    found.extend(likely_mistakes(value).map(about));
    if visible_bytes(value) < limits::GOOD_SECRET_BYTES {
        found.push(about(&format!("is short: {WHOLE_WORDS}")));
    } else if is_guessable(value) {
        found.push(about(&format!("is easy to guess: {WHOLE_WORDS}")));
    }
    let public = public_kind(value);
    found.extend(public.map(|kind| about(&format!("may be no secret: {kind}"))));
    let password = match shortest_password(value) {
        Some(..limits::MIN_SECRET_BYTES) => "is too short to be masked where it stands alone",
        Some(..limits::GOOD_SECRET_BYTES) => {
            "is short: where it stands alone only whole words of it are masked"
        }
        Some(_) if has_guessable_password(value) => {
            "is easy to guess: where it stands alone only whole words of it are masked"
        }
        _ => return found,
    };
    found.push(format!("the password in the value of {name} {password}"));
    found
}

/// Returns true when a text looks random: long, in one piece, with letters and digits.
pub(super) fn is_token(value: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b"_-+/=".contains(&b);
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    value.len() >= MIN_TOKEN_BYTES
        && value.bytes().all(is_word)
        && digits * 8 >= value.len()
        && letters * 4 >= value.len()
        && !value.starts_with('/')
}

/// Returns the reason why a value looks public: a path, a public key or a certificate.
pub(super) fn public_kind(value: &str) -> Option<&'static str> {
    let starts = |heads: &[&str]| heads.iter().any(|head| value.starts_with(head));
    // Base64 may also start with a slash, but every part has digits or signs.
    let is_path = !value.contains(char::is_whitespace)
        && starts(&["/", "./", "../", "~/"])
        && value.split('/').filter(|part| !part.is_empty()).count() > 1
        && !value.contains(['+', '=']);
    let is_key = starts(&["ssh-rsa ", "ssh-ed25519 ", "ecdsa-sha2-", "sk-ssh-", "age1"])
        || starts(&["-----BEGIN PUBLIC KEY", "-----BEGIN RSA PUBLIC KEY"]);
    let is_certificate =
        value.starts_with("-----BEGIN CERTIFICATE-----") && !value.contains("PRIVATE KEY");
    let kinds = [
        (is_key, "its value is a public key"),
        (is_certificate, "its value is a certificate"),
        (is_path, "its value is a path"),
    ];
    kinds
        .into_iter()
        .find_map(|(is_so, kind)| is_so.then_some(kind))
}

/// Returns true when a name contains a value, ignoring case.
fn shows(name: &str, value: &str) -> bool {
    let value = Zeroizing::new(value.trim().to_ascii_lowercase());
    value.len() >= limits::MIN_SECRET_BYTES && name.to_ascii_lowercase().contains(value.as_str())
}

/// Returns probable mistakes in a value, without showing any part of it.
fn likely_mistakes(value: &str) -> impl Iterator<Item = &'static str> {
    let lower = Zeroizing::new(value.to_ascii_lowercase());
    let starts = |heads: &[&str]| heads.iter().any(|head| lower.starts_with(head));
    let stand_ins = "changeme your- your_ xxxx placeholder example < todo";
    let is_quoted = |quote: char| value.starts_with(quote) && value.ends_with(quote);
    let found = [
        (value.ends_with(['\n', '\r']), "ends in a line break"),
        (value.ends_with([' ', '\t']), "ends in white space"),
        (
            value.starts_with([' ', '\t', '\n']),
            "starts with white space",
        ),
        (
            starts(&["bearer ", "basic "]),
            "starts with the scheme of a header",
        ),
        (
            value.contains("$KARYI") || stand_ins.split(' ').any(|head| lower.starts_with(head)),
            "looks like a placeholder for a value",
        ),
        (
            value.len() > 1 && (is_quoted('"') || is_quoted('\'')),
            "is in quotation marks, which are part of it",
        ),
    ];
    found
        .into_iter()
        .filter_map(|(is_so, text)| is_so.then_some(text))
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
        let address = "postgres://u:correcthorse@db.example.com/prod";
        let told = "the password in the value of DB is easy to guess: where it stands alone only whole words of it are \
                    masked";
        assert_eq!(lints(address), [told]);
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
        let check = |value: &str, expected: &[&str]| {
            assert_eq!(
                likely_mistakes(value).collect::<Vec<_>>(),
                expected,
                "{value:?}"
            )
        };
        check("S3cr3t-T0ken", &[]);
        check("a value", &[]);
        check("token\n", &["ends in a line break"]);
        check("token ", &["ends in white space"]);
        check(" token", &["starts with white space"]);
        check("Bearer abc", &["starts with the scheme of a header"]);
        check("$KARYI{A}", &["looks like a placeholder for a value"]);
        check("<your token>", &["looks like a placeholder for a value"]);
        check(
            "\"token\"",
            &["is in quotation marks, which are part of it"],
        );
        check("\"", &[]);
    }
}
