//! Meanings of command names in the live shell.
//!
//! A function, an alias, another search path or a remembered place that an earlier command has set changes what the
//! next one runs. The shell itself is the only source that knows all of them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

use crate::session::Session;
use crate::session::options::CommandRequest;

/// Begins a field of the answer.
const FIELD: char = '\u{1e}';
/// Divides the parts of a field.
const PART: char = '\u{1f}';

/// Meaning of a name as a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// A command of the shell itself.
    Builtin,
    /// A program.
    File(PathBuf),
    /// An alias.
    Alias,
    /// Anything else that runs code: a function, or a program the shell was told to use for the name.
    Other,
    /// Nothing.
    Nothing,
}

/// Answer of a shell about names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellNames {
    /// Value of `PATH`.
    pub search_path: String,
    /// Definitions of all aliases, as the shell prints them.
    pub aliases: Vec<String>,
    /// Meanings of the names, in their order.
    pub meanings: Vec<Meaning>,
}

impl Session {
    /// Asks the idle shell what names mean as commands. The exit status that the next command gets stays.
    ///
    /// # Errors
    /// `unsupported_shell` in other shells than bash and zsh, `session_busy` while a job runs, `session_failed`.
    pub async fn names(&self, names: &[&str]) -> Result<ShellNames, ToolError> {
        let script = script(self.shared().dialect.name(), names)
            .ok_or_else(|| failed("the shell cannot tell what names mean"))?;
        let output = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&output);
        let sink = move |bytes: &[u8]| {
            let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
            let room = limits::MAX_NAMES_BYTES.saturating_sub(taken.len());
            taken.extend(bytes.iter().take(room));
        };
        let request = CommandRequest {
            script,
            timeout: Some(limits::NAMES_TIMEOUT),
            ..CommandRequest::default()
        };
        let status = self.shared().lock().shell.last_status;
        let ended = self.command(request, Box::new(sink)).await;
        let progress = ended?;
        {
            let mut state = self.shared().lock();
            state.shell.last_status = status;
            // The words of the script are not those of a definition.
            state.snapshots.is_needed = false;
            if progress.restarted.is_some() {
                state.shell.restart = progress.restarted;
            }
        }
        if progress.exit_code.is_none() {
            // The next command needs the shell.
            let _ = self.end_job().await;
            return Err(failed("the shell did not tell in time what names mean"));
        }
        let output = output.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&output);
        parse(&text, names.len()).ok_or_else(|| failed("the shell did not tell what names mean"))
    }
}

fn failed(message: &str) -> ToolError {
    ToolError::new(ErrorCode::SessionFailed, message)
}

/// Returns the script that prints the answer, for a shell that can give one.
fn script(dialect: &str, names: &[&str]) -> Option<String> {
    let (aliases, commands): (_, [&str; 2]) = match dialect {
        "bash" => ("alias -p", ["type -t --", "type -p --"]),
        "zsh" => ("alias -L", ["whence -w --", "whence -p --"]),
        _ => return None,
    };
    let mut script = format!(
        "\\builtin printf '\\036%s\\037' \"${{PATH-}}\"\n\\builtin {aliases}\n\\builtin printf '\\037'\n"
    );
    for name in names {
        let word = karyi_core::shell_word::quote(name.as_ref());
        script.push_str("\\builtin printf '\\036'\n");
        for command in commands {
            script.push_str(&format!(
                "\\builtin {command} {word}\n\\builtin printf '\\037'\n"
            ));
        }
    }
    script.push_str("\\builtin printf '\\036'\n");
    Some(script)
}

/// Reads an answer about so many names; `None` when it is not whole.
fn parse(text: &str, count: usize) -> Option<ShellNames> {
    let mut fields = text.split(FIELD).skip(1).map(|field| {
        let parts = field.split(PART).map(str::trim);
        parts.collect::<Vec<_>>()
    });
    let first = fields.next()?;
    let [search_path, aliases, ""] = first.as_slice() else {
        return None;
    };
    let mut meanings = Vec::new();
    for _ in 0..count {
        let field = fields.next()?;
        let [kind, file, ""] = field.as_slice() else {
            return None;
        };
        meanings.push(meaning(kind, file));
    }
    // Nothing else may have printed a field.
    (fields.next()? == [""] && fields.next().is_none()).then(|| ShellNames {
        search_path: (*search_path).to_owned(),
        aliases: aliases
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect(),
        meanings,
    })
}

/// Returns the meaning for a kind as `type -t` of bash or `whence -w` of zsh prints it.
fn meaning(kind: &str, file: &str) -> Meaning {
    let kind = kind.rsplit_once(": ").map_or(kind, |(_, kind)| kind);
    match kind {
        "builtin" | "keyword" | "reserved" => Meaning::Builtin,
        "file" | "command" if !file.is_empty() => Meaning::File(file.into()),
        "alias" => Meaning::Alias,
        "" | "none" => Meaning::Nothing,
        _ => Meaning::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_or_refused() {
        let start = "x\x1e/bin:/a b\x1falias ls='ls -F'\r\nalias x='y'\r\n\x1f";
        let check = |text: &str, expected: Option<&[Meaning]>| {
            let found = parse(&format!("{start}{text}"), 2);
            let meanings = found.as_ref().map(|names| names.meanings.as_slice());
            assert_eq!(meanings, expected, "{text:?}");
            if let Some(names) = found {
                assert_eq!(names.search_path, "/bin:/a b");
                assert_eq!(names.aliases, ["alias ls='ls -F'", "alias x='y'"]);
            }
        };
        check(
            "\x1efile\r\n\x1f/bin/git\r\n\x1f\x1ebuiltin\r\n\x1f\x1f\x1e",
            Some(&[Meaning::File("/bin/git".into()), Meaning::Builtin]),
        );
        check(
            "\x1egit: function\r\n\x1f/bin/git\r\n\x1f\x1ecd: hashed\r\n\x1f/bin/cd\x1f\x1e",
            Some(&[Meaning::Other, Meaning::Other]),
        );
        check(
            "\x1ealias\r\n\x1f\x1f\x1e\x1f\x1f\x1e",
            Some(&[Meaning::Alias, Meaning::Nothing]),
        );
        check("\x1efile\r\n\x1f/bin/git\r\n\x1f\x1e", None);
        check("\x1ea\x1fb\x1f\x1ea\x1fb\x1f\x1emore\x1e", None);
        check("\x1ea\x1f\x1ea\x1fb\x1f\x1e", None);
    }
}
