//! The grammars that hold a model: Lark in llguidance and Python, GBNF in llama.cpp and llguidance.

use karyi::reference::grammar::{Notation, grammar};
use karyi::syntax::Mode;
use karyi::tools;
use serde_json::json;

use super::documents::{Document, block, cases, minimal, scripts};
use super::xml::examples;
use super::{differences, judges, read};

/// Everything that is UTF-8, with its text.
fn documents() -> (Vec<Document>, Vec<String>) {
    let mut documents = cases();
    documents.extend(examples());
    documents.extend(scripts());
    documents.extend(minimal(&tools::registry().grammar()));
    documents.retain(|document| std::str::from_utf8(&document.text).is_ok());
    let text = |document: &Document| String::from_utf8(document.text.clone()).unwrap();
    let texts = documents.iter().map(text).collect();
    (documents, texts)
}

/// How many texts the judges of a notation accept; they must agree.
fn gbnf_verdicts(notation: Notation, texts: &[String]) -> Option<Vec<bool>> {
    let gbnf = grammar(&tools::registry(), notation);
    let llama = judges::llama(&gbnf, texts);
    let guided = judges::judged("llguidance-gbnf", &gbnf, texts);
    if let (Some(llama), Some(guided)) = (&llama, &guided) {
        assert_eq!(llama, guided);
    }
    llama.or(guided)
}

#[test]
fn lark_is_strict_mode() {
    let (documents, texts) = documents();
    let lark = grammar(&tools::registry(), Notation::Lark);
    for judge in ["lark", "llguidance-lark"] {
        if let Some(verdicts) = judges::judged(judge, &lark, &texts) {
            let wrong = differences(&documents, &verdicts);
            assert!(wrong.is_empty(), "{judge}: {wrong:#?}");
        }
    }
}

#[test]
fn what_gbnf_accepts_karyi_reads() {
    let (_, texts) = documents();
    let registry = tools::registry();
    for (notation, mode, least) in [
        (Notation::Gbnf, Mode::Strict, 30),
        (Notation::GbnfRaw, Mode::Repair, 50),
    ] {
        let Some(verdicts) = gbnf_verdicts(notation, &texts) else {
            continue;
        };
        let accepted = texts.iter().zip(&verdicts).filter(|(_, verdict)| **verdict);
        let accepted: Vec<&String> = accepted.map(|(text, _)| text).collect();
        assert!(accepted.len() >= least, "{notation:?}: {}", accepted.len());
        for text in accepted {
            let found = read(text.as_bytes(), &registry.grammar(), mode);
            assert!(found.is_ok(), "{notation:?}: {found:?}: {text}");
        }
    }
}

/// Texts of a command as a model writes them, and whether the raw grammar lets them stand.
const RAW_TEXTS: &[(&str, bool)] = &[
    ("cd a && make 2>&1 | tee log", true),
    ("sleep 9 &", true),
    ("cat <<EOF > x\n<div class=\"a\">&nbsp;</div>\nEOF", true),
    ("diff <(a) <(b) <<< c", true),
    ("curl 'http://h/?a=1&b=2&lt=3&amplitude=4'", true),
    ("echo </commander> <commands>", true),
    ("a[b[0]]>1", true),
    ("<![CDATA[echo \"</command>\" &amp; a[0]]]>", true),
    ("", true),
    ("echo </command> x", false),
    ("echo </COMMAND > x", false),
    ("echo <command>ls</command>", false),
    ("a && b &amp; c", false),
    ("a & &#x41;", false),
    ("a <![CDATA[b]]>", false),
    ("a\u{1}b", false),
];

#[test]
fn raw_text_ends_at_its_own_end_tag() {
    let (texts, expected): (Vec<String>, Vec<bool>) = RAW_TEXTS
        .iter()
        .map(|(text, is_allowed)| (block(&format!("<command>{text}</command>")), *is_allowed))
        .unzip();
    if let Some(found) = gbnf_verdicts(Notation::GbnfRaw, &texts) {
        assert_eq!(found, expected);
    }
    let grammar = tools::registry().grammar();
    for (text, _) in texts
        .iter()
        .zip(&expected)
        .filter(|(_, is_allowed)| **is_allowed)
    {
        let calls = read(text.as_bytes(), &grammar, Mode::Repair);
        assert_eq!(calls.map(|calls| calls.len()), Ok(1), "{text}");
    }
}

