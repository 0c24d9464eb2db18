//! GBNF: grammars that constrain a model's output in llama.cpp.
//!
//! It has one form of each call, not every one that karyi accepts: attributes in documentation order and in double
//! quotes, children on lines of their own. Every repetition is bounded, since small models may loop forever.
//! llama.cpp allows at most 1999 repetitions of a rule and multiplies those of nested groups, so repeated parts are
//! rules of their own.

use super::language::{Attribute, Content, Element, Language, Parameter, Range, Value};
use super::layout;

mod leaf;

/// Form of the text of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// With entities, or as one CDATA section.
    Escaped,
    /// Verbatim up to the end tag, or as one CDATA section.
    Raw,
}

/// Calls of a block, children of an element, items of a list.
const MAX_CHILDREN: usize = 32;
/// Characters of an attribute's value.
const MAX_VALUE: usize = 500;
/// Lines of a text, and characters of a line.
const MAX_LINES: usize = 1000;
/// Blanks before a tag on a line of its own.
const MAX_INDENT: usize = 16;
/// Levels of lists and objects in JSON text.
const JSON_LEVELS: usize = 3;
/// Digits of a number without bounds.
const MAX_DIGITS: usize = 9;

/// Prints the grammar of a block.
pub(super) fn print(language: &Language, spelling: Spelling) -> String {
    let mut grammar = Grammar {
        rules: Vec::new(),
        spelling,
    };
    grammar.block("root", "A whole answer: one block.", language);
    grammar.finish(language)
}

/// Prints the grammar of a whole answer: prose, or a block, or prose and then a block.
///
/// No line of prose starts with `<`, so that a model can neither make results up nor write a second block.
pub(super) fn print_answer(language: &Language) -> String {
    let mut grammar = Grammar {
        rules: Vec::new(),
        spelling: Spelling::Raw,
    };
    let body = format!("prose-line{{0,{MAX_LINES}}} (block | prose)");
    let about = "A whole answer: prose, or one block, or prose and then a block.";
    grammar.rule("root", about, body);
    grammar.rule("prose-line", "", "prose? \"\\n\"".into());
    let (first, rest) = (leaf::none_of("< \t\n"), leaf::none_of("\n"));
    let prose = format!("[ ]{{0,{MAX_INDENT}}} {first} {rest}{{0,{MAX_LINES}}}");
    grammar.rule("prose", "", prose);
    grammar.block("block", "", language);
    grammar.finish(language)
}

impl Grammar {
    /// Adds the tools, and prints all rules.
    fn finish(mut self, language: &Language) -> String {
        let grammar = &mut self;
        let spelling = grammar.spelling;
        for tool in &language.tools {
            grammar.element(tool);
        }
        grammar.shared();
        let texts = match spelling {
            Spelling::Escaped => "Texts are escaped as in XML, or one CDATA section.",
            Spelling::Raw => {
                "Texts are written as they are, without escapes, or as one CDATA section."
            }
        };
        let bounds = format!(
            "Bounds: {MAX_CHILDREN} calls, {MAX_CHILDREN} children of an element, {MAX_LINES} lines of \
         {MAX_LINES} characters, {MAX_VALUE} characters of an attribute."
        );
        let more = ["Notation: GBNF of llama.cpp.", texts, &bounds];
        let mut out = layout::header("#", &more);
        for rule in &grammar.rules {
            out.push_str(&layout::comment("\n#", &rule.about));
            out.push_str(&format!("{} ::= {}\n", rule.name, rule.body));
        }
        out
    }
}

/// One rule.
#[derive(Debug)]
struct Rule {
    name: String,
    about: String,
    body: String,
}

/// The rules so far.
#[derive(Debug)]
struct Grammar {
    rules: Vec<Rule>,
    spelling: Spelling,
}

impl Grammar {
    /// Adds a rule, if it is new; returns its name.
    fn rule(&mut self, name: &str, about: &str, body: String) -> String {
        if self.rules.iter().all(|rule| rule.name != name) {
            self.rules.push(Rule {
                name: name.into(),
                about: about.into(),
                body,
            });
        }
        name.into()
    }

    fn block(&mut self, name: &str, about: &str, language: &Language) {
        let attributes = self.attributes(&language.block);
        let calls: Vec<String> = language.tools.iter().map(label).collect();
        let body =
            format!("\"<tools\"{attributes} \">\" gap next-call{{1,{MAX_CHILDREN}}} \"</tools>\"");
        self.rule(name, about, body);
        self.rule("next-call", "", "call gap".into());
        self.rule("call", "", calls.join(" | "));
    }

    fn shared(&mut self) {
        let indent = format!("(\"\\n\" [ ]{{0,{MAX_INDENT}}})?");
        self.rule("gap", "What several rules use.", indent);
        let value = format!("value-char{{0,{MAX_VALUE}}}");
        self.rule("value", "", value);
        let other = leaf::none_of("<&\"\n");
        self.rule("value-char", "", format!("{other} | entity"));
        let entities = r#""&lt;" | "&gt;" | "&amp;" | "&quot;" | "&apos;""#;
        self.rule("entity", "", entities.into());
    }

