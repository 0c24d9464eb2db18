//! Which shell a session runs, and how karyi talks to it.
//!
//! All shells get the same lines through their FIFO; what differs is how a line names a built-in
//! command so that no function or alias of the user comes between, and what the shell can print
//! about itself. Everything here is text: nothing is run.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{ErrorCode, ToolError};

/// What kind of shell it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bash,
    Zsh,
    /// dash, ksh, busybox ash, and whatever else is called `sh`.
    Posix,
}

/// A shell that can run a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shell {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Arguments after the program.
    pub(super) arguments: Vec<&'static str>,
}

/// The files and names a session's lines refer to.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) directory: PathBuf,
    pub(super) terminal: PathBuf,
    pub(super) nonce: String,
}

impl Places {
    /// Returns the path of a file of the session.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn quoted(&self, name: &str) -> String {
        quote(self.file(name).as_os_str())
    }

    fn quoted_terminal(&self) -> String {
        quote(self.terminal.as_os_str())
    }
}

/// Chooses the shell: the one asked for, else the user's when it is supported, else bash, else sh.
///
/// # Errors
/// `no_shell` when the one asked for cannot be used, or when there is none.
pub(super) fn choose(
    asked: Option<&Path>,
    preferred: Option<&Path>,
    search_path: &OsStr,
) -> Result<Shell, ToolError> {
    if let Some(path) = asked {
        return Shell::at(path).ok_or_else(|| refusal(path));
    }
    if let Some(shell) = preferred.and_then(Shell::at) {
        return Ok(shell);
    }
    let standard = OsStr::new("/usr/local/bin:/usr/bin:/bin");
    for name in ["bash", "sh"] {
        let directories = std::env::split_paths(search_path).chain(std::env::split_paths(standard));
        let mut candidates = directories
            .filter(|d| d.is_absolute())
            .map(|d| d.join(name));
        if let Some(shell) = candidates.find_map(|path| Shell::at(&path)) {
            return Ok(shell);
        }
    }
    Err(ToolError::new(
        ErrorCode::NoShell,
        "found neither bash nor sh",
    ))
}

fn refusal(path: &Path) -> ToolError {
    let shown = path.display();
    let message = if is_program(path) {
        format!("{shown} is not supported; expected bash, zsh, dash, ksh or sh")
    } else {
        format!("expected a shell at {shown}, found no program there")
    };
    ToolError::new(ErrorCode::NoShell, message)
}

