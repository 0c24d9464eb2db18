//! The system call a thread is blocked in, and its descriptors.
//!
//! `/proc/PID/task/TID/syscall` has the number and the raw arguments; sets of descriptors are in the memory of the
//! process. A process may change both while they are read, so the result is only used for further queries to the
//! kernel.

mod compat;
mod uring;

use std::io::{self, IoSliceMut};
use std::sync::OnceLock;

use nix::libc;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use karyi_core::limits;

use crate::process::read_line;

pub(crate) use uring::pending;

/// Kind of system call in which a thread is blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// Reading one descriptor.
    Read(i32),
    /// Waiting for input on any of several descriptors; true if with a time limit.
    Wait(Vec<i32>, bool),
    /// Waiting for a child to end, or to start its program.
    Child,
    /// Anything else, or not blocked.
    Other,
}

/// The number and the arguments of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RawSyscall {
    number: i64,
    arguments: [u64; 6],
    /// Addresses of the stack and the code of the thread.
    stack_and_code: [u64; 2],
}

/// The inspected thread.
#[derive(Debug, Clone, Copy)]
struct Thread {
    pid: i32,
    id: i32,
}

/// Returns the system call in which a thread is blocked.
///
/// # Errors
/// The kernel refuses: the process has ended, or belongs to another user.
pub(crate) fn blocked_in(pid: i32, id: i32) -> io::Result<Blocked> {
    let text = read_line(&format!("/proc/{pid}/task/{id}/syscall"))?;
    let Some(call) = parse(&text) else {
        return Ok(Blocked::Other);
    };
    let thread = Thread { pid, id };
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

/// Classifies a call that was restarted after a stop. Only `poll` restarts like this; its arguments are unchanged.
fn restarted(thread: Thread, arguments: [u64; 6]) -> Blocked {
    let Thread { pid, id } = thread;
    let place = std::fs::read_to_string(format!("/proc/{pid}/task/{id}/wchan"));
    if !place.unwrap_or_default().contains("poll") {
        return Blocked::Other;
    }
    let [first, second, third, ..] = arguments;
    polled(pid, first, second, !matches!(low(third), -1 | 0))
}

/// Returns the lower half of an argument, which is all of an `int`.
fn low(argument: u64) -> i32 {
    let [a, b, c, d, ..] = argument.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Reads the array of `poll`.
fn polled(pid: i32, address: u64, count: u64, has_limit: bool) -> Blocked {
    const ENTRY_BYTES: usize = 8;
    let count = usize::try_from(count)
        .unwrap_or(limits::MAX_POLLED_DESCRIPTORS)
        .min(limits::MAX_POLLED_DESCRIPTORS);
    let bytes = memory(pid, address, count * ENTRY_BYTES);
    let entries = bytes
        .chunks_exact(ENTRY_BYTES)
        .filter_map(|entry| match *entry {
            [a, b, c, d, events, _, _, _] => Some((i32::from_le_bytes([a, b, c, d]), events)),
            _ => None,
        });
    let wanted = u8::try_from(libc::POLLIN).unwrap_or(1);
    let descriptors = entries.filter(|(_, events)| events & wanted != 0);
    Blocked::Wait(
        descriptors.map(|(descriptor, _)| descriptor).collect(),
        has_limit,
    )
}

/// Reads the first set of `select`.
fn selected(pid: i32, highest: u64, address: u64, has_limit: bool) -> Blocked {
    let highest = usize::try_from(low(highest)).unwrap_or(0);
    let set = memory(
        pid,
        address,
        highest.div_ceil(8).min(limits::MAX_SELECT_SET_BYTES),
    );
    let is_set = |bit: &usize| {
        set.get(bit / 8)
            .is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    };
    let descriptors = (0..highest.min(set.len() * 8)).filter(is_set);
    Blocked::Wait(
        descriptors
            .filter_map(|bit| i32::try_from(bit).ok())
            .collect(),
        has_limit,
    )
}

/// Returns a wait for the registrations of an epoll descriptor.
fn registered(pid: i32, epoll: i32, has_limit: bool) -> Blocked {
    Blocked::Wait(registrations(pid, epoll), has_limit)
}

/// Reads the registrations of an epoll descriptor: lines of `tfd: NUMBER events: HEX …`.
pub(crate) fn registrations(pid: i32, epoll: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")).unwrap_or_default();
    text.lines()
        .filter_map(registration)
        .take(limits::MAX_POLLED_DESCRIPTORS)
        .collect()
}

fn registration(line: &str) -> Option<i32> {
    let mut fields = line.strip_prefix("tfd:")?.split_ascii_whitespace();
    let descriptor = fields.next()?.parse().ok()?;
    let events = u32::from_str_radix(fields.nth(1)?, 16).ok()?;
    let wanted = u32::try_from(libc::EPOLLIN).unwrap_or(1);
    (events & wanted != 0).then_some(descriptor)
}

/// Reads memory of another process; returns nothing when that fails.
fn memory(pid: i32, address: u64, length: usize) -> Vec<u8> {
    let Ok(base) = usize::try_from(address) else {
        return Vec::new();
    };
    if base == 0 || length == 0 {
        return Vec::new();
    }
    let mut bytes = vec![0; length];
    let mut local = [IoSliceMut::new(&mut bytes)];
    let remote = [RemoteIoVec { base, len: length }];
    let read = process_vm_readv(Pid::from_raw(pid), &mut local, &remote).unwrap_or(0);
    bytes.truncate(read);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

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
