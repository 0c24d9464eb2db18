//! Edits several files, or none.
//!
//! Every pair of every file is matched in memory first; what cannot be matched, read or written is
//! found before anything changed. A file named twice, under whatever names, goes on with its
//! evolving text. Encoding, byte order mark, line ends, mode and owner stay as they are. How the
//! texts reach the disk is the concern of `commit`.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::closest::Passage;
use super::commit;
use super::matching::{self, MatchError, MatchErrorKind, Pair, PairResult, Written};
use super::root::Root;
use super::target::{MARK, Target, open_for_reading};
use crate::error::{ErrorCode, ToolError};
use crate::limits;

/// The changes wanted in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// The file, absolute or relative to the directory of the options.
    pub path: PathBuf,
    /// What to replace, in order.
    pub pairs: Vec<EditPair>,
}

/// One replacement.
#[derive(Clone, PartialEq, Eq)]
pub struct EditPair {
    /// Text to find; empty only for a missing or empty file.
    pub find: String,
    /// Text to put in its place.
    pub replace: String,
    /// Whether every match is replaced.
    pub all: bool,
    /// The pair before its escapes were decoded, when that changed the text to find: used when the
    /// decoded text is nowhere in the file and this one is there exactly once.
    pub written: Option<WrittenPair>,
    /// Whether one of the texts holds the value of a secret: then errors show nothing of the file.
    pub has_secret: bool,
}

/// A replacement as it was written, escapes and all.
#[derive(Clone, PartialEq, Eq)]
pub struct WrittenPair {
    /// Text to find.
    pub find: String,
    /// Text to put in its place.
    pub replace: String,
}

impl std::fmt::Debug for EditPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("EditPair");
        if !self.has_secret {
            shown
                .field("find", &self.find)
                .field("replace", &self.replace);
        }
        shown.field("all", &self.all).finish_non_exhaustive()
    }
}

/// Where an edit takes place.
#[derive(Debug, Clone, Copy)]
pub struct EditOptions<'a> {
    /// The directory of relative paths, absolute itself.
    pub cwd: &'a Path,
    /// What may be touched.
    pub root: &'a Root,
}

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdited {
    /// The path as it was given.
    pub path: PathBuf,
    /// Matches replaced.
    pub replacements: usize,
    /// Line of the first replacement, from 1.
    pub first_line: Option<usize>,
    /// Whether the file was made.
    pub created: bool,
    /// Whether its text is another one now.
    pub changed: bool,
    /// Whether all its pairs were in it already.
    pub already_applied: bool,
    /// Whether a pair was used as it was written, without decoding its escapes.
    pub used_written: bool,
}

/// Makes the changes in all files, or in none.
///
/// # Errors
/// The first thing that is in the way, with file, pair and what was found instead. Nothing is
/// changed then; should undoing fail on top of it, the message names the file and its copy.
pub fn apply(edits: &[FileEdit], options: EditOptions<'_>) -> Result<Vec<FileEdited>, ToolError> {
    let plan = plan(edits, options)?;
    commit::commit(&plan.targets)?;
    Ok(plan.results)
}

/// What an edit comes to, before the disk is touched.
pub(super) struct Plan {
    pub(super) targets: Vec<Target>,
    pub(super) results: Vec<FileEdited>,
}

/// What makes two paths the same file.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    File { device: u64, inode: u64 },
    Missing(PathBuf),
}

/// Matches everything in memory.
pub(super) fn plan(edits: &[FileEdit], options: EditOptions<'_>) -> Result<Plan, ToolError> {
    let mut targets: Vec<Target> = Vec::new();
    let mut known: HashMap<Identity, usize> = HashMap::new();
    let mut results = Vec::with_capacity(edits.len());
    let mut already = Vec::new();
    let mut bytes = 0_u64;
    for edit in edits {
        let real = options.root.resolve(options.cwd, &edit.path)?;
        let found = stat(&edit.path, &real)?;
        let next = targets.len();
        let index = *known.entry(identity(found.as_ref(), &real)).or_insert(next);
        if index == next {
            targets.push(load(edit, real, found)?);
        }
        let Some(target) = targets.get_mut(index) else {
            unreachable!("it was pushed above");
        };
        let (pairs, changed) = change(target, edit)?;
        bytes += (target.before.len() + target.after.len()) as u64;
        check_total(&edit.path, bytes)?;
        let created = index == next && target.found.is_none();
        results.push(FileEdited {
            created,
            changed: changed || created,
            ..summary(edit, &pairs)
        });
        already.push(pairs);
    }
    refuse_half_applied(edits, &already)?;
    Ok(Plan { targets, results })
}

