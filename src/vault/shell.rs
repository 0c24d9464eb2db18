//! Lets a shell script refer to secrets without holding them.
//!
//! Each placeholder becomes a quoted reference to a variable with a random name, and the values
//! travel to the shell beside the script. The quoting is right for the place, so that a program
//! receives exactly the value; where the text is read as code again only values pass that cannot
//! be code. What is promised is the shell's own reading of the script, and the programs listed in
//! `programs`; a script that hands a value on to others is on its own.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fmt::Write;
use std::hash::BuildHasher;

use zeroize::Zeroizing;

use super::script::{self, Hole, Place, Quote, Unreadable};
use super::session::{Secrets, VARIABLE_PREFIX};
use super::substitute;
use super::words::Demands;
use crate::error::{ErrorCode, ToolError};
use crate::secret::{Binding, ByteSet, Holds, NotInZsh, Piece, Resolved, SecretName, SecretValue};

/// Replaces the placeholders of a script by references to variables.
///
/// # Errors
/// `bad_placeholder`; `undefined_variable` with all names that have no value; `unsafe_context` and
/// `unsafe_nested_parse` for a placeholder that cannot stand where it does.
pub fn substitute_script(text: &str, secrets: &Secrets) -> Result<Resolved, ToolError> {
    let (text, variables) = substituted(text, secrets)?;
    for ((name, holds), binding) in &variables.known {
        // The shell may show what it runs.
        secrets.note_variable(&binding.variable, name, *holds);
    }
    Ok(Resolved {
        text,
        bindings: variables.into_bindings(),
        values: ByteSet::EMPTY,
    })
}

/// Returns a script with references in it, and the variables they refer to.
fn substituted<'a>(
    text: &str,
    secrets: &'a Secrets,
) -> Result<(Zeroizing<String>, Variables<'a>), ToolError> {
    let marks = marks(text)?;
    let mut variables = Variables::new(secrets);
    if marks.is_empty() {
        return Ok((Zeroizing::new(text.to_owned()), variables));
    }
    let missing = substitute::undefined_names(text, secrets)?;
    if !missing.is_empty() {
        return Err(substitute::undefined(&missing));
    }
    let holes: Vec<Hole> = marks.iter().map(|mark| mark.hole.clone()).collect();
    let places = match script::places(text, &holes) {
        Ok(places) => places,
        Err(found) => {
            variables.needs_zsh = true;
            script::places_in_zsh(text, &holes).map_err(|_| unreadable(text, found))?
        }
    };
    // Where both can read it, they need not agree.
    let in_zsh = script::places_in_zsh(text, &holes).ok();
    let mut resolved = Zeroizing::new(String::with_capacity(text.len() + marks.len() * 32));
    let mut at = 0;
    for (at_mark, (mark, place)) in marks.iter().zip(&places).enumerate() {
        let range = &mark.hole;
        resolved.push_str(text.get(at..range.start).unwrap_or_default());
        match &mark.name {
            Some((name, holds)) => {
                let spot = Spot {
                    text,
                    offset: range.start,
                    place,
                };
                let other = in_zsh.as_ref().and_then(|places| places.get(at_mark));
                let reference = variables.reference(name, *holds, spot, other)?;
                if let Some(sign) = place.follows_sign.then(|| resolved.pop()).flatten() {
                    resolved.push('\\');
                    resolved.push(sign);
                }
                resolved.push_str(&reference);
            }
            None => {
                let literal = text.get(range.start + 1..range.end).unwrap_or_default();
                let spot = Spot {
                    text,
                    offset: range.start,
                    place,
                };
                resolved.push_str(&quoted_literal(literal, spot)?);
            }
        }
        at = range.end;
    }
    resolved.push_str(text.get(at..).unwrap_or_default());
    Ok((resolved, variables))
}

/// Checks that every placeholder of a script can stand where it does.
///
/// # Errors
/// As [`substitute_script`].
pub fn check_script(text: &str, secrets: &Secrets) -> Result<(), ToolError> {
    substituted(text, secrets).map(drop)
}

/// A placeholder, or an escaped one, and where it stands.
pub(super) struct Mark {
    pub(super) hole: Hole,
    pub(super) name: Option<(SecretName, Holds)>,
}

