//! `<plan_create>`: asks a language model for the plan of a task. A plan is a result; nothing tracks it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::notebook::todo_entry::one_line;
use crate::tool::model_access::{self, ModelTask};
use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;

/// The tool.
pub struct PlanCreate;

/// Arguments of `plan_create`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The task.
    #[schemars(extend("x-karyi" = {"raw": true, "missing": "missing required param: task"}))]
    pub task: Template,
    /// Most steps, 6 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_steps: Option<u32>,
    /// Style of the plan, such as `terse`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<Template>,
    /// Name of another model of config.toml.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Result of `plan_create`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The plan.
    pub plan: TaskPlan,
}

/// Plan of a task.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskPlan {
    /// Reasoning behind it.
    pub thought: String,
    /// Summary.
    pub summary: String,
    /// Steps, in order; one is in progress.
    pub steps: Vec<TaskStep>,
    /// Risks.
    pub risks: Vec<String>,
    /// Open questions.
    pub questions: Vec<String>,
    /// Sign that the task is done.
    pub completion: String,
}

/// Step of such a plan.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskStep {
    /// Its text.
    pub step: String,
    /// `pending`, `in_progress` or `completed`.
    pub status: String,
}

/// Asks for a plan.
const TASK: &str = "You plan the task in the JSON message. Plan at most `max_steps` steps, in the order of work, each \
    one a result that can be checked; follow `style` when it is given; write in the language of the task. Reply with \
    one JSON object: {\"thought\":\"...\",\"summary\":\"...\",\"steps\":[{\"step\":\"...\",\"status\":\"pending\"}],\
    \"risks\":[\"...\"],\"questions\":[\"...\"],\"completion\":\"...\"}. The first step is \"in_progress\"; \
    `completion` says how to tell that the task is done.";

impl Tool for PlanCreate {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "plan_create",
        summary: "Make a plan for a task",
        details: "Another question to the model makes it, with steps, risks and open questions. Nothing tracks the plan.",
        also_called: &[],
        heading: "> plan_create",
        starts_job: false,
        family: Family::Assistant,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "Plan a task",
                before: "",
                xml: "<plan_create max_steps=\"4\"><task>Move the site to another server</task></plan_create>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A model that config.toml does not name",
                before: "",
                xml: "<plan_create model=\"nobody\"><task>Move the site</task></plan_create>",
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
        one_line(args.task.source())
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        visit(Use::Shared, &mut args.task);
        if let Some(style) = &mut args.style {
            visit(Use::Shared, style);
        }
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let model = args.model.as_deref().map(str::trim);
        let model = model.filter(|name| !name.is_empty());
        let models = model_access::usable(&context.models, Self::SPEC.name, model)?;
        let text = args.task.text().trim();
        if text.is_empty() {
            let error = ToolError::new(ErrorCode::BadArguments, "missing required param: task");
            return Err(error.with_hint("describe the task as `task`"));
        }
        let most = args.max_steps.unwrap_or(limits::TASK_PLAN_STEPS).max(1);
        let task = ModelTask {
            model,
            system: TASK,
            facts: json!({"task": text, "max_steps": most, "style": args.style.as_ref().map(Template::text)}),
            schema: reply_schema(most),
            max_output: limits::TASK_PLAN_TOKENS,
        };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let plan = task
            .ask(&*models, &context.redactor, |reply| plan_of(&reply, most))
            .await;
        let plan = plan.map_err(|error| error.into_error(Self::SPEC.name))?;
        Ok(Answer::ok(Output { plan }))
    }
}

/// Returns the schema of a reply.
fn reply_schema(most: u32) -> Value {
    // A small model may go on with one text without end where nothing limits it.
    let text = json!({"type": "string", "maxLength": limits::TASK_PLAN_TEXT_CHARS});
    let texts = json!({"type": "array", "items": text, "maxItems": limits::TASK_PLAN_NOTES});
    let status = json!({"enum": ["pending", "in_progress", "completed"]});
    let step = json!({
        "type": "object", "properties": {"step": text, "status": status}, "required": ["step", "status"],
    });
    json!({
        "type": "object",
        "properties": {
            "thought": text, "summary": text, "steps": {"type": "array", "items": step, "minItems": 1, "maxItems": most},
            "risks": texts, "questions": texts, "completion": text,
        },
        "required": ["thought", "summary", "steps", "risks", "questions", "completion"],
    })
}

