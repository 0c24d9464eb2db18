//! The project of a directory, and the rules that hold in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::approval::{Approver, Mode, Rule, RuleKind, RuleStore, Rules};
use crate::chat::notes::note_files::project_root;
use crate::cli::config::Settings;
use crate::cli::policy::store::ApprovalStore;
use crate::cli::say;
use crate::exec::approval::{ApprovalOptions, Approvals};
use karyi_core::error::{ErrorCode, ToolError};

/// Settings of a project, in its directory.
pub(super) const PROJECT_SETTINGS: &str = ".karyi/config.toml";

/// Source of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The user's settings.
    Settings,
    /// The answer "always".
    Stored,
    /// The file of a project.
    Project,
}

impl Source {
    /// Returns its name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Settings => "config.toml",
            Self::Stored => "stored for this project",
            Self::Project => ".karyi/config.toml of the project",
        }
    }
}

/// Rules that hold in a project.
pub(super) struct ProjectPolicy {
    /// Its directory.
    pub(super) project: PathBuf,
    /// Mode of the settings; the file of the project can only make it stricter, unless it is trusted.
    pub(super) mode: Mode,
    /// Answer of the user to the question of trust, if they have given one.
    pub(super) trust: Option<bool>,
    /// Sentence about settings of the project that do not count before it is trusted.
    pub(super) ignored: Option<String>,
    /// Rules, with their sources.
    pub(super) rules: Vec<(Source, Rules)>,
    /// Keeps the rules of the answer "always".
    pub(super) store: ApprovalStore,
}

impl ProjectPolicy {
    /// Finds the project of a directory, and reads its rules.
    ///
    /// # Errors
    /// A file cannot be read, or has a mistake.
    pub(super) fn of(cwd: &Path) -> anyhow::Result<Self> {
        let project = project(cwd);
        let store = ApprovalStore::of(&project)?;
        Self::read(store, project)
    }

    fn read(store: ApprovalStore, project: PathBuf) -> anyhow::Result<Self> {
        let settings = Settings::load()?;
        let own = Settings::load_from(project.join(PROJECT_SETTINGS))?;
        let trust = store.trust()?;
        let is_trusted = trust == Some(true);
        let stored = store.rules()?;
        let mode = settings.mode().unwrap_or_default();
        let ignored = ignored(&own, mode).filter(|_| !is_trusted);
        let mut of_project = Rules::default();
        of_project.add_project(own.rules(), is_trusted);
        let mode = match own.mode() {
            Some(wanted) if is_trusted => wanted,
            Some(wanted) => mode.min(wanted),
            None => mode,
        };
        let rules = vec![
            (Source::Settings, settings.rules()),
            (Source::Stored, stored),
            (Source::Project, of_project),
        ];
        Ok(Self {
            project,
            mode,
            trust,
            ignored,
            rules,
            store,
        })
    }

    /// Returns all rules together.
    pub(super) fn all_rules(&self) -> Rules {
        let mut all = Rules::default();
        for (_, rules) in &self.rules {
            all.add_project(rules.clone(), true);
        }
        all
    }

    /// Returns each rule with what it does and its source.
    pub(super) fn listed(&self) -> impl Iterator<Item = (&'static str, &Rule, Source)> {
        self.rules.iter().flat_map(|(source, rules)| {
            let kinds = [
                ("deny", &rules.deny),
                ("ask", &rules.ask),
                ("allow", &rules.allow),
            ];
            let rules = kinds
                .into_iter()
                .flat_map(|(kind, rules)| rules.iter().map(move |rule| (kind, rule)));
            rules.map(|(kind, rule)| (kind, rule, *source))
        })
    }
}

/// Rules of a session's project, which may change while it runs.
struct LiveRules {
    store: ApprovalStore,
    project: PathBuf,
}

impl RuleStore for LiveRules {
    fn rules(&self) -> Option<Result<Rules, ToolError>> {
        let read = ProjectPolicy::read(self.store.clone(), self.project.clone());
        Some(read.map(|policy| policy.all_rules()).map_err(as_io))
    }

    fn allow(&self, rules: &[String]) -> Result<(), ToolError> {
        self.store.add(RuleKind::Allow, rules).map_err(as_io)
    }
}

fn as_io(error: anyhow::Error) -> ToolError {
    ToolError::new(ErrorCode::Io, format!("{error:#}"))
}

/// Returns the sentence about what the file of a project wants to widen, if it does.
fn ignored(own: &Settings, mode: Mode) -> Option<String> {
    let wanted = own.mode().filter(|wanted| *wanted > mode);
    let mode = wanted.map(|wanted| format!("the mode {}", wanted.as_str()));
    let allows = !own.rules().allow.is_empty();
    let rules = allows.then(|| "rules that allow calls".to_owned());
    let wanted: Vec<String> = mode.into_iter().chain(rules).collect();
    (!wanted.is_empty()).then(|| {
        format!(
            "{PROJECT_SETTINGS} of the project wants {}, which does not count: `karyi policy trust` trusts the project",
            wanted.join(" and ")
        )
    })
}

/// Returns the project of a directory, without links in its path.
pub(super) fn project(cwd: &Path) -> PathBuf {
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    project_root(&cwd)
}

/// Returns the home directory of the user.
pub(super) fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}

/// Returns the approvals of a session that works in a directory, and says what the project may not widen. Without a mode that of the settings holds.
///
/// # Errors
/// A file with rules cannot be read, or has a mistake.
pub(in crate::cli) fn approvals(
    cwd: &Path,
    mode: Option<Mode>,
    approver: Option<Arc<dyn Approver>>,
) -> anyhow::Result<Approvals> {
    let policy = ProjectPolicy::of(cwd)?;
    if let Some(ignored) = &policy.ignored {
        say(ignored);
    }
    Ok(Approvals::new(ApprovalOptions {
        mode: mode.unwrap_or(policy.mode),
        rules: policy.all_rules(),
        project: policy.project.clone(),
        home: home(),
        approver,
        store: Some(Arc::new(LiveRules {
            store: policy.store,
            project: policy.project,
        })),
    }))
}
