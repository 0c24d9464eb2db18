//! What the words of a shell command demand of a value that stands among them.
//!
//! Some programs read their arguments as code once more, and some builtins read names or
//! expressions; a value is text, so there it must not be able to say anything. The tables are
//! closed: a program that is not in them gets its arguments as they are.

mod table;

use super::words::{Demands, Word, is_name};
use table::{BUILTINS, CODE_VARIABLES, INTEGER_VARIABLES, PROGRAMS, Reads, WRAPPERS};

/// Operators that calculate, in `[[`, `[` and `test`.
pub(super) const ARITHMETIC_TESTS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// Returns what assigning to a variable demands of the value.
pub(super) fn assignment_demands(name: &str) -> Demands {
    if INTEGER_VARIABLES.contains(&name) {
        Demands::NUMBER
    } else if CODE_VARIABLES.contains(&name) {
        Demands::forbidden("in code that runs later")
    } else {
        Demands::NONE
    }
}

/// Returns what an argument `NAME=` of a program that runs another demands of the value after it.
pub(super) fn setting_demands(words: &[Word], current: &Word) -> Demands {
    let is_wrapper = words
        .first()
        .is_some_and(|word| WRAPPERS.contains(&word.program()));
    let Some((before, _)) = current.text.rsplit_once('=').filter(|_| is_wrapper) else {
        return Demands::NONE;
    };
    let names = before.split('=').map(|name| {
        // `-eNAME=`, `--env=NAME=`
        let glued = CODE_VARIABLES.iter().find(|known| name.ends_with(**known));
        glued
            .filter(|_| name.starts_with('-'))
            .map_or(name, |known| *known)
    });
    names.fold(Demands::NONE, |demands, name| {
        demands.and(assignment_demands(name))
    })
}

/// Builtins that declare variables.
pub(super) const DECLARATIONS: &[&str] = &[
    "declare", "typeset", "local", "readonly", "export", "integer", "float",
];

/// Commands that assign what they read or get to variables named in their words.
pub(super) const ASSIGNERS: &[&str] = &[
    "read",
    "mapfile",
    "readarray",
    "printf",
    "for",
    "select",
    "foreach",
    "getopts",
];

/// Returns the words of a command without those that only say how its name is looked up.
pub(super) fn without_prefixes(words: &[Word]) -> &[Word] {
    const PREFIXES: &[&str] = &[
        "command",
        "builtin",
        "exec",
        "coproc",
        "noglob",
        "nocorrect",
    ];
    let mut rest = words;
    while let [first, after @ ..] = rest
        && PREFIXES.contains(&first.text())
    {
        let options = after
            .iter()
            .take_while(|word| word.text.starts_with('-'))
            .count();
        let takes_name = first.text == "exec"
            && after
                .iter()
                .take(options)
                .any(|word| word.text.ends_with('a'));
        let passed = options + usize::from(takes_name);
        match after.get(passed..) {
            Some(named) if !named.is_empty() => rest = named,
            _ => break,
        }
    }
    rest
}

/// Returns what a program demands of a process substitution among its arguments, which may be its
/// script.
pub(super) fn script_demands(words: &[Word]) -> Demands {
    let Some((Reads::CodeAfter(..), arguments)) = program(words) else {
        return Demands::NONE;
    };
    // What follows an option may belong to it.
    let mut is_option = false;
    let has_script = arguments.iter().any(|word| {
        let follows = std::mem::replace(&mut is_option, word.text.starts_with('-'));
        !is_option && !follows
    });
    if has_script {
        Demands::NONE
    } else {
        Demands::PROGRAM
    }
}

