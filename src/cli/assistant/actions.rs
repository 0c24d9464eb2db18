//! Actions of the commands after a slash.

use crate::approval::Mode;
use crate::cli::assistant::app::App;
use crate::cli::assistant::commands::{self, Found, SlashCommand};
use crate::cli::assistant::rewind_list::TurnStarts;
use crate::cli::assistant::start::Earlier;
use karyi_screen::card::elapsed_text;
use karyi_screen::theme;

/// Message for a command that must wait.
pub(super) const BUSY: &str = "wait for the end of the work, or interrupt it with Esc";

impl App {
    /// Runs the command of a text after its slash.
    pub(super) fn slash(&mut self, text: &str) {
        let custom = self.start.project().commands.clone();
        match commands::parse(text, &custom) {
            Ok((Found::Own(command), rest)) => self.command(command, rest),
            Ok((Found::Custom(_), _)) if self.talk.is_busy() => self.say_busy(),
            Ok((Found::Custom(command), rest)) => {
                let prompt = command.expand(rest);
                self.ask_model(&prompt, &prompt);
            }
            Err(message) => self.say_bad(&message),
        }
    }

    /// Says that a command must wait.
    pub(super) fn say_busy(&self) {
        self.say_warning(BUSY);
    }

    /// Runs a command.
    pub(super) fn command(&mut self, command: SlashCommand, rest: &str) {
        match command {
            SlashCommand::Help => {
                let help = commands::help(&self.start.project().commands);
                self.say_faint(&help);
            }
            SlashCommand::Model => self.change_model(rest),
            SlashCommand::Effort => self.change_effort(rest),
            SlashCommand::Mode => self.change_mode(rest),
            SlashCommand::Plan => self.plan(rest),
            SlashCommand::Clear => self.clear(),
            SlashCommand::Compact => match self.talk.is_busy() {
                true => self.say_busy(),
                false => self
                    .talk
                    .start_compaction(rest.to_owned(), self.view.clone()),
            },
            SlashCommand::Context => self.say_context(),
            SlashCommand::Rewind => self.open_rewind(),
            SlashCommand::Resume => self.resume(rest),
            SlashCommand::Rename => self.rename(rest),
            SlashCommand::Export => self.export(rest),
            SlashCommand::Copy => self.copy(),
            SlashCommand::Todo => self.say_plan(),
            SlashCommand::Cost => self.say_faint(&self.totals.text()),
            SlashCommand::Status => self.say_status(),
            SlashCommand::Shell => self.visits.is_wanted = true,
            SlashCommand::Jobs => self.say_jobs(),
            SlashCommand::Tools => self.run_own(&["tools"]),
            SlashCommand::Vars => self.run_own(&["var", "list"]),
            SlashCommand::Undo => self.undo(),
            SlashCommand::Diff => self.show_changes(),
            SlashCommand::Init => self.init(),
            SlashCommand::Notes => self.say_notes(),
            SlashCommand::Config => self.run_own(&["config", "list"]),
            SlashCommand::Policy => self.say_policy(),
            SlashCommand::Doctor => self.examine(),
            SlashCommand::Quit => self.exit = Some(0),
        }
    }

    /// Asks another model from now on; without a name the user picks one.
    pub(super) fn change_model(&mut self, name: &str) {
        if name.is_empty() {
            return self.pick_model();
        }
        if self.talk.idle().is_none() {
            return self.say_busy();
        }
        match self.start.change_model(name) {
            Ok(change) => {
                self.say_faint(&format!("model: {}", self.start.setup.model.name));
                self.talk.start_model(change);
            }
            Err(error) => {
                let message = format!("{error:#}");
                self.say_bad(message.strip_prefix("--model: ").unwrap_or(&message));
            }
        }
    }

    fn change_mode(&mut self, name: &str) {
        let approvals = &self.start.approvals;
        let names: Vec<&str> = Mode::CHOICES.iter().map(|mode| mode.as_str()).collect();
        match Mode::parse(name) {
            Some(mode) => {
                approvals.set_mode(mode);
                self.say_faint(&format!("mode: {name}"));
            }
            None if name.is_empty() => {
                let (mode, names) = (approvals.mode().as_str(), names.join(", "));
                self.say_faint(&format!("mode: {mode}; the modes are {names}"));
            }
            None => {
                let message = format!("no mode {name:?}; the modes are {}", names.join(", "));
                self.say_bad(&message);
            }
        }
    }

