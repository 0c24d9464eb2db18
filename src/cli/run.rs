//! `karyi run`: runs scripts and writes reports.

mod input;
mod session;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::mpsc;

use crate::cli::args::{ColorMode, RunArgs, VarsMode};
use crate::cli::config::Settings;
use crate::cli::control_socket;
use crate::cli::interrupts::{self, Interrupts};
use crate::cli::keyboard::Keyboard;
use crate::cli::prompt::{Asker, Asking, StopSource, Terminal};
use crate::cli::screen::{self, CancelOnPanic, Screen, Shown};
use crate::cli::shell::SessionUse;
use crate::cli::signals::Signals;
use crate::cli::state_dir;
use crate::cli::terminal_lock::TerminalLock;
use crate::cli::undo_journal;
use crate::cli::vault;
use crate::cli::{BROKEN_PIPE, fail, fail_as_given, fail_with, say};
use crate::exec::Event;
use crate::exec::cancel::Cancel;
use crate::exec::decoder::MessageDecoder;
use crate::exec::jobs::Jobs;
use crate::exec::message_runner::{MessageRunner, Pace};
use crate::exec::output_log::OutputLogs;
use crate::exec::policy_gate::PolicyGate;
use crate::exec::run_context::RunContext;
use crate::render::Format;
use crate::render::paint::Colour;
use crate::render::text_report::Detail;
use crate::tool::Registry;
use crate::tool::context::{Context, ShownTexts};
use crate::tool::supervision::{SharedSupervision, Supervision};
use crate::tools::Call;
use crate::tools::offer::Offer;
use karyi_core::error::ToolError;
use karyi_core::head_tail::Cap;
use karyi_core::limits;
use karyi_core::outcome::Tally;
use karyi_files::edit::Diffs;
use karyi_pty::guard;
use karyi_pty::{Session, lacks_output};
use karyi_syntax::Mode;
use karyi_syntax::grammar::Grammar;
use karyi_tasks::state_directory::StateDirectory;
use karyi_vault::redact::{Redacted, Redactor};
use karyi_vault::session::Secrets;

use input::{inputs, read};

