//! `<read>`: shows files and directories, and searches them.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::context;
use crate::tool::effect::Access;
use crate::tool::service::Hints;
use crate::tool::sessions::{JOB_PREFIX, JobFiles};
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{
    Answer, ArgumentSchema, Context, CountedKind, CountedTexts, Effect, Service, Tool, Use,
};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_files::line_reader::TextView;
use karyi_files::listing::Scope;
use karyi_files::root::Root;
use karyi_files::search::{self, Case, SearchCaps, SearchOptions, SearchOutcome, Syntax};
use karyi_files::view::{self, LineRange, PathView, ViewOptions};
use karyi_vault::redact::{Redacted, Redactor};

mod content;

use content::{directory_content, entries, ignored_of_directory, text_content};

/// The tool.
pub struct Read;

/// Arguments of `read`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Files to show and directories to list.
    #[serde(default)]
    #[schemars(extend("x-karyi" = {"element": "file"}))]
    pub files: Vec<File>,
    /// Searches.
    #[serde(default)]
    #[schemars(extend("x-karyi" = {"element": "search"}))]
    pub searches: Vec<Search>,
}

/// One file or directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Path, or `job:ID` for the output of a job.
    pub src: Template,
    /// Lines: `10-40`, `10-`, `7`, or `-50` for the last 50; at most 2000.
    pub lines: Option<String>,
    /// Most UTF-8 bytes; 61440 by default.
    pub max_bytes: Option<u64>,
    /// List ignored files too.
    #[serde(default)]
    pub all: bool,
    /// Levels to list; 2 by default.
    pub depth: Option<usize>,
}

/// One search through files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The text to search for.
    pub pattern: Template,
    /// File, directory or `job:ID`; the cwd by default.
    pub path: Option<Template>,
    /// Only paths that match, such as `*.rs`.
    pub glob: Option<Template>,
    /// The pattern is a regular expression.
    #[serde(default)]
    pub regex: bool,
    /// Ignore case.
    #[serde(default)]
    pub ignore_case: bool,
    /// Search hidden and ignored files too.
    #[serde(default)]
    pub all: bool,
    /// Most matches; 200 by default.
    pub max: Option<usize>,
    /// Lines around each match.
    #[serde(default)]
    pub context: usize,
}

/// Result of `read`.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// Content of each file or directory, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileContent>,
    /// Result of each search, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<SearchResult>,
}

/// Content of one file or directory.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct FileContent {
    /// Path as given.
    #[schemars(with = "String")]
    pub src: Redacted,
    /// `text`, `directory`, or the name of a binary format; absent when it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// Size of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Width of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Height of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// Encoding of a text, unless it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<&'static str>,
    /// Number of the first line shown, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u64>,
    /// Number of lines of the whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
    /// UTF-8 bytes of the requested lines that are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    /// Number of requested lines that are not shown at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_lines: Option<u64>,
    /// Number of directory entries not shown, because there are too many or they are too deep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_entries: Option<u64>,
    /// Number of directory entries that `.gitignore` excludes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored_entries: Option<u64>,
    /// True when invalid bytes were replaced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_lossy: bool,
    /// Advice when the requested lines do not exist.
    #[serde(rename = "hint", skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Reason why it could not be read.
    #[serde(flatten)]
    pub problem: Option<Problem>,
    /// `max_bytes` of the call, for the limits of the result, which removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub max_bytes: Option<u64>,
    /// The text, or the directory entries, one per line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub output: Option<Redacted>,
}

/// Result of one search.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SearchResult {
    /// Pattern as given.
    #[schemars(with = "String")]
    pub pattern: Redacted,
    /// Job whose output was searched, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub path: Option<Redacted>,
    /// Number of matching lines, shown or not.
    pub total_matches: u64,
    /// Number of matching lines not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_matches: Option<u64>,
    /// Number of files with a match.
    pub files_matched: u64,
    /// Number of text files searched.
    pub files_searched: u64,
    /// Number of binary files, which are not searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_binary: Option<u64>,
    /// Number of files and directories that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_unreadable: Option<u64>,
    /// Advice when no file was searched, nothing was found, or not everything is shown.
    #[serde(rename = "hint", skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Reason why the search failed.
    #[serde(flatten)]
    pub problem: Option<Problem>,
    /// `path:line:text` for matches and `path-line-text` for context lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub output: Option<Redacted>,
}

/// Error of one item.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Problem {
    /// The error code.
    pub code: &'static str,
    /// The error message.
    pub message: String,
    /// A remedy.
    pub hint: String,
}

