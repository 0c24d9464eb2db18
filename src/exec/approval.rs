//! State of the approvals of a session: mode, rules, and what is known about its shells and jobs.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::approval::{Approver, AskedPart, Judge, Mode, Place, Rule, RuleStore, Rules, Verdict};
use crate::tools::Call;
use karyi_core::error::ToolError;
use karyi_pty::ShellNames;

/// Options of the approvals of a session.
pub struct ApprovalOptions {
    /// How much runs without a question.
    pub mode: Mode,
    /// Rules of the user and of the project.
    pub rules: Rules,
    /// Directory of the project.
    pub project: PathBuf,
    /// Asks a person; without it, what would be asked does not run.
    pub approver: Option<Arc<dyn Approver>>,
    /// Keeps the rules of the answer "always".
    pub store: Option<Arc<dyn RuleStore>>,
}

impl ApprovalOptions {
    /// Returns options without rules and without a person.
    #[must_use]
    pub fn new(mode: Mode, project: PathBuf) -> Self {
        Self {
            mode,
            rules: Rules::default(),
            project,
            approver: None,
            store: None,
        }
    }
}

/// Approvals of a session. Clones share its state. By default every call runs.
#[derive(Clone, Default)]
pub struct Approvals {
    shared: Option<Arc<Shared>>,
    approver: Option<Arc<dyn Approver>>,
}

struct Shared {
    state: Mutex<State>,
    project: PathBuf,
    store: Option<Arc<dyn RuleStore>>,
    /// Names in the first shell before its first command; `None` when they are not known.
    start: OnceLock<Option<ShellNames>>,
}

struct State {
    mode: Mode,
    rules: Rules,
    /// Parts about changed names that a person has accepted.
    accepted: BTreeSet<(String, String)>,
    /// Jobs that may take commands from the terminal, by id.
    takes_commands: HashMap<String, bool>,
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Approvals").field(&self.mode()).finish()
    }
}

impl Approvals {
    /// Creates the approvals of a session.
    #[must_use]
    pub fn new(options: ApprovalOptions) -> Self {
        let state = State {
            mode: options.mode,
            rules: options.rules,
            accepted: BTreeSet::new(),
            takes_commands: HashMap::new(),
        };
        Self {
            shared: Some(Arc::new(Shared {
                state: Mutex::new(state),
                project: real(&options.project),
                store: options.store,
                start: OnceLock::new(),
            })),
            approver: options.approver,
        }
    }

    /// Returns the same approvals with another person to ask.
    #[must_use]
    pub fn with_approver(&self, approver: Arc<dyn Approver>) -> Self {
        Self {
            shared: self.shared.clone(),
            approver: Some(approver),
        }
    }

