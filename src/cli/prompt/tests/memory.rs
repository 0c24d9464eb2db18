//! Traces of a pasted value in the memory of the program.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

use zeroize::Zeroizing;

use crate::cli::prompt::keys::{Key, ValueInput, read_key};

/// Parts of a value, hidden by `MASK`, so that it is not in memory by itself.
const HIDDEN: &[u8] = b"\x1a\x2f\x05\x33\x14\x2b\x07\x38\x11\x3e\x0c\x26\x09\x31\x1d\x22";
const MASK: u8 = 0x55;

/// Returns a paste of the value in many lines with this ending.
fn pasted_value(end: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(4096));
    bytes.extend_from_slice(b"\x1b[200~");
    for _ in 0..80 {
        bytes.extend(HIDDEN.iter().map(|byte| byte ^ MASK));
        bytes.extend_from_slice(end);
    }
    bytes.extend_from_slice(b"\x1b[201~");
    bytes
}

/// Reads a paste as a key.
fn key_of(pasted: &[u8]) -> Key {
    let mut bytes = pasted.iter().copied();
    let key = read_key(&mut || Ok::<_, ()>(bytes.next()));
    key.unwrap().unwrap()
}

/// Returns true when the value is in the program's writable memory.
fn remembers() -> bool {
    // Large enough not to reuse freed memory.
    let mut maps = String::with_capacity(1 << 20);
    let mut file = File::open("/proc/self/maps").unwrap();
    file.read_to_string(&mut maps).unwrap();
    let memory = File::open("/proc/self/mem").unwrap();
    let mut chunk = Zeroizing::new(vec![0; 256 << 10]);
    let is_it = |found: &[u8]| found.iter().zip(HIDDEN).all(|(a, b)| a ^ MASK == *b);
    maps.lines()
        .filter(|line| line.contains(" rw"))
        .any(|line| {
            let (range, _) = line.split_once(' ').unwrap();
            let (start, end) = range.split_once('-').unwrap();
            let number = |text| u64::from_str_radix(text, 16).unwrap();
            let starts = (number(start)..number(end)).step_by(chunk.len() - HIDDEN.len());
            starts.into_iter().any(|start| {
                // The mapping may be gone by now.
                let length = memory.read_at(&mut chunk, start).unwrap_or(0);
                let read = &chunk[..length];
                let mut heads = memchr::memchr_iter(HIDDEN[0] ^ MASK, read);
                heads.any(|head| read.get(head..head + HIDDEN.len()).is_some_and(is_it))
            })
        })
}

#[test]
fn nothing_of_a_paste_stays_in_memory() {
    // Run one after the other: each would find the value of the other.
    paste_lines();
    paste_what_is_no_text();
}

fn paste_lines() {
    let mut line = ValueInput::new();
    line.take(key_of(&pasted_value(b"\r\n")), false);
    assert!(remembers(), "not while it is given");
    drop(line);
    assert!(!remembers(), "a copy of it stays");
}

fn paste_what_is_no_text() {
    let pasted = pasted_value(&[0xff; 8]);
    assert!(matches!(key_of(&pasted), Key::Other));
    assert!(remembers(), "not while it is given");
    drop(pasted);
    assert!(!remembers(), "a copy of it stays");
}
