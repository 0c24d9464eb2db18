//! The grammar in the form the parser walks: shared rules, and tools found by name.

use std::sync::Arc;

use super::Mode;
use super::chars::is_same_name;
use super::grammar::{ContentRule, ElementRule, Grammar, LeafKind};
use crate::call::Name;

/// All rules of a grammar.
#[derive(Debug)]
pub(super) struct Table {
    /// Tools in the order of their names.
    exact: Vec<(String, Arc<Rule>)>,
    /// Tools in the order of their names in lower case.
    folded: Vec<(String, Arc<Rule>)>,
    /// Bytes of the longest name that may follow a raw leaf.
    pub(super) longest_name: usize,
    /// The rule of elements inside an argument.
    pub(super) inner: Arc<Rule>,
    /// The rule of `<tools>` as far as its attributes go.
    pub(super) block: Rule,
}

/// One element.
#[derive(Debug)]
pub(super) struct Rule {
    /// Name as declared.
    pub(super) name: Name,
    /// Attributes it may have; any when there is no list.
    pub(super) attributes: Option<Vec<Attribute>>,
    /// What it holds.
    pub(super) body: Body,
}

/// One attribute.
#[derive(Debug)]
pub(super) struct Attribute {
    /// Name as declared.
    pub(super) name: Name,
    /// Whether it must be there.
    pub(super) is_required: bool,
}

/// What an element holds.
#[derive(Debug)]
pub(super) enum Body {
    /// Nothing.
    Empty,
    /// A raw leaf.
    Leaf(LeafKind),
    /// Groups of elements.
    Children(Groups),
    /// Arguments.
    Parameters(Vec<Parameter>),
    /// Text or any elements.
    Value,
}

/// Groups of elements and how many there must be.
#[derive(Debug)]
pub(super) struct Groups {
    /// The groups to choose from.
    pub(super) groups: Vec<Vec<Arc<Rule>>>,
    /// How many there must be at least.
    pub(super) min: usize,
}

/// One parameter as a child element.
#[derive(Debug)]
pub(super) struct Parameter {
    /// Its element.
    pub(super) rule: Arc<Rule>,
    /// Whether it may come again.
    pub(super) is_repeated: bool,
    /// Whether it must be given.
    pub(super) is_required: bool,
}

impl Table {
    /// Prepares a grammar.
    pub(super) fn new(grammar: &Grammar) -> Self {
        let rules: Vec<Arc<Rule>> = grammar.tools.iter().map(rule).collect();
        let mut longest_name = "tools".len();
        for rule in &rules {
            longest_name = longest_name.max(longest(rule));
        }
        let named =
            |fold: fn(&str) -> String| rules.iter().map(move |r| (fold(&r.name), Arc::clone(r)));
        Self {
            exact: sorted(named(str::to_owned)),
            folded: sorted(named(str::to_ascii_lowercase)),
            longest_name,
            inner: Arc::new(Rule {
                name: "".into(),
                attributes: None,
                body: Body::Value,
            }),
            block: block(),
        }
    }

    /// Returns the rule of a tool as the model spelled it.
    pub(super) fn tool(&self, name: &str, mode: Mode) -> Option<&Arc<Rule>> {
        match (find(&self.exact, name), mode) {
            (Some(rule), _) => Some(rule),
            (None, Mode::Strict) => None,
            (None, Mode::Repair) => find(&self.folded, &name.to_ascii_lowercase()),
        }
    }

    /// Returns the names of all tools, in alphabetical order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.exact.iter().map(|(name, _)| name.as_str())
    }
}

fn sorted(rules: impl Iterator<Item = (String, Arc<Rule>)>) -> Vec<(String, Arc<Rule>)> {
    let mut rules: Vec<_> = rules.collect();
    rules.sort_by(|(a, _), (b, _)| a.cmp(b));
    rules
}

fn find<'r>(rules: &'r [(String, Arc<Rule>)], name: &str) -> Option<&'r Arc<Rule>> {
    let at = rules.binary_search_by(|(known, _)| known.as_str().cmp(name));
    rules.get(at.ok()?).map(|(_, rule)| rule)
}

impl Mode {
    /// Tells whether two names are the same in this mode.
    pub(super) fn is_same(self, written: &str, declared: &str) -> bool {
        match self {
            Self::Strict => written == declared,
            Self::Repair => is_same_name(written.as_bytes(), declared.as_bytes()),
        }
    }
}

impl Rule {
    /// Returns the kind of its text when the element is a raw leaf.
    pub(super) fn leaf(&self) -> Option<LeafKind> {
        match &self.body {
            Body::Leaf(kind) => Some(*kind),
            Body::Empty | Body::Children(_) | Body::Parameters(_) | Body::Value => None,
        }
    }

    /// Returns the names of the elements it may hold.
    pub(super) fn child_names(&self) -> Vec<&str> {
        match &self.body {
            Body::Children(groups) => groups
                .groups
                .iter()
                .flatten()
                .map(|r| r.name.as_str())
                .collect(),
            Body::Parameters(parameters) => {
                parameters.iter().map(|p| p.rule.name.as_str()).collect()
            }
            Body::Empty | Body::Leaf(_) | Body::Value => Vec::new(),
        }
    }
}

fn block() -> Rule {
    let optional = |name: &str| attribute(name, false);
    Rule {
        name: "tools".into(),
        attributes: Some(["order", "on_error", "xml:space"].map(optional).into()),
        body: Body::Empty,
    }
}

fn attribute(name: &str, is_required: bool) -> Attribute {
    Attribute {
        name: name.into(),
        is_required,
    }
}

fn rule(element: &ElementRule) -> Arc<Rule> {
    let body = match &element.content {
        ContentRule::Empty => Body::Empty,
        ContentRule::Leaf(kind) => Body::Leaf(*kind),
        ContentRule::Children { groups, min } => Body::Children(Groups {
            groups: groups
                .iter()
                .map(|group| group.iter().map(rule).collect())
                .collect(),
            min: *min,
        }),
        ContentRule::Parameters(parameters) => {
            Body::Parameters(parameters.iter().map(parameter).collect())
        }
    };
    let declared = element.attributes.iter();
    let mut attributes: Vec<Attribute> = declared
        .map(|a| attribute(&a.name, a.is_required))
        .collect();
    if let ContentRule::Parameters(parameters) = &element.content {
        for parameter in parameters {
            if attributes.iter().all(|a| *a.name != parameter.name) {
                attributes.push(attribute(&parameter.name, parameter.is_required));
            }
        }
    }
    Arc::new(Rule {
        name: element.name.as_str().into(),
        attributes: Some(attributes),
        body,
    })
}

fn parameter(parameter: &super::grammar::ParameterRule) -> Parameter {
    Parameter {
        rule: Arc::new(Rule {
            name: parameter.name.as_str().into(),
            attributes: Some(Vec::new()),
            body: match parameter.is_raw {
                true => Body::Leaf(LeafKind::Text),
                false => Body::Value,
            },
        }),
        is_repeated: parameter.is_repeated,
        is_required: parameter.is_required,
    }
}

fn longest(rule: &Rule) -> usize {
    let inside = match &rule.body {
        Body::Children(groups) => groups.groups.iter().flatten().map(|r| longest(r)).max(),
        Body::Parameters(parameters) => parameters.iter().map(|p| longest(&p.rule)).max(),
        Body::Empty | Body::Leaf(_) | Body::Value => None,
    };
    rule.name.len().max(inside.unwrap_or(0))
}
