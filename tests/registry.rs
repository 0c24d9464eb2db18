//! Walks the registry: whatever is true of one tool is checked for all, and all offenders are told.

use std::sync::Arc;

use karyi::exec::decoder::{DecodedItem, MessageDecoder};
use karyi::reference::{help, prompt};
use karyi::secret::Template;
use karyi::syntax::Mode;
use karyi::tool::Registry;
use karyi::tool::spec::Family;
use karyi::tool::supervision::{SessionRole, roles_of};
use karyi::tools::offer::Offer;
use karyi::tools::{self, Call};
use serde_json::{Value, json};

use crate::ask::server::{ModelServer, Reply};
use crate::harness::scripted_server::{ScriptedServer, answer};
use crate::harness::{Karyi, results};

/// Reads calls of any tool for scripts; the message must be good.
fn calls(xml: &str) -> Result<Vec<Call>, String> {
    calls_of(Arc::new(tools::for_scripts()), xml)
}

/// The JSON arguments of one call of a site's tool, written as XML.
pub fn site_input(xml: &str) -> Value {
    let registry = tools::all().only(|entry| entry.spec.family == Family::Site);
    let calls = calls_of(Arc::new(registry), xml).unwrap();
    arguments(&calls[0])
}

fn calls_of(registry: Arc<Registry<Call>>, xml: &str) -> Result<Vec<Call>, String> {
    let grammar = Arc::new(registry.grammar());
    let mut decoder = MessageDecoder::new(registry, grammar, Mode::Repair);
    let mut incoming = Vec::new();
    decoder.feed(format!("<tools>{xml}</tools>").as_bytes(), &mut incoming);
    decoder.finish(&mut incoming);
    let mut calls = Vec::new();
    for item in incoming {
        match item {
            DecodedItem::Call(job) => calls.push(job.call),
            DecodedItem::Refused(diagnostic) => {
                return Err(format!(
                    "{}: {}",
                    diagnostic.code.as_str(),
                    diagnostic.message
                ));
            }
            DecodedItem::BlockOpened(_)
            | DecodedItem::BlockClosed
            | DecodedItem::Prose(_)
            | DecodedItem::DraftsEnded
            | DecodedItem::Warning(_) => {}
        }
    }
    Ok(calls)
}

/// The JSON arguments of a call.
fn arguments(call: &Call) -> Value {
    let value = match call {
        Call::Command(args) => serde_json::to_value(args),
        Call::Edit(args) => serde_json::to_value(args),
        Call::Read(args) => serde_json::to_value(args),
        Call::GetValue(args) => serde_json::to_value(args),
        Call::Input(args) => serde_json::to_value(args),
        Call::Ctrl(args) => serde_json::to_value(args),
        Call::Plan(args) => serde_json::to_value(args),
        Call::ReadFile(args) => serde_json::to_value(args),
        Call::WriteFile(args) => serde_json::to_value(args),
        Call::Bash(args) => serde_json::to_value(args),
        Call::TodoUpdate(args) => serde_json::to_value(args),
        Call::PlanCreate(args) => serde_json::to_value(args),
        Call::UrlFetch(args) => serde_json::to_value(args),
        Call::WebSearch(args) => serde_json::to_value(args),
        Call::Delegate(args) => serde_json::to_value(args),
        Call::Reply(args) => serde_json::to_value(args),
        Call::Remember(args) => serde_json::to_value(args),
        Call::GetRecentHistory(args) => serde_json::to_value(args),
        Call::GetHistoryByTime(args) => serde_json::to_value(args),
        Call::SearchMemory(args) => serde_json::to_value(args),
        Call::AskUser(args) => serde_json::to_value(args),
        Call::Schedule(args) => serde_json::to_value(args),
        Call::ListTasks(args) => serde_json::to_value(args),
        Call::CancelTask(args) => serde_json::to_value(args),
        Call::GetNpcProfile(args) => serde_json::to_value(args),
        Call::SearchContent(args) => serde_json::to_value(args),
        Call::GetSiteMap(args) => serde_json::to_value(args),
        Call::CreateDraftContent(args) => serde_json::to_value(args),
        Call::LogUserEvent(args) => serde_json::to_value(args),
        Call::GetPromptActive(args) => serde_json::to_value(args),
    };
    value.unwrap()
}

