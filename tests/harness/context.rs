//! What calls run in when they run through the library: real shells, files in a directory of the test.

use std::path::Path;
use std::sync::Arc;

use karyi::exec::Event;
use karyi::exec::cancel::Cancel;
use karyi::exec::jobs::Jobs;
use karyi::exec::output_log::{LogLifetime, OutputLogs};
use karyi::exec::policy_gate::PolicyGate;
use karyi::exec::run_context::RunContext;
use karyi::files::root::Root;
use karyi::head_tail::Cap;
use karyi::pty::{SessionOptions, ShellSecrets, StartupFiles};
use karyi::tool::context::{Context, Prompter, ShownTexts};
use karyi::tool::sessions::{JobFiles, Sessions};
use karyi::vault::redact::{Redacted, Redactor};
use karyi::vault::session::Secrets;
use tokio::sync::mpsc;

use super::program;

/// Makes sessions of a shell that start in `dir` and know which texts hold secrets.
pub fn sessions(shell: &Path, dir: &Path, secrets: &Secrets) -> Arc<Sessions> {
    let (known, current) = (Redactor::new(secrets), secrets.clone());
    Arc::new(Sessions::new(SessionOptions {
        shell: Some(shell.to_owned()),
        preferred_shell: None,
        bootstrap: program().to_owned(),
        runtime_dir: dir.join("run"),
        cwd: dir.to_owned(),
        env: std::env::vars_os().collect(),
        overrides: Vec::new(),
        rc: StartupFiles::None,
        fork_state: None,
        secrets: ShellSecrets::new(move |bytes| known.is_in(bytes))
            .with_values(move |name| current.get(name)),
    }))
}

/// Makes a context of such sessions, their secrets and a user.
pub fn context(sessions: Arc<Sessions>, secrets: &Secrets, user: Arc<dyn Prompter>) -> Context {
    Context {
        sessions,
        terminal: None,
        background: None,
        root: Arc::new(Root::unconfined()),
        secrets: secrets.clone(),
        redactor: Redactor::new(secrets),
        prompter: user,
        saver: None,
        deadline: None,
        command_timeout: None,
        sink: Arc::new(|| Box::new(|_| {})),
        idle_sink: Arc::new(|| Box::new(|_| {})),
        job_files: JobFiles::default(),
        recorder: Default::default(),
        cancelled: Arc::default(),
        site: None,
        models: None,
        plan: Default::default(),
        supervision: None,
        shown: ShownTexts::default(),
        settings: Default::default(),
        log: None,
    }
}

/// Makes the stage of a context, with whole outputs in `dir`; `cancel` ends its calls.
pub fn run_context(
    context: Context,
    dir: &Path,
    (events, cancel): (mpsc::Sender<Redacted<Event>>, Cancel),
) -> RunContext {
    let files = context.job_files.clone();
    let logs = OutputLogs::new(dir.join("output"), 1 << 20, LogLifetime::Session, files);
    RunContext {
        cap: Cap::default(),
        is_live: false,
        is_watched: false,
        has_colour: false,
        has_keyboard: false,
        is_dry_run: false,
        events,
        jobs: Jobs::new(
            Arc::clone(&context.sessions),
            logs,
            context.redactor.clone(),
        ),
        policy_gate: PolicyGate::default(),
        context: Context {
            cancelled: cancel.flag(),
            ..context
        },
        cancel,
    }
}
