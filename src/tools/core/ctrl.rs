//! `<ctrl>`: presses a key on the session's terminal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Seconds, Tool, Use};
use crate::tools::core::command::Output;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_pty::Progress;
use karyi_pty::key::{self, Key};
use karyi_syntax::grammar::LeafKind;

/// The tool.
pub struct Ctrl;

/// Arguments of `ctrl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// `a` to `z` and `[ \ ] ^ _ ?` with Ctrl, or enter esc tab up down left right home end
    /// pgup pgdn backspace delete f1 to f12.
    #[schemars(extend("enum" = key::names()))]
    pub key: String,
    /// Seconds to wait for the job to end or read again; 10 by default.
    pub timeout: Option<Seconds>,
    /// `c`, then TERM, then KILL.
    pub end: Option<bool>,
    /// Id of the job; by default the one used last.
    pub job: Option<Template>,
}

impl Tool for Ctrl {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "ctrl",
        summary: "Press a key on the terminal",
        details: "`c` is Ctrl+C.",
        also_called: &["key", "press", "keypress", "signal"],
        heading: "> ctrl",
        starts_job: false,
        family: Family::Core,
        form: Form::Text {
            parameter: "key",
            kind: LeafKind::Word(key::is_key_name),
        },
        examples: &[
            Example {
                title: "Interrupt a command that does not end",
                before: "<command timeout=\"0.2\">sleep 100</command>",
                xml: "<ctrl>c</ctrl>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "End a command that takes no notice",
                before: "<command timeout=\"0.2\">trap '' INT; while :; do sleep 1; done</command>",
                xml: "<ctrl end=\"true\">c</ctrl>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "Nothing runs",
                before: "",
                xml: "<ctrl>c</ctrl>",
                status: Status::Error,
                code: Some("no_job"),
            },
        ],
    };

    fn effect(_: &Args) -> Effect {
        Effect::Session
    }

    fn title(args: &Args) -> String {
        args.key.clone()
    }

    fn job(args: &Args) -> Option<&str> {
        args.job.as_ref().map(Template::text)
    }

    fn ends_job(args: &Args) -> bool {
        args.end == Some(true)
    }

    fn timeout(args: &Args) -> Option<Seconds> {
        args.timeout
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        args.job.iter_mut().for_each(|job| visit(Use::Literal, job));
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let key = Key::parse(&args.key).ok_or_else(|| {
            ToolError::new(
                ErrorCode::BadArguments,
                format!("{:?} is not a key", args.key),
            )
        })?;
        let is_end = args.end == Some(true);
        if is_end && key != Key::INTERRUPT {
            let message = format!("expected the key c with end=\"true\", found {}", args.key);
            return Err(ToolError::new(ErrorCode::BadArguments, message)
                .with_hint("leave out end to press another key"));
        }
        let terminal = context.terminal()?;
        if let Some(job) = context.background.as_ref().filter(|_| is_end) {
            terminal.session.end_background(job).await?;
            return Ok(asked_for(Output::answer(
                Progress::killed(),
                terminal,
                None,
            )));
        }
        if is_end {
            let call = terminal.session.end_job_with_output((context.sink)());
            return Ok(asked_for(Output::answer(call.await?, terminal, None)));
        }
        let timeout = args.timeout.map(Seconds::duration);
        let call = terminal.session.key(key, timeout, (context.sink)());
        Ok(asked_for(Output::answer(call.await?, terminal, None)))
    }
}

/// The end of the job is what the key was for, whatever its exit status.
fn asked_for(answer: Answer<Output>) -> Answer<Output> {
    let status = match answer.status {
        Status::Failed | Status::Killed => Status::Ok,
        other => other,
    };
    Answer { status, ..answer }
}
