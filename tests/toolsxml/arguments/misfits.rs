//! What is said of an argument that does not fit.

use serde_json::{Value, json};

use super::{read, read_json, refused};

#[test]
fn numbers_that_are_none_are_refused() {
    let number = |name: &str, text: &str, expected: &str| {
        let message = format!("bad-attribute: `{name}` of fetch must be {expected}");
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
fn misfits_name_path_type_and_value() {
    let bad = |inside: &str, rest: &str| refused(inside, &format!("bad-attribute: {rest}"));
    bad(
        "<items><count>many</count></items>",
        "`items[0].count` of fetch must be a whole number, found \"many\"",
    );
    bad(
        "<items><name>a</name></items><items><name>b</name></items><items><count>1</count></items>",
        "`items[2].name` of fetch must be given: text, found nothing",
    );
    bad(
        "<items><item><nam>a</nam></item></items>",
        "`items[0].nam` of fetch must be left out, since there is no such key, found an element",
    );
    bad(
        "<items><name>a</name><inner><x>1</x><y>2</y></inner></items>",
        "`items[0].inner.y` of fetch must be left out, since there is no such key, found an element",
    );
    bad(
        "<items><name>a</name><name>b</name></items>",
        "`items[0].name` of fetch must be given once, found 2 elements",
    );
    bad(
        "<items><item><name>a</name><tags><item n='1'>x</item></tags></item></items>",
        "`items[0].tags[0].n` of fetch must be an element inside the value, not an attribute, found \"1\"",
    );
    bad(
        "<headers><entry key='a' b='1'>x</entry></headers>",
        "`headers.a.b` of fetch must be an element inside the value, not an attribute, found \"1\"",
    );
    bad(
        "<retries><x>1</x></retries>",
        "`retries` of fetch must be a whole number from 0 to 4294967295, found elements",
    );
    bad(
        "<rows><row>1</row></rows>",
        "`rows[0]` of fetch must be a list of <item> elements, found <row>",
    );
    bad(
        "<target>x</target>",
        "`target` of fetch must be a whole number or a list (child elements or JSON text) or an object (child elements or JSON text), found \"x\"",
    );
}

#[test]
fn misfits_in_json_text_name_the_same_path() {
    let json = |inside: &str, rest: &str| refused(inside, &format!("bad-json: {rest}"));
    json(
        "<headers>{\"Accept\": 5}</headers>",
        "`headers.Accept` of fetch must be text, found 5",
    );
    json(
        "<items>[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":[1,2,3]}]</items>",
        "`items[2].name` of fetch must be text, found a list of 3",
    );
    json(
        "<items>[{\"name\":\"a\",\"nam\":1}]</items>",
        "`items[0].nam` of fetch must be left out, since there is no such key, found 1",
    );
    json(
        "<items>[{\"count\":1}]</items>",
        "`items[0].name` of fetch must be given: text, found nothing",
    );
    json(
        "<headers>{\"a\":\"1\",\"a\":\"2\"}</headers>",
        "`headers` of fetch must be an object (child elements or JSON text), found \"{\\\"a\\\":\\\"1\\\",\\\"a\\\":\\\"2\\\"}\"",
    );
    json(
        "<tags>[1, 2</tags>",
        "`tags` of fetch must be a list (child elements or JSON text), found \"[1, 2\"",
    );
    json(
        "<tags>[1]</tags>",
        "`tags[0]` of fetch must be text, found 1",
    );
    json(
        "<pair>[1]</pair>",
        "`pair` of fetch must be a list of 2, found a list of 1",
    );
    json(
        "<shape>{\"kind\":\"square\",\"side\":\"1\"}</shape>",
        "`shape.side` of fetch must be a number, found \"1\"",
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
        "`url` of fetch must be given: text, found nothing",
    );
    refused(json!({"url": 1}), "`url` of fetch must be text, found 1");
    refused(
        json!([1]),
        "the arguments of fetch must be an object, found a list of 1",
    );
    refused(
        json!({"url": "u", "surprise": 1}),
        "`surprise` of fetch must be left out, since there is no such key, found 1",
    );
    refused(
        json!({"url": null}),
        "`url` of fetch must be text, found null",
    );
    assert_eq!(
        read_json(json!({"url": "u", "retries": null})),
        read("<fetch url='u'/>")
    );
}
