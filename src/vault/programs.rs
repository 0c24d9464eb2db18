//! What the words of a shell command demand of a value that stands among them.
//!
//! Some programs read their arguments as code once more, and some builtins read names or
//! expressions; a value is text, so there it must not be able to say anything. The tables are
//! closed: a program that is not in them gets its arguments as they are.

mod builtins;
mod environment;
mod files;
mod inner;
mod input;
mod known;
mod names;
mod options;
mod output;
mod runs;
mod table;

pub(super) use builtins::calculated_words;
pub(super) use environment::{assignment_demands, names_loaded};
pub(super) use files::{code_files, files_by_name, files_in_code, opens_file};
pub(super) use inner::{
    argument_content, changes_inner, codes_in_options, first_argument_place, inner_code,
    reads_script, reads_script_file, reads_script_only, settings,
};
pub(super) use input::{argument_file_demands, input_demands};
pub(super) use options::reads_words;
pub(super) use output::{prints, shows_variables};
pub(super) use runs::{is_wrapper, names_program};

use super::script;
use super::words::{Demands, Word, is_name};
use builtins::{builtin_demands, is_own_command, unknown_builtin_demands};
use input::has_script;
use known::{look_up, name_of, wraps};
use options::{operand_demands, unknown_setting_demands, wrapper_demands};
use runs::{Run, runs};
use table::{
    ENV_OPTIONS, GIT_COMMANDS, GIT_OPTIONS, PLAIN_MODULES, PYTHON_CODE, Reads, TAR_OPTIONS,
};

/// Operators that calculate, in `[[`, `[` and `test`.
pub(super) const ARITHMETIC_TESTS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// Returns what an argument `NAME=` of a program that runs another demands of the value after it.
pub(super) fn setting_demands(words: &[Word], current: &Word) -> Demands {
    let is_wrapper = words.first().is_some_and(|word| wraps(word.program()));
    let Some((before, _)) = current.text.rsplit_once('=').filter(|_| is_wrapper) else {
        return Demands::NONE;
    };
    let unknown = unknown_setting_demands(words, current);
    // `-eNAME=`, `--env=NAME=`
    let glued = |name: &str| {
        let name = name.strip_prefix('-').and_then(|name| name.get(1..));
        assignment_demands(name.unwrap_or_default())
    };
    before.split('=').fold(unknown, |demands, name| {
        demands.and(assignment_demands(name)).and(glued(name))
    })
}

/// Builtins that declare variables.
pub(super) const DECLARATIONS: &[&str] = &[
    "declare", "typeset", "local", "readonly", "export", "integer", "float", "private",
];

/// Commands that assign what they read or get to variables named in their words.
pub(super) const ASSIGNERS: &[&str] = &[
    "read",
    "mapfile",
    "readarray",
    "printf",
    "print",
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
    let reads_script = |(reads, arguments): &Run<'_>| match reads {
        Reads::CodeAfter(..) | Reads::Python => !has_script(arguments),
        Reads::Client(..) | Reads::Editor(..) => !is_settings,
        _ => false,
    };
    let found = runs(words).into_iter().find(reads_script);
    found.map_or(Demands::NONE, |(_, arguments)| {
        Demands::PROGRAM.read_by(name_of(words, arguments))
    })
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
    let unknown = inner
        .first()
        .map(|word| unknown_builtin_demands(word.text()));
    let demands = own.and(own_argument_demands(words, current));
    demands.and(unknown.unwrap_or_default())
}

/// Returns what the elements of a list so far demand of a value in the word `current`: they may be a command, when the
/// first one is the name of a program that reads code, or runs one that does.
pub(super) fn list_demands(elements: &[Word], current: &Word) -> Demands {
    let is_program = elements.first().is_some_and(|first| {
        let is_name = !first.text.starts_with('-') && !first.is_dynamic;
        is_name && (look_up(first).is_some() || wraps(first.program()))
    });
    match is_program {
        true => own_argument_demands(elements, current),
        false => Demands::NONE,
    }
}

fn own_argument_demands(words: &[Word], current: &Word) -> Demands {
    let Some((command, arguments)) = words.split_first() else {
        return Demands::NONE;
    };
    if let Some(demands) = builtin_demands(command.program(), arguments, current) {
        return demands;
    }
    let runs = runs(words);
    let wrapper = match runs.is_empty() {
        true => wrapper_demands(words, current),
        false => Demands::NONE,
    };
    let demands = runs.into_iter().map(|run| match run_demands(run, current) {
        own if own.is_code() => own.read_by(name_of(words, run.1)),
        own => own.and(operand_demands(run, current).read_by(name_of(words, run.1))),
    });
    let demands = demands.fold(wrapper, Demands::and);
    // `strace -o '|command'`
    let traces = matches!(command.program(), "strace" | "ltrace");
    let follows = arguments.last().is_some_and(|word| word.has_option('o'));
    match traces && (follows || current.has_option('o')) {
        true => demands.and(Demands::OPERAND),
        false => demands,
    }
}

