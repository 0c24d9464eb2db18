//! Search in the contents of one site.
//!
//! The index holds pairs of characters and words; the best match by bm25 comes first, and a text
//! that has the query to the letter counts for more. A query without words is looked for as it is.

use rusqlite::{Connection, Row, named_params};

use crate::store::site::{Found, Query};
use crate::store::sqlite::site::parsed;
use crate::store::{StoreError, words};

/// What both ways of searching filter by, and what they return.
const FILTER: &str = "AND c.site = :site AND c.status = :status \
    AND (:type IS NULL OR c.content_type = :type) \
    AND (:tags IS NULL OR EXISTS (SELECT 1 FROM json_each(c.tags) AS t JOIN json_each(:tags) AS w ON t.value = w.value))";

/// Returns the word that stands for a site in the index.
pub(super) fn scope_word(site: u64) -> String {
    format!("s{site}")
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
    let found = words::query(&query.text, &scope_word(site));
    let sql = match &found {
        Some(_) => format!(
            "WITH m AS MATERIALIZED (SELECT rowid AS number, bm25(contents_words, 0.0, 6.0, 3.0, 1.0) AS score \
            FROM contents_words WHERE contents_words MATCH :words) \
            SELECT c.content, count(*) OVER () FROM m JOIN contents AS c ON c.number = m.number \
            WHERE true {FILTER} ORDER BY m.score \
            * (1.0 + (instr(lower(c.title), :text) > 0) + 0.5 * (instr(lower(c.body), :text) > 0)), \
            c.credibility DESC, c.id LIMIT :limit"
        ),
        None => format!(
            "SELECT c.content, count(*) OVER () FROM contents AS c \
            WHERE (instr(lower(c.title), :text) OR instr(lower(c.body), :text)) \
            AND :words IS NULL {FILTER} ORDER BY c.credibility DESC, c.id LIMIT :limit"
        ),
    };
    let tags =
        (!query.tags.is_empty()).then(|| serde_json::Value::from(query.tags.clone()).to_string());
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(
        named_params! {
            ":words": found, ":site": site, ":status": query.status, ":type": query.content_type,
            ":tags": tags, ":text": query.text.trim().to_lowercase(), ":limit": query.limit,
        },
        |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?)),
    )?;
    let mut all = Found {
        items: Vec::new(),
        total: 0,
    };
    for row in rows {
        let (content, total) = row?;
        all.items.push(parsed(&content)?);
        all.total = total;
    }
    Ok(all)
}
