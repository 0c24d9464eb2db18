//! Parses one `<tools>` block: tags and comments between elements, and the calls they form.
//!
//! [`super::leaf_content`] handles the text of leaves.

use std::sync::Arc;

use memchr::memchr2;

use super::chars::{is_name, is_name_start_byte, is_space, leading_space};
use super::common_faults::{
    bad_char, first_char, processing_instruction, tag_text, too_large, unclosed_tag,
};
use super::context::{Context, Progress};
use super::element::{Attributes, OpenElement};
use super::event::{Event, Mode};
use super::fault::{Fault, Outcome, shown};
use super::leaf_decoder::DecodedLeaf;
use super::raw_scan::RawScan;
use super::repairs::{Repair, Repairs};
use super::source::{Mark, View};
use super::stop_bytes::StopBytes;
use super::table::{Body, GroupPosition, Rule};
use super::tag_scan::{TagScan, TagStop};
use super::text_scan::TextScan;
use karyi_core::call::{RawCall, RawText};
use karyi_core::error::Code;
use karyi_core::limits::{MAX_ARGUMENT_DEPTH, MAX_CALLS, MAX_TAG_BYTES};

/// Open block.
#[derive(Debug)]
pub(super) struct Block {
    /// Its opening tag.
    tools: Mark,
    /// True when `xml:space="preserve"` is in force.
    pub(super) is_preserved: bool,
    /// The elements that are open, the call first.
    pub(super) stack: Vec<OpenElement>,
    /// Token that the next bytes belong to.
    pub(super) token: Token,
    /// Scan of an opening tag; `None` while its result is used.
    tag: Option<Box<TagScan>>,
    /// Repairs since the last call.
    pub(super) repairs: Repairs,
    /// Id of the call that is open, and whether the model wrote it.
    id: (String, bool),
}

/// Token that the next bytes belong to.
#[derive(Debug)]
pub(super) enum Token {
    /// White space between elements.
    Between,
    /// A comment that starts here.
    Comment(Mark),
    /// An opening tag.
    Open,
    /// An end tag.
    End(EndScan),
    /// A raw leaf.
    Raw(RawScan),
    /// Other text.
    Text(TextScan),
}

/// The scan of an end tag.
#[derive(Debug)]
pub(super) struct EndScan {
    /// Offset of its `<`.
    pub(super) start: usize,
    /// Up to here there is no `>`.
    pub(super) at: usize,
    /// True when the bytes before it are the element's text.
    pub(super) is_after_text: bool,
    /// That text, if it is known already.
    pub(super) reading: Option<DecodedLeaf>,
}

impl Block {
    /// Opens a block at a `<tools>` tag.
    pub(super) fn new(tools: Mark, is_preserved: bool, repairs: Repairs) -> Self {
        Self {
            tools,
            is_preserved,
            stack: Vec::new(),
            token: Token::Between,
            tag: None,
            repairs,
            id: (String::new(), false),
        }
    }

    /// Runs as far as the available bytes decide.
    pub(super) fn run(&mut self, cx: &mut Context<'_, '_>) -> Outcome<Progress> {
        loop {
            match self.step(cx)? {
                Progress::Again => {}
                progress => return Ok(progress),
            }
        }
    }

    /// Runs up to the next token.
    fn step(&mut self, cx: &mut Context<'_, '_>) -> Outcome<Progress> {
        match self.token {
            Token::Between => self.between(cx),
            Token::Comment(_) => self.comment(cx),
            Token::Open => self.opening_tag(cx),
            Token::End(_) => self.end_tag(cx),
            Token::Raw(_) => self.raw_leaf(cx),
            Token::Text(_) => self.text(cx),
        }
    }

