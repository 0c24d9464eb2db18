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

/// Parsed policy file. It can only narrow policies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyFile {
    terms: BTreeMap<SecretName, PolicyTerms>,
}

/// Returns the position and kind of a problem in fixed words: the file may be a list of values by mistake, which the
/// parser's message could quote.
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

/// Prefixes of parser messages, and the messages that replace them.
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

/// Message for all other problems.
const UNREADABLE: &str = "it cannot be read";

/// File content as deserialised.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    secret: BTreeMap<String, PolicyTerms>,
}

impl PolicyFile {
    /// Parses a policy file. Unknown content is an error, since it would seem to protect something.
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

    /// Returns the names of unknown secrets: they may be added later, or be misspelled.
    ///
    /// # Errors
    /// `bad_policy` for a name that differs from a known one only in case, and would protect nothing.
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

    /// Returns a policy narrowed by this file. Names that differ only in case match, too.
    #[must_use]
    pub fn narrow(&self, name: &SecretName, policy: &Policy) -> Policy {
        let mut named = self.terms.iter();
        let is_meant = |known: &SecretName| known == name || known.differs_only_in_case(name);
        let Some((_, terms)) = named.find(|(known, _)| is_meant(known)) else {
            return policy.clone();
        };
        // The terms were checked by `parse`; if they fail here, nothing is permitted.
        policy.narrowed(terms).unwrap_or_else(|_| Policy {
            expires: Some(Timestamp::MIN),
            ..policy.clone()
        })
    }
}
