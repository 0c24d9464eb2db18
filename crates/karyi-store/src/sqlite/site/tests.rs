//! Several sites in one database.

use super::*;
use std::time::Duration;

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(work)
}

fn scope(tenant: &str, site: &str) -> Scope {
    Scope {
        tenant_id: tenant.into(),
        site_id: site.into(),
        deadline: Instant::now() + Duration::from_secs(600),
    }
}

fn content(id: &str, title: &str, body: &str) -> Content {
    serde_json::from_value(serde_json::json!({
        "id": id, "content_type": "knowledge", "title": title, "body": body
    }))
    .unwrap()
}

fn bundle(tenant: &str, site: &str, contents: Vec<Content>) -> Bundle {
    let profile = serde_json::json!({"npc_id": "n", "name": format!("{tenant} {site}")});
    let prompt = serde_json::json!({"npc_id": "n", "content": format!("{tenant} {site}")});
    Bundle {
        site: Site {
            tenant_id: tenant.into(),
            site_id: site.into(),
            name: format!("{tenant} {site}"),
            description: None,
        },
        profiles: vec![serde_json::from_value(profile).unwrap()],
        digest: format!("{contents:?}"),
        contents,
        prompts: vec![serde_json::from_value(prompt).unwrap()],
    }
}

fn ask(text: &str) -> Query {
    Query {
        text: text.into(),
        status: "published".into(),
        limit: 10,
        ..Query::default()
    }
}

fn open() -> (tempfile::TempDir, SqliteSites) {
    let dir = tempfile::tempdir().unwrap();
    let sites = SqliteSites::open(&dir.path().join("site.db")).unwrap();
    (dir, sites)
}

fn import_of(sites: &SqliteSites, bundle: Bundle) -> Result<bool, StoreError> {
    run(sites.import(bundle, Instant::now() + Duration::from_secs(600)))
}

fn ids_of(sites: &SqliteSites, scope: &Scope, query: Query) -> (Vec<String>, u64) {
    let found = run(sites.search(scope, query)).unwrap();
    (
        found.items.into_iter().map(|item| item.id).collect(),
        found.total,
    )
}

#[test]
fn changes_are_found_at_once() {
    let (dir, sites) = open();
    let scope = scope("t", "a");
    let well = content("well", "古井", "严氏古井");
    import_of(&sites, bundle("t", "a", vec![well.clone()])).unwrap();
    let totals = || {
        ["published", "draft"].map(|status| {
            let query = Query {
                status: status.into(),
                ..ask("古井")
            };
            ids_of(&sites, &scope, query).1
        })
    };
    assert_eq!(totals(), [1, 0]);
    let other = content("other", "古井", "另一口古井");
    import_of(&sites, bundle("t", "a", vec![well, other])).unwrap();
    assert_eq!(totals(), [2, 0]);
    let draft = Draft {
        content: content("", "古井", "第三口古井"),
        author: "ana".into(),
    };
    run(sites.add_draft(&scope, draft)).unwrap();
    assert_eq!(totals(), [2, 1]);
    // Another program does not notify this one.
    let program = Connection::open(dir.path().join("site.db")).unwrap();
    let sql = "UPDATE contents SET status = 'published' WHERE status = 'draft'";
    assert_eq!(program.execute(sql, ()).unwrap(), 1);
    assert_eq!(totals(), [3, 0]);
}

#[test]
fn words_of_a_row_that_another_program_removed_find_no_later_one() {
    let (dir, sites) = open();
    let scope = scope("t", "a");
    let old = content("old", "zebra", "secret merger");
    import_of(&sites, bundle("t", "a", vec![old])).unwrap();
    let program = Connection::open(dir.path().join("site.db")).unwrap();
    assert_eq!(program.execute("DELETE FROM contents", ()).unwrap(), 1);
    let draft = Draft {
        content: content("", "giraffe", "harmless"),
        author: "ana".into(),
    };
    run(sites.add_draft(&scope, draft)).unwrap();
    let total = |text: &str| {
        let query = Query {
            status: "draft".into(),
            ..ask(text)
        };
        ids_of(&sites, &scope, query).1
    };
    assert_eq!([total("zebra merger"), total("giraffe")], [0, 1]);
    // What another program inserts has no words: no query finds it.
    let sql = "INSERT INTO contents (site, id, content_type, status, credibility, title, body, tags, content, imported, \
        created_by, created_at) SELECT site, 'x', content_type, status, credibility, '%', '%', tags, content, imported, \
        created_by, created_at FROM contents";
    assert_eq!(program.execute(sql, ()).unwrap(), 1);
    assert_eq!(total("%"), 0);
}

