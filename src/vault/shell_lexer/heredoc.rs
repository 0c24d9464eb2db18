//! Reads the bodies of here-documents.

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
            self.document(&document)?;
        }
        Ok(())
    }

    fn document(&mut self, document: &Pending) -> Step {
        if document.delimiter.contains("$KARYI") {
            return self.fail("a placeholder stands in the delimiter of a here-document");
        }
        let (body, end) = self.document_spans(document);
        self.list.set_body(Some(document.command));
        if document.is_quoted {
            self.quoted_body(document, body, &end)?;
        } else {
            let limit = std::mem::replace(&mut self.limit, body.end);
            self.nested(Self::body)?;
            self.limit = limit;
        }
        self.list.set_body(None);
        self.at = end.end;
        if self.peek(0) == Some(b'\n') {
            self.at += 1;
        }
        Ok(())
    }

    /// Returns the body that begins here, and the delimiter that ends it.
    fn document_spans(&self, document: &Pending) -> (Span, Span) {
        let start = self.at;
        let (mut at, mut is_continued) = (start, false);
        while at < self.limit {
            let rest = self.bytes.get(at..self.limit).unwrap_or_default();
            let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = rest.get(..length).unwrap_or_default();
            let tabs = match document.strips_tabs {
                true => line.iter().take_while(|byte| **byte == b'\t').count(),
                false => 0,
            };
            if !is_continued && line.get(tabs..) == Some(document.delimiter.as_bytes()) {
                return (start..at, at + tabs..at + length);
            }
            let backslashes = line.iter().rev().take_while(|byte| **byte == b'\\').count();
            is_continued = !document.is_quoted && backslashes % 2 == 1;
            at += length + 1;
        }
        (start..self.limit, self.limit..self.limit)
    }

    fn quoted_body(&mut self, document: &Pending, body: Span, end: &Span) -> Step {
        if self.next_placeholder() >= body.end {
            return Ok(());
        }
        if self.backticks > 0 {
            return self.fail("a placeholder stands in a here-document in backticks; use $(...)");
        }
        while self.next_placeholder() < body.end {
            self.at = self.next_placeholder();
            self.placeholder(Quoting::Literal);
        }
        self.script.documents.push(QuotedDocument {
            delimiter: document.span.clone(),
            body,
            end: end.clone(),
        });
        Ok(())
    }

    fn body(&mut self) -> Step {
        while self.at < self.limit {
            if self.at_placeholder(0) {
                self.placeholder(Quoting::Text);
                continue;
            }
            match self.peek(0) {
                Some(b'\\') => self.escape_in_text(b"$`\\\n")?,
                Some(b'$') => self.dollar(Quoting::Text)?,
                Some(b'`') => self.backtick()?,
                _ => self.run(b"\\$`"),
            }
        }
        Ok(())
    }
}
