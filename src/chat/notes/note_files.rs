//! Notes for assistants: `AGENTS.md` and its like, from the root of the project down to the working directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::chat::notes::imports::imports;
use crate::chat::notes::project_file::{self, FileText};
use karyi_core::limits;

/// Names of notes in a directory; the first one that exists counts.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];

/// Deepest chain of imports.
const MOST_DEPTH: usize = 5;

/// Places of notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotePlaces {
    /// Root of the project; `None` leaves its notes out.
    pub project: Option<PathBuf>,
    /// Working directory, in the project.
    pub cwd: PathBuf,
    /// Notes of the user for all projects; the first file that exists counts.
    pub user: Vec<PathBuf>,
}

/// Notes that were found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notes {
    /// Their text for the system prompt, the nearest last; empty without notes.
    pub text: String,
    /// Files that are in it, in that order.
    pub files: Vec<LoadedNote>,
    /// Sentences about files that were left out or cut.
    pub problems: Vec<String>,
}

/// File whose text the model gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedNote {
    /// Path.
    pub path: PathBuf,
    /// Bytes of it that the model gets.
    pub bytes: usize,
}

/// File with its text.
struct NoteFile {
    path: PathBuf,
    text: FileText,
    importer: Option<PathBuf>,
}

/// Returns the root of the project of a directory: the nearest one above it with `.git`, else the directory itself.
#[must_use]
pub fn project_root(cwd: &Path) -> PathBuf {
    let mut ancestors = cwd.ancestors();
    let root = ancestors.find(|directory| directory.join(".git").symlink_metadata().is_ok());
    root.unwrap_or(cwd).to_owned()
}

/// Reads the notes of a project. The texts of all of them together have a limit; the nearest ones come first.
#[must_use]
pub fn load(places: &NotePlaces) -> Notes {
    let mut reader = NoteReader::new(limits::MAX_NOTES_BYTES);
    if let Some(path) = places.user.iter().find(|path| path.is_file()) {
        let directory = path.parent().unwrap_or(path);
        reader.add(path, None, directory);
    }
    let Some(root) = &places.project else {
        return reader.finish();
    };
    let project = root.canonicalize().unwrap_or_else(|_| root.clone());
    let mut directories: Vec<&Path> = places
        .cwd
        .ancestors()
        .take_while(|directory| directory.starts_with(root))
        .collect();
    directories.reverse();
    for directory in directories {
        reader.add_directory(directory, &project);
    }
    reader.finish()
}

/// Reader of notes that have so much room.
pub(super) struct NoteReader {
    room: usize,
    files: Vec<NoteFile>,
    seen: BTreeSet<PathBuf>,
    /// True if there are more files than are read.
    is_full: bool,
    problems: Vec<String>,
}

impl NoteReader {
    pub(super) fn new(room: usize) -> Self {
        Self {
            room,
            files: Vec::new(),
            seen: BTreeSet::new(),
            is_full: false,
            problems: Vec::new(),
        }
    }

    /// Adds the notes of a directory, if it has any.
    pub(super) fn add_directory(&mut self, directory: &Path, project: &Path) {
        let names = NAMES.map(|name| directory.join(name));
        if let Some(path) = names.iter().find(|path| path.symlink_metadata().is_ok()) {
            self.add(path, Some(project), project);
        }
    }

    /// Adds a file and what it imports. The file lies in `inside`, its imports in `imports_inside`.
    fn add(&mut self, path: &Path, inside: Option<&Path>, imports_inside: &Path) {
        let imports_inside = imports_inside.canonicalize();
        if let Ok(directory) = imports_inside {
            self.add_file(path, inside, (None, 0), &directory);
        }
    }

    fn add_file(
        &mut self,
        path: &Path,
        inside: Option<&Path>,
        (importer, depth): (Option<&Path>, usize),
        imports_inside: &Path,
    ) {
        if self.files.len() >= limits::MAX_NOTE_FILES {
            self.is_full = true;
            return;
        }
        let text = match project_file::read(path, inside, limits::MAX_NOTES_BYTES as u64) {
            Ok(Some(text)) => text,
            // Not every word after an @ is a file.
            Ok(None) => return,
            Err(problem) => return self.problems.push(problem),
        };
        if !self.seen.insert(text.real.clone()) {
            return;
        }
        let imported: Vec<PathBuf> = imports(&text.text)
            .into_iter()
            .map(|import| text.real.parent().unwrap_or(path).join(import))
            .collect();
        self.files.push(NoteFile {
            path: path.to_owned(),
            text,
            importer: importer.map(Path::to_owned),
        });
        if depth == MOST_DEPTH {
            if imported.iter().any(|import| import.is_file()) {
                let (path, most) = (path.display(), MOST_DEPTH);
                self.problems
                    .push(format!("{path}: imports deeper than {most} are left out"));
            }
            return;
        }
        for import in imported.iter().filter(|import| !import.is_dir()) {
            let from = (Some(path), depth + 1);
            self.add_file(import, Some(imports_inside), from, imports_inside);
        }
    }

