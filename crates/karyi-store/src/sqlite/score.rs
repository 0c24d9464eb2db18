//! Relevance score of a content: BM25. A word counts more if fewer texts contain it, and less in a longer
//! text.
//!
//! Word frequencies and text lengths come only from the published texts of the same site, so other tenants
//! and unpublished texts do not influence the order of results.

use std::cmp::Ordering;

/// Usual constants of BM25, as in SQLite.
const K1: f64 = 1.2;
const B: f64 = 0.75;
/// Weight of a word that more than half of all texts contain.
const LEAST_IDF: f64 = 1e-6;

/// Returns the weight of a column of the index.
pub(super) fn weight(column: &str) -> u32 {
    match column {
        "title" => 6,
        "tags" => 3,
        "body" => 1,
        _ => 0,
    }
}

/// Statistics of the published texts of a site.
#[derive(Debug, Clone, Copy)]
pub(super) struct PublishedStats {
    /// Number of texts.
    pub(super) texts: u64,
    /// Total number of words.
    pub(super) words: u64,
}

#[allow(
    clippy::cast_precision_loss,
    reason = "word counts stay far below 2^52"
)]
impl PublishedStats {
    /// Returns the inverse document frequency of a word that `having` texts contain.
    pub(super) fn idf(self, having: u64) -> f64 {
        let without = self.texts.saturating_sub(having);
        let idf = ((without as f64 + 0.5) / (having as f64 + 0.5)).ln();
        if idf <= 0.0 { LEAST_IDF } else { idf }
    }

    /// Returns the part of the score that depends only on the length of the content.
    pub(super) fn norm(self, words: u64) -> f64 {
        // Without published texts no length is unusual.
        let average = match self.words {
            0 => words.max(1) as f64,
            all => all as f64 / self.texts as f64,
        };
        K1 * (1.0 - B + B * words as f64 / average)
    }
}

/// Returns the score of a word with this total weight in a content.
pub(super) fn gain(idf: f64, weight: u32, norm: f64) -> f64 {
    let often = f64::from(weight);
    idf * ((often * (K1 + 1.0)) / (often + norm))
}

/// Raises the score of a literal match in the title or the text.
pub(super) fn with_exact_bonus(score: f64, is_in_title: bool, is_in_body: bool) -> f64 {
    let weight = |is_there: bool, weight: f64| if is_there { weight } else { 0.0 };
    score * (1.0 + weight(is_in_title, 1.0) + weight(is_in_body, 0.5))
}

/// Rank of a match.
#[derive(Debug, Clone)]
pub(super) struct Rank {
    /// Higher is better.
    pub(super) score: f64,
    pub(super) credibility: f64,
    pub(super) id: String,
}

impl Rank {
    /// Compares two ranks, best first.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let score = other.score.total_cmp(&self.score);
        let credibility = other.credibility.total_cmp(&self.credibility);
        score.then(credibility).then_with(|| self.id.cmp(&other.id))
    }
}
