//! The tables of numbers: what is known of eight bytes, and sets of fewer.

use zeroize::Zeroizing;

use super::form::Form;

/// Bytes of a stretch in the table.
pub(super) const WINDOW: usize = 8;

/// What is known of eight bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ngram(u32);

/// How many characters eight bytes count for, which each of the fields holds.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    /// In a match that they are in; nothing where they are not secret.
    pub(super) need: Option<usize>,
    /// Their first one, and all of them.
    pub(super) first: usize,
    pub(super) all: usize,
}

impl Ngram {
    /// The lowest bits are the weights, so that of equal numbers the one of the plainest form comes first.
    const FORM_AT: u32 = 28;
    const SECRET_AT: u32 = 12;
    const NEED_AT: u32 = 8;
    const ALL_AT: u32 = 4;
    /// Stands for no number of characters.
    const NEVER: u32 = 15;

    pub(super) fn new(form: Form, secret: usize, weights: Weights) -> Self {
        let need = weights.need.map_or(Self::NEVER, |need| need as u32);
        let part = |number: usize, bits: u32| (number as u32).min((1 << bits) - 1);
        Self(
            (form as u32) << Self::FORM_AT
                | part(secret, 16) << Self::SECRET_AT
                | need << Self::NEED_AT
                | part(weights.all, 4) << Self::ALL_AT
                | part(weights.first, 1),
        )
    }

    fn part(self, at: u32, bits: u32) -> usize {
        (self.0 >> at & ((1 << bits) - 1)) as usize
    }

    pub(super) fn form(self) -> Form {
        Form::of_number(self.0 >> Self::FORM_AT)
    }

    /// Returns the number of the secret.
    pub(super) fn secret(self) -> usize {
        self.part(Self::SECRET_AT, 16)
    }

    /// Returns how many characters they count for.
    pub(super) fn weights(self) -> Weights {
        let need = self.part(Self::NEED_AT, 4);
        Weights {
            need: Some(need).filter(|need| *need < Self::NEVER as usize),
            first: self.part(0, 1),
            all: self.part(Self::ALL_AT, 4),
        }
    }

    /// Returns it as what is a match sooner, when it is of another form, too.
    fn or_sooner(self, other: Self) -> Self {
        let (own, other) = (self.weights(), other.weights());
        let weights = Weights {
            need: own.need.into_iter().chain(other.need).min(),
            first: own.first.max(other.first),
            all: own.all.max(other.all),
        };
        Self::new(self.form(), self.secret(), weights)
    }
}

/// Numbers with what is known of each, sorted.
pub(super) struct NgramTable(Zeroizing<Vec<u128>>);

impl NgramTable {
    pub(super) fn new() -> Self {
        Self(Zeroizing::new(Vec::with_capacity(1 << 10)))
    }

    /// Adds a number; it is found once they are sorted.
    pub(super) fn add(&mut self, key: u64, ngram: Ngram) {
        if self.0.len() == self.0.capacity() {
            // What moves is wiped where it was.
            let mut larger = Zeroizing::new(Vec::with_capacity(2 * self.0.len()));
            larger.extend_from_slice(&self.0);
            self.0 = larger;
        }
        self.0.push(u128::from(key) << 32 | u128::from(ngram.0));
    }

    /// Sorts them; equal ones become one.
    pub(super) fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by(|next, kept| {
            let is_same = *next >> 32 == *kept >> 32;
            if is_same {
                let ngram = Ngram(*kept as u32).or_sooner(Ngram(*next as u32));
                *kept = *kept >> 32 << 32 | u128::from(ngram.0);
            }
            is_same
        });
    }

    /// Returns the first number that is not less than one, and what is known of it.
    pub(super) fn from(&self, key: u64) -> Option<(u64, Ngram)> {
        let least = u128::from(key) << 32;
        let at = self.0.partition_point(|entry| *entry < least);
        let entry = *self.0.get(at)?;
        Some(((entry >> 32) as u64, Ngram(entry as u32)))
    }

    /// Returns what is known of a number.
    pub(super) fn get(&self, key: u64) -> Option<Ngram> {
        let (found, ngram) = self.from(key)?;
        (found == key).then_some(ngram)
    }
}

/// A set of numbers that may say yes too often, the less often the more of its bits stand for each:
/// one, or two in the same word.
pub(super) struct Bitmap<const BITS: u32> {
    words: Vec<u64>,
    shift: u32,
}

impl<const BITS: u32> Bitmap<BITS> {
    pub(super) fn with_bits(bits: u32) -> Self {
        Self {
            words: vec![0; 1 << bits.saturating_sub(6)],
            shift: 64 - bits,
        }
    }

    /// Returns the word and its bits.
    #[inline]
    fn place(&self, key: u64) -> (usize, u64) {
        let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut bits = 1 << (mixed >> self.shift & 63);
        if BITS == 2 {
            bits |= 1 << (mixed >> (self.shift - 6) & 63);
        }
        ((mixed >> self.shift >> 6) as usize, bits)
    }

    pub(super) fn insert(&mut self, key: u64) {
        let (word, bits) = self.place(key);
        if let Some(word) = self.words.get_mut(word) {
            *word |= bits;
        }
    }

    #[inline]
    pub(super) fn has(&self, key: u64) -> bool {
        let (word, bits) = self.place(key);
        self.words
            .get(word)
            .is_some_and(|word| *word & bits == bits)
    }
}

/// Reads eight bytes, or what there is of them, as a number.
#[inline]
pub(super) fn number(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8).map(<[u8; 8]>::try_from) {
        Some(Ok(bytes)) => u64::from_le_bytes(bytes),
        _ => {
            let rest = bytes.get(at..).unwrap_or_default();
            rest.iter()
                .rev()
                .fold(0, |number, byte| number << 8 | u64::from(*byte))
        }
    }
}

/// Keeps the first bytes of a number.
#[inline]
pub(super) fn first(number: u64, bytes: usize) -> u64 {
    number & (u64::MAX >> (64 - 8 * bytes))
}
