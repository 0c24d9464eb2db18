//! dash, busybox ash, and every other program called `sh`.

use crate::shell::dialect::{Dialect, SessionPaths, SnapshotSections};
use crate::shell::script_words::contains_word;

/// Dialect of a plain POSIX shell.
#[derive(Debug)]
pub(crate) struct Posix;

impl Dialect for Posix {
    fn name(&self) -> &'static str {
        "posix"
    }

    fn arguments(&self, name: &str, _target: Option<&str>) -> Option<&'static [&'static str]> {
        match name {
            "dash" | "ash" | "sh" => Some(&["-i"]),
            "busybox" => Some(&["ash", "-i"]),
            _ => None,
        }
    }

    fn builtin(&self) -> &'static str {
        r"\command"
    }

    fn rc_files(&self) -> &'static [&'static str] {
        &["${ENV:-/dev/null}"]
    }

    fn snapshot_guards(&self) -> (&'static str, &'static str) {
        ("\\command unset TMOUT\n", "")
    }

    fn snapshot_sections(&self) -> SnapshotSections {
        &[
            ("environment", "\\command export -p\n"),
            (
                "+options",
                "\\command printf 'umask %s\\n' \"$(\\command umask)\"\n\\command set +o\n",
            ),
            ("=aliases", "\\command alias\n"),
        ]
    }

    fn clear_definitions(&self) -> &'static str {
        "\\command unalias -a\n"
    }

    fn unhide_functions(&self) -> &'static str {
        "\\unset -f command\n\\unset -f printf\n"
    }

    fn prints_functions(&self) -> bool {
        false
    }

    fn may_close_input(&self, script: &str) -> bool {
        contains_word(script, "exec")
    }

    fn exit_trap_output_lines(&self, paths: &SessionPaths) -> Option<(String, &'static str)> {
        let terminal = paths.quoted_terminal();
        // A prompt would be seen there.
        Some((
            format!("PS1= PS2=; \\exec >{terminal} 2>&1\n"),
            "\\exec >/dev/null 2>&1\n",
        ))
    }
}
