//! State of parsing a list of commands.

use super::command::Word;
use super::{Site, Span};

/// The end of a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Closer {
    /// The end of the text.
    #[default]
    End,
    /// `)` after commands.
    Parenthesis,
    /// `)` after the commands of a subshell.
    Subshell,
    /// `)` after the elements of an array.
    Array,
}

/// Part of a `case` command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Subject,
    Pattern,
    Body,
}

/// Role of the current word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Role {
    #[default]
    Argument,
    /// The target of a redirection, by its descriptor and operator.
    Target(Option<String>, &'static str),
    /// The body of a here-document, which is no word, by the index of its command.
    Body(usize),
}

/// State of parsing a list of commands.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) closer: Closer,
    /// Index of the current command, if it is started.
    pub(super) command: Option<usize>,
    /// Number of its words.
    pub(super) words: usize,
    pub(super) word: Option<Word>,
    /// Length of `name=` at the start of the current word.
    pub(super) value_at: usize,
    pub(super) role: Role,
    pub(super) in_test: bool,
    /// True right after a compound command.
    pub(super) is_closed: bool,
    pub(super) cases: Vec<Case>,
    /// Here-documents whose bodies follow the line: indices of command and redirection.
    pub(super) pending: Vec<(usize, usize)>,
}

impl List {
    /// Returns the current part of the command.
    pub(super) fn site(&self) -> Site {
        match (&self.role, self.command) {
            (Role::Body(command), _) => Site::Input(*command),
            (Role::Target(_, "<<<"), Some(command)) => Site::Input(command),
            (Role::Argument, Some(command)) if !self.is_assignment() => {
                Site::Word(command, self.words)
            }
            _ => Site::Other,
        }
    }

    /// Returns true when the next or current word is the first of a command.
    pub(super) fn is_first(&self) -> bool {
        self.words == 0 && self.role == Role::Argument
    }

    /// Returns true when the current word is an assignment before a command.
    pub(super) fn is_assignment(&self) -> bool {
        self.is_first() && self.value_at > 0
    }

    /// Returns true when the current word is one of a command: no value of an assignment or array, and no target.
    pub(super) fn is_argument(&self) -> bool {
        self.closer != Closer::Array && self.role == Role::Argument && !self.is_assignment()
    }

    /// Returns true in a pattern for text, not for files.
    pub(super) fn in_pattern(&self) -> bool {
        self.in_test || self.cases.last() == Some(&Case::Pattern)
    }

    /// Returns true when the current word ends with a sign that zsh expands when it begins a word.
    pub(super) fn follows_sign(&self) -> bool {
        let word = self.word.as_ref().filter(|word| !word.is_quoted);
        word.is_some_and(|word| {
            let is_value = self.is_assignment() && word.text.ends_with(['=', ':']);
            let rest = word.text.strip_suffix(['=', '~']);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with([':', '='])) && !is_value
        })
    }

    /// Adds text to the current word.
    pub(super) fn add_text(&mut self, text: &str, is_certain: bool) {
        if let Some(word) = &mut self.word {
            word.text.push_str(text);
            word.is_certain &= is_certain;
        }
    }

    /// Marks the current word as one that may become several.
    pub(super) fn split_word(&mut self) {
        if let Some(word) = &mut self.word {
            word.is_split = true;
        }
    }

    /// Marks a part of the current word as quoted; `inner` is the text of a single-quoted part.
    pub(super) fn add_quoted(&mut self, inner: Option<Span>) {
        if let Some(word) = &mut self.word {
            word.quoted = inner.filter(|_| !word.is_quoted && word.is_certain);
            word.is_quoted = true;
        }
    }

    /// Returns true when an unquoted expansion here stays one word.
    pub(super) fn is_unsplit(&self) -> bool {
        self.is_assignment() || self.in_test || matches!(self.role, Role::Target(_, "<<<"))
    }

    /// Returns true in the position of a descriptor number.
    pub(super) fn is_descriptor(&self) -> bool {
        matches!(self.role, Role::Target(_, "<&" | ">&"))
    }
}