fn identity(found: Option<&Metadata>, real: &Path) -> Identity {
    match found {
        Some(found) => Identity::File {
            device: found.dev(),
            inode: found.ino(),
        },
        None => Identity::Missing(real.to_owned()),
    }
}

/// Looks a file up without opening it; a missing one is none.
fn stat(shown: &Path, real: &Path) -> Result<Option<Metadata>, ToolError> {
    match std::fs::symlink_metadata(real) {
        Ok(found) => check_kind(shown, &found).map(|()| Some(found)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ToolError::from_io(shown, &error)),
    }
}

fn check_kind(shown: &Path, found: &Metadata) -> Result<(), ToolError> {
    let shown = shown.display();
    if found.is_dir() {
        return Err(ToolError::new(
            ErrorCode::IsDirectory,
            format!("{shown}: expected a file, found a directory"),
        ));
    }
    if !found.is_file() {
        let message =
            format!("{shown}: expected a file, found a pipe, socket, device or endless link");
        return Err(ToolError::new(ErrorCode::NotAFile, message));
    }
    if found.len() > limits::MAX_EDIT_FILE_BYTES {
        let (size, most) = (found.len(), limits::MAX_EDIT_FILE_BYTES);
        return Err(ToolError::new(
            ErrorCode::FileTooLarge,
            format!("{shown}: {size} bytes, at most {most} can be edited"),
        ));
    }
    Ok(())
}

fn load(edit: &FileEdit, real: PathBuf, found: Option<Metadata>) -> Result<Target, ToolError> {
    let mut target = Target {
        shown: edit.path.clone(),
        real,
        found: None,
        before: String::new(),
        after: String::new(),
        has_mark: false,
    };
    if found.is_none() {
        check_may_create(edit)?;
        return Ok(target);
    }
    let (found, text) = read_text(&edit.path, &target.real)?;
    target.found = Some(found);
    target.before = match text.strip_prefix(MARK) {
        Some(rest) => {
            target.has_mark = true;
            rest.to_owned()
        }
        None => text,
    };
    target.after.clone_from(&target.before);
    Ok(target)
}

fn check_may_create(edit: &FileEdit) -> Result<(), ToolError> {
    if edit.pairs.first().is_some_and(|pair| pair.find.is_empty()) {
        return Ok(());
    }
    let message = format!("{}: there is no such file", edit.path.display());
    let hint = "check the path; to create the file, leave the first <find> empty";
    Err(ToolError::new(ErrorCode::NotFound, message).with_hint(hint))
}

/// Reads a file whole, with what the system said about it before.
fn read_text(shown: &Path, real: &Path) -> Result<(Metadata, String), ToolError> {
    let io = |error| ToolError::from_io(shown, &error);
    let file = open_for_reading(real).map_err(io)?;
    let found = file.metadata().map_err(io)?;
    check_kind(shown, &found)?;
    let mut bytes = Vec::new();
    let most = limits::MAX_EDIT_FILE_BYTES + 1;
    file.take(most).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 == most {
        return Err(ToolError::new(
            ErrorCode::FileTooLarge,
            format!("{}: grew while it was read", shown.display()),
        ));
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| not_utf8(shown, error.utf8_error().valid_up_to()))?;
    match memchr::memchr(0, text.as_bytes()) {
        Some(at) => Err(ToolError::new(
            ErrorCode::BinaryFile,
            format!(
                "{}: expected text, found a NUL byte at offset {at}",
                shown.display()
            ),
        )),
        None => Ok((found, text)),
    }
}

fn not_utf8(shown: &Path, offset: usize) -> ToolError {
    let message = format!(
        "{}: expected UTF-8 text, found another encoding at offset {offset}",
        shown.display()
    );
    ToolError::new(ErrorCode::BinaryFile, message)
}

