//! `<list_tasks>`: lists tasks and triggers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use crate::tools::supervisor::role_check::as_role;
use karyi_core::error::ToolError;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_tasks::argument::unknown_word;
use karyi_tasks::listing::{ListOptions, ListScope, TaskSummary, list};
use karyi_tasks::task::TaskRole;

/// The tool.
pub struct ListTasks;

/// Arguments of `list_tasks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// `queue`, `running`, `triggers` or `all`; `all` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Role whose tasks are listed: `planner` or `worker`; triggers are listed for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["planner", "worker"]))]
    pub role: Option<String>,
}

/// Result of `list_tasks`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Running tasks, then waiting ones in the order in which they run, then triggers by their time.
    pub tasks: Vec<ListedTask>,
}

/// Task or trigger.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedTask {
    /// Identifier.
    pub id: String,
    /// `oneshot`, `recurring`, `scheduled` or `conditional`.
    #[serde(rename = "type")]
    pub kind: String,
    /// At most 100 characters of the prompt.
    pub prompt: String,
    /// 0 to 10.
    pub priority: u8,
    /// `queued`, `running` or `trigger`.
    pub status: String,
    /// Time when it was made, UTC.
    pub created_at: String,
    /// Role that works on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Time of the next task of a trigger, or of the next attempt of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
    /// True for a trigger whose condition can never hold.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blocked: bool,
}

impl Tool for ListTasks {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "list_tasks",
        summary: "List tasks and triggers",
        details: "A trigger that is `blocked` waits for a task that can never end so.",
        also_called: &[],
        heading: "list tasks",
        starts_job: false,
        family: Family::Supervisor,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "Everything",
                before: "",
                xml: "<list_tasks/>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "An unknown scope",
                before: "",
                xml: "<list_tasks><scope>done</scope></list_tasks>",
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
        args.scope.clone().unwrap_or_else(|| "all".to_owned())
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(_: &mut Args, _: &mut dyn FnMut(Use, &mut Template)) {}

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let scope = match args.scope.as_deref() {
            Some("queue") => ListScope::Queue,
            Some("running") => ListScope::Running,
            Some("triggers") => ListScope::Triggers,
            Some("all") | None => ListScope::All,
            Some(found) => {
                let expected = "queue, running, triggers or all";
                return Err(unknown_word("scope", expected, found));
            }
        };
        let role = match args.role.as_deref() {
            Some("planner") => Some(TaskRole::Planner),
            Some("worker") => Some(TaskRole::Worker),
            None => None,
            Some(found) => return Err(unknown_word("role", "planner or worker", found)),
        };
        as_role(context, Self::SPEC.name, move |session| {
            let options = ListOptions {
                scope,
                role,
                aging: session.aging(),
            };
            let tasks = list(session.state(), options, session.now())?;
            let tasks = tasks.into_iter().map(ListedTask::from).collect();
            Ok(Answer::ok(Output { tasks }))
        })
        .await
    }
}

impl From<TaskSummary> for ListedTask {
    fn from(task: TaskSummary) -> Self {
        Self {
            id: task.id.to_string(),
            kind: task.kind.to_owned(),
            prompt: task.prompt,
            priority: task.priority,
            status: task.status.to_owned(),
            created_at: task.created_at.to_string(),
            role: task.role.map(str::to_owned),
            due_at: task.due_at.map(|time| time.to_string()),
            blocked: task.blocked,
        }
    }
}
