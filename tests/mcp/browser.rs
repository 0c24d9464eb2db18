//! The page for a value in a real browser: typed in, sent by its button, and gone.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Client;
use super::secrets::{VALUE, accept, can_open, mcp};
use crate::harness::skip;
use crate::mcp_clients::node;

/// Browsers that speak the protocol the script uses.
const BROWSERS: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path);
    let all = places.flat_map(|place| BROWSERS.map(|name| place.join(name)));
    all.into_iter().find(|program| program.is_file())
}

/// Opens a page, types the value and presses a button; what was seen.
fn looked(node: &mut Command, browser: &PathBuf, url: &str, words: &str) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/browser.mjs");
    let output = node
        .arg(script)
        .arg(browser)
        .args([url, VALUE, words])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_page_works_in_a_browser() {
    let Some(browser) = browser() else {
        skip("no chromium");
        return;
    };
    for words in ["Send the value", "Do not send it"] {
        let Some(mut node) = node() else { return };
        let mut client = Client::hello(mcp(), &can_open());
        let arguments = json!({"key": "TOKEN", "reason": "<b>to</b> publish"});
        let id = client.begin_call("get_value", arguments);
        let request = client.wait_for(|message| message["method"] == "elicitation/create");
        accept(&mut client, &request, "accept");
        let url = request["params"]["url"].as_str().unwrap();
        let seen = looked(&mut node, &browser, url, words);
        let before = seen["before"].as_str().unwrap();
        assert!(
            before.contains("karyi asks for the value TOKEN")
                && before.contains("<b>to</b> publish"),
            "{seen}"
        );
        assert_eq!(seen["field"], "value password", "{seen}");
        let host = url.split('/').nth(2).unwrap();
        let sent = [format!("GET {host}"), format!("POST {host}")];
        assert_eq!(seen["sent"], json!(sent), "{seen}");
        // The browser has nothing to complain of, such as the policy for its contents.
        assert_eq!(seen["told"], json!([]), "{seen}");
        let (after, result) = (&seen["after"], client.answer(id)["result"].take());
        if words == "Send the value" {
            assert_eq!(after, "karyi has the value. You can close this page.");
            assert_eq!(
                result["structuredContent"]["status"], "provided",
                "{result}"
            );
            let echo = client.good("command", json!({"text": "echo $KARYI{TOKEN} | wc -c"}));
            assert_eq!(
                echo["output"].as_str().unwrap().trim(),
                (VALUE.len() + 1).to_string()
            );
        } else {
            assert_eq!(
                after,
                "karyi did not get the value. You can close this page."
            );
            assert_eq!(super::error_of(&result)["code"], "declined");
        }
    }
}
