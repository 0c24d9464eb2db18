//! Remembers which files a script writes and which it has read as code: a FIFO may be both at once,
//! and what a value is written to may be run later.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::Reader;
use super::endings::is_shared;
use super::spelt;
use crate::limits;
use crate::vault::programs;
use crate::vault::words::{Demands, Word};

/// The files of a script, by the last part of their names.
#[derive(Default)]
pub(super) struct Files {
    pub(super) known: HashMap<String, Entry>,
    /// Those that a shell runs, and where the words of its command stand.
    pub(super) run: Vec<(String, Range<usize>)>,
    /// Those that anything reads as code.
    pub(super) code: HashSet<String>,
}

#[derive(Default)]
pub(super) struct Entry {
    /// The holes that are written there; nothing yet is an empty range.
    holes: Range<usize>,
    /// What is demanded of them by those who read it.
    pub(super) demands: Demands,
    /// The text that is written there, and as much of it as the script itself knows.
    pub(super) text: String,
    pub(super) own: String,
    /// Whether the script writes it.
    pub(super) is_written: bool,
    /// Files that are copies of it.
    copies: Vec<String>,
}

impl Files {
    /// Returns the places whose values are written to files.
    pub(super) fn written(&self) -> impl Iterator<Item = usize> {
        self.known.values().flat_map(|entry| entry.holes.clone())
    }

