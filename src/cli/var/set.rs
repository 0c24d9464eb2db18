//! `karyi var set` and `karyi var rotate`: read a value, typed hidden or piped in, and store it or send it to a
//! running session, which has it in memory until it ends.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::process::ExitCode;

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::cli::control_socket::{self, RunningSession};
use crate::cli::prompt::{Asker, hidden};
use crate::cli::var::args::{InputArgs, RotateArgs, SetArgs};
use crate::cli::var::{CommandResult, asker, existing_in, place, writable};
use crate::cli::vault::{self, VaultFlags};
use crate::cli::{say, secret_lints};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};
use karyi_vault::index::Index;
use karyi_vault::policy::{self, Policy};
use karyi_vault::vault::{CurrentSecret, NewSecret, SecretDetails, Vault};

/// Stores a value, or sends it to a session.
pub(super) fn set(flags: &VaultFlags, args: &SetArgs) -> CommandResult {
    check_arguments(flags, args)?;
    let name = vault::name(&args.name)?;
    let (said, now) = (args.policy.terms(), Timestamp::now());
    // Check the policy and the store before anything is typed.
    let new_policy = said.policy(now)?;
    if let Some(pid) = args.session {
        return send_to_session(args, pid, &name, &new_policy);
    }
    let place = place(flags)?;
    let vault = writable(&place)?;
    vault.check_other_stores(&name)?;
    let earlier = vault.current(&name)?;
    said.applied(&base(&earlier, &said)?, now)?;
    if let (false, false, Some(old)) = (args.keep_value, args.input.stdin, replaced_by(&earlier)) {
        say(&format!("the new value of {name} replaces {old}"));
    }
    let value = match args.keep_value {
        true => vault.require_record(&name, &earlier).map(|_| None)?,
        false => Some(take(place.asker.as_ref(), name.as_str(), &args.input)?),
    };
    let terms = |earlier: &CurrentSecret| {
        Ok(Some(SecretDetails {
            note: args.note.clone(),
            policy: said.applied(&base(earlier, &said)?, now)?,
        }))
    };
    let kept = keep(&vault, &name, value.as_ref(), &terms)?;
    let replaced = kept.and_then(|kept| kept.replaced);
    report_stored(&vault, &name, replaced.filter(|_| value.is_some()));
    // Runs that use another store than the named one will not know the value.
    let own = vault.store().kind();
    let used = Index::read(&place.directory)?.store;
    if let Some(used) = used.map(|chosen| chosen.kind).filter(|used| *used != own) {
        say(&format!(
            "warning: runs use the store {used}, and will neither use nor mask {name}: have all in one store, with \
             `karyi var migrate --vault {own} --to {used}`"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Replaces the value of a secret.
pub(super) fn rotate(flags: &VaultFlags, args: &RotateArgs) -> CommandResult {
    let name = vault::name(&args.name)?;
    check_input(flags, &args.input)?;
    let place = place(flags)?;
    let vault = existing_in(&place)?;
    vault.probe()?;
    vault.check_other_stores(&name)?;
    let now = Timestamp::now();
    let said = policy::PolicyTerms {
        expires: args.expires.clone(),
        ..policy::PolicyTerms::default()
    };
    // Use the policy of that time: it may have been narrowed during the question.
    let terms = |earlier: &CurrentSecret| {
        let policy = said.applied(&vault.require_record(&name, earlier)?.policy, now)?;
        if policy.expires.is_some_and(|end| end <= now) {
            let message = format!("{name} has expired, and so would a new value");
            return Err(ToolError::new(ErrorCode::SecretExpired, message)
                .with_hint("set the expiry of the new one: --expires 30d"));
        }
        Ok(Some(SecretDetails { note: None, policy }))
    };
    let earlier = vault.current(&name)?;
    terms(&earlier)?;
    let value = take(place.asker.as_ref(), name.as_str(), &args.input)?;
    let old = earlier.record.as_ref().map(|record| record.value.expose());
    if old == Some(value.expose()) {
        say(&format!(
            "warning: the value of {name} is the same as before"
        ));
    }
    keep(&vault, &name, Some(&value), &terms)?;
    report_stored(&vault, &name, None);
    Ok(ExitCode::SUCCESS)
}

/// Result of storing a secret.
pub(super) struct StoredSecret {
    /// Describes the value that was replaced.
    replaced: Option<String>,
    policy: Policy,
    /// The reason why the earlier record could not be read.
    damage: Option<ToolError>,
}

/// Stores a value, or keeps the current one, with the policy that `terms` makes of the current record, which another
/// karyi may have changed. Warns about probable mistakes. Returns `None` when `terms` changes nothing.
pub(super) fn keep(
    vault: &Vault,
    name: &SecretName,
    value: Option<&SecretValue>,
    terms: &dyn Fn(&CurrentSecret) -> Result<Option<SecretDetails>, ToolError>,
) -> Result<Option<StoredSecret>, ToolError> {
    let kept = RefCell::new(None);
    let is_kept = vault.update(name, &|earlier: &CurrentSecret| {
        let Some(terms) = terms(earlier)? else {
            return Ok(None);
        };
        kept.replace(Some(StoredSecret {
            replaced: replaced_by(earlier),
            policy: terms.policy.clone(),
            damage: earlier.damage.clone(),
        }));
        let value = match value {
            Some(value) => value,
            None => &vault.require_record(name, earlier)?.value,
        };
        let value = value.duplicate();
        Ok(Some(NewSecret { value, terms }))
    })?;
    let kept = kept.take().filter(|_| is_kept);
    if let Some(StoredSecret { policy, damage, .. }) = &kept {
        if let Some(damage) = damage {
            say(&format!(
                "warning: {}; what it may be used for is now what `karyi var show {name}` says",
                damage.message
            ));
        }
        // Only now: a directory that equals the value of another secret was refused.
        secret_lints::warn(name, value, Some(policy));
    }
    Ok(kept)
}

/// Returns the policy to which the given terms are added.
///
/// # Errors
/// `bad_vault` when the current policy is unreadable and no terms are given.
pub(super) fn base(
    earlier: &CurrentSecret,
    said: &policy::PolicyTerms,
) -> Result<Policy, ToolError> {
    match (&earlier.policy, &earlier.damage) {
        (Some(policy), _) => Ok(policy.clone()),
        (None, Some(damage)) if said.is_empty() => Err(damage.clone().with_hint(
            "say with the new value what it may be used for, for example --use session or --dirs DIR",
        )),
        (None, _) => Ok(Policy::default()),
    }
}

fn replaced_by(earlier: &CurrentSecret) -> Option<String> {
    if earlier.record.is_none() && earlier.damage.is_none() {
        return None;
    }
    let day = earlier.listed.as_ref().map(|listed| listed.updated);
    Some(match day {
        Some(day) => format!("the one of {}", day.strftime("%Y-%m-%d")),
        None => "the earlier one".to_owned(),
    })
}

fn report_stored(vault: &Vault, name: &SecretName, replaced: Option<String>) {
    let kind = vault.store().kind();
    let instead = replaced.map(|old| format!(", in place of {old}"));
    let instead = instead.unwrap_or_default();
    say(&format!("{name} is stored in the store {kind}{instead}"));
}

/// Sends a value to the session of a process, or to the only one.
fn send_to_session(
    args: &SetArgs,
    pid: Option<u32>,
    name: &SecretName,
    policy: &Policy,
) -> CommandResult {
    let asker = asker()?;
    // Before anything is typed.
    let session = chosen(control_socket::find()?, pid)?;
    let description = &session.description;
    let what = format!("{name} for {description}");
    let value = take(asker.as_ref(), &what, &args.input)?;
    control_socket::send(&session, name, policy, &value)?;
    secret_lints::warn(name, Some(&value), Some(policy));
    if args.note.is_some() {
        say("warning: a session has no notes, so this one is ignored");
    }
    say(&format!(
        "{name} is available in {description} until it ends"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Selects the session.
///
/// # Errors
/// `no_session`; `bad_arguments` when several run and none is named.
fn chosen(mut found: Vec<RunningSession>, pid: Option<u32>) -> Result<RunningSession, ToolError> {
    let list: String = found
        .iter()
        .map(|session| format!("\n  {}", session.description))
        .collect();
    if pid.is_none() && found.len() > 1 {
        let message = format!("expected one session, found several; nothing was sent:{list}");
        return Err(ToolError::new(ErrorCode::BadArguments, message)
            .with_hint("select one by its process id: --session=PID"));
    }
    found.retain(|session| pid.is_none_or(|pid| session.pid == pid));
    found.pop().ok_or_else(|| {
        let what = match pid {
            Some(pid) => format!("process {pid} is no session"),
            None => "no session runs".to_owned(),
        };
        let message = format!("{what} that accepts values; nothing was sent");
        let error = ToolError::new(ErrorCode::NoSession, message);
        match list.is_empty() {
            true => error,
            false => error.with_hint(format!("these run:{list}")),
        }
    })
}

/// Checks the arguments before anything is opened or asked.
///
/// # Errors
/// `usage` or `bad_arguments`.
fn check_arguments(flags: &VaultFlags, args: &SetArgs) -> Result<(), ToolError> {
    // NAME=VALUE
    if !args.value.is_empty() || args.name.contains('=') {
        let message = "a value is never taken as an argument: it stands in lists of processes, and in the shell's \
             history now; nothing was kept";
        return Err(ToolError::new(ErrorCode::Usage, message).with_hint(
            "remove that line from the history; run it with the name alone and type the value, or pipe it in with --stdin",
        ));
    }
    let most = limits::MAX_NOTE_CHARS;
    let is_bad = |note: &str| note.chars().count() > most || note.contains(char::is_control);
    if args.note.as_deref().is_some_and(is_bad) {
        let message = format!("a note is one line of at most {most} characters");
        return Err(ToolError::new(ErrorCode::BadArguments, message).with_hint("shorten it"));
    }
    check_input(flags, &args.input)
}

/// Checks the source of a value.
///
/// # Errors
/// `usage`: standard input is a terminal, which would show the value, or also provides a passphrase.
fn check_input(flags: &VaultFlags, input: &InputArgs) -> Result<(), ToolError> {
    let (message, hint) = if input.stdin && flags.age_passphrase_fd == Some(0) {
        (
            "--stdin and --age-passphrase-fd 0 both want standard input",
            "give the passphrase by another descriptor: --age-passphrase-fd 3 3< FILE",
        )
    } else if input.stdin && io::stdin().is_terminal() {
        (
            "--stdin reads what is piped in, and standard input is a terminal, which would show the value",
            "leave out --stdin to be asked for the value, hidden",
        )
    } else {
        return Ok(());
    };
    Err(ToolError::new(ErrorCode::Usage, message).with_hint(hint))
}

/// Reads a value; `what` names its purpose in the question.
fn take(asker: Option<&Asker>, what: &str, input: &InputArgs) -> Result<SecretValue, ToolError> {
    if input.stdin {
        return piped(input.raw);
    }
    // Standard input is a pipe or a file.
    let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let found = stdin.and_then(|stdin| stdin.metadata());
    let is_piped = found.is_ok_and(|found| found.is_file() || found.file_type().is_fifo());
    if asker.is_some() && is_piped {
        say("warning: standard input is not read without --stdin");
    }
    let label = format!("value of {what} (hidden; Enter ends it, Esc gives up): ");
    hidden(asker, &label, "pipe the value in with --stdin")
}

/// Reads a value from standard input and removes one line break at its end, unless it is raw.
fn piped(is_raw: bool) -> Result<SecretValue, ToolError> {
    let most = limits::MAX_SECRET_BYTES + 3;
    let mut bytes = Zeroizing::new(Vec::with_capacity(most));
    let read = io::stdin().take(most as u64).read_to_end(&mut bytes);
    read.map_err(|error| {
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
