//! Remembers which files a script writes and which it has read as code: a FIFO may be both at once,
//! and what a value is written to may be run later.

use std::collections::HashMap;
use std::ops::Range;

use super::Reader;
use crate::vault::programs;
use crate::vault::words::{Demands, Word};

/// The files of a script, by how it spells their names.
#[derive(Default)]
pub(super) struct Files(HashMap<String, Entry>);

#[derive(Default)]
struct Entry {
    /// The holes that are written there; nothing yet is an empty range.
    holes: Range<usize>,
    /// What is demanded of them by those who read it.
    demands: Demands,
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
        let is_device = name.starts_with("/dev/") && !name.starts_with("/dev/shm/");
        let is_file = !name.is_empty() && !is_device && !name.starts_with('-');
        is_file.then(|| name.to_owned())
    }

    /// Notes what a whole command writes and has read as code; `input` is what it demands of its
    /// standard input.
    pub(super) fn note_files(&mut self, words: &[Word], input: Demands) {
        let mut written = std::mem::take(&mut self.frame.written);
        if let Some(at) = words.iter().position(|word| word.program() == "tee") {
            let named = words.iter().skip(at + 1);
            written.extend(named.filter_map(|word| self.file_name(word)));
        }
        for name in std::mem::take(&mut self.frame.read) {
            self.reads_file(name, input);
        }
        for (word, demands) in programs::code_files(words) {
            if let Some(name) = self.file_name(word) {
                self.reads_file(name, demands);
            }
        }
        self.note_fed(words, input);
        let holes = self.frame.pipeline_hole..self.places.len();
        for name in written {
            self.writes_file(&name, holes.clone());
            let pipeline = self.frame.pipeline;
            for document in &mut self.frame.documents {
                if document.pipeline == pipeline {
                    document.files.push(name.clone());
                }
            }
        }
    }

    /// What stands before a pipe may print the files that it names, and so may a substitution.
    fn note_fed(&mut self, words: &[Word], input: Demands) {
        let around = Demands {
            number: false,
            ..self.inherited
        };
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

    fn reads_file(&mut self, name: String, demands: Demands) {
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

    /// Notes that holes are written to a file.
    pub(super) fn writes_file(&mut self, name: &str, holes: Range<usize>) {
        if holes.is_empty() {
            return;
        }
        let entry = self.files.0.entry(name.to_owned()).or_default();
        let first = match entry.holes.is_empty() {
            true => holes.start,
            false => entry.holes.start.min(holes.start),
        };
        entry.holes = first..entry.holes.end.max(holes.end);
        let demands = entry.demands;
        self.require(holes, demands);
    }
}

/// Words of one command that may name files it prints.
const MAX_NAMED: usize = 32;
