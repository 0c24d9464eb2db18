//! `<get_history_by_time>`: reads the messages of a time.

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
use karyi_tasks::argument::read_time;
use karyi_tasks::history;

/// The tool.
pub struct GetHistoryByTime;

/// Arguments of `get_history_by_time`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Start with its zone, such as `2026-01-31T09:00:00Z`; included.
    pub after: String,
    /// End with its zone, included; now by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

impl Tool for GetHistoryByTime {
    type Args = Args;
    type Output = MessagesOutput;

    const SPEC: Spec = Spec {
        name: "get_history_by_time",
        summary: "Read the messages of a time",
        details: "Both ends are included.",
        also_called: &[],
        heading: "history",
        starts_job: false,
        family: Family::Supervisor,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "Since a morning",
                before: "",
                xml: "<get_history_by_time after=\"2026-01-31T09:00:00Z\"/>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A time without its zone",
                before: "",
                xml: "<get_history_by_time after=\"2026-01-31T09:00:00\"/>",
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
        args.after.clone()
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<MessagesOutput>())
    }

    fn templates(_: &mut Args, _: &mut dyn FnMut(Use, &mut Template)) {}

    async fn run(args: Args, context: &Context) -> Result<Answer<MessagesOutput>, ToolError> {
        as_role(context, Self::SPEC.name, move |session| {
            let after = read_time("after", &args.after)?;
            let before = args.before.map(|text| read_time("before", &text));
            let before = before.transpose()?.unwrap_or_else(|| session.now());
            let range = history::between(session.state(), after, before)?;
            Ok(Answer::ok(MessagesOutput::new(
                range.messages,
                range.omitted,
            )))
        })
        .await
    }
}
