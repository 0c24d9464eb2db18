//! The library beside the database, over random contents and queries.

use super::*;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::store::site::{Bundle, Content, Draft, SiteStore};
use crate::store::sqlite::SqliteSites;
use crate::store::sqlite::connection::open_to_read;
use crate::store::sqlite::site::searched;

/// What texts and queries are made of.
const PIECES: &[&str] = &[
    "严氏",
    "家训",
    "古井",
    "井",
    "水",
    "严",
    "氏家",
    "训诫",
    "村",
    "well",
    "Well",
    "WELL",
    "old",
    "s1",
    "s2",
    "7",
    "no 7",
    "%",
    "?",
    "。",
    ",",
    " ",
    "\n",
    "über",
    "Ü",
    "é\u{301}",
    "ぬ",
    "・",
    "ー",
    "ก็",
    "한국",
    "İ",
    "ς",
    "\u{9fff}",
    "\"",
    "*",
    "_",
];
const PLACES: [(&str, &str); 4] = [("t", "a"), ("t", "b"), ("u", "a"), ("u", "none")];

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % end
    }

    fn text(&mut self, pieces: usize) -> String {
        let count = self.below(pieces + 1);
        (0..count)
            .map(|_| PIECES[self.below(PIECES.len())])
            .collect()
    }

    fn content(&mut self, id: usize) -> Content {
        let content_type = ["story", "guide"][self.below(2)];
        let tags = &[self.text(1), "村".into()][..self.below(3)];
        let status = ["published", "published", "draft"][self.below(3)];
        let credibility = [0.5, 1.0][self.below(2)];
        serde_json::from_value(serde_json::json!({
            "id": format!("c{id}"),
            "content_type": content_type,
            "title": self.text(4),
            "summary": self.text(4),
            "body": self.text(30),
            "tags": tags,
            "status": status,
            "credibility_score": credibility,
        }))
        .unwrap()
    }

    fn query(&mut self) -> Query {
        Query {
            text: self.text(6),
            content_type: (self.below(4) == 0).then(|| "story".into()),
            tags: vec!["村".into(), "古井".into()][..[0, 0, 1, 2][self.below(4)]].to_vec(),
            status: ["published", "published", "draft"][self.below(3)].into(),
            limit: [1, 3, 10, 50][self.below(4)],
        }
    }
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

