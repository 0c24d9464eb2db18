//! Names, values and placeholders of secrets.
//!
//! The model writes `$KARYI{NAME}`; the value joins the text as the last step before a tool runs
//! and leaves with it. A [`Template`] is text that may hold placeholders: what prints, compares or
//! serialises it sees the placeholders, never a value.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

/// The name of a secret: `[A-Za-z_][A-Za-z0-9_]{0,63}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretName(String);

impl SecretName {
    /// Longest name, in characters.
    pub const MAX_LEN: usize = 64;

    /// Returns the name when it is spelled as one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = text.bytes();
        let first = bytes.next()?;
        let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let fits = text.len() <= Self::MAX_LEN && !first.is_ascii_digit() && is_word(first);
        (fits && bytes.all(is_word)).then(|| Self(text.to_owned()))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the shell variable for the secret in scripts.
    #[must_use]
    pub fn variable(&self, holds: VariableContent) -> String {
        match holds {
            VariableContent::Value => format!("__karyi_{self}"),
            VariableContent::Path => format!("__karyifile_{self}"),
        }
    }

    /// Returns true when another name differs from this one in case only.
    #[must_use]
    pub fn differs_only_in_case(&self, other: &Self) -> bool {
        self != other && self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The value of a secret. It is wiped from memory when dropped and cannot be printed.
pub struct SecretValue(Zeroizing<String>);

impl SecretValue {
    /// Takes a value over.
    #[must_use]
    pub fn new(value: String) -> Self {
        Self(Zeroizing::new(value))
    }

    /// Returns the value. Every caller of this is a place where a secret could leak.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Makes a second copy, wiped on its own.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Set of the byte values that occur in some secrets; it holds nothing else of them.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// The set without any.
    pub const EMPTY: Self = Self([0; 4]);

    /// Adds the bytes of a text.
    pub fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
                *word |= 1 << (byte & 63);
            }
        }
    }

    /// Adds those of another set.
    pub fn join(&mut self, other: Self) {
        for (word, more) in self.0.iter_mut().zip(other.0) {
            *word |= more;
        }
    }

    /// Returns true when the set contains the byte.
    #[must_use]
    pub fn has(self, byte: u8) -> bool {
        let word = self.0.get(usize::from(byte >> 6));
        word.is_some_and(|word| word & 1 << (byte & 63) != 0)
    }

    /// Returns true when all bytes of a character are among them.
    #[must_use]
    pub fn may_hold(self, character: char) -> bool {
        character
            .encode_utf8(&mut [0; 4])
            .bytes()
            .all(|byte| self.has(byte))
    }

    /// Returns true when the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }
}

impl fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByteSet")
    }
}

/// A stretch of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text as it is.
    Literal(&'a str),
    /// `$$KARYI{` or `$$KARYI<`: the characters without the first `$`.
    Escaped(&'a str),
    /// A placeholder.
    Secret(SecretName),
    /// `$KARYI{NAME|file}`: the path of a file with the value.
    File(SecretName),
}

/// Malformed placeholder, by its offset in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadPlaceholder {
    /// Byte offset of its `$`.
    pub offset: usize,
}

/// Splits text at its placeholders.
///
/// # Errors
/// `$KARYI{` or `$KARYI<` that is followed by anything else than a name and its closer.
pub fn split(text: &str) -> Result<Vec<Piece<'_>>, BadPlaceholder> {
    let mut pieces = Vec::new();
    let mut literal_start = 0;
    let mut from = 0;
    while let Some(found) = text[from..].find("$KARYI") {
        let start = from + found;
        let after = start + "$KARYI".len();
        let closer = match text.as_bytes().get(after) {
            Some(b'{') => '}',
            Some(b'<') => '>',
            _ => {
                from = after;
                continue;
            }
        };
        let is_escaped = start > literal_start && text.as_bytes()[start - 1] == b'$';
        let literal_end = if is_escaped { start - 1 } else { start };
        if literal_start < literal_end {
            pieces.push(Piece::Literal(&text[literal_start..literal_end]));
        }
        let end = if is_escaped {
            pieces.push(Piece::Escaped(&text[start..=after]));
            after + 1
        } else {
            let (piece, end) =
                placeholder(text, after + 1, closer).ok_or(BadPlaceholder { offset: start })?;
            pieces.push(piece);
            end
        };
        literal_start = end;
        from = end;
    }
    if literal_start < text.len() {
        pieces.push(Piece::Literal(&text[literal_start..]));
    }
    Ok(pieces)
}

/// Suffix of a placeholder that stands for the path of a file with the value.
const FILE: &str = "|file";

/// Parses the placeholder whose name starts at `start`; returns it and the offset after its closing bracket.
fn placeholder(text: &str, start: usize, closer: char) -> Option<(Piece<'_>, usize)> {
    let rest = &text[start..];
    let length = rest
        .bytes()
        .take(SecretName::MAX_LEN + FILE.len() + 1)
        .position(|b| b == closer as u8)?;
    let inner = rest.get(..length)?;
    let piece = match inner.strip_suffix(FILE) {
        Some(name) => Piece::File(SecretName::parse(name)?),
        None => Piece::Secret(SecretName::parse(inner)?),
    };
    Some((piece, start + length + 1))
}

