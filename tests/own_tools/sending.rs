//! `url_fetch`: what a result says about a request that was sent, and what is refused before.

use std::io::Write;
use std::net::TcpListener;

use serde_json::{Value, json};

use super::web::{CONFIG, VALUE, at, fetch, profile, with_header, with_secret};
use super::{karyi, run_in};
use crate::harness::scripted_server::{Act, ScriptedServer, answer, send, signal};

const CACHE: &str = "../home/.cache/karyi-assistant";

/// The fields of a result that tell what became of a request.
fn told(found: &Value) -> [&Value; 4] {
    ["code", "outcome", "http_status", "location"].map(|name| &found[name])
}

#[test]
fn a_change_that_was_sent_says_what_is_known() {
    let (null, unknown) = (Value::Null, json!("unknown"));
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    let cases = [
        (vec![Act::Reset], "network_error", &unknown, null.clone()),
        (
            vec![send("SSH-2.0-x\r\n\r\n")],
            "network_error",
            &unknown,
            null.clone(),
        ),
        (vec![send(half)], "network_error", &null, json!(200)),
        (
            vec![answer("409 Conflict", "", "")],
            "http_error",
            &null,
            json!(409),
        ),
        (
            vec![answer("302 Found", "location: http://10.0.0.1/\r\n", "")],
            "http_error",
            &null,
            json!(302),
        ),
        (
            vec![answer("307 Moved", "location: /b\r\n", "")],
            "http_error",
            &null,
            json!(307),
        ),
    ];
    for (acts, code, outcome, status) in cases {
        let server = ScriptedServer::once(acts);
        let karyi = at(&server, "follow_redirects = true\n");
        let found = run_in(karyi, &fetch(&server.url("/a"), "method=\"DELETE\"")).remove(0);
        let [_, _, _, location] = told(&found);
        assert_eq!(
            told(&found),
            [&json!(code), outcome, &status, location],
            "{found}"
        );
        let is_redirect = status == json!(302) || status == json!(307);
        assert_eq!(location.is_string(), is_redirect, "{found}");
        // It is never sent twice.
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn an_answer_that_cannot_be_kept_shows_its_status() {
    let server = ScriptedServer::once(vec![answer("200 OK", "content-type: a/b\r\n", "12345")]);
    let call = fetch(
        &server.url("/a"),
        "method=\"POST\" max_bytes=\"2\" download_path=\"f\"",
    );
    let found = run_in(at(&server, ""), &call).remove(0);
    let expected = [
        &json!("file_too_large"),
        &Value::Null,
        &json!(200),
        &Value::Null,
    ];
    assert_eq!(
        (told(&found), &found["content_type"]),
        (expected, &json!("a/b")),
        "{found}"
    );
    // A directory takes the place of the file while the server works.
    let (go, wait) = signal();
    let server = ScriptedServer::once(vec![Act::Wait(wait), answer("200 OK", "", "x")]);
    let karyi = at(&server, "").file(&format!("{CACHE}/other"), "");
    let place = karyi.work().join(CACHE).join("f");
    let call = fetch(&server.url("/a"), "method=\"POST\" download_path=\"f\"");
    let found = std::thread::scope(|scope| {
        let ran = scope.spawn(|| run_in(karyi, &call).remove(0));
        server.wait_for(1);
        std::fs::create_dir(&place).unwrap();
        go.send(()).unwrap();
        ran.join().unwrap()
    });
    let expected = [
        &json!("is_directory"),
        &Value::Null,
        &json!(200),
        &Value::Null,
    ];
    assert_eq!(told(&found), expected, "{found}");
}

#[test]
fn a_request_that_never_left_is_a_plain_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let plain_text = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        drop(std::io::copy(&mut stream, &mut std::io::sink()));
    });
    let allow = |scheme: &str| {
        karyi().file(
            CONFIG,
            format!("[guard]\nallow = [\"{scheme}://{address}\"]\n"),
        )
    };
    let call = |scheme: &str| {
        fetch(
            &format!("{scheme}://{address}/"),
            "method=\"POST\" timeout_seconds=\"0.5\"",
        )
    };
    let plain = [
        &json!("network_error"),
        &Value::Null,
        &Value::Null,
        &Value::Null,
    ];
    let found = run_in(allow("https"), &call("https")).remove(0);
    assert_eq!(told(&found), plain, "{found}");
    plain_text.join().unwrap();
    // Nothing listens there any more.
    let found = run_in(allow("http"), &call("http")).remove(0);
    assert_eq!(told(&found), plain, "{found}");
}

#[test]
fn a_server_that_is_starting_is_waited_for() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let config = format!("[guard]\nallow = [\"http://localhost:{port}\"]\n");
    let karyi = karyi().file(CONFIG, config).file("page.txt", "hello");
    let calls = format!(
        "<command>python3 -m http.server {port} --bind 127.0.0.1 >log 2>&amp;1 &amp;</command>{}",
        fetch(&format!("http://localhost:{port}/page.txt"), "")
    );
    assert_eq!(run_in(karyi, &calls)[1]["body"], "hello");
}

