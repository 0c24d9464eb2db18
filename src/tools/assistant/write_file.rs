//! `write_file`: writes a file in one of the assistant's two directories.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::context;
use crate::tool::effect::PathBase;
use crate::tool::own_directories::OwnPath;
use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use crate::tools::core::edit;
use karyi_core::call::RawElement;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_files::change::Change;
use karyi_files::encoding::Encoding;
use karyi_files::root::{Root, canonical_for_plan};
use karyi_files::transaction::Transaction;
use karyi_vault::redact::Redacted;

/// The tool.
pub struct WriteFile;

/// Arguments of `write_file`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// File below `file_cache_dir` (the default) or `file_state_dir`.
    #[schemars(extend("x-karyi" = {"missing": "missing required param: path"}))]
    pub path: Template,
    /// `overwrite` (the default) or `append`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The text.
    #[schemars(extend("x-karyi" = {"child": "text"}))]
    pub content: Template,
}

/// Result of `write_file`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Absolute path of the file.
    #[schemars(with = "String")]
    pub path: Redacted,
    /// `overwrite` or `append`.
    pub mode: &'static str,
    /// Bytes of the content.
    pub bytes: u64,
    /// Bytes of the file.
    pub total_bytes: u64,
    /// `unavailable` when the change cannot be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<&'static str>,
}

/// Way of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteMode {
    Overwrite,
    Append,
}

impl WriteMode {
    fn parse(text: Option<&str>) -> Result<Self, ToolError> {
        let word = text.map(|text| text.trim().to_lowercase());
        match word.as_deref() {
            None | Some("" | "overwrite") => Ok(Self::Overwrite),
            Some("append") => Ok(Self::Append),
            Some(other) => {
                let shown: String = other.chars().take(40).collect();
                let message = format!("invalid mode: {shown} (expected overwrite|append)");
                Err(ToolError::new(ErrorCode::BadArguments, message))
            }
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::Append => "append",
        }
    }
}

impl Tool for WriteFile {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "write_file",
        summary: "Write a text file of your own",
        details: "Directories above it are made.",
        also_called: &[],
        heading: "> write_file",
        starts_job: false,
        family: Family::Assistant,
        form: Form::Attributes,
        examples: &[
            Example {
                title: "A note",
                before: "",
                xml: "<write_file path=\"file_state_dir/notes.md\" mode=\"append\"><content>\n- Buy bread\n</content></write_file>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A file outside of the two directories",
                before: "",
                xml: "<write_file path=\"/etc/motd\"><content>Hello</content></write_file>",
                status: Status::Error,
                code: Some("outside_root"),
            },
        ],
    };
    const POLICY_NAME: &'static str = "edit";
    const SERVICE: Service = Service::LOCAL.with_hints(Hints::DESTRUCTIVE);

    fn note_sources(args: &mut Args, element: &RawElement) {
        edit::end_content(&mut args.content, element);
    }

    fn effect(args: &Args) -> Effect {
        Effect::Files(vec![OwnPath::access(&args.path, PathBase::Cache, true)])
    }

    fn title(args: &Args) -> String {
        args.path.source().to_owned()
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        visit(Use::Literal, &mut args.path);
        visit(Use::Written, &mut args.content);
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let context = context.clone();
        context::blocking(move || write(&args, &context).map(Answer::ok)).await
    }
}