/// A server that stands for the web in examples: two answers, then a page of results.
fn example_server() -> ScriptedServer {
    let page = || {
        vec![answer(
            "200 OK",
            "content-type: text/html\r\n",
            "<h1>Example</h1>",
        )]
    };
    let results = "<a class=result__a href=https://example.com/>Example</a>";
    ScriptedServer::start(vec![page(), page(), vec![answer("200 OK", "", results)]])
}

/// Reply of a model that answers every question of the examples.
const REPLY: &str =
    "{\"status\":\"ok\",\"rewritten_content\":\"Remind John\",\"steps\":[\"Look\"]}";

/// A run that offers the tools of a family, with a model; those of a supervisor to a role that has `tool`.
fn of_family(family: Family, tool: &str, model: &ModelServer) -> Karyi {
    let roles = roles_of(tool);
    let offered = match roles.first() {
        Some(role) => ["--role", role.as_str()],
        None => ["--tools", family.as_str()],
    };
    Karyi::new()
        .args(&["--json"])
        .args(&offered)
        .env("KARYI_MODEL", "openai_chat:tiny")
        .env("KARYI_MODEL_URL", &model.url)
}

#[test]
fn examples_come_out_as_they_say() {
    let mut offenders = Vec::new();
    let server = example_server();
    let config = format!(
        "[guard]\nallow = [\"{0}\"]\n[tools.web_search]\nbase_url = \"{0}/search\"\n",
        server.url("")
    );
    for entry in tools::for_scripts().entries() {
        assert!(
            entry.spec.examples.len() >= 2,
            "{} needs two examples",
            entry.spec.name
        );
        for example in entry.spec.examples {
            let script = format!("<tools>{}{}</tools>", example.before, example.xml);
            let script = script.replace("https://example.com", &server.url(""));
            let model = ModelServer::start(vec![Reply::text(REPLY)]);
            let run = of_family(entry.spec.family, entry.spec.name, &model);
            let run = run.file("../home/.config/karyi/config.toml", &config);
            let report = run.stdin(&script).run().json();
            let last = results(&report).last().unwrap().clone();
            let expected = (json!(example.status.as_str()), json!(example.code));
            if (last["status"].clone(), last["code"].clone()) != expected {
                offenders.push(format!("{}: {}: {report}", entry.spec.name, example.title));
            }
        }
    }
    assert!(offenders.is_empty(), "{offenders:#?}");
}

#[test]
fn xml_and_json_spell_the_same_call() {
    let registry = tools::for_scripts();
    for entry in registry.entries() {
        for example in entry.spec.examples {
            let decoded = calls(example.xml).unwrap();
            let [call] = decoded.as_slice() else {
                panic!("{} has not one call", example.title);
            };
            let from_json = (entry.from_json)(arguments(call)).unwrap();
            assert_eq!(&from_json, call, "{}", example.title);
        }
    }
}

#[test]
fn missing_and_unknown_arguments_are_named() {
    let registry = tools::for_scripts();
    let mut offenders = Vec::new();
    for entry in registry.entries() {
        let name = entry.spec.name;
        let required = entry.schema.published()["required"].clone();
        let empty = (entry.from_json)(json!({}))
            .err()
            .map(|error| error.to_string());
        if let Some(first) = required
            .as_array()
            .and_then(|list| list.first())
            .and_then(Value::as_str)
            && !empty.is_some_and(|error| error.contains(first))
        {
            offenders.push(format!("{name} does not name the missing {first}"));
        }
        let mut unknown = arguments(&calls(entry.spec.examples[0].xml).unwrap()[0]);
        unknown["surprise"] = json!(1);
        let error = (entry.from_json)(unknown)
            .err()
            .map(|error| error.to_string());
        if !error.is_some_and(|error| error.contains("surprise")) {
            offenders.push(format!("{name} accepts an unknown argument"));
        }
        let error = calls(&format!("<{name} surprise=\"1\"></{name}>"))
            .err()
            .unwrap_or_default();
        if !error.contains("surprise") {
            offenders.push(format!("<{name}> accepts an unknown attribute: {error}"));
        }
    }
    assert!(offenders.is_empty(), "{offenders:#?}");
}

