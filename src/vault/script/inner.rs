//! Code in code: what a shell inside of the script does with the variables it inherits; and which names stand in
//! what commands print, since a shell may calculate with these.

use std::ops::Range;

use super::endings::is_shared;
use super::spelt::{self, Spelt};
use super::variables::INPUTS;
use super::{HereDocument, Reader, Separator};
use crate::limits;
use crate::vault::programs;
use crate::vault::words::{Demands, Word};

impl Reader<'_> {
    /// Notes what the shells that a command starts do with the variables of the script.
    pub(super) fn note_inner(&mut self, words: &[Word]) {
        for (code, arguments) in programs::inner_code(words) {
            let text = match code.is_dynamic {
                true => code.code(),
                false => self.whole_text(&code),
            };
            let places = code.first_place..code.places;
            // An expansion is `${1}` there.
            let (_, content) = self.note_script(&text);
            self.require_content(places.clone(), content);
            self.require(places, Demands::LOCAL);
            if code.is_dynamic && (code.is_cut || code.is_told) {
                self.evaluates();
            }
            if programs::changes_inner(arguments) {
                self.evaluates();
            }
            if arguments.iter().any(|word| word.text() == "{}") {
                // `find PLACE -exec sh -c CODE _ {}`
                let (value, content) = super::argument_demands(&text)
                    .unwrap_or((Demands::ANY_CODE, Demands::ANY_CODE));
                let places = self.frame.command_hole..self.places.len();
                self.require(places.clone(), value);
                self.require_content(places, content);
            }
        }
        self.note_code_options(words);
        if programs::reads_script(words) {
            self.note_script_input(words);
        }
    }

    /// Notes what files hold that are named in code among other words of a command: `git -c alias.x="!cat FILE | sh"`.
    fn note_code_options(&mut self, words: &[Word]) {
        for code in programs::codes_in_options(words) {
            let read = (self.inner < MAX_INNER && !code.is_cut)
                .then(|| super::inner_demands(&code.code(), self.inner + 1, false));
            let content = read
                .flatten()
                .map_or(Demands::ANY_CODE, |read| read.arguments.1);
            self.require_content(code.first_place..code.places, content);
        }
        let evaluates = programs::without_prefixes(words).first();
        if evaluates.is_some_and(|word| word.text() == "eval") {
            // What it makes of the file stays in this shell.
            self.require_content(self.frame.command_hole..self.places.len(), Demands::SHELL);
        }
    }

    /// Notes the script that a command reads from its input, and what it does with the arguments.
    fn note_script_input(&mut self, command: &[Word]) {
        let frame = &self.frame;
        let is_inside = self.depth > 0 || !frame.compounds.is_empty() || frame.is_body;
        let is_own = frame.has_input || frame.follows_pipe;
        if is_inside && !is_own && programs::reads_script_only(command) {
            self.fed_shells.push(frame.command_hole..self.places.len());
        }
        for holes in self.frame.input_holes.clone() {
            self.require(holes, Demands::LOCAL);
        }
        let words = self.script_arguments(command);
        let text = self.frame.input_text.clone();
        self.note_script_of(&text, words.clone());
        let (own, pipeline) = (self.frame.command, self.frame.pipeline);
        let follows = self.frame.follows_pipe;
        for document in &mut self.frame.documents {
            let is_own = document.command == own || follows && document.pipeline == pipeline;
            if is_own {
                document.is_script = true;
                document.demands.local = true;
                document.words = words.clone();
            }
        }
        if follows {
            self.require_fed(Demands::LOCAL);
            let mut text = self.frame.piped_text.clone();
            if self.frame.pipes_many && programs::reads_script_only(command) {
                text.push(spelt::UNKNOWN);
            }
            self.note_script_of(&text, words);
        }
    }

    /// Returns the places that are arguments of a shell among a command's programs: not those of settings before it.
    pub(super) fn script_arguments(&self, command: &[Word]) -> Range<usize> {
        let start = programs::first_argument_place(command);
        start.unwrap_or(self.places.len())..self.places.len()
    }

    /// Notes shells that read their script from the input of a group or a function.
    pub(super) fn note_fed_shells(&mut self) {
        let fed = std::mem::take(&mut self.fed_shells);
        if fed.is_empty() || !self.variables.spelt(INPUTS).has_signs() {
            return;
        }
        self.evaluates();
        for words in fed {
            self.require(words, Demands::ANY_CODE);
        }
    }

    /// Notes what a script does whose arguments stand at places.
    pub(super) fn note_script_of(&mut self, script: &str, words: Range<usize>) {
        let (value, content) = self.note_script(script);
        self.require(words.clone(), value);
        self.require_content(words, content);
    }

    /// Notes what a script of another shell does with the variables that it inherits; returns what it demands of its
    /// arguments, and of what files hold that they name.
    ///
    /// Which shell reads it is not asked: what any of them would do counts.
    pub(super) fn note_script(&mut self, script: &str) -> (Demands, Demands) {
        if script.trim().is_empty() {
            return (Demands::NONE, Demands::NONE);
        }
        let (code, depth) = (script.as_bytes(), self.inner + 1);
        // Deeper ones are not even read: each level is a reader of its own.
        let is_known = !script.contains(spelt::UNKNOWN) && depth <= MAX_INNER;
        let read = is_known.then(|| super::inner_demands(script, depth, false));
        let Some(read) = read.flatten() else {
            self.evaluates();
            return (Demands::ANY_CODE, Demands::ANY_CODE);
        };
        let in_zsh = code.contains(&b'}');
        let in_zsh = in_zsh.then(|| super::inner_demands(script, depth, true));
        let mut arguments = (Demands::NONE, Demands::NONE);
        for read in [Some(read), in_zsh.flatten()].into_iter().flatten() {
            for (name, (value, content)) in read.names {
                self.stands_inside(name, value.in_any_shell(), content.in_any_shell());
            }
            if read.hidden.shell || read.hidden.zsh {
                self.evaluates();
            }
            arguments.0 = arguments.0.and(read.arguments.0.in_any_shell());
            arguments.1 = arguments.1.and(read.arguments.1.in_any_shell());
            self.frame.inner_written.extend(read.writes);
            self.runs_inside(read.reads);
        }
        arguments
    }

    /// Notes what is done with a here-document whose body stands there.
    pub(super) fn note_document(&mut self, document: &HereDocument, body: Range<usize>) {
        let text = self.bytes.get(body).unwrap_or_default();
        let text = String::from_utf8_lossy(text).into_owned();
        if document.is_script {
            let script = match document.is_quoted {
                true => text.clone(),
                false => unescaped(&text),
            };
            self.note_script_of(&script, document.words.clone());
            self.writes_inside(document.words.clone());
        }
        for name in &document.files {
            self.writes_text(name, &text, true);
        }
        let text = cut(&text);
        if document.is_shared {
            self.feeds_names(&text);
        }
        for name in &document.variables {
            self.assigns_text(name, &text);
        }
        if self.level + self.listening > 0 && document.is_printed {
            self.printed.push(text);
        }
    }

    /// Notes what a command may print of the texts it is given.
    pub(super) fn note_printed_text(&mut self, words: &[Word], separator: Separator) {
        let is_simple = words.first().is_some_and(|word| !word.is_nothing());
        let prints = !is_simple || self.may_print(words);
        let is_heard = self.level + self.listening > 0;
        let is_told = prints && (is_heard || separator == Separator::Pipe);
        let text = match is_told {
            true => self.told_text(words),
            false => String::new(),
        };
        if !prints {
            self.printed.truncate(self.frame.printed_before);
        } else if is_heard {
            self.printed.push(text.clone());
        }
        self.frame.input_text.clear();
        self.frame.piped_text.clear();
        if separator == Separator::Pipe {
            self.frame.pipes_many = is_shared(words);
            self.frame.piped_text = text;
        }
        if separator != Separator::Pipe {
            self.frame.printed_before = self.printed.len();
        }
    }

    /// Returns what a command is told by its words, its input and a pipe.
    pub(super) fn told_text(&self, words: &[Word]) -> String {
        let mut text = self.frame.piped_text.clone();
        let program = programs::without_prefixes(words).first();
        let program = program.map_or("", Word::program);
        for word in words.iter().skip(1) {
            if !spelt::shown_text(program, word) {
                continue;
            }
            if word.is_told {
                text.push(spelt::UNKNOWN);
            }
            match word.is_dynamic {
                true => text.push_str(&word.code()),
                false => text.push_str(&self.whole_text(word)),
            }
            text.push('\n');
        }
        text.push_str(&self.frame.input_text);
        if NAMERS.contains(&program) || words.first().is_some_and(|word| word.is_function) {
            // Names of files and the like, and whatever the function prints.
            text.push('_');
        }
        let is_literal = !text.replace("${1}", "").trim().is_empty();
        if is_literal && !spelt::prints_exactly(words) {
            // As code it may be anything.
            text.push(spelt::UNKNOWN);
        }
        cut(&text)
    }

    /// Notes that the texts which a command gets are an input of more than one.
    pub(super) fn feeds_text(&mut self) {
        let text = self.frame.input_text.clone() + &self.frame.piped_text;
        self.feeds_names(&text);
    }

    /// Notes what a substitution has printed from one of the texts on.
    pub(super) fn note_substituted(&mut self, first: usize, number: Demands) {
        let texts = self.printed.get(first..).unwrap_or_default();
        if texts.is_empty() {
            return;
        }
        let text = texts.join("\n");
        if Spelt::of(&text).has_signs()
            && let Some(word) = &mut self.frame.word
        {
            word.is_told = true;
        }
        if number != Demands::NONE {
            self.calculates_with(&text, number);
            self.calculates_made(&text, number);
        }
        if self.level + self.listening == 0 {
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
    pub(super) fn note_given(&mut self, text: &str) {
        let Some(word) = &self.frame.word else {
            return;
        };
        if !word.is_assignment && !self.frame.declares() {
            return;
        }
        let name = word.text().split(['=', '+', '[']).next();
        let name = name.unwrap_or_default().to_owned();
        self.assigns_text(&name, text);
    }

    /// Notes that text is calculated with that a program has printed.
    fn calculates_made(&mut self, text: &str, demands: Demands) {
        if Spelt::of(text).has_letters() {
            self.is_calculated(demands);
        }
    }

    /// Returns what the process substitution prints whose commands are read, for whoever reads it.
    pub(super) fn heard_text(&mut self, first: usize) -> String {
        let text = self.printed.get(first..).unwrap_or_default().join("\n");
        if self.level + self.listening == 0 {
            self.printed.clear();
        }
        cut(&text)
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

/// Programs that print names which the script may have made.
const NAMERS: &[&str] = &[
    "ls", "pwd", "find", "whoami", "hostname", "uname", "realpath", "readlink", "which", "type",
    "tty",
];

/// Scripts in scripts that are read.
pub(super) const MAX_INNER: usize = 4;

/// Returns as much of a text as is looked at for names.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(limits::MAX_CLAUSE_BYTES.min(text.len()));
    let mut cut = text.get(..end).unwrap_or_default().to_owned();
    if end < text.len() {
        cut.push(spelt::UNKNOWN);
    }
    cut
}

/// Returns the body of a here-document without its backslashes before signs of the shell.
fn unescaped(text: &str) -> String {
    text.replace("\\$", "$")
        .replace("\\`", "`")
        .replace("\\\\", "\\")
}