    fn element(&mut self, element: &Element) {
        let name = &element.name;
        let place = self.rules.len();
        let mut attributes = self.attributes(&element.attributes);
        let body = match &element.content {
            Content::Empty => "\"/>\"".to_owned(),
            Content::Text { value, is_escaped } => {
                let text = self.leaf(&label(element), name, value, *is_escaped);
                format!("\">\" {text} \"</{name}>\"")
            }
            Content::Groups {
                groups,
                is_required,
            } => self.groups(element, groups, u8::from(*is_required)),
            Content::Parameters(list) => {
                let (flat, deep): (Vec<&Parameter>, Vec<&Parameter>) =
                    list.iter().partition(|p| is_attribute(p));
                let flat: Vec<Attribute> = flat.into_iter().map(as_attribute).collect();
                attributes.push_str(&self.attributes(&flat));
                self.arguments(element, &deep)
            }
        };
        let rule = Rule {
            name: label(element),
            about: element.about.clone(),
            body: format!("\"<{name}\"{attributes} {body}"),
        };
        self.rules.insert(place, rule);
        if let Content::Groups { groups, .. } = &element.content {
            let children = groups.iter().flatten();
            children.for_each(|child| self.element(child));
        }
    }

    fn groups(&mut self, element: &Element, groups: &[Vec<Element>], min: u8) -> String {
        let group = |group: &Vec<Element>| {
            let members = group.iter().map(|e| format!("{} gap", label(e)));
            members.collect::<Vec<_>>().join(" ")
        };
        let groups: Vec<String> = groups.iter().map(group).collect();
        let next = format!("{}-next", label(element));
        self.rule(&next, "", groups.join(" | "));
        let name = &element.name;
        format!("\">\" gap {next}{{{min},{MAX_CHILDREN}}} \"</{name}>\"")
    }

    fn arguments(&mut self, element: &Element, list: &[&Parameter]) -> String {
        if list.is_empty() {
            return "\"/>\"".into();
        }
        let children: Vec<String> = list.iter().map(|p| self.argument(element, p)).collect();
        format!("\">\" gap {} \"</{}>\"", children.join(" "), element.name)
    }

    fn argument(&mut self, element: &Element, parameter: &Parameter) -> String {
        let name = &parameter.name;
        let place = format!("{}--{}", label(element), dashed(name));
        let min = u8::from(parameter.is_required);
        let (inner, max) = match &parameter.value {
            Value::List(item) => (self.content(&place, item), MAX_CHILDREN),
            value if parameter.is_raw => (self.leaf(&place, name, value, false), 1),
            value => (self.content(&place, value), 1),
        };
        let body = format!("\"<{name}>\" {inner} \"</{name}>\" gap");
        let rule = self.rule(&place, &parameter.about, body);
        match (min, max) {
            (1, 1) => rule,
            (_, 1) => format!("{rule}?"),
            (min, max) => format!("{rule}{{{min},{max}}}"),
        }
    }

    /// Returns the content of an element that represents a value.
    fn content(&mut self, place: &str, value: &Value) -> String {
        match value {
            Value::List(item) => {
                let place = format!("{place}--item");
                let inner = self.content(&place, item);
                let body = format!("\"<item>\" {inner} \"</item>\" gap");
                let item = self.rule(&place, "", body);
                format!("gap {item}{{0,{MAX_CHILDREN}}}")
            }
            Value::Object { keys, other } => {
                let mut members = String::from("gap");
                for key in keys {
                    let place = format!("{place}--{}", dashed(&key.name));
                    let inner = self.content(&place, &key.value);
                    let body = format!("\"<{0}>\" {inner} \"</{0}>\" gap", key.name);
                    let rule = self.rule(&place, "", body);
                    let mark = if key.is_required { "" } else { "?" };
                    members.push_str(&format!(" {rule}{mark}"));
                }
                if let Some(other) = other {
                    let place = format!("{place}--entry");
                    let inner = self.content(&place, other);
                    let body =
                        format!("\"<entry key=\\\"\" value \"\\\">\" {inner} \"</entry>\" gap");
                    let rule = self.rule(&place, "", body);
                    members.push_str(&format!(" {rule}{{0,{MAX_CHILDREN}}}"));
                }
                members
            }
            value => self.leaf_escaped(value, false),
        }
    }

    fn attributes(&mut self, attributes: &[Attribute]) -> String {
        let attributes = attributes.iter().map(|attribute| {
            let value = self.attribute_value(&attribute.value);
            let spelled = format!("\" {}=\\\"\" {value} \"\\\"\"", attribute.name);
            match attribute.is_required {
                true => format!(" {spelled}"),
                false => format!(" ({spelled})?"),
            }
        });
        attributes.collect()
    }

