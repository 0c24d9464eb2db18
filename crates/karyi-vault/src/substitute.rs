//! Substitutes values in plain text: paths, file contents, terminal input.
//!
//! Nothing is quoted, and a value that looks like a placeholder is not substituted again. [`super::shell`] handles
//! scripts.

use std::collections::BTreeSet;

use zeroize::Zeroizing;

use super::session::Secrets;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{self, BadPlaceholder, ByteSet, Piece, ResolvedText, SecretName};

/// Start of the hint that leads to a value.
pub const ASK_FIRST: &str = "ask for it first";

/// Largest number of names in a message.
const MOST_LISTED: usize = 50;

/// Returns the names that a text uses, each once, in order of first use.
///
/// # Errors
/// `bad_placeholder` for a malformed placeholder.
pub fn names_in(text: &str) -> Result<Vec<SecretName>, ToolError> {
    let mut seen = BTreeSet::new();
    let mut names = Vec::new();
    for piece in pieces(text)? {
        if let Piece::Secret(name) | Piece::File(name) = piece
            && seen.insert(name.clone())
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// Returns the names that a text uses and that have no value.
///
/// # Errors
/// `bad_placeholder` for a malformed placeholder.
pub fn undefined_names(text: &str, secrets: &Secrets) -> Result<Vec<SecretName>, ToolError> {
    let mut names = names_in(text)?;
    names.retain(|name| !secrets.contains(name));
    Ok(names)
}

/// Returns the error that lists names without a value.
#[must_use]
pub fn undefined(names: &[SecretName]) -> ToolError {
    let shown: Vec<&str> = names
        .iter()
        .take(MOST_LISTED)
        .map(SecretName::as_str)
        .collect();
    let mut message = format!("there is no value for {}", shown.join(", "));
    if names.len() > shown.len() {
        message.push_str(&format!(" and {} more", names.len() - shown.len()));
    }
    let first = shown.first().copied().unwrap_or("NAME");
    ToolError::new(ErrorCode::UndefinedVariable, message)
        .with_hint(format!(
            "{ASK_FIRST} with `get_value` and the key {first}, and use it from the next block on"
        ))
        .with_names(shown.iter().map(|name| (*name).to_owned()).collect())
}

/// Replaces every placeholder by its value, and every escaped one by its literal text.
///
/// # Errors
/// `bad_placeholder`, or `undefined_variable` with all names without a value.
pub fn substitute(text: &str, secrets: &Secrets) -> Result<ResolvedText, ToolError> {
    substitute_with(text, secrets, |value, out| {
        append(out, value.text);
        Ok(())
    })
}

/// Value to insert into a text.
struct ValueInsertion<'a> {
    name: &'a SecretName,
    text: &'a str,
    /// Literal text right before it.
    before: &'a str,
}

fn substitute_with(
    text: &str,
    secrets: &Secrets,
    put: impl Fn(ValueInsertion<'_>, &mut Zeroizing<String>) -> Result<(), ToolError>,
) -> Result<ResolvedText, ToolError> {
    let mut resolved = Zeroizing::new(String::with_capacity(text.len()));
    let missing = undefined_names(text, secrets)?;
    if !missing.is_empty() {
        return Err(undefined(&missing));
    }
    let (mut before, mut values) = ("", ByteSet::EMPTY);
    for piece in pieces(text)? {
        match piece {
            Piece::Literal(text) | Piece::Escaped(text) => {
                append(&mut resolved, text);
                before = text;
            }
            Piece::Secret(name) => match secrets.get(&name) {
                Some(value) => {
                    let (name, text) = (&name, value.expose());
                    values.add(text);
                    put(ValueInsertion { name, text, before }, &mut resolved)?;
                    before = "";
                }
                // It was removed since the check.
                None => return Err(undefined(&[name])),
            },
            Piece::File(name) => return Err(file_outside_of_script(&name)),
        }
    }
    Ok(ResolvedText {
        text: resolved,
        bindings: Vec::new(),
        values,
    })
}

/// Substitutes values in text whose backslash escapes are decoded afterwards: backslashes of a value are doubled.
///
/// # Errors
/// As [`substitute`]; `bad_arguments` for an incomplete escape before a value; `unsafe_context` for a value with a
/// control character, which a terminal interprets.
pub fn substitute_typed(text: &str, secrets: &Secrets) -> Result<ResolvedText, ToolError> {
    substitute_with(text, secrets, |value, out| {
        match tail(value.before) {
            Tail::Whole => {}
            // Escaped, so that it stays a backslash.
            Tail::Backslash => append(out, "\\"),
            Tail::Open => return Err(open_escape(value.name)),
        }
        if value.text.bytes().any(is_control) {
            return Err(control_in(value.name));
        }
        for part in value.text.split_inclusive('\\') {
            append(out, part);
            if part.ends_with('\\') {
                append(out, "\\");
            }
        }
        Ok(())
    })
}

/// Returns true when a terminal interprets the byte. A tab is harmless in line input.
fn is_control(byte: u8) -> bool {
    byte < b' ' && byte != b'\t' || byte == 0x7f
}

/// End of a literal text with escapes.
enum Tail {
    /// All escapes are complete.
    Whole,
    /// The text ends with a backslash.
    Backslash,
    /// The text ends inside an escape.
    Open,
}

fn tail(literal: &str) -> Tail {
    let mut rest = literal;
    while let Some(at) = rest.find('\\') {
        let escape = rest.get(at + 1..).unwrap_or_default();
        let mut inside = escape.chars();
        let is_open = match inside.next() {
            None => return Tail::Backslash,
            Some('x') => inside.take(2).count() < 2,
            Some('u') => !inside.as_str().contains('}'),
            Some(_) => false,
        };
        if is_open {
            return Tail::Open;
        }
        let first = escape.chars().next().map_or(0, char::len_utf8);
        rest = escape.get(first..).unwrap_or_default();
    }
    Tail::Whole
}

fn open_escape(name: &SecretName) -> ToolError {
    let message = format!("an escape before $KARYI{{{name}}} is not whole");
    ToolError::new(ErrorCode::BadArguments, message)
        .with_hint("write \\xHH with two and \\u{H} with one to six hexadecimal digits, and \\\\ for a backslash")
}

fn control_in(name: &SecretName) -> ToolError {
    let message = format!(
        "{name} cannot be typed: its value holds a line break or another control character, on which a terminal acts"
    );
    ToolError::new(ErrorCode::UnsafeContext, message).with_hint(format!(
        "give it to the command as a file, $KARYI{{{name}|file}}, or on its input: printf %s \"$KARYI{{{name}}}\" | command"
    ))
}

/// Appends to text that contains secrets, and wipes the former buffer when it grows.
fn append(text: &mut Zeroizing<String>, more: &str) {
    if text.capacity() - text.len() < more.len() {
        let mut larger = Zeroizing::new(String::with_capacity((text.len() + more.len()) * 2));
        larger.push_str(text);
        *text = larger;
    }
    text.push_str(more);
}

/// Checks that a text that is no script has no placeholder for a file.
///
/// # Errors
/// `bad_placeholder`.
pub fn check_files(text: &str) -> Result<(), ToolError> {
    let file = |piece| match piece {
        Piece::File(name) => Some(file_outside_of_script(&name)),
        Piece::Literal(_) | Piece::Escaped(_) | Piece::Secret(_) => None,
    };
    pieces(text)?.into_iter().find_map(file).map_or(Ok(()), Err)
}

fn file_outside_of_script(name: &SecretName) -> ToolError {
    let message = format!("$KARYI{{{name}|file}} stands outside of a script");
    ToolError::new(ErrorCode::BadPlaceholder, message).with_hint(format!(
        "only a command can use the path of a file; write $KARYI{{{name}}} here"
    ))
}

pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, ToolError> {
    secret::split(text).map_err(|bad| bad_placeholder(text, bad))
}

/// Checks that no placeholder of a script contains a line continuation, which a shell would remove before it sees a
/// variable and a name in braces.
///
/// # Errors
/// `bad_placeholder`.
pub fn check_continued(script: &str) -> Result<(), ToolError> {
    const CONTINUATION: &str = "\\\n";
    if !script.contains(CONTINUATION) {
        return Ok(());
    }
    let is_sign = |start: usize| {
        let mut rest = script.get(start..).unwrap_or_default();
        let mut is_continued = false;
        let mut next = || {
            while let Some(after) = rest.strip_prefix(CONTINUATION) {
                (rest, is_continued) = (after, true);
            }
            let byte = *rest.as_bytes().first()?;
            rest = rest.get(1..).unwrap_or_default();
            Some(byte)
        };
        let is_begun = b"$KARYI".iter().all(|byte| next() == Some(*byte));
        is_begun && matches!(next(), Some(b'{' | b'<')) && is_continued
    };
    let signs = memchr::memchr_iter(b'$', script.as_bytes());
    let Some(offset) = signs.into_iter().find(|at| is_sign(*at)) else {
        return Ok(());
    };
    let before = script.get(..offset).unwrap_or_default();
    let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
    let message =
        format!("line {line}: expected a placeholder on one line, found a line continuation in it");
    Err(ToolError::new(ErrorCode::BadPlaceholder, message)
        .with_hint("write $KARYI{NAME} without a backslash and a line end in it"))
}

fn bad_placeholder(text: &str, bad: BadPlaceholder) -> ToolError {
    let before = text.get(..bad.offset).unwrap_or(text);
    let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
    let after = text.get(bad.offset..).unwrap_or("");
    let seen: String = after
        .chars()
        .skip(1)
        .take_while(|c| *c != '\n')
        .take(40)
        .collect();
    let error = ToolError::new(
        ErrorCode::BadPlaceholder,
        format!("line {line}: expected a name and its closing brace after the `$`, found `{seen}`"),
    );
    match names_more(&seen) {
        Some(name) => error.with_hint(format!(
            "write $KARYI{{{name}}} for the value, or in a command $KARYI{{{name}|file}} for the path of a file with it"
        )),
        None => error,
    }
}

/// Returns the name in a malformed placeholder with a suffix, such as `KARYI{NAME|path}` or `KARYI{NAME:file}`.
fn names_more(seen: &str) -> Option<SecretName> {
    let (_, inner) = seen.split_once(['{', '<'])?;
    let (name, _) = inner.split_once(['|', ':'])?;
    SecretName::parse(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_core::secret::SecretValue;

    fn secrets() -> Secrets {
        let secrets = Secrets::default();
        for (name, value) in [("A", "it's $KARYI{B} \"x\"\n"), ("B", "value-b")] {
            let name = SecretName::parse(name).unwrap();
            secrets
                .insert(name, SecretValue::new(value.into()))
                .unwrap();
        }
        secrets
    }

    #[test]
    fn a_line_continuation_divides_no_placeholder() {
        for (text, line) in [
            ("echo $KARYI\\\n{A}", Some(1)),
            ("\necho \"$KA\\\nRYI{A}\"", Some(2)),
            ("$\\\n\\\nKARYI<A>", Some(1)),
            ("echo \\\n$KARYI{A} \\\n$KARYI \\\n{A}", None),
            ("$KARYI\\\\\n{A} $x$\\\nKARY", None),
            ("$KARYI{A}", None),
        ] {
            let found = check_continued(text).err().map(|error| error.message);
            let line = line.map(|line: u8| format!("line {line}: expected a placeholder on one line, found a line continuation in it"));
            assert_eq!(found, line, "{text}");
        }
    }

    fn check(text: &str, expected: &str) {
        let found = match substitute(text, &secrets()) {
            Ok(resolved) => resolved.text.to_string(),
            Err(error) => format!("{}: {error}", error.code.as_str()),
        };
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn values_are_put_in_literally_and_once() {
        check("", "");
        check("no secret", "no secret");
        check("x=$KARYI{B};", "x=value-b;");
        check("$KARYI{A}$KARYI<B>", "it's $KARYI{B} \"x\"\nvalue-b");
        check("'$KARYI{B}'", "'value-b'");
    }

    #[test]
    fn a_doubled_dollar_is_the_literal() {
        check(
            "$$KARYI{A} $$KARYI{NONE} $$KARYI{",
            "$KARYI{A} $KARYI{NONE} $KARYI{",
        );
    }

    #[test]
    fn missing_names_are_all_listed() {
        check(
            "$KARYI{N1} $KARYI{A} $KARYI{N2} $KARYI{N1}",
            "undefined_variable: there is no value for N1, N2",
        );
        assert_eq!(names_in("$KARYI{B}$KARYI{A}$KARYI{B}").unwrap().len(), 2);
        assert_eq!(
            undefined_names("$KARYI{B}$KARYI{N}", &secrets()).unwrap(),
            names_in("$KARYI{N}").unwrap()
        );
    }

    #[test]
    fn typed_text_is_exactly_the_value() {
        let secrets = Secrets::default();
        let values = [
            ("PLAIN", "nine x41 {7}"),
            ("BACK", "a\\nb\\"),
            ("TAB", "tab\tvalue"),
            ("LINES", "line one\nline two"),
            ("ESC", "esc\u{1b}[A value"),
            ("INT", "int\u{3}errupt"),
            ("DEL", "de\u{7f}leted"),
        ];
        for (name, value) in values {
            let name = SecretName::parse(name).unwrap();
            let value = SecretValue::new(value.into());
            secrets.insert(name, value).unwrap();
        }
        let check = |text: &str, expected: &str| {
            let found = match substitute_typed(text, &secrets) {
                Ok(resolved) => resolved.text.to_string(),
                Err(error) => error.code.as_str().to_owned(),
            };
            assert_eq!(found, expected, "{text:?}");
        };
        check("$KARYI{PLAIN}\\n", "nine x41 {7}\\n");
        check("$KARYI{BACK}", "a\\\\nb\\\\");
        check("$KARYI{TAB}\\t", "tab\tvalue\\t");
        // Without a second backslash the first would make a line break of the `n`.
        check("\\$KARYI{PLAIN}", "\\\\nine x41 {7}");
        check("\\\\$KARYI{PLAIN}", "\\\\nine x41 {7}");
        check("\\d\\$KARYI{PLAIN}", "\\d\\\\nine x41 {7}");
        check("a\\x4$KARYI{PLAIN}", "bad_arguments");
        check("a\\x$KARYI{PLAIN}", "bad_arguments");
        check("a\\u{$KARYI{PLAIN}}", "bad_arguments");
        check("a\\x41$KARYI{PLAIN}", "a\\x41nine x41 {7}");
        for name in ["LINES", "ESC", "INT", "DEL"] {
            check(&format!("$KARYI{{{name}}}"), "unsafe_context");
        }
    }

    #[test]
    fn broken_placeholders_are_named() {
        check(
            "one\ntwo $KARYI{a b}\n",
            "bad_placeholder: line 2: expected a name and its closing brace after the `$`, found `KARYI{a b}`",
        );
        for (text, names_file) in [
            ("$KARYI{B|path}", true),
            ("x $KARYI{B|FILE}", true),
            ("$KARYI{B:file}", true),
            ("$KARYI<B|path>", true),
            ("$KARYI{a b|file}", false),
            ("$KARYI{B", false),
        ] {
            let hint = substitute(text, &secrets()).err().unwrap().hint;
            assert_eq!(
                hint.contains("$KARYI{B|file}"),
                names_file,
                "{text}: {hint}"
            );
        }
    }
}
