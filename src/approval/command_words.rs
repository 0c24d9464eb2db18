//! Words of a command, as rules and the table of commands compare them.

use karyi_vault::shell_lexer::Word;

/// Word of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandWord<'a> {
    /// Text without quotes.
    pub text: &'a str,
    /// Text as it is written.
    pub source: &'a str,
    /// True when nothing in it is expanded.
    pub is_certain: bool,
    /// True when it may become several words, or none.
    pub is_split: bool,
    /// True when zsh may read a part of it as code.
    pub may_hold_code: bool,
}

impl<'a> CommandWord<'a> {
    /// Word that stands for any number of unknown ones.
    pub const UNKNOWN: CommandWord<'static> = CommandWord {
        text: "$@",
        source: "$@",
        is_certain: false,
        is_split: true,
        may_hold_code: false,
    };

    /// Returns a word of a script.
    #[must_use]
    pub fn of(word: &'a Word, script: &'a str) -> Self {
        Self {
            text: &word.text,
            source: script.get(word.span.clone()).unwrap_or_default(),
            is_certain: word.is_certain,
            is_split: word.is_split,
            may_hold_code: word.has_group,
        }
    }

    /// Returns true when a program may take the word, or a word that it expands to, for an option.
    #[must_use]
    pub fn may_be_option(self) -> bool {
        if self.is_certain {
            // The shell removes a line break after a backslash.
            let text = self.text.trim_start_matches('\n');
            return text != "-" && text.starts_with(['-', '+']);
        }
        let is_harmless = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_alphanumeric() || "_./:,%=@".contains(c))
        };
        let source = self.source;
        if !source.contains(['$', '`']) {
            let text = source.trim_start_matches(['"', '\'']);
            return !(is_harmless(text) || source.starts_with("~/") || source.starts_with("<("));
        }
        // An expansion without quotes is split into words, and `$@` is so with quotes, too.
        let inner = source.strip_prefix('"').and_then(|s| s.strip_suffix('"'));
        inner.is_none_or(|text| {
            let is_split = text.contains(['"', '@', '(', '`', '\\']);
            is_split || !is_harmless(text)
        })
    }
}
