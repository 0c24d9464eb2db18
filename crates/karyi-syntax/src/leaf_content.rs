//! The text of leaves and arguments, on its way into a block's elements.

use std::ops::Range;

use super::block::{Block, EndScan, Token};
use super::chars::{self, is_name_start_byte, is_space};
use super::common_faults::{bad_byte, first_char, processing_instruction};
use super::context::{Context, Progress};
use super::element::{OpenElement, comment_code};
use super::escapes;
use super::event::Mode;
use super::fault::{Fault, Outcome, shown};
use super::follow_set::{FollowCheck, FollowSet, is_name_cut, opened_name};
use super::grammar::LeafKind;
use super::leaf_decoder::{self, DecodedLeaf, IllegalReference};
use super::raw_scan::{EndTag, RawStop};
use super::repairs::{Repair, Repairs};
use super::slips;
use super::source::Ending;
use super::table::{Body, Rule};
use super::text_scan::TextStop;
use karyi_core::call::RawText;
use karyi_core::error::Code;

impl Rule {
    /// Returns true when the element may contain text.
    pub(super) fn holds_text(&self) -> bool {
        matches!(self.body, Body::Leaf(_) | Body::Value)
    }

    /// Tells whether text that mixes escaped and raw markup is refused.
    pub(super) fn refuses_mixed_text(&self) -> bool {
        match self.leaf() {
            Some(LeafKind::Script | LeafKind::Escaped | LeafKind::Word(_)) => true,
            Some(LeafKind::Text) | None => false,
        }
    }
}

impl Block {
    /// Goes on in a raw leaf.
    pub(super) fn raw_leaf(&mut self, cx: &mut Context<'_, '_>) -> Outcome<Progress> {
        let (Token::Raw(scan), [parents @ .., leaf]) = (&mut self.token, self.stack.as_slice())
        else {
            return Ok(Progress::Again);
        };
        let rest = cx.view.rest();
        let tag = loop {
            let tag = match scan.step(rest, leaf.tag_name(), cx.view.ending) {
                RawStop::More if cx.is_last() => return Err(unclosed(leaf, scan.open_cdata())),
                RawStop::More => return Ok(Progress::More),
                RawStop::Bad(bad) => return Err(leaf.bad_byte(&bad, 0)),
                RawStop::TooLong => {
                    return Err(Fault::at(
                        Code::TooLarge,
                        &leaf.mark,
                        "the text is larger than allowed",
                    ));
                }
                RawStop::EndTag(tag) => tag,
            };
            let next = rest.get(tag.next..).unwrap_or_default();
            let follow = allowed(cx, parents, leaf).decide(next, cx.is_last());
            match follow {
                FollowCheck::More if cx.view.ending == Ending::Open => return Ok(Progress::More),
                FollowCheck::More => {
                    scan.check(rest, tag.start)
                        .map_err(|bad| leaf.bad_byte(&bad, 0))?;
                    return Ok(Progress::More);
                }
                // The text is checked when it is read.
                FollowCheck::Yes if !tag.is_nested => break tag,
                FollowCheck::Yes | FollowCheck::No => {}
            }
            scan.check(rest, tag.start)
                .map_err(|bad| leaf.bad_byte(&bad, 0))?;
            match follow {
                FollowCheck::Yes | FollowCheck::More => return Err(ambiguous(leaf, tag)),
                FollowCheck::No if parents.is_empty() && !tag.is_nested => {
                    return refuse_follower(cx, leaf, tag);
                }
                FollowCheck::No => scan.pass(),
            }
        };
        let written = rest.get(tag.start + 2..).unwrap_or_default();
        if !written.starts_with(leaf.tag_name().as_bytes()) {
            self.repairs.add(Repair::R7);
        }
        let text = self.leaf_text(cx, tag.start..tag.end, None)?;
        cx.view.consume(tag.end);
        self.close(cx, Some(text))?;
        Ok(Progress::Again)
    }

    /// Goes on in text where every `<` counts.
    pub(super) fn text(&mut self, cx: &mut Context<'_, '_>) -> Outcome<Progress> {
        let (Token::Text(scan), Some(leaf)) = (&mut self.token, self.stack.last()) else {
            return Ok(Progress::Again);
        };
        match scan.step(cx.view.rest(), cx.view.ending, cx.mode) {
            TextStop::More if cx.is_last() => Err(unclosed(leaf, scan.open_cdata())),
            TextStop::More => Ok(Progress::More),
            TextStop::Offence(code, range) => Err(offence(code, range.start, range.len())),
            TextStop::TooLong => Err(Fault::at(
                Code::TooLarge,
                &leaf.mark,
                "the text is larger than allowed",
            )),
            TextStop::Markup(at) => self.text_markup(cx, at),
        }
    }

