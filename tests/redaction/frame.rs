//! A value that is a word of a report leaves the report readable.

use std::collections::BTreeSet;

use quick_xml::events::Event;

use crate::harness::Karyi;

const SCRIPT: &str = "<tools><command>echo output result status</command><read><file src=\"a.txt\"/></read>\
    <edit><file src=\"a.txt\"><find>one</find><replace>two</replace></file></edit>\
    <read><file src=\"none\"/></read><command timeout=\"0\">sleep 1</command></tools>";

/// Returns the names of elements and attributes of a report, in order.
fn names(xml: &str) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(xml);
    let mut names = Vec::new();
    loop {
        match reader
            .read_event()
            .unwrap_or_else(|error| panic!("{error}: {xml}"))
        {
            Event::Eof => return names,
            Event::Start(start) | Event::Empty(start) => {
                names.push(start.name().as_ref().to_owned());
                for attribute in start.attributes() {
                    let attribute = attribute.unwrap_or_else(|error| panic!("{error}: {xml}"));
                    names.push(attribute.key.as_ref().to_owned());
                }
            }
            _ => {}
        }
    }
}

fn report(format: &str, words: &[String]) -> String {
    let mut karyi = Karyi::with_args(&[
        "run",
        "--format",
        format,
        "--no-interactive",
        "--vault",
        "env",
    ])
    .args(&["--allow-short", "-"])
    .file("a.txt", "one\n")
    .stdin(SCRIPT);
    for (at, word) in words.iter().enumerate() {
        karyi = karyi.env(&format!("KARYI_VAR_W{at}"), word);
    }
    karyi.run().stdout()
}

#[test]
fn no_value_is_a_part_of_the_frame() {
    let plain = names(&report("xml", &[]));
    let words: BTreeSet<String> = plain
        .iter()
        .filter(|name| name.len() >= 4)
        .cloned()
        .collect();
    assert!(words.len() > 10, "{words:?}");
    let words: Vec<String> = words.into_iter().collect();
    let masked = report("xml", &words);
    assert_eq!(names(&masked), plain);
    assert!(masked.contains("$KARYI{W"), "{masked}");
    let keys = |text: &str| {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let mut keys = Vec::new();
        collect(&value, &mut keys);
        keys
    };
    assert_eq!(keys(&report("json", &words)), keys(&report("json", &[])));
}

fn collect(value: &serde_json::Value, keys: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                keys.push(key.clone());
                collect(value, keys);
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, keys)),
        _ => {}
    }
}