/// Returns what a program demands of a value in the word `current` after its arguments so far.
fn run_demands((program, arguments): Run<'_>, current: &Word) -> Demands {
    match program {
        Reads::Shell => match input::code_word(arguments) {
            Some(code) if !code.is_dynamic && !code.is_cut => {
                script::argument_demands(code.text()).map_or(Demands::ANY_CODE, |(own, _)| own)
            }
            _ => shell_demands(arguments, current),
        },
        Reads::ShellAfter(letter)
            if !arguments
                .iter()
                .chain([current])
                .any(|word| has_command_option(word, letter)) =>
        {
            Demands::NONE
        }
        Reads::ShellAfter(_) | Reads::ShellAll => Demands::SHELL,
        Reads::Unknown => Demands::UNQUOTED,
        Reads::Git => git_demands(arguments, current),
        Reads::ShellInOption(ENV_OPTIONS) if splits_words(arguments) => Demands::ANY_CODE,
        Reads::ShellInOption(options) => {
            let starts = |word: &Word| {
                word.may_split() && !word.text.contains('=')
                    || options.iter().any(|option| names_option(word, option))
            };
            // `tar cIf CODE`
            let is_bundle = |word: &Word| options == TAR_OPTIONS && word.text.contains(['I', 'F']);
            let is_old = arguments.first().is_some_and(is_bundle);
            if starts(current) || is_old || arguments.iter().rev().take(2).any(starts) {
                Demands::SHELL
            } else {
                Demands::NONE
            }
        }
        Reads::Python | Reads::CodeAfter(..) if opens_console(arguments) => Demands::PROGRAM,
        Reads::Python => python_demands(arguments, current),
        Reads::CodeAfter(letters, names)
        | Reads::Client(letters, names)
        | Reads::Editor(letters, names) => {
            let is_code = |word: &Word| is_code_option(word, letters, names);
            let is_value = matches!(arguments, [.., option, _] if takes_plain(option));
            let may_be_code =
                |word: &Word| is_code(word) || word.may_be_flags() && (!is_value || word.is_any());
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

/// Whether an option of a client or an interpreter surely takes the next word, as data.
fn takes_plain(option: &Word) -> bool {
    const LONG: &[&str] = &[
        "--host",
        "--user",
        "--username",
        "--port",
        "--dbname",
        "--database",
    ];
    let text = option.text();
    !option.is_dynamic
        && (LONG.contains(&text) || matches!(text, "-h" | "-u" | "-U" | "-H" | "-P" | "-a"))
}

/// Returns what git demands of a value: settings may be commands, and so are some arguments.
fn git_demands(arguments: &[Word], current: &Word) -> Demands {
    let is =
        |word: &Word, options: &[&str]| options.iter().any(|option| names_option(word, option));
    let mut before: Option<&Word> = None;
    for word in arguments {
        let is_setting = before.is_some_and(|option| is(option, &["-c", "--config"]));
        let is_command = is_setting && (word.is_dynamic || word.text.contains('!'));
        if is_command
            || word.may_split() && before.is_none_or(|word| !word.text.starts_with('-'))
            || is(word, GIT_COMMANDS)
        {
            return Demands::SHELL;
        }
        before = Some(word);
    }
    // `-u` of other commands takes nothing.
    let clones = arguments.iter().any(|word| word.text == "clone");
    let is_option = |word: &Word| is(word, GIT_OPTIONS) || clones && is(word, &["-u"]);
    let takes_code = |word: &Word| is_option(word) || word.may_be_flags();
    if is_option(current) || before.is_some_and(takes_code) {
        Demands::SHELL
    } else {
        Demands::NONE
    }
}

/// What gets a word as an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::vault) enum Taker {
    /// A program, whose arguments everybody on the machine can read.
    Program(String),
    /// curl, for a header that it sends.
    Header,
    /// A function of the script.
    Function,
}

/// Returns what gets a further word after these as an argument, unless it is the shell itself.
pub(super) fn argument_of(
    words: &[Word],
    current: Option<&Word>,
    is_function: impl Fn(&str) -> bool,
) -> Option<Taker> {
    /// Words before a command of the shell, which may be a function.
    const PREFIXES: &[&str] = &["coproc", "noglob", "nocorrect"];
    let is_name = |word: &&Word| !word.text.starts_with('-') && !word.text.contains('=');
    let before = words.last();
    let mut words = words.iter();
    let first = words.next()?;
    let runs_functions = PREFIXES.contains(&first.text());
    if is_function(first.text()) {
        return Some(Taker::Function);
    }
    let named = if wraps(first.program()) {
        // What an option of the wrapper takes may come first; the warning names that then.
        words.find(is_name).unwrap_or(first)
    } else {
        first
    };
    if runs_functions && is_function(named.text()) {
        return Some(Taker::Function);
    }
    let is_header = current.is_some_and(|word| word.text.starts_with("-H"))
        || before.is_some_and(|word| word.text == "--header" || word.has_option('H'));
    match named.program() {
        _ if is_own_command(named.text()) => None,
        "curl" if is_header => Some(Taker::Header),
        program => Some(Taker::Program(program.to_owned())),
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
        || ["--command", "--session-command", "--call"]
            .iter()
            .any(|option| names_option(word, option))
}

/// Whether a word is an option, perhaps with its value, cut short or among other letters.
fn names_option(word: &Word, option: &str) -> bool {
    let name = word.text.split('=').next().unwrap_or_default();
    let mut letters = option.bytes().skip(1);
    let is_bundle = match (letters.next(), letters.next()) {
        // The options of `env` stand before those of a program.
        (Some(letter), None) if letter != b'S' => word.has_option(char::from(letter)),
        _ => false,
    };
    word.text.starts_with(option)
        || is_bundle
        || name.len() > 2 && name.starts_with("--") && option.starts_with(name)
}

fn is_code_option(word: &Word, letters: &[char], names: &[&str]) -> bool {
    has_code_letter(word, letters, names) || names.iter().any(|name| word.text.starts_with(name))
}

/// Whether the words before a value make it data: `jq --arg NAME VALUE`, `jq --args`.
fn is_plain_argument(arguments: &[Word]) -> bool {
    let is_named =
        matches!(arguments, [.., option, name] if option.text == "--arg" && !name.is_dynamic);
    is_named || has_filter(arguments) && arguments.iter().any(|word| word.text == "--args")
}

/// Whether the filter of jq is among its arguments: until it has come a value would be the filter.
fn has_filter(arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(letters) = word.text.strip_prefix('-') else {
            return !word.may_split();
        };
        let taken = match word.text() {
            "--arg" | "--argjson" | "--slurpfile" | "--rawfile" => 2,
            "--args" | "--jsonargs" => 0,
            _ if letters.chars().all(|c| "nrcesaSjCM".contains(c)) => 0,
            _ => 1,
        };
        for _ in 0..taken {
            words.next();
        }
    }
    false
}

/// Whether `env` splits text into words of its own: which program they name is not known.
fn splits_words(arguments: &[Word]) -> bool {
    let splits = |word: &Word| {
        ENV_OPTIONS
            .iter()
            .any(|option| word.text.starts_with(option))
    };
    arguments.iter().any(splits)
}

/// Whether a script among the arguments of an interpreter is told to read code.
fn opens_console(arguments: &[Word]) -> bool {
    const CONSOLES: &[&str] = &[
        "shell",
        "shell_plus",
        "console",
        "runner",
        "tinker",
        "dbshell",
        "dbconsole",
        "repl",
    ];
    let words = arguments.iter().filter(|word| !word.is_dynamic);
    words
        .take(MAX_CONSOLE)
        .any(|word| CONSOLES.contains(&word.text()))
}

/// Words behind an interpreter among which the command of a framework is looked for.
const MAX_CONSOLE: usize = 8;

/// Whether a bundle of letters holds one for code; a client of a database takes what follows some letters.
fn has_code_letter(word: &Word, letters: &[char], names: &[&str]) -> bool {
    let is_glued = !names.is_empty()
        && word.text.len() > 2
        && ["-h", "-u", "-U", "-p", "-P", "-H"]
            .iter()
            .any(|option| word.text.starts_with(option));
    !is_glued && letters.iter().any(|letter| word.has_option(*letter))
}

/// Follows the arguments of a shell up to the script it runs: what stands after that is data.
fn shell_demands(arguments: &[Word], current: &Word) -> Demands {
    let (mut is_value, mut is_uncertain, mut has_code) = (false, false, false);
    let (mut is_startup, mut reads_input) = (false, false);
    for word in arguments {
        if std::mem::take(&mut is_value) {
            is_startup = false;
            continue;
        }
        let ends_options = matches!(word.text(), "--" | "-") && !word.is_dynamic;
        if ends_options && reads_input && !has_code && !is_uncertain {
            // What follows are the arguments of a script that comes otherwise.
            return Demands::NONE;
        }
        if word.text.starts_with(['-', '+']) && word.text.len() > 1 {
            reads_input |= word.has_option('s');
            is_value = takes_value(&word.text);
            is_startup = is_value && word.text.starts_with("--");
            has_code |= word.has_option('c');
            // What it takes is not known: the next word may be the script or not.
            is_uncertain |= !is_value && !is_known(&word.text);
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
    if reads_input && !has_code && !is_uncertain
        || is_value && !is_startup && !current.text.starts_with('-')
    {
        Demands::NONE
    } else {
        Demands::SHELL
    }
}

fn takes_value(option: &str) -> bool {
    matches!(option, "--rcfile" | "--init-file" | "--emulate")
        || !option.starts_with("--") && option.contains(['o', 'O'])
}

/// Whether an option of a shell is known to take nothing.
fn is_known(option: &str) -> bool {
    const LONG: &[&str] = &[
        "--",
        "--norc",
        "--noprofile",
        "--posix",
        "--login",
        "--verbose",
        "--restricted",
        "--interactive",
        "--no-rcs",
        "--no-config",
        "--noediting",
        "--debugger",
    ];
    let letters = option.trim_start_matches(['-', '+']);
    LONG.contains(&option)
        || !option.starts_with("--")
            && letters
                .chars()
                .all(|c| "abcefhiklmnprstuvxBEHPT".contains(c))
}

#[cfg(test)]
mod tests;
