//! The envelope as serde_json reads it, beside the parser's own reading.

use std::fmt;

use karyi::error::Code;
use karyi::syntax::{Event, Mode};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use crate::invariants::parse_in;

/// Deepest nesting of which both readers are sure.
const DEPTH: usize = 100;
/// Longer messages may hold numbers of more digits than the parser takes.
const LENGTH: usize = 1000;

/// Puts a text into an envelope.
pub fn around(text: &[u8]) -> Vec<u8> {
    let string = serde_json::to_string(&String::from_utf8_lossy(text)).unwrap_or_default();
    format!("{{\"reply\": \"\", \"tools\": {string}}}").into_bytes()
}

/// The first string of key `tools`.
struct Tools(Option<String>);

impl<'de> Visitor<'de> for Tools {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key != "tools" || self.0.is_some() {
                map.next_value::<IgnoredAny>()?;
            } else if let serde_json::Value::String(text) = map.next_value()? {
                self.0 = Some(text);
            }
        }
        Ok(self.0)
    }
}

fn read(message: &[u8]) -> Result<Option<String>, serde_json::Error> {
    let text = std::str::from_utf8(message).map_err(serde_json::Error::custom)?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let tools = reader.deserialize_map(Tools(None))?;
    reader.end().map(|()| tools)
}

/// Valid JSON is read, and its blocks are those of the string alone.
pub fn check(message: &[u8]) -> Result<(), String> {
    let is_deep = message.iter().filter(|b| matches!(b, b'{' | b'[')).count() > DEPTH;
    let start = message.trim_ascii_start();
    let is_envelope = start.starts_with(b"{\"") || start.starts_with(b"{}");
    if is_deep || message.len() > LENGTH || !is_envelope {
        return Ok(());
    }
    let Ok(tools) = read(message) else {
        return Ok(());
    };
    let tools = tools.unwrap_or_default();
    for mode in [Mode::Repair, Mode::Strict] {
        let found = outline(parse_in(mode, message, &[usize::MAX]));
        // What starts a message, and only a message, means something else in a string.
        let is_special = tools.trim_start().starts_with(['{', '`', '\u{FEFF}']);
        if is_special {
            if found
                .iter()
                .any(|event| event.contains(Code::BadJson.as_str()))
            {
                return Err(format!("{mode:?} refuses JSON: {found:?}"));
            }
            continue;
        }
        let alone = outline(parse_in(mode, tools.as_bytes(), &[usize::MAX]));
        if found != alone {
            return Err(format!(
                "{mode:?} in the envelope\n{found:?}\nalone\n{alone:?}"
            ));
        }
    }
    Ok(())
}

/// What is the same in an envelope and without.
fn outline(events: Vec<Event>) -> Vec<String> {
    let line = |event: Event| match event {
        Event::Warning(_) => None,
        Event::Error(error) => Some(format!("{} at {:?}", error.code.as_str(), error.position)),
        other @ (Event::BlockOpened { .. }
        | Event::Call(_)
        | Event::BlockClosed
        | Event::DraftsEnded) => Some(format!("{other:?}")),
    };
    events.into_iter().filter_map(line).collect()
}
