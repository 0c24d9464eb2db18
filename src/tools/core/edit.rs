//! `<edit>`: finds and replaces text in files, all of them or none.
//!
//! Every pair of every file is matched in memory first; only when all match are the files written,
//! so a call that fails has changed nothing.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ToolError;
use crate::files::edit::{self, EditOptions, EditPair, FileEdit, FileEdited};
use crate::outcome::Status;
use crate::secret::Template;
use crate::tool::context;
use crate::tool::effect::Access;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, Context, Effect, Tool, Use};

/// The tool.
pub struct Edit;

/// Arguments of `<edit>`.
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
    /// Texts to find and what to put in their place, in order.
    #[schemars(extend("x-karyi" = {"group": ["find", "replace"]}))]
    pub edits: Vec<Pair>,
}

/// One text to find and its replacement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The text to find, exactly as it stands in the file; empty to create the file.
    #[schemars(extend("x-karyi" = {"leaf": "text"}))]
    pub find: Template,
    /// What to put in its place.
    #[schemars(extend("x-karyi" = {"leaf": "text"}))]
    pub replace: Template,
    /// Replace every match; without it the text must be there exactly once.
    #[serde(default)]
    #[schemars(extend("x-karyi" = {"attribute_of": "find"}))]
    pub all: bool,
}

/// Result of `<edit>`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// What became of each file, in order.
    pub files: Vec<Edited>,
}

/// What became of one file.
#[derive(Debug, Serialize)]
pub struct Edited {
    /// Path as given.
    pub src: String,
    /// `edited`, `created`, `already_applied` or `unchanged`.
    pub change: &'static str,
    /// Matches replaced.
    pub replacements: usize,
    /// Line of the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_line: Option<usize>,
}

impl Tool for Edit {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "edit",
        summary: "Replace text in files, all of them or none",
        details: "Each find must match exactly once, pairs apply in order, line endings are kept. \
            When one pair of one file does not match, no file is changed and the hint shows the \
            closest passage. An empty find creates a file.",
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

    fn effect(args: &Args) -> Effect {
        Effect::Files(
            args.files
                .iter()
                .map(|file| Access::write(&file.src))
                .collect(),
        )
    }

    fn title(args: &Args) -> String {
        let names: Vec<&str> = args.files.iter().map(|file| file.src.source()).collect();
        names.join(", ")
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        for file in &mut args.files {
            visit(Use::Literal, &mut file.src);
            for pair in &mut file.edits {
                visit(Use::Literal, &mut pair.find);
                visit(Use::Literal, &mut pair.replace);
            }
        }
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let edits: Vec<FileEdit> = args.files.iter().map(file_edit).collect();
        let (root, cwd) = (Arc::clone(&context.root), context.session.cwd());
        let work = move || {
            edit::apply(
                &edits,
                EditOptions {
                    cwd: &cwd,
                    root: &root,
                },
            )
        };
        let edited = context::blocking(work).await?;
        let files = args
            .files
            .iter()
            .zip(edited)
            .map(|(file, edited)| report(file, &edited))
            .collect();
        Ok(Answer::ok(Output { files }))
    }
}

fn file_edit(file: &File) -> FileEdit {
    let pair = |pair: &Pair| EditPair {
        find: pair.find.text().to_owned(),
        replace: pair.replace.text().to_owned(),
        all: pair.all,
        has_secret: pair.find.has_secret() || pair.replace.has_secret(),
    };
    FileEdit {
        path: file.src.text().into(),
        pairs: file.edits.iter().map(pair).collect(),
    }
}

fn report(file: &File, edited: &FileEdited) -> Edited {
    let change = if edited.created {
        "created"
    } else if edited.already_applied {
        "already_applied"
    } else if edited.changed {
        "edited"
    } else {
        "unchanged"
    };
    Edited {
        src: file.src.source().to_owned(),
        change,
        replacements: edited.replacements,
        first_line: edited.first_line,
    }
}
