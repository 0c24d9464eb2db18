//! The declaration of a tool: the part that its argument type cannot say.

use karyi_core::outcome::Status;
use karyi_syntax::grammar::LeafKind;

/// What a tool is called, what it is for and how it is written.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Name of its element and of its MCP tool.
    pub name: &'static str,
    /// What it does, imperative, one line, no full stop.
    pub summary: &'static str,
    /// What a model must know beyond the summary and the parameters, in sentences.
    pub details: &'static str,
    /// Names that models give to such a tool: an unknown tool of that name is told to be this one.
    pub also_called: &'static [&'static str],
    /// What stands before a call's title for a person.
    pub heading: &'static str,
    /// Whether it starts a job that later calls speak to.
    pub starts_job: bool,
    /// The family it is listed under.
    pub family: Family,
    /// How it is written in XML.
    pub form: Form,
    /// At least a success and the commonest mistake.
    pub examples: &'static [Example],
}

/// A group of tools that are offered together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// The tools of ToolsXML v1.0.
    Core,
    /// The tools of a site, which a server offers and a script cannot call.
    Site,
}

impl Family {
    /// Every family, in documentation order.
    pub const ALL: &[Self] = &[Self::Core, Self::Site];

    /// Returns the word used in commands and lists.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Site => "site",
        }
    }

    /// Whether its tools can be called in the `<tools>` blocks of a script.
    #[must_use]
    pub fn is_for_scripts(self) -> bool {
        match self {
            Self::Core => true,
            Self::Site => false,
        }
    }
}

/// How the arguments of a tool are spelled in XML.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// Scalars are attributes; children follow the annotations of the schema.
    Attributes,
    /// Scalars are attributes; the text of the element is the parameter named here.
    Text {
        /// The parameter the text belongs to.
        parameter: &'static str,
        /// What the text must be.
        kind: LeafKind,
    },
    /// Each parameter is an attribute or a child element of its name.
    Parameters,
}

/// One use of a tool with what must come of it.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// What the example shows, one line.
    pub title: &'static str,
    /// The calls before it, as XML inside `<tools>`; empty when it needs none.
    pub before: &'static str,
    /// The call, as XML inside `<tools>`.
    pub xml: &'static str,
    /// The status of its result.
    pub status: Status,
    /// The error code of its result, or nothing.
    pub code: Option<&'static str>,
}
