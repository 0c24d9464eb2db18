//! Lark, restricted to what both llguidance and the Python package support.
//!
//! It covers the whole strict language: attributes in any order, both quotes, comments between elements,
//! references, CDATA. It uses no lookahead, priorities or empty terminals. llguidance never backtracks after reading
//! on for a longer match, so a terminal ends where the next byte shows it: text and CDATA are separate terminals,
//! and so are blanks and comments.

use super::language::{Attribute, Content, Element, Language, Parameter, Value};
use super::layout;

/// White space of XML, inside a character class.
const BLANK: &str = r" \t\r\n";
/// Characters that XML documents cannot contain, for a character class.
const ILLEGAL: &str = r"\x00-\x08\x0B\x0C\x0E-\x1F\uFFFE\uFFFF";
/// The five entities, and references to valid characters.
const REFERENCE: &str = "&(lt|gt|amp|quot|apos|#0*(9|10|13|3[2-9]|[4-9][0-9]|[1-9][0-9]{2,6})\
    |#x0*(9|[aAdD]|[2-9a-fA-F][0-9a-fA-F]|[1-9a-fA-F][0-9a-fA-F]{2,5}));";
/// A number with a fraction or an exponent.
const NUMBER: &str = r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?";
/// Maximum number of orders of required attributes that are spelled out.
const MAX_ORDERED: usize = 3;

/// Prints the grammar.
pub(super) fn print(language: &Language) -> String {
    let mut grammar = Grammar::default();
    grammar.block(language);
    for tool in &language.tools {
        grammar.element(tool);
    }
    let more = [
        "Notation: Lark, as llguidance and the Python package `lark` (LALR) read it.",
        "An attribute that may be missing could come twice here; karyi refuses that.",
    ];
    let mut out = layout::header("//", &more);
    out.push_str(&grammar.rules);
    out.push_str("\n// Terminals. White space before an attribute belongs to it.\n");
    for (name, regex) in &grammar.terminals {
        out.push_str(&format!("{name}: /{}/\n", regex.replace('/', "\\/")));
    }
    out
}

/// The rules so far and their terminals.
#[derive(Debug, Default)]
struct Grammar {
    rules: String,
    terminals: Vec<(String, String)>,
}

impl Grammar {
    fn block(&mut self, language: &Language) {
        let attributes = self.attributes(&language.block);
        let (gt, gap) = (self.gt(), self.gap());
        let end = self.end("tools");
        self.rules.push_str(&format!(
            "\nstart: \"<tools\"{attributes} {gt} ({gap}* call)* {gap}* {end}\n"
        ));
        let calls = language.tools.iter().map(|tool| tool.label("_"));
        let calls: Vec<String> = calls.collect();
        self.rules
            .push_str(&format!("call: {}\n", calls.join(" | ")));
    }

    fn element(&mut self, element: &Element) {
        let attributes = match &element.content {
            Content::Parameters(list) => self.any_of(&loose(element, list)),
            Content::Empty | Content::Text { .. } | Content::Groups { .. } => {
                self.attributes(&element.attributes)
            }
        };
        let (gt, empty) = (self.gt(), self.empty_end());
        let end = self.end(&element.name);
        let body = match &element.content {
            Content::Empty => format!("({empty} | {gt} {}* {end})", self.gap()),
            Content::Text { value, .. } => {
                let text = self.text(value);
                format!("({empty} | {gt} {text} {end})")
            }
            Content::Groups {
                groups,
                is_required,
            } => self.groups(groups, *is_required, &end),
            Content::Parameters(list) => {
                let gap = self.gap();
                let children = self.arguments(list);
                format!("({empty} | {gt} ({gap}* ({children}))* {gap}* {end})")
            }
        };
        self.rules
            .push_str(&layout::comment("\n//", &element.about));
        let (label, name) = (label(element), &element.name);
        let line = format!("{label}: \"<{name}\"{attributes} {body}\n");
        self.rules.push_str(&line);
        if let Content::Groups { groups, .. } = &element.content {
            let children = groups.iter().flatten();
            children.for_each(|child| self.element(child));
        }
    }

