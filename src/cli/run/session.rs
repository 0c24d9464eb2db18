//! Resources of a session's calls: directories, environment, secrets, output files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use crate::cli::args::{DiffMode, SessionArgs};
use crate::cli::config::{self, Settings};
use crate::cli::model_access::ConfiguredModels;
use crate::cli::policy_text::policy_text;
use crate::cli::runtime_dir::runtime_dir;
use crate::cli::shell::{SessionUse, ShellNames};
use crate::cli::state_dir::{output_dir, output_parent, own_dirs};
use crate::cli::{log, own_program, say, undo_journal, vault};
use crate::exec::cancel::Cancel;
use crate::exec::output_log::{LogLifetime, OutputLogs};
use crate::exec::policy_gate::PolicyGate;
use crate::tool::Seconds;
use crate::tool::context::{Context, Prompter, ShownTexts, WriteLog};
use crate::tool::sessions::{JobFiles, Sessions};
use karyi_core::limits;
use karyi_core::secret::{SecretName, Template};
use karyi_files::edit::Diffs;
use karyi_files::root::Root;
use karyi_pty::{SessionOptions, ShellSecrets, StartupFiles};
use karyi_vault::policy::PolicyFile;
use karyi_vault::redact::Redactor;
use karyi_vault::session::Secrets;

/// Creates the context of a session's calls.
pub(in crate::cli) fn context(
    args: &SessionArgs,
    session_use: SessionUse,
    cancel: &Cancel,
    prompter: Arc<dyn Prompter>,
) -> anyhow::Result<Context> {
    let current = std::env::current_dir()
        .context("finding the current directory, which may be gone: start in another one")?;
    let cwd = directory(&current, args.cwd.as_deref())?;
    let root = root(&current, args)?;
    let env = environment(args);
    let mut own = own_dirs();
    own.extend(vault::identity_file(&args.vault));
    let secrets = Secrets::default();
    let redactor = Redactor::new(&secrets);
    let (known, current) = (redactor.clone(), secrets.clone());
    let search_path = env.iter().rev().find(|(name, _)| name == "PATH");
    let search_path = search_path.map_or_else(OsString::new, |(_, value)| value.clone());
    let names = ShellNames::find(args.shell.as_deref(), session_use, &search_path)?;
    // A script means the same everywhere; who chooses a shell wants it as it is set up.
    let is_set_up = session_use == SessionUse::Conversation
        || names.requested.is_some()
        || args.rc_timeout.is_some();
    let rc = match is_set_up && !args.no_rc {
        true => StartupFiles::User(
            args.rc_timeout
                .map_or(limits::RC_TIMEOUT, Seconds::duration),
        ),
        false => StartupFiles::None,
    };
    let options = SessionOptions {
        shell: names.requested,
        preferred_shell: names.preferred,
        bootstrap: own_program::own_program()?,
        runtime_dir: runtime_dir(),
        cwd,
        env,
        overrides: args.env.clone(),
        rc,
        fork_state: None,
        secrets: ShellSecrets::new(move |bytes| known.is_in(bytes))
            .with_values(move |name| current.get(name)),
    };
    Ok(Context {
        sessions: Arc::new(Sessions::new(options)),
        terminal: None,
        background: None,
        root: Arc::new(root.with_private(&own, &output_parent())),
        models: ConfiguredModels::of_settings(&secrets),
        secrets,
        redactor,
        prompter,
        saver: None,
        deadline: None,
        command_timeout: args.timeout.map(Seconds::duration),
        sink: Arc::new(|| Box::new(|_| {})),
        idle_sink: Arc::new(|| Box::new(|_| {})),
        job_files: JobFiles::default(),
        recorder: undo_journal::recorder(),
        cancelled: cancel.flag(),
        site: None,
        plan: Default::default(),
        supervision: None,
        shown: shown(args)?,
        settings: config::tool_settings()?,
        log: log::file().map(|_| Arc::new(log::write) as WriteLog),
    })
}

