//! System calls of 32-bit programs on a 64-bit kernel: other numbers, pointers of four bytes.
//!
//! Supports i386 programs on `x86_64`. Elsewhere every program counts as a native one.

use super::arguments::{Blocked, RawSyscall, Thread};

/// Returns true if a process is a 32-bit program. Its stack and code are at low addresses; a native program with low
/// addresses is told apart by its file.
#[cfg(target_arch = "x86_64")]
pub(super) fn is_compat(pid: i32, stack_and_code: [u64; 2]) -> bool {
    stack_and_code
        .iter()
        .all(|place| *place <= u64::from(u32::MAX))
        && has_32_bit_file(pid)
}

/// Returns true if a process is a 32-bit program.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn is_compat(_pid: i32, _places: [u64; 2]) -> bool {
    false
}

/// Returns true if the ELF header of the program has the 32-bit class.
#[cfg(target_arch = "x86_64")]
fn has_32_bit_file(pid: i32) -> bool {
    use std::io::Read as _;
    let mut header = [0; 5];
    let file = std::fs::File::open(format!("/proc/{pid}/exe"));
    let read = file.and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header == *b"\x7fELF\x01"
}

/// Classifies a system call of a 32-bit program.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn classify(_thread: Thread, _call: RawSyscall) -> Blocked {
    Blocked::Other
}

/// Classifies a system call of a 32-bit program; the numbers are those of i386.
#[cfg(target_arch = "x86_64")]
pub(super) fn classify(thread: Thread, call: RawSyscall) -> Blocked {
    use super::arguments::{low, memory, polled, registered, restarted, selected, unlimited};
    use super::uring;
    let pid = thread.pid;
    let [first, second, third, fourth, fifth, _] = call.arguments;
    match call.number {
        // read, readv, splice, preadv2
        3 | 145 | 313 | 378 => Blocked::Read(low(first)),
        // sendfile, sendfile64
        187 | 239 => Blocked::Read(low(second)),
        // waitpid, wait4, waitid, clone, vfork, clone3
        7 | 114 | 284 | 120 | 190 | 435 => Blocked::Child,
        // write, writev
        4 | 146 => Blocked::Write(low(first)),
        // futex, futex_time64
        240 | 422 => unlimited(fourth),
        // rt_sigsuspend, pause
        179 | 29 => Blocked::Peer,
        168 => polled(pid, first, second, low(third) >= 0),
        // ppoll, ppoll_time64
        309 | 414 => polled(pid, first, second, third != 0),
        // _newselect, pselect6, pselect6_time64
        142 | 308 | 413 => selected(pid, first, second, fifth != 0),
        // select, whose five arguments are in memory
        82 => match words(&memory(pid, first, 20)).as_slice() {
            [count, set, _, _, limit] => selected(pid, *count, *set, *limit != 0),
            _ => Blocked::Other,
        },
        // epoll_wait, epoll_pwait
        256 | 319 => registered(pid, low(first), low(fourth) >= 0),
        // epoll_pwait2
        441 => registered(pid, low(first), fourth != 0),
        426 => uring::entered(pid, call.arguments),
        0 => restarted(thread, call.arguments),
        _ => Blocked::Other,
    }
}

/// Reads 32-bit words.
#[cfg(target_arch = "x86_64")]
fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| Some(u64::from(u32::from_le_bytes(chunk.try_into().ok()?)));
    bytes.chunks_exact(4).filter_map(word).collect()
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "x86_64")]
    use super::*;

    #[cfg(target_arch = "x86_64")]
    fn check(number: i64, arguments: [u64; 6], expected: &Blocked) {
        let own = i32::try_from(std::process::id()).unwrap();
        let thread = Thread { pid: own, id: own };
        let stack_and_code = [0, 0];
        let call = RawSyscall {
            number,
            arguments,
            stack_and_code,
        };
        assert_eq!(classify(thread, call), *expected, "{number}");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn numbers_are_those_of_i386() {
        let entries: [u8; 8] = [3, 0, 0, 0, 1, 0, 0, 0];
        let place = entries.as_ptr() as u64;
        check(3, [5, 0, 0, 0, 0, 0], &Blocked::Read(5));
        check(7, [0; 6], &Blocked::Child);
        check(0, [0; 6], &Blocked::Other);
        check(
            168,
            [place, 1, 0xffff_ffff, 0, 0, 0],
            &Blocked::Wait(vec![3], false),
        );
        check(168, [place, 1, 9, 0, 0, 0], &Blocked::Wait(vec![3], true));
        check(
            142,
            [8, place, 0, 0, 1, 0],
            &Blocked::Wait(vec![0, 1], true),
        );
        check(82, [0; 6], &Blocked::Other);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn this_program_is_native() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(!is_compat(own, [0, 0]));
        assert_eq!(words(&[1, 0, 0, 0, 2, 1, 0, 0, 9]), [1, 258]);
    }
}
