//! Whatever is wrong with the input: a coded error with a hint, nothing half done, the exit status
//! as specified, and never a panic.

mod edits;
mod places;

use serde_json::{Value, json};

use crate::harness::{Karyi, results};

/// Runs a script that is refused and compares its only diagnostic.
#[track_caller]
fn refused(script: &str, expected: (&str, u64, u64)) {
    let report = Karyi::new()
        .arg("--json")
        .stdin(script)
        .run()
        .exit(2)
        .tree(&[])
        .json();
    let (code, line, column) = expected;
    let found = &report["diagnostics"][0];
    assert_eq!(
        (&found["code"], &found["line"], &found["column"]),
        (&json!(code), &json!(line), &json!(column))
    );
    assert_eq!(report["results"], json!([]), "{script}");
    assert_eq!(report["status"], "refused");
    assert!(
        found["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
        "{found}"
    );
    assert!(
        found["excerpt"]
            .as_str()
            .is_some_and(|excerpt| excerpt.contains('^')),
        "{found}"
    );
}

/// Runs one call that fails and compares its code; returns its result.
#[track_caller]
fn fails(karyi: Karyi, script: &str, code: &str, exit: i32) -> Value {
    let report = karyi
        .arg("--json")
        .stdin(format!("<tools>{script}</tools>"))
        .run()
        .exit(exit)
        .json();
    let result = results(&report).last().unwrap().clone();
    assert_eq!(result["code"], code, "{result}");
    assert!(
        result["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
        "{result}"
    );
    result
}

#[test]
fn an_unknown_tool_runs_nothing() {
    refused(
        "<tools>\n  <command>touch x</command>\n  <comand>ls</comand>\n</tools>",
        ("unexpected-after-end-tag", 3, 3),
    );
    refused(
        "<tools>\n  <comand>touch x</comand>\n</tools>",
        ("unknown-tool", 2, 3),
    );
}

#[test]
fn a_missing_attribute_runs_nothing() {
    refused(
        "<tools><command>touch x</command><read><file/></read></tools>",
        ("missing-attribute", 1, 40),
    );
}

#[test]
fn an_unclosed_tag_runs_nothing() {
    refused(
        "<tools>\n<command>touch x</command>\n<command>ls",
        ("unclosed-element", 3, 1),
    );
}

#[test]
fn a_value_of_the_wrong_type_runs_nothing() {
    refused(
        "<tools><command>touch x</command><command timeout=\"soon\">ls</command></tools>",
        ("bad-attribute", 1, 34),
    );
    refused(
        "<tools><command timeout=\"-1\">touch x</command></tools>",
        ("bad-attribute", 1, 8),
    );
    refused(
        "<tools><read><file src=\"a\" max_bytes=\"-1\"/></read></tools>",
        ("bad-attribute", 1, 14),
    );
    refused("<tools><ctrl>hyper</ctrl></tools>", ("bad-ctrl", 1, 14));
}

#[test]
fn a_missing_file_is_named() {
    let result = fails(
        Karyi::new(),
        "<read><file src=\"nowhere.txt\"/></read>",
        "not_found",
        1,
    );
    assert!(result["message"].as_str().unwrap().contains("nowhere.txt"));
}

#[test]
fn no_shell_is_a_refusal() {
    let karyi = Karyi::new().arg("--shell").arg("/nowhere/bash");
    let ran = karyi
        .stdin("<tools><command>touch made</command></tools>")
        .run();
    let found = "expected a shell at /nowhere/bash, found no program there";
    ran.exit(2)
        .stderr(&format!("karyi: --shell: {found}\n"))
        .tree(&[]);
}

#[test]
fn input_without_a_job_writes_nothing() {
    fails(Karyi::new(), "<input>y\\n</input>", "no_job", 1);
    fails(
        Karyi::new(),
        "<command>true</command><ctrl>c</ctrl>",
        "no_job",
        1,
    );
}

#[test]
fn input_nobody_reads_is_not_written() {
    let script = "<command timeout=\"0.2\">sleep 60</command><input timeout=\"0.3\">y\\n</input>";
    fails(Karyi::new(), script, "no_reader", 1);
}

#[test]
fn an_undefined_name_refuses_the_block_before_anything_runs() {
    let script = "<tools><command>touch x</command><command>echo $KARYI{NOPE} $KARYI{NOR_THIS}</command></tools>";
    let report = Karyi::new()
        .arg("--json")
        .stdin(script)
        .run()
        .exit(2)
        .tree(&[])
        .json();
    let told: Vec<_> = results(&report)
        .iter()
        .map(|result| (&result["status"], &result["code"], &result["message"]))
        .collect();
    let skipped = "call 2 was refused, so nothing of its block was run";
    let missing = "there is no value for NOPE, NOR_THIS";
    assert_eq!(
        told,
        [
            (&json!("skipped"), &json!("block_refused"), &json!(skipped)),
            (
                &json!("refused"),
                &json!("undefined_variable"),
                &json!(missing)
            ),
        ]
    );
}

#[test]
fn a_broken_placeholder_is_refused() {
    fails(
        Karyi::new(),
        "<command>echo $KARYI{a b}</command>",
        "bad_placeholder",
        2,
    );
}

#[test]
fn a_missing_script_runs_nothing() {
    Karyi::new()
        .file("a.xml", "<tools><command>touch x</command></tools>")
        .arg("a.xml")
        .arg("b.xml")
        .run()
        .stderr("karyi: opening the script b.xml: No such file or directory (os error 2)\n")
        .stdout_text("")
        .exit(2)
        .tree(&["a.xml"]);
    Karyi::new()
        .arg("/usr")
        .run()
        .stderr("karyi: the script /usr is a directory\n")
        .exit(2);
}

#[test]
fn wrong_usage_is_status_2() {
    Karyi::with_args(&["run", "--format", "yaml"]).run().exit(2);
    Karyi::with_args(&["frobnicate"]).run().exit(2);
    Karyi::with_args(&["tools", "nothing"]).run().exit(2);
    Karyi::new().arg("--timeout").arg("-3").run().exit(2);
}

#[test]
fn any_bytes_are_survived() {
    for script in [
        &b"\xff\xfe<tools>"[..],
        b"<tools><command>\x00</command></tools>",
        b"<tools><tools>",
        b"{\"tools\":",
    ] {
        let ran = Karyi::new().arg("--json").stdin(script).run().exit(2);
        assert_eq!(ran.json()["results"], json!([]));
    }
}

#[test]
fn a_slash_at_the_end_names_a_directory() {
    let edit = "<edit><file src=\"new/\"><find></find><replace>x</replace></file></edit>";
    fails(Karyi::new(), edit, "not_found", 1);
    fails(
        Karyi::new().file("t", ""),
        "<read><file src=\"t/\"/></read>",
        "not_a_directory",
        1,
    );
}