    /// Handles a `<` in text.
    fn text_markup(&mut self, cx: &mut Context<'_, '_>, at: usize) -> Outcome<Progress> {
        let Some(leaf) = self.stack.last() else {
            return Ok(Progress::Again);
        };
        let next = cx.view.rest().get(at + 1).copied();
        match (next, &leaf.rule.body) {
            (None, _) => return Err(leaf.unclosed()),
            (Some(b'/'), _) => {
                let reading = if let Token::Text(scan) = &mut self.token {
                    scan.take_reading()
                } else {
                    None
                };
                self.token = Token::End(EndScan {
                    start: at,
                    at: at + 2,
                    is_after_text: true,
                    reading,
                });
            }
            (Some(_), Body::Empty) => return Err(leaf.lacks_path()),
            (Some(b'!'), Body::Value) => return self.comment_in_value(cx, at),
            (Some(b'?'), Body::Value) => return Err(processing_instruction(at)),
            (Some(next), Body::Value) if is_name_start_byte(next) => {
                return self.child_in_value(cx, at);
            }
            (Some(_), Body::Value) if cx.mode == Mode::Repair => {
                if let Token::Text(scan) = &mut self.token {
                    scan.pass();
                }
            }
            (Some(_), _) => return Err(offence(Code::MarkupInText, at, 1)),
        }
        Ok(Progress::Again)
    }

    fn comment_in_value(&mut self, cx: &mut Context<'_, '_>, at: usize) -> Outcome<Progress> {
        if let Some(fault) = self.text_in_the_way(cx, at) {
            let rest = cx.view.rest().get(at..).unwrap_or_default();
            return match rest.starts_with(b"<!--") {
                true => Err(Fault::ahead(
                    comment_code(cx.mode),
                    at,
                    4,
                    "a comment stands in text",
                )),
                false if b"<!--".starts_with(rest) && !cx.is_last() => Ok(Progress::More),
                false => Err(fault),
            };
        }
        let progress = self.bang(cx, at)?;
        if let (Token::Comment(mark), Some(open)) = (&self.token, self.stack.last_mut()) {
            open.comment = Some(Box::new(mark.clone()));
        }
        Ok(progress)
    }

    fn child_in_value(&mut self, cx: &mut Context<'_, '_>, at: usize) -> Outcome<Progress> {
        if let Some(fault) = self.text_in_the_way(cx, at) {
            return Err(fault);
        }
        cx.view.consume(at);
        self.start_tag();
        Ok(Progress::Again)
    }

    /// Returns the fault of text before an element or comment, `at` bytes ahead.
    fn text_in_the_way(&self, cx: &Context<'_, '_>, at: usize) -> Option<Box<Fault>> {
        let text = cx.view.rest().get(..at).unwrap_or_default();
        let first = text.iter().position(|b| !is_space(*b))?;
        let cdata = match &self.token {
            Token::Text(scan) => scan.first_cdata(),
            Token::Between | Token::Comment(_) | Token::Open | Token::End(_) | Token::Raw(_) => {
                None
            }
        };
        let name = self
            .stack
            .last()
            .map_or(String::new(), |open| shown(&open.name));
        let message = format!("<{name}> holds both text and elements");
        Some(match cdata == Some(first) {
            true => Fault::ahead(Code::UnexpectedMarkup, first, 9, message),
            false => Fault::ahead(Code::UnexpectedText, first, 1, message),
        })
    }

