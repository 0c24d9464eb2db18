//! `<edit>`: finds and replaces text in files, all of them or none.
//!
//! All files are matched in memory first and written only when every find matches, so a failed call
//! changes nothing.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::effect::Access;
use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{
    Answer, ArgumentSchema, Context, CountedKind, CountedTexts, Effect, Service, Tool, Use,
};
use crate::tool::{context, decode, normalise};
use karyi_core::call::{RawBody, RawElement, RawText};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::outcome::Status;
use karyi_core::secret::{ByteSet, Template};
use karyi_files::edit::{
    self, EditKind, EditOptions, EditOutcome, EditPair, FileEdit, FileOutcome, Masking, Scope,
    WrittenPair,
};
use karyi_files::git_index;
use karyi_files::matching::MatchMode;
use karyi_files::recover::FileRecovery;
use karyi_vault::redact::{Redacted, Redactor};

mod leaked_closers;

use leaked_closers::leaked_closers;

/// The tool.
pub struct Edit;

/// Arguments of `edit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The files to change.
    #[schemars(extend("x-karyi" = {"element": "file"}))]
    pub files: Vec<File>,
}

/// One file to change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Path of the file.
    pub src: Template,
    /// Rename to this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Template>,
    /// Delete the file.
    #[serde(default)]
    pub delete: bool,
    /// Allow breaking hard links.
    #[serde(default)]
    pub break_links: bool,
    /// Texts to find and their replacements, in order.
    #[serde(default)]
    #[schemars(extend("x-karyi" = {"group": ["find", "replace"]}))]
    pub edits: Vec<Pair>,
    /// Instead: the whole text, of a new file too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-karyi" = {"child": "text"}))]
    pub content: Option<Template>,
    /// Source form of its texts.
    #[serde(skip)]
    pub source_texts: SourceTexts,
}

/// One text to find and its replacement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The text to find, as in the file.
    #[schemars(extend("x-karyi" = {"leaf": "text"}))]
    pub find: Template,
    /// The replacement.
    #[schemars(extend("x-karyi" = {"leaf": "text"}))]
    pub replace: Template,
    /// Replace every match.
    #[serde(default)]
    #[schemars(extend("x-karyi" = {"attribute_of": "find"}))]
    pub all: bool,
    /// Source form of the pair, before its escapes were decoded.
    #[serde(skip)]
    pub source_texts: SourceTexts,
}

/// Source form of a pair or a file. It does not affect equality: two forms of one call are equal.
#[derive(Debug, Clone, Default)]
pub struct SourceTexts {
    /// Source form of the text to find, when decoding changed it.
    find: Option<Template>,
    /// Source form of the replacement, when decoding changed one of the texts.
    replace: Option<Template>,
    /// True when the text to find stands in lines of its own.
    is_framed: bool,
    /// True when a text of the file mixes escaped and raw markup, and so was taken as written.
    is_mixed: bool,
    /// True when the content of the file was decoded.
    is_decoded: bool,
}

