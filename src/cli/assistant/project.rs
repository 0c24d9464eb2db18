//! Files of a project for the assistant: notes and skills for the system text, and custom commands.

use std::path::{Path, PathBuf};

use crate::chat::notes::commands::{self, CustomCommand};
use crate::chat::notes::note_files::{self, LoadedNote, NotePlaces};
use crate::chat::notes::skills;
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
    /// Sentences about files that were left out or cut.
    problems: Vec<String>,
    /// Commands of the project.
    pub(super) commands: Vec<CustomCommand>,
}

impl Project {
    /// Reads the files of the project of a directory.
    pub(super) fn load(cwd: &Path, home: Option<&Path>) -> Self {
        let project = note_files::project_root(cwd);
        let user = |home: &Path| USER_NOTES.map(|name| home.join(name)).to_vec();
        let notes = note_files::load(&NotePlaces {
            project: project.clone(),
            cwd: cwd.to_owned(),
            user: home.map(user).unwrap_or_default(),
        });
        let skills = skills::find(&project);
        let commands = commands::find(&project);
        let problems = [notes.problems, skills.problems, commands.problems];
        let short = |note: LoadedNote| LoadedNote {
            path: short(&note.path, &project),
            ..note
        };
        let texts = [notes.text, skills::text(&skills.skills)];
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        Self {
            text: texts.join("\n"),
            notes: notes.files.into_iter().map(short).collect(),
            problems: problems.into_iter().flatten().collect(),
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

    /// Returns the notes that the model gets with their sizes, and what was left out.
    pub(super) fn report(&self) -> String {
        let mut lines = vec![match self.notes.as_slice() {
            [] => "the model gets no notes; /init lets it write AGENTS.md".to_owned(),
            notes => {
                let sum: usize = notes.iter().map(|note| note.bytes).sum();
                format!("{sum} of {} bytes of notes:", limits::MAX_NOTES_BYTES)
            }
        }];
        let line = |note: &LoadedNote| format!("{:>7}  {}", note.bytes, note.path.display());
        lines.extend(self.notes.iter().map(line));
        lines.extend(self.problems.clone());
        lines.join("\n")
    }
}

fn short(path: &Path, project: &Path) -> PathBuf {
    path.strip_prefix(project).unwrap_or(path).to_owned()
}
