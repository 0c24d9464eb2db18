//! The tools that a surface offers: `--tools` in scripts, lists, prompts, grammars, MCP and requests to a model.

use serde_json::json;

use crate::ask::headless::{ask, run};
use crate::ask::server::{ModelServer, Reply};
use crate::harness::Karyi;
use crate::mcp::Client;

#[test]
fn a_tool_that_is_not_offered_is_refused_as_such() {
    let block = "<tools><command>touch ran</command></tools>";
    let karyi = Karyi::with_args(&[
        "run",
        "--tools",
        "read,edit",
        "--format",
        "text",
        "-c",
        block,
    ]);
    let ran = karyi.run().exit(2);
    assert_eq!(
        ran.stdout(),
        "error[unknown-tool]: there is no tool <command>\n  --> 1:8\n   |\n 1 | <tools><command>touch ran</command></tools>\n   |        \
         ^^^^^^^^^\n  hint: that tool exists and is not offered here; use one of the tools edit, read\nrefused: see above\n"
    );
}

#[test]
fn the_offered_tools_work_as_ever() {
    let block = "<tools><read><file src=\"f\"/></read></tools>";
    let args = ["run", "--tools", "-command,-input", "-c", block];
    let with = Karyi::with_args(&args).file("f", "seen\n").run().exit(0);
    let without = Karyi::with_args(&["run", "-c", block]).file("f", "seen\n");
    with.stdout_text(&without.run().exit(0).stdout());
}

#[test]
fn lists_prompts_and_grammars_have_the_offered_tools_only() {
    let listed = |args: &[&str]| Karyi::with_args(args).run().exit(0).stdout();
    let list = listed(&["tools", "--tools", "read,input"]);
    let names: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(names, ["read", "input"]);
    let prompt = listed(&["tools", "--tools", "read", "prompt"]);
    for absent in [
        "<command>",
        "<edit",
        "<find>",
        "<input",
        "bash",
        "taken as written",
    ] {
        assert!(!prompt.contains(absent), "{absent} in {prompt}");
    }
    assert!(prompt.contains("\n  <read"), "{prompt}");
    let edits = listed(&["tools", "--tools", "edit", "prompt"]);
    assert!(
        edits.contains("Texts of <find>, <replace> and <content> are"),
        "{edits}"
    );
    for kind in ["gbnf", "gbnf-answer", "json-schema", "rng", "lark"] {
        let grammar = listed(&["tools", "grammar", kind, "--tools", "read"]);
        assert!(!grammar.contains("command"), "{kind}: {grammar}");
        assert!(grammar.contains("read"), "{kind}: {grammar}");
    }
}

#[test]
fn parse_reads_with_the_offered_tools() {
    let karyi = Karyi::with_args(&["parse", "--json", "--tools", "core,-ctrl", "m"])
        .file("m", "<tools><ctrl>c</ctrl></tools>");
    let ran = karyi.run().exit(2);
    assert_eq!(ran.json()["error"], "unknown-tool");
    let told = ran.stderr_text();
    assert!(
        told.ends_with(
            "hint: that tool exists and is not offered here; use one of the tools command, edit, get_value, input, plan, read\n"
        ),
        "{told}"
    );
}

#[test]
fn wrong_words_are_wrong_usage() {
    for (words, message) in [
        (
            "reed",
            "karyi: --tools: \"reed\" is no tool and no family of tools; did you mean read?\n",
        ),
        (
            "-core",
            "karyi: --tools: no tool is left; name at least one\n",
        ),
        (
            "site",
            "karyi: --tools: \"site\" belongs to a site; `karyi serve` offers such tools, and so does `karyi mcp \
                  --tenant ID --site ID`\n",
        ),
    ] {
        let ran = Karyi::with_args(&["run", "--tools", words, "-c", "x"]).run();
        ran.stderr(message).exit(2);
    }
}

#[test]
fn an_mcp_client_sees_the_offered_tools_only() {
    let karyi = Karyi::with_args(&["mcp", "--no-rc", "--tools", "read"]);
    let mut client = Client::hello(karyi, &json!({}));
    let answer = client.request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1, "{answer}");
    assert_eq!(tools[0]["name"], "read");
    let params = json!({"name": "command", "arguments": {"text": "true"}});
    let answer = client.request("tools/call", params);
    assert_eq!(
        answer["error"],
        json!({"code": -32602, "message": "Tool not offered: command; tools/list names all tools"})
    );
}

#[test]
fn a_model_is_told_of_the_offered_tools_only() {
    let block = "<tools><command>touch ran</command></tools>";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("I cannot.")]);
    let karyi = ask(&server, &["--tools", "read", "--approve", "full", "why?"]);
    run(&karyi);
    assert!(!karyi.work().join("ran").exists());
    let requests = server.requests();
    let system = requests[0]["messages"][0]["content"].as_str().unwrap();
    assert!(
        system.contains("<read") && !system.contains("<command>"),
        "{system}"
    );
    let report = requests[1]["messages"][3]["content"].as_str().unwrap();
    assert!(
        report.contains("exists and is not offered here"),
        "{report}"
    );
}
