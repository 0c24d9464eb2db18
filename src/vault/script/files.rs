//! Remembers which files a script writes and which it has read as code: a FIFO may be both at once,
//! and what a value is written to may be run later.

use std::collections::HashMap;
use std::ops::Range;

use super::Reader;
use super::endings::is_shared;
use super::spelt;
use crate::limits;
use crate::vault::programs;
use crate::vault::words::{Demands, Word};

/// The files of a script, by the last part of their names.
#[derive(Default)]
pub(super) struct Files(HashMap<String, Entry>);

#[derive(Default)]
struct Entry {
    /// The holes that are written there; nothing yet is an empty range.
    holes: Range<usize>,
    /// What is demanded of them by those who read it.
    demands: Demands,
    /// The text that is written there.
    text: String,
    /// Files that are copies of it.
    copies: Vec<String>,
}

impl Files {
    /// Returns the places whose values are written to files.
    pub(super) fn written(&self) -> impl Iterator<Item = usize> {
        self.0.values().flat_map(|entry| entry.holes.clone())
    }
}

impl Reader<'_> {
    /// Returns how a word is spelt that names a file, without quotes; nothing for what is no file
    /// of the script's own.
    pub(super) fn file_name(&self, word: &Word) -> Option<String> {
        let (start, end) = word.span;
        let spelt = self.bytes.get(start..end)?;
        let plain = spelt.iter().filter(|byte| !b"\"'{}\\\n".contains(byte));
        let name: Vec<u8> = plain.copied().collect();
        let name = String::from_utf8_lossy(&name);
        let name = name.trim_start_matches("./");
        let name = name.trim_start_matches("of=");
        let is_device = name.starts_with("/dev/") && !name.starts_with("/dev/shm/");
        let is_file = !name.is_empty() && !is_device && !name.starts_with('-');
        is_file.then(|| name.to_owned())
    }

    /// Notes what a whole command writes and has read as code; `input` is what it demands of its
    /// standard input.
    pub(super) fn note_files(&mut self, words: &[Word], input: Demands) {
        let mut written = self.written_files(words);
        self.note_opened(words, &written);
        self.note_copied(words);
        let copied = words
            .first()
            .is_some_and(|word| COPIERS.contains(&word.program()));
        written.extend(
            words
                .last()
                .filter(|_| copied)
                .and_then(|word| self.file_name(word)),
        );
        let around = self.inherited;
        let mut shown: Vec<String> = Vec::new();
        for name in std::mem::take(&mut self.frame.read) {
            shown.push(base(&name));
            self.reads_file(name, input.and(around));
        }
        self.note_scripts(words);
        self.note_listed(words);
        for name in programs::files_in_code(words) {
            self.reads_file(name, Demands::ANY_CODE);
        }
        self.note_fed(words, input);
        // What the command shows of its files, for whoever gets what it prints.
        if programs::prints(words) {
            let named = words.iter().skip(1).take(MAX_NAMED);
            shown.extend(
                named
                    .filter_map(|word| self.file_name(word))
                    .map(|name| base(&name)),
            );
        }
        let first = self.places.len();
        for name in shown {
            if self.files.0.contains_key(&name) {
                self.file_stands(&name);
            }
        }
        let stands = first..self.places.len();
        self.assigns_read(words, &stands);
        if is_shared(words) {
            // `while read x; do ...; done < FILE`
            self.feeds_reads(stands);
        }
        self.write_files(words, written);
    }

    /// Returns the files that a command writes.
    fn written_files(&mut self, words: &[Word]) -> Vec<String> {
        let mut written = std::mem::take(&mut self.frame.written);
        if let Some(at) = words.iter().position(|word| word.program() == "tee") {
            let named = words.iter().skip(at + 1);
            written.extend(named.filter_map(|word| self.file_name(word)));
        }
        let told = spelt::written_names(words);
        if !told.is_empty() {
            let scripts = programs::code_files(words).into_iter();
            let scripts: Vec<String> = scripts
                .filter_map(|(word, _)| self.file_name(word))
                .collect();
            written.extend(told.into_iter().filter(|name| !scripts.contains(name)));
        }
        written
    }

    /// Notes that a command writes files.
    fn write_files(&mut self, words: &[Word], written: Vec<String>) {
        let holes = self.frame.pipeline_hole..self.places.len();
        let text = match written.is_empty() {
            true => String::new(),
            false => self.told_text(words),
        };
        for name in written {
            self.writes_file(&name, holes.clone());
            self.writes_text(&name, &text);
            let pipeline = self.frame.pipeline;
            for document in &mut self.frame.documents {
                if document.pipeline == pipeline {
                    document.files.push(name.clone());
                }
            }
        }
    }

    /// Notes files that hold words of a command, as those of `xargs -a`.
    fn note_listed(&mut self, words: &[Word]) {
        let listed = programs::argument_file_demands(words);
        for word in words.iter().filter(|_| listed != Demands::NONE) {
            let glued = word.text().strip_prefix("-a");
            let name = word.text().strip_prefix("--arg-file=").or(glued);
            if let Some(name) = name.map(str::to_owned).or_else(|| self.file_name(word)) {
                self.reads_file(name, listed);
            }
        }
    }

    /// Notes the files among the words of a command that it reads as code.
    fn note_scripts(&mut self, words: &[Word]) {
        for (word, demands) in programs::code_files(words) {
            // A file within other text is one that code opens.
            if word.text().is_empty() || word.text().starts_with('-') {
                self.require_content(word.first_place..word.places, demands);
            }
            if word.text() == "{}" {
                self.require_content(self.frame.command_hole..self.places.len(), demands);
            }
            if word.is_pattern || word.text() == "{}" || word.is_unknown() && !is_first(words, word)
            {
                self.reads_any_file(demands);
            }
            if let Some(name) = self.file_name(word) {
                self.reads_file(name, demands);
            }
        }
    }

    /// What one file holds goes into another.
    fn note_copied(&mut self, words: &[Word]) {
        if !words
            .first()
            .is_some_and(|word| COPIERS.contains(&word.program()))
        {
            return;
        }
        let named = words.iter().skip(1).take(MAX_NAMED);
        let names: Vec<String> = named.filter_map(|word| self.file_name(word)).collect();
        let Some((target, sources)) = names.split_last() else {
            return;
        };
        for source in sources {
            let holes = self
                .files
                .0
                .get(&base(source))
                .map(|entry| entry.holes.clone());
            if let Some(holes) = holes {
                self.writes_file(target, holes);
            }
            let entry = self.files.0.entry(base(source)).or_default();
            entry.copies.push(base(target));
            let text = entry.text.clone();
            self.writes_text(target, &text);
        }
    }

    /// What stands before a pipe may print the files that it names, and so may a substitution.
    fn note_fed(&mut self, words: &[Word], input: Demands) {
        let around = self.inherited.uncalculated();
        let names = words.iter().skip(1).take(MAX_NAMED);
        let names: Vec<String> = names.filter_map(|word| self.file_name(word)).collect();
        if self.frame.follows_pipe {
            for name in std::mem::take(&mut self.frame.fed) {
                self.reads_file(name, input);
            }
        }
        for name in &names {
            self.reads_file(name.clone(), around);
        }
        self.frame.fed = names;
    }

    /// Notes that a file is read as code whose name is not known.
    fn reads_any_file(&mut self, demands: Demands) {
        let names: Vec<String> = self.files.0.keys().cloned().collect();
        for name in names.into_iter().chain([ANY.to_owned()]) {
            self.reads_file(name, demands);
        }
    }

    pub(super) fn reads_file(&mut self, name: String, demands: Demands) {
        let name = base(&name);
        let code = Demands {
            shell: demands.shell,
            program: demands.program,
            ..Demands::NONE
        };
        if code == Demands::NONE {
            return;
        }
        let entry = self.files.0.entry(name).or_default();
        if entry.demands.and(code) != entry.demands {
            entry.demands = entry.demands.and(code);
            let holes = entry.holes.clone();
            self.require(holes, code);
        }
    }

    /// Notes that a text is written to a file, with which the shell may calculate when it reads that.
    pub(super) fn writes_text(&mut self, name: &str, text: &str) {
        if !text.trim().is_empty() {
            let entry = self.files.0.entry(base(name)).or_default();
            if entry.text.len() < limits::MAX_CLAUSE_BYTES {
                entry.text.push_str(text);
                entry.text.push('\n');
            } else if !entry.text.ends_with(spelt::UNKNOWN) {
                entry.text.push(spelt::UNKNOWN);
            }
            self.file_gets_text(&base(name), text);
        }
    }

    /// Notes that the script writes a file.
    pub(super) fn knows_file(&mut self, name: &str) {
        self.files.0.entry(base(name)).or_default();
    }

    /// Returns what is demanded of all that is written to a file while it is open, or to a copy of it.
    pub(super) fn opened_file_demands(&self, name: &str) -> Demands {
        let any = self.files.0.get(ANY);
        let mut demands = any.map_or(Demands::NONE, |entry| entry.demands);
        let mut open = vec![base(name)];
        let mut seen = Vec::new();
        while let Some(name) = open.pop() {
            let Some(entry) = self.files.0.get(&name).filter(|_| !seen.contains(&name)) else {
                continue;
            };
            demands = demands.and(entry.demands).and(startup_demands(&name));
            open.extend(entry.copies.iter().cloned());
            seen.push(name);
        }
        demands
    }

    /// Reads the files that the script writes and a shell of it runs.
    pub(super) fn note_run_files(&mut self) {
        let any = self.files.0.get(ANY).is_some_and(|any| any.demands.shell);
        let run = self
            .files
            .0
            .values()
            .filter(|entry| any || entry.demands.shell);
        let texts: Vec<String> = run.map(|entry| entry.text.clone()).collect();
        let run = self
            .files
            .0
            .iter()
            .filter(|(_, entry)| any || entry.demands.shell);
        let names: Vec<String> = run.map(|(name, _)| file_key(name)).collect();
        for name in names {
            // Their expansions are parts of the code.
            for at in self.variables.given(&name) {
                self.require(at..at + 1, Demands::LOCAL);
            }
        }
        for text in texts.into_iter().filter(|text| !text.is_empty()) {
            self.note_script(&text);
        }
    }

    /// Notes that holes are written to a file.
    pub(super) fn writes_file(&mut self, name: &str, holes: Range<usize>) {
        if holes.is_empty() {
            return;
        }
        self.file_gets(&base(name), holes.clone());
        let any = self
            .files
            .0
            .get(ANY)
            .map_or(Demands::NONE, |entry| entry.demands);
        let entry = self.files.0.entry(base(name)).or_default();
        let first = match entry.holes.is_empty() {
            true => holes.start,
            false => entry.holes.start.min(holes.start),
        };
        entry.holes = first..entry.holes.end.max(holes.end);
        let demands = entry.demands.and(any).and(startup_demands(&base(name)));
        self.require(holes, demands);
    }
}

/// Stands for the files whose names are not known.
const ANY: &str = "*";

/// Programs that write what they read to the file they name last.
const COPIERS: &[&str] = &["cp", "mv", "ln", "install", "dd", "rsync", "scp"];

/// Returns the name under which a file is followed as a variable is.
pub(super) fn file_key(name: &str) -> String {
    format!("file {}", base(name))
}

/// What is demanded of what a file holds that shells read when they start.
fn startup_demands(name: &str) -> Demands {
    const STARTUP: &[&str] = &[
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".zlogout",
        ".kshrc",
        ".mkshrc",
        ".envrc",
    ];
    match STARTUP.contains(&name) {
        true => Demands::SHELL,
        false => Demands::NONE,
    }
}

/// Returns the last part of a path: what is before it may be spelt in many ways.
fn base(name: &str) -> String {
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

fn is_first(words: &[Word], word: &Word) -> bool {
    words.first().is_some_and(|first| first.span == word.span)
}

/// Words of one command that may name files it prints.
const MAX_NAMED: usize = 32;
