//! Tools whose arguments are attributes or child elements.

use std::sync::Arc;

use karyi::call::{RawBody, RawElement};
use karyi::syntax::Mode;

use super::{calls, error, grammar, parse_with};

/// Messages with generic tools, for the tests of properties.
pub(super) const MESSAGES: [&str; 5] = [
    "<tools><write_file path=\"a\"><content>if (a < b && c) </content></write_file></tools>",
    "<tools><write_file><path>a &amp; b</path><content><![CDATA[x]]></content></write_file></tools>",
    "<tools><todo><items>one</items><items><entry key=\"k\"><v>1</v></entry></items></todo></tools>",
    "<tools><todo items='[1]'><!-- c --><meta><a> <b/> </a></meta><note>n</note></todo></tools>",
    "<tools>\n<todo>\n<items>a < b & c</items>\n<note>x</note></todo></tools>",
];

/// Writes an element as `name(attribute=value){children}` or `name"text"`.
fn shape(element: &RawElement) -> String {
    let attributes = element
        .attributes
        .iter()
        .map(|a| format!("{}={}", a.name, a.value));
    let attributes: Vec<String> = attributes.collect();
    let attributes = match attributes.is_empty() {
        true => String::new(),
        false => format!("({})", attributes.join(",")),
    };
    let body = match &element.body {
        RawBody::Empty => String::new(),
        RawBody::Text(text) => format!("{:?}", text.text),
        RawBody::Elements(elements) => {
            let elements: Vec<String> = elements.iter().map(shape).collect();
            format!("{{{}}}", elements.join(" "))
        }
    };
    format!("{}{attributes}{body}", element.name)
}

fn check(mode: Mode, inside: &str, expected: &str) {
    let message = format!("<tools>{inside}</tools>");
    for chunk in [1, 3, usize::MAX] {
        let grammar = Arc::new(grammar::with_generic_tools());
        let events = parse_with(&grammar, mode, message.as_bytes(), chunk);
        let found = match error(&events) {
            Some(error) => format!("{} at {}", error.code.as_str(), error.position.offset - 7),
            None => calls(&events)
                .iter()
                .map(|call| shape(&call.element))
                .collect(),
        };
        assert_eq!(found, expected, "{mode:?} {inside} in chunks of {chunk}");
    }
}

fn check_both(inside: &str, expected: &str) {
    check(Mode::Strict, inside, expected);
    check(Mode::Repair, inside, expected);
}

#[test]
fn arguments_are_attributes_or_children() {
    check_both("<todo/>", "todo");
    check_both("<todo></todo>", "todo");
    check_both("<todo items='[1]' meta='x'/>", "todo(items=[1],meta=x)");
    check_both("<todo><meta>x</meta></todo>", "todo{meta\"x\"}");
    check_both("<todo><meta/></todo>", "todo{meta\"\"}");
    check_both(
        "<todo><meta> a &amp; <![CDATA[<b>]]></meta></todo>",
        "todo{meta\" a & <b>\"}",
    );
    check_both(
        "<todo meta='m'><items>1</items><items>2</items></todo>",
        "todo(meta=m){items\"1\" items\"2\"}",
    );
}

#[test]
fn values_hold_text_or_elements() {
    check_both(
        "<todo><meta><a>1</a><b/></meta></todo>",
        "todo{meta{a\"1\" b\"\"}}",
    );
    check_both(
        "<todo><meta> <e key='k k'>1</e>\n</meta></todo>",
        "todo{meta{e(key=k k)\"1\"}}",
    );
    check_both(
        "<todo><meta><!-- c --><a/><!-- d --></meta></todo>",
        "todo{meta{a\"\"}}",
    );
    check_both("<todo><meta> </meta></todo>", "todo{meta\" \"}");
    check_both("<todo><meta>x<a/></meta></todo>", "unexpected-text at 12");
    check_both("<todo><meta><a/>x</meta></todo>", "unexpected-text at 16");
    check_both(
        "<todo><meta><![CDATA[x]]><a/></meta></todo>",
        "unexpected-markup at 12",
    );
    check_both(
        "<todo><meta><a/><![CDATA[x]]></meta></todo>",
        "unexpected-markup at 16",
    );
    check_both("<todo><meta><a></b></meta></todo>", "mismatched-end at 15");
    check_both(
        "<todo><meta>x<?p?></meta></todo>",
        "processing-instruction at 13",
    );
    check_both(
        "<todo><meta><a b='1' b='2'/></meta></todo>",
        "duplicate-attribute at 12",
    );
    check_both("<todo><meta>a", "mismatched-end at 13");
}

