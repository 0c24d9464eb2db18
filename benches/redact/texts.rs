//! Texts without any secret.

use std::fmt::Write;

const SOURCE: &[&str] = &[
    include_str!("../../crates/karyi-vault/src/shell.rs"),
    include_str!("../../src/exec/jobs.rs"),
    include_str!("../../crates/karyi-core/src/limits.rs"),
    include_str!("../../src/cli/run.rs"),
];

/// A kind of text.
pub(crate) struct Text {
    pub(crate) name: &'static str,
    /// Makes one of at least so many bytes.
    pub(crate) make: fn(usize) -> String,
    /// Whether it is text without any escapes.
    pub(crate) is_plain: bool,
}

/// Every kind: the second one is full of escapes of a terminal, the others of those of a language.
pub(crate) const ALL: [Text; 5] = [
    Text::new("source", source, true),
    Text::new("escapes", escapes, false),
    Text::new("JSON in JSON", nested, false),
    Text::new("URLs", urls, false),
    Text::new("HTML", html, false),
];

impl Text {
    const fn new(name: &'static str, make: fn(usize) -> String, is_plain: bool) -> Self {
        Self {
            name,
            make,
            is_plain,
        }
    }
}

/// Source code, over and over.
fn source(bytes: usize) -> String {
    repeated(&own(), bytes)
}

/// The same in colours, with a link and a title now and then, and with moves of the cursor.
fn escapes(bytes: usize) -> String {
    let mut text = String::new();
    for (number, line) in own().lines().enumerate() {
        for (column, word) in line.split(' ').enumerate() {
            text.push_str(&format!("\x1b[{}m{word}\x1b[0m ", 31 + column % 7));
        }
        match number % 8 {
            0 => text.push_str(&format!("\x1b]0;line {number}\x07")),
            1 => text.push_str("\x1b]8;;https://example.com/a\x1b\\here\x1b]8;;\x1b\\"),
            2 => text.push_str("\x1b[K\x1b[3C"),
            _ => {}
        }
        text.push_str("\r\n");
    }
    repeated(&text, bytes)
}

/// A log of JSON lines, each of which holds a line of source code in JSON.
fn nested(bytes: usize) -> String {
    let mut text = String::new();
    for (number, line) in own().lines().enumerate() {
        let inner = serde_json::json!({"line": number, "text": line, "tags": ["a", "b"]});
        let outer = serde_json::json!({"level": "info", "message": inner.to_string()});
        text.push_str(&format!("{outer}\n"));
    }
    repeated(&text, bytes)
}

/// Addresses with a line of source code each.
fn urls(bytes: usize) -> String {
    let mut text = String::new();
    for (number, line) in own().lines().enumerate() {
        text.push_str(&format!("GET https://example.com/a/{number}?page=1&text="));
        for byte in line.bytes() {
            let is_plain = byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
            let _ = match is_plain {
                true => write!(text, "{}", char::from(byte)),
                false => write!(text, "%{byte:02X}"),
            };
        }
        text.push('\n');
    }
    repeated(&text, bytes)
}

/// Source code as a page shows it, word by word.
fn html(bytes: usize) -> String {
    let mut text = String::new();
    for (number, line) in own().lines().enumerate() {
        text.push_str(&format!("<tr id=\"L{number}\"><td>"));
        for word in line.split(' ') {
            let word = word.replace('&', "&amp;").replace('<', "&lt;");
            let word = word.replace('>', "&gt;").replace('"', "&quot;");
            let word = word.replace('\'', "&#39;");
            text.push_str(&format!("<span class=\"w\">{word}</span>&nbsp;"));
        }
        text.push_str("</td></tr>\n");
    }
    repeated(&text, bytes)
}

fn own() -> String {
    SOURCE.concat().replace("$KARYI", "$NAME")
}

fn repeated(text: &str, bytes: usize) -> String {
    text.repeat(bytes / text.len() + 1)
}
