//! State of the approvals of a session: mode, rules, and what is known about its shells and jobs.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::approval::{Approver, AskedPart, Judge, Mode, Place, Rule, RuleStore, Rules, Verdict};
use crate::tool::sessions::Sessions;
use crate::tools::Call;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_files::root::canonical_for_plan;
use karyi_pty::ShellNames;

/// Options of the approvals of a session.
pub struct ApprovalOptions {
    /// How much runs without a question.
    pub mode: Mode,
    /// Rules of the user and of the project.
    pub rules: Rules,
    /// Directory of the project.
    pub project: PathBuf,
    /// Home directory of the user, if it is known.
    pub home: Option<PathBuf>,
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
            home: None,
            approver: None,
            store: None,
        }
    }
}

/// Shell and directory that a call is judged for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellPlace {
    /// Directory of the session.
    pub cwd: PathBuf,
    /// True when the shell is known to be bash.
    pub is_bash: bool,
}

impl From<&Sessions> for ShellPlace {
    fn from(sessions: &Sessions) -> Self {
        Self {
            cwd: sessions.cwd(),
            is_bash: sessions.has_bash(),
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
    home: Option<PathBuf>,
    store: Option<Arc<dyn RuleStore>>,
    /// Names in the first shell before its first command; `None` when they are not known.
    start: Arc<OnceLock<Option<ShellNames>>>,
}

struct State {
    mode: Mode,
    /// Rules as they were read last.
    rules: Arc<Rules>,
    /// Rules that allow and could not be stored.
    unstored: Vec<Rule>,
    /// Parts about changed names that a person has accepted.
    accepted: BTreeSet<(String, String)>,
    /// Jobs that may take commands from the terminal, by id.
    takes_commands: HashMap<String, bool>,
}

impl State {
    fn new(mode: Mode, rules: Rules) -> Mutex<Self> {
        Mutex::new(Self {
            mode,
            rules: Arc::new(rules),
            unstored: Vec::new(),
            accepted: BTreeSet::new(),
            takes_commands: HashMap::new(),
        })
    }

    /// Takes rules that were read again. When they cannot be read, what is forbidden stays so, and no rule allows.
    fn take_rules(&mut self, read: Option<Result<Rules, ToolError>>) {
        match read {
            None => {}
            Some(Ok(mut rules)) => {
                rules.allow.extend_from_slice(&self.unstored);
                self.rules = Arc::new(rules);
            }
            Some(Err(_)) => Arc::make_mut(&mut self.rules).allow.clear(),
        }
    }
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
        Self {
            shared: Some(Arc::new(Shared {
                state: State::new(options.mode, options.rules),
                project: canonical_for_plan(&options.project),
                home: options.home,
                store: options.store,
                start: Arc::default(),
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

    /// Returns approvals for what the user types: every call runs. What is known about the shell's start is shared.
    #[must_use]
    pub fn of_person(&self) -> Self {
        let shared = self.shared.as_ref().map(|shared| Shared {
            state: State::new(Mode::Full, Rules::default()),
            project: shared.project.clone(),
            home: None,
            store: None,
            start: Arc::clone(&shared.start),
        });
        Self {
            shared: shared.map(Arc::new),
            approver: None,
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
    pub fn judge(&self, call: &Call, place: impl Into<ShellPlace>, types_code: bool) -> Verdict {
        self.with_judge(place.into(), |judge| judge.call(call, types_code))
            .unwrap_or_else(|| Verdict::Allow(Vec::new()))
    }

    /// Returns true when a call only reads.
    #[must_use]
    pub fn only_reads(&self, call: &Call, place: impl Into<ShellPlace>) -> bool {
        self.with_judge(place.into(), |judge| judge.only_reads(call))
            .unwrap_or(true)
    }

    fn with_judge<T>(&self, of: ShellPlace, work: impl FnOnce(Judge<'_>) -> T) -> Option<T> {
        // Judging looks at files, which other calls do not wait for.
        let read = self.store().and_then(|store| store.rules());
        let (mode, rules) = {
            let mut state = self.state()?;
            state.take_rules(read);
            (state.mode, Arc::clone(&state.rules))
        };
        let place = Place {
            cwd: of.cwd,
            is_bash: of.is_bash,
            project: self.project().to_owned(),
            home: self.shared.as_ref().and_then(|shared| shared.home.clone()),
            real: canonical_for_plan,
        };
        Some(work(Judge {
            mode,
            rules: &rules,
            place: &place,
        }))
    }

    /// Adds rules that allow, and stores them for the project.
    ///
    /// # Errors
    /// They hold for this session only.
    pub async fn allow(&self, rules: &[String]) -> Result<(), ToolError> {
        let parsed: Vec<Rule> = rules
            .iter()
            .filter_map(|rule| Rule::parse(rule).ok())
            .collect();
        let texts: Vec<String> = parsed.iter().map(ToString::to_string).collect();
        if let Some(mut state) = self.state() {
            Arc::make_mut(&mut state.rules).allow.extend(parsed.clone());
        }
        let Some(store) = self.store().cloned() else {
            return Ok(());
        };
        // It may wait for another session.
        let stored = tokio::task::spawn_blocking(move || store.allow(&texts)).await;
        let stored =
            stored.unwrap_or_else(|error| Err(ToolError::new(ErrorCode::Io, error.to_string())));
        if let (Err(_), Some(mut state)) = (&stored, self.state()) {
            state.unstored.extend(parsed);
        }
        stored
    }

    fn store(&self) -> Option<&Arc<dyn RuleStore>> {
        self.shared.as_ref()?.store.as_ref()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Returns a call that writes a file.
    fn edit(path: &Path) -> Call {
        let files = serde_json::json!([{"src": path, "content": "x"}]);
        let registry = crate::tools::registry();
        let entry = registry.get("edit").unwrap();
        (entry.from_json)(serde_json::json!({"files": files})).unwrap()
    }

    #[test]
    fn links_are_followed_also_to_what_does_not_exist() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let project = root.join("project");
        std::fs::create_dir_all(project.join("src")).unwrap();
        symlink("../outside", project.join("new")).unwrap();
        symlink("new", project.join("newer")).unwrap();
        symlink(&root, project.join("up")).unwrap();
        let approvals = Approvals::new(ApprovalOptions::new(Mode::Edits, project.clone()));
        let check = |path: &str, is_inside: bool| {
            let place = ShellPlace {
                cwd: project.clone(),
                is_bash: false,
            };
            let verdict = approvals.judge(&edit(&root.join(path)), place, false);
            let is_allowed = matches!(verdict, Verdict::Allow(_));
            assert_eq!(is_allowed, is_inside, "{path}");
        };
        check("project/src/a", true);
        check("project/a/b", true);
        check("project/up/a", false);
        check("project/up/project/a", true);
        check("project/src/../../a", false);
        check("project/new", false);
        check("project/newer", false);
        check("project/newer/a", false);
    }
}
