//! Wrong arguments where one of them may be a value: the message repeats none.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags that name a descriptor with a secret.
const FLAGS: &[&str] = &["--vars-fd", "--age-passphrase-fd"];

/// Whether a value may stand among the arguments by mistake: those of `karyi var`, and of the flags that name a
/// descriptor.
pub(super) fn may_hold_value(arguments: &[OsString]) -> bool {
    let is_one = |argument: &OsString| {
        let argument = argument.to_string_lossy();
        argument == "var" || FLAGS.iter().any(|flag| argument.starts_with(flag))
    };
    arguments.iter().skip(1).any(is_one)
}

/// Returns what is wrong with the arguments, without any of them; nothing for what is no mistake.
pub(super) fn without_arguments(error: &clap::Error) -> Option<String> {
    let at = known(error).map(|known| format!(" at {known}"));
    let at = at.unwrap_or_default();
    let problem = match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::MissingSubcommand
        | ErrorKind::MissingRequiredArgument
        | ErrorKind::ArgumentConflict => return None,
        ErrorKind::InvalidSubcommand => "expected a command, found something else".to_owned(),
        ErrorKind::TooManyValues | ErrorKind::WrongNumberOfValues => {
            format!("expected a flag without a value{at}, found one")
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            format!("expected one of the values that can stand there{at}, found something else")
        }
        _ => "expected a name or a flag, found something else".to_owned(),
    };
    Some(format!(
        "usage: {problem}; it is not repeated here, since it may be a value\nhint: type values at the \
         question, or pipe them in with --stdin; see `karyi help`"
    ))
}

/// Returns the argument of the command's own that the error is about.
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
