//! Completions of the input: commands, files of the project, and names of secrets.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use ignore::WalkBuilder;
use tokio::sync::Notify;

use crate::chat::notes::commands::CustomCommand;
use crate::cli::assistant::commands::names;
use karyi_core::limits;
use karyi_screen::choice_list::{Choice, ChoiceList, best};

/// Start of a placeholder.
const PLACEHOLDER: &str = "$KARYI{";
/// Choices that are offered.
const MOST_CHOICES: usize = 50;

/// Choices for the word before the caret.
pub(super) struct Completion {
    pub(super) list: ChoiceList,
    /// Characters before the caret that the choice replaces.
    pub(super) replaced: usize,
}

/// Files of the project, found once.
#[derive(Clone, Default)]
pub(super) struct ProjectFiles {
    found: Arc<OnceLock<Vec<String>>>,
    /// True once somebody looks for them.
    is_wanted: Arc<AtomicBool>,
}

impl ProjectFiles {
    /// Returns true once the files are known.
    pub(super) fn are_known(&self) -> bool {
        self.found.get().is_some()
    }

    /// Returns the files. Starts to look for them at first; `changed` is told when they are there.
    fn get(&self, directory: &Path, changed: &Arc<Notify>) -> &[String] {
        if let Some(files) = self.found.get() {
            return files;
        }
        if !self.is_wanted.swap(true, Ordering::Relaxed) {
            let (files, changed) = (Arc::clone(&self.found), Arc::clone(changed));
            let directory = directory.to_owned();
            tokio::task::spawn_blocking(move || {
                let _ = files.set(files_below(&directory));
                changed.notify_one();
            });
        }
        &[]
    }
}

/// Sources of choices.
pub(super) struct Sources<'a> {
    pub(super) files: &'a ProjectFiles,
    pub(super) directory: &'a Path,
    /// Commands of the project.
    pub(super) custom: &'a [CustomCommand],
    /// Names of secrets.
    pub(super) names: &'a dyn Fn() -> Vec<String>,
    pub(super) changed: &'a Arc<Notify>,
}

/// Returns the choices for a line up to the caret; `is_first` is true on the first line.
pub(super) fn completion(
    before: &str,
    is_first: bool,
    sources: &Sources<'_>,
) -> Option<Completion> {
    if is_first
        && let Some(name) = before.strip_prefix('/')
        && !name.contains(char::is_whitespace)
    {
        return found(commands(name, sources.custom), name.chars().count() + 1);
    }
    if let Some((_, name)) = before.rsplit_once(PLACEHOLDER)
        && !name.contains('}')
    {
        let names = best(name, (sources.names)());
        let choice = |name: String| choice(&format!("{PLACEHOLDER}{name}}}"), "secret");
        let choices = names.into_iter().map(choice).collect();
        let replaced = name.chars().count() + PLACEHOLDER.chars().count();
        return found(choices, replaced);
    }
    let word = before.rsplit(char::is_whitespace).next()?;
    let path = word.strip_prefix('@')?;
    let files = sources.files.get(sources.directory, sources.changed);
    let files = best(path, files).into_iter().take(MOST_CHOICES);
    let choices = files.map(|file| choice(&format!("@{file}"), "")).collect();
    found(choices, word.chars().count())
}

fn found(choices: Vec<Choice>, replaced: usize) -> Option<Completion> {
    let list = ChoiceList::new(choices);
    (!list.is_empty()).then_some(Completion { list, replaced })
}

fn choice(text: &str, detail: &str) -> Choice {
    Choice {
        text: text.to_owned(),
        detail: detail.to_owned(),
    }
}

fn commands(name: &str, custom: &[CustomCommand]) -> Vec<Choice> {
    let rows = names(custom).filter(|(known, _)| known.starts_with(name));
    // A whole name comes before the longer ones that begin with it.
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(known, _)| *known != name);
    rows.iter()
        .map(|(known, summary)| choice(&format!("/{known}"), summary))
        .collect()
}

/// Lists files and directories that git would not ignore, by their paths from a directory.
fn files_below(directory: &Path) -> Vec<String> {
    let walk = WalkBuilder::new(directory).require_git(false).build();
    let files = walk.filter_map(|entry| {
        let entry = entry.ok()?;
        let kind = entry.file_type()?;
        let path = entry.path().strip_prefix(directory).ok()?.to_str()?;
        let end = if kind.is_dir() { "/" } else { "" };
        let is_named = kind.is_file() || kind.is_dir() && !path.is_empty();
        // A path with blanks could not be told from the text after it.
        (is_named && !path.contains(char::is_whitespace)).then(|| format!("{path}{end}"))
    });
    files.take(limits::MAX_COMPLETED_FILES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(before: &str, is_first: bool) -> (Vec<String>, usize) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("src")).unwrap();
        for name in ["src/lib.rs", "README.md", "secret.key", ".gitignore"] {
            std::fs::write(directory.path().join(name), "*.key\n").unwrap();
        }
        let files = ProjectFiles::default();
        files.found.set(files_below(directory.path())).unwrap();
        let sources = Sources {
            files: &files,
            directory: directory.path(),
            custom: &[],
            names: &|| vec!["TOKEN".into(), "OTHER".into()],
            changed: &Arc::default(),
        };
        let Some(mut found) = completion(before, is_first, &sources) else {
            return (Vec::new(), 0);
        };
        let mut texts: Vec<String> = Vec::new();
        while let Some(choice) = found.list.marked().filter(|c| !texts.contains(&c.text)) {
            texts.push(choice.text.clone());
            found.list.next();
        }
        (texts, found.replaced)
    }

    #[test]
    fn words_are_completed_by_their_first_sign() {
        let check = |before: &str, expected: &[&str], replaced: usize| {
            let expected = expected.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(texts(before, true), (expected, replaced), "{before}");
        };
        check("/mo", &["/model", "/mode"], 3);
        check("/mode", &["/mode", "/model"], 5);
        check("/model x", &[], 0);
        check("read @lib", &["@src/lib.rs"], 4);
        check("read @key", &[], 0);
        check("read @src", &["@src/", "@src/lib.rs"], 4);
        check("use $KARYI{TO", &["$KARYI{TOKEN}"], 9);
        check("plain", &[], 0);
        check("", &[], 0);
        assert_eq!(texts("/mo", false), (vec![], 0));
    }
}
