//! `bash`: runs a script in a bash of its own, which ends with the call.
//!
//! The lists of denied paths and words are a help against mistakes and no wall: a script can spell a name in many ways.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::tool::effect::PathBase;
use crate::tool::own_directories::{self, Case, OwnPath};
use crate::tool::seconds;
use crate::tool::settings::{BashSettings, ToolSettings};
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Seconds, Tool, Use};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::head_tail::Cap;
use karyi_core::limits;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_core::shell_word;
use karyi_pty::{CommandRequest, InputRequest, Progress, Session};

/// The tool.
pub struct Bash;

/// Arguments of `bash`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The script.
    #[schemars(extend("x-karyi" = {"child": "text", "missing": "missing required param: cmd"}))]
    pub cmd: Template,
    /// Directory to run in; the session's by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Template>,
    /// Seconds after which it is ended; 30 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<Seconds>,
}

/// Result of `bash`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Exit status of the script, or 128 + n after signal n.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// True when it was ended at its time limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
}

impl Tool for Bash {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "bash",
        summary: "Run a bash script of its own",
        details: "Nothing of it goes on after the call, and it gets no input.",
        also_called: &[],
        heading: "$",
        starts_job: false,
        family: Family::Assistant,
        form: Form::Attributes,
        examples: &[
            Example {
                title: "A script in a directory",
                before: "",
                xml: "<bash cwd=\"/usr\"><cmd>pwd; ls | head -3</cmd></bash>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A script that takes too long",
                before: "",
                xml: "<bash timeout_seconds=\"0.2\"><cmd>sleep 60</cmd></bash>",
                status: Status::Killed,
                code: Some("timeout"),
            },
        ],
    };
    const POLICY_NAME: &'static str = "command";

    fn effect(_: &Args) -> Effect {
        Effect::Outside {
            is_write: true,
            files: Vec::new(),
        }
    }

    fn title(args: &Args) -> String {
        args.cmd.source().to_owned()
    }

    fn timeout(args: &Args) -> Option<Seconds> {
        args.timeout_seconds
    }

    fn output_cap(settings: &ToolSettings) -> Option<Cap> {
        Some(Cap::total(settings.bash.max_output_bytes))
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn check(args: &Args) -> Result<(), ToolError> {
        args.timeout_seconds.map_or(Ok(()), Seconds::check_positive)
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        visit(Use::Script, &mut args.cmd);
        if let Some(cwd) = &mut args.cwd {
            visit(Use::Literal, cwd);
        }
    }

    async fn run(mut args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let settings = &context.settings.bash;
        if args.cmd.text().trim().is_empty() {
            let error = ToolError::new(ErrorCode::BadArguments, "missing required param: cmd");
            return Err(error.with_hint("write the script in <cmd>"));
        }
        if args.cmd.text().contains('\0') {
            let error = ToolError::new(ErrorCode::BadArguments, "no script holds a NUL character");
            return Err(error.with_hint("leave it out, or make it with `printf '\\0'`"));
        }
        let script = own_directories::expand_words(args.cmd.text(), &context.settings.directories)?;
        check_denied(&script, settings)?;
        let directory = match &args.cwd {
            Some(cwd) => directory(cwd.text(), context)?,
            None => context.sessions.cwd(),
        };
        let given = args
            .timeout_seconds
            .map_or(settings.timeout, Seconds::duration);
        // The caller of a server gets the output before its own time is up.
        let left = context.time_left();
        let left = left.map(|left| left.saturating_sub(limits::BASH_TOOL_ENDING));
        let timeout = left.map_or(given, |left| left.min(given));
        let file = script_file(&script)?;
        let session = context.sessions.start_bash(directory).await?;
        let request = CommandRequest {
            bindings: args.cmd.take_bindings(),
            // In a shell of its own, where errors and traps end it as they end a script.
            script: format!("( . {} )", shell_word::word(file.path().as_os_str())),
            timeout: Some(timeout),
            ..CommandRequest::default()
        };
        let progress = run_to_end(&session, request, timeout, context).await;
        session.close().await;
        Ok(answer(&progress?, timeout))
    }
}

