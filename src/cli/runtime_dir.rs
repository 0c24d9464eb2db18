//! The private directory for the files of running sessions.

use std::path::{Path, PathBuf};

/// Returns `$XDG_RUNTIME_DIR/karyi`, else a private directory of the user below the directory for temporary
/// files. The first session creates and checks it.
pub(super) fn runtime_dir() -> PathBuf {
    let base = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_dir());
    match base {
        Some(base) => Path::new(&base).join("karyi"),
        None => {
            let user = nix::unistd::geteuid().as_raw();
            std::env::temp_dir().join(format!("karyi-{user}"))
        }
    }
}
