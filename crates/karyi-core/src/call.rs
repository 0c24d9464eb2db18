//! Untyped tool calls as the model wrote them: names, attributes and text.
//!
//! The parser builds these from `<tools>` blocks; the tool registry turns them into typed calls. This module knows no
//! tool.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::span::Span;

/// Order of execution of the calls in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// As if one after another; calls that cannot observe each other run in parallel.
    #[default]
    Auto,
    /// One after another.
    Sequential,
}

/// Effect of a failed call on the calls after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// The others run all the same.
    #[default]
    Continue,
    /// Later calls of the block are skipped.
    Stop,
}

/// Options of the opening `<tools>` tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockOptions {
    /// The attribute `order`.
    pub order: Order,
    /// The attribute `on_error`.
    pub on_error: OnError,
}

/// One requested use of a tool, untyped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawCall {
    /// The call's id: the attribute `id`, else its number in the message, from 1.
    pub id: String,
    /// True when the model wrote the id itself.
    pub has_own_id: bool,
    /// The tool's element. Its `id` attribute is not among its attributes.
    pub element: RawElement,
    /// Codes of the repairs that made the call readable, in order, each once: `R4`, `R7`.
    pub repairs: Vec<&'static str>,
}

/// The name of an element or attribute; a clone shares the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Name(Arc<str>);

impl Name {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// One element: its name as declared, its attributes and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawElement {
    /// Name, in the spelling of the grammar (repair mode ignores case).
    pub name: Name,
    /// From its `<` to just after its end tag.
    pub span: Span,
    /// Attributes in source order.
    pub attributes: Vec<RawAttribute>,
    /// Content between its tags.
    pub body: RawBody,
}

impl RawElement {
    /// Returns the value of the attribute `name`.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|a| a.name == name)?;
        Some(&found.value)
    }
}

/// One attribute, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawAttribute {
    /// Name, in the spelling of the grammar.
    pub name: Name,
    /// Value after references were decoded and white space normalised as XML asks.
    pub value: String,
}

/// Content of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawBody {
    /// Nothing: `<a/>`, or `<a></a>` where no text may stand.
    Empty,
    /// Text.
    Text(RawText),
    /// Child elements, in order.
    Elements(Vec<RawElement>),
}

/// The text of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawText {
    /// The text after decoding, line breaks as LF. Nothing is trimmed.
    pub text: String,
    /// True when the text must be taken to the letter: it held CDATA, or `xml:space="preserve"`
    /// was in force.
    pub verbatim: bool,
    /// The leaf as written, line breaks as LF, when decoding changed it.
    pub source: Option<String>,
}
