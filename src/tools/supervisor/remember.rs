//! `<remember>`: keeps a fact in memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use crate::tools::supervisor::role_check::as_role;
use karyi_core::error::ToolError;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_tasks::memory::{self, MemoryKind};

/// The tool.
pub struct Remember;

/// Arguments of `remember`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Fact to keep.
    pub content: Template,
    /// True for what always holds; else it is a note of today.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_term: Option<bool>,
}

/// Result of `remember`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// File in the state directory.
    pub path: String,
}

impl Tool for Remember {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "remember",
        summary: "Keep a fact in memory",
        details: "Long-term facts go into memory.md, others into a note of the day. Neither is ever overwritten.",
        also_called: &[],
        heading: "remember",
        starts_job: false,
        family: Family::Supervisor,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "What always holds",
                before: "",
                xml: "<remember long_term=\"true\"><content>The user prefers pnpm.</content></remember>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "Nothing to keep",
                before: "",
                xml: "<remember><content> </content></remember>",
                status: Status::Error,
                code: Some("bad_arguments"),
            },
        ],
    };
    const SERVICE: Service = Service::LOCAL.with_hints(Hints::ADDITIVE);

    fn effect(_: &Args) -> Effect {
        Effect::Outside {
            is_write: true,
            files: Vec::new(),
        }
    }

    fn title(args: &Args) -> String {
        args.content.source().to_owned()
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        visit(Use::Shared, &mut args.content);
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let content = context
            .redactor
            .redact_str(args.content.text())
            .into_owned();
        let kind = match args.long_term {
            Some(true) => MemoryKind::LongTerm,
            Some(false) | None => MemoryKind::Note,
        };
        as_role(context, Self::SPEC.name, move |session| {
            let path = memory::remember(session.state(), &content, kind, session.now())?;
            Ok(Answer::ok(Output { path }))
        })
        .await
    }
}
