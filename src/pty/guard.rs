//! Keeps a process that holds secrets from telling them: no core file, no debugger of another
//! process of the user, no page on disk.

use std::sync::Once;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::sys;

/// Protects a value in memory as far as the system allows, and with the first one the process.
///
/// A core file has the soft limit 0 from then on, which children inherit and may raise; that the
/// process cannot be looked into ends with the `exec` of a child.
pub fn keep(value: &[u8]) {
    static PROCESS: Once = Once::new();
    PROCESS.call_once(keep_process);
    // The limit for locked memory is small, and a value that may be swapped is still a secret.
    let _ = sys::lock_memory(value);
}

fn keep_process() {
    #[cfg(target_os = "linux")]
    {
        super::syscall::is_told();
        let _ = nix::sys::prctl::set_dumpable(false);
    }
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_CORE) {
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, most);
    }
}
