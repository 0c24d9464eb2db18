//! Definition of the elements of a block and of their content.
//!
//! The tool registry builds the grammar from the tools' schemas; the parser knows no tool. Everything the parser
//! refuses by name, number or position of elements follows from it.

/// The elements a block may hold.
#[derive(Debug, Clone, Default)]
pub struct Grammar {
    /// One rule per tool, in registry order.
    pub tools: Vec<ElementRule>,
    /// Those of them that no hint names: their calls are read, and end with an error.
    pub unlisted: Vec<String>,
    /// Aliases that models use for tools, and the tool: for hints only.
    pub also_called: Vec<(String, String)>,
    /// Tools that exist and may not be called: for hints only.
    pub not_offered: Vec<String>,
}

impl Grammar {
    /// Returns the rule of the tool `name`, spelled exactly.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ElementRule> {
        self.tools.iter().find(|rule| rule.name == name)
    }
}

/// One element: its name, its attributes and what it may hold.
#[derive(Debug, Clone)]
pub struct ElementRule {
    /// Name as declared.
    pub name: String,
    /// Attributes it may have. A tool's `id` is not listed: every tool has it.
    pub attributes: Vec<AttributeRule>,
    /// Content between its tags.
    pub content: ContentRule,
}

/// One attribute.
#[derive(Debug, Clone)]
pub struct AttributeRule {
    /// Name as declared.
    pub name: String,
    /// True when it must be there. For [`ContentRule::Parameters`] the child element of the same
    /// name does as well.
    pub is_required: bool,
    /// Words in front of the error that it is missing.
    pub missing: Option<String>,
}

/// Allowed content of an element.
#[derive(Debug, Clone)]
pub enum ContentRule {
    /// Nothing but white space and comments.
    Empty,
    /// Text; a raw leaf of the specification.
    Leaf(LeafKind),
    /// Child elements: one of the groups, again and again. A group is a fixed sequence of
    /// elements, each exactly once: `[[find, replace]]` for a file of an edit, `[[file],
    /// [search]]` for a read.
    Children {
        /// The groups to choose from.
        groups: Vec<Vec<ElementRule>>,
        /// Minimum number of groups.
        min: usize,
    },
    /// The parameters of a generic tool: each an attribute or a child element of its name, never
    /// both; children in any order. A child that is not a raw leaf holds text or any elements.
    Parameters(Vec<ParameterRule>),
}

/// One parameter of a generic tool.
#[derive(Debug, Clone)]
pub struct ParameterRule {
    /// Name of the attribute or child element.
    pub name: String,
    /// True when its child element is a raw leaf.
    pub is_raw: bool,
    /// True when the child may come more than once (an array).
    pub is_repeated: bool,
    /// True when it must be given.
    pub is_required: bool,
    /// Words of the tool in front of the error that it is missing.
    pub missing: Option<String>,
}

/// Constraint on the text of a leaf.
#[derive(Debug, Clone, Copy)]
pub enum LeafKind {
    /// Any text; text that mixes raw and escaped markup is taken raw with a warning.
    Text,
    /// A script: text that mixes raw and escaped markup is refused.
    Script,
    /// Text with backslash escapes; broken ones are `bad-escape`, mixed markup is refused.
    Escaped,
    /// A word: trimmed and in lower case it must be one that the function knows, else `bad-ctrl`.
    Word(fn(&str) -> bool),
}
