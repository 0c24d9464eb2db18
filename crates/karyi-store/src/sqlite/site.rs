//! Data of sites in one SQLite file.
//!
//! Every statement names tenant and site, directly or by the number of the site, which is looked up in the
//! same transaction.

use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, OptionalExtension, Row, named_params};
use serde::de::DeserializeOwned;

use crate::site::{
    Bundle, Claim, Content, Draft, Event, Profile, Prompt, Query, RepeatKey, Scope, SearchResult,
    Site, SiteStore, WriteReceipt,
};
use crate::sqlite::connection::open_to_write;
use crate::sqlite::json::{parsed, text};
use crate::sqlite::readers::Readers;
use crate::sqlite::writer::Writer;
use crate::sqlite::{keys, search, word_index};
use crate::{Pending, StoreError};
use karyi_core::{ids, words};

const STEPS: &[&str] = &["
CREATE TABLE sites (
  number INTEGER PRIMARY KEY,
  tenant_id TEXT NOT NULL,
  site_id TEXT NOT NULL,
  site TEXT NOT NULL,
  digest TEXT NOT NULL,
  UNIQUE (tenant_id, site_id)
) STRICT;
CREATE TABLE npc_profiles (
  site INTEGER NOT NULL REFERENCES sites,
  npc_id TEXT NOT NULL,
  version INTEGER NOT NULL CHECK (version >= 1),
  active INTEGER NOT NULL,
  profile TEXT NOT NULL,
  PRIMARY KEY (site, npc_id, version)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX npc_profiles_active ON npc_profiles (site, npc_id) WHERE active;
CREATE TABLE npc_prompts (
  site INTEGER NOT NULL REFERENCES sites,
  npc_id TEXT NOT NULL,
  prompt_type TEXT NOT NULL,
  version INTEGER NOT NULL CHECK (version >= 1),
  active INTEGER NOT NULL,
  prompt TEXT NOT NULL,
  PRIMARY KEY (site, npc_id, prompt_type, version)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX npc_prompts_active ON npc_prompts (site, npc_id, prompt_type) WHERE active;
CREATE TABLE contents (
  number INTEGER PRIMARY KEY,
  site INTEGER NOT NULL REFERENCES sites,
  id TEXT NOT NULL,
  content_type TEXT NOT NULL,
  status TEXT NOT NULL,
  credibility REAL NOT NULL,
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  tags TEXT NOT NULL,
  content TEXT NOT NULL,
  imported INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  created_at TEXT NOT NULL,
  UNIQUE (site, id)
) STRICT;
CREATE INDEX contents_type ON contents (site, content_type, status);
CREATE VIRTUAL TABLE contents_words USING fts5 (
  scope, title, tags, body, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 0'
);
CREATE TABLE analytics_events (
  event_id TEXT PRIMARY KEY,
  site INTEGER NOT NULL REFERENCES sites,
  trace_id TEXT NOT NULL,
  session_id TEXT,
  user_id TEXT,
  event_type TEXT NOT NULL,
  event_data TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE repeat_keys (
  site INTEGER NOT NULL REFERENCES sites,
  principal TEXT NOT NULL,
  tool TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  answer BLOB,
  created_second INTEGER NOT NULL,
  PRIMARY KEY (site, principal, tool, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX repeat_keys_age ON repeat_keys (created_second);
", CHANGE_COUNT_STEP, word_index::STEP, word_index::SITE_WORDS_STEP, NO_CHANGE_COUNT_STEP];

/// Migration that counts changes of contents, for copies of them in memory.
const CHANGE_COUNT_STEP: &str = "
CREATE TABLE revision (number INTEGER NOT NULL) STRICT;
INSERT INTO revision VALUES (1);
CREATE TRIGGER contents_added AFTER INSERT ON contents BEGIN UPDATE revision SET number = number + 1; END;
CREATE TRIGGER contents_changed AFTER UPDATE ON contents BEGIN UPDATE revision SET number = number + 1; END;
CREATE TRIGGER contents_removed AFTER DELETE ON contents BEGIN UPDATE revision SET number = number + 1; END;
CREATE TRIGGER sites_added AFTER INSERT ON sites BEGIN UPDATE revision SET number = number + 1; END;
CREATE TRIGGER sites_changed AFTER UPDATE ON sites BEGIN UPDATE revision SET number = number + 1; END;
CREATE TRIGGER sites_removed AFTER DELETE ON sites BEGIN UPDATE revision SET number = number + 1; END;
";

/// Migration that removes the count: searches ask the database.
const NO_CHANGE_COUNT_STEP: &str = "
DROP TRIGGER IF EXISTS contents_added;
DROP TRIGGER IF EXISTS contents_changed;
DROP TRIGGER IF EXISTS contents_removed;
DROP TRIGGER IF EXISTS sites_added;
DROP TRIGGER IF EXISTS sites_changed;
DROP TRIGGER IF EXISTS sites_removed;
DROP TABLE revision;
";

/// Store of sites, open for reading and writing.
pub struct SqliteSites {
    writer: Writer,
    readers: Readers,
}

impl SqliteSites {
    /// Opens the database in `path` and creates it if needed.
    ///
    /// # Errors
    /// The file cannot be opened or is something else.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let mut connection = open_to_write(path, STEPS)?;
        word_index::rebuild_if_outdated(&mut connection)?;
        Ok(Self {
            writer: Writer::start(connection)?,
            readers: Readers::start(path.to_owned())?,
        })
    }

    fn read<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Connection, &Scope) -> Result<T, StoreError> + Send + 'static,
    ) -> Pending<'_, T> {
        let scope = scope.clone();
        Box::pin(
            self.readers
                .read(scope.deadline, move |connection| work(connection, &scope)),
        )
    }

    fn write<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&Connection, u64) -> Result<T, StoreError> + Send + 'static,
    ) -> Pending<'_, T> {
        let scope = scope.clone();
        Box::pin(self.writer.write(scope.deadline, move |connection| {
            let site = number(connection, &scope)?.ok_or_else(|| unknown(&scope))?;
            work(connection, site)
        }))
    }
}

