//! Reads the bodies of here-documents.

use super::list::Role;
use super::text::BODY;
use super::{Lexer, QuotedDocument, Quoting, Span, Step};

/// Here-document whose body comes after the line.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) delimiter: String,
    pub(super) span: Span,
    pub(super) is_quoted: bool,
    pub(super) strips_tabs: bool,
    pub(super) command: usize,
}

impl Lexer<'_> {
    /// Reads the bodies that begin here.
    pub(super) fn documents(&mut self) -> Step {
        for document in std::mem::take(&mut self.list.pending) {
            if document.delimiter.contains("$KARYI") {
                return self.fail("a placeholder stands in the delimiter of a here-document");
            }
            let (body, end) = self.document_spans(&document);
            self.list.role = Role::Body(document.command);
            let has_placeholder = self.next_placeholder() < body.end;
            if !document.is_quoted {
                let limit = std::mem::replace(&mut self.limit, body.end);
                self.nested(|lexer| lexer.text(BODY, Quoting::Text))?;
                self.limit = limit;
            } else if has_placeholder && self.backticks > 0 {
                return self
                    .fail("a placeholder stands in a here-document in backticks; use $(...)");
            } else if has_placeholder {
                self.placeholders(body.end, Quoting::Literal);
                let (delimiter, end) = (document.span, end.clone());
                self.script.documents.push(QuotedDocument {
                    delimiter,
                    body,
                    end,
                });
            }
            self.list.role = Role::Argument;
            self.at = end.end;
            self.at += usize::from(self.peek(0) == Some(b'\n'));
        }
        Ok(())
    }

    /// Returns the body that begins here, and the delimiter that ends it.
    fn document_spans(&self, document: &Pending) -> (Span, Span) {
        let (mut at, mut is_continued) = (self.at, false);
        for line in self.rest().split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let is_tab = |byte: &&u8| document.strips_tabs && **byte == b'\t';
            let tabs = text.iter().take_while(is_tab).count();
            if !is_continued && text.get(tabs..) == Some(document.delimiter.as_bytes()) {
                return (self.at..at, at + tabs..at + text.len());
            }
            let backslashes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
            is_continued = !document.is_quoted && backslashes % 2 == 1;
            at += line.len();
        }
        (self.at..self.limit, self.limit..self.limit)
    }
}