/// Opens the directory that files are confined to.
fn root(current: &Path, args: &SessionArgs) -> anyhow::Result<Root> {
    Ok(match &args.root {
        Some(root) => Root::confined(&directory(current, Some(root))?)
            .context("opening the root directory")?,
        None => Root::unconfined(),
    })
}

/// Returns the environment of the session: that of karyi with the variables of the user.
fn environment(args: &SessionArgs) -> Vec<(OsString, OsString)> {
    let mut env: Vec<_> = std::env::vars_os().collect();
    for (key, value) in &args.env {
        env.retain(|(existing, _)| existing != key);
        env.push((key.clone(), value.clone()));
        if Template::new(value.to_string_lossy()).has_placeholder() {
            // Neither is repeated: by mistake either may be a value.
            say(
                "warning: a placeholder in --env stays the text it is; write it in a command of the script",
            );
        }
    }
    env
}

/// Returns how much of texts a result shows: by the flags, else by the settings.
fn shown(args: &SessionArgs) -> anyhow::Result<ShownTexts> {
    let settings = Settings::load()?;
    let usual = ShownTexts::default();
    let limit = |flag: Option<usize>, name: &str, usual: usize| {
        flag.or_else(|| settings.number(name)).unwrap_or(usual)
    };
    Ok(ShownTexts {
        diffs: match args.diff {
            Some(DiffMode::None) => Diffs::None,
            Some(DiffMode::Changed) | None => Diffs::Changed,
            Some(DiffMode::Full) => Diffs::Full,
        },
        output_bytes: limit(args.max_output, "max_output", usual.output_bytes),
        lines: limit(args.max_lines, "max_lines", usual.lines),
        bytes: limit(args.max_read, "max_read", usual.bytes),
        line_bytes: limit(args.max_line, "max_line", usual.line_bytes),
        report_bytes: limit(args.max_report, "max_report", usual.report_bytes),
    })
}

/// Reads the policy file and the names in `--allow`.
pub(in crate::cli) fn policy_gate(
    args: &SessionArgs,
    context: &Context,
) -> anyhow::Result<PolicyGate> {
    let file = match &args.policy {
        None => PolicyFile::default(),
        Some(path) => {
            let shown = path.display();
            let text =
                policy_text(path).with_context(|| format!("reading the policy file {shown}"))?;
            PolicyFile::parse(&text).with_context(|| format!("the policy file {shown}"))?
        }
    };
    let name = |text: &String| {
        // The word may be a value.
        SecretName::parse(text).context("--allow: this is no name of a secret")
    };
    let allowed = args.allow.iter().map(name).collect::<anyhow::Result<_>>()?;
    let policy_gate = PolicyGate::new(file, context.sessions.cwd(), allowed);
    Ok(policy_gate.with_path(args.policy.as_deref()))
}

/// Prepares the directory of output files.
pub(in crate::cli) fn logs(
    args: &SessionArgs,
    session_use: SessionUse,
    context: &Context,
) -> OutputLogs {
    let files = context.job_files.clone();
    // A file that is wrong was reported before.
    let set = Settings::load().ok();
    let set = set.and_then(|settings| settings.number("max_output_file"));
    let set = set.and_then(|bytes| u64::try_from(bytes).ok());
    let most = args.max_output_file.or(set);
    let most = most.unwrap_or(limits::OUTPUT_FILE_BYTES);
    let lifetime = match session_use {
        _ if args.keep => LogLifetime::Kept,
        SessionUse::Script => LogLifetime::Message,
        SessionUse::Conversation => LogLifetime::Session,
    };
    match output_dir(args.keep) {
        Ok(directory) => OutputLogs::new(directory, most, lifetime, files),
        Err(error) => OutputLogs::unusable(error.message, files),
    }
}

fn directory(current: &Path, wanted: Option<&Path>) -> anyhow::Result<PathBuf> {
    let path = current.join(wanted.unwrap_or(Path::new("")));
    let path = path
        .canonicalize()
        .with_context(|| format!("opening the directory {}", path.display()))?;
    if !path.is_dir() {
        anyhow::bail!("{} is not a directory", path.display());
    }
    Ok(path)
}