#[test]
fn a_refused_redirect_shows_where_it_leads() {
    let server = ScriptedServer::once(vec![answer(
        "302 Found",
        "location: http://10.0.0.1/x\r\n",
        "",
    )]);
    let karyi = at(&server, "follow_redirects = true\n");
    let found = run_in(karyi, &fetch(&server.url("/a"), "")).remove(0);
    let expected = [
        &json!("url_not_allowed"),
        &Value::Null,
        &json!(302),
        &json!("http://10.0.0.1/x"),
    ];
    assert_eq!(told(&found), expected, "{found}");
    assert!(
        found["hint"]
            .as_str()
            .unwrap()
            .ends_with("ask for the target itself"),
        "{found}"
    );
    // Of a sealed secret the status is shown alone.
    let server = ScriptedServer::once(vec![answer(
        "302 Found",
        "location: http://10.0.0.1/x\r\n",
        "",
    )]);
    let header = "{\"Authorization\": \"Bearer $KARYI{TOKEN}\"}";
    let policy = "tools = [\"url_fetch\"]\noutput = \"sealed\"";
    let karyi = with_secret(&server, VALUE, policy, "follow_redirects = true\n");
    let found = run_in(karyi, &with_header(&server.url("/a"), header)).remove(0);
    let expected = [
        &json!("url_not_allowed"),
        &Value::Null,
        &json!(302),
        &Value::Null,
    ];
    assert_eq!(
        (told(&found), &found["url"]),
        (expected, &Value::Null),
        "{found}"
    );
}

#[test]
fn a_profile_that_refuses_names_its_own_rules() {
    let server = ScriptedServer::start(vec![]);
    let karyi = with_secret(&server, VALUE, "", &profile(&server, ""));
    let call = fetch(&server.url("/tasks;x"), "auth_profile=\"tasks\"");
    let found = run_in(karyi, &call).remove(0);
    assert!(
        found["hint"]
            .as_str()
            .unwrap()
            .contains("auth_profiles.tasks.allow.url_prefixes"),
        "{found}"
    );
    assert_eq!(server.requests(), []);
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_sent() {
    let server = ScriptedServer::start(vec![]);
    let url = server.url("/a");
    let policy = "tools = [\"url_fetch\"]\noutput = \"sealed\"";
    let header = "<headers>{\"Authorization\": \"Bearer $KARYI{TOKEN}\"}</headers>";
    let call = format!("<url_fetch url=\"{url}\" download_path=\"f\">{header}</url_fetch>");
    let found = run_in(with_secret(&server, VALUE, policy, ""), &call).remove(0);
    assert_eq!(found["code"], "policy_denied", "{found}");
    let long = format!("download_path=\"new/{}\"", "y".repeat(300));
    let found = run_in(at(&server, ""), &fetch(&url, &long)).remove(0);
    assert_eq!(found["code"], "name_too_long", "{found}");
    let twice = with_header(&url, "{\"Accept\": \"a/b\", \"ACCEPT\": \"c/d\"}");
    let found = run_in(at(&server, ""), &twice).remove(0);
    assert_eq!(
        found["message"], "expected each header once, found Accept twice",
        "{found}"
    );
    assert_eq!(server.requests(), []);
}

#[test]
fn hints_show_placeholders_as_they_are_written() {
    for header in [
        "{\"X-Custom\": \"x\"}",
        "{\"Authorization\": \"key $KARYI{TOKEN}\"}",
    ] {
        let server = ScriptedServer::start(vec![]);
        let call = with_header(&server.url("/a"), header);
        let found = run_in(with_secret(&server, VALUE, "", ""), &call).remove(0);
        let hint = found["hint"].as_str().unwrap();
        assert!(
            hint.contains("$KARYI{NAME}") && !hint.contains("$$"),
            "{found}"
        );
    }
}

#[test]
fn numbers_of_a_body_keep_their_digits() {
    let body = "{\"n\": 12345678901234567890.10, \"e\": 1e400}";
    let server = ScriptedServer::once(vec![answer("200 OK", "", "")]);
    let url = server.url("/a");
    let call = format!("<url_fetch url=\"{url}\" method=\"POST\"><body>{body}</body></url_fetch>");
    let found = run_in(at(&server, ""), &call).remove(0);
    assert_eq!(found["status"], "ok", "{found}");
    assert_eq!(server.requests()[0].body, body);
}

#[test]
fn a_missing_argument_is_named_in_words() {
    for (call, words) in [
        ("<read_file/>", "missing required param: path"),
        ("<web_search/>", "missing required param: q"),
        ("<url_fetch/>", "missing required param: url"),
        ("<todo_update action=\"add\"/>", "content is required"),
    ] {
        let ran = karyi().stdin(format!("<tools>{call}</tools>")).run();
        let shown = ran.json().to_string() + &ran.stderr_text();
        assert!(shown.contains(words), "{call}: {shown}");
    }
}

#[test]
fn a_search_says_which_engines_did_not_answer() {
    let answered = "{\"results\": [], \"unresponsive_engines\": [[\"google\", \"CAPTCHA\"]]}";
    let server = ScriptedServer::once(vec![answer("200 OK", "", answered)]);
    let page = server.url("/search");
    let settings = format!("[tools.web_search]\nengine = \"searxng\"\nbase_url = \"{page}\"\n");
    let found = run_in(at(&server, &settings), "<web_search q=\"x\"/>").remove(0);
    assert_eq!(found["code"], "search_blocked", "{found}");
    assert!(
        found["message"]
            .as_str()
            .unwrap()
            .ends_with("did not answer: google"),
        "{found}"
    );
}
