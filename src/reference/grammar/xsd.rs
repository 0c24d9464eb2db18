//! W3C XML Schema 1.0.
//!
//! It expresses less than RELAX NG: an argument that may be an attribute or a child is optional as both, and a key
//! over the two ensures that it is given once. That works for arguments with one text; lists and objects are not
//! counted.

use super::language::{Attribute, Content, Element, Key, Language, Parameter, Value};
use super::layout::{self, Markup};
use super::relax::{facets, number_facets};

/// Prints the schema.
pub(super) fn print(language: &Language) -> String {
    let mut out = Markup::new(&[]);
    out.open("xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\"");
    push_block(language, &mut out);
    push_simple("blank", "string", &[("pattern", r"\s*".into())], &mut out);
    for tool in &language.tools {
        push_types(tool, &mut out);
    }
    out.finish()
}

fn push_block(language: &Language, out: &mut Markup) {
    out.open("xs:element name=\"tools\"");
    out.open("xs:complexType");
    out.open("xs:choice minOccurs=\"0\" maxOccurs=\"unbounded\"");
    language.tools.iter().for_each(|tool| push_use(tool, out));
    out.close();
    for attribute in language.block.iter().filter(|a| !a.name.contains(':')) {
        push_attribute(attribute, out);
    }
    let xml = "http://www.w3.org/XML/1998/namespace";
    let any = format!("<xs:anyAttribute namespace=\"{xml}\" processContents=\"skip\"/>");
    out.line(&any);
    out.close();
    push_constraint("unique", "ids", "*", "@id", out);
    out.close();
}

/// Declares an element in its context, with the type named by its path.
fn push_use(element: &Element, out: &mut Markup) {
    let (name, label) = (&element.name, element.label("."));
    let keys = match &element.content {
        Content::Parameters(list) => list.iter().filter(|p| p.value.is_scalar()).collect(),
        Content::Empty | Content::Text { .. } | Content::Groups { .. } => Vec::new(),
    };
    if keys.is_empty() {
        return out.line(&format!("<xs:element name=\"{name}\" type=\"{label}\"/>"));
    }
    out.open(&format!("xs:element name=\"{name}\" type=\"{label}\""));
    for key in keys {
        let kind = match key.is_required {
            true => "key",
            false => "unique",
        };
        let field = format!("@{0}|{0}", key.name);
        push_constraint(kind, &format!("{label}.{}", key.name), ".", &field, out);
    }
    out.close();
}

fn push_constraint(kind: &str, name: &str, selector: &str, field: &str, out: &mut Markup) {
    out.open(&format!("xs:{kind} name=\"{name}\""));
    out.line(&format!("<xs:selector xpath=\"{selector}\"/>"));
    out.line(&format!("<xs:field xpath=\"{field}\"/>"));
    out.close();
}

/// Defines the type of an element and those of the elements in it.
fn push_types(element: &Element, out: &mut Markup) {
    let label = element.label(".");
    let base = match &element.content {
        Content::Empty => Some("blank".to_owned()),
        Content::Text { value, .. } => Some(push_text_type(&label, value, out)),
        Content::Groups { .. } | Content::Parameters(_) => None,
    };
    out.open(&format!("xs:complexType name=\"{label}\""));
    push_about(&element.about, out);
    if let Some(base) = base {
        out.open("xs:simpleContent");
        out.open(&format!("xs:extension base=\"{base}\""));
    }
    push_content(&element.content, out);
    for attribute in &element.attributes {
        push_attribute(attribute, out);
    }
    if let Content::Parameters(list) = &element.content {
        list.iter().for_each(|p| push_parameter_attribute(p, out));
    }
    if !matches!(
        element.content,
        Content::Groups { .. } | Content::Parameters(_)
    ) {
        out.close();
        out.close();
    }
    out.close();
    if let Content::Groups { groups, .. } = &element.content {
        let children = groups.iter().flatten();
        children.for_each(|child| push_types(child, out));
    }
}

/// Returns the type of an element's text, defining it when it has no name yet.
fn push_text_type(label: &str, value: &Value, out: &mut Markup) -> String {
    let (base, facets) = simple(value);
    if facets.is_empty() {
        return format!("xs:{base}");
    }
    let name = format!("{label}.text");
    push_simple(&name, base, &facets, out);
    name
}

fn push_content(content: &Content, out: &mut Markup) {
    match content {
        Content::Empty | Content::Text { .. } => {}
        Content::Groups {
            groups,
            is_required,
        } => {
            let min = u8::from(*is_required);
            out.open(&format!(
                "xs:choice minOccurs=\"{min}\" maxOccurs=\"unbounded\""
            ));
            for group in groups {
                push_group(group, out);
            }
            out.close();
        }
        Content::Parameters(list) => push_parameters(list, out),
    }
}

