//! Error in the settings: one line with its place.
//!
//! It names settings and kinds of values. A value itself may be a key, so only words of a fixed choice and numbers are
//! repeated.

use std::fmt;
use std::path::Path;

use crate::render::paint::safe_line;

/// Error at an offset of the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Byte offset.
    pub(super) offset: usize,
    /// Message: expected, found, and the nearest name.
    pub(super) message: String,
}

/// Error in the settings, or in a variable or flag that overrides one.
#[derive(Debug)]
pub(in crate::cli) struct SettingsError(String);

impl SettingsError {
    /// Makes an error of a file as a whole.
    pub(super) fn of_file(file: &Path, message: impl fmt::Display) -> Self {
        Self(format!("{}: {message}", shown(file)))
    }

    /// Makes an error at a place of a file with this text.
    pub(super) fn at(file: &Path, text: &str, fault: &Fault) -> Self {
        let place = place(file, text, fault.offset);
        Self(format!("{place}: {}", fault.message))
    }

    /// Makes an error of a variable, a flag or an argument.
    pub(super) fn of(source: &str, message: impl fmt::Display) -> Self {
        Self(format!("{source}: {message}"))
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

/// Returns `FILE:LINE:COLUMN`, both from 1, the column in characters.
pub(super) fn place(file: &Path, text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before
        .get(start..)
        .map_or(0, |line| line.chars().count() + 1);
    format!("{}:{line}:{column}", shown(file))
}

/// Returns a path on one line.
pub(super) fn shown(file: &Path) -> String {
    safe_line(&file.display().to_string()).into_owned()
}
