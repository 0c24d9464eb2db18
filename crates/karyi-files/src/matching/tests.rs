//! Pairs on small texts: their results and their failures.

use super::*;

fn show(result: Result<(String, Vec<PairResult>), MatchError>) -> String {
    match result {
        Ok((text, results)) => {
            let results: Vec<String> = results.iter().map(show_pair).collect();
            format!("{text:?} {}", results.join(" "))
        }
        Err(MatchError { pair, kind }) => match kind {
            MatchErrorKind::NotFound { .. } => format!("pair {pair} not found"),
            MatchErrorKind::Ambiguous { lines, total } => {
                format!("pair {pair} in {lines:?} of {total}")
            }
            MatchErrorKind::AmbiguousAsWritten { lines, total } => {
                format!("pair {pair} as written in {lines:?} of {total}")
            }
            MatchErrorKind::TwoReadings { lines, total } => {
                format!("pair {pair} in two readings in {lines:?} of {total}")
            }
            MatchErrorKind::EmptyFind => format!("pair {pair} empty"),
            MatchErrorKind::TooLarge => format!("pair {pair} too large"),
        },
    }
}

fn show_pair(result: &PairResult) -> String {
    match result {
        PairResult::Replaced {
            count,
            first_line,
            found_as,
        } => {
            let how = match found_as {
                MatchMode::Exact => "",
                MatchMode::Written => " as written",
                MatchMode::Trailing => " but for blanks",
            };
            format!("{count}@{first_line}{how}")
        }
        PairResult::AlreadyApplied { line } => format!("already@{line}"),
    }
}

fn once<'a>(find: &'a str, replace: &'a str) -> Pair<'a> {
    Pair {
        find,
        replace,
        all: false,
        written: None,
        scope: Scope::Text,
    }
}

fn all<'a>(find: &'a str, replace: &'a str) -> Pair<'a> {
    Pair {
        find,
        replace,
        all: true,
        written: None,
        scope: Scope::Text,
    }
}

