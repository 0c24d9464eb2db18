//! `<delegate>`: hands a task over.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::supervision::SessionRole;
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use crate::tools::supervisor::condition_argument::ConditionArgument;
use crate::tools::supervisor::role_check::as_role;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_tasks::argument::unknown_word;
use karyi_tasks::task::TaskRequest;
use karyi_tasks::trigger::TriggerPlan;

/// The tool.
pub struct Delegate;

/// Arguments of `delegate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Task: all that is needed to do it.
    pub prompt: Template,
    /// Planner only: `oneshot`, the default, or `conditional`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["oneshot", "conditional"], "x-karyi" = {"role": "planner"}))]
    pub kind: Option<String>,
    /// Planner only: condition of a `conditional` task: {"type": "task_done", "params": {"task_id": ID}}, task_failed,
    /// file_exists or file_changed with path, llm_eval with prompt, or and/or with conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-karyi" = {"role": "planner"}))]
    pub condition: Option<ConditionArgument>,
    /// Planner only: 0 to 10, 5 by default; higher ones run first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-karyi" = {"role": "planner"}))]
    pub priority: Option<i64>,
    /// Seconds that it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
}

/// Result of `delegate`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Identifier of the task.
    pub task_id: String,
}

impl Tool for Delegate {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "delegate",
        summary: "Hand a task over",
        details: "The Teller gives tasks to the Planner, and the Planner to Workers once its session ends well.",
        also_called: &[],
        heading: "delegate",
        starts_job: false,
        family: Family::Supervisor,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "Hand work over",
                before: "",
                xml: "<delegate><prompt>Build the project and report what fails.</prompt></delegate>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "Nothing to do",
                before: "",
                xml: "<delegate><prompt> </prompt></delegate>",
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
        args.prompt.source().to_owned()
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        visit(Use::Shared, &mut args.prompt);
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let redactor = context.redactor.clone();
        let prompt = redactor.redact_str(args.prompt.text()).into_owned();
        as_role(context, Self::SPEC.name, move |session| {
            if session.role() == SessionRole::Teller {
                check_teller(&args)?;
            }
            let condition = args.condition.map(|condition| condition.read(&redactor));
            let plan = match (args.kind.as_deref(), condition.transpose()?) {
                (None | Some("oneshot"), None) => None,
                (Some("conditional"), Some(condition)) => Some(TriggerPlan::Once(condition)),
                (Some("conditional"), None) => {
                    return Err(wrong(
                        "`condition`: expected one, since `type` is conditional",
                    ));
                }
                (None | Some("oneshot"), Some(_)) => {
                    return Err(wrong(
                        "`type`: expected conditional, since there is a `condition`",
                    ));
                }
                (Some(found), _) => {
                    return Err(unknown_word("type", "oneshot or conditional", found));
                }
            };
            let request = TaskRequest::new(&prompt, args.priority, args.timeout)?;
            let task_id = session.delegate(request, plan)?.to_string();
            Ok(Answer::ok(Output { task_id }))
        })
        .await
    }
}

/// Checks that a Teller names nothing that only a Planner decides.
fn check_teller(args: &Args) -> Result<(), ToolError> {
    let given = [
        ("type", args.kind.is_some()),
        ("condition", args.condition.is_some()),
        ("priority", args.priority.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((field, _)) => {
            let message = format!("`{field}`: only a Planner may give it");
            Err(ToolError::new(ErrorCode::ArgumentNotAllowed, message))
        }
    }
}

fn wrong(message: &str) -> ToolError {
    ToolError::new(ErrorCode::BadArguments, message)
}
