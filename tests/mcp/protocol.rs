//! What the protocol wants, message by message.

use karyi::tool::validate;
use serde_json::{Value, json};

use super::{Client, modern};
use crate::harness::Karyi;

fn mcp() -> Karyi {
    Karyi::with_args(&["mcp", "--no-rc"])
}

#[test]
fn every_revision_with_initialize_is_spoken() {
    let known = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    for (asked, expected) in known
        .map(|version| (version, version))
        .into_iter()
        .chain([("1999-01-01", "2025-11-25"), ("2026-07-28", "2025-11-25")])
    {
        let mut client = Client::start(mcp());
        let params = json!({
            "protocolVersion": asked,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let mut answer = client.request("initialize", params);
        let instructions = answer["result"]["instructions"].take();
        assert!(
            instructions.as_str().unwrap().contains("one shell"),
            "{instructions}"
        );
        let expected = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "result": {
                "protocolVersion": expected,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "karyi", "title": "karyi", "version": env!("CARGO_PKG_VERSION")},
                "instructions": null,
            },
        });
        assert_eq!(answer, expected, "{asked}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(client.request("ping", json!({}))["result"], json!({}));
        let result = client.good("command", json!({"text": "echo $((6 * 7))"}));
        assert_eq!(result["output"], "42\n", "{asked}");
    }
}

