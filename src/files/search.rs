//! Searches the text files below a path.
//!
//! Files come in the order of their paths, so that the same search gives the same result. All
//! matches are counted; the first ones are shown. What `.gitignore` names is left out, and so are
//! binary files and links.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use globset::{GlobBuilder, GlobMatcher};
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};

use super::kind::Special;
use super::listing::{Scope, walk_builder};
use crate::error::{ErrorCode, ToolError};
use crate::limits;

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// Character by character.
    Literal,
    /// As a regular expression.
    Regex,
}

/// What to search for.
#[derive(Debug, Clone)]
pub struct SearchOptions<'a> {
    /// The pattern; it matches within a line.
    pub pattern: &'a str,
    /// How the pattern is read.
    pub syntax: Syntax,
    /// Only files whose name, or path when the glob holds a slash, matches.
    pub glob: Option<&'a str>,
    /// Lines shown before and after each match.
    pub context: usize,
    /// Matches shown.
    pub max: usize,
    /// Which files are searched.
    pub scope: Scope,
    /// Set to end the search early.
    pub cancelled: Option<&'a AtomicBool>,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchFound {
    /// The first matching lines, by path and line.
    pub matches: Vec<Match>,
    /// All matching lines, shown or not.
    pub total_matches: u64,
    /// Files with a matching line.
    pub files_matched: u64,
    /// Text files looked at.
    pub files_searched: u64,
    /// Binary files left out.
    pub files_binary: u64,
    /// Files and directories that could not be read.
    pub files_unreadable: u64,
}

impl SearchFound {
    /// Returns how many matching lines are not shown.
    #[must_use]
    pub fn omitted_matches(&self) -> u64 {
        self.total_matches.saturating_sub(self.matches.len() as u64)
    }
}

/// One matching line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The file, as the searched path was given.
    pub path: PathBuf,
    /// Number of the line, from 1.
    pub line: u64,
    /// The line without its end; a long one is cut.
    pub text: String,
    /// Lines before it that are not shown with the match before.
    pub before: Vec<String>,
    /// Lines after it.
    pub after: Vec<String>,
}

/// Searches the file or directory `real`, which results call `shown`.
///
/// # Errors
/// `bad_pattern` for a broken pattern or glob; the path names nothing or a special file;
/// `cancelled`.
pub fn search(
    shown: &Path,
    real: &Path,
    options: &SearchOptions<'_>,
) -> Result<SearchFound, ToolError> {
    let matcher = matcher(options)?;
    let glob = options.glob.map(glob).transpose()?;
    let found = std::fs::metadata(real).map_err(|error| ToolError::from_io(shown, &error))?;
    if let Some(special) = Special::of(found.file_type()) {
        let message = format!(
            "{}: expected a file or directory, found a {}",
            shown.display(),
            special.as_str()
        );
        return Err(ToolError::new(ErrorCode::NotAFile, message));
    }
    let mut search = Search {
        matcher,
        searcher: searcher(options.context.min(limits::MAX_SEARCH_CONTEXT)),
        max: options.max.min(limits::MAX_SEARCH_MATCHES),
        shown_bytes: 0,
        found: SearchFound::default(),
    };
    if found.is_file() {
        search.file(real, shown.to_owned());
        return Ok(search.found);
    }
    let walk = walk_builder(real, options.scope)
        .sort_by_file_path(Path::cmp)
        .build();
    for entry in walk {
        if options
            .cancelled
            .is_some_and(|flag| flag.load(Ordering::Relaxed))
        {
            return Err(ToolError::new(
                ErrorCode::Cancelled,
                "the search was interrupted",
            ));
        }
        let Ok(entry) = entry else {
            search.found.files_unreadable += 1;
            continue;
        };
        let below = entry.path().strip_prefix(real).unwrap_or(entry.path());
        let is_wanted = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_wanted && glob.as_ref().is_none_or(|glob| glob.is_match(below)) {
            search.file(entry.path(), join(shown, below));
        }
    }
    Ok(search.found)
}

