//! Edits of real files.

use super::*;
use std::os::unix::fs::PermissionsExt;

use super::super::journal::{Entry, Journal};
use super::super::transaction::Recorder;
use std::sync::Arc;

mod hints;
mod moves;
mod preserved;
mod refusals;

/// Directory of the files, recorder, and the directory of the journal, which must live as long.
struct Fixture(
    tempfile::TempDir,
    Recorder,
    #[allow(dead_code)] tempfile::TempDir,
);

impl Fixture {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let recorder = Recorder {
            journal: Some(Arc::new(Journal::open(state.path(), None).unwrap())),
            ..Recorder::default()
        };
        let place = Self(tempfile::tempdir().unwrap(), recorder, state);
        for (name, bytes) in files {
            let path = place.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn apply(&self, edits: &[FileEdit]) -> Result<Vec<FileOutcome>, ToolError> {
        Ok(self.done(edits, &Root::unconfined())?.files)
    }

    fn done(&self, edits: &[FileEdit], root: &Root) -> Result<EditOutcome, ToolError> {
        let options = EditOptions {
            cwd: self.0.path(),
            root,
            recorder: &self.1,
            is_private: &|_| false,
            masking: Masking::Part(&|text| text.to_owned()),
            diffs: Diffs::Full,
        };
        let done = apply(edits, options);
        // No write-ahead record may outlive an edit.
        if let Some(journal) = &self.1.journal {
            let left = std::fs::read_dir(journal.transactions()).map_or(0, Iterator::count);
            assert_eq!(left, 0);
        }
        done
    }

    /// Models a user who cannot write the journal either.
    fn unrecorded(mut self) -> Self {
        self.1 = Recorder::default();
        self
    }

    /// Returns every file with its content; directories end with a slash.
    fn tree(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        let mut left = vec![self.0.path().to_owned()];
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let name = path
                    .strip_prefix(self.0.path())
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                if path.is_dir() {
                    found.push((format!("{name}/"), Vec::new()));
                    left.push(path);
                } else if path.is_file() {
                    found.push((name, std::fs::read(path).unwrap()));
                }
            }
        }
        found.sort();
        found
    }
}

fn edit(path: &str, pairs: &[(&str, &str)]) -> FileEdit {
    let pair = |(find, replace): &(&str, &str)| EditPair::new(*find, *replace);
    FileEdit {
        path: path.into(),
        pairs: pairs.iter().map(pair).collect(),
        ..FileEdit::default()
    }
}

/// Compares the whole tree before and after, so that no temporary file is missed.
fn check(before: &[(&str, &[u8])], edits: &[FileEdit], after: &[(&str, &[u8])]) {
    let place = Fixture::new(before);
    place.apply(edits).unwrap();
    let after: Vec<_> = after
        .iter()
        .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
        .collect();
    assert_eq!(place.tree(), after);
}

/// Expects an error with this start of its message and an unchanged tree.
fn check_error(before: &[(&str, &[u8])], edits: &[FileEdit], code: ErrorCode, message: &str) {
    let place = Fixture::new(before);
    let (tree, error) = (place.tree(), place.apply(edits).unwrap_err());
    assert_eq!(
        (error.code, error.message.as_str()),
        (code, message),
        "{}",
        error.hint
    );
    assert_eq!(place.tree(), tree);
}

fn deleted(path: &str) -> FileEdit {
    let mut edit = edit(path, &[]);
    edit.delete = true;
    edit
}

fn renamed(path: &str, to: &str, pairs: &[(&str, &str)]) -> FileEdit {
    let mut edit = edit(path, pairs);
    edit.to = Some(to.into());
    edit
}

/// Runs as an unprivileged user, in a thread of its own: the file system user id belongs to the thread.
fn as_nobody(act: impl FnOnce() + Send) {
    if !nix::unistd::Uid::effective().is_root() {
        return act();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            nix::unistd::setfsgid(nix::unistd::Gid::from_raw(65534));
            nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65534));
            act();
        });
    });
}