impl PartialEq for SourceTexts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Result of `edit`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Outcome for each file, in order.
    pub files: Vec<FileResult>,
    /// `unavailable` when the change cannot be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<&'static str>,
    /// Files that an interrupted run left half changed, with their recovery.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovered: Vec<RecoveredFile>,
    /// Damage in the journal of earlier changes, attributes that could not be preserved, and temporary files that
    /// could not be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A file that an interrupted run left half changed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RecoveredFile {
    /// Its path.
    #[schemars(with = "String")]
    pub src: Redacted,
    /// `completed`, `taken_back`, `left_alone`, or `waiting` for a later attempt.
    pub change: &'static str,
    /// Reason why it was not fully recovered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// Outcome for one file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileResult {
    /// Path as given.
    #[schemars(with = "String")]
    pub src: Redacted,
    /// `edited`, `created`, `deleted`, `renamed`, `already_applied` or `unchanged`.
    pub change: &'static str,
    /// New path as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub to: Option<Redacted>,
    /// Number of matches replaced.
    pub replacements: usize,
    /// Line of the first replacement, or of the existing text with `already_applied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_line: Option<usize>,
    /// First and last changed line of the new text, or of the existing text with `already_applied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<String>,
    /// `verbatim` when a text was found only with its escapes not decoded; its replacement was then used
    /// verbatim, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<&'static str>,
    /// True when a replacement was decoded and no text to find could tell whether that was meant.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub decoded: bool,
    /// True when a text mixed escaped and raw markup and was taken as written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mixed_escapes: bool,
    /// `trailing` when a match differed in blanks at the ends of lines.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub match_: Option<&'static str>,
    /// Encoding of the file, unless it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<&'static str>,
    /// Kind of a sensitive file, which deserves a second look: `environment`, `credentials`, `key`,
    /// `database`, `state` or `git`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<&'static str>,
    /// `git` when a secret was written to a file that git tracks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracked: Option<&'static str>,
    /// Number of changed lines that the diff omits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_omitted_lines: Option<usize>,
    /// Unified diff of the change.
    #[serde(skip_serializing_if = "Redacted::is_empty")]
    #[schemars(with = "String")]
    pub diff: Redacted,
}

impl Tool for Edit {
    type Args = Args;
    type Output = Output;

    const COUNTED: &'static [CountedTexts] = &[CountedTexts {
        list: "files",
        text: "diff",
        kind: CountedKind::Diff,
    }];

    const SPEC: Spec = Spec {
        name: "edit",
        summary: "Change, create, delete or rename files together",
        details: "Each find must match exactly once, pairs apply in order, line endings and encoding are \
            kept. If one pair does not match, nothing is changed and the hint shows the closest \
            passage. Line breaks after a start tag and before an end tag are layout; a new file so \
            written ends with one, and an empty replacement of whole lines removes theirs.",
        also_called: &[
            "write",
            "patch",
            "replace",
            "str_replace",
            "str_replace_editor",
            "edit_file",
            "write_file",
            "create_file",
            "write_to_file",
            "replace_in_file",
            "apply_patch",
            "apply_diff",
        ],
        heading: "> edit",
        starts_job: false,
        family: Family::Core,
        form: Form::Attributes,
        examples: &[
            Example {
                title: "Change two files at once",
                before: "<command>cd \"$(mktemp -d)\"; echo 'port = 80' > a.conf; echo 'Alpha' > README.md</command>",
                xml: "<edit>\n  <file src=\"a.conf\">\n    <find>port = 80</find>\n    <replace>port = 8080</replace>\n  \
                    </file>\n  <file src=\"README.md\"><find>Alpha</find><replace>Beta</replace></file>\n</edit>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A text that is not there",
                before: "<command>cd \"$(mktemp -d)\"; echo 'port = 80' > a.conf</command>",
                xml: "<edit><file src=\"a.conf\"><find>port=80</find><replace>port=8080</replace></file></edit>",
                status: Status::Error,
                code: Some("find_not_found"),
            },
        ],
    };

    fn note_sources(args: &mut Args, element: &RawElement) {
        for (file, element) in args.files.iter_mut().zip(children(element)) {
            let leaves = children(element);
            if let (Some(content), Some(text)) = (&mut file.content, leaves.first().and_then(text))
            {
                end_last_line(content, text);
                file.source_texts.is_decoded = text.source.is_some() && !text.verbatim;
            }
            // Raw text with escapes cannot be decoded, so the escapes of the other texts are meant, too.
            let is_mixed = leaves
                .iter()
                .filter_map(text)
                .any(|text| text.source.is_none() && !text.verbatim && has_escape(&text.text));
            file.source_texts.is_mixed = is_mixed;
            for (pair, leaves) in file.edits.iter_mut().zip(leaves.chunks(2)) {
                note_pair(pair, leaves);
                let texts = &mut pair.source_texts;
                if is_mixed && texts.find.is_none() {
                    pair.replace = texts.replace.take().unwrap_or_else(|| pair.replace.clone());
                }
            }
        }
    }

    fn check(args: &Args) -> Result<(), ToolError> {
        let is_torn =
            |file: &&File| file.content.is_some() && (file.delete || !file.edits.is_empty());
        match args.files.iter().find(is_torn) {
            None => Ok(()),
            Some(file) => {
                let message = format!(
                    "{}: content is combined with find or delete",
                    file.src.source()
                );
                let error = ToolError::new(ErrorCode::BadArguments, message);
                Err(error.with_hint(
                    "write the whole file in <content>, or change parts of it with finds",
                ))
            }
        }
    }

    const SERVICE: Service = Service::LOCAL.with_hints(Hints::DESTRUCTIVE);

    fn effect(args: &Args) -> Effect {
        let paths = args
            .files
            .iter()
            .flat_map(|file| std::iter::once(&file.src).chain(&file.to));
        Effect::Files(paths.map(Access::write).collect())
    }

    fn title(args: &Args) -> String {
        let names: Vec<&str> = args.files.iter().map(|file| file.src.source()).collect();
        names.join(", ")
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        for file in &mut args.files {
            visit(Use::Literal, &mut file.src);
            if let Some(to) = &mut file.to {
                visit(Use::Literal, to);
            }
            for pair in &mut file.edits {
                visit(Use::Literal, &mut pair.find);
                visit(Use::Written, &mut pair.replace);
                let texts = &mut pair.source_texts;
                texts
                    .find
                    .iter_mut()
                    .for_each(|text| visit(Use::Literal, text));
                texts
                    .replace
                    .iter_mut()
                    .for_each(|text| visit(Use::Written, text));
            }
            if let Some(content) = &mut file.content {
                visit(Use::Written, content);
            }
        }
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        perform(args, context, edit::apply).await
    }
}

