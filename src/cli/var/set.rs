//! `karyi var set` and `karyi var rotate`.

use std::process::ExitCode;

use jiff::Timestamp;

use crate::cli::say;
use crate::cli::var::args::{PolicyArgs, RotateArgs, SetArgs};
use crate::cli::var::{Done, existing_in, place, value, writable};
use crate::cli::vault::{self, VaultFlags};
use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::SecretName;
use crate::vault::keep::{Terms, Vault};
use crate::vault::policy::{self, Policy};

/// Keeps a value.
pub(super) fn set(flags: &VaultFlags, args: &SetArgs) -> Done {
    if !args.value.is_empty() {
        let message = "a value is never taken as an argument: it would stand in the shell's history \
             and in lists of processes; nothing was kept";
        return Err(ToolError::new(ErrorCode::Usage, message)
            .with_hint("run it without the value and type that, or pipe it in with --stdin"));
    }
    if args.session {
        let message = "no session takes values from outside while it runs; nothing was kept";
        return Err(ToolError::new(ErrorCode::NoSession, message));
    }
    let name = vault::name(&args.name)?;
    check_note(args.note.as_deref())?;
    let terms = args.less.added_to(args.policy.terms());
    // Before anything is typed: a policy that means nothing, and a store that takes nothing.
    let wanted = terms.policy(Timestamp::now())?;
    if wanted.expires.is_some_and(|end| end <= Timestamp::now()) {
        say(&format!(
            "warning: --expires lies in the past: {name} cannot be used until it gets a later end"
        ));
    }
    let place = place(flags)?;
    let vault = writable(&place)?;
    vault.check_place(&name)?;
    let earlier = match vault.get(&name) {
        Ok(record) => Some(record),
        Err(error) if error.code == ErrorCode::UndefinedVariable => None,
        // A record that cannot be read is what a new value mends.
        Err(error) if error.code == ErrorCode::BadVault && !args.keep_value => None,
        Err(error) => return Err(error),
    };
    let base = earlier
        .as_ref()
        .map_or_else(Policy::default, |record| record.policy.clone());
    let terms = Terms {
        note: args.note.clone(),
        policy: terms.applied(&base, Timestamp::now())?,
    };
    let value = match (args.keep_value, earlier) {
        (true, Some(record)) => record.value,
        (true, None) => return vault.get(&name).map(|_| ExitCode::SUCCESS),
        (false, _) => value::take(&vault, &place.asking, (&name, &terms.policy), &args.input)?,
    };
    keep(&vault, &name, &value, &terms)
}

/// Gives a secret a new value.
pub(super) fn rotate(flags: &VaultFlags, args: &RotateArgs) -> Done {
    let name = vault::name(&args.name)?;
    let place = place(flags)?;
    let vault = existing_in(&place)?;
    vault.probe()?;
    vault.check_place(&name)?;
    let old = vault.get(&name)?;
    let now = Timestamp::now();
    let said = policy::Terms {
        expires: args.expires.clone(),
        ..policy::Terms::default()
    };
    let policy = said.applied(&old.policy, now)?;
    if policy.expires.is_some_and(|end| end <= now) {
        let message = format!("{name} has expired, and so would a new value");
        return Err(ToolError::new(ErrorCode::SecretExpired, message)
            .with_hint("say when the new one ends: --expires 30d"));
    }
    let value = value::take(&vault, &place.asking, (&name, &policy), &args.input)?;
    if value.expose() == old.value.expose() {
        say(&format!(
            "warning: the value of {name} is the same as before"
        ));
    }
    keep(&vault, &name, &value, &Terms { note: None, policy })
}

/// Makes the policy of values that are kept for the first time.
pub(super) fn new_policy(args: &PolicyArgs) -> Result<Policy, ToolError> {
    args.terms().policy(Timestamp::now())
}

fn keep(
    vault: &Vault,
    name: &SecretName,
    value: &crate::secret::SecretValue,
    terms: &Terms,
) -> Done {
    vault.set(name, value, terms)?;
    say(&format!(
        "{name} is kept in the store {}",
        vault.store().kind()
    ));
    Ok(ExitCode::SUCCESS)
}

fn check_note(note: Option<&str>) -> Result<(), ToolError> {
    let most = limits::MAX_NOTE_CHARS;
    let is_bad = |note: &str| note.chars().count() > most || note.contains(char::is_control);
    if note.is_some_and(is_bad) {
        let message = format!("a note is one line of at most {most} characters");
        return Err(ToolError::new(ErrorCode::BadArguments, message).with_hint("shorten it"));
    }
    Ok(())
}
