//! Search in the contents of one site.
//!
//! The index holds pairs of characters and words; the best match by bm25 comes first, and a text
//! that has the query to the letter counts for more. A query without words is looked for as it is.

use std::sync::Arc;

use memchr::memmem::Finder;
use rusqlite::{Connection, Row};

use crate::site::{Content, Query, SearchResult};
use crate::sqlite::json::parsed;
use crate::sqlite::score::{PublishedStats, Rank, gain, with_exact_bonus};
use crate::sqlite::word_index::{self, INSTANCES};
use crate::{StoreError, tokenizer};

const PUBLISHED: &str = "SELECT count(*), coalesce(sum(words), 0) FROM contents \
    WHERE site = ? AND status = 'published' AND words IS NOT NULL";
const FACTS: &str = "SELECT site, status, content_type, tags, credibility, id, words \
    FROM contents INDEXED BY contents_facts WHERE number = ?";
const TEXTS: &str = "SELECT title, body FROM contents WHERE number = ?";
/// Contents that may match a query without words: all.
const ALL: &str = "SELECT site, status, content_type, tags, credibility, id, words, number \
    FROM contents WHERE site = ?";
const CONTENT: &str = "SELECT content FROM contents WHERE number = ?";

/// A content that matches.
struct Match {
    number: i64,
    rank: Rank<String>,
}

/// A word of a query.
struct QueryWord {
    text: String,
    is_pair: bool,
    /// True if it may be the start of a word of the index.
    is_single: bool,
}

/// A word of the query that a content has, by its place in the query, and its weight there.
type Hit = (usize, u32);

/// A content with words of the query, before it is known how common these are.
struct Candidate {
    number: i64,
    hits: Vec<Hit>,
    facts: ContentFacts,
    norm: f64,
    is_in_title: bool,
    is_in_body: bool,
}

/// Searches.
///
/// # Errors
/// The database cannot be read, or the time was up.
pub(super) fn search(
    connection: &Connection,
    site: u64,
    query: &Query,
) -> Result<SearchResult, StoreError> {
    let text = tokenizer::fold(query.text.trim());
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
            .map(|content| Arc::new(content.into()))
    });
    Ok(SearchResult {
        items: items.collect::<Result<_, _>>()?,
        total,
    })
}

/// What a content must be like, and where it is.
struct SiteSearch<'q> {
    connection: &'q Connection,
    site: u64,
    query: &'q Query,
    /// Finds the query to the letter.
    finder: Finder<'q>,
}

impl SiteSearch<'_> {
    /// Returns the contents that have words of the query.
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
        // In how many published texts each word stands.
        let mut having = vec![0_u64; words.len()];
        let mut candidates = Vec::new();
        for (number, hits) in self.places(words)? {
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
            // What has the query to the letter has all its pairs.
            let found = hits.iter().filter(|(word, _)| is_pair(words, *word));
            let (is_in_title, is_in_body) = match found.count() == pairs {
                true => self.texts(number)?,
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

    /// Returns which words the contents of the site have, by their rows.
    fn places(&self, words: &[QueryWord]) -> Result<Vec<(i64, Vec<Hit>)>, StoreError> {
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
            .filter_map(|places| Some((places.first()?.0, hits(places))))
            .collect())
    }

    /// Returns the contents that have the query to the letter.
    fn exact(&self) -> Result<Vec<Match>, StoreError> {
        let mut all = self.connection.prepare_cached(ALL)?;
        let mut rows = all.query([self.site])?;
        let mut matches = Vec::new();
        while let Some(row) = rows.next()? {
            if !self.is_selected(row)? {
                continue;
            }
            let number = row.get(7)?;
            if self.texts(number)? != (false, false) {
                let rank = ContentFacts::of(row)?.rank(0.0);
                matches.push(Match { number, rank });
            }
        }
        Ok(matches)
    }

    /// Tells whether a content is of the kind that is asked for; the columns are those of [`FACTS`].
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
        let is_selected = |tag: &String| {
            self.query
                .tags
                .contains(&tokenizer::compose(tag).into_owned())
        };
        tags.iter().any(is_selected)
    }

    /// Tells whether the query stands to the letter in the title of a content, and in its text.
    fn texts(&self, number: i64) -> rusqlite::Result<(bool, bool)> {
        let mut texts = self.connection.prepare_cached(TEXTS)?;
        texts.query_row([number], |row| {
            let is_in = |column| {
                let text = row.get_ref(column)?.as_str()?;
                let found = self.finder.find(tokenizer::fold(text).as_bytes());
                Ok::<_, rusqlite::Error>(found.is_some())
            };
            Ok((is_in(0)?, is_in(1)?))
        })
    }
}

/// What is known of a content beside its texts.
struct ContentFacts {
    site: u64,
    is_published: bool,
    credibility: f64,
    id: String,
    /// How many it has in the index; nothing when it is not there.
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

    fn rank(self, score: f64) -> Rank<String> {
        Rank {
            score,
            credibility: self.credibility,
            id: self.id,
        }
    }
}

impl Candidate {
    /// Adds up what its words count for, in the order of the query.
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

/// Returns the words at places of one row: each once.
fn hits(places: &[(i64, Hit)]) -> Vec<Hit> {
    let mut hits: Vec<Hit> = Vec::new();
    for (_, (word, weight)) in places {
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

/// Returns the words of a text.
fn words_of(text: &str) -> Vec<QueryWord> {
    let mut all = Vec::new();
    tokenizer::each_word(text, &mut |word| {
        all.push(QueryWord {
            text: word.text.to_owned(),
            is_pair: word.is_pair,
            is_single: word.is_single,
        });
    });
    all
}