/// Escapes literal placeholders in text for a model, so that a bare `$KARYI{NAME}` always means a value and both
/// survive a round trip through an edit.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut from = 0;
    for at in memchr::memmem::find_iter(text.as_bytes(), PLACEHOLDER) {
        let after = text.as_bytes().get(at + PLACEHOLDER.len());
        if !matches!(after, Some(b'{' | b'<')) {
            continue;
        }
        if shown.is_empty() {
            // Most texts have few of them.
            shown.reserve(text.len() + text.len() / 64 + 1);
        }
        shown.push_str(text.get(from..at).unwrap_or_default());
        shown.push('$');
        from = at;
    }
    if shown.is_empty() {
        return Cow::Borrowed(text);
    }
    shown.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(shown)
}

/// Text before the name in a placeholder.
const PLACEHOLDER: &str = "$KARYI";

/// Escapes all placeholders except those of offered names. Escaped ones are left as they are, so that escaped text can
/// be written back.
fn literal_but(text: &str, is_offered: &dyn Fn(&SecretName) -> bool) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = rest.find("$KARYI") {
        let (before, from) = rest.split_at(found);
        kept.push_str(before);
        let after = "$KARYI".len();
        let closer = match from.as_bytes().get(after) {
            Some(b'{') => Some('}'),
            Some(b'<') => Some('>'),
            _ => None,
        };
        let piece = closer.and_then(|closer| placeholder(from, after + 1, closer));
        let is_kept = closer.is_none()
            || before.ends_with('$')
            || piece.is_some_and(|(piece, _)| match piece {
                Piece::Secret(name) | Piece::File(name) => is_offered(&name),
                Piece::Literal(_) | Piece::Escaped(_) => false,
            });
        if !is_kept {
            kept.push('$');
        }
        let (start, later) = from.split_at(after);
        kept.push_str(start);
        rest = later;
    }
    kept.push_str(rest);
    kept
}

/// Secret that is passed to the shell separately from the script.
pub struct Binding {
    /// The secret's name.
    pub name: SecretName,
    /// The secret's value.
    pub value: SecretValue,
    /// Content of the variable.
    pub holds: VariableContent,
}

impl Binding {
    /// Returns the name of the shell variable.
    #[must_use]
    pub fn variable(&self) -> String {
        self.name.variable(self.holds)
    }
}

/// Content of a shell variable that stands for a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VariableContent {
    /// Its value.
    Value,
    /// The path of a file with the value.
    Path,
}

/// Text that may contain placeholders.
#[derive(Default)]
pub struct Template {
    source: String,
    resolved: Option<ResolvedText>,
}

/// Result of resolving a template.
pub struct ResolvedText {
    /// The text a tool works with.
    pub text: Zeroizing<String>,
    /// Secrets that the text refers to by variables.
    pub bindings: Vec<Binding>,
    /// Bytes of the values that were inserted into the text.
    pub values: ByteSet,
}

