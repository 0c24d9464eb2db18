//! What a shell runs once at its start, and the script by which it describes itself.
//!
//! The description is a text the shell can read back: sections, each after a comment line that
//! names it. `#NAME` holds commands as they are; `#+NAME` single lines that get a backslash, which
//! keeps aliases away from them; `#=NAME` the bare `name='value'` lines of a shell that prints its
//! aliases so.

use std::ffi::OsStr;

use crate::shell::{Kind, SessionPaths};
use karyi_core::shell_word::quote;

impl Kind {
    /// Returns the text of the file `setup`, sourced once after the rc file.
    pub(crate) fn setup_script(self, paths: &SessionPaths) -> String {
        let own = match self {
            Self::Bash => BASH_SETUP,
            Self::Zsh => ZSH_SETUP,
            Self::Ksh | Self::Mksh | Self::Posix => "",
        };
        let trap = quote(OsStr::new(self.snapshot_line(paths).trim_end()));
        let builtin = self.builtin();
        format!("{own}{COMMON_SETUP}{builtin} trap {trap} EXIT\n")
    }

    /// Returns the text of the file `snapshot`, which prints what a restarted shell needs.
    pub(crate) fn snapshot_script(self, paths: &SessionPaths) -> String {
        let nonce = &paths.nonce;
        let builtin = self.builtin();
        let mut text = format!("{builtin} set +e\n");
        let (before, after) = match self {
            Self::Bash => (BASH_BEFORE, BASH_AFTER),
            Self::Zsh => (ZSH_BEFORE, ZSH_AFTER),
            Self::Ksh => (KSH_BEFORE, KSH_AFTER),
            Self::Mksh => ("\\builtin unset TMOUT\n", ""),
            Self::Posix => ("\\command unset TMOUT\n", ""),
        };
        text.push_str(before);
        text.push_str(&self.say(&quote(OsStr::new(&format!("#begin {nonce}")))));
        text.push_str(&self.say("\"${PWD-}\""));
        text.push_str(&self.say(&quote(OsStr::new(&format!("#state {nonce}")))));
        for (name, lines) in self.sections() {
            text.push_str(&self.say(&quote(OsStr::new(&format!("#{name} {nonce}")))));
            text.push_str(lines);
        }
        text.push_str(&self.say(&quote(OsStr::new(&format!("#end {nonce}")))));
        text.push_str(after);
        text
    }

    /// Returns the lines for a shell that rests: they put back what commands may have taken, and
    /// have it describe itself.
    pub(crate) fn resting_lines(self, paths: &SessionPaths) -> String {
        let (descriptors, builtins) = (self.descriptor_lines(paths), self.enable_line());
        format!("{descriptors}{builtins}{}", self.snapshot_line(paths))
    }

    /// Returns the line that prints a word and a line break.
    fn say(self, word: &str) -> String {
        match self {
            Self::Mksh => format!("\\builtin print -r -- {word}\n"),
            _ => format!("{} printf '%s\\n' {word}\n", self.builtin()),
        }
    }

