//! Searches the text files below a path.
//!
//! Files are searched side by side, and what comes of it is put into the order of their paths, so
//! that the same search gives the same result. All matches are counted; the first ones are shown.
//! What `.gitignore` names is left out, and so are hidden and binary files and links.

mod lines;
mod pattern;
mod tally;

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use grep_matcher::LineTerminator;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::{DirEntry, WalkState};

use super::encoding::Encoding;
use super::kind::Special;
use super::listing::{Scope, Wanted, walk_builder};
use super::missing;
use super::root::{Root, identity, may_be_linked};
use super::target::Way;
use crate::error::{ErrorCode, ToolError};
use crate::limits;
use lines::Lines;
use pattern::Glob;
use tally::Tally;

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// Character by character.
    Literal,
    /// As a regular expression.
    Regex,
}

/// Whether the case of letters counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// It does.
    Exact,
    /// It does not.
    Ignored,
}

/// What to search for.
#[derive(Debug, Clone)]
pub struct SearchOptions<'a> {
    /// The pattern; it matches within a line.
    pub pattern: &'a str,
    /// How the pattern is read.
    pub syntax: Syntax,
    /// Whether the case of letters counts.
    pub case: Case,
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

impl Match {
    /// Returns the bytes of text it shows.
    fn shown_bytes(&self) -> usize {
        let around = self.before.iter().chain(&self.after);
        self.text.len() + around.map(String::len).sum::<usize>()
    }
}

/// Searches the file or directory `real`, which results call `shown`; under a root, nothing that a
/// path which changes meanwhile leads to outside of it.
///
/// # Errors
/// `bad_pattern` for a broken pattern or glob; the path names nothing or a special file;
/// `cancelled`.
pub fn search(
    root: &Root,
    shown: &Path,
    real: &Path,
    options: &SearchOptions<'_>,
) -> Result<SearchFound, ToolError> {
    let way = Way::new(root).map_err(|error| ToolError::from_io(shown, &error))?;
    let search = Search {
        matcher: pattern::matcher(options)?,
        glob: options.glob.map(pattern::glob).transpose()?,
        shown,
        real,
        way: &way,
        wanted: Wanted {
            scope: options.scope,
            own: Arc::clone(root.own()),
        },
        options,
        tally: Tally::new(options.max.min(limits::MAX_SEARCH_MATCHES)),
        linked: OnceLock::new(),
    };
    let found = way
        .look(real)
        .map_err(|error| missing::explain(&way, shown, real, &error))?;
    if let Some(special) = Special::of(found.file_type()) {
        return Err(special.refused(shown));
    }
    if found.is_file() {
        search.file(&mut search.worker(), real, shown.to_owned());
    } else {
        search.tree();
    }
    if search.is_cancelled() {
        let message = "the search was interrupted";
        return Err(ToolError::new(ErrorCode::Cancelled, message));
    }
    Ok(search.tally.finish())
}

/// Joins without a leading `./`.
fn join(shown: &Path, below: &Path) -> PathBuf {
    if shown == Path::new(".") {
        below.to_owned()
    } else {
        shown.join(below)
    }
}

/// One search, shared by the threads that do it.
struct Search<'a> {
    matcher: RegexMatcher,
    glob: Option<Glob>,
    shown: &'a Path,
    real: &'a Path,
    way: &'a Way,
    wanted: Wanted,
    options: &'a SearchOptions<'a>,
    tally: Tally,
    /// Karyi's own files that have several names.
    linked: OnceLock<HashSet<(u64, u64)>>,
}

impl Search<'_> {
    fn is_cancelled(&self) -> bool {
        let flag = self.options.cancelled;
        flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    fn worker(&self) -> Worker {
        let context = self.options.context.min(limits::MAX_SEARCH_CONTEXT);
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(true)
            .line_terminator(LineTerminator::crlf())
            .before_context(context)
            .after_context(context);
        builder
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(limits::SEARCH_LINE_BUFFER_BYTES));
        Worker {
            searcher: builder.build(),
            buffer: Vec::new(),
        }
    }

    /// Searches every wanted file below the path, on as many threads as there are processors.
    fn tree(&self) {
        let mut walk = walk_builder(self.real, &self.wanted);
        walk.hidden(self.options.scope == Scope::NotIgnored)
            .threads(threads());
        walk.build_parallel().run(|| {
            let mut worker = self.worker();
            Box::new(move |entry| {
                if self.is_cancelled() {
                    return WalkState::Quit;
                }
                match entry {
                    Ok(entry) => self.entry(&mut worker, &entry),
                    Err(_) => self.tally.unreadable(),
                }
                WalkState::Continue
            })
        });
    }

    fn entry(&self, worker: &mut Worker, entry: &DirEntry) {
        let below = entry.path().strip_prefix(self.real);
        let below = below.unwrap_or(entry.path());
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file && self.glob.as_ref().is_none_or(|glob| glob.is_match(below)) {
            self.file(worker, entry.path(), join(self.shown, below));
        }
    }

    /// Whether a file is karyi's own under another name. Those are looked for once in a search.
    fn is_own(&self, found: &Metadata) -> bool {
        let linked = || self.linked.get_or_init(|| self.wanted.own.linked());
        may_be_linked(found) && linked().contains(&identity(found))
    }

    fn file(&self, worker: &mut Worker, real: &Path, shown: PathBuf) {
        let mut lines = Lines::new(&self.matcher, &shown, self.tally.most_matches());
        let searched = self.way.file(real).and_then(|file| {
            if self.is_own(&file.metadata()?) {
                return Ok(());
            }
            worker.search(&self.matcher, &file, &mut lines)
        });
        match searched {
            Err(_) => self.tally.unreadable(),
            Ok(()) if lines.is_binary => self.tally.binary(),
            Ok(()) => {
                let (matches, total) = (lines.matches, lines.total);
                self.tally.searched(shown, matches, total);
            }
        }
    }
}