    /// Reads the leaf before the end tag at an offset, unless it was read already.
    pub(super) fn leaf_text(
        &mut self,
        cx: &mut Context<'_, '_>,
        end_tag: Range<usize>,
        reading: Option<DecodedLeaf>,
    ) -> Outcome<RawText> {
        let leaf = cx.view.rest().get(..end_tag.start).unwrap_or_default();
        let checked = match &self.token {
            Token::Raw(scan) => scan.checked().min(leaf.len()),
            Token::Between | Token::Comment(_) | Token::Open | Token::End(_) | Token::Text(_) => 0,
        };
        let mut reading = match reading {
            Some(reading) => reading,
            None => {
                let kind = self.stack.last().and_then(|open| open.rule.leaf());
                let takes_any = matches!(kind, Some(LeafKind::Text)) && cx.mode == Mode::Repair;
                read(leaf, checked, (cx.mode, takes_any)).map_err(|fault| match fault.code {
                    Code::IllegalChar if takes_any => fault.with_hint(ILLEGAL_HINT),
                    _ => fault,
                })?
            }
        };
        if let (Mode::Repair, Some(open)) = (cx.mode, self.stack.last_mut())
            && let Some(LeafKind::Word(_)) = open.rule.leaf()
        {
            let text = open.read_word(&reading.text, &mut self.repairs);
            reading.text = match open.word.take() {
                Some(word) if text.trim().is_empty() => open.read_word(&word, &mut self.repairs),
                Some(word) if open.read_word(&word, &mut self.repairs) != text.trim() => {
                    return Err(open.two_words(&word, &text));
                }
                _ => text,
            };
        }
        for repair in reading.repairs {
            self.repairs.add(*repair);
        }
        if let Some(open) = self.stack.last() {
            check_mixed(cx, open, &reading, end_tag.end)?;
            open.check_text(leaf, &reading.text)?;
        }
        Ok(RawText {
            text: reading.text,
            verbatim: reading.has_cdata || self.is_preserved,
            source: reading.source,
        })
    }
}

/// Reads a complete leaf, whose first `checked` bytes are legal.
fn read(leaf: &[u8], checked: usize, (mode, takes_any): (Mode, bool)) -> Outcome<DecodedLeaf> {
    let leaf = chars::text_after(leaf, checked).map_err(|bad| bad_byte(&bad, 0))?;
    let reading = match mode {
        Mode::Strict => leaf_decoder::read_well_formed(leaf),
        Mode::Repair => leaf_decoder::read(leaf, takes_any),
    };
    reading
        .map_err(|IllegalReference { range }| offence(Code::IllegalChar, range.start, range.len()))
}

fn unclosed(leaf: &OpenElement, cdata: Option<usize>) -> Box<Fault> {
    match cdata {
        Some(at) => Fault::ahead(Code::UnclosedCdata, at, 9, "the CDATA section has no ]]>"),
        None => leaf.unclosed(),
    }
}

/// Returns what may follow the end tag of a raw leaf.
fn allowed<'a>(
    cx: &Context<'a, '_>,
    parents: &'a [OpenElement],
    leaf: &'a OpenElement,
) -> FollowSet<'a> {
    match parents.last() {
        None => FollowSet::after_tool(cx.table),
        Some(parent) => {
            FollowSet::after_child(cx.table, &parent.rule, &leaf.name, parent.awaited())
        }
    }
}

/// Hint for a character that XML does not allow in a text that takes references to any.
const ILLEGAL_HINT: &str = "write it as a reference: &#12; for a form feed, &#27; for ESC";

impl OpenElement {
    /// Returns the fault of a byte that is illegal in the text.
    fn bad_byte(&self, bad: &chars::BadByte, base: usize) -> Box<Fault> {
        let fault = bad_byte(bad, base);
        match self.rule.leaf() {
            Some(LeafKind::Text) if bad.code == Code::IllegalChar => fault.with_hint(ILLEGAL_HINT),
            _ => fault,
        }
    }

    /// Returns the rule of the element that must come next, when a group is not complete.
    fn awaited(&self) -> Option<&Rule> {
        match &self.rule.body {
            Body::Children(groups) if self.place.is_inside() => {
                groups.rule(self.place).map(AsRef::as_ref)
            }
            Body::Children(_) | Body::Empty | Body::Leaf(_) | Body::Parameters(_) | Body::Value => {
                None
            }
        }
    }

    /// Returns the fault of a leaf whose attribute and text give different words.
    fn two_words(&self, attribute: &str, text: &str) -> Box<Fault> {
        let (attribute, text) = (shown(attribute), shown(text.trim()));
        let message = format!(
            "<{}> has `{attribute}` in its attribute and `{text}` in its text",
            self.name
        );
        let hint = "keep the text, and remove the attribute `key`";
        Fault::at(Code::DuplicateAttribute, &self.mark, message).with_hint(hint)
    }

