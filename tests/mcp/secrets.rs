//! Values never reach the client: not in results, errors or progress, and not when they are asked
//! for.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, Gate, error_of, modern};
use crate::harness::{Karyi, program, wait};

pub(super) const VALUE: &str = "s3cr3t-of-the-mcp-tests-5b1f";

fn with_value() -> Karyi {
    Karyi::with_args(&["mcp", "--no-rc", "--vault", "env"]).env("KARYI_VAR_TOKEN", VALUE)
}

pub(super) fn mcp() -> Karyi {
    Karyi::with_args(&["mcp", "--no-rc"])
}

#[test]
fn a_value_is_masked_in_everything_that_leaves() {
    let mut client = Client::hello(with_value(), &json!({}));
    let gate = Gate::in_dir(&client.karyi.work());
    let params = json!({
        "name": "command",
        "arguments": {"text": "echo $KARYI{TOKEN} | tee file; read < go", "name": "x"},
        "_meta": {"progressToken": 1},
    });
    let id = client.begin("tools/call", params);
    let progress = client.wait_for(|message| message["method"] == "notifications/progress");
    gate.open();
    let answers = [
        progress,
        client.answer(id),
        client.call("read", json!({"files": [{"src": "file"}], "searches": [{"pattern": "s3cr3t"}]})),
        client.call("read", json!({"files": [{"src": format!("{VALUE}.txt")}]})),
        client.call("command", json!({"text": 7, VALUE: 1})),
        client.call("edit", json!({"files": [{"src": "file", "edits": [{"find": VALUE, "replace": "x"}, {"find": "nope", "replace": ""}]}]})),
        client.call("command", json!({"text": format!("echo {VALUE} | base64; nope-{VALUE}; false")})),
        client.call("input", json!({"text": "x", "job": VALUE})),
        client.request("tools/call", json!({"name": VALUE, "arguments": {}})),
        client.request(VALUE, json!({})),
    ];
    let base64 = "czNjcjN0LW9mLXRoZS1tY3AtdGVzdHM";
    for answer in answers {
        let text = answer.to_string();
        assert!(!text.contains(VALUE) && !text.contains(base64), "{text}");
    }
}

/// What may become a value is told to no client before it is known that it does not.
#[test]
fn progress_shows_no_part_that_is_held_back() {
    let mut client = Client::hello(with_value(), &json!({}));
    let gate = Gate::in_dir(&client.karyi.work());
    let params = json!({
        "name": "command",
        "arguments": {"text": "v=$KARYI{TOKEN}; echo begun~; printf %s \"${v:0:9}\"; read < go"},
        "_meta": {"progressToken": 1},
    });
    let id = client.begin("tools/call", params);
    let progress = client.wait_for(|message| message["method"] == "notifications/progress");
    assert!(!progress.to_string().contains(&VALUE[..9]), "{progress}");
    gate.open();
    let answer = client.answer(id).to_string();
    assert!(answer.contains("begun"), "{answer}");
}

#[test]
fn without_a_way_to_ask_the_error_says_what_to_do() {
    for capabilities in [
        json!({}),
        json!({"elicitation": {}}),
        json!({"elicitation": {"form": {}}}),
    ] {
        let mut client = Client::hello(mcp(), &capabilities);
        let error = client.bad(
            "get_value",
            json!({"key": "NPM_TOKEN", "reason": "to publish"}),
        );
        let expected = json!({
            "id": "1",
            "status": "unavailable",
            "code": "secret_prompt_unavailable",
            "message": "NPM_TOKEN is needed and the client cannot ask",
            "hint": "the client cannot open a page for it (elicitation in URL mode); let the user store it \
                with `karyi var set NPM_TOKEN`, or start karyi mcp with --vars-fd",
            "names": ["NPM_TOKEN"],
            "duration_ms": 0,
        });
        assert_eq!(error, expected);
    }
}

