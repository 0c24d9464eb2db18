//! The index of words: what stands in it of a content, and writing it anew when texts are cut in
//! another way than they were.

use rusqlite::{Connection, TransactionBehavior};

use crate::store::site::Content;
use crate::store::sqlite::search;
use crate::store::{StoreError, words};

/// The step of the database that makes what says in which way its texts were cut. Before it there
/// was one.
pub(super) const STEP: &str = "
CREATE TABLE words_way (number INTEGER NOT NULL) STRICT;
INSERT INTO words_way VALUES (1);
";

/// Adds the words of a content to the index.
pub(super) fn add(
    connection: &Connection,
    row: i64,
    site: u64,
    content: &Content,
) -> Result<(), StoreError> {
    let summary = content.summary.as_deref().unwrap_or_default();
    let about = [
        content.tags.join(" "),
        content.domains.join(" "),
        summary.to_owned(),
    ]
    .join(" ");
    let sql = "INSERT INTO contents_words (rowid, scope, title, tags, body) VALUES (?, ?, ?, ?, ?)";
    connection.prepare_cached(sql)?.execute((
        row,
        search::scope_word(site),
        words::index_text(&content.title),
        words::index_text(&about),
        words::index_text(&content.body),
    ))?;
    Ok(())
}

/// Writes the index anew when it was written in another way.
pub(super) fn renew(connection: &mut Connection) -> Result<(), StoreError> {
    let immediate = TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(immediate)?;
    let way: u64 = transaction.query_row("SELECT number FROM words_way", (), |row| row.get(0))?;
    if way == words::WAY {
        return Ok(());
    }
    let sql = "INSERT INTO contents_words (contents_words) VALUES ('delete-all')";
    transaction.execute(sql, ())?;
    let mut all = transaction.prepare("SELECT number, site, content FROM contents")?;
    let mut rows = all.query(())?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(2)?;
        // What cannot be read is told by whoever asks for it.
        if let Ok(content) = serde_json::from_str(&text) {
            add(&transaction, row.get(0)?, row.get(1)?, &content)?;
        }
    }
    drop(rows);
    drop(all);
    transaction.execute("UPDATE words_way SET number = ?", [words::WAY])?;
    Ok(transaction.commit()?)
}
