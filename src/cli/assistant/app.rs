//! The loop of the assistant: keys, events of the conversation, questions and time become frames and work.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::Signal;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};

use crate::chat::compaction::{self, CompactionEnd};
use crate::chat::turn::{TurnEnd, TurnReport};
use crate::cli::assistant::approval_screen::{ApprovalKey, ApprovalScreen, Asked};
use crate::cli::assistant::completion::{Completion, ProjectFiles, Sources, completion};
use crate::cli::assistant::input_history;
use crate::cli::assistant::key_reader::{KeyReader, Typed};
use crate::cli::assistant::menu::{Menu, MenuChoice, SessionFacts, Totals};
use crate::cli::assistant::outside::Outside;
use crate::cli::assistant::parts::Opening;
use crate::cli::assistant::picker::Picker;
use crate::cli::assistant::questions::TerminalRequest;
use crate::cli::assistant::rewind_list::{RewindList, TurnStarts};
use crate::cli::assistant::screen::Screen;
use crate::cli::assistant::shell_watch::{ShellWatch, Wait};
use crate::cli::assistant::start::Start;
use crate::cli::assistant::talk::{Talk, UserCommand, UserText, WorkEnd, named_files};
use crate::cli::assistant::view::SharedView;
use crate::cli::assistant::visit_state::ShellVisits;
use crate::cli::prompt::tty::is_in_front;
use crate::cli::vault;
use karyi_core::limits;
use karyi_model::ModelError;
use karyi_screen::choice_list::{Choice, ChoiceList, best};
use karyi_screen::frame_clock::FrameClock;
use karyi_screen::input_box::InputBox;
use karyi_screen::keys::{Key, KeyPress, TerminalInput};
use karyi_screen::{terminal_guard, theme};

/// Exit status after the terminal was lost.
const HANGUP: u8 = 129;

/// Input of the loop from outside.
pub(super) struct Inputs {
    pub(super) typed: UnboundedReceiver<Typed>,
    pub(super) requests: Receiver<TerminalRequest>,
    pub(super) asked: Receiver<Asked>,
    pub(super) resized: Signal,
}

/// The assistant.
pub(super) struct App {
    pub(super) start: Start,
    pub(super) talk: Talk,
    pub(super) view: SharedView,
    pub(super) screen: Screen,
    keys: KeyReader,
    pub(super) shell: ShellWatch,
    pub(super) input: InputBox,
    pub(super) overlay: Overlay,
    pub(super) approval: Option<ApprovalScreen>,
    /// False while another window has the focus.
    has_focus: bool,
    files: ProjectFiles,
    /// True while a path cannot be completed because the files are not known yet.
    awaits_files: bool,
    /// Texts that wait for the end of the work.
    pub(super) queue: VecDeque<String>,
    pub(super) clock: FrameClock,
    pub(super) totals: Totals,
    /// Used part of the model's context, in percent.
    pub(super) context: Option<u64>,
    pub(super) since: Instant,
    /// Number of the last change of files before the turn.
    pub(super) turn_began_at: u64,
    pub(super) turn_starts: TurnStarts,
    /// Time of the last Esc that interrupted nothing.
    escaped_at: Option<Instant>,
    interrupted_at: Option<Instant>,
    /// Program that is to get the terminal.
    pub(super) outside: Option<Outside>,
    pub(super) visits: ShellVisits,
    /// Exit status, once the loop is to end.
    pub(super) exit: Option<u8>,
}

/// List below the input.
pub(super) enum Overlay {
    None,
    Completion(Completion),
    /// Earlier inputs that match what is typed.
    Search(ChoiceList),
    Menu(Menu),
    Rewind(RewindList),
    Picker(Picker),
}

impl App {
    /// Creates the assistant on its screen.
    pub(super) fn new(
        start: Start,
        talk: Talk,
        (screen, keys): (Screen, KeyReader),
        (view, shell): (SharedView, ShellWatch),
    ) -> Self {
        Self {
            start,
            turn_began_at: 0,
            turn_starts: TurnStarts::default(),
            escaped_at: None,
            talk,
            view,
            screen,
            keys,
            shell,
            input: InputBox::new(input_history::load()),
            overlay: Overlay::None,
            approval: None,
            has_focus: true,
            files: ProjectFiles::default(),
            awaits_files: false,
            queue: VecDeque::new(),
            clock: FrameClock::default(),
            totals: Totals::default(),
            context: None,
            since: Instant::now(),
            interrupted_at: None,
            outside: None,
            visits: ShellVisits::default(),
            exit: None,
        }
    }

