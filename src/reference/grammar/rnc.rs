//! RELAX NG in its compact syntax.

use super::layout;
use super::relax::{Define, Pattern};

/// Prints patterns; the first one is the start.
pub(super) fn print(defines: &[Define]) -> String {
    let mut out = layout::header("#", &[]);
    out.push_str("\ndatatypes xsd = \"http://www.w3.org/2001/XMLSchema-datatypes\"\n");
    if let Some(first) = defines.first() {
        out.push_str(&format!("\nstart = {}\n", first.name));
    }
    for define in defines {
        out.push('\n');
        push_about(&define.about, 0, &mut out);
        out.push_str(&format!("{} =\n  ", define.name));
        push(&define.pattern, 1, &mut out);
        out.push('\n');
    }
    out
}

fn push_about(about: &str, depth: usize, out: &mut String) {
    if !about.is_empty() {
        out.push_str(&format!("## {about}\n{}", pad(depth)));
    }
}

fn push(pattern: &Pattern, depth: usize, out: &mut String) {
    match pattern {
        Pattern::Text => out.push_str("text"),
        Pattern::Empty => out.push_str("empty"),
        Pattern::Data(name, facets) => push_data(name, facets, out),
        Pattern::Value("token", word) => out.push_str(&literal(word)),
        Pattern::Value(kind, word) => out.push_str(&format!("{kind} {}", literal(word))),
        Pattern::Ref(name) => out.push_str(name),
        Pattern::Attribute(name, about, value) => {
            push_about(about, depth, out);
            out.push_str(&format!("attribute {name} {{ "));
            push(value, depth, out);
            out.push_str(" }");
        }
        Pattern::Element(name, about, body) => {
            push_about(about, depth, out);
            push_element(&format!("element {name}"), body, depth, out);
        }
        Pattern::OtherElement(names, body) => {
            let names = names.join(" | ");
            push_element(&format!("element * - ({names})"), body, depth, out);
        }
        Pattern::Group(parts) => push_joined(parts, ",", depth, out),
        Pattern::Interleave(parts) => push_joined(parts, " &", depth, out),
        Pattern::Choice(parts) => push_parts(parts, " | ", depth, out),
        Pattern::Optional(inner) => push_repeated(inner, '?', depth, out),
        Pattern::ZeroOrMore(inner) => push_repeated(inner, '*', depth, out),
        Pattern::OneOrMore(inner) => push_repeated(inner, '+', depth, out),
    }
}

fn push_element(head: &str, body: &Pattern, depth: usize, out: &mut String) {
    out.push_str(head);
    match body {
        Pattern::Group(_) | Pattern::Interleave(_) => {
            out.push_str(&format!(" {{\n{}", pad(depth + 1)));
            push(body, depth + 1, out);
            out.push_str(&format!("\n{}}}", pad(depth)));
        }
        _ => {
            out.push_str(" { ");
            push(body, depth, out);
            out.push_str(" }");
        }
    }
}

fn push_data(name: &str, facets: &[(&str, String)], out: &mut String) {
    out.push_str(&format!("xsd:{name}"));
    if facets.is_empty() {
        return;
    }
    let facets = facets
        .iter()
        .map(|(facet, value)| format!("{facet} = {}", literal(value)));
    let facets: Vec<String> = facets.collect();
    out.push_str(&format!(" {{ {} }}", facets.join(" ")));
}

fn push_joined(parts: &[Pattern], separator: &str, depth: usize, out: &mut String) {
    let separator = format!("{separator}\n{}", pad(depth));
    push_parts(parts, &separator, depth, out);
}

fn push_parts(parts: &[Pattern], separator: &str, depth: usize, out: &mut String) {
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            out.push_str(separator);
        }
        push_inner(part, depth, out);
    }
}

fn push_repeated(inner: &Pattern, mark: char, depth: usize, out: &mut String) {
    push_inner(inner, depth, out);
    out.push(mark);
}

fn push_flat(parts: &[Pattern], separator: &str, depth: usize, out: &mut String) {
    out.push('(');
    push_parts(parts, separator, depth + 1, out);
    out.push(')');
}

/// Puts a compound pattern into parentheses.
fn push_inner(pattern: &Pattern, depth: usize, out: &mut String) {
    match pattern {
        Pattern::Group(parts) => push_flat(parts, ", ", depth, out),
        Pattern::Interleave(parts) => push_flat(parts, " & ", depth, out),
        Pattern::Choice(parts) => push_flat(parts, " | ", depth, out),
        _ => push(pattern, depth, out),
    }
}

fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\\x{22}"))
}

fn pad(depth: usize) -> String {
    "  ".repeat(depth)
}
