//! The stretches of a message that are prose: everything outside blocks.

use std::mem;
use std::ops::Range;

use super::event::Event;
use karyi_core::error::Code;

/// Prose that was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prose {
    /// Its stretches, as offsets from the start of the message.
    pub stretches: Vec<Range<u64>>,
    /// No later prose starts before this offset.
    pub next: u64,
}

/// Collects stretches of prose as they are decided.
#[derive(Debug)]
pub(super) struct ProseTracker {
    /// Offset of the prose that was not given out; nothing inside a block, or after the message was refused.
    open: Option<u64>,
    ended: Vec<Range<u64>>,
}

impl ProseTracker {
    /// Starts outside any prose.
    pub(super) fn new() -> Self {
        Self {
            open: None,
            ended: Vec::new(),
        }
    }

    /// Notes that prose begins.
    pub(super) fn begin(&mut self, at: u64) {
        self.open = Some(at);
    }

    /// Notes that a block begins, or that nothing after this place counts.
    pub(super) fn end(&mut self, at: u64) {
        if let Some(start) = self.open.take().filter(|start| *start < at) {
            self.ended.push(start..at);
        }
    }

    /// Notes results that the model made up, from their warning: nothing from there on counts.
    pub(super) fn end_at_results<'a>(&mut self, events: impl IntoIterator<Item = &'a Event>) {
        for event in events {
            if let Event::Warning(warning) = event
                && warning.code == Code::InventedResults
            {
                self.end(warning.position.offset);
            }
        }
    }

    /// Returns the stretches so far; the message is decided up to `until`.
    pub(super) fn take(&mut self, until: u64) -> Prose {
        let mut stretches = mem::take(&mut self.ended);
        if let Some(start) = self.open.filter(|start| *start < until) {
            stretches.push(start..until);
            self.open = Some(until);
        }
        let next = self.open.unwrap_or(until);
        Prose { stretches, next }
    }
}