#[test]
fn a_comment_never_vanishes_from_text() {
    check(
        Mode::Strict,
        "<todo><meta>x<!-- c --></meta></todo>",
        "markup-in-text at 13",
    );
    check(
        Mode::Repair,
        "<todo><meta>x<!-- c --></meta></todo>",
        "unexpected-markup at 13",
    );
    check(
        Mode::Strict,
        "<todo><meta> <!-- c --> </meta></todo>",
        "markup-in-text at 13",
    );
    check(
        Mode::Repair,
        "<todo><meta> <!-- c --> </meta></todo>",
        "unexpected-markup at 13",
    );
    check_both(
        "<todo><meta> <!-- c --> x</meta></todo>",
        "unexpected-text at 24",
    );
}

#[test]
fn raw_parameters_follow_the_raw_rules() {
    let repaired = |inside, expected| check(Mode::Repair, inside, expected);
    repaired(
        "<write_file path='p'><content>a < b && <i>c</i></content></write_file>",
        "write_file(path=p){content\"a < b && <i>c</i>\"}",
    );
    repaired(
        "<write_file><content></content> more</content><path>p</path></write_file>",
        "write_file{content\"</content> more\" path\"p\"}",
    );
    repaired(
        "<write_file><content><content>x</content></content><mode>m</mode><path>p</path></write_file>",
        "write_file{content\"<content>x</content>\" mode\"m\" path\"p\"}",
    );
    repaired(
        "<write_file path='p'><content>x</content></content></write_file>",
        "write_file(path=p){content\"x</content>\"}",
    );
    repaired(
        "<write_file path='p'><content>x</content>",
        "unclosed-element at 21",
    );
}

#[test]
fn arguments_that_are_no_leaf_are_mended_too() {
    check(
        Mode::Repair,
        "<todo><meta>a & b < 1</meta></todo>",
        "todo{meta\"a & b < 1\"}",
    );
    check(
        Mode::Strict,
        "<todo><meta>a & b</meta></todo>",
        "bad-reference at 14",
    );
    check(
        Mode::Strict,
        "<todo><meta>a < b</meta></todo>",
        "markup-in-text at 14",
    );
    check(
        Mode::Repair,
        "<Todo><META>a</Meta></TODO>",
        "todo{meta\"a\"}",
    );
    check(
        Mode::Repair,
        "<todo><meta><Aa>1</AA></meta></todo>",
        "todo{meta{Aa\"1\"}}",
    );
}

#[test]
fn nothing_is_lost_or_given_twice() {
    check_both(
        "<write_file><path>p</path></write_file>",
        "missing-attribute at 0",
    );
    check_both("<write_file path='p'/>", "missing-attribute at 0");
    check_both(
        "<todo meta='1'><meta>2</meta></todo>",
        "duplicate-attribute at 15",
    );
    check_both(
        "<todo><meta>1</meta><meta>2</meta></todo>",
        "duplicate-attribute at 20",
    );
    check_both("<todo><mata>1</mata></todo>", "unexpected-element at 6");
    check_both("<todo mata='1'/>", "unknown-attribute at 0");
    check_both(
        "<todo><meta x='1'>1</meta></todo>",
        "unknown-attribute at 6",
    );
    check_both("<todo>x</todo>", "unexpected-text at 6");
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth: usize| {
        format!(
            "<todo><meta>{}{}</meta></todo>",
            "<a>".repeat(depth),
            "</a>".repeat(depth)
        )
    };
    let grammar = Arc::new(grammar::with_generic_tools());
    let parse = |depth| {
        let message = format!("<tools>{}</tools>", nested(depth));
        let events = parse_with(&grammar, Mode::Strict, message.as_bytes(), usize::MAX);
        error(&events).map(|error| error.code.as_str())
    };
    assert_eq!(parse(60), None);
    assert_eq!(parse(1000), Some("too-large"));
}
