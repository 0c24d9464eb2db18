//! Lets a shell script refer to secrets without holding them.
//!
//! Each placeholder becomes a quoted reference to a variable with a random name, and the values
//! travel to the shell beside the script. The quoting is right for the place, so that a program
//! receives exactly the value; where the text is read as code again only values pass that cannot
//! be code. What is promised is the shell's own reading of the script, and the programs listed in
//! `programs`; a script that hands a value on to others is on its own.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fmt::Write;
use std::hash::BuildHasher;

use zeroize::Zeroizing;

use super::script::{self, Hole, Place, Quote, Unreadable};
use super::session::Secrets;
use super::substitute;
use super::words::Demands;
use crate::error::{ErrorCode, ToolError};
use crate::secret::{Binding, Holds, Piece, Resolved, SecretName, SecretValue};

/// Replaces the placeholders of a script by references to variables.
///
/// # Errors
/// `bad_placeholder`; `undefined_variable` with all names that have no value; `unsafe_context` and
/// `unsafe_nested_parse` for a placeholder that cannot stand where it does.
pub fn substitute_script(text: &str, secrets: &Secrets) -> Result<Resolved, ToolError> {
    let marks = marks(text)?;
    if marks.is_empty() {
        return Ok(Resolved {
            text: Zeroizing::new(text.to_owned()),
            bindings: Vec::new(),
        });
    }
    let missing = substitute::undefined_names(text, secrets)?;
    if !missing.is_empty() {
        return Err(substitute::undefined(&missing));
    }
    let holes: Vec<Hole> = marks.iter().map(|mark| mark.hole.clone()).collect();
    let places = script::places(text, &holes).map_err(|found| unreadable(text, found))?;
    let mut variables = Variables::new(secrets);
    let mut resolved = Zeroizing::new(String::with_capacity(text.len() + marks.len() * 32));
    let mut at = 0;
    for (mark, place) in marks.iter().zip(&places) {
        let range = &mark.hole;
        resolved.push_str(text.get(at..range.start).unwrap_or_default());
        match &mark.name {
            Some((name, holds)) => {
                let spot = Spot {
                    text,
                    offset: range.start,
                    place,
                };
                resolved.push_str(&variables.reference(name, *holds, spot)?);
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
    Ok(Resolved {
        text: resolved,
        bindings: variables.into_bindings(),
    })
}

/// Checks that every placeholder of a script can stand where it does.
///
/// # Errors
/// As [`substitute_script`].
pub fn check_script(text: &str, secrets: &Secrets) -> Result<(), ToolError> {
    substitute_script(text, secrets).map(drop)
}

/// A placeholder, or an escaped one, and where it stands.
struct Mark {
    hole: Hole,
    name: Option<(SecretName, Holds)>,
}

fn marks(text: &str) -> Result<Vec<Mark>, ToolError> {
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

/// The variables a script refers to, one for each name.
struct Variables<'a> {
    secrets: &'a Secrets,
    known: BTreeMap<(SecretName, Holds), Binding>,
}

impl<'a> Variables<'a> {
    fn new(secrets: &'a Secrets) -> Self {
        Self {
            secrets,
            known: BTreeMap::new(),
        }
    }

    /// Returns what stands for a name at a place.
    fn reference(
        &mut self,
        name: &SecretName,
        holds: Holds,
        spot: Spot<'_>,
    ) -> Result<String, ToolError> {
        if spot.place.quote == Quote::Comment {
            return Ok(format!("[KARYI:{name}]"));
        }
        let binding = self.binding(name, holds)?;
        let seen = match holds {
            Holds::Value => binding.value.expose(),
            Holds::Path => ANY_PATH,
        };
        check(name, seen, spot)?;
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

    fn binding(&mut self, name: &SecretName, holds: Holds) -> Result<&Binding, ToolError> {
        let key = (name.clone(), holds);
        if !self.known.contains_key(&key) {
            let binding = Binding {
                variable: random_variable(name),
                value: self.value(name)?,
                holds,
            };
            self.known.insert(key.clone(), binding);
        }
        self.known
            .get(&key)
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
    let mut variable = String::from("__karyi_");
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
    let Demands {
        number,
        shell,
        program,
        format,
        forbidden,
    } = spot.place.demands;
    let refuse = |code, what: &str| {
        let message = format!("line {}: {name} stands {what}", line(spot));
        Err(ToolError::new(code, message))
    };
    if let Some(why) = forbidden {
        let is_literal = spot.place.quote == Quote::Literal;
        let refused = refuse(ErrorCode::UnsafeContext, why);
        return refused.map_err(|error| {
            if is_literal {
                error.with_hint(LITERAL_HINT)
            } else {
                error
            }
        });
    }
    if number && !is_number(value) {
        let what = "where the shell takes a number, and its value is no whole number";
        return refuse(ErrorCode::UnsafeContext, what);
    }
    if shell && !is_shell_safe(value) || program && !is_program_safe(value) {
        let what = "in text that another program reads as code, and its value holds characters that could be code";
        return refuse(ErrorCode::UnsafeNestedParse, what);
    }
    if format && !is_format_safe(value) {
        let what = "in text whose % and backslashes mean something, and its value holds such";
        let refused = refuse(ErrorCode::UnsafeNestedParse, what);
        return refused.map_err(|error| {
            error.with_hint(format!("print it with printf '%s' \"$KARYI{{{name}}}\""))
        });
    }
    Ok(())
}

const LITERAL_HINT: &str =
    "take the quotes off the delimiter of the here-document, or write the file with <edit>";

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

fn is_format_safe(value: &str) -> bool {
    !value.starts_with('-') && !value.contains(['%', '\\'])
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
    ToolError::new(
        ErrorCode::UnsafeContext,
        format!("line {line}: {}", found.why),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Output};

    const HOSTILE: &[&str] = &[
        "plain-value",
        "$(touch pwned)",
        "`touch pwned`",
        "'; touch pwned; '",
        "\"; touch pwned; \"",
        "\"$(touch pwned)\"",
        "a b  c ",
        "*** ?",
        "-n -e x",
        "--help",
        "-eq 1",
        "back\\slash\\",
        "\\\\\\\\",
        "new\nline",
        "lead\n\n",
        "\n\nlines",
        "$HOME ${PATH}",
        "{a,b}{1..3}",
        "~root",
        "!history!",
        "#comment",
        "tab\there\t",
        "é密码🔑",
        "a[$(touch pwned)]",
        "$KARYI{V0}",
        "EOF\ntouch pwned\n",
        "%s%n%d",
        "&& touch pwned",
        "\\&\\&",
        "]] || touch pwned",
        ";; esac",
        ">pwned",
        "| touch pwned",
        "\\'\\'",
        "'\"'\"'",
        "\r\n\r\n",
        "$'\\x41'",
        ">(touch pwned)",
        "((x))",
        "[a-z]",
    ];

    fn secrets(values: &[&str]) -> Secrets {
        let secrets = Secrets::default();
        for (index, value) in values.iter().enumerate() {
            let name = SecretName::parse(&format!("V{index}")).unwrap();
            secrets
                .insert(name, SecretValue::new((*value).into()))
                .unwrap();
        }
        secrets
    }

    fn run(directory: &std::path::Path, resolved: &mut Resolved, shell: &str) -> Output {
        let path = directory.join("script");
        std::fs::write(&path, resolved.text.as_bytes()).unwrap();
        let mut command = Command::new(shell);
        command
            .arg(&path)
            .current_dir(directory)
            .env_remove("BASH_ENV");
        for binding in &resolved.bindings {
            command.env(&binding.variable, binding.value.expose());
        }
        command.output().unwrap()
    }

    const RECEIVER: &str = "recv() { printf '[%s]' \"$@\"; }\n";

    /// Runs a script in bash and zsh with every hostile value in place of `VALUE` and compares what
    /// it prints.
    fn check(script: &str, expected: &str) {
        check_in("bash", HOSTILE, script, expected);
        if has_zsh() {
            check_in("zsh", HOSTILE, script, expected);
        }
    }

    /// The same for what only bash knows.
    fn check_bash(script: &str, expected: &str) {
        check_in("bash", HOSTILE, script, expected);
    }

    fn check_values(values: &[&str], script: &str, expected: &str) {
        check_in("bash", values, script, expected);
    }

    fn has_zsh() -> bool {
        static HAS_ZSH: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
            let found = Command::new("zsh").arg("--version").output().is_ok();
            if !found {
                println!("skipped: zsh is not installed");
            }
            found
        });
        *HAS_ZSH
    }

    fn check_in(shell: &str, values: &[&str], script: &str, expected: &str) {
        let temp = tempfile::tempdir().unwrap();
        let mut whole = String::from(RECEIVER);
        let mut wanted = String::new();
        for (index, value) in values.iter().enumerate() {
            whole.push_str(&script.replace("VALUE", &format!("$KARYI{{V{index}}}")));
            whole.push_str("\nprintf '\\1\\n'\n");
            wanted.push_str(&expected.replace("VALUE", value));
            wanted.push_str("\x01\n");
        }
        let mut resolved = substitute_script(&whole, &secrets(values))
            .unwrap_or_else(|error| panic!("{script}: {error}"));
        let output = run(temp.path(), &mut resolved, shell);
        let seen = String::from_utf8_lossy(&output.stdout);
        let pairs = seen.split('\x01').zip(wanted.split('\x01'));
        let first = pairs.clone().find(|(seen, wanted)| seen != wanted);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(first, None, "{shell}: {script}\n{errors}");
        assert_eq!(seen, wanted, "{shell}: {script}\n{errors}");
        assert!(!temp.path().join("pwned").exists(), "{shell}: {script}");
    }

    #[test]
    fn words_and_quotes() {
        check("recv VALUE", "[VALUE]");
        check("recv pre_VALUE/post", "[pre_VALUE/post]");
        check("recv VALUEVALUE x VALUE", "[VALUEVALUE][x][VALUE]");
        check("recv \"VALUE\" \"a VALUE b\"", "[VALUE][a VALUE b]");
        check("recv 'a VALUE b' 'x'VALUE'y'", "[a VALUE b][xVALUEy]");
        check("recv $'x\\t\\'VALUE\\''", "[x\t'VALUE']");
        check(
            "recv \"it's VALUE\" 'say \"VALUE\"' \"\\\"VALUE\\\"\"",
            "[it's VALUE][say \"VALUE\"][\"VALUE\"]",
        );
        check("x='it'\\''s VALUE'; recv \"$x\"", "[it's VALUE]");
        check("recv a\\\n VALUE", "[a][VALUE]");
        check("recv {a,VALUE} a#VALUE", "[a][VALUE][a#VALUE]");
        check("recv $((1+1))VALUE \"$((2))VALUE\"", "[2VALUE][2VALUE]");
        check_bash("recv \"$#VALUE\"", "[0VALUE]");
        check_bash("recv $\"VALUE\"", "[VALUE]");
        check("recv ok # VALUE it's", "[ok]");
        check("recv ok;# VALUE\nrecv VALUE", "[ok][VALUE]");
    }

    #[test]
    fn assignments_and_arrays() {
        check("x=VALUE; recv \"$x\"", "[VALUE]");
        check("x=a'VALUE'\"VALUE\" y=2; recv \"$x\"", "[aVALUEVALUE]");
        check(
            "a=(1 VALUE \"VALUE\"); recv \"${a[@]}\"",
            "[1][VALUE][VALUE]",
        );
        check(
            "a=([1]=VALUE); a[2]=VALUE; a+=(VALUE); recv \"${a[@]}\"",
            "[VALUE][VALUE][VALUE]",
        );
        check("declare -A m; m[k]=VALUE; recv \"${m[k]}\"", "[VALUE]");
        check(
            "export X=VALUE; export \"Y=VALUE\"; declare Z='VALUE'; recv \"$X\" \"$Y\" \"$Z\"",
            "[VALUE][VALUE][VALUE]",
        );
        check("X=VALUE bash -c 'printf %s. \"$X\"'", "VALUE.");
        check("bash -c 'printf %s. \"$1\"' _ VALUE", "VALUE.");
    }

    #[test]
    fn tests_and_compound_commands() {
        check("case VALUE in VALUE) recv yes;; *) recv no;; esac", "[yes]");
        check("case x in (x) recv VALUE;; esac", "[VALUE]");
        check(
            "case VALUE\nin\n'VALUE' | b)\nrecv yes VALUE\n;;\nesac",
            "[yes][VALUE]",
        );
        check(
            "[[ VALUE == VALUE && \"VALUE\" = 'VALUE' ]] && recv yes",
            "[yes]",
        );
        check(
            "[[ -n VALUE && ( a == a || VALUE =~ x ) ]] && recv VALUE",
            "[VALUE]",
        );
        check("[ VALUE = VALUE ] && recv yes", "[yes]");
        check("if true; then recv VALUE; else recv no; fi", "[VALUE]");
        check("for x in VALUE b; do recv \"$x\"; done", "[VALUE][b]");
        check("for ((i=0; i<1; i++)); do recv VALUE; done", "[VALUE]");
        check(
            "(recv VALUE); { recv VALUE; }; ! recv VALUE",
            "[VALUE][VALUE][VALUE]",
        );
        check("true && recv VALUE || recv no", "[VALUE]");
        check(
            "{ { recv VALUE; }; }\n{ recv VALUE; } | cat",
            "[VALUE][VALUE]",
        );
        check("cat <<A\nVALUE\nA\nf() { :; }; f VALUE", "VALUE\n");
        check(
            "case VALUE in *) f() { recv \"$1\"; }; f VALUE;; esac",
            "[VALUE]",
        );
        check("[[ VALUE-eq == VALUE-eq ]] && recv yes", "[yes]");
        check("f() { recv \"$1\"; }; f VALUE", "[VALUE]");
        check(
            "function f {\n recv \"$1\"\n}\nf VALUE; ((1)) && recv VALUE",
            "[VALUE][VALUE]",
        );
        check(
            "while read -r l; do :; done < <(echo VALUE); recv VALUE",
            "[VALUE]",
        );
    }

    #[test]
    fn substitutions_nest() {
        check(
            "recv \"$(printf %s. \"VALUE\")\" \"$(printf %s. 'VALUE')\" \"$(printf %s. VALUE)\"",
            "[VALUE.][VALUE.][VALUE.]",
        );
        check(
            "x=$(case a in a) printf %s. VALUE;; esac); recv \"$x\"",
            "[VALUE.]",
        );
        check("x=$(cat <<EOF\nVALUE.\nEOF\n); recv \"$x\"", "[VALUE.]");
        check(
            "recv \"`printf %s. VALUE`\"; x=`printf %s. \"VALUE\"`; recv \"$x\"",
            "[VALUE.][VALUE.]",
        );
        check("x=`printf %s. 'VALUE'`; recv \"$x\"", "[VALUE.]");
        check("cat <(printf %s VALUE)", "VALUE");
        check("recv \"$(recv \"$(recv \"VALUE\")\")\"", "[[[VALUE]]]");
        check("recv \"$( (recv VALUE) )\"", "[[VALUE]]");
        check("printf %s \"VALUE\" | cat | cat", "VALUE");
    }

    #[test]
    fn here_documents() {
        check("cat <<EOF\na VALUE b\nEOF", "a VALUE b\n");
        check(
            "cat <<-EOF\n\ta 'VALUE' \"VALUE\"\n\tEOF",
            "a 'VALUE' \"VALUE\"\n",
        );
        check("cat <<A; cat <<B\n1VALUE\nA\n2VALUE\nB", "1VALUE\n2VALUE\n");
        check(
            "cat <<EOF | cat\n$(printf %s 'VALUE.') `printf %s VALUE.`\nEOF",
            "VALUE. VALUE.\n",
        );
        check(
            "cat <<EOF\n\\$x \\\\ VALUE ${unset:-VALUE}\nEOF",
            "$x \\ VALUE VALUE\n",
        );
        check("cat << 'X' >/dev/null\nit's \"\nX\nrecv VALUE", "[VALUE]");
        check("cat <<\"X Y\"\nq\nX Y\nrecv VALUE", "q\n[VALUE]");
        check("cat <<EOF\na\\\nEOF\nVALUE\nEOF", "aEOF\nVALUE\n");
        check("cat <<< VALUE; cat <<<\"a VALUE\"", "VALUE\na VALUE\n");
    }

    #[test]
    fn expansions() {
        check(
            "recv \"${unset:-VALUE}\" ${unset:-VALUE} \"${unset-a VALUE}\"",
            "[VALUE][VALUE][a VALUE]",
        );
        check(
            "x=aVALUEb; recv \"${x#aVALUE}\" \"${x%VALUEb}\" \"${x#a\"VALUE\"}\"",
            "[b][a][b]",
        );
        check(
            "x=1-2; recv \"${x/-/VALUE}\" \"${#x}VALUE\" ${x:0:1}VALUE",
            "[1VALUE2][3VALUE][1VALUE]",
        );
        check(
            "recv \"a${unset:+x}VALUE\" \"${unset:-$(printf %s. VALUE)}\"",
            "[aVALUE][VALUE.]",
        );
    }

    #[test]
    fn second_parses_take_only_plain_values() {
        let plain = &["plain-value", "a/b:c@d%e+f,g.h_I"];
        check_values(plain, "bash -c 'printf %s. VALUE'", "VALUE.");
        check_values(plain, "eval \"recv VALUE\"", "[VALUE]");
        check_values(plain, "bash <<EOF\nprintf %s. VALUE\nEOF", "VALUE.");
        check_values(plain, "printf 'printf %%s. %s' VALUE | bash", "VALUE.");
        check_values(&["word_1"], "echo x | sed 's/x/VALUE/'", "VALUE\n");
        check_values(
            &["424242424242"],
            "recv $(( VALUE + 1 )) $((VALUE))",
            "[424242424243][424242424242]",
        );
    }

    fn check_refused(value: &str, script: &str, expected: &str) {
        let script = script.replace("VALUE", "$KARYI{V0}");
        let found = match substitute_script(&script, &secrets(&[value])) {
            Ok(resolved) => format!("accepted: {}", *resolved.text),
            Err(error) => error.code.as_str().to_owned(),
        };
        assert_eq!(found, expected, "{script}");
    }

    const UNSAFE_CONTEXTS: &[&str] = &[
        "cat <<'EOF'\nVALUE\nEOF",
        "cat <<\\EOF\nVALUE\nEOF",
        "f() { recv VALUE; }",
        "function f { recv VALUE; }",
        "f() (recv VALUE)",
        "f() if true; then recv VALUE; fi",
        "trap 'recv VALUE' EXIT",
        "trap \"recv $(echo VALUE)\" EXIT",
        "alias x='recv VALUE'",
        "echo $((VALUE))",
        "echo \"$(( 1 + VALUE ))\"",
        "((VALUE))",
        "let x=VALUE",
        "[[ VALUE -eq 1 ]]",
        "[[ 1 -lt $(echo VALUE) ]]",
        "a[VALUE]=1",
        "echo ${a[VALUE]}",
        "echo ${x:VALUE}",
        "echo $[VALUE]",
        "declare -i n=VALUE",
        "declare -i n; n=VALUE",
        "RANDOM=VALUE",
        "PS1=VALUE",
        "export PS4=$(echo VALUE)",
        "COLUMNS=VALUE",
        "a=([VALUE]=1)",
        "unset VALUE",
        "read VALUE",
        "printf -v VALUE x",
        "export VALUE",
        "declare \"VALUE=1\"",
        "[[ -v VALUE ]]",
        "test -v VALUE",
        "VALUE=1",
        "VALUE() { :; }",
        "for VALUE in a; do :; done",
        "echo ${VALUE}",
        "echo ${!VALUE}",
        "for ((i=VALUE;;)); do :; done",
        "[ VALUE -gt 1 ]",
        "echo \\VALUE",
        "echo \"\\VALUE\"",
        "echo $'\\VALUE'",
        "cat <<EOF\n\\VALUE\nEOF",
        "cat <<VALUE\nx\nVALUE",
        "echo 'VALUE",
        "echo \"VALUE",
        "echo $(VALUE",
        "echo `VALUE",
        "echo `echo \\`echo VALUE\\``",
        "echo \"`echo \\\"VALUE\\\"`\"",
        "printf %d VALUE",
        "echo ${x:-VALUE",
        "echo ${x:-'VALUE'}",
        "echo \"${x#'VALUE'}\"",
        "echo \"`echo '$(' VALUE`\"",
        "local -n r=VALUE",
        "select VALUE in a; do :; done",
        "echo ${x:$(echo VALUE)}",
    ];

    #[test]
    fn unsafe_contexts_are_refused() {
        for script in UNSAFE_CONTEXTS {
            check_refused("a[$(touch pwned)]", script, "unsafe_context");
        }
    }

    const SECOND_PARSES: &[&str] = &[
        "bash -c 'recv \"VALUE\"'",
        "sh -c \"recv VALUE\"",
        "zsh -lc VALUE",
        "/bin/bash -euo pipefail -c \"VALUE\"",
        "eval \"recv VALUE\"",
        "eval recv VALUE",
        "eval \"$(echo VALUE)\"",
        "ssh host \"recv VALUE\"",
        "su - u -c \"VALUE\"",
        "sudo -u u bash -c \"VALUE\"",
        "find . -exec sh -c 'VALUE' \\;",
        "xargs sh -c 'VALUE'",
        "python3 -c \"print('VALUE')\"",
        "perl -e 'print \"VALUE\"'",
        "node -e VALUE",
        "awk '{print \"VALUE\"}'",
        "sed s/a/VALUE/",
        "jq '.a = \"VALUE\"'",
        "psql -c \"select 'VALUE'\"",
        "docker exec c sh -c 'VALUE'",
        "env A=1 bash -c VALUE",
        "\"$SHELL\" -c VALUE",
        "bash <<EOF\nVALUE\nEOF",
        "cat <<EOF | bash\nVALUE\nEOF",
        "bash <<< \"VALUE\"",
        "<<<VALUE bash",
        "echo VALUE | sh",
        "{ echo VALUE; } | sudo sh",
        "for i in 1; do echo VALUE; done | bash",
        "echo VALUE |\nbash",
        "bash <(echo VALUE)",
        "source <(echo VALUE)",
        ". <(echo VALUE)",
        "python3 - <<EOF\nprint('VALUE')\nEOF",
        "echo VALUE | python3",
        "timeout 5 bash -c VALUE",
        "command eval VALUE",
        "\\eval VALUE",
        "'bash' -c VALUE",
        "ba\"sh\" -c VALUE",
        "if eval VALUE; then :; fi",
        "x=1 eval VALUE",
        "! eval VALUE",
        "true && eval VALUE",
        "(eval VALUE)",
        "$(eval VALUE)",
        "echo VALUE | psql",
        "2>/dev/null eval VALUE",
        "watch VALUE",
        "ssh host <<EOF\nVALUE\nEOF",
        "case x in x) eval VALUE;; esac",
        "echo | eval VALUE",
        "time eval VALUE",
        "[[ x =~ VALUE ]]",
        "$run VALUE",
        "echo VALUE | { cat; sh; }",
        "echo VALUE | for x in 1; do sh; done",
        "case x in x) sh;; esac <<< VALUE",
        "exec 3> >(sh); echo VALUE >&3",
        "rsync -e VALUE a b",
        "git -c core.pager=VALUE log",
    ];

    #[test]
    fn unsafe_second_parses_are_refused() {
        for script in SECOND_PARSES {
            check_refused("a[$(touch pwned)]", script, "unsafe_nested_parse");
            check_refused(
                "-leading",
                &script.replace("-c VALUE", "-c 'VALUE'"),
                "unsafe_nested_parse",
            );
        }
    }

    const FREE_PLACES: &[&str] = &[
        "curl -H \"Authorization: Bearer VALUE\" https://x.example",
        "PGPASSWORD=VALUE psql -c 'select 1'",
        "sshpass -p VALUE ssh host true",
        "python3 script.py --token VALUE",
        "bash script.sh VALUE",
        "echo eval VALUE",
        "echo VALUE > VALUE",
        "git commit -m VALUE",
        "docker run -e X=VALUE image",
        "jq --arg k VALUE '.k = $k'",
        "read x <<< VALUE",
        "read x < <(echo VALUE)",
        "[[ $x == VALUE ]]",
        "echo VALUE | sudo -S true",
        "psql \"postgres://u:VALUE@h\"",
        "bash -s -- VALUE < x",
        "docker login -u u --password-stdin <<< VALUE",
        "export A=1 B=VALUE",
        "printf %s VALUE | jq .",
        "perl script.pl VALUE",
        "for x in a; do curl VALUE; done",
        "while :; do curl VALUE; break; done",
        "cat > f <<EOF\neval VALUE\nEOF",
        "x=$(curl VALUE | bash -c 'cat')",
    ];

    #[test]
    fn other_commands_get_any_value() {
        for script in FREE_PLACES {
            let script = script.replace("VALUE", "$KARYI{V0}");
            let result = substitute_script(&script, &secrets(&["a[$(touch pwned)] '\""]));
            assert!(result.is_ok(), "{script}: {:?}", result.err());
        }
    }

    #[test]
    fn escaped_placeholders_arrive_literally() {
        let check = |script: &str, expected: &str| {
            let temp = tempfile::tempdir().unwrap();
            let whole = format!("{RECEIVER}{script}");
            let mut resolved = substitute_script(&whole, &Secrets::default()).unwrap();
            let output = run(temp.path(), &mut resolved, "bash");
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                expected,
                "{script}: {}",
                *resolved.text
            );
        };
        check(
            "recv $$KARYI{X} $$KARYI<X> a$$KARYI{a,b} $$KARYI{",
            "[$KARYI{X}][$KARYI<X>][a$KARYI{a,b}][$KARYI{]",
        );
        check(
            "recv \"$$KARYI{X}\" '$$KARYI{X}' $'$$KARYI{X}' \"$$KARYI<X>\"",
            "[$KARYI{X}][$KARYI{X}][$KARYI{X}][$KARYI<X>]",
        );
        check(
            "cat <<EOF\n$$KARYI{X}\nEOF\ncat <<'EOF'\n$$KARYI{X}\nEOF",
            "$KARYI{X}\n$KARYI{X}\n",
        );
        check(
            "recv `printf %s $$KARYI{X}` \"`printf %s \"$$KARYI{X}\"`\" `printf %s '$$KARYI{X}'`",
            "[$KARYI{X}][$KARYI{X}][$KARYI{X}]",
        );
        check("recv ok # $$KARYI{X}", "[ok]");
        check(
            "recv $$$KARYI{X} \"$$$KARYI{X}\"",
            "[$$KARYI{X}][$$KARYI{X}]",
        );
    }

    #[test]
    fn a_value_never_joins_the_script() {
        let secrets = secrets(&["very-secret", "other-secret"]);
        let mut resolved = substitute_script(
            "a $KARYI{V0} '$KARYI<V1>' \"$KARYI{V0}\" # $KARYI{V1}",
            &secrets,
        )
        .unwrap();
        let variables: Vec<String> = resolved
            .bindings
            .iter()
            .map(|binding| binding.variable.clone())
            .collect();
        let expected = format!(
            "a \"${{{0}}}\" ''\"${{{1}}}\"'' \"${{{0}}}\" # [KARYI:V1]",
            variables[0], variables[1]
        );
        assert_eq!(*resolved.text, expected);
        assert!(
            variables
                .iter()
                .all(|name| name.len() == 40 && name.starts_with("__karyi_"))
        );
        let values: Vec<String> = resolved
            .bindings
            .drain(..)
            .map(|binding| binding.value.expose().to_owned())
            .collect();
        assert_eq!(values, ["very-secret", "other-secret"]);
        let text = "no placeholder 'unbalanced $((";
        assert_eq!(*substitute_script(text, &secrets).unwrap().text, text);
    }

    #[test]
    fn missing_names_come_before_contexts() {
        let error = substitute_script(
            "echo '$KARYI{NO} $KARYI{V0} # $KARYI{NEITHER}",
            &secrets(&["value"]),
        )
        .err()
        .unwrap();
        assert_eq!(
            (error.code, error.message.as_str()),
            (
                ErrorCode::UndefinedVariable,
                "there is no value for NO, NEITHER"
            )
        );
        let error = substitute_script("echo $KARYI{a b}", &Secrets::default())
            .err()
            .unwrap();
        assert_eq!(error.code, ErrorCode::BadPlaceholder);
    }

    #[test]
    fn hostile_scripts_are_cheap() {
        let secrets = secrets(&["value"]);
        for part in [
            "$(",
            "\"$(",
            "${x:-",
            "((",
            "`",
            "<<E\n",
            "'",
            "case x in ",
            "{ ",
            "a[",
            "$KARYI{V0} ",
            "|",
            "[[ -eq ",
            "f() ",
        ] {
            let script = format!("{}$KARYI{{V0}}", part.repeat(20_000));
            let _ = substitute_script(&script, &secrets);
        }
    }
}
