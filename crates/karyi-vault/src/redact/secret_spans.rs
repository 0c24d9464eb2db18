//! Finds the secret spans of a value: all of it, unless it is a URL, JSON or PEM.
//!
//! The host of a connection string is in many harmless lines, and so is the header of a key. Text is masked only when
//! it contains some of the secret part; then the rest of the value around it is masked, too.

use std::ops::Range;

use serde_json::Value;
use zeroize::Zeroizing;

use super::escapes::unescape;
use super::guessable::is_guessable;
use super::secret_lines::{self, is_public_name, is_secret_name};
use super::stop_ngrams;
use crate::visible::is_visible;

/// Shortest named secret in a structured value, such as a password, in bytes.
const MIN_NAMED: usize = 4;
/// Shortest text that may look like a token, in bytes.
const MIN_TOKEN: usize = 8;

/// Returns true for each secret byte of the value.
pub(super) fn secret_mask(value: &str) -> Vec<bool> {
    let mut parts = url_parts(value);
    parts.extend(json_parts(value));
    parts.extend(pem_parts(value));
    let mut mask = vec![parts.is_empty(); value.len()];
    for part in parts {
        mark(&mut mask, part, true);
    }
    for part in stop_ngrams::shared_ranges(value) {
        mark(&mut mask, part, false);
    }
    if !mask.contains(&true) {
        mask.fill(true);
    }
    mask
}

fn mark(mask: &mut [bool], range: Range<usize>, is_secret: bool) {
    mask.get_mut(range).unwrap_or_default().fill(is_secret);
}

/// Returns the easily guessed secret spans of a value; none when all of it is secret.
pub(super) fn guessable_stretches(value: &str, mask: &[bool]) -> Vec<Range<usize>> {
    let (mut found, mut end) = (Vec::new(), 0);
    if !mask.contains(&false) {
        return found;
    }
    let bytes: Vec<(u8, bool)> = value.bytes().zip(mask.iter().copied()).collect();
    // White space does not end a span: the lines of a key are one.
    let is_in = |(byte, is_secret): &(u8, bool)| *is_secret || !is_visible(*byte);
    for stretch in bytes.chunk_by(|a, b| is_in(a) == is_in(b)) {
        let range = end..end + stretch.len();
        end = range.end;
        let has_secret = stretch.iter().any(|(_, is_secret)| *is_secret);
        let text = value.get(range.clone()).filter(|_| has_secret);
        if stretch.iter().all(is_in) && text.is_some_and(is_guessable) {
            found.push(range);
        }
    }
    found
}

/// Returns true when a text looks like a token.
fn is_token(text: &str) -> bool {
    let has = |is: fn(&u8) -> bool| text.bytes().any(|byte| is(&byte));
    let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let is_long =
        text.len() >= 2 * MIN_TOKEN && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let is_prose = text.contains([' ', '@']) || text.contains("://");
    text.len() >= MIN_TOKEN && (is_mixed || is_long) && !is_prose
}

/// Returns the parts of a value that programs use alone: URL passwords, as written and percent-decoded, secret JSON
/// strings, short lines, and the decoded form of escapes.
pub(super) fn standalone_parts(value: &str) -> Vec<Zeroizing<String>> {
    let mut found = passwords(value);
    found.extend(
        found
            .clone()
            .iter()
            .filter_map(|password| unescape(password, b'%')),
    );
    match structure(value) {
        Some(parsed) => {
            let mut leaves = Vec::new();
            collect(&parsed, "", &mut leaves);
            found.extend(leaves.into_iter().map(str::to_owned).map(Zeroizing::new));
        }
        None => {
            let plain = [b'\\', b'&'].into_iter();
            found.extend(plain.filter_map(|sign| unescape(value, sign)));
            found.extend(
                secret_lines::secret_lines(value)
                    .map(str::to_owned)
                    .map(Zeroizing::new),
            );
        }
    }
    found
}

