//! Calls of a message as text for people, as `karyi parse` prints them.
//!
//! One block per call. Words and numbers are on the line of their name. A text of several lines, or with
//! invisible ends, is below its name behind bars, line by line.

use std::io::{self, Write};

use serde_json::{Map, Value};

use crate::render::paint::{Colour, Ink, safe, safe_line};

/// Writes calls.
pub struct CallText<W> {
    out: W,
    colour: Colour,
}

/// Spaces of one step of indentation.
const STEP: usize = 2;

impl<W: Write> CallText<W> {
    /// Makes a writer.
    pub fn new(out: W, colour: Colour) -> Self {
        Self { out, colour }
    }

    /// Returns the writer it writes to.
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Writes one call: its id, its tool and its arguments.
    ///
    /// # Errors
    /// It could not be written.
    pub fn call(&mut self, id: &str, tool: &str, arguments: &Map<String, Value>) -> io::Result<()> {
        let heading = format!("{} {}", safe_line(id), safe_line(tool));
        writeln!(self.out, "{}", self.colour.paint(Ink::Heading, &heading))?;
        self.object(arguments, STEP)
    }

    /// Writes that there is no call.
    ///
    /// # Errors
    /// It could not be written.
    pub fn nothing(&mut self) -> io::Result<()> {
        writeln!(self.out, "no calls")
    }

    fn object(&mut self, map: &Map<String, Value>, indent: usize) -> io::Result<()> {
        for (name, value) in map {
            write!(self.out, "{:indent$}", "")?;
            self.named(name, value, indent)?;
        }
        Ok(())
    }

    /// Writes `name: value` at the cursor.
    fn named(&mut self, name: &str, value: &Value, indent: usize) -> io::Result<()> {
        let label = format!("{}:", safe_line(name));
        let label = self.colour.paint(Ink::Faint, &label);
        write!(self.out, "{label}")?;
        match value {
            Value::Array(items) if !items.is_empty() => {
                writeln!(self.out)?;
                self.list(items, indent + STEP)
            }
            Value::Object(map) if !map.is_empty() => {
                writeln!(self.out)?;
                self.object(map, indent + STEP)
            }
            Value::String(text) if !is_plain(text) => {
                writeln!(self.out)?;
                self.text(text, indent + STEP)
            }
            Value::String(text) => writeln!(self.out, " {}", safe(text)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => writeln!(self.out, " {value}"),
        }
    }

    fn list(&mut self, items: &[Value], indent: usize) -> io::Result<()> {
        for item in items {
            write!(self.out, "{:indent$}- ", "")?;
            match item {
                Value::Object(map) if !map.is_empty() => self.item(map, indent + STEP)?,
                Value::Array(items) if !items.is_empty() => {
                    writeln!(self.out)?;
                    self.list(items, indent + STEP)?;
                }
                Value::String(text) if !is_plain(text) => {
                    writeln!(self.out)?;
                    self.text(text, indent + STEP)?;
                }
                Value::String(text) => writeln!(self.out, "{}", safe(text))?,
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_) => writeln!(self.out, "{item}")?,
            }
        }
        Ok(())
    }

    /// Writes the entries of an object; the first one is on the line of the item's mark.
    fn item(&mut self, map: &Map<String, Value>, indent: usize) -> io::Result<()> {
        for (number, (name, value)) in map.iter().enumerate() {
            if number > 0 {
                write!(self.out, "{:indent$}", "")?;
            }
            self.named(name, value, indent)?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str, indent: usize) -> io::Result<()> {
        let bar = self.colour.paint(Ink::Faint, "|");
        for line in text.split('\n') {
            let space = if line.is_empty() { "" } else { " " };
            writeln!(self.out, "{:indent$}{bar}{space}{}", "", safe(line))?;
        }
        Ok(())
    }
}

/// Returns true when a text fits beside its name with visible ends.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains(['\n', '\t'])
}

/// Describes a repair.
#[must_use]
pub fn repair(code: &str) -> &'static str {
    match code {
        "R1" => "$KARYI<NAME> was taken as a placeholder and not as a tag",
        "R4" => "a text with bare < or & was taken as it is written",
        "R5" => "a text that mixes raw and escaped markup was taken as it is written",
        "R6" => "]]> inside a CDATA section was taken as text",
        "R7" => "a tag or an attribute was read in spite of its case, quotes or blanks",
        "R9" => "the unit of a time was taken into account",
        "R10" => "a key that was written otherwise was recognised",
        "R11" => {
            "an argument was taken for the one of that meaning: src or path, task_id for taskId"
        }
        "R12" => "an attribute that only explains the call was left out",
        _ => "the call was mended",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(arguments: Value, expected: &str) {
        let mut text = CallText::new(Vec::new(), Colour::Off);
        let Value::Object(map) = &arguments else {
            panic!("{arguments} is no object");
        };
        text.call("1", "t", map).unwrap();
        assert_eq!(String::from_utf8(text.out).unwrap(), expected);
    }

    #[test]
    fn words_stand_beside_their_names() {
        check(json!({}), "1 t\n");
        check(
            json!({"text": "ls -la", "timeout": 2.5, "all": true}),
            "1 t\n  text: ls -la\n  timeout: 2.5\n  all: true\n",
        );
    }

    #[test]
    fn texts_stand_behind_bars() {
        check(
            json!({"text": "a\n  b\n"}),
            "1 t\n  text:\n    | a\n    |   b\n    |\n",
        );
        check(json!({"text": " a"}), "1 t\n  text:\n    |  a\n");
        check(json!({"text": ""}), "1 t\n  text:\n    |\n");
    }

    #[test]
    fn lists_and_objects_are_indented() {
        check(
            json!({"files": ["a", {"src": "b", "edits": [{"find": "x", "replace": "\n"}]}], "n": [], "m": {}}),
            "1 t\n  files:\n    - a\n    - src: b\n      edits:\n        - find: x\n          replace:\n            |\n            |\n  n: []\n  m: {}\n",
        );
        check(
            json!({"a": [[1, 2], []]}),
            "1 t\n  a:\n    - \n      - 1\n      - 2\n    - []\n",
        );
    }

    #[test]
    fn osc52_is_stripped() {
        check(
            json!({"te\u{1b}xt": "a\x1b]52;c;eA==\x07b", "m": "x\r\u{202E}\ny"}),
            "1 t\n  te␛xt: a␛]52;c;eA==␇b\n  m:\n    | x␍\u{FFFD}\n    | y\n",
        );
    }
}
