//! The questions a session asks about its shell.
//!
//! All shells get the same lines through their FIFO. A dialect says how a line names a built-in command so that no
//! function or alias of the user runs instead, what the shell can print about itself, and which of its habits need
//! other lines. Everything here is text: nothing is run.

use std::fmt;
use std::path::PathBuf;

use karyi_core::shell_word::quote;

/// A shell that can run a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shell {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    pub(crate) dialect: &'static dyn Dialect,
    /// Arguments after the program.
    pub(crate) arguments: Vec<&'static str>,
}

/// The files and names a session's lines refer to.
#[derive(Debug, Clone)]
pub(crate) struct SessionPaths {
    pub(crate) directory: PathBuf,
    pub(crate) terminal: PathBuf,
    pub(crate) nonce: String,
}

impl SessionPaths {
    /// Returns the path of a file of the session.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Returns the path of a file of the session as a shell word.
    pub(crate) fn quoted(&self, name: &str) -> String {
        quote(self.file(name).as_os_str())
    }

    /// Returns the path of the terminal as a shell word.
    pub(super) fn quoted_terminal(&self) -> String {
        quote(self.terminal.as_os_str())
    }
}

/// Lines of shell code with the name under which a snapshot lists what they print: `environment`, `functions`, `options`
/// or `aliases`. The header of `description.rs` explains the sign that may stand before the name.
pub(crate) type SnapshotSections = &'static [(&'static str, &'static str)];

/// The language and the habits of one shell.
///
/// The methods without a body differ in every shell. The others hold what most shells share.
pub(crate) trait Dialect: fmt::Debug + Send + Sync {
    /// Returns the name of the dialect, which no other one has.
    fn name(&self) -> &'static str;

