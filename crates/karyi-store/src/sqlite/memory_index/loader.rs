//! Loads the memory index from the database.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rusqlite::{Connection, Row};

use crate::StoreError;
use crate::site::Content;
use crate::sqlite::json::parsed;
use crate::sqlite::memory_index::{
    FoldedText, IndexedContent, MemoryBudget, MemoryIndex, Posting, Site, Sites, Term,
};
use crate::sqlite::score::{self, PublishedStats};
use crate::sqlite::word_index::{self, INSTANCES};
use karyi_core::{limits, words};

const SITES: &str = "SELECT number, tenant_id, site_id FROM sites";
const SIZES: &str = "SELECT total(octet_length(content)) FROM contents";
const CONTENTS: &str = "SELECT number, site, id, status, content_type, tags, credibility, title, body, content, words \
    FROM contents ORDER BY site, number";
const PLACES: &str = "SELECT term, doc, col FROM temp.instances ORDER BY term";

impl MemoryIndex {
    /// Loads everything in one transaction; `None` when it exceeds the memory budget.
    ///
    /// # Errors
    /// The database cannot be read, or the deadline passed.
    pub(in crate::sqlite) fn read(connection: &Connection) -> Result<Option<Self>, StoreError> {
        let change_count =
            connection.query_row("SELECT number FROM revision", (), |row| row.get(0))?;
        let total: f64 = connection.query_row(SIZES, (), |row| row.get(0))?;
        #[allow(clippy::cast_precision_loss)]
        if total > limits::MEMORY_INDEX_BYTES as f64 {
            return Ok(None);
        }
        let mut reading = IndexLoader {
            budget: MemoryBudget::all(),
            numbers: HashMap::new(),
            sites: HashMap::new(),
            contents: Vec::new(),
            lengths: Vec::new(),
        };
        if !reading.contents(connection)? || !reading.terms(connection)? {
            return Ok(None);
        }
        reading.measure();
        let sites = reading.by_name(connection)?;
        let contents = reading.contents;
        Ok(Some(Self {
            change_count,
            sites,
            contents,
        }))
    }
}

struct IndexLoader {
    budget: MemoryBudget,
    /// Position of a row among the contents of its site.
    numbers: HashMap<i64, Posting>,
    /// Sites by number.
    sites: HashMap<u64, Site>,
    contents: Vec<IndexedContent>,
    /// Number of indexed words of each content.
    lengths: Vec<u64>,
}

