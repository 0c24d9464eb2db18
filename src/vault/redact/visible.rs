//! A form of a value as it is compared: what is visible of it, which of that is secret, and how much it proves.

use std::hash::{DefaultHasher, Hash, Hasher};

use zeroize::Zeroizing;

use super::encodings::Encoded;
use super::form::Form;
use super::parts::guessable_stretches;
use crate::limits;
use crate::vault::view::{self, is_visible};

/// What is known of the bytes of a value.
struct Kinds {
    /// Whether they count for nothing: white space in a row, and one byte again and again.
    idle: Vec<bool>,
    /// Whether they are of a character that has more of them, and not its first.
    more: Vec<bool>,
    /// Whether they are of such a character at all.
    wide: Vec<bool>,
}

impl Kinds {
    /// Fewest bytes of white space and of others that count as a row.
    const BLANKS: usize = 2;
    const SAME: usize = 3;

    /// Looks at a value; there is nothing to know of most.
    fn of(value: &str) -> Option<Self> {
        let bytes = value.as_bytes();
        let is_blank = |byte: &u8| !is_visible(*byte);
        let rows = |wanted: bool, least: usize| {
            let mut idle = vec![false; bytes.len()];
            let mut at = 0;
            for row in bytes.chunk_by(|a, b| a == b || is_blank(a) && is_blank(b)) {
                if row.len() >= least && row.first().is_some_and(is_blank) == wanted {
                    let row = idle.get_mut(at..at + row.len());
                    row.unwrap_or_default().fill(true);
                }
                at += row.len();
            }
            idle
        };
        let mut idle = rows(true, Self::BLANKS);
        let same = rows(false, Self::SAME);
        let both = bytes.iter().zip(&same);
        let left = both.filter(|(byte, is_same)| is_visible(**byte) && !**is_same);
        // Of what has little else every byte counts.
        if left.count() >= limits::GOOD_SECRET_BYTES {
            let all = idle.iter_mut().zip(same);
            all.for_each(|(idle, is_same)| *idle |= is_same);
        }
        let kinds = Self {
            more: bytes.iter().map(|byte| byte & 0xC0 == 0x80).collect(),
            wide: bytes.iter().map(|byte| *byte >= 0x80).collect(),
            idle,
        };
        (!value.is_ascii() || kinds.idle.contains(&true)).then_some(kinds)
    }
}

/// A form as it is compared: what is visible of it.
pub(super) struct Visible {
    /// What the bytes of the value are, where that matters.
    kinds: Option<Kinds>,
    /// How many characters stand before each byte of the form, where not every byte counts as one.
    weights: Vec<u32>,
    /// Which bytes of the value are secret.
    mask: Vec<bool>,
    /// Whether all of them are.
    is_all_secret: bool,
    /// Which bytes of the value are of a secret part that is easy to guess.
    guessable: Vec<bool>,
    pub(super) bytes: Zeroizing<Vec<u8>>,
    /// Whether bytes of a character count, each of them once.
    pub(super) is_dump: bool,
    /// The bytes of the form before this one.
    before: Zeroizing<Vec<u8>>,
    /// How many bytes before each one are secret.
    secret_before: Vec<u32>,
    /// How many characters the secret stretch has that each byte is in; no limit when it is easy to guess.
    stretches: Vec<u32>,
}

impl Visible {
    /// Begins with a value of which these bytes are secret.
    pub(super) fn of(value: &str, mask: Vec<bool>) -> Self {
        let mut guessable = vec![false; value.len()];
        for part in guessable_stretches(value, &mask) {
            guessable.get_mut(part).unwrap_or_default().fill(true);
        }
        Self {
            guessable,
            kinds: Kinds::of(value),
            weights: Vec::new(),
            is_all_secret: !mask.contains(&false),
            is_dump: false,
            mask,
            bytes: Zeroizing::new(Vec::new()),
            before: Zeroizing::new(Vec::new()),
            secret_before: Vec::new(),
            stretches: Vec::new(),
        }
    }

