//! The grammar as the parser uses it: shared rules, and tools indexed by name.

use std::collections::HashMap;
use std::sync::Arc;

use super::chars::is_same_name;
use super::event::Mode;
use super::fault::did_you_mean;
use super::grammar::{ContentRule, ElementRule, Grammar, LeafKind};
use karyi_core::call::Name;

/// Most tools that a hint lists.
const MAX_LISTED: usize = 20;

/// All rules of a grammar.
#[derive(Debug)]
pub(super) struct Table {
    /// Tools in the order of their names.
    exact: Vec<Arc<Rule>>,
    /// The same by the length of the name.
    by_length: Vec<Vec<Arc<Rule>>>,
    /// Tools by what they are also called, in lower case.
    also_called: HashMap<String, Vec<String>>,
    /// Tools that no hint names.
    unlisted: Vec<String>,
    /// Tools that exist and may not be called.
    not_offered: Vec<String>,
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
    /// Allowed content.
    pub(super) body: Body,
}

/// One attribute.
#[derive(Debug)]
pub(super) struct Attribute {
    /// Name as declared.
    pub(super) name: Name,
    /// True when it must be there.
    pub(super) is_required: bool,
    /// Words in front of the error that it is missing.
    pub(super) missing: Option<String>,
}

/// Allowed content of an element.
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

impl Body {
    /// Returns true when a group of child elements starts with this name.
    pub(super) fn has_child(&self, name: &str) -> bool {
        let Self::Children(groups) = self else {
            return false;
        };
        let mut rules = groups.starts().filter_map(|place| groups.rule(place));
        rules.any(|rule| rule.name == name)
    }

    /// Returns the tags that a group of child elements may start with, with the attributes that they need.
    pub(super) fn child_tags(&self) -> Option<String> {
        let Self::Children(groups) = self else {
            return None;
        };
        let tags: Vec<String> = groups
            .starts()
            .filter_map(|place| groups.rule(place).map(|rule| rule.example_tag()))
            .collect();
        (!tags.is_empty()).then(|| tags.join(" or "))
    }
}

impl Rule {
    /// Returns its start tag, with the attributes that it needs.
    fn example_tag(&self) -> String {
        let needed = self.attributes.iter().flatten();
        let needed = needed.filter(|attribute| attribute.is_required);
        let attributes: String = needed
            .map(|attribute| format!(" {}=\"...\"", attribute.name))
            .collect();
        match self.body {
            Body::Empty => format!("<{}{attributes}/>", self.name),
            _ => format!("<{}{attributes}>", self.name),
        }
    }
}

/// Groups of elements and how many there must be.
#[derive(Debug)]
pub(super) struct Groups {
    /// The groups to choose from.
    pub(super) groups: Vec<Vec<Arc<Rule>>>,
    /// Minimum number of groups.
    pub(super) min: usize,
}

/// A place in the groups: which group, and which of its elements.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GroupPosition {
    group: u32,
    index: u32,
}

impl GroupPosition {
    /// Tells whether a group is begun.
    pub(super) fn is_inside(self) -> bool {
        self.index > 0
    }
}

impl Groups {
    /// Returns the rule of the element at a place.
    pub(super) fn rule(&self, place: GroupPosition) -> Option<&Arc<Rule>> {
        let group = self.groups.get(place.group as usize)?;
        group.get(place.index as usize)
    }

    /// Returns the places of the elements that may start a group.
    pub(super) fn starts(&self) -> impl Iterator<Item = GroupPosition> {
        let place = |(group, _)| GroupPosition { group, index: 0 };
        (0..).zip(&self.groups).map(place)
    }

    /// Returns the place after an element.
    pub(super) fn after(&self, place: GroupPosition) -> GroupPosition {
        let next = GroupPosition {
            index: place.index + 1,
            ..place
        };
        match self.rule(next) {
            Some(_) => next,
            None => GroupPosition::default(),
        }
    }
}

/// One parameter as a child element.
#[derive(Debug)]
pub(super) struct Parameter {
    /// Its element.
    pub(super) rule: Arc<Rule>,
    /// True when it may come again.
    pub(super) is_repeated: bool,
    /// True when it must be given.
    pub(super) is_required: bool,
    /// Words in front of the error that it is missing.
    pub(super) missing: Option<String>,
}

impl Table {
    /// Prepares a grammar.
    pub(super) fn new(grammar: &Grammar) -> Self {
        let rules: Vec<Arc<Rule>> = grammar.tools.iter().map(rule).collect();
        let mut longest_name = "tools".len();
        for rule in &rules {
            longest_name = longest_name.max(longest(rule));
        }
        let mut also_called: HashMap<String, Vec<String>> = HashMap::new();
        for (name, tool) in &grammar.also_called {
            let name = name.to_ascii_lowercase();
            also_called.entry(name).or_default().push(tool.clone());
        }
        let mut exact = rules;
        exact.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            also_called,
            unlisted: grammar.unlisted.clone(),
            not_offered: grammar.not_offered.clone(),
            by_length: by_length(&exact),
            exact,
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
        let known = self.by_length.get(name.len())?;
        let exact = known.iter().find(|rule| *rule.name == *name);
        match mode {
            Mode::Strict => exact,
            Mode::Repair => exact.or_else(|| known.iter().find(|r| mode.is_same(name, &r.name))),
        }
    }

    /// Returns a hint for an unknown tool: that it is not offered, else a tool with that alias, else a tool with a
    /// similar name, else a list of the tools.
    pub(super) fn suggestion(&self, name: &str) -> String {
        if self
            .not_offered
            .iter()
            .any(|tool| is_same_name(tool.as_bytes(), name.as_bytes()))
        {
            return format!("that tool exists and is not offered here; {}", self.list());
        }
        let meant = self.also_called.get(&name.to_ascii_lowercase());
        if let Some(tools) = meant {
            let tools: Vec<String> = tools.iter().map(|tool| format!("`{tool}`")).collect();
            return format!("did you mean {}?", tools.join(" or "));
        }
        did_you_mean(name, self.listed()).unwrap_or_else(|| self.list())
    }

    fn list(&self) -> String {
        let names: Vec<&str> = self.listed().take(MAX_LISTED).collect();
        format!("use one of the tools {}", names.join(", "))
    }

    /// Returns the names of the tools that hints may name.
    fn listed(&self) -> impl Iterator<Item = &str> {
        self.names().filter(|name| self.is_listed(name))
    }

    /// Tells whether hints may name a tool.
    pub(super) fn is_listed(&self, name: &str) -> bool {
        self.unlisted.iter().all(|unlisted| unlisted != name)
    }

    /// Tells whether a name in lower case is another name of a tool.
    pub(super) fn is_alias(&self, name: &str) -> bool {
        self.also_called.contains_key(name)
    }

    /// Returns the names of all tools, in alphabetical order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.exact.iter().map(|rule| rule.name.as_str())
    }
}

fn by_length(rules: &[Arc<Rule>]) -> Vec<Vec<Arc<Rule>>> {
    let longest = rules.iter().map(|rule| rule.name.len()).max();
    let mut table = vec![Vec::new(); longest.map_or(0, |longest| longest + 1)];
    for rule in rules {
        if let Some(same) = table.get_mut(rule.name.len()) {
            same.push(Arc::clone(rule));
        }
    }
    table
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
        missing: None,
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
        .map(|a| Attribute {
            missing: a.missing.clone(),
            ..attribute(&a.name, a.is_required)
        })
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
        missing: parameter.missing.clone(),
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
