//! Arguments of generic tools: what each spelling means, and what is said of one that does not fit.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use karyi::call::RawCall;
use karyi::outcome::Status;
use karyi::secret::Template;
use karyi::syntax::Mode;
use karyi::syntax::grammar::Grammar;
use karyi::tool::decode::{self, Texts};
use karyi::tool::schema::ArgumentSchema;
use karyi::tool::spec::{Example, Family, Form, Spec};
use proptest::prelude::*;
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
    let arguments = decode::arguments(&call, &SPEC, &SCHEMA, Texts::Normalised);
    let value = arguments.map_err(|e| format!("{}: {}", e.code.as_str(), e.message))?;
    serde_json::from_value(value).map_err(|error| format!("type: {error}"))
}

/// Reads a call for the time it takes; tells whether it is good.
pub(super) fn is_read(xml: &str) -> bool {
    read(xml).is_ok()
}

fn read_json(value: Value) -> Result<Fetch, String> {
    let value = decode::json_arguments(value, &SCHEMA).map_err(|misfit| misfit.message("fetch"))?;
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
fn numbers_that_are_none_are_refused() {
    let number = |name: &str, text: &str, expected: &str| {
        let message = format!("bad-attribute: `{name}` of <fetch> must be {expected}");
        let found = read(&format!("<fetch url='u' {name}='{text}'/>")).unwrap_err();
        assert!(found.starts_with(&message), "{found}");
    };
    let whole = "a whole number from 0 to 4294967295, found";
    for text in [
        "", "x", "1.5", "1e-3", "0x10", "1_000", "1,000", "NaN", "inf", "--1", "1 2", "1e999",
        "null", "٣",
    ] {
        number("retries", text, &format!("{whole} {text:?}"));
    }
    number("retries", "-1", &format!("{whole} \"-1\""));
    number("retries", "4294967296", &format!("{whole} \"4294967296\""));
    number(
        "small",
        "128",
        "a whole number from -128 to 127, found \"128\"",
    );
    number(
        "big",
        "18446744073709551616",
        "a whole number, 0 or more, found \"18446744073709551616\"",
    );
    number("signed", "1e300", "a whole number, found \"1e300\"");
    number("signed", "+-5", "a whole number, found \"+-5\"");
    for text in [
        "NaN", "inf", "-inf", "infinity", "1e999", "0x1p3", "1.2.3", ".", "-", "1e",
    ] {
        number("delay", text, &format!("a number, found {text:?}"));
    }
    for text in ["TRUE", "True", "yes", "1", ""] {
        number("follow", text, &format!("true or false, found {text:?}"));
    }
    number("method", "put", "one of \"get\", \"post\", found \"put\"");
    number("method", "GET", "one of \"get\", \"post\", found \"GET\"");
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

#[test]
fn misfits_name_path_type_and_value() {
    let bad = |inside: &str, rest: &str| refused(inside, &format!("bad-attribute: {rest}"));
    bad(
        "<items><count>many</count></items>",
        "`items[0].count` of <fetch> must be a whole number, found \"many\"",
    );
    bad(
        "<items><name>a</name></items><items><name>b</name></items><items><count>1</count></items>",
        "`items[2].name` of <fetch> must be given: text, found nothing",
    );
    bad(
        "<items><item><nam>a</nam></item></items>",
        "`items[0].nam` of <fetch> must be left out, since there is no such key, found an element",
    );
    bad(
        "<items><name>a</name><inner><x>1</x><y>2</y></inner></items>",
        "`items[0].inner.y` of <fetch> must be left out, since there is no such key, found an element",
    );
    bad(
        "<items><name>a</name><name>b</name></items>",
        "`items[0].name` of <fetch> must be given once, found 2 elements",
    );
    bad(
        "<items><item><name>a</name><tags><item n='1'>x</item></tags></item></items>",
        "`items[0].tags[0].n` of <fetch> must be an element inside the value, not an attribute, found \"1\"",
    );
    bad(
        "<headers><entry key='a' b='1'>x</entry></headers>",
        "`headers.a.b` of <fetch> must be an element inside the value, not an attribute, found \"1\"",
    );
    bad(
        "<retries><x>1</x></retries>",
        "`retries` of <fetch> must be a whole number from 0 to 4294967295, found elements",
    );
    bad(
        "<rows><row>1</row></rows>",
        "`rows[0]` of <fetch> must be a list of <item> elements, found <row>",
    );
    bad(
        "<target>x</target>",
        "`target` of <fetch> must be a whole number or a list (child elements or JSON text) or an object (child elements or JSON text), found \"x\"",
    );
}

#[test]
fn misfits_in_json_text_name_the_same_path() {
    let json = |inside: &str, rest: &str| refused(inside, &format!("bad-json: {rest}"));
    json(
        "<headers>{\"Accept\": 5}</headers>",
        "`headers.Accept` of <fetch> must be text, found 5",
    );
    json(
        "<items>[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":[1,2,3]}]</items>",
        "`items[2].name` of <fetch> must be text, found a list of 3",
    );
    json(
        "<items>[{\"name\":\"a\",\"nam\":1}]</items>",
        "`items[0].nam` of <fetch> must be left out, since there is no such key, found 1",
    );
    json(
        "<items>[{\"count\":1}]</items>",
        "`items[0].name` of <fetch> must be given: text, found nothing",
    );
    json(
        "<headers>{\"a\":\"1\",\"a\":\"2\"}</headers>",
        "`headers` of <fetch> must be an object (child elements or JSON text), found \"{\\\"a\\\":\\\"1\\\",\\\"a\\\":\\\"2\\\"}\"",
    );
    json(
        "<tags>[1, 2</tags>",
        "`tags` of <fetch> must be a list (child elements or JSON text), found \"[1, 2\"",
    );
    json(
        "<tags>[1]</tags>",
        "`tags[0]` of <fetch> must be text, found 1",
    );
    json(
        "<pair>[1]</pair>",
        "`pair` of <fetch> must be a list of 2, found a list of 1",
    );
    json(
        "<shape>{\"kind\":\"square\",\"side\":\"1\"}</shape>",
        "`shape.side` of <fetch> must be a number, found \"1\"",
    );
    let long = "x".repeat(1000);
    let found = read(&format!(
        "<fetch url='u'><items><name>a</name><count>{long}</count></items></fetch>"
    ));
    assert!(found.unwrap_err().len() < 200);
}

