//! A policy file: TOML tables `[secret.NAME]` whose keys are the names of the flags.
//!
//! ```toml
//! [secret.GITHUB_TOKEN]
//! tools = ["command"]
//! commands = ["gh", "curl"]
//! ```

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::{Policy, Terms, bad};
use crate::error::ToolError;
use crate::secret::SecretName;

/// What a policy file says. It can only narrow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyFile {
    terms: BTreeMap<SecretName, Terms>,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    secret: BTreeMap<String, Terms>,
}

impl PolicyFile {
    /// Reads a policy file. Everything in it must mean something, or it would seem to protect what
    /// it does not.
    ///
    /// # Errors
    /// `bad_policy`, with the place.
    pub fn parse(text: &str) -> Result<Self, ToolError> {
        let document: Document = toml::from_str(text).map_err(|error| {
            let message = error.to_string();
            bad(message.trim_end().to_owned())
        })?;
        let mut terms = BTreeMap::new();
        for (key, said) in document.secret {
            let name = SecretName::parse(&key)
                .ok_or_else(|| bad(format!("[secret.{key}]: {key:?} is no name of a secret")))?;
            let checked = Policy::unrestricted().narrowed(&said);
            checked.map_err(|error| bad(format!("[secret.{name}]: {}", error.message)))?;
            terms.insert(name, said);
        }
        Ok(Self { terms })
    }

    /// Returns a secret's policy as this file narrows it.
    #[must_use]
    pub fn narrow(&self, name: &SecretName, policy: &Policy) -> Policy {
        let Some(terms) = self.terms.get(name) else {
            return policy.clone();
        };
        // Terms were checked when the file was read; should one not hold, nothing is allowed.
        policy.narrowed(terms).unwrap_or_else(|_| Policy {
            expires: Some(Timestamp::MIN),
            ..policy.clone()
        })
    }
}
