//! Records calls and plans while an answer runs, on the way of the events to whoever shows them.

use std::collections::HashMap;

use crate::chat::memory::Memory;
use crate::chat::observer::{ChatEvent, Observer};
use crate::chat::transcript::record::{CallRecord, Record};
use crate::exec::{ChangedFile, Event};
use karyi_core::limits;
use karyi_core::outcome::Outcome;
use karyi_vault::redact::Redactor;

/// Observer that records, and passes every event on.
pub(super) struct Recorder<'a> {
    memory: &'a mut Memory,
    observer: &'a mut dyn Observer,
    redactor: Redactor,
    titles: HashMap<u64, String>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(
        memory: &'a mut Memory,
        observer: &'a mut dyn Observer,
        redactor: Redactor,
    ) -> Self {
        Self {
            memory,
            observer,
            redactor,
            titles: HashMap::new(),
        }
    }

    fn finished(&mut self, index: u64, outcome: &Outcome) {
        let title = self.titles.remove(&index);
        let title = title.unwrap_or_else(|| first_line(outcome.title.as_deref().unwrap_or("")));
        let text = |text: &str| self.redactor.redact_whole_again(text);
        self.memory.record(&Record::Call(CallRecord {
            id: text(&outcome.id),
            tool: text(&outcome.tool),
            title: text(&title),
            status: text(outcome.status.as_str()),
        }));
    }

    /// Records the diffs of an edit; beyond a size the names of its files alone.
    fn changed(&mut self, files: &[ChangedFile]) {
        let mut text = String::new();
        for file in files {
            match text.len() < limits::MAX_RECORDED_CHANGES_BYTES {
                true => text.push_str(&file.text()),
                false => text.push_str(&format!("{}\n", file.heading)),
            }
        }
        let text = self.redactor.redact_whole_again(&text);
        self.memory.record(&Record::Changes(text));
    }
}

impl Observer for Recorder<'_> {
    fn event(&mut self, event: &ChatEvent<'_>) {
        match event {
            ChatEvent::Call(Event::Started { index, title, .. }) => {
                self.titles.insert(*index, first_line(title));
            }
            ChatEvent::Call(Event::Finished { index, outcome }) => {
                self.finished(*index, outcome.get());
            }
            ChatEvent::Call(Event::Changes { files, .. }) => self.changed(files),
            ChatEvent::Plan(steps) => self.memory.record(&Record::Plan(steps.to_vec())),
            _ => {}
        }
        self.observer.event(event);
    }
}

/// Returns the first line of a title, not too long.
fn first_line(title: &str) -> String {
    let line = title.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(limits::MAX_TITLE_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(line)),
        None => line.to_owned(),
    }
}
