use super::*;
use serde_json::json;

/// Validates a site with additional members and returns the message.
fn message_for(more: &Value) -> String {
    let part = |key: &str| more.get(key).cloned().unwrap_or_else(|| json!([]));
    let site = json!({"tenant_id": "t", "site_id": "s", "name": "S"});
    let mut site = site.as_object().unwrap().clone();
    if let Some(own) = more.get("site").and_then(Value::as_object) {
        site.extend(own.clone());
    }
    let bundle = Bundle {
        site: serde_json::from_value(Value::Object(site)).unwrap(),
        profiles: serde_json::from_value(part("profiles")).unwrap(),
        contents: serde_json::from_value(part("contents")).unwrap(),
        prompts: serde_json::from_value(part("prompts")).unwrap(),
        digest: String::new(),
    };
    check(&bundle).err().unwrap_or_default()
}

#[track_caller]
fn same(more: &Value, expected: &str) {
    assert_eq!(message_for(more), expected);
}

#[test]
fn site_ids_fit_into_headers() {
    let kind = "expected 1 to 50 of the characters A-Z a-z 0-9 . _ : -";
    for id in [String::new(), "a b".into(), "x".repeat(51)] {
        same(
            &json!({"site": {"tenant_id": id}}),
            &format!("tenant_id: {kind}, found {id:?}"),
        );
    }
    same(
        &json!({"site": {"site_id": "村"}}),
        &format!("site_id: {kind}, found \"村\""),
    );
    same(
        &json!({"site": {"name": ""}}),
        "name of the site: expected 1 to 100 characters, found 0",
    );
}

#[test]
fn contents_have_known_types_and_states() {
    let with = |key: &str, value: Value| {
        let mut content = json!({"id": "a", "content_type": "story", "title": "A"});
        content[key] = value;
        json!({"contents": [content]})
    };
    same(&with("id", json!("a")), "");
    let types = "knowledge, story, guide, announcement, faq, poi, route";
    same(
        &with("content_type", json!("poem")),
        &format!("content a: content_type: expected one of {types}, found \"poem\""),
    );
    same(
        &with("status", json!("publishd")),
        "content a: status: expected one of draft, review, published, offline, found \"publishd\"",
    );
    same(
        &with("id", json!("")),
        "id of a content: expected 1 to 100 characters, found 0",
    );
    same(
        &with("title", json!("长".repeat(501))),
        "content a: title: expected 1 to 500 characters, found 501",
    );
    same(
        &with("credibility_score", json!(1.5)),
        "content a: expected credibility_score from 0 to 1, found 1.5",
    );
}

#[test]
fn points_are_on_the_earth_and_routes_lead_to_points() {
    let point = |location: Value| {
        json!({"contents": [{
            "id": "p", "content_type": "poi", "title": "P", "metadata": {"location": location},
        }]})
    };
    same(&point(json!({"lat": -90, "lng": 180.0})), "");
    let wrong = "content p: expected a location with lat from -90 to 90 and lng from -180 to 180";
    for location in [
        json!({"lat": 999.0, "lng": 0.0}),
        json!({"lat": 0.0, "lng": null}),
        json!("there"),
    ] {
        same(&point(location), wrong);
    }
    let route = |stop: &str| {
        json!({"contents": [
            {"id": "p", "content_type": "poi", "title": "P"},
            {"id": "r", "content_type": "route", "title": "R", "metadata": {"stops": ["p", stop]}},
        ]})
    };
    same(&route("p"), "");
    for stop in ["nope", "r"] {
        same(
            &route(stop),
            &format!("content r: expected stops that are points of the site, found {stop:?}"),
        );
    }
}

#[test]
fn profiles_and_prompts_are_validated() {
    let profile =
        |version: u32| json!({"profiles": [{"npc_id": "n", "name": "N", "version": version}]});
    same(&profile(1), "");
    same(&profile(0), "profile n: expected a version from 1, found 0");
    same(
        &json!({"profiles": [{"npc_id": "", "name": "N"}]}),
        "npc_id: expected 1 to 100 characters, found 0",
    );
    let prompt = |kind: &str, version: u32| json!({"prompts": [{"npc_id": "n", "prompt_type": kind, "version": version, "content": "c"}]});
    same(&prompt("greeting", 1), "");
    same(
        &prompt("greeting", 0),
        "prompt of n: expected a version from 1, found 0",
    );
    same(
        &prompt("zzz", 1),
        "prompt of n: prompt_type: expected one of system, greeting, fallback, found \"zzz\"",
    );
    let twice = json!({"npc_id": "n", "active": false, "content": "c"});
    same(
        &json!({"prompts": [twice, twice]}),
        "there are two of: prompt of n system version 1",
    );
}
