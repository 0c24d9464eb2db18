//! `karyi var set --session`: gives a value to a session that runs, which has it in its memory until it ends.

use std::process::ExitCode;

use jiff::Timestamp;

use crate::cli::control_socket::client::{self, RunningSession};
use crate::cli::var::args::SetArgs;
use crate::cli::var::{Done, asking, set, value};
use crate::cli::vault::{self, VaultFlags};
use crate::cli::{say, secret_lints};
use crate::error::{ErrorCode, ToolError};

/// Gives a value to the session of a process, or to the one there is.
pub(super) fn send(flags: &VaultFlags, args: &SetArgs, pid: Option<u32>) -> Done {
    let name = vault::name(&args.name)?;
    value::check_input(flags, &args.input)?;
    set::check_note(args.note.as_deref())?;
    let terms = args.less.added_to(args.policy.terms());
    let policy = terms.policy(Timestamp::now())?;
    let asking = asking()?;
    // Before anything is typed.
    let session = chosen(client::find()?, pid)?;
    let what = format!("{name} for {}", session.description);
    let value = value::typed(&asking, &what, &args.input)?;
    client::send(&session, &name, &policy, &value)?;
    secret_lints::tell_of_policy(&name, &policy);
    secret_lints::tell(&name, &value);
    if args.note.is_some() {
        say("warning: a session has no notes, so this one is not kept");
    }
    say(&format!(
        "{name} is given to {} until that ends",
        session.description
    ));
    Ok(ExitCode::SUCCESS)
}

/// Chooses the session.
///
/// # Errors
/// `no_session`; `bad_arguments` when several run and none is named.
fn chosen(mut found: Vec<RunningSession>, pid: Option<u32>) -> Result<RunningSession, ToolError> {
    let shown: Vec<String> = found
        .iter()
        .map(|session| session.description.clone())
        .collect();
    let list = shown.join("\n  ");
    let Some(pid) = pid else {
        return match (found.pop(), found.len()) {
            (Some(one), 0) => Ok(one),
            (None, _) => Err(ToolError::new(
                ErrorCode::NoSession,
                "no session runs that takes values; nothing was given",
            )),
            (Some(_), _) => Err(ToolError::new(
                ErrorCode::BadArguments,
                format!("expected one session, found several; nothing was given:\n  {list}"),
            )
            .with_hint("name one of them by its number: --session=PID")),
        };
    };
    if let Some(at) = found.iter().position(|session| session.pid == pid) {
        return Ok(found.swap_remove(at));
    }
    let message = format!("process {pid} is no session that takes values; nothing was given");
    let error = ToolError::new(ErrorCode::NoSession, message);
    Err(match list.as_str() {
        "" => error,
        list => error.with_hint(format!("these run:\n  {list}")),
    })
}
