//! Reads redirections, here-strings and the bodies of here-documents.

use super::spelt;
use super::{Closer, HereDocument, Quote, Reader, Role, Step};
use crate::vault::programs;
use crate::vault::words::Demands;

impl Reader<'_> {
    /// Reads a redirection operator; its target is the next word.
    pub(super) fn redirection(&mut self, byte: u8) -> Step<bool> {
        if self.frame.in_test && self.peek(1) == Some(b'(') {
            self.word();
            return self.process_substitution(byte);
        }
        if self.frame.in_test {
            if self.end_word()? {
                return Ok(true);
            }
            self.at += 1;
            return Ok(false);
        }
        if self.peek(1) == Some(b'(') && self.frame.word.is_some() {
            return self.process_substitution(byte);
        }
        self.note_numbers()?;
        let has_descriptor = self.drop_descriptor();
        let start = self.at;
        if self.end_word()? {
            return Ok(true);
        }
        if self.at != start {
            return Ok(false);
        }
        if self.peek(1) == Some(b'(') {
            return self.process_substitution(byte);
        }
        self.frame.writes = byte == b'>';
        self.frame.reads_and_writes = self.starts_with(b"<>");
        // `<&3` is an input from around the command.
        if byte == b'<' && !has_descriptor && self.joined(self.at + 1).next() != Some(b'&') {
            self.frame.has_input = true;
        }
        if self.starts_with(b"<<<") {
            self.at += 3;
            return self.here_string();
        }
        if self.starts_with(b"<<") {
            return self.here_document_head();
        }
        self.at += 1;
        while self
            .peek(0)
            .is_some_and(|next| matches!(next, b'>' | b'&' | b'|') || byte == b'<' && next == b'>')
        {
            self.at += 1;
        }
        let is_descriptor = self.bytes.get(self.at - 1) == Some(&b'&');
        self.frame.role = if is_descriptor {
            Role::Descriptor
        } else {
            Role::RedirectTarget
        };
        Ok(false)
    }

    /// `python<1-9>` is a pattern of file names in zsh, and two redirections elsewhere.
    fn note_numbers(&mut self) -> Step {
        let rest = self.bytes.get(self.at + 1..self.limit).unwrap_or_default();
        let is_number = |byte: &&u8| byte.is_ascii_digit() || **byte == b'-';
        let length = rest.iter().take_while(is_number).count();
        let (range, after) = rest.split_at(length);
        if range.contains(&b'-')
            && after.starts_with(b">")
            && let Some(word) = &mut self.frame.word
        {
            word.is_pattern = true;
        }
        if length > 0 && self.continues_at(self.at + 1 + length) {
            return self.unreadable("a line continuation stands inside of a redirection");
        }
        Ok(())
    }

    /// `2>` and `{fd}>` name a descriptor, no argument.
    fn drop_descriptor(&mut self) -> bool {
        let names_descriptor = self.frame.word.as_ref().is_some_and(|word| {
            word.is_dynamic && word.text().starts_with('{') && word.text().ends_with('}')
        });
        if names_descriptor {
            self.require(
                self.frame.command_hole..self.places.len(),
                Demands::VARIABLE_NAME,
            );
        }
        let index = self.frame.word.as_ref().and_then(|word| {
            let text = word.text().strip_prefix('{')?;
            Some(text.split_once('[')?.1.to_owned())
        });
        if let Some(index) = index {
            // `{b[x]}>`
            self.calculates_with(&index, Demands::NUMBER);
        }
        let is_descriptor = self.frame.word.as_ref().is_some_and(|word| {
            let text = word.text();
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            !word.is_quoted
                && !word.is_dynamic
                && (is_number || text.starts_with('{') && text.ends_with('}'))
        });
        if is_descriptor {
            self.frame.word = None;
        }
        is_descriptor || names_descriptor
    }

    /// Reads `<(...)` or `>(...)`, which is a word.
    fn process_substitution(&mut self, byte: u8) -> Step<bool> {
        let is_input = byte == b'<' && self.frame.role == Role::RedirectTarget;
        let (first, reads) = (self.places.len(), self.frame.reads);
        self.word().expands();
        let is_script = byte == b'<' && self.frame.role == Role::Argument;
        let demands = if is_script {
            programs::script_demands(&self.frame.words, self.frame.word.as_ref())
        } else {
            Demands::NONE
        };
        self.at += 2;
        // What runs there has an input of its own.
        let follows_pipe = std::mem::take(&mut self.frame.follows_pipe);
        let documents = self.frame.documents.len();
        let printed = self.printed.len();
        self.listening += usize::from(byte == b'<');
        self.sinks += usize::from(byte == b'>');
        let result = self.nested(demands, |reader| reader.commands(Closer::Parenthesis));
        self.sinks -= usize::from(byte == b'>');
        self.listening -= usize::from(byte == b'<');
        self.check_documents(documents)?;
        if byte == b'<' {
            let text = self.heard_text(printed);
            if is_script && programs::reads_script_file(&self.frame.words) {
                let words = self.script_arguments(&self.frame.words);
                self.note_script_of(&text, words);
            }
            if is_input {
                self.frame.input_text.push_str(&text);
                self.frame.input_text.push('\n');
            }
        }
        self.frame.follows_pipe = follows_pipe;
        let inside = std::mem::replace(&mut self.frame.reads, reads);
        result?;
        if is_input {
            self.frame.input_holes.push(first..self.places.len());
        }
        if byte == b'>' {
            self.frame.sinks = self.frame.sinks.and(inside);
        }
        Ok(false)
    }

    fn here_string(&mut self) -> Step<bool> {
        self.at += self.blanks_at(self.at);
        self.frame.role = Role::HereString;
        let first = self.places.len();
        while let Some(byte) = self.peek(0) {
            if matches!(
                byte,
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' | b'<' | b'>'
            ) && !self.hole_at(self.at)
            {
                break;
            }
            self.token()?;
        }
        self.frame.input_holes.push(first..self.places.len());
        if let Some(word) = self.frame.word.take() {
            let text = match word.is_dynamic {
                true => word.code(),
                false => self.whole_text(&word),
            };
            self.frame.input_text.push_str(&text);
            if word.is_made || word.is_told {
                self.frame.input_text.push(spelt::UNKNOWN);
            }
            self.frame.input_text.push('\n');
        }
        self.frame.role = Role::Argument;
        Ok(false)
    }

    fn here_document_head(&mut self) -> Step<bool> {
        self.at += 2;
        if self.continues_at(self.at) {
            // `<<-` may come of it.
            self.continuation()?;
        }
        let strips_tabs = self.peek(0) == Some(b'-');
        self.at += usize::from(strips_tabs);
        self.at += self.blanks_at(self.at);
        let (mut delimiter, mut is_quoted) = (Vec::new(), false);
        let mut quote = None;
        while let Some(byte) = self.peek(0) {
            if self.hole_at(self.at) {
                return self.unreadable("a placeholder stands in the delimiter of a here-document");
            }
            if quote != Some(b'\'') && self.continues_at(self.at) {
                if quote.is_some() {
                    return self.unreadable("a line continuation stands in quotes of a delimiter");
                }
                self.at += 2;
                continue;
            }
            match (quote, byte) {
                (None, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')') => {
                    break;
                }
                (None, b'\'' | b'"') => (quote, is_quoted) = (Some(byte), true),
                (None, b'\\') => {
                    is_quoted = true;
                    self.at += 1;
                    delimiter.extend(self.peek(0));
                }
                (Some(open), _) if open == byte => quote = None,
                (_, _) => delimiter.push(byte),
            }
            self.at += 1;
        }
        let demands = if self.frame.is_body || self.frame.follows_body {
            Demands::IN_FUNCTION
        } else {
            Demands::NONE
        };
        let (command, pipeline) = (self.frame.command, self.frame.pipeline);
        self.frame.documents.push(HereDocument {
            delimiter,
            is_quoted,
            strips_tabs,
            demands,
            is_printed: true,
            is_shared: false,
            is_script: false,
            words: 0..0,
            files: Vec::new(),
            variables: Vec::new(),
            command,
            pipeline,
        });
        Ok(false)
    }

    /// Reads the bodies of the here-documents that start on this line.
    pub(super) fn here_documents(&mut self) -> Step {
        for document in std::mem::take(&mut self.frame.documents) {
            let (end, after) = self.body_end(&document)?;
            let (first, start) = (self.places.len(), self.at);
            let limit = std::mem::replace(&mut self.limit, end);
            let result = if document.is_quoted {
                self.literal_body(document.demands);
                Ok(())
            } else {
                self.nested(document.demands, Self::expanded_body)
            };
            self.limit = limit;
            result?;
            self.note_document(&document, start..end);
            self.at = after;
            for name in &document.files {
                self.writes_file(name, first..self.places.len());
            }
            if document.is_shared {
                self.feeds_reads(first..self.places.len());
            }
            for name in &document.variables {
                self.assigns(name, first..self.places.len());
            }
            if !document.is_printed {
                self.hide(first);
            }
        }
        // The bodies belong to the commands before them.
        self.frame.command_hole = self.places.len();
        if !self.frame.follows_pipe {
            self.frame.pipeline_hole = self.places.len();
        }
        Ok(())
    }

    /// Returns where a body ends and where the script goes on.
    fn body_end(&self, document: &HereDocument) -> Step<(usize, usize)> {
        let mut start = self.at;
        let mut continues = false;
        let mut joined = Vec::new();
        while start < self.limit {
            let rest = self.bytes.get(start..self.limit).unwrap_or_default();
            let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = rest.get(..length).unwrap_or_default();
            let tabs = if document.strips_tabs {
                line.iter().take_while(|byte| **byte == b'\t').count()
            } else {
                0
            };
            let after = (start + length + 1).min(self.limit);
            if !continues && line.get(tabs..) == Some(document.delimiter.as_slice()) {
                return Ok((start, after));
            }
            let backslashes = line.iter().rev().take_while(|byte| **byte == b'\\').count();
            if !std::mem::replace(&mut continues, !document.is_quoted && backslashes % 2 == 1) {
                joined.clear();
            }
            let text = line.get(..line.len() - usize::from(continues));
            joined.extend(without_tabs(text.unwrap_or_default()));
            if !continues && without_tabs(&joined).eq(without_tabs(&document.delimiter)) {
                return self.unreadable("a delimiter of a here-document stands on two lines");
            }
            start = after;
        }
        Ok((self.limit, self.limit))
    }

    fn literal_body(&mut self, demands: Demands) {
        let forbidden = Demands::forbidden("in a here-document with a quoted delimiter");
        let forbidden = forbidden.and(demands);
        while self
            .holes
            .get(self.passed)
            .is_some_and(|hole| hole.start < self.limit)
        {
            self.hole(Quote::Literal, forbidden);
        }
    }

    fn expanded_body(&mut self) -> Step {
        while self.at < self.limit {
            if self.hole_at(self.at) {
                self.hole(Quote::Text, Demands::NONE);
                continue;
            }
            match self.peek(0) {
                Some(b'\\') => self.escape()?,
                Some(b'$') => self.dollar(Quote::Text)?,
                Some(b'`') => self.backtick(Quote::Text)?,
                _ => self.at += 1,
            }
        }
        Ok(())
    }
}

fn without_tabs(text: &[u8]) -> impl Iterator<Item = &u8> {
    text.iter().filter(|byte| **byte != b'\t')
}
