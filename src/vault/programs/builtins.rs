//! What the shell's own commands demand of a value among their words.

use super::DECLARATIONS;
use super::names::{BASH_BUILTINS, ZSH_BUILTINS, ZSH_FUNCTIONS, ZSH_PREFIXES};
use super::table::BUILTINS;
use crate::vault::words::{Demands, Word, is_name};

/// Returns what a builtin demands of a value that is not known to take any text as it is.
pub(super) fn unknown_builtin_demands(command: &str) -> Demands {
    let is_loaded = || {
        ZSH_BUILTINS.contains(&command)
            || ZSH_FUNCTIONS.contains(&command)
            || ZSH_PREFIXES.iter().any(|start| command.starts_with(start))
    };
    let known = BASH_BUILTINS.iter().find(|name| **name == command);
    if known.is_some() {
        Demands::ANY_CODE.read_by(known.copied())
    } else if is_loaded() {
        Demands::ZSH
    } else {
        Demands::NONE
    }
}

/// Whether a word starts no program when it starts a command: a builtin of bash or zsh, or a word of their grammar. What
/// is a program elsewhere is none of them.
pub(super) fn is_own_command(word: &str) -> bool {
    /// Those of zsh that no system has as programs.
    const OF_ZSH: &[&str] = &[
        "autoload",
        "bindkey",
        "emulate",
        "functions",
        "setopt",
        "unfunction",
        "unhash",
        "unsetopt",
        "vared",
        "where",
        "zle",
        "zmodload",
        "zparseopts",
    ];
    BUILTINS.contains(&word) || BASH_BUILTINS.contains(&word) || OF_ZSH.contains(&word)
}

/// Returns what a builtin demands of a value in the word `current` after its arguments so far; nothing when
/// it is none that matters.
pub(super) fn builtin_demands(
    command: &str,
    arguments: &[Word],
    current: &Word,
) -> Option<Demands> {
    let last = arguments.last().map_or("", Word::text);
    let name = Demands::VARIABLE_NAME;
    let has = |letter| arguments.iter().any(|word| word.has_option(letter));
    let demands = match command {
        "trap" | "alias" | "bind" | "complete" | "compgen" | "zle" | "zstyle" | "fc"
        | "history" | "sched" => Demands::forbidden("in code that runs later"),
        "r" => Demands::forbidden("in code that runs later"),
        "print" if has('s') || has('z') => Demands::forbidden("in code that runs later"),
        // `o=-P; print $o ...`
        "print" if begins_unknown(arguments) => Demands::FORMAT.and(Demands::ZSH),
        "print" if last.starts_with('-') && has('f') => Demands::FORMAT,
        "print" if calculates(printed_format(arguments)) => Demands::ZSH,
        "print" if last.starts_with('-') && last.contains(['C', 'u', 'v', 'x', 'X']) => {
            Demands::ZSH
        }
        "set" if has('A') || begins_unknown(arguments) => Demands::ZSH,
        "print" if has('P') => Demands::forbidden("in text that is expanded as a prompt"),
        "print" if has('p') => Demands::SHELL.and(Demands::PROGRAM),
        "exec" if last.starts_with('-') && last.ends_with('a') => Demands::SHELL,
        "wait" if last == "-p" || current.text.starts_with("-p") => name,
        "repeat" if arguments.is_empty() => Demands::PLAIN_NUMBER,
        "let" => Demands::NUMBER,
        name if CALCULATING.contains(&name) => Demands::PLAIN_NUMBER,
        "unset" | "read" | "mapfile" | "readarray" | "getopts" | "vared" | "function"
        | "nameref" => name,
        "for" | "select" | "foreach" if arguments.is_empty() => name,
        "printf" if last == "-v" || current.text.starts_with("-v") => name,
        "printf" if format(arguments).is_none() => Demands::FORMAT,
        "printf" if begins_unknown(arguments) => Demands::BACKSLASH.and(Demands::ZSH),
        "echo" if has('e') => Demands::FORMAT,
        // `o=-e; echo $o ...`
        "echo" if begins_unknown(arguments) => Demands::ECHO.and(Demands::BACKSLASH),
        "echo" if !has('E') => Demands::ECHO,
        "print" if !has('r') && !has('R') => Demands::ECHO,
        "printf" if takes_field(format(arguments), "b") => Demands::FORMAT,
        "printf" if calculates(format(arguments)) => Demands::ZSH,
        "test" | "[" | "[[" if matches!(last, "-v" | "-R") => name,
        "test" | "[" | "[[" if last == "-t" => Demands::PLAIN_NUMBER,
        // `o=-v; [ $o ... ]`
        "test" | "[" if arguments.last().is_some_and(Word::may_be_flags) => Demands::ANY_CODE,
        _ if DECLARATIONS.contains(&command) => declaration_demands(command, arguments, current),
        _ => return None,
    };
    Some(demands)
}

/// Builtins that take numbers, which other shells than bash calculate.
pub(super) const CALCULATING: &[&str] = &[
    "shift", "return", "exit", "break", "continue", "logout", "bye", "sysseek", "sysread",
    "syswrite", "zselect", "strftime",
];

