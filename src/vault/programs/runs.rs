//! Which programs that read code the words of a command run, themselves or by others.
//!
//! A name that is not all written out may become any program: then everything after it counts as
//! code of a shell. Who runs another program is known by the tables; where their options leave
//! open which word names it, every word that is not written out may.

use super::known::{look_up, wraps};
use super::table::{BUILTINS, Reads};
use super::{Word, is_name, without_prefixes};

/// A program that reads code, and its arguments so far.
pub(super) type Run<'a> = (Reads, &'a [Word]);

/// How a program that runs another is called.
struct Form {
    names: &'static [&'static str],
    /// Letters of options that take nothing, and of those that take the next word.
    flags: &'static str,
    valued: &'static str,
    /// The same for long options that take the next word.
    long_valued: &'static [&'static str],
    /// Words before the program that are no options.
    positionals: usize,
    /// Words of which one comes before the program; those behind none of them are data.
    starters: &'static [&'static str],
}

const PLAIN: Form = Form {
    names: &[],
    flags: "",
    valued: "",
    long_valued: &[],
    positionals: 0,
    starters: &[],
};

/// Long options that take nothing, whichever wrapper they are of.
const LONG_FLAGS: &[&str] = &[
    "--rm",
    "--init",
    "--detach",
    "--interactive",
    "--tty",
    "--stdin",
    "--privileged",
    "--preserve-env",
    "--preserve-status",
    "--foreground",
    "--non-interactive",
    "--ignore-environment",
    "--null",
    "--no-run-if-empty",
];

const CONTAINER_OPTIONS: &[&str] = &[
    "--name",
    "--user",
    "--env",
    "--env-file",
    "--volume",
    "--mount",
    "--workdir",
    "--network",
    "--publish",
    "--label",
    "--platform",
    "--file",
    "--project-name",
    "--context",
    "--namespace",
    "--container",
    "--kubeconfig",
];

/// What is looked for and how, with one word after it.
const FIND_OPTIONS: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-type",
    "-maxdepth",
    "-mindepth",
    "-newer",
    "-user",
    "-group",
    "-perm",
    "-size",
    "-mtime",
    "-mmin",
];

/// The forms that are known; the options of other wrappers may all take a word or none.
const FORMS: &[Form] = &[
    Form {
        names: &["sudo"],
        flags: "AbEHnPSKkilsB",
        valued: "ughpCrtDRTU",
        long_valued: &["--user", "--group", "--host", "--prompt", "--chdir"],
        ..PLAIN
    },
    Form {
        names: &["doas"],
        flags: "nLs",
        valued: "uC",
        ..PLAIN
    },
    Form {
        names: &["env"],
        flags: "i0v",
        valued: "uCP",
        long_valued: &["--unset", "--chdir"],
        ..PLAIN
    },
    Form {
        names: &["nohup", "setsid", "command", "builtin", "exec"],
        flags: "cfwpv",
        ..PLAIN
    },
    Form {
        names: &["time"],
        flags: "vpaqV",
        valued: "fo",
        long_valued: &["--format", "--output"],
        ..PLAIN
    },
    Form {
        names: &["nice"],
        flags: "0123456789",
        valued: "n",
        long_valued: &["--adjustment"],
        ..PLAIN
    },
    Form {
        names: &["ionice"],
        flags: "t",
        valued: "cn",
        ..PLAIN
    },
    Form {
        names: &["timeout"],
        flags: "v",
        valued: "ks",
        long_valued: &["--kill-after", "--signal"],
        positionals: 1,
        ..PLAIN
    },
    Form {
        names: &["chrt", "chroot", "taskset"],
        flags: "apcbfior",
        positionals: 1,
        ..PLAIN
    },
    Form {
        names: &["flock"],
        flags: "snxuoe",
        valued: "wE",
        positionals: 1,
        ..PLAIN
    },
    Form {
        names: &["strace"],
        flags: "fFqrtTvxyiCcdw",
        valued: "eopsaEuPIOSbX",
        ..PLAIN
    },
    Form {
        names: &["stdbuf"],
        valued: "ioe",
        ..PLAIN
    },
    Form {
        names: &["sshpass"],
        flags: "ev",
        valued: "fdpP",
        ..PLAIN
    },
    Form {
        names: &["xargs"],
        flags: "0rtxpo",
        valued: "InPLdEsa",
        long_valued: &["--max-args", "--max-procs", "--delimiter", "--arg-file"],
        ..PLAIN
    },
    Form {
        names: &["find"],
        long_valued: FIND_OPTIONS,
        starters: &["-exec", "-execdir", "-ok", "-okdir"],
        ..PLAIN
    },
    Form {
        names: &["docker", "podman", "nerdctl", "docker-compose"],
        flags: "itdTP",
        valued: "evwulpfmHc",
        long_valued: CONTAINER_OPTIONS,
        positionals: 1,
        starters: &["exec", "run"],
    },
    Form {
        names: &["kubectl", "oc"],
        flags: "itq",
        valued: "ncf",
        long_valued: CONTAINER_OPTIONS,
        positionals: 1,
        starters: &["exec", "run", "debug"],
    },
];

