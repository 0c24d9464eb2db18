//! What is looked for: every stretch of eight bytes of every form of every secret.
//!
//! Values and texts are compared without white space, control characters and escape sequences.
//! Eight bytes are a number, so that one look into a table tells whether they belong to a
//! secret; before that a bitmap of six bytes tells that almost nothing does.

use zeroize::Zeroizing;

use super::encoded_forms::{EncodedValue, for_each_form};
use super::form::Form;
use super::guessable::is_guessable;
use super::ngram_table::{Bitmap, Ngram, NgramTable, WINDOW, first, number};
use super::secret_spans;
use super::weights::ValueWeights;
use crate::session::Secrets;
use crate::visible::{self, SAMPLE};
use karyi_core::limits;
use karyi_core::secret::SecretName;

/// A value to compare a masked stretch with.
struct WholeValue {
    /// Without carriage returns, escape sequences and the white space at its end.
    text: Zeroizing<Vec<u8>>,
    /// That white space.
    end: Vec<u8>,
    secret: usize,
}

/// A value that is short or easy to guess: it is looked for as it is, as a whole word.
pub(super) struct ShortValue {
    pub(super) text: Zeroizing<Vec<u8>>,
    pub(super) secret: usize,
}

/// All that is looked for in one generation of the secrets.
pub(super) struct SearchTables {
    pub(super) generation: u64,
    pub(super) names: Vec<SecretName>,
    pub(super) shorts: Vec<ShortValue>,
    ngrams: NgramTable,
    /// The first bytes of every form, the first one highest.
    starts: NgramTable,
    /// How far samples may be apart so that every match holds one.
    pub(super) step: usize,
    samples: Bitmap<2>,
    fours: Bitmap<1>,
    twos: Bitmap<1>,
    ones: Bitmap<1>,
    wholes: Vec<WholeValue>,
    /// Which values have several lines.
    have_lines: Vec<bool>,
}

impl SearchTables {
    /// Makes the tables of what there is now.
    pub(super) fn build(secrets: &Secrets) -> Self {
        let mut total = 0;
        secrets.for_each(|_, value| total += value.expose().len());
        let mut tables = Self::empty(total);
        let generation = secrets.for_each(|name, value| tables.add(name, value.expose()));
        tables.generation = generation;
        tables.ngrams.sort();
        tables.starts.sort();
        tables
            .wholes
            .sort_by(|a, b| (&*a.text, a.secret).cmp(&(&*b.text, b.secret)));
        tables
    }

    fn empty(total: usize) -> Self {
        // Some fifteen stretches per byte of a value, and sixteen bits for each.
        let bits = (total * 256).next_power_of_two().ilog2().clamp(12, 24);
        Self {
            generation: 0,
            names: Vec::new(),
            shorts: Vec::new(),
            ngrams: NgramTable::new(),
            starts: NgramTable::new(),
            step: limits::REDACTED_RUN_BYTES + 1 - SAMPLE,
            samples: Bitmap::with_bits(bits),
            fours: Bitmap::with_bits(bits.saturating_sub(1)),
            twos: Bitmap::with_bits(16),
            ones: Bitmap::with_bits(8),
            wholes: Vec::new(),
            have_lines: Vec::new(),
        }
    }

