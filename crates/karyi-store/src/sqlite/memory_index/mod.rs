//! In-memory index of the contents of all sites.
//!
//! It returns what a search of the database returns, in the same order and with the same scores: it is a copy
//! of the database index, and scores are summed from the same numbers in the same order. What the copy cannot
//! answer, such as unreadable contents, is left to the database.

mod index_cache;
mod loader;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use memchr::memmem::Finder;

pub(super) use index_cache::IndexCache;

use crate::site::{CachedContent, Query, Scope, SearchResult};
use crate::sqlite::score::{PublishedStats, Rank, gain, with_exact_bonus};
use karyi_core::{limits, words};

/// Sites by tenant and name.
type Sites = HashMap<Box<str>, HashMap<Box<str>, Site>>;

/// All contents at one change count.
pub(super) struct MemoryIndex {
    change_count: u64,
    sites: Sites,
    /// Contents, grouped by site.
    contents: Vec<IndexedContent>,
}

/// Index of one site.
struct Site {
    contents: Range<u32>,
    /// Size of titles and texts.
    bytes: usize,
    published: PublishedStats,
    /// Words in byte order.
    terms: Vec<Term>,
}

/// Indexed content.
struct IndexedContent {
    id: Box<str>,
    status: Box<str>,
    content_type: Box<str>,
    tags: Vec<String>,
    credibility: f64,
    /// Folded title and text.
    title: FoldedText,
    body: FoldedText,
    /// Part of the score that depends only on the length of the content.
    norm: f64,
    /// True if its words are indexed.
    is_indexed: bool,
    /// Parsed content; `None` when it is unreadable.
    cached: Option<Arc<CachedContent>>,
}

/// Folded text; `None` when it equals the original.
type FoldedText = Option<Box<str>>;

/// Word of the index.
struct Term {
    text: Box<str>,
    /// Postings, sorted by content.
    postings: Box<[Posting]>,
}

/// Occurrences of a word in one content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Posting {
    /// Index of the content within its site.
    content: u32,
    /// Sum of the column weights of all occurrences.
    weight: u32,
    /// True if the content is published.
    is_published: bool,
}

/// Reason why the index does not answer a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchRefusal {
    /// Only the database knows the answer.
    Unknown,
    /// The search needs more steps than allowed.
    Long,
}

/// Word of a query with its postings.
struct QueryTerm<'l> {
    idf: f64,
    postings: Cow<'l, [Posting]>,
    is_pair: bool,
}

/// Score of a content.
#[derive(Clone, Copy, Default)]
struct TermScore {
    score: f64,
    /// Number of the query's character pairs it contains.
    pairs: u32,
}

impl MemoryIndex {
    /// Returns the change count of the index.
    fn change_count(&self) -> u64 {
        self.change_count
    }

    /// Searches with a limited number of steps.
    ///
    /// # Errors
    /// The index does not answer this search.
    pub(super) fn search(
        &self,
        scope: &Scope,
        query: &Query,
        steps: usize,
    ) -> Result<SearchResult, SearchRefusal> {
        let sites = self.sites.get(&*scope.tenant_id);
        let Some(site) = sites.and_then(|sites| sites.get(&*scope.site_id)) else {
            let items = Vec::new();
            return Ok(SearchResult { items, total: 0 });
        };
        let mut steps = StepBudget(steps);
        steps.take(site.contents.len() + site.bytes / 16)?;
        let hits = site.query_terms(&query.text, &mut steps)?;
        let text = words::fold(query.text.trim());
        let filter = ContentFilter {
            query,
            finder: Finder::new(&*text),
        };
        let range = site.contents.start as usize..site.contents.end as usize;
        let entries = self.contents.get(range).unwrap_or_default();
        let matches = match hits.is_empty() {
            true => filter.exact(entries),
            false => filter.ranked(entries, &term_scores(entries, &hits), &hits),
        };
        best(matches, query.limit)
    }
}

impl Site {
    /// Looks up the words of a text.
    fn query_terms(
        &self,
        text: &str,
        steps: &mut StepBudget,
    ) -> Result<Vec<QueryTerm<'_>>, SearchRefusal> {
        let mut hits = Ok(Vec::new());
        words::each_word(text, &mut |word| {
            let Ok(found) = &mut hits else { return };
            match self.query_term(&word, steps) {
                Ok(hit) => found.push(hit),
                Err(refusal) => hits = Err(refusal),
            }
        });
        hits
    }

    fn query_term(
        &self,
        word: &words::Word<'_>,
        steps: &mut StepBudget,
    ) -> Result<QueryTerm<'_>, SearchRefusal> {
        let first = self.terms.partition_point(|term| *term.text < *word.text);
        let rest = self.terms.get(first..).unwrap_or_default();
        let postings = match word.is_single {
            true => postings_with_prefix(rest, word.text, steps)?.into(),
            false => match rest.first().filter(|term| *term.text == *word.text) {
                Some(term) => Cow::Borrowed(&*term.postings),
                None => Cow::default(),
            },
        };
        steps.take(postings.len())?;
        let having = postings
            .iter()
            .filter(|posting| posting.is_published)
            .count();
        Ok(QueryTerm {
            idf: self.published.idf(having as u64),
            postings,
            is_pair: word.is_pair,
        })
    }
}

