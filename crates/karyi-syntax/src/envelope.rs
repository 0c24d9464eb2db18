//! The JSON envelope `{"reply": ..., "tools": "<tools>..."}` (rule F3): a JSON reader that needs no
//! more than the available bytes.
//!
//! The first top-level string with the key `tools` is unescaped as it streams and passed to its own parser. Everything
//! else is only checked, and scanned for blocks that do not run.

use memchr::memchr3;

use super::chars::leading_space;
use super::context::{Context, Progress, Report};
use super::event::Event;
use super::fault::{Fault, Outcome};
use super::json::{self, Escape};
use super::position_tracker::incomplete_suffix;
use karyi_core::error::Code;
use karyi_core::limits::MAX_JSON_DEPTH;

/// Longest number or literal, in bytes.
const MAX_SCALAR: usize = 1024;

/// The parser of the `tools` string.
pub(super) trait ToolsParser {
    /// Takes further text of the string.
    fn feed(&mut self, bytes: &[u8], events: &mut Vec<Event>);
    /// Takes the end of the string.
    fn finish(&mut self, events: &mut Vec<Event>);
    /// Emits the errors so far, when nothing that counts will follow.
    fn cut(&mut self, events: &mut Vec<Event>);
    /// Returns true when it has refused the message.
    fn has_refused(&self) -> bool;
    /// Returns the state of its warnings.
    fn report(&mut self) -> &mut Report;
}

/// An envelope that is being read.
#[derive(Debug)]
pub(super) struct Envelope<T> {
    is_fenced: bool,
    /// The containers that are open; true for objects.
    stack: Vec<bool>,
    expect: Expect,
    /// The top-level key before the value, as far as it matters.
    key: Vec<u8>,
    /// The parser of the `tools` string.
    tools: Box<T>,
    has_tools: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// A key, or the end of an object.
    KeyOrEnd,
    /// A key.
    Key,
    Colon,
    Value,
    /// A value, or the end of an array.
    ValueOrEnd,
    /// A comma, or the end of the container.
    CommaOrEnd,
    /// The rest of a string.
    Text(Text),
    /// Nothing more.
    End,
}

/// Role of a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Key,
    Tools,
    Other,
}

impl<T: ToolsParser> Envelope<T> {
    /// Starts after the `{`; `tools` is the parser for the `tools` string.
    pub(super) fn new(is_fenced: bool, tools: Box<T>) -> Self {
        Self {
            is_fenced,
            stack: vec![true],
            expect: Expect::KeyOrEnd,
            key: Vec::new(),
            tools,
            has_tools: false,
        }
    }

    /// Goes on as far as the next piece of JSON.
    pub(super) fn step(&mut self, cx: &mut Context<'_, '_>) -> Outcome<Progress> {
        if let Expect::Text(text) = self.expect {
            return self.text(cx, text);
        }
        cx.view.consume(leading_space(cx.view.rest()));
        let Some(first) = cx.view.rest().first().copied() else {
            return match (self.expect, cx.is_last()) {
                (Expect::End, _) | (_, false) => Ok(Progress::More),
                (_, true) => Err(bad_json("the JSON ends too early")),
            };
        };
        match (self.expect, first) {
            (Expect::KeyOrEnd | Expect::CommaOrEnd, b'}') => return self.end(cx, true),
            (Expect::ValueOrEnd | Expect::CommaOrEnd, b']') => return self.end(cx, false),
            (Expect::KeyOrEnd | Expect::Key, b'"') => self.start_key(),
            (Expect::Colon, b':') => self.expect = Expect::Value,
            (Expect::CommaOrEnd, b',') => self.after_comma(),
            (Expect::Value | Expect::ValueOrEnd, b'"') => self.start_text(),
            (Expect::Value | Expect::ValueOrEnd, b'{' | b'[') => self.start(first == b'{')?,
            (Expect::Value | Expect::ValueOrEnd, _) => return self.scalar(cx),
            (Expect::End, b'`') if self.is_fenced => return Ok(Progress::Done),
            (Expect::End, _) => return Err(bad_json("something follows the JSON object")),
            (Expect::KeyOrEnd | Expect::Key, _) => {
                return Err(bad_json("expected a key in double quotes"));
            }
            (Expect::Colon, _) => return Err(bad_json("expected `:` after the key")),
            (Expect::CommaOrEnd, _) => {
                return Err(bad_json("expected `,` or the end of the container"));
            }
            (Expect::Text(_), _) => return Ok(Progress::Again),
        }
        cx.view.consume(1);
        Ok(Progress::Again)
    }

    /// Finishes a step: reports errors of the `tools` string before an error of the JSON itself. Returns true when that
    /// parser refused the message.
    pub(super) fn settle(&mut self, step: &Outcome<Progress>, cx: &mut Context<'_, '_>) -> bool {
        if step.is_err() {
            if cx.is_last() && self.expect == Expect::Text(Text::Tools) {
                self.tools.finish(cx.events);
            }
            self.tools.cut(cx.events);
        }
        let report = self.tools.report();
        cx.report.has_ignored |= report.has_ignored;
        cx.report.bare_call = cx.report.bare_call.take().or(report.bare_call.take());
        self.tools.has_refused()
    }

    fn start_key(&mut self) {
        self.key.clear();
        self.expect = Expect::Text(Text::Key);
    }

    fn start_text(&mut self) {
        let is_tools = self.stack.len() == 1 && self.key == b"tools" && !self.has_tools;
        self.has_tools |= is_tools;
        self.expect = Expect::Text(if is_tools { Text::Tools } else { Text::Other });
    }

