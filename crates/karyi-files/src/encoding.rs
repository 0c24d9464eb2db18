//! Detects the encoding of a text file and writes the text back in the same encoding.
//!
//! UTF-8 and UTF-16 are recognised by their byte order mark or their byte pattern; other encodings are
//! guessed. A guess counts only when encoding the decoded text again gives the same bytes, so an edit never
//! changes what it did not touch. New characters beyond ASCII are only allowed where the bytes leave no
//! doubt.

use std::borrow::Cow;

use encoding_rs::{EncoderResult, GB18030, GBK, WINDOWS_1252};

/// Encoding of the text in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    form: Form,
    has_mark: bool,
    /// True if other encodings are plausible, too.
    is_doubtful: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Utf8,
    Utf16Le,
    Utf16Be,
    Legacy(&'static encoding_rs::Encoding),
}

/// Reason why a file cannot be edited as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextError {
    /// A byte that no text contains, at this offset.
    Binary(usize),
    /// UTF-8 with an error at this offset.
    BrokenUtf8(usize),
    /// No encoding reproduces the bytes.
    Unknown(usize),
}

const MARK_UTF8: &[u8] = b"\xEF\xBB\xBF";
const MARK_LE: &[u8] = b"\xFF\xFE";
const MARK_BE: &[u8] = b"\xFE\xFF";
/// Least size at which a text of ASCII characters alone can be recognised as UTF-16; a shorter one could as
/// well be a number.
const LEAST_UTF16_BYTES: usize = 4;
/// Least size at which mostly ASCII characters suffice.
const SURE_UTF16_BYTES: usize = 8;
/// Bytes from which an encoding is guessed.
pub(super) const GUESSED_BYTES: usize = 1 << 20;
/// Non-ASCII characters from which the detector's guess outweighs the prior that only GB18030 and Latin-1 are
/// common.
const SIGNIFICANT_CHARACTERS: usize = 32;
/// Non-ASCII bytes from which pairs that look like GB18030 count as certain: a few characters of EUC-KR or
/// EUC-JP look the same.
const SURE_PAIR_BYTES: usize = 16;
/// Run of non-ASCII characters that is rare in Latin-1 and usual in other scripts.
const WORD_OF_ANOTHER_SCRIPT: usize = 3;

impl Encoding {
    /// UTF-8 without a byte order mark, the encoding of new files.
    pub const UTF8: Self = Self {
        form: Form::Utf8,
        has_mark: false,
        is_doubtful: false,
    };

    fn new(form: Form, has_mark: bool) -> Self {
        Self {
            form,
            has_mark,
            is_doubtful: false,
        }
    }

    /// Tells whether other encodings are plausible, too. Then only ASCII, and characters the text already
    /// has, can be inserted safely.
    #[must_use]
    pub fn is_doubtful(self) -> bool {
        self.is_doubtful
    }

    /// Tells whether the file starts with a byte order mark.
    pub(super) fn has_mark(self) -> bool {
        self.has_mark
    }

    /// Returns the decoder.
    pub(super) fn decoder(self) -> &'static encoding_rs::Encoding {
        match self.form {
            Form::Utf8 => encoding_rs::UTF_8,
            Form::Utf16Le => encoding_rs::UTF_16LE,
            Form::Utf16Be => encoding_rs::UTF_16BE,
            Form::Legacy(encoding) => encoding,
        }
    }

    /// Tells whether characters take two or four bytes.
    pub(super) fn is_wide(self) -> bool {
        matches!(self.form, Form::Utf16Le | Form::Utf16Be)
    }

    /// Returns the name shown to users; `None` for UTF-8, the default.
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

    /// Decodes text.
    ///
    /// # Errors
    /// The bytes are not text, or no encoding would reproduce them.
    pub fn read(bytes: &[u8]) -> Result<(Self, Cow<'_, str>), TextError> {
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
            Err(TextError::Unknown(at)) => read_legacy(bytes, at),
            known => known,
        }
    }

    /// Decodes two versions of a text with the same encoding where possible; `None` when one of them is not
    /// text.
    #[must_use]
    pub fn read_both<'a>(old: &'a [u8], new: &'a [u8]) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
        let (encoding, before) = Self::read(old).ok()?;
        if let Some(after) = encoding.read_as(new) {
            return Some((before, after));
        }
        Some((before, Self::read(new).ok()?.1))
    }

    /// Decodes two versions of a text for a diff that can be applied to the bytes of the file: a UTF-8 byte
    /// order mark becomes a part of the first line.
    #[must_use]
    pub fn read_to_compare<'a>(
        old: &'a [u8],
        new: &'a [u8],
        written: Option<Self>,
    ) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
        let (before, after) = match written.and_then(|written| written.read_as(new)) {
            Some(after) => (Self::read(old).ok()?.1, after),
            None => Self::read_both(old, new)?,
        };
        Some((with_mark(old, before), with_mark(new, after)))
    }

    /// Decodes text that was written in this encoding; `None` when it was not.
    #[must_use]
    pub fn read_as(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self.form {
            Form::Legacy(encoding) => decode_legacy(encoding, bytes),
            form => {
                let (found, text) = Self::read(bytes).ok()?;
                (found.form == form || text.is_empty()).then_some(text)
            }
        }
    }

    /// Encodes text.
    ///
    /// # Errors
    /// The first character that the encoding lacks.
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
            Form::Legacy(encoding) => write_exactly(encoding, &text),
        }
    }
}

