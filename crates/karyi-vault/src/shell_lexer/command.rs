//! Simple commands of a script, without their quotes.

use super::Span;

/// Simple command of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Assignments before the first word.
    pub assignments: Vec<Assignment>,
    /// Words: the name of the command and its arguments.
    pub words: Vec<Word>,
    /// Redirections, in order.
    pub redirections: Vec<Redirection>,
    /// Number of substitutions, subshells and texts of `eval`, `trap` and `alias` around it.
    pub depth: usize,
    /// True when a compound command ends right before it, so that its redirections are of that.
    pub is_tail: bool,
    /// True for the head of a compound command, such as `for x in a b`.
    pub(super) is_head: bool,
}

/// Word of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// Text without quotes; expansions and placeholders are left as written.
    pub text: String,
    /// True when the text is final: nothing in it is expanded.
    pub is_certain: bool,
    /// True when it may become several words, or none.
    pub is_split: bool,
    /// True when it has parentheses of a pattern, which zsh may read as code.
    pub has_group: bool,
    /// Range in the script, quotes included.
    pub span: Span,
    /// Inner text of a final single-quoted part that only a plain prefix precedes.
    pub(super) quoted: Option<Span>,
    /// True when any part of it is quoted.
    pub(super) is_quoted: bool,
}

/// Assignment before a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Name of the variable, with its index if there is one.
    pub name: String,
    /// Value; that of an array is not final.
    pub value: String,
    /// True when the value is final.
    pub is_certain: bool,
}

/// Redirection of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// Descriptor before the operator, when it is written.
    pub descriptor: Option<String>,
    /// Operator, such as `>>` or `<<<`.
    pub operator: String,
    /// File, descriptor, here-string, or delimiter of a here-document.
    pub target: Word,
}

impl SimpleCommand {
    /// Returns true for a simple command that is not empty.
    #[must_use]
    pub fn is_simple(&self) -> bool {
        !self.is_head && !self.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.assignments.is_empty() && self.redirections.is_empty()
    }

    /// Returns true when no word, value or target is expanded at run time.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.words.iter().all(|word| word.is_certain)
            && self.assignments.iter().all(|value| value.is_certain)
            && (self.redirections.iter()).all(|redirection| redirection.target.is_certain)
    }

    /// Returns the quoted texts that the current shell reads as code: the action of `trap`, the definitions of
    /// `alias`, and the only word of `eval`.
    pub(super) fn own_code(&self) -> Vec<Span> {
        let words = self.words.iter().filter(|word| word.text != "--");
        let mut words = words.skip_while(|word| is_modifier(&word.text));
        let name = words.next().map_or("", |word| word.text.as_str());
        let (most, is_whole) = match (name, words.clone().count()) {
            ("eval", 1) | ("trap", _) => (1, true),
            ("alias", all) => (all, false),
            _ => (0, true),
        };
        let code = |word: &Word| {
            let quoted = word.quoted.clone()?;
            let is_code = !is_whole || quoted.start == word.span.start + 1;
            (is_code && quoted.end + 1 == word.span.end).then_some(quoted)
        };
        words.take(most).filter_map(code).collect()
    }
}

/// Returns true for a word that only modifies how the shell finds the command after it.
pub(crate) fn is_modifier(word: &str) -> bool {
    ["builtin", "command", "exec", "noglob", "nocorrect"].contains(&word)
}

/// Returns true when a command declares the variables that its arguments name.
pub(crate) fn is_declaration(command: &str) -> bool {
    let mut names = "declare typeset local export readonly integer float".split(' ');
    names.any(|name| name == command)
}
