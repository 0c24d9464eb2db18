//! `<ask_user>`: asks the user one question.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use crate::tools::supervisor::role_check::as_role;
use karyi_core::error::ToolError;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_tasks::question::{self, QuestionRequest};

/// The tool.
pub struct AskUser;

/// Arguments of `ask_user`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Question.
    pub question: Template,
    /// Seconds to wait, 3600 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
    /// Answer when nobody answers in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Template>,
    /// Possible answers; any text without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Template>,
}

/// Result of `ask_user`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Identifier of the question; its answer comes in a later session.
    pub question_id: String,
}

impl Tool for AskUser {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "ask_user",
        summary: "Ask the user one question",
        details: "End your session then: the answer begins the next one. One question is open at a time.",
        also_called: &[],
        heading: "ask",
        starts_job: false,
        family: Family::Supervisor,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "Two possible answers",
                before: "",
                xml: "<ask_user default=\"staging\"><question>Where to?</question><options><item>staging</item><item>production</item></options></ask_user>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A default that is no option",
                before: "",
                xml: "<ask_user default=\"moon\"><question>Where to?</question><options><item>staging</item></options></ask_user>",
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
        args.question.source().to_owned()
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        visit(Use::Shared, &mut args.question);
        if let Some(default) = &mut args.default {
            visit(Use::Shared, default);
        }
        for text in &mut args.options {
            visit(Use::Shared, text);
        }
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let masked = |text: &Template| context.redactor.redact_str(text.text()).into_owned();
        let question = masked(&args.question);
        let default = args.default.as_ref().map(masked);
        let options: Vec<String> = args.options.iter().map(masked).collect();
        as_role(context, Self::SPEC.name, move |session| {
            let request =
                QuestionRequest::new(&question, &options, args.timeout, default.as_deref())?;
            let asked = question::ask(session.state(), session.next_id(), request, session.now())?;
            Ok(Answer::ok(Output {
                question_id: asked.question_id.to_string(),
            }))
        })
        .await
    }
}