pub(super) fn marks(text: &str) -> Result<Vec<Mark>, ToolError> {
    let mut marks = Vec::new();
    let mut at = 0;
    for piece in substitute::pieces(text)? {
        let (end, name) = match piece {
            Piece::Literal(literal) => {
                at += literal.len();
                continue;
            }
            Piece::Escaped(_) => (escaped_end(text, at), None),
            Piece::Secret(name) => {
                let end = at + "$KARYI{}".len() + name.as_str().len();
                (end, Some((name, Holds::Value)))
            }
            Piece::File(name) => {
                let end = at + "$KARYI{|file}".len() + name.as_str().len();
                (end, Some((name, Holds::Path)))
            }
        };
        let is_escaped = name.is_none();
        // The rest of an escaped placeholder comes again as literal text.
        let piece_end = if is_escaped {
            at + "$$KARYI{".len()
        } else {
            end
        };
        marks.push(Mark {
            hole: at..end,
            name,
        });
        at = piece_end;
    }
    Ok(marks)
}

/// Returns the end of the escaped placeholder that starts at `start`: with name and closer when
/// they are there, so that a `>` is no redirection.
fn escaped_end(text: &str, start: usize) -> usize {
    let open = start + "$$KARYI{".len();
    let closer = if text.as_bytes().get(open - 1) == Some(&b'<') {
        b'>'
    } else {
        b'}'
    };
    let rest = text.as_bytes().get(open..).unwrap_or_default();
    let length = rest
        .iter()
        .take(SecretName::MAX_LEN + 1)
        .position(|byte| *byte == closer);
    let name = length
        .and_then(|length| text.get(open..open + length))
        .and_then(SecretName::parse);
    name.map_or(open, |name| open + name.as_str().len() + 1)
}

/// Where in the script something stands.
#[derive(Clone, Copy)]
struct Spot<'a> {
    text: &'a str,
    offset: usize,
    place: &'a Place,
}

/// A path like the ones of files with values, to see whether a path can stand at a place.
const ANY_PATH: &str = "/run/karyi/file";

/// What a place is for a value or a path: the path is karyi's own, and its characters are no code in any language.
fn for_kind(place: &Place, holds: Holds) -> Place {
    let mut place = place.clone();
    if holds == Holds::Path {
        let demands = &mut place.demands;
        (demands.program, demands.shell, demands.code_variable) = (false, false, false);
    }
    place
}

/// Checks a value that is read from its file as code, or calculated with.
fn check_content(name: &SecretName, value: &SecretValue, spot: Spot<'_>) -> Result<(), ToolError> {
    let demands = Demands {
        forbidden: None,
        in_function: false,
        ..spot.place.content
    };
    let mut place = spot.place.clone();
    place.demands = demands;
    let place = &place;
    check(name, value.expose(), Spot { place, ..spot })
}

/// The variables a script refers to, one for each name.
struct Variables<'a> {
    secrets: &'a Secrets,
    /// Whether only zsh can read the script.
    needs_zsh: bool,
    known: BTreeMap<(SecretName, Holds), Binding>,
}

impl<'a> Variables<'a> {
    fn new(secrets: &'a Secrets) -> Self {
        Self {
            secrets,
            needs_zsh: false,
            known: BTreeMap::new(),
        }
    }

    /// Returns what stands for a name at a place.
    fn reference(
        &mut self,
        name: &SecretName,
        holds: Holds,
        spot: Spot<'_>,
        in_zsh: Option<&Place>,
    ) -> Result<String, ToolError> {
        if spot.place.quote == Quote::Comment {
            return Ok(format!("[KARYI:{name}]"));
        }
        let binding = self.binding(name, holds)?;
        let seen = match holds {
            Holds::Value => binding.value.expose(),
            Holds::Path => ANY_PATH,
        };
        let own = for_kind(spot.place, holds);
        check(
            name,
            seen,
            Spot {
                place: &own,
                ..spot
            },
        )?;
        if holds == Holds::Path {
            check_content(name, &binding.value, spot)?;
        }
        let suits_zsh = in_zsh.is_some_and(|place| {
            let place = &for_kind(place, holds);
            place.quote == spot.place.quote && check(name, seen, Spot { place, ..spot }).is_ok()
        });
        let content_in_zsh = match (holds, in_zsh) {
            (Holds::Path, Some(place)) => not_in_zsh(binding.value.expose(), place.content),
            _ => None,
        };
        let not_in_zsh = match suits_zsh {
            true => not_in_zsh(seen, spot.place.demands).or(content_in_zsh),
            false => Some(NotInZsh::Code),
        };
        binding.not_in_zsh = binding.not_in_zsh.or(not_in_zsh);
        binding.is_split |= spot.place.demands.split;
        let variable = &binding.variable;
        Ok(match spot.place.quote {
            Quote::Bare => format!("\"${{{variable}}}\""),
            Quote::Double | Quote::Text | Quote::Literal | Quote::Comment => {
                format!("${{{variable}}}")
            }
            Quote::Single => format!("'\"${{{variable}}}\"'"),
            Quote::Dollar => format!("'\"${{{variable}}}\"$'"),
        })
    }