impl Template {
    /// Makes a template from text with placeholders.
    #[must_use]
    pub fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            resolved: None,
        }
    }

    /// Returns the text as written, with its placeholders.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns true when the text contains a placeholder, valid or not.
    #[must_use]
    pub fn has_placeholder(&self) -> bool {
        self.source.contains("$KARYI{") || self.source.contains("$KARYI<")
    }

    /// Makes every placeholder literal whose name is not offered.
    pub fn offer_only(&mut self, is_offered: &dyn Fn(&SecretName) -> bool) {
        if self.has_placeholder() {
            self.source = literal_but(&self.source, is_offered);
        }
    }

    /// Returns the names the text refers to, each once, in order of appearance.
    ///
    /// # Errors
    /// A malformed placeholder.
    pub fn names(&self) -> Result<Vec<SecretName>, BadPlaceholder> {
        let mut names = Vec::new();
        for piece in split(&self.source)? {
            if let Piece::Secret(name) | Piece::File(name) = piece
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Returns true when the text refers to a secret.
    #[must_use]
    pub fn has_secret(&self) -> bool {
        self.has_placeholder() && self.names().is_ok_and(|names| !names.is_empty())
    }

    /// Returns the resolved text, or the source when it is not resolved.
    #[must_use]
    pub fn text(&self) -> &str {
        self.resolved.as_ref().map_or(&self.source, |r| &r.text)
    }

    /// Returns the bytes of the values that were inserted into the text.
    #[must_use]
    pub fn values(&self) -> ByteSet {
        self.resolved
            .as_ref()
            .map_or(ByteSet::EMPTY, |resolved| resolved.values)
    }

    /// Stores the result of resolving the template.
    pub fn resolve(&mut self, resolved: ResolvedText) {
        self.resolved = Some(resolved);
    }

    /// Removes and returns the bindings of the text.
    #[must_use]
    pub fn take_bindings(&mut self) -> Vec<Binding> {
        self.resolved
            .as_mut()
            .map(|r| std::mem::take(&mut r.bindings))
            .unwrap_or_default()
    }
}

impl Clone for Template {
    /// Copies the text with its placeholders; the copy is not resolved.
    fn clone(&self) -> Self {
        Self::new(self.source.clone())
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.source)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

impl JsonSchema for Template {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let shown: Vec<String> = match split(text) {
            Ok(pieces) => pieces.iter().map(show).collect(),
            Err(bad) => vec![format!("bad at {}", bad.offset)],
        };
        assert_eq!(shown, expected, "{text:?}");
    }

    fn show(piece: &Piece<'_>) -> String {
        match piece {
            Piece::Literal(text) => format!("'{text}'"),
            Piece::Escaped(text) => format!("\\{text}"),
            Piece::Secret(name) => format!("<{name}>"),
            Piece::File(name) => format!("<{name} as a file>"),
        }
    }

    #[test]
    fn placeholders_are_cut_out() {
        check("", &[]);
        check(
            "plain $x ${y} $$ $KARYI KARYI{A}",
            &["'plain $x ${y} $$ $KARYI KARYI{A}'"],
        );
        check("$KARYI{A}", &["<A>"]);
        check(
            "a$KARYI{A}b$KARYI<b_1>c",
            &["'a'", "<A>", "'b'", "<b_1>", "'c'"],
        );
        check("$KARYI{A}$KARYI{B}", &["<A>", "<B>"]);
        check(
            "$KARYI{A|file}$KARYI<B|file>",
            &["<A as a file>", "<B as a file>"],
        );
        check("$KARYI$KARYI{B}", &["'$KARYI'", "<B>"]);
    }

    #[test]
    fn a_doubled_dollar_is_the_literal() {
        check("$$KARYI{A}", &["\\$KARYI{", "'A}'"]);
        check("x$$KARYI<A> y", &["'x'", "\\$KARYI<", "'A> y'"]);
        check("$KARYI{A}$$KARYI{", &["<A>", "\\$KARYI{"]);
    }

    #[test]
    fn anything_else_is_bad() {
        check("$KARYI{}", &["bad at 0"]);
        check("ab$KARYI{a b}", &["bad at 2"]);
        check("$KARYI{1A}", &["bad at 0"]);
        check("$KARYI{A>", &["bad at 0"]);
        check("$KARYI{A", &["bad at 0"]);
        check("$KARYI{A|files}", &["bad at 0"]);
        check("$KARYI{|file}", &["bad at 0"]);
        check("$KARYI{é}", &["bad at 0"]);
        check(&format!("$KARYI{{{}}}", "A".repeat(65)), &["bad at 0"]);
    }

    #[test]
    fn names_that_are_not_offered_are_literal() {
        let check = |source: &str, expected: &str| {
            let mut template = Template::new(source);
            template.offer_only(&|name| name.as_str() == "A");
            let pieces = split(template.source()).unwrap();
            let text = pieces.iter().map(|piece| match piece {
                Piece::Literal(text) => (*text).to_owned(),
                Piece::Escaped(text) => (*text).to_owned(),
                Piece::Secret(name) | Piece::File(name) => format!("<{}>", name.as_str()),
            });
            assert_eq!(text.collect::<String>(), expected, "{source}");
        };
        check(
            "$KARYI{A} $KARYI{B} $KARYI<B|file>",
            "<A> $KARYI{B} $KARYI<B|file>",
        );
        // As a file with these bytes is shown.
        check(
            "$$KARYI{B} $$$KARYI{B} $$KARYI{A}",
            "$KARYI{B} $$KARYI{B} $KARYI{A}",
        );
        check("$KARYI{$KARYI{B}$KARYI{", "$KARYI{$KARYI{B}$KARYI{");
        for bytes in ["$KARYI{B}", "$$KARYI{B}", "$$$KARYI<B>$KARYI{A}"] {
            check(&escape(bytes), bytes);
        }
    }

    #[test]
    fn escaping_round_trips() {
        for text in ["$KARYI{A}", "x $KARYI<B> $$KARYI{C}", "$KARYI", "plain"] {
            let shown = escape(text);
            let back: String = split(&shown)
                .unwrap()
                .iter()
                .map(|piece| match piece {
                    Piece::Literal(text) | Piece::Escaped(text) => *text,
                    Piece::Secret(name) | Piece::File(name) => panic!("{name} appeared"),
                })
                .collect();
            assert_eq!(back, text);
        }
    }

    #[test]
    fn printing_a_template_shows_the_placeholder() {
        let mut template = Template::new("a $KARYI{A}");
        template.resolve(ResolvedText {
            text: Zeroizing::new("a hunter2".into()),
            bindings: Vec::new(),
            values: ByteSet::EMPTY,
        });
        assert_eq!(format!("{template:?}"), r#""a $KARYI{A}""#);
        assert_eq!(
            serde_json::to_string(&template).unwrap(),
            r#""a $KARYI{A}""#
        );
        assert_eq!(template.text(), "a hunter2");
    }
}
