//! `url_fetch` and `web_search`, with servers on the loopback.

use serde_json::{Value, json};

use super::{karyi, run, run_in};
use crate::harness::scripted_server::{Act, ScriptedServer, answer, send, signal, stream_head};
use crate::harness::{Karyi, results};

pub(super) const CONFIG: &str = "../home/.config/karyi/config.toml";

/// A run whose guard names a server, with further settings.
pub(super) fn at(server: &ScriptedServer, more: &str) -> Karyi {
    let config = format!(
        "[guard]\nallow = [\"https://\", \"{}\"]\n{more}",
        server.url("")
    );
    karyi().file(CONFIG, config)
}

pub(super) fn fetch(url: &str, more: &str) -> String {
    format!("<url_fetch url=\"{url}\" {more}/>")
}

/// The result of one call to a server that plays one script.
fn fetched(acts: Vec<Act>, more: &str) -> Value {
    let server = ScriptedServer::once(acts);
    run_in(at(&server, ""), &fetch(&server.url("/a"), more)).remove(0)
}

#[test]
fn a_page_is_read_as_text() {
    let html = "<title>T</title><h1>One</h1><p>Go <a href=/b>on</a>.<script>no()</script>";
    let server = ScriptedServer::once(vec![answer("200 OK", "content-type: text/html\r\n", html)]);
    let found = run_in(at(&server, ""), &fetch(&server.url("/a"), "")).remove(0);
    let expected = json!({
        "id": "1", "tool": "url_fetch", "status": "ok", "url": server.url("/a"), "method": "GET", "http_status": 200,
        "content_type": "text/html", "title": "T", "bytes": html.len(), "untrusted": true,
        "body": "# One\n\nGo on[1].", "links": [{"number": 1, "url": server.url("/b")}],
    });
    let mut found = found;
    found.as_object_mut().unwrap().remove("duration_ms");
    assert_eq!(found, expected);
    let received = server.requests().remove(0);
    assert_eq!(received.line(), "GET /a");
    assert!(received.header("user-agent").unwrap().starts_with("karyi/"));
}

#[test]
fn a_server_that_a_command_started_is_fetched_in_the_same_block() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let karyi = karyi().file("page.txt", "hello").file(
        CONFIG,
        format!("[guard]\nallow = [\"http://localhost:{port}\"]\n"),
    );
    let calls = format!(
        "<command>python3 -m http.server {port} --bind 127.0.0.1 >log 2>&1 & until (: </dev/tcp/127.0.0.1/{port}) \
         2>/dev/null; do sleep 0.05; done</command>{}",
        fetch(&format!("http://localhost:{port}/page.txt"), "")
    );
    assert_eq!(run_in(karyi, &calls)[1]["body"], "hello");
}

#[test]
fn a_status_that_is_no_success_comes_with_all_fields() {
    let found = fetched(
        vec![answer(
            "404 Not Found",
            "content-type: text/plain\r\n",
            "gone",
        )],
        "",
    );
    assert_eq!(found["status"], "error");
    assert_eq!(
        (&found["code"], &found["message"]),
        (&json!("http_error"), &json!("non-2xx status: 404"))
    );
    assert_eq!(
        (&found["http_status"], &found["body"]),
        (&json!(404), &json!("gone"))
    );
    // Redirects are answers, unless they are to be followed.
    let server = ScriptedServer::once(vec![answer("302 Found", "location: /b#c\r\n", "")]);
    let found = run_in(at(&server, ""), &fetch(&server.url("/a"), "")).remove(0);
    assert_eq!(
        (&found["message"], &found["http_status"], &found["location"]),
        (
            &json!("non-2xx status: 302"),
            &json!(302),
            &json!(server.url("/b"))
        )
    );
}

#[test]
fn redirects_are_followed_where_the_settings_say_so() {
    let server = ScriptedServer::start(vec![
        vec![answer("302 Found", "location: /b\r\n", "")],
        vec![answer("200 OK", "", "there")],
    ]);
    let found = run_in(
        at(&server, "follow_redirects = true\n"),
        &fetch(&server.url("/a"), ""),
    )
    .remove(0);
    assert_eq!(
        (&found["body"], &found["final_url"]),
        (&json!("there"), &json!(server.url("/b")))
    );
}

