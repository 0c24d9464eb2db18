//! What a command demands of values in its standard input.

use super::runs::{Run, runs};
use super::table::{PYTHON_CODE, Reads, WRAPPERS};
use super::{
    has_command_option, is_code_option, is_plain_module, module, shell_demands, takes_value,
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
    let is_wrapper = words
        .first()
        .is_some_and(|word| WRAPPERS.contains(&word.program()));
    let Some(at) = words
        .iter()
        .position(|word| word.program() == "xargs")
        .filter(|_| is_wrapper)
    else {
        return Demands::NONE;
    };
    let arguments = words.get(at + 1..).unwrap_or_default();
    let runs_wrapper = |word: &Word| WRAPPERS.contains(&word.program()) || word.is_unknown();
    let demands = |(reads, _): Run<'_>| match reads {
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
    let demands = runs.map(demands).fold(Demands::NONE, Demands::and);
    if arguments.iter().any(runs_wrapper) {
        demands.and(Demands::SHELL)
    } else {
        demands
    }
}

/// Returns what a command demands of values in its standard input.
pub(in crate::vault) fn input_demands(words: &[Word]) -> Demands {
    own_input_demands(words).and(xargs_demands(words))
}

fn own_input_demands(words: &[Word]) -> Demands {
    let demands = runs(words).into_iter().map(|run| run_input(words, run));
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
        Reads::ShellInOption(_) => Demands::NONE,
        Reads::ShellAfter(letter) => match option_code(arguments, letter) {
            Some(code) => code_input(&code),
            None if has_input_code(words) => Demands::SHELL,
            None => Demands::NONE,
        },
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
        Reads::Client(letters, names) if has_code(arguments, letters, names) => Demands::NONE,
        Reads::Client(..) | Reads::Editor(..) => Demands::PROGRAM,
        Reads::CodeAll | Reads::Filter if names_input(arguments) => Demands::PROGRAM,
        Reads::CodeAll | Reads::Filter => Demands::NONE,
        Reads::CodeEverywhere => Demands::PROGRAM,
    }
}

/// Whether arguments hold a whole script, so that standard input is data.
fn has_code(arguments: &[Word], letters: &[char], names: &[&str]) -> bool {
    // Letters of modules, settings and the like.
    const PARTS: &[char] = &['M', 'm', 'F', 'd', 'v'];
    let letters: Vec<char> = letters
        .iter()
        .copied()
        .filter(|c| !PARTS.contains(c))
        .collect();
    let mut arguments = arguments.iter();
    arguments.any(|word| is_code_option(word, &letters, names))
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
    ];
    let mut option = None;
    for word in arguments {
        let before = std::mem::take(&mut option);
        let is_named = ENDINGS.iter().any(|ending| word.text.ends_with(ending));
        if is_input(word) {
            return false;
        } else if word.text.starts_with('-') {
            option = Some(word.text());
        } else if before.is_none_or(|option| is_named && !LOADERS.contains(&option)) {
            return true;
        }
    }
    false
}

/// Whether arguments say that the program of `awk` or `sed` comes from standard input.
fn names_input(arguments: &[Word]) -> bool {
    let mut follows_option = false;
    arguments.iter().any(|word| {
        let follows = std::mem::replace(&mut follows_option, word.text.starts_with('-'));
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
fn code_word(arguments: &[Word]) -> Option<&Word> {
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
fn option_code(arguments: &[Word], letter: char) -> Option<Word> {
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
fn reads_input(arguments: &[Word]) -> bool {
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