    /// Shows the first lines, and queues the first texts.
    pub(super) fn greet(&mut self, texts: Vec<String>) {
        let model = &self.start.setup.model.name;
        let greeting = format!("karyi {} · {model} · /help", env!("CARGO_PKG_VERSION"));
        self.say_faint(&greeting);
        self.queue.extend(texts);
    }

    /// Runs until the user quits, or the program is ended. Returns the exit status.
    pub(super) async fn run(mut self, mut inputs: Inputs) -> u8 {
        let stop = self.start.setup.stop_source.clone();
        let mut ticks = tokio::time::interval(limits::CLOCK_STEP);
        self.clock.want();
        while self.exit.is_none() {
            if self.visits.is_wanted {
                self.visit_shell(&mut inputs).await;
            }
            let now = Instant::now();
            if self.clock.take(now) && self.draw(now).is_err() {
                self.exit = Some(HANGUP);
                break;
            }
            let frame = until(self.clock.due(now));
            let asked = self.approval.as_ref();
            let keys_count = until(asked.and_then(|asked| asked.opens_at(now)));
            tokio::select! {
                typed = inputs.typed.recv() => {
                    self.typed(typed.unwrap_or(Typed::HungUp));
                    self.run_outside().await;
                }
                end = self.talk.ended() => self.ended(end),
                () = self.view.changed.notified() => self.changed(),
                Some(request) = inputs.requests.recv() => self.step_aside(request).await,
                Some(asked) = inputs.asked.recv(), if self.approval.is_none() => self.ask(asked),
                () = keys_count => self.clock.want(),
                _ = inputs.resized.recv() => self.clock.want(),
                _ = ticks.tick() => self.tick(),
                () = frame => {}
                () = stop.cancel.cancelled() => {
                    self.exit = Some(stop.received.exit_code().unwrap_or(HANGUP));
                }
            }
        }
        self.talk.interrupt();
        // Whatever does not end in time ends with the shell.
        let _ = tokio::time::timeout(limits::CANCEL_GRACE, self.talk.stopped()).await;
        if let Some(text) = self.talk.idle().and_then(|parts| parts.how_to_go_on()) {
            self.say_faint(&text);
        }
        // Its shell may have the terminal while it was stopped: a frame would stand over that one's line.
        if terminal_guard::is_taken() && is_in_front(self.screen.terminal()) {
            let _ = self.draw(Instant::now());
            self.screen.leave();
        }
        self.exit.unwrap_or_default()
    }

    /// Takes the passing of time.
    fn tick(&mut self) {
        if self.talk.is_busy() {
            self.clock.want();
        }
        // An interrupted turn waits for no answer.
        drop(self.approval.take_if(|asked| asked.is_over()));
    }

    /// Asks about calls.
    fn ask(&mut self, asked: Asked) {
        let approval = ApprovalScreen::new(asked, Instant::now());
        self.view.lock().ask(approval.texts());
        self.approval = Some(approval);
        self.notify("karyi asks about a call");
        self.clock.want();
    }

    /// Calls the user, unless they are looking.
    fn notify(&mut self, text: &str) {
        if !self.has_focus {
            self.screen.notify(text);
        }
    }

    /// Takes a change of the view, the shell or the files of the project.
    fn changed(&mut self) {
        self.clock.want();
        if self.awaits_files && self.files.are_known() {
            self.awaits_files = false;
            if matches!(self.overlay, Overlay::None) {
                self.complete();
            }
        }
    }

    /// Leaves the terminal to a question until it has its answer.
    pub(super) async fn step_aside(&mut self, request: TerminalRequest) {
        let (turn, ended) = tokio::sync::oneshot::channel();
        let cancel = self.start.setup.stop_source.cancel.clone();
        self.leave_terminal();
        if request.send(turn).is_ok() {
            tokio::select! {
                _ = ended => {}
                () = cancel.cancelled() => {}
            }
        }
        self.take_terminal();
    }

    /// Gives the terminal to another program.
    pub(super) fn leave_terminal(&mut self) {
        let _ = self.draw(Instant::now());
        self.let_go();
    }

