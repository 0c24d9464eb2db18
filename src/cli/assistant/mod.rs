//! `karyi chat`: the assistant, a conversation on the terminal with a model that acts.
//!
//! ```text
//! keys ── app ── talk: turns of the model and commands of the user ── view ── screen
//!                             questions: the screen steps aside ──────┘
//! ```
//!
//! One loop owns the screen. The conversation writes into a view that keeps only what is shown, so output that floods in
//! costs no frames.

mod actions;
mod app;
mod approval_screen;
pub(super) mod args;
mod chat_actions;
mod commands;
mod completion;
mod frame;
mod input_history;
mod key_reader;
mod lines;
mod menu;
mod outside;
mod own_commands;
mod own_options;
mod parts;
mod path_completion;
mod person_output;
mod picker;
mod picking;
mod plain;
mod project;
mod questions;
mod raw_terminal;
mod rewind;
mod rewind_list;
mod screen;
mod shell_visit;
mod shell_watch;
mod short_path;
mod start;
mod talk;
mod terminal_loan;
mod view;
mod visit_state;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::cli::assistant::app::{App, Inputs};
use crate::cli::assistant::approval_screen::{Asked, ScreenApprover};
use crate::cli::assistant::args::ChatArgs;
use crate::cli::assistant::key_reader::KeyReader;
use crate::cli::assistant::own_options::OwnOptions;
use crate::cli::assistant::questions::{ScreenQuestions, TerminalRequest};
use crate::cli::assistant::screen::{Notice, Screen};
use crate::cli::assistant::shell_watch::ShellWatch;
use crate::cli::assistant::start::{Earlier, Start};
use crate::cli::assistant::talk::Talk;
use crate::cli::assistant::view::SharedView;
use crate::cli::chat_setup::{self, ChatSetup};
use crate::cli::config::Settings;
use crate::cli::model;
use crate::cli::prompt::tty;
use crate::cli::screen::is_dumb;
use crate::cli::signals::Signals;
use crate::cli::{control_socket, fail, policy};
use karyi_core::limits;
use karyi_pty::lacks_output;

/// Message without a terminal.
const NO_TERMINAL: &str = "the conversation needs a terminal for its input and its output
hint: `karyi ask TEXT` answers one request without one, and reads standard input; `karyi chat --plain` talks in lines";

/// Message without the screen.
const NO_LIST: &str = "expected the id of a chat: the list needs the screen\nhint: `karyi chats list --all` prints the chats";

/// Message in the background of a terminal.
const NOT_IN_FRONT: &str = "another program has the terminal, and no shell can give it to karyi
hint: start karyi in the foreground, such as by `timeout --foreground`";

/// Questions that the screen gets.
struct Questions {
    requests: mpsc::Receiver<TerminalRequest>,
    asked: mpsc::Receiver<Asked>,
}

/// Runs `karyi chat`.
pub(super) fn chat(args: ChatArgs) -> ExitCode {
    if lacks_output() {
        return fail("the conversation cannot be shown: standard output is closed");
    }
    let is_on_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let is_plain = args.plain || is_dumb();
    if !(is_plain || is_on_terminal) {
        return fail(NO_TERMINAL);
    }
    if is_plain && args.is_resumed_from_list() {
        return fail(NO_LIST);
    }
    let (start, questions) = match prepare(&args) {
        Ok(prepared) => prepared,
        Err(code) => return code,
    };
    let context = &start.setup.context;
    let kept = (start.setup.logs.clone(), context.secrets.clone());
    chat_setup::run_to_end(kept, run(start, args, questions))
}

