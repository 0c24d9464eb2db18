//! `karyi var`: manages the secrets that scripts use by name.
//!
//! The store is probed before the user types anything, and never chosen silently: without a keyring, `set`
//! asks before it uses the encrypted file. Inside a session of karyi, commands that open the store are
//! refused.

pub(super) mod args;
mod change;
mod doctor;
mod dotenv;
mod import;
mod list;
mod reveal;
mod set;

pub(super) use doctor::checks;

use std::ffi::OsStr;
use std::process::ExitCode;
use std::sync::OnceLock;

use crate::cli::interrupts::Interrupts;
use crate::cli::prompt::Asker;
use crate::cli::var::args::{VarArgs, VarCommand};
use crate::cli::vault::{self, VaultFlags, VaultLocation};
use crate::cli::{fail_as_given, run};
use crate::render::paint::safe_line;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::shell_word;
use karyi_pty::{guard, inherited};
use karyi_vault::index::{Index, StoreChoice};
use karyi_vault::store::Kind;
use karyi_vault::vault::Vault;

/// Result of a command: the exit status after it has printed its output.
type CommandResult = Result<ExitCode, ToolError>;

/// Runs `karyi var`.
pub(super) fn var(args: VarArgs) -> ExitCode {
    guard::protect_process();
    let flags = &args.vault;
    let result = match args.command {
        VarCommand::Set(args) => set::set(flags, &args),
        VarCommand::Get { name } => reveal::get(flags, &name),
        VarCommand::Show { name, json } => list::show(flags, &name, json),
        VarCommand::List { json } => list::list(flags, json),
        VarCommand::Rm { names } => change::remove(flags, &names),
        VarCommand::Rename { from, to } => change::rename(flags, &from, &to),
        VarCommand::Import(args) => import::import(flags, &args),
        VarCommand::Export => reveal::export(flags),
        VarCommand::Rotate(args) => set::rotate(flags, &args),
        VarCommand::Migrate { to } => change::migrate(flags, to),
        VarCommand::Exec { names, command } => reveal::exec(flags, &names, &command),
        VarCommand::Doctor { json, repair } => doctor::doctor(flags, json, repair),
    };
    let code = result.unwrap_or_else(|error| fail_as_given(&for_a_person(error)));
    let signal = INTERRUPTS.get().and_then(Interrupts::exit_code);
    signal.map_or(code, ExitCode::from)
}

/// Replaces hints about paths, which are for a model and its tools: here the vault lacks a directory. Other hints
/// stay.
fn for_a_person(error: ToolError) -> ToolError {
    let is_of_path = matches!(
        error.code,
        ErrorCode::NotFound | ErrorCode::PermissionDenied
    );
    let hint = match is_of_path && error.hint == error.code.hint() {
        true => {
            "set KARYI_HOME, or HOME, to a directory that you can write to, for the vault".into()
        }
        false => to_a_person(&error.hint),
    };
    error.with_hint(hint)
}

/// Rewords a hint to the model as one to the user.
fn to_a_person(hint: &str) -> String {
    hint.replace("ask the user to ", "")
}

/// Signals of a command that may ask questions; caught until the program ends.
static INTERRUPTS: OnceLock<Interrupts> = OnceLock::new();

/// Returns the user to ask, for a command that opens the store or receives a value.
///
/// # Errors
/// `inside_session`.
fn asker() -> Result<Option<Asker>, ToolError> {
    if inherited::is_inside_session() {
        return Err(vault::inside_session());
    }
    let asker = Asker::default().found(!run::is_ci());
    if let (Some(asker), None) = (&asker, INTERRUPTS.get())
        && let Ok(interrupts) = Interrupts::watch(&asker.stop_source)
    {
        let _ = INTERRUPTS.set(interrupts);
    }
    Ok(asker)
}

/// Returns the command line of karyi, quoted for a shell. It contains no values.
fn own_command() -> String {
    let words = std::env::args_os().skip(1).map(|word| shell_word(&word));
    let words: Vec<String> = std::iter::once("karyi".to_owned()).chain(words).collect();
    words.join(" ")
}

/// Quotes a word for a shell where necessary.
pub(super) fn shell_word(word: &OsStr) -> String {
    safe_line(&shell_word::word(word)).into_owned()
}

fn place(flags: &VaultFlags) -> Result<VaultLocation, ToolError> {
    VaultLocation::find(flags, asker()?)
}

/// Returns the vault of a command that reads or changes secrets.
///
/// # Errors
/// The same as [`place`]; `undefined_variable` when no store was ever chosen.
pub(super) fn existing(flags: &VaultFlags) -> Result<Vault, ToolError> {
    existing_in(&place(flags)?)
}

fn existing_in(place: &VaultLocation) -> Result<Vault, ToolError> {
    let index = Index::read(&place.directory)?;
    let Some(chosen) = place.chosen(&index) else {
        let message = "nothing is stored: no store was chosen yet";
        return Err(ToolError::new(ErrorCode::UndefinedVariable, message)
            .with_hint("store a value with `karyi var set NAME`"));
    };
    Ok(place.vault(chosen))
}

/// Returns the vault of a command that stores a secret, after probing its store. Without a keyring the user may
/// choose the encrypted file.
///
/// # Errors
/// The reason why nothing can be stored.
fn writable(place: &VaultLocation) -> Result<Vault, ToolError> {
    let index = Index::read(&place.directory)?;
    let tried = |chosen: StoreChoice| {
        let vault = place.vault(place.with_identity(chosen)?);
        vault.probe().map(|()| vault)
    };
    match place.chosen(&index) {
        Some(chosen) if chosen.kind == Kind::Memory => {
            let message = "memory ends with this command, so it cannot store anything";
            return Err(ToolError::new(ErrorCode::VaultReadOnly, message));
        }
        Some(chosen) => return tried(chosen),
        None => {}
    }
    // The first value goes to the keyring, else to the encrypted file with the user's consent.
    let error = match tried(StoreChoice::os()) {
        Err(error) if error.code == ErrorCode::KeyringUnavailable => error,
        result => return result,
    };
    let file = place.age_file();
    let question = format!(
        "No keyring here. Keep secrets in an encrypted file instead ({})?",
        safe_line(&file.display().to_string())
    );
    let agrees = |asker: &Asker| asker.confirms(&question);
    if !place.asker.as_ref().is_some_and(agrees) {
        return Err(error.with_hint(format!(
            "keep secrets in an encrypted file instead: {} --vault age",
            own_command()
        )));
    }
    tried(vault::unopened(Kind::Age))
}
