//! Search in the contents of one site.
//!
//! The index holds pairs of characters and words; the best match by bm25 comes first, and a text
//! that has the query to the letter counts for more. A query without words is looked for as it is.

use std::cmp::Ordering;
use std::fmt::Write;
use std::sync::Arc;

use memchr::memmem::Finder;
use rusqlite::{Connection, Row, ToSql};

use crate::store::site::{Content, Found, Query};
use crate::store::sqlite::site::parsed;
use crate::store::{StoreError, words};

/// Returns the word that stands for a site in the index.
pub(super) fn scope_word(site: u64) -> String {
    format!("s{site}")
}

/// What a word counts for in the columns of the index, in their order: the site, title, tags, body.
pub(super) const WEIGHTS: [u32; 4] = [0, 6, 3, 1];

/// Contents that may match: those with a word of the query, and how well. Neither sorted nor counted
/// by the database, which would need a table of its own for that.
const BY_WORDS: &str = "SELECT c.number, bm25(contents_words, 0.0, 6.0, 3.0, 1.0), c.site, c.status, \
    c.content_type, c.tags, c.credibility, c.id, c.title, c.body \
    FROM contents_words CROSS JOIN contents AS c ON c.number = contents_words.rowid \
    WHERE contents_words MATCH ?";
/// Contents that may match a query without words: all.
const ALL: &str = "SELECT number, 0.0, site, status, content_type, tags, credibility, id, title, body \
    FROM contents WHERE site = ?";
const CONTENT: &str = "SELECT content FROM contents WHERE number = ?";

/// A content that matches.
struct Match {
    number: i64,
    rank: Rank<String>,
}

/// The place of a match among others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rank<I> {
    /// The less the better.
    pub(super) score: f64,
    pub(super) credibility: f64,
    pub(super) id: I,
}

impl<I: AsRef<str>> Rank<I> {
    /// The best comes first.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let score = self.score.total_cmp(&other.score);
        let credibility = other.credibility.total_cmp(&self.credibility);
        score
            .then(credibility)
            .then_with(|| self.id.as_ref().cmp(other.id.as_ref()))
    }
}

/// Returns the score of a content that has the query to the letter in its title or its text.
pub(super) fn weighted(score: f64, is_in_title: bool, is_in_body: bool) -> f64 {
    let weight = |is_there: bool, weight: f64| if is_there { weight } else { 0.0 };
    score * (1.0 + weight(is_in_title, 1.0) + weight(is_in_body, 0.5))
}

/// Searches.
///
/// # Errors
/// The database cannot be read, or the time was up.
pub(super) fn search(
    connection: &Connection,
    site: u64,
    query: &Query,
) -> Result<Found, StoreError> {
    let text = query.text.trim().to_lowercase();
    let wanted = Wanted {
        site,
        query,
        has_letters: text.bytes().any(|byte| byte.is_ascii_lowercase()),
        finder: Finder::new(&text),
        is_exact: false,
    };
    let mut matches = match words_of(&query.text, &scope_word(site)) {
        Some(words) => matching(connection, &wanted, BY_WORDS, words)?,
        None => {
            let wanted = Wanted {
                is_exact: true,
                ..wanted
            };
            matching(connection, &wanted, ALL, site)?
        }
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
    Ok(Found {
        items: items.collect::<Result<_, _>>()?,
        total,
    })
}

/// What a content must be like.
struct Wanted<'q> {
    site: u64,
    query: &'q Query,
    /// Finds the query to the letter.
    finder: Finder<'q>,
    /// Whether case can make a difference.
    has_letters: bool,
    /// Whether only contents that have the query to the letter match.
    is_exact: bool,
}

fn matching(
    connection: &Connection,
    wanted: &Wanted<'_>,
    sql: &str,
    parameter: impl ToSql,
) -> Result<Vec<Match>, StoreError> {
    let mut candidates = connection.prepare_cached(sql)?;
    let mut rows = candidates.query([parameter])?;
    let mut matches = Vec::new();
    while let Some(row) = rows.next()? {
        matches.extend(wanted.look(row)?);
    }
    Ok(matches)
}

impl Wanted<'_> {
    /// Looks at one content, in the order of [`BY_WORDS`]; returns it when it matches.
    fn look(&self, row: &Row<'_>) -> rusqlite::Result<Option<Match>> {
        let query = self.query;
        let is_of_type = match &query.content_type {
            Some(wanted) => row.get_ref(4)?.as_str()? == wanted,
            None => true,
        };
        let is_wanted = row.get::<_, u64>(2)? == self.site
            && row.get_ref(3)?.as_str()? == query.status
            && is_of_type
            && (query.tags.is_empty() || self.has_tag(row.get_ref(5)?.as_str()?));
        if !is_wanted {
            return Ok(None);
        }
        let is_in_title = self.is_in(row.get_ref(8)?.as_bytes()?);
        let is_in_body = self.is_in(row.get_ref(9)?.as_bytes()?);
        if self.is_exact && !is_in_title && !is_in_body {
            return Ok(None);
        }
        Ok(Some(Match {
            number: row.get(0)?,
            rank: Rank {
                score: weighted(row.get(1)?, is_in_title, is_in_body),
                credibility: row.get(6)?,
                id: row.get(7)?,
            },
        }))
    }

    fn has_tag(&self, tags: &str) -> bool {
        let tags: Vec<String> = serde_json::from_str(tags).unwrap_or_default();
        tags.iter().any(|tag| self.query.tags.contains(tag))
    }

    fn is_in(&self, text: &[u8]) -> bool {
        match self.has_letters {
            true => self.finder.find(&text.to_ascii_lowercase()).is_some(),
            false => self.finder.find(text).is_some(),
        }
    }
}

/// Returns the query for the full-text index whose column `scope` must hold `scope`; nothing when the
/// text has no words.
fn words_of(text: &str, scope: &str) -> Option<String> {
    let mut words = String::new();
    words::each_word(text, &mut |word| {
        if !words.is_empty() {
            words.push_str(" OR ");
        }
        // Words hold letters and digits only, so no quote needs doubling.
        let star = if word.is_alone { "*" } else { "" };
        let _ = write!(words, "\"{}\"{star}", word.text);
    });
    (!words.is_empty()).then(|| format!("scope:\"{scope}\" AND {{title tags body}}:({words})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_asks_for_any_word_of_one_site() {
        let found = words_of("严氏 Well", "s7").unwrap();
        assert_eq!(
            found,
            "scope:\"s7\" AND {title tags body}:(\"严氏\" OR \"well\")"
        );
        assert_eq!(
            words_of("井", "s7").unwrap(),
            "scope:\"s7\" AND {title tags body}:(\"井\"*)"
        );
        assert_eq!(words_of("%", "s7"), None);
    }
}
