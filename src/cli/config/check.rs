//! Checks a document against the table of settings.

use std::sync::Arc;

use axum::http::Uri;
use karyi_core::secret::{self, Piece, SecretName};
use karyi_core::similar_names::similar_names;
use karyi_net::UrlRule;
use toml_edit::{Document, Item, TableLike, Value};

use crate::approval::Rule;
use crate::cli::config::credentials::is_credential;
use crate::cli::config::error::Fault;
use crate::cli::config::keys::{self, Found, Key, Kind, dotted, listed};

/// Longest word that a message repeats.
const MAX_WORD_BYTES: usize = 20;

/// Parses and checks settings.
///
/// # Errors
/// The first fault of the text.
pub(super) fn document(text: &Arc<str>) -> Result<Document<Arc<str>>, Fault> {
    let document = Document::parse(Arc::clone(text)).map_err(|error| unparsed(text, &error))?;
    let mut faults = Vec::new();
    check_table(&mut Vec::new(), document.as_table(), &mut faults);
    match faults.into_iter().min_by_key(|fault| fault.offset) {
        Some(fault) => Err(fault),
        None => Ok(document),
    }
}

/// Returns the first fault of a text that is not TOML.
pub(super) fn syntax_fault(text: &str) -> Option<Fault> {
    let error = Document::parse(text).err()?;
    Some(unparsed(text, &error))
}

/// Describes text that is not TOML. The parser's message never repeats a part of the text.
fn unparsed(text: &str, error: &toml_edit::TomlError) -> Fault {
    let span = error.span().unwrap_or_default();
    let offset = span.start;
    let message = match (error.message(), text.get(span)) {
        ("duplicate key", Some(name)) => {
            format!("expected each setting once, found `{name}` again")
        }
        (message, _) => format!("expected TOML, found a mistake: {message}"),
    };
    Fault { offset, message }
}

fn check_table<'d>(path: &mut Vec<&'d str>, table: &'d dyn TableLike, faults: &mut Vec<Fault>) {
    for (name, item) in table.iter() {
        let key = table.key(name).and_then(toml_edit::Key::span);
        let key = key.map_or(0, |span| span.start);
        path.push(name);
        match (keys::find(path), item.as_table_like()) {
            _ if path.len() == 2 && path.first() == Some(&"models") && !is_model_name(name) => faults.push(Fault {
                offset: key,
                message: format!(
                    "expected the name of a model without `:`, blanks and control characters, found `{}`",
                    dotted(&[name])
                ),
            }),
            (Found::Setting(setting), _) => check_setting(setting, path, item, faults),
            (Found::Field, _) => {}
            (Found::Table, Some(inner)) => check_table(path, inner, faults),
            (Found::Table, None) => {
                let offset = item.span().map_or(key, |span| span.start);
                let wrong = Mismatch::new("a table", kind_of(item));
                faults.push(wrong.fault(path, offset));
            }
            (Found::Nothing(near), _) => faults.push(Fault {
                offset: key,
                message: unknown(path, near),
            }),
        }
        path.pop();
    }
}

/// Returns the message for a path that is no setting.
pub(super) fn unknown(path: &[&str], near: Option<String>) -> String {
    let hint = match near {
        Some(near) => format!("; did you mean `{near}`?"),
        None => "; `karyi config list` shows all settings".to_owned(),
    };
    format!("expected a setting, found `{}`{hint}", dotted(path))
}

/// Returns true for a name that a flag can give in place of `PROVIDER:MODEL`.
fn is_model_name(name: &str) -> bool {
    let is_wrong = |c: char| c == ':' || c.is_whitespace() || c.is_control();
    !name.is_empty() && !name.contains(is_wrong)
}

fn check_setting(key: &Key, path: &[&str], item: &Item, faults: &mut Vec<Fault>) {
    let offset = item.span().map_or(0, |span| span.start);
    if let Err(wrong) = mismatch(key.kind, item) {
        faults.push(wrong.fault(path, offset));
        return;
    }
    if let (Kind::Fields, Ok(fields)) = (key.kind, item.clone().into_value()) {
        check_field(path, &fields, offset, faults);
    }
}

