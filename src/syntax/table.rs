//! The grammar in the form the parser walks: shared rules, and tools found by name.

use std::collections::HashMap;
use std::sync::Arc;

use super::Mode;
use super::diagnose::did_you_mean;
use super::grammar::{AttributeRule, ContentRule, ElementRule, Grammar, LeafKind};

/// Most tools that a hint lists.
const MAX_LISTED: usize = 20;

/// All rules of a grammar.
#[derive(Debug)]
pub(super) struct Table {
    exact: HashMap<String, Arc<Rule>>,
    /// Tools by their name in lower case.
    folded: HashMap<String, Arc<Rule>>,
    /// Tools by what they are also called, in lower case.
    also_called: HashMap<String, Vec<String>>,
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
    pub(super) name: String,
    /// Attributes it may have; any when there is no list.
    pub(super) attributes: Option<Vec<AttributeRule>>,
    /// What it holds.
    pub(super) body: Body,
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
        let mut also_called: HashMap<String, Vec<String>> = HashMap::new();
        for (name, tool) in &grammar.also_called {
            let name = name.to_ascii_lowercase();
            also_called.entry(name).or_default().push(tool.clone());
        }
        Self {
            also_called,
            exact: named(str::to_owned).collect(),
            folded: named(str::to_ascii_lowercase).collect(),
            longest_name,
            inner: Arc::new(Rule {
                name: String::new(),
                attributes: None,
                body: Body::Value,
            }),
            block: block(),
        }
    }

    /// Returns the rule of a tool as the model spelled it.
    pub(super) fn tool(&self, name: &str, mode: Mode) -> Option<&Arc<Rule>> {
        match (self.exact.get(name), mode) {
            (Some(rule), _) => Some(rule),
            (None, Mode::Strict) => None,
            (None, Mode::Repair) => self.folded.get(&name.to_ascii_lowercase()),
        }
    }

    /// Says what an unknown tool may have been meant to be: one that is also called so, else one whose
    /// name is near, else what there is.
    pub(super) fn suggestion(&self, name: &str) -> String {
        let meant = self.also_called.get(&name.to_ascii_lowercase());
        if let Some(tools) = meant {
            let tools: Vec<String> = tools.iter().map(|tool| format!("`{tool}`")).collect();
            return format!("did you mean {}?", tools.join(" or "));
        }
        did_you_mean(name, self.names()).unwrap_or_else(|| {
            let names: Vec<&str> = self.names().take(MAX_LISTED).collect();
            format!("use one of the tools {}", names.join(", "))
        })
    }

    /// Returns the names of all tools, in alphabetical order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let mut names: Vec<&str> = self.exact.keys().map(String::as_str).collect();
        names.sort_unstable();
        names.into_iter()
    }
}

impl Mode {
    /// Tells whether two names are the same in this mode.
    pub(super) fn is_same(self, written: &str, declared: &str) -> bool {
        match self {
            Self::Strict => written == declared,
            Self::Repair => written.eq_ignore_ascii_case(declared),
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
    let optional = |name: &str| AttributeRule {
        name: name.into(),
        is_required: false,
    };
    Rule {
        name: "tools".into(),
        attributes: Some(["order", "on_error", "xml:space"].map(optional).to_vec()),
        body: Body::Empty,
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
    let mut attributes = element.attributes.clone();
    if let ContentRule::Parameters(parameters) = &element.content {
        for parameter in parameters {
            if attributes.iter().all(|a| a.name != parameter.name) {
                attributes.push(AttributeRule {
                    name: parameter.name.clone(),
                    is_required: parameter.is_required,
                });
            }
        }
    }
    Arc::new(Rule {
        name: element.name.clone(),
        attributes: Some(attributes),
        body,
    })
}

fn parameter(parameter: &super::grammar::ParameterRule) -> Parameter {
    Parameter {
        rule: Arc::new(Rule {
            name: parameter.name.clone(),
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
