//! What a command demands of values in its standard input.

use super::known::{is_architecture, look_up, name_of, wraps};
use super::runs::{Run, asks_for_shell, runs};
use super::table::{ENV_OPTIONS, PYTHON_CODE, Reads};
use super::{
    has_command_option, is_plain_module, module, opens_console, shell_demands, splits_words,
    takes_value,
};
use crate::vault::script;
use crate::vault::words::{Demands, Word};

/// Returns what a command that takes the words of its program from a file demands of it.
pub(in crate::vault) fn argument_file_demands(words: &[Word]) -> Demands {
    let is_file = |word: &Word| word.has_option('a') || word.text.starts_with("--arg-file");
    if words.iter().any(is_file) {
        xargs_demands(words)
    } else {
        Demands::NONE
    }
}

/// Returns what `xargs` demands of its input: that becomes arguments of the program it runs.
fn xargs_demands(words: &[Word]) -> Demands {
    let is_wrapper = words.first().is_some_and(|word| wraps(word.program()));
    let Some(at) = words
        .iter()
        .position(|word| word.program() == "xargs")
        .filter(|_| is_wrapper)
    else {
        return Demands::NONE;
    };
    let arguments = words.get(at + 1..).unwrap_or_default();
    let runs_wrapper = |word: &Word| wraps(word.program()) || word.is_unknown();
    let demands = |(reads, _): &Run<'_>| match reads {
        Reads::CodeAfter(..)
        | Reads::Client(..)
        | Reads::Editor(..)
        | Reads::Python
        | Reads::CodeAll
        | Reads::Filter
        | Reads::CodeEverywhere => Demands::SHELL.and(Demands::PROGRAM),
        _ => Demands::SHELL,
    };
    let runs = runs(words.get(at..).unwrap_or_default()).into_iter();
    let demands = runs.map(|run| demands(&run).read_by(name_of(words, run.1)));
    let demands = demands.fold(Demands::NONE, Demands::and);
    if arguments.iter().any(runs_wrapper) {
        demands.and(Demands::SHELL)
    } else {
        demands
    }
}

/// Returns what a command demands of values in its standard input.
pub(in crate::vault) fn input_demands(words: &[Word]) -> Demands {
    let is_shell = starts_shell(words) || has_entry_shell(words) || has_unknown_program(words);
    let demands = own_input_demands(words).and(xargs_demands(words));
    demands.and(if is_shell {
        Demands::SHELL
    } else {
        Demands::NONE
    })
}

/// Wrappers that run a shell when no program is named, and how many operands come before that.
const SHELL_STARTERS: &[(&str, usize)] = &[
    ("chroot", 1),
    ("arch-chroot", 1),
    ("unshare", 0),
    ("nsenter", 0),
    ("setpriv", 0),
    ("setarch", 1),
    ("fakeroot", 0),
    ("firejail", 0),
    ("pkexec", 0),
    ("run0", 0),
    ("dbus-run-session", 0),
    ("systemd-run", 0),
];

/// Programs that run a shell whatever else they are told.
const SHELLS_BY_NAME: &[&str] = &["newgrp", "nix-shell", "machinectl", "toolbox", "distrobox"];

/// Whether a container is told to start with a shell.
fn has_entry_shell(words: &[Word]) -> bool {
    words.windows(2).any(|pair| {
        let [option, next] = pair else { return false };
        let named = [option, next].map(look_up);
        option.text.starts_with("--entrypoint") && named.contains(&Some(Reads::Shell))
    })
}

/// Whether a wrapper among the words runs a shell of its own.
fn starts_shell(words: &[Word]) -> bool {
    let mut words = words
        .iter()
        .enumerate()
        .map(|(at, word)| (word, words.get(at + 1..)));
    words.any(|(word, after)| {
        let (program, after) = (word.program(), after.unwrap_or_default());
        let starter = SHELL_STARTERS.iter().find(|(name, _)| *name == program);
        let operands = starter.map(|(_, operands)| *operands);
        let operands = operands.or_else(|| is_architecture(program).then_some(0));
        SHELLS_BY_NAME.contains(&program)
            || matches!(program, "sudo" | "doas") && asks_for_shell(program, after)
            || matches!(program, "oc" | "kubectl") && after.iter().any(|word| word.text == "rsh")
            || operands.is_some_and(|operands| !names_program(after, operands))
    })
}

/// Whether a program is named for certain after so many other operands: what follows an option may
/// belong to that.
fn names_program(arguments: &[Word], operands: usize) -> bool {
    let mut before_is_option = false;
    let is_operand = |word: &Word| {
        let is_option = word.text.starts_with('-');
        let takes = is_option && word.text != "--" && !word.text.contains('=');
        !std::mem::replace(&mut before_is_option, takes) && !is_option && !word.may_split()
    };
    let found: Vec<bool> = arguments.iter().map(is_operand).collect();
    found.into_iter().filter(|found| *found).count() > operands
}