impl SiteStore for SqliteSites {
    fn import(&self, bundle: Bundle, deadline: Instant) -> Pending<'_, bool> {
        Box::pin(
            self.writer
                .write(deadline, move |connection| import(connection, &bundle)),
        )
    }

    fn probe(&self, deadline: Instant) -> Pending<'_, ()> {
        let read = self.readers.read(deadline, |connection| {
            let sql = "SELECT count(*) FROM (SELECT 1 FROM sites LIMIT 1)";
            Ok(connection.prepare_cached(sql)?.query_row((), |_| Ok(()))?)
        });
        Box::pin(async move {
            read.await?;
            // Beginning a write shows whether another program holds the lock.
            self.writer.write(deadline, |_| Ok(())).await
        })
    }

    fn site(&self, scope: &Scope) -> Pending<'_, Option<Site>> {
        self.read(scope, |connection, scope| {
            let sql = "SELECT site FROM sites WHERE tenant_id = :tenant AND site_id = :site";
            let parameters = named_params! {":tenant": &*scope.tenant_id, ":site": &*scope.site_id};
            one(connection, sql, parameters)
        })
    }

    fn profile(
        &self,
        scope: &Scope,
        npc_id: &str,
        version: Option<u32>,
    ) -> Pending<'_, Option<Profile>> {
        let npc_id = npc_id.to_owned();
        self.read(scope, move |connection, scope| {
            let sql = "SELECT profile FROM npc_profiles JOIN sites ON sites.number = npc_profiles.site \
                WHERE tenant_id = :tenant AND site_id = :site AND npc_id = :npc \
                AND (version = :version OR (:version IS NULL AND active))";
            let parameters = named_params! {
                ":tenant": &*scope.tenant_id, ":site": &*scope.site_id, ":npc": npc_id, ":version": version,
            };
            one(connection, sql, parameters)
        })
    }

    fn prompt(
        &self,
        scope: &Scope,
        npc_id: &str,
        prompt_type: &str,
    ) -> Pending<'_, Option<Prompt>> {
        let (npc_id, prompt_type) = (npc_id.to_owned(), prompt_type.to_owned());
        self.read(scope, move |connection, scope| {
            let sql = "SELECT prompt FROM npc_prompts JOIN sites ON sites.number = npc_prompts.site \
                WHERE tenant_id = :tenant AND site_id = :site AND npc_id = :npc \
                AND prompt_type = :type AND active";
            let parameters = named_params! {
                ":tenant": &*scope.tenant_id, ":site": &*scope.site_id, ":npc": npc_id, ":type": prompt_type,
            };
            one(connection, sql, parameters)
        })
    }

    fn search(&self, scope: &Scope, mut query: Query) -> Pending<'_, SearchResult> {
        for tag in &mut query.tags {
            *tag = words::compose(tag).into_owned();
        }
        self.read(scope, move |connection, scope| {
            search_contents(connection, scope, &query)
        })
    }

    fn of_type(&self, scope: &Scope, content_type: &str) -> Pending<'_, Vec<Content>> {
        let content_type = content_type.to_owned();
        self.read(scope, move |connection, scope| {
            let sql = "SELECT content FROM contents JOIN sites ON sites.number = contents.site \
                WHERE tenant_id = :tenant AND site_id = :site AND content_type = :type \
                AND status = 'published' ORDER BY contents.number";
            let parameters = named_params! {
                ":tenant": &*scope.tenant_id, ":site": &*scope.site_id, ":type": content_type,
            };
            let mut statement = connection.prepare_cached(sql)?;
            let texts = statement.query_map(parameters, |row| row.get::<_, String>(0))?;
            texts.map(|text| parsed(&text?)).collect()
        })
    }

    fn add_draft(&self, scope: &Scope, draft: Draft) -> Pending<'_, WriteReceipt> {
        self.write(scope, move |connection, site| {
            let written = WriteReceipt {
                id: ids::new_id()?,
                at: ids::now(),
            };
            let content = Content {
                id: written.id.clone(),
                status: "draft".into(),
                ..draft.content
            };
            let row = ContentRow {
                content: &content,
                author: &draft.author,
                at: &written.at,
                imported: false,
            };
            insert_content(connection, site, &row)?;
            Ok(written)
        })
    }

    fn log_event(&self, scope: &Scope, event: Event) -> Pending<'_, WriteReceipt> {
        self.write(scope, move |connection, site| {
            let written = WriteReceipt { id: ids::new_id()?, at: ids::now() };
            let sql = "INSERT INTO analytics_events \
                (event_id, site, trace_id, session_id, user_id, event_type, event_data, created_at) \
                VALUES (:id, :site, :trace, :session, :user, :type, :data, :at)";
            connection.prepare_cached(sql)?.execute(named_params! {
                ":id": written.id, ":site": site, ":trace": event.trace_id, ":session": event.session_id,
                ":user": event.user_id, ":type": event.event_type, ":data": text(&event.data)?, ":at": written.at,
            })?;
            Ok(written)
        })
    }

    fn claim(&self, scope: &Scope, key: RepeatKey) -> Pending<'_, Claim> {
        self.write(scope, move |connection, site| {
            keys::claim(connection, site, &key)
        })
    }

    fn answer(&self, scope: &Scope, key: RepeatKey, answer: Vec<u8>) -> Pending<'_, ()> {
        self.write(scope, move |connection, site| {
            keys::answer(connection, site, &key, &answer)
        })
    }

    fn release(&self, scope: &Scope, key: RepeatKey) -> Pending<'_, ()> {
        self.write(scope, move |connection, site| {
            keys::release(connection, site, &key)
        })
    }
}

