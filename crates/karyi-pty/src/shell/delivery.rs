//! Sees to it that a command with secrets runs only when all of them came whole, and tells why a
//! command was not run.
//!
//! A shell whose `read` was disabled or covered, or in which zsh cannot set `IFS`, leaves the
//! variables empty; the command would run with nothing in place of its values. So the shell looks
//! at how long they are before it runs the script, and its mark says when one was not. The lengths
//! stand in lines that the shell reads from its own FIFO, and in no argument.

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{Binding, VariableContent};

/// The variable that is empty when all values came, and `~` until then. No secret has such a one.
pub(crate) const ARRIVED_VARIABLE: &str = "__karyicame";
/// What the flags of a mark end with when the values did not come.
const MISSING_FLAG: u8 = b'~';

/// The look at the values of one command.
#[derive(Debug, Clone)]
pub(crate) struct DeliveryCheck {
    check: String,
    /// The variables of the values and of the paths of values.
    names: Vec<String>,
}

impl DeliveryCheck {
    /// Makes the look for what the bindings hold, if there are any.
    pub(crate) fn of(bindings: &[Binding]) -> Option<Self> {
        if bindings.is_empty() {
            return None;
        }
        let checks: Vec<String> = bindings.iter().map(check).collect();
        Some(Self {
            check: checks.join(" && "),
            names: bindings.iter().map(Binding::variable).collect(),
        })
    }

    /// Returns the line before the values are read.
    pub(crate) fn first_line(&self) -> String {
        // Under `set -u` a variable that is not there would end the shell.
        format!("{ARRIVED_VARIABLE}='~' {}=\n", self.names.join("= "))
    }

    /// Returns the line behind it that looks whether they came.
    pub(crate) fn check_line(&self) -> String {
        format!("[[ {} ]] && {ARRIVED_VARIABLE}=\n", self.check)
    }
}

/// Returns the command `run` for when the values came.
pub(crate) fn only_if_arrived(run: &str) -> String {
    format!("case ${{{ARRIVED_VARIABLE}-x}} in '') {run};; esac")
}

/// Returns the mark `mark` with what the look found behind its flags; nothing was found where another program has
/// taken the lines of the look.
pub(crate) fn with_arrival_flag(mark: &str) -> String {
    mark.replacen("\"$-\"", &format!("\"$-${{{ARRIVED_VARIABLE}-~}}\""), 1)
}

/// Returns the condition that a variable holds a path, or is as long as its value. Where the shell
/// counts bytes instead of characters it finds more.
fn check(binding: &Binding) -> String {
    let (value, name) = (binding.value.expose(), binding.variable());
    if binding.holds == VariableContent::Path {
        return format!("-n ${{{name}}}");
    }
    let (least, most) = (value.chars().count(), value.len());
    format!("${{#{name}}} -ge {least} && ${{#{name}}} -le {most}")
}

/// Returns true if the flags of a mark say that values did not come.
pub(crate) fn lacks_values(flags: &[u8]) -> bool {
    flags.last() == Some(&MISSING_FLAG)
}

/// Returns the error of a command that was not run since a value did not come.
pub(crate) fn not_delivered() -> ToolError {
    let message = "a value did not arrive in the shell as it is, so the command was not run";
    ToolError::new(ErrorCode::SecretNotDelivered, message)
}

/// Returns the error of a command whose lines were read by something else than the shell.
pub(crate) fn not_begun() -> ToolError {
    let message = "a trap, a hook or a prompt of the shell reads what is meant for the shell itself, \
                   so the command was not run";
    ToolError::new(ErrorCode::SessionFailed, message)
        .with_hint("give what it runs another standard input, as in `trap 'read x </dev/tty' USR1`")
}

/// Returns the error of a command whose shell ended before it had begun it, and that no other shell runs.
pub(crate) fn not_started() -> ToolError {
    let message = "the shell ended before it had begun the command, so the command was not run";
    ToolError::new(ErrorCode::SessionFailed, message).with_hint("give the command again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_core::secret::{SecretName, SecretValue};

    #[test]
    fn the_look_names_lengths_and_no_values() {
        let binding = |name: &str, value: &str, holds| Binding {
            name: SecretName::parse(name).unwrap(),
            value: SecretValue::new(value.into()),
            holds,
        };
        let bindings = [
            binding("V", "é-secret", VariableContent::Value),
            binding("W", "other", VariableContent::Path),
        ];
        let delivery = DeliveryCheck::of(&bindings).unwrap();
        let lines = [
            delivery.first_line(),
            delivery.check_line(),
            only_if_arrived("run"),
            with_arrival_flag("\"$-\" \"$PWD\""),
        ];
        let expected = [
            "__karyicame='~' __karyi_V= __karyifile_W=\n",
            "[[ ${#__karyi_V} -ge 8 && ${#__karyi_V} -le 9 && -n ${__karyifile_W} ]] && __karyicame=\n",
            "case ${__karyicame-x} in '') run;; esac",
            "\"$-${__karyicame-~}\" \"$PWD\"",
        ];
        assert_eq!(lines, expected);
        assert!(DeliveryCheck::of(&[]).is_none());
        assert!(lacks_values(b"himBH~") && !lacks_values(b"himBH") && !lacks_values(b""));
    }
}
