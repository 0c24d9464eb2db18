//! Edits whose text is there only as it was written: the escapes stand in the file.

use serde_json::{Value, json};

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

/// Runs an edit; returns its result.
fn run(karyi: Karyi, files: &str) -> (crate::harness::Ran, serde_json::Value) {
    let ran = karyi.arg("--json").stdin(edit(files)).run();
    let result = results(&ran.json())[0].clone();
    (ran, result)
}

#[test]
fn a_new_file_of_framed_text_ends_with_a_line_break() {
    let files = pair("one", "", "x = 1")
        + &pair("two", "", "\ndef f():\n    return 1\n")
        + &pair("three", "", "<![CDATA[\na && b\n]]>")
        + &pair("four", "\n", "<![CDATA[a\n]]>")
        + &pair("five", "", "\n  <![CDATA[\na\n\n]]>\n  ")
        + &pair("six", "", "\n");
    let (ran, _) = run(Karyi::new(), &files);
    ran.exit(0)
        .file("one", "x = 1")
        .file("two", "def f():\n    return 1\n")
        .file("three", "a && b\n")
        .file("four", "a\n")
        .file("five", "a\n")
        .file("six", "");
}

#[test]
fn whole_lines_go_with_their_break() {
    for (find, replace, after) in [
        ("\n  b\n", "", "a\nc\n"),
        ("\n  b\n    ", "\n    ", "a\nc\n"),
        ("<![CDATA[\na\n  b\n]]>", "", "c\n"),
        ("  b", "", "a\n\nc\n"),
        ("\n  b\n", "\nx\n", "a\nx\nc\n"),
    ] {
        let (ran, _) = run(
            Karyi::new().file("a", "a\n  b\nc\n"),
            &pair("a", find, replace),
        );
        ran.exit(0).file("a", after);
    }
}

#[test]
fn content_writes_a_whole_file() {
    let content =
        |src: &str, text: &str| format!("<file src=\"{src}\"><content>{text}</content></file>");
    let files = content("new/a", "\n<p>&amp;</p>\n")
        + &content("b", "one\ntwo\n")
        + &content("c", "")
        + &content("d", "");
    let karyi = || Karyi::new().file("b", "x\r\ny\r\n").file("c", "text");
    let (ran, result) = run(karyi(), &files);
    ran.exit(0)
        .file("new/a", "<p>&amp;</p>\n")
        .file("b", "one\r\ntwo\r\n")
        .file("c", "")
        .file("d", "");
    assert_eq!(result["files"][3]["lines"], Value::Null);
    let changes: Vec<_> = (0..4)
        .map(|at| result["files"][at]["change"].clone())
        .collect();
    assert_eq!(changes, ["created", "edited", "edited", "created"]);
    for torn in [
        "<file src=\"b\"><content>x</content><find>x</find><replace>y</replace></file>",
        "<file src=\"b\" delete=\"true\"><content>x</content></file>",
    ] {
        let (ran, result) = run(karyi(), torn);
        assert_eq!(result["code"], "bad_arguments", "{torn}");
        ran.file("b", "x\r\ny\r\n");
    }
    let twice = edit("<file src=\"b\"><content>x</content><content>y</content></file>");
    let ran = karyi().stdin(twice).run().exit(2);
    ran.file("b", "x\r\ny\r\n");
    let (_, result) = run(karyi(), &pair("none", "x", "y"));
    assert!(
        result["hint"].as_str().unwrap().contains("<content>"),
        "{result}"
    );
}

