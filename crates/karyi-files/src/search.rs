//! Searches the text files below a path.
//!
//! Files are searched in parallel and the results sorted by path, so equal searches give equal results. All
//! matches are counted; the first ones are shown. Ignored files, hidden files, binary files and symlinks are
//! skipped.

mod file_matches;
mod grep_format;
mod match_collector;
mod pattern;
mod tally;

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use grep_matcher::LineTerminator;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::{DirEntry, WalkBuilder, WalkState};

use super::encoding::Encoding;
use super::kind::SpecialFile;
use super::listing::{EntryFilter, Scope, is_in_repository, is_repository, walk_builder};
use super::opener::{Opener, names};
use super::root::{Root, identity, may_be_linked};
use super::similar_paths;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use match_collector::MatchCollector;
use pattern::Glob;
use tally::Tally;

pub use file_matches::{FileMatches, LineRole, MatchLine};

/// Syntax of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// Literal text.
    Literal,
    /// Regular expression.
    Regex,
}

/// Case sensitivity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Case matters.
    Exact,
    /// Case is ignored.
    Ignored,
}

/// Options of a search.
#[derive(Debug, Clone)]
pub struct SearchOptions<'a> {
    /// Pattern; it matches within a line.
    pub pattern: &'a str,
    /// Syntax of the pattern.
    pub syntax: Syntax,
    /// Case sensitivity.
    pub case: Case,
    /// Glob for the name, or for the path when it contains a slash.
    pub glob: Option<&'a str>,
    /// Lines shown before and after each match.
    pub context: usize,
    /// Most matches shown.
    pub max: usize,
    /// Limits of the shown lines.
    pub caps: SearchCaps,
    /// Selection of files.
    pub scope: Scope,
    /// Flag that cancels the search.
    pub cancelled: Option<&'a AtomicBool>,
}

/// Limits of the lines that a search shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchCaps {
    /// Bytes of all lines: beyond that matches are only counted.
    pub text_bytes: usize,
    /// Bytes of one line; of longer ones what stands around the match.
    pub line_bytes: usize,
}

impl Default for SearchCaps {
    fn default() -> Self {
        Self {
            text_bytes: limits::READ_SHOWN_BYTES,
            line_bytes: limits::READ_LINE_BYTES,
        }
    }
}

/// Outcome of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchOutcome {
    /// True if context lines were requested.
    pub has_context: bool,
    /// Shown matches by file, sorted by path.
    pub files: Vec<FileMatches>,
    /// Number of matching lines, shown or not.
    pub total_matches: u64,
    /// Number of files with a match.
    pub files_matched: u64,
    /// Number of text files searched.
    pub files_searched: u64,
    /// Number of binary files skipped.
    pub files_binary: u64,
    /// Number of unreadable files and directories.
    pub files_unreadable: u64,
}

impl SearchOutcome {
    /// Returns the number of matching lines that are not shown.
    #[must_use]
    pub fn omitted_matches(&self) -> u64 {
        let shown: usize = self.files.iter().map(FileMatches::matches).sum();
        self.total_matches.saturating_sub(shown as u64)
    }
}

/// Searches the file or directory `real`, which results call `shown`. Under a root, a path that changes
/// meanwhile cannot lead outside.
///
/// # Errors
/// `bad_pattern` for a broken pattern or glob; the path does not exist or is a special file; `cancelled`.
pub fn search(
    root: &Root,
    shown: &Path,
    real: &Path,
    options: &SearchOptions<'_>,
) -> Result<SearchOutcome, ToolError> {
    let opener = Opener::new(root).map_err(|error| ToolError::from_io(shown, &error))?;
    let search = Search {
        matcher: pattern::matcher(options)?,
        glob: options.glob.map(pattern::glob).transpose()?,
        shown,
        real,
        opener: &opener,
        filter: EntryFilter {
            scope: options.scope,
            private_paths: Arc::clone(root.private_paths()),
        },
        options,
        tally: Tally::new(
            options.max.min(limits::MAX_SEARCH_MATCHES),
            options.caps.text_bytes,
        ),
        linked: OnceLock::new(),
    };
    let found = opener
        .metadata(real)
        .map_err(|error| similar_paths::explain(&opener, shown, real, &error))?;
    if let Some(special) = SpecialFile::of(found.file_type()) {
        return Err(special.refused(shown));
    }
    // An unreadable path is an error when it was named itself; below it is only counted.
    let readable = match found.is_file() {
        true => opener.file(real).map(drop),
        false => opener
            .directory(real)
            .and_then(|opened| names(&opened).map(drop)),
    };
    readable.map_err(|error| ToolError::from_io(shown, &error))?;
    if found.is_file() {
        let searched = search.file(&mut search.worker(), real, || shown.to_owned());
        searched.map_err(|error| unsearched(shown, &error))?;
    } else {
        search.tree();
    }
    if search.is_cancelled() {
        let message = "the search was interrupted";
        return Err(ToolError::new(ErrorCode::Cancelled, message));
    }
    Ok(SearchOutcome {
        has_context: options.context > 0,
        ..search.tally.finish()
    })
}

