//! Tools of this machine for callers of the server: each call runs in a shell of its own, or in a
//! lasting one that belongs to an authenticated caller.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use crate::exec::Event;
use crate::exec::cancel::{Cancel, CancelOnDrop};
use crate::exec::decoder::PreparedCall;
use crate::exec::message_runner::MessageRunner;
use crate::exec::output_log::{LogLifetime, OutputLogs};
use crate::exec::policy_gate::PolicyGate;
use crate::exec::session_context::SessionContext;
use crate::exec::shorten;
use crate::render::wire;
use crate::service::caller::OutputSender;
use crate::service::envelope::Failure;
use crate::service::local_tools::{CallFuture, LocalTools};
use crate::tool::context::{Nobody, ShownTexts};
use crate::tool::model_access::ModelAccess;
use crate::tool::sessions::{JobFiles, Sessions};
use crate::tool::{Context, FieldText, ToolSettings};
use crate::tools::Call;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::head_tail::Cap;
use karyi_core::ids;
use karyi_core::limits;
use karyi_core::outcome::{Outcome, Status};
use karyi_core::secret::SecretName;
use karyi_files::root::Root;
use karyi_files::transaction::Recorder;
use karyi_pty::{SessionOptions, ShellSecrets};
use karyi_vault::policy::PolicyFile;
use karyi_vault::redact::{Redacted, Redactor};
use karyi_vault::session::Secrets;

/// The operator's secrets and journal, for local tools.
#[derive(Clone, Default)]
pub struct HostResources {
    /// All secrets; they are masked everywhere.
    pub secrets: Secrets,
    /// Secrets that placeholders may name. Other placeholders stay literal text.
    pub names: Vec<SecretName>,
    /// Journal of the changes that callers make.
    pub recorder: Recorder,
    /// Settings of tools.
    pub settings: Arc<ToolSettings>,
    /// Language models that tools can ask.
    pub models: Option<Arc<dyn ModelAccess>>,
}

impl fmt::Debug for HostResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.names).finish()
    }
}

