//! Searches the contents of one site.
//!
//! The index holds words and pairs of characters. Matches are ranked by BM25, with a bonus for literal
//! matches. A query without words is searched literally.

use memchr::memmem::Finder;
use rusqlite::{Connection, Row};

use crate::StoreError;
use crate::site::{Content, Query, SearchResult};
use crate::sqlite::json::parsed;
use crate::sqlite::score::{PublishedStats, Rank, gain, with_exact_bonus};
use crate::sqlite::word_index::{self, INSTANCES};
use karyi_core::words;

const PUBLISHED: &str = "SELECT count(*), coalesce(sum(words), 0) FROM contents \
    WHERE site = ? AND status = 'published' AND words IS NOT NULL";
const FACTS: &str = "SELECT site, status, content_type, tags, credibility, id, words \
    FROM contents INDEXED BY contents_facts WHERE number = ?";
const TEXTS: &str = "SELECT title, body FROM contents WHERE number = ?";
/// Candidates for a query without words: all contents that the server wrote.
const ALL: &str = "SELECT site, status, content_type, tags, credibility, id, words, title, body, number \
    FROM contents WHERE site = ?1 AND status = ?2 AND words IS NOT NULL";
const CONTENT: &str = "SELECT content FROM contents WHERE number = ?";

/// Match with its rank.
struct Match {
    number: i64,
    rank: Rank,
}

/// Word of a query.
struct QueryWord {
    text: String,
    is_pair: bool,
    /// True if it may be the start of an indexed word.
    is_single: bool,
}

/// Index of a query word found in a content, with its weight there.
type Hit = (usize, u32);

/// Content with query words, before their frequencies are known.
struct Candidate {
    number: i64,
    hits: Vec<Hit>,
    facts: ContentFacts,
    norm: f64,
    is_in_title: bool,
    is_in_body: bool,
}

/// Searches the contents of a site.
///
/// # Errors
/// The database cannot be read, or the deadline passed.
pub(super) fn search(
    connection: &Connection,
    site: u64,
    query: &Query,
) -> Result<SearchResult, StoreError> {
    let text = words::fold(query.text.trim());
    let search = SiteSearch {
        connection,
        site,
        query,
        finder: Finder::new(&*text),
    };
    let words = words_of(&query.text);
    let mut matches = match words.is_empty() {
        true => search.exact()?,
        false => search.with(&words)?,
    };
    matches.sort_unstable_by(|a, b| a.rank.order(&b.rank));
    let total = matches.len() as u64;
    let mut content = connection.prepare_cached(CONTENT)?;
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let best = matches.iter().take(limit);
    let items = best.map(|found| {
        content
            .query_row([found.number], |row| {
                Ok(parsed::<Content>(row.get_ref(0)?.as_str()?))
            })
            .map_err(StoreError::from)?
    });
    Ok(SearchResult {
        items: items.collect::<Result<_, _>>()?,
        total,
    })
}

/// Search of one site.
struct SiteSearch<'q> {
    connection: &'q Connection,
    site: u64,
    query: &'q Query,
    /// Finds the literal query.
    finder: Finder<'q>,
}

