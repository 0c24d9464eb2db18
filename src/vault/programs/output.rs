//! Which commands print what they are told: their words, or what stands in their input.

use super::known::wraps;
use super::runs::runs;
use super::table::{BUILTINS, Reads};
use super::{DECLARATIONS, without_prefixes};
use crate::vault::words::Word;

/// Builtins that print nothing.
const SILENT: &[&str] = &[
    "[", "[[", "test", "true", "false", ":", "cd", "exit", "return", "set", "shift", "kill",
    "wait", "umask",
];

/// Programs whose output holds pieces of their arguments or of their input.
const PRINTERS: &[&str] = &[
    "ag", "base32", "base64", "basename", "cat", "column", "comm", "cut", "date", "dd", "diff",
    "dirname", "echo", "egrep", "envsubst", "expand", "expr", "factor", "fgrep", "find", "fmt",
    "fold", "gpg", "grep", "gunzip", "head", "iconv", "join", "less", "ls", "more", "nl", "numfmt",
    "od", "openssl", "paste", "pr", "print", "printenv", "printf", "ptx", "pv", "readlink",
    "realpath", "rev", "rg", "seq", "shuf", "sort", "split", "sponge", "stat", "strings", "tac",
    "tail", "tar", "tee", "tr", "tsort", "unexpand", "uniq", "xargs", "xxd", "yes", "zcat",
];

/// Whether a command prints variables, or their names.
pub(in crate::vault) fn shows_variables(words: &[Word]) -> bool {
    let is_option = |word: &Word| word.text.starts_with(['-', '+']);
    let Some((first, rest)) = without_prefixes(words).split_first() else {
        return false;
    };
    let has = |letters: &[char]| {
        rest.iter()
            .any(|word| letters.iter().any(|c| word.has_option(*c)))
    };
    let is_bare = rest.iter().all(is_option);
    let is_own = match first.text() {
        "set" => rest.is_empty() || rest.first().is_some_and(|word| word.text == "+"),
        "compgen" => has(&['v', 'A', 'e']),
        "setopt" | "unsetopt" => false,
        name if DECLARATIONS.contains(&name) => is_bare || has(&['p', 'm']),
        _ => false,
    };
    let shows = |word: &Word| {
        let name = word.program();
        matches!(name, "printenv" | "env" | "genv" | "gprintenv") && !word.is_address()
            || word.text.contains("/environ")
    };
    let lists = |(at, word): (usize, &Word)| {
        let after = words.get(at + 1..).unwrap_or_default();
        let is_alone = word.program() != "env"
            || after
                .iter()
                .all(|word| is_option(word) || word.text.contains('='));
        shows(word) && is_alone
    };
    let is_ps = first.program() == "ps" && rest.iter().any(|word| word.text.contains(['e', 'E']));
    let wraps = wraps(first.program()) || shows(first);
    is_own
        || is_ps
        || words
            .iter()
            .enumerate()
            .any(|(at, word)| lists((at, word)) && (wraps || word.text.contains("/environ")))
}

/// Whether a command may print a value that stands among its words or in its input. A program that
/// is in no list makes something else of it.
pub(in crate::vault) fn prints(words: &[Word]) -> bool {
    let own = without_prefixes(words);
    let Some((first, rest)) = own.split_first() else {
        return true;
    };
    if shows_variables(words) {
        return true;
    }
    if SILENT.contains(&first.text()) {
        return false;
    }
    let names_printer = |word: &Word| PRINTERS.contains(&word.program()) && !word.is_address();
    let wraps = wraps(first.program());
    if first.is_function
        || BUILTINS.contains(&first.text())
        || wraps && rest.iter().any(names_printer)
    {
        return true;
    }
    if rest
        .iter()
        .any(|word| word.is_dynamic && word.text.contains("file:"))
    {
        // `curl file://FILE`
        return true;
    }
    if names_printer(first) {
        return !only_counts(first, rest) && !only_chance(first, rest);
    }
    let is_reader = |reads| {
        !matches!(
            reads,
            Reads::Client(..) | Reads::ShellInOption(_) | Reads::Git
        )
    };
    runs(own).into_iter().any(|(reads, _)| is_reader(reads))
}

/// Whether it prints what it makes up: `openssl rand -hex 8`.
fn only_chance(program: &Word, arguments: &[Word]) -> bool {
    let is_plain = |word: &Word| !word.is_dynamic && !word.is_made;
    let is_rand = arguments.first().is_some_and(|word| word.text == "rand");
    program.program() == "openssl" && is_rand && arguments.iter().all(is_plain)
}

/// Whether it is a search that prints numbers, or nothing.
fn only_counts(program: &Word, arguments: &[Word]) -> bool {
    let is_search = matches!(program.program(), "grep" | "egrep" | "fgrep" | "rg");
    let counts = |word: &Word| {
        !word.is_dynamic && (word.has_option('c') || word.has_option('q') || word.text == "--count")
    };
    // Of several files their names come, too.
    is_search && arguments.iter().any(counts) && arguments.len() <= 3
}
