//! A session in a home directory of its own, driven step by step.

use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use karyi::error::ToolError;
use karyi::outcome::Status;
use karyi::pty::key::Key;
use karyi::pty::text::TerminalText;
use karyi::pty::{
    CommandRequest, InputRequest, Progress, Session, SessionOptions, Sink, StartupFiles,
};
use karyi::secret::{Binding, SecretName, SecretValue};

/// A call that hangs fails after this time instead of stopping the whole run.
const TEST_TIMEOUT: Duration = Duration::from_secs(180);

/// Runs a test's future on a runtime like that of the program.
pub(super) fn run<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    runtime.block_on(future)
}

/// What came of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandOutcome {
    pub(super) status: Status,
    pub(super) exit_code: Option<i32>,
    pub(super) output: String,
    pub(super) progress: Progress,
}

impl CommandOutcome {
    /// Status, exit status and text, for comparing at once.
    pub(super) fn brief(&self) -> (Status, Option<i32>, &str) {
        (self.status, self.exit_code, &self.output)
    }
}

pub(super) struct Shell {
    pub(super) session: Session,
    pub(super) home: tempfile::TempDir,
}

/// The program under test: where it was built, or a copy for a user who may not go there.
fn bootstrap() -> PathBuf {
    let copy = std::env::var_os("KARYI_TEST_BOOTSTRAP");
    copy.map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_karyi")), PathBuf::from)
}

/// Options for a shell without start-up files in an empty home.
pub(super) fn options(home: &Path) -> SessionOptions {
    let variable = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    SessionOptions {
        shell: Some(PathBuf::from("/bin/bash")),
        preferred_shell: None,
        bootstrap: bootstrap(),
        runtime_dir: home.join("run"),
        cwd: home.to_owned(),
        env: vec![
            variable("HOME", home.to_str().unwrap()),
            variable("PATH", &std::env::var("PATH").unwrap()),
            variable("LANG", "C.UTF-8"),
        ],
        overrides: Vec::new(),
        rc: StartupFiles::None,
        fork_state: None,
        secrets: karyi::pty::ShellSecrets::default(),
    }
}

impl Shell {
    /// Starts bash.
    pub(super) async fn bash() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts a shell with other options; the home directory stands in them.
    pub(super) async fn with(change: impl FnOnce(&mut SessionOptions)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut options = options(home.path());
        change(&mut options);
        let session = Session::start(options).await.unwrap();
        Self { session, home }
    }

    pub(super) async fn command(&self, script: &str) -> CommandOutcome {
        self.request(CommandRequest {
            script: script.into(),
            ..CommandRequest::default()
        })
        .await
        .unwrap_or_else(|error| panic!("{script:?}: {error:?}"))
    }

    /// Runs a command whose result may take only so long.
    pub(super) async fn command_within(&self, script: &str, timeout: Duration) -> CommandOutcome {
        self.request(CommandRequest {
            script: script.into(),
            timeout: Some(timeout),
            ..CommandRequest::default()
        })
        .await
        .unwrap()
    }

    /// Runs a command with secrets.
    pub(super) async fn command_with(
        &self,
        script: &str,
        secrets: &[(&str, &str)],
    ) -> Result<CommandOutcome, ToolError> {
        let binding = |(name, value): &(&str, &str)| Binding {
            holds: karyi::secret::VariableContent::Value,
            name: SecretName::parse(name).unwrap(),
            value: SecretValue::new((*value).into()),
        };
        self.request(CommandRequest {
            script: script.into(),
            bindings: secrets.iter().map(binding).collect(),
            ..CommandRequest::default()
        })
        .await
    }

    pub(super) async fn request(
        &self,
        request: CommandRequest,
    ) -> Result<CommandOutcome, ToolError> {
        let (output, sink) = collector();
        let call = self.session.command(request, sink);
        seen(call, &output).await
    }

    pub(super) async fn try_input(
        &self,
        text: &str,
        request: InputRequest,
    ) -> Result<CommandOutcome, ToolError> {
        let (output, sink) = collector();
        seen(self.session.input(text.as_bytes(), request, sink), &output).await
    }

    pub(super) async fn input(&self, text: &str) -> CommandOutcome {
        self.try_input(text, InputRequest::default())
            .await
            .unwrap_or_else(|error| panic!("{text:?}: {error:?}"))
    }

    pub(super) async fn try_key(&self, name: &str) -> Result<CommandOutcome, ToolError> {
        let (output, sink) = collector();
        let key = Key::parse(name).unwrap();
        seen(self.session.key(key, None, sink), &output).await
    }

    pub(super) async fn key(&self, name: &str) -> CommandOutcome {
        self.try_key(name).await.unwrap()
    }

    /// Runs a command and compares its status, exit status and output.
    pub(super) async fn check(&self, script: &str, exit_code: i32, output: &str) {
        let status = if exit_code == 0 {
            Status::Ok
        } else {
            Status::Failed
        };
        let seen = self.command(script).await;
        assert_eq!(
            seen.brief(),
            (status, Some(exit_code), output),
            "{script:?}"
        );
    }
}

fn collector() -> (Arc<Mutex<Vec<u8>>>, Sink) {
    let output = Arc::new(Mutex::new(Vec::new()));
    let target = output.clone();
    (
        output,
        Box::new(move |bytes| target.lock().unwrap().extend_from_slice(bytes)),
    )
}

async fn seen(
    call: impl Future<Output = Result<Progress, ToolError>>,
    output: &Mutex<Vec<u8>>,
) -> Result<CommandOutcome, ToolError> {
    let result = tokio::time::timeout(TEST_TIMEOUT, call).await;
    let raw = output.lock().unwrap().clone();
    let mut text = String::new();
    let mut terminal = TerminalText::new();
    terminal.push(&raw, &mut text);
    terminal.finish(&mut text);
    let progress =
        result.unwrap_or_else(|_| panic!("no result in time; output so far: {text:?}"))?;
    Ok(CommandOutcome {
        status: progress.status,
        exit_code: progress.exit_code,
        output: text,
        progress,
    })
}

/// Whether a program is there; says so when it is not.
pub(super) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    if !found {
        eprintln!("skipped: no {program}");
    }
    found
}

/// Runs tests of this program as a user without rights, through other programs first; returns what
/// they printed.
pub(super) fn as_nobody(before: &[&str], tests: &[&str]) -> String {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let copy = |from: &Path, name: &str| {
        let to = directory.path().join(name);
        std::fs::copy(from, &to).unwrap();
        to
    };
    let program = copy(&std::env::current_exe().unwrap(), "tests");
    let karyi = copy(Path::new(env!("CARGO_BIN_EXE_karyi")), "karyi");
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--",
    ];
    let words = [before, &nobody].concat();
    let (first, rest) = words.split_first().unwrap();
    let output = std::process::Command::new(first)
        .args(rest)
        .arg(program)
        .args(["--exact", "--nocapture"])
        .args(tests)
        .env("KARYI_TEST_BOOTSTRAP", karyi)
        .env("TMPDIR", directory.path())
        .current_dir("/")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    let expected = format!("{} passed", tests.len());
    assert!(text.contains(&expected), "{text}");
    text
}
