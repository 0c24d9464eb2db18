//! The offer: the tools that a surface has, chosen by words such as `core`, `read` and `-input`.

use std::collections::BTreeSet;
use std::fmt;

use crate::tool::Registry;
use crate::tool::spec::Family;
use crate::tool::supervision::{SessionRole, roles_of};
use crate::tools::{self, Call};
use karyi_core::similar_names::similar_names;

/// Tools that a surface offers. The default are those of the family `core`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Names, in documentation order.
    names: Vec<&'static str>,
    /// Names of tools that the user has switched off.
    disabled: BTreeSet<String>,
}

/// Error of words that name no offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferError {
    /// The word is no family and no tool.
    Unknown(String),
    /// The word names tools that a session has by its role.
    NeedsRole(String),
    /// The word names tools that scripts cannot call.
    NotForScripts(String),
    /// The words take every tool away.
    Empty,
}

impl fmt::Display for OfferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) => {
                let registry = tools::for_scripts();
                let names = registry.entries().iter().map(|entry| entry.spec.name);
                let families: Vec<&str> = script_families().map(Family::as_str).collect();
                let near = similar_names(word, families.iter().copied().chain(names));
                write!(f, "{word:?} is no tool and no family of tools; ")?;
                match near.first() {
                    Some(near) => write!(f, "did you mean {near}?"),
                    None => write!(
                        f,
                        "the families are {}, and `karyi tools --family NAME` lists the tools of one",
                        families.join(" and ")
                    ),
                }
            }
            Self::NeedsRole(word) => write!(
                f,
                "{word:?} belongs to a supervisor; a session has such tools by `karyi run --role ROLE`"
            ),
            Self::NotForScripts(word) => write!(
                f,
                "{word:?} belongs to a site; `karyi serve` offers such tools, and so does `karyi mcp --tenant ID \
                 --site ID`"
            ),
            Self::Empty => f.write_str("no tool is left; name at least one"),
        }
    }
}

impl std::error::Error for OfferError {}

impl Default for Offer {
    fn default() -> Self {
        Self {
            names: family(Family::Core),
            disabled: BTreeSet::new(),
        }
    }
}

impl Offer {
    /// Parses words: a family or a tool adds, `-` before it takes away. Words that begin by taking away start from the
    /// default.
    ///
    /// # Errors
    /// An unknown word, a tool that scripts cannot call, or an offer without a tool.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, OfferError> {
        let mut words = words.into_iter().map(str::trim).peekable();
        let takes_away = words.peek().is_some_and(|word| word.starts_with('-'));
        let mut names = match takes_away {
            true => Self::default().names,
            false => Vec::new(),
        };
        for word in words {
            match word.strip_prefix('-') {
                Some(word) => {
                    let unwanted = named(word)?;
                    names.retain(|name| !unwanted.contains(name));
                }
                None => names.extend(named(word)?),
            }
        }
        let in_order = tools::for_scripts().only(|entry| names.contains(&entry.spec.name));
        let names: Vec<&str> = in_order
            .entries()
            .iter()
            .map(|entry| entry.spec.name)
            .collect();
        match names.is_empty() {
            true => Err(OfferError::Empty),
            false => Ok(Self {
                names,
                disabled: BTreeSet::new(),
            }),
        }
    }

    /// Returns the tools of a role. All others that scripts can call are in no list, and a call of one says why.
    #[must_use]
    pub fn of_role(role: SessionRole) -> Self {
        let registry = tools::for_scripts();
        let names = registry.entries().iter().map(|entry| entry.spec.name);
        let names: Vec<&str> = names.collect();
        let lacking = names.iter().filter(|name| !roles_of(name).contains(&role));
        Self {
            disabled: lacking.map(|name| (*name).to_owned()).collect(),
            names,
        }
    }

    /// Returns the offer with tools that are switched off: they are in no list, and a call of one says why.
    #[must_use]
    pub fn disabling<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.disabled = names.into_iter().map(str::to_owned).collect();
        self
    }

    /// Returns the offer without one tool.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.names.retain(|offered| *offered != name);
        self
    }

    /// Returns true when the tool `name` is offered.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// Returns the registry of the offered tools. It remembers the names of the others, for error messages.
    #[must_use]
    pub fn registry(&self) -> Registry<Call> {
        let offered = tools::for_scripts().offering(|entry| self.has(entry.spec.name));
        offered.hiding(|entry| self.disabled.contains(entry.spec.name))
    }
}

fn script_families() -> impl Iterator<Item = Family> {
    let all = Family::ALL.iter().copied();
    all.filter(|family| family.is_for_scripts() && *family != Family::Supervisor)
}

fn family(family: Family) -> Vec<&'static str> {
    let registry = tools::all();
    let names = registry.family(family).map(|entry| entry.spec.name);
    names.collect()
}

/// Returns the tools that a word names.
fn named(word: &str) -> Result<Vec<&'static str>, OfferError> {
    let found = Family::ALL
        .iter()
        .find(|family| family.as_str() == word)
        .copied();
    let all = tools::all();
    let entry = all.get(word);
    let of = found.or(entry.map(|entry| entry.spec.family));
    match (of, entry) {
        (None, _) => Err(OfferError::Unknown(word.to_owned())),
        (Some(of), _) if !of.is_for_scripts() => Err(OfferError::NotForScripts(word.to_owned())),
        (Some(Family::Supervisor), _) => Err(OfferError::NeedsRole(word.to_owned())),
        (Some(_), Some(entry)) => Ok(vec![entry.spec.name]),
        (Some(of), None) => Ok(family(of)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: &[&str] = &[
        "command",
        "edit",
        "read",
        "get_value",
        "input",
        "ctrl",
        "plan",
    ];

    #[test]
    fn words_add_and_take_away() {
        let cases: &[(&[&str], &[&str])] = &[
            (&["core"], CORE),
            (&["read"], &["read"]),
            (&["input", "command", "command"], &["command", "input"]),
            (&["core", "-input", "-ctrl", "-plan"], &CORE[..4]),
            (
                &["-get_value"],
                &["command", "edit", "read", "input", "ctrl", "plan"],
            ),
            (&["read", "-core", "edit"], &["edit"]),
        ];
        for (words, names) in cases {
            let offer = Offer::parse(words.iter().copied()).unwrap();
            assert_eq!(offer.names, *names, "{words:?}");
        }
        assert_eq!(Offer::default(), Offer::parse(["core"]).unwrap());
    }

    #[test]
    fn bad_words_are_refused_by_name() {
        let cases: &[(&[&str], &str)] = &[
            (
                &["core", "reed"],
                "\"reed\" is no tool and no family of tools; did you mean read?",
            ),
            (&["-core"], "no tool is left; name at least one"),
            (&["read", "-read"], "no tool is left; name at least one"),
            (
                &[""],
                "\"\" is no tool and no family of tools; the families are core and assistant, and `karyi tools --family NAME` \
                 lists the tools of one",
            ),
        ];
        for (words, message) in cases {
            let error = Offer::parse(words.iter().copied()).unwrap_err();
            assert_eq!(error.to_string(), *message, "{words:?}");
        }
    }
}
