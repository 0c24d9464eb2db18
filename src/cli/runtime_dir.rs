//! The private directory for the files of running sessions.

use std::path::{Path, PathBuf};

/// Returns where it is: `$XDG_RUNTIME_DIR/karyi`, else one of the user's own in the directory for
/// temporary files. It is made, and looked at, when the first session needs it.
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