/// Reads a plan of at most `most` steps.
fn plan_of(reply: &Value, most: usize) -> Result<TaskPlan, String> {
    let reply = reply
        .get("plan")
        .filter(|plan| plan.is_object())
        .unwrap_or(reply);
    let Some(Value::Array(steps)) = reply.get("steps") else {
        return Err("expected a list as `steps`".to_owned());
    };
    if steps.is_empty() {
        return Err("expected at least one step, found none".to_owned());
    }
    let steps = steps.iter().take(most).enumerate();
    let mut steps: Vec<TaskStep> = steps.map(|(index, step)| task_step(index, step)).collect();
    begin_one(&mut steps);
    Ok(TaskPlan {
        thought: line(reply, "thought"),
        summary: line(reply, "summary"),
        steps,
        risks: lines(reply, "risks"),
        questions: lines(reply, "questions"),
        completion: line(reply, "completion"),
    })
}

/// Reads a step, which is a text or an object.
fn task_step(index: usize, step: &Value) -> TaskStep {
    let text = match step {
        Value::String(text) => one_line(text),
        other => line(other, "step"),
    };
    let status = match line(step, "status").as_str() {
        known @ ("in_progress" | "completed") => known.to_owned(),
        _ => "pending".to_owned(),
    };
    TaskStep {
        step: match text.is_empty() {
            true => format!("step {}", index + 1),
            false => text,
        },
        status,
    }
}

/// Leaves exactly one step in progress: the first that says so, else the first that is pending, else the first.
fn begin_one(steps: &mut [TaskStep]) {
    let first = |status: &str| steps.iter().position(|step| step.status == status);
    let current = first("in_progress")
        .or_else(|| first("pending"))
        .unwrap_or_default();
    for (index, step) in steps.iter_mut().enumerate() {
        if index == current {
            step.status = "in_progress".to_owned();
        } else if step.status == "in_progress" {
            step.status = "pending".to_owned();
        }
    }
}

fn line(value: &Value, key: &str) -> String {
    let text = value.get(key).and_then(Value::as_str);
    one_line(text.unwrap_or_default())
}

fn lines(value: &Value, key: &str) -> Vec<String> {
    let list = value.get(key).and_then(Value::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts
        .map(one_line)
        .filter(|text| !text.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the steps of a reply, each written as `text: status`.
    #[track_caller]
    fn check(steps: Value, expected: &[&str]) {
        let plan = plan_of(&json!({"steps": steps}), 6).unwrap();
        let steps = plan
            .steps
            .iter()
            .map(|step| format!("{}: {}", step.step, step.status));
        assert_eq!(steps.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn steps_are_texts_or_objects_and_one_is_in_progress() {
        check(json!(["a", "b"]), &["a: in_progress", "b: pending"]);
        check(
            json!([{"step": "a"}, "", 1]),
            &["a: in_progress", "step 2: pending", "step 3: pending"],
        );
        check(
            json!([{"step": "a", "status": "completed"}, {"step": "b", "status": "odd"}]),
            &["a: completed", "b: in_progress"],
        );
        check(
            json!([{"step": "a"}, {"step": "b", "status": "in_progress"}, {"step": "c", "status": "in_progress"}]),
            &["a: pending", "b: in_progress", "c: pending"],
        );
        check(
            json!([{"step": "a", "status": "completed"}]),
            &["a: in_progress"],
        );
        let eight = json!(["1", "2", "3", "4", "5", "6", "7", "8"]);
        assert_eq!(plan_of(&json!({"steps": eight}), 6).unwrap().steps.len(), 6);
    }

    #[test]
    fn the_rest_of_a_plan_may_be_missing() {
        let reply = json!({"plan": {"thought": "t\n2", "steps": ["a"], "risks": null, "questions": ["q", 1], "completion": 5}});
        let plan = plan_of(&reply, 6).unwrap();
        assert_eq!(
            (
                plan.thought.as_str(),
                plan.summary.as_str(),
                plan.completion.as_str()
            ),
            ("t 2", "", "")
        );
        assert_eq!((plan.risks, plan.questions), (vec![], vec!["q".to_owned()]));
        for reply in [
            json!(1),
            json!({}),
            json!({"steps": []}),
            json!({"steps": "a"}),
        ] {
            assert!(plan_of(&reply, 6).is_err(), "{reply}");
        }
    }
}