    /// Returns true when calls are judged.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns the mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.state().map_or(Mode::Full, |state| state.mode)
    }

    /// Changes the mode for the calls that are judged from now on.
    pub fn set_mode(&self, mode: Mode) {
        if let Some(mut state) = self.state() {
            state.mode = mode;
        }
    }

    /// Returns the person to ask, if one may answer.
    #[must_use]
    pub fn approver(&self) -> Option<&Arc<dyn Approver>> {
        let approver = self.approver.as_ref();
        approver.filter(|approver| approver.is_available())
    }

    /// Returns the project's directory.
    #[must_use]
    pub fn project(&self) -> &Path {
        self.shared
            .as_ref()
            .map_or(Path::new(""), |shared| shared.project.as_path())
    }

    /// Judges a call in the session's directory. `types_code` says that typed text may go to a program that takes
    /// commands.
    #[must_use]
    pub fn judge(&self, call: &Call, cwd: PathBuf, types_code: bool) -> Verdict {
        self.with_judge(cwd, |judge| judge.call(call, types_code))
            .unwrap_or_else(|| Verdict::Allow(Vec::new()))
    }

    /// Returns true when a call only reads.
    #[must_use]
    pub fn only_reads(&self, call: &Call, cwd: PathBuf) -> bool {
        self.with_judge(cwd, |judge| judge.only_reads(call))
            .unwrap_or(true)
    }

    fn with_judge<T>(&self, cwd: PathBuf, work: impl FnOnce(Judge<'_>) -> T) -> Option<T> {
        let state = self.state()?;
        let project = self.project().to_owned();
        let place = Place { cwd, project, real };
        Some(work(Judge {
            mode: state.mode,
            rules: &state.rules,
            place: &place,
        }))
    }

    /// Adds rules that allow, and stores them for the project.
    ///
    /// # Errors
    /// They hold for this session only.
    pub fn allow(&self, rules: &[String]) -> Result<(), ToolError> {
        let parsed: Vec<Rule> = rules
            .iter()
            .filter_map(|rule| Rule::parse(rule).ok())
            .collect();
        let texts: Vec<String> = parsed.iter().map(ToString::to_string).collect();
        if let Some(mut state) = self.state() {
            state.rules.allow.extend(parsed);
        }
        let store = self
            .shared
            .as_ref()
            .and_then(|shared| shared.store.as_ref());
        store.map_or(Ok(()), |store| store.allow(&texts))
    }

    /// Returns true when the shell was asked for its names before the first command.
    pub(super) fn has_start(&self) -> bool {
        let shared = self.shared.as_ref();
        shared.is_some_and(|shared| shared.start.get().is_some())
    }

    /// Returns the names before the first command, when they are known.
    pub(super) fn start(&self) -> Option<&ShellNames> {
        self.shared.as_ref()?.start.get()?.as_ref()
    }

    /// Records the names before the first command.
    pub(super) fn set_start(&self, names: Option<ShellNames>) {
        if let Some(shared) = &self.shared {
            // Another call may have been first.
            let _ = shared.start.set(names);
        }
    }

    /// Records parts that a person has accepted.
    pub(super) fn accept(&self, parts: &[AskedPart]) {
        if let Some(mut state) = self.state() {
            let parts = parts
                .iter()
                .map(|part| (part.what.clone(), part.reason.clone()));
            state.accepted.extend(parts);
        }
    }

    /// Returns true when a person has accepted a part.
    pub(super) fn is_accepted(&self, part: &AskedPart) -> bool {
        let key = (part.what.clone(), part.reason.clone());
        self.state()
            .is_some_and(|state| state.accepted.contains(&key))
    }

    /// Records whether a job may take commands.
    pub(super) fn note_job(&self, job: &str, takes_commands: bool) {
        if let Some(mut state) = self.state() {
            state.takes_commands.insert(job.to_owned(), takes_commands);
        }
    }

    /// Returns true when a job may take commands, or is not known.
    pub(super) fn takes_commands(&self, job: &str) -> bool {
        let state = self.state();
        state.is_none_or(|state| state.takes_commands.get(job).copied().unwrap_or(true))
    }

    fn state(&self) -> Option<MutexGuard<'_, State>> {
        let shared = self.shared.as_ref()?;
        Some(shared.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns a path without links in it. What does not exist yet is kept as it is written.
fn real(path: &Path) -> PathBuf {
    for place in path.ancestors() {
        let found = place.canonicalize().ok();
        // A link may lead to a file that does not exist yet.
        let target = || {
            place
                .read_link()
                .ok()
                .map(|to| place.parent().unwrap_or(place).join(to))
        };
        if let Some(found) = found.or_else(target) {
            let rest = path.strip_prefix(place).unwrap_or(Path::new(""));
            return match rest.as_os_str().is_empty() {
                true => found,
                false => found.join(rest),
            };
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_also_to_what_does_not_exist() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("project/src")).unwrap();
        symlink("../outside", root.join("project/new")).unwrap();
        symlink(&root, root.join("project/up")).unwrap();
        let check = |path: &str, expected: &str| {
            assert_eq!(real(&root.join(path)), root.join(expected), "{path}");
        };
        check("project/src/a", "project/src/a");
        check("project/a/b", "project/a/b");
        check("project/up/a", "a");
        check("project/src/../../a", "a");
        check("project/new", "project/../outside");
    }
}
