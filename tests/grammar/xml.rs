//! RELAX NG and XML Schema against xmllint and jing, on everything there is.

use karyi::reference::grammar::grammar;
use karyi::syntax::Mode;
use karyi::tools;

use super::documents::{Document, block, cases, document, is_strict, minimal, scripts};
use super::{XML, ask_xml, differences, read};

/// Cases that strict mode refuses and a schema cannot: comments and processing instructions are
/// no part of what it sees.
const ACCEPTED_BY_SCHEMAS: &[&str] = &[
    "raw_html_comment_kept",
    "raw_php_pi_kept",
    "tag_pi_in_tools",
];
/// Cases that strict mode accepts and a schema does not: names of keys are in lower case there.
const REFUSED_BY_SCHEMAS: &[&str] = &["wf_ctrl_upper"];

/// Returns the blocks of the examples of all tools.
pub(super) fn examples() -> Vec<Document> {
    let registry = tools::registry();
    let mut documents = Vec::new();
    for entry in registry.entries() {
        for example in entry.spec.examples {
            let text = block(&format!("{}{}", example.before, example.xml));
            documents.push(document(example.title, &text, is_strict(&text)));
        }
    }
    documents
}

#[test]
fn schemas_accept_the_examples_and_refuse_what_is_wrong() {
    let registry = tools::registry();
    let mut documents = examples();
    documents.extend(scripts());
    documents.extend(minimal(&registry.grammar()));
    assert!(documents.len() > 60, "{}", documents.len());
    for document in &documents {
        let is_valid = read(&document.text, &registry.grammar(), Mode::Strict).is_ok();
        assert_eq!(is_valid, document.is_valid, "{}", document.name);
    }
    for (notation, judge) in XML {
        if let Some(verdicts) = ask_xml(judge, &grammar(&registry, *notation), &documents) {
            let wrong = differences(&documents, &verdicts);
            assert!(wrong.is_empty(), "{judge}: {wrong:#?}");
        }
    }
}

#[test]
fn schemas_judge_the_cases_as_strict_mode_does() {
    let documents = cases();
    assert!(documents.len() > 100, "{}", documents.len());
    for (notation, judge) in XML {
        let schema = grammar(&tools::registry(), *notation);
        if let Some(verdicts) = ask_xml(judge, &schema, &documents) {
            let expected = [ACCEPTED_BY_SCHEMAS, REFUSED_BY_SCHEMAS].concat();
            assert_eq!(differences(&documents, &verdicts), expected, "{judge}");
        }
    }
}

/// What strict mode, XML Schema and RELAX NG say where they differ; `grammar/README.md` tells why.
const DIFFERENCES: &[(&str, [bool; 3])] = &[
    (
        "<tools><ctrl id='a'>c</ctrl><ctrl id='a'>c</ctrl></tools>",
        [false, false, true],
    ),
    (
        "<tools><command>a<!-- b --></command></tools>",
        [false, true, true],
    ),
    (
        "<tools><command>a<?b?></command></tools>",
        [false, true, true],
    ),
    ("<tools><?b?><ctrl>c</ctrl></tools>", [false, true, true]),
    ("<tools><input>\\x1</input></tools>", [false, true, true]),
    (
        "<tools xml:space='other'><ctrl>c</ctrl></tools>",
        [false, true, false],
    ),
    (
        "<tools xml:lang='en'><ctrl>c</ctrl></tools>",
        [false, true, false],
    ),
    ("<tools><ctrl>C</ctrl></tools>", [true, false, false]),
];

#[test]
fn the_differences_are_known() {
    let registry = tools::registry();
    let of = |judge: usize| {
        let row = |(text, verdicts): &(&str, [bool; 3])| document(*text, text, verdicts[judge]);
        DIFFERENCES.iter().map(row).collect::<Vec<_>>()
    };
    for document in of(0) {
        let found = read(&document.text, &registry.grammar(), Mode::Strict);
        assert_eq!(found.is_ok(), document.is_valid, "{}", document.name);
    }
    for (notation, judge) in XML {
        let documents = of(if *judge == "xmllint xsd" { 1 } else { 2 });
        if let Some(verdicts) = ask_xml(judge, &grammar(&registry, *notation), &documents) {
            let wrong = differences(&documents, &verdicts);
            assert!(wrong.is_empty(), "{judge}: {wrong:?}");
        }
    }
}