/// Error of a named file that cannot be searched.
fn unsearched(shown: &Path, error: &io::Error) -> ToolError {
    // Errors without a system error number are lines that exceed the buffer.
    if error.raw_os_error().is_some() {
        return ToolError::from_io(shown, error);
    }
    let message = format!(
        "{}: a line is longer than the {} MiB that a search holds of one",
        shown.display(),
        limits::SEARCH_LINE_BUFFER_BYTES >> 20
    );
    ToolError::new(ErrorCode::FileTooLarge, message)
        .with_hint("search it with a command, such as tr or fold before grep, or read a part of it with max_bytes")
}

/// Joins two paths without a leading `./`.
fn join(shown: &Path, below: &Path) -> PathBuf {
    if shown == Path::new(".") {
        below.to_owned()
    } else {
        shown.join(below)
    }
}

/// One search, shared by its threads.
struct Search<'a> {
    matcher: RegexMatcher,
    glob: Option<Glob>,
    shown: &'a Path,
    real: &'a Path,
    opener: &'a Opener,
    filter: EntryFilter,
    options: &'a SearchOptions<'a>,
    tally: Tally,
    /// Karyi's own files with several hard links.
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
            buffer: vec![0; limits::SEARCH_READ_BYTES],
        }
    }

    /// Searches every selected file below the path. Outside repositories the walk applies every `.gitignore`;
    /// it must not do so inside a repository, so each nested repository gets its own walk.
    fn tree(&self) {
        let filter = self.filter.below(self.real);
        let mut walk = walk_builder(self.real, &filter);
        let repositories: Arc<Mutex<Vec<PathBuf>>> = Arc::default();
        if self.options.scope == Scope::NotIgnored && !is_in_repository(self.real) {
            let (filter, found) = (filter.clone(), Arc::clone(&repositories));
            walk.filter_entry(move |entry| {
                let is_other = entry.depth() > 0 && filter.is_shown(entry) && is_top(entry);
                if is_other {
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.push(entry.path().to_owned());
                }
                entry.depth() == 0 || filter.is_shown(entry) && !is_other
            });
        }
        self.walk(walk);
        let found =
            std::mem::take(&mut *repositories.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some((first, others)) = found.split_first() {
            let mut walk = walk_builder(first, &filter);
            others.iter().for_each(|path| {
                walk.add(path);
            });
            self.walk(walk);
        }
    }

    /// Walks on as many threads as there are processors.
    fn walk(&self, mut walk: WalkBuilder) {
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
        let below = || {
            let below = entry.path().strip_prefix(self.real);
            below.unwrap_or(entry.path())
        };
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file && self.glob.as_ref().is_none_or(|glob| glob.is_match(below())) {
            let searched = self.file(worker, entry.path(), || join(self.shown, below()));
            if searched.is_err() {
                self.tally.unreadable();
            }
        }
    }

    /// Tells whether a file is a hard link to one of karyi's own, which are listed once per search.
    fn is_own(&self, found: &Metadata) -> bool {
        let linked = || {
            self.linked
                .get_or_init(|| self.filter.private_paths.linked())
        };
        may_be_linked(found) && linked().contains(&identity(found))
    }

    /// Searches a file, which results call what `shown` returns.
    fn file(
        &self,
        worker: &mut Worker,
        real: &Path,
        shown: impl Fn() -> PathBuf,
    ) -> io::Result<()> {
        let mut lines =
            MatchCollector::new(&self.matcher, self.tally.most_matches(), self.options.caps);
        let file = self.opener.file(real)?;
        if !self.is_own(&file.metadata()?) {
            worker.search(&self.matcher, &file, &mut lines)?;
        }
        if lines.is_binary {
            self.tally.binary();
        } else {
            let (mut found, total) = (lines.found, lines.total);
            if found.matches() > 0 {
                found.path = shown();
            }
            self.tally.searched(found, total);
        }
        Ok(())
    }
}

/// State of one search thread.
struct Worker {
    searcher: Searcher,
    /// Content of the current file, or the start of a large one.
    buffer: Vec<u8>,
}

impl Worker {
    /// Reads a file up to one byte more than is searched as a whole; returns the number of bytes.
    fn read(&mut self, mut file: &File) -> io::Result<usize> {
        let most = limits::SEARCH_WHOLE_BYTES + 1;
        let mut length = 0;
        while (length as u64) < most {
            if length == self.buffer.len() {
                let room = usize::try_from(most).unwrap_or(usize::MAX);
                self.buffer.resize(room.min(2 * length), 0);
            }
            match file.read(self.buffer.get_mut(length..).unwrap_or_default()) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(length)
    }

    /// Searches a file. A small one is decoded first, whatever its encoding; a large one is searched as a
    /// stream, which supports UTF-8, and UTF-16 with a byte order mark.
    fn search(
        &mut self,
        matcher: &RegexMatcher,
        file: &File,
        lines: &mut MatchCollector<'_>,
    ) -> io::Result<()> {
        let length = self.read(file)?;
        let bytes = self.buffer.get(..length).unwrap_or_default();
        if bytes.len() as u64 > limits::SEARCH_WHOLE_BYTES {
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

/// Tells whether an entry is the top of a repository.
fn is_top(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir()) && is_repository(entry.path())
}

fn threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    processors.min(limits::MAX_SEARCH_THREADS)
}

#[cfg(test)]
mod tests;
