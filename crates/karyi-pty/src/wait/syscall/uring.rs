//! Pending reads of an `io_uring`.
//!
//! The kernel lists the kinds of pending requests of a ring (`fdinfo`), but not their descriptors. Those are in the
//! ring's entries, which are in the memory of the process until they are used again.

use karyi_core::limits;

use super::arguments::{Blocked, low, memory};

/// Bytes of one entry.
const ENTRY_BYTES: usize = 64;
/// Offset of the entries in a mapping of a ring.
const ENTRIES_OFFSET: &str = "10000000";
/// The flag of an entry whose descriptor is an index into a table of the kernel.
const FIXED_FILE: u8 = 1;
/// The flag of a wait whose arguments are in memory.
const EXTENDED_ARGUMENT: u64 = 1 << 3;
/// The flag of a wait for completions.
const GET_EVENTS: u64 = 1;
/// Requests that end when there is input: `READV`, `READ_FIXED`, `POLL_ADD`, `READ`,
/// `READ_MULTISHOT`.
const READS: [u8; 5] = [1, 4, 6, 22, 49];

/// Pending requests of a ring.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    /// Descriptors with a pending read, if the ring's memory shows them.
    pub(crate) reads: Vec<i32>,
    /// True if requests of other kinds are pending, too.
    pub(crate) has_others: bool,
}

/// Classifies a call that enters a ring.
pub(super) fn entered(pid: i32, arguments: [u64; 6]) -> Blocked {
    let [ring, _, wanted, flags, argument, _] = arguments;
    if wanted == 0 || flags & GET_EVENTS == 0 {
        return Blocked::Other;
    }
    let has_limit = flags & EXTENDED_ARGUMENT != 0 && has_limit(pid, argument);
    Blocked::Wait(vec![low(ring)], has_limit)
}

/// Returns true if the extended argument of a wait, `{ mask, mask size, wait, time }`, has a time limit.
fn has_limit(pid: i32, argument: u64) -> bool {
    memory(pid, argument, 24)
        .get(16..24)
        .is_some_and(|time| time.iter().any(|byte| *byte != 0))
}

/// Returns the pending requests of a ring.
pub(crate) fn pending(pid: i32, ring: i32) -> Pending {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{ring}")).unwrap_or_default();
    let kinds = waiting_kinds(&text);
    let has_others = kinds.iter().any(|kind| !READS.contains(kind));
    if !kinds.iter().any(|kind| READS.contains(kind)) {
        let reads = Vec::new();
        return Pending { reads, has_others };
    }
    let entries = entries(pid, &text);
    let of_kind = |entry: &&[u8]| entry.first().is_some_and(|kind| kinds.contains(kind));
    let entries = entries.chunks_exact(ENTRY_BYTES).filter(of_kind);
    let mut reads: Vec<i32> = entries.filter_map(read_descriptor).collect();
    reads.sort_unstable();
    reads.dedup();
    Pending { reads, has_others }
}

/// Reads the lines `op=KIND, task_works=N` after `PollList:`.
fn waiting_kinds(text: &str) -> Vec<u8> {
    let after = text
        .lines()
        .skip_while(|line| !line.starts_with("PollList:"));
    let lines = after
        .skip(1)
        .map_while(|line| line.trim().strip_prefix("op="));
    lines
        .filter_map(|line| line.split(',').next()?.parse().ok())
        .take(limits::MAX_RING_ENTRIES)
        .collect()
}

/// Reads the entries of a ring.
fn entries(pid: i32, text: &str) -> Vec<u8> {
    let field = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
        Some(lines.next()?.trim().to_owned())
    };
    let mask =
        field("SqMask:").and_then(|mask| usize::from_str_radix(mask.strip_prefix("0x")?, 16).ok());
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let inode = field("ino:").unwrap_or_default();
    let address = maps.lines().find_map(|line| mapping_of(line, &inode));
    match (mask, address) {
        (Some(mask), Some(address)) => {
            let count = mask.saturating_add(1).min(limits::MAX_RING_ENTRIES);
            memory(pid, address, count * ENTRY_BYTES)
        }
        _ => Vec::new(),
    }
}

/// Reads `FROM-TO MODE OFFSET DEVICE INODE anon_inode:[io_uring]`; returns the address of the entries.
fn mapping_of(line: &str, inode: &str) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace();
    let (from, _) = fields.next()?.split_once('-')?;
    let is_entries = fields.nth(1)? == ENTRIES_OFFSET;
    let is_ring = fields.nth(1)? == inode && fields.next()? == "anon_inode:[io_uring]";
    (is_entries && is_ring).then(|| u64::from_str_radix(from, 16).ok())?
}

/// Reads `{ kind, flags, priority: u16, descriptor: i32, … }`.
fn read_descriptor(entry: &[u8]) -> Option<i32> {
    match *entry {
        [_, flags, _, _, a, b, c, d, ..] if flags & FIXED_FILE == 0 => {
            Some(i32::from_le_bytes([a, b, c, d]))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_requests_are_listed() {
        let check = |text: &str, expected: &[u8]| assert_eq!(waiting_kinds(text), expected);
        check("", &[]);
        check("SqMask:\t0x7\nPollList:\nCqOverflowList:\n", &[]);
        check(
            "PollList:\n  op=22, task_works=0\n  op=6, task_works=1\nCqOverflowList:\n  op=9\n",
            &[22, 6],
        );
    }

    #[test]
    fn a_ring_is_found_by_its_inode() {
        let line =
            "7f12-7f13 rw-s 10000000 00:10 3105611                     anon_inode:[io_uring]";
        assert_eq!(mapping_of(line, "3105611"), Some(0x7f12));
        assert_eq!(mapping_of(line, "3105612"), None);
        assert_eq!(
            mapping_of(&line.replace("1000000", "0000000"), "3105611"),
            None
        );
        assert_eq!(mapping_of("7f12-7f13 rw-s", ""), None);
    }

    #[test]
    fn an_entry_names_its_descriptor() {
        assert_eq!(read_descriptor(&[22, 0, 0, 0, 5, 0, 0, 0, 9]), Some(5));
        assert_eq!(read_descriptor(&[22, FIXED_FILE, 0, 0, 5, 0, 0, 0]), None);
        assert_eq!(read_descriptor(&[22, 0]), None);
    }
}
