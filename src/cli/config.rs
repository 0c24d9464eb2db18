//! Settings of the user: `config.toml` in `$KARYI_HOME`, else in `karyi` below `$XDG_CONFIG_HOME` or `~/.config`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context as _;

/// Returns a setting that is a text, and the file that has it.
///
/// # Errors
/// The file cannot be read, or the setting is something else.
pub(super) fn text(name: &str) -> anyhow::Result<Option<(String, PathBuf)>> {
    let Some(file) = place() else {
        return Ok(None);
    };
    let content = match std::fs::read_to_string(&file) {
        Ok(content) => content,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error).with_context(|| format!("reading {}", file.display())),
    };
    let table: toml::Table =
        toml::from_str(&content).with_context(|| format!("reading {}", file.display()))?;
    match table.get(name) {
        None => Ok(None),
        Some(toml::Value::String(text)) => Ok(Some((text.clone(), file))),
        Some(_) => anyhow::bail!("{}: expected a text for {name}", file.display()),
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
