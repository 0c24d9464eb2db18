//! `<reply>`: answers the user.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use crate::tools::supervisor::role_check::as_role;
use karyi_core::error::ToolError;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_tasks::history;

/// The tool.
pub struct Reply;

/// Arguments of `reply`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Text for the user.
    pub text: Template,
}

/// Result of `reply`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// True when the text is part of the conversation.
    pub said: bool,
}

impl Tool for Reply {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "reply",
        summary: "Answer the user",
        details: "The text is shown to the user as it is.",
        also_called: &[],
        heading: "reply",
        starts_job: false,
        family: Family::Supervisor,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "Tell the user what happened",
                before: "",
                xml: "<reply><text>The build is done.</text></reply>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "Nothing to say",
                before: "",
                xml: "<reply><text> </text></reply>",
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
        args.text.source().to_owned()
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        visit(Use::Shared, &mut args.text);
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let text = context.redactor.redact_str(args.text.text()).into_owned();
        as_role(context, Self::SPEC.name, move |session| {
            history::reply(session.state(), &text, session.now())?;
            Ok(Answer::ok(Output { said: true }))
        })
        .await
    }
}