    fn binding(&mut self, name: &SecretName, holds: Holds) -> Result<&mut Binding, ToolError> {
        let key = (name.clone(), holds);
        if !self.known.contains_key(&key) {
            let binding = Binding {
                variable: random_variable(name),
                value: self.value(name)?,
                holds,
                not_in_zsh: None,
                needs_zsh: self.needs_zsh,
                is_split: false,
            };
            self.known.insert(key.clone(), binding);
        }
        self.known
            .get_mut(&key)
            .ok_or_else(|| substitute::undefined(std::slice::from_ref(name)))
    }

    fn value(&self, name: &SecretName) -> Result<SecretValue, ToolError> {
        self.secrets
            .get(name)
            .ok_or_else(|| substitute::undefined(std::slice::from_ref(name)))
    }

    fn into_bindings(self) -> Vec<Binding> {
        self.known.into_values().collect()
    }
}

/// Returns a name that no script can know. The hasher is seeded by the system.
fn random_variable(name: &SecretName) -> String {
    let mut variable = String::from(VARIABLE_PREFIX);
    for _ in 0..2 {
        let _ = write!(
            variable,
            "{:016x}",
            RandomState::new().hash_one(name.as_str())
        );
    }
    variable
}

fn check(name: &SecretName, value: &str, spot: Spot<'_>) -> Result<(), ToolError> {
    let refused = refused_anywhere(spot)
        .or_else(|| refused_words(spot))
        .or_else(|| refused_value(name, value, spot.place.demands));
    let Some((code, what, hint)) = refused else {
        return Ok(());
    };
    let message = format!("line {}: {name} stands {what}", line(spot));
    let error = ToolError::new(code, message);
    Err(match hint {
        None => error,
        Some(hint) => error.with_hint(hint),
    })
}

