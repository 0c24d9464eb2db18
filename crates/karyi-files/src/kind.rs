//! Recognises file formats and special files.

use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use karyi_core::error::{ErrorCode, ToolError};

/// First bytes and names of formats.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1A\n", "png"),
    (b"\xFF\xD8\xFF", "jpeg"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
    (b"\0\0\x01\0", "ico"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
    (b"%PDF-", "pdf"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"\x1F\x8B", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xFD7zXZ\0", "xz"),
    (b"\x28\xB5\x2F\xFD", "zstd"),
    (b"7z\xBC\xAF\x27\x1C", "7z"),
    (b"Rar!\x1A\x07", "rar"),
    (b"\x7FELF", "elf"),
    (b"MZ", "exe"),
    (b"\xCF\xFA\xED\xFE", "mach-o"),
    (b"\xCA\xFE\xBA\xBE", "class"),
    (b"\0asm", "wasm"),
    (b"SQLite format 3\0", "sqlite"),
    (b"OggS", "ogg"),
    (b"fLaC", "flac"),
    (b"ID3", "mp3"),
    (b"\xFF\xFE", "utf-16 text"),
    (b"\xFE\xFF", "utf-16 text"),
    (b"!<arch>\n", "ar"),
    (b"wOFF", "woff"),
    (b"wOF2", "woff"),
];

/// Formats that are recognised at an offset.
const MAGIC_INSIDE: &[(usize, &[u8], &str)] = &[
    (8, b"WEBP", "webp"),
    (8, b"WAVE", "wav"),
    (4, b"ftyp", "mp4"),
    (257, b"ustar", "tar"),
];

/// Returns the name of the binary format of a file that starts with `head`; `None` for text.
///
/// Text can start with the magic letters of a format, so it takes a NUL byte or invalid UTF-8 to make a file
/// binary. A PDF is binary even when it looks like text.
#[must_use]
pub fn binary_kind(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"%PDF-") {
        return Some("pdf");
    }
    let by_start = MAGIC
        .iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map(|(_, name)| *name);
    let is_inside = |(at, magic, _): &&(usize, &[u8], &str)| {
        head.get(*at..).is_some_and(|rest| rest.starts_with(magic))
    };
    let known = by_start.or_else(|| {
        MAGIC_INSIDE
            .iter()
            .find(is_inside)
            .map(|(_, _, name)| *name)
    });
    let has_nul = memchr::memchr(0, head).is_some();
    if has_nul || known.is_some() && !is_utf8_start(head) {
        return Some(known.unwrap_or("binary"));
    }
    None
}

/// Tells whether the bytes are UTF-8, perhaps cut inside the last character.
fn is_utf8_start(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

/// Neither file, directory nor symlink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialFile {
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
}

impl SpecialFile {
    /// Returns the kind of special file, if it is one.
    #[must_use]
    pub fn of(file_type: FileType) -> Option<Self> {
        if file_type.is_fifo() {
            Some(Self::Fifo)
        } else if file_type.is_socket() {
            Some(Self::Socket)
        } else if file_type.is_char_device() || file_type.is_block_device() {
            Some(Self::Device)
        } else {
            None
        }
    }

    /// Error of a call that needs a file or directory.
    #[must_use]
    pub fn refused(self, shown: &Path) -> ToolError {
        let (shown, what) = (shown.display(), self.as_str());
        let message = format!("{shown}: expected a file or directory, found a {what}");
        ToolError::new(ErrorCode::NotAFile, message)
    }

    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::Device => "device",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &[u8], expected: Option<&str>) {
        assert_eq!(binary_kind(head), expected, "{head:?}");
    }

    #[test]
    fn formats_are_named() {
        check(b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR", Some("png"));
        check(b"\xFF\xD8\xFF\xE0\0\x10JFIF", Some("jpeg"));
        check(b"GIF89a\x01\0\x01\0", Some("gif"));
        check(b"%PDF-1.7\n%plain", Some("pdf"));
        check(b"PK\x03\x04\x14\0", Some("zip"));
        check(b"\x1F\x8B\x08\0", Some("gzip"));
        check(b"\x7FELF\x02\x01\x01\0", Some("elf"));
        check(b"RIFF\0\0\0\0WEBPVP8 ", Some("webp"));
        check(b"\xFF\xFEa\0b\0", Some("utf-16 text"));
        check(b"abc\0def", Some("binary"));
    }

    #[test]
    fn text_is_text() {
        check(b"", None);
        check(b"BMW and MZ are letters", None);
        check("GIF8 é".as_bytes(), None);
        check(&"MZé".as_bytes()[..3], None);
        check(b"latin-1 caf\xE9 is still read as text", None);
    }
}
