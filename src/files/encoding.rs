//! Tells in which encoding a text stands in its file, and writes it back in the same.
//!
//! UTF-8 and UTF-16 are known by their byte order mark or by their shape; other encodings are
//! guessed from the text. A guess counts only when the text, written back, is the same to the byte:
//! then nothing an edit did not touch can change.

use std::borrow::Cow;

use encoding_rs::{EncoderResult, GB18030, GBK, WINDOWS_1252};

/// How a file spells its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    form: Form,
    has_mark: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Utf8,
    Utf16Le,
    Utf16Be,
    Legacy(&'static encoding_rs::Encoding),
}

/// Why the bytes of a file are no text that can be edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoText {
    /// There is a byte that no text holds, at this offset.
    Binary(usize),
    /// It is UTF-8 but for what stands at this offset.
    BrokenUtf8(usize),
    /// No encoding gives the same bytes again.
    Unknown(usize),
}

const MARK_UTF8: &[u8] = b"\xEF\xBB\xBF";
const MARK_LE: &[u8] = b"\xFF\xFE";
const MARK_BE: &[u8] = b"\xFE\xFF";
/// Bytes from which the shape of UTF-16 tells something.
const LEAST_UTF16_BYTES: usize = 8;
/// Bytes from which an encoding is guessed.
const GUESSED_BYTES: usize = 1 << 20;

impl Encoding {
    /// UTF-8 without a byte order mark: the encoding of new files.
    pub const UTF8: Self = Self {
        form: Form::Utf8,
        has_mark: false,
    };

    /// Returns the name shown to users; none for UTF-8, which goes without saying.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self.form {
            Form::Utf8 => None,
            Form::Utf16Le => Some("utf-16le"),
            Form::Utf16Be => Some("utf-16be"),
            Form::Legacy(encoding) if encoding == WINDOWS_1252 => Some("latin-1"),
            Form::Legacy(encoding) if encoding == GB18030 => Some("gb18030"),
            Form::Legacy(encoding) => Some(encoding.name()),
        }
    }

    /// Reads text.
    ///
    /// # Errors
    /// The bytes are no text, or no encoding would write them back as they are.
    pub fn read(bytes: &[u8]) -> Result<(Self, Cow<'_, str>), NoText> {
        if let Some(rest) = bytes.strip_prefix(MARK_UTF8) {
            return read_utf8(rest, true).map_err(|error| error.moved(MARK_UTF8.len()));
        }
        if let Some(rest) = bytes.strip_prefix(MARK_LE) {
            return read_utf16(rest, Form::Utf16Le, true);
        }
        if let Some(rest) = bytes.strip_prefix(MARK_BE) {
            return read_utf16(rest, Form::Utf16Be, true);
        }
        if let Some(form) = shape_of_utf16(bytes) {
            return read_utf16(bytes, form, false);
        }
        match read_utf8(bytes, false) {
            Err(NoText::Unknown(at)) => read_legacy(bytes, at),
            known => known,
        }
    }

    /// Writes text.
    ///
    /// # Errors
    /// The first character that the encoding does not have.
    pub fn write(self, text: String) -> Result<Vec<u8>, char> {
        let mark: &[u8] = match self.form {
            _ if !self.has_mark => b"",
            Form::Utf8 => MARK_UTF8,
            Form::Utf16Le => MARK_LE,
            Form::Utf16Be => MARK_BE,
            Form::Legacy(_) => b"",
        };
        match self.form {
            Form::Utf8 if mark.is_empty() => Ok(text.into_bytes()),
            Form::Utf8 => Ok([mark, text.as_bytes()].concat()),
            Form::Utf16Le => Ok(write_utf16(mark, &text, u16::to_le_bytes)),
            Form::Utf16Be => Ok(write_utf16(mark, &text, u16::to_be_bytes)),
            Form::Legacy(encoding) => write_legacy(encoding, &text),
        }
    }
}

impl NoText {
    fn moved(self, by: usize) -> Self {
        match self {
            Self::Binary(at) => Self::Binary(at + by),
            Self::BrokenUtf8(at) => Self::BrokenUtf8(at + by),
            Self::Unknown(at) if by > 0 => Self::BrokenUtf8(at + by),
            Self::Unknown(at) => Self::Unknown(at),
        }
    }
}

