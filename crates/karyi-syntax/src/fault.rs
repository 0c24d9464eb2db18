//! Faults of a message, with their standard hints.
//!
//! Other modules give the code, the place and the message; the hints that every fault of a code shares are here.

use super::source::{Mark, SourceLine, View};
use karyi_core::error::{Code, Diagnostic};
use karyi_core::similar_names::similar_names;
use karyi_core::span::Position;

/// Error that ends parsing, or a warning.
#[derive(Debug)]
pub(super) struct Fault {
    /// Code of the problem.
    pub(super) code: Code,
    /// Location of the problem.
    pub(super) place: Location,
    /// Expected and actual input.
    pub(super) message: String,
    /// Hint that replaces the standard one of the code.
    pub(super) hint: Option<String>,
}

/// A place in the source.
#[derive(Debug)]
pub(super) enum Location {
    /// Offset ahead in the view, and the number of bytes to underline.
    Ahead(usize, usize),
    /// A remembered place.
    Mark(Box<Mark>),
}

/// Boxed, so that results on the hot path are small.
pub(super) type Outcome<T> = Result<T, Box<Fault>>;

impl Fault {
    /// Makes a fault at a place of the view.
    pub(super) fn ahead(
        code: Code,
        at: usize,
        length: usize,
        message: impl Into<String>,
    ) -> Box<Self> {
        Box::new(Self {
            code,
            place: Location::Ahead(at, length),
            message: message.into(),
            hint: None,
        })
    }

    /// Makes a fault at a remembered place.
    pub(super) fn at(code: Code, mark: &Mark, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            code,
            place: Location::Mark(Box::new(mark.clone())),
            message: message.into(),
            hint: None,
        })
    }

    /// Replaces the standard hint.
    pub(super) fn with_hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.hint = Some(hint.into());
        self
    }

    /// Works out position and source line.
    pub(super) fn locate(self, view: &mut View<'_>, is_in_json: bool) -> LocatedDiagnostic {
        let (position, line, length, is_complete) = match &self.place {
            Location::Ahead(at, length) => {
                let line = view.line(*at);
                (view.position_ahead(*at), line, *length, view.has_line(*at))
            }
            Location::Mark(mark) => (mark.position, view.line_of(mark), mark.length, true),
        };
        LocatedDiagnostic {
            diagnostic: self.into_diagnostic(position, is_in_json),
            line,
            length,
            is_complete,
        }
    }

    fn into_diagnostic(self, position: Position, is_in_json: bool) -> Diagnostic {
        Diagnostic {
            code: self.code,
            position,
            is_in_json,
            message: self.message,
            hint: self.hint.unwrap_or_else(|| hint(self.code).into()),
            excerpt: None,
        }
    }
}

/// A diagnostic whose source line may still be incomplete.
#[derive(Debug)]
pub(super) struct LocatedDiagnostic {
    diagnostic: Diagnostic,
    line: SourceLine,
    length: usize,
    is_complete: bool,
}

impl LocatedDiagnostic {
    /// Tells whether the source line is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Adds bytes that follow in the source.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.is_complete = self.is_complete || self.line.extend(bytes);
    }

    /// Limits the bytes of the line that are displayed from the location on.
    pub(super) fn cut(mut self, most: usize) -> Self {
        self.line.truncate(most);
        self
    }

    /// Returns the diagnostic with its excerpt.
    pub(super) fn finish(self) -> Diagnostic {
        Diagnostic {
            excerpt: Some(self.line.excerpt(self.length)),
            ..self.diagnostic
        }
    }
}