fn is_program(path: &Path) -> bool {
    path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

impl Shell {
    /// Returns the shell at a path when it is a program of a known name.
    fn at(path: &Path) -> Option<Self> {
        if !is_program(path) {
            return None;
        }
        let name = path.file_name()?.to_str()?.to_owned();
        let (kind, arguments): (_, &[_]) = match name.as_str() {
            "bash" => (Kind::Bash, BASH),
            "zsh" => (Kind::Zsh, &["-f", "-i", "-s"]),
            // A bash that is called sh needs to be told not to use its line editor.
            "sh" if is_bash(path) => (Kind::Bash, BASH_AS_SH),
            "sh" | "dash" | "ksh" | "ksh93" | "mksh" | "ash" => (Kind::Posix, &["-i"]),
            _ => return None,
        };
        Some(Self {
            path: path.to_owned(),
            name,
            kind,
            arguments: arguments.to_vec(),
        })
    }
}

const BASH: &[&str] = &["--norc", "--noprofile", "--noediting", "-i"];
const BASH_AS_SH: &[&str] = &["--posix", "--norc", "--noprofile", "--noediting", "-i"];

fn is_bash(path: &Path) -> bool {
    path.canonicalize()
        .is_ok_and(|real| real.file_name() == Some(OsStr::new("bash")))
}

/// Quotes text so that any shell reads it as one word.
pub(super) fn quote(text: &OsStr) -> String {
    let mut quoted = String::from("'");
    quoted.push_str(&String::from_utf8_lossy(text.as_bytes()).replace('\'', r"'\''"));
    quoted.push('\'');
    quoted
}

/// Quotes text; unlike [`quote`] it keeps bytes that are not UTF-8.
pub(super) fn quote_bytes(text: &OsStr) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in text.as_bytes() {
        match byte {
            b'\'' => quoted.extend_from_slice(br"'\''"),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

impl Kind {
    /// Whether the shell reads secrets from a FIFO without help of another program.
    pub(super) fn takes_secrets(self) -> bool {
        match self {
            Self::Bash | Self::Zsh => true,
            Self::Posix => false,
        }
    }

    /// What the shell prints into a snapshot, in the words of a report.
    pub(super) fn restorable(self) -> &'static [&'static str] {
        match self {
            Self::Bash | Self::Zsh => &["environment", "functions", "aliases", "options"],
            Self::Posix => &["environment", "options"],
        }
    }

    /// The word before a built-in command that keeps functions and aliases out.
    fn builtin(self) -> &'static str {
        match self {
            Self::Bash | Self::Zsh => r"\builtin",
            Self::Posix => r"\command",
        }
    }

    /// Returns the line that runs the script file with the terminal on 0, 1 and 2.
    pub(super) fn run_line(self, places: &Places) -> String {
        let builtin = self.builtin();
        let script = places.quoted("script");
        let terminal = places.quoted_terminal();
        format!("{builtin} . {script} 0<>{terminal} 1>&0 2>&0\n")
    }

    /// Returns the line that prints the mark of a command.
    pub(super) fn mark_line(self, places: &Places, sequence: u64) -> String {
        let builtin = self.builtin();
        let nonce = &places.nonce;
        let terminal = places.quoted_terminal();
        format!(
            "{builtin} printf '\\033]133;D;{nonce};{sequence};%s;{nonce}\\007' \
             \"$?;$-;${{PWD-}}\" >{terminal}\n"
        )
    }

    /// Returns the line that lets the next command see the exit status of the last one.
    pub(super) fn status_line(self, places: &Places, status: i32) -> Option<String> {
        let builtin = self.builtin();
        let file = places.quoted("status");
        match self {
            _ if status == 0 => None,
            // A failure before `&&` runs no ERR trap and does not end a shell under -e.
            Self::Bash | Self::Zsh => Some(format!("{builtin} . {file} {status} && {builtin} :\n")),
            Self::Posix => None,
        }
    }

    /// Returns the line that ends `set -e`.
    pub(super) fn no_errexit_line(self) -> String {
        format!("{} set +e\n", self.builtin())
    }

    /// Returns the line that changes the directory.
    pub(super) fn directory_line(self, directory: &Path) -> Vec<u8> {
        let mut line = format!("{} cd -- ", self.builtin()).into_bytes();
        line.extend(quote_bytes(directory.as_os_str()));
        line.push(b'\n');
        line
    }

    /// Returns the line that reads a secret from a FIFO into a variable that is not exported.
    pub(super) fn secret_line(self, variable: &str, fifo: &Path) -> String {
        let builtin = self.builtin();
        let fifo = quote(fifo.as_os_str());
        format!(
            "IFS= {builtin} read -r -d '' {variable} <{fifo}; {builtin} typeset +x {variable}\n"
        )
    }

    /// Returns the line that forgets a secret.
    pub(super) fn forget_line(self, variable: &str) -> String {
        format!("{} unset -v {variable}\n", self.builtin())
    }

    /// Returns the line that has the shell describe itself into the FIFO `state`.
    pub(super) fn snapshot_line(self, places: &Places) -> String {
        let builtin = self.builtin();
        let (file, state) = (places.quoted("snapshot"), places.quoted("state"));
        format!("{builtin} . {file} 1>{state} 2>/dev/null\n")
    }

    /// Returns the line that reads a snapshot back from the FIFO `restore`.
    pub(super) fn restore_line(self, places: &Places) -> String {
        format!("{} . {}\n", self.builtin(), places.quoted("restore"))
    }

    /// Returns the lines that make a built-in command reachable again after the user hid it.
    pub(super) fn rescue_lines(self) -> &'static str {
        match self {
            // In POSIX mode `unset` is found before a function of that name.
            Self::Bash => {
                "POSIXLY_CORRECT=1\n\\unset -f builtin unset printf set\n\\unset -v POSIXLY_CORRECT\n"
            }
            Self::Zsh => "\\unfunction builtin printf\n",
            Self::Posix => "\\unset -f command printf\n",
        }
    }

    /// Returns the lines that source the user's start-up files.
    pub(super) fn rc_lines(self, places: &Places) -> String {
        let builtin = self.builtin();
        let terminal = places.quoted_terminal();
        let files: &[&str] = match self {
            Self::Bash => &["/etc/bash.bashrc", "${HOME-}/.bashrc"],
            Self::Zsh => &[
                "/etc/zsh/zshenv",
                "${ZDOTDIR:-${HOME-}}/.zshenv",
                "/etc/zsh/zshrc",
                "${ZDOTDIR:-${HOME-}}/.zshrc",
            ],
            Self::Posix => &["${ENV:-/dev/null}"],
        };
        files
            .iter()
            .map(|file| {
                format!(
                    "{builtin} test -r \"{file}\" && \
                     {builtin} . \"{file}\" 0<>{terminal} 1>&0 2>&0\n"
                )
            })
            .collect()
    }

    /// Returns the text of the file `setup`, sourced once after the rc file.
    pub(super) fn setup_script(self, places: &Places) -> String {
        let own = match self {
            Self::Bash => BASH_SETUP,
            Self::Zsh => ZSH_SETUP,
            Self::Posix => "",
        };
        let trap = quote(OsStr::new(self.snapshot_line(places).trim_end()));
        let builtin = self.builtin();
        format!("{own}{COMMON_SETUP}{builtin} trap {trap} EXIT\n")
    }

    /// Returns the line that sources `setup`, and from then on keeps what the shell itself prints
    /// between commands - prompts, traces, notices - away from the terminal.
    pub(super) fn setup_line(self, places: &Places) -> String {
        let builtin = self.builtin();
        // Named through `builtin`, exec would take its redirections back.
        format!(
            "\\exec >/dev/null 2>&1\n{builtin} . {}\n",
            places.quoted("setup")
        )
    }

    /// Returns the text of the file `snapshot`, which prints what a restarted shell needs.
    pub(super) fn snapshot_script(self, places: &Places) -> String {
        let nonce = &places.nonce;
        let builtin = self.builtin();
        let body = match self {
            Self::Bash => BASH_SNAPSHOT,
            Self::Zsh => ZSH_SNAPSHOT,
            Self::Posix => POSIX_SNAPSHOT,
        };
        format!(
            "{builtin} set +e\n\
             {builtin} printf '#begin {nonce}\\n%s\\n#state {nonce}\\n' \"${{PWD-}}\"\n\
             {body}\
             {builtin} printf '#end {nonce}\\n'\n"
        )
    }
}