fn open_to_all(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn encoding_and_line_endings_are_preserved() {
    check(
        &[("a", b"one\ntwo\n")],
        &[edit("a", &[("two", "2")])],
        &[("a", b"one\n2\n")],
    );
    check(
        &[("a", b"one")],
        &[edit("a", &[("one", "1\n2")])],
        &[("a", b"1\n2")],
    );
    check(
        &[("a", b"\xEF\xBB\xBFone\r\ntwo\r\n")],
        &[edit("a", &[("one\n", "1\n")])],
        &[("a", b"\xEF\xBB\xBF1\r\ntwo\r\n")],
    );
    check(
        &[("a", b"\xEF\xBB\xBF")],
        &[edit("a", &[("", "x")])],
        &[("a", b"\xEF\xBB\xBFx")],
    );
}

#[test]
fn files_are_created_with_their_directories() {
    check(
        &[],
        &[edit("x/y/new", &[("", "text\n"), ("text", "more")])],
        &[("x/", b""), ("x/y/", b""), ("x/y/new", b"more\n")],
    );
    check(
        &[("empty", b"")],
        &[edit("empty", &[("", "x")])],
        &[("empty", b"x")],
    );
    check(&[], &[edit("new", &[("", "")])], &[("new", b"")]);
    check(
        &[],
        &[edit("x/a", &[("", "1")]), edit("x/../x/a", &[("1", "2")])],
        &[("x/", b""), ("x/a", b"2")],
    );
}

#[test]
fn several_files_change_together() {
    check(
        &[("a", b"1"), ("d/b", b"2")],
        &[
            edit("a", &[("1", "x")]),
            edit("d/b", &[("2", "y")]),
            edit("c", &[("", "z")]),
        ],
        &[("a", b"x"), ("c", b"z"), ("d/", b""), ("d/b", b"y")],
    );
    check_error(
        &[("a", b"1"), ("b", b"2")],
        &[edit("a", &[("1", "x")]), edit("b", &[("3", "y")])],
        ErrorCode::FindNotFound,
        "b: expected the text to find once, found it nowhere",
    );
    check_error(
        &[("a", b"1")],
        &[
            edit("x/new", &[("", "x")]),
            edit("a", &[("1", "2"), ("1", "x")]),
        ],
        ErrorCode::FindNotFound,
        "a, find 2 of 2: expected the text to find once, found it nowhere",
    );
}

#[test]
fn results_count_what_was_done() {
    let place = Fixture::new(&[("a", b"x\ny\nx\n")]);
    let mut all = edit("a", &[("x", "z"), ("y", "y")]);
    all.pairs[0].all = true;
    let done = place.apply(&[all, edit("n", &[("", "1")])]).unwrap();
    let shown = |text: &str, added, removed| Diff {
        text: text.into(),
        added,
        removed,
        omitted: 0,
    };
    let a = FileOutcome {
        path: "a".into(),
        kind: EditKind::Edited,
        replacements: 3,
        first_line: Some(1),
        lines: Some((1, 3)),
        diff: shown("@@ -1,3 +1,3 @@\n-x\n+z\n y\n-x\n+z\n", 2, 2),
        ..FileOutcome::default()
    };
    let n = FileOutcome {
        path: "n".into(),
        kind: EditKind::Created,
        replacements: 1,
        first_line: Some(1),
        lines: Some((1, 1)),
        diff: shown(
            "@@ -0,0 +1 @@\n+1\n\\ no line break at the end of the file\n",
            1,
            0,
        ),
        ..FileOutcome::default()
    };
    assert_eq!(done, [a, n]);
}

#[test]
fn a_failed_edit_reports_recovered_files() {
    let place = Fixture::new(&[("a", b"1"), ("b", b"1"), ("c", b"1")]);
    let journal = place.1.journal.clone().unwrap();
    let path = |name: &str| place.path(name).canonicalize().unwrap();
    let change = |name: &str| {
        let change = Change::read(&path(name), &path(name)).unwrap();
        change.with_content(b"2".to_vec())
    };
    let changes = [change("a"), change("b")];
    let planned = super::super::commit::plan(&changes, "t");
    let transactions = journal.transactions();
    let record = super::super::wal::WalRecord::new(&transactions, "t", &planned);
    let mut record = record.unwrap();
    let mut staged = super::super::commit::stage(&changes, &planned).unwrap();
    staged.check().unwrap();
    let entry = Entry {
        id: "t".into(),
        time_ms: 1,
        tool: "edit".into(),
        ..Entry::default()
    };
    let steps = staged.step_hashes(&entry);
    let decision = super::super::wal::Decision { steps, entry };
    record.decide(&decision).unwrap();
    std::mem::forget(staged);
    drop(record);
    std::fs::write(place.path("b"), "theirs").unwrap();
    let error = place
        .apply(&[edit("c", &[("no such text", "x")])])
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::FindNotFound);
    let (a, b) = (path("a"), path("b"));
    let expected = format!(
        "; before that, files that a killed karyi had left half changed were recovered: {} left_alone \
         (another program changed it since), {} completed",
        b.display(),
        a.display()
    );
    assert!(error.message.ends_with(&expected), "{}", error.message);
}
