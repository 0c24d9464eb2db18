//! The conversation as lines, for terminals that only print: no cursor movement, no keys but those of a line.

use std::io::{self, BufRead as _, Write as _};

use tokio::sync::mpsc;

use crate::chat::turn::TurnEnd;
use crate::cli::assistant::commands::{self, Found, SlashCommand};
use crate::cli::assistant::menu::Totals;
use crate::cli::assistant::parts::Opening;
use crate::cli::assistant::questions::TerminalRequest;
use crate::cli::assistant::start::Start;
use crate::cli::assistant::talk::{Talk, UserCommand, UserText, WorkEnd, named_files};
use crate::cli::assistant::view::SharedView;
use crate::cli::{BUG, USAGE, say};
use karyi_core::limits;
use karyi_screen::styled_line::{Palette, write_line};

/// Exit status after Ctrl+C.
const INTERRUPTED: u8 = 130;

/// Runs the conversation.
pub(super) async fn run(
    mut start: Start,
    mut talk: Talk,
    first: String,
    mut requests: mpsc::Receiver<TerminalRequest>,
) -> anyhow::Result<u8> {
    let view = SharedView::new(limits::DEFAULT_COLUMNS, Palette::Plain);
    let stop = start.setup.stop_source.clone();
    let mut lines = lines();
    let mut totals = Totals::default();
    let mut first = Some(first).filter(|text| !text.is_empty());
    let mut is_asked = false;
    loop {
        let end = tokio::select! {
            end = talk.ended() => Some(end),
            () = view.changed.notified() => None,
            Some(request) = requests.recv() => {
                step_aside(request).await;
                None
            }
            line = lines.recv(), if !talk.is_busy() => match line.as_deref().map(str::trim) {
                None | Some("/quit") => return Ok(0),
                Some(line) => {
                    is_asked = false;
                    send(&mut start, &mut talk, &view, (line, &totals));
                    None
                }
            },
            () = stop.cancel.cancelled() => {
                return Ok(stop.received.exit_code().unwrap_or(INTERRUPTED));
            }
        };
        match end {
            None => {}
            Some(WorkEnd::Command | WorkEnd::Compaction(_)) => view.lock().end_turn(),
            Some(WorkEnd::Turn(report)) => {
                totals.add(&report);
                view.lock().end_turn();
                print(&view)?;
                if let TurnEnd::ModelFailed(error) = &report.end {
                    say(&format!("{}: {}", error.code(), error.message));
                }
            }
            Some(WorkEnd::Opened(opening)) => {
                if let Err(error) =
                    opening.and_then(|opening| open(&mut start, &mut talk, *opening))
                {
                    say(&format!("{error:#}"));
                    return Ok(USAGE);
                }
                if let Some(text) = first.take() {
                    send(&mut start, &mut talk, &view, (&text, &totals));
                }
            }
            Some(WorkEnd::Lost) => return Ok(BUG),
        }
        print(&view)?;
        if !talk.is_busy() && !std::mem::replace(&mut is_asked, true) {
            prompt()?;
        }
    }
}

/// Leaves the terminal to a question until it has its answer.
async fn step_aside(request: TerminalRequest) {
    let (turn, ended) = tokio::sync::oneshot::channel();
    if request.send(turn).is_ok() {
        let _ = ended.await;
    }
}

fn open(start: &mut Start, talk: &mut Talk, opening: Opening) -> anyhow::Result<()> {
    let (parts, _) = start.open(opening)?;
    talk.open(parts);
    Ok(())
}

/// Sends a line.
fn send(start: &mut Start, talk: &mut Talk, view: &SharedView, (line, totals): (&str, &Totals)) {
    if let Some(command) = line.strip_prefix('/') {
        let custom = &start.project().commands;
        match commands::parse(command, custom) {
            Ok((Found::Own(SlashCommand::Cost | SlashCommand::Status), _)) => say(&totals.text()),
            Ok((Found::Own(SlashCommand::Help), _)) => say(&commands::help(custom)),
            Ok((Found::Own(SlashCommand::Notes), _)) => say(&start.project().report()),
            Ok((Found::Own(_), _)) => {
                say("this command needs the screen; start karyi without --plain");
            }
            Ok((Found::Custom(command), rest)) => {
                let text = command.expand(rest);
                start_turn(start, talk, view, &text);
            }
            Err(message) => say(&message),
        }
        return;
    }
    if let Some(script) = line.strip_prefix('!') {
        let command = UserCommand {
            script: script.trim_start_matches('!').trim().to_owned(),
            is_told: !script.starts_with('!'),
        };
        return talk.start_command(command, view.clone());
    }
    if !line.is_empty() {
        start_turn(start, talk, view, line);
    }
}

fn start_turn(start: &mut Start, talk: &mut Talk, view: &SharedView, line: &str) {
    let files = named_files(line, &start.setup.context.sessions.cwd());
    if let Some(parts) = talk.idle() {
        start.tell_heading(&mut parts.conversation);
    }
    let text = UserText {
        text: line.to_owned(),
        files,
    };
    talk.start_turn(text, view.clone());
}

fn print(view: &SharedView) -> io::Result<()> {
    let mut bytes = Vec::new();
    for line in view.lock().take_history() {
        write_line(&mut bytes, &line, Palette::Plain);
        bytes.push(b'\n');
    }
    let mut out = io::stdout().lock();
    out.write_all(&bytes)?;
    out.flush()
}

fn prompt() -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(b"> ")?;
    out.flush()
}

/// Reads lines in a thread that is left alone at the end.
fn lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    // Without a thread the input ends at once.
    let _ = std::thread::Builder::new()
        .name("lines".into())
        .spawn(move || {
            let mut lines = io::stdin().lock().lines();
            while let Some(Ok(line)) = lines.next() {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
    lines
}