    /// Lets the model plan before anything else runs.
    fn plan(&mut self, text: &str) {
        if self.talk.is_busy() {
            return self.say_busy();
        }
        self.start.approvals.set_mode(Mode::ReadOnly);
        self.say_faint("mode: read-only; /mode or Shift+Tab goes on from the plan");
        if !text.is_empty() {
            self.ask_model(text, text);
        }
    }

    /// Changes to the next mode.
    pub(super) fn next_mode(&mut self) {
        let approvals = &self.start.approvals;
        let place = Mode::CHOICES
            .iter()
            .position(|mode| *mode == approvals.mode());
        let next = place.map_or(0, |place| (place + 1) % Mode::CHOICES.len());
        if let Some(mode) = Mode::CHOICES.get(next) {
            approvals.set_mode(*mode);
        }
    }

    /// Starts a new conversation; the shell and its jobs stay.
    fn clear(&mut self) {
        let begun = match self.talk.idle() {
            Some(parts) => self.start.begin_again(parts),
            None => return self.say_busy(),
        };
        self.turn_starts = TurnStarts::default();
        match begun {
            Ok(()) => {
                self.conversation_changed();
                self.say_faint("a new conversation; the shell is as it was");
            }
            Err(error) => self.say_bad(&format!("{error:#}")),
        }
    }

    /// Goes on with an earlier chat; without a name the user picks one.
    pub(super) fn resume(&mut self, name: &str) {
        if name.is_empty() {
            return self.pick_chat();
        }
        let earlier = Earlier::Named(name.to_owned());
        let resumed = match self.talk.idle() {
            Some(parts) => self.start.resume(parts, &earlier),
            None => return self.say_busy(),
        };
        self.turn_starts = TurnStarts::default();
        match resumed {
            Ok(text) => {
                self.conversation_changed();
                self.say_faint(&text);
            }
            Err(error) => self.say_bad(&format!("{error:#}")),
        }
    }

    fn rename(&mut self, title: &str) {
        match self.talk.idle() {
            _ if title.is_empty() => self.say_warning("give the title: /rename TITLE"),
            Some(parts) => parts.conversation.rename(title),
            None => self.say_busy(),
        }
    }

    fn say_plan(&self) {
        let mut view = self.view.lock();
        match view.plan() {
            lines if lines.is_empty() => view.say("the model has no plan", theme::FAINT),
            lines => view.extend(lines),
        }
    }

    fn say_status(&mut self) {
        let status = self.status();
        let exit = status
            .exit
            .map_or(String::new(), |exit| format!(", exit {exit}"));
        let program = status
            .program
            .map_or(String::new(), |text| format!(", {text}"));
        let parts = self.talk.idle();
        let chat =
            parts.and_then(|parts| Some(format!("\nchat {}", parts.conversation.chat_id()?)));
        let text = format!(
            "model {}, mode {}\ndirectory {}{exit}{program}{}\n{}: {}",
            status.model,
            status.mode,
            status.directory,
            chat.unwrap_or_default(),
            elapsed_text(self.age()),
            self.totals.text()
        );
        self.say_faint(&text);
    }

    fn say_jobs(&self) {
        let (jobs, view) = (self.start.setup.jobs.clone(), self.view.clone());
        tokio::spawn(async move {
            let mut text = String::new();
            for job in jobs.open().await {
                let state = job.state.as_str().replace('_', " ");
                text.push_str(&format!("{}  {state}  {}\n", job.id, job.command));
            }
            if text.is_empty() {
                text.push_str("no jobs");
            }
            view.lock().say(&text, theme::FAINT);
            view.changed.notify_one();
        });
    }

    fn say_policy(&self) {
        let mode = self.start.approvals.mode().as_str();
        self.say_faint(&format!("mode of this session: {mode}; the settings say:"));
        self.run_own(&["policy", "list"]);
    }

    /// Runs `karyi doctor`, which takes its time.
    fn examine(&self) {
        self.say_faint("checking what works here");
        self.run_own(&["doctor"]);
    }
}
