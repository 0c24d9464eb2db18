//! Taking over the shell: what the user types at its prompt runs in the shell of the conversation, and a program that
//! runs has their keyboard and their terminal.
//!
//! The shell has no line editor, so karyi's own input stands in for it. Nothing that is typed or printed here is recorded
//! anywhere; the model learns only that the user was there.

use std::pin::pin;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use zeroize::Zeroizing;

use crate::cli::assistant::app::{App, Inputs};
use crate::cli::assistant::key_reader::Typed;
use crate::cli::assistant::path_completion::complete_path;
use crate::cli::assistant::person_output::PersonOutput;
use crate::cli::assistant::raw_terminal::RawTerminal;
use crate::cli::assistant::short_path::short_path;
use crate::exec::cancel::Cancel;
use crate::exec::note_start;
use karyi_core::error::ToolError;
use karyi_core::limits;
use karyi_core::outcome::Status;
use karyi_pty::{CommandRequest, InputRequest, Progress, Session};
use karyi_screen::keys::{Key, KeyPress, TerminalInput};
use karyi_screen::live_region::{Region, most_rows};
use karyi_screen::safe_text::safe_line;
use karyi_screen::styled_line::{Line, Span, fit};
use karyi_screen::theme;

/// Words at the prompt that return: the shell itself must go on.
const RETURNING: [&str; 3] = ["karyi-back", "exit", "logout"];

/// End of a program's turn on the terminal.
enum Turn {
    /// It has ended, or is stopped.
    Ended(Result<Progress, ToolError>),
    /// The user has left it.
    Left,
    /// The terminal is gone.
    Lost,
}

impl App {
    /// Gives the shell to the user until they return.
    pub(super) async fn visit_shell(&mut self, inputs: &mut Inputs) {
        self.visits.is_wanted = false;
        let is_for_program = std::mem::take(&mut self.visits.is_for_program);
        if self.talk.is_busy() {
            return self.say_busy();
        }
        let session = match self.visited().await {
            Ok(session) => session,
            Err(error) => return self.say_bad(&error.message),
        };
        let size = session.size();
        self.visits.is_used = false;
        while self.exit.is_none() {
            if session.has_job() {
                self.visits.is_used = true;
                if !self.attend(&session, None).await || is_for_program {
                    break;
                }
                continue;
            }
            match self.shell_line(inputs).await {
                Some(line) if RETURNING.contains(&line.trim()) => break,
                Some(line) => {
                    self.visits.is_used = true;
                    if !self.attend(&session, Some(line)).await {
                        break;
                    }
                }
                None => break,
            }
        }
        let (rows, columns) = size;
        let _ = session.resize(rows, columns);
        self.forget_files();
        self.end_visit(&session);
        self.clock.want();
        self.send_waiting();
    }

    /// Returns the shell to visit: the one with a program in front, else the one that takes the next command.
    async fn visited(&self) -> Result<Session, ToolError> {
        let sessions = &self.start.setup.context.sessions;
        let current = sessions
            .current()
            .filter(|current| current.session.has_job());
        match current {
            Some(current) => Ok(current.session),
            None => Ok(sessions.for_command().await?.session),
        }
    }

    /// Tells user and model where the shell is now.
    fn end_visit(&mut self, session: &Session) {
        let is_held = session.has_job();
        let directory = session.cwd();
        self.say_faint(match is_held {
            true => "back in the conversation; the program goes on, and /shell returns to it",
            false => "back in the conversation",
        });
        if !self.visits.is_used {
            return;
        }
        let held = match is_held {
            true => {
                " A program of the user still has its terminal, and commands run in another shell meanwhile."
            }
            false => "",
        };
        let told = format!(
            "The user worked in the shell by hand. Its directory is {}; variables and files may have changed.{held}",
            directory.display()
        );
        if let Some(parts) = self.talk.idle() {
            parts.conversation.tell(&told);
        }
    }