/// Returns the postings of all words that start with `start`; `terms` begins with them.
fn postings_with_prefix(
    terms: &[Term],
    start: &str,
    steps: &mut StepBudget,
) -> Result<Vec<Posting>, SearchRefusal> {
    let mut postings: Vec<Posting> = Vec::new();
    for term in terms.iter().take_while(|term| term.text.starts_with(start)) {
        steps.take(term.postings.len() * 8)?;
        postings.extend_from_slice(&term.postings);
    }
    postings.sort_unstable_by_key(|posting| posting.content);
    postings.dedup_by(|posting, first| {
        let is_same = posting.content == first.content;
        if is_same {
            first.weight += posting.weight;
        }
        is_same
    });
    Ok(postings)
}

/// Sums the scores of one site's contents word by word, as the database search does, so that the sums are
/// equal to the last digit.
fn term_scores(entries: &[IndexedContent], hits: &[QueryTerm<'_>]) -> Vec<TermScore> {
    let mut term_scores = vec![TermScore::default(); entries.len()];
    for hit in hits {
        for posting in &*hit.postings {
            let number = posting.content as usize;
            let (Some(term_score), Some(content)) =
                (term_scores.get_mut(number), entries.get(number))
            else {
                break;
            };
            term_score.score += gain(hit.idf, posting.weight, content.norm);
            term_score.pairs += u32::from(hit.is_pair);
        }
    }
    term_scores
}

/// Filter and literal text of a query.
struct ContentFilter<'q> {
    query: &'q Query,
    /// Finds the literal query.
    finder: Finder<'q>,
}

/// Match with its rank.
struct Match<'l> {
    rank: Rank<&'l str>,
    entry: &'l IndexedContent,
}

impl ContentFilter<'_> {
    /// Returns the contents that contain the literal query.
    fn exact<'l>(&self, entries: &'l [IndexedContent]) -> Vec<Match<'l>> {
        let filter = entries.iter().filter(|entry| self.accepts(entry));
        let found = filter.filter(|entry| self.literal_matches(entry) != (false, false));
        found.map(|entry| self.matching(entry, 0.0, true)).collect()
    }

    /// Returns the contents that contain words of the query.
    fn ranked<'l>(
        &self,
        entries: &'l [IndexedContent],
        term_scores: &[TermScore],
        hits: &[QueryTerm<'_>],
    ) -> Vec<Match<'l>> {
        let pairs: u32 = hits.iter().map(|hit| u32::from(hit.is_pair)).sum();
        let scored = entries.iter().zip(term_scores);
        scored
            .filter(|(entry, term_score)| {
                term_score.score > 0.0 && entry.is_indexed && self.accepts(entry)
            })
            // A literal match contains all pairs.
            .map(|(entry, term_score)| {
                self.matching(entry, term_score.score, term_score.pairs == pairs)
            })
            .collect()
    }

    fn accepts(&self, entry: &IndexedContent) -> bool {
        let query = self.query;
        let of_type = query.content_type.as_deref();
        *entry.status == *query.status
            && of_type.is_none_or(|wanted| *entry.content_type == *wanted)
            && (query.tags.is_empty() || entry.tags.iter().any(|tag| query.tags.contains(tag)))
    }

    fn matching<'l>(&self, entry: &'l IndexedContent, score: f64, may_be_exact: bool) -> Match<'l> {
        let (is_in_title, is_in_body) = match may_be_exact {
            true => self.literal_matches(entry),
            false => (false, false),
        };
        let rank = Rank {
            score: with_exact_bonus(score, is_in_title, is_in_body),
            credibility: entry.credibility,
            id: &*entry.id,
        };
        Match { rank, entry }
    }

    /// Tells whether title and text contain the literal query.
    fn literal_matches(&self, entry: &IndexedContent) -> (bool, bool) {
        let is_in = |text: &str| self.finder.find(text.as_bytes()).is_some();
        (is_in(entry.title()), is_in(entry.body()))
    }
}

impl IndexedContent {
    fn title(&self) -> &str {
        let original = || self.cached.as_ref().map_or("", |cached| &cached.title);
        self.title.as_deref().unwrap_or_else(original)
    }

    fn body(&self) -> &str {
        let original = || self.cached.as_ref().map_or("", |cached| &cached.body);
        self.body.as_deref().unwrap_or_else(original)
    }
}

/// Returns the best matches.
fn best(mut matches: Vec<Match<'_>>, limit: u32) -> Result<SearchResult, SearchRefusal> {
    let total = matches.len() as u64;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if let Some(last) = limit.checked_sub(1)
        && last < matches.len()
    {
        matches.select_nth_unstable_by(last, |a, b| a.rank.order(&b.rank));
    }
    matches.truncate(limit);
    matches.sort_unstable_by(|a, b| a.rank.order(&b.rank));
    // An unreadable content is an error, which the database reports.
    let items = matches.iter().map(|found| found.entry.cached.clone());
    let items: Option<Vec<Arc<CachedContent>>> = items.collect();
    let items = items.ok_or(SearchRefusal::Unknown)?;
    Ok(SearchResult { items, total })
}

/// Remaining steps of a search.
struct StepBudget(usize);

impl StepBudget {
    fn take(&mut self, steps: usize) -> Result<(), SearchRefusal> {
        self.0 = self.0.checked_sub(steps).ok_or(SearchRefusal::Long)?;
        Ok(())
    }
}

/// Remaining memory while the index is loaded.
struct MemoryBudget(usize);

impl MemoryBudget {
    fn all() -> Self {
        Self(limits::MEMORY_INDEX_BYTES)
    }

    /// Takes memory; returns false when there is not enough.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests;