#[test]
fn nothing_is_found_outside_its_site() {
    let (_dir, sites) = open();
    let places = [("t", "a"), ("t", "b"), ("u", "a")];
    for (tenant, site) in places {
        let id = format!("{tenant}-{site}");
        import_of(
            &sites,
            bundle(tenant, site, vec![content(&id, "古井", "严氏古井 100%")]),
        )
        .unwrap();
    }
    for (tenant, site) in places {
        let scope = scope(tenant, site);
        let expected = format!("{tenant} {site}");
        for text in ["古井", "井", "%", "古井 OR scope:s1", "s1 s2 s3 古井"] {
            let (ids, total) = ids_of(&sites, &scope, ask(text));
            assert_eq!(
                (ids, total),
                (vec![format!("{tenant}-{site}")], 1),
                "{text}"
            );
        }
        assert_eq!(run(sites.site(&scope)).unwrap().unwrap().name, expected);
        assert_eq!(
            run(sites.profile(&scope, "n", None)).unwrap().unwrap().name,
            expected
        );
        assert_eq!(
            run(sites.prompt(&scope, "n", "system"))
                .unwrap()
                .unwrap()
                .content,
            expected
        );
        assert_eq!(run(sites.of_type(&scope, "knowledge")).unwrap().len(), 1);
    }
    let nowhere = scope("u", "b");
    assert_eq!(ids_of(&sites, &nowhere, ask("古井")), (vec![], 0));
    assert_eq!(run(sites.profile(&nowhere, "n", None)).unwrap(), None);
}

#[test]
fn punctuation_is_searched_literally() {
    let (_dir, sites) = open();
    let contents = vec![
        content("per cent", "A", "rises by 5%"),
        content("quote", "B", "he said \"no\" *"),
        content("plain", "C", "nothing"),
    ];
    import_of(&sites, bundle("t", "a", contents)).unwrap();
    let check = |text: &str, expected: &[&str]| {
        let (ids, total) = ids_of(&sites, &scope("t", "a"), ask(text));
        assert_eq!(ids, expected, "{text}");
        assert_eq!(total, expected.len() as u64);
    };
    check("%", &["per cent"]);
    check("\"", &["quote"]);
    check("*", &["quote"]);
    check("_", &[]);
    check("NOTHING", &["plain"]);
    check("')--", &[]);
}

#[test]
fn equal_matches_have_a_stable_order_and_are_all_counted() {
    let (_dir, sites) = open();
    let contents = (0..12)
        .map(|n| content(&format!("c{n:02}"), "古井", "水"))
        .collect();
    import_of(&sites, bundle("t", "a", contents)).unwrap();
    for _ in 0..20 {
        let query = Query {
            limit: 5,
            ..ask("古井")
        };
        let (ids, total) = ids_of(&sites, &scope("t", "a"), query);
        assert_eq!(
            (ids, total),
            (
                ["c00", "c01", "c02", "c03", "c04"]
                    .map(String::from)
                    .to_vec(),
                12
            )
        );
    }
}

#[test]
fn filters_select_results() {
    let (_dir, sites) = open();
    let mut tagged = content("tagged", "古井", "x");
    tagged.tags = vec!["水".into(), "100%".into()];
    let mut story = content("story", "古井", "x");
    story.content_type = "story".into();
    let mut hidden = content("hidden", "古井", "x");
    hidden.status = "offline".into();
    import_of(&sites, bundle("t", "a", vec![tagged, story, hidden])).unwrap();
    let check = |query: Query, expected: &[&str]| {
        assert_eq!(ids_of(&sites, &scope("t", "a"), query).0, expected);
    };
    check(ask("古井"), &["story", "tagged"]);
    check(
        Query {
            content_type: Some("story".into()),
            ..ask("古井")
        },
        &["story"],
    );
    check(
        Query {
            tags: vec!["100%".into(), "no".into()],
            ..ask("古井")
        },
        &["tagged"],
    );
    check(
        Query {
            tags: vec!["%".into()],
            ..ask("古井")
        },
        &[],
    );
    check(
        Query {
            status: "offline".into(),
            ..ask("古井")
        },
        &["hidden"],
    );
}

#[test]
fn drafts_survive_imports() {
    let (_dir, sites) = open();
    let first = bundle("t", "a", vec![content("old", "古井", "x")]);
    assert_eq!(import_of(&sites, first.clone()), Ok(true));
    assert_eq!(import_of(&sites, first), Ok(false));
    let scope = scope("t", "a");
    let draft = Draft {
        content: content("", "古井传说", "y"),
        author: "me".into(),
    };
    let written = run(sites.add_draft(&scope, draft)).unwrap();
    assert_eq!(
        import_of(&sites, bundle("t", "a", vec![content("new", "古井", "x")])),
        Ok(true)
    );
    assert_eq!(ids_of(&sites, &scope, ask("古井")).0, ["new"]);
    let drafts = Query {
        status: "draft".into(),
        ..ask("古井")
    };
    assert_eq!(ids_of(&sites, &scope, drafts).0, [written.id]);
}

#[test]
fn writes_to_missing_sites_leave_nothing() {
    let (_dir, sites) = open();
    let draft = Draft {
        content: content("", "a", "b"),
        author: "me".into(),
    };
    let error = run(sites.add_draft(&scope("t", "a"), draft)).unwrap_err();
    assert_eq!(
        error,
        StoreError::Conflict("there is no site a of tenant t".into())
    );
}

