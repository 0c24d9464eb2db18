//! The list of tools and the page of one tool, as text and as JSON.

use serde_json::{Map, Value, json};

use crate::tool::registry::{Entry, Registry};
use crate::tool::schema::{self, Property};
use crate::tool::spec::Form;

/// Most words of a choice that stand in place of its type.
const MOST_WORDS: usize = 4;

/// Returns the list of tools, one line each.
#[must_use]
pub fn list<C>(registry: &Registry<C>) -> String {
    let width = registry
        .entries()
        .iter()
        .map(|e| e.spec.name.len())
        .max()
        .unwrap_or(0);
    let line = |entry: &Entry<C>| format!("{:width$}  {}\n", entry.spec.name, entry.spec.summary);
    registry.entries().iter().map(line).collect()
}

/// Returns the list of tools as the rows of a Markdown table.
#[must_use]
pub fn table<C>(registry: &Registry<C>) -> String {
    let row = |entry: &Entry<C>| format!("| `<{}>` | {} |\n", entry.spec.name, entry.spec.summary);
    let rows: String = registry.entries().iter().map(row).collect();
    format!("| tool | what it does |\n|---|---|\n{rows}")
}

/// Returns every tool as one JSON list.
#[must_use]
pub fn list_json<C>(registry: &Registry<C>) -> String {
    let tools: Vec<Value> = registry.entries().iter().map(json_of).collect();
    format!("{:#}\n", Value::Array(tools))
}

/// Returns one tool as a JSON object.
#[must_use]
pub fn tool_json<C>(entry: &Entry<C>) -> String {
    format!("{:#}\n", json_of(entry))
}

fn json_of<C>(entry: &Entry<C>) -> Value {
    let example = |e: &crate::tool::Example| {
        let mut map = Map::new();
        map.insert("title".into(), json!(e.title));
        map.insert("xml".into(), json!(e.xml));
        map.insert("status".into(), json!(e.status.as_str()));
        if let Some(code) = e.code {
            map.insert("code".into(), json!(code));
        }
        Value::Object(map)
    };
    json!({
        "name": entry.spec.name,
        "summary": entry.spec.summary,
        "details": entry.spec.details,
        "family": entry.spec.family.as_str(),
        "parameters": entry.schema.published(),
        "examples": entry.spec.examples.iter().map(example).collect::<Vec<_>>(),
    })
}

/// Returns the page of one tool.
#[must_use]
pub fn tool<C>(entry: &Entry<C>) -> String {
    let spec = &entry.spec;
    let mut page = format!(
        "<{}>: {}\n\n{}\n",
        spec.name,
        spec.summary,
        wrap(spec.details, 78)
    );
    page.push_str("\nArguments:\n");
    parameters(
        &mut page,
        entry.schema.annotated(),
        text_parameter(spec.form),
        1,
    );
    page.push_str("\nExamples:\n");
    for example in spec.examples {
        let code = example
            .code
            .map(|code| format!(", code {code}"))
            .unwrap_or_default();
        page.push_str(&format!(
            "\n  {} (status {}{code})\n",
            example.title,
            example.status.as_str()
        ));
        let before = example.before.lines();
        for line in before.chain(example.xml.lines()) {
            page.push_str(&format!("    {line}\n"));
        }
    }
    page
}

fn text_parameter(form: Form) -> Option<&'static str> {
    match form {
        Form::Text { parameter, .. } => Some(parameter),
        Form::Attributes | Form::Parameters => None,
    }
}

/// Lists the parameters of an object and, indented, those of the objects in its lists.
pub(crate) fn parameters(page: &mut String, schema: &Value, text: Option<&str>, depth: usize) {
    let pad = "  ".repeat(depth);
    for property in schema::properties(schema) {
        let description = property
            .schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or("");
        let required = if property.is_required {
            ""
        } else {
            ", optional"
        };
        let (name, place) = spelling(&property, text);
        // The line before is about the same element.
        let is_known = property.annotation("leaf").is_some() && is_only_leaf(schema);
        if is_known {
            continue;
        }
        let description = description.replace('\n', " ");
        page.push_str(&format!("{pad}{name} ({place}{required}): {description}\n"));
        if property.is_array() {
            parameters(page, schema::items(property.schema), None, depth + 1);
        }
    }
}

/// Returns true when the items of a group are one element each.
fn is_only_leaf(item: &Value) -> bool {
    let properties = schema::properties(item);
    let leaves = properties.iter().filter(|p| p.annotation("leaf").is_some());
    leaves.count() == 1
}

/// Returns the XML form of a parameter.
fn spelling(property: &Property<'_>, text: Option<&str>) -> (String, String) {
    let name = property.name;
    if let Some(element) = property.annotation("element") {
        return (format!("<{element}>"), "child elements".into());
    }
    if let Some(group) = property.group() {
        let names: Vec<String> = group.iter().map(|name| format!("<{name}>")).collect();
        let content = match names.len() {
            1 => " with a text",
            _ => "",
        };
        return (names.join(""), format!("repeated child elements{content}"));
    }
    if let Some(owner) = property.annotation("attribute_of") {
        return (
            name.into(),
            format!("{} attribute of <{owner}>", type_word(property)),
        );
    }
    if property.annotation("leaf").is_some() {
        return (format!("<{name}>"), "text".into());
    }
    if property.annotation("child").is_some() || property.is_raw() {
        return (format!("<{name}>"), "text".into());
    }
    if property.is_array() {
        return (format!("<{name}>"), "an element for each".into());
    }
    if schema::has_type(property.schema, "object") {
        return (format!("<{name}>"), "JSON".into());
    }
    if text == Some(name) {
        return (name.into(), "the element's text".into());
    }
    (name.into(), format!("{} attribute", type_word(property)))
}

fn type_word(property: &Property<'_>) -> String {
    let has = |name| schema::has_type(property.schema, name);
    let words = property.schema.get("enum").and_then(Value::as_array);
    let words = words.map(|words| words.iter().filter_map(Value::as_str).collect::<Vec<_>>());
    match words {
        Some(words) if (1..=MOST_WORDS).contains(&words.len()) => words.join("/"),
        _ if has("boolean") => "true/false".to_owned(),
        _ if has("integer") => "integer".to_owned(),
        _ if has("number") => "number".to_owned(),
        _ => "text".to_owned(),
    }
}

/// Wraps text at `width` characters.
fn wrap(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
