//! The tables of numbers: what is known of eight bytes, and sets of fewer.

use std::ops::Range;

use zeroize::Zeroizing;

use super::form::Form;

/// Bytes of a stretch in the table.
pub(super) const WINDOW: usize = 8;

/// What is known of eight bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gram(u32);

impl Gram {
    /// Bits of the number of the secret, of the form, and of each weight.
    const SECRET: u32 = 16;
    const FORM: u32 = 4;
    const WEIGHT: u32 = 4;
    /// Where the others stand.
    const NEED_AT: u32 = Self::SECRET + Self::FORM;
    const SECRET_AT: u32 = Self::NEED_AT + Self::WEIGHT;
    const FIRST_AT: u32 = Self::SECRET_AT + 1;
    const KNOWN_AT: u32 = Self::FIRST_AT + 1;
    const WEIGHT_AT: u32 = Self::KNOWN_AT + 1;

    pub(super) fn new(secret: usize, form: Form, is_secret: bool, weights: Weights) -> Self {
        let part = |number: usize, bits: u32| {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            number.min((1 << bits) - 1)
        };
        let secret = part(secret, Self::SECRET);
        let form = part(form as usize, Self::FORM) << Self::SECRET;
        let need = part(weights.need, Self::WEIGHT) << Self::NEED_AT;
        let is_secret = u32::from(is_secret) << Self::SECRET_AT;
        let first = part(weights.first, 1) << Self::FIRST_AT;
        let weight = part(weights.all, Self::WEIGHT) << Self::WEIGHT_AT;
        Self(secret | form | need | is_secret | first | weight | 1 << Self::KNOWN_AT)
    }

    /// The same where as many of them as a match has prove nothing, unless they stand in order.
    pub(super) fn unproven(self) -> Self {
        Self(self.0 & !(1 << Self::KNOWN_AT))
    }

    /// Whether as many as a match has prove it.
    pub(super) fn is_proof(self) -> bool {
        self.part(Self::KNOWN_AT, 1) == 1
    }

    fn part(self, at: u32, bits: u32) -> usize {
        (self.0 >> at & ((1 << bits) - 1)) as usize
    }

    /// The number of the secret.
    pub(super) fn secret(self) -> usize {
        self.part(0, Self::SECRET)
    }

    /// The form they are of.
    pub(super) fn form(self) -> Form {
        Form::of_number(self.0 >> Self::SECRET & ((1 << Self::FORM) - 1))
    }

    /// How many characters a match has.
    pub(super) fn need(self) -> usize {
        self.part(Self::NEED_AT, Self::WEIGHT)
    }

    /// Whether they hold a part of what is secret about the value.
    pub(super) fn is_secret(self) -> bool {
        self.part(Self::SECRET_AT, 1) == 1
    }

    /// How many characters they count for, and how many the first byte does.
    pub(super) fn weight(self) -> usize {
        self.part(Self::WEIGHT_AT, Self::WEIGHT)
    }

    pub(super) fn first_weight(self) -> usize {
        self.part(Self::FIRST_AT, 1)
    }

    /// The same for a shorter match.
    fn or_sooner(self, other: Self) -> Self {
        // On the bits as they are: this is done hundreds of thousands of times.
        let field = |at: u32, bits: u32| ((1 << bits) - 1) << at;
        let need = field(Self::NEED_AT, Self::WEIGHT);
        let weight = field(Self::WEIGHT_AT, Self::WEIGHT);
        let either = [Self::SECRET_AT, Self::FIRST_AT, Self::KNOWN_AT];
        let either = either.iter().fold(0, |all, at| all | field(*at, 1));
        let name = self.0 & field(0, Self::NEED_AT);
        let least = (self.0 & need).min(other.0 & need);
        let most = (self.0 & weight).max(other.0 & weight);
        Self(name | least | most | (self.0 | other.0) & either)
    }
}

/// How many characters bytes count for.
pub(super) struct Weights {
    /// In a match.
    pub(super) need: usize,
    /// Their first one, and all of them.
    pub(super) first: usize,
    pub(super) all: usize,
}

/// A number that is not 0 in two halves and what is known of it, beside each other: to look both up takes one line of
/// the processor's cache.
type Entry = [u32; 3];

fn entry(key: u64, gram: Gram) -> Entry {
    [key as u32, (key >> 32) as u32, gram.0]
}

fn key_of([low, high, _]: Entry) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// A hash table from numbers that are not 0 to grams.
#[derive(Clone)]
pub(super) struct Grams {
    entries: Zeroizing<Vec<Entry>>,
    length: usize,
    /// How far a hash is shifted to be an index.
    shift: u32,
}

impl Grams {
    /// Entries that a line of the processor's cache holds.
    const NEAR: usize = 5;

    fn with_bits(bits: u32) -> Self {
        Self {
            entries: Zeroizing::new(vec![[0; 3]; 1 << bits]),
            length: 0,
            shift: 64 - bits,
        }
    }

    /// Makes an empty table.
    pub(super) fn new() -> Self {
        Self::with_bits(6)
    }

