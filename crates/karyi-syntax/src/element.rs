//! Open elements: allowed children, required parts, and the finished element.

use std::collections::HashSet;
use std::sync::Arc;

use super::attribute::ParsedAttribute;
use super::chars::is_name;
use super::event::Mode;
use super::fault::{Fault, Outcome, did_you_mean, shown};
use super::grammar::LeafKind;
use super::repairs::Repair;
use super::slips;
use super::source::Mark;
use super::table::{Body, GroupPosition, Groups, Parameter, Rule, Table};
use super::usage::{usage, with_usage};
use karyi_core::call::{Name, RawAttribute, RawBody, RawElement, RawText};
use karyi_core::error::Code;
use karyi_core::span::Span;

/// An element whose end tag has not come.
#[derive(Debug)]
pub(super) struct OpenElement {
    /// Its rule.
    pub(super) rule: Arc<Rule>,
    /// Its name: as declared, or as written for elements without declaration.
    pub(super) name: Name,
    /// Its name as written, where a slip stands for another name.
    pub(super) written: Option<Name>,
    /// Its opening tag.
    pub(super) mark: Mark,
    /// Its attributes.
    pub(super) attributes: Vec<RawAttribute>,
    /// Its child elements so far.
    pub(super) children: Vec<RawElement>,
    /// The place in the groups of the next child; the default where any group may start.
    pub(super) place: GroupPosition,
    /// The word that an attribute gives instead of the text.
    pub(super) word: Option<String>,
    /// True when the text is the path that the attribute `src` lacks.
    pub(super) is_path: bool,
    /// A comment before any child.
    pub(super) comment: Option<Box<Mark>>,
}

impl OpenElement {
    /// Returns the rule of the child element `name` whose opening tag has `length` bytes, and
    /// moves on in the group.
    pub(super) fn child(
        &mut self,
        name: &str,
        length: usize,
        table: &Table,
        mode: Mode,
    ) -> Outcome<Arc<Rule>> {
        match &self.rule.body {
            Body::Children(groups) => {
                let (place, rule) = self.next_in_group(groups, name, length, mode)?;
                let rule = Arc::clone(rule);
                self.place = place;
                Ok(rule)
            }
            Body::Parameters(parameters) => self.argument(parameters, name, length, mode),
            Body::Value => Ok(Arc::clone(&table.inner)),
            Body::Empty | Body::Leaf(_) => Err(self.unexpected(name, length, "no elements")),
        }
    }

