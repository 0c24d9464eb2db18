//! Edits whose text is there only as it was written: the escapes stand in the file.

use serde_json::json;

use crate::harness::{Karyi, results};

fn edit(files: &str) -> String {
    format!("<tools><edit>{files}</edit></tools>")
}

fn pair(src: &str, find: &str, replace: &str) -> String {
    format!("<file src=\"{src}\"><find>{find}</find><replace>{replace}</replace></file>")
}

/// Runs an edit of `a` and compares the content after it with the file's entry of the result.
#[track_caller]
fn check(before: &str, files: &str, after: &str, expected: serde_json::Value) {
    let ran = Karyi::new()
        .arg("--json")
        .file("a", before)
        .stdin(edit(files))
        .run();
    let report = ran.json();
    let result = &results(&report)[0];
    let found = match result.get("files") {
        Some(files) => without_diff(files[0].clone()),
        None => json!([result["code"], result["message"], result["hint"]]),
    };
    assert_eq!(found, expected);
    ran.file("a", after);
}

fn without_diff(mut file: serde_json::Value) -> serde_json::Value {
    if let Some(file) = file.as_object_mut() {
        file.remove("diff");
        file.remove("lines");
    }
    file
}

fn edited(fallback: bool) -> serde_json::Value {
    let mut value = json!({"src": "a", "change": "edited", "replacements": 1, "first_line": 1});
    if fallback {
        value["fallback"] = json!("verbatim");
    }
    value
}

const AMP: (&str, &str) = ("x &amp;&amp; y", "x &amp; y");

#[test]
fn escapes_that_stand_in_the_file_are_found_as_written() {
    let files = pair("a", AMP.0, AMP.1);
    check("x && y", &files, "x & y", edited(false));
    check("x &amp;&amp; y", &files, "x &amp; y", edited(true));
    check(
        "x && y x &amp;&amp; y",
        &files,
        "x & y x &amp;&amp; y",
        edited(false),
    );
    check(
        "x &amp; y",
        &files,
        "x &amp; y",
        json!({"src": "a", "change": "already_applied", "replacements": 0, "first_line": 1}),
    );
    check(
        "x & y",
        &files,
        "x & y",
        json!({"src": "a", "change": "already_applied", "replacements": 0, "first_line": 1}),
    );
}

#[test]
fn a_replacement_that_stands_there_by_chance_is_no_trace_of_an_edit() {
    check(
        "port = 80\n",
        &pair("a", "90", "80"),
        "port = 80\n",
        json!([
            "find_not_found",
            "a: expected the text to find once, found it nowhere; its replacement is on line 1, perhaps by chance: look there whether the change is made already",
            "the text is too short for a closest passage: read the file, and copy a whole line as it stands"
        ]),
    );
}

#[test]
fn a_replacement_without_escapes_is_taken_without_its_frame() {
    let files = pair("a", "\n  x &lt; y\n", "\n  x\n    ");
    check("  x &lt; y", &files, "  x", edited(true));
    check("  x < y", &files, "  x", edited(false));
}

#[test]
fn every_match_is_never_replaced_as_written() {
    let all = "<file src=\"a\"><find all=\"true\">&lt;b></find><replace>c</replace></file>";
    let twice = "&lt;b> &lt;b>\n&lt;b>";
    check("&lt;b>", all, "c", edited(true));
    check(
        twice,
        all,
        twice,
        json!([
            "find_not_found",
            "a: expected the text to find once, found it nowhere; with its escapes not decoded it is there 3 times, on lines 1, 2",
            "if the escapes stand in the file, wrap the text in <![CDATA[...]]> and add lines around it until it is unique"
        ]),
    );
}

