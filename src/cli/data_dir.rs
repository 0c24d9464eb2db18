//! Where the data of programs is kept: the databases of the server.

use std::path::PathBuf;

use anyhow::{Context, bail};

/// Returns `$KARYI_HOME/data`, else `$XDG_DATA_HOME/karyi`, else `~/.local/share/karyi`; it is made
/// if need be.
pub(super) fn data_dir() -> anyhow::Result<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let path = if let Some(home) = variable("KARYI_HOME") {
        home.join("data")
    } else if let Some(data) = variable("XDG_DATA_HOME").filter(|path| path.is_absolute()) {
        data.join("karyi")
    } else if let Some(home) = variable("HOME") {
        home.join(".local/share/karyi")
    } else {
        bail!("there is no home directory for the database; name a file with --db FILE");
    };
    std::fs::create_dir_all(&path)
        .with_context(|| format!("making the directory {}", path.display()))?;
    Ok(path)
}