/// Whether a value becomes code by an option of perl or a module of python.
fn is_module_code(words: &[Word], current: &Word) -> bool {
    let runs = |name: &str| {
        words
            .iter()
            .any(|word| version_less(word.program()).trim_end_matches(['2', '3']) == name)
    };
    let has_module = |word: &Word| word.has_option('M') || word.has_option('m');
    let is_perl = || {
        has_module(current)
            || words
                .last()
                .is_some_and(|word| matches!(word.text(), "-M" | "-m"))
    };
    let is_python = || {
        words
            .iter()
            .any(|word| matches!(word.text.trim_start_matches("-m"), "timeit" | "pdb"))
    };
    runs("perl") && is_perl() || runs("python") && is_python()
}

/// Returns what the command's words so far demand of a value in the word `current`.
pub(super) fn argument_demands(words: &[Word], current: &Word) -> Demands {
    if words.is_empty() && current.is_pattern {
        // `{eval,VALUE}`
        return Demands::SHELL.and(Demands::PROGRAM);
    }
    let inner = without_prefixes(words);
    let own = match inner.split_first() {
        Some((command, arguments)) if inner.len() < words.len() => {
            builtin_demands(command.program(), arguments, current).unwrap_or_default()
        }
        _ => Demands::NONE,
    };
    let module = if is_module_code(words, current) {
        Demands::PROGRAM
    } else {
        Demands::NONE
    };
    own.and(module).and(own_argument_demands(words, current))
}

fn own_argument_demands(words: &[Word], current: &Word) -> Demands {
    let Some((command, arguments)) = words.split_first() else {
        return Demands::NONE;
    };
    if let Some(demands) = builtin_demands(command.program(), arguments, current) {
        return demands;
    }
    let Some((program, arguments)) = program(words) else {
        return Demands::NONE;
    };
    match program {
        Reads::Shell => shell_demands(arguments, current),
        Reads::ShellAfter(letter)
            if !arguments
                .iter()
                .chain([current])
                .any(|word| has_command_option(word, letter)) =>
        {
            Demands::NONE
        }
        Reads::ShellAfter(_) | Reads::ShellAll => Demands::SHELL,
        Reads::ShellInOption(options) => {
            let starts = |word: &Word| options.iter().any(|option| word.text.starts_with(option));
            if starts(current) || arguments.iter().rev().take(2).any(starts) {
                Demands::SHELL
            } else {
                Demands::NONE
            }
        }
        Reads::CodeAfter(letters, names) => {
            let is_code = |word: &Word| is_code_option(word, letters, names);
            if arguments.last().is_some_and(is_code) || is_code(current) {
                Demands::PROGRAM
            } else {
                Demands::NONE
            }
        }
        Reads::CodeAll | Reads::CodeEverywhere if is_plain_argument(arguments) => Demands::NONE,
        Reads::CodeAll | Reads::CodeEverywhere => Demands::PROGRAM,
    }
}

/// Returns the program that gets a further word after these as an argument.
pub(super) fn argument_of(words: &[Word]) -> Option<String> {
    let is_name = |word: &&Word| !word.text.starts_with('-') && !word.text.contains('=');
    let mut words = words.iter();
    let first = words.next()?;
    let named = if WRAPPERS.contains(&first.program()) {
        // What an option of the wrapper takes may come first; the warning names that then.
        words.find(is_name).unwrap_or(first)
    } else {
        first
    };
    let program = named.program();
    (!BUILTINS.contains(&named.text())).then(|| program.to_owned())
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
    let demands = match program(words.get(at..).unwrap_or_default()) {
        Some((Reads::CodeAfter(..) | Reads::CodeAll | Reads::CodeEverywhere, _)) => {
            Demands::SHELL.and(Demands::PROGRAM)
        }
        Some(_) => Demands::SHELL,
        None => Demands::NONE,
    };
    if arguments.iter().any(runs_wrapper) {
        demands.and(Demands::SHELL)
    } else {
        demands
    }
}

/// Returns what a command demands of values in its standard input.
pub(super) fn input_demands(words: &[Word]) -> Demands {
    own_input_demands(words).and(xargs_demands(words))
}