    /// Waits for a line at the prompt; nothing when the user returns.
    async fn shell_line(&mut self, inputs: &mut Inputs) -> Option<String> {
        let stop = self.start.setup.stop_source.cancel.clone();
        loop {
            if self.draw_shell().is_err() {
                return None;
            }
            let changed = std::sync::Arc::clone(&self.view.changed);
            tokio::select! {
                typed = inputs.typed.recv() => match typed {
                    Some(Typed::Input(TerminalInput::Key(press))) => match self.shell_key(press) {
                        Prompt::Open => {}
                        Prompt::Line(line) => return Some(line),
                        Prompt::Back => return None,
                    },
                    Some(Typed::Input(TerminalInput::Paste(text))) => self.visits.input.paste(&text),
                    Some(Typed::Input(TerminalInput::Focus(_))) => {}
                    Some(Typed::HungUp) | None => {
                        self.hang_up();
                        return None;
                    }
                },
                () = changed.notified() => {}
                Some(request) = inputs.requests.recv() => self.step_aside(request).await,
                _ = inputs.resized.recv() => tokio::time::sleep(limits::RESIZE_PAUSE).await,
                () = stop.cancelled() => return None,
            }
        }
    }

    /// Takes a key at the prompt.
    fn shell_key(&mut self, press: KeyPress) -> Prompt {
        let input = &mut self.visits.input;
        let modifiers = press.modifiers;
        match press.key {
            Key::Enter if modifiers.shift || modifiers.alt => input.break_line(),
            // The shell joins the lines.
            Key::Enter if input.before_caret().ends_with('\\') => input.break_line(),
            Key::Enter => {
                let line = input.take();
                if !line.trim().is_empty() {
                    return Prompt::Line(line);
                }
            }
            Key::Tab => {
                let directory = self.start.setup.context.sessions.cwd();
                if let Some((chars, text)) = complete_path(&input.before_caret(), &directory) {
                    input.replace_before_caret(chars, &text);
                }
            }
            Key::Char(letter) if press.control_letter() == Some(letter) => match letter {
                ']' => return Prompt::Back,
                'd' if input.is_empty() => return Prompt::Back,
                'c' => {
                    input.take();
                }
                'j' => input.break_line(),
                'l' => self.redraw(),
                _ => {
                    input.key(press);
                }
            },
            _ => {
                input.key(press);
            }
        }
        Prompt::Open
    }

    /// Draws the prompt.
    fn draw_shell(&mut self) -> std::io::Result<()> {
        let size = self.screen.measure();
        let columns = usize::from(size.columns.saturating_sub(1)).max(1);
        let mut view = self.view.lock();
        view.set_columns(columns);
        let history = view.take_history();
        drop(view);
        let exit = self.visits.exit;
        let exit = exit.map_or(String::new(), |exit| format!(" · exit {exit}"));
        let directory = self.shell_directory();
        let text = format!("shell · {directory}{exit} · Ctrl+] returns to the conversation");
        let rows = self.visits.input.rows(columns, most_rows(size) - 1);
        let mut lines = rows.lines;
        let status = Line::from(Span::styled(text, theme::FAINT));
        lines.push(fit(&status, columns));
        let caret = Some(rows.caret);
        self.screen.draw(&history, &Region { lines, caret })
    }

    /// Runs a command, or returns to the program that runs, with the terminal in its hands. Returns false when the user
    /// leaves the shell meanwhile.
    async fn attend(&mut self, session: &Session, script: Option<String>) -> bool {
        if let Some(script) = &script {
            self.show_line(script);
            note_start(&self.start.approvals, session).await;
        }
        if self.draw_shell().is_err() {
            return false;
        }
        let received = self.start.setup.stop_source.received.clone();
        // Ctrl+C is for the program, also in the moments between the modes of the terminal.
        received.lend(true);
        self.lend_terminal();
        let turn = self.turn(session, script).await;
        session.give_to_person(false);
        self.reclaim_terminal();
        received.lend(false);
        match turn {
            Ok(Turn::Ended(Ok(progress))) => {
                self.visits.exit = progress.exit_code.filter(|exit| *exit != 0);
                if progress.restarted.is_some() {
                    self.say_warning("the shell has ended and was started again");
                }
                let is_stopped = progress.status == Status::Stopped && session.has_job();
                if is_stopped {
                    self.say_warning("the program is stopped; /shell continues it");
                }
                !is_stopped
            }
            Ok(Turn::Ended(Err(error))) => {
                self.say_bad(&error.message);
                !session.has_job()
            }
            Ok(Turn::Left) => false,
            Ok(Turn::Lost) => {
                self.hang_up();
                false
            }
            Err(error) => {
                self.say_bad(&format!("the terminal cannot be taken: {error}"));
                false
            }
        }
    }

