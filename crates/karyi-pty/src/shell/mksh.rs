//! mksh.

use crate::shell::dialect::{Dialect, SessionPaths, SnapshotSections};
use crate::shell::script_words::starts_background;

/// Dialect of mksh.
#[derive(Debug)]
pub(crate) struct Mksh;

impl Dialect for Mksh {
    fn name(&self) -> &'static str {
        "mksh"
    }

    fn arguments(&self, name: &str, target: Option<&str>) -> Option<&'static [&'static str]> {
        let is_own = matches!(
            (name, target),
            ("mksh", _) | ("sh" | "ksh", Some("mksh" | "lksh"))
        );
        is_own.then_some(&["-i"])
    }

    fn builtin(&self) -> &'static str {
        r"\builtin"
    }

    fn rc_files(&self) -> &'static [&'static str] {
        &["${ENV:-${HOME-}/.mkshrc}"]
    }

    fn snapshot_guards(&self) -> (&'static str, &'static str) {
        ("\\builtin unset TMOUT\n", "")
    }

    fn snapshot_sections(&self) -> SnapshotSections {
        &[
            ("environment", "\\builtin export -p\n"),
            ("functions", "\\builtin typeset -f\n"),
            (
                "+options",
                "\\builtin print -r -- umask \"$(\\builtin umask)\"\n\\builtin set +o\n",
            ),
            ("+aliases", "\\builtin alias -p\n"),
        ]
    }

    fn clear_definitions(&self) -> &'static str {
        "\\builtin unalias -a\n\\builtin unset -f $(\\builtin typeset +f)\n"
    }

    fn unhide_functions(&self) -> &'static str {
        "\\unset -f builtin print\n"
    }

    fn hides_stop(&self, script: &str) -> bool {
        // Programs in the background may have been stopped, too, and cannot be told apart.
        !starts_background(script)
    }

    fn print_line(&self, word: &str) -> String {
        format!("\\builtin print -r -- {word}\n")
    }

    /// The printf of mksh is another program.
    fn mark_with(&self, paths: &SessionPaths, ending: &str) -> String {
        let (terminal, nonce) = (paths.quoted_terminal(), &paths.nonce);
        format!(
            "\\builtin print -nr -- $'\\033]133;D;{nonce};'\"{ending};$-;${{PWD-}};{nonce}\"$'\\007' \
             >{terminal}"
        )
    }
}
