//! Usage errors where an argument may be a value: the message repeats none.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::render::paint::safe_line;
use karyi_core::shell_word;

/// Flags that name a descriptor with a secret.
const FLAGS: &[&str] = &["--vars-fd", "--age-passphrase-fd"];

/// Returns true when an argument may be a value by mistake: those of `karyi var` and of these flags.
pub(super) fn may_hold_value(arguments: &[OsString]) -> bool {
    let is_one = |argument: &OsString| {
        let argument = argument.to_string_lossy();
        argument == "var" || FLAGS.iter().any(|flag| argument.starts_with(flag))
    };
    arguments.iter().skip(1).any(is_one)
}

/// Commands of other programs, with the matching command of `karyi var`.
const MEANT: &[(&str, &str)] = &[
    ("ls", "list"),
    ("delete", "rm"),
    ("del", "rm"),
    ("remove", "rm"),
    ("unset", "rm"),
    ("add", "set"),
    ("put", "set"),
    ("new", "set"),
    ("edit", "set"),
    ("cat", "get"),
    ("print", "get"),
    ("info", "show"),
    ("mv", "rename"),
    ("move", "migrate"),
    ("run", "exec"),
];

/// Returns the usage error without any argument, or `None` when it is no error.
pub(super) fn without_arguments(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let at = known(error).map(|known| format!(" at {known}"));
    let at = at.unwrap_or_default();
    let problem = match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::MissingSubcommand
        | ErrorKind::MissingRequiredArgument
        | ErrorKind::ArgumentConflict => return None,
        ErrorKind::InvalidSubcommand => format!(
            "expected a command{}, found something else",
            meant(error).map_or_else(String::new, |meant| format!(", probably {meant}"))
        ),
        ErrorKind::TooManyValues | ErrorKind::WrongNumberOfValues => {
            format!("expected a flag without a value{at}, found one")
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            format!("expected {}{at}, found something else", possible(error))
        }
        _ => "expected a name or a flag, found something else".to_owned(),
    };
    let is_exec = error.kind() == ErrorKind::UnknownArgument
        && arguments.iter().any(|argument| argument == "exec");
    let hint = match (is_exec, error.kind()) {
        (true, _) => "a program and its arguments stand behind --: karyi var exec NAME -- CMD",
        (false, ErrorKind::InvalidSubcommand) => {
            "`karyi help` lists the commands, and `karyi var --help` those of the vault"
        }
        (false, _) => "type values at the question, or pipe them in with --stdin; see `karyi help`",
    };
    Some(format!(
        "usage: {problem}; it is not repeated here, since it may be a value\nhint: {hint}"
    ))
}

/// Returns the usage error of a file that stands in place of a command.
pub(super) fn misplaced_file(word: &str) -> Option<String> {
    let is_file = word == "-" || Path::new(word).is_file();
    is_file.then(|| {
        let shown = shell_word::word(OsStr::new(word));
        let shown = safe_line(&shown);
        format!("usage: expected a command, found a file\nhint: did you mean `karyi run {shown}`?")
    })
}

/// Returns the command that was probably meant: the equivalent in `karyi var`, else the parser's best
/// suggestion, which is its last.
fn meant(error: &clap::Error) -> Option<&str> {
    let word = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => word,
        _ => return None,
    };
    if let Some((_, meant)) = MEANT.iter().find(|(other, _)| other == word) {
        return Some(meant);
    }
    match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(alike)) => alike.last().map(String::as_str),
        _ => None,
    }
}

/// Lists the possible values of an argument when there are few.
fn possible(error: &clap::Error) -> String {
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => values.join(" or "),
        _ => "one of the values that can stand there".to_owned(),
    }
}

/// Returns the name of the argument the error is about.
fn known(error: &clap::Error) -> Option<&str> {
    let is_own = matches!(
        error.kind(),
        ErrorKind::InvalidValue
            | ErrorKind::ValueValidation
            | ErrorKind::TooManyValues
            | ErrorKind::WrongNumberOfValues
    );
    match error.get(ContextKind::InvalidArg).filter(|_| is_own) {
        Some(ContextValue::String(known)) => Some(known),
        _ => None,
    }
}
