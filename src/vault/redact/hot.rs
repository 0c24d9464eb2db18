//! Shorter stretches of secrets that were seen in a text: once a value is in it, less of it is enough.

use zeroize::Zeroizing;

use super::encodings::for_each_form;
use super::form::Form;
use super::grams::{Gram, Grams, WINDOW, Weights, first, number};
use super::guessable::is_guessable;
use super::parts::{passwords, percent_decoded, secret_bytes};
use super::tables::Tables;
use super::visible::Visible;
use crate::limits;
use crate::vault::session::Secrets;
use crate::vault::view::{self, SAMPLE};

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
        if is_guessable(value) {
            return;
        }
        let mut visible = Visible::of(value, mask);
        let mut is_short = false;
        for_each_form(value, |form, encoded| {
            visible.take(form, encoded);
            // A short value is masked as a whole or not at all.
            is_short |= form == Form::Raw && visible.bytes.len() < limits::REDACTED_RUN_BYTES;
            if form.is_wide() || is_short {
                return;
            }
            let stretches = (visible.bytes.len() + 1).saturating_sub(SAMPLE);
            for at in 0..stretches {
                if visible.is_all_secret(at, SAMPLE) {
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