    /// Leaves the terminal as it is drawn.
    pub(super) fn let_go(&mut self) {
        self.keys.pause();
        self.screen.leave();
    }

    /// Leaves the terminal to a program of the session.
    pub(super) fn lend_terminal(&mut self) {
        self.keys.pause();
        self.screen.lend();
    }

    /// Takes back the terminal that was lent.
    pub(super) fn reclaim_terminal(&mut self) {
        if self.screen.reclaim().is_err() {
            self.exit = Some(HANGUP);
        }
        self.keys.resume();
        self.clock.want();
    }

    /// Ends the program, because the terminal is gone.
    pub(super) fn hang_up(&mut self) {
        self.exit = Some(HANGUP);
    }

    /// Forgets the files of the project: there may be other ones now, or the shell may be in another directory.
    pub(super) fn forget_files(&mut self) {
        self.files = ProjectFiles::default();
        // The search that a path waits for is one of the forgotten files.
        if self.awaits_files && matches!(self.overlay, Overlay::None) {
            self.complete();
        }
    }

    /// Takes the terminal back.
    pub(super) fn take_terminal(&mut self) {
        if self.screen.enter().is_err() {
            self.exit = Some(HANGUP);
        }
        self.keys.resume();
        self.clock.want();
    }

    fn typed(&mut self, typed: Typed) {
        self.clock.want();
        match typed {
            Typed::HungUp => self.exit = Some(HANGUP),
            Typed::Input(TerminalInput::Key(press)) => self.key(press),
            Typed::Input(TerminalInput::Paste(text)) => {
                if self
                    .approval
                    .as_mut()
                    .is_some_and(|asked| asked.paste(&text))
                {
                    return;
                }
                self.overlay = Overlay::None;
                self.input.paste(&text);
            }
            Typed::Input(TerminalInput::Focus(has_focus)) => self.has_focus = has_focus,
        }
    }

    fn key(&mut self, press: KeyPress) {
        let is_draft = !self.input.is_empty() && press.key != Key::Escape;
        if let Some(mut approval) = self
            .approval
            .take_if(|asked| !(is_draft && asked.is_choosing()))
        {
            let taken = approval.key(press, Instant::now());
            if approval.is_over() {
                approval.finish();
            } else if taken != ApprovalKey::Interrupt {
                self.approval = Some(approval);
            }
            match taken {
                ApprovalKey::Taken => return,
                ApprovalKey::Interrupt => return self.escape(),
                ApprovalKey::ForInput => {}
            }
        }
        match std::mem::replace(&mut self.overlay, Overlay::None) {
            Overlay::Menu(menu) => self.menu_key(menu, press),
            Overlay::Completion(completion) => self.completion_key(completion, press),
            Overlay::Search(list) => self.search_key(list, press),
            Overlay::Rewind(list) => self.rewind_key(list, press),
            Overlay::Picker(picker) => self.picker_key(picker, press),
            Overlay::None => self.input_key(press),
        }
    }

    fn menu_key(&mut self, mut menu: Menu, press: KeyPress) {
        match menu.key(press) {
            MenuChoice::Open => self.overlay = Overlay::Menu(menu),
            MenuChoice::Back => {}
            MenuChoice::Command(command) => self.command(command, ""),
            MenuChoice::ShellCommand => self.input.set_text("!"),
        }
    }

    fn completion_key(&mut self, mut completion: Completion, press: KeyPress) {
        match press.key {
            Key::Up => completion.list.previous(),
            Key::Down => completion.list.next(),
            Key::Escape => return,
            Key::Tab | Key::Enter => {
                if let Some(choice) = completion.list.marked() {
                    let is_whole = choice.text.chars().count() == completion.replaced
                        && self.input.before_caret().ends_with(&choice.text);
                    let text = format!("{} ", choice.text);
                    if press.key == Key::Enter && is_whole {
                        return self.input_key(press);
                    }
                    self.input.replace_before_caret(completion.replaced, &text);
                }
                return;
            }
            _ => return self.input_key(press),
        }
        self.overlay = Overlay::Completion(completion);
    }

