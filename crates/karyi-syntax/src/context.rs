//! State that the parts of the parser share while they work on one view.

use super::event::{Event, Mode};
use super::fault::{Fault, Location};
use super::ids::Ids;
use super::source::{Ending, View};
use super::table::Table;
use karyi_core::error::{Code, Diagnostic};
use karyi_core::limits::MAX_WARNINGS;

/// Everything a step of the parser may read and change.
pub(super) struct Context<'c, 'v> {
    /// The available bytes.
    pub(super) view: &'c mut View<'v>,
    /// The grammar.
    pub(super) table: &'c Table,
    /// Repair or strict.
    pub(super) mode: Mode,
    /// The ids given so far.
    pub(super) ids: &'c mut Ids,
    /// Warnings so far.
    pub(super) report: &'c mut Report,
    /// Output of the parser.
    pub(super) events: &'c mut Vec<Event>,
}

/// Warnings of a message.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// True when places count inside the `tools` string of an envelope.
    pub(super) is_in_json: bool,
    /// True when something looked like a block and did not run, or results that the model made up came.
    pub(super) has_ignored: bool,
    /// True when calls run while the message is read.
    pub(super) is_streamed: bool,
    /// The first line that starts like a call outside any block.
    pub(super) bare_call: Option<Box<Diagnostic>>,
    warnings: usize,
}

impl Report {
    /// Returns true when nothing has run yet and a thought may end after a block.
    pub(super) fn may_be_draft(&self) -> bool {
        !self.is_in_json && !self.is_streamed
    }

    /// Starts the report of an envelope's `tools` string.
    pub(super) fn in_json() -> Self {
        Self {
            is_in_json: true,
            ..Self::default()
        }
    }
}

/// Result of one parser step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// There is more to do with the available bytes.
    Again,
    /// More bytes are needed.
    More,
    /// The part is complete.
    Done,
}

impl Context<'_, '_> {
    /// Returns true when the message ends after the available bytes.
    pub(super) fn is_last(&self) -> bool {
        self.view.ending == Ending::Last
    }

    /// Emits a warning. The source line is shown up to `end` bytes ahead, so that it does not depend on the chunking.
    pub(super) fn warn(&mut self, fault: Fault, end: usize) {
        self.report.has_ignored |= matches!(fault.code, Code::IgnoredBlock | Code::InventedResults);
        self.warn_of_mention(fault, end);
    }

    /// Emits a warning about a tag that prose mentions: it does not count as a block.
    pub(super) fn warn_of_mention(&mut self, fault: Fault, end: usize) {
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

    /// Records that a line starts like a call, with `length` bytes to underline.
    pub(super) fn note_bare_call(&mut self, length: usize) {
        let message = "nothing ran: calls run only inside <tools>...</tools>";
        let fault = Fault::ahead(Code::NoBlock, 0, length, message);
        let located = fault.locate(self.view, self.report.is_in_json);
        self.report.bare_call = Some(Box::new(located.finish()));
    }

    /// Returns true when a warning at `ahead` can be emitted now: its line is complete, or the limit of warnings is
    /// reached.
    pub(super) fn can_warn(&self, ahead: usize) -> bool {
        self.report.warnings >= MAX_WARNINGS || self.view.has_line(ahead)
    }
}