    fn groups(&mut self, groups: &[Vec<Element>], is_required: bool, end: &str) -> String {
        let (gt, gap) = (self.gt(), self.gap());
        let group = |group: &Vec<Element>| {
            let members = group.iter().map(|e| format!("{gap}* {}", label(e)));
            members.collect::<Vec<_>>().join(" ")
        };
        let any = groups.iter().map(group).collect::<Vec<_>>().join(" | ");
        match is_required {
            true => format!("{gt} ({any})+ {gap}* {end}"),
            false => {
                let empty = self.empty_end();
                format!("({empty} | {gt} ({any})* {gap}* {end})")
            }
        }
    }

    /// Attributes in any order; required ones exactly once.
    fn attributes(&mut self, attributes: &[Attribute]) -> String {
        let (needed, free): (Vec<&Attribute>, Vec<&Attribute>) =
            attributes.iter().partition(|a| a.is_required);
        if needed.len() > MAX_ORDERED {
            let all: Vec<&Attribute> = attributes.iter().collect();
            return self.any_of(&all);
        }
        let free = self.any_of(&free);
        let names: Vec<String> = needed.iter().map(|a| self.attribute(a)).collect();
        let order = |order: Vec<String>| {
            let parts = order.iter().map(|name| format!(" {name}{free}"));
            format!("{free}{}", parts.collect::<String>())
        };
        let orders: Vec<String> = permutations(&names).into_iter().map(order).collect();
        match orders.as_slice() {
            [only] => only.clone(),
            many => format!(" ({})", many.join(" |")),
        }
    }

    fn any_of(&mut self, attributes: &[impl AsRef<Attribute>]) -> String {
        if attributes.is_empty() {
            return String::new();
        }
        let names = attributes.iter().map(|a| self.attribute(a.as_ref()));
        let names: Vec<String> = names.collect();
        match names.as_slice() {
            [only] => format!(" {only}*"),
            many => format!(" ({})*", many.join(" | ")),
        }
    }

    fn attribute(&mut self, attribute: &Attribute) -> String {
        let name = &attribute.name;
        let value = match scalar(&attribute.value) {
            Some(regex) => format!("\"{regex}\"|'{regex}'"),
            None => {
                let quoted = |quote| format!("([^{quote}<&{ILLEGAL}]|{REFERENCE})*");
                format!("\"{}\"|'{}'", quoted('"'), quoted('\''))
            }
        };
        let regex = format!("[{BLANK}]+{name}[{BLANK}]*=[{BLANK}]*({value})");
        let word = name.replace([':', '-', '.'], "_").to_ascii_uppercase();
        self.terminal(&format!("{word}_ATTRIBUTE"), regex)
    }

    /// The text of a leaf.
    fn text(&mut self, value: &Value) -> String {
        match (value, scalar(value)) {
            (Value::Word(words), _) => {
                let words = words.iter().map(|word| any_case(word));
                let words = words.collect::<Vec<_>>().join("|");
                self.terminal("WORD", format!("[{BLANK}]*({words})[{BLANK}]*"))
            }
            (_, Some(regex)) => self.terminal("SCALAR", regex),
            (_, None) => self.text_after("", "?"),
        }
    }

    /// Alternating text and CDATA. `start` is the pattern of the text's start; `mark` tells whether it may be missing.
    fn text_after(&mut self, start: &str, mark: &str) -> String {
        let first = self.terminal(
            if start.is_empty() {
                "TEXT"
            } else {
                "FILLED_TEXT"
            },
            text_regex(start),
        );
        let text = self.terminal("TEXT", text_regex(""));
        let cdata = self.terminal("CDATA", cdata_regex());
        format!("{first}{mark} ({cdata} {text}?)*")
    }

    fn arguments(&mut self, list: &[Parameter]) -> String {
        let children = list.iter().map(|p| self.argument(p));
        children.collect::<Vec<_>>().join(" | ")
    }