impl SiteSearch<'_> {
    /// Returns the contents that contain words of the query.
    fn with(&self, words: &[QueryWord]) -> Result<Vec<Match>, StoreError> {
        let pairs = words.iter().filter(|word| word.is_pair).count();
        let sql = self
            .connection
            .prepare_cached(PUBLISHED)?
            .query_row([self.site], |row| {
                Ok(PublishedStats {
                    texts: row.get(0)?,
                    words: row.get(1)?,
                })
            });
        let published = sql?;
        let mut facts = self.connection.prepare_cached(FACTS)?;
        let mut texts = self.connection.prepare_cached(TEXTS)?;
        // Number of published texts with each word.
        let mut having = vec![0_u64; words.len()];
        let mut candidates = Vec::new();
        for (number, hits) in self.occurrences(words)? {
            let mut rows = facts.query([number])?;
            let Some(row) = rows.next()? else { continue };
            let facts = ContentFacts::of(row)?;
            let Some(count) = facts.words.filter(|_| facts.site == self.site) else {
                continue;
            };
            if facts.is_published {
                hits.iter()
                    .for_each(|(word, _)| add_one(&mut having, *word));
            }
            if !self.is_selected(row)? {
                continue;
            }
            // A literal match contains all pairs.
            let found = hits.iter().filter(|(word, _)| is_pair(words, *word));
            let (is_in_title, is_in_body) = match found.count() == pairs {
                true => texts.query_row([number], |row| self.texts(row, 0))?,
                false => (false, false),
            };
            candidates.push(Candidate {
                number,
                hits,
                facts,
                norm: published.norm(count),
                is_in_title,
                is_in_body,
            });
        }
        let idf: Vec<f64> = having.iter().map(|having| published.idf(*having)).collect();
        let ranked = candidates.into_iter().map(|found| found.ranked(&idf));
        Ok(ranked.collect())
    }

    /// Returns the query words found in each row of the site.
    fn occurrences(&self, words: &[QueryWord]) -> Result<Vec<(i64, Vec<Hit>)>, StoreError> {
        self.connection.prepare_cached(INSTANCES)?.execute(())?;
        let mut all: Vec<(i64, Hit)> = Vec::new();
        for (number, word) in words.iter().enumerate() {
            let mut add = |row, weight| match all.last_mut() {
                Some((last, (word, sum))) if (*last, *word) == (row, number) => *sum += weight,
                _ => all.push((row, (number, weight))),
            };
            word_index::each_occurrence(
                self.connection,
                self.site,
                &word.text,
                word.is_single,
                &mut add,
            )?;
        }
        all.sort_unstable();
        let rows = all.chunk_by(|(one, _), (other, _)| one == other);
        Ok(rows
            .filter_map(|occurrences| Some((occurrences.first()?.0, hits(occurrences))))
            .collect())
    }

    /// Returns the contents that contain the literal query.
    fn exact(&self) -> Result<Vec<Match>, StoreError> {
        let mut all = self.connection.prepare_cached(ALL)?;
        let mut rows = all.query((self.site, &self.query.status))?;
        let mut matches = Vec::new();
        while let Some(row) = rows.next()? {
            if self.is_selected(row)? && self.texts(row, 7)? != (false, false) {
                let (number, rank) = (row.get(9)?, ContentFacts::of(row)?.rank(0.0));
                matches.push(Match { number, rank });
            }
        }
        Ok(matches)
    }

    /// Tells whether a content passes the filters of the query; the columns are those of [`FACTS`].
    fn is_selected(&self, row: &Row<'_>) -> rusqlite::Result<bool> {
        let query = self.query;
        let is_of_type = match &query.content_type {
            Some(search) => row.get_ref(2)?.as_str()? == search,
            None => true,
        };
        Ok(row.get_ref(1)?.as_str()? == query.status
            && is_of_type
            && (query.tags.is_empty() || self.has_tag(row.get_ref(3)?.as_str()?)))
    }

    fn has_tag(&self, tags: &str) -> bool {
        let tags: Vec<String> = serde_json::from_str(tags).unwrap_or_default();
        let is_selected =
            |tag: &String| self.query.tags.contains(&words::compose(tag).into_owned());
        tags.iter().any(is_selected)
    }

    /// Tells whether title and text contain the literal query; they begin at this column.
    fn texts(&self, row: &Row<'_>, first: usize) -> rusqlite::Result<(bool, bool)> {
        let is_in = |column| {
            let text = row.get_ref(column)?.as_str()?;
            let found = self.finder.find(words::fold(text).as_bytes());
            Ok::<_, rusqlite::Error>(found.is_some())
        };
        Ok((is_in(first)?, is_in(first + 1)?))
    }
}

/// Columns of a content besides its texts.
struct ContentFacts {
    site: u64,
    is_published: bool,
    credibility: f64,
    id: String,
    /// Number of its indexed words; `None` when it is not indexed.
    words: Option<u64>,
}

impl ContentFacts {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            site: row.get(0)?,
            is_published: row.get_ref(1)?.as_str()? == "published",
            credibility: row.get(4)?,
            id: row.get(5)?,
            words: row.get(6)?,
        })
    }

    fn rank(self, score: f64) -> Rank {
        Rank {
            score,
            credibility: self.credibility,
            id: self.id,
        }
    }
}

impl Candidate {
    /// Sums the scores of its words in the order of the query.
    fn ranked(self, idf: &[f64]) -> Match {
        let mut score = 0.0;
        for (word, weight) in self.hits {
            score += gain(idf.get(word).copied().unwrap_or(0.0), weight, self.norm);
        }
        let score = with_exact_bonus(score, self.is_in_title, self.is_in_body);
        Match {
            number: self.number,
            rank: self.facts.rank(score),
        }
    }
}

/// Merges the hits of one row by word.
fn hits(occurrences: &[(i64, Hit)]) -> Vec<Hit> {
    let mut hits: Vec<Hit> = Vec::new();
    for (_, (word, weight)) in occurrences {
        match hits.last_mut() {
            Some((last, sum)) if last == word => *sum += weight,
            _ => hits.push((*word, *weight)),
        }
    }
    hits
}

fn add_one(counts: &mut [u64], place: usize) {
    if let Some(count) = counts.get_mut(place) {
        *count += 1;
    }
}

fn is_pair(words: &[QueryWord], place: usize) -> bool {
    words.get(place).is_some_and(|word| word.is_pair)
}

/// Splits a query into words.
fn words_of(text: &str) -> Vec<QueryWord> {
    let mut all = Vec::new();
    words::each_word(text, &mut |word| {
        all.push(QueryWord {
            text: word.text.to_owned(),
            is_pair: word.is_pair,
            is_single: word.is_single,
        });
    });
    all
}

#[cfg(test)]
#[path = "search/tests.rs"]
mod tests;
