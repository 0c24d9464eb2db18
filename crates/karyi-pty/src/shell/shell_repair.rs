//! Lines that bring a shell back within reach after a command took away what karyi needs of it.
//!
//! A command can close the descriptors on which the shell keeps its own input while a script runs,
//! hide or switch off built-in commands, or forbid redirections. What can be put back is put back;
//! else the shell is asked to end with the status of the command, so that it is not lost with it.

use crate::shell::{Kind, SessionPaths};
use karyi_core::shell_word::quote;

impl Kind {
    /// Whether a script may close or move descriptors of the shell, so that
    /// [`Kind::descriptor_lines`] are to follow its mark.
    ///
    /// They must reach the shell in one read with those before them: bash reads 1024 bytes.
    pub(crate) fn needs_descriptor_repair(self, script: &str) -> bool {
        // Others keep theirs where a script cannot name them.
        self == Self::Bash && contains_word(script, "exec")
    }

    /// Whether a script may close what the shell keeps of its input, and the shell then reads on in
    /// vain.
    pub(crate) fn may_close_input(self, script: &str) -> bool {
        self == Self::Posix && contains_word(script, "exec")
    }

    /// Whether a script may make a function of the name with which built-in commands are called:
    /// it has the name, or runs text from elsewhere.
    pub(crate) fn may_hide_builtins(self, script: &str) -> bool {
        let name = &self.builtin()[1..];
        [name, "eval", "source", ". "]
            .iter()
            .any(|word| contains_word(script, word))
    }

    /// Whether a script may end the shell, or say what is to be done then.
    pub(crate) fn may_exit(script: &str) -> bool {
        ["exit", "trap"]
            .iter()
            .any(|word| contains_word(script, word))
    }

    /// Whether a script may have changed the directory when it ended the shell.
    pub(crate) fn may_move(script: &str) -> bool {
        ["cd", "pushd", "popd", "eval", "source", ". "]
            .iter()
            .any(|word| contains_word(script, word))
    }

    /// Whether a script may leave the shell too few descriptors for what surrounds the next one.
    pub(crate) fn may_limit(script: &str) -> bool {
        contains_word(script, "limit")
    }

    /// Returns the exit status that one of the shell's own stands for: with an ERR trap ksh gives 256
    /// when Ctrl+C has ended a script, which is no exit status.
    pub(crate) fn exit_status(self, status: i32) -> i32 {
        const INTERRUPTED: i32 = 128 + nix::libc::SIGINT;
        match status {
            256 if self == Self::Ksh => INTERRUPTED,
            status => status,
        }
    }

    /// Whether the status of a script is 0 when a signal has stopped its last program. A script that
    /// puts others in the background cannot be told from it: those may have been stopped, too.
    pub(crate) fn hides_stop(self, script: &str) -> bool {
        matches!(self, Self::Ksh | Self::Mksh) && !starts_background(script)
    }