/// Searches the contents of one site in the database.
///
/// # Errors
/// The database cannot be read, or the deadline passed.
pub(super) fn search_contents(
    connection: &Connection,
    scope: &Scope,
    query: &Query,
) -> Result<SearchResult, StoreError> {
    match number(connection, scope)? {
        None => Ok(SearchResult {
            items: Vec::new(),
            total: 0,
        }),
        Some(site) => search::search(connection, site, query),
    }
}

fn unknown(scope: &Scope) -> StoreError {
    StoreError::Conflict(format!(
        "there is no site {} of tenant {}",
        scope.site_id, scope.tenant_id
    ))
}

fn number(connection: &Connection, scope: &Scope) -> Result<Option<u64>, StoreError> {
    let sql = "SELECT number FROM sites WHERE tenant_id = ? AND site_id = ?";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement
        .query_row((&*scope.tenant_id, &*scope.site_id), |row| row.get(0))
        .optional()?)
}

/// Reads the single value that a statement selects.
fn one<T: DeserializeOwned>(
    connection: &Connection,
    sql: &str,
    parameters: &[(&str, &dyn rusqlite::ToSql)],
) -> Result<Option<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let found: Option<String> = statement
        .query_row(parameters, |row: &Row<'_>| row.get(0))
        .optional()?;
    found.map(|text| parsed(&text)).transpose()
}