    fn argument(&mut self, parameter: &Parameter) -> String {
        let (name, gt, empty) = (&parameter.name, self.gt(), self.empty_end());
        let body = match &parameter.value {
            Value::List(item) => {
                let text = self.text_after(&filled(), "");
                let items = self.child("item", item);
                let keys = match item.as_ref() {
                    Value::Object { .. } => format!(" | {}", self.members(item)),
                    _ => String::new(),
                };
                format!("({text} | ({items})*{keys}) {}", self.late_end(name))
            }
            Value::Object { .. } => self.structured(name, &parameter.value),
            value => format!("{} {}", self.text(value), self.end(name)),
        };
        format!("\"<{name}\" ({empty} | {gt} {body})")
    }

    /// Content between `>` and the end tag of an element for a list or an object.
    fn structured(&mut self, name: &str, value: &Value) -> String {
        let json = self.text_after(&format!(r"[{BLANK}]*[\[{{]"), "");
        let members = self.members(value);
        format!("({json} | {members}) {}", self.late_end(name))
    }

    fn members(&mut self, value: &Value) -> String {
        let mut members = Vec::new();
        match value {
            Value::List(item) => members.push(self.child("item", item)),
            Value::Object { keys, other } => {
                for key in keys {
                    members.push(self.child(&key.name, &key.value));
                }
                if let Some(other) = other {
                    members.push(self.other_child(other));
                }
            }
            _ => {}
        }
        match members.is_empty() {
            true => String::new(),
            false => format!("({})*", members.join(" | ")),
        }
    }

    /// An element inside a value; preceding blanks belong to its start tag.
    fn child(&mut self, name: &str, value: &Value) -> String {
        let start = format!("{}<{name}[{BLANK}]*>", gap_regex());
        let start = self.terminal(&format!("{}_START", name.to_ascii_uppercase()), start);
        format!("{start} {}", self.inner(name, value))
    }

    /// A key with a name of its own is `<entry>` here: a grammar cannot compare two names.
    fn other_child(&mut self, value: &Value) -> String {
        let key = format!("([^\"<&{ILLEGAL}]|{REFERENCE})*");
        let start = format!(
            "{}<entry[{BLANK}]+key[{BLANK}]*=[{BLANK}]*\"{key}\"[{BLANK}]*>",
            gap_regex()
        );
        let start = self.terminal("ENTRY_START", start);
        format!("{start} {}", self.inner("entry", value))
    }

    fn inner(&mut self, name: &str, value: &Value) -> String {
        match value {
            Value::List(_) | Value::Object { .. } => self.structured(name, value),
            value => format!("{} {}", self.text(value), self.end(name)),
        }
    }

    fn gt(&mut self) -> String {
        self.terminal("TAG_END", format!("[{BLANK}]*>"))
    }

    fn empty_end(&mut self) -> String {
        self.terminal("EMPTY_END", format!("[{BLANK}]*/>"))
    }

    fn gap(&mut self) -> String {
        let blanks = self.terminal("BLANKS", format!("[{BLANK}]+"));
        let comment = self.terminal("COMMENT", comment_regex());
        format!("({blanks} | {comment})")
    }

    fn end(&mut self, name: &str) -> String {
        let word = format!("{}_END", name.to_ascii_uppercase());
        self.terminal(&word, format!("</{name}[{BLANK}]*>"))
    }

    /// An end tag with preceding blanks.
    fn late_end(&mut self, name: &str) -> String {
        let word = format!("{}_LATE_END", name.to_ascii_uppercase());
        let regex = format!("{}</{name}[{BLANK}]*>", gap_regex());
        self.terminal(&word, regex)
    }

    /// Returns the name of a terminal; each regex has one name.
    fn terminal(&mut self, word: &str, regex: String) -> String {
        if let Some((name, _)) = self.terminals.iter().find(|(_, known)| *known == regex) {
            return name.clone();
        }
        let mut name = word.to_owned();
        let mut number = 1;
        while self.terminals.iter().any(|(known, _)| *known == name) {
            number += 1;
            name = format!("{word}_{number}");
        }
        self.terminals.push((name.clone(), regex));
        name
    }
}

impl AsRef<Attribute> for Attribute {
    fn as_ref(&self) -> &Attribute {
        self
    }
}

