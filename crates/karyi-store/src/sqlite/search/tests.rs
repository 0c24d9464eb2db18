//! The search compared with a scan of all contents, over random contents and queries.

use super::*;
use std::time::{Duration, Instant};

use crate::site::{Bundle, Draft, Scope, SiteStore};
use crate::sqlite::SqliteSites;
use crate::sqlite::connection::open_to_read;
use crate::sqlite::site::search_contents;
use crate::tokenizer;

/// Fragments of texts and queries.
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

/// Pseudo-random numbers.
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

/// Makes a change, like an import, a tool or another program.
fn change(random: &mut Random, sites: &SqliteSites, connection: &Connection) {
    let place = PLACES[random.below(3)];
    match random.below(4) {
        0 | 1 => {
            let count = random.below(30);
            let contents: Vec<Content> = (0..count).map(|id| random.content(id)).collect();
            run(sites.import(bundle(place, contents), later())).unwrap();
        }
        2 => {
            let draft = Draft {
                content: random.content(0),
                author: "ana".into(),
            };
            // The site may not exist yet.
            let _ = run(sites.add_draft(&scope(place), draft));
        }
        _ => {
            let sql = "UPDATE contents SET status = 'published' WHERE status = 'draft'";
            connection.execute(sql, ()).unwrap();
        }
    }
}

#[test]
fn the_search_finds_what_a_scan_finds() {
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
    let mut found = 0;
    for _ in 0..rounds {
        change(&mut random, &sites, &program);
        let connection = open_to_read(&path).unwrap();
        for _ in 0..queries {
            let (scope, query) = (scope(PLACES[random.below(4)]), random.query());
            let result = search_contents(&connection, &scope, &query).unwrap();
            found += result.items.len();
            assert_eq!(
                (ids(&result), result.total),
                plain(&connection, &scope, &query),
                "{query:?}"
            );
        }
    }
    let searches = rounds * queries;
    assert!(found > searches / 2, "{found} of {searches}");
}

fn ids(found: &SearchResult) -> Vec<String> {
    found.items.iter().map(|item| item.id.clone()).collect()
}

/// Returns the words of a text as they are indexed.
fn words_of(text: &str) -> Vec<String> {
    let mut words = String::new();
    tokenizer::index_text(text, "", &mut words);
    words.split_whitespace().map(str::to_owned).collect()
}

/// A content with its status and its words by column.
type ReferenceContent = (Content, String, [Vec<String>; 3]);

fn known(connection: &Connection, scope: &Scope) -> Vec<ReferenceContent> {
    let sql = "SELECT content, contents.status FROM contents JOIN sites ON sites.number = contents.site \
        WHERE tenant_id = ? AND site_id = ?";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map((&*scope.tenant_id, &*scope.site_id), |row| {
        Ok((row.get::<_, String>(0)?, row.get(1)?))
    });
    rows.unwrap()
        .map(|row| {
            let (text, status) = row.unwrap();
            let content: Content = serde_json::from_str(&text).unwrap();
            let tags = content.tags.join(" ") + " ";
            let about = tags + content.summary.as_deref().unwrap_or_default();
            let words = [&content.title, &about, &content.body].map(|text| words_of(text));
            (content, status, words)
        })
        .collect()
}

/// Returns the weighted count of a word in a content.
fn often(words: &[Vec<String>; 3], is_it: &dyn Fn(&str) -> bool) -> f64 {
    let count = |words: &Vec<String>| words.iter().filter(|word| is_it(word)).count() as f64;
    6.0 * count(&words[0]) + 3.0 * count(&words[1]) + count(&words[2])
}

