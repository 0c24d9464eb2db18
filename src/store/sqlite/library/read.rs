//! Reading the library out of the database.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rusqlite::{Connection, Row};

use crate::limits;
use crate::store::StoreError;
use crate::store::site::Content;
use crate::store::sqlite::library::{
    B, Held, K1, Library, Lowered, Place, Room, Site, Sites, Term,
};
use crate::store::sqlite::search::{WEIGHTS, scope_word};
use crate::store::sqlite::site::parsed;

const SITES: &str = "SELECT number, tenant_id, site_id FROM sites";
const SIZES: &str = "SELECT total(octet_length(content)) FROM contents";
const CONTENTS: &str = "SELECT number, site, id, status, content_type, tags, credibility, title, body, content \
    FROM contents ORDER BY site, number";
/// Every place where a word stands, as the index of the database has it.
const INSTANCES: &str = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.instances USING fts5vocab(main, contents_words, instance)";
const PLACES: &str = "SELECT term, doc, col FROM temp.instances ORDER BY term";
/// The columns of the index, in its order.
const COLUMNS: [&str; 4] = ["scope", "title", "tags", "body"];
/// How many contents are indexed and how many words their columns have: what bm25 reckons with.
const TOTALS: &str = "SELECT block FROM contents_words_data WHERE id = 1";

impl Library {
    /// Reads everything, inside of one transaction; nothing when there is more than there is room for.
    ///
    /// # Errors
    /// The database cannot be read, or the time was up.
    pub(in crate::store::sqlite) fn read(
        connection: &Connection,
    ) -> Result<Option<Self>, StoreError> {
        let revision = connection.query_row("SELECT number FROM revision", (), |row| row.get(0))?;
        let total: f64 = connection.query_row(SIZES, (), |row| row.get(0))?;
        #[allow(clippy::cast_precision_loss)]
        if total > limits::LIBRARY_BYTES as f64 {
            return Ok(None);
        }
        let mut reading = Reading {
            room: Room::all(),
            numbers: HashMap::new(),
            orphans: 0,
            sites: HashMap::new(),
            contents: Vec::new(),
            lengths: Vec::new(),
        };
        let Some(terms) = reading.all(connection)? else {
            return Ok(None);
        };
        let (rows, words) = totals(connection)?;
        reading.measure(rows, words);
        let sites = reading.by_name(connection)?;
        let contents = reading.contents;
        Ok(Some(Self {
            revision,
            sites,
            contents,
            rows,
            terms,
        }))
    }
}

struct Reading {
    room: Room,
    /// Which content a row is.
    numbers: HashMap<i64, u32>,
    /// Rows of the index without a content: they count for how rare a word is.
    orphans: u32,
    /// The contents of a site, by its number.
    sites: HashMap<u64, Site>,
    contents: Vec<Held>,
    /// How many words each content has in the index.
    lengths: Vec<u32>,
}

