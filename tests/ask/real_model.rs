//! A real model behind the server of llama.cpp, at the address in `KARYI_TEST_LLAMA`; skipped without it.

use serde_json::Value;

use super::headless::{run, text};
use crate::harness::{Karyi, results, skip};

#[test]
fn a_small_model_creates_a_file_and_runs_it() {
    let Ok(url) = std::env::var("KARYI_TEST_LLAMA") else {
        skip("KARYI_TEST_LLAMA names no server of llama.cpp");
        return;
    };
    let request = "Create the file hello.sh with the line `echo banana`, then run it with bash.";
    let flags = [
        "ask",
        "--no-rc",
        "--shell",
        "bash",
        "--approve",
        "full",
        "--max-steps",
        "6",
        "--json",
        request,
    ];
    let karyi = with_model(Karyi::with_args(&flags), &url);
    let output = run(&karyi);
    let told = text(&output.stderr);
    let answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
    let script = std::fs::read_to_string(karyi.work().join("hello.sh")).unwrap_or_default();
    assert!(
        script.contains("echo banana"),
        "{script:?} {answer:#} {told}"
    );
    let calls = answer["calls"].as_array().unwrap();
    let has_run = |call: &Value| {
        call["tool"] == "command"
            && call["output"]
                .as_str()
                .is_some_and(|shown| shown.contains("banana"))
    };
    assert!(calls.iter().any(has_run), "{answer:#}");
}

/// Gives a run the model of a server.
fn with_model(karyi: Karyi, url: &str) -> Karyi {
    let home = karyi.work().join("home");
    let table = format!(
        "model = 'local'\n[models.local]\nprovider = 'openai_chat'\nbase_url = '{}/v1'\nmodel = 'small'\nsmall = true\n",
        url.trim_end_matches('/')
    );
    std::fs::create_dir_all(home.join("config")).unwrap();
    std::fs::write(home.join("config/config.toml"), table).unwrap();
    karyi.env("KARYI_HOME", home)
}

#[test]
fn a_small_model_makes_a_plan() {
    let Ok(url) = std::env::var("KARYI_TEST_LLAMA") else {
        skip("KARYI_TEST_LLAMA names no server of llama.cpp");
        return;
    };
    let karyi = Karyi::new().args(&["--json", "--tools", "assistant"]);
    let call = "<plan_create max_steps=\"3\"><task>Bake bread</task></plan_create>";
    let run = with_model(karyi, &url).stdin(format!("<tools>{call}</tools>"));
    let report = run.run().json();
    let plan = &results(&report)[0]["plan"];
    let steps = plan["steps"].as_array().unwrap();
    assert!((1..=3).contains(&steps.len()), "{report:#}");
    let begun = steps.iter().filter(|step| step["status"] == "in_progress");
    assert_eq!(begun.count(), 1, "{report:#}");
}
