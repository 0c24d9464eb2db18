//! The command line: the only part of the program that reads the environment, opens script files and
//! accesses the terminal.

mod args;
mod ask;
mod assistant;
#[cfg(feature = "serve")]
mod call;
mod chat_setup;
mod chats;
mod config;
mod control_socket;
mod doctor;
mod history;
mod history_view;
mod import;
mod interrupts;
mod keyboard;
#[cfg(feature = "serve")]
mod ledger;
mod log;
mod mcp;
mod model;
mod model_access;
mod own_program;
mod parse;
mod policy;
mod policy_text;
mod prompt;
mod run;
mod runtime;
mod runtime_dir;
mod screen;
mod secret_lints;
#[cfg(feature = "serve")]
mod serve;
mod session_args;
mod shell;
mod signal_state;
mod signals;
mod state_dir;
mod supervise;
mod supervisor_args;
mod tasks;
mod tell;
mod terminal_lock;
mod tools;
mod undo;
mod undo_journal;
mod usage;
mod var;
mod vault;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use clap::{CommandFactory, Parser};

use args::{Cli, Command, RunArgs};
use assistant::args::ChatArgs;

use karyi_core::error::{ErrorClass, ErrorCode, ToolError};
use karyi_pty::lacks_output;
use karyi_screen::terminal_guard;

/// Exit status of wrong usage and refused input.
const USAGE: u8 = 2;
/// Exit status when the reader of the output closed the pipe, as after SIGPIPE.
const BROKEN_PIPE: u8 = 128 + 13;
/// Exit status of a bug.
const BUG: u8 = 255;

/// Runs the program with its arguments, the program's name first.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    if let Some(rest) = bootstrap_arguments(&arguments) {
        let error = karyi_pty::bootstrap::bootstrap(rest.iter().cloned());
        return fail(&format!("the shell could not be started: {error}"));
    }
    vault::take_variables();
    install_panic_message();
    if !has_room() {
        return fail(
            "expected a few free file descriptors, found none\nhint: start karyi with a higher limit (`ulimit -n`)",
        );
    }
    let result = std::panic::catch_unwind(|| dispatch(arguments));
    result.unwrap_or_else(|_| panicked())
}

/// Returns true when enough files can be opened at start; later failures could not be reported.
fn has_room() -> bool {
    let pipes = [io::pipe(), io::pipe(), io::pipe()];
    pipes.iter().all(Result::is_ok)
}

/// Returns the arguments of the hidden shell start.
fn bootstrap_arguments(arguments: &[OsString]) -> Option<&[OsString]> {
    match arguments {
        [_, first, rest @ ..] if first == karyi_pty::bootstrap::ARGUMENT => Some(rest),
        _ => None,
    }
}

/// Message about a panic that happened while a screen had the terminal.
static WITHHELD: Mutex<Option<String>> = Mutex::new(None);

/// Reports a panic without its message, which could contain a secret. While a screen has the terminal, the report waits:
/// the panic of a call does not end the program.
fn install_panic_message() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let message = format!("internal error at {place}; this is a bug in karyi");
        match terminal_guard::is_taken() {
            false => say(&message),
            true => {
                log::write(&message);
                *WITHHELD.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
            }
        }
    }));
}

/// Returns the exit status of a panic that ended the program.
fn panicked() -> ExitCode {
    let mut withheld = WITHHELD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(message) = withheld.take() {
        say(&message);
    }
    ExitCode::from(BUG)
}

/// Parses the arguments; says what is wrong with them.
fn parsed(arguments: &[OsString]) -> Result<Cli, ExitCode> {
    let may_hold_value = usage::may_hold_value(arguments);
    Cli::try_parse_from(arguments).map_err(|error| {
        let code = u8::try_from(error.exit_code()).unwrap_or(USAGE);
        let message = match may_hold_value {
            true => usage::without_arguments(&error, arguments),
            false => None,
        };
        match message {
            Some(message) => say(&message),
            None => {
                let _ = error.print();
            }
        }
        ExitCode::from(code)
    })
}