    /// Whether nothing is looked for.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn add(&mut self, name: &SecretName, value: &str) {
        let secret = self.names.len();
        self.names.push(name.clone());
        self.have_lines.push(value.trim().contains('\n'));
        self.add_whole(value, secret);
        if is_guessable(value) {
            return self.add_short(value, secret);
        }
        let is_large = value.len() > limits::MAX_ENCODED_SECRET_BYTES;
        self.add_forms(value, secret, is_large);
        for part in secret_spans::standalone_parts(value) {
            if is_guessable(&part) {
                self.add_short(&part, secret);
            } else {
                self.add_forms(&part, secret, is_large);
            }
        }
    }

    /// Adds a value, or a part that programs use alone, that is looked for as a whole word.
    fn add_short(&mut self, part: &str, secret: usize) {
        if visible::visible_bytes(part) >= limits::MIN_SECRET_BYTES {
            let text = Zeroizing::new(part.trim().as_bytes().to_vec());
            self.shorts.push(ShortValue { text, secret });
        }
    }

    /// Adds all forms of a value, or the plain ones.
    fn add_forms(&mut self, value: &str, secret: usize, is_large: bool) {
        let mask = secret_spans::secret_mask(value);
        for part in secret_spans::guessable_stretches(value, &mask) {
            self.add_short(value.get(part).unwrap_or_default(), secret);
        }
        if visible::visible_bytes(value) < WINDOW {
            self.add_short(value, secret);
        }
        let shape = ValueWeights::of(value, mask);
        for_each_form(value, |form, encoded| {
            if form.is_plain() || !is_large {
                self.add_form(form, secret, &shape, encoded);
            }
        });
    }

    fn add_whole(&mut self, value: &str, secret: usize) {
        let text = value.trim_end();
        if text.len() == text.trim_start().len() {
            self.wholes.push(WholeValue {
                text: visible::without_escapes(text.as_bytes()),
                end: visible::without_escapes(
                    value.get(text.len()..).unwrap_or_default().as_bytes(),
                )
                .to_vec(),
                secret,
            });
        }
    }

    fn add_form(
        &mut self,
        form: Form,
        secret: usize,
        shape: &ValueWeights<'_>,
        encoded: &EncodedValue,
    ) {
        let bytes = &encoded.bytes;
        (0..bytes.len()).for_each(|at| self.add_prefixes(bytes, at));
        for (at, weights) in shape.weights(form, encoded).into_iter().enumerate() {
            let ngram = Ngram::new(form, secret, weights);
            self.ngrams.add(number(bytes, at), ngram);
            if at == 0 {
                self.starts.add(number(bytes, 0).swap_bytes(), ngram);
            }
            if let Some(need) = weights.need {
                self.step = self.step.min(need.max(WINDOW) + 1 - SAMPLE);
            }
        }
    }

    /// Adds what tells whether a stretch, or the end of a text, may be of a form.
    fn add_prefixes(&mut self, bytes: &[u8], at: usize) {
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
    fn may_have(&self, key: u64) -> bool {
        self.samples.has(first(key, SAMPLE))
    }

    /// Returns what is known of eight bytes.
    #[inline]
    pub(super) fn ngram(&self, key: u64) -> Option<Ngram> {
        if self.may_have(key) {
            self.ngrams.get(key)
        } else {
            None
        }
    }

    /// Returns the first of the samples from one on that may be a part of a form and has a whole stretch behind it; else
    /// the one that has none.
    #[inline]
    pub(super) fn find_sample(&self, bytes: &[u8], from: usize) -> Result<usize, usize> {
        let mut sample = from;
        while let Some(stretch) = bytes.get(sample..).and_then(<[u8]>::first_chunk) {
            if self.may_have(u64::from_le_bytes(*stretch)) {
                return Ok(sample);
            }
            sample += self.step;
        }
        Err(sample)
    }

    /// Whether one of the stretches around a sample is known: a match that the sample is in holds one of them.
    pub(super) fn is_around(&self, bytes: &[u8], sample: usize) -> bool {
        let first = sample.saturating_sub(WINDOW - SAMPLE);
        // Each of them holds a second sample beside this one, and so do few others.
        let mut beside = [sample.saturating_sub(1), sample + 1].into_iter();
        beside.any(|at| self.may_have(number(bytes, at)))
            && (first..=sample).any(|at| self.ngram(number(bytes, at)).is_some())
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
    pub(super) fn form_starting_with(&self, bytes: &[u8]) -> Option<Ngram> {
        let mut padded = [0; 8];
        padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let (found, ngram) = self.starts.from(u64::from_be_bytes(padded))?;
        found.to_be_bytes().starts_with(bytes).then_some(ngram)
    }

    /// Whether the value of a secret has several lines.
    pub(super) fn has_lines(&self, secret: usize) -> bool {
        self.have_lines.get(secret) == Some(&true)
    }

    /// Returns the secret that a stretch of text is, and how much of the text after it belongs to it.
    pub(super) fn whole(&self, stretch: &[u8], after: &[u8]) -> Option<(usize, usize)> {
        let text = visible::without_escapes(stretch);
        let from = self.wholes.partition_point(|whole| *whole.text < *text);
        let same = self.wholes.get(from..)?.iter();
        let same = same.take_while(|whole| *whole.text == *text);
        let ends = same.filter_map(|whole| {
            let used = visible::begins_with(after, &whole.end)?;
            Some((whole.secret, used))
        });
        // The one that takes most of the white space; of equal ones the first.
        ends.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}