impl From<&ToolError> for Problem {
    fn from(error: &ToolError) -> Self {
        Self {
            code: error.code.as_str(),
            message: error.message.clone(),
            hint: error.hint.clone(),
        }
    }
}

impl Tool for Read {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "read",
        summary: "Show files, list directories, search text",
        details: "Texts come without line numbers; `first_line` says where they start. What \
            .gitignore names is left out; binary files are only named.",
        also_called: &[
            "cat",
            "open",
            "view",
            "ls",
            "list",
            "search",
            "grep",
            "read_file",
            "view_file",
            "list_dir",
            "list_files",
            "search_files",
        ],
        heading: "> read",
        starts_job: false,
        family: Family::Core,
        form: Form::Attributes,
        examples: &[
            Example {
                title: "Some lines of a file, a directory and a search",
                before: "<command>cd \"$(mktemp -d)\"; seq 1 50 > numbers.txt</command>",
                xml: "<read>\n  <file src=\"numbers.txt\" lines=\"10-20\"/>\n  <file src=\".\"/>\n  \
                    <search pattern=\"42\" glob=\"*.txt\"/>\n</read>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A file that is not there",
                before: "",
                xml: "<read><file src=\"does/not/exist.txt\"/></read>",
                status: Status::Error,
                code: Some("not_found"),
            },
        ],
    };
    const COUNTED: &'static [CountedTexts] = &[
        CountedTexts {
            list: "files",
            text: "output",
            kind: CountedKind::NumberedLines,
        },
        CountedTexts {
            list: "searches",
            text: "output",
            kind: CountedKind::Lines,
        },
    ];

    const SERVICE: Service = Service::LOCAL.with_hints(Hints::READ_ONLY);

    fn effect(args: &Args) -> Effect {
        let here = Template::new(".");
        let files = args.files.iter().map(|file| &file.src);
        let searches = args
            .searches
            .iter()
            .map(|search| search.path.as_ref().unwrap_or(&here));
        Effect::Files(files.chain(searches).map(Access::read).collect())
    }

    fn title(args: &Args) -> String {
        let files = args.files.iter().map(|file| file.src.source());
        let searches = args.searches.iter().map(|search| search.pattern.source());
        files.chain(searches).collect::<Vec<_>>().join(", ")
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        for file in &mut args.files {
            visit(Use::Literal, &mut file.src);
        }
        for search in &mut args.searches {
            visit(Use::Pattern, &mut search.pattern);
            search
                .path
                .iter_mut()
                .for_each(|path| visit(Use::Literal, path));
            search
                .glob
                .iter_mut()
                .for_each(|glob| visit(Use::Pattern, glob));
        }
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        if args.files.is_empty() && args.searches.is_empty() {
            return Err(ToolError::new(
                ErrorCode::BadArguments,
                "read needs a file or a search",
            ));
        }
        let reader = Reader {
            root: Arc::clone(&context.root),
            everywhere: Root::unconfined(),
            cwd: context.sessions.cwd(),
            job_files: context.job_files.clone(),
            redactor: context.redactor.clone(),
            caps: SearchCaps {
                text_bytes: context.shown.bytes,
                line_bytes: context.shown.line_bytes,
            },
            cancelled: Arc::clone(&context.cancelled),
        };
        context::blocking(move || reader.read(&args).or_nothing()).await
    }
}

impl Answer<Output> {
    /// Turns the answer for a single failed item into its error.
    fn or_nothing(self) -> Result<Self, ToolError> {
        let items = self.output.files.len() + self.output.searches.len();
        match self.problem {
            Some(error) if items == 1 => Err(error),
            _ => Ok(self),
        }
    }
}

/// Base directory and limits of a call's paths.
struct Reader {
    root: Arc<Root>,
    /// Root for job files, which are outside the working root.
    everywhere: Root,
    cwd: PathBuf,
    job_files: JobFiles,
    /// Masks values in what is shown.
    redactor: Redactor,
    /// Limits of the lines that a search shows.
    caps: SearchCaps,
    /// Set when the result is no longer needed.
    cancelled: Arc<AtomicBool>,
}