    fn start(&mut self, is_object: bool) -> Outcome<()> {
        if self.stack.len() >= MAX_JSON_DEPTH {
            return Err(Fault::ahead(
                Code::TooLarge,
                0,
                1,
                "the JSON is nested too deeply",
            ));
        }
        self.stack.push(is_object);
        self.expect = if is_object {
            Expect::KeyOrEnd
        } else {
            Expect::ValueOrEnd
        };
        Ok(())
    }

    fn end(&mut self, cx: &mut Context<'_, '_>, is_object: bool) -> Outcome<Progress> {
        if self.stack.pop() != Some(is_object) {
            return Err(bad_json("the wrong bracket closes here"));
        }
        cx.view.consume(1);
        self.expect = if self.stack.is_empty() {
            Expect::End
        } else {
            Expect::CommaOrEnd
        };
        Ok(Progress::Again)
    }

    fn after_comma(&mut self) {
        let is_object = self.stack.last() == Some(&true);
        self.expect = if is_object {
            Expect::Key
        } else {
            Expect::Value
        };
    }

    fn scalar(&mut self, cx: &mut Context<'_, '_>) -> Outcome<Progress> {
        let rest = cx.view.rest();
        let near = rest.get(..MAX_SCALAR).unwrap_or(rest);
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
        let length = near.iter().take_while(|b| is_part(b)).count();
        if length == rest.len() && length < MAX_SCALAR && !cx.is_last() {
            return Ok(Progress::More);
        }
        if !json::is_scalar(near.get(..length).unwrap_or_default()) {
            return Err(bad_json("expected a JSON value"));
        }
        cx.view.consume(length);
        self.expect = Expect::CommaOrEnd;
        Ok(Progress::Again)
    }

    fn text(&mut self, cx: &mut Context<'_, '_>, text: Text) -> Outcome<Progress> {
        let rest = cx.view.rest();
        let found = match text {
            Text::Other => memchr3(b'"', b'\\', b'<', rest),
            Text::Key | Text::Tools => memchr::memchr2(b'"', b'\\', rest),
        };
        let length = found.unwrap_or_else(|| rest.len() - incomplete_suffix(rest));
        let run = rest.get(..length).unwrap_or_default();
        let control = json::control(run);
        // What comes before the control character still counts, as if it had come alone.
        let run = run.get(..control.unwrap_or(length)).unwrap_or_default();
        self.push(cx, text, run);
        cx.view.consume(run.len());
        if control.is_some() {
            return Err(bad_json("a control character stands in a JSON string"));
        }
        match cx.view.rest().first() {
            Some(b'"') => self.end_text(cx, text),
            Some(b'\\') => return self.escape(cx, text),
            Some(b'<') if found.is_some() => return Ok(less(cx)),
            Some(_) | None if cx.is_last() => {
                return Err(bad_json("the JSON string has no closing quote"));
            }
            Some(_) | None => return Ok(Progress::More),
        }
        Ok(Progress::Again)
    }

    fn push(&mut self, cx: &mut Context<'_, '_>, text: Text, decoded: &[u8]) {
        match text {
            Text::Tools => self.tools.feed(decoded, cx.events),
            Text::Key => {
                // One byte more than "tools" is enough to tell another key from it.
                let room = 6_usize.saturating_sub(self.key.len());
                self.key
                    .extend_from_slice(decoded.get(..room).unwrap_or(decoded));
            }
            Text::Other => {}
        }
    }

    fn end_text(&mut self, cx: &mut Context<'_, '_>, text: Text) {
        cx.view.consume(1);
        self.expect = match text {
            Text::Key => Expect::Colon,
            Text::Other => Expect::CommaOrEnd,
            Text::Tools => {
                self.tools.finish(cx.events);
                Expect::CommaOrEnd
            }
        };
    }

    fn escape(&mut self, cx: &mut Context<'_, '_>, text: Text) -> Outcome<Progress> {
        match json::escape(cx.view.rest(), cx.is_last()) {
            Escape::Cut if cx.is_last() => Err(bad_json("the JSON ends in an escape")),
            Escape::Cut => Ok(Progress::More),
            Escape::Bad => Err(bad_json("the JSON string has an unknown escape")),
            Escape::Is {
                bytes,
                length,
                used,
            } => {
                self.push(cx, text, bytes.get(..length).unwrap_or_default());
                cx.view.consume(used);
                Ok(Progress::Again)
            }
        }
    }
}

/// Looks at a `<` in a string that is not read.
fn less(cx: &mut Context<'_, '_>) -> Progress {
    let rest = cx.view.rest();
    let word = b"<tools";
    let near = rest.get(..word.len()).unwrap_or(rest);
    if near.len() < word.len() && word.starts_with(&near.to_ascii_lowercase()) && !cx.is_last() {
        return Progress::More;
    }
    if near.eq_ignore_ascii_case(word) {
        let next = rest.get(word.len());
        if next.is_none() && !cx.is_last() {
            return Progress::More;
        }
        if !next.is_some_and(|b| super::chars::is_name_byte(*b)) {
            if !cx.can_warn(0) {
                return Progress::More;
            }
            let message = "only the first top-level string `tools` of the JSON object runs";
            let hint = "put the block into the top-level string `tools`";
            let fault = Fault::ahead(Code::IgnoredBlock, 0, word.len(), message);
            cx.warn(*fault.with_hint(hint), usize::MAX);
        }
    }
    cx.view.consume(1);
    Progress::Again
}

fn bad_json(message: &str) -> Box<Fault> {
    Fault::ahead(Code::BadJson, 0, 1, message)
}
