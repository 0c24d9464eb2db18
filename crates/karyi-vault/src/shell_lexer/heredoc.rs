//! Parses the bodies of here-documents.

use super::command::{Redirection, Word};
use super::list::Role;
use super::text::BODY;
use super::{Lexer, QuotedDocument, Quoting, Span, Step};

impl Lexer<'_> {
    /// Parses the bodies that start here.
    pub(super) fn documents(&mut self) -> Step {
        for (command, index) in std::mem::take(&mut self.list.pending) {
            let Redirection {
                target, operator, ..
            } = &self.script.commands[command].redirections[index];
            if target.text.contains("$KARYI") {
                return self.fail("a placeholder stands in the delimiter of a here-document");
            }
            let (is_quoted, delimiter) = (target.is_quoted, target.span.clone());
            if !is_plain(self.text_of(delimiter.clone())) {
                // Shells do not agree on the line that ends it.
                self.script.doubts.push(delimiter.clone());
            }
            let (body, end) = self.document_spans(target, operator == "<<-");
            self.list.role = Role::Body(command);
            let has_placeholder = self.next_placeholder() < body.end;
            if !is_quoted {
                let limit = std::mem::replace(&mut self.limit, body.end);
                self.nested(|lexer| lexer.text(BODY, Quoting::Text))?;
                self.limit = limit;
            } else if has_placeholder && self.place.in_backticks {
                return self
                    .fail("a placeholder stands in a here-document in backticks; use $(...)");
            } else if has_placeholder {
                self.placeholders(body.end, Quoting::Literal);
                let end = end.clone();
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

    /// Returns the body that starts here, and the delimiter that ends it.
    fn document_spans(&self, delimiter: &Word, strips_tabs: bool) -> (Span, Span) {
        let (mut at, mut is_continued) = (self.at, false);
        for line in self.rest().split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let is_tab = |byte: &&u8| strips_tabs && **byte == b'\t';
            let tabs = text.iter().take_while(is_tab).count();
            if !is_continued && text.get(tabs..) == Some(delimiter.text.as_bytes()) {
                return (self.at..at, at + tabs..at + text.len());
            }
            let backslashes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
            is_continued = !delimiter.is_quoted && backslashes % 2 == 1;
            at += line.len();
        }
        (self.at..self.limit, self.limit..self.limit)
    }
}

/// Returns true for a delimiter that is one plain word, or such a word in quotes.
fn is_plain(delimiter: &str) -> bool {
    let quoted = ['\'', '"'].into_iter().find_map(|quote| {
        let text = delimiter.strip_prefix(quote)?;
        text.strip_suffix(quote)
    });
    let word = quoted.or_else(|| delimiter.strip_prefix('\\'));
    let word = word.unwrap_or(delimiter);
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !word.is_empty() && word.bytes().all(is_usual)
}