/// Text parameters that are labels, words and patterns, and those of tools that take no secrets.
const PLAIN: &[&str] = &[
    "lines",
    "key",
    "reason",
    "note",
    "step",
    "state",
    "mode",
    "action",
    "model",
    "method",
    "auth_profile",
    "type",
    "scope",
    "role",
    "after",
    "before",
    "run_at",
    "task_id",
    "condition",
];

#[test]
fn every_text_may_hold_a_placeholder() {
    let mut offenders = Vec::new();
    for entry in tools::for_scripts().entries() {
        let mut value = filled(&entry.schema.published(), "");
        mark_key(&mut value, entry.spec.name);
        let mut call = (entry.from_json)(value).unwrap();
        let mut seen = Vec::new();
        call.templates(&mut |_, template: &mut Template| seen.push(template.source().to_owned()));
        for name in text_names(&entry.schema.published()) {
            let is_visited = seen.iter().any(|text| text == &format!("$KARYI{{{name}}}"));
            if is_visited == PLAIN.contains(&name.as_str()) {
                offenders.push(format!("{}/{name}", entry.spec.name));
            }
        }
    }
    assert!(offenders.is_empty(), "{offenders:?}");
}

/// Makes a value of a schema in which each text holds a placeholder of its own name.
fn filled(schema: &Value, name: &str) -> Value {
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object();
            let Some(properties) = properties else {
                return json!({"any": format!("$KARYI{{{name}}}")});
            };
            properties
                .iter()
                .map(|(key, schema)| (key.clone(), filled(schema, key)))
                .collect()
        }
        Some("array") => json!([filled(&schema["items"], name)]),
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(1),
        _ => json!(format!("$KARYI{{{name}}}")),
    }
}

/// A key of `<ctrl>` must be one.
fn mark_key(value: &mut Value, tool: &str) {
    if tool == "ctrl" {
        value["key"] = json!("c");
    }
}

fn text_names(schema: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for (name, schema) in schema["properties"].as_object().unwrap() {
        match schema["type"].as_str() {
            Some("array") if schema["items"]["type"] == "object" => {
                names.extend(text_names(&schema["items"]));
            }
            // A map has texts, and a value of any type may be one.
            Some("array" | "string" | "object") | None => names.push(name.clone()),
            _ => {}
        }
    }
    names
}

#[test]
fn the_prompt_is_short_and_complete() {
    let registry = tools::registry();
    let shell = "Commands run in bash 5.2.37.\n- Shell and jobs end with your answer; the next one starts anew.";
    let text = prompt::prompt(&registry, shell);
    assert!(text.len() <= 6000, "{} bytes", text.len());
    for entry in registry.entries() {
        assert!(
            text.contains(&format!("<{}>", entry.spec.name)),
            "{}",
            entry.spec.name
        );
    }
    let ran = Karyi::with_args(&["tools", "prompt"]).run().exit(0);
    let version = regex::Regex::new("bash [0-9.]+").unwrap();
    let shown = ran.stdout();
    assert_eq!(
        version.replace(&shown, "bash"),
        version.replace(&text, "bash")
    );
}

#[test]
fn the_prompt_of_the_assistant_is_short_and_complete() {
    let registry = Offer::parse(["assistant"]).unwrap().registry();
    let text = prompt::prompt(&registry, "");
    assert!(text.len() <= 6000, "{} bytes", text.len());
    for entry in registry.entries() {
        let element = format!("<{}>", entry.spec.name);
        assert!(text.contains(&element), "{element}");
    }
    assert!(text.contains("untrusted"), "{text}");
}

#[test]
fn a_family_that_is_not_chosen_is_nowhere() {
    let core = tools::registry();
    assert_eq!(core.entries().len(), core.family(Family::Core).count());
    let offered = tools::registry().grammar().tools;
    let names: Vec<&str> = offered.iter().map(|rule| rule.name.as_str()).collect();
    assert!(!names.contains(&"write_file"), "{names:?}");
    let prompt = prompt::prompt(&core, "");
    assert!(!prompt.contains("file_cache_dir"), "{prompt}");
}

