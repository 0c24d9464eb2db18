//! Actions on the chat: its context, a copy of it, the clipboard, the effort of the model, and its notes.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::chat::context_use::{ContextUse, tokens_of};
use crate::chat::transcript::export;
use crate::cli::assistant::app::App;
use crate::cli::chats;
use karyi_core::limits;
use karyi_model::Effort;

/// Mode of a file that only the user may read: a chat holds what the user and the model have seen.
const PRIVATE: u32 = 0o600;

/// Prompt of `/init`.
const INIT: &str = "\
Write AGENTS.md in the root of this project: notes for you and other assistants that work on it later. First look at
what is there: the README, the build files, the layout, the tests, and notes of other assistants. Then write at most 60
lines: what the project is, how to build, test and check it (the exact commands, for one test as well), how the code is
laid out, and the rules that are not obvious from it. Leave out what any programmer knows, and everything you have not
seen. If there is an AGENTS.md, improve it and keep what is right.";

impl App {
    /// Shows what takes the model's context.
    pub(super) fn say_context(&mut self) {
        let notes = tokens_of(&self.start.project().text);
        let Some(parts) = self.talk.idle() else {
            return self.say_busy();
        };
        let conversation = &parts.conversation;
        let system = &conversation.state().history().request().system;
        let system = tokens_of(system.as_str()).saturating_sub(notes);
        let text = context_text(conversation.context_use(), system, notes);
        self.say_faint(&text);
    }

    /// Shows which notes the model gets.
    pub(super) fn say_notes(&mut self) {
        let deeper = self
            .talk
            .idle()
            .map(|parts| parts.conversation.deeper_notes());
        let text = self.start.project().report(deeper.unwrap_or_default());
        self.say_faint(&text);
    }

    /// Writes the chat to a file.
    pub(super) fn export(&mut self, name: &str) {
        match self.exported(name) {
            Ok(path) => self.say_faint(&format!("the chat is in {}", path.display())),
            Err(error) => self.say_bad(&format!("{error:#}")),
        }
    }

    fn exported(&mut self, name: &str) -> anyhow::Result<PathBuf> {
        let parts = self.talk.idle().context(super::actions::BUSY)?;
        let id = parts.conversation.chat_id();
        let id = id.context("this chat is not saved, and so cannot be written")?;
        let id = id.to_owned();
        let is_empty = parts.conversation.state().history().turn_count() == 0;
        anyhow::ensure!(!is_empty, "there is nothing in this chat yet");
        let store = chats::store(self.start.setup.redactor.clone())?;
        let page = export::markdown(&id, &store.read(&id)?);
        let name = match name {
            "" => format!("karyi-{id}.md"),
            name => name.to_owned(),
        };
        let name = match (name.strip_prefix("~/"), &self.start.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => PathBuf::from(name),
        };
        let path = self.start.setup.context.sessions.cwd().join(name);
        write_new(&path, &page).with_context(|| {
            format!(
                "writing {}; /export FILE names another file",
                path.display()
            )
        })?;
        Ok(path)
    }

    /// Gives the last answer to the clipboard of the terminal.
    pub(super) fn copy(&mut self) {
        let Some(parts) = self.talk.idle() else {
            return self.say_busy();
        };
        let answer = parts.conversation.state().history().last_answer();
        let answer = answer.map(|answer| export::without_blocks(answer.as_str()));
        let Some(answer) = answer.filter(|answer| !answer.is_empty()) else {
            return self.say_faint("the model has not answered yet");
        };
        if answer.len() > limits::MAX_CLIPBOARD_BYTES {
            let most = limits::MAX_CLIPBOARD_BYTES;
            let text = format!(
                "the answer is longer than {most} bytes, which terminals may cut; /export writes a file"
            );
            return self.say_bad(&text);
        }
        match self.screen.copy(&answer) {
            Ok(()) => self.say_faint(&format!(
                "{} bytes went to the terminal for its clipboard",
                answer.len()
            )),
            Err(error) => self.say_bad(&format!("writing to the terminal: {error}")),
        }
    }

    /// Shows or changes the effort of the model's reasoning.
    pub(super) fn change_effort(&mut self, name: &str) {
        let shown = |effort: Option<Effort>| effort.map_or("default", Effort::as_str);
        let levels = "low, medium, high, default";
        if name.is_empty() {
            let effort = shown(self.start.effort());
            return self.say_faint(&format!("effort: {effort}; the levels are {levels}"));
        }
        let effort = Effort::parse(name);
        if effort.is_none() && name != "default" {
            return self.say_bad(&format!("no effort {name:?}; the levels are {levels}"));
        }
        let Some(parts) = self.talk.idle() else {
            return self.say_busy();
        };
        parts.conversation.set_effort(effort);
        self.start.set_effort(effort);
        let note = effort.map_or(
            "",
            |_| "; a model without such levels ignores or refuses it",
        );
        self.say_faint(&format!("effort: {}{note}", shown(effort)));
    }

    /// Lets the model write notes.
    pub(super) fn init(&mut self) {
        match self.talk.is_busy() {
            true => self.say_busy(),
            false => self.ask_model(INIT, "/init"),
        }
    }
}

/// Writes a file that does not exist yet.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(PRIVATE);
    options.open(path)?.write_all(text.as_bytes())
}

/// Returns the parts of the context, of which the system text and the notes are estimates.
fn context_text(all: ContextUse, system: u64, notes: u64) -> String {
    let conversation = all.tokens.saturating_sub(system + notes);
    let about = if all.is_estimate { "about " } else { "" };
    let head = match (all.window, all.percent()) {
        (Some(window), Some(percent)) => {
            format!(
                "context: {about}{} of {window} tokens, {percent} %",
                all.tokens
            )
        }
        _ => format!(
            "context: {about}{} tokens; how many the model takes is unknown",
            all.tokens
        ),
    };
    let mut lines = vec![head];
    let free = all.window.map(|window| window.saturating_sub(all.tokens));
    let rows = [
        ("tools and rules", Some(system)),
        ("notes and skills", Some(notes)),
        ("conversation", Some(conversation)),
        ("free", free),
    ];
    let rows = rows
        .iter()
        .filter_map(|(name, tokens)| Some((name, (*tokens)?)));
    lines.extend(rows.map(|(name, tokens)| format!("{tokens:>9}  {name}")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_context_add_up() {
        let all = ContextUse {
            tokens: 3000,
            window: Some(10_000),
            is_estimate: true,
        };
        assert_eq!(
            context_text(all, 1500, 500),
            "context: about 3000 of 10000 tokens, 30 %\n\
             \x20    1500  tools and rules\n\
             \x20     500  notes and skills\n\
             \x20    1000  conversation\n\
             \x20    7000  free"
        );
        let unknown = ContextUse {
            window: None,
            is_estimate: false,
            ..all
        };
        let text = context_text(unknown, 0, 0);
        assert!(
            text.starts_with("context: 3000 tokens; how many") && !text.contains("free"),
            "{text}"
        );
    }

    #[test]
    fn a_file_that_exists_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("chat.md");
        write_new(&path, "one").unwrap();
        assert!(write_new(&path, "two").is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
    }
}