#[test]
fn the_revision_without_initialize_is_spoken() {
    let mut client = Client::start(mcp());
    let meta = modern(json!({}));
    let answer = client.request("server/discover", json!({"_meta": meta}));
    let versions = &answer["result"]["supportedVersions"];
    assert!(
        versions.as_array().unwrap().contains(&json!("2026-07-28")),
        "{answer}"
    );
    let answer = client.request("tools/list", json!({"_meta": meta}));
    assert_eq!(names(&answer)[0], "command", "{answer}");
    let params =
        json!({"name": "command", "arguments": {"text": "cd /usr; echo hi"}, "_meta": meta});
    let answer = client.request("tools/call", params);
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(
        answer["result"]["structuredContent"]["output"], "hi\n",
        "{answer}"
    );
    // The session is that of the connection.
    let params = json!({"name": "command", "arguments": {"text": "pwd"}, "_meta": meta});
    let answer = client.request("tools/call", params);
    assert_eq!(
        answer["result"]["structuredContent"]["output"], "/usr\n",
        "{answer}"
    );
    // Every request says what it needs.
    let answer = client.request("tools/list", json!({}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn every_tool_is_listed_whole() {
    let mut client = Client::connected();
    let answer = client.request("tools/list", json!({}));
    assert_eq!(
        names(&answer),
        ["command", "edit", "read", "get_value", "input", "ctrl"]
    );
    assert!(answer["result"].get("nextCursor").is_none());
    check_tools(&answer);
    let hints: Vec<Value> = answer["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            let hints = &tool["annotations"];
            json!([
                tool["title"],
                hints["readOnlyHint"],
                hints["destructiveHint"],
                hints["idempotentHint"],
                hints["openWorldHint"]
            ])
        })
        .collect();
    let expected = json!([
        ["Command", false, true, false, true],
        ["Edit", false, true, false, false],
        ["Read", true, false, true, false],
        ["Get value", false, false, false, false],
        ["Input", false, true, false, true],
        ["Ctrl", false, true, false, true],
    ]);
    assert_eq!(json!(hints), expected);
    let answer = client.request("tools/list", json!({"cursor": "7"}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

/// Every tool has what clients look at, and no schema says what they warn about.
fn check_tools(answer: &Value) {
    for tool in answer["result"]["tools"].as_array().unwrap() {
        let keys: Vec<&String> = tool.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "name",
                "title",
                "description",
                "inputSchema",
                "outputSchema",
                "annotations"
            ],
            "{tool}"
        );
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{tool}");
            let text = tool[schema].to_string();
            for word in ["$ref", "uint32", "x-karyi", "\"format\""] {
                assert!(!text.contains(word), "{word} in {text}");
            }
        }
    }
}

#[test]
fn results_fit_the_schemas_of_their_tools() {
    let mut client = Client::connected();
    let listed = client.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap().clone();
    let calls = [
        ("command", json!({"text": "echo hi", "name": "a label"})),
        ("command", json!({"text": "yes | head -c 400000; false"})),
        ("command", json!({"text": "sleep 60", "timeout": 0.2})),
        ("command", json!({"text": "echo beside it; cat & true"})),
        ("ctrl", json!({"key": "c"})),
        (
            "command",
            json!({"text": "read -p 'name? ' name; echo \"$name\""}),
        ),
        ("input", json!({"text": "Yan\n"})),
        (
            "edit",
            json!({"files": [{"src": "a.txt", "edits": [{"find": "", "replace": "one\ntwo\n"}]}]}),
        ),
        (
            "edit",
            json!({"files": [{"src": "a.txt", "to": "b.txt", "edits": [{"find": "one", "replace": "1"}]}]}),
        ),
        (
            "read",
            json!({"files": [{"src": "b.txt"}, {"src": "."}], "searches": [{"pattern": "two"}]}),
        ),
    ];
    for (name, arguments) in calls {
        let mut result = client.good(name, arguments.clone());
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let fits = validate::check(&mut result, &tool["outputSchema"], "");
        assert!(fits.is_ok(), "{name} {arguments}: {fits:?}\n{result}");
    }
}

#[test]
fn the_list_is_short_and_in_the_words_of_mcp() {
    let mut client = Client::connected();
    let tools = client.request("tools/list", json!({}))["result"]["tools"].take();
    let text = tools.to_string();
    assert!(text.len() <= 12_000, "{}", text.len());
    for tool in tools.as_array().unwrap() {
        let tag = format!("<{}", tool["name"].as_str().unwrap());
        assert!(!text.contains(&tag), "{tag} in {text}");
    }
    for tag in ["<tools", "<file", "<find", "<search"] {
        assert!(!text.contains(tag), "{tag} in {text}");
    }
}

#[test]
fn arguments_of_another_type_are_taken_when_they_fit() {
    let mut client = Client::connected();
    let edit = json!([{"src": "a.txt", "edits": [{"find": "", "replace": "one\ntwo\n"}]}]);
    let again = json!([{"find": "one", "replace": "ONE", "all": "true"}]).to_string();
    for (tool, arguments, expected) in [
        (
            "edit",
            json!({"files": edit.to_string()}),
            json!({"change": "created"}),
        ),
        (
            "edit",
            json!({"files": {"src": "a.txt", "edits": again}}),
            json!({"change": "edited"}),
        ),
        (
            "read",
            json!({"files": "a.txt"}),
            json!({"output": "ONE\ntwo\n"}),
        ),
        (
            "read",
            json!({"files": "[\"a.txt\"]"}),
            json!({"output": "ONE\ntwo\n"}),
        ),
        (
            "read",
            json!({"files": {"src": "a.txt", "lines": 2}}),
            json!({"output": "two\n"}),
        ),
    ] {
        let result = client.good(tool, arguments.clone());
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&result["files"][0][name], value, "{arguments}: {result}");
        }
    }
    let script = json!({"text": "echo hi", "timeout": "5", "description": "Says hi"});
    assert_eq!(client.good("command", script.clone())["output"], "hi\n");
    let params = json!({"name": "command", "arguments": script.to_string()});
    let answer = client.request("tools/call", params);
    assert_eq!(
        answer["result"]["structuredContent"]["output"], "hi\n",
        "{answer}"
    );
    let error = client.bad("command", json!({"text": "echo hi", "timeout": "soon"}));
    assert_eq!(
        error["message"],
        "`timeout` of command must be a number from 0 to 31536000, found \"soon\""
    );
}