#[test]
fn json_arguments_name_the_same_path() {
    let refused = |value: Value, message: &str| {
        assert_eq!(read_json(value).err().as_deref(), Some(message));
    };
    refused(
        json!({}),
        "`url` of <fetch> must be given: text, found nothing",
    );
    refused(json!({"url": 1}), "`url` of <fetch> must be text, found 1");
    refused(
        json!([1]),
        "the arguments of <fetch> must be an object (child elements or JSON text), found a list of 1",
    );
    refused(
        json!({"url": "u", "surprise": 1}),
        "`surprise` of <fetch> must be left out, since there is no such key, found 1",
    );
    refused(
        json!({"url": null}),
        "`url` of <fetch> must be text, found null",
    );
    assert_eq!(
        read_json(json!({"url": "u", "retries": null})),
        read("<fetch url='u'/>")
    );
}

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[ -~é中😀\n\t\r]{0,8}",
        "\\[x\\]|\\{|null|5|]]>|&amp;|true| "
    ]
    .prop_map(Value::from)
}

fn object(entries: Vec<(&'static str, BoxedStrategy<Value>)>) -> impl Strategy<Value = Value> {
    let entries = entries.into_iter().map(|(name, value)| {
        let entry = (any::<bool>(), value);
        entry.prop_map(move |(is_given, value)| (name, value, is_given))
    });
    entries.collect::<Vec<_>>().prop_map(|entries| {
        let given = entries.into_iter().filter(|(_, _, is_given)| *is_given);
        given
            .map(|(name, value, _)| (name.to_owned(), value))
            .collect()
    })
}

fn list(of: impl Strategy<Value = Value>, most: usize) -> impl Strategy<Value = Value> {
    proptest::collection::vec(of, 0..=most).prop_map(Value::from)
}

fn item() -> impl Strategy<Value = Value> {
    let entries = vec![
        ("count", any::<i64>().prop_map(Value::from).boxed()),
        ("done", any::<bool>().prop_map(Value::from).boxed()),
        ("tags", list(text(), 3).boxed()),
        ("direction", Just(json!("up")).boxed()),
        (
            "inner",
            (-99..99_i32)
                .prop_map(|x| json!({"x": f64::from(x) / 4.0}))
                .boxed(),
        ),
    ];
    (text(), object(entries)).prop_map(|(name, mut item)| {
        item["name"] = name;
        item
    })
}

/// Arguments of the tool, as JSON.
fn arguments() -> impl Strategy<Value = Value> {
    let headers = proptest::collection::btree_map(
        "[A-Za-z_][A-Za-z-]{0,5}|[ -~]{0,4}|item|entry|key",
        text(),
        0..4,
    );
    let headers = headers.prop_map(|map| map.into_iter().collect::<Value>());
    let union = prop_oneof![text(), any::<i64>().prop_map(Value::from)];
    let target = prop_oneof![
        any::<i64>().prop_map(Value::from),
        list(text(), 2),
        (0..9).prop_map(|x| json!({ "x": x })),
    ];
    object(vec![
        ("body", text().boxed()),
        ("method", Just(json!("post")).boxed()),
        ("retries", any::<u32>().prop_map(Value::from).boxed()),
        ("big", any::<u64>().prop_map(Value::from).boxed()),
        (
            "delay",
            any::<i32>().prop_map(|n| json!(f64::from(n) / 8.0)).boxed(),
        ),
        ("follow", any::<bool>().prop_map(Value::from).boxed()),
        ("headers", headers.boxed()),
        ("items", list(item(), 3).boxed()),
        ("tags", list(text(), 3).boxed()),
        (
            "rows",
            list(list(any::<i64>().prop_map(Value::from), 3), 3).boxed(),
        ),
        ("target", target.boxed()),
        ("text_or_number", union.boxed()),
        (
            "shape",
            (0..9)
                .prop_map(|r| json!({"kind": "circle", "radius": r}))
                .boxed(),
        ),
    ])
}

fn escaped(text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    text.replace('\r', "&#13;")
}

fn is_xml_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Spells values as elements, each in a way that the next random number chooses.
struct Speller<'r> {
    choices: std::iter::Cycle<std::slice::Iter<'r, u8>>,
}