/// Prepares model, vault and rules. Questions about them come before the screen.
fn prepare(args: &ChatArgs) -> Result<(Start, Questions), ExitCode> {
    let told = |error: anyhow::Error| fail(&format!("{error:#}"));
    let chosen = model::choose(args.model.as_deref());
    let chosen = chosen.map_err(|error| model::fail_choice(&error))?;
    let registry = args.session.offer.offer().map_err(told)?.registry();
    let (sender, requests) = mpsc::channel(1);
    let (asker, asked) = mpsc::channel(1);
    let approver = ScreenApprover(asker);
    let setup = ChatSetup::new(
        &args.session,
        chosen,
        chat_setup::Questions::Asked,
        |terminal| ScreenQuestions::new(terminal, sender, approver.clone()),
    );
    let mut setup = setup.map_err(told)?;
    let model = setup.open_model(&args.session)?;
    let cwd = setup.context.sessions.cwd();
    let user = setup.asker();
    let is_trusted = policy::is_trusted(&cwd, project::files(&cwd), user.as_ref());
    setup.is_trusted = is_trusted.map_err(told)?;
    if setup.stop_source.cancel.is_cancelled() {
        let code = setup.stop_source.received.exit_code();
        return Err(ExitCode::from(code.unwrap_or(plain::INTERRUPTED)));
    }
    let approvals = policy::approvals(&cwd, args.mode, Some(Arc::new(approver)));
    let approvals = approvals.map_err(told)?;
    let mut start = Start::new(setup, model, (approvals, registry));
    start.own_options = OwnOptions::of(&args.session);
    let named = args.resume.clone().filter(|id| !id.is_empty());
    let named = named.map(Earlier::Named);
    start.earlier = named.or(args.is_continued.then_some(Earlier::Last));
    Ok((start, Questions { requests, asked }))
}

async fn run(start: Start, args: ChatArgs, questions: Questions) -> anyhow::Result<u8> {
    let signals = Signals::catch().context("catching signals")?;
    let context = &start.setup.context;
    let (sessions, jobs) = (Arc::clone(&context.sessions), start.setup.jobs.clone());
    let watch = signals.watch(Arc::clone(&sessions), start.setup.stop_source.clone());
    let watch = tokio::spawn(watch);
    let model = &start.setup.model.name;
    let _control_socket = control_socket::open_for("chat", model, context);
    let is_picked = args.is_resumed_from_list();
    // The list opens before the text is sent.
    let texts = is_picked.then(|| "/resume".to_owned()).into_iter();
    let text = Some(args.text.join(" ")).filter(|text| !text.is_empty());
    let texts: Vec<String> = texts.chain(text).collect();
    let talk = Talk::opening(start.opening(args.session));
    let code = match args.plain || is_dumb() {
        true => plain::run(start, talk, texts, questions).await,
        false => on_screen(start, talk, texts, questions).await,
    };
    jobs.close().await;
    watch.abort();
    code
}

/// Runs the conversation on the screen.
async fn on_screen(
    start: Start,
    talk: Talk,
    texts: Vec<String>,
    questions: Questions,
) -> anyhow::Result<u8> {
    let terminal = tty::open().context("opening the terminal")?;
    let palette = screen::palette();
    let settings = Settings::load()?;
    let notice = Notice::of(settings.text("notify"));
    let stop = start.setup.stop_source.clone();
    let is_reachable = tty::is_in_front(&terminal) || tty::has_shell();
    anyhow::ensure!(is_reachable, NOT_IN_FRONT);
    tokio::select! {
        biased;
        () = stop.cancel.cancelled() => {
            return Ok(stop.received.exit_code().unwrap_or(plain::INTERRUPTED));
        }
        () = outside::come_to_front(&terminal) => {}
    }
    let screen = Screen::open(&terminal, palette, notice).context("taking the terminal")?;
    let view = SharedView::new(limits::DEFAULT_COLUMNS, palette);
    let (sender, typed) = mpsc::unbounded_channel();
    let keys = KeyReader::start(terminal, sender).context("starting to read keys")?;
    let resized = signal(SignalKind::window_change()).context("catching signals")?;
    let sessions = Arc::clone(&start.setup.context.sessions);
    let shell = ShellWatch::start(sessions, Arc::clone(&view.changed));
    let inputs = Inputs {
        typed,
        requests: questions.requests,
        asked: questions.asked,
        resized,
    };
    let mut app = App::new(start, talk, (screen, keys), (view, shell));
    app.greet(texts);
    Ok(app.run(inputs).await)
}
