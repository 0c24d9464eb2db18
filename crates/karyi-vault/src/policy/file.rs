//! A policy file: TOML tables `[secret.NAME]` whose keys are the names of the flags.
//!
//! ```toml
//! [secret.GITHUB_TOKEN]
//! tools = ["command"]
//! commands = ["gh", "curl"]
//! ```

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;

use super::{Policy, PolicyTerms, bad};
use karyi_core::error::ToolError;
use karyi_core::secret::SecretName;

/// What a policy file says. It can only narrow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyFile {
    terms: BTreeMap<SecretName, PolicyTerms>,
}

/// Returns where a file is wrong, and how, in words of karyi's own: what stands there may be a list of values by
/// mistake, and the parser's message could quote it.
fn problem(text: &str, error: &toml::de::Error) -> String {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or_default();
    let line = 1 + before.matches('\n').count();
    let column = 1 + before.chars().rev().take_while(|c| *c != '\n').count();
    let known = PROBLEMS.iter();
    let mut known = known.filter(|(start, _)| error.message().starts_with(start));
    let said = known.next().map_or(UNREADABLE, |(_, said)| *said);
    format!("no TOML of a policy at line {line}, column {column}: {said}")
}

/// How messages of the parser begin, and what is said instead.
const PROBLEMS: &[(&str, &str)] = &[
    (
        "unknown field",
        "unknown field: there are tables [secret.NAME] with tools, hosts, commands, dirs, use, output, write, \
         expires and allow-short",
    ),
    (
        "unknown variant",
        "unknown word: use is ask, session or always, and output is redact or sealed",
    ),
    (
        "invalid type",
        "wrong type: tools, hosts, commands and dirs are lists, write and allow-short are true or false, the others \
         are texts",
    ),
    ("duplicate key", "a key that is there twice"),
];

/// What is said of everything else.
const UNREADABLE: &str = "it cannot be read";

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    secret: BTreeMap<String, PolicyTerms>,
}

impl PolicyFile {
    /// Reads a policy file. Everything in it must mean something, or it would seem to protect what
    /// it does not.
    ///
    /// # Errors
    /// `bad_policy`, with the place.
    pub fn parse(text: &str) -> Result<Self, ToolError> {
        let document: Document =
            toml::from_str(text).map_err(|error| bad(problem(text, &error)))?;
        let mut terms = BTreeMap::new();
        for (key, said) in document.secret {
            let name = SecretName::parse(&key)
                .ok_or_else(|| bad("a table [secret...] is for what is no name of a secret"))?;
            let checked = Policy::unrestricted().narrowed(&said);
            checked.map_err(|error| ToolError {
                message: format!("[secret.{name}]: {}", error.message),
                ..error
            })?;
            if let Some(other) = terms
                .keys()
                .find(|o: &&SecretName| o.differs_only_in_case(&name))
            {
                let message = format!("[secret.{other}] and [secret.{name}] differ only in case");
                return Err(bad(message));
            }
            terms.insert(name, said);
        }
        Ok(Self { terms })
    }

    /// Returns the names that none of the known secrets has: they may come, or be misspelt.
    ///
    /// # Errors
    /// `bad_policy` for a name that differs from a known one only in case: it is meant for that, and
    /// would protect nothing.
    pub fn unknown(&self, known: &BTreeSet<SecretName>) -> Result<Vec<SecretName>, ToolError> {
        let unknown = self.terms.keys().filter(|name| !known.contains(*name));
        let unknown: Vec<SecretName> = unknown.cloned().collect();
        for name in &unknown {
            if let Some(meant) = known.iter().find(|meant| meant.differs_only_in_case(name)) {
                let message = format!("[secret.{name}]: the secret is called {meant}");
                return Err(bad(message).with_hint(format!("write [secret.{meant}]")));
            }
        }
        Ok(unknown)
    }

    /// Returns a secret's policy as this file narrows it. A secret that comes later, under a name that
    /// differs from one in the file only in case, is narrowed, too.
    #[must_use]
    pub fn narrow(&self, name: &SecretName, policy: &Policy) -> Policy {
        let mut named = self.terms.iter();
        let is_meant = |known: &SecretName| known == name || known.differs_only_in_case(name);
        let Some((_, terms)) = named.find(|(known, _)| is_meant(known)) else {
            return policy.clone();
        };
        // PolicyTerms were checked when the file was read; should one not hold, nothing is allowed.
        policy.narrowed(terms).unwrap_or_else(|_| Policy {
            expires: Some(Timestamp::MIN),
            ..policy.clone()
        })
    }
}