/// Creates the context of a call, with a shell that starts when needed.
#[must_use]
pub fn context(session: &SessionOptions, root: &Arc<Root>, secrets: Secrets) -> Context {
    let redactor = Redactor::new(&secrets);
    let mut session = session.clone();
    let (known, current) = (redactor.clone(), secrets.clone());
    session.secrets = ShellSecrets::new(move |bytes| known.is_in(bytes))
        .with_values(move |name| current.get(name));
    Context {
        sessions: Arc::new(Sessions::new(session)),
        terminal: None,
        background: None,
        root: Arc::clone(root),
        secrets,
        redactor,
        prompter: Arc::new(Nobody),
        saver: None,
        deadline: None,
        command_timeout: None,
        sink: Arc::new(|| Box::new(|_| {})),
        idle_sink: Arc::new(|| Box::new(|_| {})),
        job_files: JobFiles::default(),
        recorder: Recorder::default(),
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

/// Runs each call in a shell of its own, or in the lasting shell of its owner.
pub struct ShellPool {
    session: SessionOptions,
    root: Arc<Root>,
    output: PathBuf,
    resources: HostResources,
    shells: ShellMap,
}

/// Lasting shells by owner.
type ShellMap = Arc<Mutex<HashMap<String, Arc<PooledShell>>>>;

/// Shell with its session context.
struct PooledShell {
    work: SessionContext,
    /// Lock and number of the current call: calls of one owner run one after another.
    turn: tokio::sync::Mutex<u64>,
    used: Mutex<Instant>,
}

impl ShellPool {
    /// Creates an empty pool; complete outputs are stored in `output`.
    #[must_use]
    pub fn new(
        session: SessionOptions,
        root: Arc<Root>,
        output: PathBuf,
        resources: HostResources,
    ) -> Self {
        Self {
            session,
            root,
            output,
            resources,
            shells: ShellMap::default(),
        }
    }

    fn new_shell(&self, directory: PathBuf) -> PooledShell {
        let context = Context {
            recorder: self.resources.recorder.clone(),
            settings: Arc::clone(&self.resources.settings),
            models: self.resources.models.clone(),
            ..context(&self.session, &self.root, self.resources.secrets.clone())
        };
        let files = context.job_files.clone();
        let logs = OutputLogs::new(
            directory,
            limits::OUTPUT_FILE_BYTES,
            LogLifetime::Session,
            files,
        );
        let project = context.sessions.cwd();
        let policy_gate = PolicyGate::new(PolicyFile::default(), project, BTreeSet::new());
        PooledShell {
            work: SessionContext::new(context, policy_gate, logs, Cap::default()),
            turn: tokio::sync::Mutex::new(0),
            used: Mutex::new(Instant::now()),
        }
    }

    /// Creates a shell for one call.
    fn for_call(&self) -> Result<Arc<PooledShell>, ToolError> {
        let id = ids::new_id().map_err(|_| broken())?;
        Ok(Arc::new(self.new_shell(self.output.join(id))))
    }

    /// Returns the lasting shell of an owner.
    fn for_owner(&self, owner: &str) -> Result<Arc<PooledShell>, ToolError> {
        let mut shells = lock(&self.shells);
        if let Some(shell) = shells.get(owner) {
            *lock(&shell.used) = Instant::now();
            return Ok(Arc::clone(shell));
        }
        if shells.len() >= limits::MAX_NAMED_SHELLS {
            let message = format!("{} lasting shells exist already", limits::MAX_NAMED_SHELLS);
            return Err(ToolError::new(ErrorCode::SessionBusy, message)
                .with_hint("call without a session key, or try again later"));
        }
        let id = ids::new_id().map_err(|_| broken())?;
        let shell = Arc::new(self.new_shell(self.output.join(id)));
        shells.insert(owner.to_owned(), Arc::clone(&shell));
        tokio::spawn(expire(Arc::clone(&self.shells), owner.to_owned()));
        Ok(shell)
    }
}

/// Ends a shell after its idle time.
async fn expire(shells: ShellMap, owner: String) {
    loop {
        let until = match check_age(&shells, &owner, Instant::now()) {
            ShellAge::Removed => return,
            ShellAge::Expired(shell) => return shell.work.close().await,
            ShellAge::CheckAt(until) => until,
        };
        let pause = until.saturating_duration_since(Instant::now());
        tokio::time::sleep(pause.max(limits::ACCEPT_PAUSE)).await;
    }
}

/// State of a lasting shell.
enum ShellAge {
    /// It has already ended.
    Removed,
    /// It is past its idle time, and has been taken out of the pool.
    Expired(Arc<PooledShell>),
    /// It must be checked again at this time.
    CheckAt(Instant),
}

/// Removes a shell that is past its idle time. Calls take their shell under the same lock, so none
/// ends that is in use.
fn check_age(shells: &ShellMap, owner: &str, now: Instant) -> ShellAge {
    let mut shells = lock(shells);
    let Some(shell) = shells.get(owner) else {
        return ShellAge::Removed;
    };
    let until = *lock(&shell.used) + limits::NAMED_SHELL_IDLE;
    let is_held = Arc::strong_count(shell) > 1;
    if now < until || is_held {
        return ShellAge::CheckAt(until);
    }
    shells
        .remove(owner)
        .map_or(ShellAge::Removed, ShellAge::Expired)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PooledShell {
    /// Runs a call and waits until the shell is free again.
    async fn run(
        &self,
        cancel: Cancel,
        mut call: Call,
        deadline: Instant,
        printed: Option<OutputSender>,
    ) -> Outcome {
        let mut turn = self.turn.lock().await;
        *turn += 1;
        let (id, spec) = (turn.to_string(), call.spec());
        let cancelled = |message| {
            let error = ToolError::new(ErrorCode::Cancelled, message);
            Outcome::failed(id.clone(), spec.name.into(), error)
        };
        // The caller has already been told that the call did not run.
        if cancel.is_cancelled() {
            return cancelled("the caller no longer waits for the call");
        }
        let (events, mut received) = mpsc::channel::<Redacted<Event>>(limits::CHANNEL_DEPTH);
        let left = deadline.saturating_duration_since(Instant::now());
        if let Call::Command(command) = &mut call {
            // The timeout never exceeds the deadline, however long the call waited for its turn.
            command.timeout = command.timeout.filter(|time| time.duration() <= left);
        }
        let mut stage = self.work.run_context(events, cancel.clone());
        stage.context.command_timeout = Some(left);
        stage.context.deadline = Some(deadline);
        stage.is_live = printed.is_some();
        let runner = MessageRunner::new(stage);
        let mut work = pin!(runner.run_call(PreparedCall::standalone(id.clone(), call)));
        let mut outcome = None;
        let mut handle = |event: Redacted<Event>| match event.into_inner() {
            Event::Finished { outcome: found, .. } => outcome = Some(*found.into_inner()),
            Event::Output { text, .. } => {
                let _ = printed.as_ref().map(|printed| printed.try_send(text));
            }
            _ => {}
        };
        loop {
            tokio::select! {
                biased;
                () = &mut work => break,
                Some(event) = received.recv() => handle(event),
            }
        }
        while let Ok(event) = received.try_recv() {
            handle(event);
        }
        if cancel.is_cancelled() && spec.starts_job {
            let _ = self.work.context.sessions.interrupt();
        }
        *lock(&self.used) = Instant::now();
        outcome.unwrap_or_else(|| cancelled("the call ended without a result"))
    }
}

impl LocalTools for ShellPool {
    fn run(
        &self,
        mut call: Call,
        deadline: Instant,
        owner: Option<String>,
        printed: Option<OutputSender>,
    ) -> CallFuture<'static> {
        call.templates(&mut |_, text| text.offer_only(&|name| self.resources.names.contains(name)));
        let is_pooled = owner.is_some();
        let shell = match owner {
            Some(owner) => self.for_owner(&owner),
            None => self.for_call(),
        };
        Box::pin(async move {
            let shell = shell?;
            let cancel = Cancel::default();
            let guard = CancelOnDrop(cancel.clone());
            let (sender, outcome) = oneshot::channel();
            // The task outlives this future until the shell has ended.
            tokio::spawn(async move {
                let outcome = shell.run(cancel, call, deadline, printed).await;
                if !is_pooled {
                    shell.work.close().await;
                }
                let _ = sender.send(outcome);
            });
            let outcome = outcome.await;
            drop(guard);
            fields(outcome.map_err(|_| broken())?, is_pooled)
        })
    }

    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            let shells: Vec<Arc<PooledShell>> =
                lock(&self.shells).drain().map(|(_, shell)| shell).collect();
            let mut closing = tokio::task::JoinSet::new();
            for shell in shells {
                closing.spawn(async move { shell.work.close().await });
            }
            while closing.join_next().await.is_some() {}
        })
    }
}