/// What one thread searches with.
struct Worker {
    searcher: Searcher,
    /// Holds one file at a time.
    buffer: Vec<u8>,
}

impl Worker {
    /// Searches a file: a small one as the text it is, in whatever encoding; a large one as it is
    /// read, which finds what is UTF-8, or UTF-16 with a byte order mark.
    fn search(
        &mut self,
        matcher: &RegexMatcher,
        file: &File,
        lines: &mut Lines<'_>,
    ) -> io::Result<()> {
        self.buffer.clear();
        let most = limits::SEARCH_WHOLE_BYTES;
        file.take(most + 1).read_to_end(&mut self.buffer)?;
        let bytes = self.buffer.as_slice();
        if bytes.len() as u64 > most {
            return self
                .searcher
                .search_reader(matcher, bytes.chain(file), lines);
        }
        let is_plain = memchr::memchr(0, bytes).is_none() && std::str::from_utf8(bytes).is_ok();
        if is_plain {
            return self.searcher.search_slice(matcher, bytes, lines);
        }
        match Encoding::read(bytes) {
            Ok((_, text)) => self.searcher.search_slice(matcher, text.as_bytes(), lines),
            Err(_) if memchr::memchr(0, bytes).is_some() => {
                lines.is_binary = true;
                Ok(())
            }
            Err(_) => self.searcher.search_slice(matcher, bytes, lines),
        }
    }
}

