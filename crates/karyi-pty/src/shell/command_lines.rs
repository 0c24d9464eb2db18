//! Lines that start a shell, run commands in it and hand it secrets.

use std::path::Path;

use karyi_core::shell_word::{quote, quote_bytes};

use crate::shell::delivery;
use crate::shell::dialect::{Dialect, SessionPaths};

/// Text of the file `status`, which returns the status it gets as its argument.
pub(crate) const STATUS_SCRIPT: &str = "\\builtin return \"$1\"\n";

/// The line that gives ENV its value back. Shells read the file it names while they start, when nothing limits the
/// time that takes.
pub(crate) const RESTORE_ENV_LINE: &str = "case ${KARYI_ENV+x} in x) ENV=$KARYI_ENV; \\export ENV;; *) \\unset ENV;; esac; \
     \\unset KARYI_ENV\n";

impl dyn Dialect + '_ {
    /// Returns the lines that run the script file and print its mark if all values of the command arrived.
    pub(crate) fn lines_if_delivered(
        &self,
        paths: &SessionPaths,
        sequence: u64,
        may_hide_builtins: bool,
    ) -> String {
        let run = delivery::only_if_arrived(&self.run_script(paths));
        let mark = self.mark_after(paths, sequence, may_hide_builtins);
        format!("{run}\n{}\n", delivery::with_arrival_flag(&mark))
    }

    /// Returns the line that prints a mark.
    pub(crate) fn mark_line(&self, paths: &SessionPaths, sequence: u64) -> String {
        format!("{}\n", self.mark(paths, sequence))
    }

    /// Returns the line that ends `set -e`.
    pub(crate) fn errexit_off_line(&self) -> String {
        format!("{} set +e\n", self.builtin())
    }

    /// Returns the line that changes the directory; should that fail, no trap on ERR runs.
    pub(crate) fn directory_line(&self, directory: &Path) -> Vec<u8> {
        let mut line = self.directory_command(directory);
        line.extend(format!(" || {} :\n", self.builtin()).bytes());
        line
    }

    fn directory_command(&self, directory: &Path) -> Vec<u8> {
        let mut command = format!("{} cd -- ", self.builtin()).into_bytes();
        command.extend(quote_bytes(directory.as_os_str()));
        command
    }

    /// Returns the start of a line that runs a script in another directory. The script must be in the same line: it
    /// does not run if something else reads the line, or if the directory is gone.
    pub(crate) fn prelude(&self, directory: &Path, status: Option<&str>) -> Vec<u8> {
        let mut line = self.contain_failure(self.directory_command(directory));
        line.extend(format!(" || {} test . -ef ", self.builtin()).bytes());
        line.extend(quote_bytes(directory.as_os_str()));
        line.extend(b" && { ");
        if let Some(status) = status {
            line.extend(status.trim_end().as_bytes());
            line.extend(b"; ");
        }
        line
    }

    /// Returns the line that reads secrets, one after another, from a FIFO into variables that are not exported.
    pub(crate) fn secrets_line(&self, variables: &[&str], fifo: &Path) -> String {
        let builtin = self.builtin();
        let fifo = quote(fifo.as_os_str());
        let read = |variable: &&str| format!("IFS= {builtin} read -r -d '' {variable}; ");
        let reads: String = variables.iter().map(read).collect();
        let names = variables.join(" ");
        format!("{{ {reads}}} <{fifo}; {builtin} typeset +x {names}\n")
    }

    /// Returns the line that puts the path of a secret's file into a variable that is not exported.
    pub(crate) fn path_line(&self, variable: &str, path: &Path) -> String {
        let (builtin, path) = (self.builtin(), quote(path.as_os_str()));
        format!("{variable}={path}; {builtin} typeset +x {variable}\n")
    }

    /// Returns the line that unsets a variable.
    pub(crate) fn unset_line(&self, variable: &str) -> String {
        format!("{} unset -v {variable}\n", self.builtin())
    }

    /// Returns the line that prints a snapshot into the FIFO `state`.
    pub(crate) fn snapshot_line(&self, paths: &SessionPaths) -> String {
        let (file, state) = (paths.quoted("snapshot"), paths.quoted("state"));
        // The braces also hide the trace of `set -x`.
        format!("{{ {} . {file} 1>{state}; }} 2>/dev/null\n", self.builtin())
    }

    /// Returns the line that reads a snapshot back from the FIFO `restore`.
    pub(crate) fn restore_line(&self, paths: &SessionPaths) -> String {
        format!("{} . {}\n", self.builtin(), paths.quoted("restore"))
    }

    /// Returns the lines that source the user's start-up files.
    pub(crate) fn rc_lines(&self, paths: &SessionPaths) -> String {
        let builtin = self.builtin();
        let terminal = paths.quoted_terminal();
        let line = |file: &&str| {
            format!(
                "{builtin} test -r \"{file}\" && {builtin} . \"{file}\" 0<>{terminal} 1>&0 2>&0\n\
                 \\unset -f {} || :\n",
                &builtin[1..]
            )
        };
        self.rc_files().iter().map(line).collect()
    }

    /// Returns the lines that silence the shell between commands and source `setup`.
    pub(crate) fn setup_line(&self, paths: &SessionPaths) -> String {
        // `exec` is not called through `builtin`, which would take its redirections back.
        let silence = self.silence_command(paths);
        format!(
            "{silence}\n{} . {}\n",
            self.builtin(),
            paths.quoted("setup")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::bash::Bash;
    use crate::shell::posix::Posix;

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
        assert_eq!(Bash.command_lines(&paths(), 7, false), bash);
        let expected = r#"\builtin . '/run/it'\''s/script' 0<&255 1>&255 2>&255; MARK
case ${_-} in "7;"*) ;; *) MARK;; esac
"#;
        let mark = r#"\builtin printf '\033]133;D;%s\007%.0s' "n0;7;$?;$-;${PWD-};n0" "7;$?""#;
        assert_eq!(
            Bash.kept_terminal_lines(&paths(), "7").unwrap().concat(),
            expected.replace("MARK", mark)
        );
        let dash = r#"\command . '/run/it'\''s/script' 0<>'/dev/pts/3' 1>&0 2>&0
KARYI_LAST="7;$?"; \command printf '\033]133;D;n0;%s;%s;%s;n0\007%.0s' "${KARYI_LAST-}" "$-" "${PWD-}" "${KARYI_LAST-}" >'/dev/pts/3'
"#;
        assert_eq!(Posix.command_lines(&paths(), 7, false), dash);
    }
}
