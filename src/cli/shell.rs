//! Chooses the shell of a session: the flag, else `KARYI_SHELL`, else the configuration, else by what it is for.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use crate::cli::config::Settings;
use crate::cli::state_dir::variable;
use karyi_core::limits;
use karyi_pty::usable_shell;

/// Use of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionUse {
    /// A script, which means the same everywhere: bash, without start-up files.
    Script,
    /// A conversation with a model: the user's shell if it is bash or zsh.
    Conversation,
}

/// The shell of a session.
#[derive(Debug, Default)]
pub(super) struct ShellNames {
    /// The one that was chosen, by name or path.
    pub(super) requested: Option<PathBuf>,
    /// The one to use where none was chosen; bash if `None`.
    pub(super) preferred: Option<PathBuf>,
    /// Place that chose it: a flag, a variable or a file.
    pub(super) place: String,
}

impl ShellNames {
    /// Finds the shell for a use.
    ///
    /// # Errors
    /// The chosen one cannot be used.
    pub(super) fn find(
        flag: Option<&Path>,
        session_use: SessionUse,
        search_path: &OsStr,
    ) -> anyhow::Result<Self> {
        let named = variable("KARYI_SHELL").map(PathBuf::from);
        let (requested, mut place) = match (flag, named) {
            (Some(path), _) => (Some(path.to_owned()), "--shell".to_owned()),
            (None, Some(path)) => (Some(path), "KARYI_SHELL".to_owned()),
            (None, None) => {
                let settings = Settings::load()?;
                match settings.text("shell") {
                    Some(shell) => (Some(shell.into()), settings.file.display().to_string()),
                    None => (None, "default".to_owned()),
                }
            }
        };
        if let Some(shell) = &requested {
            let usable = usable_shell(Some(shell), None, search_path);
            usable.map_err(|error| anyhow::anyhow!("{place}: {}", error.message))?;
        }
        let own = variable("SHELL").map(PathBuf::from);
        let preferred = own.filter(|path| {
            let name = path.file_name().unwrap_or_default();
            session_use == SessionUse::Conversation && (name == "bash" || name == "zsh")
        });
        if requested.is_none() && preferred.is_some() {
            "$SHELL".clone_into(&mut place);
        }
        Ok(Self {
            requested,
            preferred,
            place,
        })
    }

    /// Returns a sentence about the shell for a model: its name, its version, and how it differs from bash.
    pub(super) fn description(&self, search_path: &OsStr) -> String {
        let (requested, preferred) = (self.requested.as_deref(), self.preferred.as_deref());
        let Ok(path) = usable_shell(requested, preferred, search_path) else {
            return String::new();
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let version = version(&path).unwrap_or_default();
        let differences = match name.as_ref() {
            "zsh" => ": `read \"x?ask\"`, not `read -p`; $x is not split; arrays from 1",
            _ => "",
        };
        let named = format!("{name} {version}");
        format!("Commands run in {}{differences}.", named.trim_end())
    }
}

/// Returns the version of a shell, if it tells it in time.
fn version(path: &Path) -> Option<String> {
    let mut command = Command::new(path);
    command.arg("--version").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut output = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = [0; 256];
        let count = output.read(&mut text).unwrap_or_default();
        // The receiver may have given up.
        let _ = sender.send(text.get(..count).unwrap_or_default().to_vec());
    });
    let text = receiver.recv_timeout(limits::VERSION_TIMEOUT).ok();
    let _ = child.kill();
    let _ = child.wait();
    let text = String::from_utf8(text?).ok()?;
    let mut words = text.lines().next()?.split_whitespace();
    let word = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.');
    Some(word.get(..end.unwrap_or(word.len()))?.to_owned())
}

/// Returns the search path of this program.
pub(super) fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}