#[test]
fn files_change_together_as_written_too() {
    let files = pair("a", AMP.0, AMP.1) + &pair("b", "&lt;p>", "&lt;q>");
    let ran = Karyi::new()
        .arg("--json")
        .file("a", "x &amp;&amp; y")
        .file("b", "<p>")
        .stdin(edit(&files))
        .run()
        .exit(0)
        .file("a", "x &amp; y")
        .file("b", "<q>");
    let report = ran.json();
    let files = &results(&report)[0]["files"];
    assert_eq!(
        (&files[0]["fallback"], files[1].get("fallback")),
        (&json!("verbatim"), None)
    );

    let files = pair("a", AMP.0, AMP.1) + &pair("b", "missing", "x");
    Karyi::new()
        .file("a", "x &amp;&amp; y")
        .file("b", "<p>")
        .stdin(edit(&files))
        .run()
        .exit(1)
        .file("a", "x &amp;&amp; y")
        .file("b", "<p>");
    // One pair is in place in its written form, the other is not: meant for another state.
    let files = pair("a", AMP.0, AMP.1) + &pair("b", "&lt;p>", "&lt;q>");
    let ran = Karyi::new()
        .arg("--json")
        .file("a", "x &amp; y")
        .file("b", "<p>")
        .stdin(edit(&files))
        .run()
        .exit(1)
        .file("b", "<p>");
    assert_eq!(results(&ran.json())[0]["code"], "already_applied");
}

#[test]
fn the_evolving_text_is_searched_as_written() {
    let files = "<file src=\"a\"><find>one</find><replace>&amp;amp;</replace>\
                 <find>&amp;amp;</find><replace>two &lt;</replace></file>";
    check(
        "one",
        files,
        "two <",
        json!({"src": "a", "change": "edited", "replacements": 2, "first_line": 1}),
    );
    let files = "<file src=\"a\"><find>one</find><replace>&amp;lt;</replace>\
                 <find>&lt;</find><replace>2</replace></file>";
    let mut expected = edited(true);
    expected["replacements"] = json!(2);
    check("one", files, "2", expected);
}

#[test]
fn secrets_are_put_in_as_written_and_not_shown() {
    let script = "<tools><get_value key=\"TOKEN\" reason=\"x\"/></tools>\n".to_owned()
        + &edit(&pair("a", "&lt;$KARYI{TOKEN}>", "&lt;gone>"));
    // Nobody can be asked, so the name has no value; the text as written is checked like the other.
    let ran = Karyi::new()
        .arg("--json")
        .file("a", "&lt;")
        .stdin(script)
        .run()
        .exit(3);
    assert_eq!(results(&ran.json())[1]["code"], "undefined_variable");
}

#[test]
fn a_placeholder_that_comes_out_of_escapes_has_one_reading() {
    let files = pair("a", "$$KARYI&#123;A} &lt;", "x");
    check("$KARYI{A} <", &files, "x", edited(false));
    let ran = Karyi::new()
        .arg("--json")
        .file("a", "$KARYI{&#65;}")
        .stdin(edit(&pair("a", "$KARYI{&#65;}", "x")))
        .run();
    assert_eq!(results(&ran.json())[0]["code"], "undefined_variable");
}

#[test]
fn raw_text_and_cdata_have_one_reading() {
    let found = |find: &str| pair("a", find, "x");
    let nowhere = |find: &str| {
        let ran = Karyi::new()
            .arg("--json")
            .file("a", "&amp;")
            .stdin(edit(&found(find)))
            .run();
        results(&ran.json())[0]["code"].clone()
    };
    assert_eq!(nowhere("<b>&lt;"), "find_not_found");
    assert_eq!(nowhere("<![CDATA[&lt;]]>"), "find_not_found");
    check(
        "<![CDATA[b]]>",
        &found("<![CDATA[b]]>"),
        "<![CDATA[x]]>",
        edited(false),
    );
}

#[test]
fn xml_and_text_reports_name_the_fallback() {
    let script = edit(&pair("a", AMP.0, AMP.1));
    Karyi::new()
        .file("a", "x &amp;&amp; y")
        .stdin(&script)
        .stdout_xml(
            r#"<results>
              <result id="1" tool="edit" status="ok"><files><file src="a" change="edited" replacements="1" lines="1" fallback="verbatim"><diff>@@ -1 +1 @@
              -x &amp;amp;&amp;amp; y
              \ no line break at the end of the file
              +x &amp;amp; y
              \ no line break at the end of the file
              </diff></file></files></result>
            </results>"#,
        )
        .exit(0);
    Karyi::new()
        .args(&["--format", "text"])
        .file("a", "x &amp;&amp; y")
        .stdin(&script)
        .run()
        .stdout_text(
            "> edit a (line 1, escapes as written)\n     \
             1 - x &amp;&amp; y\n         no line break at the end of the file\n     \
             1 + x &amp; y\n         no line break at the end of the file\n",
        )
        .exit(0);
}
