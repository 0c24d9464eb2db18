//! Generic tools, of which the registry has none yet: every notation knows them.

use std::collections::BTreeMap;

use karyi::outcome::Status;
use karyi::reference::grammar::{Notation, grammar};
use karyi::syntax::Mode;
use karyi::tool::registry::{Entry, Lazy, Registry};
use karyi::tool::schema::ArgumentSchema;
use karyi::tool::spec::{Example, Family, Form, Spec};
use karyi::tools;
use schemars::JsonSchema;
use serde_json::Value;

use super::documents::{Document, block, document, minimal};
use super::{XML, ask_xml, differences, judges, read};

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct WriteFile {
    path: String,
    #[schemars(extend("x-karyi" = {"raw": true}))]
    content: String,
    mode: Option<Create>,
    retries: Option<u8>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "only its schema is used")]
enum Create {
    New,
    Over,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Fetch {
    url: String,
    headers: Option<BTreeMap<String, String>>,
    tags: Vec<String>,
    steps: Option<Vec<Step>>,
    range: Option<Range>,
    extra: Option<Extra>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Step {
    name: String,
    count: Option<i32>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Range {
    from: i32,
    exact: Option<bool>,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum Extra {
    Number(f64),
    List(Vec<Value>),
}

fn entry<T: JsonSchema + 'static>(name: &'static str) -> Entry<Value> {
    Entry {
        spec: Spec {
            name,
            summary: "Do something",
            details: "",
            heading: ">",
            also_called: &[],
            starts_job: false,
            family: Family::Core,
            form: Form::Parameters,
            examples: &[Example {
                title: "",
                before: "",
                xml: "",
                status: Status::Ok,
                code: None,
            }],
        },
        title: String::new(),
        schema: Lazy::new(Box::new(ArgumentSchema::of::<T>)),
        output_schema: Lazy::new(Box::new(|| None)),
        service: karyi::tool::Service::LOCAL,
        from_json: Ok,
        note_sources: |_, _| {},
    }
}

fn registry() -> Registry<Value> {
    let core = tools::registry();
    let core = core.entries().iter().map(|entry| Entry {
        spec: entry.spec,
        title: entry.title.clone(),
        schema: Lazy::new(Box::new({
            let schema = ArgumentSchema::clone(&entry.schema);
            || schema
        })),
        output_schema: Lazy::new(Box::new(|| None)),
        service: entry.service,
        from_json: Ok,
        note_sources: |_, _| {},
    });
    let generic = [entry::<WriteFile>("write_file"), entry::<Fetch>("fetch")];
    Registry::new(core.chain(generic).collect())
}

/// Whether strict mode reads the document and every argument fits.
fn is_good(text: &[u8], mode: Mode) -> bool {
    let registry = registry();
    let calls = read(text, &registry.grammar(), mode);
    calls.is_ok_and(|calls| calls.iter().all(|call| registry.decode(call).is_ok()))
}

/// Calls, and what is wrong with those that no schema may accept.
const CALLS: &[(&str, bool)] = &[
    ("<write_file path='a' content='b'/>", true),
    (
        "<write_file path='a' mode='new' retries=' 3 '><content>x</content></write_file>",
        true,
    ),
    (
        "<write_file><content>a &lt; <![CDATA[<b>]]></content><path>p</path></write_file>",
        true,
    ),
    (
        "<write_file><!-- c --><mode>over</mode>\n<path>p</path><content/></write_file>",
        true,
    ),
    ("<write_file path='a' content='b' mode='other'/>", false),
    ("<write_file path='a' content='b' retries='many'/>", false),
    (
        "<write_file path='a' content='b'><retries>x</retries></write_file>",
        false,
    ),
    (
        "<write_file path='a' content='b'><mode><item>new</item></mode></write_file>",
        false,
    ),
    ("<fetch url='u' tags='[\"a\"]'/>", true),
    ("<fetch url='u'><tags>a</tags><tags>b</tags></fetch>", true),
    (
        "<fetch url='u'><tags> <item>a</item> <item>b</item> </tags></fetch>",
        true,
    ),
    ("<fetch url='u'><tags>[\"a\"]</tags></fetch>", true),
    ("<fetch><tags>a</tags><url>u</url></fetch>", true),
    (
        "<fetch url='u' tags='[]'><headers><Accept>x</Accept><entry key='a b'>y</entry></headers></fetch>",
        true,
    ),
    (
        "<fetch url='u' tags='[]'><headers>{\"a\": \"b\"}</headers></fetch>",
        true,
    ),
    (
        "<fetch url='u' tags='[]'><range><from>1</from><exact>true</exact></range></fetch>",
        true,
    ),
    (
        "<fetch url='u' tags='[]'><steps><item><name>a</name></item></steps></fetch>",
        true,
    ),
    (
        "<fetch url='u' tags='[]'><steps><name>a</name><count>2</count></steps><steps><name>b</name></steps></fetch>",
        true,
    ),
    ("<fetch url='u' tags='[]' extra='[1]'/>", true),
    (
        "<fetch url='u' tags='[]'><range><from>one</from></range></fetch>",
        false,
    ),
    (
        "<fetch url='u' tags='[]'><steps><item><name>a</name><count>x</count></item></steps></fetch>",
        false,
    ),
];

fn calls() -> Vec<Document> {
    let calls = CALLS.iter();
    calls
        .map(|(call, is_valid)| document(*call, &block(call), *is_valid))
        .collect()
}

fn documents() -> Vec<Document> {
    let mut documents = calls();
    documents.extend(minimal(&registry().grammar()));
    for document in &documents {
        let is_valid = is_good(&document.text, Mode::Strict);
        assert_eq!(is_valid, document.is_valid, "{}", document.name);
    }
    documents
}

/// What only RELAX NG can count: whether a list or an object is there, and once.
const UNCOUNTED: &[&str] = &["fetch: tags as attribute and child", "fetch: tags missing"];

#[test]
fn schemas_judge_generic_calls_as_strict_mode_does() {
    let documents = documents();
    for (notation, judge) in XML {
        let schema = grammar(&registry(), *notation);
        if let Some(verdicts) = ask_xml(judge, &schema, &documents) {
            let expected = match notation {
                Notation::Xsd => UNCOUNTED,
                _ => &[],
            };
            assert_eq!(differences(&documents, &verdicts), expected, "{judge}");
        }
    }
}

/// A Lark grammar does not count arguments: each may be there, as either, any number of times. It
/// cannot compare the names of two tags either: a key that the schema does not name is an entry.
const DIFFERENT_IN_LARK: &[&str] = &[
    "<fetch url='u' tags='[]'><headers><Accept>x</Accept><entry key='a b'>y</entry></headers></fetch>",
    "write_file: path as attribute and child",
    "write_file: path missing",
    "write_file: path twice",
    "write_file: content as attribute and child",
    "write_file: content missing",
    "write_file: content twice",
    "fetch: url as attribute and child",
    "fetch: url missing",
    "fetch: url twice",
    "fetch: tags as attribute and child",
    "fetch: tags missing",
];

#[test]
fn lark_knows_generic_calls() {
    let documents = documents();
    let texts = documents
        .iter()
        .map(|d| String::from_utf8(d.text.clone()).unwrap());
    let texts: Vec<String> = texts.collect();
    let lark = grammar(&registry(), Notation::Lark);
    for judge in ["lark", "llguidance-lark"] {
        if let Some(verdicts) = judges::judged(judge, &lark, &texts) {
            assert_eq!(
                differences(&documents, &verdicts),
                DIFFERENT_IN_LARK,
                "{judge}"
            );
        }
    }
}

#[test]
fn llama_knows_generic_calls() {
    let spelled = [
        "<write_file path=\"a\" mode=\"new\" retries=\"25\">\n  <content>x &amp; y</content>\n</write_file>",
        "<fetch id=\"1\" url=\"u\">\n<headers><entry key=\"a\">b</entry></headers>\n<tags>a</tags><tags>b</tags></fetch>",
        "<fetch url=\"u\"><tags>t</tags><steps><name>n</name><count>-1</count></steps><range><from>1</from></range></fetch>",
        "<fetch url=\"u\"><tags>t</tags><extra>[1, {\"a\": \"\\u003c\"}]</extra></fetch>",
    ];
    let refused = [
        "<write_file path=\"a\"></write_file>",
        "<write_file path=\"a\"><content>x < y</content></write_file>",
        "<fetch url=\"u\"></fetch>",
        "<fetch url=\"u\"><tags>t</tags><extra>[1,]</extra></fetch>",
    ];
    let texts = spelled.iter().chain(&refused);
    let texts: Vec<String> = texts.map(|call| block(call)).collect();
    for text in texts.iter().take(spelled.len()) {
        assert!(is_good(text.as_bytes(), Mode::Strict), "{text}");
    }
    let expected: Vec<bool> = (0..texts.len())
        .map(|number| number < spelled.len())
        .collect();
    let gbnf = grammar(&registry(), Notation::Gbnf);
    let judged = [
        judges::llama(&gbnf, &texts),
        judges::judged("llguidance-gbnf", &gbnf, &texts),
    ];
    for found in judged.into_iter().flatten() {
        assert_eq!(found, expected);
    }
    let raw = grammar(&registry(), Notation::GbnfRaw);
    let text = "<write_file path=\"a\"><content>if (a < b && c) </b> &x;</content></write_file>";
    assert!(is_good(block(text).as_bytes(), Mode::Repair));
    assert!(judges::llama(&raw, &[block(text)]).is_none_or(|found| found == [true]));
}

#[test]
fn every_notation_names_every_parameter() {
    let registry = registry();
    for notation in Notation::ALL {
        let text = grammar(&registry, notation);
        for name in [
            "write_file",
            "path",
            "content",
            "mode",
            "retries",
            "headers",
            "steps",
        ] {
            assert!(text.contains(name), "{notation:?}: {name}");
        }
    }
}
