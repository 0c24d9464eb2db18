//! The user's settings, read and checked.

use std::path::PathBuf;
use std::sync::Arc;

use toml_edit::{Document, Item};

use crate::cli::config::check;
use crate::cli::config::error::{SettingsError, place};
use crate::cli::config::place;

/// The settings, and the file that has them.
#[derive(Default)]
pub(in crate::cli) struct Settings {
    /// `None` when there is no file.
    document: Option<Document<Arc<str>>>,
    /// The file, also when it does not exist yet; empty when there is no directory for it.
    pub(in crate::cli) file: PathBuf,
}

impl Settings {
    /// Reads the file; without one there are no settings.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is wrong.
    pub(in crate::cli) fn load() -> Result<Self, SettingsError> {
        match place::place() {
            Some(file) => Self::load_from(file),
            None => Ok(Self::default()),
        }
    }

    /// Reads a file of this form; without it there are no settings.
    ///
    /// # Errors
    /// It cannot be read, or something in it is wrong.
    pub(in crate::cli) fn load_from(file: PathBuf) -> Result<Self, SettingsError> {
        match place::read(&file)? {
            Some(text) => Self::parse(file, &text),
            None => Ok(Self {
                document: None,
                file,
            }),
        }
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// Something in it is wrong.
    pub(super) fn parse(file: PathBuf, text: &str) -> Result<Self, SettingsError> {
        let text: Arc<str> = text.into();
        let document = check::document(&text);
        let document = document.map_err(|fault| SettingsError::at(&file, &text, &fault))?;
        Ok(Self {
            document: Some(document),
            file,
        })
    }

    /// Returns the text of the file; empty when there is none.
    pub(super) fn source(&self) -> &str {
        self.document.as_ref().map_or("", |document| document.raw())
    }

    /// Returns a setting that is a text.
    pub(in crate::cli) fn text(&self, name: &str) -> Option<&str> {
        self.item(&[name])?.as_str()
    }

    /// Returns a setting that is a number.
    pub(in crate::cli) fn number(&self, name: &str) -> Option<usize> {
        let number = self.item(&[name])?.as_integer()?;
        usize::try_from(number).ok()
    }

    /// Returns a value or table.
    pub(super) fn item(&self, path: &[&str]) -> Option<&Item> {
        let mut item = self.document.as_ref()?.as_item();
        for name in path {
            item = item.as_table_like()?.get(name)?;
        }
        Some(item)
    }

    /// Returns the names in a table.
    pub(super) fn names(&self, path: &[&str]) -> Vec<&str> {
        let table = self.item(path).and_then(Item::as_table_like);
        let entries = table.into_iter().flat_map(|table| table.iter());
        entries.map(|(name, _)| name).collect()
    }

    /// Returns the names of the models.
    pub(in crate::cli) fn models(&self) -> Vec<&str> {
        self.names(&["models"])
    }

    /// Returns the place of a value or table: `FILE:LINE:COLUMN`.
    pub(super) fn place(&self, path: &[&str]) -> String {
        let key = path.split_last().and_then(|(last, parent)| {
            let table = self.item(parent)?.as_table_like()?;
            table.key(last)?.span()
        });
        let text = self.document.as_ref().map_or("", |document| document.raw());
        place(&self.file, text, key.map_or(0, |span| span.start))
    }
}