impl Reader {
    /// Reads all items; errors are reported per item.
    fn read(&self, args: &Args) -> Answer<Output> {
        let mut output = Output::default();
        let mut problem = None;
        for file in &args.files {
            let shown = self.file(file).unwrap_or_else(|error| {
                let error = error.of_tool(Read::SPEC.name);
                let shown = FileContent {
                    problem: Some((&error).into()),
                    ..FileContent::default()
                };
                problem.get_or_insert(error);
                shown
            });
            output.files.push(FileContent {
                src: self.redactor.redact_whole_again(file.src.source()),
                max_bytes: file.max_bytes,
                ..shown
            });
        }
        for search in &args.searches {
            let shown = self.search(search).unwrap_or_else(|error| {
                let error = error.of_tool(Read::SPEC.name);
                let shown = SearchResult {
                    problem: Some((&error).into()),
                    ..SearchResult::default()
                };
                problem.get_or_insert(error);
                shown
            });
            output.searches.push(SearchResult {
                pattern: self.redactor.redact_whole_again(search.pattern.source()),
                ..shown
            });
        }
        Answer {
            status: if problem.is_some() {
                Status::Error
            } else {
                Status::Ok
            },
            output,
            problem,
        }
    }

    fn file(&self, file: &File) -> Result<FileContent, ToolError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(ToolError::new(
                ErrorCode::Cancelled,
                "the run was interrupted",
            ));
        }
        if file.depth == Some(0) {
            let message = "expected a depth of 1 or more, found 0";
            return Err(ToolError::new(ErrorCode::BadArguments, message)
                .with_hint("depth=\"1\" shows the entries of the directory alone"));
        }
        at_most("depth", file.depth, limits::MAX_LISTING_DEPTH)?;
        at_most("max_bytes", file.max_bytes, limits::MAX_READ_BYTES)?;
        let path = file.src.text();
        let options = ViewOptions {
            lines: file
                .lines
                .as_deref()
                .map_or(Ok(LineRange::ALL), LineRange::parse)?,
            max_bytes: file
                .max_bytes
                .unwrap_or(limits::READ_FILE_BYTES.max(self.caps.text_bytes as u64)),
            scope: scope(file.all),
            depth: file.depth.unwrap_or(limits::LISTING_DEPTH),
        };
        let (root, real) = self.find(path)?;
        Ok(
            match view::view(root, Path::new(path), &real, &options, &self.cancelled)? {
                PathView::Text(text) => FileContent {
                    output: Some(self.masked_text(path, &text)),
                    ..text_content(&text, file.lines.is_some(), options.lines)
                },
                PathView::Directory(listing) => FileContent {
                    advice: ignored_of_directory(file),
                    output: Some(self.redactor.redact(&entries(&listing))),
                    ..directory_content(&listing)
                },
                PathView::Binary { kind, bytes, size } => FileContent {
                    kind: Some(kind),
                    bytes: Some(bytes),
                    width: size.map(|(width, _)| width),
                    height: size.map(|(_, height)| height),
                    ..FileContent::default()
                },
            },
        )
    }

    /// Masks the text of a file. That of a job was masked when it was written, and one that was cut may end in the
    /// start of a value.
    fn masked_text(&self, path: &str, text: &TextView) -> Redacted {
        match text.omitted_bytes {
            _ if path.starts_with(JOB_PREFIX) => self.redactor.redact_whole_again(&text.text),
            0 => self.redactor.redact(&text.text),
            _ => self.redactor.redact_cut(&text.text),
        }
    }

    /// Resolves a path and returns the root under which it is opened.
    fn find(&self, path: &str) -> Result<(&Root, PathBuf), ToolError> {
        Ok(match path.strip_prefix(JOB_PREFIX) {
            Some(id) => (&self.everywhere, self.job_files.find(id)?),
            None => (&self.root, self.root.resolve(&self.cwd, Path::new(path))?),
        })
    }

    fn search(&self, search: &Search) -> Result<SearchResult, ToolError> {
        at_most("max", search.max, limits::MAX_SEARCH_MATCHES)?;
        at_most("context", Some(search.context), limits::MAX_SEARCH_CONTEXT)?;
        let path = search.path.as_ref().map_or(".", Template::text);
        let (root, real) = self.find(path)?;
        let options = SearchOptions {
            pattern: search.pattern.text(),
            syntax: if search.regex {
                Syntax::Regex
            } else {
                Syntax::Literal
            },
            glob: search.glob.as_ref().map(Template::text),
            context: search.context,
            max: search.max.unwrap_or(limits::SEARCH_MATCHES),
            case: if search.ignore_case {
                Case::Ignored
            } else {
                Case::Exact
            },
            caps: self.caps,
            scope: scope(search.all),
            cancelled: Some(&self.cancelled),
        };
        let at = (root, Path::new(path), real.as_path());
        let mut found = search::search(at.0, at.1, at.2, &options)?;
        let is_job = path.starts_with(JOB_PREFIX);
        let output = match is_job {
            true => self.redactor.redact_whole_again(&found.text()),
            false => {
                mask_over_lines(&self.redactor, &mut found);
                self.redactor.redact(&found.text())
            }
        };
        Ok(SearchResult {
            path: is_job.then(|| self.redactor.redact_whole_again(path)),
            output: Some(output),
            advice: nothing_searched(&found, options.glob.is_some())
                .map(str::to_owned)
                .or_else(|| as_regex(at, &options, &found))
                .or_else(|| more_matches(&options, &found)),
            ..search_result(&found)
        })
    }
}