impl Speller<'_> {
    fn choose(&mut self, among: u8) -> u8 {
        self.choices.next().unwrap() % among
    }

    /// Spells what stands inside one element; text is JSON where it could be read as something else.
    fn inside(&mut self, value: &Value, is_union: bool) -> String {
        match value {
            Value::String(text) if !is_union => escaped(text),
            Value::Array(items) if self.choose(2) == 0 => {
                let items = items
                    .iter()
                    .map(|item| format!("<item>{}</item>", self.inside(item, false)));
                items.collect()
            }
            Value::Object(map) if self.choose(2) == 0 => {
                let entries = map.iter().map(|(key, value)| self.entry(key, value));
                entries.collect()
            }
            other => escaped(&other.to_string()),
        }
    }

    fn entry(&mut self, key: &str, value: &Value) -> String {
        let (open, close) = match is_xml_name(key) && self.choose(3) > 0 {
            true => (key.to_owned(), key.to_owned()),
            false => (
                format!("entry key=\"{}\"", escaped(key).replace('"', "&quot;")),
                "entry".to_owned(),
            ),
        };
        match value {
            Value::Array(items) if items.len() > 1 && self.choose(2) == 0 => {
                let items = items
                    .iter()
                    .map(|item| format!("<{open}>{}</{close}>", self.inside(item, false)));
                items.collect()
            }
            other => format!("<{open}>{}</{close}>", self.inside(other, false)),
        }
    }

    fn call(&mut self, arguments: &Value) -> String {
        let children = arguments
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| match value {
                Value::Array(items) if items.is_empty() && name == "target" => {
                    "<target>[]</target>".to_owned()
                }
                _ if name == "text_or_number" => {
                    format!("<{name}>{}</{name}>", self.inside(value, true))
                }
                Value::Array(items)
                    if items.len() > 1 && name != "target" && self.choose(3) == 0 =>
                {
                    let items = items
                        .iter()
                        .map(|item| format!("<{name}>{}</{name}>", self.inside(item, false)));
                    items.collect()
                }
                other => format!("<{name}>{}</{name}>", self.inside(other, false)),
            });
        format!("<fetch url='u'>{}</fetch>", children.collect::<String>())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn xml_and_json_spellings_decode_equal(arguments in arguments(), choices in proptest::collection::vec(any::<u8>(), 1..60)) {
        let xml = Speller { choices: choices.iter().cycle() }.call(&arguments);
        let mut with_url = arguments.clone();
        with_url["url"] = json!("u");
        let wanted = read_json(with_url);
        prop_assert!(wanted.is_ok(), "{:?}", wanted);
        prop_assert_eq!(read(&xml), wanted, "{}", xml);
        prop_assert!(raw(Mode::Strict, &xml).is_ok(), "{}", xml);
    }
}