fn read_utf8(bytes: &[u8], has_mark: bool) -> Result<(Encoding, Cow<'_, str>), NoText> {
    if let Some(at) = memchr::memchr(0, bytes) {
        return Err(NoText::Binary(at));
    }
    let form = Form::Utf8;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok((Encoding { form, has_mark }, Cow::Borrowed(text))),
        Err(error) if is_mostly_utf8(bytes) => Err(NoText::BrokenUtf8(error.valid_up_to())),
        Err(error) => Err(NoText::Unknown(error.valid_up_to())),
    }
}

/// Whether a text that is not UTF-8 was meant to be: most of what is not ASCII is well formed.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut bad) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    good > bad
}

/// Tells UTF-16 without a mark: every other byte of its ASCII characters is NUL, and no other is.
fn shape_of_utf16(bytes: &[u8]) -> Option<Form> {
    let head = bytes.get(..bytes.len().min(4096) & !1)?;
    if !bytes.len().is_multiple_of(2)
        || bytes.len() < LEAST_UTF16_BYTES
        || memchr::memchr(0, head).is_none()
    {
        return None;
    }
    let nul = |index: usize| {
        let units = head.chunks_exact(2);
        units.filter(|unit| unit.get(index) == Some(&0)).count()
    };
    let (first, second) = (nul(0), nul(1));
    let most = head.len() / 4;
    // A character beyond the first 65,536 may hold a NUL in the other half.
    if second > most && first * 8 <= second {
        Some(Form::Utf16Le)
    } else if first > most && second * 8 <= first {
        Some(Form::Utf16Be)
    } else {
        None
    }
}

fn read_utf16(
    bytes: &[u8],
    form: Form,
    has_mark: bool,
) -> Result<(Encoding, Cow<'static, str>), NoText> {
    let offset = if has_mark { 2 } else { 0 };
    if !bytes.len().is_multiple_of(2) {
        return Err(NoText::Unknown(bytes.len() + offset - 1));
    }
    let units = bytes.chunks_exact(2).map(|unit| match (unit, form) {
        ([a, b], Form::Utf16Be) => u16::from_be_bytes([*a, *b]),
        ([a, b], _) => u16::from_le_bytes([*a, *b]),
        _ => 0,
    });
    let mut text = String::with_capacity(bytes.len() / 2);
    for character in char::decode_utf16(units) {
        match character {
            // Without a mark it may as well be a list of small numbers.
            Ok(character) if character == '\0' || !has_mark && is_odd(character) => {
                return Err(NoText::Binary(offset + text.encode_utf16().count() * 2));
            }
            Ok(character) => text.push(character),
            Err(_) => return Err(NoText::Unknown(offset + text.encode_utf16().count() * 2)),
        }
    }
    Ok((Encoding { form, has_mark }, Cow::Owned(text)))
}

/// Whether a character is a control character that texts do not hold.
fn is_odd(character: char) -> bool {
    character < ' ' && !"\t\n\x0C\r\x1B".contains(character)
}

fn write_utf16(mark: &[u8], text: &str, spell: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(mark.len() + text.len() * 2);
    bytes.extend_from_slice(mark);
    text.encode_utf16()
        .for_each(|unit| bytes.extend_from_slice(&spell(unit)));
    bytes
}

/// Guesses an encoding and keeps the guess if it holds.
fn read_legacy(bytes: &[u8], at: usize) -> Result<(Encoding, Cow<'_, str>), NoText> {
    if let Some(at) = bytes.iter().position(|byte| is_odd(char::from(*byte))) {
        return Err(NoText::Binary(at));
    }
    // What stands around the first byte that is not ASCII tells most.
    let from = at.saturating_sub(GUESSED_BYTES / 8);
    let sample = bytes.get(from..bytes.len().min(from + GUESSED_BYTES));
    for encoding in [guess(sample.unwrap_or(bytes)), WINDOWS_1252] {
        let (text, has_errors) = encoding.decode_without_bom_handling(bytes);
        let is_same = || write_legacy(encoding, &text).is_ok_and(|again| again == bytes);
        if !has_errors && is_same() {
            let form = Form::Legacy(encoding);
            let has_mark = false;
            return Ok((Encoding { form, has_mark }, text));
        }
    }
    Err(NoText::Unknown(at))
}

