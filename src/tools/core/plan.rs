//! `<plan>`: keeps the list of steps that the user sees.
//!
//! A call replaces the whole list, so what is shown is what the model wrote last.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::plan_board::{PlanStep, StepState};
use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;

/// The tool.
pub struct Plan;

/// Arguments of `plan`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Steps, in order.
    #[serde(default)]
    #[schemars(extend("x-karyi" = {"group": ["step"]}))]
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its text.
    #[schemars(extend("x-karyi" = {"leaf": "text"}))]
    pub step: String,
    /// `open` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = words(), "x-karyi" = {"attribute_of": "step"}))]
    pub state: Option<String>,
}

/// Result of `plan`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Number of steps.
    pub steps: usize,
}

impl Tool for Plan {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "plan",
        summary: "Show the user your plan",
        details: "A call replaces it all.",
        also_called: &["todo", "todos", "todo_write", "update_plan"],
        heading: "> plan",
        starts_job: false,
        family: Family::Core,
        form: Form::Attributes,
        examples: &[
            Example {
                title: "Keep the steps of a longer work",
                before: "",
                xml: "<plan><step state=\"done\">Read it</step><step>Mend it</step></plan>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A step without a text",
                before: "",
                xml: "<plan><step> </step></plan>",
                status: Status::Error,
                code: Some("bad_arguments"),
            },
        ],
    };
    const SERVICE: Service = Service::LOCAL.with_hints(Hints::ADDITIVE);

    fn effect(_: &Args) -> Effect {
        Effect::Alone
    }

    fn title(args: &Args) -> String {
        let is = |step: &&Step, state| state_of(step) == Some(state);
        let done = args.steps.iter().filter(|step| is(step, StepState::Done));
        let mut title = format!("{} of {} done", done.count(), args.steps.len());
        let active = args.steps.iter().find(|step| is(step, StepState::Active));
        if let Some(active) = active {
            title.push_str(&format!(": {}", active.step.trim()));
        }
        title
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    /// A step is a label: what stands in it is shown as it is.
    fn templates(_: &mut Args, _: &mut dyn FnMut(Use, &mut Template)) {}

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let wrong = |message: String| ToolError::new(ErrorCode::BadArguments, message);
        if args.steps.len() > limits::MAX_PLAN_STEPS {
            let most = limits::MAX_PLAN_STEPS;
            let message = format!("expected at most {most} steps, found {}", args.steps.len());
            return Err(wrong(message).with_hint("join steps to larger ones"));
        }
        let mut steps = Vec::new();
        for step in &args.steps {
            let text = step.step.trim();
            if text.is_empty() {
                let hint = "write what is to be done, as in <step>Run the tests</step>";
                return Err(
                    wrong("expected a text in each step, found a blank one".into()).with_hint(hint),
                );
            }
            let Some(state) = state_of(step) else {
                let found = step.state.as_deref().unwrap_or_default();
                let expected = words().join(", ");
                return Err(wrong(format!(
                    "expected one of {expected}, found {found:?}"
                )));
            };
            let end = text.floor_char_boundary(limits::MAX_PLAN_STEP_BYTES);
            let text = text.get(..end).unwrap_or(text);
            let text = context.redactor.redact_whole_again(text);
            steps.push(PlanStep { state, text });
        }
        let count = steps.len();
        context.plan.replace(steps);
        Ok(Answer::ok(Output { steps: count }))
    }
}

/// Returns the words for states.
fn words() -> Vec<&'static str> {
    StepState::ALL.map(StepState::as_str).to_vec()
}

/// Returns the state of a step; nothing for an unknown word.
fn state_of(step: &Step) -> Option<StepState> {
    step.state
        .as_deref()
        .map_or(Some(StepState::Open), StepState::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_tells_how_far_the_work_is() {
        let step = |(text, state): &(&str, &str)| Step {
            step: (*text).to_owned(),
            state: Some((*state).to_owned()).filter(|state| !state.is_empty()),
        };
        let title = |steps: &[(&str, &str)]| {
            let steps = steps.iter().map(step).collect();
            Plan::title(&Args { steps })
        };
        assert_eq!(title(&[]), "0 of 0 done");
        assert_eq!(title(&[("a", "done"), ("b", "")]), "1 of 2 done");
        assert_eq!(
            title(&[("a", "done"), (" b\n", "active")]),
            "1 of 2 done: b"
        );
    }
}
