//! Files of a project for the assistant: notes and skills for the system text, and custom commands.

use std::path::{Path, PathBuf};

use crate::chat::notes::commands::{self, CustomCommand};
use crate::chat::notes::note_files::{self, NotePlaces};
use crate::chat::notes::skills;

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
    /// Sentences for the user: which files are in it, and what was left out.
    pub(super) remarks: Vec<String>,
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
        let mut remarks = Vec::new();
        if !notes.files.is_empty() {
            let files = notes.files.iter().map(|path| short(path, &project));
            remarks.push(format!("notes: {}", files.collect::<Vec<_>>().join(", ")));
        }
        let problems = [notes.problems, skills.problems, commands.problems];
        remarks.extend(problems.into_iter().flatten());
        let texts = [notes.text, skills::text(&skills.skills)];
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        Self {
            text: texts.join("\n"),
            remarks,
            commands: commands.commands,
        }
    }
}

fn short(path: &Path, project: &Path) -> String {
    let path: PathBuf = path.strip_prefix(project).unwrap_or(path).to_owned();
    path.display().to_string()
}
