//! The declaration of a tool, apart from its arguments.

use karyi_core::outcome::Status;
use karyi_syntax::grammar::LeafKind;

/// Name, purpose and XML form of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Name of its XML element and MCP tool.
    pub name: &'static str,
    /// Purpose: imperative, one line, no full stop.
    pub summary: &'static str,
    /// Facts a model needs beyond the summary and the parameters, in sentences.
    pub details: &'static str,
    /// Names under which models look for the tool; the error for such a name points here.
    pub also_called: &'static [&'static str],
    /// Text before a call's title for people.
    pub heading: &'static str,
    /// True when it starts a job that later calls use.
    pub starts_job: bool,
    /// The family it belongs to.
    pub family: Family,
    /// Its XML form.
    pub form: Form,
    /// Examples: at least a success and the commonest mistake.
    pub examples: &'static [Example],
}

/// A group of tools that are offered together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// The tools of ToolsXML v1.0.
    Core,
    /// The tools of an assistant with files, pages and duties of its own.
    Assistant,
    /// The tools of a supervisor's Teller and Planner, which a session has by its role.
    Supervisor,
    /// The tools of a site, which a server offers and a script cannot call.
    Site,
}

impl Family {
    /// Every family, in documentation order.
    pub const ALL: &[Self] = &[Self::Core, Self::Assistant, Self::Supervisor, Self::Site];

    /// Returns the word used in commands and lists.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Assistant => "assistant",
            Self::Supervisor => "supervisor",
            Self::Site => "site",
        }
    }

    /// Returns true when scripts can call its tools in `<tools>` blocks.
    #[must_use]
    pub fn is_for_scripts(self) -> bool {
        match self {
            Self::Core | Self::Assistant | Self::Supervisor => true,
            Self::Site => false,
        }
    }
}

/// Text of a tool's result, or of the items of a list in it, with counts of its own, which a report may shorten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedTexts {
    /// Name of the list; empty for a text of the result itself.
    pub list: &'static str,
    /// Name of the text.
    pub text: &'static str,
    /// The way to shorten it.
    pub kind: CountedKind,
}

/// Way to shorten a counted text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedKind {
    /// Lines of a file from `first_line` on, in an item that has it; other lines else.
    NumberedLines,
    /// Lines that stand alone, such as matches.
    Lines,
    /// Changed lines, which are shown whole or not at all.
    Diff,
}

/// The XML form of a tool's arguments.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// Scalars are attributes; children follow the annotations of the schema.
    Attributes,
    /// Scalars are attributes; the element's text is one parameter.
    Text {
        /// The parameter the text belongs to.
        parameter: &'static str,
        /// The kind of text.
        kind: LeafKind,
    },
    /// Each parameter is an attribute or a child element of its name.
    Parameters,
}

/// An example call and its expected result.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// What the example shows, one line.
    pub title: &'static str,
    /// Calls before it, as XML inside `<tools>`; may be empty.
    pub before: &'static str,
    /// The call, as XML inside `<tools>`.
    pub xml: &'static str,
    /// Status of its result.
    pub status: Status,
    /// Error code of its result, if any.
    pub code: Option<&'static str>,
}
