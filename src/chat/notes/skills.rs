//! Skills: texts for a kind of task that the model reads when one fits. Only names and descriptions are sent.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::chat::notes::front_matter::FrontMatter;
use crate::chat::notes::project_file;
use karyi_core::limits;

/// Directories of skills, in a project. The first skill of a name counts.
const DIRECTORIES: [&str; 2] = [".agents/skills", ".claude/skills"];

/// Skill of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Name.
    pub name: String,
    /// Description: what it is for.
    pub description: String,
    /// File with its text, relative to the project.
    pub path: PathBuf,
}

/// Skills that were found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Skills {
    /// The skills, by directory and name.
    pub skills: Vec<Skill>,
    /// Sentences about those that were left out.
    pub problems: Vec<String>,
}

/// Finds the skills of a project. One that lies outside of it is left out.
#[must_use]
pub fn find(project: &Path) -> Skills {
    let mut found = Skills::default();
    let Ok(root) = project.canonicalize() else {
        return found;
    };
    let mut names = BTreeSet::new();
    for directory in DIRECTORIES.map(|name| project.join(name)) {
        for folder in project_file::entries(&directory) {
            let path = folder.join("SKILL.md");
            let most = limits::MAX_NOTES_BYTES as u64;
            let text = match project_file::read(&path, Some(&root), most) {
                Ok(Some(file)) => file.text,
                Ok(None) => continue,
                Err(problem) => {
                    found.problems.push(problem);
                    continue;
                }
            };
            match skill(project, &path, &text) {
                Ok(skill) if found.skills.len() < limits::MAX_SKILLS => {
                    if names.insert(skill.name.clone()) {
                        found.skills.push(skill);
                    }
                }
                Ok(skill) => found.problems.push(format!(
                    "{}: left out, since a project has at most {} skills",
                    skill.path.display(),
                    limits::MAX_SKILLS
                )),
                Err(problem) => found.problems.push(problem),
            }
        }
    }
    found
}

fn skill(project: &Path, path: &Path, text: &str) -> Result<Skill, String> {
    let matter = FrontMatter::split(text);
    let folder = path.parent().and_then(Path::file_name);
    let folder = folder.map(|name| name.to_string_lossy().into_owned());
    let name = matter.text("name").or(folder).unwrap_or_default();
    let Some(mut description) = matter.text("description") else {
        return Err(format!("{}: it has no description", path.display()));
    };
    let end = description.floor_char_boundary(limits::MAX_SKILL_BYTES);
    description.truncate(end);
    let path = path.strip_prefix(project).unwrap_or(path).to_owned();
    Ok(Skill {
        name,
        description,
        path,
    })
}

/// Returns the text about skills for the system prompt; empty without skills.
#[must_use]
pub fn text(skills: &[Skill]) -> String {
    if skills.is_empty() {
        return String::new();
    }
    let mut text = String::from("Skills: when one fits the task, `read` its file first.\n");
    for skill in skills {
        let (name, path) = (&skill.name, skill.path.display());
        text.push_str(&format!("- {name} ({path}): {}\n", skill.description));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn skills_of_the_project_are_listed_and_others_refused() {
        let root = tempfile::TempDir::new().unwrap();
        let project = root.path().join("p");
        let add = |path: PathBuf, text: &str| {
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("SKILL.md"), text).unwrap();
        };
        let (agents, claude) = (project.join(DIRECTORIES[0]), project.join(DIRECTORIES[1]));
        add(
            agents.join("b"),
            "---\nname: pdf\ndescription: >\n  Reads PDF\n  files\n---\nHow.\n",
        );
        add(
            claude.join("a"),
            "---\nname: pdf\ndescription: The second\n---\n",
        );
        add(
            claude.join("c"),
            "---\ndescription: Named by its folder\n---\n",
        );
        add(claude.join("d"), "no front matter");
        add(
            root.path().join("out"),
            "---\nname: out\ndescription: d\n---\n",
        );
        symlink(root.path().join("out"), claude.join("e")).unwrap();
        fs::write(claude.join("README.md"), "").unwrap();
        let found = find(&project);
        let expected = "Skills: when one fits the task, `read` its file first.\n\
            - pdf (.agents/skills/b/SKILL.md): Reads PDF files\n\
            - c (.claude/skills/c/SKILL.md): Named by its folder\n";
        assert_eq!(text(&found.skills), expected);
        let [first, second] = found.problems.as_slice() else {
            panic!("{:?}", found.problems);
        };
        assert!(first.ends_with("it has no description"), "{first}");
        assert!(second.contains("leads out of the project"), "{second}");
        assert_eq!(text(&[]), "");
        assert_eq!(find(&root.path().join("none")), Skills::default());
    }
}