#[test]
fn urls_that_the_guard_does_not_admit_are_refused_before_anything_is_sent() {
    let karyi = || karyi().file(CONFIG, "[guard]\nallow = [\"http://\", \"https://\"]\n");
    let private = "private ip/localhost is not allowed by guard";
    for host in [
        "127.1",
        "2130706433",
        "0x7f000001",
        "localhost.",
        "[::1]",
        "[::ffff:7f00:1]",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
    ] {
        let found = run_in(karyi(), &fetch(&format!("http://{host}/"), "")).remove(0);
        assert_eq!(
            (&found["code"], &found["message"]),
            (&json!("url_not_allowed"), &json!(private)),
            "{host}"
        );
    }
    let usual = |url: &str| run(&fetch(url, "")).remove(0)["message"].clone();
    assert_eq!(usual("http://example.com/"), "url is not allowed by guard");
    assert_eq!(
        usual("https://api.example.com@evil/"),
        "userinfo in URL is not allowed"
    );
    assert_eq!(usual("https://127.0.0.1/"), private);
    let none = super::karyi().file(CONFIG, "[guard]\nallow = []\n");
    let found = run_in(none, &fetch("https://example.com/", "")).remove(0);
    assert_eq!(
        found["message"],
        "url_fetch is blocked by guard (no allowed_url_prefixes configured)"
    );
}

#[test]
fn bad_urls_methods_and_limits_are_told() {
    let long = format!("http://h/{}", "x".repeat(20_000));
    let cases: &[(&str, &str, &str)] = &[
        ("", "", "missing required param: url"),
        ("example.com", "", "invalid url: "),
        ("ftp://h/", "", "unsupported url scheme: ftp"),
        ("file:///etc/passwd", "", "unsupported url scheme: file"),
        ("https://h:0/", "", "port 0"),
        (&long, "", "invalid url: expected at most 8192 bytes"),
        ("https://h/", "method=\"HEAD\"", "unsupported method: HEAD"),
        (
            "https://h/",
            "auth_profile=\"p\"",
            "auth_profile not found: \"p\"",
        ),
        (
            "https://h/",
            "download_path=\"../x\"",
            "refusing to write outside allowed base dirs",
        ),
        (
            "https://h/",
            "download_path=\"file_state_dir/x\"",
            "refusing to write outside allowed base dirs",
        ),
        (
            "https://h/",
            "download_path=\"file_cache_dir\"",
            "alias requires a relative file path",
        ),
    ];
    for (url, more, expected) in cases {
        let found = run(&fetch(url, more)).remove(0);
        let message = found["message"].as_str().unwrap_or_default();
        assert!(message.contains(expected), "{more} {url:.50}: {found}");
        assert!(
            !found["hint"].as_str().unwrap_or_default().is_empty(),
            "{found}"
        );
    }
}

#[test]
fn bodies_are_sent_as_they_are_written() {
    let cases = [
        (
            "<body>{\"a\": 1}</body>",
            "{\"a\": 1}",
            Some("application/json"),
        ),
        ("<body>a &lt; b</body>", "a < b", Some("text/plain")),
        (
            "<headers>{\"Accept\": \"x/y\"}</headers><body>[1]</body>",
            "[1]",
            None,
        ),
        (
            "<headers><Content-Type>a/b</Content-Type></headers><body>x</body>",
            "x",
            Some("a/b"),
        ),
        ("<body/>", "", Some("text/plain")),
    ];
    for (inner, body, kind) in cases {
        let server = ScriptedServer::once(vec![answer("201 Created", "", "")]);
        let url = server.url("/a");
        let call = format!("<url_fetch url=\"{url}\" method=\"post\">{inner}</url_fetch>");
        let found = run_in(at(&server, ""), &call).remove(0);
        assert_eq!(
            (&found["http_status"], &found["method"]),
            (&json!(201), &json!("POST")),
            "{found}"
        );
        let received = server.requests().remove(0);
        assert_eq!(
            (&*received.body, received.header("content-type")),
            (body, kind),
            "{inner}"
        );
    }
    let refused =
        run("<url_fetch url=\"https://h/\" method=\"DELETE\"><body>x</body></url_fetch>").remove(0);
    assert_eq!(
        refused["message"],
        "request body is only supported for POST/PUT/PATCH in url_fetch"
    );
}

