//! Finds blocks in prose: line starts, code fences, and `<tools>` that is only talked about (rules
//! F1, F2 and F5).
//!
//! Prose is consumed and not stored. Text that looks like a block and does not run causes a warning, so that no call
//! is lost silently.

use memchr::{memchr2, memchr3, memmem, memrchr};

use super::bare_calls;
use super::block::Block;
use super::chars::leading_space;
use super::context::Context;
use super::drafts::{self, Draft, DraftKind, DraftTag, Match, draft_tag};
use super::event::{Event, Mode};
use super::fault::{Fault, Location, Outcome};
use super::fence::{Fence, FenceKind, FenceLine, MAX_INFO};
use super::ids::Ids;
use super::position_tracker::incomplete_suffix;
use super::source::{Mark, View};
use super::stop_bytes::StopBytes;
use super::tag_scan::{TagScan, TagStop};
use super::tools_tag::{TOOLS, TagMatch, ToolsTag, is_opener, opening_tag, tools_word};
use karyi_core::error::Code;

/// Start of the tag that ends a block.
const TOOLS_END: &[u8] = b"</tools";

/// Most backticks that open inline code.
const MAX_BACKTICKS: usize = 64;

/// State of the search for blocks in prose.
#[derive(Debug)]
pub(super) struct Locator {
    line: LineState,
    fence: Option<Fence>,
    /// True when only white space came so far.
    is_blank: bool,
    /// True when the message may be a JSON envelope.
    may_be_envelope: bool,
    /// The draft around the next bytes.
    draft: Option<Draft>,
    /// Backticks that opened inline code on this line; 0 outside.
    code: usize,
    /// Blocks since the start of the message, or since the last thought.
    blocks: u64,
    /// How many there were at the last tag of a thought that prose mentioned.
    blocks_at_mention: Option<u64>,
    /// True after results that the model made up, or an error.
    is_over: bool,
}

#[derive(Debug)]
enum LineState {
    /// Only blanks so far on this line.
    Start,
    /// A run of backticks or tildes that starts a line.
    Run {
        mark: u8,
        length: usize,
        is_first: bool,
    },
    /// After a run that closes a fence if nothing but blanks follows.
    Tail,
    /// Any other place; with what may turn out to open a fence.
    Middle(Option<FenceLine>),
    /// A `<tools` tag that starts a line.
    Tools(TagScan),
    /// After such a tag, before the byte that decides about it.
    Pending(Box<PendingTag>),
    /// After the `{` that starts the message; with whether a line break followed.
    Brace(bool),
    /// In a block with an error, before its end.
    Faulty,
}

/// A complete `<tools>` tag.
#[derive(Debug)]
struct PendingTag {
    mark: Mark,
    tag: Outcome<ToolsTag>,
    /// True when a line break followed.
    is_broken: bool,
}

/// Result of one step of the locator.
#[derive(Debug)]
pub(super) enum LocatorStep {
    /// More bytes are available.
    Again,
    /// More bytes are needed.
    More,
    /// A block opens; the next byte is the first inside.
    Block(Box<Block>),
    /// A JSON envelope starts; the next byte is the first after its `{`.
    Envelope {
        /// True when it is in a fence.
        is_fenced: bool,
    },
}

impl Locator {
    /// Starts at the first byte of a message.
    pub(super) fn of_message() -> Self {
        Self {
            line: LineState::Start,
            fence: None,
            is_blank: true,
            may_be_envelope: true,
            draft: None,
            code: 0,
            blocks: 0,
            blocks_at_mention: None,
            is_over: false,
        }
    }

    /// Starts at the first byte of the `tools` string of an envelope.
    pub(super) fn of_string() -> Self {
        Self {
            may_be_envelope: false,
            ..Self::of_message()
        }
    }

    /// Starts at an error: nothing runs unless the block turns out to be part of a thought.
    pub(super) fn of_faulty_block() -> Self {
        Self {
            line: LineState::Faulty,
            is_blank: false,
            blocks: 1,
            is_over: true,
            ..Self::of_message()
        }
    }

