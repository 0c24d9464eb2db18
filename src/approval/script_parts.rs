//! Parts of a script that are judged one by one, and the doubts about the script as a whole.

use karyi_core::shell_word;
use karyi_vault::shell_lexer::{self, Redirection, Script, SimpleCommand, Word};

use crate::approval::command_table::{check_comparisons, is_script_variable};
use crate::approval::command_words::CommandWord;

/// Script, read.
pub(super) struct ScriptParts<'a> {
    pub(super) text: &'a str,
    pub(super) script: Script,
    /// Parts that need consent for whatever commands they hold: the text and the reason.
    pub(super) doubts: Vec<(String, &'static str)>,
}

/// Files that a redirection may name without writing anything.
const HARMLESS_TARGETS: &[&str] = &[
    "/dev/null",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/stdin",
    "/dev/tty",
];

/// Reads a script.
///
/// # Errors
/// The reason why it cannot be read.
pub(super) fn read(text: &str) -> Result<ScriptParts<'_>, &'static str> {
    if text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return Err("it has control characters");
    }
    let script = shell_lexer::read(text, &[]).map_err(|error| error.why)?;
    let doubts = script.doubts.iter().map(|span| {
        let shown = text.get(span.clone()).unwrap_or_default().to_owned();
        (shown, "its expansion may run code or set a variable")
    });
    let functions = script.functions.iter();
    let functions = functions.map(|name| (format!("{name}()"), "it defines a function"));
    let heads = script
        .commands
        .iter()
        .filter(|command| !command.is_simple());
    let heads = heads.filter_map(|head| Some((shown(head, text), doubt_of_head(head, text)?)));
    let doubts = doubts.chain(functions).chain(heads).collect();
    Ok(ScriptParts {
        text,
        script,
        doubts,
    })
}

impl ScriptParts<'_> {
    /// Returns the simple commands.
    pub(super) fn commands(&self) -> impl Iterator<Item = &SimpleCommand> {
        self.script.simple_commands()
    }

    /// Returns the words of a command.
    pub(super) fn words<'s>(&'s self, command: &'s SimpleCommand) -> Vec<CommandWord<'s>> {
        let words = command.words.iter();
        words.map(|word| CommandWord::of(word, self.text)).collect()
    }

    /// Returns true for redirections without a command. `$(< file)` is none: the shell itself reads the file.
    pub(super) fn is_bare_redirection(&self, command: &SimpleCommand) -> bool {
        let [first, rest @ ..] = command.redirections.as_slice() else {
            return false;
        };
        let span = &first.target.span;
        let before = self.text.get(..span.start).unwrap_or_default().trim_end();
        let after = self.text.get(span.end..).unwrap_or_default().trim_start();
        let before = before.strip_suffix('<').unwrap_or_default().trim_end();
        let is_read = rest.is_empty() && before.ends_with("$(") && after.starts_with(')');
        !command.is_tail && command.assignments.is_empty() && !is_read
    }

    /// Returns what a redirection writes.
    pub(super) fn target<'s>(&'s self, redirection: &'s Redirection) -> Target<'s> {
        match target(redirection, self.text) {
            Target::Network if self.is_file_of_loop(&redirection.target) => Target::Nothing,
            other => other,
        }
    }

    /// Returns true for `"$f"` in the body of `for f in a *.rs`: the names of files are known not to be connections,
    /// and nothing else sets the variable.
    fn is_file_of_loop(&self, word: &Word) -> bool {
        let source = |word: &Word| self.text.get(word.span.clone()).unwrap_or_default();
        let quoted = source(word).strip_prefix("\"$");
        let Some(name) = quoted.and_then(|name| name.strip_suffix('"')) else {
            return false;
        };
        let braced = name
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'));
        let name = braced.unwrap_or(name);
        let names = |command: &&SimpleCommand| {
            let is_assigned = command.assignments.iter().any(|one| one.name == name);
            is_assigned || command.words.iter().any(|word| word.text == name)
        };
        let mut setters = self.script.commands.iter().filter(names);
        let (Some(head), None) = (setters.next(), setters.next()) else {
            return false;
        };
        let [start, variable, is_in, files @ .., last] = head.words.as_slice() else {
            return false;
        };
        let is_loop = source(start) == "for" && source(variable) == name && source(is_in) == "in";
        let body = self.text.get(last.span.end..word.span.start);
        let body = body
            .unwrap_or_default()
            .trim_start_matches([' ', '\t', '\n', ';']);
        let in_body = body.strip_prefix("do").is_some_and(|rest| {
            let mut words = rest.split(|c: char| !c.is_alphanumeric() && c != '_');
            rest.starts_with(char::is_whitespace) && !words.any(|word| word == "done")
        });
        let is_file = |word: &Word| match word.is_certain {
            true => !may_connect(word, self.text),
            false => {
                let pattern = source(word);
                let is_usual = |c: char| c.is_alphanumeric() || "_-./*?".contains(c);
                !pattern.starts_with('/') && pattern.chars().all(is_usual)
            }
        };
        is_loop && in_body && files.iter().chain([last]).all(is_file) && is_script_variable(name)
    }

    /// Returns the text of a command.
    pub(super) fn shown(&self, command: &SimpleCommand) -> String {
        shown(command, self.text)
    }
}

