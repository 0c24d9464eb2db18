//! `<get_recent_history>`: reads the last messages of the conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use crate::tools::supervisor::messages::MessagesOutput;
use crate::tools::supervisor::role_check::as_role;
use karyi_core::error::ToolError;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_tasks::history;

/// The tool.
pub struct GetRecentHistory;

/// Arguments of `get_recent_history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Number of messages, 1 to 1000.
    pub count: i64,
    /// Number of the last messages to skip, 0 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i64>,
}

impl Tool for GetRecentHistory {
    type Args = Args;
    type Output = MessagesOutput;

    const SPEC: Spec = Spec {
        name: "get_recent_history",
        summary: "Read the last messages of the conversation",
        details: "The oldest of them comes first.",
        also_called: &[],
        heading: "recent history",
        starts_job: false,
        family: Family::Supervisor,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "The last three messages",
                before: "",
                xml: "<get_recent_history count=\"3\"/>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "No messages at all",
                before: "",
                xml: "<get_recent_history count=\"0\"/>",
                status: Status::Error,
                code: Some("bad_arguments"),
            },
        ],
    };
    const SERVICE: Service = Service::LOCAL.with_hints(Hints::READ_ONLY);

    fn effect(_: &Args) -> Effect {
        Effect::Outside {
            is_write: false,
            files: Vec::new(),
        }
    }

    fn title(args: &Args) -> String {
        format!("{} messages", args.count)
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<MessagesOutput>())
    }

    fn templates(_: &mut Args, _: &mut dyn FnMut(Use, &mut Template)) {}

    async fn run(args: Args, context: &Context) -> Result<Answer<MessagesOutput>, ToolError> {
        as_role(context, Self::SPEC.name, move |session| {
            let messages = history::recent(session.state(), args.count, args.offset.unwrap_or(0))?;
            Ok(Answer::ok(MessagesOutput::new(messages, 0)))
        })
        .await
    }
}