/// Returns what the call would do to the files as they are now, and changes nothing.
///
/// # Errors
/// Those of the call.
pub async fn preview(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
    perform(args, context, |edits, options| {
        Ok(EditOutcome {
            files: edit::preview(edits, options)?,
            ..EditOutcome::default()
        })
    })
    .await
}

/// Prepares the edits, does something with them and reports it.
async fn perform(
    args: Args,
    context: &Context,
    act: fn(&[FileEdit], EditOptions<'_>) -> Result<EditOutcome, ToolError>,
) -> Result<Answer<Output>, ToolError> {
    let edits: Vec<FileEdit> = args.files.iter().map(file_edit).collect();
    for file in &args.files {
        for path in std::iter::once(&file.src).chain(&file.to) {
            context.directory_for(path.text())?;
        }
    }
    let (root, cwd) = (Arc::clone(&context.root), context.sessions.cwd());
    let (recorder, redactor) = (context.recorder.clone(), context.redactor.clone());
    let diffs = context.shown.diffs;
    let holds_secret: Vec<bool> = args.files.iter().map(writes_secret).collect();
    let work = move || {
        let mask = |text: &str| redactor.redact_str(text).into_owned();
        let options = EditOptions {
            diffs,
            cwd: &cwd,
            root: &root,
            recorder: &recorder,
            is_private: &|bytes| redactor.is_in(bytes),
            masking: match redactor.is_idle() {
                true => Masking::Part(&mask),
                false => Masking::Whole(&mask),
            },
        };
        let done = act(&edits, options)?;
        let real = |edit: &FileEdit| root.resolve(&cwd, edit.to.as_ref().unwrap_or(&edit.path));
        let is_tracked = |edit| real(edit).is_ok_and(|path| git_index::is_tracked(&path));
        let pairs = edits.iter().zip(holds_secret);
        let tracked: Vec<bool> = pairs.map(|(edit, is)| is && is_tracked(edit)).collect();
        Ok((done, tracked))
    };
    let is_mixed = args.files.iter().any(|file| file.source_texts.is_mixed);
    let done = context::blocking(work).await;
    let (done, tracked) = done.map_err(|error| match is_mixed {
        true => with_mixed_hint(error),
        false => error,
    })?;
    let leaks: Vec<String> = args.files.iter().filter_map(leaked_closers).collect();
    let warning = warning(&done, leaks);
    let files = args.files.iter().zip(done.files).zip(tracked);
    Ok(Answer::ok(Output {
        files: files
            .map(|((file, edited), is_tracked)| report(file, edited, is_tracked, &context.redactor))
            .collect(),
        undo: done.no_undo.is_some().then_some("unavailable"),
        recovered: done
            .recovered
            .into_iter()
            .map(|file| recovered(file, &context.redactor))
            .collect(),
        warning,
    }))
}

/// Adds to an error that a text was taken as written.
fn with_mixed_hint(error: ToolError) -> ToolError {
    let hint = format!(
        "{}; a text mixes escaped and raw markup and was taken as written: escape all of it, or use CDATA",
        error.hint
    );
    error.with_hint(hint)
}

fn warning(done: &EditOutcome, leaks: Vec<String>) -> Option<String> {
    let damage = done.damage.as_ref().map(|damage| {
        format!(
            "the journal of earlier changes is damaged: {damage}; those changes cannot be undone. \
             This change is recorded; tell the user to run `karyi history` for details"
        )
    });
    let lost = |(path, names): &(PathBuf, String)| {
        format!("{}: could not be kept: {names}", path.display())
    };
    let no_undo = done.no_undo.as_ref();
    let no_undo = no_undo.map(|why| format!("this change cannot be undone: {why}"));
    let all = damage.into_iter().chain(done.losses.iter().map(lost));
    let all = all.chain(no_undo).chain(done.leftovers.iter().cloned());
    let all = all.chain(done.pruned.as_ref().map(ToString::to_string));
    let all: Vec<String> = all.chain(leaks).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn children(element: &RawElement) -> &[RawElement] {
    match &element.body {
        RawBody::Elements(children) => children,
        RawBody::Empty | RawBody::Text(_) => &[],
    }
}

/// Records the source form of a pair.
fn note_pair(pair: &mut Pair, leaves: &[RawElement]) {
    let find = leaves.first().and_then(text);
    pair.source_texts.is_framed = find.is_some_and(|find| normalise::framed(find).1);
    let Some(replace) = leaves.last().and_then(text) else {
        return;
    };
    if pair.find.source().is_empty() {
        end_last_line(&mut pair.replace, replace);
    }
    let mut texts = find.into_iter().chain([replace]);
    if texts.any(|text| text.source.is_some() && !has_same_names(text)) {
        return;
    }
    let source = find.and_then(decode::as_written);
    // CDATA is literal in any file.
    let written = decode::as_written(replace).filter(|_| source.is_some() || !replace.verbatim);
    let written = written.or(source.map(|_| pair.replace.source()));
    pair.source_texts.replace = written.map(|text| Template::new(&*end_like(text, &pair.replace)));
    pair.source_texts.find = source.map(Template::new);
}

/// Returns a source text with the line break that was added to the text itself.
fn end_like<'a>(source: &'a str, text: &Template) -> Cow<'a, str> {
    match text.source().ends_with('\n') && !source.ends_with('\n') {
        true => format!("{source}\n").into(),
        false => source.into(),
    }
}