pub(super) use input::{CHUNK_BYTES, Input, open};
pub(super) use session::{context, logs, policy_gate};

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
                let _ = report_unreadable(format(&args));
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
    let (received, logs) = (run.stop_source.received.clone(), run.logs.clone());
    let secrets = run.context.secrets.clone();
    let supervision = run.context.supervision.clone();
    let result = {
        // A question gives the terminal back when the run breaks.
        let _guard = CancelOnPanic(run.stop_source.cancel.clone());
        runtime.block_on(run.all(inputs))
    };
    logs.remove();
    vault::record_use(&secrets);
    // A thread may still wait for a script on standard input; nobody waits for it.
    runtime.shutdown_background();
    match result {
        Ok(0) => match supervision.map_or(Ok(()), |session| session.commit()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail_with(&error),
        },
        Ok(code) => ExitCode::from(code),
        Err(error) if is_broken_pipe(&error) => ExitCode::from(BROKEN_PIPE),
        // The terminal went away; the signal that tells so may still be on its way.
        Err(error) if is_hangup(&error) => ExitCode::from(received.exit_code().unwrap_or(HANGUP)),
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// Begins the session of a role, if the run plays one.
fn supervision(args: &RunArgs) -> anyhow::Result<SharedSupervision> {
    let Some(role) = args.role else {
        return Ok(None);
    };
    let name = karyi_core::ids::new_id()?;
    let settings = Settings::load()?.supervisor();
    let state = StateDirectory::open(&args.state_dir.path()?)?.with_pauses(settings.pauses);
    let session = Supervision::new(Arc::new(state), role.into(), &name);
    Ok(Some(Arc::new(session.with_aging(settings.aging))))
}

/// Writes the report of a message that could not be read.
fn report_unreadable(format: Format) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let shown = Shown {
            format,
            cwd: PathBuf::new(),
            texts: ShownTexts::default(),
            colour: Colour::Off,
            detail: Detail::Normal,
            on_start: None,
        };
        let (screen, events) = Screen::open(shown, Cancel::default(), TerminalLock::default())?;
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

/// Returns true when the reader of the output closed the pipe.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Exit status after the terminal was lost.
const HANGUP: u8 = 129;

/// Returns true when the report could not be written because the terminal is gone. Other errors name their
/// source.
fn is_hangup(error: &anyhow::Error) -> bool {
    let first = error.chain().next();
    let cause = first.and_then(|error| error.downcast_ref::<io::Error>());
    let code = cause.and_then(io::Error::raw_os_error);
    code == Some(nix::errno::Errno::EIO as i32)
}

/// State shared by the messages of one run.
struct Run {
    registry: Arc<Registry<Call>>,
    grammar: Arc<Grammar>,
    context: Context,
    mode: Mode,
    pace: Pace,
    format: Format,
    colour: Colour,
    detail: Detail,
    cap: Cap,
    is_dry_run: bool,
    stop_source: StopSource,
    terminal_lock: TerminalLock,
    jobs: Jobs,
    logs: OutputLogs,
    policy_gate: PolicyGate,
    /// Catches signals until the run does.
    interrupts: Option<Interrupts>,
    /// Name of its scripts.
    origin: String,
    /// True if a person may be at the keyboard.
    is_interactive: bool,
    /// The keyboard of the person who answers its commands.
    keyboard: Option<Keyboard>,
}

impl Run {
    fn new(args: &RunArgs) -> anyhow::Result<Self> {
        let supervision = supervision(args)?;
        let offer = match &supervision {
            Some(session) => Offer::of_role(session.role()),
            None => args.session.offer.offer()?,
        };
        let registry = Arc::new(offer.registry());
        let grammar = Arc::new(registry.grammar());
        let (stop_source, terminal_lock) = (StopSource::default(), TerminalLock::default());
        let asking = asking(args)?;
        let origin = origin(args);
        let terminal = Terminal {
            asking,
            asker: Asker {
                stop_source: stop_source.clone(),
                terminal_lock: terminal_lock.clone(),
            },
            origin: origin.clone(),
        };
        let mut context = context(
            &args.session,
            SessionUse::Script,
            &stop_source.cancel,
            Arc::new(terminal),
        )?;
        context.supervision = supervision;
        adapt_to_watcher(&mut context, args);
        context.secrets.protect_memory_with(guard::protect);
        let logs = logs(&args.session, SessionUse::Script, &context);
        let policy_gate = policy_gate(&args.session, &context)?;
        Ok(Self {
            registry,
            grammar,
            mode: if args.strict {
                Mode::Strict
            } else {
                Mode::Repair
            },
            pace: pace(args),
            format: format(args),
            colour: colour(args),
            detail: detail(args),
            cap: Cap::total(context.shown.output_bytes),
            is_dry_run: args.dry_run,
            stop_source,
            terminal_lock,
            jobs: Jobs::new(
                Arc::clone(&context.sessions),
                logs.clone(),
                context.redactor.clone(),
            ),
            logs,
            policy_gate,
            interrupts: None,
            origin,
            is_interactive: !args.no_interactive && !is_ci(),
            keyboard: None,
            context,
        })
    }

    /// Loads the vault before anything runs.
    fn open_vault(&mut self, args: &RunArgs) -> Result<(), ExitCode> {
        let asker = Asker {
            terminal_lock: self.terminal_lock.clone(),
            stop_source: self.stop_source.clone(),
        };
        let asker = asker.found(!args.no_interactive && !is_ci());
        let given = &args.session.given;
        let interrupts = asker
            .as_ref()
            .and_then(|_| Interrupts::watch(&self.stop_source).ok());
        // Signals stay caught until the run handles them itself.
        self.interrupts = interrupts;
        let result = vault::prepare(&self.context.secrets, &args.session.vault, asker, given);
        match self.stop_source.received.exit_code() {
            Some(code) => Err(ExitCode::from(code)),
            None => {
                let opened = result.map_err(|error| fail_as_given(&error))?;
                self.context.saver = opened.saver;
                if let Some(key) = &opened.journal_key {
                    undo_journal::encrypt(&mut self.context.recorder, key);
                }
                self.compare_policy().map_err(|error| fail_with(&error))
            }
        }
    }

    /// Compares the policy file with the existing secrets: a misspelt name would silently narrow nothing.
    fn compare_policy(&mut self) -> Result<(), ToolError> {
        self.policy_gate
            .compare_names(&vault::known_names(&self.context.secrets))?;
        for unknown in self.policy_gate.unknown() {
            // A misplaced argument may be a value.
            say(&self
                .context
                .redactor
                .redact_str(&format!("warning: {unknown}")));
        }
        Ok(())
    }

    /// Runs all scripts and returns the combined exit status.
    async fn all(mut self, inputs: Vec<Input>) -> anyhow::Result<u8> {
        let mut total = Tally::default();
        let signals = Signals::catch().context("catching signals")?;
        drop(self.interrupts.take());
        if let Some(code) = self.stop_source.received.exit_code() {
            return Ok(code);
        }
        let sessions = Arc::clone(&self.context.sessions);
        let watch = signals.watch(sessions, self.stop_source.clone());
        let watch = tokio::spawn(watch);
        // Open as long as the session is there. Whatever holds that up, signals are heard meanwhile.
        let _control_socket = control_socket::open_for("run", &self.origin, &self.context);
        self.keyboard = self.open_keyboard(&inputs);
        let last = inputs.len().saturating_sub(1);
        for (number, input) in inputs.into_iter().enumerate() {
            if number > 0 && self.stop_source.cancel.is_interrupted() {
                break;
            }
            total.merge(&self.one(input, number == last).await?);
        }
        watch.abort();
        if self.stop_source.received.is_interrupted() {
            total.add_interruption();
        }
        let received = &self.stop_source.received;
        Ok(received.exit_code().unwrap_or(total.status().exit_code()))
    }

    /// Opens the keyboard for commands that wait, where a person watches and does not type the script.
    fn open_keyboard(&self, inputs: &[Input]) -> Option<Keyboard> {
        let is_stdin = |input: &Input| matches!(input, Input::Stdin);
        let is_typed = inputs.iter().any(is_stdin) && io::stdin().is_terminal();
        if is_typed || !self.is_interactive || !screen::has_spinner(self.format, self.detail) {
            return None;
        }
        Keyboard::open(
            Arc::clone(&self.context.sessions),
            self.terminal_lock.clone(),
        )
    }

    async fn one(&self, input: Input, is_last: bool) -> anyhow::Result<Tally> {
        let (screen, events) = Screen::open(
            Shown {
                format: self.format,
                cwd: self.context.sessions.cwd(),
                texts: self.context.shown,
                colour: self.colour,
                detail: self.detail,
                on_start: self.keyboard.as_ref().and_then(Keyboard::start),
            },
            self.stop_source.cancel.clone(),
            self.terminal_lock.clone(),
        )
        .context("starting the report")?;
        let ticks = screen::has_spinner(self.format, self.detail).then(|| {
            tokio::spawn(tick(
                events.clone(),
                self.context.redactor.clone(),
                self.terminal_lock.clone(),
            ))
        });
        let runner = MessageRunner::new(self.run_context(events.clone()));
        let decoder = MessageDecoder::new(
            Arc::clone(&self.registry),
            Arc::clone(&self.grammar),
            self.mode,
        );
        let (reader, chunks) = read(input)?;
        runner.run_message(decoder, chunks, self.pace).await;
        if is_last || self.stop_source.cancel.is_cancelled() {
            runner.close().await;
        } else {
            runner.emit_jobs().await;
        }
        if let Some(ticks) = ticks {
            ticks.abort();
        }
        let is_interrupted = self.stop_source.received.is_interrupted();
        let terminal = self.context.sessions.current();
        let session = terminal.as_ref().map(|terminal| &terminal.session);
        let ended = Event::MessageEnded {
            is_interrupted,
            shell: session.map(Session::shell_name),
            note: session.and_then(Session::fallback),
        };
        runner.emit(ended).await;
        let tally = screen.close().await?;
        reader.check()?;
        Ok(tally)
    }

    fn run_context(&self, events: mpsc::Sender<Redacted<Event>>) -> RunContext {
        let is_live = matches!(self.format, Format::Text | Format::Jsonl);
        RunContext {
            context: self.context.clone(),
            cap: self.cap,
            is_live,
            is_watched: is_live && io::stdout().is_terminal(),
            has_colour: self.format == Format::Text && self.colour == Colour::On,
            is_dry_run: self.is_dry_run,
            has_keyboard: self.keyboard.is_some(),
            events,
            cancel: self.stop_source.cancel.clone(),
            jobs: self.jobs.clone(),
            policy_gate: self.policy_gate.clone(),
        }
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

fn pace(args: &RunArgs) -> Pace {
    match args.stream {
        true => Pace::Stream,
        false => Pace::Whole,
    }
}

fn colour(args: &RunArgs) -> Colour {
    match args.color {
        ColorMode::Auto => screen::colour(&io::stdout()),
        ColorMode::Always => Colour::On,
        ColorMode::Never => Colour::Off,
    }
}

fn detail(args: &RunArgs) -> Detail {
    match (args.quiet, args.verbose) {
        (true, _) => Detail::Quiet,
        (false, true) => Detail::Verbose,
        (false, false) => Detail::Normal,
    }
}

/// Shows whole diffs to a person, and limits commands where nobody watches.
fn adapt_to_watcher(context: &mut Context, args: &RunArgs) {
    let is_person = format(args) == Format::Text || args.dry_run;
    if is_person && args.session.diff.is_none() {
        context.shown.diffs = Diffs::Full;
    }
    if args.stream || !io::stdout().is_terminal() {
        context
            .command_timeout
            .get_or_insert(limits::COMMAND_TIMEOUT);
    }
}

/// Returns a name of the scripts for the user.
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

/// Returns how the user is asked: by the flag, else by `KARYI_VARS_MODE`.
fn asking(args: &RunArgs) -> anyhow::Result<Asking> {
    let told = state_dir::variable("KARYI_VARS_MODE");
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

/// Returns true for an unattended run.
pub(super) fn is_ci() -> bool {
    std::env::var_os("CI")
        .is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Seconds;

    #[test]
    fn a_command_has_a_time_limit_where_nobody_watches() {
        let limit = |timeout: Option<f64>| {
            let mut args = RunArgs::from_stdin();
            args.stream = true;
            args.session.timeout = timeout.and_then(Seconds::new);
            Run::new(&args).unwrap().context.command_timeout
        };
        assert_eq!(limit(None), Some(std::time::Duration::from_secs(120)));
        assert_eq!(
            limit(Some(300.0)),
            Some(std::time::Duration::from_secs(300))
        );
    }
}
