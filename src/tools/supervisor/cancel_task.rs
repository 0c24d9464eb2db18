//! `<cancel_task>`: cancels a waiting task or a trigger.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use crate::tools::supervisor::role_check::as_role;
use karyi_core::error::ToolError;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_tasks::cancellation::{CancelReason, cancel, dependents};
use karyi_tasks::task_id::TaskId;

/// The tool.
pub struct CancelTask;

/// Arguments of `cancel_task`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Identifier of the task or trigger.
    pub task_id: String,
}

/// Result of `cancel_task`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// True when it was cancelled.
    pub success: bool,
    /// `cancelled`, `running`, `finished` or `not_found`.
    pub reason: String,
    /// Triggers that wait for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<String>,
}

impl Tool for CancelTask {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "cancel_task",
        summary: "Cancel a waiting task or a trigger",
        details: "A task that runs is not stopped.",
        also_called: &[],
        heading: "cancel task",
        starts_job: false,
        family: Family::Supervisor,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "A task that is not there",
                before: "",
                xml: "<cancel_task task_id=\"none\"/>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A name that is no id",
                before: "",
                xml: "<cancel_task task_id=\"../../victim\"/>",
                status: Status::Error,
                code: Some("bad_arguments"),
            },
        ],
    };
    const SERVICE: Service = Service::LOCAL.with_hints(Hints::DESTRUCTIVE);

    fn effect(_: &Args) -> Effect {
        Effect::Outside {
            is_write: true,
            files: Vec::new(),
        }
    }

    fn title(args: &Args) -> String {
        args.task_id.clone()
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(_: &mut Args, _: &mut dyn FnMut(Use, &mut Template)) {}

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        as_role(context, Self::SPEC.name, move |session| {
            let id = TaskId::parse(&args.task_id)?;
            let dependents = dependents(session.state(), &id)?;
            let reason = match session.unstage(&id) {
                true => CancelReason::Cancelled,
                false => cancel(session.state(), &id)?,
            };
            Ok(Answer::ok(Output {
                success: reason == CancelReason::Cancelled,
                reason: reason.as_str().to_owned(),
                dependents: dependents.iter().map(TaskId::to_string).collect(),
            }))
        })
        .await
    }
}