fn dispatch(arguments: Vec<OsString>) -> ExitCode {
    if let [_, only] = arguments.as_slice()
        && (only == "--version" || only == "-V")
    {
        return version(&arguments);
    }
    let cli = match parsed(&arguments) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    if let Some(path) = &cli.log
        && let Err(error) = log::open(path)
    {
        return fail(&format!("{error:#}"));
    }
    if cli.command.is_some() && cli.start.is_given() {
        return fail("expected the options behind the command, as in `karyi chat --model NAME`");
    }
    let checked = cli.start.check_text(Cli::command);
    match checked.and_then(|()| cli.start.as_ask()) {
        Ok(None) => {}
        Ok(Some(arguments)) => return dispatch(arguments),
        Err(message) => return fail(&message),
    }
    match cli.command {
        Some(Command::Run(args)) => run::run(*args),
        Some(Command::Chat(args)) => assistant::chat(*args),
        Some(Command::Ask(args)) => ask::ask(*args),
        Some(Command::Parse(args)) => parse::parse(&args),
        Some(Command::Tools(args)) => tools::tools(&args),
        Some(Command::Var(args)) => var::var(*args),
        Some(Command::Config(args)) => config::config(args),
        Some(Command::History(args)) => history::history(args),
        Some(Command::Undo(args)) => undo::undo(&args),
        Some(Command::Doctor(args)) => doctor::doctor(&args),
        #[cfg(feature = "serve")]
        Some(Command::Serve(args)) => serve::serve(*args),
        #[cfg(feature = "serve")]
        Some(Command::Site(args)) => serve::site(args),
        #[cfg(feature = "serve")]
        Some(Command::Ledger(args)) => ledger::ledger(args),
        #[cfg(feature = "serve")]
        Some(Command::Call(args)) => call::call(*args),
        Some(Command::Supervise(args)) => supervise::supervise(*args),
        Some(Command::Chats(args)) => chats::chats(&args),
        Some(Command::Tell(args)) => tell::tell(&args),
        Some(Command::Answer(args)) => tell::answer(&args),
        Some(Command::Tasks(args)) => tasks::tasks(&args),
        Some(Command::Policy(args)) => policy::policy(args),
        Some(Command::Import(args)) => import::import(&args),
        Some(Command::Model(args)) => model::model(&args),
        Some(Command::Mcp(args)) => mcp::mcp(*args),
        Some(Command::Man { name }) => manual(name.as_deref()),
        Some(Command::Completions { shell }) => completions(shell),
        None if cli.start.is_given() => assistant::chat(cli.start.into_chat()),
        None if io::stdin().is_terminal() && io::stdout().is_terminal() => {
            assistant::chat(ChatArgs::default())
        }
        None if io::stdin().is_terminal() => help(),
        None => run::run(RunArgs::from_stdin()),
    }
}

/// Prints the version. All subcommands with their arguments are not made for that: they take more memory than the rest
/// of the start.
fn version(arguments: &[OsString]) -> ExitCode {
    let program = clap::Command::new("karyi").version(env!("CARGO_PKG_VERSION"));
    if let Err(version) = program.try_get_matches_from(arguments) {
        let _ = version.print();
    }
    ExitCode::SUCCESS
}

fn help() -> ExitCode {
    match Cli::command().print_help() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            fail(&format!("writing to stdout: {error}"))
        }
        _ => ExitCode::SUCCESS,
    }
}

fn completions(shell: clap_complete::Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "karyi", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints a page for `man -l`.
fn manual(name: Option<&str>) -> ExitCode {
    let whole = Cli::command();
    let (title, command) = match name {
        None => ("karyi".to_owned(), Some(whole)),
        Some(name) => (
            format!("karyi-{name}"),
            whole.find_subcommand(name).cloned(),
        ),
    };
    let Some(command) = command else {
        return fail(&format!(
            "expected a command, found {:?}\nhint: `karyi help` lists the commands",
            name.unwrap_or_default()
        ));
    };
    let mut page = Vec::new();
    match clap_mangen::Man::new(command)
        .title(title)
        .render(&mut page)
    {
        Ok(()) => print(&String::from_utf8_lossy(&page)),
        Err(error) => fail(&format!("rendering the page: {error}")),
    }
}

/// Writes to stdout; a reader that closed the pipe is no error.
fn print(text: &str) -> ExitCode {
    if lacks_output() {
        return fail("writing to stdout: it is closed");
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            fail(&format!("writing to stdout: {error}"))
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Reports wrong usage and returns its exit status.
fn fail(message: &str) -> ExitCode {
    say(message);
    ExitCode::from(USAGE)
}

/// Reports an error, with its code if it has one, and returns its exit status.
fn fail_any(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<ToolError>() {
        Some(error) => {
            fail_with(error);
            ExitCode::from(USAGE)
        }
        None => fail(&format!("{error:#}")),
    }
}

/// Reports an error with a code and returns its exit status.
fn fail_with(error: &ToolError) -> ExitCode {
    say(&format!("{}: {}", error.code.as_str(), error.message));
    if !error.hint.is_empty() {
        say(&format!("hint: {}", error.hint));
    }
    ExitCode::from(status(error))
}

/// Reports an error in the user's input and returns its exit status: an error of a tool call counts as
/// wrong usage when an argument or a given value caused it.
fn fail_as_given(error: &ToolError) -> ExitCode {
    let code = match error.hint == error.code.hint() && error.code == ErrorCode::BadArguments {
        true => fail_with(
            &error
                .clone()
                .with_hint("run the command with --help to see its arguments"),
        ),
        false => fail_with(error),
    };
    match error.code {
        ErrorCode::BadArguments | ErrorCode::BadValue => ExitCode::from(USAGE),
        _ => code,
    }
}

/// Returns the exit status of an error with a code.
fn status(error: &ToolError) -> u8 {
    match error.code.class() {
        ErrorClass::Failed => 1,
        ErrorClass::Refused => USAGE,
        ErrorClass::NeedsUser => 3,
    }
}

/// Writes one line to stderr and to the log; a failure cannot be reported.
fn say(message: &str) {
    log::write(message);
    let _ = writeln!(std::io::stderr(), "karyi: {message}");
}