    /// Makes the text. When the room is used up, the farthest files are left out.
    pub(super) fn finish(mut self) -> Notes {
        let mut room = self.room;
        if self.is_full {
            let most = limits::MAX_NOTE_FILES;
            let problem = format!("notes after the first {most} files are left out");
            self.problems.push(problem);
        }
        let mut sections = Vec::new();
        let mut files = Vec::new();
        for file in self.files.iter().rev() {
            let path = file.path.display();
            let whole = file.text.text.trim();
            let mut section = format!("Notes from {path}");
            if let Some(importer) = &file.importer {
                section.push_str(&format!(", which {} names", importer.display()));
            }
            let most = limits::MAX_NOTES_BYTES;
            room = room.saturating_sub(section.len());
            if room == 0 {
                self.problems.push(format!(
                    "{path}: it is left out, since all notes together have {most} bytes"
                ));
                continue;
            }
            let text = whole_lines(whole, room);
            room -= text.len();
            let left_out = file.text.left_out + (whole.len() - text.len()) as u64;
            section.push_str(&format!(":\n\n{text}\n"));
            if left_out > 0 {
                section.push_str(&format!("[... {left_out} more bytes: `read` them]\n"));
                self.problems.push(format!(
                    "{path}: {left_out} bytes are left out, since all notes together have {most}"
                ));
            }
            sections.push(section);
            files.push(LoadedNote {
                path: file.path.clone(),
                bytes: text.len(),
            });
        }
        sections.reverse();
        files.reverse();
        Notes {
            text: sections.join("\n"),
            files,
            problems: self.problems,
        }
    }
}