#[test]
fn the_slips_of_the_xml_are_taken_here_too() {
    let mut client = Client::hello(mcp().file("a.txt", "one\n"), &json!({}));
    let read = client.good("read", json!({"files": [{"path": "a.txt"}]}));
    assert_eq!(read["files"][0]["output"], "one\n", "{read}");
    let edit = json!({"files": [{"path": "b.txt", "content": "b\n"}]});
    assert_eq!(client.good("edit", edit)["files"][0]["change"], "created");
    let wait = json!({"text": "echo hi; cat", "timeout": "30 s"});
    let waiting = client.good("command", wait);
    assert_eq!(waiting["status"], "awaiting_input", "{waiting}");
    let ended = client.good("ctrl", json!({"key": "Ctrl+C", "timeout": "10s"}));
    assert_eq!(ended["exit_code"], 130, "{ended}");
    let error = client.bad("ctrl", json!({"key": "strg"}));
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("`key` of ctrl must be one of"),
        "{message}"
    );
    assert!(message.len() < 150, "{message}");
    let error = client.bad("command", json!({"command": "echo hi"}));
    let message = "`text` of command must be given: text, found `command` instead";
    assert_eq!(error["message"], message);
}

#[test]
fn the_text_of_a_result_is_for_reading() {
    let mut client = Client::connected();
    let mut text = |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = client.request("tools/call", params);
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(text("command", json!({"text": "echo '<b>'"})), "<b>\n");
    assert_eq!(text("command", json!({"text": "true"})), "ok");
    let new = json!({"files": [{"src": "x", "content": "abc\n"}]});
    assert_eq!(text("edit", new), "x (change: created, lines: 1)\n");
    // The facts of a call say what its job does.
    let waiting = text("command", json!({"text": "read a; read b"}));
    assert_eq!(waiting, "status: awaiting_input, echo: on, job: 4\n");
    let waiting = text("input", json!({"text": "one\n"}));
    assert!(waiting.starts_with("status: awaiting_input, "), "{waiting}");
    assert!(waiting.contains("job: 4"), "{waiting}");
    assert!(!waiting.contains("state:"), "{waiting}");
    text("input", json!({"text": "two\n"}));
    let seen = text(
        "command",
        json!({"text": "cd /usr; echo no; exit_with() { return 3; }; exit_with"}),
    );
    assert_eq!(seen, "status: failed, exit_code: 3, cwd: /usr\nno\n");
    assert_eq!(text("command", json!({"text": "pwd"})), "/usr\n");
    assert_eq!(
        text("read", json!({"files": ["/nowhere"]})),
        "status: error\nerror not_found: /nowhere: No such file or directory (os error 2)\n\
         hint: check the path; list its directory with `read`\n"
    );
}

#[test]
fn an_unknown_tool_is_one_whatever_else_is_wrong() {
    for site in [
        &[][..],
        &["--tenant", "t", "--site", "s", "--data", "/nowhere"],
    ] {
        let mut client = Client::hello(mcp().args(site), &json!({}));
        for params in [
            json!({"name": "no_such_tool", "arguments": {}}),
            json!({"name": "no_such_tool", "arguments": 7}),
            json!({"name": "no_such_tool", "_meta": 7}),
            json!({"name": "no_such_tool", "arguments": "str"}),
            json!({"name": "no_such_tool", "arguments": []}),
        ] {
            let answer = client.request("tools/call", params.clone());
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            if params.get("_meta").is_some() {
                continue;
            }
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(
                message.starts_with("Unknown tool: no_such_tool"),
                "{answer}"
            );
        }
    }
}

#[test]
fn a_good_call_and_a_command_that_fails_have_structured_content() {
    let mut client = Client::connected();
    let result = client.call("command", json!({"text": "echo hi; cd /usr; exit 3"}));
    let content = result["structuredContent"].clone();
    assert_eq!(
        result,
        json!({"content": "the same", "structuredContent": content, "isError": false})
    );
    assert_eq!(
        (&content["status"], &content["output"]),
        (&json!("failed"), &json!("hi\n"))
    );
    assert_eq!(
        client.good("command", json!({"text": "echo $?"}))["id"],
        "2"
    );
}

