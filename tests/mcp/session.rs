//! One session for a connection: it stays, is interrupted, tells how it goes, and ends.

use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};

use super::{Client, Gate, Pipe};

fn is_there(pid: i32) -> bool {
    // A zombie waits for its parent and is no process any more.
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    status.is_ok_and(|text| !text.contains(") Z"))
}

fn pipe(client: &Client, name: &str) -> Pipe {
    Pipe::at(client.karyi.work().join(name))
}

#[test]
fn directory_variables_and_functions_stay() {
    let mut client = Client::connected();
    client.good(
        "command",
        json!({"text": "cd /usr; name=Yan; hello() { echo \"hello $1\"; }"}),
    );
    let result = client.good("command", json!({"text": "pwd; hello $name"}));
    assert_eq!(
        (&result["output"], &result["cwd"]),
        (&json!("/usr\nhello Yan\n"), &json!("/usr"))
    );
}

#[test]
fn calls_sent_together_run_in_their_order() {
    let mut client = Client::connected();
    let write = json!({"files": [{"src": "a.txt", "edits": [{"find": "", "replace": "one\n"}]}]});
    let calls = [
        client.begin_call("command", json!({"text": "mkdir d; cd d"})),
        client.begin_call("edit", write),
        client.begin_call("command", json!({"text": "cat a.txt; pwd"})),
        // As `karyi parse --json` prints a file of which only the path is given.
        client.begin_call("read", json!({"files": ["a.txt"]})),
    ];
    let results: Vec<Value> = calls.map(|id| client.answer(id)["result"].clone()).to_vec();
    let output = results[2]["structuredContent"]["output"].as_str().unwrap();
    assert!(
        output.starts_with("one\n") && output.ends_with("/d\n"),
        "{output:?}"
    );
    assert_eq!(
        results[3]["structuredContent"]["files"][0]["output"],
        "one\n"
    );
}

#[test]
fn a_cancelled_call_is_interrupted_and_has_no_answer() {
    let mut client = Client::connected();
    let pipe = pipe(&client, "pipe");
    let id = client.begin_call(
        "command",
        json!({"text": "echo here; { echo $BASHPID; exec sleep 500; } > pipe & fg"}),
    );
    let pid = pipe.pid();
    let params = json!({"requestId": id, "reason": "the user changed their mind"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    pipe.ended();
    // Its descriptors are closed a moment before it has ended.
    while is_there(pid) {
        std::thread::yield_now();
    }
    // The session goes on, and the cancelled call is not answered.
    let result = client.good("command", json!({"text": "echo still there"}));
    assert_eq!(result["output"], "still there\n");
    assert!(
        client.aside.iter().all(|message| message["id"] != id),
        "{:?}",
        client.aside
    );
}

#[test]
fn a_cancelled_call_that_waits_for_its_turn_never_runs() {
    let mut client = Client::connected();
    let gate = Gate::in_dir(&client.karyi.work());
    let first = client.begin_call("command", json!({"text": "read < go"}));
    let second = client.begin_call("command", json!({"text": "touch never"}));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": second}}));
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    gate.open();
    assert_eq!(client.answer(first)["result"]["isError"], false);
    assert_eq!(
        client.good("command", json!({"text": "ls"}))["output"],
        "go\n"
    );
}

#[test]
fn a_cancelled_search_stops() {
    let mut client = Client::connected();
    let id = client.begin_call(
        "read",
        json!({"searches": [{"pattern": "nothing has this text", "path": "/usr", "all": true}]}),
    );
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    assert_eq!(
        client.good("command", json!({"text": "echo hi"}))["output"],
        "hi\n"
    );
}

#[test]
fn a_client_that_asks_is_told_how_a_long_call_goes() {
    let mut client = Client::connected();
    let gate = Gate::in_dir(&client.karyi.work());
    let params = json!({
        "name": "command",
        "arguments": {"text": "echo step one; read < go"},
        "_meta": {"progressToken": "token-7"},
    });
    let id = client.begin("tools/call", params);
    let is_progress = |message: &Value| message["method"] == "notifications/progress";
    let mut told = Vec::new();
    for _ in 0..2 {
        let message = client.wait_for(is_progress);
        assert_eq!(message["params"]["progressToken"], "token-7", "{message}");
        told.push((
            message["params"]["progress"].as_f64().unwrap(),
            message["params"]["message"].as_str().unwrap().to_owned(),
        ));
    }
    assert!(told[0].0 < told[1].0, "{told:?}");
    assert!(told[1].1.ends_with("s: step one"), "{told:?}");
    gate.open();
    let result = client.answer(id)["result"].clone();
    assert_eq!(result["structuredContent"]["status"], "ok", "{result}");
    // Nothing is told of a call that is over, and nothing without a token.
    client.good("command", json!({"text": "sleep 1.2"}));
    assert!(!client.aside.iter().any(is_progress), "{:?}", client.aside);
}

#[test]
fn a_command_whose_time_is_up_goes_on_as_a_job() {
    let mut client = Client::connected();
    let result = client.good(
        "command",
        json!({"text": "echo begun; sleep 500", "timeout": 0.5}),
    );
    assert_eq!(
        (&result["status"], &result["id"]),
        (&json!("running"), &json!("1"))
    );
    assert_eq!(result["jobs"][0]["state"], "running", "{result}");
    let result = client.good("read", json!({"files": [{"src": "job:1"}]}));
    assert_eq!(result["files"][0]["output"], "begun\n", "{result}");
    let result = client.good("ctrl", json!({"key": "c"}));
    assert_eq!(result["exit_code"], 130, "{result}");
}

#[test]
fn the_end_of_input_ends_everything() {
    let mut client = Client::connected();
    let (left, pipe) = (pipe(&client, "left"), pipe(&client, "pipe"));
    client.good(
        "command",
        json!({"text": "{ echo $BASHPID; exec nohup setsid sleep 500; } > left 2> /dev/null &"}),
    );
    let left = left.pid();
    client.begin_call(
        "command",
        json!({"text": "trap '' INT HUP TERM; { echo $$; while :; do sleep 0.1; done; } > pipe"}),
    );
    let pid = pipe.pid();
    let (status, _karyi) = client.end();
    assert!(status.success(), "{status}");
    assert!(!is_there(pid) && !is_there(left));
}

#[test]
fn a_call_that_is_nearly_done_is_answered_at_the_end_of_input() {
    let mut client = Client::connected();
    client.good("command", json!({"text": "true"}));
    let id = client.begin_call("command", json!({"text": "echo last"}));
    drop(client.input.take());
    let output = &client.answer(id)["result"]["structuredContent"]["output"];
    assert_eq!(output, "last\n");
    assert!(client.wait().success());
}

#[test]
fn signals_end_everything() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut client = Client::connected();
        let pipe = pipe(&client, "pipe");
        client.begin_call("command", json!({"text": "{ echo $$; sleep 500; } > pipe"}));
        let pid = pipe.pid();
        kill(client.pid(), signal).unwrap();
        assert!(client.wait().success());
        assert!(!is_there(pid), "{signal}");
    }
}

#[test]
fn a_client_that_is_gone_ends_everything() {
    let mut client = Client::connected();
    let pipe = pipe(&client, "pipe");
    client.begin_call("command", json!({"text": "{ echo $$; sleep 500; } > pipe"}));
    let shell = pipe.pid();
    // The test holds standard input open: only nobody reads any more, from the next answer on.
    client.lines = std::sync::mpsc::channel().1;
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n";
    client.raw(ping);
    client.reading.take().unwrap().join().unwrap();
    client.raw(ping);
    assert!(client.wait().success());
    assert!(!is_there(shell));
}
