//! Code in code: what a shell inside of the script does with the variables it inherits; and which names stand in
//! what commands print, since a shell may calculate with these.

use std::ops::Range;

use super::{HereDocument, Reader, Separator};
use crate::limits;
use crate::vault::programs;
use crate::vault::words::{Demands, Word};

impl Reader<'_> {
    /// Notes what the shells that a command starts do with the variables of the script.
    pub(super) fn note_inner(&mut self, words: &[Word]) {
        for (code, arguments) in programs::inner_code(words) {
            let text = self.whole_text(&code);
            self.note_script(&text);
            if arguments.iter().any(|word| word.text() == "{}") {
                // `find PLACE -exec sh -c CODE _ {}`
                let (value, content) = super::argument_demands(&text)
                    .unwrap_or((Demands::ANY_CODE, Demands::ANY_CODE));
                let places = self.frame.command_hole..self.places.len();
                self.require(places.clone(), value);
                self.require_content(places, content);
            }
        }
        if !programs::reads_script(words) {
            return;
        }
        let text = self.frame.input_text.clone();
        self.note_script(&text);
        let (command, pipeline) = (self.frame.command, self.frame.pipeline);
        let follows = self.frame.follows_pipe;
        for document in &mut self.frame.documents {
            document.is_script |=
                document.command == command || follows && document.pipeline == pipeline;
        }
        if follows {
            let text = self.frame.piped_text.clone();
            self.note_script(&text);
        }
    }

    /// Notes what a script of another shell does with the variables that it inherits.
    fn note_script(&mut self, script: &str) {
        if script.trim().is_empty() {
            return;
        }
        let Some((names, hidden)) = super::inherited_demands(script) else {
            return self.evaluates();
        };
        for (name, (value, content)) in names {
            self.stands_inside(name, value, content);
        }
        if hidden.shell {
            self.evaluates();
        }
        if hidden.zsh {
            self.changes_reading();
        }
    }

    /// Notes what is done with a here-document whose body stands there.
    pub(super) fn note_document(&mut self, document: &HereDocument, body: Range<usize>) {
        let text = self.bytes.get(body).unwrap_or_default();
        let text = String::from_utf8_lossy(text).into_owned();
        if document.is_script {
            match document.is_quoted {
                true => self.note_script(&text),
                false => self.note_script(&unescaped(&text)),
            }
        }
        let text = cut(&text);
        if document.is_shared {
            self.feeds_names(text);
        }
        for name in &document.variables {
            self.assigns_text(name, text);
        }
        if self.level > 0 && document.is_printed {
            self.printed.push(text.to_owned());
        }
    }

    /// Notes what a command may print of the texts it is given.
    pub(super) fn note_printed_text(&mut self, words: &[Word], separator: Separator) {
        let is_simple = words.first().is_some_and(|word| !word.is_nothing());
        let prints = !is_simple || self.may_print(words);
        let is_told = prints && (self.level > 0 || separator == Separator::Pipe);
        let text = match is_told {
            true => self.told_text(words),
            false => String::new(),
        };
        if !prints {
            self.printed.truncate(self.frame.printed_before);
        } else if self.level > 0 {
            self.printed.push(text.clone());
        }
        self.frame.input_text.clear();
        self.frame.piped_text.clear();
        if separator == Separator::Pipe {
            self.frame.piped_text = text;
        }
        if separator != Separator::Pipe {
            self.frame.printed_before = self.printed.len();
        }
    }

    /// Returns what a command is told by its words, its input and a pipe.
    pub(super) fn told_text(&self, words: &[Word]) -> String {
        let mut text = self.frame.piped_text.clone();
        for word in words.iter().skip(1) {
            text.push_str(&self.whole_text(word));
            text.push('\n');
        }
        text.push_str(&self.frame.input_text);
        cut(&text).to_owned()
    }

    /// Notes that the texts which a command gets are an input of more than one.
    pub(super) fn feeds_text(&mut self) {
        let text = self.frame.input_text.clone() + &self.frame.piped_text;
        self.feeds_names(&text);
    }

    /// Notes what a substitution has printed from one of the texts on.
    pub(super) fn note_substituted(&mut self, first: usize, is_number: bool) {
        let texts = self.printed.get(first..).unwrap_or_default();
        if texts.is_empty() {
            return;
        }
        let text = texts.join("\n");
        if is_number {
            self.calculates_with(&text);
        }
        if self.level == 0 {
            self.printed.clear();
        }
        self.note_given(&text);
    }

    /// Notes the elements of an array whose parenthesis stands at `start`.
    pub(super) fn note_elements(&mut self, start: usize) {
        let text = self.text_from(start);
        self.note_given(&text);
    }

    /// Notes that a text is a part of what the current word assigns, if it does.
    fn note_given(&mut self, text: &str) {
        let Some(word) = &self.frame.word else {
            return;
        };
        if !word.is_assignment && !self.frame.declares() {
            return;
        }
        let name = word.text().split(['=', '+', '[']).next();
        let name = name.unwrap_or_default().to_owned();
        self.assigns_text(&name, text);
        if self.integers.contains(&name) {
            self.calculates_with(text);
        }
    }

    /// Returns the script from a place to here.
    pub(super) fn text_from(&self, start: usize) -> String {
        let text = self.bytes.get(start..self.at).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Returns the text of a word, all of it where it stands in single quotes.
    pub(super) fn whole_text(&self, word: &Word) -> String {
        let (start, end) = word.span;
        let spelt = self.bytes.get(start..end).unwrap_or_default();
        let inside = spelt
            .strip_prefix(b"'")
            .and_then(|spelt| spelt.strip_suffix(b"'"));
        let inside = inside.filter(|inside| word.is_cut && !inside.contains(&b'\''));
        inside.map_or_else(
            || word.text().to_owned(),
            |inside| String::from_utf8_lossy(inside).into_owned(),
        )
    }
}

/// Returns as much of a text as is looked at for names.
fn cut(text: &str) -> &str {
    let end = text.floor_char_boundary(limits::MAX_CLAUSE_BYTES.min(text.len()));
    text.get(..end).unwrap_or_default()
}

/// Returns the body of a here-document without its backslashes before signs of the shell.
fn unescaped(text: &str) -> String {
    text.replace("\\$", "$")
        .replace("\\`", "`")
        .replace("\\\\", "\\")
}