#[test]
fn a_key_belongs_to_one_call() {
    let (_dir, sites) = open();
    import_of(&sites, bundle("t", "a", vec![])).unwrap();
    let scope = scope("t", "a");
    let key = |principal: &str, fingerprint: &str| RepeatKey {
        principal: principal.into(),
        tool: "create_draft_content".into(),
        key: "k".into(),
        fingerprint: fingerprint.into(),
    };
    let claim = |key: RepeatKey| run(sites.claim(&scope, key)).unwrap();
    assert_eq!(claim(key("p", "f")), Claim::New);
    assert_eq!(claim(key("p", "f")), Claim::Begun);
    assert_eq!(claim(key("p", "g")), Claim::Other);
    assert_eq!(claim(key("q", "g")), Claim::New);
    run(sites.answer(&scope, key("p", "f"), b"answer".to_vec())).unwrap();
    assert_eq!(claim(key("p", "f")), Claim::Done(b"answer".to_vec()));
    run(sites.release(&scope, key("p", "f"))).unwrap();
    assert_eq!(claim(key("p", "f")), Claim::Done(b"answer".to_vec()));
    run(sites.release(&scope, key("q", "g"))).unwrap();
    assert_eq!(claim(key("q", "g")), Claim::New);
}

#[test]
fn two_profiles_in_use_are_refused_by_the_database() {
    let (_dir, sites) = open();
    let mut two = bundle("t", "a", vec![]);
    let mut second = two.profiles[0].clone();
    second.version = 2;
    two.profiles.push(second);
    assert!(matches!(import_of(&sites, two), Err(StoreError::Broken(_))));
    assert_eq!(run(sites.site(&scope("t", "a"))).unwrap(), None);
}

#[test]
fn outdated_indexes_are_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("site.db");
    // An old database: all sites share one list of words, with combining marks.
    let old = open_to_write(&path, &STEPS[..3]).unwrap();
    old.execute_batch(
        "INSERT INTO sites VALUES (1, 't', 's', '{}', '');
        INSERT INTO contents_words (rowid, scope, title, tags, body)
        VALUES (7, 's1', '한국어 조선', '', '古井 井 well');
        UPDATE words_way SET number = 2;",
    )
    .unwrap();
    let texts = content("a", "\u{1112}\u{1161}\u{11ab}국어 조선", "古井 well");
    let sql = "INSERT INTO contents VALUES (7, 1, 'a', 'knowledge', 'published', 1, ?, ?, '[]', ?, 1, '', '')";
    let row = (&texts.title, &texts.body, text(&texts).unwrap());
    old.execute(sql, row).unwrap();
    drop(old);
    for _ in 0..2 {
        let sites = SqliteSites::open(&path).unwrap();
        for query in ["한국", "국어", "조선", "古井", "well"] {
            let found = ids_of(&sites, &scope("t", "s"), ask(query));
            assert_eq!(found, (vec!["a".to_owned()], 1), "{query}");
        }
    }
}

#[test]
fn letters_are_found_however_they_are_composed() {
    let (_dir, sites) = open();
    let scope = scope("t", "s");
    let (composed, apart) = (
        "한국어",
        "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}",
    );
    let contents = vec![
        content("a", apart, "U\u{308}ber"),
        content("b", composed, "über"),
    ];
    import_of(&sites, bundle("t", "s", contents)).unwrap();
    for query in ["한국", apart, "über", "u\u{308}ber", "Ü"] {
        let found = ids_of(&sites, &scope, ask(query));
        let expected = match query {
            "Ü" => vec![],
            _ => vec!["a".to_owned(), "b".to_owned()],
        };
        assert_eq!(
            (found.0, found.1),
            (expected.clone(), expected.len() as u64),
            "{query}"
        );
    }
    let tagged = |id: &str, tag: &str| Content {
        tags: vec![tag.into()],
        ..content(id, "well", "")
    };
    let contents = vec![tagged("a", apart), tagged("b", composed)];
    import_of(&sites, bundle("t", "s", contents)).unwrap();
    for tag in [apart, composed] {
        let tags = vec![tag.to_owned()];
        let found = ids_of(
            &sites,
            &scope,
            Query {
                tags,
                ..ask("well")
            },
        );
        assert_eq!(found, (vec!["a".to_owned(), "b".to_owned()], 2), "{tag}");
    }
    // An equally long content with the words, not literally, ranks after both.
    let other = content("0", "국어 한국", "well");
    let mut contents = vec![other];
    contents.extend([content("a", apart, "well"), content("b", composed, "well")]);
    import_of(&sites, bundle("t", "s", contents)).unwrap();
    for query in [composed, apart] {
        let (found, _) = ids_of(&sites, &scope, ask(query));
        assert_eq!(found, ["a", "b", "0"], "{query}");
    }
}
