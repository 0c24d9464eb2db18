//! The tools that the tests speak.

use karyi::syntax::grammar::{
    AttributeRule, ContentRule, ElementRule, Grammar, LeafKind, ParameterRule,
};

/// Returns the six core tools.
pub(super) fn core() -> Grammar {
    let find = leaf("find", &["all"], LeafKind::Text);
    let replace = leaf("replace", &[], LeafKind::Text);
    let edited = element(
        "file",
        &["src!", "to", "delete"],
        groups(vec![vec![find, replace]], 0),
    );
    let read = element(
        "file",
        &["src!", "lines", "max_bytes", "all"],
        ContentRule::Empty,
    );
    let search = ["pattern!", "path", "glob", "regex", "max", "context"];
    let search = element("search", &search, ContentRule::Empty);
    let value = ["key!", "reason!", "note", "refresh"];
    Grammar {
        tools: vec![
            leaf("command", &["timeout", "cwd", "name"], LeafKind::Script),
            element("edit", &[], groups(vec![vec![edited]], 1)),
            element("read", &[], groups(vec![vec![read], vec![search]], 1)),
            element("get_value", &value, ContentRule::Empty),
            leaf(
                "input",
                &["timeout", "job", "allow_echo"],
                LeafKind::Escaped,
            ),
            leaf("ctrl", &["timeout", "job"], LeafKind::Word(is_key)),
        ],
    }
}

/// Returns the core tools and two generic ones.
pub(super) fn with_generic_tools() -> Grammar {
    let mut grammar = core();
    let parameter = |name: &str, flags: &str| ParameterRule {
        name: name.into(),
        is_raw: flags.contains('r'),
        is_repeated: flags.contains('*'),
        is_required: flags.contains('!'),
    };
    let tool = |name: &str, parameters: &[(&str, &str)]| {
        let parameters = parameters
            .iter()
            .map(|(name, flags)| parameter(name, flags));
        element(name, &[], ContentRule::Parameters(parameters.collect()))
    };
    grammar.tools.push(tool(
        "write_file",
        &[("path", "!"), ("content", "r!"), ("mode", "")],
    ));
    grammar
        .tools
        .push(tool("todo", &[("items", "*"), ("meta", ""), ("note", "r")]));
    grammar
}

fn is_key(word: &str) -> bool {
    let named = [
        "enter", "esc", "tab", "up", "down", "left", "right", "home", "end", "f1",
    ];
    let is_letter = word.len() == 1 && word.bytes().all(|b| b.is_ascii_lowercase());
    is_letter || named.contains(&word)
}

fn leaf(name: &str, attributes: &[&str], kind: LeafKind) -> ElementRule {
    element(name, attributes, ContentRule::Leaf(kind))
}

fn groups(groups: Vec<Vec<ElementRule>>, min: usize) -> ContentRule {
    ContentRule::Children { groups, min }
}

/// A `!` after an attribute's name makes it required.
fn element(name: &str, attributes: &[&str], content: ContentRule) -> ElementRule {
    let attribute = |word: &&str| AttributeRule {
        name: word.trim_end_matches('!').into(),
        is_required: word.ends_with('!'),
    };
    ElementRule {
        name: name.into(),
        attributes: attributes.iter().map(attribute).collect(),
        content,
    }
}
