//! What the words of a shell command demand of a value that stands among them.
//!
//! Some programs read their arguments as code once more, and some builtins read names or
//! expressions; a value is text, so there it must not be able to say anything. The tables are
//! closed: a program that is not in them gets its arguments as they are.

mod runs;
mod table;

use super::script;
use super::words::{Demands, Word, is_name};
use runs::{Run, runs};
use table::{
    BUILTINS, CODE_VARIABLES, INTEGER_VARIABLES, PLAIN_MODULES, PYTHON_CODE, Reads, WRAPPERS,
};

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
pub(super) fn script_demands(words: &[Word], current: Option<&Word>) -> Demands {
    // `mysql --defaults-extra-file=<(...)` has settings.
    let is_settings = current.is_some_and(|word| word.text.starts_with("--defaults"));
    let reads_script = |(reads, arguments): Run<'_>| match reads {
        Reads::CodeAfter(..) | Reads::Python => !has_script(arguments),
        Reads::Client(..) | Reads::Editor(..) => !is_settings,
        _ => false,
    };
    if runs(words).into_iter().any(reads_script) {
        Demands::PROGRAM
    } else {
        Demands::NONE
    }
}

/// Returns what a command that takes the words of its program from a file demands of it.
pub(super) fn argument_file_demands(words: &[Word]) -> Demands {
    let is_file = |word: &Word| word.has_option('a') || word.text.starts_with("--arg-file");
    if words.iter().any(is_file) {
        xargs_demands(words)
    } else {
        Demands::NONE
    }
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
    own.and(own_argument_demands(words, current))
}

fn own_argument_demands(words: &[Word], current: &Word) -> Demands {
    let Some((command, arguments)) = words.split_first() else {
        return Demands::NONE;
    };
    if let Some(demands) = builtin_demands(command.program(), arguments, current) {
        return demands;
    }
    let runs = runs(words).into_iter();
    let demands = runs.map(|run| run_demands(run, current));
    demands.fold(Demands::NONE, Demands::and)
}

/// Returns what a program demands of a value in the word `current` after its arguments so far.
fn run_demands((program, arguments): Run<'_>, current: &Word) -> Demands {
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
            let starts = |word: &Word| {
                word.may_split() || options.iter().any(|option| word.text.starts_with(option))
            };
            if starts(current) || arguments.iter().rev().take(2).any(starts) {
                Demands::SHELL
            } else {
                Demands::NONE
            }
        }
        Reads::Python => python_demands(arguments, current),
        Reads::CodeAfter(letters, names)
        | Reads::Client(letters, names)
        | Reads::Editor(letters, names) => {
            let is_code = |word: &Word| is_code_option(word, letters, names);
            let may_be_code = |word: &Word| is_code(word) || word.may_be_flags();
            if arguments.last().is_some_and(may_be_code) || is_code(current) {
                Demands::PROGRAM
            } else {
                Demands::NONE
            }
        }
        Reads::Filter if is_plain_argument(arguments) => Demands::NONE,
        Reads::Filter | Reads::CodeAll | Reads::CodeEverywhere => Demands::PROGRAM,
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
pub(super) fn input_demands(words: &[Word]) -> Demands {
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
fn has_script(arguments: &[Word]) -> bool {
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

fn builtin_demands(command: &str, arguments: &[Word], current: &Word) -> Option<Demands> {
    let last = arguments.last().map_or("", Word::text);
    let name = Demands::forbidden("in the place of a variable's name");
    let has = |letter| arguments.iter().any(|word| word.has_option(letter));
    let demands = match command {
        "trap" | "alias" | "bind" | "complete" | "compgen" | "zle" | "zstyle" | "fc"
        | "history" | "sched" => Demands::forbidden("in code that runs later"),
        "r" => Demands::forbidden("in code that runs later"),
        "print" if has('s') || has('z') => Demands::forbidden("in code that runs later"),
        "print" if last.starts_with('-') && has('f') => Demands::FORMAT,
        "print" if has('f') && arguments.iter().any(|word| calculates(word)) => Demands::NUMBER,
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
        "printf" if is_format(arguments) => Demands::FORMAT,
        "echo" if has('e') => Demands::FORMAT,
        "echo" if !has('E') => Demands::ECHO,
        "print" if !has('r') && !has('R') => Demands::ECHO,
        "printf" if arguments.iter().any(calculates) => Demands::NUMBER,
        "test" | "[" | "[[" if matches!(last, "-v" | "-R") => name,
        "test" | "[" | "[[" if last == "-t" => Demands::NUMBER,
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

/// Returns what python demands of a value: code, or an argument of a module.
fn python_demands(arguments: &[Word], current: &Word) -> Demands {
    match module(arguments) {
        Some(name) if is_plain_module(&name) => Demands::NONE,
        Some(_) => Demands::PROGRAM,
        None if current.has_option('m') => Demands::PROGRAM,
        None => run_demands((PYTHON_CODE, arguments), current),
    }
}

/// Returns what stands where the arguments of python name a module; nothing yet is an empty word.
fn module(arguments: &[Word]) -> Option<Word> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let letters = word.text.strip_prefix('-')?;
        if letters.starts_with('-') || letters.is_empty() {
            continue;
        }
        let at = letters.find(['c', 'm', 'W', 'X']).unwrap_or(letters.len());
        match letters.get(at..).and_then(|rest| rest.split_at_checked(1)) {
            Some(("m", "")) => return Some(words.next().cloned().unwrap_or_default()),
            Some(("m", name)) => {
                let text = name.to_owned();
                return Some(Word {
                    text,
                    ..word.clone()
                });
            }
            Some(("c", _)) => return None,
            Some((_, "")) => _ = words.next(),
            _ => {}
        }
    }
    None
}

fn is_plain_module(word: &Word) -> bool {
    !word.is_dynamic && PLAIN_MODULES.contains(&word.text())
}

fn has_command_option(word: &Word, letter: char) -> bool {
    word.has_option(letter)
        || word.may_be_flags()
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
    let follows = |pair: &[Word]| {
        let [before, word] = pair else { return false };
        let letters = before.text.strip_prefix('-');
        let is_flag = |letters: &str| letters.chars().all(|c| "nrcesaSjC".contains(c));
        !word.text.starts_with('-') && (before.text == "--args" || letters.is_none_or(is_flag))
    };
    // Before the filter has come a value would be the filter.
    let has_filter = arguments
        .first()
        .is_some_and(|word| !word.text.starts_with('-'))
        || arguments.windows(2).any(follows);
    is_named || has_filter && arguments.iter().any(|word| word.text == "--args")
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
        } else if word.may_split()
            || word.is_dynamic && word.text == "-"
            || word.is_unknown() && !(has_code && word.is_quoted)
        {
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