/// Whether a function of the script gets a program that is not known, which may be a shell.
fn has_unknown_program(words: &[Word]) -> bool {
    let is_count = |word: &&Word| !word.is_dynamic && word.text.bytes().all(|b| b.is_ascii_digit());
    let mut words = words.iter();
    words.next().is_some_and(|word| word.is_function)
        && words
            .find(|word| !is_count(word))
            .is_some_and(Word::is_unknown_program)
}

fn own_input_demands(words: &[Word]) -> Demands {
    let demands = runs(words)
        .into_iter()
        .map(|run| run_input(words, run).read_by(name_of(words, run.1)));
    demands.fold(Demands::NONE, Demands::and)
}

/// Returns what a program among the words of a command demands of its standard input.
fn run_input(words: &[Word], (program, arguments): Run<'_>) -> Demands {
    match program {
        Reads::Shell if !reads_input(arguments) => match code_word(arguments) {
            Some(code) => code_input(code),
            None if shell_demands(arguments, &Word::default()) == Demands::NONE => Demands::NONE,
            None => Demands::SHELL,
        },
        Reads::Shell | Reads::ShellAll => Demands::SHELL,
        Reads::Unknown => Demands::UNQUOTED,
        Reads::ShellInOption(ENV_OPTIONS) if splits_words(arguments) => Demands::ANY_CODE,
        Reads::ShellInOption(_) | Reads::Git => Demands::NONE,
        Reads::ShellAfter(letter) => match option_code(arguments, letter) {
            Some(code) => code_input(&code),
            None if has_input_code(words) => Demands::SHELL,
            None => Demands::NONE,
        },
        Reads::Python | Reads::CodeAfter(..) if opens_console(arguments) => Demands::PROGRAM,
        Reads::Python => match module(arguments) {
            Some(name) if is_plain_module(&name) => Demands::NONE,
            Some(_) => Demands::PROGRAM,
            None => run_input(words, (PYTHON_CODE, arguments)),
        },
        Reads::CodeAfter(letters, names) => {
            if has_code(arguments, letters, names) || has_script(arguments) {
                Demands::NONE
            } else {
                Demands::PROGRAM
            }
        }
        // Whatever else they are told.
        Reads::Client(..) | Reads::Editor(..) => Demands::PROGRAM,
        Reads::CodeAll | Reads::Filter if names_input(arguments) => Demands::PROGRAM,
        Reads::CodeAll | Reads::Filter => Demands::NONE,
        Reads::CodeEverywhere => Demands::PROGRAM,
    }
}

/// Letters of options of an interpreter that take nothing, and of those that take a text.
struct Letters {
    flags: &'static str,
    valued: &'static str,
}

fn letters_of(code: &[char], names: &[&str]) -> Letters {
    match code {
        ['c'] if names.is_empty() => Letters {
            flags: "uBqsOIEbPvx",
            valued: "WX",
        },
        // perl and ruby
        _ if code.contains(&'F') => Letters {
            flags: "nplaswiSTuU0123456789",
            valued: "MmIrCxdDF",
        },
        _ => Letters {
            flags: "",
            valued: "",
        },
    }
}

/// Whether arguments clearly hold a whole script, so that standard input is data.
pub(super) fn has_code(arguments: &[Word], code: &[char], names: &[&str]) -> bool {
    // Letters of modules, settings and the like.
    const PARTS: &[char] = &['M', 'm', 'F', 'd', 'v'];
    let known = letters_of(code, names);
    let mut is_sure = true;
    for word in arguments {
        let Some(letters) = word.text.strip_prefix('-') else {
            is_sure = !word.may_split();
            continue;
        };
        if is_sure && names.iter().any(|name| word.text.starts_with(name)) {
            return true;
        }
        let rest = letters.trim_start_matches(|c| known.flags.contains(c));
        match rest.chars().next() {
            Some(first) if code.contains(&first) && !PARTS.contains(&first) => {
                // Behind an option that may take it as a text it is none.
                return is_sure;
            }
            None => {}
            Some(first) => {
                let is_glued = known.valued.contains(first) && rest.len() > 1;
                is_sure = is_glued || is_long_flag(word);
            }
        }
        if is_interactive(word) && !known.flags.contains('i') {
            return false;
        }
    }
    false
}

fn is_long_flag(word: &Word) -> bool {
    let text = word.text();
    text.starts_with("--")
        && (text.contains('=')
            || text.starts_with("--no-")
            || matches!(
                text,
                "--batch" | "--quiet" | "--silent" | "--slave" | "--vanilla"
            ))
}

