//! Tokens that may follow the end tag of a raw leaf (rule R2).

use std::sync::Arc;

use super::chars::{is_name_byte, is_name_start_byte, is_same_name, is_space};
use super::event::Mode;
use super::slips;
use super::table::{Body, Rule, Table};

/// Result of checking the token after an end tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FollowCheck {
    /// It may follow.
    Yes,
    /// It may not.
    No,
    /// More bytes decide.
    More,
}

/// The tokens that may follow.
pub(super) struct FollowSet<'a> {
    table: &'a Table,
    openers: Openers<'a>,
    /// The element around the leaf; its end tag may follow when it is complete without more.
    closer: Option<&'a str>,
}

enum Openers<'a> {
    /// Any tool.
    Tools,
    /// This element.
    One(&'a str),
    /// The first element of any group.
    Groups(&'a [Vec<Arc<Rule>>]),
    /// Any other parameter than this, which comes once.
    Parameters(&'a Rule, &'a str),
}

impl<'a> FollowSet<'a> {
    /// Returns what may follow a leaf that is a tool.
    pub(super) fn after_tool(table: &'a Table) -> Self {
        Self {
            table,
            openers: Openers::Tools,
            closer: Some("tools"),
        }
    }

    /// Returns what may follow the leaf `leaf` of `parent`, where `next` must come if given.
    pub(super) fn after_child(
        table: &'a Table,
        parent: &'a Rule,
        leaf: &'a str,
        next: Option<&'a Rule>,
    ) -> Self {
        let (openers, closer) = match (next, &parent.body) {
            (Some(next), _) => (Openers::One(&next.name), None),
            (None, Body::Children(groups)) => {
                (Openers::Groups(&groups.groups), Some(parent.name.as_str()))
            }
            (None, Body::Empty | Body::Leaf(_) | Body::Parameters(_) | Body::Value) => (
                Openers::Parameters(parent, leaf),
                Some(parent.name.as_str()),
            ),
        };
        Self {
            table,
            openers,
            closer,
        }
    }

    fn is_tool(&self) -> bool {
        matches!(self.openers, Openers::Tools)
    }

    fn opens(&self, fits: &dyn Fn(&str) -> bool) -> bool {
        match &self.openers {
            Openers::Tools => self.table.names().any(fits),
            Openers::One(name) => fits(name),
            Openers::Groups(groups) => groups
                .iter()
                .filter_map(|g| g.first())
                .any(|r| fits(&r.name)),
            Openers::Parameters(tool, leaf) => match &tool.body {
                Body::Parameters(parameters) => {
                    let may_come = |name: &str, is_repeated| is_repeated || name != *leaf;
                    let mut allowed = parameters
                        .iter()
                        .filter(|p| may_come(&p.rule.name, p.is_repeated));
                    allowed.any(|p| fits(&p.rule.name))
                }
                Body::Empty | Body::Leaf(_) | Body::Children(_) | Body::Value => false,
            },
        }
    }

    fn is_opener(&self, name: &str) -> bool {
        match self.openers {
            Openers::Tools => self.table.tool(name, Mode::Repair).is_some(),
            Openers::One(_) | Openers::Groups(_) => {
                self.opens(&|n| is_same_name(n.as_bytes(), name.as_bytes()))
            }
            Openers::Parameters(..) => self.opens(&|n| {
                is_same_name(n.as_bytes(), name.as_bytes())
                    || slips::other_name(name, std::iter::once(n)).is_some()
            }),
        }
    }

    /// Decides about the token at the start of `rest`, which has no white space before it.
    pub(super) fn decide(&self, rest: &[u8], is_last: bool) -> FollowCheck {
        let cut = match (is_last, self.is_tool()) {
            (false, _) => FollowCheck::More,
            // A message that ends here ends the tool; inside a tool its end is still missing.
            (true, true) => FollowCheck::Yes,
            (true, false) => FollowCheck::No,
        };
        match rest {
            [] | [b'<'] => cut,
            [b'<', b'!', ..] => starts(rest, b"<!--", cut),
            [b'<', b'/', name @ ..] => match self.name(name, b">") {
                Name::Is(name)
                    if self.closes(&|closer| is_same_name(closer.as_bytes(), name.as_bytes())) =>
                {
                    FollowCheck::Yes
                }
                Name::Cut(start) if !is_last || self.closes(&|closer| begins(closer, start)) => cut,
                Name::Is(_) | Name::Cut(_) | Name::No => FollowCheck::No,
            },
            [b'<', name @ ..] => match self.name(name, b">/") {
                Name::Is(name) if self.is_opener(name) => FollowCheck::Yes,
                Name::Cut(start) if !is_last || self.opens(&|name| begins(name, start)) => cut,
                Name::Is(_) | Name::Cut(_) | Name::No => FollowCheck::No,
            },
            _ => FollowCheck::No,
        }
    }

    fn closes(&self, fits: &dyn Fn(&str) -> bool) -> bool {
        self.closer.is_some_and(fits)
    }

    /// Reads the name in a tag that white space or one of `ends` must follow.
    fn name<'b>(&self, bytes: &'b [u8], ends: &[u8]) -> Name<'b> {
        let near = bytes.get(..=self.table.longest_name).unwrap_or(bytes);
        let length = near.iter().take_while(|b| is_name_byte(**b)).count();
        let Ok(name) = std::str::from_utf8(near.get(..length).unwrap_or_default()) else {
            return Name::No;
        };
        match near.get(length) {
            None if length > self.table.longest_name => Name::No,
            None => Name::Cut(name),
            Some(byte) if is_space(*byte) || ends.contains(byte) => Name::Is(name),
            Some(_) => Name::No,
        }
    }
}

/// The name in a tag.
enum Name<'b> {
    /// It is complete, and followed by a valid byte of a tag.
    Is(&'b str),
    /// The bytes end in it.
    Cut(&'b str),
    /// It is longer than any, or no tag.
    No,
}

/// Tells whether `start` is how `name` begins.
fn begins(name: &str, start: &str) -> bool {
    name.get(..start.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(start))
}

fn starts(rest: &[u8], token: &[u8], cut: FollowCheck) -> FollowCheck {
    match (rest.starts_with(token), token.starts_with(rest)) {
        (true, _) => FollowCheck::Yes,
        (false, true) => cut,
        (false, false) => FollowCheck::No,
    }
}

/// Longest name that [`opened_name`] reads, in bytes.
const MAX_NAME: usize = 64;

/// Returns the name that the opening tag at the start of `rest` has, if it is one.
pub(super) fn opened_name(rest: &[u8]) -> Option<&str> {
    let name = rest.strip_prefix(b"<")?;
    if !name.first().is_some_and(|b| is_name_start_byte(*b)) {
        return None;
    }
    let length = name
        .iter()
        .take(MAX_NAME)
        .take_while(|b| is_name_byte(**b))
        .count();
    std::str::from_utf8(name.get(..length)?).ok()
}

/// Tells whether that name may go on in bytes that are not here.
pub(super) fn is_name_cut(rest: &[u8]) -> bool {
    let name = rest.strip_prefix(b"<").unwrap_or(b" ");
    name.len() < MAX_NAME && name.iter().all(|b| is_name_byte(*b))
}