    fn search_key(&mut self, mut list: ChoiceList, press: KeyPress) {
        match press.key {
            Key::Up => list.previous(),
            Key::Down => list.next(),
            Key::Char('r') if press.modifiers.control => list.next(),
            Key::Escape => return,
            Key::Tab | Key::Enter => {
                if let Some(choice) = list.marked() {
                    let text = choice.text.clone();
                    self.input.set_text(&text);
                }
                return;
            }
            _ => {
                self.input_key(press);
                if matches!(self.overlay, Overlay::Menu(_)) {
                    return;
                }
                list = self.earlier_inputs();
            }
        }
        self.overlay = Overlay::Search(list);
    }

    fn input_key(&mut self, press: KeyPress) {
        let modifiers = press.modifiers;
        match press.key {
            Key::Enter if modifiers.shift || modifiers.alt => self.input.break_line(),
            Key::Enter if self.input.break_at_backslash() => {}
            Key::Enter => self.submit(),
            Key::Escape => self.escape(),
            Key::Tab if modifiers.shift => self.next_mode(),
            Key::Tab if self.talk.is_busy() && !self.input.text().trim().is_empty() => {
                let text = self.input.take();
                self.keep_input();
                self.queue.push_back(text.trim().to_owned());
            }
            Key::Up if self.input.is_empty() && self.edit_waiting() => {}
            Key::Char(letter) if press.control_letter() == Some(letter) => {
                self.control(letter, press);
            }
            _ if self.input.key(press) => self.complete(),
            _ => {}
        }
    }

    fn control(&mut self, letter: char, press: KeyPress) {
        match letter {
            'b' if self.view.lock().has_calls() => self.hand_over(),
            'c' => self.control_c(),
            'd' if self.input.is_empty() => self.exit = Some(0),
            'g' => self.outside = Some(Outside::Editor),
            'j' => self.input.break_line(),
            'l' => self.redraw(),
            'o' => self.open_transcript(),
            'r' => self.overlay = Overlay::Search(self.earlier_inputs()),
            'z' => self.outside = Some(Outside::Shell),
            _ => {
                self.input.key(press);
                self.complete();
            }
        }
    }

    /// Interrupts the work; texts that wait return to the input. Pressed twice at an empty input it goes back to an
    /// earlier text.
    fn escape(&mut self) {
        let now = Instant::now();
        let last = self.escaped_at.take();
        if !self.talk.is_busy() && self.input.is_empty() {
            match last.is_some_and(|last| now - last < limits::QUIT_WINDOW) {
                true => self.open_rewind(),
                false => self.escaped_at = Some(now),
            }
        } else if self.talk.is_interruptible() {
            self.talk.interrupt();
            self.return_waiting();
        }
    }

    /// Returns the texts that wait to the input.
    fn return_waiting(&mut self) {
        let mut waiting = self.start.steering.take_all();
        waiting.extend(self.queue.drain(..));
        if !waiting.is_empty() {
            waiting.push(self.input.text());
            self.input.set_text(waiting.join("\n").trim_end());
        }
    }

    /// Takes the newest text that waits back into the input; returns false when none does.
    fn edit_waiting(&mut self) -> bool {
        let text = self
            .queue
            .pop_back()
            .or_else(|| self.start.steering.take_last());
        if let Some(text) = &text {
            self.input.set_text(text);
        }
        text.is_some()
    }

    fn control_c(&mut self) {
        let is_second = self
            .interrupted_at
            .is_some_and(|at| at.elapsed() < limits::QUIT_WINDOW);
        if !self.input.is_empty() {
            self.input.take();
        } else if is_second {
            self.exit = Some(0);
        } else if self.talk.is_interruptible() {
            self.interrupted_at = Some(Instant::now());
            self.escape();
        } else {
            self.overlay = Overlay::Menu(Menu::new(self.facts()));
        }
    }

    fn facts(&self) -> SessionFacts {
        let used = self.start.setup.context.secrets.used();
        SessionFacts {
            changes: self.start.changes_since(0).len(),
            secrets: used.iter().map(|name| name.as_str().to_owned()).collect(),
            jobs: self.shell.state().jobs,
        }
    }

    /// Draws everything again, below what other programs have written.
    pub(super) fn redraw(&mut self) {
        self.screen.leave();
        self.take_terminal();
    }