/// Returns the programs that read code among those a command runs.
pub(super) fn runs(words: &[Word]) -> Vec<Run<'_>> {
    let mut found = Vec::new();
    if let Some((first, rest)) = without_prefixes(words).split_first() {
        if first.is_unknown_program() {
            // `$SHELL -c ...`, `b?sh -c ...`, or whatever else it may become.
            found.push((Reads::Unknown, rest));
        } else if is_wrapper(first) {
            found.extend(look_up(first).map(|reads| (reads, rest)));
            wrapped(Walk::new(first.program()), rest, &mut found);
            found.extend(named(rest).filter(|run| is_shell_with_code(*run)));
        } else {
            program(first, rest, &mut found);
        }
    }
    if found.len() > MAX_RUNS {
        found.truncate(MAX_RUNS);
        found.push((Reads::ShellAll, &[]));
        found.push((Reads::CodeEverywhere, &[]));
    }
    found
}

/// Whether the next word may name the program that a command runs, itself or by a wrapper.
pub(in crate::vault) fn names_program(words: &[Word]) -> bool {
    let Some((first, rest)) = words.split_first() else {
        return true;
    };
    if !is_wrapper(first) {
        return false;
    }
    let mut walk = Walk::new(first.program());
    for word in rest {
        let names_wrapper = wraps(word.program());
        match walk.step(word) {
            Meaning::Program if !names_wrapper => return false,
            Meaning::Program => walk = Walk::new(word.program()),
            Meaning::Candidate if names_wrapper => walk = Walk::loose(),
            Meaning::Unknown | Meaning::Candidate | Meaning::Other => {}
        }
    }
    !walk.takes && walk.is_open()
}

/// Returns the words of the program that a wrapper runs, from its name on, as far as it is known which one that is;
/// nothing for what is no wrapper.
pub(super) fn wrapped_program(words: &[Word]) -> Option<Option<&[Word]>> {
    let (first, rest) = words.split_first()?;
    if !wraps(first.program()) {
        return None;
    }
    let mut walk = Walk::new(first.program());
    for (at, word) in rest.iter().enumerate() {
        match walk.step(word) {
            Meaning::Program => return Some(rest.get(at..)),
            Meaning::Unknown => return Some(None),
            Meaning::Candidate | Meaning::Other => {}
        }
    }
    Some(None)
}

/// Whether the next word of a wrapper is its own option or operand, and not what an option is known to take.
pub(super) fn is_open_wrapper(words: &[Word]) -> bool {
    let Some((first, rest)) = words
        .split_first()
        .filter(|(first, _)| wraps(first.program()))
    else {
        return false;
    };
    // `find -exec PROGRAM`
    let is_started = |word: &Word| {
        let starters = ["-exec", "-execdir", "-ok", "-okdir"];
        starters.contains(&word.text()) && !word.is_dynamic
    };
    if rest.iter().any(is_started) {
        return false;
    }
    let mut walk = Walk::new(first.program());
    let is_named = rest
        .iter()
        .any(|word| matches!(walk.step(word), Meaning::Program | Meaning::Unknown));
    !is_named && !walk.takes
}

/// Programs of one command that are looked at one by one.
const MAX_RUNS: usize = 16;

/// Adds a program that a command runs, and those that it may run in turn.
fn program<'a>(word: &Word, rest: &'a [Word], found: &mut Vec<Run<'a>>) {
    let reads = look_up(word);
    found.extend(reads.map(|reads| (reads, rest)));
    if word.is_function {
        found.extend(named(rest));
        found.extend(unknown_with_code(rest));
    } else if match reads {
        None => !BUILTINS.contains(&word.text()),
        Some(reads) => matches!(
            reads,
            Reads::ShellInOption(_) | Reads::ShellAfter(_) | Reads::Git
        ),
    } {
        found.extend(named(rest).filter(|run| has_code(*run)));
    }
}

/// What starts with a dash is an option of `time` when that is a program.
pub(in crate::vault) fn is_wrapper(word: &Word) -> bool {
    wraps(word.program()) || word.text.starts_with('-')
}

