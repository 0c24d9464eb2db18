//! Random arguments in random spellings mean the same as JSON.

use karyi::syntax::Mode;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{raw, read, read_json};

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
