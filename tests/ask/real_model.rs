//! A real model behind the server of llama.cpp, at the address in `KARYI_TEST_LLAMA`; skipped without it.

use serde_json::Value;

use super::headless::{run, text};
use crate::harness::{Karyi, skip};

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
    let karyi = Karyi::with_args(&flags);
    let home = karyi.work().join("home");
    let table = format!(
        "model = 'local'\n[models.local]\nprovider = 'openai_chat'\nbase_url = '{}/v1'\nmodel = 'small'\nsmall = true\n",
        url.trim_end_matches('/')
    );
    std::fs::create_dir_all(home.join("config")).unwrap();
    std::fs::write(home.join("config/config.toml"), table).unwrap();
    let karyi = karyi.env("KARYI_HOME", home);
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
