//! Front matter: the lines between two `---` at the start of a Markdown file, as far as its plain texts go.

/// Returns the text of a key, and the file without its front matter.
pub(super) struct FrontMatter<'a> {
    lines: Vec<&'a str>,
    /// The file after it.
    pub(super) body: &'a str,
}

impl<'a> FrontMatter<'a> {
    /// Splits a file.
    pub(super) fn split(text: &'a str) -> Self {
        let none = Self {
            lines: Vec::new(),
            body: text,
        };
        let mut lines = text.split_inclusive('\n');
        let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
            return none;
        };
        let mut end = first.len();
        let mut found = Vec::new();
        for line in lines {
            end += line.len();
            if matches!(line.trim_end(), "---" | "...") {
                let body = text.get(end..).unwrap_or_default();
                return Self { lines: found, body };
            }
            found.push(line.trim_end());
        }
        none
    }

    /// Returns the text of a key on one line; nothing when it has none.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        let mut lines = self.lines.iter();
        let first = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        let first = first.trim();
        // The text may go on in lines that are set in.
        let is_more = |line: &&&str| line.starts_with([' ', '\t']) || line.is_empty();
        let more = lines.take_while(is_more).map(|line| line.trim());
        let is_block = matches!(first, "|" | ">" | "|-" | ">-" | "|+" | ">+");
        let first = Some(first).filter(|_| !is_block);
        let words: Vec<&str> = first
            .into_iter()
            .chain(more)
            .flat_map(str::split_whitespace)
            .collect();
        let text = words.join(" ");
        let text = unquoted(&text);
        (!text.is_empty()).then_some(text)
    }
}

/// Returns a text without the quotes around it.
fn unquoted(text: &str) -> String {
    let within = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    match (within('"'), within('\'')) {
        (Some(text), _) => text.replace("\\\"", "\"").replace("\\\\", "\\"),
        (None, Some(text)) => text.replace("''", "'"),
        (None, None) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, name: Option<&str>, body: &str) {
        let found = FrontMatter::split(text);
        assert_eq!(found.text("name").as_deref(), name, "{text}");
        assert_eq!(found.body, body, "{text}");
    }

    #[test]
    fn texts_of_keys_are_found_however_they_are_written() {
        check("---\nname: a\n---\nbody", Some("a"), "body");
        check(
            "---\r\nname: \"a \\\"b\\\"\"\r\n---\r\nx\n",
            Some("a \"b\""),
            "x\n",
        );
        check("---\nname: 'it''s'\n---\n", Some("it's"), "");
        check(
            "---\nname: >-\n  one\n  two\nother: x\n---\n",
            Some("one two"),
            "",
        );
        check("---\nname: one\n  two\n---\n", Some("one two"), "");
        check("---\nnames: a\n---\n", None, "");
        check("---\nname:\n---\n", None, "");
        check("---\nname: open", None, "---\nname: open");
        check("no\n---\nname: a\n---\n", None, "no\n---\nname: a\n---\n");
        check("", None, "");
    }
}
