//! Arguments of generic tools: what each spelling means, and what is said of one that does not fit.

mod misfits;
mod spellings;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use karyi::call::RawCall;
use karyi::outcome::Status;
use karyi::secret::Template;
use karyi::syntax::Mode;
use karyi::syntax::grammar::Grammar;
use karyi::tool::decode::{self, TextMode};
use karyi::tool::schema::ArgumentSchema;
use karyi::tool::spec::{Example, Family, Form, Spec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{calls, error, parse_with};

/// A tool with a parameter of every kind.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Fetch {
    url: String,
    #[schemars(extend("x-karyi" = {"raw": true}))]
    body: Option<Template>,
    method: Option<Method>,
    retries: Option<u32>,
    big: Option<u64>,
    signed: Option<i64>,
    small: Option<i8>,
    delay: Option<f64>,
    follow: Option<bool>,
    headers: Option<BTreeMap<String, String>>,
    items: Option<Vec<Item>>,
    tags: Option<Vec<String>>,
    rows: Option<Vec<Vec<i64>>>,
    pair: Option<(i64, String)>,
    target: Option<Target>,
    text_or_number: Option<TextOrNumber>,
    any: Option<Value>,
    shape: Option<Shape>,
    tree: Option<Tree>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Method {
    Get,
    Post,
}

/// How an order is written; documented variants become constants in the schema.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Direction {
    /// Up.
    Up,
    /// Down.
    Down,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Item {
    name: String,
    count: Option<i64>,
    done: Option<bool>,
    tags: Option<Vec<String>>,
    direction: Option<Direction>,
    inner: Option<Box<Inner>>,
}

/// Its keys are refused when unknown although the type says nothing about them.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Inner {
    x: f64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Target {
    Id(i64),
    Names(Vec<String>),
    Point(Inner),
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum TextOrNumber {
    Number(i64),
    Text(String),
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Shape {
    Circle { radius: f64 },
    Square { side: f64, label: Option<String> },
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Tree {
    value: i64,
    children: Option<Vec<Tree>>,
}

static SCHEMA: LazyLock<ArgumentSchema> = LazyLock::new(ArgumentSchema::of::<Fetch>);

const SPEC: Spec = Spec {
    name: "fetch",
    summary: "Fetch",
    details: "",
    also_called: &[],
    heading: "> fetch",
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
};

fn raw(mode: Mode, xml: &str) -> Result<RawCall, String> {
    let tools = vec![SCHEMA.element_rule(&SPEC)];
    let grammar = Arc::new(Grammar {
        tools,
        ..Grammar::default()
    });
    let message = format!("<tools>{xml}</tools>");
    let events = parse_with(&grammar, mode, message.as_bytes(), usize::MAX);
    match error(&events) {
        Some(error) => Err(format!("{}: {}", error.code.as_str(), error.message)),
        None => Ok(calls(&events)[0].clone()),
    }
}

/// Reads a call; both the schema's and the type's own opinion count.
fn read(xml: &str) -> Result<Fetch, String> {
    let call = raw(Mode::Repair, xml)?;
    let arguments = decode::arguments(&call, &SPEC, &SCHEMA, TextMode::Normalised);
    let value = arguments.map_err(|e| format!("{}: {}", e.code.as_str(), e.message))?;
    serde_json::from_value(value).map_err(|error| format!("type: {error}"))
}

/// Reads a call for the time it takes; tells whether it is good.
pub(super) fn is_read(xml: &str) -> bool {
    read(xml).is_ok()
}

fn read_json(value: Value) -> Result<Fetch, String> {
    let value =
        decode::json_arguments(value, &SCHEMA).map_err(|mismatch| mismatch.message("fetch"))?;
    serde_json::from_value(value).map_err(|error| format!("type: {error}"))
}

/// Checks that elements inside `<fetch url="u">` mean the same as JSON.
#[track_caller]
fn same(inside: &str, json: Value) {
    let mut arguments = json!({"url": "u"});
    for (key, value) in json.as_object().unwrap() {
        arguments[key] = value.clone();
    }
    let wanted = read_json(arguments).unwrap();
    let found = read(&format!("<fetch url='u'>{inside}</fetch>"));
    assert_eq!(found, Ok(wanted), "{inside}");
}

/// Checks that an attribute means the same as the element and as JSON.
#[track_caller]
fn scalar(name: &str, text: &str, json: Value) {
    same(&format!("<{name}>{text}</{name}>"), json!({ name: json }));
    let found = read(&format!("<fetch url='u' {name}='{text}'/>"));
    assert_eq!(
        found,
        read_json(json!({"url": "u", name: json})),
        "{name}='{text}'"
    );
}

#[track_caller]
fn refused(inside: &str, message: &str) {
    let found = read(&format!("<fetch url='u'>{inside}</fetch>"));
    assert_eq!(found.err().as_deref(), Some(message), "{inside}");
}

#[test]
fn scalars_are_typed_by_the_schema() {
    scalar("method", "post", json!("post"));
    scalar("method", "\n  get ", json!("get"));
    scalar("follow", "true", json!(true));
    scalar("follow", " false ", json!(false));
    scalar("retries", "3", json!(3));
    scalar("retries", " 5 ", json!(5));
    scalar("retries", "+5", json!(5));
    scalar("retries", "005", json!(5));
    scalar("retries", "1e3", json!(1000));
    scalar("retries", "2.0", json!(2));
    scalar("signed", "-9223372036854775808", json!(i64::MIN));
    scalar("big", "18446744073709551615", json!(u64::MAX));
    scalar("big", "9007199254740993", json!(9_007_199_254_740_993_u64));
    scalar("delay", "1.5", json!(1.5));
    scalar("delay", ".5", json!(0.5));
    scalar("delay", "-2e-3", json!(-0.002));
    scalar("delay", "7", json!(7));
}

#[test]
fn lists_are_repeated_elements_items_or_json() {
    let tags = json!({"tags": ["a", "b"]});
    same("<tags>a</tags><tags>b</tags>", tags.clone());
    same("<tags><item>a</item><item>b</item></tags>", tags.clone());
    same("<tags> [\"a\", \"b\"] </tags>", tags.clone());
    assert_eq!(
        read("<fetch url='u' tags='[\"a\",\"b\"]'/>"),
        read_json(json!({"url": "u", "tags": ["a", "b"]}))
    );
    same("<tags>a</tags>", json!({"tags": ["a"]}));
    same("<tags/>", json!({"tags": []}));
    same("<tags>\n</tags>", json!({"tags": []}));
    same("<tags><item/></tags>", json!({"tags": [""]}));
    same("<tags/><tags/>", json!({"tags": ["", ""]}));
    same(
        "<tags>[ ] milk</tags><tags>[x] tea</tags>",
        json!({"tags": ["[ ] milk", "[x] tea"]}),
    );
    same(
        "<tags><item>[ ] milk</item></tags>",
        json!({"tags": ["[ ] milk"]}),
    );
    same(
        "<rows>[1,2]</rows><rows><item>3</item></rows><rows/>",
        json!({"rows": [[1, 2], [3], []]}),
    );
    same("<rows>[[1,2],[3]]</rows>", json!({"rows": [[1, 2], [3]]}));
    same(
        "<rows><item>[1]</item><item><item>2</item></item></rows>",
        json!({"rows": [[1], [2]]}),
    );
    same("<pair>5</pair><pair>x</pair>", json!({"pair": [5, "x"]}));
    same("<pair>[5,\"x\"]</pair>", json!({"pair": [5, "x"]}));
}

#[test]
fn objects_are_children_entries_or_json() {
    let headers = json!({"headers": {"Accept": "a/b", "x y": "1"}});
    same(
        "<headers><Accept>a/b</Accept><entry key='x y'>1</entry></headers>",
        headers.clone(),
    );
    same(
        "<headers>{\"Accept\":\"a/b\",\"x y\":\"1\"}</headers>",
        headers,
    );
    same("<headers/>", json!({"headers": {}}));
    same(
        "<headers><entry key=''>1</entry><entry>2</entry></headers>",
        json!({"headers": {"": "1", "entry": "2"}}),
    );
    let items = json!({"items": [
        {"name": "a", "count": 2, "tags": ["x", "y"]},
        {"name": "", "done": true, "direction": "up", "inner": {"x": 1.5}},
    ]});
    same(
        "<items><name>a</name><count>2</count><tags>x</tags><tags>y</tags></items>\
         <items><name/><done>true</done><direction>up</direction><inner><x>1.5</x></inner></items>",
        items.clone(),
    );
    same(
        "<items><item>{\"name\":\"a\",\"count\":2,\"tags\":[\"x\",\"y\"]}</item>\
         <item><name/><done>true</done><direction> up </direction><inner>{\"x\":1.5}</inner></item></items>",
        items,
    );
    same(
        "<tree><value>1</value><children><item>{\"value\":2}</item></children></tree>",
        json!({"tree": {"value": 1, "children": [{"value": 2}]}}),
    );
}

#[test]
fn unions_take_what_fits() {
    scalar("target", "5", json!({"target": 5})["target"].clone());
    scalar("target", "[\"a\"]", json!(["a"]));
    same("<target><item>a</item></target>", json!({"target": ["a"]}));
    same("<target><x>2</x></target>", json!({"target": {"x": 2.0}}));
    scalar("text_or_number", "5", json!(5));
    scalar("text_or_number", "five", json!("five"));
    scalar("text_or_number", "\"5\"", json!("5"));
    scalar("any", "5", json!(5));
    scalar("any", "a text", json!("a text"));
    scalar("any", "null", Value::Null);
    same(
        "<any><a>1</a><b>x</b></any>",
        json!({"any": {"a": 1, "b": "x"}}),
    );
    same(
        "<any><item>1</item><item>y</item></any>",
        json!({"any": [1, "y"]}),
    );
    same(
        "<shape><kind>circle</kind><radius>2</radius></shape>",
        json!({"shape": {"kind": "circle", "radius": 2}}),
    );
    same(
        "<shape>{\"kind\":\"square\",\"side\":1,\"label\":null}</shape>",
        json!({"shape": {"kind": "square", "side": 1}}),
    );
}

#[test]
fn raw_parameters_are_templates_to_the_letter() {
    same(
        "<body>\n a < b && <i>$KARYI{T}</i>\n</body>",
        json!({"body": "\n a < b && <i>$KARYI{T}</i>\n"}),
    );
    same("<body>a &lt; b</body>", json!({"body": "a < b"}));
    let call = read("<fetch url='u'><body>x $KARYI{T}</body></fetch>").unwrap();
    assert!(call.body.unwrap().has_secret());
}