    /// Returns the line after the mark of a script that may have switched off what is needed.
    pub(crate) fn enable_line_if_needed(self, script: &str) -> Option<&'static str> {
        let may_disable = contains_word(script, "enable") || contains_word(script, "disable");
        may_disable.then(|| self.enable_line())
    }

    /// Returns the lines that put the descriptors 0 to 2 back, and the one bash moves groups to the
    /// foreground with.
    pub(crate) fn descriptor_lines(self, paths: &SessionPaths) -> String {
        if self != Self::Bash {
            return String::new();
        }
        let fifo = quote(paths.file("in").as_os_str());
        let marks = quote(paths.file("marks").as_os_str());
        let terminal = quote(paths.terminal.as_os_str());
        // Keywords leave `$_` alone, which may hold the status of the command.
        format!(
            "[[ /dev/stdin -ef {fifo} && /dev/stdout -ef {marks} && ! -t 2 ]] \
             || \\exec <{fifo} >{marks} 2>/dev/null\n\
             [[ -t 255 ]] || \\exec 255<>{terminal}\n"
        )
    }

    /// Returns the line that switches the needed built-in commands on again.
    pub(crate) fn enable_line(self) -> &'static str {
        match self {
            Self::Bash => {
                "\\enable builtin . : [ test cd compgen declare eval exec exit printf read return \
                 set shopt trap typeset umask unset alias unalias enable 2>/dev/null\n"
            }
            Self::Zsh => {
                "\\enable builtin . : [ test alias cd eval exec exit functions printf read return \
                 set setopt trap typeset umask unalias unfunction unset unsetopt enable \
                 2>/dev/null\n"
            }
            Self::Ksh | Self::Mksh | Self::Posix => "",
        }
    }

    /// Returns the lines that ask for a lost mark the `attempt`-th time, counted from 0; none when
    /// there is nothing left to try.
    ///
    /// The status comes from what the failed mark has left behind: `$?` is that of the failure.
    pub(crate) fn lost_mark_lines(
        self,
        paths: &SessionPaths,
        sequence: u64,
        attempt: u32,
    ) -> Option<String> {
        let last = self.last();
        let again = self.mark_with(paths, last);
        match attempt {
            0 if self == Self::Ksh => Some(format!(
                "case {last} in \"{sequence};\"*) ;; *) KARYI_LAST=\"{sequence};$?\";; esac; \
                 \\command . /dev/null && {again}; PS1= PS2=\n"
            )),
            1 if self == Self::Ksh => {
                let functions = self.unhide_lines();
                Some(format!("{functions}\\command . /dev/null && {again}\n"))
            }
            0 => Some(format!(
                "case {last} in \"{sequence};\"*) {again};; *) {};; esac\n",
                self.mark(paths, sequence)
            )),
            1 => {
                let again = self.mark_with(paths, "${KARYI_LAST-}");
                Some(format!(
                    "KARYI_LAST=\"{last}\"\n{}{again}\n",
                    self.unhide_lines()
                ))
            }
            // Twice, because stopped jobs make a shell refuse once.
            2 => Some(self.exit_line(sequence).repeat(2)),
            _ => None,
        }
    }

    /// Returns the line that ends the shell with the status of the command, if that is known.
    fn exit_line(self, sequence: u64) -> String {
        let builtin = self.builtin();
        format!(
            "case ${{KARYI_LAST-}} in \"{sequence};\"*[0-9]) {builtin} exit \"${{KARYI_LAST#*;}}\" \
             || \\exit \"${{KARYI_LAST#*;}}\";; esac\n"
        )
    }

    /// Returns the lines that make built-in commands reachable again after the user hid them or
    /// switched them off.
    fn unhide_lines(self) -> String {
        let functions = match self {
            // In POSIX mode `unset` is found before a function of that name.
            Self::Bash => {
                "POSIXLY_CORRECT=1\n\\unset -f builtin unset printf set enable exit\n\
                 \\unset -v POSIXLY_CORRECT\n"
            }
            Self::Zsh => "\\unfunction builtin printf\n",
            Self::Mksh => "\\unset -f builtin print\n",
            Self::Ksh | Self::Posix => "\\unset -f command\n\\unset -f printf\n",
        };
        format!("{}{functions}", self.enable_line())
    }
}

/// Whether a script has a `&` that is not part of `&&` or of a redirection.
pub(crate) fn starts_background(script: &str) -> bool {
    memchr::memchr_iter(b'&', script.as_bytes()).any(|at| puts_in_background(script, at))
}

/// Whether such a `&` stands outside of parentheses: `(x &)` is how a script says that it wants to have
/// nothing more to do with `x`.
pub(crate) fn starts_job(script: &str) -> bool {
    let mut depth = 0_usize;
    memchr::memchr3_iter(b'&', b'(', b')', script.as_bytes()).any(|at| {
        match script.as_bytes().get(at) {
            Some(b'(') => depth += 1,
            Some(b')') => depth = depth.saturating_sub(1),
            _ => return depth == 0 && puts_in_background(script, at),
        }
        false
    })
}

/// Whether the `&` at a place is not part of `&&` or of a redirection.
fn puts_in_background(script: &str, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| script.as_bytes().get(at));
    let after = script.as_bytes().get(at + 1);
    !matches!(before, Some(b'&' | b'>' | b'<')) && !matches!(after, Some(b'&' | b'>'))
}

fn contains_word(script: &str, word: &str) -> bool {
    memchr::memmem::find(script.as_bytes(), word.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_puts_something_in_the_background_is_known() {
        for script in ["sleep 1 &", "a & b", "&", "a&b", "coproc |&", "a && b & c"] {
            assert!(starts_background(script), "{script}");
        }
        for script in ["", "a && b", "a 2>&1", "a &>f", "a <&3", "a >& f"] {
            assert!(!starts_background(script), "{script}");
        }
        for script in [
            "x & sleep 1",
            "(a; b) & c",
            "$(a) &",
            "case a in b) c & ;; esac",
        ] {
            assert!(starts_job(script), "{script}");
        }
        for script in ["(x &)", "((x) & y); z", "$(x &); a && b", "a 2>&1"] {
            assert!(!starts_job(script), "{script}");
        }
    }
}