fn guess(sample: &[u8]) -> &'static encoding_rs::Encoding {
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
    detector.feed(sample, true);
    match detector.guess(None, chardetng::Utf8Detection::Deny) {
        encoding if encoding == GBK => GB18030,
        encoding => encoding,
    }
}

fn write_legacy(encoding: &'static encoding_rs::Encoding, text: &str) -> Result<Vec<u8>, char> {
    let mut encoder = encoding.new_encoder();
    let most = encoder.max_buffer_length_from_utf8_without_replacement(text.len());
    let mut bytes = Vec::with_capacity(most.unwrap_or(text.len()));
    let mut rest = text;
    loop {
        let (result, read) =
            encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
        rest = rest.get(read..).unwrap_or_default();
        match result {
            EncoderResult::InputEmpty => return Ok(bytes),
            EncoderResult::OutputFull => bytes.reserve(rest.len() + 16),
            EncoderResult::Unmappable(character) => return Err(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes, the name of their encoding and their text; written back they are the same.
    fn check(bytes: &[u8], name: Option<&str>, text: &str) {
        let (encoding, read) = Encoding::read(bytes).unwrap();
        assert_eq!((encoding.name(), &*read), (name, text), "{bytes:?}");
        assert_eq!(encoding.write(read.into_owned()).unwrap(), bytes);
    }

    fn utf16(text: &str, spell: fn(u16) -> [u8; 2]) -> Vec<u8> {
        write_utf16(b"", text, spell)
    }

    #[test]
    fn encodings_are_told_apart_and_written_back() {
        check(b"", None, "");
        check("h\u{e9}llo".as_bytes(), None, "h\u{e9}llo");
        check(b"\xEF\xBB\xBFa\r\n", None, "a\r\n");
        check(b"\xFF\xFEa\0\n\0", Some("utf-16le"), "a\n");
        check(b"\xFE\xFF\0a\0\n", Some("utf-16be"), "a\n");
        let text = "plain words, \u{4E2D}\u{6587} \u{1F600}\n";
        check(&utf16(text, u16::to_le_bytes), Some("utf-16le"), text);
        check(&utf16(text, u16::to_be_bytes), Some("utf-16be"), text);
        check(
            b"tr\xE8s bien, caf\xE9\n",
            Some("latin-1"),
            "tr\u{e8}s bien, caf\u{e9}\n",
        );
        let chinese = "\u{8FD9}\u{662F}\u{4E00}\u{4E2A}\u{7B80}\u{5355}\u{7684}\u{6D4B}\u{8BD5}\u{6587}\u{4EF6}\u{3002}\n";
        let (bytes, ..) = GB18030.encode(chinese);
        check(&bytes, Some("gb18030"), chinese);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let check = |bytes: &[u8], expected| {
            assert_eq!(Encoding::read(bytes).unwrap_err(), expected, "{bytes:?}");
        };
        check(b"1\0", NoText::Binary(1));
        check(b"\xEF\xBB\xBF1\0", NoText::Binary(4));
        check(b"\x89PNG\r\n\x1A\n", NoText::Binary(6));
        check(
            "caf\u{e9} \u{e9}t\u{e9} \u{e9}"
                .as_bytes()
                .iter()
                .copied()
                .chain([0xFF])
                .collect::<Vec<_>>()
                .as_slice(),
            NoText::BrokenUtf8(14),
        );
        check(b"\xFF\xFEa\0\x00\xD8", NoText::Unknown(4));
        check(b"\xFF\xFEa", NoText::Unknown(2));
        check(b"\xEF\xBB\xBF\xFF", NoText::BrokenUtf8(3));
    }

    #[test]
    fn a_character_that_the_encoding_lacks_is_named() {
        let (encoding, _) = Encoding::read(b"caf\xE9").unwrap();
        assert_eq!(encoding.write("\u{4E2D}".into()), Err('\u{4E2D}'));
        assert_eq!(encoding.write("\u{20AC}".into()), Ok(vec![0x80]));
    }
}