/// Writes a script to a file that only its user can read. It has names of secrets and no values.
fn script_file(script: &str) -> Result<NamedTempFile, ToolError> {
    let written = NamedTempFile::with_prefix("karyi-bash-").and_then(|mut file| {
        file.write_all(script.as_bytes())?;
        file.flush()?;
        Ok(file)
    });
    written.map_err(|error| ToolError::from_io(Path::new("the file of the script"), &error))
}

/// Runs a script until it ends, waits for input, or its time is up.
async fn run_to_end(
    session: &Session,
    request: CommandRequest,
    timeout: Duration,
    context: &Context,
) -> Result<Progress, ToolError> {
    let until = Instant::now() + timeout;
    let mut progress = session.command(request, (context.sink)()).await?;
    // A program that polls the terminal may be at work.
    while progress.status == Status::AcceptsInput && Instant::now() < until {
        let request = InputRequest {
            timeout: Some(until.saturating_duration_since(Instant::now())),
            ..InputRequest::default()
        };
        progress = session.input(b"", request, (context.sink)()).await?;
    }
    Ok(progress)
}

/// Returns the answer of a call whose script has ended or was ended.
fn answer(progress: &Progress, timeout: Duration) -> Answer<Output> {
    let timed_out = matches!(progress.status, Status::Running | Status::AcceptsInput);
    let problem = match progress.status {
        _ if timed_out => {
            let error = seconds::timed_out(Bash::SPEC.name, timeout);
            Some(error.with_hint("give it more time with timeout_seconds, or do less at once"))
        }
        Status::AwaitingInput | Status::Stopped => Some(ToolError::new(
            ErrorCode::WaitsForInput,
            "the script waited for input, so it was ended",
        )),
        _ => None,
    };
    Answer {
        status: match problem {
            Some(_) => Status::Killed,
            None => progress.status,
        },
        output: Output {
            exit_code: progress.exit_code,
            timed_out,
        },
        problem,
    }
}

/// Checks a script for paths and words that the settings deny.
fn check_denied(script: &str, settings: &BashSettings) -> Result<(), ToolError> {
    let has = |word: &str, case| !own_directories::find_word(script, word, case).is_empty();
    let denied = |what: &str, found: &str, list: &str| {
        let message = format!(
            "bash command references denied {what} \"{found}\" (configure via tools.bash.{list})"
        );
        let error = ToolError::new(ErrorCode::PolicyDenied, message);
        Err(error.with_hint("the user keeps this from you; go on without it"))
    };
    for entry in &settings.deny_paths {
        let name = Path::new(entry).file_name().and_then(|name| name.to_str());
        if let Some(found) = [Some(entry.as_str()), name]
            .into_iter()
            .flatten()
            .find(|word| has(word, Case::Kept))
        {
            return denied("path", found, "deny_paths");
        }
    }
    match settings
        .deny_tokens
        .iter()
        .find(|word| has(word, Case::Ignored))
    {
        Some(found) => denied("token", found, "deny_tokens"),
        None => Ok(()),
    }
}

/// Returns the directory that a call names.
fn directory(written: &str, context: &Context) -> Result<PathBuf, ToolError> {
    let directories = &context.settings.directories;
    let path = OwnPath::parse_directory(written);
    let real = match path.base {
        PathBase::Session => {
            let given = directories.expand_home(path.rest);
            context.path(&given.to_string_lossy())?
        }
        base => {
            let root = directories.open_to_write(base)?;
            let place = directories.place(base);
            root.resolve(place, Path::new(path.rest))?
        }
    };
    match real.is_dir() {
        true => Ok(real),
        false => {
            let message = format!("chdir {written}: no such directory");
            Err(ToolError::new(ErrorCode::NotFound, message))
        }
    }
}
