//! Files of a project for the assistant: notes and skills for the system text, and custom commands.

use std::path::{Path, PathBuf};

use crate::chat::notes::commands::{self, CustomCommand, CustomCommands};
use crate::chat::notes::deeper_notes::DeeperNotes;
use crate::chat::notes::note_files::{self, LoadedNote, NotePlaces};
use crate::chat::notes::skills::{self, Skills};
use karyi_core::limits;

/// Notes of the user for all projects, below the home directory; the first one that exists counts.
const USER_NOTES: [&str; 3] = [
    ".config/karyi/AGENTS.md",
    ".claude/CLAUDE.md",
    ".codex/AGENTS.md",
];

/// Notes, skills and custom commands of a project.
#[derive(Debug, Default)]
pub(super) struct Project {
    /// Notes and skills for the system text; empty without any.
    pub(super) text: String,
    /// Notes in it, by their paths from the project.
    notes: Vec<LoadedNote>,
    /// Notes of its other directories.
    pub(super) deeper: Option<DeeperNotes>,
    /// Sentences about files that were left out or cut.
    problems: Vec<String>,
    /// Commands of the project.
    pub(super) commands: Vec<CustomCommand>,
}

impl Project {
    /// Reads the files of the project of a directory; before the user trusts it, only the user's own notes.
    pub(super) fn load(cwd: &Path, home: Option<&Path>, is_trusted: bool) -> Self {
        let project = note_files::project_root(cwd);
        let user = |home: &Path| USER_NOTES.map(|name| home.join(name)).to_vec();
        let notes = note_files::load(&NotePlaces {
            project: is_trusted.then(|| project.clone()),
            cwd: cwd.to_owned(),
            user: home.map(user).unwrap_or_default(),
        });
        let (skills, commands, left_out) = match is_trusted {
            true => (skills::find(&project), commands::find(&project), None),
            false => (Skills::default(), CustomCommands::default(), left_out(cwd)),
        };
        let problems = [notes.problems, skills.problems, commands.problems].into_iter();
        let short = |note: LoadedNote| LoadedNote {
            path: short(&note.path, &project),
            ..note
        };
        let texts = [notes.text, skills::text(&skills.skills)];
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        let deeper = is_trusted.then(|| DeeperNotes::new(&project, cwd, &notes.files));
        Self {
            text: texts.join("\n"),
            deeper,
            notes: notes.files.into_iter().map(short).collect(),
            problems: left_out.into_iter().chain(problems.flatten()).collect(),
            commands: commands.commands,
        }
    }

    /// Returns sentences for the user: which notes the model gets, and what was left out.
    pub(super) fn remarks(&self) -> Vec<String> {
        let paths = self
            .notes
            .iter()
            .map(|note| note.path.display().to_string());
        let paths: Vec<String> = paths.collect();
        let notes = (!paths.is_empty()).then(|| format!("notes: {}", paths.join(", ")));
        notes.into_iter().chain(self.problems.clone()).collect()
    }

    /// Returns the notes that the model gets with their sizes, those of other directories last, and what was left out.
    pub(super) fn report(&self, deeper: &[LoadedNote]) -> String {
        let notes = [self.notes.as_slice(), deeper].concat();
        let mut lines = vec![match notes.as_slice() {
            [] => "the model gets no notes; /init lets it write AGENTS.md".to_owned(),
            notes => {
                let sum: usize = notes.iter().map(|note| note.bytes).sum();
                format!("{sum} of {} bytes of notes:", limits::MAX_NOTES_BYTES)
            }
        }];
        let line = |note: &LoadedNote| format!("{:>7}  {}", note.bytes, note.path.display());
        lines.extend(notes.iter().map(line));
        lines.extend(self.problems.clone());
        lines.join("\n")
    }
}

/// Returns the files of the project of a directory that count when the user trusts it.
pub(super) fn files(cwd: &Path) -> Vec<String> {
    let project = note_files::project_root(cwd);
    let notes = note_files::load(&NotePlaces {
        project: Some(project.clone()),
        cwd: cwd.to_owned(),
        user: Vec::new(),
    });
    let notes = notes.files.into_iter().map(|note| note.path);
    let skills = skills::find(&project).skills.into_iter();
    let commands = commands::find(&project).commands.into_iter();
    let files = notes.chain(skills.map(|skill| skill.path));
    let files = files.chain(commands.map(|command| command.path));
    let shown = |path: PathBuf| short(&path, &project).display().to_string();
    files.map(shown).collect()
}

/// Returns a sentence about files that do not count because the user does not trust the project, if there are any.
fn left_out(cwd: &Path) -> Option<String> {
    let files = files(cwd).join(", ");
    let why = "since you do not trust the project (`karyi policy trust`)";
    (!files.is_empty()).then(|| format!("left out, {why}: {files}"))
}

fn short(path: &Path, project: &Path) -> PathBuf {
    path.strip_prefix(project).unwrap_or(path).to_owned()
}
