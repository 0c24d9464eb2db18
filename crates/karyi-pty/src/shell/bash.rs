//! GNU bash.

use crate::shell::dialect::{Dialect, SessionPaths, SnapshotSections};
use crate::shell::script_words::contains_word;

/// The descriptor on which bash keeps the terminal, which no program inherits.
pub(crate) const TERMINAL_DESCRIPTOR: i32 = 255;

const ARGUMENTS: &[&str] = &["--norc", "--noprofile", "--noediting", "-i"];
/// Without `--noediting`, a bash that is called `sh` would start its line editor.
const ARGUMENTS_AS_SH: &[&str] = &["--posix", "--norc", "--noprofile", "--noediting", "-i"];

const SETUP: &str = r"
\builtin set +o history +o histexpand
\builtin set -o monitor
\builtin unset -v PROMPT_COMMAND PS0 HISTFILE MAILCHECK TMOUT
";

/// TMOUT would end an idle shell. Traps that also run in sourced files would print into the snapshot.
const BEFORE_SNAPSHOT: &str = r#"\builtin unset -v TMOUT
\builtin test -n "${-//[^ET]/}" && KARYI_TRAPS=$(\builtin trap -p DEBUG ERR RETURN) && \builtin trap - DEBUG ERR RETURN
"#;
const AFTER_SNAPSHOT: &str = r#"\builtin test -n "${KARYI_TRAPS-}" && \builtin eval "$KARYI_TRAPS"
\builtin unset -v KARYI_TRAPS
"#;

/// Dialect of GNU bash.
#[derive(Debug)]
pub(crate) struct Bash;

impl Dialect for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn arguments(&self, name: &str, target: Option<&str>) -> Option<&'static [&'static str]> {
        match (name, target) {
            ("bash", _) => Some(ARGUMENTS),
            ("sh" | "ksh", Some("bash")) => Some(ARGUMENTS_AS_SH),
            _ => None,
        }
    }

    fn builtin(&self) -> &'static str {
        r"\builtin"
    }

    fn rc_files(&self) -> &'static [&'static str] {
        &["/etc/bash.bashrc", "${HOME-}/.bashrc"]
    }

    fn snapshot_guards(&self) -> (&'static str, &'static str) {
        (BEFORE_SNAPSHOT, AFTER_SNAPSHOT)
    }

    fn snapshot_sections(&self) -> SnapshotSections {
        &[
            ("+options", "\\builtin shopt -p\n"),
            ("environment", "\\builtin declare -px\n"),
            ("aliases", "\\builtin alias -p\n"),
            ("functions", "\\builtin declare -f\n"),
            ("+functions", "\\builtin declare -Fx\n"),
            ("+options", "\\builtin umask -p\n\\builtin set +o\n"),
        ]
    }

    fn clear_definitions(&self) -> &'static str {
        "\\builtin shopt -u expand_aliases\n\
         \\builtin unalias -a\n\
         \\builtin unset -f $(\\builtin compgen -A function)\n\
         \\builtin unset -v $(\\builtin compgen -e)\n"
    }

    fn unhide_functions(&self) -> &'static str {
        // In POSIX mode `unset` is found before a function of that name.
        "POSIXLY_CORRECT=1\n\\unset -f builtin unset printf set enable exit\n\\unset -v POSIXLY_CORRECT\n"
    }

    fn takes_secrets(&self) -> bool {
        true
    }

    fn runs_exit_trap_on_hangup(&self) -> bool {
        true
    }

    fn keeps_terminal(&self) -> bool {
        true
    }

    fn keeps_last_word(&self) -> bool {
        true
    }

    fn needs_descriptor_repair(&self, script: &str) -> bool {
        // Other shells keep theirs where a script cannot name them.
        contains_word(script, "exec")
    }

    fn own_setup(&self) -> &'static str {
        SETUP
    }

    fn silence_command(&self, paths: &SessionPaths) -> String {
        format!("\\exec >{} 2>/dev/null", paths.quoted("marks"))
    }

    fn end_restore(&self) -> String {
        "\\builtin set +et\n".to_owned()
    }

    /// Puts back the descriptors 0 to 2, and the one with which bash moves groups to the foreground.
    fn descriptor_lines(&self, paths: &SessionPaths) -> String {
        let (fifo, marks) = (paths.quoted("in"), paths.quoted("marks"));
        let terminal = paths.quoted_terminal();
        // Keywords leave `$_` alone, which may hold the status of the command.
        format!(
            "[[ /dev/stdin -ef {fifo} && /dev/stdout -ef {marks} && ! -t 2 ]] \
             || \\exec <{fifo} >{marks} 2>/dev/null\n\
             [[ -t {TERMINAL_DESCRIPTOR} ]] || \\exec {TERMINAL_DESCRIPTOR}<>{terminal}\n"
        )
    }

    fn enable_line(&self) -> &'static str {
        "\\enable builtin . : [ test cd compgen declare eval exec exit printf read return \
         set shopt trap typeset umask unset alias unalias enable 2>/dev/null\n"
    }

    fn status_line(&self, paths: &SessionPaths, status: i32) -> Option<String> {
        let file = paths.quoted("status");
        // A failure before `&&` runs no ERR trap and does not end a shell under -e.
        (status != 0).then(|| format!("\\builtin . {file} {status} && \\builtin :\n"))
    }

    /// Nothing has to be opened, and what bash does before it reads a line comes after the mark, which bash writes to
    /// its standard output between commands, the FIFO `marks`. The second line prints the mark of a script that broke
    /// off the first line; a command that has ended does without it.
    fn kept_terminal_lines(&self, paths: &SessionPaths, sequence: &str) -> Option<[String; 2]> {
        let terminal = format!("&{TERMINAL_DESCRIPTOR}");
        let run = self.run_script_on(paths, &format!("0<{terminal} 1>{terminal} 2>{terminal}"));
        let (ending, nonce) = (format!("{sequence};$?"), &paths.nonce);
        // `%.0s` prints nothing: the last word is there for `$_`.
        let mark = format!(
            "\\builtin printf '\\033]133;D;%s\\007%.0s' \"{nonce};{ending};$-;${{PWD-}};{nonce}\" \"{ending}\""
        );
        let last = self.last();
        Some([
            format!("{run}; {mark}\n"),
            format!("case {last} in \"{sequence};\"*) ;; *) {mark};; esac\n"),
        ])
    }
}