/// Ends the last line of the content of a file that is the child of an element.
pub(in crate::tools) fn end_content(content: &mut Template, element: &RawElement) {
    if let Some(text) = children(element).first().and_then(text) {
        end_last_line(content, text);
    }
}

/// Ends the last line of a file made of framed text.
fn end_last_line(text: &mut Template, written: &RawText) {
    let source = text.source();
    if normalise::framed(written).1 && !source.is_empty() && !source.ends_with('\n') {
        *text = Template::new(format!("{source}\n"));
    }
}

/// Returns true when a text has an escape of XML.
fn has_escape(text: &str) -> bool {
    let names = ["&lt;", "&gt;", "&amp;", "&quot;", "&apos;", "&#"];
    names.iter().any(|name| text.contains(name))
}

fn text(leaf: &RawElement) -> Option<&RawText> {
    match &leaf.body {
        RawBody::Text(text) => Some(text),
        RawBody::Empty | RawBody::Elements(_) => None,
    }
}

/// Returns true when the source form and the decoded text have the same placeholders. A text whose
/// placeholders result from escapes has only one reading.
fn has_same_names(text: &RawText) -> bool {
    let names = |text: &str| Template::new(text).names().ok();
    let source_texts = text.source.as_deref().and_then(names);
    source_texts.is_some() && source_texts == names(&text.text)
}