/// Applies the pairs of one edit; returns what they did and whether the text is another one.
fn change(target: &mut Target, edit: &FileEdit) -> Result<(Vec<PairResult>, bool), ToolError> {
    let pairs = edit.pairs.iter().map(|pair| Pair {
        find: &pair.find,
        replace: &pair.replace,
        all: pair.all,
        written: pair.written.as_ref().map(|written| Written {
            find: &written.find,
            replace: &written.replace,
        }),
    });
    let pairs: Vec<Pair<'_>> = pairs.collect();
    let applied = matching::apply(&target.after, &pairs);
    let (after, results) = applied.map_err(|error| describe(edit, error))?;
    let changed = after != target.after;
    target.after = after;
    Ok((results, changed))
}

fn check_total(shown: &Path, bytes: u64) -> Result<(), ToolError> {
    if bytes <= limits::MAX_EDIT_BYTES {
        return Ok(());
    }
    let message = format!(
        "{}: the files of this edit are too large to be changed together",
        shown.display()
    );
    Err(ToolError::new(ErrorCode::FileTooLarge, message)
        .with_hint("split the edit into several calls"))
}

fn summary(edit: &FileEdit, pairs: &[PairResult]) -> FileEdited {
    let mut result = FileEdited {
        path: edit.path.clone(),
        replacements: 0,
        first_line: None,
        created: false,
        changed: false,
        already_applied: !pairs.is_empty(),
        used_written: false,
    };
    for pair in pairs {
        if let PairResult::Replaced {
            count,
            first_line,
            is_written,
        } = *pair
        {
            result.used_written |= is_written;
            result.replacements += count;
            result.already_applied = false;
            result.first_line = Some(
                result
                    .first_line
                    .map_or(first_line, |line| line.min(first_line)),
            );
        }
    }
    result
}

/// A call whose changes are all in place is fine; one that is half in place was meant for another
/// state of the files.
fn refuse_half_applied(edits: &[FileEdit], results: &[Vec<PairResult>]) -> Result<(), ToolError> {
    let is_replaced = |pair: &PairResult| matches!(pair, PairResult::Replaced { .. });
    if !results.iter().flatten().any(is_replaced) {
        return Ok(());
    }
    for (edit, pairs) in edits.iter().zip(results) {
        for (index, pair) in pairs.iter().enumerate() {
            if let PairResult::AlreadyApplied { line } = pair {
                let place = place(edit, index);
                let message = format!(
                    "{place}: the text to find is gone, and its replacement is on line {line} already"
                );
                return Err(ToolError::new(ErrorCode::AlreadyApplied, message));
            }
        }
    }
    Ok(())
}

/// Names a pair: `src/a.rs, find 2 of 3`.
fn place(edit: &FileEdit, pair: usize) -> String {
    let path = edit.path.display();
    match edit.pairs.len() {
        0 | 1 => path.to_string(),
        pairs => format!("{path}, find {} of {pairs}", pair + 1),
    }
}

const ESCAPES_IN_FILE: &str = "if the escapes stand in the file, wrap the text in <![CDATA[...]]> and \
                               add lines around it until it is unique";
const SAY_WHICH: &str = "wrap the text in <![CDATA[...]]> exactly as it stands in the file, and add \
                         lines around it until it is unique";

fn describe(edit: &FileEdit, error: MatchError) -> ToolError {
    let place = place(edit, error.pair);
    let has_secret = edit
        .pairs
        .get(error.pair)
        .is_some_and(|pair| pair.has_secret);
    let make = |code, what: String| ToolError::new(code, format!("{place}: {what}"));
    match error.kind {
        MatchErrorKind::NotFound { closest } => {
            let error = make(
                ErrorCode::FindNotFound,
                "expected the text to find once, found it nowhere".into(),
            );
            match closest {
                Some(passage) if !has_secret => error.with_hint(closest_hint(&passage)),
                _ => error,
            }
        }
        MatchErrorKind::AmbiguousAsWritten { lines, total } => {
            let what = format!(
                "expected the text to find once, found it nowhere; with its escapes not decoded it is \
                 there {total} times, on {}",
                list(&lines, total)
            );
            make(ErrorCode::FindNotFound, what).with_hint(ESCAPES_IN_FILE)
        }
        MatchErrorKind::TwoReadings { lines, total } => {
            let what = format!(
                "the text to find is there decoded, and also with its escapes as they were written: \
                 {total} places, on {}",
                list(&lines, total)
            );
            make(ErrorCode::FindAmbiguous, what).with_hint(SAY_WHICH)
        }
        MatchErrorKind::Ambiguous { lines, total } => make(
            ErrorCode::FindAmbiguous,
            format!(
                "expected the text to find once, found it {total} times, on {}",
                list(&lines, total)
            ),
        ),
        MatchErrorKind::EmptyFind => {
            let error = make(
                ErrorCode::BadArguments,
                "an empty text to find creates a file, and this one has text already".into(),
            );
            error.with_hint("name the text to replace; to write the file anew, delete it first")
        }
        MatchErrorKind::TooLarge => {
            let most = limits::MAX_EDIT_FILE_BYTES;
            make(
                ErrorCode::FileTooLarge,
                format!("the result would have more than {most} bytes, or too many places change"),
            )
        }
    }
}

