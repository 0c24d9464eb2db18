//! What a script may do to its shell, guessed from its words before it runs.

use crate::shell::Dialect;
use crate::shell::script_words;

/// Guesses about one script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScriptTraits {
    /// True if the shell's descriptors must be repaired after it.
    pub(crate) needs_repair: bool,
    /// True if it may close the shell's input, so that the shell retries the read forever.
    pub(crate) may_close_input: bool,
    /// True if it may hide a built-in command that prints its mark.
    pub(crate) may_hide_builtins: bool,
    /// True if its exit status may be 0 although a signal has stopped its last program.
    pub(crate) may_hide_stop: bool,
    /// True if it may leave a background job.
    pub(crate) may_leave: bool,
    /// True if that job may have left the shell's session by the time the script ends.
    pub(crate) may_leave_session: bool,
    /// True if it may have changed the directory.
    pub(crate) may_move: bool,
    /// True if it may have limited the shell's descriptors.
    pub(crate) may_limit: bool,
    /// True if it may ask the shell about its background jobs.
    pub(crate) may_list_jobs: bool,
    /// True if its exit status may be 126 although nothing could not be executed.
    pub(crate) may_return_126: bool,
}

impl ScriptTraits {
    /// Guesses what a script may do to a shell of a dialect.
    pub(crate) fn of(script: &str, dialect: &dyn Dialect) -> Self {
        Self {
            needs_repair: dialect.needs_descriptor_repair(script),
            may_close_input: dialect.may_close_input(script),
            may_hide_builtins: dialect.may_hide_builtins(script),
            may_hide_stop: dialect.hides_stop(script),
            may_leave: script_words::starts_background(script),
            may_leave_session: script_words::starts_job(script),
            may_move: script_words::may_move(script),
            may_limit: script_words::may_limit(script),
            may_list_jobs: script.contains("jobs"),
            may_return_126: script.contains("126"),
        }
    }
}