    /// Makes an empty table with room for so many.
    pub(super) fn with_room(count: usize) -> Self {
        let places = (count + count / 3).next_power_of_two();
        Self::with_bits(places.ilog2().clamp(6, 24))
    }

    /// Returns what is known of eight bytes, or of fewer with zeros behind them.
    #[inline]
    pub(super) fn get(&self, key: u64) -> Option<Gram> {
        let mask = self.entries.len() - 1;
        let mut index = (hash(key) >> self.shift) as usize;
        loop {
            let found = *self.entries.get(index & mask)?;
            match key_of(found) {
                same if same == key => return Some(Gram(found[2])),
                0 => return None,
                _ => index += 1,
            }
        }
    }

    /// Adds stretches that waited for one part of so many, and tells which are new.
    fn insert_all(&mut self, part: &mut Vec<Entry>, of: Range<usize>, mut is_new: impl FnMut(u64)) {
        // Read in a row it comes out of memory at once, and not line by line.
        let each = self.entries.len() / of.end;
        let near = self.entries.get(each * of.start..each * (of.start + 1));
        let lines = near.unwrap_or_default().iter().step_by(Self::NEAR);
        // Nobody needs what was read.
        std::hint::black_box(lines.fold(0, |all, entry| all | entry[2]));
        for [low, high, gram] in part.drain(..) {
            let key = key_of([low, high, gram]);
            if self.insert(key, Gram(gram)) {
                is_new(key);
            }
        }
    }

    /// Adds a stretch; the first one to come names it. Returns whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, key: u64, gram: Gram) -> bool {
        if self.length * 4 >= self.entries.len() * 3 {
            self.grow();
        }
        self.put(key, gram)
    }

    #[inline]
    fn put(&mut self, key: u64, gram: Gram) -> bool {
        let mask = self.entries.len() - 1;
        let mut index = (hash(key) >> self.shift) as usize;
        while let Some(found) = self.entries.get_mut(index & mask) {
            match key_of(*found) {
                same if same == key => {
                    *found = entry(key, Gram(found[2]).or_sooner(gram));
                    return false;
                }
                0 => {
                    *found = entry(key, gram);
                    self.length += 1;
                    return true;
                }
                _ => index += 1,
            }
        }
        false
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = Self::with_bits(64 - self.shift + 1);
        for found in self.entries.iter().filter(|found| key_of(**found) != 0) {
            larger.put(key_of(*found), Gram(found[2]));
        }
        *self = larger;
    }

    pub(super) fn bytes(&self) -> usize {
        self.entries.len() * size_of::<Entry>()
    }
}

/// Stretches that are to be added to a table, by the part of it that they belong to. Added as they come, each would wait
/// for another place in memory; those of one part stand near each other.
pub(super) struct Waiting {
    parts: Vec<Zeroizing<Vec<Entry>>>,
    /// The last ones that came: most forms of a value have many in common.
    recent: Zeroizing<Vec<Entry>>,
}

impl Waiting {
    /// Parts of the table, as a power of two.
    const PARTS: u32 = 5;
    /// Stretches that wait at most for each.
    const MOST: usize = 2 << 10;
    /// Recent ones, as a power of two: as many as the forms of a value have, few enough for the nearest cache.
    const RECENT: u32 = 11;

    /// Makes room for so many; a value that moved would not be wiped where it was.
    pub(super) fn with_room(count: usize) -> Self {
        let room = (count >> Self::PARTS << 1).clamp(64, Self::MOST);
        let part = |_| Zeroizing::new(Vec::with_capacity(room));
        Self {
            parts: (0..1 << Self::PARTS).map(part).collect(),
            recent: Zeroizing::new(vec![[0; 3]; 1 << Self::RECENT]),
        }
    }

    /// Takes a stretch unless to add it would change nothing; returns the part that has to be added before another one
    /// comes.
    #[inline]
    pub(super) fn take(&mut self, key: u64, gram: Gram) -> Option<usize> {
        let hash = hash(key);
        let recent = self
            .recent
            .get_mut((hash >> (u64::BITS - Self::RECENT)) as usize)?;
        let known = Gram(recent[2]);
        if key_of(*recent) == key && known.or_sooner(gram) == known {
            return None;
        }
        *recent = entry(key, gram);
        let index = (hash >> (u64::BITS - Self::PARTS)) as usize;
        let part = self.parts.get_mut(index)?;
        part.push(entry(key, gram));
        (part.len() == part.capacity()).then_some(index)
    }

    /// Adds a part to the table and tells what is new.
    pub(super) fn add(&mut self, part: usize, to: &mut Grams, is_new: impl FnMut(u64)) {
        let of = part..self.parts.len();
        if let Some(part) = self.parts.get_mut(part) {
            to.insert_all(part, of, is_new);
        }
    }

    /// Returns the numbers of the parts.
    pub(super) fn parts(&self) -> Range<usize> {
        0..self.parts.len()
    }
}

fn hash(key: u64) -> u64 {
    // The low bits of the product alone would depend on the first bytes alone.
    let mixed = (key ^ key >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
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

    /// Returns how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
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