fn list(lines: &[usize], total: usize) -> String {
    let mut shown: Vec<String> = lines.iter().map(usize::to_string).collect();
    shown.dedup();
    let more = if total > lines.len() { ", ..." } else { "" };
    let noun = match (shown.len(), more) {
        (1, "") => "line",
        _ => "lines",
    };
    format!("{noun} {}{more}", shown.join(", "))
}

fn closest_hint(passage: &Passage) -> String {
    let lines = match (passage.first_line, passage.last_line) {
        (first, last) if first == last => format!("line {first}"),
        (first, last) => format!("lines {first}-{last}"),
    };
    let mut hint = format!("closest is {lines}:\n{}", passage.text);
    hint.push_str(&passage.differences.join("; "));
    hint
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    struct Place(tempfile::TempDir);

    impl Place {
        fn new(files: &[(&str, &[u8])]) -> Self {
            let place = Self(tempfile::tempdir().unwrap());
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

        fn apply(&self, edits: &[FileEdit]) -> Result<Vec<FileEdited>, ToolError> {
            apply(
                edits,
                EditOptions {
                    cwd: self.0.path(),
                    root: &Root::unconfined(),
                },
            )
        }

        /// Every file with its content; directories end in a slash.
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
        let pair = |(find, replace): &(&str, &str)| EditPair {
            find: (*find).into(),
            replace: (*replace).into(),
            all: false,
            written: None,
            has_secret: false,
        };
        FileEdit {
            path: path.into(),
            pairs: pairs.iter().map(pair).collect(),
        }
    }

    /// Files before, edits, and files after: all of them, so that no temporary one is left.
    fn check(before: &[(&str, &[u8])], edits: &[FileEdit], after: &[(&str, &[u8])]) {
        let place = Place::new(before);
        place.apply(edits).unwrap();
        let after: Vec<_> = after
            .iter()
            .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
            .collect();
        assert_eq!(place.tree(), after);
    }

    /// An error with the start of its message, and files as they were.
    fn check_error(before: &[(&str, &[u8])], edits: &[FileEdit], code: ErrorCode, message: &str) {
        let place = Place::new(before);
        let (tree, error) = (place.tree(), place.apply(edits).unwrap_err());
        assert_eq!(
            (error.code, error.message.as_str()),
            (code, message),
            "{}",
            error.hint
        );
        assert_eq!(place.tree(), tree);
    }

    #[test]
    fn texts_keep_their_form() {
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
    fn errors_say_what_was_found() {
        check_error(
            &[("a", b"1\n1\n")],
            &[edit("a", &[("1", "x")])],
            ErrorCode::FindAmbiguous,
            "a: expected the text to find once, found it 2 times, on lines 1, 2",
        );
        check_error(
            &[("a", b"1")],
            &[edit("a", &[("", "x")])],
            ErrorCode::BadArguments,
            "a: an empty text to find creates a file, and this one has text already",
        );
        check_error(
            &[],
            &[edit("a", &[("1", "x")])],
            ErrorCode::NotFound,
            "a: there is no such file",
        );
        check_error(
            &[],
            &[edit("a", &[])],
            ErrorCode::NotFound,
            "a: there is no such file",
        );
        check_error(
            &[("d/a", b"1")],
            &[edit("d", &[("1", "x")])],
            ErrorCode::IsDirectory,
            "d: expected a file, found a directory",
        );
        check_error(
            &[("a", b"1")],
            &[edit("a/b", &[("", "x")])],
            ErrorCode::NotADirectory,
            "a/b: Not a directory (os error 20)",
        );
        check_error(
            &[("a", b"1\xFF")],
            &[edit("a", &[("1", "x")])],
            ErrorCode::BinaryFile,
            "a: expected UTF-8 text, found another encoding at offset 1",
        );
        check_error(
            &[("a", b"1\0")],
            &[edit("a", &[("1", "x")])],
            ErrorCode::BinaryFile,
            "a: expected text, found a NUL byte at offset 1",
        );
    }

    #[test]
    fn the_closest_passage_is_a_hint_unless_a_secret_is_involved() {
        let place = Place::new(&[("a", b"fn main() {\n\tcall(1);\n}\n")]);
        let mut edits = [edit("a", &[("    call(1);", "x")])];
        let hint = place.apply(&edits).unwrap_err().hint;
        assert_eq!(
            hint,
            "closest is line 2:\n\tcall(1);\nline 2: the file indents with 1 tab, the text to find with 4 spaces"
        );
        edits[0].pairs[0].has_secret = true;
        assert_eq!(
            place.apply(&edits).unwrap_err().hint,
            ErrorCode::FindNotFound.hint()
        );
    }

    #[test]
    fn changes_that_are_there_already() {
        let place = Place::new(&[("a", b"new\n"), ("b", b"old\n")]);
        let done = place.apply(&[edit("a", &[("old", "new")])]).unwrap();
        let expected = FileEdited {
            path: "a".into(),
            replacements: 0,
            first_line: None,
            created: false,
            changed: false,
            already_applied: true,
            used_written: false,
        };
        assert_eq!(done, [expected]);
        let error = place
            .apply(&[edit("b", &[("old", "new")]), edit("a", &[("old", "new")])])
            .unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (
                ErrorCode::AlreadyApplied,
                "a: the text to find is gone, and its replacement is on line 1 already"
            )
        );
        assert_eq!(std::fs::read(place.path("b")).unwrap(), b"old\n");
    }

    #[test]
    fn results_count_what_was_done() {
        let place = Place::new(&[("a", b"x\ny\nx\n")]);
        let mut all = edit("a", &[("x", "z"), ("y", "y")]);
        all.pairs[0].all = true;
        let done = place.apply(&[all, edit("n", &[("", "1")])]).unwrap();
        let a = FileEdited {
            path: "a".into(),
            replacements: 3,
            first_line: Some(1),
            created: false,
            changed: true,
            already_applied: false,
            used_written: false,
        };
        let n = FileEdited {
            path: "n".into(),
            replacements: 1,
            first_line: Some(1),
            created: true,
            changed: true,
            already_applied: false,
            used_written: false,
        };
        assert_eq!(done, [a, n]);
    }

    #[test]
    fn links_stay_links() {
        let place = Place::new(&[("d/real", b"1"), ("hard", b"3")]);
        symlink("d/real", place.path("link")).unwrap();
        symlink("d/missing", place.path("dangling")).unwrap();
        std::fs::hard_link(place.path("hard"), place.path("hard2")).unwrap();
        place
            .apply(&[
                edit("link", &[("1", "2")]),
                edit("d/../d/real", &[("2", "3")]),
                edit("dangling", &[("", "x")]),
                edit("hard", &[("3", "4")]),
                edit("hard2", &[("4", "five")]),
            ])
            .unwrap();
        assert_eq!(
            std::fs::read_link(place.path("link")).unwrap(),
            Path::new("d/real")
        );
        assert_eq!(
            std::fs::read_link(place.path("dangling")).unwrap(),
            Path::new("d/missing")
        );
        for (name, text) in [
            ("d/real", "3"),
            ("d/missing", "x"),
            ("hard", "five"),
            ("hard2", "five"),
        ] {
            assert_eq!(
                std::fs::read_to_string(place.path(name)).unwrap(),
                text,
                "{name}"
            );
        }
    }

    #[test]
    fn modes_are_kept_and_unchanged_files_are_not_written() {
        let place = Place::new(&[("a", b"1"), ("same", b"1")]);
        std::fs::set_permissions(place.path("a"), PermissionsExt::from_mode(0o754)).unwrap();
        let before = std::fs::metadata(place.path("same")).unwrap();
        place
            .apply(&[
                edit("a", &[("1", "2")]),
                edit("same", &[("1", "1")]),
                edit("new", &[("", "x")]),
            ])
            .unwrap();
        assert_eq!(
            std::fs::metadata(place.path("a")).unwrap().mode() & 0o7777,
            0o754
        );
        assert_eq!(
            std::fs::metadata(place.path("same")).unwrap().ino(),
            before.ino()
        );
        std::fs::write(place.path("plain"), "x").unwrap();
        let mode = |name: &str| std::fs::metadata(place.path(name)).unwrap().mode();
        assert_eq!(mode("new"), mode("plain"));
    }

    #[test]
    fn special_files_are_never_opened() {
        let place = Place::new(&[]);
        nix::unistd::mkfifo(&place.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(place.path("socket")).unwrap();
        symlink("loop", place.path("loop")).unwrap();
        for name in ["fifo", "socket", "/dev/null", "loop"] {
            let error = place.apply(&[edit(name, &[("", "x")])]).unwrap_err();
            assert_eq!(error.code, ErrorCode::NotAFile, "{name}: {}", error.message);
        }
    }

    #[test]
    fn a_large_sparse_file_is_refused_at_once() {
        let place = Place::new(&[]);
        std::fs::File::create(place.path("big"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        let error = place.apply(&[edit("big", &[("", "x")])]).unwrap_err();
        assert_eq!(error.code, ErrorCode::FileTooLarge);
    }

    /// Runs as a user without rights, in a thread of its own: the user id of file access is the
    /// thread's.
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
    fn missing_permissions_are_not_worked_around() {
        let place = Place::new(&[
            ("ro/file", b"1"),
            ("rw/ro_file", b"1"),
            ("rw/file", b"1"),
            ("rw/secret", b"1"),
        ]);
        let tree = place.tree();
        open_to_all(place.0.path(), 0o755);
        open_to_all(&place.path("ro"), 0o555);
        open_to_all(&place.path("ro/file"), 0o666);
        open_to_all(&place.path("rw"), 0o777);
        open_to_all(&place.path("rw/ro_file"), 0o444);
        open_to_all(&place.path("rw/file"), 0o666);
        open_to_all(&place.path("rw/secret"), 0o000);
        as_nobody(|| {
            let denied = |edits: &[FileEdit]| {
                assert_eq!(
                    place.apply(edits).unwrap_err().code,
                    ErrorCode::PermissionDenied,
                    "{edits:?}"
                )
            };
            denied(&[edit("ro/file", &[("1", "2")])]);
            denied(&[edit("ro/new", &[("", "2")])]);
            denied(&[
                edit("rw/file", &[("1", "2")]),
                edit("rw/new/x", &[("", "2")]),
                edit("rw/ro_file", &[("1", "2")]),
            ]);
            denied(&[edit("rw/secret", &[("1", "2")])]);
        });
        open_to_all(&place.path("ro"), 0o755);
        open_to_all(&place.path("rw/secret"), 0o600);
        assert_eq!(place.tree(), tree);
    }

    #[test]
    fn the_owner_is_kept() {
        if !nix::unistd::Uid::effective().is_root() {
            println!("skipped: only root can make files of two owners");
            return;
        }
        let place = Place::new(&[("theirs", b"1"), ("sticky/a", b"1"), ("sticky/b", b"1")]);
        let owner = |name: &str, id| {
            std::os::unix::fs::chown(place.path(name), Some(id), Some(id)).unwrap()
        };
        owner("theirs", 1234);
        place.apply(&[edit("theirs", &[("1", "2")])]).unwrap();
        open_to_all(place.0.path(), 0o777);
        open_to_all(&place.path("theirs"), 0o666);
        as_nobody(|| {
            place.apply(&[edit("theirs", &[("2", "three")])]).unwrap();
        });
        let found = std::fs::metadata(place.path("theirs")).unwrap();
        assert_eq!(
            (found.uid(), found.gid(), found.mode() & 0o777),
            (1234, 1234, 0o666)
        );
        assert_eq!(std::fs::read(place.path("theirs")).unwrap(), b"three");
    }

    #[test]
    fn a_root_confines_edits() {
        let place = Place::new(&[("in/a", b"1"), ("out", b"1")]);
        symlink("../out", place.path("in/link")).unwrap();
        let root = Root::confined(&place.path("in")).unwrap();
        for path in ["../out", "link", "/etc/passwd"] {
            let edits = [edit("a", &[("1", "2")]), edit(path, &[("1", "2")])];
            let error = apply(
                &edits,
                EditOptions {
                    cwd: &place.path("in"),
                    root: &root,
                },
            )
            .unwrap_err();
            assert_eq!(error.code, ErrorCode::OutsideRoot, "{path}");
        }
        assert_eq!(std::fs::read(place.path("in/a")).unwrap(), b"1");
    }
}
