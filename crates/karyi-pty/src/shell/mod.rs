//! How karyi talks to a shell.
//!
//! All shells get the same lines through their FIFO; what differs is how a line names a built-in
//! command so that no function or alias of the user comes between, and what the shell can print
//! about itself. Everything here is text: nothing is run.

pub(crate) mod choice;
pub(crate) mod delivery;
mod describe;
pub(crate) mod secret_carriers;
pub(crate) mod secrets;
pub(crate) mod shell_repair;
pub(crate) mod snapshot;
mod snapshot_filter;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use karyi_core::shell_word::{quote, quote_bytes};

/// What kind of shell it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bash,
    Zsh,
    /// ksh93.
    Ksh,
    Mksh,
    /// dash, busybox ash, and whatever else is called `sh`.
    Posix,
}

/// A shell that can run a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shell {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    pub(crate) kind: Kind,
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

    fn quoted(&self, name: &str) -> String {
        quote(self.file(name).as_os_str())
    }

    fn quoted_terminal(&self) -> String {
        quote(self.terminal.as_os_str())
    }
}

/// The descriptor on which bash keeps the terminal, which no program inherits.
pub(crate) const BASH_TERMINAL_FD: i32 = 255;

impl Kind {
    /// Whether the shell reads secrets from a FIFO without help of another program.
    pub(crate) fn takes_secrets(self) -> bool {
        match self {
            Self::Bash | Self::Zsh => true,
            Self::Ksh | Self::Mksh | Self::Posix => false,
        }
    }

