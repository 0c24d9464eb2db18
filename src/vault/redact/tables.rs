//! What is looked for: every stretch of eight bytes of every form of every secret.
//!
//! Values and texts are compared without white space, control characters and escape sequences.
//! Eight bytes are a number, so that one look into a hash table tells whether they belong to a
//! secret; before that a bitmap of six bytes tells that almost nothing does.

use std::ops::Range;

use zeroize::Zeroizing;

use super::encodings::for_each_form;
use super::form::Form;
use super::grams::{Bitmap, Gram, Grams, WINDOW, Waiting, Weights, first, number};
use super::guessable::is_guessable;
use super::lines::{self, Layout};
use super::parts::{guessable_stretches, passwords, percent_decoded, secret_bytes};
use super::proofs::Proofs;
use super::visible::Visible;
use crate::limits;
use crate::secret::SecretName;
use crate::vault::session::Secrets;
use crate::vault::view::{self, SAMPLE};

/// A value to compare a masked stretch with.
struct Whole {
    /// Without carriage returns, escape sequences and the white space at its end.
    text: Zeroizing<Vec<u8>>,
    /// That white space.
    end: Vec<u8>,
    secret: usize,
}

/// A value that is short or easy to guess: it is looked for as it is, as a whole word.
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
    /// What a match in a dump has to hold.
    pub(super) proofs: Proofs,
    /// The first bytes of every form, sorted.
    starts: Zeroizing<Vec<u64>>,
    start_grams: Vec<Gram>,
    /// Whether escaping a text for JSON or XML could make a value of it.
    pub(super) has_escapes: bool,
}

