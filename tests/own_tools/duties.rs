//! `todo_update` and `plan_create`, with a server of models that plays scripted replies.

use std::fs;

use serde_json::{Value, json};

use super::{karyi, run_in};
use crate::ask::headless;
use crate::ask::server::{ModelServer, Reply};
use crate::harness::{Karyi, Ran, results};

const STATE: &str = "../home/.local/share/karyi-assistant";
const ACTIVE: &str = "# Active Contacts\n\n## John\n\n```yaml\ncontact_id: \"tg:1001\"\nnickname: \"John\"\n```\n\n\
    ## Broken\n\n```yaml\ncontact_id: [\n```\n";

/// A run with a model that replies so.
fn asking(server: &ModelServer) -> Karyi {
    karyi()
        .env("KARYI_MODEL", "openai_chat:tiny")
        .env("KARYI_MODEL_URL", &server.url)
}

fn server(replies: &[&str]) -> ModelServer {
    ModelServer::start(replies.iter().map(|reply| Reply::text(reply)).collect())
}

/// The text of a TODO file with entries, newest first.
fn todo(contents: &[&str]) -> String {
    let lines = contents
        .iter()
        .map(|text| format!("- [ ] [Created](2026-01-02 03:04) | {text}\n"));
    format!("# Mine\n\n{}", lines.collect::<String>())
}

fn add(content: &str, people: &str) -> String {
    format!(
        "<todo_update action=\"add\" people='{people}'><content>{content}</content></todo_update>"
    )
}

fn complete(content: &str) -> String {
    format!("<todo_update action=\"complete\"><content>{content}</content></todo_update>")
}

/// Runs one call and returns its result and the run.
#[track_caller]
fn one(karyi: Karyi, call: &str) -> (Value, Ran) {
    let ran = karyi.stdin(format!("<tools>{call}</tools>")).run();
    let report = ran.json();
    (results(&report)[0].clone(), ran)
}

/// Returns the contents of the entries of a file.
fn contents(ran: &Ran, name: &str) -> Vec<String> {
    let path = ran.root().join("work").join(STATE).join(name);
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with("- ["));
    lines
        .map(|line| line.split_once(" | ").unwrap().1.to_owned())
        .collect()
}

