//! Measures runs of bytes of one kind. All output passes through here, so blocks are checked as a whole, without
//! branches.

use super::escape::Sequence;

/// Returns the number of bytes of a kind at the start.
pub(super) fn length_of(bytes: &[u8], is_kind: impl Fn(u8) -> bool) -> usize {
    let (blocks, _) = bytes.as_chunks::<16>();
    let is_whole = |block: &&[u8; 16]| {
        block
            .iter()
            .fold(true, |is_whole, byte| is_whole & is_kind(*byte))
    };
    let length = 16 * blocks.iter().take_while(is_whole).count();
    let rest = bytes.get(length..).unwrap_or_default();
    let inside = rest.iter().position(|byte| !is_kind(*byte));
    length + inside.unwrap_or(rest.len())
}

/// Returns the number of bytes at the start that are neither controls nor DEL; line feeds and tabs count as plain.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    length_of(bytes, |byte| {
        (byte >= 0x20) & (byte != 0x7f) | (byte == b'\n') | (byte == b'\t')
    })
}

/// Skips a complete colour sequence.
pub(super) fn after_colour(bytes: &[u8]) -> Option<&[u8]> {
    let body = bytes.strip_prefix(b"\x1b[")?;
    let end = body.iter().position(|byte| !matches!(byte, b'0'..=b';'))?;
    body.get(end..)?.strip_prefix(b"m")
}

/// Returns true if bytes do not end within a character.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    if bytes.last().is_none_or(u8::is_ascii) {
        return true;
    }
    let is_first = |byte: &u8| byte & 0xC0 != 0x80;
    let last = bytes.iter().rev().take(4).position(is_first);
    let start = last.map_or(0, |back| bytes.len() - 1 - back);
    std::str::from_utf8(bytes.get(start..).unwrap_or_default()).is_ok()
}

/// Returns the number of bytes at the start that only write, and act on the line of the cursor.
pub(super) fn length_in_line(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some(start) = memchr::memchr(0x1b, rest) {
        let sequence = rest.get(start..).unwrap_or_default();
        match after_sequence(sequence, Sequence::stays_in_line) {
            Some(after) => rest = after,
            None => return bytes.len() - sequence.len(),
        }
    }
    bytes.len()
}

/// Skips a complete sequence: a colour, or one of a kind.
pub(super) fn after_sequence(bytes: &[u8], is_kind: impl Fn(&Sequence) -> bool) -> Option<&[u8]> {
    after_colour(bytes).or_else(|| {
        let (sequence, after) = Sequence::read(bytes)?;
        is_kind(&sequence).then_some(after)
    })
}