impl IndexLoader {
    /// Loads all contents; returns false when the budget is exhausted.
    fn contents(&mut self, connection: &Connection) -> Result<bool, StoreError> {
        let mut statement = connection.prepare_cached(CONTENTS)?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            if !self.content(row)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn content(&mut self, row: &Row<'_>) -> Result<bool, StoreError> {
        let (number, site): (i64, u64) = (row.get(0)?, row.get(1)?);
        let words: Option<u64> = row.get(10)?;
        let (title, body, json) = (text(row, 7)?, text(row, 8)?, text(row, 9)?);
        let tags: Vec<String> = serde_json::from_str(text(row, 5)?).unwrap_or_default();
        let tags = tags.iter().map(|tag| words::compose(tag).into_owned());
        let content = parsed::<Content>(json).ok();
        // The folded text may differ, and the display form is cached, too.
        let bytes = title.len() + body.len() + 3 * json.len();
        if !self.budget.take(limits::MEMORY_INDEX_CONTENT_BYTES + bytes) {
            return Ok(false);
        }
        let entry = IndexedContent {
            id: text(row, 2)?.into(),
            status: text(row, 3)?.into(),
            content_type: text(row, 4)?.into(),
            tags: tags.collect(),
            credibility: row.get(6)?,
            title: folded(title, content.as_ref().map(|content| &content.title)),
            body: folded(body, content.as_ref().map(|content| &content.body)),
            norm: 0.0,
            is_indexed: words.is_some(),
            cached: content.map(|content| Arc::new(content.into())),
        };
        let is_published = words.is_some() && &*entry.status == "published";
        let posting = u32::try_from(self.contents.len()).unwrap_or(u32::MAX);
        let site = self.sites.entry(site).or_insert_with(|| Site::at(posting));
        site.contents.end = posting + 1;
        site.bytes += title.len() + body.len();
        if let Some(words) = words.filter(|_| is_published) {
            site.published.texts += 1;
            site.published.words += words;
        }
        let posting = Posting {
            content: posting - site.contents.start,
            weight: 0,
            is_published,
        };
        self.numbers.insert(number, posting);
        self.contents.push(entry);
        self.lengths.push(words.unwrap_or(0));
        Ok(true)
    }

    /// Loads all words; returns false when the budget is exhausted.
    fn terms(&mut self, connection: &Connection) -> Result<bool, StoreError> {
        connection.execute(INSTANCES, ())?;
        let mut statement = connection.prepare_cached(PLACES)?;
        let mut rows = statement.query(())?;
        let mut terms = TermCollector::default();
        while let Some(row) = rows.next()? {
            let (term, column) = (text(row, 0)?, text(row, 2)?);
            let Some(posting) = self.numbers.get(&row.get(1)?) else {
                continue;
            };
            let weight = score::weight(column);
            if !terms.add(term, Posting { weight, ..*posting }, &mut self.budget) {
                return Ok(false);
            }
        }
        for (site, terms) in terms.finish() {
            if let Some(site) = self.sites.get_mut(&site) {
                site.terms = terms;
            }
        }
        Ok(true)
    }

    fn measure(&mut self) {
        for site in self.sites.values() {
            let range = site.contents.start as usize..site.contents.end as usize;
            let entries = self.contents.get_mut(range.clone()).unwrap_or_default();
            let lengths = self.lengths.get(range).unwrap_or_default();
            for (entry, words) in entries.iter_mut().zip(lengths) {
                entry.norm = site.published.norm(*words);
            }
        }
    }

    fn by_name(&mut self, connection: &Connection) -> Result<Sites, StoreError> {
        let mut names = Sites::new();
        let mut statement = connection.prepare_cached(SITES)?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            if let Some(site) = self.sites.remove(&row.get(0)?) {
                let tenant = names.entry(row.get(1)?).or_default();
                tenant.insert(row.get(2)?, site);
            }
        }
        Ok(names)
    }
}

impl Site {
    /// Creates a site whose contents start at this position.
    fn at(posting: u32) -> Self {
        Self {
            contents: Range {
                start: posting,
                end: posting,
            },
            bytes: 0,
            published: PublishedStats::default(),
            terms: Vec::new(),
        }
    }
}

/// Collects words in byte order with their postings.
#[derive(Default)]
struct TermCollector {
    done: HashMap<u64, Vec<Term>>,
    term: String,
    postings: Vec<Posting>,
}

impl TermCollector {
    /// Adds one posting; returns false when the budget is exhausted.
    fn add(&mut self, term: &str, posting: Posting, budget: &mut MemoryBudget) -> bool {
        let mut bytes = 0;
        if self.term != term {
            self.close();
            term.clone_into(&mut self.term);
            bytes += limits::MEMORY_INDEX_WORD_BYTES + term.len();
        }
        match self.postings.last_mut() {
            // Postings of one row are adjacent.
            Some(last) if last.content == posting.content => last.weight += posting.weight,
            _ => {
                self.postings.push(posting);
                bytes += limits::MEMORY_INDEX_POSTING_BYTES;
            }
        }
        budget.take(bytes)
    }

    fn close(&mut self) {
        if let Some((site, word)) = word_index::split_term(&self.term) {
            self.postings
                .sort_unstable_by_key(|posting| posting.content);
            let (text, postings) = (word.into(), self.postings.as_slice().into());
            self.done
                .entry(site)
                .or_default()
                .push(Term { text, postings });
        }
        self.postings.clear();
    }

    fn finish(mut self) -> HashMap<u64, Vec<Term>> {
        self.close();
        self.done
    }
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<&'r str> {
    Ok(row.get_ref(column)?.as_str()?)
}

/// Returns the folded text if it differs from that of the content.
fn folded(text: &str, own: Option<&String>) -> FoldedText {
    let folded = words::fold(text);
    (own.is_none_or(|own| *own != *folded)).then(|| folded.into())
}
