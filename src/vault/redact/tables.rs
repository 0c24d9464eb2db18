//! What is looked for: every stretch of eight bytes of every form of every secret.
//!
//! Values and texts are compared without white space, control characters and escape sequences.
//! Eight bytes are a number, so that one look into a hash table tells whether they belong to a
//! secret; before that a bitmap of six bytes tells that almost nothing does.

use std::ops::Range;

use zeroize::Zeroizing;

use super::encodings::{Form, for_each_form};
use super::lines::{self, Layout};
use super::parts::{passwords, percent_decoded, secret_bytes};
use super::visible::Visible;
use crate::limits;
use crate::secret::SecretName;
use crate::vault::session::Secrets;
use crate::vault::view::{self, SAMPLE};

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
    const WEIGHT_AT: u32 = Self::FIRST_AT + 1;

    fn new(secret: usize, form: Form, is_secret: bool, weights: Weights) -> Self {
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
        Self(secret | form | need | is_secret | first | weight)
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
        let weights = Weights {
            need: self.need().min(other.need()),
            first: self.first_weight().max(other.first_weight()),
            all: self.weight().max(other.weight()),
        };
        let is_secret = self.is_secret() || other.is_secret();
        Self::new(self.secret(), self.form(), is_secret, weights)
    }
}

/// How many characters bytes count for.
struct Weights {
    /// In a match.
    need: usize,
    /// Their first one, and all of them.
    first: usize,
    all: usize,
}

/// A hash table from numbers that are not 0 to grams.
#[derive(Clone)]
pub(super) struct Grams {
    keys: Zeroizing<Vec<u64>>,
    grams: Vec<Gram>,
    length: usize,
    /// How far a hash is shifted to be an index.
    shift: u32,
}

impl Grams {
    fn with_bits(bits: u32) -> Self {
        Self {
            keys: Zeroizing::new(vec![0; 1 << bits]),
            grams: vec![Gram(0); 1 << bits],
            length: 0,
            shift: 64 - bits,
        }
    }

    /// Makes an empty table.
    pub(super) fn new() -> Self {
        Self::with_bits(6)
    }

    /// Makes an empty table with room for so many.
    fn with_room(count: usize) -> Self {
        let places = (count + count / 3).next_power_of_two();
        Self::with_bits(places.ilog2().clamp(6, 24))
    }

    /// Returns what is known of eight bytes, or of fewer with zeros behind them.
    #[inline]
    pub(super) fn get(&self, key: u64) -> Option<Gram> {
        let mask = self.keys.len() - 1;
        let mut index = (hash(key) >> self.shift) as usize;
        loop {
            match self.keys.get(index & mask) {
                Some(&found) if found == key => return self.grams.get(index & mask).copied(),
                Some(0) | None => return None,
                Some(_) => index += 1,
            }
        }
    }

    /// Adds a stretch; the first one to come names it. Returns whether it is new.
    pub(super) fn insert(&mut self, key: u64, gram: Gram) -> bool {
        if self.length * 4 >= self.keys.len() * 3 {
            self.grow();
        }
        self.put(key, gram)
    }

    fn put(&mut self, key: u64, gram: Gram) -> bool {
        let mask = self.keys.len() - 1;
        let mut index = (hash(key) >> self.shift) as usize;
        while let (Some(place), Some(known)) = (
            self.keys.get_mut(index & mask),
            self.grams.get_mut(index & mask),
        ) {
            if *place == key {
                *known = known.or_sooner(gram);
                return false;
            }
            if *place == 0 {
                (*place, *known) = (key, gram);
                self.length += 1;
                return true;
            }
            index += 1;
        }
        false
    }

    fn grow(&mut self) {
        let mut larger = Self::with_bits(64 - self.shift + 1);
        for (key, gram) in self.keys.iter().zip(&self.grams) {
            if *key != 0 {
                larger.put(*key, *gram);
            }
        }
        *self = larger;
    }

    fn bytes(&self) -> usize {
        self.keys.len() * (size_of::<u64>() + size_of::<Gram>())
    }
}

