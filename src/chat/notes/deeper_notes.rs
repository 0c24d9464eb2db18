//! Notes of directories below the one in which a conversation began: the model gets them when a call first comes there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::chat::notes::note_files::{LoadedNote, NoteReader, Notes};
use karyi_core::limits;

/// Notes of the directories of a project that a conversation has not come to yet.
#[derive(Debug, Clone)]
pub struct DeeperNotes {
    project: PathBuf,
    /// Directory in which the conversation began: the notes down to it are in the system text.
    cwd: PathBuf,
    /// Bytes that the notes in the system text have left for others.
    room: usize,
    /// Bytes of the texts that were told.
    used: usize,
    /// Directories whose notes were told.
    told: BTreeSet<PathBuf>,
    files: Vec<LoadedNote>,
}

impl DeeperNotes {
    /// Creates the notes of a project for a conversation that begins in a directory and has got these notes.
    #[must_use]
    pub fn new(project: &Path, cwd: &Path, first: &[LoadedNote]) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let used: usize = first.iter().map(|note| note.bytes).sum();
        Self {
            project: real(project),
            cwd: real(cwd),
            room: limits::MAX_NOTES_BYTES.saturating_sub(used),
            used: 0,
            told: BTreeSet::new(),
            files: Vec::new(),
        }
    }

    /// Returns the files that were told, by their paths from the project.
    #[must_use]
    pub fn files(&self) -> &[LoadedNote] {
        &self.files
    }

    /// Forgets what was told: the conversation does not have it any more.
    pub fn forget(&mut self) {
        self.used = 0;
        self.told.clear();
        self.files.clear();
    }

    /// Returns the notes of the directories of these files and directories, and of those above them in the project, as far
    /// as they were not told before.
    pub fn of(&mut self, touched: &[PathBuf]) -> Notes {
        let mut directories = BTreeSet::new();
        for path in touched {
            let directory = if path.is_dir() {
                Some(path.as_path())
            } else {
                path.parent()
            };
            let real = directory.and_then(|directory| directory.canonicalize().ok());
            let real = real.filter(|real| real.starts_with(&self.project));
            let above = real.iter().flat_map(|real| real.ancestors());
            let inside = above.take_while(|directory| directory.starts_with(&self.project));
            let new = inside.filter(|directory| !self.cwd.starts_with(directory));
            directories.extend(new.map(Path::to_owned));
        }
        directories.retain(|directory| !self.told.contains(directory));
        if directories.is_empty() {
            return Notes::default();
        }
        let mut reader = NoteReader::new(self.room.saturating_sub(self.used));
        for directory in &directories {
            reader.add_directory(directory, &self.project);
        }
        self.told.extend(directories);
        let mut notes = reader.finish();
        self.used += notes.text.len();
        for note in &mut notes.files {
            if let Ok(short) = note.path.strip_prefix(&self.project) {
                note.path = short.to_owned();
            }
        }
        self.files.extend(notes.files.iter().cloned());
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn each_directory_tells_its_notes_once() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().canonicalize().unwrap().join("p");
        for (name, text) in [
            ("AGENTS.md", "root"),
            ("a/AGENTS.md", "first"),
            ("a/b/CLAUDE.md", "second"),
            ("c/AGENTS.md", "third"),
            ("a/b/d/x", ""),
            ("../out/AGENTS.md", "outside"),
        ] {
            let path = project.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        // The first two files fit whole; the heading of the third and two bytes do.
        let mut probe = DeeperNotes::new(&project, &project, &[]);
        let told = probe.of(&[project.join("a/b")]).text.len();
        let heading = format!("Notes from {}", project.join("c/AGENTS.md").display());
        let first = [LoadedNote {
            path: project.join("AGENTS.md"),
            bytes: limits::MAX_NOTES_BYTES - told - heading.len() - 2,
        }];
        let mut notes = DeeperNotes::new(&project, &project, &first);
        let mut check = |touched: &[&str], expected: &[&str], problems: usize| {
            let touched: Vec<PathBuf> = touched.iter().map(|name| project.join(name)).collect();
            let found = notes.of(&touched);
            let lines = found.text.lines();
            let bodies = lines.filter(|line| !line.is_empty() && !line.starts_with("Notes"));
            let bodies: Vec<&str> = bodies.collect();
            assert_eq!(
                (bodies.as_slice(), found.problems.len()),
                (expected, problems)
            );
        };
        check(&["x", "AGENTS.md", "../out", "none/x", "."], &[], 0);
        check(&["a/b/d/x", "a/b"], &["first", "second"], 0);
        check(&["a/y", "a/b/c"], &[], 0);
        // Two bytes are left.
        check(&["c"], &["[... 5 more bytes: `read` them]"], 1);
        assert_eq!(notes.files().len(), 3);
        notes.forget();
        assert_eq!(notes.of(&[project.join("a")]).files.len(), 1);
    }
}