/// Adds what a wrapper with these arguments runs, and what the wrappers do that it runs.
fn wrapped<'a>(mut walk: Walk, rest: &'a [Word], found: &mut Vec<Run<'a>>) {
    for (at, word) in rest.iter().enumerate() {
        let after = without_end(rest.get(at + 1..).unwrap_or_default());
        let names_wrapper = wraps(word.program());
        match walk.step(word) {
            Meaning::Unknown => {
                found.push((Reads::Unknown, after));
                walk = Walk::loose();
            }
            Meaning::Program if names_wrapper => {
                found.extend(look_up(word).map(|reads| (reads, after)));
                walk = Walk::new(word.program());
            }
            Meaning::Program => return program(word, after, found),
            // The directory, no builtin.
            Meaning::Candidate if word.text == "." => {}
            Meaning::Candidate => {
                let before = at.checked_sub(1).and_then(|at| rest.get(at));
                let is_named = word.text.starts_with('-')
                    || before.is_some_and(|before| before.text == "--entrypoint");
                found.extend(look_up(word).map(|reads| match reads {
                    // Named by an option, perhaps with an image before its arguments.
                    Reads::Shell if is_named => (Reads::ShellAfter('c'), after),
                    reads => (reads, after),
                }));
                if names_wrapper {
                    walk = Walk::loose();
                }
            }
            Meaning::Other => {}
        }
    }
}

/// Returns the words before the one that ends what `find` runs.
fn without_end(words: &[Word]) -> &[Word] {
    let end = words.iter().position(|word| word.text == ";");
    words.get(..end.unwrap_or(words.len())).unwrap_or_default()
}

/// Returns the programs that these words name.
fn named(words: &[Word]) -> impl Iterator<Item = Run<'_>> {
    let run = |(at, word): (usize, &Word)| {
        let rest = words.get(at + 1..)?;
        Some((look_up(word).filter(|_| word.may_run(rest))?, rest))
    };
    words.iter().enumerate().filter_map(run)
}

/// Returns what a function may run that is given by an expansion and has an option for code.
fn unknown_with_code(words: &[Word]) -> Option<Run<'_>> {
    let at = words.iter().position(Word::is_unknown_program)?;
    let program = words.get(at)?;
    let after = words.get(at + 1..)?;
    let is_code = |word: &Word| {
        ['c', 'e', 'E', 'r']
            .iter()
            .any(|letter| word.has_option(*letter))
            // `f $program $options`
            || program.may_split() && word.may_split() && word.text.is_empty()
    };
    after.iter().any(is_code).then_some((Reads::Unknown, after))
}

/// Whether it is a shell with code of its own, or with nothing but options.
fn is_shell_with_code((reads, arguments): Run<'_>) -> bool {
    let is_option = |word: &Word| word.text.starts_with('-');
    reads == Reads::Shell && (has_code((reads, arguments)) || arguments.iter().all(is_option))
}

/// Whether `sudo` or `doas` with these arguments runs a shell.
pub(super) fn asks_for_shell(program: &str, arguments: &[Word]) -> bool {
    let Some(form) = FORMS.iter().find(|form| form.names.contains(&program)) else {
        return false;
    };
    let mut may_take = false;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if !word.text.starts_with('-') {
            if is_setting(word) || std::mem::take(&mut may_take) {
                continue;
            }
            return false;
        }
        let takes = form.takes(word);
        may_take = !takes && !form.is_flag(word);
        let flags = word.text.split(|c| form.valued.contains(c)).next();
        let is_short = !word.text.starts_with("--");
        if is_short && flags.is_some_and(|flags| flags.contains(['i', 's']))
            || word.text.starts_with("--lo")
            || word.text.starts_with("--sh")
        {
            return true;
        }
        if takes {
            words.next();
        }
    }
    false
}

/// Whether a program that may be one, or just a word, has an option for code.
fn has_code((reads, arguments): Run<'_>) -> bool {
    let has = |letter| arguments.iter().any(|word| word.has_option(letter));
    match reads {
        // `$options` may be one.
        Reads::Shell => has('c') || arguments.iter().any(Word::may_be_flags),
        Reads::ShellAfter(letter) => has(letter),
        Reads::CodeAfter(..) | Reads::Python | Reads::Client(..) => true,
        _ => false,
    }
}

/// What a word among the arguments of a wrapper is.
enum Meaning {
    /// Perhaps the name of the program, or more than one word.
    Unknown,
    /// The name of the program, written out.
    Program,
    /// Perhaps the name of the program.
    Candidate,
    /// An option, its value, or something else before the program.
    Other,
}

/// A walk over the arguments of a wrapper up to the program it runs.
struct Walk {
    form: &'static Form,
    /// Whether the options so far were all known.
    is_sure: bool,
    has_started: bool,
    /// A word was seen that says what the wrapper does, and it starts no program.
    does_other: bool,
    positionals: usize,
    /// Whether the first of these is an image, which mostly runs the program it is called like.
    names_image: bool,
    /// Whether the last option takes the next word, and whether it may.
    takes: bool,
    may_take: bool,
}