fn hash(key: u64) -> u64 {
    // The low bits of the product alone would depend on the first bytes alone.
    let mixed = (key ^ key >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// A set of numbers that may say yes too often, the less often the more of its bits stand for each:
/// one, or two in the same word.
struct Bitmap<const BITS: u32> {
    words: Vec<u64>,
    shift: u32,
}

impl<const BITS: u32> Bitmap<BITS> {
    fn with_bits(bits: u32) -> Self {
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

    fn insert(&mut self, key: u64) {
        let (word, bits) = self.place(key);
        if let Some(word) = self.words.get_mut(word) {
            *word |= bits;
        }
    }

    #[inline]
    fn has(&self, key: u64) -> bool {
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

/// A value to compare a masked stretch with.
struct Whole {
    /// Without carriage returns, escape sequences and the white space at its end.
    text: Zeroizing<Vec<u8>>,
    /// That white space.
    end: Vec<u8>,
    secret: usize,
}

/// A value too short for windows: it is looked for as it is, as a word.
pub(super) struct Short {
    pub(super) text: Zeroizing<Vec<u8>>,
    pub(super) secret: usize,
}

/// All that is looked for in one generation of the secrets.
pub(super) struct Tables {
    pub(super) generation: u64,
    pub(super) names: Vec<SecretName>,
    pub(super) grams: Grams,
    pub(super) shorts: Vec<Short>,
    /// How far samples may be apart so that every match holds one.
    pub(super) step: usize,
    samples: Bitmap<2>,
    fours: Bitmap<1>,
    twos: Bitmap<1>,
    ones: Bitmap<1>,
    wholes: Vec<Whole>,
    /// The values of several lines, each with the number of its secret.
    layouts: Vec<(usize, Layout)>,
    /// The first bytes of every form, sorted.
    starts: Zeroizing<Vec<u64>>,
    start_grams: Vec<Gram>,
    /// Whether escaping a text for JSON or XML could make a value of it.
    pub(super) has_escapes: bool,
}

impl Tables {
    /// Makes the tables of what there is now.
    pub(super) fn build(secrets: &Secrets) -> Self {
        let (mut total, mut stretches) = (0, 0);
        secrets.for_each(|_, value| {
            let length = value.expose().len();
            total += length;
            stretches += length * stretches_per_byte(length);
        });
        let mut tables = Self::empty(total, stretches);
        let mut starts = Vec::new();
        tables.generation = secrets.for_each(|name, value| {
            tables.add(name, value.expose(), &mut starts);
        });
        tables
            .wholes
            .sort_by(|a, b| (&*a.text, a.secret).cmp(&(&*b.text, b.secret)));
        starts.sort_by_key(|(start, _)| *start);
        tables.starts = Zeroizing::new(starts.iter().map(|(start, _)| *start).collect());
        tables.start_grams = starts.iter().map(|(_, gram)| *gram).collect();
        tables
    }

    fn empty(total: usize, stretches: usize) -> Self {
        // Some fifty stretches per byte of a value, and eight bits for each.
        let bits = (total * 400).next_power_of_two().ilog2().clamp(12, 24);
        Self {
            generation: 0,
            names: Vec::new(),
            grams: Grams::with_room(stretches),
            shorts: Vec::new(),
            step: limits::REDACTED_RUN_BYTES + 1 - SAMPLE,
            samples: Bitmap::with_bits(bits),
            fours: Bitmap::with_bits(bits.saturating_sub(1)),
            twos: Bitmap::with_bits(16),
            ones: Bitmap::with_bits(8),
            wholes: Vec::new(),
            layouts: Vec::new(),
            starts: Zeroizing::new(Vec::new()),
            start_grams: Vec::new(),
            has_escapes: false,
        }
    }

    /// Whether nothing is looked for.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn add(&mut self, name: &SecretName, value: &str, starts: &mut Vec<(u64, Gram)>) {
        let secret = self.names.len();
        self.names.push(name.clone());
        self.has_escapes |= value.contains(['\\', '&']);
        self.add_whole(value, secret);
        self.layouts
            .extend(Layout::of(value).map(|layout| (secret, layout)));
        let mut seen = Vec::new();
        let mask = secret_bytes(value);
        let codes = lines::codes(value, &mask);
        let mut visible = Visible::of(value, mask);
        for_each_form(value, |form, encoded| {
            visible.take(encoded);
            let fingerprint = visible.fingerprint();
            if seen.contains(&fingerprint) {
                return;
            }
            seen.push(fingerprint);
            if form == Form::Raw && visible.bytes.len() < WINDOW {
                let text = Zeroizing::new(value.trim().as_bytes().to_vec());
                self.shorts.push(Short { text, secret });
            }
            self.add_form(secret, form, &visible, starts);
        });
        for password in passwords(value).into_iter().map(Zeroizing::new) {
            self.add_short(&password, secret);
            if let Some(decoded) = percent_decoded(&password).map(Zeroizing::new) {
                self.add_part(&decoded, secret, true, starts);
            }
        }
        let is_encoded = value.len() <= limits::MAX_ENCODED_SECRET_BYTES;
        for code in codes {
            self.add_part(code, secret, is_encoded, starts);
        }
    }

    /// Adds a part of a value that programs use alone, when windows are too long for it.
    fn add_short(&mut self, part: &str, secret: usize) {
        if (limits::MIN_SECRET_BYTES..WINDOW).contains(&view::visible_bytes(part)) {
            let text = Zeroizing::new(part.trim().as_bytes().to_vec());
            self.shorts.push(Short { text, secret });
        }
    }

    /// Adds the forms of a part that programs use alone, all of them or the plain ones.
    fn add_part(
        &mut self,
        part: &str,
        secret: usize,
        is_encoded: bool,
        starts: &mut Vec<(u64, Gram)>,
    ) {
        self.add_short(part, secret);
        self.has_escapes |= part.contains(['\\', '&']);
        if view::visible_bytes(part) < WINDOW {
            return;
        }
        let mut visible = Visible::of(part, vec![true; part.len()]);
        for_each_form(part, |form, encoded| {
            if is_encoded || form.is_plain() {
                visible.take(encoded);
                self.add_form(secret, form, &visible, starts);
            }
        });
    }

    fn add_whole(&mut self, value: &str, secret: usize) {
        let text = value.trim_end();
        if text.len() == text.trim_start().len() {
            self.wholes.push(Whole {
                text: view::plain(text.as_bytes()),
                end: view::plain(value.get(text.len()..).unwrap_or_default().as_bytes()).to_vec(),
                secret,
            });
        }
    }

    fn add_form(
        &mut self,
        secret: usize,
        form: Form,
        visible: &Visible,
        starts: &mut Vec<(u64, Gram)>,
    ) {
        let bytes = &visible.bytes;
        let stretches = (bytes.len() + 1).saturating_sub(WINDOW);
        for at in stretches..bytes.len() {
            self.add_pieces(bytes, at);
        }
        let most = visible
            .weight(0, bytes.len())
            .min(limits::REDACTED_RUN_BYTES);
        for at in 0..stretches {
            // A secret part that is shorter than a run is matched as a whole.
            let need = visible.stretch_at(at, WINDOW).min(most).max(1);
            let is_secret = visible.secret_in(at, WINDOW) >= WINDOW / 2;
            let weights = Weights {
                need,
                first: visible.weight(at, 1),
                all: visible.weight(at, WINDOW),
            };
            let gram = Gram::new(secret, form, is_secret, weights);
            // The pieces of a known stretch are known.
            if self.grams.insert(number(bytes, at), gram) {
                self.add_pieces(bytes, at);
            }
            if is_secret {
                self.step = self.step.min(need.max(WINDOW) + 1 - SAMPLE);
            }
            if at == 0 {
                starts.push((number(bytes, 0).swap_bytes(), gram));
            }
        }
    }

    /// Adds what tells whether the end of a text may be the start of a match.
    fn add_pieces(&mut self, bytes: &[u8], at: usize) {
        let here = number(bytes, at);
        let left = bytes.len() - at;
        self.ones.insert(first(here, 1));
        if left >= 2 {
            self.twos.insert(first(here, 2));
        }
        if left >= 4 {
            self.fours.insert(first(here, 4));
        }
        if left >= SAMPLE {
            self.samples.insert(first(here, SAMPLE));
        }
    }

    /// Whether six bytes may be a part of a form.
    #[inline]
    pub(super) fn may_have(&self, key: u64) -> bool {
        self.samples.has(first(key, SAMPLE))
    }

    /// Whether a form may go on after these bytes, of which there are fewer than a window.
    pub(super) fn may_begin(&self, bytes: &[u8]) -> bool {
        let key = number(bytes, 0);
        match bytes.len() {
            0 => false,
            1 => self.ones.has(key),
            2 | 3 => self.twos.has(first(key, 2)),
            4 | 5 => self.fours.has(first(key, 4)),
            _ => self.samples.has(first(key, SAMPLE)),
        }
    }

    /// Returns how many bytes at the end of `bytes`, fewer than a window, may be the start of a match.
    pub(super) fn open_end(&self, bytes: &[u8]) -> usize {
        let end = |length: usize| {
            let at = bytes.len().checked_sub(length)?;
            Some(first(number(bytes, at), length))
        };
        if end(SAMPLE).is_some_and(|key| self.samples.has(key)) {
            WINDOW - 1
        } else if end(4).is_some_and(|key| self.fours.has(key)) {
            SAMPLE - 1
        } else if end(2).is_some_and(|key| self.twos.has(key)) {
            3
        } else {
            usize::from(end(1).is_some_and(|key| self.ones.has(key)))
        }
        .min(bytes.len())
    }

    /// Returns the form that starts with `bytes`, of which there are at most eight.
    pub(super) fn started_by(&self, bytes: &[u8]) -> Option<Gram> {
        let mut padded = [0; 8];
        let start = padded.get_mut(..bytes.len())?;
        start.copy_from_slice(bytes);
        let least = u64::from_be_bytes(padded);
        let index = self.starts.partition_point(|start| *start < least);
        let found = self.starts.get(index)?.to_be_bytes();
        found
            .starts_with(bytes)
            .then(|| self.start_grams.get(index).copied())?
    }

    /// Returns the secret that a stretch of text is, and how much of the text after it belongs to it.
    pub(super) fn whole(&self, stretch: &[u8], after: &[u8]) -> Option<(usize, usize)> {
        let text = view::plain(stretch);
        let from = self.wholes.partition_point(|whole| *whole.text < *text);
        let same = self.wholes.get(from..)?.iter();
        let same = same.take_while(|whole| *whole.text == *text);
        let ends = same.filter_map(|whole| {
            let used = view::begins_with(after, &whole.end)?;
            Some((whole.secret, used))
        });
        // The one that takes most of the white space; of equal ones the first.
        ends.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }

    /// Returns which part of a masked stretch is of its secret for sure.
    pub(super) fn trimmed(&self, secret: usize, stretch: &str) -> Range<usize> {
        let layout = self
            .layouts
            .binary_search_by_key(&secret, |(known, _)| *known)
            .ok();
        let layout = layout.and_then(|at| self.layouts.get(at));
        layout.map_or(0..stretch.len(), |(_, layout)| layout.trimmed(stretch))
    }

    /// Returns how much memory the tables take.
    pub(super) fn bytes(&self) -> usize {
        let bitmaps = [&self.fours, &self.twos, &self.ones];
        let bitmaps: usize = bitmaps.iter().map(|bitmap| bitmap.words.len()).sum();
        let bitmaps = (bitmaps + self.samples.words.len()) * size_of::<u64>();
        let wholes: usize = self.wholes.iter().map(|whole| whole.text.len()).sum();
        let layouts: usize = self.layouts.iter().map(|(_, layout)| layout.bytes()).sum();
        self.grams.bytes() + bitmaps + wholes + layouts + self.starts.len() * 12
    }
}

/// About how many different stretches the forms of a value have for each of its bytes.
fn stretches_per_byte(length: usize) -> usize {
    if length > limits::MAX_ENCODED_SECRET_BYTES {
        8
    } else {
        36
    }
}

/// The stretches of six bytes of secrets that were seen in a text.
#[derive(Clone)]
pub(super) struct Hot {
    grams: Grams,
    /// The secrets, each with the place from which on it is known.
    since: Vec<(usize, u64)>,
}

impl Hot {
    /// Makes an empty set.
    pub(super) fn new() -> Self {
        Self {
            grams: Grams::new(),
            since: Vec::new(),
        }
    }

    /// Whether a secret is in it.
    pub(super) fn has(&self, secret: usize) -> bool {
        self.since.iter().any(|(known, _)| *known == secret)
    }

    /// Returns the secrets in it.
    pub(super) fn secrets(&self) -> impl Iterator<Item = usize> {
        self.since.iter().map(|(secret, _)| *secret)
    }

    /// Adds the secret with a number, whose value is looked up by its name.
    pub(super) fn add(&mut self, secrets: &Secrets, tables: &Tables, secret: usize, since: u64) {
        self.since.push((secret, since));
        let mut number_of = 0;
        secrets.for_each(|_, value| {
            if number_of == secret && tables.names.len() > secret {
                self.add_value(value.expose(), secret);
            }
            number_of += 1;
        });
    }

    fn add_value(&mut self, value: &str, secret: usize) {
        self.add_forms(value, secret_bytes(value), secret);
        for password in passwords(value).into_iter().map(Zeroizing::new) {
            if let Some(decoded) = percent_decoded(&password).map(Zeroizing::new)
                && view::visible_bytes(&decoded) >= WINDOW
            {
                self.add_forms(&decoded, vec![true; decoded.len()], secret);
            }
        }
    }

    fn add_forms(&mut self, value: &str, mask: Vec<bool>, secret: usize) {
        let mut visible = Visible::of(value, mask);
        let mut is_short = false;
        for_each_form(value, |form, encoded| {
            visible.take(encoded);
            // A short value is masked as a whole or not at all.
            is_short |= form == Form::Raw && visible.bytes.len() < limits::REDACTED_RUN_BYTES;
            if form.is_wide() || is_short {
                return;
            }
            for at in 0..=visible.bytes.len() - SAMPLE {
                if visible.secret_in(at, SAMPLE) == SAMPLE {
                    let key = first(number(&visible.bytes, at), SAMPLE);
                    let weights = Weights {
                        need: SAMPLE,
                        first: visible.weight(at, 1),
                        all: visible.weight(at, SAMPLE),
                    };
                    let gram = Gram::new(secret, form, true, weights);
                    self.grams.insert(key, gram);
                }
            }
        });
    }

    /// Returns what is known of six bytes that stand at a place.
    pub(super) fn get(&self, key: u64, place: u64) -> Option<Gram> {
        let gram = self.grams.get(first(key, SAMPLE))?;
        let since = self
            .since
            .iter()
            .find(|(secret, _)| *secret == gram.secret())?;
        (since.1 <= place).then_some(gram)
    }
}