/// What is not in the tables as yet while they are made.
struct Build {
    waiting: Waiting,
    /// The first bytes of every form.
    starts: Vec<(u64, Gram)>,
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
        let mut build = Build {
            waiting: Waiting::with_room(stretches),
            starts: Vec::new(),
        };
        tables.generation = secrets.for_each(|name, value| {
            tables.add(name, value.expose(), &mut build);
        });
        let Build {
            mut waiting,
            mut starts,
        } = build;
        for part in waiting.parts() {
            tables.add_waiting(&mut waiting, part);
        }
        tables
            .wholes
            .sort_by(|a, b| (&*a.text, a.secret).cmp(&(&*b.text, b.secret)));
        tables.proofs.close();
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
            proofs: Proofs::default(),
            starts: Zeroizing::new(Vec::new()),
            start_grams: Vec::new(),
            has_escapes: false,
        }
    }

    /// Whether nothing is looked for.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn add(&mut self, name: &SecretName, value: &str, to: &mut Build) {
        let secret = self.names.len();
        self.names.push(name.clone());
        self.add_whole(value, secret);
        if is_guessable(value) {
            self.add_short(value, secret);
            return;
        }
        self.has_escapes |= value.contains(['\\', '&']);
        self.layouts
            .extend(Layout::of(value).map(|layout| (secret, layout)));
        let mut seen = Vec::new();
        let mask = secret_bytes(value);
        let codes = lines::codes(value, &mask);
        for part in guessable_stretches(value, &mask) {
            let part = value.get(part).unwrap_or_default();
            if view::visible_bytes(part) >= WINDOW {
                self.add_short(part, secret);
            }
        }
        let mut visible = Visible::of(value, mask);
        for_each_form(value, |form, encoded| {
            visible.take(form, encoded);
            let fingerprint = visible.fingerprint();
            if seen.contains(&fingerprint) {
                return;
            }
            seen.push(fingerprint);
            if form == Form::Raw && visible.bytes.len() < WINDOW {
                let text = Zeroizing::new(value.trim().as_bytes().to_vec());
                self.shorts.push(Short { text, secret });
            }
            self.add_form(secret, form, &visible, to);
        });
        for password in passwords(value).into_iter().map(Zeroizing::new) {
            if view::visible_bytes(&password) < WINDOW || is_guessable(&password) {
                self.add_short(&password, secret);
            }
            if let Some(decoded) = percent_decoded(&password).map(Zeroizing::new) {
                self.add_part(&decoded, secret, true, to);
            }
        }
        let is_encoded = value.len() <= limits::MAX_ENCODED_SECRET_BYTES;
        for code in codes {
            self.add_part(code, secret, is_encoded, to);
        }
    }

    /// Adds a value, or a part that programs use alone, that is looked for as a whole word.
    fn add_short(&mut self, part: &str, secret: usize) {
        if view::visible_bytes(part) >= limits::MIN_SECRET_BYTES {
            let text = Zeroizing::new(part.trim().as_bytes().to_vec());
            self.shorts.push(Short { text, secret });
        }
    }

    /// Adds the forms of a part that programs use alone, all of them or the plain ones.
    fn add_part(&mut self, part: &str, secret: usize, is_encoded: bool, to: &mut Build) {
        if is_guessable(part) || view::visible_bytes(part) < WINDOW {
            return self.add_short(part, secret);
        }
        self.has_escapes |= part.contains(['\\', '&']);
        let mut visible = Visible::of(part, vec![true; part.len()]);
        for_each_form(part, |form, encoded| {
            if is_encoded || form.is_plain() {
                visible.take(form, encoded);
                self.add_form(secret, form, &visible, to);
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

    fn add_form(&mut self, secret: usize, form: Form, visible: &Visible, to: &mut Build) {
        let bytes = &visible.bytes;
        let stretches = (bytes.len() + 1).saturating_sub(WINDOW);
        for at in stretches..bytes.len() {
            self.add_pieces(bytes, at);
        }
        let most = visible
            .weight(0, bytes.len())
            .min(limits::REDACTED_RUN_BYTES);
        let gram_at = |at: usize| {
            // A secret part that is shorter than a run is matched as a whole.
            let need = visible.stretch_at(at, WINDOW).min(most).max(1);
            let is_secret = visible.is_secret(at, WINDOW);
            let weights = Weights {
                need,
                first: visible.weight(at, 1),
                all: visible.weight(at, WINDOW),
            };
            Gram::new(secret, form, is_secret, weights)
        };
        let least = visible
            .is_dump
            .then(|| (0..stretches).map(|at| gram_at(at).need()));
        let least = least
            .and_then(Iterator::min)
            .filter(|least| *least >= WINDOW);
        let needs_proof = least.is_some_and(|least| self.proofs.add(visible, least));
        let same = visible.is_uniform().then(|| gram_at(0));
        let before = visible.bytes_before();
        for at in 0..stretches {
            let stretch = number(bytes, at);
            if before.is_some_and(|before| number(before, at) == stretch) {
                continue;
            }
            let gram = same.unwrap_or_else(|| gram_at(at));
            let gram = if needs_proof { gram.unproven() } else { gram };
            if let Some(full) = to.waiting.take(stretch, gram) {
                self.add_waiting(&mut to.waiting, full);
            }
            if gram.is_secret() {
                self.step = self.step.min(gram.need().max(WINDOW) + 1 - SAMPLE);
            }
        }
        if stretches > 0 {
            to.starts.push((number(bytes, 0).swap_bytes(), gram_at(0)));
        }
    }

    /// Adds stretches that wait, and the pieces that each begins with: those of a known one are known.
    fn add_waiting(&mut self, waiting: &mut Waiting, part: usize) {
        let (ones, twos) = (&mut self.ones, &mut self.twos);
        let (fours, samples) = (&mut self.fours, &mut self.samples);
        waiting.add(part, &mut self.grams, |stretch| {
            ones.insert(first(stretch, 1));
            twos.insert(first(stretch, 2));
            fours.insert(first(stretch, 4));
            samples.insert(first(stretch, SAMPLE));
        });
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
            && (first..=sample).any(|at| self.gram(number(bytes, at)).is_some())
    }

    /// Whether bytes from one on are so many that a match would be known by them, and begin as none does.
    #[inline]
    pub(super) fn is_quiet(&self, bytes: &[u8], at: usize) -> bool {
        at + WINDOW <= bytes.len() && !self.may_have(number(bytes, at))
    }

    /// Returns what is known of eight bytes of which little is known so far.
    #[inline]
    pub(super) fn gram(&self, key: u64) -> Option<Gram> {
        if self.may_have(key) {
            self.grams.get(key)
        } else {
            None
        }
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
        let bitmaps: usize = bitmaps.iter().map(|bitmap| bitmap.bytes()).sum();
        let bitmaps = bitmaps + self.samples.bytes();
        let wholes: usize = self.wholes.iter().map(|whole| whole.text.len()).sum();
        let layouts: usize = self.layouts.iter().map(|(_, layout)| layout.bytes()).sum();
        self.grams.bytes()
            + self.proofs.bytes()
            + bitmaps
            + wholes
            + layouts
            + self.starts.len() * 12
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