/// Writes the file.
fn write(args: &Args, context: &Context) -> Result<Output, ToolError> {
    let content = args.content.text();
    let (bytes, most) = (content.len() as u64, context.settings.write_file.max_bytes);
    let place = Place::find(
        args.path.text(),
        &[PathBase::Cache, PathBase::State],
        context,
    )?;
    let mode = WriteMode::parse(args.mode.as_deref())?;
    if bytes > most {
        let message = format!("content too large ({bytes} bytes > {most} max)");
        return Err(ToolError::new(ErrorCode::FileTooLarge, message)
            .with_hint("write it in parts, with mode=\"append\""));
    }
    let (_root, real) = place.open(context)?;
    let shown = Path::new(args.path.text());
    let transaction = Transaction::begin(&context.recorder, &[&real])?;
    let change = Change::read(shown, &real)?;
    let new = match mode {
        WriteMode::Overwrite => content.as_bytes().to_vec(),
        WriteMode::Append => appended(change.bytes().unwrap_or_default(), content, shown)?,
    };
    let total_bytes = new.len() as u64;
    let redactor = &context.redactor;
    let is_private = |bytes: &[u8]| redactor.is_in(bytes);
    let mut change = change.with_content(new);
    change.restrict_if_private(&is_private);
    let receipt = transaction.commit(&[change], &is_private)?;
    Ok(Output {
        path: redactor.redact_whole_again(&real.to_string_lossy()),
        mode: mode.as_str(),
        bytes,
        total_bytes,
        undo: receipt.no_undo.is_some().then_some("unavailable"),
    })
}

/// Returns the content of a file with a text at its end, in the encoding of the file.
fn appended(old: &[u8], text: &str, shown: &Path) -> Result<Vec<u8>, ToolError> {
    if let Ok((encoding, before)) = Encoding::read(old)
        && encoding.name().is_some()
    {
        return encoding.write(format!("{before}{text}")).map_err(|lost| {
            let (shown, name) = (shown.display(), encoding.name().unwrap_or_default());
            let message = format!("{shown}: its encoding {name} has no {lost:?}");
            ToolError::new(ErrorCode::NotEncodable, message)
        });
    }
    Ok([old, text.as_bytes()].concat())
}

/// Directory of the assistant and a path below it, before anything is made.
pub(super) struct Place {
    base: PathBase,
    path: PathBuf,
    /// The path as it was written.
    pub(super) written: String,
}

impl Place {
    /// Finds the directory that a path names, among those that are permitted.
    ///
    /// # Errors
    /// `outside_root` when it is in none of them.
    pub(super) fn find(
        written: &str,
        permitted: &[PathBase],
        context: &Context,
    ) -> Result<Self, ToolError> {
        let directories = &context.settings.directories;
        let path = OwnPath::parse(written, PathBase::Cache)?;
        let given = directories.expand_home(path.rest);
        let is_below = |base: &PathBase| {
            let directory = canonical_for_plan(directories.place(*base));
            let real = canonical_for_plan(&directory.join(&given));
            real != directory && real.starts_with(&directory)
        };
        let bases: &[PathBase] = match given.is_absolute() {
            true => permitted,
            false => &[path.base],
        };
        let mut bases = bases
            .iter()
            .copied()
            .filter(|base| permitted.contains(base));
        let Some(base) = bases.find(is_below) else {
            return Err(outside(written, context));
        };
        Ok(Self {
            base,
            path: given,
            written: written.to_owned(),
        })
    }

    /// Opens the directory, which is made if need be, and resolves the path in it.
    ///
    /// # Errors
    /// The directory cannot be made, or a link leads out of it meanwhile.
    pub(super) fn open(&self, context: &Context) -> Result<(Root, PathBuf), ToolError> {
        let directories = &context.settings.directories;
        let root = directories.open_to_write(self.base)?;
        let directory = directories.place(self.base);
        let real = root.resolve_to_change(directory, &self.path);
        let real = real.map_err(|error| match error.code {
            ErrorCode::OutsideRoot => outside(&self.written, context),
            _ => error,
        })?;
        Ok((root, real))
    }
}

fn outside(written: &str, context: &Context) -> ToolError {
    let directories = &context.settings.directories;
    let message = format!(
        "refusing to write outside allowed base dirs (file_cache_dir={} file_state_dir={} path={written})",
        directories.cache.display(),
        directories.state.display()
    );
    ToolError::new(ErrorCode::OutsideRoot, message).with_hint(
        "write below file_cache_dir/ or file_state_dir/; other files are changed with <edit>",
    )
}
