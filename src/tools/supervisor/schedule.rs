//! `<schedule>`: makes a trigger, which makes tasks for Workers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use crate::tools::supervisor::condition_argument::ConditionArgument;
use crate::tools::supervisor::role_check::as_role;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_tasks::argument::unknown_word;
use karyi_tasks::task::TaskRequest;
use karyi_tasks::trigger::TriggerPlan;
use karyi_vault::redact::Redactor;

/// The tool.
pub struct Schedule;

/// Arguments of `schedule`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Task: all that is needed to do it.
    pub prompt: Template,
    /// `recurring`, `scheduled` or `conditional`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Seconds between two tasks of a `recurring` one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<i64>,
    /// Time of a `scheduled` one with its zone, such as `2026-01-31T09:00:00+08:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<String>,
    /// Condition of a `conditional` one, as that of `delegate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<ConditionArgument>,
    /// Seconds after a task of a `conditional` one before the next, 0 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<i64>,
    /// Seconds that each task may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
}

/// Result of `schedule`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Identifier of the trigger.
    pub task_id: String,
}

impl Tool for Schedule {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "schedule",
        summary: "Make tasks at times or on a condition",
        details: "A recurring one keeps to its times and catches nothing up; one that waits for it waits for its next finished task.",
        also_called: &[],
        heading: "schedule",
        starts_job: false,
        family: Family::Supervisor,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "Each day",
                before: "",
                xml: "<schedule type=\"recurring\" interval=\"86400\"><prompt>Back up the notes.</prompt></schedule>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A time without its zone",
                before: "",
                xml: "<schedule type=\"scheduled\" run_at=\"2026-01-31T09:00:00\"><prompt>Back up.</prompt></schedule>",
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
            let request = TaskRequest::new(&prompt, None, args.timeout)?;
            let task_id = session
                .delegate(request, Some(plan(&args, &redactor)?))?
                .to_string();
            Ok(Answer::ok(Output { task_id }))
        })
        .await
    }
}

/// Returns the time or condition that the arguments describe.
fn plan(args: &Args, redactor: &Redactor) -> Result<TriggerPlan, ToolError> {
    let given = [
        ("interval", args.interval.is_some(), "recurring"),
        ("run_at", args.run_at.is_some(), "scheduled"),
        ("condition", args.condition.is_some(), "conditional"),
        ("cooldown", args.cooldown.is_some(), "conditional"),
    ];
    let wrong = |message: String| Err(ToolError::new(ErrorCode::BadArguments, message));
    let misplaced = given
        .iter()
        .find(|(_, is_given, kind)| *is_given && *kind != args.kind);
    if let Some((field, _, kind)) = misplaced {
        return wrong(format!("`{field}`: it belongs to the type {kind}"));
    }
    match (
        args.kind.as_str(),
        args.interval,
        &args.run_at,
        &args.condition,
    ) {
        ("recurring", Some(interval), _, _) => TriggerPlan::recurring(interval),
        ("scheduled", _, Some(run_at), _) => TriggerPlan::scheduled(run_at),
        ("conditional", _, _, Some(condition)) => {
            let condition = condition.clone().read(redactor)?;
            TriggerPlan::conditional(condition, args.cooldown.unwrap_or(0))
        }
        ("recurring", ..) => wrong("`interval`: expected seconds, found none".to_owned()),
        ("scheduled", ..) => wrong("`run_at`: expected a time, found none".to_owned()),
        ("conditional", ..) => wrong("`condition`: expected one, found none".to_owned()),
        (found, ..) => {
            let expected = "recurring, scheduled or conditional";
            Err(unknown_word("type", expected, found))
        }
    }
}
