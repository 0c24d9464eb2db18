//! What the words of a shell command demand of a value that stands among them.
//!
//! Some programs read their arguments as code once more, and some builtins read names or
//! expressions; a value is text, so there it must not be able to say anything. The tables are
//! closed: a program that is not in them gets its arguments as they are.

use super::words::{Demands, Word, is_name};

/// Operators that calculate, in `[[`, `[` and `test`.
pub(super) const ARITHMETIC_TESTS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// Variables to which bash or zsh assigns by calculating.
const INTEGER_VARIABLES: &[&str] = &[
    "RANDOM",
    "SECONDS",
    "OPTIND",
    "LINENO",
    "HISTCMD",
    "EPOCHSECONDS",
    "SHLVL",
    "COLUMNS",
    "LINES",
    "HISTSIZE",
    "SAVEHIST",
    "UID",
    "EUID",
    "GID",
    "EGID",
    "FUNCNEST",
    "KEYTIMEOUT",
    "LISTMAX",
    "LOGCHECK",
    "MAILCHECK",
    "TMOUT",
    "REPORTTIME",
    "DIRSTACKSIZE",
    "ERRNO",
    "TTYIDLE",
];

/// Variables whose text is run later.
const CODE_VARIABLES: &[&str] = &[
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PROMPT",
    "RPROMPT",
    "PROMPT2",
    "PROMPT3",
    "PROMPT4",
    "RPS1",
    "PROMPT_COMMAND",
    "BASH_ENV",
    "ENV",
    "PAGER",
    "MANPAGER",
    "EDITOR",
    "VISUAL",
    "LESSOPEN",
    "LESSCLOSE",
    "GIT_SSH_COMMAND",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "GIT_EXTERNAL_DIFF",
    "RSYNC_RSH",
    "CVS_RSH",
    "MAKEFLAGS",
    "PERL5OPT",
];

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

