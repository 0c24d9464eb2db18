//! The scripts that set a shell up and print a snapshot of it.
//!
//! A snapshot is a text the shell can read back: sections, each after a comment line with its name. `#NAME` holds
//! commands as they are; `#+NAME` single lines that get a backslash, which keeps aliases away from them; `#=NAME` the
//! bare `name='value'` lines of a shell that prints its aliases so.

use std::ffi::{OsStr, OsString};

use karyi_core::shell_word::{quote, quote_bytes};

use crate::shell::dialect::{Dialect, SessionPaths};

const COMMON_SETUP: &str = r#"
PS1= PS2=
\unset HISTFILE
\unset TMOUT
PAGER=cat GIT_PAGER=cat MANPAGER=cat SYSTEMD_PAGER=cat TERM=xterm-256color
GIT_EDITOR=true GIT_MERGE_AUTOEDIT=no GIT_SEQUENCE_EDITOR=false
\export PAGER GIT_PAGER MANPAGER SYSTEMD_PAGER TERM GIT_EDITOR GIT_MERGE_AUTOEDIT GIT_SEQUENCE_EDITOR
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

/// Variables that the setup sets or unsets and that a caller may give another value.
pub(crate) const OVERRIDABLE: [&str; 13] = [
    "PAGER",
    "GIT_PAGER",
    "MANPAGER",
    "SYSTEMD_PAGER",
    "TERM",
    "GIT_EDITOR",
    "GIT_MERGE_AUTOEDIT",
    "GIT_SEQUENCE_EDITOR",
    "COLUMNS",
    "LINES",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
];

/// Returns the lines after the setup that give its variables the values of the caller.
pub(crate) fn override_lines(overrides: &[(OsString, OsString)]) -> Vec<u8> {
    let mut lines = Vec::new();
    for name in OVERRIDABLE {
        if let Some((_, value)) = overrides.iter().rev().find(|(key, _)| key == name) {
            lines.extend(format!("{name}=").bytes());
            lines.extend(quote_bytes(value));
            lines.extend(format!("; \\export {name}\n").bytes());
        }
    }
    lines
}

impl dyn Dialect + '_ {
    /// Returns the text of the file `setup`, sourced once after the start-up files.
    pub(crate) fn setup_script(&self, paths: &SessionPaths) -> String {
        let own = self.own_setup();
        let trap = quote(OsStr::new(self.snapshot_line(paths).trim_end()));
        format!("{own}{COMMON_SETUP}{} trap {trap} EXIT\n", self.builtin())
    }

    /// Returns the text of the file `snapshot`, which prints what a restarted shell needs.
    pub(crate) fn snapshot_script(&self, paths: &SessionPaths) -> String {
        let nonce = &paths.nonce;
        let print = |line: String| self.print_line(&quote(OsStr::new(&line)));
        let (before, after) = self.snapshot_guards();
        let mut text = format!("{} set +e\n{before}", self.builtin());
        text.push_str(&print(format!("#begin {nonce}")));
        text.push_str(&self.print_line("\"${PWD-}\""));
        text.push_str(&print(format!("#state {nonce}")));
        for (name, lines) in self.snapshot_sections() {
            text.push_str(&print(format!("#{name} {nonce}")));
            text.push_str(lines);
        }
        text.push_str(&print(format!("#end {nonce}")));
        text.push_str(after);
        text
    }

    /// Returns the lines for an idle shell: they repair what commands may have broken, and print a snapshot.
    pub(crate) fn idle_lines(&self, paths: &SessionPaths) -> String {
        let (descriptors, builtins) = (self.descriptor_lines(paths), self.enable_line());
        format!("{descriptors}{builtins}{}", self.snapshot_line(paths))
    }

    /// Returns the parts of a snapshot, in the words of a report.
    pub(crate) fn restorable(&self) -> &'static [&'static str] {
        match self.prints_functions() {
            true => &["environment", "functions", "aliases", "options"],
            false => &["environment", "aliases", "options"],
        }
    }

    /// Returns what the shell cannot print about itself, in the words of a report.
    pub(crate) fn unprintable(&self) -> &'static [&'static str] {
        match self.prints_functions() {
            true => &[],
            false => &["functions"],
        }
    }
}