    /// Starts where nothing runs any more.
    pub(super) fn of_trailing_prose() -> Self {
        Self {
            line: LineState::Middle(None),
            fence: Some(Fence {
                mark: b'`',
                length: usize::MAX,
                kind: FenceKind::Closed,
            }),
            is_blank: false,
            may_be_envelope: false,
            ..Self::of_message()
        }
    }

    /// Returns the bytes at which the locator must run again, with `length` bytes unconsumed.
    pub(super) fn stop_bytes(&self, length: usize) -> &'static StopBytes {
        if self.draft.is_some() && self.fence.is_none() && length == 0 {
            return StopBytes::DRAFT;
        }
        match self.line {
            LineState::Start if length == 0 => StopBytes::NON_SPACE,
            LineState::Middle(_) if length == 0 => StopBytes::PROSE,
            LineState::Start
            | LineState::Middle(_)
            | LineState::Run { .. }
            | LineState::Tail
            | LineState::Tools(_)
            | LineState::Pending(_)
            | LineState::Faulty
            | LineState::Brace(_) => StopBytes::ANY,
        }
    }

    /// Returns the offset from which on the consumed bytes may turn out to be a block.
    pub(super) fn undecided(&self) -> Option<u64> {
        match &self.line {
            LineState::Pending(pending) => Some(pending.mark.position.offset),
            _ => None,
        }
    }

    /// Returns true when unconsumed bytes are prose as far as none of them is a stop byte.
    pub(super) fn is_in_line(&self) -> bool {
        matches!(self.line, LineState::Middle(None)) && self.draft.is_none()
    }

    /// Makes marks outlive the view.
    pub(super) fn freeze(&mut self, view: &View<'_>) {
        if let LineState::Pending(pending) = &mut self.line {
            view.freeze(&mut pending.mark);
        }
        if let Some(draft) = &mut self.draft {
            view.freeze(&mut draft.mark);
        }
    }

    /// Advances to the next relevant position.
    pub(super) fn step(&mut self, cx: &mut Context<'_, '_>) -> Outcome<LocatorStep> {
        if let Some(draft) = self.draft.take() {
            return Ok(self.in_draft(cx, draft));
        }
        match &mut self.line {
            LineState::Start => Ok(self.line_start(cx)),
            LineState::Run { .. } => Ok(self.run(cx)),
            LineState::Tail => Ok(self.tail(cx)),
            LineState::Middle(_) => Ok(self.middle(cx)),
            LineState::Tools(_) => self.tools_tag(cx),
            LineState::Pending(_) => self.pending(cx),
            LineState::Brace(_) => Ok(self.brace(cx)),
            LineState::Faulty => Ok(self.faulty(cx)),
        }
    }

    /// Looks for the end of a block with an error.
    fn faulty(&mut self, cx: &mut Context<'_, '_>) -> LocatorStep {
        let rest = cx.view.rest();
        if let Some(at) = memmem::find(rest, TOOLS_END) {
            cx.view.consume(at);
            self.line = LineState::Middle(None);
            return LocatorStep::Again;
        }
        let whole = rest
            .get(..rest.len() - incomplete_suffix(rest))
            .unwrap_or_default();
        let is_start = |at: &usize| {
            whole
                .get(*at..)
                .is_some_and(|end| TOOLS_END.starts_with(end))
        };
        let cut = memrchr(b'<', whole).filter(is_start);
        cx.view.consume(cut.unwrap_or(whole.len()));
        LocatorStep::More
    }

    fn line_start(&mut self, cx: &mut Context<'_, '_>) -> LocatorStep {
        cx.view.consume(leading_space(cx.view.rest()));
        self.code = 0;
        let rest = cx.view.rest();
        let Some(first) = rest.first() else {
            return LocatorStep::More;
        };
        if let Some(step) = self.json_start(cx, *first) {
            return step;
        }
        match first {
            b'<' | b'[' | b'&' if self.can_open() => return self.line_tag(cx),
            b'`' | b'~' => {
                self.line = LineState::Run {
                    mark: *first,
                    length: 0,
                    is_first: self.is_blank,
                };
            }
            _ => self.line = LineState::Middle(None),
        }
        self.is_blank = false;
        LocatorStep::Again
    }

    /// Looks at what may be a tag at the start of a line.
    fn line_tag(&mut self, cx: &mut Context<'_, '_>) -> LocatorStep {
        let rest = cx.view.rest();
        match tools_word(rest, cx.is_last()) {
            TagMatch::Cut => return LocatorStep::More,
            TagMatch::Yes if is_opener(rest, cx.mode) && self.is_over => {
                cx.report.has_ignored = true;
                cx.view.consume(TOOLS.len());
                self.line = LineState::Middle(None);
            }
            TagMatch::Yes if is_opener(rest, cx.mode) => {
                self.line = LineState::Tools(TagScan::default());
            }
            TagMatch::Yes => self.line = LineState::Middle(None),
            TagMatch::No => match draft_tag(rest, cx.is_last()) {
                DraftTag::Cut => return LocatorStep::More,
                DraftTag::Open(kind, length) => self.open_draft(cx, kind, length),
                DraftTag::Close(length) => return self.end_thought(cx, length),
                DraftTag::No => return self.results_or_call(cx),
            },
        }
        self.is_blank = false;
        LocatorStep::Again
    }

    /// Looks for results that the model made up, and for calls outside any block.
    fn results_or_call(&mut self, cx: &mut Context<'_, '_>) -> LocatorStep {
        let rest = cx.view.rest();
        match bare_calls::is_results(rest, cx.is_last()) {
            Match::Cut => return LocatorStep::More,
            Match::Yes(_) if self.is_over => {}
            Match::Yes(_) if self.fence.is_some() && self.blocks == 0 => {}
            Match::Yes(_) if !cx.can_warn(0) => return LocatorStep::More,
            Match::Yes(length) => {
                let message = "results stand in the message, so nothing after them runs";
                let fault = Fault::ahead(Code::InventedResults, 0, length, message);
                cx.warn(*fault, usize::MAX);
                self.is_over = true;
            }
            Match::No if self.fence.is_some() || self.is_over || cx.report.bare_call.is_some() => {}
            Match::No => match bare_calls::call_like(rest, cx.table, cx.is_last()) {
                Match::Cut => return LocatorStep::More,
                Match::Yes(_) if !cx.view.has_line(0) => return LocatorStep::More,
                Match::Yes(length) => cx.note_bare_call(length),
                Match::No => {}
            },
        }
        self.is_blank = false;
        self.line = LineState::Middle(None);
        LocatorStep::Again
    }

    fn open_draft(&mut self, cx: &mut Context<'_, '_>, kind: DraftKind, length: usize) {
        let mark = cx.view.mark(length);
        cx.view.consume(kind.consumed(length));
        self.draft = Some(Draft {
            kind,
            mark,
            has_block: false,
            was_blank: self.is_blank,
        });
    }

    /// Goes on in a draft.
    fn in_draft(&mut self, cx: &mut Context<'_, '_>, mut draft: Draft) -> LocatorStep {
        let rest = cx.view.rest();
        let close = draft.kind.close_byte();
        let found = match self.fence {
            None => memchr2(b'<', close, rest),
            Some(_) => memchr3(b'<', close, b'\n', rest),
        };
        cx.view
            .consume(found.unwrap_or_else(|| rest.len() - incomplete_suffix(rest)));
        let rest = cx.view.rest();
        if found.is_none() {
            warn_of_open_draft(cx, &mut draft);
            self.draft = Some(draft);
            return LocatorStep::More;
        }
        let fence = self.fence.as_ref();
        match fence.map_or(Match::No, |fence| fence.ends_at(rest, cx.is_last())) {
            Match::Yes(_) => {
                self.line = LineState::Start;
                return LocatorStep::Again;
            }
            Match::Cut => {
                self.draft = Some(draft);
                return LocatorStep::More;
            }
            Match::No => {}
        }
        match draft.kind.closes(rest, cx.is_last()) {
            Match::Yes(length) => {
                cx.view.consume(length);
                self.end_draft(&draft);
                return LocatorStep::Again;
            }
            Match::Cut => {
                self.draft = Some(draft);
                return LocatorStep::More;
            }
            Match::No => {}
        }
        let step = self.tag_in_draft(cx, &mut draft);
        self.draft = Some(draft);
        step
    }

    /// Ends a draft. After a thought, the message may start.
    fn end_draft(&mut self, draft: &Draft) {
        self.line = LineState::Middle(None);
        self.is_blank = false;
        if draft.kind.is_thought() {
            self.line = LineState::Start;
            self.is_blank = draft.was_blank;
        }
    }

    /// Looks at what may be a block in a draft, and warns of it.
    fn tag_in_draft(&self, cx: &mut Context<'_, '_>, draft: &mut Draft) -> LocatorStep {
        let rest = cx.view.rest();
        let is_block = match tools_word(rest, cx.is_last()) {
            TagMatch::Cut => Match::Cut,
            TagMatch::Yes => drafts::is_block(rest, cx.is_last()),
            TagMatch::No => Match::No,
        };
        match is_block {
            Match::Cut => LocatorStep::More,
            Match::Yes(_) if !self.is_over && !cx.can_warn(0) => LocatorStep::More,
            Match::Yes(_) if !self.is_over => {
                let message = format!(
                    "<tools> stands in {}, where nothing runs",
                    draft.kind.shown().0
                );
                let fault = Fault::ahead(Code::IgnoredBlock, 0, TOOLS.len(), message);
                let hint = "to run it, put it outside thoughts, comments and <pre>";
                cx.warn(*fault.with_hint(hint), usize::MAX);
                draft.has_block = true;
                cx.view.consume(TOOLS.len());
                LocatorStep::Again
            }
            Match::Yes(_) | Match::No => {
                cx.view.consume(1);
                LocatorStep::Again
            }
        }
    }

    /// Ends a thought that nothing opened: the message starts after it. One that opened after the last block, inside a
    /// line of prose, held no block, nor did one that ends in a fence before any block.
    fn end_thought(&mut self, cx: &mut Context<'_, '_>, length: usize) -> LocatorStep {
        let is_shown = self.fence.is_some() && self.blocks == 0;
        if self.blocks_at_mention.take() == Some(self.blocks) || is_shown {
            cx.view.consume(length);
            self.line = LineState::Start;
            return LocatorStep::Again;
        }
        if self.blocks > 0 {
            if !cx.can_warn(0) {
                return LocatorStep::More;
            }
            let message =
                "here ends a thought that nothing opened; the blocks before it are drafts";
            let fault = Fault::ahead(Code::IgnoredBlock, 0, length, message);
            let hint = match cx.report.is_streamed {
                true => "with --stream they have run already; check what they did",
                false => "to run a block, put it after the thought",
            };
            cx.events.push(Event::DraftsEnded);
            cx.warn(*fault.with_hint(hint), usize::MAX);
            if !cx.report.is_streamed {
                *cx.ids = Ids::default();
            }
        }
        cx.report.bare_call = None;
        cx.view.consume(length);
        *self = Self {
            may_be_envelope: self.may_be_envelope,
            ..Self::of_message()
        };
        LocatorStep::Again
    }

    /// Looks for the `{` of an envelope.
    fn json_start(&mut self, cx: &mut Context<'_, '_>, first: u8) -> Option<LocatorStep> {
        match &mut self.fence {
            Some(fence) if fence.kind == FenceKind::Json => {
                if first == b'{' {
                    cx.view.consume(1);
                    return Some(LocatorStep::Envelope { is_fenced: true });
                }
                fence.kind = FenceKind::Closed;
                None
            }
            None if first == b'{' && self.is_blank && self.may_be_envelope => {
                cx.view.consume(1);
                self.is_blank = false;
                self.line = LineState::Brace(false);
                Some(LocatorStep::Again)
            }
            Some(_) | None => None,
        }
    }

    fn can_open(&self) -> bool {
        self.fence
            .as_ref()
            .is_none_or(|fence| fence.kind == FenceKind::Open)
    }

    fn brace(&mut self, cx: &mut Context<'_, '_>) -> LocatorStep {
        let is_broken = skip_space(cx) || matches!(self.line, LineState::Brace(true));
        match cx.view.rest().first() {
            None => {
                self.line = LineState::Brace(is_broken);
                return LocatorStep::More;
            }
            Some(b'"' | b'}') => return LocatorStep::Envelope { is_fenced: false },
            Some(_) if is_broken => self.line = LineState::Start,
            Some(_) => self.line = LineState::Middle(None),
        }
        LocatorStep::Again
    }

    fn run(&mut self, cx: &mut Context<'_, '_>) -> LocatorStep {
        let LineState::Run {
            mark,
            length,
            is_first,
        } = &mut self.line
        else {
            return LocatorStep::Again;
        };
        let rest = cx.view.rest();
        let count = rest.iter().take_while(|b| *b == mark).count();
        cx.view.consume(count);
        *length += count;
        if count == rest.len() && !cx.is_last() {
            return LocatorStep::More;
        }
        let (mark, length, is_first) = (*mark, *length, *is_first);
        self.code = if mark == b'`' { length } else { 0 };
        self.line = match &self.fence {
            Some(fence) if fence.mark == mark && length >= fence.length => LineState::Tail,
            None if length >= 3 => LineState::Middle(Some(FenceLine {
                mark,
                length,
                is_first,
                info: Vec::new(),
            })),
            Some(_) | None => LineState::Middle(None),
        };
        LocatorStep::Again
    }

    fn tail(&mut self, cx: &mut Context<'_, '_>) -> LocatorStep {
        let rest = cx.view.rest();
        cx.view.consume(
            rest.iter()
                .take_while(|b| matches!(b, b' ' | b'\t'))
                .count(),
        );
        match cx.view.rest().first() {
            None => return LocatorStep::More,
            Some(b'\n' | b'\r') => {
                self.fence = None;
                self.line = LineState::Start;
            }
            Some(_) => self.line = LineState::Middle(None),
        }
        LocatorStep::Again
    }

    fn middle(&mut self, cx: &mut Context<'_, '_>) -> LocatorStep {
        let rest = cx.view.rest();
        let found = StopBytes::PROSE.find(rest);
        let length = found.unwrap_or_else(|| rest.len() - incomplete_suffix(rest));
        self.add_info(rest.get(..length).unwrap_or_default());
        cx.view.consume(length);
        let rest = cx.view.rest();
        match rest.first().filter(|_| found.is_some()) {
            Some(b'`') => return self.backticks(cx),
            Some(b'<' | b'[') => return self.tag_in_line(cx),
            Some(_) => self.end_line(),
            None => return LocatorStep::More,
        }
        LocatorStep::Again
    }

    /// Opens or closes inline code.
    fn backticks(&mut self, cx: &mut Context<'_, '_>) -> LocatorStep {
        let rest = cx.view.rest();
        let length = rest.iter().take_while(|b| **b == b'`').count();
        if length == rest.len() && !cx.is_last() && length <= MAX_BACKTICKS {
            return LocatorStep::More;
        }
        self.add_info(b"`");
        self.code = match self.code {
            0 => length,
            open if open == length => 0,
            open => open,
        };
        cx.view.consume(length);
        LocatorStep::Again
    }

    /// Looks at what may be a tag inside a line.
    fn tag_in_line(&mut self, cx: &mut Context<'_, '_>) -> LocatorStep {
        let rest = cx.view.rest();
        let first = rest.first().copied().unwrap_or_default();
        match tools_word(rest, cx.is_last()) {
            TagMatch::Cut => return LocatorStep::More,
            TagMatch::Yes if self.is_over => {}
            TagMatch::Yes => return self.ignored_tools(cx),
            TagMatch::No => {}
        }
        let is_prose =
            self.can_open() && self.code == 0 && matches!(self.line, LineState::Middle(None));
        match draft_tag(rest, cx.is_last()) {
            _ if !is_prose => {}
            DraftTag::Cut => return LocatorStep::More,
            DraftTag::Close(length) => {
                let after = rest.get(length..).unwrap_or_default();
                match DraftKind::is_mentioned(after, cx.is_last()) {
                    Match::Cut => return LocatorStep::More,
                    Match::Yes(_) => {}
                    Match::No => return self.end_thought(cx, length),
                }
            }
            DraftTag::Open(kind, length) => {
                let after = rest.get(length..).unwrap_or_default();
                match kind.opens_inside_line(after, cx.is_last()) {
                    Match::Cut => return LocatorStep::More,
                    Match::Yes(_) => {
                        self.open_draft(cx, kind, length);
                        return LocatorStep::Again;
                    }
                    Match::No if kind.is_thought() => self.blocks_at_mention = Some(self.blocks),
                    Match::No => {}
                }
            }
            DraftTag::No => {}
        }
        self.add_info(&[first]);
        cx.view.consume(1);
        LocatorStep::Again
    }

    /// Warns of a `<tools` inside a line.
    fn ignored_tools(&mut self, cx: &mut Context<'_, '_>) -> LocatorStep {
        let rest = cx.view.rest();
        let is_block = drafts::is_block(rest, cx.is_last());
        if is_block == Match::Cut || !cx.can_warn(0) {
            return LocatorStep::More;
        }
        let is_spelled = cx.mode == Mode::Repair || rest.starts_with(TOOLS);
        let fault = Fault::ahead(Code::IgnoredBlock, 0, TOOLS.len(), self.reason(is_spelled));
        match is_block {
            Match::Yes(_) => cx.warn(*fault, usize::MAX),
            Match::No | Match::Cut => cx.warn_of_mention(*fault, usize::MAX),
        }
        self.add_info(TOOLS);
        cx.view.consume(TOOLS.len());
        LocatorStep::Again
    }

    /// Returns the reason why a `<tools` in prose does not run.
    fn reason(&self, is_spelled: bool) -> &'static str {
        match &self.fence {
            Some(fence) if fence.length == usize::MAX => {
                "<tools> stands after the JSON object, where nothing runs"
            }
            Some(fence) if fence.kind != FenceKind::Open => {
                "<tools> stands in a code fence, where nothing runs"
            }
            _ if !is_spelled => "strict mode knows <tools> in lower case only, so nothing runs",
            _ => "<tools> does not start its line as a tag of its own, so nothing runs",
        }
    }

    /// Collects the info string of a line that may open a fence.
    fn add_info(&mut self, bytes: &[u8]) {
        let LineState::Middle(opening) = &mut self.line else {
            return;
        };
        if let Some(fence) = opening {
            if fence.mark == b'`' && bytes.contains(&b'`') {
                *opening = None;
                return;
            }
            let room = (MAX_INFO + 1).saturating_sub(fence.info.len());
            fence
                .info
                .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::replace(&mut self.line, LineState::Start);
        if let LineState::Middle(Some(opening)) = line {
            self.fence = Some(opening.into_fence(self.may_be_envelope));
        }
    }

    fn tools_tag(&mut self, cx: &mut Context<'_, '_>) -> Outcome<LocatorStep> {
        let LineState::Tools(scan) = &mut self.line else {
            return Ok(LocatorStep::Again);
        };
        let rest = cx.view.rest();
        let scanned = scan.step(rest);
        let is_tag = match scanned {
            TagStop::End { is_empty, .. } => !is_empty && !scan.is_prose(),
            TagStop::More if !cx.is_last() && !scan.is_prose() => return Ok(LocatorStep::More),
            TagStop::More | TagStop::Cut | TagStop::TooLong | TagStop::TooMany => {
                scan.is_committed()
            }
        };
        let length = match scanned {
            TagStop::End { length, .. } if is_tag => length,
            TagStop::TooLong | TagStop::TooMany if is_tag => {
                return Err(Fault::ahead(
                    Code::TooLarge,
                    0,
                    TOOLS.len(),
                    "the tag is larger than allowed",
                ));
            }
            TagStop::More | TagStop::Cut if is_tag => {
                return Err(Fault::ahead(
                    Code::UnclosedTag,
                    0,
                    TOOLS.len(),
                    "the tag has no `>`",
                ));
            }
            TagStop::More
            | TagStop::Cut
            | TagStop::TooLong
            | TagStop::TooMany
            | TagStop::End { .. } => {
                self.line = LineState::Middle(None);
                return Ok(LocatorStep::Again);
            }
        };
        let tag = opening_tag(cx, rest.get(..length).unwrap_or_default(), scan);
        let mark = cx.view.mark(length);
        if cx.mode == Mode::Strict {
            self.line = LineState::Middle(None);
            let tag = tag?;
            self.blocks += 1;
            cx.view.consume(length);
            return Ok(LocatorStep::Block(tag.open(cx, mark)));
        }
        cx.view.consume(length);
        self.line = LineState::Pending(Box::new(PendingTag {
            mark,
            tag,
            is_broken: false,
        }));
        Ok(LocatorStep::Again)
    }

    fn pending(&mut self, cx: &mut Context<'_, '_>) -> Outcome<LocatorStep> {
        let is_broken = skip_space(cx);
        let LineState::Pending(pending) = &mut self.line else {
            return Ok(LocatorStep::Again);
        };
        pending.is_broken |= is_broken;
        let next = cx.view.rest().first();
        if next.is_none() && !cx.is_last() {
            return Ok(LocatorStep::More);
        }
        let is_sentence = !pending.is_broken && next.is_some_and(|b| *b != b'<');
        if is_sentence && !cx.view.has_line(0) {
            return Ok(LocatorStep::More);
        }
        let after = if pending.is_broken {
            LineState::Start
        } else {
            LineState::Middle(None)
        };
        let LineState::Pending(pending) = std::mem::replace(&mut self.line, after) else {
            return Ok(LocatorStep::Again);
        };
        if next == Some(&b'<') {
            self.line = LineState::Middle(None);
            self.blocks += 1;
            let tag = pending.tag.map_err(|mut fault| {
                fault.place = Location::Mark(Box::new(pending.mark.clone()));
                fault
            })?;
            return Ok(LocatorStep::Block(tag.open(cx, pending.mark)));
        }
        let message = "no tool follows <tools>, so nothing runs";
        let fault = Fault::at(Code::IgnoredBlock, &pending.mark, message);
        let rest = cx.view.rest();
        let line = rest.split(|b| matches!(b, b'\n' | b'\r')).next();
        match is_sentence && line.is_none_or(|line| memmem::find(line, TOOLS_END).is_none()) {
            true => cx.warn_of_mention(*fault, 0),
            false => cx.warn(*fault, 0),
        }
        Ok(LocatorStep::Again)
    }
}

/// Consumes white space; returns whether there was a line break.
fn skip_space(cx: &mut Context<'_, '_>) -> bool {
    let rest = cx.view.rest();
    let length = leading_space(rest);
    cx.view.consume(length);
    let space = rest.get(..length).unwrap_or_default();
    space.iter().any(|b| matches!(b, b'\n' | b'\r'))
}

/// Warns at the end of the message of a draft that is open and holds a block.
fn warn_of_open_draft(cx: &mut Context<'_, '_>, draft: &mut Draft) {
    if cx.is_last() && draft.has_block {
        draft.has_block = false;
        let (open, close) = draft.kind.shown();
        let message = format!("{open} has no {close}, so nothing after it runs");
        let hint = format!("close it with {close}, or write {open} in backticks");
        let fault = Fault::at(Code::IgnoredBlock, &draft.mark, message);
        cx.warn(*fault.with_hint(hint), 0);
    }
}
