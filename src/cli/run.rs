//! `karyi run`: scripts in, reports out.

mod input;
mod session;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::mpsc;

use crate::cli::args::{RunArgs, VarsMode};
use crate::cli::bare_calls::BareCalls;
use crate::cli::control_socket::{self, ControlSocket};
use crate::cli::interrupts::{self, Interrupts};
use crate::cli::journal;
use crate::cli::prompt::{Asker, Asking, Outside, Terminal};
use crate::cli::screen::{self, CancelOnPanic, Screen};
use crate::cli::signals::Signals;
use crate::cli::terminal_lock::TerminalLock;
use crate::cli::vault;
use crate::cli::{BROKEN_PIPE, fail, fail_as_given, fail_with, say};
use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::intake::Intake;
use crate::exec::jobs::Jobs;
use crate::exec::log::Logs;
use crate::exec::message::{Pace, Runner};
use crate::exec::permit::Permits;
use crate::exec::stage::Stage;
use crate::render::Format;
use crate::render::paint::Colour;
use crate::tool::Registry;
use crate::tool::context::{Boxed, Context};
use crate::tools::{self, Call};
use karyi_core::error::ToolError;
use karyi_core::head_tail::Cap;
use karyi_core::limits;
use karyi_core::outcome::{ReportStatus, Tally};
use karyi_pty::guard;
use karyi_pty::{Session, lacks_output};
use karyi_syntax::Mode;
use karyi_syntax::grammar::Grammar;
use karyi_vault::redact::{Redacted, Redactor};
use karyi_vault::session::Secrets;

use input::{inputs, read};

pub(super) use input::{CHUNK_BYTES, Input, open};
pub(super) use session::{context, logs, permits};

/// Runs `karyi run`.
pub(super) fn run(args: RunArgs) -> ExitCode {
    if lacks_output() {
        return fail(
            "no report can be written: standard output is closed; let it lead to a file, or to /dev/null",
        );
    }
    let inputs = match inputs(&args) {
        Ok(inputs) => inputs,
        Err(error) => return fail(&format!("{error:#}")),
    };
    let mut run = match Run::new(&args) {
        Ok(run) => run,
        Err(error) => {
            // What was given is right then, so whoever reads the report gets one.
            if std::env::current_dir().is_err() {
                let _ = tell_unread(format(&args));
            }
            return fail(&format!("{error:#}"));
        }
    };
    if let Err(code) = run.open_vault(&args) {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("starting the runtime: {error}")),
    };
    interrupts::outlive_file_limit(&runtime);
    let (received, logs) = (run.outside.received.clone(), run.logs.clone());
    let secrets = run.context.secrets.clone();
    let result = {
        // A question gives the terminal back when the run breaks.
        let _guard = CancelOnPanic(run.outside.cancel.clone());
        runtime.block_on(run.all(inputs))
    };
    logs.remove();
    vault::record_use(&secrets);
    // A thread may still wait for a script on standard input; nobody waits for it.
    runtime.shutdown_background();
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::from(BROKEN_PIPE),
        // The terminal went away; the signal that tells so may still be on its way.
        Err(error) if is_hangup(&error) => ExitCode::from(received.exit_code().unwrap_or(HANGUP)),
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// Writes the report of a message of which nothing can be run.
fn tell_unread(format: Format) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (screen, events) = Screen::open(format, Cancel::default(), TerminalLock::default())?;
        let redactor = Redactor::new(&Secrets::default());
        let ended = Event::MessageEnded {
            is_interrupted: false,
            shell: None,
            note: None,
        };
        for event in [Event::Unreadable, ended] {
            events.send(redactor.seal(event)).await?;
        }
        screen.close().await?;
        Ok(())
    })
}

/// Whether something failed because the reader of the output went away.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Exit status of a program whose terminal is gone.
const HANGUP: u8 = 129;

/// Whether the report could not be written because the terminal is gone. What failed elsewhere says
/// where.
fn is_hangup(error: &anyhow::Error) -> bool {
    let first = error.chain().next();
    let cause = first.and_then(|error| error.downcast_ref::<io::Error>());
    let code = cause.and_then(io::Error::raw_os_error);
    code == Some(nix::errno::Errno::EIO as i32)
}

/// Everything the messages of one run share.
struct Run {
    registry: Arc<Registry<Call>>,
    grammar: Arc<Grammar>,
    context: Context,
    mode: Mode,
    pace: Pace,
    format: Format,
    cap: Cap,
    is_dry_run: bool,
    outside: Outside,
    terminal_lock: TerminalLock,
    jobs: Jobs,
    logs: Logs,
    permits: Permits,
    redactor: Redactor,
    /// The signals that come before the run listens to them.
    interrupts: Option<Interrupts>,
    /// What its scripts are called.
    origin: String,
}