    fn attribute_value(&mut self, value: &Value) -> String {
        match value {
            Value::Text | Value::Json | Value::List(_) | Value::Object { .. } => "value".into(),
            value => scalar(value),
        }
    }

    /// Returns the text of a leaf in the form of this grammar.
    fn leaf(&mut self, place: &str, name: &str, value: &Value, is_escaped: bool) -> String {
        match (value, self.spelling) {
            (Value::Text, Spelling::Raw) => self.raw_text(place, name, is_escaped),
            (value, _) => self.leaf_escaped(value, is_escaped),
        }
    }

    fn leaf_escaped(&mut self, value: &Value, is_escaped: bool) -> String {
        match value {
            Value::Text if is_escaped => self.typed_text(),
            Value::Text | Value::List(_) | Value::Object { .. } => self.text(),
            Value::Json => self.json(JSON_LEVELS),
            value => scalar(value),
        }
    }

    /// Returns JSON text with this many levels; strings write markup as `\u003c`.
    fn json(&mut self, levels: usize) -> String {
        let string = leaf::none_of("\"\\<&>\n\t");
        let escape = r#""\\" ([\\/bfnrt"] | "u" [0-9a-fA-F]{4})"#;
        self.rule("json-char", "", format!("{string} | {escape}"));
        let body = format!("\"\\\"\" json-char{{0,{MAX_VALUE}}} \"\\\"\"");
        self.rule("json-string", "", body);
        let number = "\"-\"? (\"0\" | [1-9] [0-9]{0,15}) (\".\" [0-9]{1,15})?";
        let scalar = format!("json-string | {number} | \"true\" | \"false\" | \"null\"");
        self.rule("json-0", "", scalar);
        for level in 1..=levels {
            let (this, inner) = (format!("json-{level}"), format!("json-{}", level - 1));
            let member = format!("json-string \":\" \" \"? {inner}");
            self.rule(&format!("{this}-item"), "", format!("\",\" \" \"? {inner}"));
            self.rule(&format!("{this}-key"), "", format!("\",\" \" \"? {member}"));
            let more = format!("{{0,{MAX_CHILDREN}}}");
            let body = format!(
                "json-0 | \"[\" ({inner} {this}-item{more})? \"]\" | \
                 \"{{\" ({member} {this}-key{more})? \"}}\""
            );
            self.rule(&this, "", body);
        }
        format!("json-{levels}")
    }
}

/// Returns true when a parameter is an attribute in this grammar.
fn is_attribute(parameter: &Parameter) -> bool {
    parameter.value.is_scalar() && !parameter.is_raw && parameter.value != Value::Json
}

fn as_attribute(parameter: &Parameter) -> Attribute {
    Attribute {
        name: parameter.name.clone(),
        about: parameter.about.clone(),
        value: parameter.value.clone(),
        is_required: parameter.is_required,
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Choice(words) | Value::Word(words) => {
            let words: Vec<String> = words.iter().map(|word| leaf::literal(word)).collect();
            format!("({})", words.join(" | "))
        }
        Value::Boolean => "(\"true\" | \"false\")".into(),
        Value::Integer(range) => integer(*range),
        Value::Number(range) => format!("{} (\".\" [0-9]{{1,3}})?", integer(*range)),
        Value::Text | Value::Json | Value::List(_) | Value::Object { .. } => "value".into(),
    }
}

/// Returns digits that stay within the bounds, though not all of them.
fn integer(range: Range) -> String {
    let most = range.max.map_or(MAX_DIGITS, |max| {
        max.to_string().len().saturating_sub(1).min(MAX_DIGITS)
    });
    let sign = match range.min {
        None => "\"-\"? ",
        Some(min) if min < 0 && min.unsigned_abs().to_string().len() > most => "\"-\"? ",
        Some(_) => "",
    };
    match (range.min, range.max) {
        (_, Some(max)) if most == 0 => format!("[{}-{max}]", range.min.unwrap_or(0).max(0)),
        (Some(min), _) if min > 0 => format!("[1-9] [0-9]{{0,{}}}", most.saturating_sub(1)),
        _ => format!("{sign}[0-9]{{1,{most}}}"),
    }
}

/// Returns the name of an element's rule.
fn label(element: &Element) -> String {
    dashed(&element.label("--"))
}

/// Replaces underscores, which rule names cannot have.
fn dashed(name: &str) -> String {
    name.replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stay_within_the_bounds() {
        let check = |min, max, expected| assert_eq!(integer(Range { min, max }), expected);
        check(None, None, r#""-"? [0-9]{1,9}"#);
        check(Some(0), None, "[0-9]{1,9}");
        check(Some(-5), Some(500), "[0-9]{1,2}");
        check(Some(-100), Some(500), r#""-"? [0-9]{1,2}"#);
        check(Some(0), Some(31_536_000), "[0-9]{1,7}");
        check(Some(1), Some(255), "[1-9] [0-9]{0,1}");
        check(Some(1), Some(5), "[1-5]");
        check(None, Some(7), "[0-7]");
    }
}
