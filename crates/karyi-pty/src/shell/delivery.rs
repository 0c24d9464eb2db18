//! Makes sure that a command with secrets runs only when all of them arrived, and reports commands that were not run.
//!
//! A shell whose `read` was disabled or hidden, or in which zsh cannot set `IFS`, leaves the variables empty; the
//! command would run without its values. So the shell checks the lengths of the values before it runs the script, and
//! its mark has a flag when one differs. The lengths are in lines that the shell reads from its own FIFO, never in an
//! argument.

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{Binding, VariableContent};

/// Variable that is `~` until all values have arrived, then empty. No secret has this name.
pub(crate) const ARRIVED_VARIABLE: &str = "__karyicame";
/// Last flag of a mark when values are missing.
const MISSING_FLAG: u8 = b'~';

/// Check of the values of one command.
#[derive(Debug, Clone)]
pub(crate) struct DeliveryCheck {
    check: String,
    /// The variables of the values and of the paths of values.
    names: Vec<String>,
}

impl DeliveryCheck {
    /// Creates the check for bindings, if there are any.
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
        // Under `set -u` an unset variable would end the shell.
        format!("{ARRIVED_VARIABLE}='~' {}=\n", self.names.join("= "))
    }

    /// Returns the line after it that checks the values.
    pub(crate) fn check_line(&self) -> String {
        format!("[[ {} ]] && {ARRIVED_VARIABLE}=\n", self.check)
    }
}

/// Returns a command that runs `run` if the values arrived.
pub(crate) fn only_if_arrived(run: &str) -> String {
    format!("case ${{{ARRIVED_VARIABLE}-x}} in '') {run};; esac")
}

/// Returns the command of a mark with the result of the check after the flags. Another program that has read the lines
/// of the check leaves the variable unset, which counts as missing.
pub(crate) fn with_arrival_flag(mark: &str) -> String {
    mark.replacen("\"$-\"", &format!("\"$-${{{ARRIVED_VARIABLE}-~}}\""), 1)
}

/// Returns the condition that a variable holds a path, or is as long as its value. Where the shell counts bytes
/// instead of characters the length is larger.
fn check(binding: &Binding) -> String {
    let (value, name) = (binding.value.expose(), binding.variable());
    if binding.holds == VariableContent::Path {
        return format!("-n ${{{name}}}");
    }
    let (least, most) = (value.chars().count(), value.len());
    format!("${{#{name}}} -ge {least} && ${{#{name}}} -le {most}")
}

/// Returns true if the flags of a mark say that values are missing.
pub(crate) fn lacks_values(flags: &[u8]) -> bool {
    flags.last() == Some(&MISSING_FLAG)
}

/// Returns the error of a command that was not run because a value is missing.
pub(crate) fn not_delivered() -> ToolError {
    let message = "a value did not arrive in the shell unchanged, so the command was not run";
    ToolError::new(ErrorCode::SecretNotDelivered, message)
}

/// Returns the error of a command whose lines another program has read.
pub(crate) fn not_begun() -> ToolError {
    let message =
        "a trap, a hook or a prompt has read the input of the shell, so the command was not run";
    ToolError::new(ErrorCode::SessionFailed, message)
        .with_hint("give it another standard input, as in `trap 'read x </dev/tty' USR1`")
}

/// Returns the error of a command whose shell ended before it began the command, and that no other shell runs.
pub(crate) fn not_started() -> ToolError {
    let message = "the shell ended before it had begun the command, so the command was not run";
    ToolError::new(ErrorCode::SessionFailed, message).with_hint("give the command again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_core::secret::{SecretName, SecretValue};

    #[test]
    fn the_check_contains_lengths_and_no_values() {
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