fn scope((tenant, site): (&str, &str)) -> Scope {
    Scope {
        tenant_id: tenant.into(),
        site_id: site.into(),
        deadline: later(),
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().unwrap().block_on(work)
}

/// Changes something, as an import, a tool or another program does.
fn change(random: &mut Random, sites: &SqliteSites, connection: &Connection) {
    let place = PLACES[random.below(3)];
    match random.below(4) {
        0 | 1 => {
            let count = random.below(30);
            let contents: Vec<Content> = (0..count).map(|id| random.content(id)).collect();
            let site = serde_json::json!({"tenant_id": place.0, "site_id": place.1, "name": "n"});
            let bundle = Bundle {
                site: serde_json::from_value(site).unwrap(),
                profiles: Vec::new(),
                prompts: Vec::new(),
                digest: format!("{contents:?}"),
                contents,
            };
            run(sites.import(bundle, later())).unwrap();
        }
        2 => {
            let draft = Draft {
                content: random.content(0),
                author: "ana".into(),
            };
            // There may be no such site yet.
            let _ = run(sites.add_draft(&scope(place), draft));
        }
        _ => {
            let sql = "UPDATE contents SET status = 'published' WHERE status = 'draft'";
            connection.execute(sql, ()).unwrap();
        }
    }
}

#[test]
fn the_library_finds_what_the_database_finds() {
    let seed = std::env::var("KARYI_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(0x9e37_79b9);
    println!("KARYI_SEED={seed}");
    let mut random = Random(seed | 1);
    let is_full = std::env::var_os("KARYI_FULL").is_some();
    let (rounds, queries) = if is_full { (400, 400) } else { (40, 100) };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("site.db");
    let sites = SqliteSites::open(&path).unwrap();
    let program = Connection::open(&path).unwrap();
    let (mut answered, mut found) = (0, 0);
    for _ in 0..rounds {
        change(&mut random, &sites, &program);
        let connection = open_to_read(&path).unwrap();
        let library = Library::read(&connection).unwrap().unwrap();
        for _ in 0..queries {
            let (scope, query) = (scope(PLACES[random.below(4)]), random.query());
            let expected = searched(&connection, &scope, &query).unwrap();
            let result = library.search(&scope, &query, usize::MAX);
            if result == Err(Unanswered::Unknown) {
                continue;
            }
            answered += 1;
            found += expected.items.len();
            assert_eq!(result, Ok(expected), "{query:?}");
        }
    }
    let asked = rounds * queries;
    assert!(
        answered > asked / 3 && found > asked / 2,
        "{answered} {found} of {asked}"
    );
}

/// Makes a library of some contents of one site.
fn library(contents: Vec<Content>) -> (tempfile::TempDir, SqliteSites, Library) {
    let (dir, sites, library) = imported(contents);
    (dir, sites, library.unwrap())
}

/// Does so; there is none when they are too large.
fn imported(contents: Vec<Content>) -> (tempfile::TempDir, SqliteSites, Option<Library>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("site.db");
    let sites = SqliteSites::open(&path).unwrap();
    let site = serde_json::json!({"tenant_id": "t", "site_id": "a", "name": "n"});
    let bundle = Bundle {
        site: serde_json::from_value(site).unwrap(),
        profiles: Vec::new(),
        prompts: Vec::new(),
        digest: "d".into(),
        contents,
    };
    run(sites.import(bundle, later())).unwrap();
    let library = Library::read(&open_to_read(&path).unwrap()).unwrap();
    (dir, sites, library)
}

fn content(id: &str, body: &str) -> Content {
    let content =
        serde_json::json!({"id": id, "content_type": "story", "title": "t", "body": body});
    serde_json::from_value(content).unwrap()
}

fn ask(text: &str) -> Query {
    Query {
        text: text.into(),
        status: "published".into(),
        limit: 10,
        ..Query::default()
    }
}

#[test]
fn a_long_search_is_left_to_others() {
    let contents = (0..200).map(|id| content(&format!("c{id}"), "古井 古水"));
    let (_dir, _sites, library) = library(contents.collect());
    let place = scope(("t", "a"));
    let long = |text: &str, steps| library.search(&place, &ask(text), steps).err();
    assert_eq!(long("古井", 1000), None);
    assert_eq!(long("古井", 100), Some(Unanswered::Long));
    assert_eq!(long(&"古井 ".repeat(20), 1000), Some(Unanswered::Long));
    assert_eq!(long("古", 1000), Some(Unanswered::Long));
    assert_eq!(long("한국어 ก็", usize::MAX), Some(Unanswered::Unknown));
}

#[test]
fn a_content_that_cannot_be_read_is_the_databases_to_tell() {
    let (dir, _sites, _) = library(vec![content("good", "古井"), content("bad", "古水")]);
    let program = Connection::open(dir.path().join("site.db")).unwrap();
    let sql = "UPDATE contents SET content = '{}' WHERE id = 'bad'";
    assert_eq!(program.execute(sql, ()), Ok(1));
    let library = Library::read(&program).unwrap().unwrap();
    let place = scope(("t", "a"));
    let found = library.search(&place, &ask("古井"), usize::MAX).unwrap();
    assert_eq!((found.items[0].id.as_str(), found.total), ("good", 1));
    let bad = library.search(&place, &ask("古水"), usize::MAX);
    assert_eq!(bad, Err(Unanswered::Unknown));
    assert!(searched(&program, &place, &ask("古水")).is_err());
}

#[test]
fn what_is_too_large_is_not_kept() {
    let mut room = Room(10);
    assert_eq!(
        [room.take(4), room.take(6), room.take(0), room.take(1)],
        [true, true, true, false]
    );
    let large = "x".repeat(limits::LIBRARY_BYTES / 4);
    let contents = (0..5).map(|id| content(&format!("c{id}"), &large));
    let (_dir, _sites, library) = imported(contents.collect());
    assert!(library.is_none());
}
