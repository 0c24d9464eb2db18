//! RELAX NG in its XML syntax.

use super::layout::{self, Markup};
use super::relax::{Define, Pattern};

const ROOT: &str = "grammar xmlns=\"http://relaxng.org/ns/structure/1.0\" \
    xmlns:a=\"http://relaxng.org/ns/compatibility/annotations/1.0\" \
    datatypeLibrary=\"http://www.w3.org/2001/XMLSchema-datatypes\"";

/// Prints patterns; the first one is the start.
pub(super) fn print(defines: &[Define]) -> String {
    let mut out = Markup::new(&[]);
    out.open(ROOT);
    if let Some(first) = defines.first() {
        out.line(&format!("<start><ref name=\"{}\"/></start>", first.name));
    }
    for define in defines {
        out.open(&format!("define name=\"{}\"", define.name));
        push_about(&define.about, &mut out);
        push(&define.pattern, &mut out);
        out.close();
    }
    out.finish()
}

fn push_about(about: &str, out: &mut Markup) {
    if !about.is_empty() {
        let about = layout::escape(about);
        out.line(&format!("<a:documentation>{about}</a:documentation>"));
    }
}

fn push(pattern: &Pattern, out: &mut Markup) {
    match pattern {
        Pattern::Text => out.line("<text/>"),
        Pattern::Empty => out.line("<empty/>"),
        Pattern::Data(name, facets) => push_data(name, facets, out),
        Pattern::Value(kind, word) => {
            let word = layout::escape(word);
            let line = format!("<value type=\"{kind}\" datatypeLibrary=\"\">{word}</value>");
            out.line(&line);
        }
        Pattern::Ref(name) => out.line(&format!("<ref name=\"{name}\"/>")),
        Pattern::Attribute(name, about, value) => push_named("attribute", name, about, value, out),
        Pattern::Element(name, about, body) => push_named("element", name, about, body, out),
        Pattern::OtherElement(names, body) => push_other(names, body, out),
        Pattern::Group(parts) => push_all("group", parts, out),
        Pattern::Interleave(parts) => push_all("interleave", parts, out),
        Pattern::Choice(parts) => push_all("choice", parts, out),
        Pattern::Optional(inner) => push_one("optional", inner, out),
        Pattern::ZeroOrMore(inner) => push_one("zeroOrMore", inner, out),
        Pattern::OneOrMore(inner) => push_one("oneOrMore", inner, out),
    }
}

fn push_data(name: &str, facets: &[(&str, String)], out: &mut Markup) {
    if facets.is_empty() {
        return out.line(&format!("<data type=\"{name}\"/>"));
    }
    out.open(&format!("data type=\"{name}\""));
    for (facet, value) in facets {
        let value = layout::escape(value);
        out.line(&format!("<param name=\"{facet}\">{value}</param>"));
    }
    out.close();
}

fn push_named(kind: &str, name: &str, about: &str, body: &Pattern, out: &mut Markup) {
    out.open(&format!("{kind} name=\"{name}\""));
    push_about(about, out);
    push(body, out);
    out.close();
}

fn push_other(names: &[String], body: &Pattern, out: &mut Markup) {
    let names = names.iter().map(|name| format!("<name>{name}</name>"));
    let names: String = names.collect();
    out.open("element");
    out.line(&format!("<anyName><except>{names}</except></anyName>"));
    push(body, out);
    out.close();
}

fn push_all(name: &str, parts: &[Pattern], out: &mut Markup) {
    out.open(name);
    for part in parts {
        push(part, out);
    }
    out.close();
}

fn push_one(name: &str, inner: &Pattern, out: &mut Markup) {
    push_all(name, std::slice::from_ref(inner), out);
}
