//! Changes one setting in the text of `config.toml`, and nothing else in it.

use std::ops::Range;

use anyhow::{bail, ensure};
use toml_edit::{
    Array, Document, DocumentMut, InlineTable, Item, Key, Table, TableLike, TomlError, Value,
};

use crate::cli::config::check::{mismatch, unknown};
use crate::cli::config::error::SettingsError;
use crate::cli::config::keys::{Found, Kind, dotted, find};

/// Parses a name with dots, such as `models.local.base_url`.
///
/// # Errors
/// It is no such name.
pub(super) fn parse_path(name: &str) -> Result<Vec<String>, SettingsError> {
    let path = Key::parse(name).unwrap_or_default();
    if path.is_empty() {
        let message = "expected the name of a setting, such as `shell` or `models.local.base_url`";
        return Err(SettingsError::of("karyi config", message));
    }
    Ok(path.iter().map(|key| key.get().to_owned()).collect())
}

/// Makes a value of the kind that a setting has.
///
/// # Errors
/// There is no such setting, or the text is no value of that kind.
pub(super) fn value(path: &[&str], text: &str) -> anyhow::Result<Value> {
    let kind = match find(path) {
        Found::Setting(key) => key.kind,
        Found::Field => return Ok(text.parse().unwrap_or_else(|_| text.into())),
        Found::Table => bail!(
            "expected a setting, found the table `{}`: set one of its settings",
            dotted(path)
        ),
        Found::Nothing(near) => bail!(unknown(path, near)),
    };
    let is_expanded = text.starts_with('{') && text.ends_with('}');
    if matches!(kind, Kind::Secret) && is_expanded {
        bail!(
            "expected \"$KARYI{{NAME}}\" for `{}`, found that the shell has replaced $KARYI: put the value into \
             single quotes",
            dotted(path)
        );
    }
    let value = value_of(kind, text);
    match mismatch(kind, &Item::Value(value.clone())) {
        Ok(()) => Ok(value),
        Err(wrong) => bail!(wrong.message(path)),
    }
}

/// Reads a text as a value of a kind; one that does not fit stays a text.
pub(super) fn value_of(kind: Kind, text: &str) -> Value {
    let whole = || text.parse::<i64>().ok().map(Value::from);
    let read = match kind {
        Kind::Text | Kind::Url | Kind::Secret | Kind::Word(_) => None,
        Kind::Count | Kind::Tokens | Kind::Within(..) => whole(),
        Kind::Price | Kind::Seconds(..) => {
            whole().or_else(|| text.parse::<f64>().ok().map(Value::from))
        }
        Kind::Flag => text.parse::<bool>().ok().map(Value::from),
        Kind::Words(_) | Kind::Texts | Kind::UrlRules | Kind::Rules => {
            let words = text.split(',').map(str::trim);
            let words = words.filter(|word| !word.is_empty());
            Some(Value::Array(words.collect::<Array>()))
        }
        Kind::Fields => text.parse().ok(),
    };
    read.unwrap_or_else(|| text.into())
}

/// Returns the text with another value of a setting.
///
/// # Errors
/// A part of the path is no table.
pub(super) fn with_value(text: &str, path: &[&str], mut value: Value) -> anyhow::Result<String> {
    let parsed = text.parse::<DocumentMut>();
    let mut document = parsed.map_err(|error| unparsed(&error))?;
    if document.is_empty() {
        // Comments of a file without settings stay before the first one.
        let comments = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing("");
        let mut added = with_added(document, path, value)?;
        added.insert_str(0, &comments);
        return Ok(added);
    }
    let mut item = document.as_item_mut();
    for name in path {
        let inner = item.as_table_like_mut();
        match inner.and_then(|table| table.get_mut(name)) {
            Some(found) => item = found,
            None => return with_added(document, path, value),
        }
    }
    let Some(old) = item.as_value() else {
        let name = dotted(path);
        bail!(
            "expected a value at `{name}`, found a table: `karyi config unset {name}` removes it"
        );
    };
    *value.decor_mut() = old.decor().clone();
    *item = Item::Value(value);
    Ok(document.to_string())
}

/// Returns the parser's message alone: its own text shows the line, which may have a key.
fn unparsed(error: &TomlError) -> anyhow::Error {
    anyhow::Error::msg(error.message().to_owned())
}

/// Adds a setting, with the tables on its path.
fn with_added(mut document: DocumentMut, path: &[&str], value: Value) -> anyhow::Result<String> {
    let Some((last, parents)) = path.split_last() else {
        return Ok(document.to_string());
    };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let mut is_inline = false;
    for (depth, name) in parents.iter().enumerate() {
        // [models] itself has no header, [models.NAME] has one, and what is below is within braces.
        is_inline |= depth > 1;
        if !table.contains_key(name) {
            let mut made = Table::new();
            made.set_implicit(depth == 0);
            let made = match is_inline {
                true => Item::Value(Value::InlineTable(InlineTable::new())),
                false => Item::Table(made),
            };
            table.insert(name, made);
        }
        let item = table.get_mut(name);
        is_inline |= item.as_ref().is_some_and(|item| item.is_inline_table());
        let inner = item.and_then(Item::as_table_like_mut);
        let Some(inner) = inner else {
            bail!("expected a table, found a value at `{}`", dotted(path));
        };
        table = inner;
    }
    table.insert(last, Item::Value(value));
    Ok(document.to_string())
}

