//! Reads width and height from the header of an image.

use std::io::{Read, Seek, SeekFrom};

/// Most JPEG segments that are skipped on the way to the size.
const MAX_SEGMENTS: usize = 500;

/// Returns width and height of an image with a known format and header; `None` for other formats and damaged
/// files.
pub(super) fn size(kind: &str, head: &[u8], file: &mut (impl Read + Seek)) -> Option<(u32, u32)> {
    match kind {
        "png" => Some((big(head, 16, 4)?, big(head, 20, 4)?)),
        "gif" => Some((little(head, 6, 2)?, little(head, 8, 2)?)),
        "webp" => webp(head),
        "jpeg" => jpeg(file),
        _ => None,
    }
}

fn big(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let part = bytes.get(at..at + count)?;
    Some(part.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
}

fn little(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let part = bytes.get(at..at + count)?;
    let digits = part.iter().rev();
    Some(digits.fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
}

fn webp(head: &[u8]) -> Option<(u32, u32)> {
    match head.get(12..16)? {
        b"VP8X" => Some((little(head, 24, 3)? + 1, little(head, 27, 3)? + 1)),
        b"VP8L" => {
            let bits = little(head, 21, 4)?;
            Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
        }
        b"VP8 " => Some((little(head, 26, 2)? & 0x3FFF, little(head, 28, 2)? & 0x3FFF)),
        _ => None,
    }
}

/// Skips to the segment with the size.
fn jpeg(file: &mut (impl Read + Seek)) -> Option<(u32, u32)> {
    file.seek(SeekFrom::Start(2)).ok()?;
    for _ in 0..MAX_SEGMENTS {
        let mut start = [0; 4];
        file.read_exact(&mut start).ok()?;
        let [0xFF, marker, ..] = start else {
            return None;
        };
        match marker {
            0xC4 | 0xC8 | 0xCC | 0x00..=0xBF | 0xDA..=0xEF | 0xFE => {}
            0xC0..=0xCF => {
                let mut frame = [0; 5];
                file.read_exact(&mut frame).ok()?;
                return Some((big(&frame, 3, 2)?, big(&frame, 1, 2)?));
            }
            _ => return None,
        }
        let length = big(&start, 2, 2)?.checked_sub(2)?;
        file.seek(SeekFrom::Current(i64::from(length))).ok()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn check(kind: &str, bytes: &[u8], expected: Option<(u32, u32)>) {
        let found = size(kind, bytes, &mut Cursor::new(bytes));
        assert_eq!(found, expected, "{kind} {bytes:?}");
        for end in 0..bytes.len() {
            size(kind, &bytes[..end], &mut Cursor::new(&bytes[..end]));
        }
    }

    #[test]
    fn image_sizes_are_read() {
        let png = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xE0";
        check("png", png, Some((640, 480)));
        check("gif", b"GIF89a\x0A\x00\x14\x00", Some((10, 20)));
        let jpeg = b"\xFF\xD8\xFF\xE0\0\x04ab\xFF\xC4\0\x03x\xFF\xC2\0\x11\x08\x01\x2C\x02\x58";
        check("jpeg", jpeg, Some((600, 300)));
        let wide = b"RIFF\0\0\0\0WEBPVP8X\x0A\0\0\0\0\0\0\0\x7F\x02\0\xDF\x01\0";
        check("webp", wide, Some((640, 480)));
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\x0A\0\0\0\x2F\x7F\xC2\x77\0";
        check("webp", lossless, Some((640, 480)));
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \x0A\0\0\0\0\0\0\x9D\x01\x2A\x80\x02\xE0\x01";
        check("webp", lossy, Some((640, 480)));
        check("elf", b"\x7FELF", None);
        check("jpeg", b"\xFF\xD8\xFF\xE0\0\x01", None);
    }
}