#[test]
fn what_a_tool_cannot_do_is_an_error_it_can_read() {
    let mut client = Client::connected();
    let error = client.bad("command", json!({"text": "pwd", "nope": 1}));
    assert_eq!(
        error,
        json!({
            "status": "error",
            "code": "bad_arguments",
            "message": "`nope` of command must be left out, since there is no such key, found 1",
            "hint": "the keys here are text, timeout, cwd, name; see the input schema of the tool for \
                its arguments and their types",
        })
    );
    let cases = [
        ("command", json!({}), "bad_arguments"),
        ("command", json!({"text": [7]}), "bad_arguments"),
        (
            "command",
            json!({"text": "pwd", "timeout": -1}),
            "bad_arguments",
        ),
        ("read", json!({"files": [{"src": "nope.txt"}]}), "not_found"),
        (
            "edit",
            json!({"files": [{"src": "nope.txt", "edits": [{"find": "a", "replace": "b"}]}]}),
            "not_found",
        ),
        ("ctrl", json!({"key": "c"}), "no_job"),
        ("input", json!({"text": "x"}), "no_job"),
        (
            "command",
            json!({"text": "echo $KARYI{NOPE}"}),
            "undefined_variable",
        ),
    ];
    for (tool, arguments, code) in cases {
        let error = client.bad(tool, arguments.clone());
        assert_eq!(error["code"], code, "{tool} {arguments}: {error}");
        assert!(!error["message"].as_str().unwrap().is_empty());
    }
}

#[test]
fn a_request_that_is_none_is_a_protocol_error() {
    let mut client = Client::connected();
    let cases = [
        (
            "tools/call",
            json!({"name": "nope", "arguments": {}}),
            -32602,
        ),
        (
            "tools/call",
            json!({"name": "search_content", "arguments": {"query": "a"}}),
            -32602,
        ),
        ("tools/call", json!({"arguments": {}}), -32602),
        ("tools/call", json!({"name": 7}), -32602),
        (
            "tools/call",
            json!({"name": "command", "arguments": "pwd"}),
            -32602,
        ),
        ("prompts/list", json!({}), -32601),
        ("resources/list", json!({}), -32601),
        ("resources/templates/list", json!({}), -32601),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}}),
            -32601,
        ),
        ("logging/setLevel", json!({"level": "debug"}), -32601),
        ("nope/nope", json!({}), -32601),
        ("", json!({}), -32601),
    ];
    for (method, params, code) in cases {
        let answer = client.request(method, params.clone());
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
    }
    let params = json!({"name": "read", "arguments": [7]});
    let answer = client.request("tools/call", params);
    let message = "the arguments of read must be an object";
    assert_eq!(answer["error"]["message"], message, "{answer}");
}

#[test]
fn the_tools_of_a_site_are_there_when_one_is_named() {
    let data = crate::serve::village();
    let karyi = mcp()
        .args(&["--tenant", "yantian", "--site", "yantian-main", "--data"])
        .arg(data);
    let mut client = Client::hello(karyi, &json!({}));
    let answer = client.request("tools/list", json!({}));
    assert_eq!(names(&answer).len(), 12, "{answer}");
    check_tools(&answer);
    let params = json!({
        "name": "search_content",
        "arguments": {"query": "严氏家训", "limit": 1},
        "_meta": {"karyi/trace_id": "trace-7"},
    });
    let result = client.request("tools/call", params)["result"].clone();
    assert_eq!(result["_meta"]["karyi/trace_id"], "trace-7", "{result}");
    assert_eq!(result["structuredContent"]["query"], "严氏家训", "{result}");
    let error = client.bad("get_npc_profile", json!({"npc_id": "nobody"}));
    assert_eq!(
        (&error["code"], &error["type"]),
        (&json!("NOT_FOUND"), &json!("ValueError"))
    );
    let error = client.bad("search_content", json!({"query": [7]}));
    assert_eq!(error["code"], "INVALID_INPUT", "{error}");
    // Every call is in the ledger.
    let (status, karyi) = client.end();
    assert!(status.success(), "{status}");
    let ledger = karyi
        .work()
        .with_file_name("home")
        .join(".local/share/karyi/ledger.db");
    let connection = rusqlite::Connection::open(ledger).unwrap();
    let count: i64 = connection
        .query_row("SELECT count(*) FROM trace_ledger", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 3);
}

#[test]
fn results_of_a_site_are_cut_with_their_counts() {
    let karyi = mcp()
        .args(&["--max-report", "300"])
        .args(&["--tenant", "yantian", "--site", "yantian-main", "--data"])
        .arg(crate::serve::village());
    let mut client = Client::hello(karyi, &json!({}));
    let map = client.good("get_site_map", json!({}));
    assert!(map["pois"].to_string().len() < 600, "{map}");
    assert!(map["omitted_items"].as_u64() > Some(0), "{map}");
    let hint = "a result has 300 bytes of texts at most: ask for less at once";
    assert_eq!(map["hint"], hint);
    let all = client.good("get_npc_profile", json!({"npc_id": "ancestor_yan"}));
    assert!(all["omitted_items"].as_u64() > Some(0), "{all}");
}

