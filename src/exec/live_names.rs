//! Compares what names mean in the live shell with what they meant at its start.
//!
//! The shell is persistent: an earlier command may have given a name another meaning. The names of a command that runs
//! without a question are looked up right before it runs.

use std::path::{Path, PathBuf};

use crate::approval::AskedPart;
use crate::exec::approval::Approvals;
use karyi_pty::{Meaning, Session, ShellNames};

/// Records what the shell has before its first command. Called before every command: the first call counts.
pub(crate) async fn note_start(approvals: &Approvals, session: &Session) {
    if !approvals.is_on() || approvals.has_start() {
        return;
    }
    let is_new = session.newest_job() == 0;
    let names = match is_new {
        true => session.names(&[]).await.ok(),
        false => None,
    };
    approvals.set_start(names);
}

/// Returns the parts that a person must be asked about because a name has another meaning than at the start.
pub(super) async fn changed_names(
    approvals: &Approvals,
    session: &Session,
    names: &[String],
) -> Vec<AskedPart> {
    if names.is_empty() {
        return Vec::new();
    }
    note_start(approvals, session).await;
    let asked: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = match session.names(&asked).await {
        Ok(found) => found,
        Err(error) => return vec![AskedPart::new(asked.join(", "), error.message)],
    };
    let mut parts = changes(approvals.start(), &found, &asked, approvals.project());
    parts.retain(|part| !approvals.is_accepted(part));
    parts
}

/// Words of the shell's grammar, which an alias can replace.
const RESERVED: &str = "if then else elif fi for in while until do done case esac select function time coproc { } ! [[";

/// Returns the changes since the start.
fn changes(
    start: Option<&ShellNames>,
    found: &ShellNames,
    names: &[&str],
    project: &Path,
) -> Vec<AskedPart> {
    let known = start.map_or(&[][..], |start| start.aliases.as_slice());
    let is_everywhere = |line: &&String| {
        let word = line.split(' ').nth(1).unwrap_or_default();
        let name = word
            .split('=')
            .next()
            .unwrap_or_default()
            .trim_matches('\'');
        matches!(word, "-g" | "-s") || RESERVED.split(' ').any(|one| one == name)
    };
    let new = found.aliases.iter().filter(is_everywhere);
    let new = new.filter(|line| !known.contains(line));
    let aliases = new.map(|line| AskedPart::new(line, "this alias may change any command"));
    let names = names.iter().zip(&found.meanings);
    let names = names.filter_map(|(name, meaning)| {
        let reason = change(start, found, (*name, meaning), project)?;
        Some(AskedPart::new(*name, reason))
    });
    aliases.chain(names).collect()
}

/// Returns the reason why a name has to be asked about.
fn change(
    start: Option<&ShellNames>,
    found: &ShellNames,
    (name, meaning): (&str, &Meaning),
    project: &Path,
) -> Option<String> {
    let usual = start.and_then(|start| program_in(&start.search_path, name));
    match meaning {
        Meaning::Builtin => None,
        Meaning::Nothing if usual.is_none() => None,
        // A path is the same program in every search path.
        Meaning::File(_) if name.contains('/') => None,
        Meaning::Nothing => Some("it is not found any more".to_owned()),
        Meaning::File(_) if start.is_none() => {
            Some("the shell ran before its names were known".to_owned())
        }
        Meaning::File(file) if usual.as_ref() != Some(file) => {
            Some(format!("it is now the program {}", file.display()))
        }
        Meaning::File(file) if is_within(file, project) => Some(format!(
            "it is the program {} of the project",
            file.display()
        )),
        Meaning::File(_) => None,
        Meaning::Alias => {
            let begin = format!("alias {name}=");
            let mut all = found.aliases.iter();
            let line = all.find(|line| line.starts_with(&begin));
            let value = line.map_or("", |line| line.get(begin.len()..).unwrap_or_default());
            let first = value
                .trim_start_matches(['\'', '"'])
                .split([' ', '\'', '"'])
                .next();
            let is_usual = start
                .zip(line)
                .is_some_and(|(start, line)| start.aliases.contains(line));
            // The user's own `alias ls='ls --color=auto'`.
            (!is_usual || first != Some(name)).then(|| "it is an alias in the shell".to_owned())
        }
        Meaning::Other => Some("it is a function or a remembered place in the shell".to_owned()),
    }
}

/// Returns the program that a search path has for a name.
fn program_in(search_path: &str, name: &str) -> Option<PathBuf> {
    let directories = search_path
        .split(':')
        .filter(|directory| directory.starts_with('/'));
    let mut files = directories.map(|directory| Path::new(directory).join(name));
    files.find(|file| {
        file.is_file() && nix::unistd::access(file, nix::unistd::AccessFlags::X_OK).is_ok()
    })
}

fn is_within(file: &Path, project: &Path) -> bool {
    file.canonicalize()
        .is_ok_and(|file| file.starts_with(project))
        || file.starts_with(project)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_asked_about_when_its_meaning_has_changed() {
        let aliases = vec![
            "alias ls='ls --color=auto'".to_owned(),
            "alias x='y z'".to_owned(),
        ];
        let start = ShellNames {
            search_path: "/nowhere:/bin".to_owned(),
            aliases: aliases.clone(),
            meanings: Vec::new(),
        };
        let check = |name: &str, meaning: Meaning, own: &[&str], expected: &[&str]| {
            let found = ShellNames {
                aliases: aliases
                    .iter()
                    .cloned()
                    .chain(own.iter().map(|&s| s.to_owned()))
                    .collect(),
                meanings: vec![meaning],
                ..start.clone()
            };
            let parts = changes(Some(&start), &found, &[name], Path::new("/project"));
            let reasons: Vec<&str> = parts.iter().map(|part| part.reason.as_str()).collect();
            assert_eq!(reasons, expected, "{name}");
        };
        let function = "it is a function or a remembered place in the shell";
        let alias = "it is an alias in the shell";
        check("sh", Meaning::File("/bin/sh".into()), &[], &[]);
        check(
            "sh",
            Meaning::File("/tmp/sh".into()),
            &[],
            &["it is now the program /tmp/sh"],
        );
        check("sh", Meaning::Nothing, &[], &["it is not found any more"]);
        check("no-such", Meaning::Nothing, &[], &[]);
        check("cd", Meaning::Builtin, &[], &[]);
        check("git", Meaning::Other, &[], &[function]);
        check("/tmp/sh", Meaning::File("/tmp/sh".into()), &[], &[]);
        check("/bin/sh", Meaning::Other, &[], &[function]);
        check("ls", Meaning::Alias, &[], &[]);
        check("x", Meaning::Alias, &[], &[alias]);
        check("git", Meaning::Alias, &["alias git='git'"], &[alias]);
        for line in ["alias -g x='y'", "alias if='y; if'", "alias '[['='y'"] {
            let reason = "this alias may change any command";
            check("cd", Meaning::Builtin, &[line], &[reason]);
        }
        let unknown = change(
            None,
            &start,
            ("sh", &Meaning::File("/bin/sh".into())),
            Path::new("/p"),
        );
        assert_eq!(
            unknown.unwrap(),
            "the shell ran before its names were known"
        );
    }
}