#[test]
fn a_whole_answer_is_prose_and_at_most_one_block() {
    let one = block("<command>ls</command>");
    let allowed = [
        "It works.".to_owned(),
        "Two lines:\n\n- `a < b`\n  - c".to_owned(),
        one.clone(),
        format!("I look.\n{one}"),
    ];
    let refused = [
        format!("{one}\nNow I know."),
        format!("{one}\n{one}"),
        "I look.\n<results>".to_owned(),
        "<results>".to_owned(),
        format!("I look. {one}\n<"),
    ];
    let texts: Vec<String> = allowed.iter().chain(&refused).cloned().collect();
    let expected: Vec<bool> = (0..texts.len())
        .map(|number| number < allowed.len())
        .collect();
    if let Some(found) = gbnf_verdicts(Notation::GbnfAnswer, &texts) {
        assert_eq!(found, expected);
    }
}

#[test]
fn escapes_of_input_are_whole() {
    let allowed = [
        "y\\n",
        "\\x1b[A",
        "\\u{1F600}\\u{e9}\\d \\\\",
        "a & b < c ]]>",
    ];
    let refused = [
        "\\x1",
        "\\xg0",
        "\\u41",
        "\\u{}",
        "\\u{d800}",
        "\\u{110000}",
    ];
    let all = allowed.iter().chain(&refused);
    let texts: Vec<String> = all.map(|t| block(&format!("<input>{t}</input>"))).collect();
    let expected: Vec<bool> = (0..texts.len())
        .map(|number| number < allowed.len())
        .collect();
    let registry = tools::registry();
    for (text, is_allowed) in texts.iter().zip(&expected) {
        let found = read(text.as_bytes(), &registry.grammar(), Mode::Repair);
        assert_eq!(found.is_ok(), *is_allowed, "{text}");
    }
    if let Some(found) = gbnf_verdicts(Notation::GbnfRaw, &texts) {
        assert_eq!(found, expected);
    }
}

/// What a model's words are put together from.
const WORDS: &[&str] = &[
    "<tools",
    ">",
    "/>",
    "\n",
    "  ",
    "<command",
    "<edit>",
    "<read>",
    "<get_value",
    "<input",
    "<ctrl",
    "<file",
    "<search",
    "<find",
    "<replace>",
    " src=\"",
    " timeout=\"",
    " all=\"",
    " pattern=\"",
    " key=\"",
    " reason=\"",
    "\"",
    "true",
    "7",
    "c",
    "enter",
    "a b",
    "é中😀",
    "&",
    "&&",
    "&amp;",
    "&lt;",
    "&l",
    "<",
    "<<EOF",
    "</",
    "</c",
    "</div>",
    "<br/>",
    "<find>",
    "]]",
    "]",
    "]]>",
    "<![CDATA[",
    "<!--",
    "\\n",
    "\\x41",
    "\\",
    "$KARYI{A}",
    "</command>",
    "</find>",
    "</replace>",
    "</file>",
    "</edit>",
    "</read>",
    "</input>",
    "</ctrl>",
    "</tools>",
];

/// What ends things.
const CLOSERS: &[&str] = &[
    "</tools>",
    "</edit>",
    "</read>",
    "</file>",
    "</command>",
    "</input>",
    "</ctrl>",
    "]]></command>",
    "]]></find>",
    "]]></replace>",
    "</find>",
    "</replace>",
    "\"/>",
    "\">",
    "/>",
    ">",
];

/// Whatever a held model writes is a block that is read without an error. It writes no ids: a
/// grammar cannot know that they are all different.
#[test]
fn what_a_held_model_writes_is_read() {
    let registry = tools::registry();
    for (notation, mode) in [
        (Notation::Gbnf, Mode::Strict),
        (Notation::GbnfRaw, Mode::Repair),
    ] {
        let count = if std::env::var_os("KARYI_FULL").is_some() {
            2000
        } else {
            60
        };
        let request = json!({
            "judge": "generate", "grammar": grammar(&registry, notation), "words": WORDS,
            "closers": CLOSERS, "count": count, "seed": 3,
        });
        let Some(texts) = judges::python(&request) else {
            return;
        };
        for text in texts {
            let text = text.as_str().unwrap();
            let found = read(text.as_bytes(), &registry.grammar(), mode);
            assert!(
                found.as_ref().is_ok_and(|calls| !calls.is_empty()),
                "{notation:?}: {found:?}: {text}"
            );
        }
    }
}