/// Masks values that span lines, before the path and line number are put between the lines.
fn mask_over_lines(redactor: &Redactor, found: &mut SearchOutcome) {
    if !redactor.is_idle() {
        for file in &mut found.files {
            file.replace(&|text| redactor.masked_across_lines(text));
        }
    }
}

/// Returns advice when no file was searched, if the reason is known.
fn nothing_searched(found: &SearchOutcome, has_glob: bool) -> Option<&'static str> {
    match (found.files_binary, found.files_unreadable) {
        _ if found.files_searched > 0 => None,
        (0, 0) if has_glob => Some(
            "the glob matches no file that is searched; write one like *.rs or src/**, and \
             all=\"true\" for hidden and ignored files",
        ),
        (0, _) => None,
        _ => Some(
            "nothing was searched: the files are binary; `read` of the file names its kind, and a \
             command such as grep -a searches it",
        ),
    }
}

/// Says how many matches a literal pattern that found nothing would have as a regular expression, if it looks
/// like one.
fn as_regex(
    (root, shown, real): (&Root, &Path, &Path),
    options: &SearchOptions<'_>,
    found: &SearchOutcome,
) -> Option<String> {
    let is_sign = |c: char| "\\*+?|[]^$".contains(c);
    let is_literal = options.syntax == Syntax::Literal && options.pattern.contains(is_sign);
    if found.total_matches > 0 || !is_literal {
        return None;
    }
    let options = SearchOptions {
        syntax: Syntax::Regex,
        max: 1,
        ..options.clone()
    };
    let found = search::search(root, shown, real, &options).ok()?;
    Some(match (found.total_matches, found.files_matched) {
        (0, _) => "no match as a regular expression either".to_owned(),
        (1, _) => "regex=\"true\" would find 1 matching line".to_owned(),
        (lines, 1) => format!("regex=\"true\" would find {lines} matching lines in 1 file"),
        (lines, files) => {
            format!("regex=\"true\" would find {lines} matching lines in {files} files")
        }
    })
}

/// Says how to see the matches that are not shown.
fn more_matches(options: &SearchOptions<'_>, found: &SearchOutcome) -> Option<String> {
    let (all, omitted) = (found.total_matches, found.omitted_matches());
    let is_full = all.saturating_sub(omitted) < options.max as u64;
    // Whoever asks for no match wants the count.
    (omitted > 0 && options.max > 0).then(|| {
        match is_full || all > limits::MAX_SEARCH_MATCHES as u64 {
            true => "path, glob or a longer pattern narrow the search".to_owned(),
            false => format!("max=\"{all}\" shows more; path and glob narrow the search"),
        }
    })
}

/// Refuses a number above its maximum; showing less than requested would mislead.
fn at_most<N: PartialOrd + Display>(
    name: &str,
    found: Option<N>,
    most: N,
) -> Result<(), ToolError> {
    let Some(found) = found.filter(|found| *found > most) else {
        return Ok(());
    };
    let message = format!("expected {name} to be {most} at most, found {found}");
    Err(ToolError::new(ErrorCode::BadArguments, message)
        .with_hint(format!("give {name} a smaller number")))
}

fn scope(all: bool) -> Scope {
    if all { Scope::All } else { Scope::NotIgnored }
}

fn search_result(found: &SearchOutcome) -> SearchResult {
    SearchResult {
        total_matches: found.total_matches,
        omitted_matches: more_than_none(found.omitted_matches()),
        files_matched: found.files_matched,
        files_searched: found.files_searched,
        files_binary: more_than_none(found.files_binary),
        files_unreadable: more_than_none(found.files_unreadable),
        ..SearchResult::default()
    }
}

fn more_than_none(count: u64) -> Option<u64> {
    (count > 0).then_some(count)
}