    /// The word before a built-in command that keeps functions and aliases out.
    pub(crate) fn builtin(self) -> &'static str {
        match self {
            Self::Bash | Self::Zsh | Self::Mksh => r"\builtin",
            Self::Ksh | Self::Posix => r"\command",
        }
    }

    /// Returns the lines that run the script file and print the mark of the command; `may_hide_builtins` when
    /// the script may have made a function that hides what the mark is printed with.
    pub(crate) fn command_lines(
        self,
        paths: &SessionPaths,
        sequence: u64,
        may_hide_builtins: bool,
    ) -> String {
        let run = self.run(paths, "script");
        let mark = match may_hide_builtins {
            true => self.mark_without_functions(paths, sequence),
            false => self.mark(paths, sequence),
        };
        match self {
            // It moves groups to the foreground with what descriptor 2 was, which must stay the
            // terminal; a prompt between two lines would be seen there.
            Self::Ksh => format!("{{ {run}; {mark}; }} 2>/dev/null\n"),
            _ => format!("{run}\n{mark}\n"),
        }
    }

    /// Returns the lines that do so when the values of the command came whole.
    pub(crate) fn lines_if_delivered(
        self,
        paths: &SessionPaths,
        sequence: u64,
        may_hide_builtins: bool,
    ) -> String {
        let run = delivery::only_if_arrived(&self.run(paths, "script"));
        let mark = match may_hide_builtins {
            true => self.mark_without_functions(paths, sequence),
            false => self.mark(paths, sequence),
        };
        format!("{run}\n{}\n", delivery::with_arrival_flag(&mark))
    }

    /// Returns the lines that do so in bash on the descriptor of the terminal that the shell keeps:
    /// nothing has to be opened, and what bash does before it reads a line comes after the mark, which
    /// is told beside the terminal. The second line prints the mark of a script that broke off the first; it does nothing else, so a
    /// command that has ended does without.
    pub(crate) fn lines_on_bash_terminal(
        self,
        paths: &SessionPaths,
        sequence: &str,
    ) -> [String; 2] {
        let terminal = format!("&{BASH_TERMINAL_FD}");
        let run = self.run_on(
            paths,
            "script",
            &format!("0<{terminal} 1>{terminal} 2>{terminal}"),
        );
        let mark = self.fifo_mark(paths, &format!("{sequence};$?"));
        let last = self.last();
        [
            format!("{run}; {mark}\n"),
            format!("case {last} in \"{sequence};\"*) ;; *) {mark};; esac\n"),
        ]
    }

    /// Returns the command that sources a file of the session with the terminal on 0, 1 and 2.
    fn run(self, paths: &SessionPaths, name: &str) -> String {
        let terminal = paths.quoted_terminal();
        self.run_on(paths, name, &format!("0<>{terminal} 1>&0 2>&0"))
    }

    fn run_on(self, paths: &SessionPaths, name: &str, redirections: &str) -> String {
        let (builtin, script) = (self.builtin(), paths.quoted(name));
        format!("{builtin} . {script} {redirections}")
    }

    /// Returns the line that prints a mark.
    pub(crate) fn mark_line(self, paths: &SessionPaths, sequence: u64) -> String {
        let mark = self.mark(paths, sequence);
        format!("{mark}\n")
    }

    /// Returns the command that prints the mark of a command.
    ///
    /// It keeps number and status where [`Kind::last`] finds them should the mark fail.
    pub(crate) fn mark(self, paths: &SessionPaths, sequence: u64) -> String {
        match self {
            Self::Bash => self.mark_with(paths, &format!("{sequence};$?")),
            _ => self.saved_mark(paths, sequence, ""),
        }
    }

    /// Returns the command that prints the mark after it has removed a function that hides what
    /// that takes: it would be run instead.
    fn mark_without_functions(self, paths: &SessionPaths, sequence: u64) -> String {
        // Found before functions in all but bash and zsh, where few name a function so.
        let unset = format!("\\unset -f {}; ", &self.builtin()[1..]);
        self.saved_mark(paths, sequence, &unset)
    }

    /// Returns the command that keeps number and status, does `first`, and prints them.
    fn saved_mark(self, paths: &SessionPaths, sequence: u64, first: &str) -> String {
        let ending = format!("{sequence};$?");
        let mark = self.mark_with(paths, "${KARYI_LAST-}");
        match self {
            // After too deep a recursion ksh refuses to source anything, for good; then no mark is
            // to come. What it prints between lines comes to the terminal: prompts stay empty.
            Self::Ksh => format!(
                "KARYI_LAST=\"{ending}\"; {first}{{ [[ $KARYI_LAST == *';0' ]] || \\command . /dev/null; }} \
                 && {mark}; PS1= PS2="
            ),
            _ => format!("KARYI_LAST=\"{ending}\"; {first}{mark}"),
        }
    }

    /// Returns what expands to number and status of the command whose mark was printed last, or
    /// was to be: bash keeps the last word of a command even when the command fails.
    pub(crate) fn last(self) -> &'static str {
        match self {
            Self::Bash => "${_-}",
            _ => "${KARYI_LAST-}",
        }
    }

    /// Returns the command that prints a mark; `ending` expands to the command's number and status.
    pub(crate) fn mark_with(self, paths: &SessionPaths, ending: &str) -> String {
        let (builtin, terminal) = (self.builtin(), paths.quoted_terminal());
        let nonce = &paths.nonce;
        match self {
            // Its printf is another program.
            Self::Mksh => format!(
                "{builtin} print -nr -- $'\\033]133;D;{nonce};'\"{ending};$-;${{PWD-}};{nonce}\"$'\\007' \
                 >{terminal}"
            ),
            // The last word is printed nowhere; it is there for `$_`.
            _ => format!(
                "{builtin} printf '\\033]133;D;{nonce};%s;%s;%s;{nonce}\\007%.0s' \
                 \"{ending}\" \"$-\" \"${{PWD-}}\" \"{ending}\" >{terminal}"
            ),
        }
    }

    /// Returns the command that tells the mark of a command beside the terminal, by what is the shell's
    /// standard output between commands.
    fn fifo_mark(self, paths: &SessionPaths, ending: &str) -> String {
        let (builtin, nonce) = (self.builtin(), &paths.nonce);
        // The last word is printed nowhere; it is there for `$_`.
        format!(
            "{builtin} printf '\\033]133;D;%s\\007%.0s' \"{nonce};{ending};$-;${{PWD-}};{nonce}\" \"{ending}\""
        )
    }

    /// Returns the line that lets the next command see the exit status of the last one.
    pub(crate) fn status_line(self, paths: &SessionPaths, status: i32) -> Option<String> {
        let builtin = self.builtin();
        let file = paths.quoted("status");
        match self {
            _ if status == 0 => None,
            // A failure before `&&` runs no ERR trap and does not end a shell under -e.
            Self::Bash | Self::Zsh => Some(format!("{builtin} . {file} {status} && {builtin} :\n")),
            Self::Ksh | Self::Mksh | Self::Posix => None,
        }
    }

    /// Whether the shell takes no notice of HUP and TERM while it waits for its next line.
    pub(crate) fn ignores_hangup(self) -> bool {
        self == Self::Mksh
    }

    /// Returns the line that ends `set -e`.
    pub(crate) fn errexit_off_line(self) -> String {
        format!("{} set +e\n", self.builtin())
    }

    /// Returns the lines before and after a script that may end the shell: what its trap prints
    /// then comes to the terminal, though the shell has taken the script's redirections back.
    pub(crate) fn exit_trap_output_lines(
        self,
        paths: &SessionPaths,
    ) -> Option<(String, &'static str)> {
        let terminal = paths.quoted_terminal();
        match self {
            Self::Bash | Self::Zsh | Self::Mksh => None,
            Self::Ksh => Some((format!("\\exec >{terminal}\n"), "\\exec >/dev/null\n")),
            // A prompt would be seen there.
            Self::Posix => Some((
                format!("PS1= PS2=; \\exec >{terminal} 2>&1\n"),
                "\\exec >/dev/null 2>&1\n",
            )),
        }
    }

    /// Returns the line that changes the directory; should that fail, no trap on ERR runs.
    pub(crate) fn directory_line(self, directory: &Path) -> Vec<u8> {
        let mut line = self.directory_command(directory);
        line.extend(format!(" || {} :\n", self.builtin()).bytes());
        line
    }

    fn directory_command(self, directory: &Path) -> Vec<u8> {
        let mut command = format!("{} cd -- ", self.builtin()).into_bytes();
        command.extend(quote_bytes(directory.as_os_str()));
        command
    }

    /// Returns what stands before the command that runs a script elsewhere, in one line with it: should
    /// something else read the line, or the directory be gone, the script is not run where it should
    /// not be.
    pub(crate) fn prelude(self, directory: &Path, status: Option<&str>) -> Vec<u8> {
        let mut line = self.directory_command(directory);
        // Where `OLDPWD` is read-only it goes there and fails all the same, in zsh with the whole line.
        if self == Self::Zsh {
            line = [b"{ ", line.as_slice(), b"; } always { TRY_BLOCK_ERROR=0; }"].concat();
        }
        line.extend(format!(" || {} test . -ef ", self.builtin()).bytes());
        line.extend(quote_bytes(directory.as_os_str()));
        line.extend(b" && { ");
        if let Some(status) = status {
            line.extend(status.trim_end().as_bytes());
            line.extend(b"; ");
        }
        line
    }

    /// Returns the line that reads secrets, one after another, from a FIFO into variables that are not
    /// exported.
    pub(crate) fn secrets_line(self, variables: &[&str], fifo: &Path) -> String {
        let builtin = self.builtin();
        let fifo = quote(fifo.as_os_str());
        let read = |variable: &&str| format!("IFS= {builtin} read -r -d '' {variable}; ");
        let reads: String = variables.iter().map(read).collect();
        let names = variables.join(" ");
        format!("{{ {reads}}} <{fifo}; {builtin} typeset +x {names}\n")
    }

    /// Returns the line that puts the path of a secret's file into a variable that is not exported.
    pub(crate) fn path_line(self, variable: &str, path: &Path) -> String {
        let (builtin, path) = (self.builtin(), quote(path.as_os_str()));
        format!("{variable}={path}; {builtin} typeset +x {variable}\n")
    }

    /// Returns the line that forgets a secret.
    pub(crate) fn unset_line(self, variable: &str) -> String {
        format!("{} unset -v {variable}\n", self.builtin())
    }

    /// Returns the line that has the shell describe itself into the FIFO `state`.
    pub(crate) fn snapshot_line(self, paths: &SessionPaths) -> String {
        let builtin = self.builtin();
        let (file, state) = (paths.quoted("snapshot"), paths.quoted("state"));
        // The braces keep the trace of `set -x` away as well.
        format!("{{ {builtin} . {file} 1>{state}; }} 2>/dev/null\n")
    }

    /// Returns the line that reads a snapshot back from the FIFO `restore`.
    pub(crate) fn restore_line(self, paths: &SessionPaths) -> String {
        format!("{} . {}\n", self.builtin(), paths.quoted("restore"))
    }

    /// Returns the line that gives ENV its value back: shells read the file it names while they
    /// start, when nothing limits its time.
    pub(crate) fn first_line(self) -> &'static str {
        "case ${KARYI_ENV+x} in x) ENV=$KARYI_ENV; \\export ENV;; *) \\unset ENV;; esac; \
         \\unset KARYI_ENV\n"
    }

    /// Returns the lines that source the user's start-up files.
    pub(crate) fn rc_lines(self, paths: &SessionPaths) -> String {
        let builtin = self.builtin();
        let terminal = paths.quoted_terminal();
        let files: &[&str] = match self {
            Self::Bash => &["/etc/bash.bashrc", "${HOME-}/.bashrc"],
            Self::Zsh => &[
                "/etc/zsh/zshenv",
                "${ZDOTDIR:-${HOME-}}/.zshenv",
                "/etc/zsh/zshrc",
                "${ZDOTDIR:-${HOME-}}/.zshrc",
            ],
            Self::Mksh => &["${ENV:-${HOME-}/.mkshrc}"],
            Self::Ksh => &["${ENV:-${HOME-}/.kshrc}"],
            Self::Posix => &["${ENV:-/dev/null}"],
        };
        files
            .iter()
            .map(|file| {
                format!(
                    "{builtin} test -r \"{file}\" && \
                     {builtin} . \"{file}\" 0<>{terminal} 1>&0 2>&0\n\
                     \\unset -f {} || :\n",
                    &builtin[1..]
                )
            })
            .collect()
    }

    /// Returns the line that sources `setup`, and from then on keeps what the shell itself prints
    /// between commands - prompts, traces, notices - away from the terminal.
    pub(crate) fn setup_line(self, paths: &SessionPaths) -> String {
        let builtin = self.builtin();
        // Named through `builtin`, exec would take its redirections back.
        let quiet = match self {
            Self::Bash => format!("\\exec >{} 2>/dev/null", paths.quoted("marks")),
            Self::Ksh => "\\exec >/dev/null".to_owned(),
            Self::Zsh | Self::Mksh | Self::Posix => "\\exec >/dev/null 2>&1".to_owned(),
        };
        format!("{quiet}\n{builtin} . {}\n", paths.quoted("setup"))
    }
}

