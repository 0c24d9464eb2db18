//! `karyi var`: keeps the secrets that scripts use by name.
//!
//! The store is tried before the user types anything, and never chosen behind their back: without a
//! keyring `set` asks before it takes the encrypted file. Inside a session of karyi every command that
//! would open the store is refused.

pub(super) mod args;
mod change;
mod doctor;
mod dotenv;
mod exec;
mod import;
mod list;
mod reveal;
mod send_to_session;
mod set;
mod value;

pub(super) use doctor::checks;

use std::process::ExitCode;
use std::sync::OnceLock;

use crate::cli::interrupts::Interrupts;
use crate::cli::prompt::Outside;
use crate::cli::var::args::{SetArgs, VarArgs, VarCommand};
use crate::cli::vault::{self, Asker, Asking, Place, VaultFlags};
use crate::cli::{fail_as_given, run};
use crate::error::{ErrorCode, ToolError};
use crate::pty::{guard, inherited};
use crate::render::paint::safe_line;
use crate::vault::index::{Chosen, Index};
use crate::vault::keep::Vault;
use crate::vault::store::Kind;

/// What a command gives back: the exit status when it printed what there was to say.
type Done = Result<ExitCode, ToolError>;

/// Runs `karyi var`.
pub(super) fn var(args: VarArgs) -> ExitCode {
    guard::keep_process();
    let flags = &args.vault;
    let result = match args.command {
        VarCommand::Set(args) => keep_or_give(flags, &args),
        VarCommand::Get { name } => reveal::get(flags, &name),
        VarCommand::Show { name, json } => list::show(flags, &name, json.into()),
        VarCommand::List { json } => list::list(flags, json.into()),
        VarCommand::Rm { names } => change::remove(flags, &names),
        VarCommand::Rename { from, to } => change::rename(flags, &from, &to),
        VarCommand::Import(args) => import::import(flags, &args),
        VarCommand::Export => reveal::export(flags),
        VarCommand::Rotate(args) => set::rotate(flags, &args),
        VarCommand::Migrate(args) => change::migrate(flags, args.to),
        VarCommand::Exec { names, command } => exec::exec(flags, &names, &command),
        VarCommand::Doctor { json, repair } => doctor::doctor(flags, json.into(), repair),
    };
    let code = result.unwrap_or_else(|error| fail_as_given(&for_a_person(error)));
    match INTERRUPTS.get().and_then(Interrupts::exit_code) {
        Some(signal) => ExitCode::from(signal),
        None => code,
    }
}

/// Replaces the hints of paths, which are for a model and its tools: what is missing here is a place for the vault. Others
/// speak to the user, and not of them.
fn for_a_person(error: ToolError) -> ToolError {
    let is_of_path = matches!(
        error.code,
        ErrorCode::NotFound | ErrorCode::PermissionDenied
    );
    let hint = match is_of_path && error.hint == error.code.hint() {
        true => {
            "set KARYI_HOME, or HOME, to a directory that you can write to: the vault is kept there"
                .to_owned()
        }
        false => to_a_person(&error.hint),
    };
    error.with_hint(hint)
}

/// Says a hint to the user that tells a model what its user can do.
fn to_a_person(hint: &str) -> String {
    hint.replace("ask the user to ", "")
}

/// Takes a value, for a store or for a session that runs.
fn keep_or_give(flags: &VaultFlags, args: &SetArgs) -> Done {
    set::check_no_value(args)?;
    match args.session {
        Some(pid) => send_to_session::send(flags, args, pid),
        None => set::set(flags, args),
    }
}

/// The signals of a command that may ask; caught until the program ends.
static INTERRUPTS: OnceLock<Interrupts> = OnceLock::new();

/// How something is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Json,
}

impl From<bool> for Shape {
    fn from(is_json: bool) -> Self {
        if is_json { Self::Json } else { Self::Text }
    }
}

/// Finds the place of the vault for a command that opens the store.
///
/// # Errors
/// `inside_session`, or there is no such place.
fn place(flags: &VaultFlags) -> Result<Place, ToolError> {
    Place::find(flags, asking()?)
}

/// Returns whom a command can ask that is given a value.
///
/// # Errors
/// `inside_session`.
fn asking() -> Result<Asking, ToolError> {
    if inherited::is_inside_session() {
        return Err(vault::inside_session());
    }
    let outside = Outside::default();
    let asker = Asker {
        terminal_lock: None,
        outside: outside.clone(),
    };
    let asking = vault::asking(!run::is_ci(), asker);
    if let (Asking::OnTerminal(_), None) = (&asking, INTERRUPTS.get())
        && let Ok(interrupts) = Interrupts::watch(&outside)
    {
        let _ = INTERRUPTS.set(interrupts);
    }
    Ok(asking)
}

/// Finds the place of the vault for a command that asks nobody.
fn quiet_place(flags: &VaultFlags) -> Result<Place, ToolError> {
    Place::find(flags, Asking::Nobody)
}

/// Returns the vault of a command that reads or changes what is kept.
///
/// # Errors
/// As [`place`]; `undefined_variable` when no store was ever chosen.
pub(super) fn existing(flags: &VaultFlags) -> Result<Vault, ToolError> {
    existing_in(&place(flags)?)
}

fn existing_in(place: &Place) -> Result<Vault, ToolError> {
    let index = Index::read(&place.directory)?;
    let Some(chosen) = place.chosen(&index) else {
        let message = "nothing is kept: no store was chosen yet";
        return Err(ToolError::new(ErrorCode::UndefinedVariable, message)
            .with_hint("keep something with `karyi var set NAME`"));
    };
    Ok(place.vault(chosen))
}

/// Returns the vault of a command that keeps something, after its store was tried. Without a keyring the user may
/// choose the encrypted file; `command` is what they would say to choose it.
///
/// # Errors
/// The reason why nothing can be kept.
fn writable(place: &Place, command: &str) -> Result<Vault, ToolError> {
    let index = Index::read(&place.directory)?;
    let Some(chosen) = place.chosen(&index) else {
        return first_vault(place, command);
    };
    if chosen.kind == Kind::Memory {
        let message = "memory ends with this command, so nothing can be kept there";
        return Err(ToolError::new(ErrorCode::VaultReadOnly, message));
    }
    tried(place.vault(place.with_identity(chosen)?))
}

/// Returns the vault of the first value: in the keyring, else in the encrypted file when the user agrees.
fn first_vault(place: &Place, command: &str) -> Result<Vault, ToolError> {
    let error = match tried(place.vault(Chosen::os())) {
        Err(error) if error.code == ErrorCode::KeyringUnavailable => error,
        result => return result,
    };
    let file = place.age_file();
    let question = format!(
        "No keyring here. Keep secrets in an encrypted file instead ({})?",
        safe_line(&file.display().to_string())
    );
    if !vault::confirm(&place.asking, &question) {
        return Err(error.with_hint(format!(
            "keep secrets in an encrypted file instead: {command} --vault age"
        )));
    }
    let chosen = Chosen {
        kind: Kind::Age,
        identity: None,
    };
    tried(place.vault(place.with_identity(chosen)?))
}

fn tried(vault: Vault) -> Result<Vault, ToolError> {
    vault.probe()?;
    Ok(vault)
}