/// Where a program reads code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// A shell: the word after `-c`, else a script's name, else standard input.
    Shell,
    /// Shell code after an option with this letter.
    ShellAfter(char),
    /// Shell code in all its arguments.
    ShellAll,
    /// Shell code in, or after, an argument that starts like one of these.
    ShellInOption(&'static [&'static str]),
    /// Code of its own after an option with one of these letters or names, else a file's name, else
    /// standard input.
    CodeAfter(&'static [char], &'static [&'static str]),
    /// Code of its own in all its arguments; its input is data.
    CodeAll,
    /// Code of its own in all its arguments and its input.
    CodeEverywhere,
}

/// Options of git after which settings come, among them commands.
const GIT_OPTIONS: &[&str] = &[
    "-c",
    "--config-env",
    "config",
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "-x",
];

/// Options of tar that name commands.
const TAR_OPTIONS: &[&str] = &[
    "--to-command",
    "--checkpoint-action",
    "-I",
    "--use-compress-program",
    "-F",
    "--info-script",
    "--new-volume-script",
    "--rsh-command",
    "--rmt-command",
];

/// Editors that take commands of their own, among them those of a shell.
const EDITOR: Reads = Reads::CodeAfter(&['c', 'S'], &["--cmd", "+"]);

/// Programs that read code, by the last part of their path.
const PROGRAMS: &[(&str, Reads)] = &[
    ("sh", Reads::Shell),
    ("bash", Reads::Shell),
    ("zsh", Reads::Shell),
    ("dash", Reads::Shell),
    ("ksh", Reads::Shell),
    ("mksh", Reads::Shell),
    ("ash", Reads::Shell),
    ("fish", Reads::Shell),
    ("rbash", Reads::Shell),
    ("csh", Reads::Shell),
    ("tcsh", Reads::Shell),
    ("nu", Reads::Shell),
    ("emulate", Reads::ShellAfter('c')),
    ("npm", Reads::ShellAfter('c')),
    ("npx", Reads::ShellAfter('c')),
    ("entr", Reads::ShellAfter('s')),
    ("su", Reads::ShellAfter('c')),
    ("runuser", Reads::ShellAfter('c')),
    ("script", Reads::ShellAfter('c')),
    ("flock", Reads::ShellAfter('c')),
    ("eval", Reads::ShellAll),
    ("source", Reads::ShellAll),
    (".", Reads::ShellAll),
    ("ssh", Reads::ShellAll),
    ("watch", Reads::ShellAll),
    ("parallel", Reads::ShellAll),
    ("tmux", Reads::ShellAll),
    ("screen", Reads::ShellAll),
    ("at", Reads::ShellAll),
    ("batch", Reads::ShellAll),
    ("crontab", Reads::ShellAll),
    ("make", Reads::ShellAll),
    ("gmake", Reads::ShellAll),
    ("hyperfine", Reads::ShellAll),
    ("watchexec", Reads::ShellAll),
    ("git", Reads::ShellInOption(GIT_OPTIONS)),
    ("tar", Reads::ShellInOption(TAR_OPTIONS)),
    ("gtar", Reads::ShellInOption(TAR_OPTIONS)),
    ("bsdtar", Reads::ShellInOption(TAR_OPTIONS)),
    (
        "rsync",
        Reads::ShellInOption(&["-e", "--rsh", "--rsync-path"]),
    ),
    ("capsh", Reads::ShellAll),
    ("sg", Reads::ShellAll),
    ("split", Reads::ShellInOption(&["--filter"])),
    (
        "man",
        Reads::ShellInOption(&["-P", "--pager", "-H", "--html", "-E", "-p"]),
    ),
    ("env", Reads::ShellInOption(&["-S", "--split-string"])),
    ("pwsh", Reads::CodeAfter(&['c'], &["-command", "-Command"])),
    ("python", Reads::CodeAfter(&['c'], &[])),
    ("python2", Reads::CodeAfter(&['c'], &[])),
    ("python3", Reads::CodeAfter(&['c'], &[])),
    ("pypy3", Reads::CodeAfter(&['c'], &[])),
    ("perl", Reads::CodeAfter(&['e', 'E'], &[])),
    ("ruby", Reads::CodeAfter(&['e'], &[])),
    (
        "node",
        Reads::CodeAfter(&['e', 'p'], &["--eval", "--print"]),
    ),
    (
        "nodejs",
        Reads::CodeAfter(&['e', 'p'], &["--eval", "--print"]),
    ),
    ("bun", Reads::CodeAfter(&['e', 'p'], &["--eval", "--print"])),
    ("deno", Reads::CodeAfter(&[], &["eval"])),
    ("php", Reads::CodeAfter(&['r', 'B', 'R', 'E'], &["--run"])),
    ("lua", Reads::CodeAfter(&['e'], &[])),
    ("Rscript", Reads::CodeAfter(&['e'], &[])),
    ("osascript", Reads::CodeAfter(&['e'], &[])),
    (
        "psql",
        Reads::CodeAfter(&['c', 'v'], &["--command", "--set", "--variable"]),
    ),
    (
        "mysql",
        Reads::CodeAfter(&['e'], &["--execute", "--init-command"]),
    ),
    (
        "mariadb",
        Reads::CodeAfter(&['e'], &["--execute", "--init-command"]),
    ),
    ("awk", Reads::CodeAll),
    ("gawk", Reads::CodeAll),
    ("mawk", Reads::CodeAll),
    ("nawk", Reads::CodeAll),
    ("sed", Reads::CodeAll),
    ("gsed", Reads::CodeAll),
    ("jq", Reads::CodeAll),
    ("yq", Reads::CodeAll),
    ("vim", EDITOR),
    ("vi", EDITOR),
    ("nvim", EDITOR),
    ("ex", EDITOR),
    ("view", EDITOR),
    (
        "emacs",
        Reads::CodeAfter(&['f'], &["--eval", "--execute", "--funcall", "-eval"]),
    ),
    ("expect", Reads::CodeAfter(&['c'], &[])),
    ("mongosh", Reads::CodeAfter(&[], &["--eval"])),
    ("mongo", Reads::CodeAfter(&[], &["--eval"])),
    ("sqlite3", Reads::CodeEverywhere),
    ("duckdb", Reads::CodeEverywhere),
    ("tclsh", Reads::CodeEverywhere),
    ("bc", Reads::CodeEverywhere),
    ("dc", Reads::CodeEverywhere),
    ("ed", Reads::CodeEverywhere),
    ("m4", Reads::CodeEverywhere),
    ("gdb", Reads::CodeEverywhere),
];

/// Programs that run the program named by one of their arguments.
const WRAPPERS: &[&str] = &[
    "sudo",
    "doas",
    "env",
    "command",
    "builtin",
    "exec",
    "nohup",
    "nice",
    "ionice",
    "chrt",
    "time",
    "timeout",
    "stdbuf",
    "setsid",
    "xargs",
    "find",
    "docker",
    "podman",
    "nerdctl",
    "kubectl",
    "oc",
    "lxc",
    "systemd-run",
    "chroot",
    "unshare",
    "nsenter",
    "sshpass",
    "strace",
    "ltrace",
    "busybox",
    "toybox",
    "su-exec",
    "gosu",
    "setpriv",
    "taskset",
    "unbuffer",
    "entr",
    "direnv",
    "nix",
    "nix-shell",
    "poetry",
    "uv",
    "pipenv",
    "conda",
    "noglob",
    "nocorrect",
    "coproc",
    "flock",
    "runuser",
    "su",
    "script",
    "firejail",
    "bwrap",
    "caffeinate",
    "setarch",
    "linux64",
    "linux32",
    "i386",
    "fakeroot",
    "choom",
    "prlimit",
    "dbus-run-session",
    "valgrind",
    "perf",
    "pyenv",
];

/// Returns what the command's words so far demand of a value in the word `current`.
pub(super) fn argument_demands(words: &[Word], current: &Word) -> Demands {
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

/// Words that start no program when they start a command.
const BUILTINS: &[&str] = &[
    "",
    ":",
    ".",
    "[",
    "[[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "case",
    "cd",
    "command",
    "compgen",
    "complete",
    "continue",
    "declare",
    "dirs",
    "disown",
    "echo",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "float",
    "for",
    "foreach",
    "function",
    "getopts",
    "hash",
    "history",
    "integer",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "print",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "repeat",
    "return",
    "select",
    "set",
    "setopt",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
    "whence",
    "zstyle",
];

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
    let has_file = || arguments.iter().any(|word| !word.text.starts_with('-'));
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
        "trap" | "alias" | "bind" | "complete" | "compgen" | "zle" | "zstyle" => {
            Demands::forbidden("in code that runs later")
        }
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
    if is_option("iEF") || matches!(command, "integer" | "float") {
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
            .find(|(name, _)| *name == version_less(word.program()))
            .map(|(_, reads)| *reads)
    };
    let is_wrapper = WRAPPERS.contains(&first.program());
    if is_wrapper && let Some(at) = rest.iter().position(|word| look_up(word).is_some()) {
        let (_, after) = rest.split_at(at + 1);
        return rest.get(at).and_then(look_up).map(|reads| (reads, after));
    }
    if first.is_unknown() {
        // `$SHELL -c ...`, or whatever else the variable holds.
        return Some((Reads::ShellAll, rest));
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
    for word in arguments {
        if std::mem::take(&mut is_value) {
            continue;
        }
        if word.text.starts_with(['-', '+']) && word.text.len() > 1 {
            if word.has_option('s') && !word.text.contains('c') {
                return Demands::NONE;
            }
            is_value = takes_value(&word.text);
            has_code |= word.has_option('c');
        } else if word.is_unknown() && !(has_code && word.is_quoted) {
            // An expansion may be an option, a script or nothing.
            is_uncertain = true;
        } else if !is_uncertain {
            return Demands::NONE;
        }
    }
    if is_value && !current.text.starts_with('-') {
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
        .any(|word| word.text == "-" || word.has_option('s') || word.text == "/dev/stdin")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words as in a script, `?` for one that is only an expansion.
    fn words(text: &str) -> Vec<Word> {
        let word = |text: &str| Word {
            text: if text == "?" {
                String::new()
            } else {
                text.into()
            },
            is_dynamic: text == "?",
            ..Word::default()
        };
        text.split_whitespace().map(word).collect()
    }

    fn check(command: &str, current: &str, expected: Demands) {
        let current = Word {
            text: current.into(),
            ..Word::default()
        };
        assert_eq!(
            argument_demands(&words(command), &current),
            expected,
            "{command} {current:?}"
        );
    }

    const NAME: Demands = Demands::forbidden("in the place of a variable's name");

    #[test]
    fn plain_programs_demand_nothing() {
        check("", "", Demands::NONE);
        check("curl -H", "", Demands::NONE);
        check("echo bash -c", "", Demands::NONE);
        check("python3 script.py -c", "", Demands::PROGRAM);
        check("python3 script.py --token", "", Demands::NONE);
    }

    #[test]
    fn shells_read_one_script() {
        check("bash -c", "", Demands::SHELL);
        check("/bin/bash -euo pipefail -c", "", Demands::SHELL);
        check("bash -o pipefail", "-c", Demands::SHELL);
        check("bash -c x", "", Demands::NONE);
        check("bash script.sh", "", Demands::NONE);
        check("bash -s --", "", Demands::NONE);
        check("bash ? x", "", Demands::SHELL);
        check("? -c", "", Demands::SHELL);
        check("sudo -u x sh -c", "", Demands::SHELL);
        check("docker exec -it box sh -lc", "", Demands::SHELL);
        check("find . -exec sh -c", "", Demands::SHELL);
        check("su - user -c", "", Demands::SHELL);
        check("su - user", "", Demands::NONE);
        check("ssh host", "", Demands::SHELL);
        check("sshpass -p", "", Demands::NONE);
        check("env X=1 eval", "", Demands::SHELL);
    }

    #[test]
    fn interpreters_read_code_after_an_option() {
        check("python3.11 -c", "", Demands::PROGRAM);
        check("python3 -c x", "", Demands::NONE);
        check("perl -pe", "", Demands::PROGRAM);
        check("node", "--eval=x", Demands::PROGRAM);
        check("psql -U u -tAc", "", Demands::PROGRAM);
        check("psql", "", Demands::NONE);
        check("sed -i", "", Demands::PROGRAM);
        check("vim -c", "", Demands::PROGRAM);
        check("vim", "+", Demands::PROGRAM);
        check("vim file", "", Demands::NONE);
        check("jq --arg k", "", Demands::NONE);
        check("jq", "", Demands::PROGRAM);
        check("sudo awk", "", Demands::PROGRAM);
    }

    #[test]
    fn builtins_read_names_and_expressions() {
        check("unset", "", NAME);
        check("printf -v", "", NAME);
        check("printf %d", "", Demands::NUMBER);
        check("printf", "", Demands::FORMAT);
        check("printf --", "a", Demands::FORMAT);
        check("printf -v x", "", Demands::FORMAT);
        check("echo -ne", "", Demands::FORMAT);
        check("echo -n", "", Demands::NONE);
        check("printf %s%%d", "", Demands::NONE);
        check("printf %s", "", Demands::NONE);
        check("export", "TOKEN=", Demands::NONE);
        check("export", "", NAME);
        check("declare -i", "n=", Demands::NUMBER);
        check("declare -n", "n=", NAME);
        check("let", "x=", Demands::NUMBER);
        check("for", "", NAME);
        check("for x in", "", Demands::NONE);
        check("trap", "", Demands::forbidden("in code that runs later"));
    }

    #[test]
    fn input_is_code_to_some() {
        let check = |command: &str, expected: Demands| {
            assert_eq!(input_demands(&words(command)), expected, "{command}")
        };
        check("cat", Demands::NONE);
        check("bash", Demands::SHELL);
        check("sudo bash -s --", Demands::SHELL);
        check("bash script.sh", Demands::NONE);
        check("ssh host", Demands::SHELL);
        check("python3 -", Demands::PROGRAM);
        check("python3", Demands::PROGRAM);
        check("python3 script.py", Demands::NONE);
        check("python3 -c x", Demands::NONE);
        check("psql base", Demands::PROGRAM);
        check("jq .", Demands::NONE);
        check("sqlite3 f", Demands::PROGRAM);
    }
}
