//! Where files go that outlive a call: the user's directory for the state of programs.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;

/// Most leftovers of earlier runs that are looked at when a run begins.
const MAX_LEFTOVERS: usize = 100;

/// Returns a directory for the whole outputs of this run, which is not made yet. What earlier runs
/// left because they were killed is removed, unless it was to be kept.
pub(super) fn output_dir(is_kept: bool) -> anyhow::Result<PathBuf> {
    let base = state_dir()?.join("output");
    remove_leftovers(&base);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let stamp = since.map_or(0, |since| since.as_millis());
    let kind = if is_kept { "kept" } else { "run" };
    Ok(base.join(format!("{kind}-{}-{stamp}", std::process::id())))
}

/// Returns the directory for what karyi keeps: `$KARYI_HOME/data`, else `$XDG_DATA_HOME/karyi`, else
/// where the system has such directories.
pub(super) fn data_dir() -> anyhow::Result<PathBuf> {
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
    } else if cfg!(windows) {
        ("LOCALAPPDATA", "karyi")
    } else {
        ("HOME", ".local/share/karyi")
    };
    let base = variable(name).with_context(|| {
        format!(
            "finding a place for the vault: neither KARYI_HOME, XDG_DATA_HOME nor {name} is set"
        )
    })?;
    Ok(Path::new(&base).join(below))
}

fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns `$KARYI_HOME/state`, else `$XDG_STATE_HOME/karyi`, else `~/.local/state/karyi`.
pub(super) fn state_dir() -> anyhow::Result<PathBuf> {
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
        None => super::runtime_dir::runtime_dir().context("finding a place for long outputs"),
    }
}

/// Returns the directories that are karyi's own: settings, state and vault.
pub(super) fn own_dirs() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(home) = variable("KARYI_HOME") {
        return vec![home.into()];
    }
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
    places.into_iter().filter_map(dir).collect()
}

/// Returns what tools may read there: the whole outputs of calls.
pub(super) fn output_parent() -> Vec<PathBuf> {
    state_dir()
        .map(|dir| dir.join("output"))
        .into_iter()
        .collect()
}

/// Removes the directories of runs whose process is gone.
fn remove_leftovers(base: &Path) {
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    let owned = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str().and_then(owner)?;
        Some((entry, pid))
    });
    for (entry, pid) in owned.take(MAX_LEFTOVERS) {
        let is_gone = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None)
            == Err(nix::errno::Errno::ESRCH);
        if is_gone {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Reads the process id out of `run-PID-TIME`.
fn owner(name: &str) -> Option<i32> {
    let (pid, _) = name.strip_prefix("run-")?.split_once('-')?;
    pid.parse().ok().filter(|pid| *pid > 0)
}