    /// Reads the word of a leaf, spelled in any way that names a key.
    pub(super) fn read_word(&self, written: &str, repairs: &mut Repairs) -> String {
        let Some(LeafKind::Word(is_known)) = self.rule.leaf() else {
            return written.to_owned();
        };
        let word = written.trim().to_lowercase();
        match slips::control_key(written).filter(|key| !is_known(&word) && is_known(key)) {
            Some(key) => {
                repairs.add(Repair::R10);
                key
            }
            None => written.to_owned(),
        }
    }

    /// Checks the text against the kind of the leaf.
    pub(super) fn check_text(&self, leaf: &[u8], text: &str) -> Outcome<()> {
        let leaf = || str::from_utf8(leaf).unwrap_or_default();
        match self.rule.leaf() {
            None | Some(LeafKind::Text | LeafKind::Script) => Ok(()),
            Some(LeafKind::Escaped) => escapes::unescape(text).map(drop).map_err(|bad| {
                let at = backslash(leaf(), text, bad.offset);
                Fault::ahead(Code::BadEscape, at, 2, bad.message)
            }),
            Some(LeafKind::Word(is_known)) => {
                let word = text.trim();
                if is_known(&word.to_lowercase()) {
                    return Ok(());
                }
                let leaf = leaf();
                let at = leaf.len() - leaf.trim_start().len();
                let message = format!("`{}` names no key", shown(word));
                Err(Fault::ahead(Code::BadCtrl, at, leaf.trim().len(), message))
            }
        }
    }
}

fn ambiguous(leaf: &OpenElement, tag: EndTag) -> Box<Fault> {
    let name = &leaf.name;
    let message = format!("</{name}> may end the element or belong to a <{name}> in its text");
    Fault::ahead(
        Code::AmbiguousEndTag,
        tag.start,
        tag.end - tag.start,
        message,
    )
}

/// Returns the error of a token that may not follow the end tag of a tool.
fn refuse_follower(cx: &Context<'_, '_>, leaf: &OpenElement, tag: EndTag) -> Outcome<Progress> {
    let rest = cx.view.rest();
    let Some(length) = first_char(rest, tag.next, cx.is_last())? else {
        return Ok(Progress::More);
    };
    if !cx.is_last() && is_name_cut(rest.get(tag.next..).unwrap_or_default()) {
        return Ok(Progress::More);
    }
    let message = format!("neither a tool nor </tools> follows </{}>", leaf.name);
    let fault = Fault::ahead(Code::UnexpectedAfterEndTag, tag.next, length, message);
    let next = rest.get(tag.next..).unwrap_or_default();
    Err(match opened_name(next) {
        None => fault,
        Some(name) => {
            let near = cx.table.suggestion(name);
            let cdata = "if the end tag is part of the text, use <![CDATA[...]]>";
            fault.with_hint(format!("unknown tool {}, {near}; {cdata}", shown(name)))
        }
    })
}

/// Warns of raw text that holds escapes, or refuses it (rule R5).
fn check_mixed(
    cx: &mut Context<'_, '_>,
    open: &OpenElement,
    reading: &DecodedLeaf,
    end: usize,
) -> Outcome<()> {
    let Some(range) = &reading.mixed else {
        return Ok(());
    };
    let message = format!(
        "the text of <{}> mixes escaped and raw markup",
        shown(&open.name)
    );
    let fault = Fault::ahead(Code::MixedEscapes, range.start, range.len(), message);
    if open.rule.refuses_mixed_text() {
        return Err(fault);
    }
    let hint = "the text was taken raw; escape all of it, or wrap it in <![CDATA[...]]>";
    cx.warn(*fault.with_hint(hint), end);
    Ok(())
}

/// Finds the place in the source of the backslash at `offset` of the decoded text.
///
/// Backslashes are counted, for other characters may have been written as references; if some
/// backslashes were as well, the leaf's start has to do.
fn backslash(leaf: &str, text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or_default().matches('\\').count();
    match leaf.matches('\\').count() == text.matches('\\').count() {
        true => leaf.match_indices('\\').nth(before).map_or(0, |(at, _)| at),
        false => 0,
    }
}

/// Returns the fault of something illegal in text.
fn offence(code: Code, at: usize, length: usize) -> Box<Fault> {
    let message = match code {
        Code::Encoding => "the bytes are not UTF-8",
        Code::IllegalChar => "a character that XML does not allow",
        Code::BadReference => "`&` starts no reference",
        Code::CdataEndInText => "`]]>` stands in text",
        _ => "markup stands in text",
    };
    Fault::ahead(code, at, length, message)
}