/// Searches by scanning all contents of the site, as a reference.
fn plain(connection: &Connection, scope: &Scope, query: &Query) -> (Vec<String>, u64) {
    let known = known(connection, scope);
    let length = |words: &[Vec<String>; 3]| words.iter().map(Vec::len).sum::<usize>() as f64;
    let published: Vec<&ReferenceContent> = known
        .iter()
        .filter(|known| known.1 == "published")
        .collect();
    let all: f64 = published.iter().map(|known| length(&known.2)).sum();
    let mut words_of_query: Vec<(String, bool)> = Vec::new();
    words::each_word(&query.text, &mut |word| {
        words_of_query.push((word.text.to_owned(), word.is_single));
    });
    let text = words::fold(query.text.trim()).into_owned();
    let mut matches: Vec<Rank> = Vec::new();
    for (content, status, words) in &known {
        let has = |text: &str, part: &str| words::fold(text).contains(part);
        let exact = [has(&content.title, &text), has(&content.body, &text)];
        let average = if all == 0.0 {
            length(words).max(1.0)
        } else {
            all / published.len() as f64
        };
        let norm = 1.2 * (1.0 - 0.75 + 0.75 * length(words) / average);
        let (mut score, mut is_match) = (0.0, words_of_query.is_empty() && exact != [false; 2]);
        for (word, is_start) in &words_of_query {
            let is_it = |other: &str| other == word || *is_start && other.starts_with(word);
            let having = published
                .iter()
                .filter(|known| often(&known.2, &is_it) > 0.0);
            let having = having.count() as f64;
            let idf = ((published.len() as f64 - having + 0.5) / (having + 0.5)).ln();
            let often = often(words, &is_it);
            let idf = if idf <= 0.0 { 1e-6 } else { idf };
            score += idf * ((often * (1.2 + 1.0)) / (often + norm));
            is_match |= often > 0.0;
        }
        let weight = [1.0, 0.5]
            .into_iter()
            .zip(exact)
            .map(|(weight, is)| if is { weight } else { 0.0 });
        let should_load = *status == query.status
            && query
                .content_type
                .as_ref()
                .is_none_or(|wanted| *wanted == content.content_type)
            && (query.tags.is_empty() || content.tags.iter().any(|tag| query.tags.contains(tag)));
        if is_match && should_load {
            matches.push(Rank {
                score: score * weight.fold(1.0, |sum, weight| sum + weight),
                credibility: content.credibility_score,
                id: content.id.clone(),
            });
        }
    }
    matches.sort_by(Rank::order);
    let total = matches.len() as u64;
    let best = matches.into_iter().take(query.limit as usize);
    (best.map(|found| found.id).collect(), total)
}

/// Drafts of callers and data of other tenants do not influence the order.
#[test]
fn the_order_depends_only_on_published_texts_of_the_site() {
    let mut random = Random(77);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("site.db");
    let sites = SqliteSites::open(&path).unwrap();
    let own: Vec<Content> = (0..30).map(|id| random.content(id)).collect();
    let import = |place: (&str, &str), contents: Vec<Content>| {
        run(sites.import(bundle(place, contents), later())).unwrap();
    };
    import(("t", "a"), own);
    import(("u", "a"), vec![random.content(0)]);
    let queries: Vec<Query> = (0..200)
        .map(|_| Query {
            status: "published".into(),
            ..random.query()
        })
        .collect();
    let found = || -> Vec<SearchResult> {
        let connection = open_to_read(&path).unwrap();
        let place = scope(("t", "a"));
        let found = queries
            .iter()
            .map(|query| search_contents(&connection, &place, query));
        found.map(Result::unwrap).collect()
    };
    let before = found();
    import(("u", "a"), (0..60).map(|id| random.content(id)).collect());
    import(("t", "b"), (0..60).map(|id| random.content(id)).collect());
    for place in [("t", "a"), ("u", "a")] {
        for _ in 0..30 {
            let draft = Draft {
                content: random.content(0),
                author: "ana".into(),
            };
            run(sites.add_draft(&scope(place), draft)).unwrap();
        }
    }
    assert!(before == found());
}

fn bundle((tenant, site): (&str, &str), contents: Vec<Content>) -> Bundle {
    let site = serde_json::json!({"tenant_id": tenant, "site_id": site, "name": "n"});
    Bundle {
        site: serde_json::from_value(site).unwrap(),
        profiles: Vec::new(),
        prompts: Vec::new(),
        digest: format!("{contents:?}"),
        contents,
    }
}

#[test]
fn unreadable_contents_are_reported_when_they_are_found() {
    let content = |id: &str, body: &str| -> Content {
        let content =
            serde_json::json!({"id": id, "content_type": "story", "title": "t", "body": body});
        serde_json::from_value(content).unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("site.db");
    let sites = SqliteSites::open(&path).unwrap();
    let contents = vec![content("good", "古井"), content("bad", "古水")];
    run(sites.import(bundle(("t", "a"), contents), later())).unwrap();
    let program = Connection::open(&path).unwrap();
    let sql = "UPDATE contents SET content = '{}' WHERE id = 'bad'";
    assert_eq!(program.execute(sql, ()), Ok(1));
    let ask = |text: &str| {
        let query = Query {
            text: text.into(),
            status: "published".into(),
            limit: 10,
            ..Query::default()
        };
        run(sites.search(&scope(("t", "a")), query))
    };
    let found = ask("古井").unwrap();
    assert_eq!((ids(&found), found.total), (vec!["good".to_owned()], 1));
    let error = StoreError::Broken("a stored value: missing field `id` at line 1 column 2".into());
    assert_eq!(ask("古水"), Err(error));
}
