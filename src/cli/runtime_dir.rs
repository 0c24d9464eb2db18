//! The private directory for the files of running sessions.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Returns the directory, made if need be: `$XDG_RUNTIME_DIR/karyi`, else one of the user's own in
/// the directory for temporary files. It is refused when it belongs to somebody else or others may
/// enter it.
pub(super) fn runtime_dir() -> anyhow::Result<PathBuf> {
    let user = nix::unistd::geteuid().as_raw();
    let base = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_dir());
    let path = match base {
        Some(base) => Path::new(&base).join("karyi"),
        None => std::env::temp_dir().join(format!("karyi-{user}")),
    };
    let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
    if let Err(error) = made
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error).with_context(|| format!("making the directory {}", path.display()));
    }
    let metadata = std::fs::symlink_metadata(&path)
        .with_context(|| format!("looking at {}", path.display()))?;
    if !metadata.is_dir() || metadata.uid() != user || metadata.mode() & 0o077 != 0 {
        bail!(
            "{} must be a directory of your own that nobody else can enter; remove it and try again",
            path.display()
        );
    }
    Ok(path)
}