/// Difference between a value and the kind of its setting.
pub(super) struct Mismatch {
    expected: String,
    found: String,
    near: Option<&'static str>,
}

impl Mismatch {
    fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            expected: expected.into(),
            found: found.into(),
            near: None,
        }
    }

    fn fault(&self, path: &[&str], offset: usize) -> Fault {
        Fault {
            offset,
            message: self.message(path),
        }
    }

    /// Returns the message for a setting.
    pub(super) fn message(&self, path: &[&str]) -> String {
        let name = dotted(path);
        format!("expected {} for `{name}`, {}", self.expected, self.rest())
    }

    /// Returns the message for a value that is no setting.
    pub(super) fn sentence(&self) -> String {
        format!("expected {}, {}", self.expected, self.rest())
    }

    fn rest(&self) -> String {
        let near = self.near.map(|near| format!("; did you mean `{near}`?"));
        format!("found {}{}", self.found, near.unwrap_or_default())
    }
}

/// Compares a value with the kind of its setting.
///
/// # Errors
/// The difference.
pub(super) fn mismatch(kind: Kind, item: &Item) -> Result<(), Mismatch> {
    let other = |found: &str| Err(Mismatch::new(kind.expected(), found));
    let wrong = || other(kind_of(item));
    let whole = |least: i64, most: i64| match item.as_integer() {
        Some(number) if (least..=most).contains(&number) => Ok(()),
        Some(number) => other(&number.to_string()),
        None => wrong(),
    };
    let real = |least: f64, most: f64| match number(item) {
        Some(number) if (least..=most).contains(&number) => Ok(()),
        Some(number) => other(format!("{number:?}").trim_end_matches(".0")),
        None => wrong(),
    };
    let list = |check: &dyn Fn(&str) -> Result<(), Mismatch>| match item.as_array() {
        Some(list) => list.iter().try_for_each(|value| match value.as_str() {
            Some(text) => check(text),
            None => other(&format!("one with {}", kind_of_value(value))),
        }),
        None => wrong(),
    };
    match kind {
        Kind::Count => whole(0, i64::MAX),
        Kind::Tokens => whole(1, i64::MAX),
        Kind::Within(least, most) => whole(least, most),
        Kind::Price => real(0.0, f64::MAX),
        Kind::Seconds(least, most) => real(least, most),
        Kind::Texts => list(&|text| match text.trim() {
            "" => other("one with an empty text"),
            _ => Ok(()),
        }),
        Kind::Flag if item.is_bool() => Ok(()),
        Kind::Flag => wrong(),
        Kind::Text => match item.as_str() {
            Some("") => other("an empty one"),
            Some(_) => Ok(()),
            None => wrong(),
        },
        Kind::Url => item.as_str().map_or_else(wrong, check_url),
        Kind::Secret => match item.as_str() {
            Some("") => Ok(()),
            Some(text) if secret_name(text).is_some() => Ok(()),
            _ => other(
                "something else, which may be a key and is not shown: store the key with `karyi var set NAME`",
            ),
        },
        Kind::Word(words) => item
            .as_str()
            .map_or_else(wrong, |text| check_word(text, &words())),
        Kind::Words(words) => list(&|text| check_word(text, &words())),
        Kind::UrlRules => list(&|text| {
            let rule = UrlRule::parse(text).map(drop);
            rule.or_else(|why| other(&format!("a text that is no rule: {why}")))
        }),
        Kind::Rules => list(&|text| {
            let rule = Rule::parse(text).map(drop);
            rule.or_else(|why| other(&format!("a text that is no rule: {why}")))
        }),
        Kind::Fields if item.is_table_like() => Ok(()),
        Kind::Fields => wrong(),
    }
}

/// Returns a whole or other number.
pub(super) fn number(item: &Item) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "no price has 16 digits")]
    let whole = item.as_integer().map(|number| number as f64);
    whole.or_else(|| item.as_float())
}