/// Joins without a leading `./`.
fn join(shown: &Path, below: &Path) -> PathBuf {
    if shown == Path::new(".") {
        below.to_owned()
    } else {
        shown.join(below)
    }
}

fn matcher(options: &SearchOptions<'_>) -> Result<RegexMatcher, ToolError> {
    let bad = |what: String| ToolError::new(ErrorCode::BadPattern, what);
    if options.pattern.is_empty() {
        return Err(bad("the pattern is empty".into()));
    }
    if options.pattern.contains('\n') {
        let error = bad("the pattern holds a line break, and matches lie within one line".into());
        return Err(error.with_hint("search for one of its lines"));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .fixed_strings(options.syntax == Syntax::Literal)
        .multi_line(true)
        .crlf(true);
    // A pattern that needs more would take seconds to build.
    builder.size_limit(10 << 20).dfa_size_limit(10 << 20);
    builder
        .build(options.pattern)
        .map_err(|error| bad(format!("the pattern is broken: {error}")))
}

enum Glob {
    Name(GlobMatcher),
    Path(GlobMatcher),
}

impl Glob {
    fn is_match(&self, below: &Path) -> bool {
        match self {
            Self::Name(glob) => {
                glob.is_match(Path::new(below.file_name().unwrap_or(OsStr::new(""))))
            }
            Self::Path(glob) => glob.is_match(below),
        }
    }
}

fn glob(text: &str) -> Result<Glob, ToolError> {
    let text = text.strip_prefix("./").unwrap_or(text);
    let built = GlobBuilder::new(text).literal_separator(true).build();
    let glob = built.map_err(|error| {
        ToolError::new(
            ErrorCode::BadPattern,
            format!("the glob is broken: {error}"),
        )
    })?;
    let matcher = glob.compile_matcher();
    Ok(if text.contains('/') {
        Glob::Path(matcher)
    } else {
        Glob::Name(matcher)
    })
}

fn searcher(context: usize) -> Searcher {
    let mut builder = SearcherBuilder::new();
    builder
        .line_number(true)
        .line_terminator(LineTerminator::crlf())
        .before_context(context)
        .after_context(context);
    builder
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(limits::SEARCH_LINE_BUFFER_BYTES));
    builder.build()
}

struct Search {
    matcher: RegexMatcher,
    searcher: Searcher,
    max: usize,
    shown_bytes: usize,
    found: SearchFound,
}

impl Search {
    fn file(&mut self, real: &Path, shown: PathBuf) {
        let mut sink = Lines {
            path: shown,
            free_matches: self.max.saturating_sub(self.found.matches.len()),
            free_bytes: limits::MAX_SEARCH_TEXT_BYTES.saturating_sub(self.shown_bytes),
            matches: Vec::new(),
            before: Vec::new(),
            total: 0,
            is_binary: false,
        };
        let free = sink.free_bytes;
        let result = super::target::open_for_reading(real)
            .and_then(|file| self.searcher.search_file(&self.matcher, &file, &mut sink));
        match result {
            Err(_) => self.found.files_unreadable += 1,
            Ok(()) if sink.is_binary => self.found.files_binary += 1,
            Ok(()) => {
                self.found.files_searched += 1;
                self.found.files_matched += u64::from(sink.total > 0);
                self.found.total_matches += sink.total;
                self.shown_bytes += free - sink.free_bytes;
                self.found.matches.append(&mut sink.matches);
            }
        }
    }
}

/// Collects the lines of one file.
struct Lines {
    path: PathBuf,
    free_matches: usize,
    free_bytes: usize,
    matches: Vec<Match>,
    /// Context lines that wait for the match they stand before.
    before: Vec<String>,
    total: u64,
    is_binary: bool,
}

impl Lines {
    fn has_room(&self) -> bool {
        self.matches.len() < self.free_matches && self.free_bytes > 0
    }

