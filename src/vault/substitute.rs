//! Puts values into plain text: paths, file contents, terminal input.
//!
//! The text is taken literally: nothing is quoted, and a value that looks like a placeholder is
//! not looked at again. Scripts are the concern of [`super::shell`].

use std::collections::BTreeSet;

use zeroize::Zeroizing;

use super::session::Secrets;
use crate::error::{ErrorCode, ToolError};
use crate::secret::{self, BadPlaceholder, Piece, Resolved, SecretName};

/// Names listed in one message.
const MOST_LISTED: usize = 50;

/// Returns the names a text uses, each once, in order of first use.
///
/// # Errors
/// `bad_placeholder` for `$KARYI{` that is no placeholder.
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

/// Returns the names a text uses that have no value.
///
/// # Errors
/// `bad_placeholder` for `$KARYI{` that is no placeholder.
pub fn undefined_names(text: &str, secrets: &Secrets) -> Result<Vec<SecretName>, ToolError> {
    let mut names = names_in(text)?;
    names.retain(|name| !secrets.contains(name));
    Ok(names)
}

/// Makes the error that lists names without a value.
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
    ToolError::new(ErrorCode::UndefinedVariable, message).with_hint(format!(
        "ask for it first: <get_value key=\"{first}\" reason=\"...\"/>, and use it from the next <tools> block on"
    ))
    .with_names(shown.iter().map(|name| (*name).to_owned()).collect())
}

/// Replaces every placeholder by its value and every escaped one by the characters it stands for.
///
/// # Errors
/// `bad_placeholder`, or `undefined_variable` with all names that have no value.
pub fn substitute(text: &str, secrets: &Secrets) -> Result<Resolved, ToolError> {
    substitute_with(text, secrets, |value, out| append(out, value))
}

fn substitute_with(
    text: &str,
    secrets: &Secrets,
    put: impl Fn(&str, &mut Zeroizing<String>),
) -> Result<Resolved, ToolError> {
    let mut resolved = Zeroizing::new(String::with_capacity(text.len()));
    let missing = undefined_names(text, secrets)?;
    if !missing.is_empty() {
        return Err(undefined(&missing));
    }
    for piece in pieces(text)? {
        match piece {
            Piece::Literal(text) | Piece::Escaped(text) => append(&mut resolved, text),
            Piece::Secret(name) => match secrets.get(&name) {
                Some(value) => put(value.expose(), &mut resolved),
                // It was removed since the check.
                None => return Err(undefined(&[name])),
            },
            Piece::File(name) => return Err(file_outside_of_script(&name)),
        }
    }
    Ok(Resolved {
        text: resolved,
        bindings: Vec::new(),
    })
}

/// Puts the values into text whose backslash escapes are read afterwards: those of a value are
/// doubled, so that it comes out as it is.
///
/// # Errors
/// As [`substitute`].
pub fn substitute_typed(text: &str, secrets: &Secrets) -> Result<Resolved, ToolError> {
    substitute_with(text, secrets, |value, out| {
        for part in value.split_inclusive('\\') {
            append(out, part);
            if part.ends_with('\\') {
                append(out, "\\");
            }
        }
    })
}

/// Appends to text that holds secrets: a buffer that grows in place would leave a copy behind.
fn append(text: &mut Zeroizing<String>, more: &str) {
    if text.capacity() - text.len() < more.len() {
        let mut larger = Zeroizing::new(String::with_capacity((text.len() + more.len()) * 2));
        larger.push_str(text);
        *text = larger;
    }
    text.push_str(more);
}

fn file_outside_of_script(name: &SecretName) -> ToolError {
    let message = format!("$KARYI{{{name}|file}} stands outside of a script");
    ToolError::new(ErrorCode::BadPlaceholder, message).with_hint(format!(
        "only <command> can use the path of a file; write $KARYI{{{name}}} here"
    ))
}

pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, ToolError> {
    secret::split(text).map_err(|bad| bad_placeholder(text, bad))
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
    ToolError::new(
        ErrorCode::BadPlaceholder,
        format!("line {line}: expected a name and its closing brace after the `$`, found `{seen}`"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::SecretValue;

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
    fn broken_placeholders_are_named() {
        check(
            "one\ntwo $KARYI{a b}\n",
            "bad_placeholder: line 2: expected a name and its closing brace after the `$`, found `KARYI{a b}`",
        );
    }
}
