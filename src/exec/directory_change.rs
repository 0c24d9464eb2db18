//! Notices a `cd` that failed: a relative path of a later call would lead to another place than the model means.
//!
//! Only the shell knows whether a `cd` failed, and only its message says so: a script goes on after it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::tool::effect::PathBase;
use crate::tools::Call;
use karyi_core::outcome::{Outcome, Status};
use karyi_core::secret::Template;

/// Built-in commands that change the directory.
const CHANGES: [&str; 2] = ["cd", "pushd"];
/// Words before a command.
const PREFIXES: [&str; 6] = ["then", "do", "else", "!", "{", "builtin"];

/// A command that changes the directory of the session.
#[derive(Debug)]
pub(super) struct DirectoryChange {
    /// The directory before it.
    before: PathBuf,
}

impl DirectoryChange {
    /// Returns the change that a call makes.
    pub(super) fn of(call: &Call, cwd: &Path) -> Option<Self> {
        let Call::Command(args) = call else {
            return None;
        };
        changes_directory(args.text.source()).then(|| Self {
            before: cwd.to_owned(),
        })
    }

    /// Returns true if it failed.
    pub(super) fn has_failed(&self, outcome: &Outcome) -> bool {
        let output = outcome.output.as_ref().map_or("", |view| &view.text);
        let is_told = output.lines().any(|line| {
            CHANGES
                .iter()
                .any(|word| line.contains(&format!("{word}:")))
        });
        let cwd = outcome.fields.get("cwd").and_then(Value::as_str);
        let stays = cwd.is_none_or(|cwd| Path::new(cwd) == self.before);
        is_told && (stays || outcome.status == Status::Failed)
    }
}

/// Returns true if a script changes the directory of its own shell.
fn changes_directory(script: &str) -> bool {
    let mut depth = 0_usize;
    let mut is_change = false;
    for segment in script.split_inclusive(['\n', ';', '&', '|', '(', ')']) {
        let mut words = segment.split_whitespace();
        let first = words.find(|word| !PREFIXES.contains(word)).unwrap_or("");
        is_change |= depth == 0 && CHANGES.contains(&first.trim_end_matches([';', '&', '|']));
        match segment.chars().next_back() {
            Some('(') => depth += 1,
            Some(')') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    is_change
}

/// Returns true if a call names a path relative to the session's directory.
pub(super) fn has_relative_path(call: &Call) -> bool {
    let is_relative = |path: &Template| {
        let text = path.source();
        Path::new(text).is_relative()
            && !text.starts_with(crate::tool::sessions::JOB_PREFIX)
            && !path.has_placeholder()
    };
    match (call, call.effect()) {
        (Call::Command(args), _) => args.cwd.as_ref().is_some_and(is_relative),
        (Call::Bash(args), _) => args.cwd.as_ref().is_none_or(is_relative),
        (_, effect) => effect
            .files()
            .iter()
            .any(|access| access.base == PathBase::Session && is_relative(&access.path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_changes_the_directory_is_known() {
        for script in [
            "cd a",
            "  cd a && make",
            "x; cd a",
            "if x; then cd a; fi",
            "mkdir a\ncd a",
            "(cd b); pushd a",
        ] {
            assert!(changes_directory(script), "{script}");
        }
        for script in [
            "",
            "(cd a && make)",
            "echo cd",
            "x=$(cd a; pwd)",
            "git -C cd",
        ] {
            assert!(!changes_directory(script), "{script}");
        }
    }
}
