//! Closest passages and the descriptions of their differences.

use super::*;

const FILE: &str = "fn one() {\n    let a = \"x\";\n    call(a, 1);\n}\n\nfn two() {\n\tlet b = 'y';\n\tcall(b, 2);\n}\n";

fn check(find: &str, expected: Option<(usize, usize, &[&str])>) {
    let found = closest(FILE, find);
    let seen = found
        .as_ref()
        .map(|p| (p.first_line, p.last_line, p.differences.clone()));
    let expected = expected
        .map(|(first, last, words)| (first, last, words.iter().map(|w| (*w).to_owned()).collect()));
    assert_eq!(seen, expected, "{find:?}");
}

#[test]
fn differences_are_named() {
    check(
        "  let a = \"x\";\n  call(a, 1);",
        Some((
            2,
            3,
            &[
                "line 2: the file indents with 4 spaces, the text to find with 2 spaces",
                "line 3: the file indents with 4 spaces, the text to find with 2 spaces",
            ],
        )),
    );
    check(
        "    let b = 'y';",
        Some((
            7,
            7,
            &["line 7: the file indents with 1 tab, the text to find with 4 spaces"],
        )),
    );
    check(
        "fn two() { \n\tlet b = 'y';",
        Some((
            6,
            7,
            &["line 6: the file has nothing at its end, the text to find 1 space"],
        )),
    );
}

#[test]
fn other_differences_are_named() {
    check(
        "    let a = “x”;",
        Some((
            2,
            2,
            &[
                "line 2: the file has \" (U+0022) where the text to find has “ (U+201C), \" (U+0022) where it has ” (U+201D), which only look alike",
            ],
        )),
    );
    check(
        "FN one() {",
        Some((1, 1, &["line 1: upper and lower case differ"])),
    );
    check(
        "    call(a,1);",
        Some((
            3,
            3,
            &[
                "line 3: white space differs: the file has `····call(a,·1);` where the text to find has `····call(a,1);` (· is a space, → a tab)",
            ],
        )),
    );
    check(
        "fn one() {\n    let a = \"z\";\n    call(a, 1);",
        Some((
            1,
            3,
            &[
                "line 2: the file has `    let a = \"x\";` where the text to find has `    let a = \"z\";`",
            ],
        )),
    );
    check(
        "call(b, 2);\n}\nmore",
        Some((
            8,
            9,
            &[
                "line 8: the file indents with 1 tab, the text to find with nothing",
                "the text to find has 1 line that the file does not have there: `more`",
            ],
        )),
    );
}

#[test]
fn missing_and_extra_lines_are_described() {
    check(
        "fn one() {\n    call(a, 1);\n}",
        Some((
            1,
            4,
            &["the file has 1 line more at line 2: `let a = \"x\";`"],
        )),
    );
    check(
        "fn two() {\n\tlet b = 'y';\n\t// a remark\n\tcall(b, 2);\n}",
        Some((
            6,
            9,
            &["the text to find has 1 line that the file does not have there: `// a remark`"],
        )),
    );
    check(
        "fn one() {\n    log(\"a long line that is new\");\n    call(a, 1);\n}",
        Some((
            1,
            4,
            &[
                "line 2: the file has `    let a = \"x\";` where the text to find has `    log(\"a long line that is new\");`",
            ],
        )),
    );
    check(
        "call(a, 1); }",
        Some((
            3,
            4,
            &["it breaks its lines elsewhere: the file has 2 lines, the text to find 1 line"],
        )),
    );
    check(
        "  2\t    let a = \"x\";\n  3\t    call(a, 1);",
        Some((
            2,
            3,
            &["the text to find has line numbers, which the file does not have"],
        )),
    );
    check(
        "f\u{6E} one() {\n    let a = \"\u{E9}\";\n    call(a, 1);",
        Some((
            1,
            3,
            &[
                "line 2: the file has `    let a = \"x\";` where the text to find has `    let a = \"\u{E9}\";` (U+0078 and U+00E9)",
            ],
        )),
    );
}

#[test]
fn long_lines_are_cut_around_the_difference() {
    let text = format!(
        "{}if(a==b){{c()}}{}\n",
        "x;".repeat(5000),
        "y;".repeat(5000)
    );
    let passage = closest(&text, "if (a == b) { c() }").unwrap();
    assert_eq!(
        (passage.first_line, passage.text.as_str()),
        (1, "if(a==b){c()}\n")
    );
}

#[test]
fn distant_texts_have_no_closest_passage() {
    check("completely different words", None);
    check("}", Some((4, 4, &[])));
    check("", None);
    check("\n\n", None);
    assert_eq!(closest("", "x"), None);
}

#[test]
fn extra_blank_lines_are_described() {
    let cases = [
        ("\nfn one() {", "1 blank line at its start"),
        ("fn one() {\n\n\n", "2 blank lines at its end"),
        (
            "\n\nfn one() {\n\n",
            "2 blank lines at its start and 1 blank line at its end",
        ),
    ];
    for (find, has) in cases {
        let expected = format!("the text to find has {has} that the file does not have there");
        check(find, Some((1, 1, &[&expected])));
    }
    let found = closest("a last line", "a last line\n").unwrap();
    let expected =
        ["the text to find has a line break at its end that the file does not have there"];
    assert_eq!(found.differences, expected);
}