    fn earlier_inputs(&self) -> ChoiceList {
        let history = self.input.history().iter().rev();
        let found = best(&self.input.text(), history);
        let choice = |text: &String| Choice {
            text: text.clone(),
            detail: String::new(),
        };
        ChoiceList::new(found.into_iter().map(choice).collect())
    }

    fn complete(&mut self) {
        let secrets = &self.start.setup.context.secrets;
        let names = || -> Vec<String> {
            let names = vault::known_names(secrets);
            names.iter().map(ToString::to_string).collect()
        };
        let directory = self.shell.state().directory;
        let sources = Sources {
            files: &self.files,
            directory: &directory,
            custom: &self.start.project().commands,
            names: &names,
            changed: &self.view.changed,
        };
        let before = self.input.before_caret();
        self.awaits_files = !self.files.are_known() && before.contains('@');
        let found = completion(&before, self.input.is_on_first_line(), &sources);
        self.overlay = found.map_or(Overlay::None, Overlay::Completion);
    }

    /// Sends the input: to a command, the shell, or the model.
    fn submit(&mut self) {
        let text = self.input.take();
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let is_command = text.starts_with(['/', '!']);
        if !is_command && !self.visits.is_warned && self.awaits_password() {
            self.visits.is_warned = true;
            self.say_warning(
                "a program waits for a password: /shell lets you type it there; Enter sends this to the model",
            );
            return self.input.set_text(text);
        }
        self.visits.is_warned = false;
        self.keep_input();
        match self.talk.is_busy() {
            true if self.talk.has_turn() && !is_command => {
                return self.start.steering.push(text.to_owned());
            }
            // The conversation is not there yet.
            true if !self.talk.is_interruptible() => return self.queue.push_back(text.to_owned()),
            true if !text.starts_with('/') => return self.queue.push_back(text.to_owned()),
            _ => {}
        }
        self.send(text);
    }

    /// Returns true while a program in front waits for a password.
    fn awaits_password(&self) -> bool {
        let sessions = &self.start.setup.context.sessions;
        let all = sessions.all();
        // The state that was seen last may be of a program that has ended.
        let is_hidden = all
            .iter()
            .any(|terminal| terminal.session.has_job() && terminal.session.hides_typing());
        is_hidden && self.shell.state().wait == Some(Wait::Password)
    }

    /// Sends a text while nothing is under way; a command also while something is.
    pub(super) fn send(&mut self, text: &str) {
        if let Some(command) = text.strip_prefix('/') {
            return self.slash(command);
        }
        self.view.lock().user(text);
        let script = text.strip_prefix("!!").or(text.strip_prefix('!'));
        if let Some(script) = script {
            let command = UserCommand {
                script: script.trim().to_owned(),
                is_told: !text.starts_with("!!"),
            };
            let sessions = Arc::clone(&self.start.setup.context.sessions);
            self.talk
                .start_command(command, self.view.clone(), sessions);
            return;
        }
        self.start_turn(text);
    }

    /// Keeps the newest input for the next runs.
    fn keep_input(&self) {
        if let Some(text) = self.input.history().last() {
            input_history::add(&self.start.setup.redactor.redact_str(text));
        }
    }

    /// Gives a prompt to the model; the history shows what the user typed for it.
    pub(super) fn ask_model(&mut self, text: &str, shown: &str) {
        self.view.lock().user(shown);
        self.start_turn(text);
    }

    fn start_turn(&mut self, text: &str) {
        self.turn_began_at = self.start.last_change();
        if let Some(parts) = self.talk.idle() {
            let turn = parts.conversation.state().history().turn_count();
            self.turn_starts.begin(turn, self.turn_began_at);
            self.start.tell_heading(&mut parts.conversation);
            self.start.tell_mode(&mut parts.conversation);
        }
        let text = UserText {
            text: text.to_owned(),
            files: named_files(text, &self.shell.state().directory),
        };
        self.talk.start_turn(text, self.view.clone());
    }