/// Gives a value to the session of a client, from outside.
fn give(client: &Client, name: &str) -> std::process::Output {
    let like = client.karyi.command();
    let mut set = std::process::Command::new(program());
    set.args(["var", "set", name, "--stdin", "--session"]);
    set.env_clear();
    set.envs(
        like.get_envs()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    let mut child = set
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(VALUE.as_bytes()).unwrap();
    drop(input);
    wait(child)
}

#[test]
fn a_value_is_given_while_the_session_is_there() {
    let mut client = Client::connected();
    // Before the first call, and after it.
    for name in ["TOKEN", "LATER"] {
        let given = give(&client, name);
        let told = String::from_utf8(given.stderr).unwrap();
        assert_eq!(given.status.code(), Some(0), "{told}");
        assert!(told.contains(": karyi mcp of karyi-"), "{told}");
        let text = format!("printf %s $KARYI{{{name}}} | wc -c; echo $KARYI{{{name}}}");
        let shown = client.good("command", json!({"text": text}));
        // Both names have one value, which is shown as the first of them.
        let expected = match name {
            "TOKEN" => "28\n$KARYI{TOKEN}\n",
            _ => "28\n$KARYI{LATER}\n",
        };
        assert_eq!(shown["output"], expected);
    }
    let again = give(&client, "TOKEN");
    assert_eq!(again.status.code(), Some(2));
    let told = String::from_utf8(again.stderr).unwrap();
    assert!(
        told.starts_with("karyi: bad_arguments: the session knows TOKEN already"),
        "{told}"
    );
}

/// A browser that looks at a page of the loopback.
struct Browser {
    port: u16,
    path: String,
}

impl Browser {
    fn at(url: &str) -> Self {
        let rest = url.strip_prefix("http://127.0.0.1:").unwrap();
        let (port, token) = rest.split_once('/').unwrap();
        assert!(token.len() >= 32, "{url}");
        Self {
            port: port.parse().unwrap(),
            path: format!("/{token}"),
        }
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let host = format!("127.0.0.1:{}", self.port);
        let own = headers.iter().find(|(name, _)| *name == "Host");
        let host = own.map_or(host.as_str(), |(_, value)| value);
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        for (name, value) in headers.iter().filter(|(name, _)| *name != "Host") {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(body);
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    /// Opens the page and returns what only it knows.
    fn open(&self) -> String {
        let page = self.send("GET", &self.path, &[], "");
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        // With `no-referrer` a browser sends the answer with `Origin: null`, which is refused.
        assert!(page.contains("referrer-policy: same-origin"), "{page}");
        let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap();
        csrf.split('"').next().unwrap().to_owned()
    }

    fn give(&self, csrf: &str, lifetime: &str, value: &str) -> String {
        let origin = format!("http://127.0.0.1:{}", self.port);
        let body = format!("csrf={csrf}&value={value}&lines=&lifetime={lifetime}&answer=give");
        self.send("POST", &self.path, &[("Origin", &origin)], &body)
    }
}

pub(super) fn can_open() -> Value {
    json!({"elicitation": {"url": {}}})
}

/// Takes the request of the server to open a page.
fn elicited(client: &mut Client) -> (Value, Browser) {
    let request = client.wait_for(|message| message["method"] == "elicitation/create");
    assert_eq!(request["params"]["mode"], "url", "{request}");
    let browser = Browser::at(request["params"]["url"].as_str().unwrap());
    (request, browser)
}

pub(super) fn accept(client: &mut Client, request: &Value, action: &str) {
    client.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"action": action}}));
}

#[test]
fn a_value_is_asked_for_on_a_page_and_used_unseen() {
    let mut client = Client::hello(mcp(), &can_open());
    let arguments = json!({"key": "TOKEN", "reason": "<b>to</b> publish"});
    let id = client.begin_call("get_value", arguments);
    let (request, browser) = elicited(&mut client);
    let message = request["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("TOKEN") && message.contains("publish"),
        "{message}"
    );
    accept(&mut client, &request, "accept");
    let csrf = browser.open();
    let done = browser.give(&csrf, "session", VALUE);
    assert!(
        done.starts_with("HTTP/1.1 200") && done.contains("has the value"),
        "{done}"
    );
    let result = super::calm(client.answer(id)["result"].take());
    let content = json!({"id": "1", "status": "provided", "key": "TOKEN", "duration_ms": 0});
    assert_eq!(result["structuredContent"], content, "{result}");
    let complete =
        client.wait_for(|message| message["method"] == "notifications/elicitation/complete");
    assert_eq!(
        complete["params"]["elicitationId"],
        request["params"]["elicitationId"]
    );
    let result = client.good("command", json!({"text": "v=$KARYI{TOKEN}; echo ${#v} $v"}));
    assert_eq!(
        result["output"],
        format!("{} $KARYI{{TOKEN}}\n", VALUE.len())
    );
    assert_eq!(
        client.good("get_value", json!({"key": "TOKEN", "reason": "again"}))["status"],
        "exists"
    );
}

