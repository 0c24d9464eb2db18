//! The grammars and schemas of the language, printed from the registry.
//!
//! `language` describes the content of blocks once; every other file prints that description in one notation. The
//! files in `grammar/` are these texts, and a test compares them with the registry.

mod ebnf;
mod gbnf;
mod json_schema;
mod language;
mod lark;
mod layout;
mod relax;
mod rnc;
mod rng;
mod xsd;

use crate::tool::registry::Registry;
use language::Language;

/// A notation of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// RELAX NG, compact syntax.
    Rnc,
    /// RELAX NG, XML syntax.
    Rng,
    /// W3C XML Schema 1.0.
    Xsd,
    /// GBNF of llama.cpp, with escaped texts.
    Gbnf,
    /// GBNF of llama.cpp, with verbatim texts.
    GbnfRaw,
    /// GBNF of llama.cpp: a whole answer, prose and at most one block with verbatim texts.
    GbnfAnswer,
    /// Lark, as llguidance and the Python package read it.
    Lark,
    /// JSON Schema of the arguments.
    JsonSchema,
    /// The EBNF of the XML specification.
    Ebnf,
}

impl Notation {
    /// Every notation, in documentation order.
    pub const ALL: [Self; 9] = [
        Self::Rnc,
        Self::Rng,
        Self::Xsd,
        Self::Gbnf,
        Self::GbnfRaw,
        Self::GbnfAnswer,
        Self::Lark,
        Self::JsonSchema,
        Self::Ebnf,
    ];

    /// Returns the word used on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rnc => "rnc",
            Self::Rng => "rng",
            Self::Xsd => "xsd",
            Self::Gbnf => "gbnf",
            Self::GbnfRaw => "gbnf-raw",
            Self::GbnfAnswer => "gbnf-answer",
            Self::Lark => "lark",
            Self::JsonSchema => "json-schema",
            Self::Ebnf => "ebnf",
        }
    }

    /// Returns its description, on one line.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Self::Rnc => "RELAX NG, compact syntax",
            Self::Rng => "RELAX NG, XML syntax",
            Self::Xsd => "W3C XML Schema 1.0",
            Self::Gbnf => "llama.cpp, texts escaped as XML",
            Self::GbnfRaw => "llama.cpp, texts written as they are",
            Self::GbnfAnswer => "llama.cpp, prose, or one block, or prose and then a block",
            Self::Lark => "llguidance and Python's lark",
            Self::JsonSchema => "JSON Schema of a call and its arguments",
            Self::Ebnf => "the EBNF of the XML specification",
        }
    }

    /// Returns the name of its file in `grammar/`.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Rnc => "toolsxml.rnc",
            Self::Rng => "toolsxml.rng",
            Self::Xsd => "toolsxml.xsd",
            Self::Gbnf => "toolsxml.gbnf",
            Self::GbnfRaw => "toolsxml-raw.gbnf",
            Self::GbnfAnswer => "answer.gbnf",
            Self::Lark => "toolsxml.lark",
            Self::JsonSchema => "tools.schema.json",
            Self::Ebnf => "toolsxml.ebnf",
        }
    }
}

/// Prints the grammar of the blocks that the tools of a registry allow.
#[must_use]
pub fn grammar<C>(registry: &Registry<C>, notation: Notation) -> String {
    let language = Language::of(registry);
    match notation {
        Notation::Rnc => rnc::print(&relax::defines(&language)),
        Notation::Rng => rng::print(&relax::defines(&language)),
        Notation::Xsd => xsd::print(&language),
        Notation::Gbnf => gbnf::print(&language, gbnf::Spelling::Escaped),
        Notation::GbnfRaw => gbnf::print(&language, gbnf::Spelling::Raw),
        Notation::GbnfAnswer => gbnf::print_answer(&language),
        Notation::Lark => lark::print(&language),
        Notation::JsonSchema => json_schema::print(registry),
        Notation::Ebnf => ebnf::print(&language),
    }
}