/// Returns the passwords of a URL, or of the URLs in a JSON value.
pub(super) fn passwords(value: &str) -> Vec<Zeroizing<String>> {
    let mut found = Vec::new();
    let parsed = structure(value);
    match &parsed {
        Some(parsed) => url_leaves(parsed, &mut found),
        None => found.extend(url_password(value)),
    }
    found
        .into_iter()
        .map(str::to_owned)
        .map(Zeroizing::new)
        .collect()
}

/// Parses a value that is a JSON object or array.
fn structure(value: &str) -> Option<Value> {
    let is_structure = value.trim_start().starts_with(['{', '[']);
    is_structure.then(|| serde_json::from_str(value).ok())?
}

fn url_leaves<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.extend(url_password(text)),
        Value::Array(items) => items.iter().for_each(|item| url_leaves(item, found)),
        Value::Object(map) => map.values().for_each(|item| url_leaves(item, found)),
        _ => {}
    }
}

/// Returns the password of a URL.
fn url_password(value: &str) -> Option<&str> {
    let line = value.trim();
    let (scheme, rest) = line.split_once("://")?;
    if !is_scheme(scheme) || line.contains(char::is_whitespace) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let (_, password) = authority.rsplit_once('@')?.0.split_once(':')?;
    Some(password).filter(|password| !password.is_empty())
}

/// Returns true when a text is a URL scheme, or several as in `jdbc:mysql`.
fn is_scheme(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte);
    let is_one = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(is_part)
    };
    text.split(':').all(is_one)
}

/// Returns the password, the query values and the path segments that look like tokens.
fn url_parts(value: &str) -> Vec<Range<usize>> {
    let line = value.trim();
    let start = value.len() - value.trim_start().len();
    let Some((scheme, rest)) = line.split_once("://") else {
        return Vec::new();
    };
    if !is_scheme(scheme) || line.contains(char::is_whitespace) {
        return Vec::new();
    }
    let rest_at = start + scheme.len() + "://".len();
    let authority_end = rest.find(['/', '?', '#', ';']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(authority_end);
    let mut parts: Vec<Range<usize>> = user_part(authority)
        .into_iter()
        .map(|part| rest_at + part.start..rest_at + part.end)
        .collect();
    let mut at = rest_at + authority_end;
    let (mut is_path, mut key) = (true, "");
    for piece in tail.split_inclusive(['/', '?', '#', '&', '=', ';']) {
        let text = piece.trim_end_matches(['/', '?', '#', '&', '=', ';']);
        let is_key = piece.ends_with('=');
        let is_secret = if is_path {
            is_token(text)
        } else {
            text.len() >= MIN_NAMED && !is_key && (is_token(text) || is_secret_name(key))
        };
        if is_secret {
            parts.push(at..at + text.len());
        }
        key = if is_key { text } else { "" };
        is_path &= !piece.ends_with(['?', '#', ';']);
        at += piece.len();
    }
    parts
}

/// Returns the password before a host, or the user name when it is a token without password.
fn user_part(authority: &str) -> Option<Range<usize>> {
    let (user, _) = authority.rsplit_once('@')?;
    match user.split_once(':') {
        Some((name, password)) if password.len() >= MIN_NAMED => Some(name.len() + 1..user.len()),
        Some(_) => None,
        None => is_token(user).then_some(0..user.len()),
    }
}

/// Returns the JSON strings that look like tokens or have a secret key.
fn json_parts(value: &str) -> Vec<Range<usize>> {
    let Some(parsed) = structure(value) else {
        return Vec::new();
    };
    let mut leaves = Vec::new();
    collect(&parsed, "", &mut leaves);
    let mut parts = Vec::new();
    for leaf in leaves {
        let quoted = Value::from(leaf).to_string();
        let text = quoted.get(1..quoted.len().saturating_sub(1));
        let places = value.match_indices(text.unwrap_or_default());
        parts.extend(places.map(|(at, text)| at..at + text.len()));
    }
    parts
}

fn collect<'a>(value: &'a Value, key: &str, leaves: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => {
            let is_named = is_secret_name(key) && text.len() >= MIN_NAMED;
            if is_named || is_token(text) && !is_public_name(key) {
                leaves.push(text);
            } else if let Some(password) = url_password(text) {
                leaves.extend((password.len() >= MIN_NAMED).then_some(password));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, key, leaves)),
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| collect(value, key, leaves)),
        _ => {}
    }
}

