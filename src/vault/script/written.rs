//! Files that a script writes otherwise than by a redirection of one command, and runs: by groups and functions, under
//! names in variables, by code inside of it.

use std::ops::Range;

use super::Reader;
use super::endings::is_shared;
use super::files::{ANY, base, file_key};
use super::spelt::{self, ANY_WRITTEN};
use super::variables::names_in;
use crate::limits;
use crate::vault::words::{Demands, Word};

impl Reader<'_> {
    /// Notes that a command writes a file which may copy what comes to commands around it, or what many of them print.
    pub(super) fn writes_from_around(&mut self, name: &str, words: &[Word]) {
        let frame = &self.frame;
        let is_inside = self.depth > 0 || !frame.compounds.is_empty() || frame.is_body;
        if is_inside && !frame.has_input && !frame.follows_pipe {
            self.variables.fed_files.insert(name.to_owned());
        }
        if is_shared(words) {
            // `{ echo CODE; } > FILE`
            self.writes_any_text(name);
        }
    }

    /// Notes the files that code inside of a command writes, which gets what stands at places: whatever it knows may come
    /// there.
    pub(super) fn writes_inside(&mut self, places: Range<usize>) {
        for name in std::mem::take(&mut self.frame.inner_written) {
            let name = match is_known(&name) {
                true => name,
                false => ANY_WRITTEN.to_owned(),
            };
            self.writes_file(&name, places.clone());
            self.writes_any_text(&name);
            let pipeline = self.frame.pipeline;
            for document in &mut self.frame.documents {
                if document.pipeline == pipeline {
                    document.files.push(name.clone());
                }
            }
        }
    }

    /// Notes the files that code inside of the script reads as code.
    pub(super) fn runs_inside(&mut self, names: Vec<String>) {
        for name in names {
            match is_known(&name) {
                true => self.reads_file(name, Demands::ANY_CODE),
                false => self.reads_any_file(Demands::ANY_CODE),
            }
        }
    }

    /// Demands of the files of the script what those do who may read them under another name.
    pub(super) fn match_files(&mut self) {
        if self.has_many_files() {
            return self.reads_any_file(Demands::ANY_CODE);
        }
        let demands = |name: &String| Some((name.clone(), self.files.known.get(name)?.demands));
        let run: Vec<_> = self.files.code.iter().filter_map(demands).collect();
        let written = self.files.names();
        for (name, demands) in run {
            for other in &written {
                if *other != name && self.may_be_same(&name, other) {
                    self.reads_file(other.clone(), demands);
                }
            }
        }
    }

    /// Whether there are too many to compare each that is run with each that is written.
    fn has_many_files(&self) -> bool {
        let run = self.files.code.len() + self.files.run.len();
        run * self.files.known.len() > limits::MAX_COMPARED_FILES
    }

    /// Whether two names as they are spelt may be those of one file, one that is run and one that is written.
    fn may_be_same(&self, run: &str, written: &str) -> bool {
        let (spelt, other) = match (is_known(run), is_known(written)) {
            (true, true) => return false,
            (false, false) => return true,
            (true, false) => (run, written),
            (false, true) => (written, run),
        };
        if matches!(other, ANY | ANY_WRITTEN) {
            return true;
        }
        // Code is no name.
        let is_name =
            |text: &str| !text.contains(|c: char| c.is_whitespace() || ";|&=".contains(c));
        if !is_name(other) || names_in(spelt).next().is_none() {
            return false;
        }
        // Parts of it must stand in some variable.
        let is_given = |part: &str| {
            let literal = names_in(other).any(|name| name == part);
            literal || self.variables.is_given_name(part)
        };
        names_in(spelt).all(is_given)
    }

    /// Reads the files that the script writes and a shell of it runs.
    pub(super) fn note_run_files(&mut self) {
        self.match_files();
        let known = &self.files.known;
        let any = known.get(ANY).is_some_and(|any| any.demands.shell);
        let run = known.iter().filter(|(_, entry)| any || entry.demands.shell);
        let run: Vec<(String, String)> = run
            .map(|(name, entry)| (file_key(name), entry.text.clone()))
            .collect();
        for (name, text) in run {
            // Their expansions are parts of the code.
            for at in self.variables.given(&name) {
                self.require(at..at + 1, Demands::LOCAL);
            }
            if !text.is_empty() {
                self.note_script(&text);
            }
        }
        let has_many = self.has_many_files();
        if has_many {
            self.evaluates();
        }
        for (name, words) in std::mem::take(&mut self.files.run) {
            if has_many {
                self.require(words, Demands::SHELL);
                continue;
            }
            let texts = self.run_texts(&name);
            for text in texts {
                self.note_script_of(&text, words.clone());
            }
        }
        self.note_fed_shells();
        if !self.frame.inner_written.is_empty() {
            // Scripts that write scripts.
            self.writes_inside(0..self.places.len());
            self.match_files();
            let known = &self.files.known;
            let is_run = known.values().any(|entry| {
                entry.is_written && entry.demands.shell && entry.text.contains(spelt::UNKNOWN)
            });
            if is_run {
                self.evaluates();
            }
        }
    }

    /// Returns the texts that the script writes to files which a name may mean.
    fn run_texts(&self, name: &str) -> Vec<String> {
        let written = self.files.known.iter().filter(|(other, entry)| {
            entry.is_written && (*other == name || self.may_be_same(name, other))
        });
        let texts = written.map(|(_, entry)| entry.own.clone());
        texts.filter(|text| !text.is_empty()).collect()
    }
}

/// Whether the name of a file is all written out.
fn is_known(name: &str) -> bool {
    !base(name).contains(['$', '`', '*', '?', '[', '('])
}
