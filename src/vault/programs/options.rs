//! What a command demands of a value that may become an option, an operator or the name of a program.

use super::input::{self, has_script};
use super::runs::{Run, is_open_wrapper, wrapped_program};
use super::table::{self, BUILTINS, ENV_OPTIONS, PYTHON_CODE, Reads};
use super::{DECLARATIONS, module, own_argument_demands};
use crate::vault::words::{Demands, Word};

/// Returns what a program demands of a value at the start of a word: some of its options are code.
pub(super) fn operand_demands((program, arguments): Run<'_>, current: &Word) -> Demands {
    if program == Reads::ShellInOption(ENV_OPTIONS)
        && current.text.is_empty()
        && !arguments.iter().any(names_command)
    {
        // `NAME=VALUE` of any name.
        return Demands::SHELL;
    }
    let ends_options = arguments
        .iter()
        .any(|word| word.text == "--" && !word.is_dynamic);
    if ends_options {
        return Demands::NONE;
    }
    if names_any_option(program, current) {
        return Demands::forbidden(NAMES_OPTION);
    }
    // `{VALUE,x}`, `$dash$x`
    let begins = current.expansions.first() == Some(&0) || current.text.starts_with('{');
    if !current.text.is_empty() && !begins {
        return Demands::NONE;
    }
    match program {
        Reads::CodeAfter(letters, names) if input::has_code(arguments, letters, names) => {
            let reads_names = |word: &Word| word.has_option('n') || word.has_option('p');
            // Perl opens what it is given, `command |` too.
            match program == table::PERL && arguments.iter().any(reads_names) {
                true => Demands::SHELL,
                false => Demands::NONE,
            }
        }
        Reads::CodeAfter(..) | Reads::Python if has_script(arguments) => Demands::NONE,
        Reads::Python if module(arguments).is_some() || has_python_code(arguments) => Demands::NONE,
        Reads::CodeAfter(..)
        | Reads::Python
        | Reads::Client(..)
        | Reads::Editor(..)
        | Reads::Git
        | Reads::ShellAfter(_) => Demands::OPERAND,
        Reads::ShellInOption(ENV_OPTIONS) if arguments.iter().any(names_command) => Demands::NONE,
        Reads::ShellInOption(_) => Demands::OPERAND,
        Reads::Shell
        | Reads::ShellAll
        | Reads::Unknown
        | Reads::CodeAll
        | Reads::Filter
        | Reads::CodeEverywhere => Demands::NONE,
    }
}

/// Whether a word of `env` is the program it runs.
fn names_command(word: &Word) -> bool {
    !word.text.starts_with('-') && !word.text.contains('=')
}

/// Returns what a wrapper demands of a value among its own words, before the program it runs.
pub(super) fn wrapper_demands(words: &[Word], current: &Word) -> Demands {
    let is_option = matches!(current.text(), "" | "-" | "--");
    let runs_code = |word: &Word| RUNNERS.contains(&word.program());
    if !is_option || !words.first().is_some_and(runs_code) || !is_open_wrapper(words) {
        return Demands::NONE;
    }
    match current.text() {
        "" if words.first().is_some_and(takes_settings) => Demands::SHELL,
        "" if words.iter().any(|word| word.text == "--") => Demands::NONE,
        "" => Demands::OPERAND,
        _ => Demands::forbidden(NAMES_OPTION),
    }
}

/// Whether a wrapper takes `NAME=VALUE` before the program.
fn takes_settings(wrapper: &Word) -> bool {
    matches!(wrapper.program(), "env" | "genv" | "sudo" | "doas")
}

/// Returns what a word `NAME=` demands of a value when an expansion stands in the name, which may be any.
pub(super) fn unknown_setting_demands(words: &[Word], current: &Word) -> Demands {
    let Some((name, _)) = current.text.split_once('=') else {
        return Demands::NONE;
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_unknown = current.expansions.iter().any(|at| *at <= name.len());
    match is_unknown && name.chars().all(is_part) && is_open_wrapper(words) {
        true => Demands::SHELL,
        false => Demands::NONE,
    }
}

/// Wrappers of this machine, with options that run a program or a shell.
const RUNNERS: &[&str] = &[
    "sudo", "doas", "env", "strace", "ltrace", "xargs", "find", "time", "nice", "ionice", "chrt",
    "timeout", "stdbuf", "setsid", "nohup", "chroot", "flock", "unshare", "nsenter", "taskset",
    "prlimit", "script", "su", "runuser", "command", "builtin", "exec", "setpriv", "setarch",
];

const NAMES_OPTION: &str = "behind a dash, where it names the option";

/// Whether a value after the current word would name the option, or be among the letters of options.
fn names_any_option(program: Reads, current: &Word) -> bool {
    let is_bundle = |text: &str| {
        text.strip_prefix('-')
            .is_some_and(|letters| letters.chars().all(|c| c.is_ascii_alphabetic()))
    };
    match program {
        Reads::Client(..) | Reads::Editor(..) | Reads::ShellAfter(_) | Reads::Git => {
            matches!(current.text(), "-" | "--")
        }
        Reads::CodeAfter(..) | Reads::Python | Reads::ShellInOption(_) => {
            current.text == "--" || is_bundle(&current.text) && !current.text.ends_with('I')
        }
        _ => false,
    }
}

/// Whether further words of a command may be its options, its operators or the program it runs, so that
/// an expansion without quotes must be one word.
pub(in crate::vault) fn reads_words(words: &[Word]) -> bool {
    const PLAIN: &[&str] = &[
        "", ":", "true", "false", "echo", "printf", "print", "for", "select", "foreach", "case",
        "[[",
    ];
    let Some(first) = words.first() else {
        return false;
    };
    if first.is_unknown_program() || first.is_nothing() {
        return false;
    }
    if let Some(inner) = wrapped_program(words) {
        return inner.is_none_or(|inner| {
            let declares = |word: &Word| DECLARATIONS.contains(&word.text());
            inner.first().is_some_and(declares) || reads_words(inner)
        });
    }
    if BUILTINS.contains(&first.text()) {
        return !PLAIN.contains(&first.text());
    }
    let demands = own_argument_demands(words, &Word::default());
    demands.operand || demands.is_code()
}

fn has_python_code(arguments: &[Word]) -> bool {
    match PYTHON_CODE {
        Reads::CodeAfter(letters, names) => input::has_code(arguments, letters, names),
        _ => false,
    }
}
