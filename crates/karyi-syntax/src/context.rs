//! What the parts of the parser share while they work on one view.

use super::event::{Event, Mode};
use super::fault::{Fault, Location};
use super::ids::Ids;
use super::source::{Ending, View};
use super::table::Table;
use karyi_core::error::Code;
use karyi_core::limits::MAX_WARNINGS;

/// Everything a step of the parser may read and change.
pub(super) struct Context<'c, 'v> {
    /// The bytes at hand.
    pub(super) view: &'c mut View<'v>,
    /// The grammar.
    pub(super) table: &'c Table,
    /// Repair or strict.
    pub(super) mode: Mode,
    /// The ids given so far.
    pub(super) ids: &'c mut Ids,
    /// What was said so far.
    pub(super) report: &'c mut Report,
    /// Where events go.
    pub(super) events: &'c mut Vec<Event>,
}

/// What is known about the warnings of a message.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Whether places count inside the `tools` string of an envelope.
    pub(super) is_in_json: bool,
    /// Whether something looked like a block and did not run.
    pub(super) has_ignored: bool,
    warnings: usize,
}

impl Report {
    /// Starts the report of an envelope's `tools` string.
    pub(super) fn in_json() -> Self {
        Self {
            is_in_json: true,
            ..Self::default()
        }
    }
}

/// How a step ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// There is more to do with the bytes at hand.
    Again,
    /// More bytes are needed.
    More,
    /// The part is complete.
    Done,
}

impl Context<'_, '_> {
    /// Tells what to do when the bytes at hand decide nothing and the message may go on.
    pub(super) fn is_last(&self) -> bool {
        self.view.ending == Ending::Last
    }

    /// Warns; the source line is shown up to `end` bytes ahead, so that it is the same for every
    /// chunking.
    pub(super) fn warn(&mut self, fault: Fault, end: usize) {
        self.report.has_ignored |= fault.code == Code::IgnoredBlock;
        if self.report.warnings >= MAX_WARNINGS {
            return;
        }
        self.report.warnings += 1;
        let most = match fault.place {
            Location::Ahead(at, _) => end.saturating_sub(at),
            Location::Mark(_) => usize::MAX,
        };
        let located = fault.locate(self.view, self.report.is_in_json);
        self.events.push(Event::Warning(located.cut(most).finish()));
    }

    /// Tells whether a warning about the place `ahead` can be given now: its line is at hand, or
    /// nobody will see it.
    pub(super) fn can_warn(&self, ahead: usize) -> bool {
        self.report.warnings >= MAX_WARNINGS || self.view.has_line(ahead)
    }
}
