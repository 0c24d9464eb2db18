//! Puts hints into the words of MCP: `lines="5-"` of the XML is the argument `lines: "5-"` here.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

/// Words of the XML and of the command line, and those that stand for them here.
static WORDS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let words = [
        (r#"\b(all|depth|end|max|max_bytes|regex)="(\w+)""#, "$1: $2"),
        (r#"\b([a-z_]+)="([^"<>\s]+)""#, "$1: \"$2\""),
        ("`karyi tools( [a-z_]+)?`", "the input schema of the tool"),
    ];
    let read = |(pattern, word)| Some((Regex::new(pattern).ok()?, word));
    words.into_iter().filter_map(read).collect()
});

/// Rewrites every hint of a result.
pub fn adapt(fields: &mut Map<String, Value>) {
    for (name, value) in fields {
        match value {
            Value::String(hint) if name == "hint" => *hint = adapted(hint),
            Value::Array(list) => {
                let items = list.iter_mut().filter_map(Value::as_object_mut);
                items.for_each(adapt);
            }
            _ => {}
        }
    }
}

fn adapted(hint: &str) -> String {
    WORDS.iter().fold(hint.to_owned(), |hint, (found, word)| {
        found.replace_all(&hint, *word).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_become_arguments() {
        for (hint, expected) in [
            ("lines=\"5-\" shows more", "lines: \"5-\" shows more"),
            ("max=\"300\" shows more", "max: 300 shows more"),
            ("leave out regex=\"true\"", "leave out regex: true"),
            ("write src=\"a b\"", "write src=\"a b\""),
            (
                "see `karyi tools read` for the arguments",
                "see the input schema of the tool for the arguments",
            ),
        ] {
            assert_eq!(adapted(hint), expected);
        }
    }
}