fn file_edit(file: &File) -> FileEdit {
    let pair = |pair: &Pair| EditPair {
        find: pair.find.text().to_owned(),
        replace: pair.replace.text().to_owned(),
        all: pair.all,
        written: written(pair),
        scope: match pair.source_texts.is_framed {
            true => Scope::Lines,
            false => Scope::Text,
        },
        has_secret: pair.find.has_secret() || pair.replace.has_secret(),
        values: values(pair),
    };
    let whole = |content: &Template| EditPair {
        scope: Scope::File,
        has_secret: content.has_secret(),
        values: content.values(),
        ..EditPair::new("", content.text())
    };
    FileEdit {
        path: file.src.text().into(),
        pairs: file
            .edits
            .iter()
            .map(pair)
            .chain(file.content.iter().map(whole))
            .collect(),
        to: file.to.as_ref().map(|to| to.text().into()),
        delete: file.delete,
        breaks_links: file.break_links,
    }
}

fn written(pair: &Pair) -> Option<WrittenPair> {
    let texts = &pair.source_texts;
    Some(WrittenPair {
        find: texts.find.as_ref().unwrap_or(&pair.find).text().to_owned(),
        replace: texts.replace.as_ref()?.text().to_owned(),
    })
}

/// Returns the bytes of the values in a replacement, in either reading.
fn values(pair: &Pair) -> ByteSet {
    let mut values = pair.replace.values();
    if let Some(replace) = &pair.source_texts.replace {
        values.join(replace.values());
    }
    values
}

/// Returns true when a secret is written to a file.
fn writes_secret(file: &File) -> bool {
    let mut texts = file
        .edits
        .iter()
        .map(|pair| &pair.replace)
        .chain(&file.content);
    texts.any(Template::has_secret)
}

fn report(file: &File, edited: FileOutcome, is_tracked: bool, redactor: &Redactor) -> FileResult {
    let found_as = |how| edited.found_as == Some(how);
    FileResult {
        src: redactor.redact_whole_again(file.src.source()),
        change: match edited.kind {
            EditKind::Unchanged => "unchanged",
            EditKind::AlreadyApplied => "already_applied",
            EditKind::Edited => "edited",
            EditKind::Created => "created",
            EditKind::Deleted => "deleted",
            EditKind::Renamed => "renamed",
        },
        to: file
            .to
            .as_ref()
            .map(|to| redactor.redact_whole_again(to.source())),
        replacements: edited.replacements,
        first_line: edited.first_line,
        lines: edited
            .lines
            .or(edited
                .first_line
                .map(|line| (line, line))
                .filter(|_| edited.kind != EditKind::Created))
            .filter(|_| edited.kind != EditKind::Deleted)
            .map(|(first, last)| match first == last {
                true => first.to_string(),
                false => format!("{first}-{last}"),
            }),
        fallback: found_as(MatchMode::Written).then_some("verbatim"),
        decoded: edited.is_decoded || file.source_texts.is_decoded,
        mixed_escapes: file.source_texts.is_mixed,
        match_: found_as(MatchMode::Trailing).then_some("trailing"),
        encoding: edited.encoding,
        risk: edited.risk,
        tracked: is_tracked.then_some("git"),
        diff_omitted_lines: Some(edited.diff.omitted).filter(|lines| *lines > 0),
        // Its texts were masked before they were compared. Lines that stood apart may be neighbours in it.
        diff: redactor.redact_whole_again(&edited.diff.text),
    }
}

fn recovered(file: FileRecovery, redactor: &Redactor) -> RecoveredFile {
    RecoveredFile {
        src: redactor.redact_whole_again(&file.path.display().to_string()),
        change: file.outcome.as_str(),
        warning: file.why,
    }
}
