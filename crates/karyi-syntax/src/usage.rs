//! One-line usage of an element, for hints.

use super::table::{Body, Rule};

/// Returns the usage of an element with its required parts, if it has any: `<edit><file src="...">...`.
pub(super) fn usage(rule: &Rule) -> Option<String> {
    let is_plain = required(rule).next().is_none();
    match &rule.body {
        Body::Parameters(_) => None,
        Body::Empty | Body::Leaf(_) | Body::Value if is_plain => None,
        Body::Empty | Body::Leaf(_) | Body::Value | Body::Children(_) => {
            let mut text = String::new();
            write(rule, &mut text);
            Some(text)
        }
    }
}

/// Appends the usage of an element to a hint.
pub(super) fn with_usage(hint: String, rule: &Rule) -> String {
    match usage(rule) {
        Some(form) => format!("{hint}; write {form}"),
        None => hint,
    }
}

fn required(rule: &Rule) -> impl Iterator<Item = &str> {
    let declared = rule.attributes.iter().flatten();
    declared.filter(|a| a.is_required).map(|a| a.name.as_str())
}

fn write(rule: &Rule, text: &mut String) {
    let name = &rule.name;
    text.push_str(&format!("<{name}"));
    for attribute in required(rule) {
        text.push_str(&format!(" {attribute}=\"...\""));
    }
    match &rule.body {
        Body::Empty => {
            text.push_str("/>");
            return;
        }
        Body::Leaf(_) | Body::Value | Body::Parameters(_) => text.push_str(">..."),
        Body::Children(groups) => {
            text.push('>');
            // A text alone is another way to write what stands before it.
            let is_other = |group: &&Vec<_>| group.len() > 1 || groups.min > 0;
            let inner = groups.groups.iter().filter(is_other).flatten();
            inner.for_each(|inner| write(inner, text));
        }
    }
    text.push_str(&format!("</{name}>"));
}