/// Returns as many lines of a text as there is room for.
fn whole_lines(text: &str, room: usize) -> &str {
    if text.len() <= room {
        return text;
    }
    let end = text.floor_char_boundary(room);
    let start = text.get(..end).unwrap_or_default();
    let end = start.rfind('\n').unwrap_or(0);
    start.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    struct Tree(TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let tree = Self(TempDir::new().unwrap());
            for (name, text) in files {
                let path = tree.path(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            tree
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn load(&self, cwd: &str) -> Notes {
            load(&NotePlaces {
                project: Some(self.path("p")),
                cwd: self.path(cwd),
                user: vec![self.path("home/none.md"), self.path("home/user.md")],
            })
        }

        fn names(&self, notes: &Notes) -> Vec<String> {
            let root = self.path("");
            let name = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
            notes.files.iter().map(|file| name(&file.path)).collect()
        }
    }

    #[test]
    fn notes_come_from_the_user_and_from_the_root_down() {
        let tree = Tree::new(&[
            ("home/user.md", "user\n"),
            ("AGENTS.md", "outside\n"),
            ("p/AGENTS.md", "\nroot\n"),
            ("p/CLAUDE.md", "not this one\n"),
            ("p/a/CLAUDE.md", "middle\n"),
            ("p/a/GEMINI.md", "nor this\n"),
            ("p/a/b/GEMINI.md", "near\n"),
            ("p/a/b/c/AGENTS.md", "deeper\n"),
        ]);
        let notes = tree.load("p/a/b");
        let names = [
            "home/user.md",
            "p/AGENTS.md",
            "p/a/CLAUDE.md",
            "p/a/b/GEMINI.md",
        ];
        assert_eq!(tree.names(&notes), names);
        let bodies = ["user", "root", "middle", "near"];
        let sections = names.iter().zip(bodies);
        let expected: Vec<String> = sections
            .map(|(name, body)| format!("Notes from {}:\n\n{body}\n", tree.path(name).display()))
            .collect();
        assert_eq!(notes.text, expected.join("\n"));
        assert_eq!(notes.problems, Vec::<String>::new());
        assert_eq!(Tree::new(&[("p/x", "")]).load("p"), Notes::default());
    }

    #[test]
    fn the_root_of_a_project_has_its_repository() {
        let tree = Tree::new(&[("p/.git", "gitdir: x"), ("p/a/b/x", ""), ("q/x", "")]);
        assert_eq!(project_root(&tree.path("p/a/b")), tree.path("p"));
        assert_eq!(project_root(&tree.path("q")), tree.path("q"));
    }

    #[test]
    fn imports_are_followed_inside_the_project_and_once() {
        let tree = Tree::new(&[
            (
                "p/AGENTS.md",
                "@docs/a.md @nobody @docs @AGENTS.md\n```\n@docs/code.md\n```\n",
            ),
            ("p/docs/a.md", "@b.md and @../../secret @link\n"),
            ("p/docs/b.md", "@a.md"),
            ("p/docs/code.md", "code"),
            ("secret", "secret"),
        ]);
        symlink("../../secret", tree.path("p/docs/link")).unwrap();
        let notes = tree.load("p");
        assert_eq!(
            tree.names(&notes),
            ["p/AGENTS.md", "p/docs/a.md", "p/docs/b.md"]
        );
        assert!(!notes.text.contains("\nsecret"), "{}", notes.text);
        assert_eq!(notes.problems.len(), 2);
        let out = notes.problems.iter();
        assert!(
            out.clone()
                .all(|problem| problem.contains("leads out of the project"))
        );
        let named = format!(", which {} names:", tree.path("p/AGENTS.md").display());
        assert!(notes.text.contains(&named), "{}", notes.text);
    }

    #[test]
    fn a_chain_of_imports_ends() {
        let names: Vec<String> = (0..9).map(|at| format!("p/{at}.md")).collect();
        let texts: Vec<String> = (1..10).map(|at| format!("@{at}.md")).collect();
        let mut files: Vec<(&str, &str)> = vec![("p/AGENTS.md", "@0.md")];
        files.extend(
            names
                .iter()
                .map(String::as_str)
                .zip(texts.iter().map(String::as_str)),
        );
        let tree = Tree::new(&files);
        let notes = tree.load("p");
        assert_eq!(notes.files.len(), 6);
        assert_eq!(notes.problems.len(), 1, "{:?}", notes.problems);
    }

    #[test]
    fn a_link_that_leads_out_and_a_pipe_are_refused() {
        let tree = Tree::new(&[("secret", "secret"), ("p/a/x", "")]);
        symlink(tree.path("secret"), tree.path("p/AGENTS.md")).unwrap();
        nix::unistd::mkfifo(&tree.path("p/a/AGENTS.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let notes = tree.load("p/a");
        assert_eq!((notes.text.as_str(), notes.problems.len()), ("", 2));
        assert!(
            notes.problems[1].ends_with("is no file"),
            "{:?}",
            notes.problems
        );
    }

    #[test]
    fn a_file_without_room_has_no_section() {
        let near = "near\n".repeat(limits::MAX_NOTES_BYTES / 5);
        let tree = Tree::new(&[
            ("p/AGENTS.md", "far\n"),
            ("p/a/AGENTS.md", "middle\n"),
            ("p/a/b/AGENTS.md", &near),
        ]);
        let notes = tree.load("p/a/b");
        assert_eq!(tree.names(&notes), ["p/a/b/AGENTS.md"]);
        assert!(notes.text.len() <= limits::MAX_NOTES_BYTES + 400);
        let left_out = notes.problems.iter();
        let left_out = left_out.filter(|problem| problem.contains("AGENTS.md: it is left out"));
        assert_eq!(left_out.count(), 2, "{:?}", notes.problems);
    }

    #[test]
    fn the_number_of_files_is_limited() {
        let names: Vec<String> = (0..limits::MAX_NOTE_FILES)
            .map(|at| format!("p/{at}.md"))
            .collect();
        let all: String = (0..names.len()).map(|at| format!("@{at}.md\n")).collect();
        let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
        files.push(("p/AGENTS.md", &all));
        let notes = Tree::new(&files).load("p");
        assert_eq!(notes.files.len(), limits::MAX_NOTE_FILES);
        let problem = "notes after the first 100 files are left out";
        assert_eq!(notes.problems, [problem]);
    }

    #[test]
    fn large_notes_are_cut_from_the_far_end_and_told() {
        let line = "日本語 of the far one\n".repeat(4000);
        let near = "near\n".repeat(2000);
        let tree = Tree::new(&[("p/AGENTS.md", &line), ("p/a/AGENTS.md", &near)]);
        let notes = tree.load("p/a");
        assert!(notes.text.len() <= limits::MAX_NOTES_BYTES + 400);
        assert!(notes.text.trim_end().ends_with("near"));
        assert_eq!(notes.text.matches("near").count(), 2000);
        assert!(notes.text.contains(" more bytes: `read` them]"));
        assert_eq!(notes.problems.len(), 1, "{:?}", notes.problems);
        let cut = notes.text.split("\n[...").next().unwrap();
        assert!(cut.ends_with("of the far one"), "{cut}");
    }
}