fn broken() -> ToolError {
    ToolError::new(ErrorCode::Internal, "the tool stopped unexpectedly")
}

/// Returns the fields of an outcome.
fn fields(mut outcome: Outcome, is_pooled: bool) -> Result<FieldText, Failure> {
    shorten::fit(&mut outcome, &mut limits::REPORT_BYTES.clone());
    match (&outcome.error, outcome.status) {
        (Some(error), Status::Error | Status::Refused | Status::Skipped) => {
            let has_part = !outcome.fields.is_empty() || outcome.output.is_some();
            let part = has_part
                .then(|| result_fields(&outcome, is_pooled))
                .transpose()?;
            Err(Failure {
                output: part.map(Box::new),
                ..error.clone().into()
            })
        }
        // The command ended with its shell at the timeout.
        (None, Status::Running) if !is_pooled => Err(Failure {
            output: Some(Box::new(result_fields(&outcome, is_pooled)?)),
            ..ToolError::new(
                ErrorCode::Timeout,
                "the command was ended because its time was up",
            )
            .into()
        }),
        _ => Ok(result_fields(&outcome, is_pooled)?),
    }
}

/// Returns the fields of a result as JSON text. Ids and output files are omitted when they ended
/// with the shell.
fn result_fields(outcome: &Outcome, is_pooled: bool) -> Result<FieldText, ToolError> {
    let mut fields = wire::result(outcome).to_map();
    fields.shift_remove("tool");
    if !is_pooled {
        // They no longer exist.
        for name in [
            "id",
            "output_file",
            "output_file_complete",
            "output_file_problem",
        ] {
            fields.shift_remove(name);
        }
        if outcome.error.is_none() && outcome.output.is_some() {
            fields.shift_remove("hint");
        }
    }
    FieldText::written(&fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_pty::{ShellSecrets, StartupFiles};

    fn shells(dir: &std::path::Path) -> ShellPool {
        let session = SessionOptions {
            shell: None,
            preferred_shell: None,
            bootstrap: dir.to_owned(),
            runtime_dir: dir.to_owned(),
            cwd: dir.to_owned(),
            env: Vec::new(),
            overrides: Vec::new(),
            rc: StartupFiles::None,
            fork_state: None,
            secrets: ShellSecrets::default(),
        };
        let (root, output) = (Arc::new(Root::unconfined()), dir.join("output"));
        ShellPool::new(session, root, output, HostResources::default())
    }

    #[tokio::test]
    async fn a_shell_in_use_does_not_expire() {
        let dir = tempfile::tempdir().unwrap();
        let shells = shells(dir.path());
        let shell = shells.for_owner("owner").unwrap();
        let late = Instant::now() + limits::NAMED_SHELL_IDLE * 2;
        let check_age = |now| check_age(&shells.shells, "owner", now);
        assert!(matches!(check_age(Instant::now()), ShellAge::CheckAt(_)));
        assert!(matches!(check_age(late), ShellAge::CheckAt(_)));
        drop(shell);
        assert!(matches!(check_age(Instant::now()), ShellAge::CheckAt(_)));
        assert!(matches!(check_age(late), ShellAge::Expired(_)));
        assert!(matches!(check_age(late), ShellAge::Removed));
    }
}