    /// Returns the place in the groups after the child, and its rule.
    fn next_in_group<'g>(
        &self,
        groups: &'g Groups,
        name: &str,
        length: usize,
        mode: Mode,
    ) -> Outcome<(GroupPosition, &'g Arc<Rule>)> {
        let is_named = |rule: &&Arc<Rule>| mode.is_same(name, &rule.name);
        if self.place.is_inside() {
            let expected = groups.rule(self.place);
            return match expected.filter(is_named) {
                Some(rule) => Ok((groups.after(self.place), rule)),
                None => {
                    let expected = expected.map_or("", |rule| &rule.name);
                    Err(self.unexpected(name, length, &format!("<{expected}> here")))
                }
            };
        }
        let found = groups.starts().find_map(|place| {
            let rule = groups.rule(place).filter(is_named)?;
            Some((groups.after(place), rule))
        });
        found.ok_or_else(|| {
            let names: Vec<String> = first_names(groups)
                .map(|name| format!("<{name}>"))
                .collect();
            self.unexpected(name, length, &names.join(" or "))
        })
    }

    /// Returns the name that its end tag repeats.
    pub(super) fn tag_name(&self) -> &str {
        self.written.as_ref().unwrap_or(&self.name)
    }

    fn argument(
        &self,
        parameters: &[Parameter],
        name: &str,
        length: usize,
        mode: Mode,
    ) -> Outcome<Arc<Rule>> {
        let find = |name: &str| parameters.iter().find(|p| mode.is_same(name, &p.rule.name));
        let meant = || match mode {
            Mode::Strict => None,
            Mode::Repair => {
                let names = parameters.iter().map(|p| p.rule.name.as_str());
                slips::other_name(name, names).and_then(find)
            }
        };
        let Some(parameter) = find(name).or_else(meant) else {
            return Err(self.unexpected(name, length, "one of its parameters"));
        };
        let declared = &parameter.rule.name;
        let is_attribute = self
            .attributes
            .iter()
            .any(|attribute| attribute.name == *declared);
        let is_again = !parameter.is_repeated && self.children.iter().any(|c| c.name == *declared);
        if is_attribute || is_again {
            let how = if is_attribute {
                "as attribute and as element"
            } else {
                "twice"
            };
            let message = format!("<{}> has the argument `{declared}` {how}", self.name);
            return Err(Fault::ahead(Code::DuplicateAttribute, 0, length, message));
        }
        Ok(Arc::clone(&parameter.rule))
    }

    fn unexpected(&self, name: &str, length: usize, expected: &str) -> Box<Fault> {
        let message = format!("<{}> holds {expected}, found <{}>", self.name, shown(name));
        let fault = Fault::ahead(Code::UnexpectedElement, 0, length, message);
        let known = self.rule.child_names();
        let slip = known.iter().all(|known| *known != name);
        let meant = did_you_mean(name, known.into_iter()).filter(|_| slip);
        match (meant, usage(&self.rule)) {
            (Some(hint), _) => fault.with_hint(with_usage(hint, &self.rule)),
            (None, Some(form)) => fault.with_hint(format!("write {form}")),
            (None, None) => fault,
        }
    }

    /// Checks that nothing is missing at the end of the element.
    pub(super) fn check_complete(&self, mode: Mode) -> Outcome<()> {
        match &self.rule.body {
            Body::Children(groups) => self.check_groups(groups),
            Body::Parameters(parameters) => self.check_arguments(parameters),
            Body::Value => self.check_comment(mode),
            Body::Empty | Body::Leaf(_) => Ok(()),
        }
    }

    fn check_groups(&self, groups: &Groups) -> Outcome<()> {
        let missing = groups.rule(self.place);
        if let Some(missing) = missing.filter(|_| self.place.is_inside()) {
            let message = format!("<{}> needs <{}> before its end", self.name, missing.name);
            let hint = format!(
                "add <{0}>...</{0}> after the element before it",
                missing.name
            );
            let hint = with_usage(hint, &self.rule);
            return Err(Fault::at(Code::MissingChild, &self.mark, message).with_hint(hint));
        }
        // Groups are complete here, so counting their last elements counts them.
        let is_last = |name: &str| {
            groups
                .groups
                .iter()
                .filter_map(|g| g.last())
                .any(|r| r.name == name)
        };
        let count = self
            .children
            .iter()
            .filter(|child| is_last(&child.name))
            .take(groups.min)
            .count();
        if count < groups.min {
            let names: Vec<String> = first_names(groups)
                .map(|name| format!("<{name}>"))
                .collect();
            let message = format!(
                "<{}> needs at least {} of {}",
                self.name,
                groups.min,
                names.join(" or ")
            );
            let hint = format!("add {} inside <{}>", names.join(" or "), self.name);
            let hint = with_usage(hint, &self.rule);
            return Err(Fault::at(Code::MissingChild, &self.mark, message).with_hint(hint));
        }
        Ok(())
    }

    fn check_arguments(&self, parameters: &[Parameter]) -> Outcome<()> {
        let is_given = |name: &str| {
            self.attributes.iter().any(|a| a.name == name)
                || self.children.iter().any(|c| c.name == name)
        };
        let declared = self.rule.attributes.iter().flatten();
        let required = declared.filter(|a| a.is_required).map(|a| a.name.as_str());
        let needed = parameters.iter().filter(|p| p.is_required);
        let needed = needed.map(|p| p.rule.name.as_str());
        let Some(missing) = required.chain(needed).find(|name| !is_given(name)) else {
            return Ok(());
        };
        let mut message = format!("<{}> needs the argument `{missing}`", self.name);
        let words = parameters.iter().filter(|p| *p.rule.name == *missing);
        if let Some(words) = words.filter_map(|p| p.missing.as_ref()).next() {
            message = format!("{words}: {message}");
        }
        let hint = format!(
            "add {missing}=\"...\" to the tag, or <{missing}>...</{missing}> inside the element"
        );
        Err(Fault::at(Code::MissingAttribute, &self.mark, message).with_hint(hint))
    }

    /// A comment in an argument without elements would vanish from its text.
    fn check_comment(&self, mode: Mode) -> Outcome<()> {
        match &self.comment {
            Some(comment) if self.children.is_empty() => Err(Fault::at(
                comment_code(mode),
                comment,
                format!("<{}> holds a comment in its text", self.name),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the fault of an element without its path.
    pub(super) fn lacks_path(&self) -> Box<Fault> {
        let message = format!("<{}> needs the attribute `src`", self.name);
        let fault = Fault::at(Code::MissingAttribute, &self.mark, message);
        fault.with_hint(format!("write <{} src=\"...\">", self.name))
    }

    /// Takes the text for the path that the tag lacks.
    pub(super) fn take_path(&mut self, text: &str) -> Outcome<()> {
        let path = text.trim();
        if path.is_empty() {
            return Err(self.lacks_path());
        }
        self.attributes.push(RawAttribute {
            name: "src".into(),
            value: path.to_owned(),
        });
        Ok(())
    }

    /// Makes the complete element, with the text it holds if it may hold text.
    pub(super) fn into_element(self, text: Option<RawText>, end_offset: u64) -> RawElement {
        let body = match text {
            Some(text) => RawBody::Text(text),
            None if self.children.is_empty() => RawBody::Empty,
            None => RawBody::Elements(self.children),
        };
        RawElement {
            name: self.name,
            span: Span {
                start: self.mark.position,
                end_offset,
            },
            attributes: self.attributes,
            body,
        }
    }
}

/// Returns the code of a comment where text may stand.
pub(super) fn comment_code(mode: Mode) -> Code {
    match mode {
        Mode::Strict => Code::MarkupInText,
        Mode::Repair => Code::UnexpectedMarkup,
    }
}

fn first_names(groups: &Groups) -> impl Iterator<Item = &str> {
    groups
        .groups
        .iter()
        .filter_map(|g| g.first())
        .map(|r| r.name.as_str())
}

/// The attributes of one tag while they are checked.
pub(super) struct Attributes<'r> {
    rule: &'r Rule,
    name: &'r str,
    /// Bytes of the tag.
    length: usize,
    mode: Mode,
    /// Names so far, when no list of attributes bounds them.
    seen: Option<HashSet<&'r str>>,
    /// Accepted attributes.
    pub(super) passed: Vec<RawAttribute>,
    /// The call's own id, for a tool.
    pub(super) id: Option<String>,
    /// The word that stands in the attribute `key` instead of the text.
    pub(super) word: Option<String>,
    is_tool: bool,
}

/// Meaning of an attribute.
enum Meaning {
    /// One of the rule, and the repair that its name needs.
    Name(Name, Option<Repair>),
    /// The id of a tool.
    Id,
    /// The text of the element.
    Word,
    /// Nothing.
    Explanation,
}

impl<'r> Attributes<'r> {
    /// Starts with the tag `name` of `length` bytes.
    pub(super) fn new(rule: &'r Rule, name: &'r str, length: usize, mode: Mode) -> Self {
        Self {
            rule,
            name,
            length,
            mode,
            seen: None,
            passed: Vec::new(),
            id: None,
            word: None,
            is_tool: false,
        }
    }

    /// Allows the attribute `id`.
    pub(super) fn of_tool(mut self) -> Self {
        self.is_tool = true;
        self
    }

    /// Adds the next attribute; returns the repair that it needed.
    pub(super) fn add(&mut self, written: ParsedAttribute<'r>) -> Outcome<Option<Repair>> {
        let (declared, repair) = match self.declared(written.name)? {
            Meaning::Name(name, repair) => (name, repair),
            Meaning::Id => return self.add_id(written),
            Meaning::Explanation => return Ok(Some(Repair::R12)),
            Meaning::Word if self.word.is_some() => return Err(self.twice("key")),
            Meaning::Word => {
                self.word = Some(written.value);
                return Ok(Some(Repair::R10));
            }
        };
        let is_again = match self.rule.attributes {
            Some(_) => self.passed.iter().any(|a| a.name == declared),
            None => !self.seen.get_or_insert_default().insert(written.name),
        };
        if is_again {
            return Err(self.twice(&declared));
        }
        let plain = match self.rule.body {
            Body::Leaf(_) if declared == "timeout" && self.mode == Mode::Repair => {
                slips::seconds(&written.value)
            }
            _ => None,
        };
        let repair = if plain.is_some() {
            Some(Repair::R9)
        } else {
            repair
        };
        self.passed.push(RawAttribute {
            name: declared,
            value: plain.unwrap_or(written.value),
        });
        Ok(repair)
    }

    /// Returns the meaning of an attribute.
    fn declared(&self, name: &str) -> Outcome<Meaning> {
        if self.is_tool && self.mode.is_same(name, "id") {
            return Ok(Meaning::Id);
        }
        let Some(known) = &self.rule.attributes else {
            return match is_name(name) {
                true => Ok(Meaning::Name(name.into(), None)),
                false => Err(self.fault(
                    Code::BadAttribute,
                    format!("`{}` is no attribute name", shown(name)),
                )),
            };
        };
        if let Some(attribute) = known.iter().find(|a| self.mode.is_same(name, &a.name)) {
            let repair = (attribute.name != name).then_some(Repair::R7);
            return Ok(Meaning::Name(attribute.name.clone(), repair));
        }
        let names = known.iter().map(|attribute| attribute.name.as_str());
        match (self.rule.leaf(), slips::other_name(name, names)) {
            _ if self.mode == Mode::Strict => Err(self.unknown(name)),
            (_, Some(other)) => Ok(Meaning::Name(other.into(), Some(Repair::R11))),
            (Some(LeafKind::Word(_)), None) if name.eq_ignore_ascii_case("key") => {
                Ok(Meaning::Word)
            }
            _ if slips::is_explanation(name) => Ok(Meaning::Explanation),
            _ => Err(self.unknown(name)),
        }
    }

    fn add_id(&mut self, written: ParsedAttribute<'_>) -> Outcome<Option<Repair>> {
        if self.id.is_some() {
            return Err(self.twice("id"));
        }
        if written.value.trim().is_empty() {
            let fault = self.fault(Code::BadAttribute, "attribute `id` is empty".into());
            return Err(fault.with_hint("give the call a name, or leave `id` out"));
        }
        self.id = Some(written.value);
        Ok((written.name != "id").then_some(Repair::R7))
    }

    /// Checks that no required attribute is missing. Returns true when only `src` is, and the text may be the path.
    pub(super) fn check_complete(&self, is_empty: bool) -> Outcome<bool> {
        if let Body::Parameters(_) = self.rule.body {
            return Ok(false);
        }
        let is_given = |name: &str| self.passed.iter().any(|a| a.name == name);
        let mut required = self
            .rule
            .attributes
            .iter()
            .flatten()
            .filter(|a| a.is_required);
        let Some(missing) = required.find(|a| !is_given(&a.name)) else {
            return Ok(false);
        };
        let is_bare = matches!(self.rule.body, Body::Empty) && self.mode == Mode::Repair;
        if is_bare && !is_empty && missing.name == "src" {
            return Ok(true);
        }
        let mut message = format!("<{}> needs the attribute `{}`", self.name, missing.name);
        if let Some(words) = &missing.missing {
            message = format!("{words}: {message}");
        }
        let hint = format!("write <{} {}=\"...\">", self.name, missing.name);
        Err(self.fault(Code::MissingAttribute, message).with_hint(hint))
    }

    fn unknown(&self, name: &str) -> Box<Fault> {
        let message = format!("<{}> has no attribute `{}`", self.name, shown(name));
        let fault = self.fault(Code::UnknownAttribute, message);
        let known: Vec<&str> = self
            .rule
            .attributes
            .iter()
            .flatten()
            .map(|a| a.name.as_str())
            .collect();
        if self.rule.body.has_child(name) {
            let hint = format!(
                "write it as an element: <{0}><{name}>...</{name}></{0}>",
                self.name
            );
            return fault.with_hint(hint);
        }
        let hint =
            did_you_mean(name, known.iter().copied()).unwrap_or_else(|| match known.is_empty() {
                true => format!("<{}> takes no attribute here; remove it", self.name),
                false => format!("remove it; <{}> takes {}", self.name, known.join(", ")),
            });
        fault.with_hint(with_usage(hint, self.rule))
    }

    fn twice(&self, name: &str) -> Box<Fault> {
        let message = format!("<{}> has the attribute `{}` twice", self.name, shown(name));
        self.fault(Code::DuplicateAttribute, message)
    }

    fn fault(&self, code: Code, message: String) -> Box<Fault> {
        Fault::ahead(code, 0, self.length, message)
    }
}
