//! What the shell's own commands demand of a value among their words.

use super::DECLARATIONS;
use crate::vault::words::{Demands, Word, is_name};

/// Returns what a builtin demands of a value in the word `current` after its arguments so far; nothing when
/// it is none that matters.
pub(super) fn builtin_demands(
    command: &str,
    arguments: &[Word],
    current: &Word,
) -> Option<Demands> {
    let last = arguments.last().map_or("", Word::text);
    let name = Demands::forbidden("in the place of a variable's name");
    let has = |letter| arguments.iter().any(|word| word.has_option(letter));
    let demands = match command {
        "trap" | "alias" | "bind" | "complete" | "compgen" | "zle" | "zstyle" | "fc"
        | "history" | "sched" => Demands::forbidden("in code that runs later"),
        "r" => Demands::forbidden("in code that runs later"),
        "print" if has('s') || has('z') => Demands::forbidden("in code that runs later"),
        "print" if last.starts_with('-') && has('f') => Demands::FORMAT,
        "print" if printed_format(arguments).is_some_and(calculates) => Demands::NUMBER,
        "print" if has('P') => Demands::forbidden("in text that is expanded as a prompt"),
        "print" if has('p') => Demands::SHELL.and(Demands::PROGRAM),
        "wait" if last == "-p" || current.text.starts_with("-p") => name,
        "repeat" if arguments.is_empty() => Demands::NUMBER,
        "let" | "shift" | "return" | "exit" | "break" | "continue" | "logout" | "bye"
        | "sysseek" | "sysread" | "syswrite" | "zselect" | "strftime" => Demands::NUMBER,
        "unset" | "read" | "mapfile" | "readarray" | "getopts" | "vared" | "function"
        | "nameref" => name,
        "for" | "select" | "foreach" if arguments.is_empty() => name,
        "printf" if last == "-v" || current.text.starts_with("-v") => name,
        "printf" if format(arguments).is_none() => Demands::FORMAT,
        "echo" if has('e') => Demands::FORMAT,
        "echo" if !has('E') => Demands::ECHO,
        "print" if !has('r') && !has('R') => Demands::ECHO,
        "printf" if format(arguments).is_some_and(calculates) => Demands::NUMBER,
        "test" | "[" | "[[" if matches!(last, "-v" | "-R") => name,
        "test" | "[" | "[[" if last == "-t" => Demands::NUMBER,
        _ if DECLARATIONS.contains(&command) => declaration_demands(command, arguments, current),
        _ => return None,
    };
    Some(demands)
}

/// Returns the format of `printf`, if it is among its arguments so far.
fn format(arguments: &[Word]) -> Option<&Word> {
    let mut is_value = false;
    arguments.iter().find(|word| {
        let is_option = word.text == "--" || std::mem::replace(&mut is_value, word.text == "-v");
        !is_option && word.text != "-v"
    })
}

/// Returns the format of `print -f`.
fn printed_format(arguments: &[Word]) -> Option<&Word> {
    let at = arguments.iter().position(|word| word.has_option('f'))?;
    arguments.get(at + 1)
}

/// Whether a format of `printf` has a numeric field: some shells calculate its argument. One that
/// is not known may have.
fn calculates(format: &Word) -> bool {
    let is_unknown = format.is_dynamic && format.text.is_empty();
    let text = format.text.replace("%%", "");
    is_unknown
        || text.split('%').skip(1).any(|field| {
            let is_flag = |c: char| c.is_ascii_digit() || "-+ #0.'".contains(c);
            let letter = field.trim_start_matches(is_flag);
            letter.starts_with(|c| "*diouxXeEfFgGaA".contains(c))
        })
}

fn declaration_demands(command: &str, arguments: &[Word], current: &Word) -> Demands {
    let is_option = |letters: &str| {
        arguments.iter().any(|word| {
            word.text.starts_with(['-', '+']) && word.text.contains(|c| letters.contains(c))
        })
    };
    let Some((name, before)) = current.text.split_once('=') else {
        return Demands::forbidden("in the place of a variable's name");
    };
    if is_option("n") || !is_name(name.trim_end_matches('+')) {
        return Demands::forbidden("in the place of a variable's name");
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
