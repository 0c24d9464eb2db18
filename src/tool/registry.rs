//! The list of all tools, as far as it can be walked without knowing their types.
//!
//! Parser, help, prompt and grammars read it; a call is decoded through it.

use std::sync::LazyLock;

use serde_json::Value;

use crate::tool::decode::{self, Texts};
use crate::tool::schema::ArgumentSchema;
use crate::tool::service::Service;
use crate::tool::spec::{Family, Spec};
use karyi_core::call::{RawCall, RawElement};
use karyi_core::error::Diagnostic;
use karyi_syntax::grammar::Grammar;

/// One tool of the list; `C` is the typed call the list is made for.
pub struct Entry<C> {
    /// Its declaration.
    pub spec: Spec,
    /// Its name for a person.
    pub title: String,
    /// The schema of its arguments, made when it is asked for: a run needs few of them.
    pub schema: Lazy<ArgumentSchema>,
    /// The schema of its result, when that is promised to callers.
    pub output_schema: Lazy<Option<ArgumentSchema>>,
    /// What the callers of a server must know of it.
    pub service: Service,
    /// Makes a typed call of JSON arguments.
    pub from_json: fn(Value) -> Result<C, serde_json::Error>,
    /// Notes how the texts of a typed call were written.
    pub note_sources: fn(&mut C, &RawElement),
}

/// Something that is made when it is first asked for.
pub type Lazy<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;

/// Returns the name of a tool for a person: the one it has, else its wire name with blanks.
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
}

impl<C> Registry<C> {
    /// Makes a registry of its rows.
    #[must_use]
    pub fn new(entries: Vec<Entry<C>>) -> Self {
        Self { entries }
    }

    /// Returns the registry of those tools that are fit for something.
    #[must_use]
    pub fn only(mut self, is_fit: impl Fn(&Entry<C>) -> bool) -> Self {
        self.entries.retain(is_fit);
        self
    }

    /// Takes the tools out, in documentation order.
    #[must_use]
    pub fn into_entries(self) -> Vec<Entry<C>> {
        self.entries
    }

    /// Returns every tool, in documentation order.
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
        self.entries.iter().find(|entry| entry.spec.name == name)
    }

    /// Returns the grammar the parser needs.
    #[must_use]
    pub fn grammar(&self) -> Grammar {
        let rule = |entry: &Entry<C>| entry.schema.element_rule(&entry.spec);
        let also_called = self.entries.iter().flat_map(|entry| {
            let names = entry.spec.also_called.iter();
            names.map(|name| ((*name).to_owned(), entry.spec.name.to_owned()))
        });
        Grammar {
            tools: self.entries.iter().map(rule).collect(),
            also_called: also_called.collect(),
        }
    }

    /// Makes a typed call of a raw one.
    ///
    /// # Errors
    /// An argument that does not fit its type; the diagnostic names its path.
    pub fn decode(&self, call: &RawCall) -> Result<C, Box<Diagnostic>> {
        let name = &call.element.name;
        let Some(entry) = self.get(name) else {
            let message = format!("no tool is called {name:?}");
            return Err(decode::misfit(
                &call.element,
                message,
                "see `karyi tools` for the list".into(),
            ));
        };
        let arguments = decode::arguments(call, &entry.spec, &entry.schema, Texts::Normalised)?;
        let mut decoded = (entry.from_json)(arguments).map_err(|error| {
            let hint = format!("see `karyi tools {name}` for the arguments and their types");
            decode::misfit(
                &call.element,
                format!("an argument of <{name}> does not fit: {error}"),
                hint,
            )
        })?;
        (entry.note_sources)(&mut decoded, &call.element);
        Ok(decoded)
    }
}
