//! How well a content fits a search: bm25, in which a word counts for the more the fewer texts have it,
//! and for the less the longer the text is.
//!
//! How common words are and how long texts is asked of the published texts of the same site alone: what
//! others keep, and what is not published, changes the order of nobody's results.

use std::cmp::Ordering;

/// The usual constants of bm25, which are those of SQLite.
const K1: f64 = 1.2;
const B: f64 = 0.75;
/// What a word counts for that more than half of all texts have.
const LEAST_IDF: f64 = 1e-6;

/// What a word counts for in a column of the index; nothing elsewhere.
pub(super) fn weight(column: &str) -> u32 {
    match column {
        "title" => 6,
        "tags" => 3,
        "body" => 1,
        _ => 0,
    }
}

/// The published texts of a site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PublishedStats {
    /// How many there are.
    pub(super) texts: u64,
    /// How many words they have together.
    pub(super) words: u64,
}

#[allow(clippy::cast_precision_loss, reason = "nobody has so many words")]
impl PublishedStats {
    /// Returns what a word counts for that so many of the texts have.
    pub(super) fn idf(self, having: u64) -> f64 {
        let without = self.texts.saturating_sub(having);
        let idf = ((without as f64 + 0.5) / (having as f64 + 0.5)).ln();
        if idf <= 0.0 { LEAST_IDF } else { idf }
    }

    /// Returns the part of a score that depends on the length of the content alone.
    pub(super) fn norm(self, words: u64) -> f64 {
        // Where nothing is published no length is unusual.
        let average = match self.words {
            0 => words.max(1) as f64,
            all => all as f64 / self.texts as f64,
        };
        K1 * (1.0 - B + B * words as f64 / average)
    }
}

/// Returns what a word adds to the score of a content that has it so often, each time by its weight.
pub(super) fn gain(idf: f64, weight: u32, norm: f64) -> f64 {
    let often = f64::from(weight);
    idf * ((often * (K1 + 1.0)) / (often + norm))
}

/// Returns the score of a content that has the query to the letter in its title or its text.
pub(super) fn with_exact_bonus(score: f64, is_in_title: bool, is_in_body: bool) -> f64 {
    let weight = |is_there: bool, weight: f64| if is_there { weight } else { 0.0 };
    score * (1.0 + weight(is_in_title, 1.0) + weight(is_in_body, 0.5))
}

/// The place of a match among others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rank<I> {
    /// The more the better.
    pub(super) score: f64,
    pub(super) credibility: f64,
    pub(super) id: I,
}

impl<I: AsRef<str>> Rank<I> {
    /// The best comes first.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let score = other.score.total_cmp(&self.score);
        let credibility = other.credibility.total_cmp(&self.credibility);
        score
            .then(credibility)
            .then_with(|| self.id.as_ref().cmp(other.id.as_ref()))
    }
}
