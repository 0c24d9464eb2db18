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
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_files::listing::Scope;
use karyi_files::root::Root;
use karyi_files::search::{self, Case, SearchOptions, SearchOutcome, Syntax};
use karyi_files::view::{self, LineRange, PathView, ViewOptions};
use karyi_vault::redact::Redactor;
use karyi_vault::session::Secrets;

mod shown;

use shown::{ignored_of_directory, listing_shown, text_shown};

/// The tool.
pub struct Read;

/// Arguments of `<read>`.
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
    /// Path of the file or directory; `job:ID` is the output of a job.
    pub src: Template,
    /// Lines: `10-40`, `10-`, `7`, or `-50` for the last 50.
    pub lines: Option<String>,
    /// Most bytes to show, in UTF-8; 262144 when absent.
    pub max_bytes: Option<u64>,
    /// List ignored files too.
    #[serde(default)]
    pub all: bool,
    /// Levels to list; 2 when absent.
    pub depth: Option<usize>,
}

/// One search through files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The text to look for.
    pub pattern: Template,
    /// Where to look, or `job:ID`; the cwd when absent.
    pub path: Option<Template>,
    /// Only files whose path matches, such as `*.rs`.
    pub glob: Option<Template>,
    /// The pattern is a regular expression.
    #[serde(default)]
    pub regex: bool,
    /// Case does not matter.
    #[serde(default)]
    pub ignore_case: bool,
    /// Search hidden and ignored files too.
    #[serde(default)]
    pub all: bool,
    /// Most matches to show; 200 when absent.
    pub max: Option<usize>,
    /// Lines to show around each match.
    #[serde(default)]
    pub context: usize,
}

/// Result of `<read>`.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// What is known of each file, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileShown>,
    /// What each search found, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<SearchShown>,
}

/// What is known of one file or directory.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct FileShown {
    /// Path as given.
    pub src: String,
    /// `text`, `directory`, or the name of a binary format; absent when it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// Size of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Width of a picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Height of a picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// Encoding of a text when it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<&'static str>,
    /// Number of the first line shown, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u64>,
    /// Lines of the whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
    /// Bytes of the wanted lines that are not shown, in UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    /// Wanted lines of which nothing is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_lines: Option<u64>,
    /// Entries of a directory that are not shown because there are too many or they lie too deep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_entries: Option<u64>,
    /// Entries of a directory that `.gitignore` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored_entries: Option<u64>,
    /// Whether bytes that no known encoding explains were replaced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_lossy: bool,
    /// What to do next when the wanted lines are not there.
    #[serde(rename = "hint", skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Why it could not be read.
    #[serde(flatten)]
    pub problem: Option<Problem>,
    /// The text, or the entries of the directory, one a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// What one search found.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SearchShown {
    /// The pattern as given.
    pub pattern: String,
    /// The job whose output was searched, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Matching lines, shown or not.
    pub total_matches: u64,
    /// Matching lines that are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_matches: Option<u64>,
    /// Files with a match.
    pub files_matched: u64,
    /// Text files looked at.
    pub files_searched: u64,
    /// Binary files, which are not searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_binary: Option<u64>,
    /// Files and directories that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_unreadable: Option<u64>,
    /// What to do next when no file was searched.
    #[serde(rename = "hint", skip_serializing_if = "Option::is_none")]
    pub advice: Option<&'static str>,
    /// Why it could not be done.
    #[serde(flatten)]
    pub problem: Option<Problem>,
    /// `path:line:text` for matches and `path-line-text` for lines around them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// Why one item failed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Problem {
    /// The error code.
    pub code: &'static str,
    /// What was found.
    pub message: String,
    /// What to do next.
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
            .gitignore names is left out. Binary files are only named.",
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
    const SERVICE: Service = Service::LOCAL.hinting(Hints::LOOKS);

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
        let place = Place {
            root: Arc::clone(&context.root),
            everywhere: Root::unconfined(),
            cwd: context.sessions.cwd(),
            job_files: context.job_files.clone(),
            secrets: context.secrets.clone(),
            cancelled: Arc::clone(&context.cancelled),
        };
        context::blocking(move || place.read(&args).or_nothing()).await
    }
}

impl Answer<Output> {
    /// Turns an answer that is about one item alone, which failed, into its error.
    fn or_nothing(self) -> Result<Self, ToolError> {
        let items = self.output.files.len() + self.output.searches.len();
        match self.problem {
            Some(error) if items == 1 => Err(error),
            _ => Ok(self),
        }
    }
}