/// The file `status`: ends with the status it is told.
pub(crate) const STATUS_SCRIPT: &str = "\\builtin return \"$1\"\n";

/// Returns the value of a variable in an environment.
pub(crate) fn variable<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let (_, value) = env.iter().rev().find(|(key, _)| key == name)?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> SessionPaths {
        SessionPaths {
            directory: "/run/it's".into(),
            terminal: "/dev/pts/3".into(),
            nonce: "n0".into(),
        }
    }

    #[test]
    fn a_command_is_two_lines() {
        let bash = r#"\builtin . '/run/it'\''s/script' 0<>'/dev/pts/3' 1>&0 2>&0
\builtin printf '\033]133;D;n0;%s;%s;%s;n0\007%.0s' "7;$?" "$-" "${PWD-}" "7;$?" >'/dev/pts/3'
"#;
        assert_eq!(Kind::Bash.command_lines(&paths(), 7, false), bash);
        let kept = r#"\builtin . '/run/it'\''s/script' 0<&255 1>&255 2>&255; MARK
case ${_-} in "7;"*) ;; *) MARK;; esac
"#;
        let mark = r#"\builtin printf '\033]133;D;%s\007%.0s' "n0;7;$?;$-;${PWD-};n0" "7;$?""#;
        assert_eq!(
            Kind::Bash.lines_on_bash_terminal(&paths(), "7").concat(),
            kept.replace("MARK", mark)
        );
        let dash = r#"\command . '/run/it'\''s/script' 0<>'/dev/pts/3' 1>&0 2>&0
KARYI_LAST="7;$?"; \command printf '\033]133;D;n0;%s;%s;%s;n0\007%.0s' "${KARYI_LAST-}" "$-" "${PWD-}" "${KARYI_LAST-}" >'/dev/pts/3'
"#;
        assert_eq!(Kind::Posix.command_lines(&paths(), 7, false), dash);
    }
}