/// Whether an option makes an interpreter read its input after the script.
fn is_interactive(word: &Word) -> bool {
    word.has_option('i') || word.text == "--interactive"
}

/// Whether arguments name a script, so that standard input is data.
pub(super) fn has_script(arguments: &[Word]) -> bool {
    // What follows an option may belong to it, unless it looks like a script.
    const ENDINGS: &[&str] = &[
        ".py", ".pl", ".rb", ".js", ".mjs", ".cjs", ".ts", ".php", ".lua", ".R", ".r", ".jl",
    ];
    const LOADERS: &[&str] = &[
        "-r",
        "--require",
        "-I",
        "--import",
        "--loader",
        "-l",
        "-S",
        "-E",
        "-W",
        "-X",
        "-M",
    ];
    let mut option = None;
    // `uv run -`
    let is_run = arguments.first().is_some_and(|word| word.text == "run");
    for word in arguments.get(usize::from(is_run)..).unwrap_or_default() {
        let before = std::mem::take(&mut option);
        let is_named = ENDINGS.iter().any(|ending| word.text.ends_with(ending));
        if is_input(word) || is_interactive(word) || may_be_input(word) {
            return false;
        } else if word.text.starts_with('-') {
            option = Some(word.text());
        } else if before.is_none_or(|option| is_named && !LOADERS.contains(&option)) {
            return true;
        }
    }
    false
}

/// Whether a word is an expansion of which nothing is known: `f=-; python3 $f`.
fn may_be_input(word: &Word) -> bool {
    word.is_dynamic && !word.text.contains('/') && !word.text.contains('.')
}

/// Whether arguments say that the program of `awk` or `sed` comes from standard input.
fn names_input(arguments: &[Word]) -> bool {
    let (mut follows_option, mut follows_file) = (false, false);
    arguments.iter().any(|word| {
        let follows = std::mem::replace(&mut follows_option, word.text.starts_with('-'));
        let is_file_option = ["--file", "--from-file", "--exec", "--include"]
            .iter()
            .any(|option| word.text.starts_with(option))
            || word.text.starts_with('-') && word.text.ends_with(['f', 'E', 'i']);
        if std::mem::replace(&mut follows_file, is_file_option) && may_be_input(word) {
            return true;
        }
        if is_file_option && word.is_dynamic && may_be_input(word) {
            return true;
        }
        let is_glued =
            word.text.starts_with('-') && word.text.len() > 2 && word.text.ends_with('-');
        follows && is_input(word)
            || is_glued
            || word.text.starts_with('-')
                && ["/dev/", "/proc/"]
                    .iter()
                    .any(|path| word.text.contains(path))
    })
}

/// Returns the text after `-c` among the arguments of a shell.
pub(super) fn code_word(arguments: &[Word]) -> Option<&Word> {
    let mut words = arguments.iter();
    let mut has_option = false;
    while let Some(word) = words.next() {
        if word.text.starts_with(['-', '+']) && word.text.len() > 1 {
            has_option |= word.has_option('c');
            if takes_value(&word.text) {
                words.next();
            }
        } else {
            return Some(word).filter(|_| has_option);
        }
    }
    None
}

/// Returns the code after, or in, the option of a program that has it run by a shell.
pub(super) fn option_code(arguments: &[Word], letter: char) -> Option<Word> {
    let at = arguments
        .iter()
        .position(|word| has_command_option(word, letter))?;
    let option = arguments.get(at)?;
    let glued = match option.text.split_once('=') {
        Some((_, code)) => code,
        None if option.text.starts_with("--") => "",
        None => option.text.split_once(letter).map_or("", |(_, code)| code),
    };
    if glued.is_empty() {
        return arguments.get(at + 1).cloned();
    }
    let text = glued.to_owned();
    Some(Word {
        text,
        expansions: Vec::new(),
        ..option.clone()
    })
}

/// Returns what code that a shell runs demands of the standard input.
fn code_input(code: &Word) -> Demands {
    let any = Demands::SHELL.and(Demands::PROGRAM);
    if code.is_dynamic || code.is_cut {
        return any;
    }
    script::reads(code.text()).unwrap_or(any)
}

/// Whether a program that takes shell code after an option also takes it from standard input.
fn has_input_code(words: &[Word]) -> bool {
    const READERS: &[&str] = &["su", "runuser", "script"];
    words.iter().any(|word| READERS.contains(&word.program()))
}

/// Whether a shell is told to read its script from standard input.
pub(super) fn reads_input(arguments: &[Word]) -> bool {
    arguments
        .iter()
        .any(|word| word.has_option('s') || is_input(word))
}

/// Whether a word names an open descriptor instead of a file.
fn is_input(word: &Word) -> bool {
    matches!(word.text(), "-" | "/dev/stdin")
        || word.text.starts_with("/dev/fd/")
        || word.text.starts_with("/proc/")
}
