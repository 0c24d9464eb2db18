//! Commands of a project: prompts in Markdown files, with places for arguments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::chat::notes::front_matter::FrontMatter;
use crate::chat::notes::project_file;
use karyi_core::limits;

/// Directories of commands, in a project. The first command of a name counts.
const DIRECTORIES: [&str; 2] = [".karyi/commands", ".claude/commands"];

/// Command of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomCommand {
    /// Name, without the slash.
    pub name: String,
    /// Description; may be empty.
    pub description: String,
    /// File.
    pub path: PathBuf,
    /// Prompt, before its arguments are filled in.
    pub prompt: String,
}

/// Commands that were found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CustomCommands {
    /// The commands, by name.
    pub commands: Vec<CustomCommand>,
    /// Sentences about those that were left out.
    pub problems: Vec<String>,
}

/// Finds the commands of a project. One that lies outside of it is left out.
#[must_use]
pub fn find(project: &Path) -> CustomCommands {
    let Ok(root) = project.canonicalize() else {
        return CustomCommands::default();
    };
    let mut found = BTreeMap::new();
    let mut problems = Vec::new();
    for directory in DIRECTORIES.map(|name| project.join(name)) {
        for path in project_file::entries(&directory) {
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(name) = name.and_then(|name| name.strip_suffix(".md")) else {
                continue;
            };
            let most = limits::MAX_NOTES_BYTES as u64;
            match project_file::read(&path, Some(&root), most) {
                Ok(Some(file)) if file.left_out > 0 => {
                    let path = path.display();
                    problems.push(format!("{path}: it is larger than {most} bytes"));
                }
                Ok(Some(file)) => {
                    let command = command(name, &path, &file.text);
                    found.entry(name.to_owned()).or_insert(command);
                }
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
    }
    CustomCommands {
        commands: found.into_values().collect(),
        problems,
    }
}

fn command(name: &str, path: &Path, text: &str) -> CustomCommand {
    let matter = FrontMatter::split(text);
    CustomCommand {
        name: name.to_owned(),
        description: matter.text("description").unwrap_or_default(),
        path: path.to_owned(),
        prompt: matter.body.trim().to_owned(),
    }
}

impl CustomCommand {
    /// Returns the prompt with arguments in it: `$ARGUMENTS` is all of them as they were typed, `$1` to `$9` are single
    /// ones, which may be quoted. Arguments that no place takes follow the prompt.
    #[must_use]
    pub fn expand(&self, arguments: &str) -> String {
        let arguments = arguments.trim();
        let words = words(arguments);
        let (mut text, mut rest, mut is_used) = (String::new(), self.prompt.as_str(), false);
        while let Some(at) = rest.find('$') {
            let (before, place) = rest.split_at(at);
            text.push_str(before);
            let found = filled(place, arguments, &words);
            let (value, length) = found.unwrap_or(("$", 1));
            is_used |= length > 1;
            text.push_str(value);
            rest = place.get(length..).unwrap_or_default();
        }
        text.push_str(rest);
        if !is_used && !arguments.is_empty() {
            text.push_str(&format!("\n\n{arguments}"));
        }
        text
    }
}

/// Returns the value of the place that a text starts with, and the length of that.
fn filled<'a>(text: &str, arguments: &'a str, words: &'a [String]) -> Option<(&'a str, usize)> {
    const WHOLE: &str = "$ARGUMENTS";
    if text.starts_with(WHOLE) {
        return Some((arguments, WHOLE.len()));
    }
    let mut digits = text.get(1..)?.chars();
    let number = digits.next()?.to_digit(10).filter(|number| *number > 0)?;
    // `$10` is a price or the like, and no argument.
    if digits.next().is_some_and(|next| next.is_ascii_digit()) {
        return None;
    }
    let word = words.get(usize::try_from(number).ok()? - 1);
    Some((word.map_or("", String::as_str), 2))
}

/// Splits a text into words; quotes keep white space together.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for sign in text.chars() {
        match (quote, sign) {
            (Some(open), sign) if open == sign => quote = None,
            (None, '"' | '\'') => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            (None, sign) if sign.is_whitespace() => words.extend(word.take()),
            (_, sign) => word.get_or_insert_default().push(sign),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn check(prompt: &str, arguments: &str, expected: &str) {
        let expanded = command("c", Path::new("c.md"), prompt).expand(arguments);
        assert_eq!(expanded, expected, "{prompt} with {arguments}");
    }

    #[test]
    fn arguments_fill_their_places_once() {
        check("Fix $ARGUMENTS.", " a  b ", "Fix a  b.");
        check("$1, then $2$3", "'a b' \"c\"", "a b, then c");
        check("$1", "$2 x", "$2");
        check("$ARGUMENTS", "$1 $ARGUMENTS", "$1 $ARGUMENTS");
        check(
            "It costs $10 or $0 or $",
            "x",
            "It costs $10 or $0 or $\n\nx",
        );
        check("---\ndescription: d\n---\nGo.\n", "", "Go.");
        check("$é $1", "日本", "$é 日本");
        check("$1", "'open quote", "open quote");
        check("", "", "");
    }

    #[test]
    fn the_commands_of_a_project_are_found_by_name() {
        let root = tempfile::TempDir::new().unwrap();
        let project = root.path().join("p");
        let [karyi, claude] = DIRECTORIES.map(|name| project.join(name));
        fs::create_dir_all(&karyi).unwrap();
        fs::create_dir_all(claude.join("folder.md")).unwrap();
        fs::write(karyi.join("fix.md"), "---\ndescription: Mend it\n---\nFix.").unwrap();
        fs::write(claude.join("fix.md"), "The second.").unwrap();
        fs::write(claude.join("a.md"), "A.").unwrap();
        fs::write(claude.join("b.txt"), "B.").unwrap();
        fs::write(
            claude.join("large.md"),
            "x".repeat(limits::MAX_NOTES_BYTES + 1),
        )
        .unwrap();
        fs::write(root.path().join("out"), "Out.").unwrap();
        symlink(root.path().join("out"), claude.join("out.md")).unwrap();
        let found = find(&project);
        let shown = |command: &CustomCommand| {
            let CustomCommand {
                name,
                description,
                prompt,
                ..
            } = command;
            format!("{name}|{description}|{prompt}")
        };
        let shown: Vec<String> = found.commands.iter().map(shown).collect();
        assert_eq!(shown, ["a||A.", "fix|Mend it|Fix."]);
        assert_eq!(found.problems.len(), 3, "{:?}", found.problems);
    }
}