#[test]
fn headers_have_rules() {
    let refused = |headers: &str| {
        let call =
            format!("<url_fetch url=\"https://h/\"><headers>{headers}</headers></url_fetch>");
        run(&call).remove(0)["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        refused("{\"AUTHORIZATION\": \"x\"}"),
        "header \"AUTHORIZATION\" is not allowed"
    );
    assert_eq!(
        refused("{\"X-Custom\": \"x\"}"),
        "header \"X-Custom\" is not allowed (allowlist enforced)"
    );
    assert!(refused("{\"Accept\": \"a\\r\\nhost: evil\"}").contains("not allowed in it"));
    assert!(refused("{\"Acc\\r\\nept\": \"a\"}").contains("not allowed"));
    let many: serde_json::Map<String, Value> =
        (0..1000).map(|n| (format!("x{n}"), json!("1"))).collect();
    assert_eq!(
        refused(&Value::Object(many).to_string()),
        "expected at most 50 headers, found 1000"
    );
}

#[test]
fn servers_that_misbehave_end_with_a_code() {
    let head = "HTTP/1.1 200 OK\r\n";
    let check = |acts: Vec<Act>, code: &str| {
        let found = fetched(acts, "timeout_seconds=\"5\"");
        assert_eq!(found["code"], code, "{found}");
        assert!(
            found["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
            "{found}"
        );
    };
    check(vec![Act::Reset], "network_error");
    check(vec![send("SSH-2.0-OpenSSH\r\n\r\n")], "network_error");
    check(
        vec![send(format!("{head}content-length: 9\r\n\r\nhalf"))],
        "network_error",
    );
    check(
        vec![answer("200 OK", "content-encoding: gzip\r\n", "no")],
        "network_error",
    );
    check(
        vec![send(head), Act::Flood(b"x: yyyyyyyyyyyyyyyy\r\n".to_vec())],
        "network_error",
    );
    let (keep, wait) = signal();
    let found = fetched(vec![Act::Wait(wait)], "timeout_seconds=\"0.2\"");
    assert_eq!(
        (&found["code"], &found["message"]),
        (&json!("timeout"), &json!("url_fetch timed out after 0.2s"))
    );
    drop(keep);
    let (keep, wait) = signal();
    let found = fetched(
        vec![Act::Wait(wait)],
        "timeout_seconds=\"0.2\" method=\"POST\"",
    );
    assert_eq!(
        (&found["code"], &found["outcome"]),
        (&json!("timeout"), &json!("unknown"))
    );
    drop(keep);
}

#[test]
fn a_body_without_end_is_cut() {
    let found = fetched(
        vec![
            stream_head("text/plain"),
            Act::Flood(b"0123456789".to_vec()),
        ],
        "max_bytes=\"15\"",
    );
    assert_eq!(
        (&found["body"], &found["truncated"]),
        (&json!("012345678901234"), &json!(true))
    );
    let found = fetched(
        vec![answer("200 OK", "content-type: text/plain\r\n", "aé")],
        "max_bytes=\"2\"",
    );
    assert_eq!((&found["body"], &found["bytes"]), (&json!("a"), &json!(2)));
    // An encoding that was not asked for stays as it is.
    let packed = "content-type: text/plain\r\ncontent-encoding: zstd\r\n";
    let found = fetched(vec![answer("200 OK", packed, "x")], "");
    assert_eq!((&found["bytes"], &found["body"]), (&json!(1), &Value::Null));
    let found = fetched(
        vec![answer("200 OK", "content-type: image/png\r\n", "\u{1}")],
        "",
    );
    assert_eq!(
        (&found["bytes"], &found["body"], &found["untrusted"]),
        (&json!(2 - 1), &Value::Null, &Value::Null)
    );
}

#[test]
fn a_download_is_saved_whole_or_not_at_all() {
    let server = ScriptedServer::once(vec![answer(
        "200 OK",
        "content-type: a/b\r\n",
        b"\0\x01\xff",
    )]);
    let call = fetch(&server.url("/a"), "download_path=\"d/f.bin\"");
    let ran = at(&server, "")
        .stdin(format!("<tools>{call}</tools>"))
        .run();
    let found = results(&ran.json())[0].clone();
    assert_eq!(
        (&found["status"], &found["bytes"], &found["body"]),
        (&json!("ok"), &json!(3), &Value::Null)
    );
    let file = "home/.cache/karyi-assistant/d/f.bin";
    assert_eq!(found["path"], json!(format!("ROOT/{file}")));
    let saved = format!("../{file}");
    let ran = ran.file(&saved, b"\0\x01\xff");
    let place = ran.root().join(file);
    let undone = ran.again(&["undo"]).run().exit(0);
    assert!(!place.exists());
    drop(undone);
    for (acts, more, message) in [
        (
            vec![answer("404 Not Found", "", "x")],
            "",
            "non-2xx status: 404",
        ),
        (
            vec![answer("200 OK", "", "12345678901")],
            "max_bytes=\"10\"",
            "download truncated (max_bytes=10)",
        ),
    ] {
        let server = ScriptedServer::once(acts);
        let call = fetch(
            &server.url("/a"),
            &format!("download_path=\"new/f.bin\" {more}"),
        );
        let ran = at(&server, "")
            .stdin(format!("<tools>{call}</tools>"))
            .run();
        assert_eq!(results(&ran.json())[0]["message"], message);
        let directory = ran.root().join("home/.cache/karyi-assistant");
        assert_eq!(
            std::fs::read_dir(directory).unwrap().count(),
            0,
            "{message}"
        );
    }
}

#[test]
fn a_place_that_takes_no_file_is_refused_before_anything_is_sent() {
    let server = ScriptedServer::start(vec![]);
    let cache = "../home/.cache/karyi-assistant";
    let long = "y".repeat(300);
    for (path, code) in [
        ("pipe", "not_a_file"),
        ("dir", "is_directory"),
        ("file/x", "not_a_directory"),
        (&*long, "name_too_long"),
        ("out/x", "outside_root"),
    ] {
        let karyi = at(&server, "")
            .file(&format!("{cache}/file"), "")
            .file(&format!("{cache}/dir/x"), "");
        let place = karyi.work().join(cache);
        nix::unistd::mkfifo(&place.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink(karyi.work(), place.join("out")).unwrap();
        let call = fetch(&server.url("/a"), &format!("download_path=\"{path}\""));
        let found = run_in(karyi, &call).remove(0);
        assert_eq!(found["code"], code, "{found}");
    }
    assert_eq!(server.requests(), []);
}

/// A run with the secret TOKEN, and a policy that narrows its use.
pub(super) fn with_secret(server: &ScriptedServer, value: &str, policy: &str, more: &str) -> Karyi {
    let host = server.address();
    at(server, more)
        .env("KARYI_VAR_TOKEN", value)
        .args(&["--vault", "env", "--policy", "policy.toml"])
        .file(
            "policy.toml",
            format!("[secret.TOKEN]\nhosts = [\"{host}\"]\n{policy}\n"),
        )
}

pub(super) const VALUE: &str = "wjalrXUtnFEMI-K7MDENG";

/// A call with a header, as JSON in XML.
pub(super) fn with_header(url: &str, header: &str) -> String {
    format!("<url_fetch url=\"{url}\"><headers>{header}</headers></url_fetch>")
}

#[test]
fn a_page_that_echoes_the_request_is_masked() {
    // `printf %s wjalrXUtnFEMI-K7MDENG | base64`.
    let encoded = "d2phbHJYVXRuRkVNSS1LN01ERU5H";
    let page = format!("<p>{VALUE}</p><p>{encoded}</p><p>wjalrX<b>UtnFEMI-K7MDENG</b></p>");
    let server = ScriptedServer::once(vec![answer("200 OK", "content-type: text/html\r\n", page)]);
    let call = with_header(
        &server.url("/a"),
        "{\"Authorization\": \"Bearer $KARYI{TOKEN}\"}",
    );
    let karyi = with_secret(&server, VALUE, "", "").stdin(format!("<tools>{call}</tools>"));
    let report = karyi.run().json();
    let shown = report.to_string();
    assert_eq!(results(&report)[0]["status"], "ok", "{shown}");
    assert_eq!(
        server.requests()[0].header("authorization"),
        Some(&*format!("Bearer {VALUE}"))
    );
    for part in [VALUE, encoded, "wjalrX", "UtnFEMI"] {
        assert!(!shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_value_that_is_cut_is_masked() {
    let page = format!("key {VALUE}");
    let server = ScriptedServer::once(vec![answer("200 OK", "content-type: text/plain\r\n", page)]);
    let call = format!(
        "<url_fetch url=\"{}\" max_bytes=\"16\"><headers>{{\"X-Key\": \"$KARYI{{TOKEN}}\"}}</headers></url_fetch>",
        server.url("/a")
    );
    let found = run_in(with_secret(&server, VALUE, "", ""), &call).remove(0);
    assert_eq!(found["truncated"], true, "{found}");
    assert!(!found.to_string().contains("wjalrX"), "{found}");
}

#[test]
fn a_secret_goes_to_the_hosts_of_its_policy_only() {
    let server = ScriptedServer::start(vec![]);
    let header = "{\"Authorization\": \"Bearer $KARYI{TOKEN}\"}";
    for (url, code) in [
        ("https://elsewhere.example/".to_owned(), "policy_denied"),
        (
            server.url("/").replace("127.0.0.1", "localhost"),
            "policy_denied",
        ),
    ] {
        let karyi = with_secret(&server, VALUE, "", "");
        let found = run_in(karyi, &with_header(&url, header)).remove(0);
        assert_eq!(found["code"], code, "{found}");
    }
    let url = server.url("/");
    for call in [
        format!("<url_fetch url=\"{url}?$KARYI{{TOKEN}}\"/>"),
        format!(
            "<url_fetch url=\"{url}\" method=\"POST\"><body>$KARYI{{TOKEN}}</body></url_fetch>"
        ),
        format!("<url_fetch url=\"{url}\" download_path=\"$KARYI{{TOKEN}}\"/>"),
        "<web_search q=\"$KARYI{TOKEN}\"/>".to_owned(),
        with_header(&url, "{\"Authorization\": \"key $KARYI{TOKEN}\"}"),
    ] {
        let found = run_in(with_secret(&server, VALUE, "", ""), &call).remove(0);
        assert_eq!(found["code"], "unsafe_context", "{call}: {found}");
    }
    let cookie = with_header(&url, "{\"Cookie\": \"$KARYI{TOKEN}\"}");
    let found = run_in(with_secret(&server, VALUE, "", ""), &cookie).remove(0);
    assert_eq!(found["message"], "header \"Cookie\" is not allowed");
    assert_eq!(server.requests(), []);
}

#[test]
fn a_sealed_secret_shows_the_status_alone() {
    let server = ScriptedServer::once(vec![answer(
        "200 OK",
        "content-type: text/plain\r\n",
        "secret page",
    )]);
    let call = with_header(
        &server.url("/a"),
        "{\"Authorization\": \"Bearer $KARYI{TOKEN}\"}",
    );
    let policy = "tools = [\"url_fetch\"]\noutput = \"sealed\"";
    let mut found = run_in(with_secret(&server, VALUE, policy, ""), &call).remove(0);
    found.as_object_mut().unwrap().remove("duration_ms");
    assert_eq!(
        found,
        json!({"id": "1", "tool": "url_fetch", "status": "ok", "http_status": 200})
    );
}

/// Settings of the profile `tasks` for a server.
pub(super) fn profile(server: &ScriptedServer, more: &str) -> String {
    format!(
        "[secrets]\nallow_profiles = [\"tasks\"]\n[auth_profiles.tasks]\nsecret = \"$KARYI{{TOKEN}}\"\n\
         allow.url_prefixes = [\"{}\"]\n{more}\n[auth_profiles.other]\nsecret = \"$KARYI{{TOKEN}}\"\n",
        server.url("/tasks")
    )
}

#[test]
fn a_profile_adds_its_secret() {
    for (format, value, sent) in [
        ("", "abcdefgh12", "Bearer abcdefgh12"),
        ("inject.format = \"raw\"", "abcdefgh12", "abcdefgh12"),
        (
            "inject.format = \"basic\"",
            "user:pass",
            "Basic dXNlcjpwYXNz",
        ),
    ] {
        let server = ScriptedServer::once(vec![answer(
            "200 OK",
            "content-type: text/plain\r\n",
            value,
        )]);
        let karyi = with_secret(&server, value, "", &profile(&server, format));
        let found = run_in(
            karyi,
            &fetch(&server.url("/tasks/1"), "auth_profile=\"tasks\""),
        )
        .remove(0);
        assert_eq!(found["status"], "ok", "{found}");
        assert!(!found.to_string().contains(value), "{found}");
        assert_eq!(server.requests()[0].header("authorization"), Some(sent));
    }
}

#[test]
fn a_profile_has_rules_of_its_own() {
    let server = ScriptedServer::start(vec![]);
    let url = |path: &str| server.url(path);
    let not_allowed = |url: &str| format!("url \"{url}\" not allowed by auth_profile \"tasks\"");
    let tls = format!("https://{}/tasks", server.address());
    let user = format!("http://user@{}/tasks", server.address());
    let cases = [
        (url("/tasks2"), "", not_allowed(&url("/tasks2"))),
        (
            url("/tasks/..%2fusers"),
            "",
            not_allowed(&url("/tasks/..%2fusers")),
        ),
        (tls.clone(), "", not_allowed(&tls)),
        (user, "", "userinfo in URL is not allowed".to_owned()),
        (
            url("/tasks"),
            "method=\"POST\"",
            "method \"POST\" not allowed by auth_profile \"tasks\"".to_owned(),
        ),
    ];
    for (url, more, message) in cases {
        let karyi = with_secret(&server, VALUE, "", &profile(&server, ""));
        let found = run_in(
            karyi,
            &fetch(&url, &format!("auth_profile=\"tasks\" {more}")),
        )
        .remove(0);
        // Elsewhere than the policy of the secret says is refused, too.
        let is_elsewhere = found["code"] == "policy_denied"
            && found["message"].as_str().unwrap().contains("TOKEN");
        assert!(
            found["message"] == message || is_elsewhere && url == tls,
            "{found}"
        );
        assert!(!found.to_string().contains(VALUE), "{found}");
    }
    for (id, message) in [
        (
            "other",
            "auth_profile \"other\" is not allowed (fail-closed)",
        ),
        ("none", "auth_profile not found: \"none\""),
    ] {
        let karyi = with_secret(&server, VALUE, "", &profile(&server, ""));
        let found = run_in(
            karyi,
            &fetch(&url("/tasks"), &format!("auth_profile=\"{id}\"")),
        )
        .remove(0);
        assert_eq!(
            (&found["code"], &found["message"]),
            (&json!("policy_denied"), &json!(message))
        );
    }
    assert_eq!(server.requests(), []);
}

/// Settings of a search engine at a server.
fn engine(server: &ScriptedServer, name: &str) -> String {
    format!(
        "[tools.web_search]\nengine = \"{name}\"\nbase_url = \"{}\"\n",
        server.url("/search")
    )
}

#[test]
fn a_search_gives_results() {
    let hit = |number: usize| {
        format!("{{\"url\": \"https://h/{number}\", \"title\": \"T\", \"content\": \"c\"}}")
    };
    let many: Vec<String> = (0..30).map(hit).collect();
    let json = format!("{{\"results\": [{}]}}", many.join(","));
    for (asked, count) in [
        ("", 5),
        ("max_results=\"50\"", 20),
        ("max_results=\"2\"", 2),
    ] {
        let server = ScriptedServer::once(vec![answer(
            "200 OK",
            "content-type: application/json\r\n",
            &json,
        )]);
        let karyi = at(
            &server,
            &(engine(&server, "searxng") + "[tools.url_fetch]\nuser_agent = \"Reader/1\"\n"),
        );
        let found = run_in(karyi, &format!("<web_search q=\"a+b c\" {asked}/>")).remove(0);
        assert_eq!(
            (&found["engine"], &found["total"]),
            (&json!("searxng"), &json!(count)),
            "{found}"
        );
        assert_eq!(
            found["hits"][0],
            json!({"url": "https://h/0", "title": "T", "snippet": "c"})
        );
        assert_eq!(found["untrusted"], true);
        assert_eq!(
            server.requests()[0].line(),
            "GET /search?q=a%2Bb+c&format=json"
        );
        assert_eq!(server.requests()[0].header("user-agent"), Some("Reader/1"));
    }
    let page = include_str!("../../src/web/search/duckduckgo.html");
    let server = ScriptedServer::once(vec![answer("200 OK", "content-type: text/html\r\n", page)]);
    let found = run_in(
        at(&server, &engine(&server, "duckduckgo_html")),
        "<web_search q=\"rust\"/>",
    )
    .remove(0);
    assert_eq!(
        (&found["total"], &found["hits"][0]["url"]),
        (&json!(2), &json!("https://www.rust-lang.org/"))
    );
}

#[test]
fn a_search_without_results_says_why() {
    let check = |status: &str, body: &str, code: &str| {
        let server =
            ScriptedServer::once(vec![answer(status, "content-type: text/html\r\n", body)]);
        let karyi = at(&server, &engine(&server, "duckduckgo_html"));
        let found = run_in(karyi, "<web_search q=\"x\"/>").remove(0);
        assert_eq!(found["code"], code, "{found}");
    };
    check("202 Accepted", "<form id=challenge-form>", "search_blocked");
    check("200 OK", "<p>Another page", "search_blocked");
    check("200 OK", "", "search_blocked");
    check("429 Too Many Requests", "", "search_blocked");
    check("502 Bad Gateway", "", "http_error");
    let none = ScriptedServer::once(vec![answer("200 OK", "", "<div class=no-results>")]);
    let found = run_in(
        at(&none, &engine(&none, "duckduckgo_html")),
        "<web_search q=\"x\"/>",
    )
    .remove(0);
    assert_eq!(
        (&found["status"], &found["total"]),
        (&json!("ok"), &json!(0))
    );
    // The guard holds for the engine, too.
    let server = ScriptedServer::start(vec![]);
    let karyi = karyi().file(CONFIG, engine(&server, "searxng"));
    let found = run_in(karyi, "<web_search q=\"x\"/>").remove(0);
    assert_eq!(found["code"], "url_not_allowed");
}

#[test]
fn a_tool_that_is_switched_off_says_so() {
    let karyi = karyi().file(
        CONFIG,
        "[tools.url_fetch]\nenabled = false\n[tools.web_search]\nenabled = false\n",
    );
    let found = run_in(
        karyi,
        "<url_fetch url=\"https://h/\"/><web_search q=\"x\"/>",
    );
    for (found, tool) in found.iter().zip(["url_fetch", "web_search"]) {
        assert_eq!(found["code"], "tool_disabled");
        assert!(
            found["message"]
                .as_str()
                .unwrap()
                .starts_with(&format!("{tool} tool is disabled"))
        );
    }
}
