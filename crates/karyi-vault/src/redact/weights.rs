//! Weights of the n-grams of a value: how much of it proves a match.

use std::ops::Range;

use super::encoded_forms::EncodedValue;
use super::form::Form;
use super::ngram_table::{WINDOW, Weights};
use super::secret_spans::guessable_stretches;
use crate::visible::is_visible;
use karyi_core::limits;

/// Properties of the bytes of a value.
pub(super) struct ValueWeights<'a> {
    value: &'a [u8],
    /// True for secret bytes.
    secret: Vec<bool>,
    /// True for bytes of an easily guessed secret part.
    guessable: Vec<bool>,
    /// True for bytes without weight: repeated white space, and one repeated byte.
    idle: Vec<bool>,
}

/// Prefix counts of the bytes of a form: secret ones, guessable ones, and those with weight.
struct PrefixCounts {
    secret: Vec<usize>,
    guessable: Vec<usize>,
    counted: Vec<usize>,
}

impl<'a> ValueWeights<'a> {
    /// Computes the properties of a value with these secret bytes.
    pub(super) fn of(value: &'a str, secret: Vec<bool>) -> Self {
        let mut guessable = vec![false; value.len()];
        for part in guessable_stretches(value, &secret) {
            guessable.get_mut(part).unwrap_or_default().fill(true);
        }
        Self {
            value: value.as_bytes(),
            secret,
            guessable,
            idle: idle(value.as_bytes()),
        }
    }

    /// Returns the weights of each n-gram of a form. A match needs twelve characters, or all of the form or of the
    /// secret part that the n-gram is in.
    pub(super) fn weights(&self, form: Form, encoded: &EncodedValue) -> Vec<Weights> {
        let before = self.before(form, encoded);
        let length = encoded.bytes.len();
        let count = |of: &[usize], range: Range<usize>| {
            let [first, last] = [range.start, range.end].map(|at| of.get(at).copied());
            last.zip(first).map_or(0, |(last, first)| last - first)
        };
        let most = count(&before.counted, 0..length).min(limits::REDACTED_RUN_BYTES);
        let mut part = 0..0;
        let stretches = 0..(length + 1).saturating_sub(WINDOW);
        let weights = stretches.map(|at| {
            let stretch = at..at + WINDOW;
            let secret = count(&before.secret, stretch.clone());
            let is_easy = count(&before.guessable, stretch.clone()) == WINDOW;
            if part.end <= at {
                let is_secret = |at: &usize| count(&before.secret, *at..at + 1) == 1;
                part = at..(at..length).find(|at| !is_secret(at)).unwrap_or(length);
            }
            let whole = match secret {
                WINDOW => count(&before.counted, part.clone()),
                _ => most,
            };
            let is_secret = secret >= WINDOW / 2 && !is_easy;
            Weights {
                need: is_secret.then(|| whole.min(most).max(1)),
                first: count(&before.counted, at..at + 1),
                all: count(&before.counted, stretch),
            }
        });
        weights.collect()
    }

    fn before(&self, form: Form, encoded: &EncodedValue) -> PrefixCounts {
        let room = || {
            let mut before = Vec::with_capacity(encoded.sources.len() + 1);
            before.push(0);
            before
        };
        let mut before = PrefixCounts {
            secret: room(),
            guessable: room(),
            counted: room(),
        };
        let add = |to: &mut Vec<usize>, is: bool| {
            to.push(to.last().copied().unwrap_or(0) + usize::from(is));
        };
        let mut last = None;
        for source in &encoded.sources {
            let is = |of: &[bool]| of.get(*source) == Some(&true);
            add(&mut before.secret, is(&self.secret));
            add(&mut before.guessable, is(&self.guessable));
            let is_first = last.replace(*source) != Some(*source);
            let counts = self.counts(form, *source, is_first) && !is(&self.idle);
            add(&mut before.counted, counts);
        }
        before
    }

    /// Returns true when a byte of a form has weight: a character that is not ASCII counts once, and in hexadecimal
    /// for each byte.
    fn counts(&self, form: Form, source: usize, is_first: bool) -> bool {
        let byte = self.value.get(source).copied().unwrap_or(0);
        let is_more = byte & 0xC0 == 0x80;
        byte < 0x80 || is_first && (form == Form::Hex || !is_more)
    }
}

/// Returns the bytes without weight, unless the value has little else.
fn idle(bytes: &[u8]) -> Vec<bool> {
    /// Fewest bytes of white space, and of other bytes, that count as repeated.
    const BLANKS: usize = 2;
    const SAME: usize = 3;
    let is_blank = |byte: &u8| !is_visible(*byte);
    let (mut blanks, mut rows) = (
        Vec::with_capacity(bytes.len()),
        Vec::with_capacity(bytes.len()),
    );
    for row in bytes.chunk_by(|a, b| a == b || is_blank(a) && is_blank(b)) {
        let of_blanks = row.first().is_some_and(is_blank);
        let is_row = row.len() >= if of_blanks { BLANKS } else { SAME };
        let all = std::iter::repeat_n((), row.len());
        blanks.extend(all.clone().map(|()| of_blanks && is_row));
        rows.extend(all.map(|()| is_row));
    }
    let left = bytes.iter().zip(&rows);
    let left = left.filter(|(byte, is_row)| is_visible(**byte) && !**is_row);
    if left.count() >= limits::GOOD_SECRET_BYTES {
        rows
    } else {
        blanks
    }
}