fn label(element: &Element) -> String {
    element.label("__").replacen("tool__", "tool_", 1)
}

/// Attributes of a generic tool: each may be a child instead.
fn loose(element: &Element, list: &[Parameter]) -> Vec<Attribute> {
    let mut attributes = element.attributes.clone();
    attributes.extend(list.iter().map(|parameter| Attribute {
        name: parameter.name.clone(),
        about: String::new(),
        value: parameter.value.clone(),
        is_required: false,
    }));
    attributes
}

/// Returns the regex of a value other than free text.
fn scalar(value: &Value) -> Option<String> {
    let framed = |regex: &str| Some(format!("[{BLANK}]*({regex})[{BLANK}]*"));
    match value {
        Value::Choice(words) => {
            let words: Vec<String> = words.iter().map(|word| literal(word)).collect();
            Some(format!("({})", words.join("|")))
        }
        Value::Boolean => framed("true|false"),
        Value::Integer(_) => framed("[-+]?[0-9]+"),
        Value::Number(_) => framed(NUMBER),
        Value::Word(words) => {
            let words: Vec<String> = words.iter().map(|word| any_case(word)).collect();
            framed(&words.join("|"))
        }
        Value::Text | Value::Json | Value::List(_) | Value::Object { .. } => None,
    }
}

/// Text without markup and without `]]>`; `start` is the pattern of its start.
fn text_regex(start: &str) -> String {
    let any = format!(r"([^<&\]{ILLEGAL}]|{REFERENCE})");
    let after_brackets = format!(r"([^<&\]>{ILLEGAL}]|{REFERENCE})");
    let unit = format!(r"(\]?{any}|\]\]+{after_brackets})");
    match start {
        "" => format!(r"({unit}+\]*|\]+)"),
        start => format!(r"{start}{unit}*\]*"),
    }
}

/// Start of a text that is not only white space.
fn filled() -> String {
    format!(r"[{BLANK}]*([^<&\]{BLANK}{ILLEGAL}]|{REFERENCE})")
}

fn cdata_regex() -> String {
    format!(r"<!\[CDATA\[([^\]{ILLEGAL}]|\][^\]{ILLEGAL}]|\]\]+[^\]>{ILLEGAL}])*\]\]+>")
}

fn comment_regex() -> String {
    format!("<!--([^-{ILLEGAL}]|-[^-{ILLEGAL}])*-->")
}

/// Blanks and comments as one regex, for the start of a terminal.
fn gap_regex() -> String {
    format!("([{BLANK}]|{})*", comment_regex())
}

fn any_case(word: &str) -> String {
    let letter = |c: char| match c.is_ascii_alphabetic() {
        true => format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase()),
        false => literal(&c.to_string()),
    };
    word.chars().map(letter).collect()
}

/// Escapes regex syntax and markup.
fn literal(word: &str) -> String {
    let escaped = |c: char| match c {
        '<' => "&lt;".into(),
        '&' => "&amp;".into(),
        '"' => "&quot;".into(),
        c if r"\.+*?()|[]{}^$".contains(c) => format!("\\{c}"),
        c => c.to_string(),
    };
    word.chars().map(escaped).collect()
}

fn permutations(names: &[String]) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    for name in names {
        let longer = all.iter().flat_map(|order: &Vec<String>| {
            (0..=order.len()).map(|at| {
                let (before, after) = order.split_at(at);
                let name = std::slice::from_ref(name);
                [before, name, after].concat()
            })
        });
        all = longer.collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_spelled_out() {
        let check = |names: &[&str], expected: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let orders: Vec<String> = permutations(&names).iter().map(|o| o.join("")).collect();
            assert_eq!(orders, expected);
        };
        check(&[], &[""]);
        check(&["a", "b"], &["ba", "ab"]);
        check(
            &["a", "b", "c"],
            &["cba", "bca", "bac", "cab", "acb", "abc"],
        );
    }

    #[test]
    fn words_become_regexes() {
        assert_eq!(any_case("f1?"), r"[fF]1\?");
        assert_eq!(literal("a.b&<c>/"), r"a\.b&amp;&lt;c>/");
    }
}