#[test]
fn who_declines_is_not_asked_further() {
    for action in ["decline", "cancel"] {
        let mut client = Client::hello(mcp(), &can_open());
        let id = client.begin_call("get_value", json!({"key": "TOKEN", "reason": "x"}));
        let (request, browser) = elicited(&mut client);
        accept(&mut client, &request, action);
        let error = error_of(&client.answer(id)["result"]);
        assert_eq!(
            (&error["status"], &error["code"]),
            (&json!("declined"), &json!("declined"))
        );
        drop(browser);
    }
    let mut client = Client::hello(mcp(), &can_open());
    let id = client.begin_call("get_value", json!({"key": "TOKEN", "reason": "x"}));
    let (request, browser) = elicited(&mut client);
    accept(&mut client, &request, "accept");
    let csrf = browser.open();
    let origin = format!("http://127.0.0.1:{}", browser.port);
    let body = format!("csrf={csrf}&value={VALUE}&lifetime=session&answer=deny");
    browser.send("POST", &browser.path, &[("Origin", &origin)], &body);
    assert_eq!(error_of(&client.answer(id)["result"])["code"], "declined");
}

#[test]
fn a_client_that_cannot_after_all_is_told_of() {
    let mut client = Client::hello(mcp(), &can_open());
    let id = client.begin_call("get_value", json!({"key": "TOKEN", "reason": "x"}));
    let (request, _) = elicited(&mut client);
    let error = json!({"code": -32601, "message": "no such method"});
    client.send(&json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
    let error = error_of(&client.answer(id)["result"]);
    assert_eq!(error["code"], "secret_prompt_unavailable");
    let says = |error: &serde_json::Value, part: &str| {
        assert!(error["hint"].as_str().unwrap().contains(part), "{error}");
    };
    says(&error, "`karyi var set TOKEN`");
    // A client has calls, and no blocks.
    let undefined = client.bad("command", json!({"text": "echo $KARYI{TOKEN}"}));
    says(
        &undefined,
        "call get_value with the key TOKEN, and use it from the next call on",
    );
}

#[test]
fn the_page_is_shown_once_and_only_to_who_knows_it() {
    let mut client = Client::hello(mcp(), &can_open());
    let id = client.begin_call(
        "get_value",
        json!({"key": "TOKEN", "reason": "<script>alert(1)</script>"}),
    );
    let (request, browser) = elicited(&mut client);
    accept(&mut client, &request, "accept");
    let status = |answer: String| answer.get(9..12).unwrap_or_default().to_owned();
    let own = browser.path.clone();
    let foreign = [("Origin", "http://evil.example")];
    assert_eq!(status(browser.send("GET", "/", &[], "")), "404");
    assert_eq!(
        status(browser.send("GET", &own[..own.len() - 1], &[], "")),
        "404"
    );
    assert_eq!(
        status(browser.send("GET", &own, &[("Host", "evil.example")], "")),
        "403"
    );
    assert_eq!(status(browser.send("GET", &own, &foreign, "")), "403");
    assert_eq!(status(browser.send("PUT", &own, &[], "")), "405");
    // An answer before the page was shown is none.
    let answer = browser.give("0", "session", VALUE);
    assert_eq!(status(answer), "400");
    let page = browser.send("GET", &own, &[], "");
    assert!(
        page.contains("&lt;script&gt;") && !page.contains("<script"),
        "{page}"
    );
    for header in [
        "content-security-policy: default-src 'none'",
        "cache-control: no-store",
    ] {
        assert!(page.to_lowercase().contains(header), "{page}");
    }
    assert_eq!(status(browser.send("GET", &own, &[], "")), "410");
    let csrf = page
        .split("name=\"csrf\" value=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert_eq!(status(browser.give("wrong", "session", VALUE)), "400");
    assert_eq!(status(browser.give(csrf, "save", VALUE)), "400");
    let body = format!("csrf={csrf}&value={VALUE}&lifetime=session&answer=give");
    assert_eq!(status(browser.send("POST", &own, &foreign, &body)), "403");
    let huge = "x".repeat(300_000);
    assert_eq!(status(browser.give(csrf, "session", &huge)), "400");
    assert_eq!(status(browser.give(csrf, "once", VALUE)), "200");
    assert_eq!(client.answer(id)["result"]["isError"], false);
    // Once means the next call that uses it, and no other.
    let echo = json!({"text": "echo $KARYI{TOKEN}"});
    assert_eq!(
        client.good("command", echo.clone())["output"],
        "$KARYI{TOKEN}\n"
    );
    assert_eq!(client.bad("command", echo)["code"], "undefined_variable");
}

#[test]
fn a_value_for_once_waits_for_the_call_that_uses_it() {
    let mut client = Client::hello(mcp().file("a.txt", "one\n"), &can_open());
    let id = client.begin_call("get_value", json!({"key": "TOKEN", "reason": "x"}));
    let (request, browser) = elicited(&mut client);
    accept(&mut client, &request, "accept");
    let csrf = browser.open();
    browser.give(&csrf, "once", VALUE);
    assert_eq!(client.answer(id)["result"]["isError"], false);
    let read = json!({"files": [{"src": "a.txt"}]});
    let echo = json!({"text": "echo $KARYI{TOKEN}"});
    // Many at a time: those that do not name it leave it alone.
    let mut ids: Vec<i64> = (0..8)
        .map(|_| client.begin_call("read", read.clone()))
        .collect();
    let using = client.begin_call("command", echo.clone());
    ids.extend((0..8).map(|_| client.begin_call("read", read.clone())));
    let used = client.answer(using);
    assert_eq!(
        used["result"]["structuredContent"]["output"], "$KARYI{TOKEN}\n",
        "{used}"
    );
    for id in ids {
        assert_eq!(client.answer(id)["result"]["isError"], false);
    }
    assert_eq!(client.bad("command", echo)["code"], "undefined_variable");
}

#[test]
fn a_question_that_nobody_waits_for_holds_up_no_other() {
    let mut client = Client::hello(mcp(), &can_open());
    let first = client.begin_call("get_value", json!({"key": "FIRST", "reason": "x"}));
    let (request, browser) = elicited(&mut client);
    accept(&mut client, &request, "accept");
    let second = client.begin_call("get_value", json!({"key": "SECOND", "reason": "x"}));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": first}}));
    // The next question comes before the time of the first is up, and its page is gone.
    let (request, next) = elicited(&mut client);
    assert!(
        request["params"]["message"]
            .as_str()
            .unwrap()
            .contains("SECOND"),
        "{request}"
    );
    accept(&mut client, &request, "accept");
    let csrf = next.open();
    next.give(&csrf, "session", VALUE);
    assert_eq!(client.answer(second)["result"]["isError"], false);
    assert!(TcpStream::connect(("127.0.0.1", browser.port)).is_err());
}

#[test]
fn a_page_answers_for_the_name_it_was_made_for_only() {
    let mut client = Client::start(mcp());
    let mut call = |name: &str, more: Value| {
        let mut params = json!({
            "name": "get_value",
            "arguments": {"key": name, "reason": "x"},
            "_meta": modern(json!({"elicitation": {"url": {}}})),
        });
        let all = params.as_object_mut().unwrap();
        all.extend(more.as_object().unwrap().clone());
        client.request("tools/call", params)["result"].take()
    };
    let first = call("ONE", json!({}));
    let url = &first["inputRequests"]["value:ONE"]["params"]["url"];
    let browser = Browser::at(url.as_str().unwrap());
    let csrf = browser.open();
    browser.give(&csrf, "session", VALUE);
    let answered = |name: &str, action: &str| {
        json!({
            "inputResponses": {format!("value:{name}"): {"action": action}},
            "requestState": first["requestState"],
        })
    };
    for action in ["accept", "decline"] {
        let other = call("OTHER", answered("OTHER", action));
        assert_ne!(error_of(&other)["status"], "provided", "{other}");
    }
    let result = call("ONE", answered("ONE", "accept"));
    assert_eq!(
        result["structuredContent"]["status"], "provided",
        "{result}"
    );
}

#[test]
fn without_initialize_the_call_is_made_again_with_the_answer() {
    let mut client = Client::start(mcp());
    let params = |more: Value| {
        let mut params = json!({
            "name": "get_value",
            "arguments": {"key": "TOKEN", "reason": "to publish"},
            "_meta": modern(json!({"elicitation": {"url": {}}})),
        });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        params
    };
    let first = client.request("tools/call", params(json!({})));
    let result = &first["result"];
    assert_eq!(result["resultType"], "input_required", "{first}");
    let wanted = &result["inputRequests"]["value:TOKEN"];
    assert_eq!(wanted["method"], "elicitation/create", "{first}");
    let browser = Browser::at(wanted["params"]["url"].as_str().unwrap());
    let csrf = browser.open();
    browser.give(&csrf, "session", VALUE);
    let answer = json!({
        "inputResponses": {"value:TOKEN": {"action": "accept"}},
        "requestState": result["requestState"],
    });
    let second = client.request("tools/call", params(answer.clone()));
    assert_eq!(
        second["result"]["structuredContent"]["status"], "provided",
        "{second}"
    );
    // A state is good for one answer.
    let refresh = json!({
        "arguments": {"key": "TOKEN", "reason": "x", "refresh": true},
        "inputResponses": answer["inputResponses"],
        "requestState": answer["requestState"],
    });
    let third = client.request("tools/call", params(refresh));
    assert_eq!(
        error_of(&third["result"])["code"],
        "prompt_timeout",
        "{third}"
    );
    let declined = json!({"arguments": {"key": "OTHER", "reason": "x"}, "inputResponses": {"value:OTHER": {"action": "decline"}}, "requestState": "x"});
    let fourth = client.request("tools/call", params(declined));
    assert_eq!(error_of(&fourth["result"])["code"], "declined", "{fourth}");
}

#[test]
fn the_form_tells_hosts_and_who_could_read_along() {
    let karyi = with_value()
        .file("policy.toml", "[secret.TOKEN]\nuse = \"ask\"\n")
        .args(&["--policy", "policy.toml"]);
    let mut client = Client::hello(karyi, &json!({"elicitation": {}}));
    let script = "curl -s http://127.0.0.1:1/ -H \"X: $KARYI{TOKEN}\"";
    let id = client.begin_call("command", json!({"text": script}));
    let asked = client.wait_for(|message| message["method"] == "elicitation/create");
    let message = asked["params"]["message"].as_str().unwrap();
    let (first, rest) = message.split_once('\n').unwrap();
    assert_eq!(
        first,
        format!("May command use the secret TOKEN here? {script}")
    );
    let (hosts, warning) = rest.split_once('\n').unwrap();
    assert_eq!(hosts, "hosts in it: 127.0.0.1");
    assert!(
        warning.starts_with("TOKEN is an argument of curl"),
        "{warning}"
    );
    accept(&mut client, &asked, "decline");
    assert_eq!(error_of(&client.answer(id)["result"])["code"], "declined");
}

#[test]
fn use_of_a_secret_is_asked_with_a_form() {
    let policy = "[secret.TOKEN]\nuse = \"ask\"\n";
    let run = |action: &str, capabilities: Value| {
        let karyi = with_value()
            .file("policy.toml", policy)
            .args(&["--policy", "policy.toml"]);
        let mut client = Client::hello(karyi, &capabilities);
        let id = client.begin_call("command", json!({"text": "echo $KARYI{TOKEN}"}));
        let is_answer = |message: &Value| message["id"] == id && message.get("method").is_none();
        let first = client
            .wait_for(|message| is_answer(message) || message["method"] == "elicitation/create");
        if is_answer(&first) {
            return error_of(&first["result"])["code"].clone();
        }
        assert_eq!(
            first["params"]["requestedSchema"]["type"], "object",
            "{first}"
        );
        accept(&mut client, &first, action);
        let result = client.answer(id)["result"].clone();
        match result["isError"] == true {
            true => error_of(&result)["code"].clone(),
            false => result["structuredContent"]["output"].clone(),
        }
    };
    let form = json!({"elicitation": {}});
    assert_eq!(run("accept", form.clone()), "$KARYI{TOKEN}\n");
    assert_eq!(run("decline", form), "declined");
    assert_eq!(run("", json!({})), "approval_required");
}

#[test]
fn the_first_value_ever_is_masked_and_used_by_a_server_that_runs() {
    let home = crate::vault::home::Home::new();
    let karyi = mcp().env("KARYI_HOME", home.path().join("karyi"));
    let mut client = Client::hello(karyi, &json!({}));
    client.good("command", json!({"text": "echo one"}));
    home.set("TOKEN", VALUE, &[]);
    let shown = client.call("command", json!({"text": format!("echo {VALUE}")}));
    assert!(!shown.to_string().contains(VALUE), "{shown}");
    let used = client.good(
        "command",
        json!({"text": "printf %s \"$KARYI{TOKEN}\" | wc -c"}),
    );
    assert_eq!(used["output"], "28\n", "{used}");
}
