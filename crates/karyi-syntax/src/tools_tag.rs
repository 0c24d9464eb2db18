//! The tag `<tools>`: its word, its attributes, and the block it opens.

use super::block::Block;
use super::chars::{self, is_name_byte, is_space};
use super::common_faults::bad_byte;
use super::context::Context;
use super::element::Attributes;
use super::event::{Event, Mode};
use super::fault::{Fault, Outcome};
use super::repairs::{Repair, Repairs};
use super::source::Mark;
use super::tag_scan::TagScan;
use karyi_core::call::{BlockOptions, OnError, Order};
use karyi_core::error::Code;

/// Start of the tag.
pub(super) const TOOLS: &[u8] = b"<tools";

/// Parsed `<tools>` tag.
#[derive(Debug)]
pub(super) struct ToolsTag {
    options: BlockOptions,
    is_preserved: bool,
    repairs: Repairs,
}

/// Result of comparing the input with `<tools`.
pub(super) enum TagMatch {
    /// It does.
    Yes,
    /// Something else.
    No,
    /// More bytes decide.
    Cut,
}

/// Tells whether `<tools` stands here, upper or lower case.
pub(super) fn tools_word(rest: &[u8], is_last: bool) -> TagMatch {
    let length = rest.len().min(TOOLS.len());
    let (head, start) = (rest.get(..length).unwrap_or_default(), TOOLS.get(..length));
    if !start.is_some_and(|start| head.eq_ignore_ascii_case(start)) {
        return TagMatch::No;
    }
    match rest.get(TOOLS.len()) {
        None if !is_last => TagMatch::Cut,
        None if length == TOOLS.len() => TagMatch::Yes,
        Some(next) if !is_name_byte(*next) => TagMatch::Yes,
        Some(_) | None => TagMatch::No,
    }
}

/// Tells whether the `<tools` here can be the tag of a block.
pub(super) fn is_opener(rest: &[u8], mode: Mode) -> bool {
    let is_spelled = mode == Mode::Repair || rest.starts_with(TOOLS);
    let next = rest.get(TOOLS.len());
    is_spelled && next.is_some_and(|b| is_space(*b) || *b == b'>')
}

/// Reads the attributes of a `<tools>` tag.
pub(super) fn opening_tag(
    cx: &mut Context<'_, '_>,
    tag: &[u8],
    scan: &TagScan,
) -> Outcome<ToolsTag> {
    let tag = chars::text(tag).map_err(|bad| bad_byte(&bad, 0))?;
    let mut repairs = Repairs::default();
    let mut attributes = Attributes::new(&cx.table.block, "tools", tag.len(), cx.mode);
    if tag.get(1..scan.name_end()) != Some("tools") {
        repairs.add(Repair::R7);
    }
    scan.attributes(tag, cx.mode, &mut |written| {
        if written.is_repaired {
            repairs.add(Repair::R7);
        }
        attributes
            .add(written)?
            .into_iter()
            .for_each(|repair| repairs.add(repair));
        Ok(())
    })?;
    let mut options = BlockOptions::default();
    let mut is_preserved = false;
    for attribute in &attributes.passed {
        match (attribute.name.as_str(), attribute.value.as_str()) {
            ("order", "auto") => options.order = Order::Auto,
            ("order", "sequential") => options.order = Order::Sequential,
            ("on_error", "continue") => options.on_error = OnError::Continue,
            ("on_error", "stop") => options.on_error = OnError::Stop,
            ("xml:space", "default") => is_preserved = false,
            ("xml:space", "preserve") => is_preserved = true,
            (name, _) => return Err(bad_option(name, tag.len())),
        }
    }
    Ok(ToolsTag {
        options,
        is_preserved,
        repairs,
    })
}

fn bad_option(name: &str, length: usize) -> Box<Fault> {
    let choices = match name {
        "order" => "auto or sequential",
        "on_error" => "continue or stop",
        _ => "default or preserve",
    };
    let message = format!("the attribute `{name}` of <tools> is {choices}");
    Fault::ahead(Code::BadAttribute, 0, length, message)
        .with_hint(format!("write {choices}, or leave it out"))
}

impl ToolsTag {
    /// Opens the block.
    pub(super) fn open(&self, cx: &mut Context<'_, '_>, mark: Mark) -> Box<Block> {
        cx.events.push(Event::BlockOpened {
            options: self.options,
            position: mark.position,
        });
        Box::new(Block::new(mark, self.is_preserved, self.repairs))
    }
}
