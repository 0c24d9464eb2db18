//! `<get_value>`: asks the user for a value the model never sees.
//!
//! The value stays for the session and is usable from the next block on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::context::{Lifetime, Question, Reply};
use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::outcome::Status;
use karyi_core::secret::{SecretName, SecretValue, Template};

/// The tool.
pub struct GetValue;

/// Arguments of `get_value`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Its name: at most 64 letters, digits and `_`, no digit first.
    pub key: String,
    /// Reason, shown to the user.
    pub reason: String,
    /// A note beside the question.
    pub note: Option<String>,
    /// Ask even if the value exists.
    #[serde(default)]
    pub refresh: bool,
}

/// Result of `get_value`; it never contains the value.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Name of the value.
    pub key: String,
}

impl Tool for GetValue {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "get_value",
        summary: "Ask the user for a secret value",
        details: "From the next block on, write $KARYI{KEY} where the value belongs, in any \
            text or attribute. You never see the value.",
        also_called: &["ask", "secret", "get_secret", "password"],
        heading: "> get_value",
        starts_job: false,
        family: Family::Core,
        form: Form::Attributes,
        examples: &[
            Example {
                title: "Nobody can be asked",
                before: "",
                xml: "<get_value key=\"NPM_TOKEN\" reason=\"to publish the package\"/>",
                status: Status::Unavailable,
                code: Some("secret_prompt_unavailable"),
            },
            Example {
                title: "A key that is no name",
                before: "",
                xml: "<get_value key=\"npm token\" reason=\"to publish the package\"/>",
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
        args.key.clone()
    }

    fn provides(args: &Args) -> Option<SecretName> {
        SecretName::parse(&args.key)
    }

    fn check(args: &Args) -> Result<(), ToolError> {
        let texts = [Some(&args.key), Some(&args.reason), args.note.as_ref()];
        let mut texts = texts.into_iter().flatten();
        if !texts.any(|text| Template::new(text).has_placeholder()) {
            return Ok(());
        }
        let message = "the key, the reason and the note of a question cannot hold a placeholder";
        Err(ToolError::new(ErrorCode::BadPlaceholder, message)
            .with_hint("name the value by its key alone, such as NPM_TOKEN, and say in words what it is for"))
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(_: &mut Args, _: &mut dyn FnMut(Use, &mut Template)) {}

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let name = checked_name(&args)?;
        let answer = |status| {
            Ok(Answer {
                status,
                output: Output {
                    key: args.key.clone(),
                },
                problem: None,
            })
        };
        if !args.refresh && context.secrets.contains(&name) {
            return answer(Status::Exists);
        }
        // Check before the user types a value that could not be accepted.
        context.secrets.check_new(&name)?;
        let (store, cannot_save) = saving(context).await;
        let question = Question {
            name: name.clone(),
            reason: args.reason.clone(),
            note: args.note.clone(),
            store,
            cannot_save,
            is_known: context.secrets.contains(&name),
            least_bytes: context.secrets.least_bytes(),
        };
        let reply = context.prompter.ask(&question).await;
        if let Reply::Value(value, _) = &reply {
            context.secrets.check_given(&name, value)?;
        }
        match reply {
            Reply::Value(value, Lifetime::Once) => {
                context.secrets.insert_once(name, value)?;
                answer(Status::Provided)
            }
            Reply::Value(value, Lifetime::Session) => {
                context.secrets.insert(name, value)?;
                answer(Status::Provided)
            }
            Reply::Value(value, Lifetime::Saved) => {
                let problem = save(context, &name, &value, args.note.as_deref()).await;
                context.secrets.insert(name, value)?;
                let status = problem.as_ref().map_or(Status::Saved, |_| Status::Provided);
                let mut answer = answer(status)?;
                answer.problem = problem;
                Ok(answer)
            }
            Reply::Declined => Err(ToolError::new(
                ErrorCode::Declined,
                format!("the user declined to enter {name}"),
            )),
            Reply::Unavailable => Err(unanswered(&name, context.prompter.unavailable_reason())),
            Reply::Timeout => Err(ToolError::new(
                ErrorCode::PromptTimeout,
                format!("no value for {name} was entered in time"),
            )),
        }
    }
}

/// Returns the name, when the question is valid.
fn checked_name(args: &Args) -> Result<SecretName, ToolError> {
    GetValue::check(args)?;
    SecretName::parse(&args.key).ok_or_else(|| {
        let message = format!("key must be letters, digits and _, found {:?}", args.key);
        ToolError::new(ErrorCode::BadArguments, message)
            .with_hint("choose a name such as NPM_TOKEN")
    })
}

/// Returns the error for a value when no user is available, with the reason when it is known.
fn unanswered(name: &SecretName, reason: Option<&str>) -> ToolError {
    let mut message = format!("{name} is needed and no user is available to enter it");
    if let Some(reason) = reason {
        message.push_str(&format!(": {reason}"));
    }
    let hint = format!(
        "let the user store it with `karyi var set {name}`, pass it with --vars-fd, or run karyi where it may ask: on a \
         terminal, without CI, --no-interactive and --vars-mode warn"
    );
    ToolError::new(ErrorCode::SecretPromptUnavailable, message)
        .with_hint(hint)
        .with_names(vec![name.to_string()])
}

/// Returns the store that can save a value, probed before the user types one, or the reason why it cannot.
async fn saving(context: &Context) -> (Option<&'static str>, Option<String>) {
    let saver = context.saver.as_ref();
    let Some(saver) = saver.filter(|_| context.prompter.is_available()) else {
        return (None, None);
    };
    match saver.probe().await {
        Ok(store) => (Some(store), None),
        Err(error) => (None, Some(format!("{}; {}", error.message, error.hint))),
    }
}

/// Saves the value. A failure is reported beside the result, since the session has the value.
async fn save(
    context: &Context,
    name: &SecretName,
    value: &SecretValue,
    note: Option<&str>,
) -> Option<ToolError> {
    let saver = context.saver.as_ref()?;
    saver.save(name, value, note).await.err()
}
