//! Rules and trusted directories that outlive a session, in the user's state directory.
//!
//! They are in a file of the user and never in the project's directory: whoever can write the project could otherwise
//! widen what runs.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use toml_edit::{Array, DocumentMut, Item, Table, Value};

use crate::approval::{Rule, RuleKind, Rules};
use crate::cli::config;
use crate::cli::state_dir::state_dir;
use crate::render::paint::safe_line;
use karyi_vault::store::private_file;

/// Name of the file.
const NAME: &str = "approvals.toml";

/// Stored rules of one project.
#[derive(Debug, Clone)]
pub(super) struct ApprovalStore {
    directory: PathBuf,
    project: PathBuf,
}

impl ApprovalStore {
    /// Returns the store of a project in the user's state directory.
    ///
    /// # Errors
    /// There is no such directory.
    pub(super) fn of(project: &Path) -> anyhow::Result<Self> {
        Ok(Self::in_directory(state_dir()?, project))
    }

    /// Returns the store of a project in a directory.
    pub(super) fn in_directory(directory: PathBuf, project: &Path) -> Self {
        let project = project.to_owned();
        Self { directory, project }
    }

    /// Returns the stored rules.
    ///
    /// # Errors
    /// The file cannot be read, or has a mistake.
    pub(super) fn rules(&self) -> anyhow::Result<Rules> {
        let document = self.document()?;
        let entry = self.entry(&document);
        let rules = |kind: RuleKind| -> anyhow::Result<Vec<Rule>> {
            let list = entry.and_then(|entry| entry.get(kind.as_str()));
            let texts = list.and_then(Item::as_array).into_iter().flatten();
            let rules = texts.map(|text| {
                let text = text.as_str().unwrap_or_default();
                Rule::parse(text).map_err(|why| anyhow::anyhow!("{}: {why}", self.shown()))
            });
            rules.collect()
        };
        Ok(Rules {
            allow: rules(RuleKind::Allow)?,
            ask: rules(RuleKind::Ask)?,
            deny: rules(RuleKind::Deny)?,
        })
    }

    /// Returns true when the user trusts the project, so that its own file may allow calls and the model gets its notes;
    /// `None` when they have not said so.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn trust(&self) -> anyhow::Result<Option<bool>> {
        let document = self.document()?;
        let trusted = self.entry(&document).and_then(|entry| entry.get("trusted"));
        Ok(trusted.and_then(Item::as_bool))
    }

    /// Records whether the user trusts the project.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(super) fn set_trusted(&self, is_trusted: bool) -> anyhow::Result<()> {
        self.change(|entry| {
            entry.insert("trusted", Item::Value(is_trusted.into()));
            true
        })
        .map(drop)
    }

    /// Adds rules.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(super) fn add(&self, kind: RuleKind, rules: &[String]) -> anyhow::Result<()> {
        self.change(|entry| {
            let list = entry
                .entry(kind.as_str())
                .or_insert(Item::Value(Value::Array(Array::new())));
            if let Some(list) = list.as_array_mut() {
                for rule in rules {
                    if !list
                        .iter()
                        .any(|known| known.as_str() == Some(rule.as_str()))
                    {
                        list.push(rule.as_str());
                    }
                }
            }
            true
        })
        .map(drop)
    }

    /// Removes a rule from all lists; returns true when it was there.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(super) fn remove(&self, rule: &str) -> anyhow::Result<bool> {
        self.change(|entry| {
            let mut is_removed = false;
            for kind in RuleKind::ALL {
                if let Some(list) = entry.get_mut(kind.as_str()).and_then(Item::as_array_mut) {
                    let before = list.len();
                    list.retain(|known| known.as_str() != Some(rule));
                    is_removed |= list.len() < before;
                }
            }
            is_removed
        })
    }

    fn file(&self) -> PathBuf {
        self.directory.join(NAME)
    }

    fn shown(&self) -> String {
        safe_line(&self.file().display().to_string()).into_owned()
    }

    /// Reads the file, which belongs to the user and nobody else can write.
    fn document(&self) -> anyhow::Result<DocumentMut> {
        let file = self.file();
        let found = match fs::symlink_metadata(&file) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(DocumentMut::new());
            }
            Err(error) => return Err(error).with_context(|| format!("reading {}", self.shown())),
        };
        let is_own = found.is_file()
            && found.uid() == nix::unistd::geteuid().as_raw()
            && found.mode() & 0o022 == 0;
        ensure!(
            is_own,
            "{}: expected a file of yours that only you can write, found another one: remove it, or correct its \
             owner and mode",
            self.shown()
        );
        let text = config::read_file(&file)?.unwrap_or_default();
        let parsed = text.parse::<DocumentMut>();
        parsed.map_err(|error| {
            anyhow::anyhow!("{}: expected TOML: {}", self.shown(), error.message())
        })
    }

    fn entry<'a>(&self, document: &'a DocumentMut) -> Option<&'a Item> {
        document.get("projects")?.get(self.project.to_str()?)
    }

    /// Changes the entry of the project, and writes the file if the change says so; returns that.
    fn change(&self, change: impl FnOnce(&mut Table) -> bool) -> anyhow::Result<bool> {
        let project = self.project.to_str();
        let project =
            project.context("expected a project whose path is UTF-8, found another encoding")?;
        // Two sessions may answer "always" at the same time.
        let lock = private_file::lock(&self.file());
        let _lock = lock.map_err(|error| anyhow::Error::msg(error.message))?;
        let mut document = self.document()?;
        let projects = document.entry("projects").or_insert_with(implicit_table);
        let projects = projects
            .as_table_mut()
            .context("expected the table `projects`")?;
        let entry = projects
            .entry(project)
            .or_insert_with(|| Item::Table(Table::new()));
        let entry = entry
            .as_table_mut()
            .context("expected a table for the project")?;
        let is_changed = change(entry);
        if is_changed {
            config::write_file(&self.file(), &document.to_string())?;
        }
        Ok(is_changed)
    }
}