fn with_mark<'a>(bytes: &[u8], text: Cow<'a, str>) -> Cow<'a, str> {
    match bytes.starts_with(MARK_UTF8) {
        true => Cow::Owned(format!("\u{FEFF}{text}")),
        false => text,
    }
}

impl TextError {
    fn moved(self, by: usize) -> Self {
        match self {
            Self::Binary(at) => Self::Binary(at + by),
            Self::BrokenUtf8(at) => Self::BrokenUtf8(at + by),
            Self::Unknown(at) if by > 0 => Self::BrokenUtf8(at + by),
            Self::Unknown(at) => Self::Unknown(at),
        }
    }
}

fn read_utf8(bytes: &[u8], has_mark: bool) -> Result<(Encoding, Cow<'_, str>), TextError> {
    if let Some(at) = memchr::memchr(0, bytes) {
        return Err(TextError::Binary(at));
    }
    let form = Form::Utf8;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok((Encoding::new(form, has_mark), Cow::Borrowed(text))),
        Err(error) if is_mostly_utf8(bytes) => Err(TextError::BrokenUtf8(error.valid_up_to())),
        Err(error) => Err(TextError::Unknown(error.valid_up_to())),
    }
}

/// Tells whether invalid UTF-8 was meant as UTF-8: most of its non-ASCII characters are well formed.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (good, bad) = count_utf8(bytes);
    good > bad
}

/// Counts the well-formed non-ASCII characters of UTF-8 and the malformed stretches.
fn count_utf8(bytes: &[u8]) -> (usize, usize) {
    let (mut good, mut bad) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    (good, bad)
}

/// Recognises UTF-16 without a mark: one byte of each ASCII character is NUL, always at the same position.
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
    if head.len() < SURE_UTF16_BYTES {
        let is_text = |byte: &u8| byte.is_ascii_graphic() || b" \t\r\n".contains(byte);
        let units = || head.chunks_exact(2);
        let is_all = |index: usize| units().all(|unit| unit.get(index).is_some_and(is_text));
        return match () {
            () if second == units().len() && is_all(0) => Some(Form::Utf16Le),
            () if first == units().len() && is_all(1) => Some(Form::Utf16Be),
            () => None,
        };
    }
    let most = head.len() / 4;
    // A character beyond U+FFFF may have a NUL in the other position.
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
) -> Result<(Encoding, Cow<'static, str>), TextError> {
    let offset = if has_mark { 2 } else { 0 };
    if !bytes.len().is_multiple_of(2) {
        return Err(TextError::Unknown(bytes.len() + offset - 1));
    }
    let units = bytes.chunks_exact(2).map(|unit| match (unit, form) {
        ([a, b], Form::Utf16Be) => u16::from_be_bytes([*a, *b]),
        ([a, b], _) => u16::from_le_bytes([*a, *b]),
        _ => 0,
    });
    let mut text = String::with_capacity(bytes.len() / 2);
    for character in char::decode_utf16(units) {
        match character {
            // Without a mark it could as well be a list of small numbers.
            Ok(character) if character == '\0' || !has_mark && is_odd(character) => {
                return Err(TextError::Binary(offset + text.encode_utf16().count() * 2));
            }
            Ok(character) => text.push(character),
            Err(_) => return Err(TextError::Unknown(offset + text.encode_utf16().count() * 2)),
        }
    }
    Ok((Encoding::new(form, has_mark), Cow::Owned(text)))
}

/// Tells whether a character is a control character that texts do not contain.
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

/// Guesses an encoding and verifies the guess.
fn read_legacy(bytes: &[u8], at: usize) -> Result<(Encoding, Cow<'_, str>), TextError> {
    if let Some(at) = bytes.iter().position(|byte| is_odd(char::from(*byte))) {
        return Err(TextError::Binary(at));
    }
    // The text around the first non-ASCII byte is the best sample.
    let from = at.saturating_sub(GUESSED_BYTES / 8);
    let to = bytes.len().min(from + GUESSED_BYTES);
    let guessed = guess(bytes.get(from..to).unwrap_or(bytes), to == bytes.len());
    let shape = ByteStats::of(bytes);
    if shape.is_gb18030(guessed)
        && let Some(text) = decode_legacy(GB18030, bytes)
    {
        let is_sure = guessed == GB18030 && shape.count >= SURE_PAIR_BYTES;
        return Ok((legacy(GB18030, !is_sure), text));
    }
    let (good, bad) = count_utf8(bytes);
    // Among many two-byte characters, some look like UTF-8 by chance.
    let is_known = !guessed.is_single_byte() && shape.count >= SIGNIFICANT_CHARACTERS;
    let by_chance = if is_known { bad } else { 0 };
    if good > by_chance {
        return Err(TextError::BrokenUtf8(at));
    }
    for (encoding, is_doubtful) in [shape.choose(guessed), (WINDOWS_1252, true)] {
        if let Some(text) = decode_legacy(encoding, bytes) {
            return Ok((legacy(encoding, is_doubtful), text));
        }
    }
    if good > 0 {
        return Err(TextError::BrokenUtf8(at));
    }
    Err(TextError::Unknown(at))
}