    /// Takes the next form.
    pub(super) fn take(&mut self, form: Form, encoded: &Encoded) {
        std::mem::swap(&mut self.bytes, &mut self.before);
        self.bytes.clear();
        if self.bytes.capacity() < encoded.bytes.len() {
            // What is there would not be wiped if it moved.
            self.bytes = Zeroizing::new(Vec::with_capacity(encoded.bytes.capacity()));
        }
        self.secret_before.clear();
        self.stretches.clear();
        let shown = view::shown(&encoded.bytes);
        self.count(form, encoded, &shown);
        if self.is_all_secret {
            let bytes = encoded.bytes.iter().enumerate();
            let bytes = bytes.filter(|(at, _)| shown.get(*at) != Some(&false));
            let visible = bytes
                .map(|(_, byte)| *byte)
                .filter(|byte| is_visible(*byte));
            self.bytes.extend(visible);
            return;
        }
        let mut secret = 0;
        let (mut stretch_start, mut is_guessable) = (0, false);
        for (at, (byte, source)) in encoded.bytes.iter().zip(&encoded.sources).enumerate() {
            if !is_visible(*byte) || shown.get(at) == Some(&false) {
                continue;
            }
            self.bytes.push(*byte);
            self.secret_before.push(secret);
            let is_secret = self.mask.get(*source as usize) == Some(&true);
            secret += u32::from(is_secret);
            if !is_secret {
                self.close_stretch(stretch_start, is_guessable);
                stretch_start = self.bytes.len();
            }
            is_guessable = self.guessable.get(*source as usize) == Some(&true);
            self.stretches.push(0);
        }
        self.close_stretch(stretch_start, is_guessable);
        self.secret_before.push(secret);
    }

    /// Counts the characters of a form. One that is not ASCII counts once, but in dumps each of its bytes does: a line has
    /// few characters and many bytes. Both digits count for no more, since the first byte of a character and half of the
    /// next say little but its script.
    fn count(&mut self, form: Form, encoded: &Encoded, shown: &[bool]) {
        self.weights.clear();
        self.is_dump = false;
        let Some(kinds) = &self.kinds else {
            return;
        };
        let (mut weight, mut last) = (0, None);
        for (at, (byte, source)) in encoded.bytes.iter().zip(&encoded.sources).enumerate() {
            if !is_visible(*byte) || shown.get(at) == Some(&false) {
                continue;
            }
            self.weights.push(weight);
            let is = |kind: &[bool]| kind.get(*source as usize) == Some(&true);
            let (is_first, is_more) = (last != Some(*source), is(&kinds.more));
            // Texts of such a language are often written with signs, and in one piece: bytes in Python, paths by git, URLs.
            let is_byte = form.is_wide() && byte.is_ascii() && !matches!(byte, b'\\' | b'%');
            self.is_dump |= is_first && is_more && is_byte;
            let counts = is_first && (!is_more || is_byte);
            weight += u32::from(!is(&kinds.idle) && (!is(&kinds.wide) || counts));
            last = Some(*source);
        }
        self.weights.push(weight);
    }

    /// Returns how many characters some bytes count for.
    pub(super) fn weight(&self, at: usize, length: usize) -> usize {
        let [first, last] = [at, at + length].map(|at| self.weights.get(at));
        first
            .zip(last)
            .map_or(length, |(first, last)| (last - first) as usize)
    }

    /// Whether every stretch is as secret as the others and weighs as much.
    pub(super) fn is_uniform(&self) -> bool {
        self.is_all_secret && self.kinds.is_none()
    }

    /// Returns the form before this one when it has as many bytes and each of its stretches is as secret and weighs as much:
    /// where only some digits differ, as capitals do, most are the same.
    pub(super) fn bytes_before(&self) -> Option<&[u8]> {
        let is_like = self.is_uniform() && self.before.len() == self.bytes.len();
        is_like.then_some(self.before.as_slice())
    }

    fn close_stretch(&mut self, start: usize, is_guessable: bool) {
        let start = start.min(self.stretches.len());
        let length = u32::try_from(self.weight(start, self.stretches.len() - start));
        let length = length.ok().filter(|_| !is_guessable);
        let stretch = self.stretches.get_mut(start..).unwrap_or_default();
        stretch.fill(length.unwrap_or(u32::MAX));
    }

    /// Whether at least half of some bytes are secret, and not all of them of a part that is easy to guess.
    pub(super) fn is_secret(&self, at: usize, length: usize) -> bool {
        let secret = self.secret_in(at, length);
        secret >= length / 2 && (secret < length || !self.is_guessable(at))
    }

    /// Whether all of some bytes are secret, and of no part that is easy to guess.
    pub(super) fn is_all_secret(&self, at: usize, length: usize) -> bool {
        self.secret_in(at, length) == length && !self.is_guessable(at)
    }

    fn is_guessable(&self, at: usize) -> bool {
        self.stretches.get(at) == Some(&u32::MAX)
    }

    fn secret_in(&self, at: usize, length: usize) -> usize {
        if self.is_all_secret {
            return length;
        }
        let before = |at: usize| self.secret_before.get(at).copied().unwrap_or(0);
        (before(at + length) - before(at)) as usize
    }

    /// How many characters the secret stretch has that all of some bytes are in; when there is none, no limit.
    pub(super) fn stretch_at(&self, at: usize, length: usize) -> usize {
        if self.is_all_secret {
            return usize::MAX;
        }
        if self.secret_in(at, length) < length {
            return usize::MAX;
        }
        self.stretches
            .get(at)
            .map_or(0, |stretch| *stretch as usize)
    }

    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.bytes.hash(&mut hasher);
        hasher.finish()
    }
}
