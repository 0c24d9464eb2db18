//! Arguments of system calls, and the descriptors they refer to.

use std::io::IoSliceMut;

use nix::libc;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use karyi_core::limits;

/// Kind of system call in which a thread is blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// Reading one descriptor.
    Read(i32),
    /// Waiting for input on any of several descriptors; true if with a time limit.
    Wait(Vec<i32>, bool),
    /// Writing one descriptor.
    Write(i32),
    /// Waiting for a child to end, or to start its program.
    Child,
    /// Waiting without a time limit for another thread or process: for a lock or a signal.
    Peer,
    /// Anything else, or not blocked.
    Other,
}

/// The number and the arguments of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RawSyscall {
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
    /// Addresses of the stack and the code of the thread.
    pub(super) stack_and_code: [u64; 2],
}

/// The inspected thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thread {
    pub(super) pid: i32,
    pub(super) id: i32,
}

/// Classifies a call that was restarted after a stop. Only `poll` restarts like this; its arguments are unchanged.
pub(super) fn restarted(thread: Thread, arguments: [u64; 6]) -> Blocked {
    let Thread { pid, id } = thread;
    let place = std::fs::read_to_string(format!("/proc/{pid}/task/{id}/wchan"));
    if !place.unwrap_or_default().contains("poll") {
        return Blocked::Other;
    }
    let [first, second, third, ..] = arguments;
    polled(pid, first, second, !matches!(low(third), -1 | 0))
}

/// Classifies a wait for a lock. A limit of half a minute or more is that of housekeeping, as in the monitor thread of
/// every Go program.
pub(super) fn locked(pid: i32, arguments: [u64; 6]) -> Blocked {
    const WAIT_WITH_DURATION: i32 = 0;
    let [_, operation, _, limit, ..] = arguments;
    let is_duration = low(operation) & 0x7f == WAIT_WITH_DURATION;
    let seconds = match limit {
        0 => return Blocked::Peer,
        _ if is_duration => memory(pid, limit, 8),
        _ => Vec::new(),
    };
    let seconds = seconds.try_into().map_or(0, i64::from_le_bytes);
    if seconds >= limits::MIN_HOUSEKEEPING_SECONDS {
        Blocked::Peer
    } else {
        Blocked::Other
    }
}

/// Returns [`Blocked::Peer`] for a wait without a limit.
pub(super) fn unlimited(limit: u64) -> Blocked {
    if limit == 0 {
        Blocked::Peer
    } else {
        Blocked::Other
    }
}

/// Returns the lower half of an argument, which is all of an `int`.
pub(super) fn low(argument: u64) -> i32 {
    let [a, b, c, d, ..] = argument.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Reads the array of `poll`.
pub(super) fn polled(pid: i32, address: u64, count: u64, has_limit: bool) -> Blocked {
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
pub(super) fn selected(pid: i32, highest: u64, address: u64, has_limit: bool) -> Blocked {
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
pub(super) fn registered(pid: i32, epoll: i32, has_limit: bool) -> Blocked {
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

pub(super) fn registration(line: &str) -> Option<i32> {
    let mut fields = line.strip_prefix("tfd:")?.split_ascii_whitespace();
    let descriptor = fields.next()?.parse().ok()?;
    let events = u32::from_str_radix(fields.nth(1)?, 16).ok()?;
    let wanted = u32::try_from(libc::EPOLLIN).unwrap_or(1);
    (events & wanted != 0).then_some(descriptor)
}

/// Reads memory of another process; returns nothing when that fails.
pub(super) fn memory(pid: i32, address: u64, length: usize) -> Vec<u8> {
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