fn threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    processors.min(limits::MAX_SEARCH_THREADS)
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
            case: Case::Exact,
            glob: None,
            context: 0,
            max: 100,
            scope: Scope::NotIgnored,
            cancelled: None,
        }
    }

    fn run(temp: &tempfile::TempDir, options: &SearchOptions<'_>) -> SearchFound {
        search(&Root::unconfined(), Path::new("."), temp.path(), options).unwrap()
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
            (3, 1, 3)
        );
    }

    #[test]
    fn hidden_files_are_searched_when_all_are_wanted() {
        let temp = tree(&[
            (".hidden/a", b"x\n"),
            (".b", b"x\n"),
            ("c", b"x\n"),
            ("d", b"X\n"),
            (".ignore", b"d\n"),
        ]);
        let count = |options: &SearchOptions<'_>| run(&temp, options).total_matches;
        let all = SearchOptions {
            scope: Scope::All,
            ..options("x")
        };
        assert_eq!((count(&options("x")), count(&all)), (1, 3));
        let folded = SearchOptions {
            case: Case::Ignored,
            ..all
        };
        assert_eq!(count(&folded), 4);
    }

    #[test]
    fn a_broken_pattern_is_shown_with_a_caret() {
        let temp = project();
        let broken = SearchOptions {
            syntax: Syntax::Regex,
            ..options("a(b")
        };
        let error = search(&Root::unconfined(), Path::new("."), temp.path(), &broken).unwrap_err();
        assert!(
            error.message.contains("    a(b\n     ^\n"),
            "{}",
            error.message
        );
        assert!(error.hint.contains("regex"), "{}", error.hint);
    }

    #[test]
    fn the_same_search_gives_the_same_result() {
        let text = b"x\ny\nx\n".repeat(5);
        let names: Vec<String> = (0..300).map(|i| format!("d{}/f{i}", i * 7 % 11)).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &*text)).collect();
        let temp = tree(&files);
        let options = SearchOptions {
            max: 55,
            context: 1,
            ..options("x")
        };
        let first = run(&temp, &options);
        assert_eq!((first.matches.len(), first.total_matches), (55, 3000));
        let is_sorted = first
            .matches
            .is_sorted_by_key(|found| (found.path.clone(), found.line));
        assert!(is_sorted, "{:?}", first.matches);
        for _ in 0..20 {
            assert_eq!(run(&temp, &options), first);
        }
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
        for glob in ["!*.txt", "!src/*.txt"] {
            check(
                &SearchOptions {
                    glob: Some(glob),
                    ..options("fn b")
                },
                &["src/a.rs:3:fn b() {}"],
            );
            check(
                &SearchOptions {
                    glob: Some(glob),
                    ..options("fn in")
                },
                &[],
            );
        }
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
    fn texts_of_every_encoding_are_searched() {
        let chinese = "\u{8FD9}\u{662F}\u{4E00}\u{4E2A}\u{6D4B}\u{8BD5}\u{6587}\u{4EF6}\u{3002}\n";
        let gb = encoding_rs::GB18030.encode(chinese).0;
        let utf16 = |mark: &[u8], text: &str, spell: fn(u16) -> [u8; 2]| {
            [
                mark,
                &text.encode_utf16().flat_map(spell).collect::<Vec<_>>(),
            ]
            .concat()
        };
        let large = [
            &b"caf\xE9\n"[..],
            &b"x\n".repeat(limits::SEARCH_WHOLE_BYTES as usize),
        ]
        .concat();
        let temp = tree(&[
            ("a", "th\u{E9}\ncaf\u{E9} \u{6D4B}\n".as_bytes()),
            ("b", b"th\xE9\ncaf\xE9 au lait\n"),
            ("c", &gb),
            ("d", &utf16(b"\xFF\xFE", "x\ncaf\u{E9}\n", u16::to_le_bytes)),
            ("e", &utf16(b"", "no mark\ncaf\u{E9}\n", u16::to_be_bytes)),
            ("f", b"\xEF\xBB\xBFcaf\xC3\xA9\n"),
            ("g", b"caf\xC3\xA9 \xFF\n"),
            ("h", b"caf\xC3\xA9\n\0"),
            ("i", &large),
        ]);
        let check = |options: &SearchOptions<'_>, expected: &[(&str, u64, &str)]| {
            let found = run(&temp, options);
            let name = |m: &Match| m.path.display().to_string();
            let lines: Vec<_> = found
                .matches
                .iter()
                .map(|m| (name(m), m.line, m.text.clone()))
                .collect();
            let expected = expected
                .iter()
                .map(|(name, line, text)| ((*name).into(), *line, (*text).into()));
            assert_eq!(lines, expected.collect::<Vec<_>>(), "{options:?}");
            assert_eq!((found.files_binary, found.files_unreadable), (1, 0));
        };
        let expected = [
            ("a", 2, "caf\u{E9} \u{6D4B}"),
            ("b", 2, "caf\u{E9} au lait"),
            ("d", 2, "caf\u{E9}"),
            ("e", 2, "caf\u{E9}"),
            ("f", 1, "caf\u{E9}"),
            ("g", 1, "caf\u{E9} \u{FFFD}"),
        ];
        check(&options("caf\u{E9}"), &expected);
        let regex = SearchOptions {
            syntax: Syntax::Regex,
            ..options("^caf\\w")
        };
        check(&regex, &expected);
        let test = ("c", 1, chinese.trim_end());
        check(&options("\u{6D4B}\u{8BD5}"), &[test]);
    }

    #[test]
    fn one_file_can_be_searched() {
        let temp = project();
        let found = search(
            &Root::unconfined(),
            Path::new("src/a.rs"),
            &temp.path().join("src/a.rs"),
            &options("fn b"),
        )
        .unwrap();
        assert_eq!(found.matches[0].path, Path::new("src/a.rs"));
        let found = search(
            &Root::unconfined(),
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
                search(&Root::unconfined(), Path::new("."), temp.path(), options)
                    .unwrap_err()
                    .code,
                code,
                "{options:?}"
            );
        };
        for pattern in ["(", "a{1000}{1000}{1000}"] {
            let regex = SearchOptions {
                syntax: Syntax::Regex,
                ..options(pattern)
            };
            check(&regex, ErrorCode::BadPattern);
        }
        for glob in ["a[", "", "!", "./"] {
            let limited = SearchOptions {
                glob: Some(glob),
                ..options("x")
            };
            check(&limited, ErrorCode::BadPattern);
        }
        check(&options(""), ErrorCode::BadPattern);
        check(&options("a\nb"), ErrorCode::BadPattern);
        check(
            &SearchOptions {
                cancelled: Some(&AtomicBool::new(true)),
                ..options("x")
            },
            ErrorCode::Cancelled,
        );
        let missing = search(
            &Root::unconfined(),
            Path::new("no"),
            &temp.path().join("no"),
            &options("x"),
        )
        .unwrap_err();
        assert_eq!(missing.code, ErrorCode::NotFound);
        let device = search(
            &Root::unconfined(),
            Path::new("/dev/zero"),
            Path::new("/dev/zero"),
            &options("x"),
        )
        .unwrap_err();
        assert_eq!(device.code, ErrorCode::NotAFile);
    }
}