    fn shell_directory(&self) -> String {
        let directory = self.start.setup.context.sessions.cwd();
        let directory = short_path(&directory, self.start.home.as_deref());
        safe_line(&directory).into_owned()
    }

    /// Adds a line to the history as a shell shows it.
    fn show_line(&self, script: &str) {
        let mut mark = format!("{} $ ", self.shell_directory());
        let mut lines = Vec::new();
        for line in script.lines() {
            lines.push(Line::from(vec![
                Span::styled(std::mem::replace(&mut mark, "> ".into()), theme::FAINT),
                Span::raw(safe_line(line).into_owned()),
            ]));
        }
        self.view.lock().extend(lines);
    }

    async fn turn(&mut self, session: &Session, script: Option<String>) -> std::io::Result<Turn> {
        let terminal = RawTerminal::take()?;
        let modes = std::mem::take(&mut self.visits.modes);
        let redactor = self.start.setup.redactor.clone();
        let output = PersonOutput::new(self.screen.writer()?, redactor, modes);
        let size = self.screen.measure();
        session.give_to_person(true);
        if script.is_none() {
            output.restore();
            // A program draws itself anew when the size changes.
            let _ = session.resize(size.rows.saturating_sub(1).max(1), size.columns);
        }
        let _ = session.resize(size.rows, size.columns);
        let cancel = self.start.setup.stop_source.cancel.clone();
        let place = Place {
            session,
            terminal: &terminal,
            output: &output,
        };
        let turn = match script {
            Some(script) => {
                let request = CommandRequest {
                    script,
                    ..CommandRequest::default()
                };
                let command = session.command(request, output.sink());
                self.watch(place, command, &cancel).await
            }
            None => {
                let request = InputRequest {
                    timeout: Some(Duration::MAX),
                    ..InputRequest::default()
                };
                let wait = session.input(&[], request, output.sink());
                self.watch(place, wait, &cancel).await
            }
        };
        let modes = output.finish();
        if session.has_job() {
            self.visits.modes = modes;
        }
        turn
    }

    /// Passes keys and sizes on to a program until it ends, or the user leaves it.
    async fn watch(
        &mut self,
        place: Place<'_>,
        program: impl Future<Output = Result<Progress, ToolError>>,
        cancel: &Cancel,
    ) -> std::io::Result<Turn> {
        let mut program = pin!(program);
        let mut resized = signal(SignalKind::window_change())?;
        let mut ticks = tokio::time::interval(limits::PERSON_STEP);
        let mut typed = Zeroizing::new(Vec::new());
        loop {
            tokio::select! {
                biased;
                ended = &mut program => return Ok(Turn::Ended(ended)),
                () = cancel.cancelled() => return Ok(Turn::Left),
                _ = resized.recv() => {
                    let size = self.screen.measure();
                    let _ = place.session.resize(size.rows, size.columns);
                }
                keys = place.terminal.keys(), if typed.len() < limits::KEYS_BYTES => {
                    let Ok(keys) = keys else {
                        return Ok(Turn::Lost);
                    };
                    typed.extend_from_slice(&keys.bytes);
                    place.type_keys(&mut typed)?;
                    if keys.is_leaving {
                        return Ok(Turn::Left);
                    }
                }
                _ = ticks.tick() => {
                    place.output.show_idle();
                    place.type_keys(&mut typed)?;
                }
            }
        }
    }
}

/// Result of a key at the prompt.
enum Prompt {
    /// The line goes on.
    Open,
    /// It is complete.
    Line(String),
    /// The user returns.
    Back,
}

/// A program's place: its shell, and the terminal of the user.
struct Place<'a> {
    session: &'a Session,
    terminal: &'a RawTerminal,
    output: &'a PersonOutput,
}

impl Place<'_> {
    /// Types what the terminal of the program takes, and keeps the rest. Without a program nothing reads it.
    fn type_keys(&self, typed: &mut Zeroizing<Vec<u8>>) -> std::io::Result<()> {
        if !typed.is_empty() {
            let count = self.session.type_as_is(typed)?;
            let count = count.unwrap_or(typed.len());
            typed.drain(..count);
        }
        Ok(())
    }
}