fn legacy(encoding: &'static encoding_rs::Encoding, is_doubtful: bool) -> Encoding {
    Encoding {
        form: Form::Legacy(encoding),
        has_mark: false,
        is_doubtful,
    }
}

/// Decodes a text if encoding it again gives the same bytes.
fn decode_legacy<'a>(
    encoding: &'static encoding_rs::Encoding,
    bytes: &'a [u8],
) -> Option<Cow<'a, str>> {
    let (text, has_errors) = encoding.decode_without_bom_handling(bytes);
    let is_same = || write_legacy(encoding, &text).is_ok_and(|again| again == bytes);
    (!has_errors && is_same()).then_some(text)
}

/// Statistics of the non-ASCII bytes.
struct ByteStats {
    count: usize,
    longest_run: usize,
    /// True if all are pairs from the common area of GB18030.
    are_gb_pairs: bool,
    /// True if all are letters or usual symbols of windows-1252.
    are_western: bool,
}

impl ByteStats {
    fn of(bytes: &[u8]) -> Self {
        let runs = bytes.split(u8::is_ascii).filter(|run| !run.is_empty());
        let mut shape = Self {
            count: 0,
            longest_run: 0,
            are_gb_pairs: true,
            are_western: true,
        };
        for run in runs {
            shape.count += run.len();
            shape.longest_run = shape.longest_run.max(run.len());
            let mut pairs = run.chunks(2);
            shape.are_gb_pairs &=
                pairs.all(|pair| matches!(pair, [0xA1..=0xA9 | 0xB0..=0xF7, 0xA1..=0xFE]));
            let mut each = run.iter();
            shape.are_western &= each.all(
                |byte| matches!(byte, 0x80 | 0x85 | 0x8C | 0x91..=0x97 | 0x99 | 0x9C | 0xA0..),
            );
        }
        shape
    }

    /// Tells whether the bytes are read as GB18030, unless a guess from many characters says otherwise.
    fn is_gb18030(&self, guessed: &'static encoding_rs::Encoding) -> bool {
        let is_short = self.count < 2 * SIGNIFICANT_CHARACTERS;
        self.are_gb_pairs && (guessed == GB18030 || is_short && !guessed.is_single_byte())
    }

    /// Returns the most likely encoding and whether others are as likely.
    fn choose(
        &self,
        guessed: &'static encoding_rs::Encoding,
    ) -> (&'static encoding_rs::Encoding, bool) {
        let is_short = self.count < SIGNIFICANT_CHARACTERS;
        let stand_alone = self.longest_run < WORD_OF_ANOTHER_SCRIPT;
        let is_latin_1 = guessed == WINDOWS_1252
            || guessed.is_single_byte() && is_short && (stand_alone || has_latin_letters(guessed));
        if !is_latin_1 {
            return (guessed, true);
        }
        let is_sure = self.are_western && !self.are_gb_pairs && guessed == WINDOWS_1252;
        (WINDOWS_1252, !is_sure)
    }
}

/// Tells whether the letters of a single-byte encoding are mostly Latin.
fn has_latin_letters(encoding: &'static encoding_rs::Encoding) -> bool {
    let letters: Vec<u8> = (0xC0..=0xFF).collect();
    let (text, _) = encoding.decode_without_bom_handling(&letters);
    let latin = text.chars().filter(|letter| *letter < '\u{250}');
    latin.count() > letters.len() / 2
}

/// Guesses an encoding; a partial sample may end inside a character.
fn guess(sample: &[u8], is_to_its_end: bool) -> &'static encoding_rs::Encoding {
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
    detector.feed(sample, is_to_its_end);
    match detector.guess(None, chardetng::Utf8Detection::Deny) {
        encoding if encoding == GBK => GB18030,
        encoding => encoding,
    }
}

/// Encodes text and decodes it again: some encoders replace a character they lack by a similar one.
fn write_exactly(encoding: &'static encoding_rs::Encoding, text: &str) -> Result<Vec<u8>, char> {
    let bytes = write_legacy(encoding, text)?;
    let (again, _) = encoding.decode_without_bom_handling(&bytes);
    if again == text {
        return Ok(bytes);
    }
    let mut pairs = text.chars().zip(again.chars());
    let other = pairs.find(|(written, read)| written != read);
    let last = || text.chars().next_back().unwrap_or_default();
    drop(again);
    Err(other.map_or_else(last, |(written, _)| written))
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
mod tests;