    fn take(&mut self, bytes: &[u8]) -> String {
        let line = show(bytes);
        self.free_bytes = self.free_bytes.saturating_sub(line.len());
        line
    }
}

impl Sink for Lines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.total += 1;
        let before = std::mem::take(&mut self.before);
        if self.has_room() {
            let text = self.take(found.bytes());
            self.matches.push(Match {
                path: self.path.clone(),
                line: found.line_number().unwrap_or(0),
                text,
                before,
                after: Vec::new(),
            });
        } else {
            self.free_matches = 0;
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let is_after = *context.kind() == SinkContextKind::After;
        if !is_after && self.has_room() {
            let line = self.take(context.bytes());
            self.before.push(line);
        }
        // The lines after a match that is not shown belong to no shown one either.
        if is_after && self.matches.len() as u64 == self.total && self.free_bytes > 0 {
            let line = self.take(context.bytes());
            if let Some(last) = self.matches.last_mut() {
                last.after.push(line);
            }
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(false)
    }
}

/// Returns a line without its end, cut when it is long.
fn show(bytes: &[u8]) -> String {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let most = limits::MAX_SEARCH_LINE_BYTES;
    let Some(start) = line.get(..most).filter(|_| line.len() > most) else {
        return String::from_utf8_lossy(line).into_owned();
    };
    let start = String::from_utf8_lossy(start);
    let start = start.trim_end_matches(char::REPLACEMENT_CHARACTER);
    format!(
        "{start}[... {} bytes omitted ...]",
        line.len().saturating_sub(start.len())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = temp.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        temp
    }

    fn project() -> tempfile::TempDir {
        tree(&[
            ("src/a.rs", b"fn a() {}\n// b.c\nfn b() {}\n"),
            ("src/b.txt", b"fn in text\r\nxbxc\r\n"),
            ("target/out.rs", b"fn built() {}\n"),
            (".gitignore", b"target/\n"),
            (".git/config", b"fn git\n"),
            ("z.bin", b"fn \0binary\n"),
            ("a-b", b"fn first?\n"),
        ])
    }

    fn options(pattern: &str) -> SearchOptions<'_> {
        SearchOptions {
            pattern,
            syntax: Syntax::Literal,
            glob: None,
            context: 0,
            max: 100,
            scope: Scope::NotIgnored,
            cancelled: None,
        }
    }

    fn run(temp: &tempfile::TempDir, options: &SearchOptions<'_>) -> SearchFound {
        search(Path::new("."), temp.path(), options).unwrap()
    }

    fn check(options: &SearchOptions<'_>, expected: &[&str]) {
        let found = run(&project(), options);
        let shown: Vec<String> = found
            .matches
            .iter()
            .map(|m| format!("{}:{}:{}", m.path.display(), m.line, m.text))
            .collect();
        assert_eq!(shown, expected, "{options:?}");
    }

    #[test]
    fn matches_come_in_path_order() {
        check(
            &options("fn "),
            &[
                "a-b:1:fn first?",
                "src/a.rs:1:fn a() {}",
                "src/a.rs:3:fn b() {}",
                "src/b.txt:1:fn in text",
            ],
        );
        let found = run(&project(), &options("fn "));
        assert_eq!(
            (
                found.files_searched,
                found.files_binary,
                found.files_matched
            ),
            (4, 1, 3)
        );
    }

    #[test]
    fn patterns_are_literal_or_regular() {
        check(&options("b.c"), &["src/a.rs:2:// b.c"]);
        check(
            &SearchOptions {
                syntax: Syntax::Regex,
                ..options("b.c$")
            },
            &["src/a.rs:2:// b.c", "src/b.txt:2:xbxc"],
        );
        check(&options("none"), &[]);
        check(
            &options("("),
            &["src/a.rs:1:fn a() {}", "src/a.rs:3:fn b() {}"],
        );
    }

    #[test]
    fn globs_narrow_the_files() {
        check(
            &SearchOptions {
                glob: Some("*.txt"),
                ..options("fn")
            },
            &["src/b.txt:1:fn in text"],
        );
        check(
            &SearchOptions {
                glob: Some("src/*.{rs,go}"),
                ..options("fn b")
            },
            &["src/a.rs:3:fn b() {}"],
        );
        check(
            &SearchOptions {
                glob: Some("**/a.rs"),
                ..options("fn b")
            },
            &["src/a.rs:3:fn b() {}"],
        );
        check(
            &SearchOptions {
                glob: Some("*.rs"),
                scope: Scope::All,
                ..options("built")
            },
            &["target/out.rs:1:fn built() {}"],
        );
    }

    #[test]
    fn context_stands_around_a_match() {
        let temp = tree(&[("f", b"1\n2\nx\n4\nx\n6\n7\n")]);
        let found = run(
            &temp,
            &SearchOptions {
                context: 1,
                ..options("x")
            },
        );
        let seen: Vec<_> = found
            .matches
            .into_iter()
            .map(|m| (m.before, m.after))
            .collect();
        let lines = |lines: &[&str]| {
            lines
                .iter()
                .map(|line| (*line).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            seen,
            [(lines(&["2"]), lines(&["4"])), (lines(&[]), lines(&["6"]))]
        );
    }

    #[test]
    fn what_is_not_shown_is_counted() {
        let temp = tree(&[("a", b"x\nx\nx\n"), ("b", b"x\n")]);
        let found = run(
            &temp,
            &SearchOptions {
                max: 2,
                context: 1,
                ..options("x")
            },
        );
        assert_eq!(
            (
                found.matches.len(),
                found.total_matches,
                found.omitted_matches()
            ),
            (2, 4, 2)
        );
        let long = "é".repeat(5000);
        let temp = tree(&[("a", long.as_bytes())]);
        let text = &run(&temp, &options("é")).matches[0].text;
        assert!(
            text.len() < 2100 && text.ends_with("[... 8000 bytes omitted ...]"),
            "{}",
            &text[1990..]
        );
    }

    #[test]
    fn one_file_can_be_searched() {
        let temp = project();
        let found = search(
            Path::new("src/a.rs"),
            &temp.path().join("src/a.rs"),
            &options("fn b"),
        )
        .unwrap();
        assert_eq!(found.matches[0].path, Path::new("src/a.rs"));
        let found = search(
            Path::new("target"),
            &temp.path().join("target"),
            &options("fn"),
        )
        .unwrap();
        assert_eq!(found.total_matches, 1);
    }

    #[test]
    fn errors_are_named() {
        let temp = project();
        let check = |options: &SearchOptions<'_>, code| {
            assert_eq!(
                search(Path::new("."), temp.path(), options)
                    .unwrap_err()
                    .code,
                code,
                "{options:?}"
            );
        };
        check(
            &SearchOptions {
                syntax: Syntax::Regex,
                ..options("(")
            },
            ErrorCode::BadPattern,
        );
        check(
            &SearchOptions {
                syntax: Syntax::Regex,
                ..options("a{1000}{1000}{1000}")
            },
            ErrorCode::BadPattern,
        );
        check(
            &SearchOptions {
                glob: Some("a["),
                ..options("x")
            },
            ErrorCode::BadPattern,
        );
        check(&options(""), ErrorCode::BadPattern);
        check(&options("a\nb"), ErrorCode::BadPattern);
        check(
            &SearchOptions {
                cancelled: Some(&AtomicBool::new(true)),
                ..options("x")
            },
            ErrorCode::Cancelled,
        );
        let missing = search(Path::new("no"), &temp.path().join("no"), &options("x")).unwrap_err();
        assert_eq!(missing.code, ErrorCode::NotFound);
        let device = search(
            Path::new("/dev/zero"),
            Path::new("/dev/zero"),
            &options("x"),
        )
        .unwrap_err();
        assert_eq!(device.code, ErrorCode::NotAFile);
    }
}