fn own_input_demands(words: &[Word]) -> Demands {
    let Some((program, arguments)) = program(words) else {
        return Demands::NONE;
    };
    let has_file = || {
        let is_file = |word: &Word| !word.text.starts_with('-') && !is_input(word);
        arguments.iter().any(is_file)
    };
    match program {
        Reads::Shell
            if shell_demands(arguments, &Word::default()) == Demands::NONE
                && !reads_input(arguments) =>
        {
            Demands::NONE
        }
        Reads::Shell | Reads::ShellAll => Demands::SHELL,
        Reads::ShellInOption(_) => Demands::NONE,
        Reads::ShellAfter(_) if !has_input_code(words) => Demands::NONE,
        Reads::ShellAfter(letter)
            if arguments
                .iter()
                .any(|word| has_command_option(word, letter)) =>
        {
            Demands::NONE
        }
        Reads::ShellAfter(_) => Demands::SHELL,
        Reads::CodeAfter(letters, names) => {
            let has_code = arguments
                .iter()
                .any(|word| is_code_option(word, letters, names));
            // Database clients read statements whatever else they are told.
            let is_client = letters.contains(&'v') || names.contains(&"--execute");
            if has_code || has_file() && !is_client {
                Demands::NONE
            } else {
                Demands::PROGRAM
            }
        }
        Reads::CodeAll => Demands::NONE,
        Reads::CodeEverywhere => Demands::PROGRAM,
    }
}

/// Whether a program that takes shell code after an option also takes it from standard input.
fn has_input_code(words: &[Word]) -> bool {
    const READERS: &[&str] = &["su", "runuser", "script"];
    words.iter().any(|word| READERS.contains(&word.program()))
}

fn builtin_demands(command: &str, arguments: &[Word], current: &Word) -> Option<Demands> {
    let last = arguments.last().map_or("", Word::text);
    let name = Demands::forbidden("in the place of a variable's name");
    let has = |letter| arguments.iter().any(|word| word.has_option(letter));
    let demands = match command {
        "trap" | "alias" | "bind" | "complete" | "compgen" | "zle" | "zstyle" | "fc"
        | "history" | "sched" => Demands::forbidden("in code that runs later"),
        "print" if has('P') => Demands::forbidden("in text that is expanded as a prompt"),
        "print" if has('p') => Demands::SHELL.and(Demands::PROGRAM),
        "wait" if last == "-p" || current.text.starts_with("-p") => name,
        "repeat" if arguments.is_empty() => Demands::NUMBER,
        "let" | "shift" | "return" | "exit" | "break" | "continue" | "logout" => Demands::NUMBER,
        "unset" | "read" | "mapfile" | "readarray" | "getopts" | "vared" | "function"
        | "nameref" => name,
        "for" | "select" | "foreach" if arguments.is_empty() => name,
        "printf" if last == "-v" || current.text.starts_with("-v") => name,
        "printf" if is_format(arguments) => Demands::FORMAT,
        "echo" if has('e') => Demands::FORMAT,
        "printf" if calculates(arguments.first().map_or("", Word::text)) => Demands::NUMBER,
        "test" | "[" | "[[" if last == "-v" => name,
        _ if DECLARATIONS.contains(&command) => declaration_demands(command, arguments, current),
        _ => return None,
    };
    Some(demands)
}

/// Whether the word after these is the format of `printf`.
fn is_format(arguments: &[Word]) -> bool {
    let mut is_value = false;
    arguments.iter().all(|word| {
        let is_option = word.text == "--" || std::mem::replace(&mut is_value, word.text == "-v");
        is_option || word.text == "-v"
    })
}

/// Whether a format of `printf` has a numeric field: some shells calculate its argument.
fn calculates(format: &str) -> bool {
    format.replace("%%", "").split('%').skip(1).any(|field| {
        let letter =
            field.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #0.*'".contains(c));
        letter.starts_with(|c| "diouxXeEfFgGaA".contains(c))
    })
}