/// Others that do with some of their words, which may be any text else.
const SOMETIMES: &[&str] = &[
    "repeat", "ulimit", "limit", "umask", "wait", "fc", "history", "echotc", "echoti", "sched",
    "zformat",
];

/// Returns the words of a command in which a shell may calculate with names.
pub(in crate::vault) fn calculated_words(words: &[Word]) -> Vec<&Word> {
    let Some((first, rest)) = words.split_first() else {
        return Vec::new();
    };
    if first.text() == "read" {
        // What follows `-t`, `-u` or `-k`.
        let pairs = rest.windows(2);
        let takes = |word: &Word| {
            word.text.starts_with('-') && word.text.ends_with(['t', 'u', 'k', 'n', 'N'])
        };
        let taken = pairs.filter(|pair| takes(&pair[0]));
        return taken.map(|pair| &pair[1]).collect();
    }
    let name = first.text();
    let prints = match name {
        "printf" => calculates(format(rest)) || begins_unknown(rest),
        "print" => calculates(printed_format(rest)) || rest.iter().any(|w| w.has_option('C')),
        _ => false,
    };
    match prints || CALCULATING.contains(&name) || SOMETIMES.contains(&name) {
        true => rest.iter().collect(),
        false => Vec::new(),
    }
}

/// Whether the first words are options as far as they are known, and one of them is not: it may be any.
fn begins_unknown(arguments: &[Word]) -> bool {
    let mut options = arguments
        .iter()
        .take_while(|word| word.may_be_flags() || word.text.starts_with('-'));
    options.any(Word::may_be_flags)
}

/// Returns the format of `printf`, if it is among its arguments so far.
fn format(arguments: &[Word]) -> Option<&[Word]> {
    let mut is_value = false;
    let at = arguments.iter().position(|word| {
        let is_option = word.text == "--" || std::mem::replace(&mut is_value, word.text == "-v");
        !is_option && word.text != "-v"
    });
    arguments.get(at?..)
}

/// Returns the format of `print -f`.
fn printed_format(arguments: &[Word]) -> Option<&[Word]> {
    let at = arguments.iter().position(|word| word.has_option('f'))?;
    arguments.get(at + 1..)
}

/// Whether zsh calculates the next argument after a format and those behind it: its field is a number. One
/// that is not known may be.
fn calculates(words: Option<&[Word]>) -> bool {
    let format = words.and_then(<[Word]>::first);
    let is_unknown = format.is_some_and(|format| format.is_dynamic && !is_whole(format));
    is_unknown || takes_field(words, "*diouxXeEfFgGaAn")
}

/// Whether each field of a format is written out, and there are some.
fn is_whole(format: &Word) -> bool {
    let text = format.text.replace("%%", "");
    let fields = || text.split('%').skip(1).map(field_letter);
    fields().next().is_some()
        && fields().all(|letter| letter.is_some_and(|c| "sbcqdiouxXeEfFgGaAn*(".contains(c)))
}

/// Returns the letter of a field, behind its flags, width and length.
fn field_letter(field: &str) -> Option<char> {
    let is_flag = |c: char| c.is_ascii_digit() || "-+ #0.'$hlLjzt".contains(c);
    field.trim_start_matches(is_flag).chars().next()
}

/// Whether the next argument after a format and those behind it is, or may be, for a field of these letters.
fn takes_field(words: Option<&[Word]>, letters: &str) -> bool {
    let Some((format, before)) = words.and_then(<[Word]>::split_first) else {
        return false;
    };
    let text = format.text.replace("%%", "");
    let is_number = |field: &str| field_letter(field).is_some_and(|c| letters.contains(c));
    let fields: Vec<bool> = text.split('%').skip(1).map(is_number).collect();
    let is_plain = !text.contains(['*', '$']) && !before.iter().any(Word::may_split);
    match before.len().checked_rem(fields.len()) {
        Some(at) if is_plain && !format.is_dynamic => fields.get(at) == Some(&true),
        _ => fields.contains(&true),
    }
}

fn declaration_demands(command: &str, arguments: &[Word], current: &Word) -> Demands {
    let is_option = |letters: &str| {
        arguments.iter().any(|word| {
            word.text.starts_with(['-', '+']) && word.text.contains(|c| letters.contains(c))
        })
    };
    let Some((name, before)) = current.text.split_once('=') else {
        return Demands::VARIABLE_NAME;
    };
    if is_option("n") || !is_name(name.trim_end_matches('+')) {
        return Demands::VARIABLE_NAME;
    }
    if is_option("iEF")
        || arguments.iter().any(Word::may_be_option)
        || matches!(command, "integer" | "float")
    {
        return Demands::NUMBER;
    }
    if before.starts_with('(') {
        // The elements of an array, read from text.
        return Demands::SHELL.and(Demands::LIST);
    }
    let is_declared = matches!(command, "declare" | "typeset" | "local");
    if before.is_empty() && (is_declared || is_option("aA")) {
        Demands::LIST
    } else {
        Demands::NONE
    }
}
