//! Compiles the pattern and the glob of a search and explains their errors.

use std::ffi::OsStr;
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::{Case, SearchOptions, Syntax};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// Compiles the pattern.
///
/// # Errors
/// `bad_pattern`; a caret marks the error in a regular expression.
pub(super) fn matcher(options: &SearchOptions<'_>) -> Result<RegexMatcher, ToolError> {
    let bad = |what: String| ToolError::new(ErrorCode::BadPattern, what);
    if options.pattern.is_empty() {
        return Err(bad("the pattern is empty".into()).with_hint("name a text to search for"));
    }
    if options.pattern.contains('\n') {
        let error = bad("the pattern holds a line break, and matches lie within one line".into());
        return Err(error.with_hint("search for one of its lines"));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .fixed_strings(options.syntax == Syntax::Literal)
        .case_insensitive(options.case == Case::Ignored)
        .multi_line(true)
        .crlf(true);
    // A larger pattern would take seconds to compile.
    builder
        .size_limit(limits::MAX_PATTERN_BYTES)
        .dfa_size_limit(limits::MAX_PATTERN_BYTES);
    let built = builder.build(options.pattern);
    built.map_err(|error| {
        bad(format!(
            "the pattern is broken: {}",
            what_is_wrong(options, error)
        ))
    })
}

/// Explains the error of a pattern. The builder wraps the pattern in a group, so it is parsed once more as
/// written.
fn what_is_wrong(options: &SearchOptions<'_>, error: grep_regex::Error) -> String {
    match regex_syntax::parse(options.pattern) {
        Err(error) if options.syntax == Syntax::Regex => error.to_string(),
        _ => error.to_string(),
    }
}

/// Selection of files by a glob.
pub(super) struct Glob {
    matcher: GlobMatcher,
    /// True if the glob matches paths below the searched directory instead of names.
    is_path: bool,
    /// True if the glob matches directories, with everything below, and no files.
    is_directory: bool,
    /// True if matching files are excluded.
    is_negated: bool,
}

impl Glob {
    /// Tells whether a file is searched; its path starts below the searched directory.
    pub(super) fn is_match(&self, below: &Path) -> bool {
        let is_named = |path: &Path| {
            let name = || Path::new(path.file_name().unwrap_or(OsStr::new("")));
            let compared = if self.is_path { path } else { name() };
            self.matcher.is_match(compared)
        };
        // An excluded directory is excluded with everything below.
        let counts_above = self.is_directory || self.is_negated;
        let mut above = below.ancestors().skip(1);
        let is_in = counts_above && above.any(|path| path != Path::new("") && is_named(path));
        (is_in || !self.is_directory && is_named(below)) != self.is_negated
    }
}

/// Compiles a glob; one that starts with `!` excludes.
///
/// # Errors
/// `bad_pattern`.
pub(super) fn glob(text: &str) -> Result<Glob, ToolError> {
    let (text, is_negated) = match text.strip_prefix('!') {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let text = text.strip_prefix("./").unwrap_or(text);
    let is_directory = text.ends_with('/');
    let text = text.trim_end_matches('/');
    let is_path = text.contains('/');
    let text = text.strip_prefix('/').unwrap_or(text);
    if text.is_empty() {
        let error = ToolError::new(ErrorCode::BadPattern, "the glob is empty");
        return Err(error.with_hint("leave it out to search all files, or write one like *.rs"));
    }
    let built = GlobBuilder::new(text).literal_separator(true).build();
    let glob = built.map_err(|error| {
        let message = format!("the glob is broken: {error}");
        ToolError::new(ErrorCode::BadPattern, message)
            .with_hint("write a glob like *.rs or src/**/*.{ts,tsx}")
    })?;
    Ok(Glob {
        matcher: glob.compile_matcher(),
        is_path,
        is_directory,
        is_negated,
    })
}