    /// Returns the bytes at which the block must run again, when it has seen all `length` unconsumed bytes.
    pub(super) fn stop_bytes(&self, length: usize) -> &'static StopBytes {
        match &self.token {
            Token::Between if length == 0 => StopBytes::NON_SPACE,
            Token::Open if self.tag.as_ref().is_some_and(|tag| tag.length() == length) => {
                StopBytes::ANGLE
            }
            Token::End(scan) if scan.at == length => StopBytes::ANGLE,
            Token::Raw(scan) => scan.stop_bytes(length),
            Token::Text(scan) => scan.stop_bytes(length),
            Token::Between | Token::Comment(_) | Token::Open | Token::End(_) => StopBytes::ANY,
        }
    }

    /// Freezes the marks, so that they stay valid after the view.
    pub(super) fn freeze(&mut self, view: &View<'_>) {
        view.freeze(&mut self.tools);
        if let Token::Comment(mark) = &mut self.token {
            view.freeze(mark);
        }
        for open in self.stack.iter_mut().rev() {
            let mut is_new = view.freeze(&mut open.mark);
            if let Some(comment) = &mut open.comment {
                is_new |= view.freeze(comment);
            }
            if !is_new {
                // Those further out were frozen before.
                break;
            }
        }
    }

    fn between(&mut self, cx: &mut Context<'_, '_>) -> Outcome<Progress> {
        cx.view.consume(leading_space(cx.view.rest()));
        let rest = cx.view.rest();
        match rest {
            [] if cx.is_last() => self.end_of_message(cx),
            [] => Ok(Progress::More),
            [b'<'] if cx.is_last() => Err(unclosed_tag(1, 0)),
            [b'<'] => Ok(Progress::More),
            [b'<', next, ..] => self.markup(cx, *next),
            _ => self.stray_text(cx),
        }
    }

    /// Returns the offset of its opening tag.
    pub(super) fn offset(&self) -> u64 {
        self.tools.position.offset
    }

    fn end_of_message(&mut self, cx: &mut Context<'_, '_>) -> Outcome<Progress> {
        if let Some(open) = self.stack.last() {
            return Err(open.unclosed());
        }
        let message = "<tools> has no </tools>";
        let fault = Fault::at(Code::UnclosedTools, &self.tools, message);
        if cx.mode == Mode::Strict {
            return Err(fault);
        }
        cx.warn(*fault, 0);
        cx.events.push(Event::BlockClosed);
        Ok(Progress::Done)
    }

    /// Handles the byte after a `<` between elements.
    fn markup(&mut self, cx: &mut Context<'_, '_>, next: u8) -> Outcome<Progress> {
        let rest = cx.view.rest();
        match next {
            b'/' => {
                self.token = Token::End(EndScan {
                    start: 0,
                    at: 2,
                    is_after_text: false,
                    reading: None,
                });
            }
            b'!' => return self.bang(cx, 0),
            b'?' => return Err(processing_instruction(0)),
            next if is_name_start_byte(next) => self.start_tag(),
            _ => {
                let message = "`<` starts no tag here";
                return Err(
                    bad_char(rest, 1).unwrap_or_else(|| Fault::ahead(Code::BadTag, 0, 1, message))
                );
            }
        }
        Ok(Progress::Again)
    }

    fn stray_text(&self, cx: &Context<'_, '_>) -> Outcome<Progress> {
        let rest = cx.view.rest();
        let Some(length) = first_char(rest, 0, cx.is_last())? else {
            return Ok(Progress::More);
        };
        Err(match self.stack.last() {
            None => Fault::ahead(
                Code::TextBetweenTools,
                0,
                length,
                "text stands between the tools of a block",
            ),
            Some(open) => {
                let message = format!(
                    "text stands in <{}>, which holds none here",
                    shown(&open.name)
                );
                let fault = Fault::ahead(Code::UnexpectedText, 0, length, message);
                match open.rule.body.child_tags() {
                    Some(tags) => fault.with_hint(format!("write {tags} instead of the text")),
                    None => fault,
                }
            }
        })
    }

    /// The next byte is the `<` of an opening tag.
    pub(super) fn start_tag(&mut self) {
        self.tag.get_or_insert_default().restart();
        self.token = Token::Open;
    }

    fn opening_tag(&mut self, cx: &mut Context<'_, '_>) -> Outcome<Progress> {
        let rest = cx.view.rest();
        let Some(mut scan) = self.tag.take() else {
            return Ok(Progress::Again);
        };
        let (length, is_empty) = match scan.step(rest) {
            TagStop::More if !cx.is_last() => {
                self.tag = Some(scan);
                return Ok(Progress::More);
            }
            TagStop::More | TagStop::Cut => return Err(unclosed_tag(scan.length(), 0)),
            TagStop::TooLong | TagStop::TooMany => return Err(too_large(0, "the tag")),
            TagStop::End { length, is_empty } => (length, is_empty),
        };
        let tag = tag_text(rest, 0, length)?;
        let mut open = self.open(cx, (tag, is_empty), &scan)?;
        self.tag = Some(scan);
        if is_empty {
            let word = open.word.take().unwrap_or_default();
            let word = open.read_word(&word, &mut self.repairs);
            open.check_text(b"", &word)?;
            open.word = Some(word);
        }
        cx.view.consume(length);
        self.stack.push(open);
        if is_empty {
            let text = self.no_text();
            self.close(cx, text)?;
        } else {
            self.token = self.first_token(cx.mode);
        }
        Ok(Progress::Again)
    }

    /// Checks a complete opening tag.
    fn open(
        &mut self,
        cx: &mut Context<'_, '_>,
        (tag, is_empty): (&str, bool),
        scan: &TagScan,
    ) -> Outcome<OpenElement> {
        let written = tag.get(1..scan.name_end()).unwrap_or_default();
        let rule = match self.stack.last_mut() {
            None => tool(cx, written, tag.len()),
            Some(parent) => parent.child(written, tag.len(), cx.table, cx.mode),
        };
        let is_inner = rule.as_ref().is_ok_and(|rule| rule.name.is_empty());
        if (is_inner || rule.is_err()) && !is_name(written) {
            let message = format!("`{}` is no element name", shown(written));
            return Err(Fault::ahead(Code::BadTag, 0, tag.len(), message));
        }
        let rule = rule?;
        if self.stack.len() > MAX_ARGUMENT_DEPTH {
            return Err(too_large(0, "the nesting of elements"));
        }
        let name = match is_inner {
            true => written.into(),
            false => rule.name.clone(),
        };
        let is_other = !cx.mode.is_same(written, &name);
        if is_other {
            self.repairs.add(Repair::R11);
        } else if name != written {
            self.repairs.add(Repair::R7);
        }
        let mut attributes = self.attributes(cx, &rule, &name, (tag, scan))?;
        let is_path = attributes.check_complete(is_empty)?;
        if is_path {
            self.repairs.add(Repair::R11);
        }
        if self.stack.is_empty() {
            self.id = call_id(cx, attributes.id.take(), tag.len())?;
        }
        let (word, attributes) = (attributes.word.take(), attributes.passed);
        Ok(OpenElement {
            word,
            is_path,
            name,
            written: is_other.then(|| written.into()),
            rule,
            mark: cx.view.mark(tag.len()),
            attributes,
            children: Vec::new(),
            place: GroupPosition::default(),
            comment: None,
        })
    }

    fn attributes<'r>(
        &mut self,
        cx: &mut Context<'_, '_>,
        rule: &'r Rule,
        name: &'r str,
        (tag, scan): (&'r str, &TagScan),
    ) -> Outcome<Attributes<'r>> {
        let mut attributes = Attributes::new(rule, name, tag.len(), cx.mode);
        if self.stack.is_empty() {
            attributes = attributes.of_tool();
        }
        scan.attributes(tag, cx.mode, &mut |written| {
            if written.is_mixed {
                self.mixed_attribute(cx, rule, written.name, tag.len())?;
            }
            if written.is_repaired {
                self.repairs.add(Repair::R7);
            }
            if let Some(repair) = attributes.add(written)? {
                self.repairs.add(repair);
            }
            Ok(())
        })?;
        Ok(attributes)
    }

    fn mixed_attribute(
        &mut self,
        cx: &mut Context<'_, '_>,
        rule: &Rule,
        name: &str,
        length: usize,
    ) -> Outcome<()> {
        let message = format!("attribute `{}` mixes escaped and raw markup", shown(name));
        let fault = Fault::ahead(Code::MixedEscapes, 0, length, message);
        if rule.refuses_mixed_text() {
            return Err(fault);
        }
        self.repairs.add(Repair::R5);
        cx.warn(
            *fault.with_hint("the value was taken raw; escape all of it or nothing"),
            length,
        );
        Ok(())
    }

    /// Returns what the first bytes after the innermost opening tag belong to.
    fn first_token(&self, mode: Mode) -> Token {
        let open = self.stack.last();
        if open.is_some_and(|open| open.is_path) {
            return Token::Text(TextScan::default());
        }
        match (open.map(|open| &open.rule.body), mode) {
            (Some(Body::Leaf(_)), Mode::Repair) => Token::Raw(RawScan::default()),
            (Some(Body::Leaf(_)), Mode::Strict) | (Some(Body::Value), _) => {
                Token::Text(TextScan::default())
            }
            (Some(Body::Empty | Body::Children(_) | Body::Parameters(_)) | None, _) => {
                Token::Between
            }
        }
    }

    fn end_tag(&mut self, cx: &mut Context<'_, '_>) -> Outcome<Progress> {
        let Token::End(scan) = &mut self.token else {
            return Ok(Progress::Again);
        };
        let rest = cx.view.rest();
        let limit = scan.start + MAX_TAG_BYTES;
        let window = rest.get(..limit).unwrap_or(rest);
        let Some(length) = memchr2(b'>', b'<', window.get(scan.at..).unwrap_or_default()) else {
            scan.at = window.len();
            return match &self.stack.last() {
                _ if window.len() == limit => Err(too_large(scan.start, "the tag")),
                _ if !cx.is_last() => Ok(Progress::More),
                Some(open) if scan.is_after_text => Err(open.unclosed()),
                _ => Err(unclosed_tag(window.len() - scan.start, scan.start)),
            };
        };
        let (start, end) = (scan.start, scan.at + length + 1);
        if rest.get(end - 1) == Some(&b'<') {
            return Err(unclosed_tag(end - 1 - start, start));
        }
        let (is_after_text, reading) = (scan.is_after_text, scan.reading.take());
        if !self.is_usual_end(rest.get(start..end).unwrap_or_default()) {
            let tag = tag_text(rest, start, end)?;
            self.check_end(tag, start, cx.mode)?;
        }
        let Some(_) = self.stack.last() else {
            cx.view.consume(end);
            cx.events.push(Event::BlockClosed);
            return Ok(Progress::Done);
        };
        let text = match is_after_text {
            true => Some(self.leaf_text(cx, start..start, reading)?),
            false => None,
        };
        cx.view.consume(end);
        self.close(cx, text)?;
        Ok(Progress::Again)
    }

    /// Tells whether an end tag is that of the innermost element, to the letter.
    fn is_usual_end(&self, tag: &[u8]) -> bool {
        let name = tag
            .strip_prefix(b"</")
            .and_then(|tag| tag.strip_suffix(b">"));
        let expected = self.stack.last().map_or("tools", |open| &open.name);
        name == Some(expected.as_bytes())
    }

    /// Checks that an end tag is that of the innermost element.
    fn check_end(&mut self, tag: &str, start: usize, mode: Mode) -> Outcome<()> {
        let inside = tag.get(2..tag.len() - 1).unwrap_or_default();
        let length = inside.bytes().take_while(|b| !is_space(*b)).count();
        let (name, junk) = inside.split_at(length);
        let open = self.stack.last();
        let expected = open.map_or("tools", |open| &open.name);
        let written = open.and_then(|open| open.written.as_ref());
        let is_written = written.is_some_and(|written| mode.is_same(name, written));
        if !is_written && !mode.is_same(name, expected) {
            let message = format!(
                "</{}> stands where </{}> was expected",
                shown(name),
                shown(expected)
            );
            return Err(Fault::ahead(Code::MismatchedEnd, start, tag.len(), message));
        }
        if !junk.bytes().all(is_space) {
            let message = "an end tag holds nothing but its name";
            return Err(Fault::ahead(Code::BadTag, start, tag.len(), message));
        }
        if !is_written && name != expected {
            self.repairs.add(Repair::R7);
        }
        Ok(())
    }

    /// Closes the innermost element; all its bytes are consumed.
    pub(super) fn close(&mut self, cx: &mut Context<'_, '_>, text: Option<RawText>) -> Outcome<()> {
        self.token = Token::Between;
        let Some(mut open) = self.stack.pop() else {
            return Ok(());
        };
        let text = match text {
            Some(text) if open.is_path => {
                open.take_path(&text.text)?;
                None
            }
            text => text,
        };
        open.check_complete(cx.mode)?;
        let element = open.into_element(text, cx.view.offset());
        if let Some(parent) = self.stack.last_mut() {
            parent.children.push(element);
            return Ok(());
        }
        let (id, has_own_id) = std::mem::take(&mut self.id);
        cx.events.push(Event::Call(RawCall {
            id,
            has_own_id,
            element,
            repairs: self.repairs.take(),
        }));
        Ok(())
    }

    /// Returns the text of `<a/>`, where text may stand.
    fn no_text(&mut self) -> Option<RawText> {
        let open = self.stack.last_mut()?;
        let text = open.word.take().unwrap_or_default();
        open.rule.holds_text().then_some(RawText {
            text,
            verbatim: self.is_preserved,
            source: None,
        })
    }
}

/// Finds the rule of a tool.
fn tool(cx: &Context<'_, '_>, name: &str, length: usize) -> Outcome<Arc<Rule>> {
    if let Some(rule) = cx.table.tool(name, cx.mode) {
        return Ok(Arc::clone(rule));
    }
    if cx.mode.is_same(name, "tools") {
        return Err(Fault::ahead(
            Code::NestedTools,
            0,
            length,
            "<tools> stands in <tools>",
        ));
    }
    let message = format!("there is no tool <{}>", shown(name));
    let fault = Fault::ahead(Code::UnknownTool, 0, length, message);
    Err(fault.with_hint(cx.table.suggestion(name)))
}

/// Counts a call and settles its id.
fn call_id(
    cx: &mut Context<'_, '_>,
    own: Option<String>,
    length: usize,
) -> Outcome<(String, bool)> {
    if cx.ids.count() > MAX_CALLS {
        return Err(too_large(0, "the number of calls"));
    }
    let Some(id) = own else {
        return Ok((cx.ids.assign(), false));
    };
    if !cx.ids.claim(&id) {
        let message = format!("id `{}` belongs to an earlier call", shown(&id));
        return Err(Fault::ahead(Code::DuplicateId, 0, length, message));
    }
    Ok((id, true))
}