/// Why something is refused: the code, where it stands, and what to do.
type Refusal = (ErrorCode, Cow<'static, str>, Option<String>);

/// Returns why no value at all can stand at a place.
fn refused_anywhere(spot: Spot<'_>) -> Option<Refusal> {
    let demands = spot.place.demands;
    let gone = demands.in_function.then_some(IN_FUNCTION);
    if let Some(why) = demands.forbidden.or(gone) {
        let hint = match (spot.place.quote, why) {
            (Quote::Literal, _) if demands.is_code() => {
                code_hint(demands).or_else(|| Some(LITERAL_HINT.to_owned()))
            }
            (Quote::Literal, _) => Some(format!("{LITERAL_HINT}; {UNQUOTED_DELIMITER}")),
            (_, IN_FUNCTION) => Some(FUNCTION_HINT.to_owned()),
            _ => None,
        };
        return Some((ErrorCode::UnsafeContext, why.into(), hint));
    }
    let what = "in a variable whose text programs run, or load code from";
    let hint = Some(VARIABLE_HINT.to_owned());
    demands
        .code_variable
        .then_some((ErrorCode::UnsafeContext, what.into(), hint))
}

/// Returns why no value can stand where it is read as code after the script has changed it.
fn refused_words(spot: Spot<'_>) -> Option<Refusal> {
    let demands = spot.place.demands;
    let is_parted =
        || demands.split && memchr::memmem::find(spot.text.as_bytes(), b"IFS").is_some();
    let what = match () {
        () if demands.changed => {
            "in text that is read as code after other text was put into it by ${name/...}"
        }
        () if is_parted() => {
            "without double quotes where words are code or options, and the script names IFS"
        }
        () => return None,
    };
    Some((ErrorCode::UnsafeNestedParse, what.into(), None))
}

/// Returns why a value cannot stand where these are demanded.
fn refused_value(name: &SecretName, value: &str, demands: Demands) -> Option<Refusal> {
    let (context, nested) = (ErrorCode::UnsafeContext, ErrorCode::UnsafeNestedParse);
    if demands.number && !is_number(value) {
        let what = "where its text may be taken for a number by the shell (as it stands, by a variable, or as a command prints it), and its value is no whole number";
        return Some((context, what.into(), Some(NUMBER_HINT.to_owned())));
    }
    if demands.list && value.starts_with('(') {
        let what = "where the shell reads a parenthesis as the start of an array, and its value starts with one";
        return Some((context, what.into(), None));
    }
    let is_code = demands.shell && !is_shell_safe(value);
    if is_code || demands.program && !is_program_safe(value) {
        let by = match demands.by.0 {
            None => "another program".to_owned(),
            Some(script::ARITHMETIC) => script::ARITHMETIC.to_owned(),
            Some(name) => format!("`{name}`"),
        };
        let what = format!(
            "in text that {by} reads as code, and its value holds characters that could be code"
        );
        return Some((nested, what.into(), code_hint(demands)));
    }
    if demands.whole && !is_whole(value) {
        let what = "without double quotes where a shell makes words of its own of it, and its value holds blanks or signs of file patterns";
        return Some((nested, what.into(), Some(WHOLE_HINT.to_owned())));
    }
    if demands.operand && value.starts_with(['-', '+', '|', '!']) {
        let what = "where a program takes options that name code, and its value starts like one";
        return Some((nested, what.into(), Some(OPERAND_HINT.to_owned())));
    }
    let is_option = demands.echo && is_echo_option(value);
    let is_escape = demands.backslash && value.contains('\\');
    let what = "in text whose % and backslashes mean something, and its value holds such";
    let hint = || format!("print it with printf '%s' \"$KARYI{{{name}}}\"");
    (demands.format && !is_format_safe(value) || is_option || is_escape)
        .then(|| (nested, what.into(), Some(hint())))
}

/// How code of a program reads a variable of its environment.
const ENVIRONMENTS: &[(&str, &str)] = &[
    ("python", "os.environ['X']"),
    ("ruby", "ENV['X']"),
    ("perl", "$ENV{X}"),
    ("node", "process.env.X"),
    ("php", "getenv('X')"),
    ("awk", "ENVIRON[\"X\"]"),
    ("jq", "env.X"),
];

/// Returns the way out where a value would be code; nothing where it is that of all shells.
fn code_hint(demands: Demands) -> Option<String> {
    let by = demands.by.0;
    let own = match by {
        _ if demands.unquoted => UNQUOTED_HINT,
        Some("eval" | "source" | ".") => SOURCE_HINT,
        Some(script::ARITHMETIC) => ARITHMETIC_HINT,
        Some("sed" | "gsed") => SED_HINT,
        _ => return demands.program.then(|| environment_hint(by)),
    };
    Some(own.to_owned())
}

fn environment_hint(program: Option<&str>) -> String {
    let start = "give it through the environment, X=$KARYI{NAME} before the command, and have";
    // `gawk`, `nodejs`
    let is_kind = |(name, _): &&(&str, &str)| program.is_some_and(|program| program.contains(name));
    let own = ENVIRONMENTS.iter().find(is_kind);
    let read = match (program, own) {
        (_, Some((_, text))) => format!("the code itself read it there: {text}"),
        (Some(name), None) => {
            return format!(
                "{start} {name} read it there if it can, or from a file, $KARYI{{NAME|file}}"
            );
        }
        (None, None) => {
            let all = ENVIRONMENTS
                .iter()
                .map(|(name, text)| format!("{text} in {name}"));
            let all: Vec<String> = all.collect();
            format!("the code itself read it there: {}", all.join(", "))
        }
    };
    format!("{start} {read}; never by \"$X\" inside of the code")
}

const IN_FUNCTION: &str = "in the body of a function";

const FUNCTION_HINT: &str = "set a variable before the function and use that in its body, T=$KARYI{NAME}; f() { ... \"$T\" ...; }, or give the value as an argument, f() { ... \"$1\" ...; }; f $KARYI{NAME}";

const LITERAL_HINT: &str = "have the text read the value where it is used: write $TOKEN there, and run what reads it with TOKEN=$KARYI{NAME} before the command";

const OPERAND_HINT: &str = "put -- before it, or let text stand before the placeholder in its word, such as --name=$KARYI{NAME}";

const VARIABLE_HINT: &str = "a file with the value may stand there, $KARYI{NAME|file}; or give the value in a variable of its own and name that one";

const NUMBER_HINT: &str = "only a whole number can be calculated with; compare text with = or != instead, in double quotes";

const UNQUOTED_DELIMITER: &str =
    "or leave out the quotes, <<EOF, where the shell reads $, ` and \\ in the text";

const SOURCE_HINT: &str = "do without it, or run it in a <command> of its own before this one; give the value to the program that needs it, X=$KARYI{NAME} PROGRAM, and to no file that is read as a script";

const ARITHMETIC_HINT: &str = "compare with [ \"$n\" -gt 3 ] in bash instead, or put the placeholder where it is used and not into a variable, or calculate in a <command> of its own";

const SED_HINT: &str = "put it into the file with <edit>, if its policy lets it be written; or give it through the environment to a program that reads it there: X=$KARYI{NAME} python3 -c '... os.environ[\"X\"] ...'";

const WHOLE_HINT: &str = "put double quotes around the variable, or around the substitution";

const UNQUOTED_HINT: &str = "a variable before it may be several words, or the name of a shell: put double quotes around it, or write the program's name out";

/// Returns why zsh cannot take a value where another shell can.
fn not_in_zsh(value: &str, demands: Demands) -> Option<NotInZsh> {
    if demands.echo && value.contains('\\') {
        Some(NotInZsh::Backslash)
    } else if demands.not_in_zsh || demands.zsh && !is_shell_safe(value) {
        Some(NotInZsh::Code)
    } else {
        None
    }
}

fn is_number(value: &str) -> bool {
    let is_long = value.len() > 18 || value.len() > 1 && value.starts_with('0');
    !value.is_empty() && !is_long && value.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_shell_safe(value: &str) -> bool {
    !value.starts_with('-')
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_./:@%+,-".contains(&byte))
}

/// Whether a shell makes one word of a value without quotes.
fn is_whole(value: &str) -> bool {
    !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || "*?[(\\".contains(c))
}

fn is_format_safe(value: &str) -> bool {
    !value.starts_with('-') && !value.contains(['%', '\\'])
}

/// Whether a value alone is an option of `echo`.
fn is_echo_option(value: &str) -> bool {
    let letters = value.strip_prefix('-');
    letters
        .is_some_and(|letters| !letters.is_empty() && letters.bytes().all(|b| b"neE".contains(&b)))
}

fn is_program_safe(value: &str) -> bool {
    value
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn line(spot: Spot<'_>) -> usize {
    let before = spot.text.get(..spot.offset).unwrap_or_default();
    1 + memchr::memchr_iter(b'\n', before.as_bytes()).count()
}

/// Quotes the literal characters of an escaped placeholder for their place.
fn quoted_literal(literal: &str, spot: Spot<'_>) -> Result<String, ToolError> {
    let place = spot.place;
    let dollar = if place.in_backticks { "\\\\\\$" } else { "\\$" };
    let rest = literal.strip_prefix('$').unwrap_or(literal);
    match place.quote {
        Quote::Single | Quote::Dollar | Quote::Literal | Quote::Comment => Ok(literal.to_owned()),
        Quote::Bare | Quote::Double | Quote::Text if place.in_parameter || place.demands.number => {
            let message = format!(
                "line {}: an escaped placeholder stands inside of an expansion",
                line(spot)
            );
            Err(ToolError::new(ErrorCode::UnsafeContext, message)
                .with_hint("assign the text to a variable first: x='$$KARYI{NAME}'"))
        }
        Quote::Bare => Ok(format!(
            "{dollar}{}",
            rest.replace('{', "\\{")
                .replace('}', "\\}")
                .replace('<', "\\<")
                .replace('>', "\\>")
        )),
        Quote::Double | Quote::Text => Ok(format!("{dollar}{rest}")),
    }
}

fn unreadable(text: &str, found: Unreadable) -> ToolError {
    let before = text.get(..found.offset).unwrap_or(text);
    let line = 1 + memchr::memchr_iter(b'\n', before.as_bytes()).count();
    let message = format!("line {line}: {}", found.why);
    let error = ToolError::new(ErrorCode::UnsafeContext, message);
    match found.why {
        script::AFTER_BACKSLASH => error.with_hint(BACKSLASH_HINT),
        _ => error,
    }
}

const BACKSLASH_HINT: &str =
    "leave out the backslash; for the characters themselves write $$KARYI{NAME}";

#[cfg(test)]
mod tests;