#[test]
fn one_file_is_read_in_one_way() {
    let told = pair("a", "one", "x &amp; y");
    let (ran, result) = run(Karyi::new().file("a", "one"), &told);
    ran.file("a", "x & y");
    assert_eq!(result["files"][0]["decoded"], true);
    for new in [
        "<file src=\"n\"><content>&lt;p></content></file>",
        "<file src=\"n\"><find/><replace>&lt;p></replace></file>",
    ] {
        let (ran, result) = run(Karyi::new(), new);
        ran.file("n", "<p>");
        assert_eq!(result["files"][0]["decoded"], true, "{new}");
    }
    let two = "<file src=\"a\"><find>one</find><replace>x &amp; y</replace>\
               <find>&lt;b></find><replace>&lt;c></replace></file>";
    let (ran, result) = run(Karyi::new().file("a", "one &lt;b>"), two);
    ran.file("a", "x &amp; y &lt;c>");
    assert_eq!(
        (
            &result["files"][0]["fallback"],
            result["files"][0].get("decoded")
        ),
        (&json!("verbatim"), None)
    );
    let (ran, result) = run(Karyi::new().file("a", "one <b>"), two);
    ran.file("a", "x & y <c>");
    assert_eq!(result["files"][0].get("decoded"), None);
    // A text that cannot be decoded tells, too.
    let mixed = "<file src=\"a\"><find>one</find><replace>x &amp; y</replace>\
                 <find>two</find><replace><p>&copy; &amp;</p></replace></file>";
    let (ran, result) = run(Karyi::new().file("a", "one two"), mixed);
    let report = ran.json();
    ran.exit(0).file("a", "x &amp; y <p>&copy; &amp;</p>");
    assert_eq!(result["files"][0]["mixed_escapes"], true);
    assert_eq!(
        (result.get("repairs"), &report["diagnostics"]),
        (None, &json!([])),
        "{report}"
    );
    let (_, result) = run(Karyi::new().file("a", "x"), &pair("a", "<p>&amp;", ""));
    assert!(
        result["hint"].as_str().unwrap().contains("mixes"),
        "{result}"
    );
}

#[test]
fn closers_of_the_envelope_are_kept_with_a_warning() {
    let warned = |find: &str, replace: &str| {
        let karyi = Karyi::new().file("a", "x </content>");
        let (ran, result) = run(karyi, &pair("a", find, replace));
        ran.exit(0);
        result["warning"].as_str().unwrap_or_default().to_owned()
    };
    for leak in [
        "y\n</content>\n</invoke>\n",
        "y</parameter>",
        "</x:invoke></x:function_calls>",
    ] {
        assert!(warned("x ", leak).contains("nothing in it opens"), "{leak}");
    }
    for fine in ["y", "</div>", "<content>y</content>", "</content> y"] {
        assert_eq!(warned("x ", fine), "", "{fine}");
    }
    assert_eq!(warned("x </content>", "y </content>"), "");
    let file = Karyi::new();
    let (ran, _) = run(file, &pair("n", "", "\n# Notes\n</content>\n</invoke>\n"));
    ran.exit(0).file("n", "# Notes\n</content>\n</invoke>\n");
}

#[test]
fn characters_that_xml_cannot_hold_are_told_and_can_be_edited() {
    let karyi = || Karyi::new().file("a", "int a;\n\u{c}\nint b;\n");
    let ran = karyi()
        .stdin("<tools><read><file src=\"a\"/></read></tools>")
        .run()
        .exit(0);
    let report = ran.stdout();
    assert!(
        report.contains("is_lossy=\"true\"") && report.contains("U+000C"),
        "{report}"
    );
    let ran = karyi()
        .stdin(edit(&pair("a", "int a;\n\u{FFFD}", "")))
        .run()
        .exit(1);
    let report = ran.stdout();
    assert!(
        report.contains("closest is") && report.contains("find and replace write &#12;"),
        "{report}"
    );
    let files = pair("a", "int a;\n&#12;\nint b;", "int c;&#x1b;");
    let (ran, _) = run(karyi(), &files);
    ran.exit(0).file("a", "int c;\u{1b}\n");
}

#[test]
fn a_framed_input_is_typed_with_one_enter() {
    for text in ["\ny\n", "\n  y\n", "y\\n", "\ny\\n\n", "\ny\\n"] {
        let script = format!(
            "<tools><command>read x; read -t 0.3 y; echo \"[$x|$y]\"</command><input>{text}</input></tools>"
        );
        let ran = Karyi::new().stdin(script).run();
        let report = ran.stdout();
        assert!(report.contains("[y|]"), "{text:?}\n{report}");
    }
}
