//! What the texts of a script hold: letters, signs, expansions, and what a command prints of its words.

use super::leads::SIGNS;
use crate::vault::programs;
use crate::vault::words::{Word, is_name};

/// What a text holds that a variable is given.
#[derive(Default, Clone, Copy)]
pub(super) struct Spelt {
    /// Letters, or what the shell makes letters of.
    has_letters: bool,
    /// More than the characters that mean nothing to a shell.
    has_signs: bool,
    /// What a shell expands.
    has_expansions: bool,
    /// A word that starts like an option.
    has_signs_first: bool,
}

impl Spelt {
    pub(super) const LETTERS: Self = Self {
        has_letters: true,
        has_signs: false,
        has_expansions: false,
        has_signs_first: false,
    };

    pub(super) fn of(text: &str) -> Self {
        let makes_letters = |c: char| c.is_alphabetic() || "_\\*?[~\0".contains(c);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+,-".contains(c);
        let text = text.trim();
        Self {
            has_letters: text.contains(makes_letters),
            has_signs: !text.chars().all(is_plain),
            has_expansions: text.contains(['$', '`', '\0']),
            has_signs_first: text
                .split(|c: char| c.is_whitespace() || "('\"".contains(c))
                .any(|word| word.starts_with(SIGNS)),
        }
    }

    pub(super) fn has_expansions(self) -> bool {
        self.has_expansions
    }

    pub(super) fn has_signs(self) -> bool {
        self.has_signs
    }

    pub(super) fn has_signs_first(self) -> bool {
        self.has_signs_first
    }

    pub(super) fn has_letters(self) -> bool {
        self.has_letters
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            has_letters: self.has_letters || other.has_letters,
            has_signs: self.has_signs || other.has_signs,
            has_expansions: self.has_expansions || other.has_expansions,
            has_signs_first: self.has_signs_first || other.has_signs_first,
        }
    }
}

/// Variables whose text the shell makes of the script.
pub(super) const MADE: &[&str] = &[
    "FUNCNAME",
    "BASH_COMMAND",
    "BASH_SOURCE",
    "BASH_EXECUTION_STRING",
    "SHELLOPTS",
    "BASHOPTS",
    "DIRSTACK",
    "dirstack",
    "funcstack",
    "functrace",
    "funcfiletrace",
    "funcsourcetrace",
    "history",
    "historywords",
    "functions",
    "aliases",
    "options",
    "commands",
    "builtins",
    "parameters",
    "mapfile",
    "ZSH_SCRIPT",
    "ZSH_ARGZERO",
    "-",
];

/// Whether `$_` may be meant somewhere: the underscore stands alone.
pub(super) fn names_last_word(script: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let bytes = script.as_bytes();
    memchr::memchr_iter(b'_', bytes).any(|at| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        !before.is_some_and(is_word) && !bytes.get(at + 1).is_some_and(is_word)
    })
}

/// Returns a text without the expansions in it.
pub(super) fn literal_part(text: &str) -> String {
    let mut literal = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '`' => _ = chars.by_ref().find(|c| *c == '`'),
            '$' => match chars.peek() {
                Some('{' | '(' | '[') => {
                    let mut open = 0_usize;
                    _ = chars.by_ref().find(|c| {
                        match c {
                            '{' | '(' | '[' => open += 1,
                            '}' | ')' | ']' => open = open.saturating_sub(1),
                            _ => {}
                        }
                        open == 0
                    });
                }
                _ => {
                    while chars
                        .next_if(|c| c.is_ascii_alphanumeric() || *c == '_')
                        .is_some()
                    {}
                }
            },
            _ => literal.push(c),
        }
    }
    literal
}

/// Returns a printer's word as far as it may be among what is printed: an option of one letter is not.
pub(super) fn shown_text(program: &str, word: &Word) -> bool {
    let text = word.text();
    const READERS: &[&str] = &[
        "cat", "head", "tail", "tac", "sort", "uniq", "nl", "cut", "rev", "fold", "paste",
    ];
    let is_builtin = matches!(program, "echo" | "printf" | "print");
    let is_file = READERS.contains(&program) && !text.starts_with('-');
    let letters = |text: &str| text.chars().filter(char::is_ascii_alphabetic).count();
    let is_option = text.starts_with('-') && !text.starts_with("--");
    let is_short = is_option && (letters(text) < 2 || program.ends_with("grep"));
    let without = |names: &[&str]| {
        let whole = text.to_owned();
        names
            .iter()
            .fold(whole, |text, name| text.replace(name, ""))
    };
    let is_number = match program {
        "date" => {
            let fields = ["%s", "%N", "%Y", "%m", "%d", "%H", "%M", "%S", "%j", "%u"];
            text.starts_with('+') && letters(&without(&fields)) == 0
        }
        "awk" | "gawk" | "mawk" => letters(&without(&["print", "NF", "NR", "END"])) == 0,
        "sed" => letters(&without(&["p"])) == 0 || matches!(text, "s/[^0-9]*//g" | "s/[^0-9]//g"),
        "jq" => {
            let is_path = |c: char| c.is_ascii_alphanumeric() || "._[]".contains(c);
            text.starts_with('.') && text.chars().all(is_path)
        }
        _ => false,
    };
    is_builtin || !is_short && !is_number && !is_file
}

