//! Inputs of earlier runs, in a file that only the user may read: one JSON text per line, oldest first. Answers to
//! questions for values never come here, and values of secrets are masked.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::cli::state_dir::state_dir;
use karyi_core::limits;

/// Modes of the file and of its directory.
const PRIVATE: (u32, u32) = (0o600, 0o700);

/// Returns the inputs of earlier runs. None is no reason not to start.
pub(super) fn load() -> Vec<String> {
    file().map_or_else(Vec::new, |file| load_from(&file))
}

/// Adds an input.
pub(super) fn add(text: &str) {
    if let Some(file) = file() {
        // The conversation matters more than its inputs.
        let _ = add_to(&file, text);
    }
}

fn file() -> Option<PathBuf> {
    Some(state_dir().ok()?.join("inputs"))
}

fn load_from(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let mut inputs: Vec<String> = lines.collect();
    let surplus = inputs.len().saturating_sub(limits::MAX_INPUT_HISTORY);
    inputs.drain(..surplus);
    if surplus >= limits::MAX_INPUT_HISTORY {
        let _ = shorten(file, &inputs);
    }
    inputs
}

fn add_to(file: &Path, text: &str) -> io::Result<()> {
    let (mode, of_directory) = PRIVATE;
    if let Some(directory) = file.parent() {
        let mut made = DirBuilder::new();
        made.recursive(true).mode(of_directory).create(directory)?;
    }
    let mut options = OpenOptions::new();
    let mut file = options.create(true).append(true).mode(mode).open(file)?;
    file.write_all(line(text).as_bytes())
}

/// Replaces the file by one with these inputs.
fn shorten(file: &Path, inputs: &[String]) -> io::Result<()> {
    let directory = file.parent().unwrap_or(file);
    // Only the user may read it from the start.
    let mut kept = tempfile::NamedTempFile::new_in(directory)?;
    let lines: String = inputs.iter().map(|text| line(text)).collect();
    kept.write_all(lines.as_bytes())?;
    kept.persist(file)?;
    Ok(())
}

fn line(text: &str) -> String {
    format!("{}\n", serde_json::Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn inputs_are_kept_for_the_user_alone_and_limited() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("state/inputs");
        assert_eq!(load_from(&file), Vec::<String>::new());
        add_to(&file, "one\ntwo").unwrap();
        add_to(&file, "three").unwrap();
        assert_eq!(load_from(&file), ["one\ntwo", "three"]);
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let most = limits::MAX_INPUT_HISTORY;
        let lines: String = (0..2 * most)
            .map(|number| line(&number.to_string()))
            .collect();
        std::fs::write(&file, format!("no json\n{lines}")).unwrap();
        let inputs = load_from(&file);
        assert_eq!((inputs.len(), inputs[0].as_str()), (most, "1000"));
        assert_eq!(
            std::fs::read_to_string(&file).unwrap().lines().count(),
            most
        );
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
