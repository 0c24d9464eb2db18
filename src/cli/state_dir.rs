//! Directories for files that outlive a call, in the user's state directory.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;

use crate::cli::runtime_dir::runtime_dir;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_pty::runtime;

/// Prefix of directories that are removed with their run.
const RUN_PREFIX: &str = "run-";

/// Returns a directory for the output files of this run; it is not created yet. Removes directories of
/// killed runs, unless they were to be kept.
///
/// # Errors
/// There is no private directory for it.
pub(super) fn output_dir(is_kept: bool) -> Result<PathBuf, ToolError> {
    let base = state_dir()?.join("output");
    for (directory, _lock) in leftovers(&base) {
        let _ = std::fs::remove_dir_all(directory);
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let stamp = since.map_or(0, |since| since.as_millis());
    let prefix = if is_kept { "kept-" } else { RUN_PREFIX };
    Ok(base.join(format!("{prefix}{}-{stamp}", std::process::id())))
}

/// Returns karyi's data directory: `$KARYI_HOME/data`, else `$XDG_DATA_HOME/karyi`, else the system's
/// default.
///
/// # Errors
/// There is no such directory, or a symbolic link on its path is dangling.
pub(super) fn data_dir() -> anyhow::Result<PathBuf> {
    let place = data_place()?;
    check_links(&place)?;
    Ok(place)
}

/// Checks that no link on the path of a directory is dangling, as on a disk that is not mounted: nothing can
/// be created there, and stored data would be missed.
///
/// # Errors
/// `vault_unavailable`.
fn check_links(place: &Path) -> Result<(), ToolError> {
    let is_gone = |path: &&Path| {
        let found = path.metadata();
        found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    let mut way = place.ancestors();
    let last = way.find(|path| path.symlink_metadata().is_ok());
    let Some(link) = last.filter(is_gone) else {
        return Ok(());
    };
    let target = std::fs::read_link(link).unwrap_or_default();
    let message = format!(
        "the directory {} of karyi does not exist: {} is a link to {}, which does not exist",
        place.display(),
        link.display(),
        target.display()
    );
    let hint = "create or mount the target of the link, or name another directory with KARYI_HOME";
    Err(ToolError::new(ErrorCode::VaultUnavailable, message).with_hint(hint))
}

fn data_place() -> anyhow::Result<PathBuf> {
    if let Some(home) = variable("KARYI_HOME") {
        return Ok(Path::new(&home).join("data"));
    }
    if let Some(data) = variable("XDG_DATA_HOME").map(PathBuf::from)
        && data.is_absolute()
    {
        return Ok(data.join("karyi"));
    }
    let (name, below) = if cfg!(target_os = "macos") {
        ("HOME", "Library/Application Support/karyi")
    } else {
        ("HOME", ".local/share/karyi")
    };
    let base = variable(name)
        .with_context(|| format!("none of KARYI_HOME, XDG_DATA_HOME and {name} is set"))?;
    Ok(Path::new(&base).join(below))
}

/// Returns the value of an environment variable, unless it is empty.
pub(super) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns `$KARYI_HOME/state`, else `$XDG_STATE_HOME/karyi`, else `~/.local/state/karyi`.
///
/// # Errors
/// There is no private directory, or a symbolic link on its path is dangling.
pub(super) fn state_dir() -> Result<PathBuf, ToolError> {
    let place = state_place()?;
    check_links(&place)?;
    Ok(place)
}

/// Returns the usual directory with the tasks of a supervisor; it is not created.
///
/// # Errors
/// As [`state_dir`].
pub(super) fn supervise_dir() -> Result<PathBuf, ToolError> {
    Ok(state_dir()?.join("supervise/default"))
}

fn state_place() -> Result<PathBuf, ToolError> {
    if let Some(home) = variable("KARYI_HOME") {
        return Ok(Path::new(&home).join("state"));
    }
    if let Some(state) = variable("XDG_STATE_HOME").map(PathBuf::from)
        && state.is_absolute()
    {
        return Ok(state.join("karyi"));
    }
    match variable("HOME") {
        Some(home) => Ok(Path::new(&home).join(".local/state/karyi")),
        None => {
            let place = runtime_dir();
            runtime::prepare(&place)?;
            Ok(place)
        }
    }
}

/// Returns karyi's own directories: settings, state, vault and runtime files. Those of a karyi without
/// `KARYI_HOME` are included.
pub(super) fn own_dirs() -> Vec<PathBuf> {
    let home = variable("HOME").map(PathBuf::from);
    let places = [
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_STATE_HOME", ".local/state"),
        ("XDG_DATA_HOME", ".local/share"),
    ];
    let dir = |(name, usual): (&str, &str)| {
        let told = variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        let base = told.or_else(|| home.as_ref().map(|home| home.join(usual)))?;
        Some(base.join("karyi"))
    };
    let own = variable("KARYI_HOME").map(PathBuf::from);
    let system = data_dir().ok();
    let named = places.into_iter().filter_map(dir);
    let others = own.into_iter().chain(system).chain([runtime_dir()]);
    named.chain(others).map(absolute).collect()
}

/// Returns the absolute form of a path.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// Returns the part that tools may read: the output files of calls.
pub(super) fn output_parent() -> Vec<PathBuf> {
    state_dir()
        .map(|dir| absolute(dir.join("output")))
        .into_iter()
        .collect()
}

/// Returns the directories of dead runs, locked: a run keeps its own locked, and the kernel releases the lock.
pub(super) fn leftovers(base: &Path) -> impl Iterator<Item = (PathBuf, File)> {
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    let is_of_run = |name: OsString| {
        name.to_str()
            .is_some_and(|name| name.starts_with(RUN_PREFIX))
    };
    let runs = entries.filter(move |entry| is_of_run(entry.file_name()));
    runs.take(limits::MAX_OUTPUT_LEFTOVERS).filter_map(|entry| {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        // Opening anything else, such as a pipe, could block forever.
        let directory = is_directory
            .then(|| File::open(entry.path()).ok())
            .flatten()?;
        directory
            .try_lock()
            .is_ok()
            .then(|| (entry.path(), directory))
    })
}
