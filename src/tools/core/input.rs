//! `<input>`: types text into the job that waits for it.
//!
//! Nothing is typed before the kernel reports that the job reads the terminal, so a password is never
//! typed while the terminal would show it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Seconds, Tool, Use};
use crate::tools::core::command::Output;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_pty::InputRequest;
use karyi_syntax::escapes;
use karyi_syntax::grammar::LeafKind;

/// The tool.
pub struct Input;

/// Arguments of `input`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Text to type, with the escapes `\n \r \t \e \0 \\ \xHH \u{H..}`.
    pub text: Template,
    /// Seconds to wait for the job to read, then to end or read again; 10 by default.
    pub timeout: Option<Seconds>,
    /// Id of the job; by default the one used last.
    pub job: Option<Template>,
    /// Send a secret even if the terminal shows typed text.
    #[serde(default)]
    pub allow_echo: bool,
}

impl Tool for Input {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "input",
        summary: "Type text into the command that waits for it",
        details: "Write `\\n` for Enter; text in lines of its own ends with one. The result has the \
            output that followed.",
        also_called: &["type", "stdin", "send_keys", "send_input"],
        heading: "> input",
        starts_job: false,
        family: Family::Core,
        form: Form::Text {
            parameter: "text",
            kind: LeafKind::Escaped,
        },
        examples: &[
            Example {
                title: "Answer a question",
                before: "<command>read -p \"name? \" x; echo hi $x</command>",
                xml: "<input>Ada\\n</input>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "Nothing runs that could read",
                before: "",
                xml: "<input>y\\n</input>",
                status: Status::Error,
                code: Some("no_job"),
            },
        ],
    };

    fn effect(_: &Args) -> Effect {
        Effect::Session
    }

    fn title(args: &Args) -> String {
        args.text.source().to_owned()
    }

    fn job(args: &Args) -> Option<&str> {
        args.job.as_ref().map(Template::text)
    }

    fn timeout(args: &Args) -> Option<Seconds> {
        args.timeout
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        visit(Use::Typed, &mut args.text);
        args.job.iter_mut().for_each(|job| visit(Use::Literal, job));
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let terminal = context.terminal()?;
        let bytes = typed(&args.text)?;
        let request = InputRequest {
            timeout: args.timeout.map(Seconds::duration),
            is_secret: args.text.has_secret(),
            allow_echo: args.allow_echo,
            values: args.text.values(),
        };
        let call = terminal.session.input(&bytes, request, (context.sink)());
        let mut answer = Output::answer(call.await?, terminal, None);
        if answer.status == Status::AwaitingInput && terminal.session.has_open_line() {
            answer.output.hint = Some(NO_ENTER);
        }
        Ok(answer)
    }
}

/// Hint about a line that was typed without its end.
const NO_ENTER: &str =
    "the line was typed without Enter, and the job waits for it: send `\\n` to end the line";

/// Returns the bytes to type. Backslashes of values were doubled, so only the model's own escapes are
/// decoded.
fn typed(text: &Template) -> Result<Vec<u8>, ToolError> {
    escapes::unescape(text.text()).map_err(|bad| {
        let message = format!("broken escape at byte {} of the text", bad.offset);
        ToolError::new(ErrorCode::BadArguments, message)
            .with_hint("write \\xHH with two and \\u{H} with one to six hexadecimal digits")
    })
}