/// Where paths start and where they may lead.
struct Place {
    root: Arc<Root>,
    /// For what jobs printed, which lies outside of the root.
    everywhere: Root,
    cwd: PathBuf,
    job_files: JobFiles,
    /// What is masked in the lines that a search shows.
    secrets: Secrets,
    /// Set when nobody waits for the result any more.
    cancelled: Arc<AtomicBool>,
}

impl Place {
    /// Reads everything that can be read; what cannot is told beside it.
    fn read(&self, args: &Args) -> Answer<Output> {
        let mut output = Output::default();
        let mut problem = None;
        for file in &args.files {
            let shown = self.file(file).unwrap_or_else(|error| {
                let error = error.of_tool(Read::SPEC.name);
                let shown = FileShown {
                    problem: Some((&error).into()),
                    ..FileShown::default()
                };
                problem.get_or_insert(error);
                shown
            });
            output.files.push(FileShown {
                src: file.src.source().to_owned(),
                ..shown
            });
        }
        for search in &args.searches {
            let shown = self.search(search).unwrap_or_else(|error| {
                let error = error.of_tool(Read::SPEC.name);
                let shown = SearchShown {
                    problem: Some((&error).into()),
                    ..SearchShown::default()
                };
                problem.get_or_insert(error);
                shown
            });
            output.searches.push(SearchShown {
                pattern: search.pattern.source().to_owned(),
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

    fn file(&self, file: &File) -> Result<FileShown, ToolError> {
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
            max_bytes: file.max_bytes.unwrap_or(limits::READ_FILE_BYTES),
            scope: scope(file.all),
            depth: file.depth.unwrap_or(limits::LISTING_DEPTH),
        };
        let (root, real) = self.find(path)?;
        Ok(
            match view::view(root, Path::new(path), &real, &options, &self.cancelled)? {
                PathView::Text(text) => text_shown(text, file.lines.is_some(), options.lines),
                PathView::Directory(listing) => FileShown {
                    advice: ignored_of_directory(file),
                    ..listing_shown(&listing)
                },
                PathView::Binary { kind, bytes, size } => FileShown {
                    kind: Some(kind),
                    bytes: Some(bytes),
                    width: size.map(|(width, _)| width),
                    height: size.map(|(_, height)| height),
                    ..FileShown::default()
                },
            },
        )
    }

    /// Finds what a path leads to, and the root under which it is opened.
    fn find(&self, path: &str) -> Result<(&Root, PathBuf), ToolError> {
        Ok(match path.strip_prefix(JOB_PREFIX) {
            Some(id) => (&self.everywhere, self.job_files.find(id)?),
            None => (&self.root, self.root.resolve(&self.cwd, Path::new(path))?),
        })
    }

    fn search(&self, search: &Search) -> Result<SearchShown, ToolError> {
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
            scope: scope(search.all),
            cancelled: Some(&self.cancelled),
        };
        let mut found = search::search(root, Path::new(path), &real, &options)?;
        let is_job = path.starts_with(JOB_PREFIX);
        if !is_job {
            mask_over_lines(&self.secrets, &mut found);
        }
        Ok(SearchShown {
            path: is_job.then(|| path.to_owned()),
            advice: nothing_searched(&found, options.glob.is_some()),
            ..search_shown(&found)
        })
    }
}

/// Masks values that go on over the end of a line before the path and the number of each stand between.
fn mask_over_lines(secrets: &Secrets, found: &mut SearchOutcome) {
    if secrets.generation() == 0 || found.files.is_empty() {
        return;
    }
    let redactor = Redactor::new(secrets);
    for file in &mut found.files {
        file.replace(&|text| redactor.masked_across_lines(text));
    }
}

/// Says why no file was searched, when that is known.
fn nothing_searched(found: &SearchOutcome, has_glob: bool) -> Option<&'static str> {
    match (found.files_binary, found.files_unreadable) {
        _ if found.files_searched > 0 => None,
        (0, 0) if has_glob => Some(
            "the glob matches no file that is searched; write one like *.rs or src/**, and \
             all=\"true\" for hidden and ignored files",
        ),
        (0, _) => None,
        _ => Some(
            "nothing was searched: what is there is binary; <file> in <read> names its kind, and a \
             command such as grep -a searches it",
        ),
    }
}

/// Refuses a number that is too large, rather than show less than was asked for.
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

fn search_shown(found: &SearchOutcome) -> SearchShown {
    SearchShown {
        total_matches: found.total_matches,
        omitted_matches: more_than_none(found.omitted_matches()),
        files_matched: found.files_matched,
        files_searched: found.files_searched,
        files_binary: more_than_none(found.files_binary),
        files_unreadable: more_than_none(found.files_unreadable),
        output: Some(found.text()),
        ..SearchShown::default()
    }
}

fn more_than_none(count: u64) -> Option<u64> {
    (count > 0).then_some(count)
}
