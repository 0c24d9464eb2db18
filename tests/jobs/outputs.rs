//! Whole outputs that a result does not show: where they are, and how long.

use serde_json::json;

use crate::harness::{Karyi, results};

#[test]
fn output_that_does_not_fit_is_in_a_file() {
    let script = "<tools><command>seq 1 50000</command><read><file src=\"job:1\" lines=\"25000-25001\"/></read>\
                  <command>ls -l \"$(ls -d ~/.local/state/karyi/output/run-*)\" | cut -c1-10 | tail -1</command></tools>";
    let karyi = Karyi::new().arg("--json").stdin(script);
    let state = karyi.work().join("../home/.local/state/karyi/output");
    let ran = karyi.run().exit(0);
    let report = ran.json();
    let result = &results(&report)[0];
    assert_eq!(result["output_file"], serde_json::Value::Null);
    let whole: usize = (1..=50000).map(|n: u32| n.to_string().len() + 1).sum();
    let shown = result["output"].as_str().unwrap();
    let marker: usize = shown
        .lines()
        .filter(|l| l.starts_with("[..."))
        .map(|l| l.len() + 1)
        .sum();
    let omitted = usize::try_from(result["omitted_bytes"].as_u64().unwrap()).unwrap();
    assert!(whole - omitted <= shown.len() - marker + 1);
    assert_eq!(results(&report)[1]["files"][0]["output"], "25000\n25001\n");
    assert_eq!(results(&report)[2]["output"], "-rw-------\n");
    assert!(std::fs::read_dir(state).unwrap().next().is_none());
    drop(ran);
}

#[test]
fn kept_files_stay_and_have_only_so_many_bytes() {
    let script = "<tools><command>seq 1 50000</command></tools>";
    let karyi = Karyi::new()
        .args(&[
            "--json",
            "--keep",
            "--max-output",
            "100",
            "--max-output-file",
            "1000",
        ])
        .stdin(script);
    let root = karyi.work().parent().unwrap().to_owned();
    let ran = karyi.run().exit(0);
    let report = ran.json();
    let path = results(&report)[0]["output_file"].as_str().unwrap();
    let path = path.replace("ROOT", root.to_str().unwrap());
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.starts_with("1\n2\n"), "{text}");
    let end = "\n[... the file ends here: it may have 1000 bytes ...]\n";
    assert_eq!(text.find(end), Some(1000));
    assert_eq!(text.len(), 1000 + end.len());
}

#[test]
fn a_file_that_cannot_be_made_is_told_and_nothing_else_is_lost() {
    let report = Karyi::new()
        .env("XDG_STATE_HOME", "/dev/null")
        .args(&["--json", "--max-output", "20"])
        .stdin("<tools><command>seq 1 100</command><command timeout=\"0.1\">sleep 60</command></tools>")
        .run()
        .exit(1)
        .json();
    let result = &results(&report)[0];
    assert_eq!(
        (&result["status"], &result["omitted_lines"]),
        (&json!("ok"), &json!(92))
    );
    assert!(result["output_file_problem"].is_string(), "{result}");
}

/// A process id is used again; whether a run still lives is known by its lock.
#[test]
fn only_outputs_of_runs_that_are_gone_are_removed() {
    let karyi = Karyi::new()
        .args(&["--json", "--max-output", "20"])
        .stdin("<tools><command>seq 1 100</command></tools>");
    let place = karyi
        .work()
        .with_file_name("home/.local/state/karyi/output");
    let living = std::process::id();
    let names = [
        "run-1-1",
        &format!("run-{living}-2"),
        "run-999999999-3",
        "kept-4-4",
    ];
    for name in names {
        std::fs::create_dir_all(place.join(name)).unwrap();
        std::fs::write(place.join(name).join("1-1.txt"), "x").unwrap();
    }
    std::fs::write(place.join("run-5-5"), "no directory").unwrap();
    let lock = std::fs::File::open(place.join("run-999999999-3")).unwrap();
    lock.lock().unwrap();
    let ran = karyi.run().exit(0);
    assert!(results(&ran.json())[0]["omitted_bytes"].is_u64());
    let mut left: Vec<_> = std::fs::read_dir(&place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["kept-4-4", "run-5-5", "run-999999999-3"]);
}