    /// Returns the sections of a description and the lines that print each; the order is that in
    /// which they are read back.
    fn sections(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Bash => &[
                ("+options", "\\builtin shopt -p\n"),
                ("environment", "\\builtin declare -px\n"),
                ("aliases", "\\builtin alias -p\n"),
                ("functions", "\\builtin declare -f\n"),
                ("+functions", "\\builtin declare -Fx\n"),
                ("+options", "\\builtin umask -p\n\\builtin set +o\n"),
            ],
            Self::Zsh => &[
                ("environment", "\\builtin typeset -px\n"),
                ("aliases", "\\builtin alias -L\n\\builtin alias -sL\n"),
                ("functions", "\\builtin functions\n"),
                (
                    "+options",
                    "\\builtin printf 'umask %s\\n' \"$(\\builtin umask)\"\n\\builtin set +o\n",
                ),
            ],
            // It prints functions from the file they came from, which holds another script by then.
            Self::Ksh => &[
                ("environment", "\\command export -p\n"),
                (
                    "+options",
                    "\\command printf 'umask %s\\n' \"$(\\command umask)\"\n\\command set +o\n",
                ),
                ("+aliases", "\\command alias -p\n"),
            ],
            Self::Mksh => &[
                ("environment", "\\builtin export -p\n"),
                ("functions", "\\builtin typeset -f\n"),
                (
                    "+options",
                    "\\builtin print -r -- umask \"$(\\builtin umask)\"\n\\builtin set +o\n",
                ),
                ("+aliases", "\\builtin alias -p\n"),
            ],
            Self::Posix => &[
                ("environment", "\\command export -p\n"),
                (
                    "+options",
                    "\\command printf 'umask %s\\n' \"$(\\command umask)\"\n\\command set +o\n",
                ),
                ("=aliases", "\\command alias\n"),
            ],
        }
    }

    /// Returns what a description holds, in the words of a report.
    pub(crate) fn restorable(self) -> &'static [&'static str] {
        match self {
            Self::Ksh | Self::Posix => &["environment", "aliases", "options"],
            _ => &["environment", "functions", "aliases", "options"],
        }
    }

    /// Returns what a shell cannot print about itself, in the words of a report.
    pub(crate) fn unprintable(self) -> &'static [&'static str] {
        match self {
            Self::Ksh | Self::Posix => &["functions"],
            _ => &[],
        }
    }

    /// Returns the lines before a description that is read back: what the start-up files made is
    /// not what the shell had, and aliases must not reach into functions.
    pub(crate) fn restoring_lines(self) -> &'static str {
        match self {
            Self::Bash => {
                "\\builtin shopt -u expand_aliases\n\
                 \\builtin unalias -a\n\
                 \\builtin unset -f $(\\builtin compgen -A function)\n\
                 \\builtin unset -v $(\\builtin compgen -e)\n"
            }
            Self::Zsh => {
                "\\builtin unsetopt aliases\n\\builtin unalias -a\n\\builtin unalias -s -m '*'\n\
                 \\builtin unfunction -m '*'\n"
            }
            Self::Ksh | Self::Posix => "\\command unalias -a\n",
            Self::Mksh => "\\builtin unalias -a\n\\builtin unset -f $(\\builtin typeset +f)\n",
        }
    }

    /// Returns the line after it: neither option may outlive a command.
    pub(crate) fn restored_line(self) -> &'static str {
        match self {
            Self::Bash | Self::Zsh => "\\builtin set +et\n",
            Self::Mksh => "\\builtin set +e\n",
            Self::Ksh | Self::Posix => "\\command set +e\n",
        }
    }
}

const BASH_SETUP: &str = r"
\builtin set +o history +o histexpand
\builtin set -o monitor
\builtin unset -v PROMPT_COMMAND PS0 HISTFILE MAILCHECK TMOUT
";

const ZSH_SETUP: &str = r"
\builtin unsetopt PROMPT_SP PROMPT_CR ZLE BANG_HIST BEEP
\builtin unsetopt HUP CHECK_JOBS
\builtin unsetopt CHECK_RUNNING_JOBS
\builtin setopt MONITOR INTERACTIVE_COMMENTS
\builtin unset HISTFILE MAILCHECK TMOUT
precmd_functions=() preexec_functions=() RPS1= RPROMPT= PROMPT_EOL_MARK= SAVEHIST=0
\builtin unfunction precmd preexec
";

const COMMON_SETUP: &str = r#"
PS1= PS2=
\unset HISTFILE
\unset TMOUT
PAGER=cat GIT_PAGER=cat EDITOR=false VISUAL=false TERM=xterm-256color
\export PAGER GIT_PAGER EDITOR VISUAL TERM
\unset COLUMNS LINES
case "${LC_ALL:-${LC_CTYPE:-${LANG-}}}" in
*[Uu][Tt][Ff]8* | *[Uu][Tt][Ff]-8*) ;;
*)
  if [ -n "${LC_ALL-}" ]; then LANG=$LC_ALL; \export LANG; \unset LC_ALL; fi
  LC_CTYPE=C.UTF-8
  \export LC_CTYPE
  ;;
esac
"#;

/// TMOUT would end an idle shell. Traps that reach into sourced files would print into the
/// description.
const BASH_BEFORE: &str = r#"\builtin unset -v TMOUT
\builtin test -n "${-//[^ET]/}" && KARYI_TRAPS=$(\builtin trap -p DEBUG ERR RETURN) && \builtin trap - DEBUG ERR RETURN
"#;
const BASH_AFTER: &str = r#"\builtin test -n "${KARYI_TRAPS-}" && \builtin eval "$KARYI_TRAPS"
\builtin unset -v KARYI_TRAPS
"#;

const ZSH_BEFORE: &str = r#"\builtin unset TMOUT
KARYI_TRAPS=$(\builtin trap)
\builtin trap - DEBUG
"#;
const ZSH_AFTER: &str = r#"\builtin test "${KARYI_TRAPS/DEBUG/}" = "$KARYI_TRAPS" || \builtin eval "$KARYI_TRAPS"
\builtin unset KARYI_TRAPS
"#;

const KSH_BEFORE: &str = r"TMOUT=0
KARYI_TRAPS=$(\command trap -p DEBUG)
\command trap - DEBUG
";
const KSH_AFTER: &str = r#"\command test -z "${KARYI_TRAPS-}" || \command eval "\\command trap -- $KARYI_TRAPS DEBUG"
\command unset KARYI_TRAPS
"#;