impl Walk {
    fn new(wrapper: &str) -> Self {
        let known = FORMS.iter().find(|form| form.names.contains(&wrapper));
        known.map_or_else(Self::loose, |form| Self {
            is_sure: true,
            ..Self::of(form)
        })
    }

    /// A walk on which every word may be the name of a program.
    fn loose() -> Self {
        Self::of(&PLAIN)
    }

    fn of(form: &'static Form) -> Self {
        Self {
            form,
            is_sure: false,
            has_started: form.starters.is_empty(),
            does_other: false,
            positionals: form.positionals,
            names_image: false,
            takes: false,
            may_take: false,
        }
    }

    fn step(&mut self, word: &Word) -> Meaning {
        if word.is_any() {
            return Meaning::Unknown;
        }
        // An expansion here is one word, or the script means something else than it says.
        if std::mem::take(&mut self.takes) {
            return Meaning::Other;
        }
        if word.text == "--" && !word.is_dynamic {
            self.may_take = false;
            return Meaning::Other;
        }
        if word.text.is_empty() && self.form.is_search() && word.may_split() {
            // `find $dir`, and not `find . $more`.
            let is_first = !std::mem::replace(&mut self.does_other, true);
            return if is_first {
                Meaning::Other
            } else {
                Meaning::Unknown
            };
        }
        if self.form.starters.contains(&word.text()) && !word.is_dynamic {
            (self.has_started, self.may_take) = (true, false);
            self.names_image = word.text == "run";
            return Meaning::Other;
        }
        self.does_other |= self.form.is_search();
        if matches!(word.text(), "-") && word.may_split() {
            return Meaning::Unknown;
        }
        if word.text.starts_with('-') {
            self.takes = self.form.takes(word);
            self.may_take = !self.takes && !self.form.is_flag(word);
            // `--entrypoint=sh`
            return Meaning::Candidate;
        }
        if is_setting(word) || self.form.is_search() && !self.has_started {
            return Meaning::Other;
        }
        self.operand(word)
    }

    /// Whether nothing else comes before the program.
    fn is_open(&self) -> bool {
        self.has_started && (self.positionals == 0 || !self.is_sure)
    }

    fn operand(&mut self, word: &Word) -> Meaning {
        let may_be_value = std::mem::take(&mut self.may_take);
        if !self.has_started {
            let is_unknown = word.is_dynamic && !self.does_other;
            self.does_other |= !word.is_dynamic && !may_be_value;
            return match (is_unknown, self.does_other) {
                (true, _) => Meaning::Unknown,
                (_, true) => Meaning::Other,
                (_, false) => Meaning::Candidate,
            };
        }
        self.is_sure &= !may_be_value;
        if self.is_sure && self.positionals > 0 {
            self.positionals -= 1;
            if self.names_image {
                Meaning::Candidate
            } else {
                Meaning::Other
            }
        } else if word.is_unknown_program() {
            Meaning::Unknown
        } else if self.is_sure && !self.form.is_search() {
            Meaning::Program
        } else {
            // A search runs more than one program.
            self.has_started = !self.form.is_search();
            Meaning::Candidate
        }
    }
}

impl Form {
    /// Whether it is `find`, whose programs stand after options.
    fn is_search(&self) -> bool {
        self.starters.iter().any(|word| word.starts_with('-'))
    }

    /// Whether an option takes the next word.
    fn takes(&self, word: &Word) -> bool {
        let is_last = |rest: &str| rest.len() == 1 && rest.starts_with(|c| self.valued.contains(c));
        !word.is_dynamic
            && (self.long_valued.contains(&word.text())
                || self.after_flags(word).is_some_and(is_last))
    }

    /// Whether an option surely takes nothing more.
    fn is_flag(&self, word: &Word) -> bool {
        let is_glued = |rest: &str| rest.starts_with(|c| self.valued.contains(c));
        match self.after_flags(word) {
            Some("") => !word.is_dynamic,
            Some(rest) => is_glued(rest) && (rest.len() > 1 || word.is_dynamic),
            None => word.text.contains('=') || LONG_FLAGS.contains(&word.text()),
        }
    }

    /// Returns the letters of an option from the first on that is no flag: that may take the rest.
    fn after_flags<'a>(&self, word: &'a Word) -> Option<&'a str> {
        let letters = word.text().strip_prefix('-')?;
        (!letters.starts_with('-')).then(|| letters.trim_start_matches(|c| self.flags.contains(c)))
    }
}

/// Whether a word is `NAME=`, with any value.
fn is_setting(word: &Word) -> bool {
    let name = word.text.split_once('=').map(|(name, _)| name);
    name.is_some_and(is_name)
}