    /// Returns the arguments with which a program runs a session, when the program speaks this dialect. `name` is the
    /// program's name without a version, `target` that of the file it is a link to. The first dialect that answers is
    /// taken.
    fn arguments(&self, name: &str, target: Option<&str>) -> Option<&'static [&'static str]>;

    /// Returns the word before a built-in command that keeps functions and aliases out.
    fn builtin(&self) -> &'static str;

    /// Returns the user's start-up files.
    fn rc_files(&self) -> &'static [&'static str];

    /// Returns the lines before and after the body of the snapshot script: they disable `TMOUT`, and traps
    /// that would print into the snapshot.
    fn snapshot_guards(&self) -> (&'static str, &'static str);

    /// Returns the sections of a snapshot in the order in which they are read back.
    fn snapshot_sections(&self) -> SnapshotSections;

    /// Returns the lines before a snapshot that is read back. They remove what the start-up files defined, and the
    /// aliases, which must not change the functions that follow.
    fn clear_definitions(&self) -> &'static str;

    /// Returns the lines that remove functions of the user that hide the built-in commands a mark needs.
    fn unhide_functions(&self) -> &'static str;

    /// Returns true if the shell reads secrets from a FIFO without the help of another program.
    fn takes_secrets(&self) -> bool {
        false
    }

    /// Returns true if the shell can print its functions.
    fn prints_functions(&self) -> bool {
        true
    }

    /// Returns true if HUP ends the shell, and runs its EXIT trap, while it waits for its next line.
    fn runs_exit_trap_on_hangup(&self) -> bool {
        false
    }

    /// Returns true if the shell keeps a descriptor of the terminal on [`super::bash::TERMINAL_DESCRIPTOR`].
    fn keeps_terminal(&self) -> bool {
        false
    }

    /// Returns true if `$_` still holds the last word of a command that failed; else `KARYI_LAST` takes its place.
    fn keeps_last_word(&self) -> bool {
        false
    }

    /// Returns true if a script may close or move descriptors of the shell, so that [`Dialect::descriptor_lines`]
    /// must follow its mark. The shell must get them in one read with the lines before them: bash reads 1024 bytes.
    fn needs_descriptor_repair(&self, _script: &str) -> bool {
        false
    }

    /// Returns true if a script may close the shell's input, and the shell then retries the read forever.
    fn may_close_input(&self, _script: &str) -> bool {
        false
    }

    /// Returns true if the status of a script may be 0 although a signal has stopped its last program.
    fn hides_stop(&self, _script: &str) -> bool {
        false
    }

    /// Returns the exit status of a command from the status the shell reports. `is_refused` says that 126 may mean that
    /// a program could not be executed.
    fn exit_status(&self, status: i32, _is_refused: bool) -> i32 {
        status
    }

    /// Returns the commands of the file `setup` that only this shell needs.
    fn own_setup(&self) -> &'static str {
        ""
    }

    /// Returns the command that keeps what the shell prints between commands away from the terminal: prompts, traces,
    /// notices.
    fn silence_command(&self, _paths: &SessionPaths) -> String {
        "\\exec >/dev/null 2>&1".to_owned()
    }

    /// Returns the line after a snapshot that is read back: neither `-e` nor `-t` may outlive a command.
    fn end_restore(&self) -> String {
        format!("{} set +e\n", self.builtin())
    }

    /// Returns the lines that put the shell's own descriptors back.
    fn descriptor_lines(&self, _paths: &SessionPaths) -> String {
        String::new()
    }

    /// Returns the line that enables the needed built-in commands again.
    fn enable_line(&self) -> &'static str {
        ""
    }

    /// Returns the lines before and after a script that may end the shell. With them the output of its exit trap comes
    /// to the terminal, although the shell has taken the script's redirections back.
    fn exit_trap_output_lines(&self, _paths: &SessionPaths) -> Option<(String, &'static str)> {
        None
    }

    /// Returns the line that lets the next command see the exit status of the last one; none where a failure would run
    /// a trap or end the shell.
    fn status_line(&self, _paths: &SessionPaths, _status: i32) -> Option<String> {
        None
    }

    /// Returns a `cd` command that does not break off the line it is part of.
    fn contain_failure(&self, command: Vec<u8>) -> Vec<u8> {
        command
    }

    /// Returns the two lines that run the script file on the terminal descriptor the shell keeps; `sequence` is the
    /// number of the command.
    fn kept_terminal_lines(&self, _paths: &SessionPaths, _sequence: &str) -> Option<[String; 2]> {
        None
    }

    /// Returns the lines that run the script file and print the mark of the command. `may_hide_builtins` says that the
    /// script may have made a function that hides what prints the mark.
    fn command_lines(
        &self,
        paths: &SessionPaths,
        sequence: u64,
        may_hide_builtins: bool,
    ) -> String {
        let run = self.run_script(paths);
        let mark = self.mark_after(paths, sequence, may_hide_builtins);
        format!("{run}\n{mark}\n")
    }

    /// Returns the lines that request a lost mark for the `attempt`-th time, counted from 0, where they differ from
    /// those of other shells.
    fn own_lost_mark_lines(
        &self,
        _paths: &SessionPaths,
        _sequence: u64,
        _attempt: u32,
    ) -> Option<String> {
        None
    }

    /// Returns the command that prints a word and a line break.
    fn print_line(&self, word: &str) -> String {
        format!("{} printf '%s\\n' {word}\n", self.builtin())
    }

    /// Returns the command that prints a mark; `ending` expands to the command's number and status.
    fn mark_with(&self, paths: &SessionPaths, ending: &str) -> String {
        let (builtin, terminal) = (self.builtin(), paths.quoted_terminal());
        let nonce = &paths.nonce;
        // `%.0s` prints nothing: the last word is there for `$_`.
        format!(
            "{builtin} printf '\\033]133;D;{nonce};%s;%s;%s;{nonce}\\007%.0s' \
             \"{ending}\" \"$-\" \"${{PWD-}}\" \"{ending}\" >{terminal}"
        )
    }

    /// Returns the command that saves number and status in `KARYI_LAST`, runs `first`, and prints the mark.
    fn saved_mark(&self, paths: &SessionPaths, sequence: u64, first: &str) -> String {
        let mark = self.mark_with(paths, "${KARYI_LAST-}");
        format!("KARYI_LAST=\"{sequence};$?\"; {first}{mark}")
    }

    /// Returns the command that prints the mark of a command. Should it fail, [`Dialect::last`] still expands to
    /// number and status.
    fn mark(&self, paths: &SessionPaths, sequence: u64) -> String {
        match self.keeps_last_word() {
            true => self.mark_with(paths, &format!("{sequence};$?")),
            false => self.saved_mark(paths, sequence, ""),
        }
    }

    /// Returns the mark of a command after a script that may have hidden a built-in command.
    fn mark_after(&self, paths: &SessionPaths, sequence: u64, may_hide_builtins: bool) -> String {
        if !may_hide_builtins {
            return self.mark(paths, sequence);
        }
        // `unset` is found before functions in all but bash and zsh, where few name a function so.
        let unset = format!("\\unset -f {}; ", &self.builtin()[1..]);
        self.saved_mark(paths, sequence, &unset)
    }

    /// Returns what expands to number and status of the command whose mark was printed, or failed, last.
    fn last(&self) -> &'static str {
        match self.keeps_last_word() {
            true => "${_-}",
            false => "${KARYI_LAST-}",
        }
    }

    /// Returns the command that sources the script file with the terminal on 0, 1 and 2.
    fn run_script(&self, paths: &SessionPaths) -> String {
        let terminal = paths.quoted_terminal();
        self.run_script_on(paths, &format!("0<>{terminal} 1>&0 2>&0"))
    }

    /// Returns the command that sources the script file with some redirections.
    fn run_script_on(&self, paths: &SessionPaths, redirections: &str) -> String {
        let (builtin, script) = (self.builtin(), paths.quoted("script"));
        format!("{builtin} . {script} {redirections}")
    }
}

impl PartialEq for dyn Dialect + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Dialect + '_ {}
