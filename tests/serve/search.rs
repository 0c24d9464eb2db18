//! Search in Chinese: a hundred questions about the village.

use serde_json::json;

use super::Server;

#[test]
fn a_hundred_questions_find_their_text() {
    let server = Server::start(&["--tool-rate", "off", "--tenant-rate", "off"]);
    let mut missed = Vec::new();
    let mut first = 0;
    let questions: Vec<(&str, &str)> = include_str!("questions.tsv")
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .collect();
    assert_eq!(questions.len(), 100);
    for (question, id) in &questions {
        let answer = server.call("search_content", &json!({"query": question, "limit": 5}));
        let items = answer["output"]["items"].as_array().unwrap();
        let place = items.iter().position(|item| item["id"] == *id);
        first += usize::from(place == Some(0));
        if place.is_none() {
            missed.push(format!("{question}: {id}"));
        }
    }
    println!("recall@5 {} %, first {first} %", 100 - missed.len());
    assert!(missed.len() <= 5, "{missed:#?}");
}

#[test]
fn signs_are_taken_as_they_are() {
    let server = Server::start(&[]);
    for query in [
        "%",
        "_",
        "\"",
        "*",
        "' OR 1=1 --",
        "scope:s1",
        "NEAR(a b)",
        "^",
        "a AND",
    ] {
        let answer = server.call("search_content", &json!({"query": query}));
        assert_eq!(
            (&answer["success"], &answer["output"]["items"]),
            (&json!(true), &json!([])),
            "{query}"
        );
    }
}
