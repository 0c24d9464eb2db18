//! ksh93.

use crate::shell::dialect::{Dialect, SessionPaths, SnapshotSections};
use crate::shell::script_words::starts_background;

const BEFORE_SNAPSHOT: &str = r"TMOUT=0
KARYI_TRAPS=$(\command trap -p DEBUG)
\command trap - DEBUG
";
const AFTER_SNAPSHOT: &str = r#"\command test -z "${KARYI_TRAPS-}" || \command eval "\\command trap -- $KARYI_TRAPS DEBUG"
\command unset KARYI_TRAPS
"#;

/// Dialect of ksh93.
#[derive(Debug)]
pub(crate) struct Ksh;

impl Dialect for Ksh {
    fn name(&self) -> &'static str {
        "ksh"
    }

    fn arguments(&self, name: &str, target: Option<&str>) -> Option<&'static [&'static str]> {
        matches!((name, target), ("ksh", _) | ("sh", Some("ksh"))).then_some(&["-i"])
    }

    fn builtin(&self) -> &'static str {
        r"\command"
    }

    fn rc_files(&self) -> &'static [&'static str] {
        &["${ENV:-${HOME-}/.kshrc}"]
    }

    fn snapshot_guards(&self) -> (&'static str, &'static str) {
        (BEFORE_SNAPSHOT, AFTER_SNAPSHOT)
    }

    fn snapshot_sections(&self) -> SnapshotSections {
        &[
            ("environment", "\\command export -p\n"),
            (
                "+options",
                "\\command printf 'umask %s\\n' \"$(\\command umask)\"\n\\command set +o\n",
            ),
            ("+aliases", "\\command alias -p\n"),
        ]
    }

    fn clear_definitions(&self) -> &'static str {
        "\\command unalias -a\n"
    }

    fn unhide_functions(&self) -> &'static str {
        "\\unset -f command\n\\unset -f printf\n"
    }

    /// It prints functions from the file they came from, which holds another script by then.
    fn prints_functions(&self) -> bool {
        false
    }

    fn hides_stop(&self, script: &str) -> bool {
        // Programs in the background may have been stopped, too, and cannot be told apart.
        !starts_background(script)
    }

    /// With an ERR trap ksh reports 256 when Ctrl+C has ended a script, which is no exit status.
    fn exit_status(&self, status: i32, _is_refused: bool) -> i32 {
        const INTERRUPTED: i32 = 128 + nix::libc::SIGINT;
        match status {
            256 => INTERRUPTED,
            status => status,
        }
    }

    fn silence_command(&self, _paths: &SessionPaths) -> String {
        "\\exec >/dev/null".to_owned()
    }

    fn exit_trap_output_lines(&self, paths: &SessionPaths) -> Option<(String, &'static str)> {
        let terminal = paths.quoted_terminal();
        Some((format!("\\exec >{terminal}\n"), "\\exec >/dev/null\n"))
    }

    /// ksh moves groups to the foreground with what descriptor 2 was, which must stay the terminal; a prompt between
    /// two lines would be seen there.
    fn command_lines(
        &self,
        paths: &SessionPaths,
        sequence: u64,
        may_hide_builtins: bool,
    ) -> String {
        let run = self.run_script(paths);
        let mark = self.mark_after(paths, sequence, may_hide_builtins);
        format!("{{ {run}; {mark}; }} 2>/dev/null\n")
    }

    /// After too deep a recursion ksh refuses to source anything, for good; then no mark must come. What it prints
    /// between lines comes to the terminal, so prompts stay empty.
    fn saved_mark(&self, paths: &SessionPaths, sequence: u64, first: &str) -> String {
        let mark = self.mark_with(paths, "${KARYI_LAST-}");
        format!(
            "KARYI_LAST=\"{sequence};$?\"; {first}{{ [[ $KARYI_LAST == *';0' ]] || \\command . /dev/null; }} \
             && {mark}; PS1= PS2="
        )
    }

    fn own_lost_mark_lines(
        &self,
        paths: &SessionPaths,
        sequence: u64,
        attempt: u32,
    ) -> Option<String> {
        let last = self.last();
        let again = self.mark_with(paths, last);
        match attempt {
            0 => Some(format!(
                "case {last} in \"{sequence};\"*) ;; *) KARYI_LAST=\"{sequence};$?\";; esac; \
                 \\command . /dev/null && {again}; PS1= PS2=\n"
            )),
            1 => {
                let functions = self.unhide_functions();
                Some(format!("{functions}\\command . /dev/null && {again}\n"))
            }
            _ => None,
        }
    }
}