/// Returns the name in a text that is one placeholder.
pub(super) fn secret_name(text: &str) -> Option<SecretName> {
    let pieces = secret::split(text).ok()?;
    match <[Piece<'_>; 1]>::try_from(pieces) {
        Ok([Piece::Secret(name)]) => Some(name),
        _ => None,
    }
}

/// Checks the URL of a server. It is not repeated: it may hold a password.
///
/// # Errors
/// It is no URL of a server, or has a part that is not sent.
pub(super) fn check_url(text: &str) -> Result<(), Mismatch> {
    let wrong = |found: &str| Err(Mismatch::new(Kind::Url.expected(), found));
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    match scheme.map(str::to_ascii_lowercase).as_deref() {
        Some("http" | "https") => {}
        Some(_) => return wrong("one with another scheme"),
        None => return wrong("one without http:// or https://"),
    }
    let Ok(url) = text.parse::<Uri>() else {
        return wrong("a text that is no URL");
    };
    match url.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            wrong("one with user information: put the key into `key`")
        }
        Some(authority) if !authority.host().is_empty() => match text.contains(['?', '#']) {
            true => wrong("one with a query or a fragment"),
            false => Ok(()),
        },
        _ => wrong("one without a host"),
    }
}

fn check_word(text: &str, words: &[&'static str]) -> Result<(), Mismatch> {
    if words.contains(&text) {
        return Ok(());
    }
    let near = similar_names(text, words.iter().copied());
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    // Longer ones may be keys.
    let found = match text.len() <= MAX_WORD_BYTES && text.chars().all(is_word) {
        true => format!("`{text}`"),
        false => "another text".to_owned(),
    };
    Err(Mismatch {
        near: near.first().copied(),
        ..Mismatch::new(listed(words), found)
    })
}

/// Checks a field of requests: it holds no credentials, and JSON can say it. The parser limits the depth.
fn check_field(path: &[&str], value: &Value, offset: usize, faults: &mut Vec<Fault>) {
    let offset = value.span().map_or(offset, |span| span.start);
    let name = path.last().copied().unwrap_or_default();
    match value {
        Value::String(_) if is_credential(name) => {
            let wrong = Mismatch::new(
                "no key",
                "a text, which is not shown: put \"$KARYI{NAME}\" into `key` of the model",
            );
            faults.push(wrong.fault(path, offset));
        }
        Value::Float(number) if !number.value().is_finite() => {
            let wrong = Mismatch::new("a number of JSON", number.value().to_string());
            faults.push(wrong.fault(path, offset));
        }
        Value::InlineTable(table) => {
            for (name, inner) in table {
                let path: Vec<&str> = path.iter().copied().chain([name]).collect();
                check_field(&path, inner, offset, faults);
            }
        }
        Value::Array(list) => {
            for inner in list {
                check_field(path, inner, offset, faults);
            }
        }
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => {}
    }
}

/// Names the kind of a value that was found.
fn kind_of(item: &Item) -> &'static str {
    match item {
        Item::None => "nothing",
        Item::Value(value) => kind_of_value(value),
        Item::Table(_) => "a table",
        Item::ArrayOfTables(_) => "a list of tables",
    }
}

