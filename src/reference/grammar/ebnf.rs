//! EBNF as the XML specification writes it, for people.
//!
//! `S`, `Char`, `CharRef`, `Comment` and `CDSect` are those of XML 1.0. Constraints beyond this kind of grammar are
//! in comments.

use super::language::{Attribute, Content, Element, Language, Parameter, Value};
use super::layout;

/// Rules of XML, independent of the tools.
const SHARED: &str = r#"
/* Text between the tags of a leaf: no comments and no processing instructions. */
text       ::= ((Char - [<&]) | reference | CDSect)*      /* but no ']]>' outside CDSect */
reference  ::= '&lt;' | '&gt;' | '&amp;' | '&quot;' | '&apos;' | CharRef
gap        ::= (S | Comment)*

/* Values of attributes, in double or single quotes. */
value      ::= (Char - [<&"]) | reference
number     ::= [+-]? ([0-9]+ ('.' [0-9]*)? | '.' [0-9]+) ([eE] [+-]? [0-9]+)?
integer    ::= [+-]? [0-9]+
boolean    ::= 'true' | 'false'
json       ::= text                                       /* one JSON value */

/* XML 1.0 */
Char       ::= #x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF]
S          ::= (#x20 | #x9 | #xD | #xA)+
Eq         ::= S? '=' S?
CharRef    ::= '&#' [0-9]+ ';' | '&#x' [0-9a-fA-F]+ ';'   /* of a Char */
Comment    ::= '<!--' ((Char - '-') | ('-' (Char - '-')))* '-->'
CDSect     ::= '<![CDATA[' (Char* - (Char* ']]>' Char*)) ']]>'
"#;

/// Prints the grammar.
pub(super) fn print(language: &Language) -> String {
    let lines = layout::header("  ", &["Notation: the EBNF of the XML 1.0 specification."]);
    let mut out = format!("/*\n{lines}*/\n\n");
    let names: Vec<String> = language.tools.iter().map(|tool| tool.label(".")).collect();
    out.push_str(
        "tools      ::= '<tools' (S tools.attribute)* S? '>' gap (call gap)* '</tools' S? '>'\n",
    );
    push_attributes("tools", &language.block, &mut out);
    out.push_str(&format!("call       ::= {}\n", names.join(" | ")));
    for tool in &language.tools {
        out.push('\n');
        push_element(tool, &mut out);
    }
    out.push_str(SHARED);
    out
}

fn push_element(element: &Element, out: &mut String) {
    let (name, label) = (&element.name, element.label("."));
    out.push_str(&about(&element.about));
    let attributes = match has_attributes(element) {
        true => format!(" (S {label}.attribute)*"),
        false => String::new(),
    };
    let open = format!("'<{name}'{attributes} S?");
    let close = format!("'</{name}' S? '>'");
    let body = match &element.content {
        Content::Empty => format!("{open} ('/>' | '>' gap {close})"),
        Content::Text { value, .. } => format!("{open} ('/>' | '>' {} {close})", leaf(value)),
        Content::Groups {
            groups,
            is_required: true,
        } => format!("{open} '>' gap ({})+ {close}", alternatives(groups)),
        Content::Groups { groups, .. } => {
            let groups = alternatives(groups);
            format!("{open} ('/>' | '>' gap ({groups})* {close})")
        }
        Content::Parameters(_) => {
            format!("{open} ('/>' | '>' gap ({label}.argument gap)* {close})")
        }
    };
    out.push_str(&format!("{label} ::= {body}\n"));
    push_attributes(&label, &all_attributes(element), out);
    push_children(element, out);
}

fn push_children(element: &Element, out: &mut String) {
    match &element.content {
        Content::Empty | Content::Text { .. } => {}
        Content::Groups { groups, .. } => {
            let children = groups.iter().flatten();
            children.for_each(|child| push_element(child, out));
        }
        Content::Parameters(list) => {
            let label = element.label(".");
            let children: Vec<String> = list.iter().map(argument).collect();
            let children = children.join("\n    | ");
            out.push_str(&format!("{label}.argument ::=\n      {children}\n"));
            let required = list.iter().filter(|p| p.is_required);
            let required: Vec<&str> = required.map(|p| p.name.as_str()).collect();
            out.push_str(&format!(
                "    /* an argument is an attribute or a child, never both, and only a list comes \
                    again; needed: {} */\n",
                words_or_none(&required)
            ));
        }
    }
}

fn has_attributes(element: &Element) -> bool {
    !all_attributes(element).is_empty()
}

/// Returns the attributes of an element, including those that may be children.
fn all_attributes(element: &Element) -> Vec<Attribute> {
    let mut attributes = element.attributes.clone();
    if let Content::Parameters(list) = &element.content {
        attributes.extend(list.iter().map(|parameter| Attribute {
            name: parameter.name.clone(),
            about: parameter.about.clone(),
            value: parameter.value.clone(),
            is_required: false,
        }));
    }
    attributes
}

fn push_attributes(label: &str, attributes: &[Attribute], out: &mut String) {
    if attributes.is_empty() {
        return;
    }
    let spelled = |a: &Attribute| {
        let value = attribute_value(&a.value);
        format!("'{}' Eq ('\"' {value} '\"' | \"'\" {value} \"'\")", a.name)
    };
    let list: Vec<String> = attributes.iter().map(spelled).collect();
    let list = list.join("\n    | ");
    out.push_str(&format!("{label}.attribute ::=\n      {list}\n"));
    let required = attributes.iter().filter(|a| a.is_required);
    let required: Vec<&str> = required.map(|a| a.name.as_str()).collect();
    out.push_str(&format!(
        "    /* each at most once; needed: {} */\n",
        words_or_none(&required)
    ));
}

fn words_or_none(words: &[&str]) -> String {
    match words {
        [] => "none".into(),
        words => words.join(", "),
    }
}

fn alternatives(groups: &[Vec<Element>]) -> String {
    let group = |group: &Vec<Element>| {
        let members = group.iter().map(|e| format!("{} gap", e.label(".")));
        members.collect::<Vec<_>>().join(" ")
    };
    groups.iter().map(group).collect::<Vec<_>>().join(" | ")
}

fn argument(parameter: &Parameter) -> String {
    let name = &parameter.name;
    let value = match &parameter.value {
        Value::List(item) => format!("{} | {}", leaf(item), children(&parameter.value)),
        other => leaf(other),
    };
    format!("'<{name}' S? ('/>' | '>' ({value}) '</{name}' S? '>')")
}

/// Returns the content of an element that represents a value.
fn leaf(value: &Value) -> String {
    match value {
        Value::List(_) | Value::Object { .. } => children(value),
        Value::Word(words) => format!("S? ({}) S?   /* any case */", quoted(words)),
        Value::Text => "text".into(),
        scalar => attribute_value(scalar),
    }
}

fn children(value: &Value) -> String {
    match value {
        Value::List(item) => {
            let item = leaf(item);
            format!("json | gap ('<item>' ({item}) '</item>' gap)*")
        }
        Value::Object { keys, other } => {
            let named = keys.iter().map(|key| {
                let value = leaf(&key.value);
                format!("'<{0}>' ({value}) '</{0}>' gap", key.name)
            });
            let other = other.iter().map(|other| {
                let value = leaf(other);
                format!(
                    "'<entry' S 'key' Eq '\"' value* '\"' '>' ({value}) '</entry>' gap \
                        | '<' Name '>' ({value}) '</' Name '>' gap"
                )
            });
            let members: Vec<String> = named.chain(other).collect();
            format!("json | gap ({})*", members.join(" | "))
        }
        scalar => leaf(scalar),
    }
}

fn attribute_value(value: &Value) -> String {
    match value {
        Value::Text => "value*".into(),
        Value::Choice(words) | Value::Word(words) => format!("({})", quoted(words)),
        Value::Boolean => "S? boolean S?".into(),
        Value::Integer(_) => "S? integer S?".into(),
        Value::Number(_) => "S? number S?".into(),
        Value::Json | Value::List(_) | Value::Object { .. } => "json".into(),
    }
}

fn quoted(words: &[String]) -> String {
    let words = words.iter().map(|word| format!("'{word}'"));
    words.collect::<Vec<_>>().join(" | ")
}

fn about(about: &str) -> String {
    match about {
        "" => String::new(),
        about => format!("/* {about} */\n"),
    }
}