impl Reading {
    /// Reads contents and words; nothing when there is no room left.
    fn all(&mut self, connection: &Connection) -> Result<Option<Vec<Term>>, StoreError> {
        let mut statement = connection.prepare_cached(CONTENTS)?;
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            if !self.content(row)? {
                return Ok(None);
            }
        }
        self.lengths = vec![0; self.contents.len()];
        connection.execute(INSTANCES, ())?;
        self.terms(connection)
    }

    fn content(&mut self, row: &Row<'_>) -> Result<bool, StoreError> {
        let (number, site): (i64, u64) = (row.get(0)?, row.get(1)?);
        let (title, body, json) = (text(row, 7)?, text(row, 8)?, text(row, 9)?);
        let tags = serde_json::from_str(text(row, 5)?).unwrap_or_default();
        let content = parsed::<Content>(json).ok();
        // Its texts for the search may differ, and how it is shown is kept too.
        let bytes = title.len() + body.len() + 3 * json.len();
        if !self.room.take(limits::LIBRARY_CONTENT_BYTES + bytes) {
            return Ok(false);
        }
        let held = Held {
            id: text(row, 2)?.into(),
            status: text(row, 3)?.into(),
            content_type: text(row, 4)?.into(),
            tags,
            credibility: row.get(6)?,
            title: lowered(title, content.as_ref().map(|content| &content.title)),
            body: lowered(body, content.as_ref().map(|content| &content.body)),
            norm: 0.0,
            is_indexed: false,
            kept: content.map(|content| Arc::new(content.into())),
        };
        let place = u32::try_from(self.contents.len()).unwrap_or(u32::MAX);
        let site = self.sites.entry(site).or_insert_with(|| Site {
            contents: Range {
                start: place,
                end: place,
            },
            bytes: 0,
        });
        site.contents.end = place + 1;
        site.bytes += title.len() + body.len();
        self.numbers.insert(number, place);
        self.contents.push(held);
        Ok(true)
    }

    fn terms(&mut self, connection: &Connection) -> Result<Option<Vec<Term>>, StoreError> {
        let scopes = self
            .sites
            .iter()
            .map(|(number, site)| (scope_word(*number), site.contents.clone()));
        let scopes: HashMap<String, Range<u32>> = scopes.collect();
        let mut statement = connection.prepare_cached(PLACES)?;
        let mut rows = statement.query(())?;
        let mut terms = Terms::default();
        while let Some(row) = rows.next()? {
            let (word, column) = (text(row, 0)?, text(row, 2)?);
            let content = self.number(row.get(1)?);
            if let Some(length) = self.lengths.get_mut(content as usize) {
                *length += 1;
            }
            if column == COLUMNS[0] {
                let is_of_site = scopes.get(word).is_some_and(|site| site.contains(&content));
                if is_of_site && let Some(held) = self.contents.get_mut(content as usize) {
                    held.is_indexed = true;
                }
            } else if !terms.add(word, content, weight(column), &mut self.room) {
                return Ok(None);
            }
        }
        Ok(Some(terms.finish()))
    }

    /// Returns which content a row of the index is; one without content has a number after all others.
    fn number(&mut self, row: i64) -> u32 {
        let after = u32::try_from(self.contents.len()).unwrap_or(u32::MAX);
        let orphans = &mut self.orphans;
        *self.numbers.entry(row).or_insert_with(|| {
            *orphans += 1;
            after.saturating_add(*orphans)
        })
    }

    #[allow(clippy::cast_precision_loss)]
    fn measure(&mut self, rows: i64, words: i64) {
        let average = words as f64 / rows as f64;
        for (held, length) in self.contents.iter_mut().zip(&self.lengths) {
            held.norm = K1 * (1.0 - B + B * f64::from(*length) / average);
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

/// Words as they are read: by their bytes, each with the rows it stands in.
#[derive(Default)]
struct Terms {
    done: Vec<Term>,
    word: String,
    places: Vec<Place>,
}

impl Terms {
    /// Adds one place; false when there is no room for it.
    fn add(&mut self, word: &str, content: u32, weight: u32, room: &mut Room) -> bool {
        let mut bytes = 0;
        if self.word != word {
            self.close();
            word.clone_into(&mut self.word);
            bytes += limits::LIBRARY_WORD_BYTES + word.len();
        }
        match self.places.last_mut() {
            // The places of a row come one after another.
            Some(last) if last.content == content => last.weight += weight,
            _ => {
                self.places.push(Place { content, weight });
                bytes += limits::LIBRARY_PLACE_BYTES;
            }
        }
        room.take(bytes)
    }

    fn close(&mut self) {
        if self.places.is_empty() {
            return;
        }
        self.places.sort_unstable_by_key(|place| place.content);
        let text = self.word.as_str().into();
        let places = self.places.as_slice().into();
        self.done.push(Term { text, places });
        self.places.clear();
    }

    fn finish(mut self) -> Vec<Term> {
        self.close();
        self.done
    }
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<&'r str> {
    Ok(row.get_ref(column)?.as_str()?)
}

fn weight(column: &str) -> u32 {
    let place = COLUMNS.iter().position(|name| *name == column);
    place
        .and_then(|place| WEIGHTS.get(place))
        .copied()
        .unwrap_or(0)
}

/// Returns a text without capitals of ASCII, unless it is just that of the content.
fn lowered(text: &str, own: Option<&String>) -> Lowered {
    let has_capitals = text.bytes().any(|byte| byte.is_ascii_uppercase());
    (has_capitals || own.is_none_or(|own| own != text)).then(|| text.to_ascii_lowercase().into())
}

/// Returns how many contents the index has, and how many words.
fn totals(connection: &Connection) -> Result<(i64, i64), StoreError> {
    let block: Vec<u8> = connection.query_row(TOTALS, (), |row| row.get(0))?;
    let mut rest = block.as_slice();
    let rows = number(&mut rest);
    let mut words = 0;
    while !rest.is_empty() {
        words += number(&mut rest);
    }
    Ok((rows, words))
}

/// Takes a number of SQLite's variable length off the start: seven bits a byte, the highest first; a
/// ninth byte has eight.
fn number(bytes: &mut &[u8]) -> i64 {
    let mut number: u64 = 0;
    for place in 0..9 {
        let Some((byte, rest)) = bytes.split_first() else {
            break;
        };
        *bytes = rest;
        if place == 8 {
            number = number << 8 | u64::from(*byte);
            break;
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if *byte < 0x80 {
            break;
        }
    }
    number.cast_signed()
}