impl Run {
    fn new(args: &RunArgs) -> anyhow::Result<Self> {
        let registry = Arc::new(tools::registry());
        let grammar = Arc::new(registry.grammar());
        let (outside, terminal_lock) = (Outside::default(), TerminalLock::default());
        let asking = asking(args)?;
        let origin = origin(args);
        let terminal = Terminal {
            asking,
            asker: Asker {
                outside: outside.clone(),
                terminal_lock: terminal_lock.clone(),
            },
            origin: origin.clone(),
        };
        let context = context(&args.session, &outside.cancel, Arc::new(terminal))?;
        context.secrets.protect_memory_with(guard::protect);
        let redactor = Redactor::new(&context.secrets);
        let logs = logs(&args.session, &context);
        let permits = permits(&args.session, &context)?;
        Ok(Self {
            registry,
            grammar,
            mode: if args.strict {
                Mode::Strict
            } else {
                Mode::Repair
            },
            pace: if args.stream {
                Pace::Stream
            } else {
                Pace::Whole
            },
            format: format(args),
            cap: Cap::total(args.session.max_output),
            is_dry_run: args.dry_run,
            outside,
            terminal_lock,
            jobs: Jobs::new(
                Arc::clone(&context.sessions),
                logs.clone(),
                redactor.clone(),
            ),
            logs,
            permits,
            redactor,
            interrupts: None,
            origin,
            context,
        })
    }

    /// Loads what the vault holds, before anything runs.
    fn open_vault(&mut self, args: &RunArgs) -> Result<(), ExitCode> {
        let asker = Asker {
            terminal_lock: self.terminal_lock.clone(),
            outside: self.outside.clone(),
        };
        let asker = asker.found(!args.no_interactive && !is_ci());
        let given = &args.session.given;
        let interrupts = asker
            .as_ref()
            .and_then(|_| Interrupts::watch(&self.outside).ok());
        // Signals go on to be caught until the run does that itself.
        self.interrupts = interrupts;
        let result = vault::prepare(&self.context.secrets, &args.session.vault, asker, given);
        match self.outside.received.exit_code() {
            Some(code) => Err(ExitCode::from(code)),
            None => {
                let opened = result.map_err(|error| fail_as_given(&error))?;
                self.context.keeper = opened.keeper;
                if let Some(key) = &opened.journal_key {
                    journal::encrypt(&mut self.context.recorder, key);
                }
                self.compare_policy().map_err(|error| fail_with(&error))
            }
        }
    }

    /// Compares the policy file with the secrets there are: a misspelt name would narrow nothing, and
    /// nobody would see it.
    fn compare_policy(&mut self) -> Result<(), ToolError> {
        self.permits
            .compare(&vault::known_names(&self.context.secrets))?;
        for unknown in self.permits.unknown() {
            // Whoever mixes up its arguments may have put a value there.
            say(&self.redactor.redact_str(&format!("warning: {unknown}")));
        }
        Ok(())
    }

    /// Runs every script and returns the exit status of all together.
    async fn all(mut self, inputs: Vec<Input>) -> anyhow::Result<u8> {
        let mut total = Tally::default();
        let signals = Signals::catch().context("catching signals")?;
        drop(self.interrupts.take());
        if let Some(code) = self.outside.received.exit_code() {
            return Ok(code);
        }
        let sessions = Arc::clone(&self.context.sessions);
        let watch = signals.watch(sessions, self.outside.clone());
        let watch = tokio::spawn(watch);
        // Open as long as the session is there. Whatever holds that up, signals are heard meanwhile.
        let _control_socket = self.open_control_socket();
        let last = inputs.len().saturating_sub(1);
        for (number, input) in inputs.into_iter().enumerate() {
            if number > 0 && self.outside.cancel.is_cancelled() {
                break;
            }
            total.merge(&self.one(input, number == last).await?);
        }
        watch.abort();
        if self.outside.received.is_interrupted() {
            total.add_interruption();
        }
        let received = &self.outside.received;
        Ok(received.exit_code().unwrap_or(total.status().exit_code()))
    }

    /// Lets `karyi var set --session` in.
    fn open_control_socket(&self) -> Option<ControlSocket> {
        let secrets = self.context.secrets.clone();
        let get = move || Box::pin(std::future::ready(Ok(secrets.clone()))) as Boxed<'_, _>;
        let cwd = self.context.sessions.cwd();
        control_socket::open(("run", self.origin.clone()), &cwd, Arc::new(get))
    }

