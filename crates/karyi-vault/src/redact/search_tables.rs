//! Search tables: every eight-byte n-gram of every form of every secret.
//!
//! Values and texts are compared without white space, control characters and escape sequences. An n-gram is a number,
//! so that one lookup finds its secret; a bitmap of six-byte samples rejects almost all input before that.

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

/// Whole value, compared with a masked span.
struct WholeValue {
    /// Value without carriage returns, escape sequences and trailing white space.
    text: Zeroizing<Vec<u8>>,
    /// Trailing white space.
    end: Vec<u8>,
    secret: usize,
}

/// Value that is short or easily guessed, and searched as a whole word.
pub(super) struct ShortValue {
    pub(super) text: Zeroizing<Vec<u8>>,
    pub(super) secret: usize,
}

/// Search tables of one generation of the secrets.
pub(super) struct SearchTables {
    pub(super) generation: u64,
    pub(super) names: Vec<SecretName>,
    pub(super) shorts: Vec<ShortValue>,
    ngrams: NgramTable,
    /// First n-gram of every form, big-endian.
    starts: NgramTable,
    /// Largest distance of samples at which every match contains one.
    pub(super) step: usize,
    samples: Bitmap<2>,
    fours: Bitmap<1>,
    twos: Bitmap<1>,
    ones: Bitmap<1>,
    wholes: Vec<WholeValue>,
    /// True for values with several lines.
    have_lines: Vec<bool>,
}

impl SearchTables {
    /// Builds the tables of the current secrets.
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
        // About fifteen n-grams per byte of a value, and sixteen bits for each.
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

    /// Returns true when there is no value to search for.
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

    /// Adds a value or part that is searched as a whole word.
    fn add_short(&mut self, part: &str, secret: usize) {
        if visible::visible_bytes(part) >= limits::MIN_SECRET_BYTES {
            let text = Zeroizing::new(part.trim().as_bytes().to_vec());
            self.shorts.push(ShortValue { text, secret });
        }
    }

    /// Adds all forms of a value, or only the plain ones of a large value.
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

    /// Adds the prefixes that decide whether an n-gram, or the end of a text, may belong to a form.
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

    /// Returns true when six bytes may belong to a form.
    #[inline]
    fn may_have(&self, key: u64) -> bool {
        self.samples.has(first(key, SAMPLE))
    }

    /// Returns the metadata of an n-gram.
    #[inline]
    pub(super) fn ngram(&self, key: u64) -> Option<Ngram> {
        if self.may_have(key) {
            self.ngrams.get(key)
        } else {
            None
        }
    }

    /// Returns the first sample position from `from` on that may belong to a form and is followed by a whole n-gram;
    /// the error is the next sample position.
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

    /// Returns true when an n-gram around a sample is known: every match with the sample contains one.
    pub(super) fn is_around(&self, bytes: &[u8], sample: usize) -> bool {
        let first = sample.saturating_sub(WINDOW - SAMPLE);
        // A match contains a second sample next to this one, and chance hits rarely do.
        let mut beside = [sample.saturating_sub(1), sample + 1].into_iter();
        beside.any(|at| self.may_have(number(bytes, at)))
            && (first..=sample).any(|at| self.ngram(number(bytes, at)).is_some())
    }

    /// Returns the number of bytes at the end, fewer than an n-gram, that may start a match.
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

    /// Returns the form that starts with `bytes`, at most eight.
    pub(super) fn form_starting_with(&self, bytes: &[u8]) -> Option<Ngram> {
        let mut padded = [0; 8];
        padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let (found, ngram) = self.starts.from(u64::from_be_bytes(padded))?;
        found.to_be_bytes().starts_with(bytes).then_some(ngram)
    }

    /// Returns true when the value of a secret has several lines.
    pub(super) fn has_lines(&self, secret: usize) -> bool {
        self.have_lines.get(secret) == Some(&true)
    }

    /// Returns the secret that equals a span, and the number of following bytes that belong to it.
    pub(super) fn whole(&self, stretch: &[u8], after: &[u8]) -> Option<(usize, usize)> {
        let text = visible::without_escapes(stretch);
        let from = self.wholes.partition_point(|whole| *whole.text < *text);
        let same = self.wholes.get(from..)?.iter();
        let same = same.take_while(|whole| *whole.text == *text);
        let ends = same.filter_map(|whole| {
            let used = visible::begins_with(after, &whole.end)?;
            Some((whole.secret, used))
        });
        // The value with the most white space; of equal ones the first.
        ends.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}
