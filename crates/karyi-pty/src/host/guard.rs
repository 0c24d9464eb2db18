//! Protects a process that holds secrets: no core file, no debugger of another process of the user, no swapped page.

use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

use crate::sys;

/// Protects a value in memory as far as the system allows, and with the first value the process.
///
/// From then on the soft limit of core files is 0, which children inherit and may raise. The protection from debuggers
/// ends with the `exec` of a child.
pub fn protect(value: &[u8]) {
    protect_process();
    // The limit for locked memory is small, and a value that may be swapped is still a secret.
    let _ = sys::lock_memory(value);
}

/// The soft limit of core files before; `None` if unknown.
static CORE_BEFORE: OnceLock<Option<rlim_t>> = OnceLock::new();

/// Protects the process, before it holds a value.
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

/// Restores the limit of core files before another program replaces this process. The protection from debuggers ends
/// by itself then.
pub fn restore_core_limit() {
    if let Some(Some(before)) = CORE_BEFORE.get()
        && let Ok((_, most)) = getrlimit(Resource::RLIMIT_CORE)
    {
        let _ = setrlimit(Resource::RLIMIT_CORE, *before, most);
    }
}
