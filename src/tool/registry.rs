//! The registry of all tools, independent of their types.
//!
//! The parser, help, prompt and grammars read it; calls are decoded through it.

use std::sync::LazyLock;

use serde_json::Value;

use crate::tool::decode::{self, TextMode};
use crate::tool::schema::{ArgumentSchema, Property};
use crate::tool::service::Service;
use crate::tool::spec::{Family, Spec};
use karyi_core::call::{RawCall, RawElement};
use karyi_core::error::Diagnostic;
use karyi_syntax::grammar::Grammar;

/// One tool of the registry; `C` is the typed call.
pub struct Entry<C> {
    /// Its declaration.
    pub spec: Spec,
    /// Name for people.
    pub title: String,
    /// Schema of the arguments, built on first use.
    pub schema: Lazy<ArgumentSchema>,
    /// Schema of the result, when callers may rely on it.
    pub output_schema: Lazy<Option<ArgumentSchema>>,
    /// Properties for callers of a server.
    pub service: Service,
    /// Decodes JSON arguments into a typed call.
    pub from_json: fn(Value) -> Result<C, serde_json::Error>,
    /// Records the source form of texts in a typed call.
    pub note_sources: fn(&mut C, &RawElement),
}

/// A value that is built on first use.
pub type Lazy<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;

/// Returns the name of a tool for people: its own, else the wire name with spaces.
#[must_use]
pub fn title(own: Option<&str>, name: &str) -> String {
    if let Some(own) = own {
        return own.to_owned();
    }
    let words = name.replace('_', " ");
    let mut chars = words.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

/// All tools, in documentation order.
pub struct Registry<C> {
    entries: Vec<Entry<C>>,
    /// Tools that are known and in no list: a call of one says why.
    hidden: Vec<Entry<C>>,
    /// Names of tools that exist and are not offered.
    not_offered: Vec<&'static str>,
}

impl<C> Registry<C> {
    /// Creates a registry from its rows.
    #[must_use]
    pub fn new(entries: Vec<Entry<C>>) -> Self {
        Self {
            entries,
            hidden: Vec::new(),
            not_offered: Vec::new(),
        }
    }

    /// Returns the registry reduced to the tools that match.
    #[must_use]
    pub fn only(mut self, is_fit: impl Fn(&Entry<C>) -> bool) -> Self {
        self.entries.retain(is_fit);
        self
    }

    /// Returns the registry of the tools that are offered. It remembers the names of the others.
    #[must_use]
    pub fn offering(mut self, is_offered: impl Fn(&Entry<C>) -> bool) -> Self {
        let others = self.entries.iter().filter(|entry| !is_offered(entry));
        self.not_offered = others.map(|entry| entry.spec.name).collect();
        self.only(is_offered)
    }

    /// Returns the registry with the tools that match left out of lists. Their calls are still read.
    #[must_use]
    pub fn hiding(mut self, is_hidden: impl Fn(&Entry<C>) -> bool) -> Self {
        let (hidden, shown) = self.entries.into_iter().partition(|entry| is_hidden(entry));
        (self.entries, self.hidden) = (shown, hidden);
        self
    }

    /// Returns the registry without the optional arguments that match, to be shown to those who may not give them.
    #[must_use]
    pub fn without_arguments(mut self, is_left_out: impl Fn(&Property<'_>) -> bool) -> Self {
        for entry in &mut self.entries {
            let schema = entry.schema.without(&is_left_out);
            entry.schema = Lazy::new(Box::new(|| schema));
        }
        self
    }

    /// Returns the names of tools that exist and are not offered.
    #[must_use]
    pub fn not_offered(&self) -> &[&'static str] {
        &self.not_offered
    }

    /// Returns the entries, in documentation order.
    #[must_use]
    pub fn into_entries(self) -> Vec<Entry<C>> {
        self.entries
    }

    /// Returns the tools of a list, in documentation order.
    #[must_use]
    pub fn entries(&self) -> &[Entry<C>] {
        &self.entries
    }

    /// Returns the tools of one family.
    pub fn family(&self, family: Family) -> impl Iterator<Item = &Entry<C>> {
        self.entries
            .iter()
            .filter(move |entry| entry.spec.family == family)
    }

    /// Returns the tool `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry<C>> {
        self.known().find(|entry| entry.spec.name == name)
    }

    /// Tells whether the tool `name` is in lists.
    #[must_use]
    pub fn lists(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.spec.name == name)
    }

    fn known(&self) -> impl Iterator<Item = &Entry<C>> {
        self.entries.iter().chain(&self.hidden)
    }

    /// Returns the grammar the parser needs.
    #[must_use]
    pub fn grammar(&self) -> Grammar {
        let rule = |entry: &Entry<C>| entry.schema.element_rule(&entry.spec);
        // A hint leads to no tool that a call may not use.
        let also_called = self.entries.iter().flat_map(|entry| {
            // A tool that is offered is meant by its name.
            let names = entry.spec.also_called.iter();
            let names = names.filter(|name| self.get(name).is_none());
            names.map(|name| ((*name).to_owned(), entry.spec.name.to_owned()))
        });
        Grammar {
            tools: self.known().map(rule).collect(),
            also_called: also_called.collect(),
            unlisted: self
                .hidden
                .iter()
                .map(|entry| entry.spec.name.to_owned())
                .collect(),
            // A name for which an offered tool is meant is not said to be missing.
            not_offered: self
                .not_offered
                .iter()
                .filter(|name| {
                    !self
                        .known()
                        .any(|entry| entry.spec.also_called.contains(name))
                })
                .map(|name| (*name).to_owned())
                .collect(),
        }
    }

    /// Decodes a raw call into a typed one.
    ///
    /// # Errors
    /// An argument that does not fit its type; the diagnostic names its path.
    pub fn decode(&self, call: &RawCall) -> Result<C, Box<Diagnostic>> {
        let name = &call.element.name;
        let Some(entry) = self.get(name) else {
            let message = format!("no tool is called {name:?}");
            return Err(decode::mismatch(
                &call.element,
                message,
                "see `karyi tools` for the list".into(),
            ));
        };
        let arguments = decode::arguments(call, &entry.spec, &entry.schema, TextMode::Normalised)?;
        let mut decoded = (entry.from_json)(arguments).map_err(|error| {
            let hint = format!("see `karyi tools {name}` for the arguments and their types");
            decode::mismatch(
                &call.element,
                format!("an argument of <{name}> does not fit: {error}"),
                hint,
            )
        })?;
        (entry.note_sources)(&mut decoded, &call.element);
        Ok(decoded)
    }
}
