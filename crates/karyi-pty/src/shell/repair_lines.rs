//! Lines that repair a shell after a command broke what the session needs of it.
//!
//! A command can close the descriptors on which the shell keeps its own input while a script runs, hide or disable
//! built-in commands, or forbid redirections. What can be put back is put back; else the shell is asked to end with
//! the status of the command, so that the status is not lost with it.

use crate::shell::dialect::{Dialect, SessionPaths};
use crate::shell::script_words::contains_any;

impl dyn Dialect + '_ {
    /// Returns true if a script may make a function with the name by which built-in commands are called: it contains
    /// the name, or runs text from elsewhere.
    pub(crate) fn may_hide_builtins(&self, script: &str) -> bool {
        contains_any(script, &[&self.builtin()[1..], "eval", "source", ". "])
    }

    /// Returns the line after the mark of a script that may have disabled built-in commands.
    pub(crate) fn enable_line_if_needed(&self, script: &str) -> Option<&'static str> {
        contains_any(script, &["enable", "disable"]).then(|| self.enable_line())
    }

    /// Returns the lines that request a lost mark for the `attempt`-th time, counted from 0; none when there is
    /// nothing left to try.
    ///
    /// The status comes from what the failed mark has saved: `$?` is that of the failure.
    pub(crate) fn lost_mark_lines(
        &self,
        paths: &SessionPaths,
        sequence: u64,
        attempt: u32,
    ) -> Option<String> {
        if let Some(lines) = self.own_lost_mark_lines(paths, sequence, attempt) {
            return Some(lines);
        }
        let last = self.last();
        match attempt {
            0 => Some(format!(
                "case {last} in \"{sequence};\"*) {};; *) {};; esac\n",
                self.mark_with(paths, last),
                self.mark(paths, sequence)
            )),
            1 => {
                let again = self.mark_with(paths, "${KARYI_LAST-}");
                let (enable, unhide) = (self.enable_line(), self.unhide_functions());
                Some(format!("KARYI_LAST=\"{last}\"\n{enable}{unhide}{again}\n"))
            }
            // Twice, because a shell with stopped jobs refuses once.
            2 => Some(self.exit_line(sequence).repeat(2)),
            _ => None,
        }
    }

    /// Returns the line that ends the shell with the status of the command, if that is known.
    fn exit_line(&self, sequence: u64) -> String {
        let builtin = self.builtin();
        format!(
            "case ${{KARYI_LAST-}} in \"{sequence};\"*[0-9]) {builtin} exit \"${{KARYI_LAST#*;}}\" \
             || \\exit \"${{KARYI_LAST#*;}}\";; esac\n"
        )
    }
}
