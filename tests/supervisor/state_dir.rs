//! Commands for people in directories that no supervisor has used, and the order of lists.

use std::fs;

use serde_json::{Value, json};

use super::{Home, code};
use crate::harness::{Karyi, results};

#[test]
fn commands_that_read_create_nothing() {
    let home = Home::new();
    let foreign = home.path("foreign");
    fs::create_dir(&foreign).unwrap();
    for place in ["none", "foreign", "file/below"] {
        fs::write(home.path("file"), "").unwrap();
        let place = home.path(place);
        let commands: [&[&str]; 7] = [
            &["tasks"],
            &["tasks", "list", "--json"],
            &["tasks", "show", "x"],
            &["tasks", "cancel", "x"],
            &["tasks", "stop", "x"],
            &["tasks", "tail"],
            &["answer", "yes"],
        ];
        for words in commands {
            let place = place.to_str().unwrap();
            let ran = Karyi::with_args(words).args(&["--state-dir", place]).run();
            let expected = format!(
                "karyi: not_found: expected the state directory of a supervisor, found that none has used {place}\n\
                 karyi: hint: give the `--state-dir` of `karyi supervise`, or begin with `karyi tell`\n"
            );
            let ran = ran.exit(1);
            assert_eq!((ran.stderr_text(), ran.stdout()), (expected, String::new()));
        }
    }
    assert!(!home.path("none").exists());
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 0);
    // A message may be the first thing that happens.
    let first = home.path("first");
    let words = ["tell", "hello", "--state-dir", first.to_str().unwrap()];
    Karyi::with_args(&words).run().exit(0);
    let words = ["tasks", "--state-dir", first.to_str().unwrap()];
    let listed = Karyi::with_args(&words).run().exit(0).stdout();
    assert_eq!(
        listed,
        "there are no tasks\n1 message waits for the Teller\nno supervisor runs: `karyi supervise` starts one\n"
    );
}

/// Puts a task into the queue of Workers that was made so long ago.
fn queue(home: &Home, id: &str, priority: u8, minutes: i64) {
    let made = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(minutes);
    let task = json!({
        "id": id, "type": "oneshot", "prompt": id, "priority": priority, "createdAt": made, "attempts": 0,
        "timeout": null,
    });
    let path = home.path(&format!("worker/queue/{id}.json"));
    fs::write(path, task.to_string()).unwrap();
}

#[test]
fn lists_have_the_order_in_which_tasks_run() {
    let home = Home::new();
    home.play("planner", "<list_tasks/>").exit(0);
    queue(&home, "old", 5, 30);
    queue(&home, "new", 7, 0);
    let ids = |list: &Value| -> Vec<String> {
        let tasks = list["tasks"].as_array().unwrap().iter();
        let ids = tasks.map(|task| task["id"].as_str().unwrap().to_owned());
        ids.collect()
    };
    for (settings, expected) in [
        ("", ["new", "old"]),
        ("[supervise]\naging = false\n", ["new", "old"]),
        ("[supervise]\naging = true\n", ["old", "new"]),
    ] {
        let with_settings = |karyi: Karyi| {
            let config = karyi.work().join("../home/.config/karyi");
            fs::create_dir_all(&config).unwrap();
            fs::write(config.join("config.toml"), settings).unwrap();
            karyi.args(&["--state-dir", home.state()])
        };
        let tasks = Karyi::with_args(&["tasks", "--json"]);
        let listed = with_settings(tasks).run().exit(0).json();
        assert_eq!(ids(&listed), expected, "{settings}");
        let run = with_settings(Karyi::new()).args(&["--json", "--role", "planner"]);
        let report = run.stdin("<tools><list_tasks/></tools>").run().exit(0);
        assert_eq!(ids(&results(&report.json())[0]), expected, "{settings}");
    }
    // A mistake in the settings keeps nobody from stopping a task.
    let with_mistake = |words: &[&str]| {
        let karyi = Karyi::with_args(words).args(&["--state-dir", home.state()]);
        let config = karyi.work().join("../home/.config/karyi");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config.toml"), "[supervise]\ntick = 1e300\n").unwrap();
        karyi.run()
    };
    let told = with_mistake(&["tasks"]).exit(2).stderr_text();
    let expected =
        "config.toml:2:8: expected seconds from 0.01 to 86400 for `supervise.tick`, found 1e300\n";
    assert!(told.ends_with(expected), "{told}");
    let stopped = with_mistake(&["tasks", "stop", "old"]).exit(1);
    stopped.stdout_text("old is not running; `karyi tasks cancel old` takes a waiting task back\n");
}

#[test]
fn a_word_that_does_not_fit_is_shown_and_camel_case_is_a_name() {
    let home = Home::new();
    let message = |call: &str| {
        let result = home.call("planner", call);
        assert_eq!(code(&result), "bad_arguments", "{result}");
        result["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        message("<list_tasks scope=\"done\"/>"),
        "`scope`: expected queue, running, triggers or all, found \"done\""
    );
    assert_eq!(
        message("<schedule type=\"daily\"><prompt>x</prompt></schedule>"),
        "`type`: expected recurring, scheduled or conditional, found \"daily\""
    );
    let id = home.call("planner", "<delegate><prompt>x</prompt></delegate>")["task_id"].clone();
    let id = id.as_str().unwrap();
    // Elements and attributes, to the letter and with a slip in the end tag.
    for call in [
        format!("<cancel_task taskId=\"{id}\"/>"),
        format!("<cancel_task><taskId>{id}</taskId></cancel_task>"),
        format!("<cancel_task><taskId>{id}</task_id></cancel_task>"),
        format!("<cancel_task><task_id>{id}</task_id></cancel_task>"),
    ] {
        let result = home.call("planner", &call);
        assert_eq!(result["success"], json!(true), "{call}: {result}");
        assert_eq!(
            result["repairs"],
            if call.contains("taskId") {
                json!(["R11"])
            } else {
                json!(null)
            },
            "{call}: {result}"
        );
    }
    let at = "<schedule type=\"scheduled\"><prompt>x</prompt><runAt>2030-01-01T00:00:00Z</runAt></schedule>";
    assert_eq!(home.call("planner", at)["status"], "ok");
    let run = Karyi::new().args(&["--json", "--tools", "assistant"]);
    let calls = "<tools><plan_create><task>x</task><maxSteps>3</MAXSTEPS></plan_create></tools>";
    let report = run.stdin(calls).run().json();
    // Read as a call; there is no model.
    assert_eq!(report["results"][0]["code"], "no_model", "{report}");
    for refused in [
        "<cancel_task><taskid>x</taskid></cancel_task>",
        "<cancel_task task_id=\"x\"><taskId>x</taskId></cancel_task>",
        "<cancel_task><task_id>x</taskId></cancel_task>",
    ] {
        home.play("planner", refused).exit(2);
    }
}
