//! `karyi var set` and `karyi var rotate`.

use std::cell::RefCell;
use std::process::ExitCode;

use jiff::Timestamp;

use crate::cli::var::args::{PolicyArgs, RotateArgs, SetArgs};
use crate::cli::var::{Done, existing_in, place, value, writable};
use crate::cli::vault::{self, Place, VaultFlags};
use crate::cli::{say, secret_lints};
use crate::error::{ErrorCode, ToolError};
use crate::limits;
use crate::secret::SecretName;
use crate::vault::index::Index;
use crate::vault::keep::{Earlier, Terms, Vault, Wanted};
use crate::vault::policy::{self, Policy};

/// Checks that no value is among the arguments.
///
/// # Errors
/// `usage`.
pub(super) fn check_no_value(args: &SetArgs) -> Result<(), ToolError> {
    // NAME=VALUE
    if args.value.is_empty() && !args.name.contains('=') {
        return Ok(());
    }
    let message = "a value is never taken as an argument: it stands in lists of processes, and in the shell's \
         history now; nothing was kept";
    Err(ToolError::new(ErrorCode::Usage, message).with_hint(
        "remove that line from the history; run it with the name alone and type the value, or pipe it in with --stdin",
    ))
}

/// Keeps a value.
pub(super) fn set(flags: &VaultFlags, args: &SetArgs) -> Done {
    let name = vault::name(&args.name)?;
    value::check_input(flags, &args.input)?;
    check_note(args.note.as_deref())?;
    let terms = args.less.added_to(args.policy.terms());
    // Before anything is typed: a policy that means nothing, and a store that takes nothing.
    let now = Timestamp::now();
    terms.policy(now)?;
    let place = place(flags)?;
    let stdin = if args.input.stdin { " --stdin" } else { "" };
    let vault = writable(&place, &format!("karyi var set {name}{stdin}"))?;
    vault.check_place(&name)?;
    let earlier = vault.earlier(&name)?;
    let policy = terms.applied(&base(&earlier, &terms)?, now)?;
    let is_asked = !args.keep_value && !args.input.stdin;
    if let (true, Some(old)) = (is_asked, replaced_by(&earlier)) {
        say(&format!("the new value of {name} takes the place of {old}"));
    }
    let typed = match args.keep_value {
        true => vault.record_of(&name, &earlier).map(|_| None)?,
        false => Some(value::take(
            &vault,
            &place.asking,
            (&name, &policy),
            &args.input,
        )?),
    };
    let replaced = RefCell::new(None);
    // By what is there then: another karyi may have changed it since.
    let make = |earlier: &Earlier| {
        let value = match &typed {
            Some(value) => {
                replaced.replace(replaced_by(earlier));
                value
            }
            None => &vault.record_of(&name, earlier)?.value,
        };
        Ok(Some(Wanted {
            value: value.duplicate(),
            terms: Terms {
                note: args.note.clone(),
                policy: terms.applied(&base(earlier, &terms)?, now)?,
            },
        }))
    };
    vault.update(&name, &make)?;
    tell_of_keeping(&vault, &name, replaced.take().as_deref());
    tell_of_other_store(&place, &vault, &name)?;
    tell_of_damage(&name, earlier.damage.as_ref());
    // Not before: a directory that is the value of another secret was refused.
    secret_lints::tell_of_policy(&name, &policy);
    Ok(ExitCode::SUCCESS)
}

/// Says which value goes for a new one.
fn replaced_by(earlier: &Earlier) -> Option<String> {
    if earlier.record.is_none() && earlier.damage.is_none() {
        return None;
    }
    let day = earlier.listed.as_ref().map(|listed| listed.updated);
    Some(match day {
        Some(day) => format!("the one of {}", day.strftime("%Y-%m-%d")),
        None => "the one that was there".to_owned(),
    })
}

/// Warns of what could not be read and was replaced.
pub(super) fn tell_of_damage(name: &SecretName, damage: Option<&ToolError>) {
    if let Some(damage) = damage {
        say(&format!(
            "warning: {}; what it may be used for is now what `karyi var show {name}` says",
            damage.message
        ));
    }
}

