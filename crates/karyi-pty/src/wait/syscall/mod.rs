//! The system call a thread is blocked in, and its descriptors.
//!
//! `/proc/PID/task/TID/syscall` has the number and the raw arguments; sets of descriptors are in the memory of the
//! process. A process may change both while they are read, so the result is only used for further queries to the
//! kernel.

mod arguments;
mod compat;
mod uring;

use std::io;
use std::sync::OnceLock;

use nix::libc;

use arguments::{
    RawSyscall, Thread, locked, low, polled, registered, restarted, selected, unlimited,
};

use crate::process::read_line;

pub(crate) use arguments::{Blocked, registrations};
pub(crate) use uring::pending;

/// Returns the system call in which a thread is blocked.
///
/// # Errors
/// The kernel refuses: the process has ended, or belongs to another user.
pub(crate) fn blocked_in(pid: i32, id: i32) -> io::Result<Blocked> {
    let text = read_line(&format!("/proc/{pid}/task/{id}/syscall"))?;
    let thread = Thread { pid, id };
    let Some(call) = parse(&text) else {
        return Ok(match is_outside(thread, &text) {
            true => Blocked::Peer,
            false => Blocked::Other,
        });
    };
    Ok(if compat::is_compat(pid, call.stack_and_code) {
        compat::classify(thread, call)
    } else {
        classify(thread, call)
    })
}

/// Returns true if the kernel shows the system calls of threads. Checked once: a protected process cannot read even
/// its own.
pub(crate) fn is_readable() -> bool {
    static IS_READABLE: OnceLock<bool> = OnceLock::new();
    let own = std::process::id();
    *IS_READABLE.get_or_init(|| std::fs::read(format!("/proc/{own}/task/{own}/syscall")).is_ok())
}

/// Returns true for a thread that makes no system call and does not run: it has ended, or belongs to the kernel.
fn is_outside(thread: Thread, text: &str) -> bool {
    let Thread { pid, id } = thread;
    let name = || read_line(&format!("/proc/{pid}/task/{id}/comm"));
    text.trim_end() == "-1 0x0 0x0"
        || text.starts_with("-1") && name().is_ok_and(|name| name.starts_with("iou-"))
}

/// Reads `NUMBER 0xARGUMENT … 0xSTACK 0xCODE`; a running thread has none.
fn parse(text: &str) -> Option<RawSyscall> {
    let mut fields = text.split_ascii_whitespace();
    let number = fields.next()?.parse().ok()?;
    let mut words = [0; 8];
    for word in &mut words {
        let hex = fields.next()?.strip_prefix("0x")?;
        *word = u64::from_str_radix(hex, 16).ok()?;
    }
    let [a, b, c, d, e, f, stack, code] = words;
    (number >= 0).then_some(RawSyscall {
        number,
        arguments: [a, b, c, d, e, f],
        stack_and_code: [stack, code],
    })
}

fn classify(thread: Thread, call: RawSyscall) -> Blocked {
    let pid = thread.pid;
    let [first, second, third, fourth, fifth, _] = call.arguments;
    match call.number {
        libc::SYS_read | libc::SYS_readv | libc::SYS_preadv2 | libc::SYS_splice => {
            Blocked::Read(low(first))
        }
        libc::SYS_sendfile => Blocked::Read(low(second)),
        libc::SYS_write | libc::SYS_writev => Blocked::Write(low(first)),
        libc::SYS_futex => locked(pid, call.arguments),
        libc::SYS_futex_waitv => unlimited(fourth),
        libc::SYS_rt_sigsuspend => Blocked::Peer,
        libc::SYS_rt_sigtimedwait => unlimited(third),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_pause => Blocked::Peer,
        libc::SYS_wait4 | libc::SYS_waitid => Blocked::Child,
        // Blocked until the child runs its program; the child may be stopped before.
        libc::SYS_clone | libc::SYS_clone3 => Blocked::Child,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_vfork => Blocked::Child,
        libc::SYS_ppoll => polled(pid, first, second, third != 0),
        libc::SYS_pselect6 => selected(pid, first, second, fifth != 0),
        libc::SYS_epoll_pwait => registered(pid, low(first), low(fourth) >= 0),
        libc::SYS_epoll_pwait2 => registered(pid, low(first), fourth != 0),
        libc::SYS_io_uring_enter => uring::entered(pid, call.arguments),
        libc::SYS_restart_syscall => restarted(thread, call.arguments),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => polled(pid, first, second, low(third) >= 0),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => selected(pid, first, second, fifth != 0),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => registered(pid, low(first), low(fourth) >= 0),
        _ => Blocked::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arguments::registration;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let call = |number, arguments| {
            Some(RawSyscall {
                number,
                arguments,
                stack_and_code: [0x7ffc, 0x7f],
            })
        };
        let check = |text: &str, expected: Option<RawSyscall>| {
            assert_eq!(parse(text), expected, "{text:?}")
        };
        check("running\n", None);
        check("-1 0x7ffc 0x7f\n", None);
        check("", None);
        check("0 0x0 0x1 0x2 0x3 0x4 0xff 0x7ffc", None);
        check(
            "0 0x0 0x1 0x2 0x3 0x4 0xff 0x7ffc 0x7f\n",
            call(0, [0, 1, 2, 3, 4, 255]),
        );
    }

    #[test]
    fn registrations_for_input_count() {
        let check = |line: &str, expected| assert_eq!(registration(line), expected, "{line:?}");
        check(
            "tfd:        0 events:       19 data:                0  pos:0 ino:6",
            Some(0),
        );
        check(
            "tfd:        5 events: 80000004 data:                5",
            None,
        );
        check("pos:\t0", None);
        check("tfd: x", None);
    }

    #[test]
    fn own_memory_is_read() {
        let entries: [u8; 16] = [3, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0];
        let own = i32::try_from(std::process::id()).unwrap();
        let address = entries.as_ptr() as u64;
        assert_eq!(polled(own, address, 2, true), Blocked::Wait(vec![3], true));
        assert_eq!(
            selected(own, 16, address, false),
            Blocked::Wait(vec![0, 1], false)
        );
        assert_eq!(polled(own, 1, 2, true), Blocked::Wait(vec![], true));
    }

    #[test]
    fn this_thread_is_not_blocked() {
        let own = i32::try_from(std::process::id()).unwrap();
        let thread = nix::unistd::gettid().as_raw();
        // Reading the file is itself a read of that file.
        let seen = blocked_in(own, thread).unwrap();
        assert!(
            matches!(seen, Blocked::Read(_) | Blocked::Other),
            "{seen:?}"
        );
    }
}
