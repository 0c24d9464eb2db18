//! Table of the eight-byte n-grams of secrets, and Bloom-like sets of shorter ones.

use zeroize::Zeroizing;

use super::form::Form;

/// Bytes of an n-gram in the table.
pub(super) const WINDOW: usize = 8;

/// Metadata of one n-gram, packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ngram(u32);

/// Number of characters that an n-gram counts for.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    /// Characters needed for a match that contains it; `None` where it is not secret.
    pub(super) need: Option<usize>,
    /// Characters of its first byte, and of all its bytes.
    pub(super) first: usize,
    pub(super) all: usize,
}

impl Ngram {
    /// The weights are the lowest bits, so that of equal n-grams the one of the plainest form comes first.
    const FORM_AT: u32 = 28;
    const SECRET_AT: u32 = 12;
    const NEED_AT: u32 = 8;
    const ALL_AT: u32 = 4;
    /// Marks a missing number of characters.
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

    /// Returns its weights.
    pub(super) fn weights(self) -> Weights {
        let need = self.part(Self::NEED_AT, 4);
        Weights {
            need: Some(need).filter(|need| *need < Self::NEVER as usize),
            first: self.part(0, 1),
            all: self.part(Self::ALL_AT, 4),
        }
    }

    /// Merges two n-grams with equal bytes: the weights that match sooner win.
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

/// Sorted n-grams with their metadata.
pub(super) struct NgramTable(Zeroizing<Vec<u128>>);

impl NgramTable {
    pub(super) fn new() -> Self {
        Self(Zeroizing::new(Vec::with_capacity(1 << 10)))
    }

    /// Adds an n-gram; call `sort` before searching.
    pub(super) fn add(&mut self, key: u64, ngram: Ngram) {
        if self.0.len() == self.0.capacity() {
            // The former buffer is wiped.
            let mut larger = Zeroizing::new(Vec::with_capacity(2 * self.0.len()));
            larger.extend_from_slice(&self.0);
            self.0 = larger;
        }
        self.0.push(u128::from(key) << 32 | u128::from(ngram.0));
    }

    /// Sorts the table and merges equal n-grams.
    pub(super) fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by(|next, first| {
            let is_same = *next >> 32 == *first >> 32;
            if is_same {
                let ngram = Ngram(*first as u32).or_sooner(Ngram(*next as u32));
                *first = *first >> 32 << 32 | u128::from(ngram.0);
            }
            is_same
        });
    }

    /// Returns the first n-gram that is not less than `key`.
    pub(super) fn from(&self, key: u64) -> Option<(u64, Ngram)> {
        let least = u128::from(key) << 32;
        let at = self.0.partition_point(|entry| *entry < least);
        let entry = *self.0.get(at)?;
        Some(((entry >> 32) as u64, Ngram(entry as u32)))
    }

    /// Returns the metadata of an n-gram.
    pub(super) fn get(&self, key: u64) -> Option<Ngram> {
        let (found, ngram) = self.from(key)?;
        (found == key).then_some(ngram)
    }
}

/// Set with false positives, of one or two bits in the same word per number; two bits make them rarer.
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

/// Reads up to eight bytes as a number.
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

/// Returns the first bytes of a number.
#[inline]
pub(super) fn first(number: u64, bytes: usize) -> u64 {
    number & (u64::MAX >> (64 - 8 * bytes))
}
