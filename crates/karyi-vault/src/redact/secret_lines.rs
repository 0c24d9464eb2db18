//! Finds short lines of a value that are secrets of their own, such as recovery codes, and names of secret settings.
//!
//! A run may span line ends, since values are wrapped. But many programs insert text between lines (`grep -n`, `diff`,
//! `paste -sd,`), and then a line shorter than a run would be shown.

use karyi_core::limits;

/// Returns the lines of a value with several lines, or the text after a bullet or a name, that are shorter than a run
/// and look like secrets.
pub(super) fn secret_lines(value: &str) -> impl Iterator<Item = &str> {
    let lines = value.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_list = lines.clone().nth(1).is_some();
    let codes = lines.filter_map(|line| match setting(unmarked(line)) {
        Some((key, text)) => (is_secret_name(key) && may_be_secret(text)).then_some(text),
        None => Some(unmarked(line)).filter(|item| is_code(item)),
    });
    codes.filter(move |code| is_list && is_short(code))
}

/// Returns true when a text has 8 to 11 characters: masked on its own, and too short for a run.
fn is_short(text: &str) -> bool {
    let characters = text.chars().filter(|c| !c.is_whitespace()).count();
    (limits::GOOD_SECRET_BYTES..limits::REDACTED_RUN_BYTES).contains(&characters)
}

/// Removes list markers, quotes and trailing punctuation from a line.
fn unmarked(line: &str) -> &str {
    let mut item = line;
    for mark in ["- ", "* ", "+ ", "• ", "[ ] ", "[x] ", "[X] "] {
        item = item.strip_prefix(mark).unwrap_or(item).trim_start();
    }
    if let Some((mark, rest)) = item.split_once(' ') {
        let number = mark.strip_suffix(['.', ')', ':']).unwrap_or_default();
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && !number.is_empty() {
            item = rest.trim_start();
        }
    }
    item.trim_end_matches([',', ';']).trim_matches(['"', '\''])
}

/// Returns the name and value of a setting in YAML or INI style.
fn setting(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (key, text) = line.split_once('=').or_else(|| line.split_once(": "))?;
    let key = key.trim().trim_matches(['"', '\'']);
    let is_part = |byte: u8| byte.is_ascii_alphabetic() || b"_-.".contains(&byte);
    let is_key = !key.is_empty()
        && key
            .bytes()
            .all(|byte| is_part(byte) || byte.is_ascii_digit());
    // A line of base64 may end with `=`.
    let is_name = key.bytes().all(is_part) || key.contains('_');
    let text = text.trim().trim_matches(['"', '\'']);
    (is_key && is_name && !text.is_empty()).then_some((key, text))
}

/// Returns true when the name of a setting says that its value is secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    const WORDS: [&str; 8] = [
        "key",
        "secret",
        "token",
        "passw",
        "passphrase",
        "pwd",
        "credential",
        "signature",
    ];
    let name = name.to_ascii_lowercase();
    !is_public_name(&name) && (name == "sig" || WORDS.iter().any(|word| name.contains(word)))
}

/// Returns true when the name of a setting says that its value is a name or an address.
pub(super) fn is_public_name(name: &str) -> bool {
    const ENDS: [&str; 11] = [
        "name",
        "file",
        "path",
        "type",
        "_uri",
        "_url",
        "dir",
        "email",
        "project_id",
        "domain",
        "endpoint",
    ];
    let name = name.to_ascii_lowercase();
    ENDS.iter().any(|end| name.ends_with(end))
}

/// Returns true when the value of a setting may be a secret: not a word, a path or a reference.
fn may_be_secret(text: &str) -> bool {
    let is_word = text.chars().all(|c| c.is_alphabetic() && !c.is_uppercase());
    !is_word && !text.starts_with(['$', '{', '<', '%', '/', '.', '~'])
}

/// Returns true when a text looks random: each word has a digit, or a word has unusual signs.
fn is_code(text: &str) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let inner = text.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let signs = inner.bytes().filter(|byte| b"!@#$%^&*+=?~|".contains(byte));
    let has_signs = signs.count() >= 2 && !text.contains(char::is_whitespace);
    let has_digits = text
        .split_whitespace()
        .all(|word| word.bytes().any(|byte| is_digit(&byte)));
    let is_date = text.split('-').map(str::len).eq([4, 2, 2]);
    let is_number = text
        .bytes()
        .all(|byte| is_digit(&byte) || b".:-/".contains(&byte));
    let is_address = is_number && (is_date || text.contains(['.', ':', '/']));
    (has_digits || has_signs) && !is_address && !text.starts_with(['/', '<', '['])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks which lines of a value are codes.
    #[track_caller]
    fn check(value: &str, expected: &[&str]) {
        let codes: Vec<&str> = secret_lines(value).collect();
        assert_eq!(codes, expected, "{value:?}");
    }

    #[test]
    fn lines_that_look_like_codes_are_secret() {
        check(
            "1a2b3-c4d5e\nf6a7b-8c9d0\n",
            &["1a2b3-c4d5e", "f6a7b-8c9d0"],
        );
        check("1234 5678\r\n2345 6789", &["1234 5678", "2345 6789"]);
        check(
            "Codes of me:\n\n1. ab1d 1234\n10) ef2h 5678\n",
            &["ab1d 1234", "ef2h 5678"],
        );
        check(
            "[x] abcd1234\n[ ] efgh5678\n- [X] ijkl9012,",
            &["abcd1234", "efgh5678", "ijkl9012"],
        );
        check("- \"qwer-ty1i\",\n- x", &["qwer-ty1i"]);
        check("Tr#b$dor\nx", &["Tr#b$dor"]);
        check("пароль12\nсекрет34", &["пароль12", "секрет34"]);
        check("k3Wq0Zr7mV=\nsame", &["k3Wq0Zr7mV="]);
        check("API_TOKEN=Zk7qPw2L\nHOST1=db1.local\n", &["Zk7qPw2L"]);
        check("a:\n  password: \"hunter-two\"\n", &["hunter-two"]);
        // One line alone is a value as any other, and of a longer line a run is known.
        check("1a2b3-c4d5e\n", &[]);
        check("1a2b3-c4d5e6\nf6a7b-8c9d01\n1a2b3-c\n", &[]);
    }

    #[test]
    fn common_lines_are_no_codes() {
        for value in [
            "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: https://1.2.3.4\n  name: dev-west1\n",
            "[default]\nregion = eu-west-1\noutput = json\n",
            "NODE_ENV=production\nPORT=12345678\n",
            "abandon\nzebra\nquartz\nmountain\numbrella\n",
            "<server>\n<id>a1</id>\n</server1>\n",
            "machine a\nlogin deploy\n2026-11-23\n/srv/app1\n10.0.0.10\n",
            "metadata:\n  secretName: my-tls-1\n  tokenFile: /run/tok1\n",
            "POSTGRES_USER=app\nPOSTGRES_PASSWORD=postgres\nPGHOST=db",
            "services:\n  password: ${DB_PASS}\n  token: \"{{token}}\"",
            "#!/bin/bash\nset -euo pipefail\ncurl x",
            "==========\nabcdefg\n==========\n**********",
        ] {
            check(value, &[]);
        }
    }
}
