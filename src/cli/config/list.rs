//! The settings with their values, and where each value is from.

use serde_json::{Value as Json, json};
use toml_edit::{Item, Value};

use crate::cli::config::change::value_of;
use crate::cli::config::check::mismatch;
use crate::cli::config::keys::{KEYS, Key, Kind, dotted};
use crate::cli::config::model;
use crate::cli::config::settings::Settings;
use crate::cli::state_dir::variable;
use crate::render::paint::safe_line;

/// Text that stands for one in the fields of a request, which may be a key.
const HIDDEN: &str = "(not shown)";

/// Columns of settings before the places.
const PLACE_COLUMN: usize = 44;

/// A setting with its value.
pub(super) struct Entry {
    key: &'static Key,
    name: String,
    path: Vec<String>,
    value: Option<Value>,
    source: Source,
}

/// Source of a value.
enum Source {
    Variable(&'static str),
    File(String),
    Default,
}

/// Returns all settings, those of models for each model of the file; without any model for the word NAME.
pub(super) fn entries(settings: &Settings) -> Vec<Entry> {
    let mut models = settings.names(&["models"]);
    if models.is_empty() {
        models.push("NAME");
    }
    let is_of_model = |key: &&Key| key.pattern.contains('*');
    let general = KEYS.iter().filter(|key| !is_of_model(key));
    let general = general.map(|key| entry(settings, key, &key.parts().collect::<Vec<_>>()));
    let of_models = models.iter().flat_map(|model| {
        let keys = KEYS.iter().filter(is_of_model);
        keys.map(|key| {
            let parts = key
                .parts()
                .map(|part| if part == "*" { *model } else { part });
            entry(settings, key, &parts.collect::<Vec<_>>())
        })
    });
    general.chain(of_models).collect()
}

/// Returns one setting.
pub(super) fn entry(settings: &Settings, key: &'static Key, path: &[&str]) -> Entry {
    let variable = variable(key.variable);
    let (value, source) = match (variable, settings.item(path)) {
        (Some(text), _) => {
            let text = text.to_string_lossy().into_owned();
            (Some(text.into()), Source::Variable(key.variable))
        }
        (None, Some(item)) => (shown_value(key, item), Source::File(settings.place(path))),
        (None, None) => (usual(key), Source::Default),
    };
    Entry {
        key,
        name: dotted(path),
        path: path.iter().map(|part| (*part).to_owned()).collect(),
        value,
        source,
    }
}

/// Returns the default when it is a value, and not a description.
fn usual(key: &Key) -> Option<Value> {
    let value = value_of(key.kind, key.usual);
    let is_value = mismatch(key.kind, &Item::Value(value.clone())).is_ok();
    (is_value && !key.usual.is_empty()).then_some(value)
}

fn shown_value(key: &Key, item: &Item) -> Option<Value> {
    let mut value = item.clone().into_value().ok()?;
    if matches!(key.kind, Kind::Fields) {
        hide(&mut value);
    }
    Some(plain(value))
}

/// Returns a field of requests without texts.
pub(super) fn shown_field(item: &Item) -> String {
    let Ok(mut value) = item.clone().into_value() else {
        return String::new();
    };
    hide(&mut value);
    plain(value).to_string()
}

/// Returns a value without the comments and blanks around it.
fn plain(mut value: Value) -> Value {
    value.decor_mut().clear();
    value
}

/// Replaces the texts in a value.
fn hide(value: &mut Value) {
    match value {
        Value::String(_) => *value = HIDDEN.into(),
        Value::Array(list) => list.iter_mut().for_each(hide),
        Value::InlineTable(table) => table.iter_mut().for_each(|(_, value)| hide(value)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}

impl Entry {
    /// Returns the value for a script: a text without quotes, a list with commas.
    pub(super) fn plain(&self) -> Option<String> {
        let value = self.value.as_ref()?;
        Some(match value {
            Value::String(text) => safe_line(text.value()).into_owned(),
            Value::Array(list) => {
                let words = list.iter().filter_map(Value::as_str);
                words.collect::<Vec<_>>().join(",")
            }
            _ => value.to_string(),
        })
    }

    /// Returns true when the setting is in a table.
    pub(super) fn is_within(&self, table: &[&str]) -> bool {
        self.path.iter().zip(table).filter(|(a, b)| a == b).count() == table.len()
    }

    /// Returns a line for `config.toml`; `None` when there is no value.
    pub(super) fn assignment(&self) -> Option<String> {
        let value = self.value.as_ref()?;
        Some(format!("{} = {value}\n", self.name))
    }

    fn place(&self) -> &str {
        match &self.source {
            Source::Variable(name) => name,
            Source::File(place) => place,
            Source::Default => "default",
        }
    }

    fn line(&self) -> String {
        match self.assignment() {
            Some(text) => format!("{:PLACE_COLUMN$} # {}\n", text.trim_end(), self.place()),
            None => {
                let usual = match self.key.usual {
                    "" => "none",
                    usual => usual,
                };
                format!("{:PLACE_COLUMN$} # {usual}\n", format!("# {}", self.name))
            }
        }
    }

    fn object(&self) -> Json {
        let from = match self.source {
            Source::Variable(_) => "variable",
            Source::File(_) => "file",
            Source::Default => "default",
        };
        json!({
            "key": self.name,
            "value": self.value.as_ref().map(model::json),
            "from": from,
            "place": self.place(),
            "expected": self.key.kind.expected(),
            "default": self.key.usual,
            "summary": self.key.summary,
        })
    }
}

/// Returns the settings as lines that `config.toml` could have.
pub(super) fn text(entries: &[Entry]) -> String {
    entries.iter().map(Entry::line).collect()
}

/// Returns the settings as a JSON list.
pub(super) fn json(entries: &[Entry]) -> String {
    let list: Vec<Json> = entries.iter().map(Entry::object).collect();
    format!("{}\n", Json::Array(list))
}