/// Returns the standard hint of a code.
fn hint(code: Code) -> &'static str {
    match code {
        Code::UnknownTool => "use one of the tools there are",
        Code::UnexpectedElement => "remove the element, or move it to where it belongs",
        Code::UnexpectedText => "only elements may stand here; remove the text",
        Code::TextBetweenTools => {
            "only tools and comments may stand in <tools>; put other text outside"
        }
        Code::UnexpectedAfterEndTag => {
            "if the end tag is part of the text, wrap the text in <![CDATA[...]]>"
        }
        Code::AmbiguousEndTag => {
            "wrap the text in <![CDATA[...]]>, so that tags in it cannot be mistaken"
        }
        Code::MismatchedEnd => {
            "close the innermost open element first; in text write &lt;/ or use CDATA"
        }
        Code::UnclosedElement => "add its end tag",
        Code::UnclosedTag => "close the tag with `>`, and each quoted value with its quote",
        Code::UnclosedCdata => "close the section with ]]>",
        Code::UnclosedComment => "close the comment with -->",
        Code::UnclosedTools => "end the block with </tools>",
        Code::MissingChild => "add the missing element before the end tag",
        Code::MissingAttribute => "add the attribute",
        Code::UnknownAttribute => "remove the attribute, or correct its name",
        Code::DuplicateAttribute => "give each argument once: remove one of the two",
        Code::DuplicateId => "give every call its own id, or leave ids out",
        Code::BadAttribute => "write attributes as name=\"value\", with &lt; and &amp; for < and &",
        Code::BadTag => "write <name attribute=\"value\"> or </name>; in text write &lt; for <",
        Code::BadCtrl => "name one key: c for Ctrl+C, or enter, esc, tab, up, f1 and so on",
        Code::BadEscape => "write \\xHH or \\u{H} with hexadecimal digits, or \\\\ for a backslash",
        Code::BadJson => {
            "send one JSON object; inside strings write \\n for a line break and \\\" for a quote"
        }
        Code::NestedTools => "close the first block with </tools> before the next one",
        Code::MixedEscapes => {
            "write the text either all raw or all escaped, or wrap it in <![CDATA[...]]>"
        }
        Code::IllegalChar => "remove the character; in <input> write \\e or \\xHH",
        Code::Encoding => "send the message again as UTF-8",
        Code::ProcessingInstruction => "remove it; in text write &lt;? or use CDATA",
        Code::UnexpectedMarkup => "remove it; only elements and comments may stand here",
        Code::TooLarge => "split it into smaller parts, each in a call of its own",
        Code::IgnoredBlock => {
            "to run it, start <tools> on its own line outside code fences, followed by a tool"
        }
        Code::InventedResults => {
            "end the message after </tools>; the results come in the next message"
        }
        Code::NoBlock => "write <tools> on a line of its own, then the calls, then </tools>",
        Code::MarkupInText => "write &lt; for <, or wrap the text in <![CDATA[...]]>",
        Code::BadReference => "write &amp; for &, or wrap the text in <![CDATA[...]]>",
        Code::CdataEndInText => "write ]]&gt; for ]]> in text",
        Code::BadComment => "remove `--` from the comment",
        Code::RedactionIncomplete | Code::UnusableSecret => "see `karyi var doctor`",
        Code::UnknownSecret => "see `karyi var list`",
    }
}

/// Longest name that is shown or compared, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Shortens a name the model wrote so that a message stays one line, and makes it safe to show.
pub(super) fn shown(name: &str) -> String {
    let mut shown: String = name
        .chars()
        .take(MAX_NAME_CHARS)
        .map(|c| if c.is_control() { '\u{FFFD}' } else { c })
        .collect();
    if name.chars().nth(MAX_NAME_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// Names near ones as the end of a hint: "; did you mean `edit`?".
pub(super) fn did_you_mean<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<String> {
    let near = similar_names(name, known);
    let words: Vec<String> = near.iter().map(|word| format!("`{word}`")).collect();
    match words.is_empty() {
        true => None,
        false => Some(format!("did you mean {}?", words.join(" or "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_safe_to_show() {
        assert_eq!(shown("a\u{1b}b"), "a\u{FFFD}b");
        assert_eq!(shown(&"x".repeat(65)), format!("{}…", "x".repeat(64)));
    }

    #[test]
    fn every_code_has_a_hint_of_one_line() {
        for code in Code::ALL {
            let hint = hint(*code);
            assert!(!hint.is_empty() && !hint.contains('\n'), "{code:?}");
        }
    }
}