/// Returns the lines between the PEM headers.
fn pem_parts(value: &str) -> Vec<Range<usize>> {
    if !value.trim_start().starts_with("-----BEGIN ") {
        return Vec::new();
    }
    let mut parts = Vec::new();
    let mut at = 0;
    for line in value.split_inclusive('\n') {
        let text = line.trim_end();
        if !text.is_empty() && !text.starts_with("-----") && !text.contains(": ") {
            parts.push(at..at + text.len());
        }
        at += line.len();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a value whose secret stretches stand between `«` and `»`.
    fn check(marked: &str) {
        let value = marked.replace(['«', '»'], "");
        let mask = secret_mask(&value);
        let mut shown = String::new();
        let mut was_secret = false;
        for (at, character) in value.char_indices() {
            if mask[at] != was_secret {
                shown.push(if mask[at] { '«' } else { '»' });
            }
            was_secret = mask[at];
            shown.push(character);
        }
        if was_secret {
            shown.push('»');
        }
        assert_eq!(shown, marked);
    }

    #[test]
    fn plain_values_are_secret_as_a_whole() {
        check("«S3cr3t-T0ken/Val+ue»");
        check("«a: b://c d»");
        check("«{not json»");
        check("«[1,2]»");
        check("«https://»");
    }

    #[test]
    fn urls_have_secret_parts() {
        check("postgres://admin:«Zk7qPw2LmX9v»@db.example.com:5432/prod");
        check("https://«ghp_0123abcd»@github.com/owner/repo.git");
        check("https://hooks.slack.com/services/T0/«B012ABCDEF»/«xyzXYZ0123»");
        check("https://example.com/v1?user=anna&sig=«abc123def»&key=«frag»");
        check("https://«example.com/plain»");
    }

    #[test]
    fn connection_strings_of_other_programs_are_urls_too() {
        check("jdbc:postgresql://db.example.com:5432/prod?user=admin&password=«Zk7qPw2L»&ssl=true");
        check("jdbc:sqlserver://db.example.com:1433;databaseName=prod;password=«Zk7qPw2L»");
        check("mongodb+srv://u:«Zk7qPw2L»@c.example.net/db?retryWrites=true&w=majority&x=true");
        check("https://h.example.com/?w=«Zk7qPw2L»&ssl=tr4e");
        check("«jdbc:oracle:thin:u/Zk7qPw2L@//h:1521/x»");
    }

    #[test]
    fn project_fields_of_an_account_are_no_secrets() {
        check(
            "{\"type\":\"service_account\",\"project_id\":\"my-project-123456\",\"private_key_id\":\"«0a1b2c3d4e5f»\",\
             \"client_email\":\"deploy@my-project-123456.iam.gserviceaccount.com\",\
             \"token_uri\":\"https://oauth2.googleapis.com/token\"}",
        );
    }

    #[test]
    fn json_has_secret_leaves() {
        check(
            "{\"type\":\"service_account\",\"private_key\":\"«MIIEvQIBADANBgkqhkiG9w0BAQ»\",\"id\":1}",
        );
        check("{\"password\":\"«pw1\\n»\",\"client_email\":\"a1@b2.example.com\"}");
        check("{\"url\":\"postgres://u:«pw123456»@db/x\"}");
        check(
            "{\"database_url\":\"postgres://u:«pw123456»@db/x\",\"token_url\":\"https://a/b1c2d3e4\"}",
        );
        check("{\"list\":[\"«tok3n-abcdef»\"]}");
    }

    #[test]
    fn pem_has_a_secret_body() {
        check("-----BEGIN KEY-----\n«MIIEvQ»\n«AQEF==»\n-----END KEY-----\n");
    }
}