/// Returns the text without a setting or a table; `None` when it has none of that name.
///
/// # Errors
/// The text is not TOML.
pub(super) fn without(text: &str, path: &[&str]) -> anyhow::Result<Option<String>> {
    let document = Document::parse(text).map_err(|error| unparsed(&error))?;
    ensure!(!path.is_empty(), "expected the name of a setting");
    if let Some(lines) = lines_of(&document, path) {
        let mut rest = text.to_owned();
        rest.replace_range(lines, "");
        return Ok(Some(rest));
    }
    let mut document = document.into_mut();
    let mut table: Option<&mut dyn TableLike> = Some(document.as_table_mut());
    let Some((last, parents)) = path.split_last() else {
        return Ok(None);
    };
    for name in parents {
        let item = table.and_then(|table| table.get_mut(name));
        table = item.and_then(Item::as_table_like_mut);
    }
    let removed = table.and_then(|table| table.remove(last));
    Ok(removed.map(|_| document.to_string()))
}

/// Returns the lines of a value that has its lines alone. Comments above them stay.
fn lines_of(document: &Document<&str>, path: &[&str]) -> Option<Range<usize>> {
    let (last, parents) = path.split_last()?;
    let mut item = document.as_item();
    for name in parents {
        item = item.as_table()?.get(name)?;
    }
    let (key, value) = item.as_table()?.get_key_value(last)?;
    let (key, value) = (key.span()?, value.as_value()?.span()?);
    let text = document.raw();
    let start = text.get(..key.start)?.rfind('\n').map_or(0, |at| at + 1);
    let rest = text.get(value.end..)?;
    let end = rest.find('\n').map_or(text.len(), |at| value.end + at + 1);
    Some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, name: &str, new: &str, expected: &str) {
        let path = parse_path(name).unwrap();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let found = value(&path, new).and_then(|value| with_value(text, &path, value));
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn comments_and_order_stay() {
        let text = "# mine\nmax_lines = 5  # few\n\n# shells\nshell = 'zsh'\n";
        set(text, "max_lines", "7", &text.replace('5', "7"));
        set(text, "shell", "a\"b", &text.replace("'zsh'", "'a\"b'"));
        set(text, "max_line", "1", &format!("{text}max_line = 1\n"));
        set("# only\n", "shell", "zsh", "# only\nshell = \"zsh\"\n");
        set("", "shell", "zsh", "shell = \"zsh\"\n");
    }

    #[test]
    fn tables_are_made_and_kept() {
        let model = "[models.local]\nprovider = \"ollama\"\n";
        set("", "models.local.provider", "ollama", model);
        set(
            "shell = 'a'\n",
            "models.local.provider",
            "ollama",
            &format!("shell = 'a'\n\n{model}"),
        );
        set(
            model,
            "model",
            "local",
            &format!("model = \"local\"\n{model}"),
        );
        set(
            model,
            "models.local.price.input",
            "3",
            &format!("{model}price = {{ input = 3 }}\n"),
        );
        set(
            "models.a.price.input = 1\n",
            "models.a.price.output",
            "0.5",
            "models.a.price.input = 1\nmodels.a.price.output = 0.5\n",
        );
        set(
            "models.a = { model = 'x' }\n",
            "models.a.small",
            "true",
            "models.a = { model = 'x' , small = true }\n",
        );
        set(
            model,
            "models.\"a.b\".capabilities",
            "json, stop",
            &format!("{model}\n[models.\"a.b\"]\ncapabilities = [\"json\", \"stop\"]\n"),
        );
        set(
            model,
            "models.local.extra",
            "{ a = [1] }",
            &format!("{model}extra = {{ a = [1] }}\n"),
        );
        set(
            model,
            "models.local.extra.effort",
            "high",
            &format!("{model}extra = {{ effort = \"high\" }}\n"),
        );
    }

    #[test]
    fn one_setting_is_removed() {
        let unset = |text: &str, name: &str, expected: Option<&str>| {
            let path = parse_path(name).unwrap();
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            assert_eq!(without(text, &path).unwrap().as_deref(), expected, "{name}");
        };
        let text = "# mine\nshell = 'zsh' # s\n# m\nmax_lines = 1";
        unset(text, "shell", Some("# mine\n# m\nmax_lines = 1"));
        unset(text, "max_lines", Some("# mine\nshell = 'zsh' # s\n# m\n"));
        unset(text, "max_line", None);
        unset(
            "[models.a]\nsmall = true\n\n[models.b]\n",
            "models.a",
            Some("\n[models.b]\n"),
        );
        unset(
            "models.a = { small = true, model = 'x' }\n",
            "models.a.small",
            Some("models.a = { model = 'x' }\n"),
        );
        unset(
            "[models.a]\nextra = {\n x = 1 }\n",
            "models.a.extra",
            Some("[models.a]\n"),
        );
        unset("shell = 1\n", "shell.x", None);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let check = |name: &str, new: &str, expected: &str| {
            let path = parse_path(name).unwrap();
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            assert_eq!(value(&path, new).unwrap_err().to_string(), expected);
        };
        check(
            "max_lines",
            "many",
            "expected a whole number from 0 for `max_lines`, found a text",
        );
        check(
            "models.a.small",
            "yes",
            "expected true or false for `models.a.small`, found a text",
        );
        check(
            "models.a.extra",
            "x = 1",
            "expected a table for `models.a.extra`, found a text",
        );
        check(
            "models",
            "x",
            "expected a setting, found the table `models`: set one of its settings",
        );
        check(
            "shel",
            "x",
            "expected a setting, found `shel`; did you mean `shell`?",
        );
        check(
            "models.a.key",
            "{A}",
            "expected \"$KARYI{NAME}\" for `models.a.key`, found that the shell has replaced $KARYI: put the value into single quotes",
        );
        assert!(parse_path("").is_err() && parse_path("a..b").is_err());
    }
}
