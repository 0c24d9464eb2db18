//! Keeps a process that holds secrets from telling them: no core file, no debugger of another
//! process of the user, no page on disk.

use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

use crate::sys;

/// Protects a value in memory as far as the system allows, and with the first one the process.
///
/// A core file has the soft limit 0 from then on, which children inherit and may raise; that the
/// process cannot be looked into ends with the `exec` of a child.
pub fn protect(value: &[u8]) {
    protect_process();
    // The limit for locked memory is small, and a value that may be swapped is still a secret.
    let _ = sys::lock_memory(value);
}

/// The soft limit of core files before; none where it cannot be told.
static CORE_BEFORE: OnceLock<Option<rlim_t>> = OnceLock::new();

/// Protects the process, before a value is in it.
pub fn protect_process() {
    CORE_BEFORE.get_or_init(|| {
        #[cfg(target_os = "linux")]
        {
            crate::wait::syscall::is_readable();
            let _ = nix::sys::prctl::set_dumpable(false);
        }
        let (before, most) = getrlimit(Resource::RLIMIT_CORE).ok()?;
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, most);
        Some(before)
    });
}

/// Gives the limit of core files back, for another program that takes the place of this process: that it cannot be
/// looked into ends by itself then.
pub fn restore_core_limit() {
    if let Some(Some(before)) = CORE_BEFORE.get()
        && let Ok((_, most)) = getrlimit(Resource::RLIMIT_CORE)
    {
        let _ = setrlimit(Resource::RLIMIT_CORE, *before, most);
    }
}
