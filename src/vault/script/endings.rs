//! Applies what a whole command demands, once all its words are known.

use super::{Reader, Separator};
use crate::vault::programs::{self, ARITHMETIC_TESTS, DECLARATIONS};
use crate::vault::words::{Demands, Word, is_name};

impl Reader<'_> {
    /// Ends a part of a test, which `&&` and `||` divide: one that calculates does so with every
    /// value in it.
    pub(super) fn end_clause(&mut self) {
        let demands = clause_demands(&self.frame.words);
        self.require(self.frame.clause_hole..self.places.len(), demands);
        let text = std::mem::take(&mut self.frame.clause_text);
        self.calculates_in_test(&text, demands);
        self.frame.words.truncate(1);
        self.frame.clause_hole = self.places.len();
    }

    /// The same for the parts of `[` and `test`, which `-a` and `-o` divide.
    fn end_test(&mut self, words: &[Word]) {
        for word in words.iter().filter(|word| word.is_list) {
            // Its words may be operators.
            self.require(word.first_place..word.places, Demands::ANY_CODE);
        }
        let mut first = self.frame.command_hole;
        let is_divider = |word: &Word| matches!(word.text(), "-a" | "-o") && !word.is_dynamic;
        let mut clauses = words.split_inclusive(is_divider).peekable();
        while let Some(clause) = clauses.next() {
            let is_last = clauses.peek().is_none();
            let end = match clause.last() {
                Some(word) if !is_last => word.places,
                _ => self.places.len(),
            };
            let demands = clause_demands(clause);
            self.require(first..end, demands);
            let texts: Vec<&str> = clause.iter().map(Word::text).collect();
            self.calculates_in_test(&texts.join(" "), demands);
            first = end;
        }
    }

    /// Notes what a part of a test calculates with: all its text, or only the index of a variable's name.
    fn calculates_in_test(&mut self, text: &str, demands: Demands) {
        let own = Demands {
            number: true,
            ..Demands::NUMBER.only(Demands {
                number: true,
                ..demands
            })
        };
        if demands.number {
            self.calculates_with(text, own);
        } else if demands != Demands::NONE {
            let index = text.split_once('[').map_or("", |(_, index)| index);
            self.calculates_with(index, own);
        }
    }

    /// Applies what the words of a whole command demand, and starts the next one.
    pub(super) fn end_command(&mut self, separator: Separator) {
        let words = std::mem::take(&mut self.frame.words);
        let first = words.first().map_or("", Word::text);
        if separator == Separator::Newline && words.is_empty() && self.frame.follows_pipe {
            return;
        }
        let own = programs::without_prefixes(&words);
        if matches!(own.first().map_or("", Word::text), "[" | "test") {
            self.end_test(own);
        }
        let declarer = own.first().map_or("", Word::text);
        if DECLARATIONS.contains(&declarer) || declarer == "nameref" {
            self.note_integers(own);
            self.note_namerefs(own);
        }
        self.demand_of_aliases(&words);
        self.note_unknown(own);
        self.note_inner(&words);
        if matches!(declarer, "alias" | "hash") {
            self.note_aliases(own);
        }
        let file = programs::argument_file_demands(&words);
        self.require(self.frame.command_hole..self.places.len(), file);
        self.demand_of_printf(own);
        let sets = self.demand_of_assigned(own);
        if first == "coproc" {
            self.feeds_reads(self.frame.command_hole..self.places.len());
        }
        self.note_assigned(own);
        for word in programs::calculated_words(own) {
            // Without a dollar sign it is a name to zsh.
            self.calculates_with(word.text(), Demands::ZSH_NUMBER);
        }
        self.note_shown(&words);
        self.note_code_words(own);
        self.reads_escapes |= own.iter().any(|word| word.text() == "xpg_echo");
        let input = self.demand_of_input(&words, sets);
        self.note_files(&words, input);
        self.demand_of_output(first);
        self.note_output(&words);
        self.note_printed_text(&words, separator);
        let frame = &mut self.frame;
        frame.in_test = false;
        frame.ends_compound = false;
        frame.follows_body = false;
        frame.has_input = false;
        frame.reads = Demands::NONE;
        frame.is_overlong = false;
        frame.follows_pipe = separator == Separator::Pipe;
        frame.command += 1;
        frame.command_hole = self.places.len();
        if frame.follows_pipe {
            // What a loop prints came from all its commands.
            if matches!(first, "done" | "fi" | "esac" | "}") {
                frame.pipeline_hole = frame.first_hole;
                frame.fed_demands.clear();
                frame.hidden = 0;
            }
        } else {
            frame.pipeline += 1;
            frame.fed_demands.clear();
            frame.pipeline_hole = self.places.len();
        }
    }

    /// Notes a command that an expansion names: it may be any, with the texts of the variables as its words.
    fn note_unknown(&mut self, words: &[Word]) {
        self.note_run_arguments(words);
        self.note_called(words);
        let Some(first) = words.first().filter(|word| word.is_unknown_program()) else {
            return;
        };
        if first.is_told {
            self.evaluates();
        }
        for word in words.iter().filter(|word| word.is_dynamic) {
            self.require(word.first_place..word.places, Demands::COMMAND);
        }
    }

    /// `o=-v; printf $o VALUE text`: the value may be the name of a variable, whose index is calculated.
    fn demand_of_printf(&mut self, words: &[Word]) {
        if let [first, option, name, _, ..] = words
            && first.is_plain("printf")
            && option.may_be_flags()
        {
            self.require(name.first_place..name.places, Demands::ANY_CODE);
        }
    }

    /// Applies what a command demands of its standard input to what feeds it.
    fn demand_of_input(&mut self, words: &[Word], sets: Demands) -> Demands {
        if self.frame.follows_body {
            self.function_reads = self.function_reads.and(self.frame.reads);
        }
        let mut own = programs::input_demands(words).and(sets);
        if words
            .iter()
            .any(|word| self.functions.contains(word.text()))
        {
            own = own.and(self.function_reads);
        }
        let mut demands = own.and(self.frame.reads);
        if self.frame.is_body {
            self.function_reads = self.function_reads.and(demands);
        }
        self.note_reads(demands);
        if words.first().is_some_and(|word| word.text() == "exec") {
            // Whoever reads the descriptor later is not known.
            demands = demands.and(Demands::SHELL);
        }
        let is_shared = is_shared(words);
        for holes in std::mem::take(&mut self.frame.input_holes) {
            self.require(holes.clone(), demands);
            if is_shared {
                self.feeds_reads(holes);
            }
        }
        if is_shared {
            self.feeds_text();
        }
        // `read x < FILE`, `$(<FILE)`
        let content = demands.and(self.inherited);
        for places in std::mem::take(&mut self.frame.read_places) {
            self.require_content(places.clone(), content);
            self.assigns_read(words, &places);
            if is_shared {
                self.shows_content(&places);
                self.feeds_reads(places);
            }
        }
        let (command, pipeline, follows) = (
            self.frame.command,
            self.frame.pipeline,
            self.frame.follows_pipe,
        );
        for document in &mut self.frame.documents {
            if document.command == command || follows && document.pipeline == pipeline {
                document.demands = document.demands.and(demands);
                document.is_shared |= is_shared;
            }
        }
        if follows && is_shared {
            self.feeds_reads(self.frame.pipeline_hole..self.frame.command_hole);
        }
        if follows {
            self.require_fed(demands);
        }
        demands
    }

    /// Demands something of all that stands before the pipe, and of nothing twice: a pipeline may be long.
    pub(super) fn require_fed(&mut self, demands: Demands) {
        let end = self.frame.command_hole;
        let start = self.frame.pipeline_hole;
        let known = &mut self.frame.fed_demands;
        let done = known.iter_mut().find(|(known, _)| *known == demands);
        let from = match done {
            Some((_, done)) => std::mem::replace(done, end).max(start),
            None => {
                known.push((demands, end));
                start
            }
        };
        self.require(from..end, demands);
    }

    /// What a command assigns must suit the variables that are named in its words.
    fn demand_of_assigned(&mut self, words: &[Word]) -> Demands {
        let command = words.first().map_or("", Word::text);
        if !programs::ASSIGNERS.contains(&command) {
            return Demands::NONE;
        }
        let mut demands = Demands::NONE;
        let mut before = "";
        for word in words.iter().skip(1) {
            let name = word.text().strip_prefix("-v").unwrap_or(word.text());
            // Other words of these are data.
            let is_named = match command {
                "printf" | "print" => before == "-v" || word.text().starts_with("-v"),
                "for" | "select" | "foreach" => before.is_empty(),
                _ => true,
            };
            demands = demands.and(self.variable_demands(name, is_named));
            before = word.text();
        }
        self.require(self.frame.command_hole..self.places.len(), demands);
        demands
    }

    /// What assigning to a variable demands, by what the script has declared it to be.
    pub(super) fn variable_demands(&self, name: &str, is_named: bool) -> Demands {
        if self.integers.contains(name) {
            Demands::NUMBER
        } else if !is_named {
            Demands::NONE
        } else if self.namerefs.contains(name) {
            Demands::forbidden("in a variable that is another one's name")
        } else {
            programs::assignment_demands(name)
        }
    }

    /// Remembers what a command demands of an input that it has from around it, perhaps by others
    /// before it in a pipe.
    fn note_reads(&mut self, demands: Demands) {
        let frame = &mut self.frame;
        if demands == Demands::NONE || frame.has_input {
            return;
        }
        match frame.compounds.last() {
            Some(_) => {
                for index in 0..self.frame.compounds.len() {
                    let compound = &mut self.frame.compounds[index];
                    compound.reads = compound.reads.and(demands);
                    let feeds = compound.feeds.clone();
                    self.require(feeds, demands);
                }
                let is_fed = self.frame.compounds.iter().any(|outer| outer.has_own_input);
                if !is_fed {
                    self.frame.all_reads = self.frame.all_reads.and(demands);
                }
            }
            None => frame.all_reads = frame.all_reads.and(demands),
        }
    }

    /// Applies what is demanded of the output of a command to what it may print.
    fn demand_of_output(&mut self, command: &str) {
        let sinks = std::mem::take(&mut self.frame.sinks);
        if sinks == Demands::NONE {
            return;
        }
        self.require(self.frame.pipeline_hole..self.places.len(), sinks);
        let pipeline = self.frame.pipeline;
        for document in &mut self.frame.documents {
            if document.pipeline == pipeline {
                document.demands = document.demands.and(sinks);
            }
        }
        if command == "exec" {
            self.later = self.later.and(sinks);
        }
    }

    /// A descriptor that is given by an expansion may be that of a coprocess, which reads code.
    pub(super) fn descriptor(&mut self, word: &Word) {
        self.note_file(word);
        // What a descriptor is read for is no output.
        let is_output = self.frame.writes || self.frame.reads_and_writes;
        if is_output && (word.is_dynamic || word.is_plain("p")) {
            let unknown = Demands::SHELL.and(Demands::PROGRAM);
            self.frame.sinks = self.frame.sinks.and(unknown);
        }
    }

    /// The same in a path; a descriptor that is one's own standard input is no input of its own.
    pub(super) fn target(&mut self, word: &Word) {
        self.note_file(word);
        let is_descriptor = ["/dev/fd/", "/dev/stdin", "/proc/"]
            .iter()
            .any(|path| word.text().starts_with(path));
        if is_descriptor {
            self.frame.has_input = false;
            self.descriptor(word);
        }
    }

    fn note_file(&mut self, word: &Word) {
        if !self.frame.writes {
            self.frame.read_places.push(word.first_place..word.places);
        }
        if let Some(name) = self.file_name(word) {
            match self.frame.writes {
                true => self.frame.written.push(name),
                false => self.frame.read.push(name),
            }
        }
    }

    /// A command with a word that is an alias may be any command.
    fn demand_of_aliases(&mut self, words: &[Word]) {
        let is_any = self.aliases.contains("");
        let has_alias = words.iter().any(|word| self.aliases.contains(word.text()));
        if has_alias && self.declares_by_alias {
            let names = words.iter().map(|word| word.text().to_owned());
            let names: Vec<String> = names.filter(|name| is_name(name)).collect();
            self.namerefs.extend(names.iter().cloned());
            self.integers.extend(names);
        }
        if has_alias || is_any && !words.is_empty() {
            self.frame.reads = self.frame.reads.and(Demands::SHELL);
            self.require(self.frame.command_hole..self.places.len(), Demands::SHELL);
        }
    }

    fn note_aliases(&mut self, words: &[Word]) {
        if words.iter().any(|word| word.has_option('s')) {
            // In zsh the ending of any command's name may be one.
            self.aliases.insert(String::new());
        }
        let names_files = words.first().is_some_and(|word| word.text() == "hash")
            && words.iter().any(|word| word.has_option('p'));
        for word in words.iter().skip(1) {
            let is_declaration = |part: &str| DECLARATIONS.contains(&part);
            self.declares_by_alias |= word.text().split(['=', ' ']).any(is_declaration);
            match word.text().split_once('=') {
                Some((name, _)) => _ = self.aliases.insert(name.to_owned()),
                None if word.is_dynamic => _ = self.aliases.insert(String::new()),
                // `hash -p FILE NAME`
                None if names_files => _ = self.aliases.insert(word.text().to_owned()),
                None => {}
            }
        }
    }

    fn note_namerefs(&mut self, words: &[Word]) {
        let mut options = words.iter().filter(|word| word.text().starts_with('-'));
        if options.any(|word| word.text().contains('n'))
            || words.first().is_some_and(|word| word.text() == "nameref")
        {
            let names = words.iter().skip(1);
            let names = names.map(|word| word.text().split('=').next().unwrap_or_default());
            self.namerefs.extend(names.map(str::to_owned));
        }
    }

    fn note_integers(&mut self, words: &[Word]) {
        let is_integer = words.iter().any(|word| {
            word.may_be_option()
                || word.text().starts_with('-') && word.text().contains(['i', 'E', 'F'])
        });
        if is_integer
            || words
                .first()
                .is_some_and(|word| matches!(word.text(), "integer" | "float"))
        {
            let names = words
                .iter()
                .map(|word| word.text().split('=').next().unwrap_or_default())
                .filter(|name| is_name(name));
            self.integers.extend(names.map(str::to_owned));
        }
    }
}

/// Whether the input of a command is that of more than one.
pub(super) fn is_shared(words: &[Word]) -> bool {
    words.first().is_none_or(|word| {
        const ENDS: &[&str] = &["done", "fi", "esac", "end", "}", "coproc", "exec"];
        word.is_nothing() || word.is_function || ENDS.contains(&word.text())
    })
}

/// What a part of a test demands of the values in it.
fn clause_demands(words: &[Word]) -> Demands {
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.text()));
    let number = match has(ARITHMETIC_TESTS) || has(&["-t"]) {
        // `[` takes a whole number but in zsh.
        true if words.first().is_some_and(|word| word.text() == "[[") => Demands::NUMBER,
        true => Demands::PLAIN_NUMBER,
        false => Demands::NONE,
    };
    match has(&["-v", "-R"]) {
        true => number.and(Demands::VARIABLE_NAME),
        false => number,
    }
}
