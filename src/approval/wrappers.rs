//! Commands that run the command in their own words, and commands that always ask.

use crate::approval::command_table::option_length;
use crate::approval::command_words::CommandWord;

/// Command that runs the command in its words.
struct Wrapper {
    name: &'static str,
    /// Harmless options, written as in the table of commands.
    options: &'static str,
    /// Operands before the command.
    operands: usize,
}

const fn wrapper(name: &'static str, options: &'static str, operands: usize) -> Wrapper {
    Wrapper {
        name,
        options,
        operands,
    }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("command", "-p", 0),
    wrapper("builtin", "", 0),
    wrapper("noglob", "", 0),
    wrapper("nocorrect", "", 0),
    // With an option it takes variables away that the program needs to ask nothing, such as `GIT_PAGER`.
    wrapper("env", "-i -u= --unset= --ignore-environment", 0),
    wrapper("nice", "-n= -# --adjustment=", 0),
    wrapper("stdbuf", "-i= -o= -e=", 0),
    wrapper("time", "-p -v", 0),
    wrapper(
        "timeout",
        "-k= -s= -v --foreground --preserve-status --kill-after= --signal=",
        1,
    ),
    wrapper(
        "xargs",
        "-0 -r -t -n= -P= -L= -d= --null --no-run-if-empty --max-args= --max-procs=",
        0,
    ),
];

/// Reasons to ask, with the commands that have them.
const ASKED: &[(&str, &str)] = &[
    (
        "it runs code that its words or a file hold",
        "eval source . trap fc coproc",
    ),
    (
        "it changes what later commands mean",
        "alias unalias hash enable exec export declare typeset local readonly integer float unset set shopt setopt \
         unsetopt autoload zmodload bindkey complete functions emulate getopts mapfile readarray",
    ),
    (
        "it runs with the rights of another user",
        "sudo doas su runuser pkexec",
    ),
    (
        "it is a shell, which runs commands that are not listed",
        "sh bash zsh dash ksh mksh ash fish",
    ),
];

/// Programs that read commands from the terminal.
const INTERPRETERS: &str = "sh bash zsh dash ksh mksh ash fish python ipython node deno bun ruby irb perl php psql \
    mysql mariadb sqlite mongosh mongo redis-cli ghci lua r julia scala jshell erl iex gdb lldb pdb ssh sftp ftp telnet \
    nc screen tmux zellij vi vim nvim view ed emacs nano less more man su sudo doas docker podman kubectl expect script \
    bc dc gpg";

/// Directories of the system whose programs go by their name alone.
const SYSTEM_DIRECTORIES: &[&str] = &[
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
];

/// Command without the commands that run it.
#[derive(Debug, Default)]
pub(super) struct InnerCommand<'a> {
    /// Its words; empty when a wrapper has none.
    pub(super) words: Vec<CommandWord<'a>>,
    /// Variables that `env` sets.
    pub(super) variables: Vec<(&'a str, &'a str)>,
    /// Names of the commands that run it.
    pub(super) wrappers: Vec<&'a str>,
    /// Reason to ask.
    pub(super) doubt: Option<String>,
}

/// Returns a command without the commands that run it.
pub(super) fn unwrapped<'a>(words: &[CommandWord<'a>]) -> InnerCommand<'a> {
    let mut found = InnerCommand {
        words: words.to_vec(),
        ..InnerCommand::default()
    };
    found.name_program();
    while let Some(name) = found.words.first().copied() {
        let asks = matches!(found.words.get(1), Some(word) if name.text == "command" && matches!(word.text, "-v" | "-V"));
        let wrapper = WRAPPERS.iter().find(|one| one.name == name.text);
        let Some(wrapper) = wrapper.filter(|_| name.is_certain && !asks) else {
            break;
        };
        found.wrappers.push(name.text);
        found.words.remove(0);
        found.skip_options(wrapper);
        found.name_program();
        if wrapper.name == "xargs" {
            found.words.push(CommandWord::UNKNOWN);
        }
        if found.words.is_empty() {
            let name = wrapper.name;
            found
                .doubt
                .get_or_insert(format!("no rule allows `{name}` alone"));
        }
    }
    found
}

impl<'a> InnerCommand<'a> {
    /// Names the program of the command without a directory of the system.
    fn name_program(&mut self) {
        if let Some(name) = self.words.first_mut() {
            name.text = program(name.text);
        }
    }

    /// Skips the options, variables and operands of a wrapper.
    fn skip_options(&mut self, wrapper: &Wrapper) {
        while let Some(word) = self
            .words
            .first()
            .copied()
            .filter(|word| word.may_be_option())
        {
            let length = match word.text {
                "--" => Some(1),
                _ => option_length(wrapper.options, false, &self.words),
            };
            let (name, option) = (wrapper.name, word.source);
            if length.is_none() || name == "env" && option != "--" {
                let doubt =
                    format!("the option `{option}` of `{name}` is not known to be harmless");
                self.doubt.get_or_insert(doubt);
            }
            self.skip(length.unwrap_or(1));
        }
        if wrapper.name == "env" {
            while let Some((name, value)) = self
                .words
                .first()
                .and_then(|word| word.text.split_once('='))
            {
                self.variables.push((name, value));
                self.skip(1);
            }
        }
        self.skip(wrapper.operands);
    }

    /// Skips words before the command. One that may become several may be the command.
    fn skip(&mut self, count: usize) {
        for word in self.words.drain(..count.min(self.words.len())) {
            if word.is_split {
                let doubt = format!("`{}` may become several words", word.source);
                self.doubt.get_or_insert(doubt);
            }
        }
    }
}

/// Returns the name of a program, without a directory of the system.
pub(super) fn program(word: &str) -> &str {
    let mut directories = SYSTEM_DIRECTORIES.iter();
    let name = directories.find_map(|directory| word.strip_prefix(directory));
    name.filter(|name| !name.contains('/')).unwrap_or(word)
}

/// Programs that run the command in their words, and are no wrappers because they do more.
const RUNNERS: &[&str] = &["nohup", "setsid", "watch", "strace", "ionice"];

/// Returns the commands in the words of a command that runs what follows its own options.
pub(super) fn inner_commands<'w, 'a>(
    words: &'w [CommandWord<'a>],
) -> impl Iterator<Item = &'w [CommandWord<'a>]> {
    let name = words.first().map_or("", |name| name.text);
    let is_runner = reason_to_ask(name).is_some() || RUNNERS.contains(&name);
    let ends = (1..words.len()).filter(move |_| is_runner);
    ends.filter_map(|at| words.get(at..))
}

/// Returns the reason why a command always asks.
pub(super) fn reason_to_ask(name: &str) -> Option<&'static str> {
    let base = name.rsplit('/').next().unwrap_or_default();
    let asked = ASKED
        .iter()
        .find(|(_, names)| names.split_ascii_whitespace().any(|one| one == base));
    asked.map(|(reason, _)| *reason)
}

/// Returns true for a program that may read commands from the terminal.
pub(super) fn reads_commands(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or_default();
    let base = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS
        .split_ascii_whitespace()
        .any(|one| one.eq_ignore_ascii_case(base))
}