/// Returns the text of a command without its redirections.
fn shown(command: &SimpleCommand, text: &str) -> String {
    let assignments = command.assignments.iter();
    let assignments = assignments.map(|one| {
        let value = match one.is_certain {
            true => shell_word::word(one.value.as_ref()),
            false => one.value.clone(),
        };
        format!("{}={value}", one.name)
    });
    let words = command.words.iter();
    let words = words.map(|word| text.get(word.span.clone()).unwrap_or_default().to_owned());
    assignments.chain(words).collect::<Vec<_>>().join(" ")
}

/// Returns the reason to ask about the head of a compound command, such as `for x in a b`.
fn doubt_of_head(head: &SimpleCommand, text: &str) -> Option<&'static str> {
    let words: Vec<CommandWord<'_>> = head
        .words
        .iter()
        .map(|word| CommandWord::of(word, text))
        .collect();
    if words.iter().any(|word| word.may_hold_code) {
        return Some("a pattern of it may run code");
    }
    let first = words.first()?;
    match first.source {
        "for" if words.len() == 1 => None,
        "for" => {
            let is_usual = words.get(2).is_none_or(|word| word.text == "in");
            let is_harmless = words
                .get(1)
                .is_some_and(|name| is_script_variable(name.text));
            match (is_usual, is_harmless) {
                (true, true) => None,
                (true, false) => Some("its variable may change what later commands do"),
                (false, _) => Some("it is not understood"),
            }
        }
        "case" if words.len() > 2 => Some("it is not understood"),
        "select" | "foreach" | "repeat" => Some("it is not understood"),
        "[[" => check_comparisons(&words)
            .err()
            .map(|_| "it calculates with a variable, which may run code"),
        _ => None,
    }
}

/// Target of a redirection.
pub(super) enum Target<'a> {
    /// No file.
    Nothing,
    /// This file.
    File(&'a str),
    /// A file that is not known before the script runs, as it is written.
    Unknown(&'a str),
    /// A connection to another machine.
    Network,
}

/// Returns what a redirection of a script with this text writes.
fn target<'a>(redirection: &'a Redirection, text: &str) -> Target<'a> {
    let Redirection {
        descriptor,
        operator,
        target,
    } = redirection;
    let file = target.text.as_str();
    let names_variable = descriptor
        .as_ref()
        .is_some_and(|name| name.starts_with('{'));
    match operator.as_str() {
        _ if names_variable => Target::Unknown(file),
        "<<" | "<<-" | "<<<" => Target::Nothing,
        "<&" | ">&" if target.is_certain && is_descriptor(file) => Target::Nothing,
        "<" | "<&" if may_connect(target, text) => Target::Network,
        "<" => Target::Nothing,
        // bash takes the sign for the name of the file.
        _ if !target.is_certain || operator.ends_with('!') => Target::Unknown(file),
        _ if HARMLESS_TARGETS.contains(&file) => Target::Nothing,
        _ => Target::File(file),
    }
}

/// Returns true for what closes or copies a descriptor: `-`, `1` or `1-`.
fn is_descriptor(word: &str) -> bool {
    let number = word.strip_suffix('-').unwrap_or(word);
    word == "-" || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true for a file to read from whose name may be one of those by which bash opens a connection. The name is
/// known up to the first expansion.
fn may_connect(target: &Word, text: &str) -> bool {
    let source = text.get(target.span.clone()).unwrap_or_default();
    let source = source.replace('"', "");
    let expansions = ['$', '`', '\'', '\\', '*', '?', '[', '{'];
    let start = match target.is_certain {
        true => target.text.as_str(),
        false => source.split(expansions).next().unwrap_or_default(),
    };
    let mut names = ["/dev/tcp/", "/dev/udp/"].into_iter();
    names.any(|name| start.starts_with(name) || !target.is_certain && name.starts_with(start))
}
