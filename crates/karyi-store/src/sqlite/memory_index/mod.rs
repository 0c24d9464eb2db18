//! The contents of all sites in memory, with the index of their words: what a search finds there is
//! what the database would find, in the same order and with the same scores.
//!
//! The index is a copy of that of the database, and scores are added up from the same numbers in the
//! same order. What the copy cannot answer, such as what cannot be read, is left to the database.

mod index_cache;
mod loader;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use memchr::memmem::Finder;

pub(super) use index_cache::Shelf;

use crate::site::{Found, Kept, Query, Scope};
use crate::sqlite::score::{Published, Rank, gain, weighted};
use crate::tokenizer;
use karyi_core::limits;

/// Sites by tenant and name.
type Sites = HashMap<Box<str>, HashMap<Box<str>, Site>>;

/// All contents as they were at one count of changes.
pub(super) struct Library {
    revision: u64,
    sites: Sites,
    /// Those of one site stand together.
    contents: Vec<Held>,
}

/// What a site has.
struct Site {
    contents: Range<u32>,
    /// Of their titles and texts.
    bytes: usize,
    published: Published,
    /// The words of its contents, by their bytes.
    terms: Vec<Term>,
}

/// A content.
struct Held {
    id: Box<str>,
    status: Box<str>,
    content_type: Box<str>,
    tags: Vec<String>,
    credibility: f64,
    /// Title and text as they are searched.
    title: Folded,
    body: Folded,
    /// The part of the score that depends on the content's length alone.
    norm: f64,
    /// Whether its words are in the index.
    is_indexed: bool,
    /// Nothing when it cannot be read.
    kept: Option<Arc<Kept>>,
}

/// A text for the search; nothing when it is just that of the content.
type Folded = Option<Box<str>>;

/// A word of the index.
struct Term {
    text: Box<str>,
    /// By content.
    places: Box<[Place]>,
}

/// That a content has a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// Which one of its site.
    content: u32,
    /// How often, each time by the weight of its column.
    weight: u32,
    /// Whether it is published.
    is_published: bool,
}

/// Why a search is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// Only the database knows.
    Unknown,
    /// It takes more steps than were given.
    Long,
}

/// A word of a query.
struct Hits<'l> {
    idf: f64,
    places: Cow<'l, [Place]>,
    is_pair: bool,
}

/// What is known of a content that has words of the query.
#[derive(Clone, Copy, Default)]
struct Mark {
    score: f64,
    /// How many of the query's pairs it has.
    pairs: u32,
}

impl Library {
    /// Returns the count of changes it was read at.
    fn revision(&self) -> u64 {
        self.revision
    }

    /// Searches, in at most so many steps.
    ///
    /// # Errors
    /// It is not answered here.
    pub(super) fn search(
        &self,
        scope: &Scope,
        query: &Query,
        steps: usize,
    ) -> Result<Found, Unanswered> {
        let sites = self.sites.get(&*scope.tenant_id);
        let Some(site) = sites.and_then(|sites| sites.get(&*scope.site_id)) else {
            let items = Vec::new();
            return Ok(Found { items, total: 0 });
        };
        let mut steps = Steps(steps);
        steps.take(site.contents.len() + site.bytes / 16)?;
        let hits = site.hits(&query.text, &mut steps)?;
        let text = tokenizer::folded(query.text.trim());
        let wanted = Wanted {
            query,
            finder: Finder::new(&*text),
        };
        let range = site.contents.start as usize..site.contents.end as usize;
        let held = self.contents.get(range).unwrap_or_default();
        let matches = match hits.is_empty() {
            true => wanted.exact(held),
            false => wanted.marked(held, &marks(held, &hits), &hits),
        };
        best(matches, query.limit)
    }
}

impl Site {
    /// Looks up the words of a text.
    fn hits(&self, text: &str, steps: &mut Steps) -> Result<Vec<Hits<'_>>, Unanswered> {
        let mut hits = Ok(Vec::new());
        tokenizer::each_word(text, &mut |word| {
            let Ok(found) = &mut hits else { return };
            match self.hit(&word, steps) {
                Ok(hit) => found.push(hit),
                Err(unanswered) => hits = Err(unanswered),
            }
        });
        hits
    }

    fn hit(&self, word: &tokenizer::Word<'_>, steps: &mut Steps) -> Result<Hits<'_>, Unanswered> {
        let first = self.terms.partition_point(|term| *term.text < *word.text);
        let rest = self.terms.get(first..).unwrap_or_default();
        let places = match word.is_alone {
            true => started(rest, word.text, steps)?.into(),
            false => match rest.first().filter(|term| *term.text == *word.text) {
                Some(term) => Cow::Borrowed(&*term.places),
                None => Cow::default(),
            },
        };
        steps.take(places.len())?;
        let having = places.iter().filter(|place| place.is_published).count();
        Ok(Hits {
            idf: self.published.idf(having as u64),
            places,
            is_pair: word.is_pair,
        })
    }
}