fn push_group(group: &[Element], out: &mut Markup) {
    if group.len() > 1 {
        out.open("xs:sequence");
    }
    group.iter().for_each(|element| push_use(element, out));
    if group.len() > 1 {
        out.close();
    }
}

fn push_parameters(list: &[Parameter], out: &mut Markup) {
    let is_repeated = |p: &Parameter| matches!(p.value, Value::List(_));
    if list.iter().any(is_repeated) {
        out.open("xs:choice minOccurs=\"0\" maxOccurs=\"unbounded\"");
        for parameter in list {
            push_child(&parameter.name, &parameter.about, &parameter.value, "", out);
        }
    } else {
        out.open("xs:all");
        for parameter in list {
            let once = " minOccurs=\"0\"";
            push_child(
                &parameter.name,
                &parameter.about,
                &parameter.value,
                once,
                out,
            );
        }
    }
    out.close();
}

fn push_parameter_attribute(parameter: &Parameter, out: &mut Markup) {
    push_attribute(
        &Attribute {
            name: parameter.name.clone(),
            about: parameter.about.clone(),
            value: parameter.value.clone(),
            is_required: false,
        },
        out,
    );
}

/// Declares an element that represents a value.
fn push_child(name: &str, about: &str, value: &Value, occurs: &str, out: &mut Markup) {
    if value.is_scalar() {
        let tag = format!("xs:element name=\"{name}\"{occurs}");
        return push_text(&tag, about, value, out);
    }
    out.open(&format!("xs:element name=\"{name}\"{occurs}"));
    push_about(about, out);
    out.open("xs:complexType mixed=\"true\"");
    out.open("xs:choice minOccurs=\"0\" maxOccurs=\"unbounded\"");
    push_members(value, out);
    out.close();
    out.close();
    out.close();
}

fn push_members(value: &Value, out: &mut Markup) {
    match value {
        Value::List(item) => {
            push_child("item", "", item, "", out);
            if let Value::Object { keys, .. } = item.as_ref() {
                push_keys(keys, out);
            }
        }
        Value::Object { other: Some(_), .. } => out.line("<xs:any processContents=\"skip\"/>"),
        Value::Object { keys, .. } => push_keys(keys, out),
        _ => {}
    }
}

fn push_keys(keys: &[Key], out: &mut Markup) {
    for key in keys.iter().filter(|key| key.name != "item") {
        push_child(&key.name, "", &key.value, "", out);
    }
}

fn push_attribute(attribute: &Attribute, out: &mut Markup) {
    let required = match attribute.is_required {
        true => " use=\"required\"",
        false => "",
    };
    let tag = format!("xs:attribute name=\"{}\"{required}", attribute.name);
    push_text(&tag, &attribute.about, &attribute.value, out);
}

/// Declares an attribute or an element with one text as its value.
fn push_text(tag: &str, about: &str, value: &Value, out: &mut Markup) {
    let (base, facets) = simple(value);
    let plain = match facets.is_empty() {
        true => format!(" type=\"xs:{base}\""),
        false => String::new(),
    };
    let tag = format!("{tag}{plain}");
    if about.is_empty() && facets.is_empty() {
        return out.line(&format!("<{tag}/>"));
    }
    out.open(&tag);
    push_about(about, out);
    if !facets.is_empty() {
        out.open("xs:simpleType");
        push_facets(base, &facets, out);
        out.close();
    }
    out.close();
}

fn push_about(about: &str, out: &mut Markup) {
    if !about.is_empty() {
        let about = layout::escape(about);
        out.line(&format!(
            "<xs:annotation><xs:documentation>{about}</xs:documentation></xs:annotation>"
        ));
    }
}

fn push_simple(name: &str, base: &str, facets: &[(&str, String)], out: &mut Markup) {
    out.open(&format!("xs:simpleType name=\"{name}\""));
    push_facets(base, facets, out);
    out.close();
}

fn push_facets(base: &str, facets: &[(&str, String)], out: &mut Markup) {
    out.open(&format!("xs:restriction base=\"xs:{base}\""));
    for (facet, value) in facets {
        let value = layout::escape(value);
        out.line(&format!("<xs:{facet} value=\"{value}\"/>"));
    }
    out.close();
}

/// Returns the base type and the facets of a text that represents a value.
fn simple(value: &Value) -> (&'static str, Vec<(&'static str, String)>) {
    let words = |words: &[String]| {
        let facets = words.iter().map(|word| ("enumeration", word.clone()));
        facets.collect()
    };
    match value {
        Value::Text | Value::Json | Value::List(_) | Value::Object { .. } => ("string", Vec::new()),
        Value::Choice(list) => ("string", words(list)),
        Value::Word(list) => ("token", words(list)),
        Value::Boolean => ("token", words(&["true".into(), "false".into()])),
        Value::Integer(range) => ("long", facets(*range)),
        Value::Number(range) => ("double", number_facets(*range)),
    }
}
