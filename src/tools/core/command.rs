//! `<command>`: runs a shell script in the session.
//!
//! The result is final when the script ends, waits for input, is stopped or reaches its time limit. In
//! the last three cases it goes on, and later calls can use it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::sessions::{self, Opening, Terminal};
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Seconds, Tool, Use};
use karyi_core::error::ToolError;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_pty::{CommandRequest, Progress};
use karyi_syntax::grammar::LeafKind;

/// The tool.
pub struct Command;

/// Arguments of `command`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The shell script.
    pub text: Template,
    /// Seconds until the result is final; the script goes on. 120 by default, 10 right before `input` or `ctrl`.
    pub timeout: Option<Seconds>,
    /// Directory for this script only.
    pub cwd: Option<Template>,
    /// A label.
    pub name: Option<Template>,
}

/// Result of `command`, `input` and `ctrl`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The label of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Exit status of the script, or 128 + n after signal n; only when it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The session's directory; only when the script ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// `off` when the terminal does not show what is typed, as for a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echo: Option<&'static str>,
    /// Number of the session, when the first one was busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// Facts about the session: start-up files that took too long, or the session that was opened beside a busy one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'static str>,
    /// `true` when the status is a guess: the system did not show what the script waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probably: Option<bool>,
    /// Length of the input that was not typed, because the script ended or did not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsent_bytes: Option<usize>,
    /// `restarted` when the shell was gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<&'static str>,
    /// State carried over to the restarted shell, such as `cwd` and `environment`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// State lost in the restart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Age of the restored state, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_age_ms: Option<u64>,
}

impl Output {
    /// Returns the answer of a session tool.
    #[must_use]
    pub fn answer(progress: Progress, terminal: &Terminal, name: Option<String>) -> Answer<Self> {
        let waits = progress.status == Status::AwaitingInput;
        let may_work = progress.status == Status::AcceptsInput;
        let echo = progress.echo.filter(|_| waits);
        let restart = progress.restarted;
        let mut output = Self {
            name,
            exit_code: progress.exit_code,
            cwd: progress.cwd.map(|path| path.to_string_lossy().into_owned()),
            echo: echo.map(|is_on| if is_on { "on" } else { "off" }),
            session: Some(terminal.number).filter(|number| *number != sessions::FIRST),
            note: may_work
                .then(|| "may still be at work: the next command waits for it".to_owned()),
            hint: None,
            probably: progress.is_probable.then_some(true),
            unsent_bytes: Some(progress.unsent_bytes).filter(|count| *count > 0),
            shell: restart.is_some().then_some("restarted"),
            restored: Vec::new(),
            lost: Vec::new(),
            snapshot_age_ms: None,
        };
        if let Some(restart) = restart {
            output.restored = restart.restored;
            output.lost = restart.lost;
            output.snapshot_age_ms = restart.snapshot_age_ms;
        }
        Answer {
            status: progress.status,
            output,
            problem: None,
        }
    }
}

/// Describes a session that was opened beside a busy one.
fn note(terminal: &Terminal, opening: &Opening) -> String {
    let (number, after) = (terminal.number, opening.after);
    let begins = match opening.snapshot_age {
        Some(age) => {
            let age = age.as_secs_f64();
            match terminal.session.prints_functions() {
                true => format!("its functions, aliases and options are {age:.1} s old"),
                false => format!(
                    "its aliases and options are {age:.1} s old; its functions are missing, which \
                     {} cannot print",
                    terminal.session.shell_name()
                ),
            }
        }
        None => "functions, aliases and options are those of the start-up files".to_owned(),
    };
    let place = match &opening.elsewhere {
        None => "with its directory and exported environment".to_owned(),
        Some(place) => format!(
            "in {} with its exported environment, because its directory is gone or cannot be entered",
            place.display()
        ),
    };
    format!(
        "session {after} is busy, so this ran in session {number}, opened {place}; {begins}; other variables are missing. Commands run here until \
         session {} is free",
        sessions::FIRST
    )
}

/// Explains that commands run in the first session again.
fn note_back(last: u64) -> String {
    let first = sessions::FIRST;
    format!(
        "session {first} is free again, and commands run there: directory, variables and functions \
         are its own, not those of session {last}"
    )
}

impl Tool for Command {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "command",
        summary: "Run a shell script in the persistent session",
        details: "Directory, variables and functions stay for later commands. With status \
            `awaiting_input` the script waits: answer with `input`. With `running` the timeout passed and \
            it goes on as a job, named by the call's id: see its output with `read` of job:ID, wait with \
            an empty `input`, or end it with `ctrl` c. Other commands run beside it.",
        also_called: &[
            "bash",
            "sh",
            "zsh",
            "shell",
            "terminal",
            "console",
            "cmd",
            "run",
            "exec",
            "execute",
            "run_command",
            "execute_command",
            "execute_bash",
            "run_shell_command",
        ],
        heading: "$",
        starts_job: true,
        family: Family::Core,
        form: Form::Text {
            parameter: "text",
            kind: LeafKind::Script,
        },
        examples: &[
            Example {
                title: "Run two commands",
                before: "",
                xml: "<command>\n  cd /usr\n  pwd\n</command>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A command that fails",
                before: "",
                xml: "<command>ls /does/not/exist</command>",
                status: Status::Failed,
                code: None,
            },
            Example {
                title: "A command while another one holds the terminal",
                before: "<command timeout=\"0.2\">sleep 60</command>",
                xml: "<command>echo beside it</command>",
                status: Status::Ok,
                code: None,
            },
        ],
    };

    fn effect(_: &Args) -> Effect {
        Effect::Session
    }

    fn timeout(args: &Args) -> Option<Seconds> {
        args.timeout
    }

    fn title(args: &Args) -> String {
        args.text.source().to_owned()
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        visit(Use::Script, &mut args.text);
        for text in [&mut args.cwd, &mut args.name].into_iter().flatten() {
            visit(Use::Literal, text);
        }
    }

    async fn run(mut args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let cwd = args
            .cwd
            .as_ref()
            .map(|cwd| context.path(cwd.text()))
            .transpose()?;
        let request = CommandRequest {
            bindings: args.text.take_bindings(),
            script: args.text.text().to_owned(),
            cwd,
            timeout: args
                .timeout
                .map(Seconds::duration)
                .or(context.command_timeout),
            detached_sink: Some((context.idle_sink)()),
        };
        let terminal = context.terminal()?;
        let progress = terminal.session.command(request, (context.sink)()).await?;
        let name = args.name.map(|name| name.text().to_owned());
        let mut answer = Output::answer(progress, terminal, name);
        let opened = terminal
            .opening
            .as_ref()
            .map(|opening| note(terminal, opening));
        let place = opened.or(terminal.back_from.map(note_back));
        let state = answer.output.note.take();
        let notes = [terminal.session.take_startup_note(), place, state];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        answer.output.note = (!notes.is_empty()).then(|| notes.join(". "));
        Ok(answer)
    }
}
