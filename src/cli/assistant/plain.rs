//! The conversation as lines, for terminals that only print: no cursor movement, no keys but those of a line.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Instant;

use crate::chat::turn::TurnEnd;
use crate::cli::assistant::Questions;
use crate::cli::assistant::approval_screen::{ApprovalScreen, Asked};
use crate::cli::assistant::commands::{self, Found, SlashCommand};
use crate::cli::assistant::lines::InputLines;
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
pub(super) const INTERRUPTED: u8 = 130;

/// The conversation as lines.
struct PlainChat {
    start: Start,
    talk: Talk,
    view: SharedView,
    totals: Totals,
    approval: Option<ApprovalScreen>,
    /// The first text, until it was sent.
    first: Option<String>,
    /// True while the mark that asks for a line stands on the terminal.
    is_asked: bool,
}

/// Runs the conversation.
pub(super) async fn run(
    start: Start,
    talk: Talk,
    texts: Vec<String>,
    mut questions: Questions,
) -> anyhow::Result<u8> {
    let stop = start.setup.stop_source.clone();
    let mut lines = InputLines::start();
    let mut chat = PlainChat {
        start,
        talk,
        view: SharedView::new(limits::DEFAULT_COLUMNS, Palette::Plain),
        totals: Totals::default(),
        approval: None,
        first: texts.into_iter().next(),
        is_asked: false,
    };
    loop {
        let is_asking = chat.approval.is_some();
        let exit = tokio::select! {
            end = chat.talk.ended() => chat.ended(end),
            () = chat.view.changed.notified() => None,
            Some(request) = questions.requests.recv(), if !is_asking => {
                step_aside(request).await;
                None
            }
            Some(asked) = questions.asked.recv(), if !is_asking => {
                // It was typed before the question could be read.
                lines.forget_typed();
                chat.ask(asked)
            }
            line = lines.next(), if is_asking || !chat.talk.is_busy() => chat.line(line.as_deref()),
            () = stop.cancel.cancelled() => {
                Some(stop.received.exit_code().unwrap_or(INTERRUPTED))
            }
        };
        print(&chat.view)?;
        if let Some(exit) = exit {
            chat.say_how_to_go_on();
            return Ok(exit);
        }
        drop(chat.approval.take_if(|asked| asked.is_over()));
        chat.prompt()?;
    }
}

impl PlainChat {
    /// Takes the end of the work; returns the exit status when the program ends with it.
    fn ended(&mut self, end: WorkEnd) -> Option<u8> {
        self.approval = None;
        self.view.lock().end_turn();
        match end {
            WorkEnd::Command
            | WorkEnd::Waiting
            | WorkEnd::Compaction(_)
            | WorkEnd::Rewound(_)
            | WorkEnd::Model(..) => {}
            WorkEnd::Turn(report) => {
                self.totals.add(&report);
                // A lost output shows at the next print.
                let _ = print(&self.view);
                if let TurnEnd::ModelFailed(error) = &report.end {
                    say(&format!("{}: {}", error.code(), error.message));
                }
            }
            WorkEnd::Opened(opening) => {
                if let Err(error) = opening.and_then(|opening| self.open(*opening)) {
                    say(&format!("{error:#}"));
                    return Some(USAGE);
                }
                if let Some(text) = self.first.take() {
                    self.send(&text);
                }
            }
            WorkEnd::Lost => return Some(BUG),
        }
        None
    }

    fn open(&mut self, opening: Opening) -> anyhow::Result<()> {
        let (parts, earlier) = self.start.open(opening)?;
        self.talk.open(parts);
        if let Some(text) = earlier {
            self.view.lock().say(&text, karyi_screen::theme::FAINT);
        }
        Ok(())
    }

    /// Asks about calls.
    fn ask(&mut self, asked: Asked) -> Option<u8> {
        let approval = ApprovalScreen::new(asked, Instant::now());
        let mut view = self.view.lock();
        view.ask(approval.texts());
        view.extend(approval.plain_lines(limits::DEFAULT_COLUMNS, Instant::now()));
        drop(view);
        self.approval = Some(approval);
        self.is_asked = false;
        None
    }

    /// Takes a line, or the end of the input; returns the exit status when the program ends with it.
    fn line(&mut self, line: Option<&str>) -> Option<u8> {
        self.is_asked = false;
        let line = line.map(str::trim);
        if let Some(approval) = self.approval.take() {
            self.answer(approval, line.unwrap_or("q"));
            return line.is_none().then_some(0);
        }
        match line {
            None | Some("/quit") => return Some(0),
            Some(line) => self.send(line),
        }
        None
    }

    /// Takes a line as the answer to a question.
    fn answer(&mut self, mut approval: ApprovalScreen, line: &str) {
        if line == "q" {
            return self.talk.interrupt();
        }
        approval.line(line);
        if approval.is_over() {
            return approval.finish();
        }
        let lines = approval.plain_lines(limits::DEFAULT_COLUMNS, Instant::now());
        self.view.lock().extend(lines);
        self.approval = Some(approval);
    }

    /// Says how the chat goes on later.
    fn say_how_to_go_on(&mut self) {
        if let Some(text) = self.talk.idle().and_then(|parts| parts.how_to_go_on()) {
            say(&text);
        }
    }

    /// Writes the mark that asks for a line, once.
    fn prompt(&mut self) -> io::Result<()> {
        let is_wanted = self.approval.is_some() || !self.talk.is_busy();
        if !is_wanted || std::mem::replace(&mut self.is_asked, true) {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(b"> ")?;
        out.flush()
    }

    /// Sends a line.
    fn send(&mut self, line: &str) {
        if let Some(command) = line.strip_prefix('/') {
            return self.slash(command);
        }
        if let Some(script) = line.strip_prefix('!') {
            let command = UserCommand {
                script: script.trim_start_matches('!').trim().to_owned(),
                is_told: !script.starts_with('!'),
            };
            let sessions = Arc::clone(&self.start.setup.context.sessions);
            return self
                .talk
                .start_command(command, self.view.clone(), sessions);
        }
        if !line.is_empty() {
            self.start_turn(line);
        }
    }

    /// Runs the command of a line after its slash.
    fn slash(&mut self, command: &str) {
        let custom = &self.start.project().commands;
        match commands::parse(command, custom) {
            Ok((Found::Own(SlashCommand::Cost | SlashCommand::Status), _)) => {
                say(&self.totals.text());
            }
            Ok((Found::Own(SlashCommand::Help), _)) => say(&commands::help(custom)),
            Ok((Found::Own(SlashCommand::Notes), _)) => {
                let parts = self.talk.idle();
                let deeper = parts.map(|parts| parts.conversation.deeper_notes());
                say(&self.start.project().report(deeper.unwrap_or_default()));
            }
            Ok((Found::Own(_), _)) => {
                say("this command needs the screen; start karyi without --plain");
            }
            Ok((Found::Custom(command), rest)) => {
                let text = command.expand(rest);
                self.start_turn(&text);
            }
            Err(message) => say(&message),
        }
    }

    fn start_turn(&mut self, text: &str) {
        if let Some(parts) = self.talk.idle() {
            self.start.tell_heading(&mut parts.conversation);
        }
        let text = UserText {
            text: text.to_owned(),
            files: named_files(text, &self.start.setup.context.sessions.cwd()),
        };
        self.talk.start_turn(text, self.view.clone());
    }
}

/// Leaves the terminal to a question until it has its answer.
async fn step_aside(request: TerminalRequest) {
    let (turn, ended) = tokio::sync::oneshot::channel();
    if request.send(turn).is_ok() {
        let _ = ended.await;
    }
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