fn check_difference(there: &str, wanted: &str, expected: &str) {
    let look_alikes = LookAlikes::default().describe(there, wanted);
    let described = look_alikes.unwrap_or_else(|| difference(there, wanted));
    assert_eq!(described, expected, "{there:?} {wanted:?}");
}

#[test]
fn invisible_characters_are_made_visible() {
    check_difference(
        "a\u{A0}b",
        "a b",
        "white space differs: the file has `a<U+00A0>b` where the text to find has `a·b` (· is a space, → a tab)",
    );
    check_difference(
        "x\t= 1",
        "x = 1",
        "white space differs: the file has `x→=·1` where the text to find has `x·=·1` (· is a space, → a tab)",
    );
    check_difference(
        "a\u{200B}b",
        "ab",
        "white space differs: the file has `a<U+200B>b` where the text to find has `ab` (· is a space, → a tab)",
    );
    check_difference(
        "n\u{430}me",
        "name",
        "the file has \u{430} (U+0430) where the text to find has a (U+0061), which only look alike",
    );
    check_difference(
        "f\u{FF08}x",
        "f(x",
        "the file has \u{FF08} (U+FF08) where the text to find has ( (U+0028), which only look alike",
    );
    check_difference(
        "it\u{2019}s \u{2014}",
        "it's -",
        "the file has \u{2019} (U+2019) where the text to find has ' (U+0027), \u{2014} (U+2014) where it has - \
         (U+002D), which only look alike",
    );
}

#[test]
fn lone_cr_line_ends_are_described() {
    let passage = closest("one\rtwo words\rthree\r", "two words\nthree").unwrap();
    assert_eq!((passage.first_line, passage.last_line), (2, 3));
    assert!(passage.differences[0].contains("CR alone"), "{passage:?}");
}

#[test]
fn a_passage_shows_its_text() {
    let passage = closest(FILE, "fn tvo() {\nlet b = 'y';").unwrap();
    assert_eq!(passage.text, "fn two() {\n\tlet b = 'y';\n");
}

#[test]
fn only_the_first_lines_of_a_long_passage_are_compared() {
    let text: String = (0..600).map(|n| format!("line {n}\n")).collect();
    let find = text
        .replace("line 499\n", "Line 499\n")
        .replace("line 500\n", "Line 500\n");
    let passage = closest(&text, &find).unwrap();
    assert_eq!((passage.first_line, passage.last_line), (1, 600));
    let expected = ["line 500: upper and lower case differ"];
    assert_eq!(passage.differences, expected);
}

#[test]
fn hostile_texts_stay_cheap() {
    let text = "}\n".repeat(1 << 18);
    let find = format!("{}x", "}\n".repeat(100_000));
    let passage = closest(&text, &find).unwrap();
    assert_eq!((passage.first_line, passage.last_line), (1, 500));
    let long = "ab".repeat(1 << 20);
    assert!(closest(&long, "abababababx").is_some_and(|p| p.text.len() < 4100));
}

#[test]
fn only_a_prefix_of_a_long_text_is_searched() {
    let lines = |count: usize| "a\n".repeat(count);
    let most = limits::CLOSEST_TEXT_LINES;
    assert_eq!(searched_lines(&lines(most)), None);
    let text = format!("{}a telling line\n", lines(most));
    assert_eq!(searched_lines(&text), Some(most));
    assert_eq!(closest(&text, "a telling lime"), None);
    let text = format!("{}a telling line\nb", lines(most - 1));
    let line = closest(&text, "a telling lime").map(|passage| passage.first_line);
    assert_eq!((line, searched_lines(&text)), (Some(most), Some(most)));
    let long = format!("{}\nb", "x".repeat(limits::CLOSEST_TEXT_BYTES));
    assert_eq!(searched_lines(&long), Some(1));
}

#[test]
fn each_pair_of_look_alikes_is_listed_once() {
    let text =
        "say(\"it's\", a - b);\nsay(\"on\");\nsay(\"off\", -1);\nsay(\"up\");\nsay(\"a\");\n";
    let find = "say(\u{201C}it\u{2019}s\u{201D}, a \u{2013} b);\nsay(\u{201C}on\u{201D});\n\
                say(\"off\", \u{2212}1);\nsay(\u{201C}up\u{201D});\nsay( \u{201C}a\u{201D});\n";
    let passage = closest(text, find).unwrap();
    assert_eq!(
        passage.differences,
        [
            "line 1: the file has \" (U+0022) where the text to find has \u{201C} (U+201C), ' (U+0027) where it \
             has \u{2019} (U+2019), \" (U+0022) where it has \u{201D} (U+201D), - (U+002D) where it has \u{2013} \
             (U+2013), which only look alike",
            "line 3: the file has - (U+002D) where the text to find has \u{2212} (U+2212), which only look alike",
            "line 5: the same characters differ; white space differs, too",
            "2 more lines differ in these characters",
        ]
    );
}
