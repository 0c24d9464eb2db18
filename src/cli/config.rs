//! Settings of the user: `config.toml` in `$KARYI_HOME`, else in `karyi` below `$XDG_CONFIG_HOME` or `~/.config`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context as _;

/// The settings, and the file that has them.
#[derive(Debug, Default)]
pub(super) struct Settings {
    table: toml::Table,
    pub(super) file: PathBuf,
}

impl Settings {
    /// Reads the file; without one there are no settings.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn load() -> anyhow::Result<Self> {
        let Some(file) = place() else {
            return Ok(Self::default());
        };
        let content = match std::fs::read_to_string(&file) {
            Ok(content) => content,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(Self::default());
            }
            Err(error) => return Err(error).with_context(|| format!("reading {}", file.display())),
        };
        let table =
            toml::from_str(&content).with_context(|| format!("reading {}", file.display()))?;
        Ok(Self { table, file })
    }

    /// Returns a setting that is a text.
    ///
    /// # Errors
    /// The setting is something else.
    pub(super) fn text(&self, name: &str) -> anyhow::Result<Option<&str>> {
        match self.table.get(name) {
            None => Ok(None),
            Some(toml::Value::String(text)) => Ok(Some(text)),
            Some(_) => anyhow::bail!("{}: expected a text for {name}", self.file.display()),
        }
    }

    /// Returns a setting that is a number.
    ///
    /// # Errors
    /// The setting is something else.
    pub(super) fn number(&self, name: &str) -> anyhow::Result<Option<usize>> {
        let Some(value) = self.table.get(name) else {
            return Ok(None);
        };
        let number = value.as_integer().and_then(|n| usize::try_from(n).ok());
        let wrong = || {
            format!(
                "{}: expected a whole number for {name}",
                self.file.display()
            )
        };
        number.map(Some).with_context(wrong)
    }
}

fn place() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|text: &OsString| !text.is_empty());
    let directory = |name| variable(name).map(PathBuf::from);
    let shared = || {
        let told = directory("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        let base = told.or_else(|| directory("HOME").map(|home| home.join(".config")))?;
        Some(base.join("karyi"))
    };
    Some(directory("KARYI_HOME").or_else(shared)?.join("config.toml"))
}