/// Content with its origin.
struct ContentRow<'a> {
    content: &'a Content,
    author: &'a str,
    at: &'a str,
    imported: bool,
}

fn insert_content(
    connection: &Connection,
    site: u64,
    row: &ContentRow<'_>,
) -> Result<(), StoreError> {
    let content = row.content;
    let words = word_index::ContentWords::of(site, content);
    let sql = "INSERT INTO contents (site, id, content_type, status, credibility, title, body, tags, content, \
        imported, created_by, created_at, words) \
        VALUES (:site, :id, :type, :status, :credibility, :title, :body, :tags, :content, :imported, :by, :at, \
        :words)";
    connection.prepare_cached(sql)?.execute(named_params! {
        ":site": site, ":id": content.id, ":type": content.content_type, ":status": content.status,
        ":credibility": content.credibility_score, ":title": content.title, ":body": content.body,
        ":tags": text(&content.tags)?, ":content": text(content)?, ":imported": row.imported,
        ":by": row.author, ":at": row.at, ":words": words.count,
    })?;
    words.add(connection, connection.last_insert_rowid())
}

fn import(connection: &Connection, bundle: &Bundle) -> Result<bool, StoreError> {
    let site = &bundle.site;
    let known = connection
        .prepare_cached("SELECT digest FROM sites WHERE tenant_id = ? AND site_id = ?")?
        .query_row((&site.tenant_id, &site.site_id), |row| {
            row.get::<_, String>(0)
        })
        .optional()?;
    if known.as_ref() == Some(&bundle.digest) {
        return Ok(false);
    }
    let sql = "INSERT INTO sites (tenant_id, site_id, site, digest) VALUES (?, ?, ?, ?) \
        ON CONFLICT (tenant_id, site_id) DO UPDATE SET site = excluded.site, digest = excluded.digest \
        RETURNING number";
    let number: u64 = connection.prepare_cached(sql)?.query_row(
        (&site.tenant_id, &site.site_id, text(site)?, &bundle.digest),
        |row| row.get(0),
    )?;
    clear(connection, number)?;
    fill(connection, number, bundle)?;
    Ok(true)
}

fn clear(connection: &Connection, site: u64) -> Result<(), StoreError> {
    let words = "DELETE FROM contents_words WHERE rowid IN \
        (SELECT number FROM contents WHERE site = ? AND imported)";
    for sql in [
        words,
        "DELETE FROM contents WHERE site = ? AND imported",
        "DELETE FROM npc_profiles WHERE site = ?",
        "DELETE FROM npc_prompts WHERE site = ?",
    ] {
        connection.execute(sql, [site])?;
    }
    Ok(())
}

fn fill(connection: &Connection, site: u64, bundle: &Bundle) -> Result<(), StoreError> {
    for profile in &bundle.profiles {
        let sql = "INSERT INTO npc_profiles (site, npc_id, version, active, profile) VALUES (?, ?, ?, ?, ?)";
        let row = (
            site,
            &profile.npc_id,
            profile.version,
            profile.active,
            text(profile)?,
        );
        connection.prepare_cached(sql)?.execute(row)?;
    }
    for prompt in &bundle.prompts {
        let sql = "INSERT INTO npc_prompts (site, npc_id, prompt_type, version, active, prompt) \
            VALUES (?, ?, ?, ?, ?, ?)";
        let row = (
            site,
            &prompt.npc_id,
            &prompt.prompt_type,
            prompt.version,
            prompt.active,
            text(prompt)?,
        );
        connection.prepare_cached(sql)?.execute(row)?;
    }
    let at = ids::now();
    for content in &bundle.contents {
        insert_content(
            connection,
            site,
            &ContentRow {
                content,
                author: "import",
                at: &at,
                imported: true,
            },
        )?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "site/tests.rs"]
mod tests;