fn kind_of_value(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number with a point",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::InlineTable(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::config::settings::Settings;

    fn check(text: &str, expected: &str) {
        let found = Settings::parse("f".into(), text).err();
        let found = found.map_or_else(|| "ok".to_owned(), |error| error.to_string());
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn settings_that_are_right() {
        check("", "ok");
        check("# a comment\r\nshell = 'zsh'\r\nmax_lines = 0", "ok");
        check(
            "[models.\"a.b\"]\nkey = \"$KARYI{A}\"\nkey2.x = 1",
            "f:3:1: expected a setting, found `models.\"a.b\".key2`; did you mean `models.\"a.b\".key`?",
        );
        check(
            "models.a = { price = { input = 1, output = 0.5 }, extra = { a.b = [ { c = 1 } ] } }",
            "ok",
        );
        check("[[models.a.extra.list]]\nx = 1", "ok");
        check("models.a.base_url = \"HTTPS://h//v1/\"", "ok");
    }

    #[test]
    fn unknown_and_double_settings() {
        check(
            "a = 1",
            "f:1:1: expected a setting, found `a`; `karyi config list` shows all settings",
        );
        check(
            "\n  max_outptu = 1",
            "f:2:3: expected a setting, found `max_outptu`; did you mean `max_output`?",
        );
        check(
            "base_url = ''",
            "f:1:1: expected a setting, found `base_url`; did you mean `models.NAME.base_url`?",
        );
        check(
            "[models.a]\nprovder = 1\nmodel = 1",
            "f:2:1: expected a setting, found `models.a.provder`; did you mean `models.a.provider`?",
        );
        check(
            "\"\\u001b[31m\" = 1",
            "f:1:1: expected a setting, found `\"\\u001B[31m\"`; `karyi config list` shows all settings",
        );
        check(
            "shell = 'a'\nshell = 'b'",
            "f:2:1: expected each setting once, found `shell` again",
        );
        check(
            "[models.a]\n[models.b]\n[models.a]",
            "f:3:9: expected each setting once, found `a` again",
        );
        check(
            "[models.'a b']",
            "f:1:9: expected the name of a model without `:`, blanks and control characters, found `\"a b\"`",
        );
    }

    #[test]
    fn values_of_another_kind() {
        check(
            "shell = 1",
            "f:1:9: expected a text for `shell`, found a whole number",
        );
        check(
            "shell = ''",
            "f:1:9: expected a text for `shell`, found an empty one",
        );
        check(
            "shell = {}",
            "f:1:9: expected a text for `shell`, found a table",
        );
        check(
            "[shell]",
            "f:1:1: expected a text for `shell`, found a table",
        );
        check(
            "[[models]]",
            "f:1:1: expected a table for `models`, found a list of tables",
        );
        check(
            "models = 1",
            "f:1:10: expected a table for `models`, found a whole number",
        );
        check(
            "é = 1",
            "f:1:1: expected TOML, found a mistake: invalid unquoted key, expected letters, numbers, `-`, `_`",
        );
        check(
            "max_lines = -1",
            "f:1:13: expected a whole number from 0 for `max_lines`, found -1",
        );
        check(
            "max_lines = 1.5",
            "f:1:13: expected a whole number from 0 for `max_lines`, found a number with a point",
        );
        check(
            "max_lines = '9'",
            "f:1:13: expected a whole number from 0 for `max_lines`, found a text",
        );
    }

    #[test]
    fn values_of_another_kind_for_a_model() {
        check(
            "models.a.price.input = -1e30",
            "f:1:24: expected a number from 0 for `models.a.price.input`, found -1e30",
        );
        check(
            "models.a.context = 0",
            "f:1:20: expected a whole number from 1 for `models.a.context`, found 0",
        );
        check(
            "models.a.price.input = nan",
            "f:1:24: expected a number from 0 for `models.a.price.input`, found NaN",
        );
        check(
            "models.a.small = 'yes'",
            "f:1:18: expected true or false for `models.a.small`, found a text",
        );
        check(
            "models.a.system = 'usr'",
            "f:1:19: expected system or user for `models.a.system`, found `usr`; did you mean `user`?",
        );
        check(
            "models.a.capabilities = ['json', 1]",
            "f:1:25: expected a list of json, temperature or stop for `models.a.capabilities`, found one with a whole number",
        );
        check(
            "models.a.extra = 1",
            "f:1:18: expected a table for `models.a.extra`, found a whole number",
        );
        check(
            "models.a.extra.x = [inf]",
            "f:1:21: expected a number of JSON for `models.a.extra.x`, found inf",
        );
    }

    #[test]
    fn settings_of_a_supervisor_have_a_range() {
        let wrong = |name: &str, range: &str, found: &[&str]| {
            for found in found {
                let column = name.len() + "supervise. = ".len() + 1;
                check(
                    &format!("supervise.{name} = {found}"),
                    &format!(
                        "f:1:{column}: expected {range} for `supervise.{name}`, found {found}"
                    ),
                );
            }
        };
        let times = [
            "teller_timeout",
            "planner_timeout",
            "worker_timeout",
            "retry_pause",
            "model_pause",
            "question_pause",
            "debounce",
            "tick",
        ];
        for name in times {
            let outside = [
                "1e300", "1e-300", "1e30", "0.009", "86400.5", "86401", "-1", "inf",
            ];
            wrong(name, "seconds from 0.01 to 86400", &outside);
            check(&format!("supervise.{name} = 0.01"), "ok");
            check(&format!("supervise.{name} = 86400"), "ok");
        }
        let counts = [
            ("workers", 100),
            ("max_tokens_per_day", 1_000_000_000_000_i64),
            ("teller_steps", 1000),
            ("planner_steps", 1000),
            ("worker_steps", 1000),
        ];
        for (name, most) in counts {
            let range = format!("a whole number from 1 to {most}");
            let above = format!("{}", most + 1);
            wrong(name, &range, &["0", "-1", &above, "9223372036854775807"]);
            check(&format!("supervise.{name} = {most}"), "ok");
        }
    }

    #[test]
    fn urls() {
        let check = |url: &str, found: &str| {
            let expected = "f:1:21: expected a URL like http://127.0.0.1:8080/v1 for `models.a.base_url`, found";
            check(
                &format!("models.a.base_url = '{url}'"),
                &format!("{expected} {found}"),
            );
        };
        check("", "one without http:// or https://");
        check("local:80:1", "one without http:// or https://");
        check("http://local:80:1", "a text that is no URL");
        check("localhost/v1", "one without http:// or https://");
        check("/v1", "one without http:// or https://");
        check("file:///etc", "one with another scheme");
        check("http:///v1", "a text that is no URL");
        check(
            "https://me:hunter2@host/",
            "one with user information: put the key into `key`",
        );
        check(
            "http://host/v1?key=hunter2",
            "one with a query or a fragment",
        );
    }

    /// Every way to write a key into the file.
    #[test]
    fn a_key_is_never_shown() {
        let expected = "expected \"$KARYI{NAME}\" for `models.a.key`, found something else, which may be a key and is not \
             shown: store the key with `karyi var set NAME`";
        check(
            "models.a.key = 'sk-hunter2'",
            &format!("f:1:16: {expected}"),
        );
        check(
            "models.a.key = 'Bearer $KARYI{A}'",
            &format!("f:1:16: {expected}"),
        );
        check(
            "models.a.key = '$KARYI{A|file}'",
            &format!("f:1:16: {expected}"),
        );
        check("models.a.key = 42", &format!("f:1:16: {expected}"));
        let places = [
            "api_key = 'hunter2'",
            "API-Key = 'hunter2'",
            "x.headers.Authorization = 'hunter2'",
            "list = [{ password = 'hunter2' }]",
            "api_key = ['hunter2']",
            "token = 'hunter2'",
            "auth = 'hunter2'",
            "headers.X-Bearer = 'hunter2'",
        ];
        let hides = |text: String| {
            let error = Settings::parse("f".into(), &text)
                .err()
                .unwrap()
                .to_string();
            assert!(!error.contains("hunter"), "{text}: {error}");
        };
        for place in places {
            hides(format!("models.a.extra.{place}"));
        }
        for value in [
            "hunter2",
            "\"hunter2",
            "'hunter2\n",
            "\"\\hunter2\"",
            "hunter2 = 3",
            "[hunter2",
            "2026-hunter",
        ] {
            hides(format!("models.a.key = {value}\n"));
        }
        hides("models.a.provider = 'sk-hunter2-0123456789abcdef'".to_owned());
    }
}