    fn ended(&mut self, end: WorkEnd) {
        self.clock.want();
        self.approval = None;
        self.notify("karyi has ended its work");
        self.forget_files();
        self.view.lock().end_turn();
        match end {
            WorkEnd::Turn(report) => self.turn_ended(&report),
            WorkEnd::Command | WorkEnd::Compaction(CompactionEnd::Done) => {}
            WorkEnd::Waiting => {
                self.say_faint("it waits for you: type to it; Ctrl+] returns");
                self.visits.is_wanted = true;
                self.visits.is_for_program = true;
            }
            WorkEnd::Compaction(CompactionEnd::Nothing) => {
                self.say_faint("there is little to sum up yet");
            }
            WorkEnd::Compaction(CompactionEnd::Cancelled) => self.say_warning("interrupted"),
            WorkEnd::Compaction(CompactionEnd::Cut) => {
                self.say_warning(&format!("{}; nothing has changed", compaction::CUT));
            }
            WorkEnd::Compaction(CompactionEnd::Failed(error)) => self.say_failure(&error),
            WorkEnd::Opened(opening) => {
                if let Err(error) = opening.and_then(|opening| self.open(*opening)) {
                    self.say_bad(&format!("{error:#}"));
                    self.exit = Some(crate::cli::USAGE);
                }
            }
            WorkEnd::Rewound(text) => self.input.set_text(&text),
            WorkEnd::Model(request, window) => self.start.take_request(*request, window),
            WorkEnd::Lost => {
                self.say_bad("the conversation was lost by a bug in karyi");
                self.exit = Some(crate::cli::BUG);
            }
        }
        // A turn that was stopped has left them.
        for text in self.start.steering.take_all().into_iter().rev() {
            self.queue.push_front(text);
        }
        self.measure_context();
        self.send_waiting();
    }

    /// Sends texts that wait until one of them is work.
    pub(super) fn send_waiting(&mut self) {
        while self.exit.is_none()
            && !self.talk.is_busy()
            && !self.visits.is_wanted
            && !matches!(self.overlay, Overlay::Picker(_))
            && let Some(next) = self.queue.pop_front()
        {
            self.send(&next);
        }
    }

    /// Measures how full the context of the model is.
    fn measure_context(&mut self) {
        let parts = self.talk.idle();
        self.context = parts.and_then(|parts| parts.conversation.context_use().percent());
    }

    /// Forgets what is shown of the conversation before: another one has begun.
    pub(super) fn conversation_changed(&mut self) {
        self.totals = Totals::default();
        self.since = Instant::now();
        self.measure_context();
        if let Some(parts) = self.talk.idle() {
            self.view.lock().set_plan(parts.conversation.state().plan());
        }
    }

    fn open(&mut self, opening: Opening) -> anyhow::Result<()> {
        let (parts, earlier) = self.start.open(opening)?;
        self.talk.open(parts);
        for remark in self.start.project().remarks() {
            self.say_faint(&remark);
        }
        if let Some(text) = earlier {
            self.say_faint(&text);
        }
        Ok(())
    }

    fn turn_ended(&mut self, report: &TurnReport) {
        self.totals.add(report);
        match &report.end {
            TurnEnd::Done if report.needs_approval => self.say_warning(
                "the last calls were not permitted; /mode changes what runs without a question",
            ),
            TurnEnd::Done => {}
            TurnEnd::Cancelled => self.say_warning("interrupted"),
            TurnEnd::Steps => self.say_warning("stopped: its steps are used up; write \"go on\""),
            TurnEnd::Tokens => self.say_warning("stopped: its tokens are used up"),
            TurnEnd::AnswerLength => {
                self.say_warning("stopped: the answer reached its most tokens; say `go on`")
            }
            TurnEnd::Time => self.say_warning("stopped: its time is used up"),
            TurnEnd::Refused(reason) => self.say_warning(&format!("stopped: {reason}")),
            TurnEnd::ModelFailed(error) => {
                self.say_failure(error);
                // They would fail as well.
                self.return_waiting();
            }
        }
    }

    fn say_failure(&self, error: &ModelError) {
        let redactor = &self.start.setup.redactor;
        let message = redactor.redact_again(&error.message);
        self.say_bad(&format!("{}: {message}", error.code()));
        self.say_warning(&format!("hint: {}", redactor.redact_again(&error.hint)));
    }

    pub(super) fn say_bad(&self, text: &str) {
        self.view.lock().say(text, theme::BAD);
    }

    pub(super) fn say_warning(&self, text: &str) {
        self.view.lock().say(text, theme::WARNING);
    }

    pub(super) fn say_faint(&self, text: &str) {
        self.view.lock().say(text, theme::FAINT);
    }

    /// Returns the time since the start.
    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

/// Waits until a time; without one it waits forever.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
