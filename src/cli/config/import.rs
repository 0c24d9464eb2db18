//! Adds what was found in the settings of another assistant.

use std::path::PathBuf;

use toml_edit::{Array, Item, Value};

use crate::cli::config::settings::Settings;
use crate::cli::config::{change, file, line_ends, place};

/// Settings that were added, or would be.
#[derive(Debug, Default)]
pub(in crate::cli) struct ImportResult {
    /// The file.
    pub(in crate::cli) file: PathBuf,
    /// Lists with their new rules.
    pub(in crate::cli) rules: Vec<(String, String)>,
    /// Model.
    pub(in crate::cli) model: Option<String>,
}

impl ImportResult {
    /// Returns true when everything was there already.
    pub(in crate::cli) fn is_nothing(&self) -> bool {
        self.rules.is_empty() && self.model.is_none()
    }
}

/// Adds rules to the lists of `[approval]`, and a model unless one is set; a dry run writes nothing.
///
/// # Errors
/// The file has a mistake, or cannot be written.
pub(in crate::cli) fn import(
    lists: &[(&str, Vec<&str>)],
    model: Option<&str>,
    is_dry_run: bool,
) -> anyhow::Result<ImportResult> {
    // Other changes wait, so that none is lost.
    let changed = place::place().filter(|_| !is_dry_run);
    let _lock = changed.as_deref().map(file::lock).transpose()?;
    let settings = Settings::load()?;
    let mut imported = ImportResult {
        file: settings.file.clone(),
        ..ImportResult::default()
    };
    let mut text = settings.source().to_owned();
    for (name, rules) in lists {
        let path = ["approval", *name];
        let before = settings.item(&path).and_then(Item::as_array);
        let mut array: Array = before.cloned().unwrap_or_default();
        let is_new = |rule: &&&str| !array.iter().any(|old| old.as_str() == Some(**rule));
        let new: Vec<&str> = rules.iter().filter(is_new).copied().collect();
        if new.is_empty() {
            continue;
        }
        for rule in new {
            array.push(rule);
            imported.rules.push(((*name).to_owned(), rule.to_owned()));
        }
        text = change::with_value(&text, &path, Value::Array(array))?;
    }
    if let Some(model) = model.filter(|_| settings.text("model").is_none()) {
        text = change::with_value(&text, &["model"], model.into())?;
        imported.model = Some(model.to_owned());
    }
    if !imported.is_nothing() {
        Settings::parse(settings.file.clone(), &text)?;
    }
    if !imported.is_nothing() && !is_dry_run {
        let text = line_ends::kept(settings.source(), &text);
        file::write(&settings.file, &text)?;
    }
    Ok(imported)
}