/// The file `status`: ends with the status it is told.
pub(super) const STATUS_SCRIPT: &str = "\\builtin return \"$1\"\n";

const BASH_SETUP: &str = r"
\builtin set +o history +o histexpand
\builtin set -o monitor
\builtin unset -v PROMPT_COMMAND PS0 HISTFILE MAILCHECK TMOUT
";

const ZSH_SETUP: &str = r"
\builtin unsetopt PROMPT_SP PROMPT_CR ZLE BANG_HIST BEEP
\builtin setopt MONITOR INTERACTIVE_COMMENTS
\builtin unset HISTFILE MAILCHECK TMOUT
precmd_functions=() preexec_functions=() RPS1= RPROMPT= PROMPT_EOL_MARK= SAVEHIST=0
\builtin unfunction precmd preexec
";

const COMMON_SETUP: &str = r#"
PS1= PS2=
\unset HISTFILE
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

const BASH_SNAPSHOT: &str = r"
\builtin shopt -p
\builtin declare -px
\builtin declare -f
\builtin declare -Fx
\builtin alias -p
\builtin umask -p
\builtin set +o
\builtin printf '\\builtin set +et\n'
";

const ZSH_SNAPSHOT: &str = r"
\builtin typeset -px
\builtin functions
\builtin alias -L
\builtin printf 'umask %s\n' $(\builtin umask)
\builtin set +o
\builtin printf '\\builtin set +et\n'
";

const POSIX_SNAPSHOT: &str = r#"
\command export -p
\command printf 'umask %s\n' "$(umask)"
\command set +o
\command printf 'set +e\n'
"#;

/// Returns the value of a variable in an environment.
pub(super) fn variable<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let (_, value) = env.iter().rev().find(|(key, _)| key == name)?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            directory: "/run/it's".into(),
            terminal: "/dev/pts/3".into(),
            nonce: "n0".into(),
        }
    }

    #[test]
    fn words_are_quoted() {
        let check = |text: &str, expected: &str| {
            assert_eq!(quote(OsStr::new(text)), expected);
            assert_eq!(quote_bytes(OsStr::new(text)), expected.as_bytes());
        };
        check("", "''");
        check("a b$x\n", "'a b$x\n'");
        check("it's", r"'it'\''s'");
    }

    #[test]
    fn a_command_is_two_lines() {
        let run = r"\builtin . '/run/it'\''s/script' 0<>'/dev/pts/3' 1>&0 2>&0";
        assert_eq!(Kind::Bash.run_line(&places()).trim_end(), run);
        let mark = r#"\command printf '\033]133;D;n0;7;%s;n0\007' "$?;$-;${PWD-}" >'/dev/pts/3'"#;
        assert_eq!(Kind::Posix.mark_line(&places(), 7).trim_end(), mark);
    }

    #[test]
    fn a_shell_must_be_a_program_of_a_known_name() {
        let check = |asked: &str, expected: &str| {
            let error = choose(Some(Path::new(asked)), None, OsStr::new("")).unwrap_err();
            assert_eq!(
                (error.code, error.message.as_str()),
                (ErrorCode::NoShell, expected)
            );
        };
        check(
            "/no/bash",
            "expected a shell at /no/bash, found no program there",
        );
        check("/", "expected a shell at /, found no program there");
        check(
            "/bin/cat",
            "/bin/cat is not supported; expected bash, zsh, dash, ksh or sh",
        );
    }

    #[test]
    fn without_a_usable_preference_bash_is_found() {
        for preferred in [
            None,
            Some(Path::new("/bin/cat")),
            Some(Path::new("/no/zsh")),
        ] {
            let shell = choose(None, preferred, OsStr::new("/no:/bin")).unwrap();
            assert_eq!((shell.name.as_str(), shell.kind), ("bash", Kind::Bash));
        }
    }
}