    /// Returns the names of the files that the script writes.
    pub(super) fn names(&self) -> Vec<String> {
        let written = self.known.iter().filter(|(_, entry)| entry.is_written);
        written.map(|(name, _)| name.clone()).collect()
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
        let inner: Vec<String> = self.frame.inner_written.clone();
        let named = programs::files_in_code(words).into_iter();
        for name in named.filter(|name| !inner.contains(&base(name))) {
            // Any word of the code.
            self.demand_of_file(name, Demands::ANY_CODE);
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
            if self.files.known.contains_key(&name) {
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
        let is_own = self.may_print(words);
        for name in written {
            self.writes_file(&name, holes.clone());
            self.writes_text(&name, &text, is_own);
            self.writes_from_around(&name, words);
            let pipeline = self.frame.pipeline;
            for document in &mut self.frame.documents {
                if document.pipeline == pipeline {
                    document.files.push(name.clone());
                }
            }
        }
        self.writes_inside(holes);
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
        if words.iter().any(|word| word.program() == "xargs") && programs::reads_script(words) {
            // Its input names them.
            self.reads_any_file(Demands::SHELL);
        }
        for name in programs::files_by_name(words) {
            self.reads_file((*name).to_owned(), Demands::PROGRAM.read_by(Some("make")));
        }
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
            let Some(name) = self.file_name(word) else {
                continue;
            };
            if is_first(words, word) && !word.text().contains('/') && !word.is_dynamic {
                // Mostly a program of the system.
                self.demand_of_file(name, demands);
                continue;
            }
            if demands.shell {
                // What stands before it is no argument: `T=VALUE sh FILE`.
                self.files
                    .run
                    .push((base(&name), word.places..self.places.len()));
            }
            self.reads_file(name, demands);
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
                .known
                .get(&base(source))
                .map(|entry| entry.holes.clone());
            if let Some(holes) = holes {
                self.writes_file(target, holes);
            }
            let entry = self.files.known.entry(base(source)).or_default();
            entry.copies.push(base(target));
            let (text, is_own) = (entry.text.clone(), !entry.own.is_empty());
            self.writes_text(target, &text, is_own);
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
    pub(super) fn reads_any_file(&mut self, demands: Demands) {
        let names: Vec<String> = self.files.known.keys().cloned().collect();
        for name in names.into_iter().chain([ANY.to_owned()]) {
            self.reads_file(name, demands);
        }
    }

    /// Notes that a file is read, of which that is demanded.
    pub(super) fn reads_file(&mut self, name: String, demands: Demands) {
        if demands.is_code() {
            self.files.code.insert(base(&name));
        }
        self.demand_of_file(name, demands);
    }

    fn demand_of_file(&mut self, name: String, demands: Demands) {
        let name = base(&name);
        let code = Demands {
            shell: demands.shell,
            program: demands.program,
            by: demands.by,
            ..Demands::NONE
        };
        if code == Demands::NONE {
            return;
        }
        let entry = self.files.known.entry(name).or_default();
        if entry.demands.and(code) != entry.demands {
            entry.demands = entry.demands.and(code);
            let holes = entry.holes.clone();
            self.require(holes, code);
        }
    }

    /// Notes that a text is written to a file, with which the shell may calculate when it reads that.
    pub(super) fn writes_text(&mut self, name: &str, text: &str, is_own: bool) {
        let entry = self.files.known.entry(base(name)).or_default();
        entry.is_written = true;
        if !text.trim().is_empty() {
            add_text(&mut entry.text, text);
            if is_own {
                add_text(&mut entry.own, text);
            }
            self.file_gets_text(&base(name), text);
        }
    }

    /// Notes that a file is written whose text may be any code.
    pub(super) fn writes_any_text(&mut self, name: &str) {
        let entry = self.files.known.entry(base(name)).or_default();
        entry.is_written = true;
        for text in [&mut entry.text, &mut entry.own] {
            if !text.ends_with(spelt::UNKNOWN) {
                text.push(spelt::UNKNOWN);
            }
        }
    }

    /// Notes that the script writes a file.
    pub(super) fn knows_file(&mut self, name: &str) {
        self.writes_any_text(name);
    }

    /// Returns what is demanded of all that is written to a file while it is open, or to a copy of it.
    pub(super) fn opened_file_demands(&self, name: &str) -> Demands {
        let any = self.files.known.get(ANY);
        let mut demands = any.map_or(Demands::NONE, |entry| entry.demands);
        let mut open = vec![base(name)];
        let mut seen = Vec::new();
        while let Some(name) = open.pop() {
            let Some(entry) = self
                .files
                .known
                .get(&name)
                .filter(|_| !seen.contains(&name))
            else {
                continue;
            };
            demands = demands.and(entry.demands).and(startup_demands(&name));
            open.extend(entry.copies.iter().cloned());
            seen.push(name);
        }
        demands
    }

    /// Notes that holes are written to a file.
    pub(super) fn writes_file(&mut self, name: &str, holes: Range<usize>) {
        if holes.is_empty() {
            return;
        }
        self.file_gets(&base(name), holes.clone());
        let any = self
            .files
            .known
            .get(ANY)
            .map_or(Demands::NONE, |entry| entry.demands);
        let entry = self.files.known.entry(base(name)).or_default();
        let first = match entry.holes.is_empty() {
            true => holes.start,
            false => entry.holes.start.min(holes.start),
        };
        entry.holes = first..entry.holes.end.max(holes.end);
        let demands = entry.demands.and(any).and(startup_demands(&base(name)));
        self.require(holes, demands);
    }
}

/// Stands for the files that are read and whose names are not known.
pub(super) const ANY: &str = "*";

/// Adds a line to a text, of which only so much is looked at.
fn add_text(whole: &mut String, text: &str) {
    if whole.len() < limits::MAX_CLAUSE_BYTES {
        whole.push_str(text);
        whole.push('\n');
    } else if !whole.ends_with(spelt::UNKNOWN) {
        whole.push(spelt::UNKNOWN);
    }
}

/// Programs that write what they read to the file they name last.
const COPIERS: &[&str] = &["cp", "mv", "ln", "install", "dd", "rsync", "scp"];

/// Returns the name under which a file is followed as a variable is.
pub(super) fn file_key(name: &str) -> String {
    format!("file {}", base(name))
}

pub(super) fn is_file_key(name: &str) -> bool {
    name.starts_with("file ")
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
pub(super) fn base(name: &str) -> String {
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

fn is_first(words: &[Word], word: &Word) -> bool {
    words.first().is_some_and(|first| first.span == word.span)
}

/// Words of one command that may name files it prints.
const MAX_NAMED: usize = 32;
