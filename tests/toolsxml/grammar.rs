//! The tools that the tests speak.

use std::sync::{Arc, LazyLock};

use karyi::syntax::grammar::{AttributeRule, ContentRule, ElementRule, Grammar, ParameterRule};

/// Returns the six core tools, made once.
pub(super) fn core() -> Arc<Grammar> {
    static CORE: LazyLock<Arc<Grammar>> =
        LazyLock::new(|| Arc::new(karyi::tools::registry().grammar()));
    Arc::clone(&CORE)
}

/// Returns the core tools and two generic ones, made once.
pub(super) fn shared() -> Arc<Grammar> {
    static SHARED: LazyLock<Arc<Grammar>> = LazyLock::new(|| Arc::new(with_generic_tools()));
    Arc::clone(&SHARED)
}

/// Returns the core tools and two generic ones.
pub(super) fn with_generic_tools() -> Grammar {
    let mut grammar = (*core()).clone();
    let parameter = |name: &str, flags: &str| ParameterRule {
        name: name.into(),
        is_raw: flags.contains('r'),
        is_repeated: flags.contains('*'),
        is_required: flags.contains('!'),
        missing: None,
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

fn element(name: &str, attributes: &[&str], content: ContentRule) -> ElementRule {
    let attribute = |word: &&str| AttributeRule {
        name: word.trim_end_matches('!').into(),
        is_required: word.ends_with('!'),
        missing: None,
    };
    ElementRule {
        name: name.into(),
        attributes: attributes.iter().map(attribute).collect(),
        content,
    }
}
