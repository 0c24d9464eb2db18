//! Full-text index: writes the words of contents, finds occurrences, and rebuilds the index when the
//! tokenizer changed.
//!
//! Every indexed word is prefixed with the number of its site, which separates the words of different sites.

use rusqlite::{Connection, TransactionBehavior};

use crate::site::Content;
use crate::sqlite::score;
use crate::{StoreError, tokenizer};

/// Migration that records the tokenizer version of the index.
pub(super) const STEP: &str = "
CREATE TABLE words_way (number INTEGER NOT NULL) STRICT;
INSERT INTO words_way VALUES (1);
";

/// Migration that gives every site its own words. The FTS tokenizer takes each word as it is, and the facts
/// needed for ranking are found without reading texts.
pub(super) const SITE_WORDS_STEP: &str = "
DROP TABLE contents_words;
CREATE VIRTUAL TABLE contents_words USING fts5 (
  title, tags, body, content = '', contentless_delete = 1, tokenize = 'ascii'
);
ALTER TABLE contents ADD COLUMN words INTEGER;
CREATE INDEX contents_published ON contents (site, words) WHERE status = 'published';
CREATE INDEX contents_facts ON contents (number, site, status, content_type, tags, credibility, id, words);
UPDATE words_way SET number = 0;
";

/// Temporary table of all occurrences with row and column.
pub(super) const INSTANCES: &str = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.instances USING fts5vocab(main, contents_words, instance)";

/// Separates the number of a site from a word; no word contains it.
const AFTER_SITE: char = '\u{b7}';

/// Returns the prefix of all words of a site.
fn mark(site: u64) -> String {
    format!("{site}{AFTER_SITE}")
}

/// Words of a content in the form of the index.
pub(super) struct ContentWords {
    title: String,
    about: String,
    body: String,
    /// Number of words.
    pub(super) count: u64,
}

impl ContentWords {
    /// Tokenizes the texts of a content.
    pub(super) fn of(site: u64, content: &Content) -> Self {
        let mark = mark(site);
        let mut count = 0;
        let mut cut = |texts: &[&str]| {
            let mut words = String::new();
            for text in texts {
                count += tokenizer::index_text(text, &mark, &mut words);
            }
            words
        };
        let summary = content.summary.as_deref().unwrap_or_default();
        let lists = content.tags.iter().chain(&content.domains);
        let about: Vec<&str> = lists.map(String::as_str).chain([summary]).collect();
        Self {
            title: cut(&[&content.title]),
            about: cut(&about),
            body: cut(&[&content.body]),
            count,
        }
    }

    /// Inserts the words into the index, in the place of those of a row that another program removed.
    pub(super) fn add(&self, connection: &Connection, row: i64) -> Result<(), StoreError> {
        let sql =
            "INSERT OR REPLACE INTO contents_words (rowid, title, tags, body) VALUES (?, ?, ?, ?)";
        let texts = (row, &self.title, &self.about, &self.body);
        connection.prepare_cached(sql)?.execute(texts)?;
        Ok(())
    }
}

/// Passes every occurrence of a word in a site to `found`: the row, and the weight of its column. With
/// `may_be_start`, words that start with it count, too. Requires [`INSTANCES`].
///
/// # Errors
/// The database cannot be read, or the deadline passed.
pub(super) fn each_occurrence(
    connection: &Connection,
    site: u64,
    word: &str,
    may_be_start: bool,
    found: &mut dyn FnMut(i64, u32),
) -> Result<(), StoreError> {
    let first = mark(site) + word;
    let last = match may_be_start {
        true => format!("{first}{}", char::MAX),
        false => first.clone(),
    };
    let sql = "SELECT doc, col FROM temp.instances WHERE term >= ? AND term <= ?";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((first, last))?;
    while let Some(row) = rows.next()? {
        let column = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        found(row.get(0)?, score::weight(column));
    }
    Ok(())
}

/// Rebuilds the index if another version of the tokenizer wrote it.
pub(super) fn rebuild_if_outdated(connection: &mut Connection) -> Result<(), StoreError> {
    let immediate = TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(immediate)?;
    let way: u64 = transaction.query_row("SELECT number FROM words_way", (), |row| row.get(0))?;
    if way == tokenizer::VERSION {
        return Ok(());
    }
    let sql = "INSERT INTO contents_words (contents_words) VALUES ('delete-all')";
    transaction.execute(sql, ())?;
    let rows: Vec<i64> = transaction
        .prepare("SELECT number FROM contents")?
        .query_map((), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut content = transaction.prepare("SELECT site, content FROM contents WHERE number = ?")?;
    let mut note = transaction.prepare("UPDATE contents SET words = ? WHERE number = ?")?;
    for row in rows {
        let (site, text): (u64, String) =
            content.query_row([row], |row| Ok((row.get(0)?, row.get(1)?)))?;
        // An unreadable content is reported by whoever reads it.
        let words = serde_json::from_str(&text).ok();
        let words = words.map(|content| ContentWords::of(site, &content));
        note.execute((words.as_ref().map(|words| words.count), row))?;
        if let Some(words) = words {
            words.add(&transaction, row)?;
        }
    }
    drop((content, note));
    transaction.execute("UPDATE words_way SET number = ?", [tokenizer::VERSION])?;
    Ok(transaction.commit()?)
}