    async fn one(&self, input: Input, is_last: bool) -> anyhow::Result<Tally> {
        let (screen, events) = Screen::open(
            self.format,
            self.outside.cancel.clone(),
            self.terminal_lock.clone(),
        )
        .context("starting the report")?;
        let ticks = screen::wants_ticks(self.format).then(|| {
            tokio::spawn(tick(
                events.clone(),
                self.redactor.clone(),
                self.terminal_lock.clone(),
            ))
        });
        let runner = Runner::new(self.stage(events.clone()));
        let intake = Intake::new(
            Arc::clone(&self.registry),
            Arc::clone(&self.grammar),
            self.mode,
        );
        let names = self.registry.entries().iter().map(|entry| entry.spec.name);
        let name = input.name();
        let (reader, chunks) = read(input, BareCalls::new(names.collect()))?;
        runner.message(intake, chunks, self.pace).await;
        if is_last || self.outside.cancel.is_cancelled() {
            runner.close().await;
        } else {
            runner.jobs().await;
        }
        if let Some(ticks) = ticks {
            ticks.abort();
        }
        let is_interrupted = self.outside.received.is_interrupted();
        let terminal = self.context.sessions.current();
        let session = terminal.as_ref().map(|terminal| &terminal.session);
        let ended = Event::MessageEnded {
            is_interrupted,
            shell: session.map(Session::shell_name),
            note: session.and_then(Session::fallback),
        };
        runner.tell(ended).await;
        let tally = screen.close().await?;
        let bare = reader.check()?;
        if tally.calls() == 0 && tally.status() == ReportStatus::Ok {
            say(&format!(
                "nothing ran: {}",
                why_nothing(&tally, bare, &name)
            ));
        }
        Ok(tally)
    }

    fn stage(&self, events: mpsc::Sender<Redacted<Event>>) -> Stage {
        let is_live = matches!(self.format, Format::Text | Format::Jsonl);
        Stage {
            context: self.context.clone(),
            cap: self.cap,
            is_live,
            is_watched: is_live && io::stdout().is_terminal(),
            has_colour: self.format == Format::Text && screen::colour(&io::stdout()) == Colour::On,
            is_dry_run: self.is_dry_run,
            events,
            cancel: self.outside.cancel.clone(),
            jobs: self.jobs.clone(),
            permits: self.permits.clone(),
            redactor: self.redactor.clone(),
        }
    }
}

/// Says why a script without an error had no call: whoever wrote it may believe that it had one.
fn why_nothing(tally: &Tally, bare: Option<&str>, name: &str) -> String {
    match bare {
        Some(tool) => {
            format!("a line starts with <{tool}>, but calls run only inside <tools>...</tools>")
        }
        None if tally.blocks() > 0 => format!("the <tools> block in {name} has no call"),
        None => format!("there is no <tools> block in {name}"),
    }
}

async fn tick(
    events: mpsc::Sender<Redacted<Event>>,
    redactor: Redactor,
    terminal_lock: TerminalLock,
) {
    loop {
        tokio::time::sleep(limits::SPINNER_STEP).await;
        // While a question stands on the terminal nothing moves; a full channel means that there is
        // something better to show.
        if terminal_lock.is_free() {
            let _ = events.try_send(redactor.seal(Event::Tick));
        }
    }
}

fn format(args: &RunArgs) -> Format {
    match args.format {
        Some(name) => name.into(),
        None if args.json => Format::Json,
        None if io::stdout().is_terminal() => Format::Text,
        None => Format::Xml,
    }
}

/// Names the scripts of a run, for its user.
fn origin(args: &RunArgs) -> String {
    let name = |path: &PathBuf| match path.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    match (&args.code, args.files.as_slice()) {
        (Some(_), _) => "the text of -c".to_owned(),
        (None, []) => "standard input".to_owned(),
        (None, files) => files.iter().map(name).collect::<Vec<_>>().join(" or "),
    }
}

/// Returns whether and how the user is asked: by the flag, else by `KARYI_VARS_MODE`.
fn asking(args: &RunArgs) -> anyhow::Result<Asking> {
    let told = std::env::var_os("KARYI_VARS_MODE").filter(|text| !text.is_empty());
    let mode = match (args.vars_mode, told) {
        (Some(mode), _) => mode,
        (None, None) => VarsMode::Interactive,
        (None, Some(text)) => {
            let name = text.to_string_lossy();
            <VarsMode as clap::ValueEnum>::from_str(&name, false).map_err(|_| {
                anyhow::anyhow!("KARYI_VARS_MODE: expected interactive or warn, found {name:?}")
            })?
        }
    };
    Ok(match mode {
        VarsMode::Warn => Asking::Warn,
        VarsMode::Interactive if args.no_interactive || is_ci() => Asking::Never,
        VarsMode::Interactive => Asking::OnTerminal,
    })
}

/// Whether the run is unattended.
pub(super) fn is_ci() -> bool {
    std::env::var_os("CI")
        .is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}
