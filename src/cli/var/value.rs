//! Takes a value from the user: typed hidden, or piped in.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

use zeroize::Zeroizing;

use crate::cli::var::args::InputArgs;
use crate::cli::vault::{Asking, VaultFlags, Wanted, ask};
use crate::cli::{say, secret_lints};
use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::{SecretName, SecretValue};
use crate::vault::keep::Vault;
use crate::vault::policy::Policy;

/// Checks where a value is to come from, before anything is opened or asked for.
///
/// # Errors
/// `usage`: standard input is a terminal, which would show the value, or is to give a passphrase as well.
pub(super) fn check_input(flags: &VaultFlags, input: &InputArgs) -> Result<(), ToolError> {
    if !input.stdin {
        return Ok(());
    }
    if flags.age_passphrase_fd == Some(0) {
        let message = "--stdin and --age-passphrase-fd 0 both want standard input";
        return Err(ToolError::new(ErrorCode::Usage, message).with_hint(
            "give the passphrase by another descriptor: --age-passphrase-fd 3 3< FILE",
        ));
    }
    if io::stdin().is_terminal() {
        let message = "--stdin reads what is piped in, and standard input is a terminal, which would show the value";
        return Err(ToolError::new(ErrorCode::Usage, message)
            .with_hint("leave out --stdin to be asked for the value, hidden"));
    }
    Ok(())
}

/// Takes a value that can be kept and warns of what is probably a mistake.
pub(super) fn take(
    vault: &Vault,
    asking: &Asking,
    (name, policy): (&SecretName, &Policy),
    input: &InputArgs,
) -> Result<SecretValue, ToolError> {
    let value = typed(asking, name.as_str(), input)?;
    // What is refused is not warned of first.
    vault.check(name, &value, policy)?;
    secret_lints::tell(name, &value);
    Ok(value)
}

/// Takes a value as it comes; `what` says in the question what it is the value of.
pub(super) fn typed(
    asking: &Asking,
    what: &str,
    input: &InputArgs,
) -> Result<SecretValue, ToolError> {
    if input.stdin {
        return piped(input.raw);
    }
    if let (Asking::OnTerminal(_), true) = (asking, is_piped()) {
        say("warning: standard input is not read without --stdin");
    }
    let label = format!("value of {what} (hidden; Enter ends it, Esc gives up): ");
    let otherwise = "pipe the value in with --stdin";
    let wanted = Wanted {
        label: &label,
        otherwise,
    };
    ask(asking, &wanted)
}

/// Whether somebody gave standard input something to read: a pipe or a file.
fn is_piped() -> bool {
    let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let found = stdin.and_then(|stdin| stdin.metadata());
    found.is_ok_and(|found| found.is_file() || found.file_type().is_fifo())
}

/// Reads a value from standard input, and takes one line break from its end unless it is wanted raw.
fn piped(is_raw: bool) -> Result<SecretValue, ToolError> {
    let most = limits::MAX_SECRET_BYTES + 3;
    let mut bytes = Zeroizing::new(Vec::with_capacity(most));
    io::stdin()
        .take(most as u64)
        .read_to_end(&mut bytes)
        .map_err(|error| {
            ToolError::new(ErrorCode::Io, format!("reading standard input: {error}"))
        })?;
    let text = std::str::from_utf8(&bytes).map_err(|_| {
        ToolError::new(ErrorCode::BadValue, "the value is not UTF-8")
            .with_hint("encode it, for example with base64")
    })?;
    let text = match text.strip_suffix('\n').filter(|_| !is_raw) {
        Some(text) => text.strip_suffix('\r').unwrap_or(text),
        None => text,
    };
    Ok(SecretValue::new(text.to_owned()))
}
