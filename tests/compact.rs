//! The XML report is compact: a model pays for every byte of it.

use serde_json::{Value, json};

use crate::harness::{Karyi, Ran};

/// Runs a script and returns the size of its report.
fn bytes(karyi: Karyi, script: &str) -> (usize, Ran) {
    let ran = karyi.stdin(script).run().exit(0);
    (ran.raw_stdout().len(), ran)
}

#[test]
fn a_short_command_has_a_short_report() {
    let (size, ran) = bytes(Karyi::new(), "<tools><command>echo hi</command></tools>");
    ran.stdout_xml(
        "<results>\n<result id=\"1\" tool=\"command\" status=\"ok\"><output>hi\n</output></result>\n</results>",
    );
    assert!(size <= 100, "{size}");
}

#[test]
fn a_created_file_is_not_echoed() {
    let text = "a line of text\n".repeat(700);
    let script = format!(
        "<tools><edit><file src=\"big.txt\"><find></find><replace>{text}</replace></file></edit></tools>"
    );
    let (size, ran) = bytes(Karyi::new(), &script);
    assert!(size <= 200, "{size}: {}", ran.stdout());
    let line = r#"<file src="big.txt" change="created" lines="1-700"/>"#;
    assert!(ran.stdout().contains(line), "{}", ran.stdout());
    let script = "<tools><edit><file src=\"big.txt\" delete=\"true\"/></edit></tools>";
    let (_, ran) = bytes(Karyi::new().file("big.txt", text), script);
    let line = r#"<file src="big.txt" change="deleted"/>"#;
    assert!(ran.stdout().contains(line), "{}", ran.stdout());
}

#[test]
fn a_rename_in_many_files_is_one_line_for_each() {
    let (mut karyi, mut script) = (Karyi::new(), "<tools><edit>".to_owned());
    for number in 10..23 {
        let path = format!("src/module/source_{number}.rs");
        let text = "use crate::old_name;\n\nfn f() {\n    old_name::call();\n}\n".repeat(20);
        karyi = karyi.file(&path, text);
        script.push_str(&format!(
            "<file src=\"{path}\"><find all=\"true\">old_name</find><replace>new_name</replace></file>"
        ));
    }
    let (size, ran) = bytes(karyi, &format!("{script}</edit></tools>"));
    assert!(size <= 1536, "{size}: {}", ran.stdout());
    let line =
        r#"<file src="src/module/source_10.rs" change="edited" replacements="40" lines="1-99"/>"#;
    assert!(ran.stdout().contains(line), "{}", ran.stdout());
}

/// Edits once literally, and once a text that differs in blanks at its end; returns the diffs.
fn diffs(option: Option<&str>, format: &str) -> [Option<String>; 3] {
    let script = "<tools><edit><file src=\"a\"><find>one</find><replace>1</replace></file>\
        <file src=\"b\"><find>two\nthree</find><replace>2</replace></file>\
        <file src=\"c\"><find></find><replace>new</replace></file></edit></tools>";
    let mut karyi = Karyi::new()
        .file("a", "one\n")
        .file("b", "two  \nthree\n")
        .args(&["--format", format]);
    if let Some(option) = option {
        karyi = karyi.args(&["--diff", option]);
    }
    let ran = karyi.stdin(script).run().exit(0);
    let text = ran.stdout();
    let last = text.lines().find(|line| line.contains("replacements"));
    let report: Value = serde_json::from_str(last.unwrap()).unwrap();
    let result = report["results"].get(0).unwrap_or(&report);
    [0, 1, 2].map(|index| {
        let file = &result["files"][index];
        // JSON keeps every field.
        assert_eq!(file["first_line"], 1);
        assert_eq!(file["replacements"], 1);
        file["diff"].as_str().map(str::to_owned)
    })
}

#[test]
fn a_diff_is_shown_where_the_text_was_another_one() {
    let a = || Some("@@ -1 +1 @@\n-one\n+1\n".to_owned());
    let b = || Some("@@ -1,2 +1 @@\n-two  \n-three\n+2\n".to_owned());
    let c = "@@ -0,0 +1 @@\n+new\n\\ no line break at the end of the file\n";
    for format in ["json", "jsonl"] {
        assert_eq!(diffs(None, format), [None, b(), None]);
        assert_eq!(diffs(Some("changed"), format), [None, b(), None]);
        assert_eq!(diffs(Some("none"), format), [None, None, None]);
        assert_eq!(diffs(Some("full"), format), [a(), b(), Some(c.to_owned())]);
    }
}

#[test]
fn what_changes_is_shown() {
    let script = "<tools><command>cd /usr</command><command>true</command><command>cd /; false</command></tools>";
    let ran = Karyi::new().stdin(script).run().exit(1);
    ran.stdout_xml(
        r#"<results>
        <result id="1" tool="command" status="ok" cwd="/usr"><output></output></result>
        <result id="2" tool="command" status="ok"><output></output></result>
        <result id="3" tool="command" status="failed" exit_code="1" cwd="/"><output></output></result>
        <summary status="failed"/>
        </results>"#,
    );
}

#[test]
fn json_keeps_every_field() {
    let script = "<tools><command>echo hi</command></tools>";
    let report = Karyi::new().arg("--json").stdin(script).run().json();
    let result = json!({"id": "1", "tool": "command", "status": "ok", "exit_code": 0, "cwd": "ROOT/work",
        "duration_ms": 0, "output": "hi\n"});
    assert_eq!(report["results"], json!([result]));
    assert_eq!(report["shell"], "bash");
    assert_eq!(report["status"], "ok");
}

#[test]
fn a_file_with_crlf_is_shown_in_plain_lines() {
    let script = "<tools><read><file src=\"a\"/></read></tools>";
    let ran = Karyi::new().file("a", "x\r\ny\r\n").stdin(script).run();
    let file = "eol=\"crlf\"><output>x\ny\n</output></file>";
    assert!(ran.stdout().contains(file), "{}", ran.stdout());
}

#[test]
fn a_text_full_of_markup_is_a_cdata_section() {
    let script = "<tools><read><file src=\"a\"/></read></tools>";
    let ran = Karyi::new().file("a", "<a>&&</a>]]>\n").stdin(script).run();
    let text = "<output><![CDATA[<a>&&</a>]]]]><![CDATA[>\n]]></output>";
    assert!(ran.stdout().contains(text), "{}", ran.stdout());
}