/// Fields of the report, which no tool's result may have.
const OF_THE_REPORT: &[&str] = &[
    "id",
    "tool",
    "status",
    "code",
    "message",
    "names",
    "output",
    "duration_ms",
    "repairs",
    "jobs",
    "screen",
    "output_file",
    "output_file_complete",
    "output_file_problem",
];

#[test]
fn no_field_of_a_result_is_one_of_the_report() {
    let mut offenders = Vec::new();
    for entry in tools::for_scripts().entries() {
        let Some(schema) = entry.output_schema.as_ref() else {
            continue;
        };
        let fields = schema.published()["properties"].clone();
        for name in fields.as_object().unwrap().keys() {
            if OF_THE_REPORT.contains(&name.as_str())
                || name.starts_with("omitted_") && name != "omitted_bytes"
            {
                offenders.push(format!("{}/{name}", entry.spec.name));
            }
        }
    }
    assert!(offenders.is_empty(), "{offenders:?}");
}

#[test]
fn the_page_of_every_tool_names_its_arguments() {
    let registry = tools::for_scripts();
    for entry in registry.entries() {
        let page = help::tool(entry);
        for name in text_names(&entry.schema.published()) {
            assert!(page.contains(&name), "{}: {name}\n{page}", entry.spec.name);
        }
        assert!(!entry.schema.published().to_string().contains("x-karyi"));
        Karyi::with_args(&["tools", entry.spec.name])
            .run()
            .stdout_text(&page)
            .exit(0);
    }
}

#[test]
fn the_list_is_json_too() {
    let list = Karyi::with_args(&["tools", "--json"]).run().exit(0).json();
    let names: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "command",
            "edit",
            "read",
            "get_value",
            "input",
            "ctrl",
            "plan"
        ]
    );
    Karyi::with_args(&["tools"])
        .run()
        .stdout_text(&help::list(&tools::registry()))
        .exit(0);
}

#[test]
fn the_readme_has_the_table_of_tools() {
    let readme = include_str!("../README.md");
    let table = help::table(&tools::registry());
    assert!(readme.contains(&table), "README.md must contain:\n{table}");
    let page = include_str!("../docs/tools.md");
    let table = help::table(&Offer::parse(["assistant"]).unwrap().registry());
    assert!(
        page.contains(&table),
        "docs/tools.md must contain:\n{table}"
    );
}

#[test]
fn the_page_of_the_supervisor_has_the_table_of_roles() {
    let row = |entry: &karyi::tool::registry::Entry<Call>| {
        let spec = &entry.spec;
        let has = |role| match roles_of(spec.name).contains(&role) {
            true => "yes",
            false => "no",
        };
        let (teller, planner) = (has(SessionRole::Teller), has(SessionRole::Planner));
        format!(
            "| `{}` | {teller} | {planner} | {} |\n",
            spec.name, spec.summary
        )
    };
    let table: String = tools::all().family(Family::Supervisor).map(row).collect();
    let page = include_str!("../docs/supervisor.md");
    assert!(
        page.contains(&table),
        "docs/supervisor.md must contain:\n{table}"
    );
}

#[test]
fn what_a_tool_is_also_called_is_said_of_one_tool() {
    let registry = tools::registry();
    let names: Vec<&str> = registry.entries().iter().map(|e| e.spec.name).collect();
    let mut seen = Vec::new();
    for entry in registry.entries() {
        for name in entry.spec.also_called {
            assert!(!seen.contains(name), "{name} is said of two tools");
            seen.push(*name);
            if names.contains(name) {
                continue;
            }
            let script = format!("<ctrl>c</ctrl>\n<{name} x='1'>y</{name}>");
            let error = calls_of(Arc::new(tools::registry()), &script).unwrap_err();
            assert!(error.starts_with("unexpected-after-end-tag"), "{error}");
        }
    }
    Karyi::with_args(&["parse"])
        .stdin("<tools>\n<Bash>ls</Bash>\n</tools>")
        .run()
        .stderr(
            "error[unknown-tool]: there is no tool <Bash>\n  --> 2:1\n   |\n 2 | <Bash>ls</Bash>\n   | ^^^^^^\n  \
             hint: did you mean `command`?\n",
        )
        .exit(2);
}
