//! Shared parts of the notations: the header, comments and XML lines.

/// Header of every grammar file.
const HEADER: &[&str] = &[
    "ToolsXML as karyi reads it: one <tools> block.",
    "Made from the list of tools by `karyi tools grammar`; do not edit.",
];

/// Returns the header as comment lines that start with `mark`.
pub(super) fn header(mark: &str, more: &[&str]) -> String {
    let lines = HEADER.iter().chain(more);
    lines
        .map(|line| format!("{mark} {line}").trim_end().to_owned() + "\n")
        .collect()
}

/// Returns text as a comment line, or nothing when there is no text.
pub(super) fn comment(mark: &str, about: &str) -> String {
    match about {
        "" => String::new(),
        about => format!("{mark} {about}\n"),
    }
}

/// Escapes text for XML content and attribute values.
pub(super) fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// An XML document in progress, one element per line.
#[derive(Debug)]
pub(super) struct Markup {
    out: String,
    open: Vec<String>,
}

impl Markup {
    /// Starts a document with its header.
    pub(super) fn new(more: &[&str]) -> Self {
        let comment = header(" ", more);
        Self {
            out: format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!--\n{comment}-->\n"),
            open: Vec::new(),
        }
    }

    /// Writes one line.
    pub(super) fn line(&mut self, line: &str) {
        self.out.push_str(&"  ".repeat(self.open.len()));
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// Opens an element; `tag` is its name and attributes.
    pub(super) fn open(&mut self, tag: &str) {
        self.line(&format!("<{tag}>"));
        let name = tag.split_whitespace().next().unwrap_or_default();
        self.open.push(name.to_owned());
    }

    /// Closes the element opened last.
    pub(super) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.line(&format!("</{name}>"));
        }
    }

    /// Returns the document.
    pub(super) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }
}