/// Returns the message of the user in a request, as JSON.
fn facts(request: &Value) -> Value {
    let text = request["messages"][1]["content"].as_str().unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn an_entry_gets_references_and_goes_into_a_new_file() {
    let server = server(&[
        "Sure:\n```json\n{\"status\":\"ok\",\"rewritten_content\":\"Remind [John](tg:1001) of the report\",\"warnings\":[\"guessed\"]}\n```",
    ]);
    let karyi = asking(&server).file(&format!("{STATE}/contacts/ACTIVE.md"), ACTIVE);
    let call = "<todo_update action=\"add\" chat_id=\"tg:-100123\"><content>Remind John\n of the report</content>\
        <people>John</people></todo_update>";
    let (result, ran) = one(karyi, call);
    assert_eq!(result["status"], "ok", "{result}");
    assert_eq!(
        (&result["ok"], &result["action"]),
        (&json!(true), &json!("add"))
    );
    assert_eq!(
        result["updated_counts"],
        json!({"open_count": 1, "done_count": 0})
    );
    assert_eq!(
        result["changed"],
        json!({"wip_added": 1, "wip_removed": 0, "done_added": 0})
    );
    assert_eq!(
        result["entry"]["content"],
        "Remind [John](tg:1001) of the report"
    );
    assert_eq!(result["entry"]["chat_id"], "tg:-100123");
    let warnings = result["warnings"].as_array().unwrap();
    assert!(
        warnings[0].as_str().unwrap().starts_with("Broken: "),
        "{warnings:?}"
    );
    assert_eq!(warnings[1], "guessed");
    assert_eq!(
        contents(&ran, "TODO.md"),
        ["Remind [John](tg:1001) of the report"]
    );
    let text = fs::read_to_string(ran.root().join("work").join(STATE).join("TODO.md")).unwrap();
    assert!(
        text.contains("\nopen_count: 1\n---\n\n# TODO Work In Progress (WIP)\n\n- [ ] [Created]("),
        "{text}"
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let facts = facts(&requests[0]);
    assert_eq!(
        facts["input"],
        json!({"content": "Remind John of the report", "people": ["John"]})
    );
    assert_eq!(facts["allowed_ids"], json!(["tg:1001"]));
    assert_eq!(facts["contacts"][0]["name"], "John");
    let undone = ran.again(&["undo", "1"]).run().exit(0);
    assert_eq!(contents(&undone, "TODO.md"), [""; 0]);
}

#[test]
fn a_person_without_an_id_stays_as_written() {
    let server =
        server(&["{\"status\":\"missing_reference_id\",\"missing\":[{\"mention\":\"Ann\"}]}"]);
    let (result, ran) = one(asking(&server), &add("Call Ann", "[\"Ann\"]"));
    let expected = json!([
        "reference_unresolved_write_raw",
        "missing_reference_id: Ann"
    ]);
    assert_eq!(result["warnings"], expected, "{result}");
    assert_eq!(contents(&ran, "TODO.md"), ["Call Ann"]);
}

/// Checks a call that fails: its code, words of its message, the number of questions, and that nothing changed.
#[track_caller]
fn refused(call: &str, replies: &[&str], (code, words): (&str, &str), questions: usize) {
    let server = server(replies);
    let karyi = asking(&server)
        .file(&format!("{STATE}/contacts/ACTIVE.md"), ACTIVE)
        .file(
            &format!("{STATE}/TODO.md"),
            todo(&["Pay the rent", "Buy milk"]),
        );
    let (result, ran) = one(karyi, call);
    let message = result["message"].as_str().unwrap_or_default();
    assert!(message.contains(words), "{call}: {result}");
    assert_eq!(result["code"], code, "{call}: {result}");
    assert!(!result["hint"].as_str().unwrap().is_empty(), "{result}");
    assert_eq!(server.requests().len(), questions, "{call}");
    ran.file(
        &format!("{STATE}/TODO.md"),
        todo(&["Pay the rent", "Buy milk"]),
    );
}

#[test]
fn what_a_program_can_see_is_refused_before_a_model_is_asked() {
    let bad = "bad_arguments";
    refused(&complete(" "), &[], (bad, "content is required"), 0);
    refused(
        &complete(&"x".repeat(9_000)),
        &[],
        (bad, "expected at most 8192 bytes"),
        0,
    );
    let no_people = "<todo_update action=\"add\"><content>a</content></todo_update>";
    refused(
        no_people,
        &[],
        (bad, "people is required for add action"),
        0,
    );
    refused(
        &add("see [X](foo:1)", "[]"),
        &[],
        (bad, "invalid reference id: foo:1"),
        0,
    );
    refused(
        &add("see [X](tg:7)", "[]"),
        &[],
        (bad, "reference id is not reachable: tg:7"),
        0,
    );
    let call = "<todo_update action=\"add\" people=\"[]\" chat_id=\"tg:0\"><content>a</content></todo_update>";
    refused(call, &[], (bad, "invalid chat_id: tg:0"), 0);
    let secret = "<todo_update action=\"complete\"><content>$KARYI{NAME}</content></todo_update>";
    refused(secret, &[], ("undefined_variable", "NAME"), 0);
}

#[test]
fn words_of_the_tool_lead_the_errors_of_its_schema() {
    let refused = |input: &str| {
        let ran = karyi().args(&["-c", input]).run();
        format!("{}{}", ran.stdout(), ran.stderr_text())
    };
    for (input, words) in [
        (
            "<tools><todo_update><content>a</content></todo_update></tools>",
            "action is required",
        ),
        (
            "<tools><todo_update action=\"add\"/></tools>",
            "content is required",
        ),
        (
            "<tools><todo_update action=\"drop\"><content>a</content></todo_update></tools>",
            "invalid action: ",
        ),
        (
            "<tools><todo_update action=\"add\" people=\"a\"><content>a</content></todo_update></tools>",
            "people must be an array of strings",
        ),
        (
            "<tools><todo_update action=\"add\" people=\"[1]\"><content>a</content></todo_update></tools>",
            "people must be an array of strings",
        ),
        (
            "<tools><plan_create/></tools>",
            "missing required param: task",
        ),
    ] {
        let told = refused(input);
        assert!(told.contains(words), "{input}: {told}");
    }
}

#[test]
fn replies_that_cannot_be_used_change_nothing() {
    let add = add("Call John", "[\"John\"]");
    let bad = "bad_reply";
    let resolve = "invalid reference_resolve response";
    refused(&add, &["no", "{\"status\":"], (bad, resolve), 2);
    refused(&add, &["", ""], (bad, resolve), 2);
    refused(
        &add,
        &["[]", "{\"status\":\"ok\",\"rewritten_content\":\" \"}"],
        (bad, resolve),
        2,
    );
    let nobody = "{\"status\":\"ok\",\"rewritten_content\":\"Call [John](tg:5)\"}";
    refused(
        &add,
        &[nobody, nobody],
        (bad, "reference id is not reachable: tg:5"),
        2,
    );
    let done = complete("rent");
    let semantic = "invalid semantic_match response";
    refused(&done, &["nope", "nope"], (bad, semantic), 2);
    let wild = "{\"status\":\"matched\",\"index\":7}";
    refused(&done, &[wild, wild], (bad, "index out of range: 7"), 2);
    refused(
        &done,
        &["{\"status\":\"no_match\"}"],
        ("not_found", "no matching todo item in TODO.md"),
        1,
    );
    let server = ModelServer::start(vec![Reply::Status(400, "{}")]);
    let (result, _) = one(asking(&server), &add);
    assert_eq!(result["code"], "model_failed", "{result}");
}

#[test]
fn a_reply_that_cannot_be_read_is_asked_for_once_more() {
    let server = server(&["I am not sure.", "{\"status\":\"matched\",\"index\":1}"]);
    let karyi = asking(&server).file(
        &format!("{STATE}/TODO.md"),
        todo(&["Pay the rent", "B | c"]),
    );
    let (result, ran) = one(
        karyi,
        &complete("- [ ] [Created](2026-01-02 03:04) | B | c"),
    );
    assert_eq!(
        result["changed"],
        json!({"wip_added": 0, "wip_removed": 1, "done_added": 1}),
        "{result}"
    );
    assert_eq!(
        result["updated_counts"],
        json!({"open_count": 1, "done_count": 1})
    );
    assert!(result["entry"]["done_at"].is_string(), "{result}");
    assert_eq!(facts(&server.requests()[1])["query"], "B | c");
    assert_eq!(contents(&ran, "TODO.md"), ["Pay the rent"]);
    assert_eq!(contents(&ran, "TODO.DONE.md"), ["B | c"]);
    let undone = ran.again(&["undo", "1"]).run().exit(0);
    assert_eq!(contents(&undone, "TODO.md"), ["Pay the rent", "B | c"]);
    assert_eq!(contents(&undone, "TODO.DONE.md"), [""; 0]);
}

#[test]
fn entries_that_a_completion_may_mean_are_listed() {
    let server = server(&["{\"status\":\"ambiguous\",\"candidate_indices\":[0,2]}"]);
    let open = todo(&["Pay the rent", "Buy milk", "Pay the rent of May"]);
    let karyi = asking(&server).file(&format!("{STATE}/TODO.md"), &open);
    let (result, ran) = one(karyi, &complete("rent"));
    assert_eq!(
        (&result["status"], &result["code"]),
        (&json!("error"), &json!("ambiguous"))
    );
    assert_eq!(result["message"], "ambiguous todo item match");
    let found: Vec<&Value> = result["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["content"])
        .collect();
    assert_eq!(found, ["Pay the rent", "Pay the rent of May"]);
    ran.file(&format!("{STATE}/TODO.md"), &open);
}

/// Adds `Pay the rent` to open entries with a reply about duplicates, and returns the result and the entries.
fn deduplicated(open: &[&str], reply: &[&str]) -> (Value, Vec<String>, usize) {
    let mut replies = vec!["{\"status\":\"ok\",\"rewritten_content\":\"Pay the rent\"}"];
    replies.extend(reply);
    let server = server(&replies);
    let karyi = asking(&server).file(&format!("{STATE}/TODO.md"), todo(open));
    let (result, ran) = one(karyi, &add("Pay the rent", "[]"));
    assert_eq!(result["status"], "ok", "{result}");
    (result, contents(&ran, "TODO.md"), server.requests().len())
}

#[test]
fn duplicates_of_the_new_entry_are_removed_and_listed() {
    let open = ["pay RENT", "Buy milk", "Rent: pay it"];
    let (result, left, _) = deduplicated(&open, &["{\"duplicates\":[1]}"]);
    assert_eq!(left, ["Pay the rent", "pay RENT", "Buy milk"]);
    assert_eq!(
        result["changed"],
        json!({"wip_added": 1, "wip_removed": 1, "done_added": 0})
    );
    assert_eq!(result["removed"][0]["content"], "Rent: pay it", "{result}");
    assert_eq!(result["updated_counts"]["open_count"], 3);
}

#[test]
fn a_model_cannot_remove_entries_that_do_not_resemble_the_new_one() {
    let open = ["pay RENT", "Buy milk", "Water the plants", "Call Ann"];
    let all = [
        "Pay the rent",
        "pay RENT",
        "Buy milk",
        "Water the plants",
        "Call Ann",
    ];
    for wild in [
        "{\"duplicates\":[0,1,2,3]}",
        "{\"keep_indices\":[0]}",
        "{\"duplicates\":[3]}",
        "no",
    ] {
        let (result, left, questions) = deduplicated(&open, &[wild, wild]);
        assert_eq!(left, all, "{wild}");
        assert_eq!(questions, 3, "{wild}");
        let warning = result["warnings"][0].as_str().unwrap();
        assert!(
            warning.starts_with("invalid semantic_dedup response"),
            "{warning}"
        );
        assert_eq!(result["removed"], Value::Null);
    }
    let (_, left, questions) = deduplicated(&["Buy milk"], &[]);
    assert_eq!((left.len(), questions), (2, 1));
}

#[test]
fn files_are_read_as_people_write_them() {
    let replies = ["{\"status\":\"ok\",\"rewritten_content\":\"new\"}"];
    let check = |before: &str, after: &str| {
        let server = server(&replies);
        let karyi = asking(&server).file(&format!("{STATE}/TODO.md"), before);
        let (result, ran) = one(karyi, &add("new", "[]"));
        let path = ran.root().join("work").join(STATE).join("TODO.md");
        let found = fs::read_to_string(path).unwrap();
        let created = result["entry"]["created_at"].as_str().unwrap();
        let line = format!("- [ ] [Created]({created}) | new");
        assert_eq!(found, after.replace("NEW", &line), "{before:?}");
        assert_eq!(result["updated_counts"]["open_count"], 1, "{before:?}");
    };
    let example = "- [ ] [Created](2026-01-01 00:00) | an example";
    check(
        &format!("# TODO\n\n<!--\n{example}\n{example}\n-->\n"),
        &format!("# TODO\n\n<!--\n{example}\n{example}\n-->\nNEW\n"),
    );
    check(
        &format!("# TODO\r\n<!-- {example}"),
        &format!("# TODO\r\nNEW\r\n\r\n<!-- {example}"),
    );
    check("\u{feff}---\nbroken\n", "\u{feff}NEW\n\n---\nbroken\n");
}

#[test]
fn other_kinds_of_files_are_refused() {
    let latin = [b"- [ ] caf".as_slice(), &[0xe9]].concat();
    let server = server(&[]);
    let karyi = asking(&server).file(&format!("{STATE}/TODO.md"), &latin);
    let (result, ran) = one(karyi, &complete("x"));
    assert_eq!(result["code"], "binary_file", "{result}");
    ran.file(&format!("{STATE}/TODO.md"), &latin);
    let karyi = asking(&server).file(&format!("{STATE}/TODO.md/x"), "");
    let (result, _) = one(karyi, &complete("x"));
    assert_eq!(result["code"], "is_directory", "{result}");
    let karyi = asking(&server)
        .file(&format!("{STATE}/x"), "")
        .file("secret.md", todo(&["theirs"]));
    let link = karyi.work().join(STATE).join("TODO.md");
    std::os::unix::fs::symlink(karyi.work().join("secret.md"), link).unwrap();
    let (result, _) = one(karyi, &complete("theirs"));
    assert_eq!(result["code"], "outside_root", "{result}");
}

const RULES: &str = "[tools.todo_update]\nwithout_model = true\n";

#[test]
fn plain_rules_do_without_a_model() {
    let karyi = karyi().file("../home/.config/karyi/config.toml", RULES);
    let calls = add("Pay the rent", "[]")
        + &add("Pay the rent of May", "[\"Ann\"]")
        + &complete("pay  the RENT")
        + &complete("milk")
        + &complete("rent");
    let found = run_in(karyi, &calls);
    assert_eq!(found[0]["warnings"], Value::Null, "{found:?}");
    assert_eq!(
        found[1]["warnings"],
        json!(["reference_unresolved_write_raw"])
    );
    assert_eq!(found[2]["entry"]["content"], "Pay the rent");
    assert_eq!(found[3]["code"], "not_found");
    assert_eq!(found[4]["entry"]["content"], "Pay the rent of May");
}

#[test]
fn without_a_model_the_tools_say_so() {
    let found = run_in(karyi(), &(complete("x") + "<plan_create task=\"x\"/>"));
    assert_eq!(
        found[0]["message"],
        "todo_update unavailable (missing llm model)"
    );
    assert_eq!(
        found[1]["message"],
        "plan_create unavailable (missing llm model)"
    );
    let off = "[tools.todo_update]\nenabled = false\n";
    let karyi = karyi().file("../home/.config/karyi/config.toml", off);
    let found = run_in(karyi, &complete("x"));
    assert_eq!(found[0]["code"], "tool_disabled", "{found:?}");
}

#[test]
fn a_plan_has_at_most_the_steps_that_were_asked_for() {
    let eight = json!({"thought": "t", "summary": "s", "steps": ["1", "2", "3", "4", "5", "6", "7", "8"],
        "risks": ["r"], "questions": null, "completion": "c"});
    let server = server(&[&eight.to_string(), "no", "{\"steps\":[]}"]);
    let (result, _) = one(
        asking(&server),
        "<plan_create task=\"Move it\" style=\"terse\"/>",
    );
    let steps = result["plan"]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 6, "{result}");
    assert_eq!(steps[0], json!({"step": "1", "status": "in_progress"}));
    assert_eq!(steps[5], json!({"step": "6", "status": "pending"}));
    assert_eq!(
        (&result["plan"]["risks"], &result["plan"]["completion"]),
        (&json!(["r"]), &json!("c"))
    );
    assert_eq!(
        facts(&server.requests()[0]),
        json!({"task": "Move it", "max_steps": 6, "style": "terse"})
    );
    let (result, _) = one(asking(&server), "<plan_create task=\"Move it\"/>");
    assert_eq!(result["code"], "bad_reply", "{result}");
    assert!(
        result["message"]
            .as_str()
            .unwrap()
            .starts_with("invalid plan_create response"),
        "{result}"
    );
}

#[test]
fn a_plan_is_made_by_a_model_of_the_settings() {
    let server = server(&["{\"steps\":[\"a\"]}"]);
    let settings = format!(
        "[models.big]\nprovider = \"openai_chat\"\nmodel = \"huge\"\nbase_url = \"{}\"\n",
        server.url
    );
    let karyi = karyi().file("../home/.config/karyi/config.toml", settings);
    let calls = "<plan_create task=\"x\" model=\"big\"/><plan_create task=\"x\" model=\"openai_chat:tiny\"/>";
    let found = run_in(karyi, calls);
    assert_eq!(found[0]["plan"]["steps"][0]["step"], "a", "{found:?}");
    let request = &server.requests()[0];
    assert_eq!(request["model"], "huge");
    // A server on this machine can hold a model to a schema.
    let schema = &request["response_format"]["json_schema"]["schema"];
    assert_eq!(schema["properties"]["steps"]["maxItems"], 6, "{request}");
    assert_eq!(
        schema["properties"]["thought"]["maxLength"], 500,
        "{request}"
    );
    assert_eq!(found[1]["code"], "bad_arguments");
    assert!(
        found[1]["hint"].as_str().unwrap().contains("big"),
        "{found:?}"
    );
}

#[test]
fn a_text_with_a_value_is_kept_as_it_is_and_shown_to_no_model() {
    let server = server(&[]);
    let karyi = asking(&server)
        .args(&["--vault", "env"])
        .env("KARYI_VAR_TOKEN", "hunter2-hunter2");
    let (result, ran) = one(karyi, &add("Renew hunter2-hunter2", "[]"));
    assert_eq!(result["status"], "ok", "{result}");
    assert_eq!(result["entry"]["content"], "Renew $KARYI{TOKEN}");
    assert_eq!(contents(&ran, "TODO.md"), ["Renew hunter2-hunter2"]);
    assert_eq!(server.requests().len(), 0);
    let again = ran
        .again(&["run", "--json", "--tools", "assistant", "--vault", "env"])
        .env("KARYI_VAR_TOKEN", "hunter2-hunter2");
    let (refused, _) = one(again, &complete("$KARYI{TOKEN}"));
    assert_eq!(refused["code"], "unsafe_context", "{refused}");
}

#[test]
fn texts_are_taken_as_written() {
    let karyi = karyi().file("../home/.config/karyi/config.toml", RULES);
    let (result, _) = one(karyi, &add("\nFix if (a < b && c) in <main>\n", "[]"));
    assert_eq!(
        result["entry"]["content"], "Fix if (a < b && c) in <main>",
        "{result}"
    );
}

#[test]
fn a_conversation_asks_its_own_model() {
    let server = server(&[
        "<tools>\n<todo_update action=\"add\" people=\"[]\"><content>Buy milk</content></todo_update>\n</tools>",
        "{\"status\":\"ok\",\"rewritten_content\":\"Buy milk\"}",
        "Noted.",
    ]);
    let flags = [
        "--approve",
        "full",
        "--tools",
        "core,assistant",
        "I need milk",
    ];
    let output = headless::run(&headless::ask(&server, &flags));
    let told = headless::text(&output.stderr);
    assert!(
        headless::text(&output.stdout).ends_with("Noted.\n"),
        "{told}"
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "{told}");
    assert_eq!(facts(&requests[1])["input"]["content"], "Buy milk");
    let results = requests[2]["messages"].to_string();
    assert!(results.contains("open_count=\\\"1\\\""), "{results}");
}