fn implicit_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn rules_are_kept_for_their_project_in_a_private_file() {
        let temp = tempfile::tempdir().unwrap();
        let state = temp.path().join("state");
        let store = |project: &str| ApprovalStore::in_directory(state.clone(), Path::new(project));
        let rules = |project: &str| -> Vec<String> {
            store(project)
                .rules()
                .unwrap()
                .allow
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        assert_eq!(rules("/a"), [""; 0]);
        store("/a")
            .add(
                RuleKind::Allow,
                &["cargo test".to_owned(), "git push".to_owned()],
            )
            .unwrap();
        let again = ["cargo test".to_owned()];
        store("/a").add(RuleKind::Allow, &again).unwrap();
        store("/b").set_trusted(true).unwrap();
        assert_eq!(rules("/a"), ["cargo test", "git push"]);
        assert_eq!(rules("/b"), [""; 0]);
        store("/c").set_trusted(false).unwrap();
        let trusted = ["/a", "/b", "/c"].map(|project| store(project).trust().unwrap());
        assert_eq!(trusted, [None, Some(true), Some(false)]);
        assert!(store("/a").remove("git push").unwrap());
        assert!(!store("/a").remove("git push").unwrap());
        assert_eq!(rules("/a"), ["cargo test"]);
        let file = state.join(NAME);
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let text = "[projects.\"/a\"]\nallow = [\"cargo test\"]\n\n[projects.\"/b\"]\ntrusted = true\n\n[projects.\"/c\"]\ntrusted = false\n";
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        store("/d").add(RuleKind::Deny, &["rm".to_owned()]).unwrap();
        assert_eq!(store("/d").rules().unwrap().deny.len(), 1);
        assert!(store("/d").remove("rm").unwrap());
    }

    #[test]
    fn a_file_of_others_is_not_read() {
        let temp = tempfile::tempdir().unwrap();
        let store = ApprovalStore::in_directory(temp.path().to_owned(), Path::new("/a"));
        let file = temp.path().join(NAME);
        fs::write(&file, "[projects.\"/a\"]\nallow = [\"rm\"]\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        let error = store.rules().unwrap_err().to_string();
        assert!(error.contains("only you can write"), "{error}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(store.rules().unwrap().allow.len(), 1);
        fs::write(&file, "[").unwrap();
        assert!(store.rules().is_err());
        fs::write(&file, "[projects.\"/a\"]\nallow = [\"a; b\"]\n").unwrap();
        assert!(store.rules().is_err());
    }
}
