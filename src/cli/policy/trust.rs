//! The question whether the user trusts a project: its files tell the model what to do, and may allow calls.

use std::path::Path;

use crate::cli::policy::project::{PROJECT_SETTINGS, ProjectPolicy};
use crate::cli::prompt::Asker;
use crate::cli::say;
use crate::render::paint::safe_question;
use karyi_core::limits;

/// Returns true when the user trusts the project of a directory. Asks them the first time that one of its files counts
/// only then: `files` are those of the model. Blocks.
///
/// # Errors
/// A file with rules cannot be read, or has a mistake.
pub(in crate::cli) fn is_trusted(
    cwd: &Path,
    files: Vec<String>,
    asker: Option<&Asker>,
) -> anyhow::Result<bool> {
    let policy = ProjectPolicy::of(cwd)?;
    if let Some(is_trusted) = policy.trust {
        return Ok(is_trusted);
    }
    let settings = policy.ignored.as_ref().map(|_| PROJECT_SETTINGS.to_owned());
    let files: Vec<String> = settings.into_iter().chain(files).collect();
    if files.is_empty() {
        return Ok(false);
    }
    let directory = safe_question(&policy.project.display().to_string());
    let question = format!("Do you trust the files in {directory}?");
    let answer = asker.and_then(|asker| asker.agrees(&text(&directory, &files), &question));
    let Some(answer) = answer else {
        return Ok(false);
    };
    if let Err(error) = policy.store.set_trusted(answer) {
        say(&format!(
            "the answer holds for this session only: {error:#}"
        ));
    }
    Ok(answer)
}

/// Returns what trusting changes.
fn text(directory: &str, files: &[String]) -> String {
    let most = limits::MAX_SHOWN_LINES;
    let shown = files.iter().take(most);
    let shown: String = shown
        .map(|file| format!("  | {}\n", safe_question(file)))
        .collect();
    let rest = match files.len().saturating_sub(most) {
        0 => String::new(),
        rest => format!("  | ... and {rest} more\n"),
    };
    format!(
        "karyi: {directory} has files that guide the assistant:\n{shown}{rest}  \
         yes: the model gets its notes and skills, you get its commands, and its settings may allow calls\n  \
         no: these files are left out, and its settings can only narrow what runs\n"
    )
}
