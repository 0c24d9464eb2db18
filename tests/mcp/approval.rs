//! `karyi mcp --approve ask`: the client shows a form for a call that no rule allows.

use serde_json::{Value, json};

use super::{Client, error_of, modern};
use crate::harness::Karyi;

fn mcp() -> Karyi {
    Karyi::with_args(&["mcp", "--no-rc", "--approve", "ask"])
}

fn answer(client: &mut Client, text: &str, action: &str) -> Value {
    let id = client.begin_call("command", json!({ "text": text }));
    let request = client.wait_for(|message| message["method"] == "elicitation/create");
    let message = request["params"]["message"].as_str().unwrap();
    let expected = format!("May command run this? {text}\n{text}: no rule allows it");
    assert_eq!(message, expected);
    let result = json!({ "action": action });
    client.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    client.answer(id)["result"].take()
}

#[test]
fn a_form_asks_about_a_call_that_no_rule_allows() {
    let mut client = Client::hello(mcp(), &json!({ "elicitation": { "form": {} } }));
    client.good("command", json!({ "text": "echo hi" }));
    let result = answer(&mut client, "touch a", "decline");
    assert_eq!(error_of(&result)["code"], "denied", "{result}");
    assert!(!client.karyi.work().join("a").exists());
    let result = answer(&mut client, "touch a", "accept");
    assert_eq!(result["isError"], false, "{result}");
    assert!(client.karyi.work().join("a").exists());
}

#[test]
fn without_forms_the_call_needs_approval() {
    let mut client = Client::hello(mcp(), &json!({}));
    let result = client.bad("command", json!({ "text": "touch a" }));
    assert_eq!(result["code"], "needs_approval", "{result}");
}

#[test]
fn an_answer_counts_for_the_text_that_was_shown() {
    let mut client = Client::start(mcp());
    let mut call = |text: &str, more: Value| {
        let mut params = json!({
            "name": "command",
            "arguments": { "text": text },
            "_meta": modern(json!({ "elicitation": { "form": {} } })),
        });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        client.request("tools/call", params)["result"].take()
    };
    let first = call("touch a", json!({}));
    let requests = first["inputRequests"].as_object().unwrap();
    let key = requests.keys().next().unwrap();
    let answer = json!({ "inputResponses": { key: { "action": "accept" } } });
    let other = call("touch b", answer.clone());
    assert_eq!(other["resultType"], "input_required", "{other}");
    let same = call("touch a", answer);
    assert_eq!(same["isError"], false, "{same}");
    let there = ["a", "b"].map(|name| client.karyi.work().join(name).exists());
    assert_eq!(there, [true, false]);
}
