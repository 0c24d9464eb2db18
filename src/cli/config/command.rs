//! `karyi config`: shows and changes the user's settings.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::cli::config::args::{ConfigArgs, ConfigCommand};
use crate::cli::config::change::{self, parse_path};
use crate::cli::config::check::{syntax_fault, unknown};
use crate::cli::config::error::SettingsError;
use crate::cli::config::keys::{Found, dotted, find};
use crate::cli::config::model::check_models;
use crate::cli::config::settings::Settings;
use crate::cli::config::{editor, file, line_ends, list, place};
use crate::cli::{fail, print, say};

/// Exit status when a setting has no value.
const NO_VALUE: u8 = 1;

/// Runs `karyi config`.
pub(in crate::cli) fn config(args: ConfigArgs) -> ExitCode {
    let done = match args.command {
        ConfigCommand::Get { key } => get(&key),
        ConfigCommand::Set { key, value } => set(&key, value),
        ConfigCommand::Unset { key } => unset(&key),
        ConfigCommand::List { json } => listing(json),
        ConfigCommand::Edit => path().and_then(|file| editor::edit(&file)),
        ConfigCommand::Path => path().map(|file| print(&format!("{}\n", file.display()))),
    };
    done.unwrap_or_else(|error| fail(&format!("{error:#}")))
}

fn path() -> anyhow::Result<PathBuf> {
    place::place()
        .context("expected KARYI_HOME, XDG_CONFIG_HOME or HOME in the environment, found none")
}

fn borrowed(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn get(name: &str) -> anyhow::Result<ExitCode> {
    let path = parse_path(name)?;
    let path = borrowed(&path);
    let settings = Settings::load()?;
    let found = match find(&path) {
        Found::Setting(key) => list::entry(&settings, key, &path).plain(),
        Found::Field => settings.item(&path).map(list::shown_field),
        Found::Table => {
            let entries = list::entries(&settings);
            let within = entries.iter().filter(|entry| entry.is_within(&path));
            let lines: String = within.filter_map(list::Entry::assignment).collect();
            Some(lines).filter(|lines| !lines.is_empty())
        }
        Found::Nothing(near) => bail!(unknown(&path, near)),
    };
    Ok(match found {
        Some(text) => print(&format!("{}\n", text.trim_end())),
        None => {
            say(&format!("{name} has no value"));
            ExitCode::from(NO_VALUE)
        }
    })
}

fn listing(is_json: bool) -> anyhow::Result<ExitCode> {
    let settings = Settings::load()?;
    let entries = list::entries(&settings);
    Ok(print(&match is_json {
        true => list::json(&entries),
        false => list::text(&entries),
    }))
}

/// Changes a setting. No message repeats the value: it may be a key.
fn set(name: &str, mut words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let path = parse_path(name)?;
    let path = borrowed(&path);
    if words.len() > 1 {
        bail!("expected one value for `{name}`, found several: put a text with blanks into quotes");
    }
    let text = words.pop().unwrap_or_default().into_string();
    let Ok(text) = text else {
        bail!("expected a value in UTF-8 for `{name}`, found another encoding");
    };
    let value = change::value(&path, &text)?;
    changed(|before| change::with_value(before, &path, value.clone()).map(Some))?;
    Ok(ExitCode::SUCCESS)
}

fn unset(name: &str) -> anyhow::Result<ExitCode> {
    let path = parse_path(name)?;
    let path = borrowed(&path);
    let file = self::path()?;
    if !changed(|before| without(&file, before, &path))? {
        if let Found::Nothing(near) = find(&path) {
            bail!(unknown(&path, near));
        }
        say(&format!("{name} was not in the file"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the file with a change, when the result is right. Other changes wait, so that none is lost.
fn changed(change: impl Fn(&str) -> anyhow::Result<Option<String>>) -> anyhow::Result<bool> {
    let file = path()?;
    // Without a change nothing is created, not even the lock.
    if text_with(&file, &change)?.is_none() {
        return Ok(false);
    }
    let _lock = file::lock(&file)?;
    let Some(after) = text_with(&file, &change)? else {
        return Ok(false);
    };
    file::write(&file, &after)?;
    Ok(true)
}

/// Returns the text of the file with a change. The file may have a mistake that the change mends.
fn text_with(
    file: &Path,
    change: impl Fn(&str) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<Option<String>> {
    let before = place::read(file)?.unwrap_or_default();
    if let Some(fault) = syntax_fault(&before) {
        return Err(SettingsError::at(file, &before, &fault).into());
    }
    let Some(after) = change(&before)? else {
        return Ok(None);
    };
    let after = line_ends::kept(&before, &after);
    Settings::parse(file.to_owned(), &after)?;
    Ok(Some(after))
}

/// Removes a setting or table from a text, unless a model needs it.
fn without(file: &Path, before: &str, path: &[&str]) -> anyhow::Result<Option<String>> {
    let Some(after) = change::without(before, path)? else {
        return Ok(None);
    };
    let parsed = |text: &str| Settings::parse(file.to_owned(), text);
    // A mistake is mended first.
    if let (Ok(old), Ok(new)) = (parsed(before), parsed(&after))
        && let Err(missing) = check_models(&old, &new)
    {
        let parents = path.split_last().map_or(path, |(_, parents)| parents);
        let table = dotted(parents);
        bail!("{missing}: `karyi config unset {table}` removes the whole table");
    }
    Ok(Some(after))
}
