//! zsh.

use crate::shell::dialect::{Dialect, SessionPaths, SnapshotSections};

const ARGUMENTS: &[&str] = &["-f", "-i", "-s"];

const SETUP: &str = r"
\builtin unsetopt PROMPT_SP PROMPT_CR ZLE BANG_HIST BEEP
\builtin unsetopt HUP CHECK_JOBS
\builtin unsetopt CHECK_RUNNING_JOBS NOTIFY
\builtin setopt MONITOR INTERACTIVE_COMMENTS
\builtin unset HISTFILE MAILCHECK TMOUT
precmd_functions=() preexec_functions=() RPS1= RPROMPT= PROMPT_EOL_MARK= SAVEHIST=0
\builtin unfunction precmd preexec
";

const BEFORE_SNAPSHOT: &str = r#"\builtin unset TMOUT
KARYI_TRAPS=$(\builtin trap)
\builtin trap - DEBUG
"#;
const AFTER_SNAPSHOT: &str = r#"\builtin test "${KARYI_TRAPS/DEBUG/}" = "$KARYI_TRAPS" || \builtin eval "$KARYI_TRAPS"
\builtin unset KARYI_TRAPS
"#;

/// Dialect of zsh.
#[derive(Debug)]
pub(crate) struct Zsh;

impl Dialect for Zsh {
    fn name(&self) -> &'static str {
        "zsh"
    }

    fn arguments(&self, name: &str, target: Option<&str>) -> Option<&'static [&'static str]> {
        matches!((name, target), ("zsh", _) | ("sh" | "ksh", Some("zsh"))).then_some(ARGUMENTS)
    }

    fn builtin(&self) -> &'static str {
        r"\builtin"
    }

    fn rc_files(&self) -> &'static [&'static str] {
        &[
            "/etc/zsh/zshenv",
            "${ZDOTDIR:-${HOME-}}/.zshenv",
            "/etc/zsh/zshrc",
            "${ZDOTDIR:-${HOME-}}/.zshrc",
        ]
    }

    fn snapshot_guards(&self) -> (&'static str, &'static str) {
        (BEFORE_SNAPSHOT, AFTER_SNAPSHOT)
    }

    fn snapshot_sections(&self) -> SnapshotSections {
        &[
            ("environment", "\\builtin typeset -px\n"),
            ("aliases", "\\builtin alias -L\n\\builtin alias -sL\n"),
            ("functions", "\\builtin functions\n"),
            (
                "+options",
                "\\builtin printf 'umask %s\\n' \"$(\\builtin umask)\"\n\\builtin set +o\n",
            ),
        ]
    }

    fn clear_definitions(&self) -> &'static str {
        "\\builtin unsetopt aliases\n\\builtin unalias -a\n\\builtin unalias -s -m '*'\n\\builtin unfunction -m '*'\n"
    }

    fn unhide_functions(&self) -> &'static str {
        "\\unfunction builtin printf\n"
    }

    /// When an error breaks off a sourced file, zsh reports 126, and 1 when it breaks off a script.
    fn exit_status(&self, status: i32, is_refused: bool) -> i32 {
        match status {
            126 if !is_refused => 1,
            status => status,
        }
    }

    fn takes_secrets(&self) -> bool {
        true
    }

    fn own_setup(&self) -> &'static str {
        SETUP
    }

    fn end_restore(&self) -> String {
        "\\builtin set +et\n".to_owned()
    }

    fn enable_line(&self) -> &'static str {
        "\\enable builtin . : [ test alias cd eval exec exit functions printf read return \
         set setopt trap typeset umask unalias unfunction unset unsetopt enable \
         2>/dev/null\n"
    }

    fn status_line(&self, paths: &SessionPaths, status: i32) -> Option<String> {
        let file = paths.quoted("status");
        // A failure before `&&` runs no ERR trap and does not end a shell under -e.
        (status != 0).then(|| format!("\\builtin . {file} {status} && \\builtin :\n"))
    }

    /// Where `OLDPWD` is read-only, zsh changes the directory, fails all the same, and drops the whole line.
    fn contain_failure(&self, command: Vec<u8>) -> Vec<u8> {
        [
            b"{ ",
            command.as_slice(),
            b"; } always { TRY_BLOCK_ERROR=0; }",
        ]
        .concat()
    }
}