/// Returns the contents that have a word that starts with `start`; such words come first in `terms`.
fn started(terms: &[Term], start: &str, steps: &mut Steps) -> Result<Vec<Place>, Unanswered> {
    let mut places: Vec<Place> = Vec::new();
    for term in terms.iter().take_while(|term| term.text.starts_with(start)) {
        steps.take(term.places.len() * 8)?;
        places.extend_from_slice(&term.places);
    }
    places.sort_unstable_by_key(|place| place.content);
    places.dedup_by(|place, kept| {
        let is_same = place.content == kept.content;
        if is_same {
            kept.weight += place.weight;
        }
        is_same
    });
    Ok(places)
}

/// Adds up what the words say of the contents of one site: word by word, as it is done with the
/// database, so that the sums are the same to the last digit.
fn marks(held: &[Held], hits: &[Hits<'_>]) -> Vec<Mark> {
    let mut marks = vec![Mark::default(); held.len()];
    for hit in hits {
        for place in &*hit.places {
            let number = place.content as usize;
            let (Some(mark), Some(content)) = (marks.get_mut(number), held.get(number)) else {
                break;
            };
            mark.score += gain(hit.idf, place.weight, content.norm);
            mark.pairs += u32::from(hit.is_pair);
        }
    }
    marks
}

/// What a content must be like.
struct Wanted<'q> {
    query: &'q Query,
    /// Finds the query to the letter.
    finder: Finder<'q>,
}

/// A content that matches.
struct Match<'l> {
    rank: Rank<&'l str>,
    held: &'l Held,
}

impl Wanted<'_> {
    /// Returns the contents that have the query to the letter.
    fn exact<'l>(&self, held: &'l [Held]) -> Vec<Match<'l>> {
        let wanted = held.iter().filter(|held| self.is_wanted(held));
        let found = wanted.filter(|held| self.places(held) != (false, false));
        found.map(|held| self.matching(held, 0.0, true)).collect()
    }

    /// Returns the contents that have words of the query.
    fn marked<'l>(&self, held: &'l [Held], marks: &[Mark], hits: &[Hits<'_>]) -> Vec<Match<'l>> {
        let pairs: u32 = hits.iter().map(|hit| u32::from(hit.is_pair)).sum();
        let marked = held.iter().zip(marks);
        marked
            .filter(|(held, mark)| mark.score > 0.0 && held.is_indexed && self.is_wanted(held))
            // What has the query to the letter has all its pairs.
            .map(|(held, mark)| self.matching(held, mark.score, mark.pairs == pairs))
            .collect()
    }

    fn is_wanted(&self, held: &Held) -> bool {
        let query = self.query;
        let of_type = query.content_type.as_deref();
        *held.status == *query.status
            && of_type.is_none_or(|wanted| *held.content_type == *wanted)
            && (query.tags.is_empty() || held.tags.iter().any(|tag| query.tags.contains(tag)))
    }

    fn matching<'l>(&self, held: &'l Held, score: f64, may_be_exact: bool) -> Match<'l> {
        let (is_in_title, is_in_body) = match may_be_exact {
            true => self.places(held),
            false => (false, false),
        };
        let rank = Rank {
            score: weighted(score, is_in_title, is_in_body),
            credibility: held.credibility,
            id: &*held.id,
        };
        Match { rank, held }
    }

    /// Whether the query stands in title and text to the letter.
    fn places(&self, held: &Held) -> (bool, bool) {
        let is_in = |text: &str| self.finder.find(text.as_bytes()).is_some();
        (is_in(held.title()), is_in(held.body()))
    }
}

impl Held {
    fn title(&self) -> &str {
        let kept = || self.kept.as_ref().map_or("", |kept| &kept.title);
        self.title.as_deref().unwrap_or_else(kept)
    }

    fn body(&self) -> &str {
        let kept = || self.kept.as_ref().map_or("", |kept| &kept.body);
        self.body.as_deref().unwrap_or_else(kept)
    }
}

/// Returns the best of what matches.
fn best(mut matches: Vec<Match<'_>>, limit: u32) -> Result<Found, Unanswered> {
    let total = matches.len() as u64;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if let Some(last) = limit.checked_sub(1)
        && last < matches.len()
    {
        matches.select_nth_unstable_by(last, |a, b| a.rank.order(&b.rank));
    }
    matches.truncate(limit);
    matches.sort_unstable_by(|a, b| a.rank.order(&b.rank));
    // What cannot be read is an error, which the database tells.
    let items = matches.iter().map(|found| found.held.kept.clone());
    let items: Option<Vec<Arc<Kept>>> = items.collect();
    let items = items.ok_or(Unanswered::Unknown)?;
    Ok(Found { items, total })
}

/// Steps that a search may still take.
struct Steps(usize);

impl Steps {
    fn take(&mut self, steps: usize) -> Result<(), Unanswered> {
        self.0 = self.0.checked_sub(steps).ok_or(Unanswered::Long)?;
        Ok(())
    }
}

/// What the library takes of memory, counted while it is read.
struct Room(usize);

impl Room {
    fn all() -> Self {
        Self(limits::LIBRARY_BYTES)
    }

    /// Takes room; false when there is not enough.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests;