#[test]
fn hints_speak_of_arguments() {
    let karyi = mcp().file("a.txt", "line\n".repeat(3000));
    let mut client = Client::hello(karyi, &json!({}));
    let read = client.good(
        "read",
        json!({"files": ["a.txt"], "searches": [{"pattern": "li.e$"}]}),
    );
    assert_eq!(read["files"][0]["hint"], "lines: \"2001-\" shows more");
    let hint = "regex: true would find 3000 matching lines in 1 file";
    assert_eq!(read["searches"][0]["hint"], hint);
    let error = client.bad("read", json!({"searches": "x"}));
    let message = "`searches` of read must be a list, found \"x\"";
    assert_eq!(error["message"], message);
    let error = client.bad("read", json!({}));
    let hint = "see the input schema of the tool for the arguments";
    assert_eq!(error["hint"], hint);
}

#[test]
fn windows_and_a_server_share_the_data_of_a_site() {
    let server = crate::serve::Server::start(&[]);
    let path = server.dir.path().join("site.db");
    let window = || {
        let karyi = mcp()
            .args(&["--tenant", "yantian", "--site", "yantian-main", "--data"])
            .arg(crate::serve::village())
            .arg("--db")
            .arg(&path);
        Client::hello(karyi, &json!({}))
    };
    let (mut first, mut second) = (window(), window());
    let draft = json!({"content_type": "story", "title": "A bridge", "body": "Over the brook."});
    first.good("create_draft_content", draft);
    for window in [&mut first, &mut second] {
        let found = window.good("search_content", json!({"query": "严氏家训"}));
        assert!(found["total"].as_u64() > Some(0), "{found}");
    }
    assert!(first.end().0.success() && second.end().0.success());
    // All calls are in one chain, and none is taken for an interrupted one.
    let records = server.records();
    let told: Vec<_> = records
        .iter()
        .map(|record| (&record["front_end"], &record["status"]))
        .collect();
    assert_eq!(told, [(&json!("stdio"), &json!("success")); 3]);
    let (code, verdict) = crate::serve::ledger::run(&server, &["verify"]);
    assert_eq!(code, Some(0), "{verdict}");
    server.stop();
}

#[test]
fn records_that_are_lost_at_the_end_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let karyi = mcp()
        .args(&["--tenant", "yantian", "--site", "yantian-main", "--data"])
        .arg(crate::serve::village())
        .arg("--db")
        .arg(dir.path().join("site.db"));
    let told = dir.path().join("told");
    let mut command = karyi.command();
    command.stderr(std::fs::File::create(&told).unwrap());
    let mut client = Client::spawn(karyi, &mut command).greeted(&json!({}));
    client.good("get_site_map", json!({}));
    let other = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    client.good("get_site_map", json!({}));
    assert!(client.end().0.success());
    assert_eq!(
        std::fs::read_to_string(told).unwrap(),
        "karyi: 1 records could not be written before the end: the ledger is locked or the disk is full\n"
    );
}

#[test]
fn words_of_a_tool_lead_the_errors_of_its_schema() {
    let assistant = mcp().args(&["--tools", "assistant"]);
    let mut client = Client::hello(assistant, &json!({}));
    let mut check = |arguments: Value, words: &str| {
        let told = client.call("todo_update", arguments).to_string();
        assert!(told.contains(words), "{words}: {told}");
    };
    check(json!({"content": "a"}), "action is required: ");
    check(json!({"action": "add"}), "content is required: ");
    check(
        json!({"action": "drop", "content": "a"}),
        "invalid action: ",
    );
    let with = |key: &str, value: Value| json!({"action": "add", "content": "a", key: value});
    check(
        with("people", json!([1])),
        "people must be an array of strings: ",
    );
    check(with("chat_id", json!(5)), "chat_id must be a string: ");
}