/// Returns the policy that what is said is added to.
///
/// # Errors
/// `bad_vault` when nobody knows what the secret may be used for, and nothing is said of it.
pub(super) fn base(earlier: &Earlier, said: &policy::Terms) -> Result<Policy, ToolError> {
    match (&earlier.policy, &earlier.damage) {
        (Some(policy), _) => Ok(policy.clone()),
        (None, Some(damage)) if said.is_empty() => Err(damage.clone().with_hint(
            "say with the new value what it may be used for, for example --use session or --dirs DIR",
        )),
        (None, _) => Ok(Policy::default()),
    }
}

/// Gives a secret a new value.
pub(super) fn rotate(flags: &VaultFlags, args: &RotateArgs) -> Done {
    let name = vault::name(&args.name)?;
    value::check_input(flags, &args.input)?;
    let place = place(flags)?;
    let vault = existing_in(&place)?;
    vault.probe()?;
    vault.check_place(&name)?;
    let earlier = vault.earlier(&name)?;
    let old = vault.record_of(&name, &earlier)?;
    let now = Timestamp::now();
    let said = policy::Terms {
        expires: args.expires.clone(),
        ..policy::Terms::default()
    };
    let renewed = |old: &Policy| {
        let policy = said.applied(old, now)?;
        if policy.expires.is_some_and(|end| end <= now) {
            let message = format!("{name} has expired, and so would a new value");
            return Err(ToolError::new(ErrorCode::SecretExpired, message)
                .with_hint("say when the new one ends: --expires 30d"));
        }
        Ok(policy)
    };
    let policy = renewed(&old.policy)?;
    let value = value::take(&vault, &place.asking, (&name, &policy), &args.input)?;
    if value.expose() == old.value.expose() {
        say(&format!(
            "warning: the value of {name} is the same as before"
        ));
    }
    // Under the policy of then: its user may have narrowed it while the question stood there.
    let make = |earlier: &Earlier| {
        let policy = renewed(&vault.record_of(&name, earlier)?.policy)?;
        Ok(Some(Wanted {
            value: value.duplicate(),
            terms: Terms { note: None, policy },
        }))
    };
    vault.update(&name, &make)?;
    tell_of_keeping(&vault, &name, None);
    Ok(ExitCode::SUCCESS)
}

/// Makes the policy of values that are kept for the first time.
pub(super) fn new_policy(args: &PolicyArgs) -> Result<Policy, ToolError> {
    args.terms().policy(Timestamp::now())
}

fn tell_of_keeping(vault: &Vault, name: &SecretName, replaced: Option<&str>) {
    let kind = vault.store().kind();
    let instead = replaced.map(|old| format!(", in place of {old}"));
    let instead = instead.unwrap_or_default();
    say(&format!("{name} is kept in the store {kind}{instead}"));
}

/// Warns when runs use another store than the one that was named: they will not know the value.
fn tell_of_other_store(place: &Place, vault: &Vault, name: &SecretName) -> Result<(), ToolError> {
    let own = vault.store().kind();
    let used = Index::read(&place.directory)?.store;
    if let Some(used) = used.map(|chosen| chosen.kind).filter(|used| *used != own) {
        say(&format!(
            "warning: runs use the store {used}, and will neither use nor mask {name}: have all in one store, with \
             `karyi var migrate --vault {own} --to {used}`"
        ));
    }
    Ok(())
}

pub(super) fn check_note(note: Option<&str>) -> Result<(), ToolError> {
    let most = limits::MAX_NOTE_CHARS;
    let is_bad = |note: &str| note.chars().count() > most || note.contains(char::is_control);
    if note.is_some_and(is_bad) {
        let message = format!("a note is one line of at most {most} characters");
        return Err(ToolError::new(ErrorCode::BadArguments, message).with_hint("shorten it"));
    }
    Ok(())
}