/// Whether a command prints what it is told as it is written there.
pub(super) fn prints_exactly(words: &[Word]) -> bool {
    let own = programs::without_prefixes(words);
    let Some((first, rest)) = own.split_first() else {
        return true;
    };
    let is_literal = |word: &Word| !word.text().contains(['\\', '%']);
    match first.text() {
        "cat" | "tee" => true,
        "echo" | "print" | "printf" => rest.iter().all(|word| {
            is_literal(word) && !word.may_be_flags() && !word.is_made
                || matches!(word.text(), "%s" | "%s\\n" | "%s\n")
        }),
        _ => {
            rest.iter().all(|word| word.text().starts_with('-'))
                && !MAKERS.contains(&first.program())
        }
    }
}

/// Programs that make other text of what they read, whatever they are told.
const MAKERS: &[&str] = &[
    "base64", "base32", "xxd", "rev", "tr", "sed", "awk", "gawk", "mawk", "perl", "iconv", "od",
    "tac", "shuf", "sort", "python", "python3", "openssl", "gunzip", "zcat", "envsubst",
];

/// Stands for the files that are written and whose names are not known.
pub(super) const ANY_WRITTEN: &str = "* written";

/// Stands in a text for what a program makes of it, which is not known.
pub(super) const UNKNOWN: char = '\0';

/// Returns the names of the files that a command may write other than by a redirection.
pub(super) fn written_names(words: &[Word]) -> Vec<String> {
    const WRITERS: &[&str] = &[
        "sponge", "sort", "split", "csplit", "uniq", "xxd", "iconv", "openssl", "gpg", "uudecode",
        "sed", "awk", "gawk", "mawk", "base64", "perl", "ruby",
    ];
    let is_local = |word: &Word| word.is_dynamic && word.text().contains("file:");
    let writes = |word: &Word| {
        let program = word.program();
        WRITERS.contains(&program) || program == "curl" && words.iter().any(is_local)
    };
    let Some(at) = words.iter().position(writes) else {
        return unnamed(words);
    };
    let is_end = |c: char| c.is_whitespace() || ";&|()<>\"'`{}$=,".contains(c);
    let named = words.iter().skip(at + 1).take(MAX_WORDS);
    // The end of a pattern is no file: `s/a/$ENV{X}/g`.
    let ends_pattern = |word: &Word, name: &str| {
        let flags = name.strip_prefix('/');
        flags.is_some_and(|flags| flags.chars().all(|c| "egimsx".contains(c)))
            && word.text().contains(&format!("}}{name}"))
    };
    let names = named.flat_map(|word| {
        let parts = word.text().split(is_end);
        parts.filter(move |name| !ends_pattern(word, name))
    });
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_file = |name: &&str| {
        let last = name.rsplit('/').next().unwrap_or_default();
        !last.is_empty() && last.chars().all(is_plain)
    };
    let names = names.filter(is_file).take(MAX_WORDS);
    names.map(str::to_owned).chain(unnamed(words)).collect()
}

/// Returns the files that a command writes which no word names.
fn unnamed(words: &[Word]) -> Vec<String> {
    let name = |word: &Word| match word.program() {
        "nohup" => Some("nohup.out".to_owned()),
        "split" | "csplit" => Some(ANY_WRITTEN.to_owned()),
        "script" => words.last().map(|last| last.text().to_owned()),
        _ => None,
    };
    words.iter().filter_map(name).collect()
}

/// Words of one command that are looked at.
const MAX_WORDS: usize = 32;

/// Returns what a word assigns, without the name and the index.
pub(super) fn assigned_text(word: &Word) -> &str {
    let text = word.text();
    let Some((before, value)) = text.split_once('=') else {
        return "";
    };
    let name = before.split(['[', '+']).next().unwrap_or_default();
    if is_name(name) { value } else { text }
}