fn check(text: &str, pairs: &[Pair<'_>], expected: &str) {
    assert_eq!(show(apply(text, pairs)), expected, "{text:?} {pairs:?}");
}

#[test]
fn pairs_work_on_the_evolving_text() {
    check("a b c", &[], r#""a b c" "#);
    check("a b c", &[once("b", "x")], r#""a x c" 1@1"#);
    check(
        "a\nb\nc",
        &[once("b", "x\ny"), once("c", "z"), once("x\ny\nz", "")],
        r#""a\n" 1@2 1@4 1@2"#,
    );
    check("a b a", &[all("a", "aa")], r#""aa b aa" 2@1"#);
    check("x\na b a", &[all("a", "")], r#""x\n b " 2@2"#);
    check("a", &[once("a", "a")], r#""a" 1@1"#);
    check("héé", &[once("éé", "é")], r#""hé" 1@1"#);
}

#[test]
fn a_text_to_find_must_be_unique() {
    check("a b", &[once("c", "d")], "pair 0 not found");
    check("a b", &[once("a", "x"), once("a", "y")], "pair 1 not found");
    check("a\nb\na", &[once("a", "x")], "pair 0 in [1, 3] of 2");
    check("aaa", &[once("aa", "x")], "pair 0 in [1, 1] of 2");
    check(
        &"a\n".repeat(20),
        &[once("a", "x")],
        "pair 0 in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] of 20",
    );
    check("ab", &[all("c", "d")], "pair 0 not found");
}

#[test]
fn line_endings_do_not_matter() {
    check("a\r\nb\r\n", &[once("a\nb", "x\ny")], r#""x\r\ny\r\n" 1@1"#);
    check("a\nb\n", &[once("a\r\nb", "x\r\ny")], r#""x\ny\n" 1@1"#);
    check(
        "a\r\nb",
        &[once("b", "b\nc\r\nd")],
        r#""a\r\nb\r\nc\r\nd" 1@2"#,
    );
}

#[test]
fn applied_changes_are_recognised() {
    let text = "x\nmode = new\n";
    let pair = ("mode = old", "mode = new");
    check(
        text,
        &[once(pair.0, pair.1)],
        &format!("{text:?} already@2"),
    );
    let twice = "mode = new\nmode = new";
    check(twice, &[once(pair.0, pair.1)], "pair 0 not found");
    check(
        twice,
        &[all(pair.0, pair.1)],
        &format!("{twice:?} already@1"),
    );
    check("x", &[once("old", "")], "pair 0 not found");
    let moved = "fn a() {\n    first();\n    second();\n}\n";
    let gone = "fn a() {\n    first();\n    log();\n    second();\n}\n";
    check(moved, &[once(gone, moved)], &format!("{moved:?} already@1"));
}

#[test]
fn a_common_replacement_proves_nothing() {
    let none = "pair 0 not found";
    check("port = 80\n", &[once("90", "80")], none);
    check("a {\n}\n", &[once("  }\n}", "}")], none);
    check("let newest = 1;\n", &[once("old_value_one", "new")], none);
    check(
        "let new_value_one2 = 1;\n",
        &[once("x", "new_value_one")],
        none,
    );
    check("f(one, two);\n", &[once("1, 2", "one, two")], none);
    check("a 8 b\n", &[all("9", "8")], none);
    check("x\n8\n", &[once("9", "8")], none);
    let port = [once("port = 80;", "port = 8080;")];
    check(
        "let port = 8080; // http\n",
        &port,
        "\"let port = 8080; // http\\n\" already@1",
    );
    check(
        "{\n  go();\n}",
        &[once("y();", "go();")],
        "\"{\\n  go();\\n}\" already@2",
    );
    // Words of this script have no spaces between them.
    let chinese = [once(
        "\u{7AEF}\u{53E3}\u{4E3A}\u{4E5D}",
        "\u{7AEF}\u{53E3}\u{4E3A}\u{516B}",
    )];
    let text = "\u{9ED8}\u{8BA4}\u{7AEF}\u{53E3}\u{4E3A}\u{516B}\u{5343}";
    check(text, &chinese, &format!("{text:?} already@1"));
}

#[test]
fn a_replacement_elsewhere_proves_nothing() {
    let none = "pair 0 not found";
    // The text to find differs by a blank; its replacement belongs to something else.
    let text = "[a]\ntimeout=30\n[b]\ntimeout = 60\n";
    check(text, &[once("timeout = 30", "timeout = 60")], none);
    let text = "fn a() -> R {\n    return Err(error);\n}\nfn b() -> R {\n    return Ok(None);\n}\n";
    check(text, &[once("return Err(e);", "return Ok(None);")], none);
    // The removed text is there in another form.
    let text = "    first();\n    log(1);\n";
    check(
        text,
        &[once("    first();\n    log();", "    first();")],
        none,
    );
    // Nothing is close to the text to find.
    check("x\nnew\n", &[once("old", "new")], none);
    check(
        "import something\n",
        &[once("let x = 1;", "import something")],
        none,
    );
    check("new\nnew", &[all("old", "new")], none);
}

#[test]
fn a_replacement_proves_nothing_with_a_rival_place() {
    let none = "pair 0 not found";
    let null = [once("return null;", "return true;")];
    check("return true;\n}\nfn g() {\nreturn false;\n", &null, none);
    check("return true; // a\nreturn nil; // b\n", &null, none);
    check("return true;\n\treturn  nil;\n", &null, none);
    let lines = [once("    return null;\n}", "    return true;\n}")];
    let text = "if a {\n    return true;\n}\nif b {\n    return false;\n}\n";
    check(text, &lines, none);
    check("f(a, 1); f(a, 2);\n", &[once("f(a, 9);", "f(a, 1);")], none);
    let mode = [all("mode = old", "mode = new")];
    check("mode = new\nmode = other\n", &mode, none);
    // Another place matches as much, although it starts differently.
    let colour = [once("colour: red", "colour: blue")];
    check("colour: blue\ncolours: rex\n", &colour, none);
    // The surroundings show which place was meant.
    let text = "fn f() {\n    return true;\n}\nfn g() {\n    return false;\n}\n";
    let whole = [once(
        "fn f() {\n    return null;",
        "fn f() {\n    return true;",
    )];
    check(text, &whole, &format!("{text:?} already@1"));
    // A place with the same start and another end is another text.
    let text = "call(a, true);\ncall(a, b);\n";
    let call = [once("call(a, false);", "call(a, true);")];
    check(text, &call, none);
    let text = "call(a, true, c);\ncall(a, b)?;\n";
    let call = [once("call(a, false, c);", "call(a, true, c);")];
    check(text, &call, &format!("{text:?} already@1"));
}

#[test]
fn an_empty_text_to_find_fills_an_empty_file() {
    check("", &[once("", "a\r\nb\n")], r#""a\r\nb\n" 1@1"#);
    check("", &[once("", "a"), once("a", "b")], r#""b" 1@1 1@1"#);
    check("a", &[once("", "b")], "pair 0 empty");
    check("a", &[once("", "a")], r#""a" already@1"#);
    check("", &[once("", "")], r#""" 1@1"#);
}

#[test]
fn the_undecoded_form_is_tried() {
    let escaped = |all| Pair {
        find: "a & b",
        replace: "a & d",
        all,
        written: Some(UndecodedPair {
            find: "a &amp; b",
            replace: "a &amp; d",
        }),
        scope: Scope::Text,
    };
    let one = [escaped(false)];
    check("x\na &amp; b", &one, r#""x\na &amp; d" 1@2 as written"#);
    check("a & b", &one, r#""a & d" 1@1"#);
    check("a & b a &amp; b", &one, r#""a & d a &amp; b" 1@1"#);
    check("a & b a & b", &one, "pair 0 in [1, 1] of 2");
    check(
        "a &amp; b\na &amp; b",
        &one,
        "pair 0 as written in [1, 2] of 2",
    );
    check("a &amp; d", &one, r#""a &amp; d" already@1"#);
    check("a & d", &one, r#""a & d" already@1"#);
    check(
        "a & d\na &amp; b",
        &one,
        r#""a & d\na &amp; d" 1@2 as written"#,
    );
    check("e", &one, "pair 0 not found");
    let all = [escaped(true)];
    check("a &amp; b", &all, r#""a &amp; d" 1@1 as written"#);
    check(
        "a &amp; b a &amp; b",
        &all,
        "pair 0 as written in [1, 1] of 2",
    );
    check("a & b a & b", &all, r#""a & d a & d" 2@1"#);
    check(
        "1\r\na &amp; b\r\n",
        &[escaped(false), once("1", "2")],
        r#""2\r\na &amp; d\r\n" 1@2 as written 1@1"#,
    );
}

#[test]
fn half_an_escape_is_never_replaced() {
    let escaped = |find, source, all| Pair {
        find,
        replace: "c",
        all,
        written: Some(UndecodedPair {
            find: source,
            replace: "c",
        }),
        scope: Scope::Text,
    };
    let (one, all) = (
        escaped("a &", "a &amp;", false),
        escaped("&", "&amp;", true),
    );
    check("a &amp; b", &[one], r#""c b" 1@1 as written"#);
    check("a &amp; b", &[all], r#""a c b" 1@1 as written"#);
    check("a & b", &[one], r#""c b" 1@1"#);
    check(
        "a &amp; b\na &amp; d",
        &[one],
        "pair 0 as written in [1, 2] of 2",
    );
    check(
        "x\na & b\na &amp; d",
        &[one],
        "pair 0 in two readings in [2, 3] of 2",
    );
    check(
        "& &lt; &amp;",
        &[all],
        "pair 0 in two readings in [1, 1, 1] of 3",
    );
    check("& &lt;", &[all], r#""c clt;" 2@1"#);
}

#[test]
fn exploding_replacements_are_refused() {
    let text = "a".repeat(1 << 20);
    let large = "b".repeat(1 << 10);
    check(&text, &[all("a", &large)], "pair 0 too large");
}

#[test]
fn hostile_repetition_stays_linear() {
    let text = "a".repeat(4 << 20);
    let find = format!("{}b", "a".repeat(2 << 20));
    check(&text, &[once(&find, "x")], "pair 0 not found");
}

#[test]
fn one_file_has_one_reading() {
    let escaped = Pair {
        written: Some(UndecodedPair {
            find: "&lt;a>",
            replace: "&lt;b>",
        }),
        ..once("<a>", "<b>")
    };
    let told = Pair {
        written: Some(UndecodedPair {
            find: "x and y",
            replace: "x &amp; y",
        }),
        ..once("x and y", "x & y")
    };
    check("<a> x and y", &[escaped, told], r#""<b> x & y" 1@1 1@1"#);
    check(
        "&lt;a> x and y",
        &[told, escaped],
        r#""&lt;b> x &amp; y" 1@1 as written 1@1 as written"#,
    );
    let other = Pair {
        written: Some(UndecodedPair {
            find: "&gt;",
            replace: "c",
        }),
        ..once(">|", "c")
    };
    check("&lt;a> >|", &[escaped, other], "pair 1 not found");
}

#[test]
fn whole_lines_that_go_take_their_break_along() {
    let lines = |find| Pair {
        scope: Scope::Lines,
        ..once(find, "")
    };
    check("a\nb\nc\n", &[lines("b")], r#""a\nc\n" 1@2"#);
    check("a\r\nb\r\nc\r\n", &[lines("a\nb")], r#""c\r\n" 1@1"#);
    check("a\nb", &[lines("b")], r#""a\n" 1@2"#);
    check("a\nxb\nc\n", &[lines("b")], r#""a\nx\nc\n" 1@2"#);
    check("a\nb \nc\n", &[lines("b")], r#""a\n \nc\n" 1@2"#);
    check("a\nb\nc\n", &[once("b", "")], r#""a\n\nc\n" 1@2"#);
}

#[test]
fn a_whole_text_is_replaced() {
    let file = |text| Pair {
        scope: Scope::File,
        ..once("", text)
    };
    check("", &[file("a\n")], r#""a\n" 1@1"#);
    check("x\r\ny\r\n", &[file("a\nb\n")], r#""a\r\nb\r\n" 1@1"#);
    check("x", &[file("")], r#""" 1@1"#);
    check("a", &[file("a")], r#""a" 1@1"#);
}
