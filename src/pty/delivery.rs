//! Sees to it that a command with secrets runs only when all of them came whole, and tells why a
//! command was not run.
//!
//! A shell whose `read` was disabled or covered, or in which zsh cannot set `IFS`, leaves the
//! variables empty; the command would run with nothing in place of its values. So the shell looks
//! at how long they are before it runs the script, and its mark says when one was not. The lengths
//! stand in lines that the shell reads from its own FIFO, and in no argument.

use crate::error::{ErrorCode, ToolError};
use crate::secret::{Binding, Holds};

/// What the flags of a mark end with when the values did not come.
const LACK: u8 = b'~';

/// The look at the values of one command.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    /// A variable nobody else knows: empty when all came, and `~` until then.
    variable: String,
    check: String,
    /// The variables of the values and of the paths of values.
    names: Vec<String>,
}

impl Delivery {
    /// Makes the look for what the bindings hold, if there are any.
    pub(super) fn of(bindings: &[Binding]) -> Option<Self> {
        let variable = format!("{}_", bindings.first()?.variable);
        let mut checks: Vec<String> = bindings.iter().map(check).collect();
        if bindings.iter().any(|binding| binding.is_split) {
            checks.push(USUAL_IFS.to_owned());
        }
        let names = bindings.iter().map(|binding| binding.variable.clone());
        Some(Self {
            variable,
            check: checks.join(" && "),
            names: names.collect(),
        })
    }

    /// Returns the line before the values are read.
    pub(super) fn first_line(&self) -> String {
        // Under `set -u` a variable that is not there would end the shell.
        format!("{}='~' {}=\n", self.variable, self.names.join("= "))
    }

    /// Returns the line behind it that looks whether they came.
    pub(super) fn check_line(&self) -> String {
        format!("[[ {} ]] && {}=\n", self.check, self.variable)
    }

    /// Returns the variable that holds what it found.
    pub(super) fn variable(&self) -> &str {
        &self.variable
    }

    /// Returns the command `run` for when they came.
    pub(super) fn guarded(&self, run: &str) -> String {
        format!("case ${{{}-x}} in '') {run};; esac", self.variable)
    }

    /// Returns the mark `mark` with what the look found behind its flags.
    pub(super) fn telling(&self, mark: &str) -> String {
        mark.replacen("\"$-\"", &format!("\"$-${{{}-}}\"", self.variable), 1)
    }
}

/// The condition that an expansion is parted at blanks and line breaks only; zsh has a NUL there as well.
const USUAL_IFS: &str = "( -z ${IFS+x} || $IFS == $' \\t\\n' || $IFS == $' \\t\\n\\0' )";

/// Returns the condition that a variable holds a path, or is as long as its value. Where the shell
/// counts bytes instead of characters it finds more.
fn check(binding: &Binding) -> String {
    let (value, name) = (binding.value.expose(), &binding.variable);
    if binding.holds == Holds::Path {
        return format!("-n ${{{name}}}");
    }
    let (least, most) = (value.chars().count(), value.len());
    format!("${{#{name}}} -ge {least} && ${{#{name}}} -le {most}")
}

/// Whether the flags of a mark say that values did not come.
pub(super) fn lacks_values(flags: &[u8]) -> bool {
    flags.last() == Some(&LACK)
}

/// Returns the error of a command that was not run since a value did not come.
pub(super) fn lacking() -> ToolError {
    let message = "a value did not arrive in the shell as it is, so the command was not run";
    ToolError::new(ErrorCode::SecretNotDelivered, message)
}

/// Returns the error of a command whose lines were read by something else than the shell.
pub(super) fn not_begun() -> ToolError {
    let message = "a trap, a hook or a prompt of the shell reads what is meant for the shell itself, \
                   so the command was not run";
    ToolError::new(ErrorCode::SessionFailed, message)
        .with_hint("give what it runs another standard input, as in `trap 'read x </dev/tty' USR1`")
}

/// Returns the error of a command whose shell ended before it had begun it, and that no other shell runs.
pub(super) fn not_seen() -> ToolError {
    let message = "the shell ended before it had begun the command, so the command was not run";
    ToolError::new(ErrorCode::SessionFailed, message).with_hint("give the command again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::SecretValue;

    #[test]
    fn the_look_names_lengths_and_no_values() {
        let binding = |variable: &str, value: &str, holds| Binding {
            variable: variable.into(),
            value: SecretValue::new(value.into()),
            holds,
            not_in_zsh: None,
            needs_zsh: false,
            is_split: variable == "v3",
        };
        let bindings = [
            binding("v1", "é-secret", Holds::Value),
            binding("v2", "other", Holds::Path),
        ];
        let delivery = Delivery::of(&bindings).unwrap();
        let lines = [
            delivery.first_line(),
            delivery.check_line(),
            delivery.guarded("run"),
            delivery.telling("\"$-\" \"$PWD\""),
        ];
        let expected = [
            "v1_='~' v1= v2=\n",
            "[[ ${#v1} -ge 8 && ${#v1} -le 9 && -n ${v2} ]] && v1_=\n",
            "case ${v1_-x} in '') run;; esac",
            "\"$-${v1_-}\" \"$PWD\"",
        ];
        assert_eq!(lines, expected);
        let path = Delivery::of(&bindings[1..]).unwrap();
        assert_eq!(path.check_line(), "[[ -n ${v2} ]] && v2_=\n");
        assert!(Delivery::of(&[]).is_none());
        let split = Delivery::of(&[binding("v3", "abc", Holds::Value)]).unwrap();
        assert_eq!(
            split.check_line(),
            "[[ ${#v3} -ge 3 && ${#v3} -le 3 && ( -z ${IFS+x} || $IFS == $' \\t\\n' || $IFS == $' \\t\\n\\0' ) ]] && v3_=\n"
        );
        assert!(lacks_values(b"himBH~") && !lacks_values(b"himBH") && !lacks_values(b""));
    }
}