fn declaration_demands(command: &str, arguments: &[Word], current: &Word) -> Demands {
    let is_option = |letters: &str| {
        arguments.iter().any(|word| {
            word.text.starts_with(['-', '+']) && word.text.contains(|c| letters.contains(c))
        })
    };
    let value = current
        .text
        .split_once('=')
        .map(|(name, _)| name.trim_end_matches('+'));
    if is_option("n") || !value.is_some_and(is_name) {
        return Demands::forbidden("in the place of a variable's name");
    }
    if is_option("iEF")
        || arguments.iter().any(Word::may_be_option)
        || matches!(command, "integer" | "float")
    {
        return Demands::NUMBER;
    }
    Demands::NONE
}

/// Returns the program that a command runs, if it reads code, and the words after it.
fn program(words: &[Word]) -> Option<(Reads, &[Word])> {
    let (first, rest) = words.split_first()?;
    let look_up = |word: &Word| {
        PROGRAMS
            .iter()
            .find(|(name, _)| *name == version_less(word.program().trim_start_matches('=')))
            .map(|(_, reads)| *reads)
    };
    let named = without_prefixes(words);
    if let [named, after @ ..] = named
        && named.is_unknown_program()
    {
        // `$SHELL -c ...`, `b?sh -c ...`, or whatever else it may become.
        return Some((Reads::ShellAll, after));
    }
    // What starts with a dash is an option of `time` when that is a program.
    let is_wrapper = WRAPPERS.contains(&first.program()) || first.text.starts_with('-');
    if is_wrapper && let Some(at) = rest.iter().position(|word| look_up(word).is_some()) {
        let (_, after) = rest.split_at(at + 1);
        return rest.get(at).and_then(look_up).map(|reads| (reads, after));
    }
    look_up(first).map(|reads| (reads, rest))
}

/// Returns `python` for `python3.11`.
fn version_less(program: &str) -> &str {
    match program.split_once('.') {
        Some((name, _)) if !name.is_empty() => name,
        _ => program,
    }
}

fn has_command_option(word: &Word, letter: char) -> bool {
    word.has_option(letter)
        || word.text.starts_with("--command")
        || word.text.starts_with("--session-command")
}

fn is_code_option(word: &Word, letters: &[char], names: &[&str]) -> bool {
    letters.iter().any(|letter| word.has_option(*letter))
        || names.iter().any(|name| word.text.starts_with(name))
}

/// Whether the words before a value make it data: `jq --arg NAME VALUE`, `jq --args`.
fn is_plain_argument(arguments: &[Word]) -> bool {
    let is_named =
        matches!(arguments, [.., option, name] if option.text == "--arg" && !name.is_dynamic);
    is_named || arguments.iter().any(|word| word.text == "--args")
}

/// Follows the arguments of a shell up to the script it runs: what stands after that is data.
fn shell_demands(arguments: &[Word], current: &Word) -> Demands {
    let (mut is_value, mut is_uncertain, mut has_code) = (false, false, false);
    let mut is_startup = false;
    for word in arguments {
        if std::mem::take(&mut is_value) {
            is_startup = false;
            continue;
        }
        if word.text.starts_with(['-', '+']) && word.text.len() > 1 {
            if word.has_option('s') && !word.text.contains('c') {
                return Demands::NONE;
            }
            is_value = takes_value(&word.text);
            is_startup = is_value && word.text.starts_with("--");
            has_code |= word.has_option('c');
        } else if word.is_unknown() && !(has_code && word.is_quoted) {
            // An expansion may be an option, a script or nothing.
            is_uncertain = true;
        } else if !is_uncertain {
            return Demands::NONE;
        }
    }
    if is_value && !is_startup && !current.text.starts_with('-') {
        Demands::NONE
    } else {
        Demands::SHELL
    }
}

fn takes_value(option: &str) -> bool {
    matches!(option, "--rcfile" | "--init-file")
        || !option.starts_with("--") && option.contains(['o', 'O'])
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

#[cfg(test)]
mod tests;
