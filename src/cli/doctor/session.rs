//! Checks with real shells: which exist, which a session can use, and how fast it is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::cli::args::DoctorArgs;
use crate::cli::config::SettingsError;
use crate::cli::runtime_dir::runtime_dir;
use crate::cli::shell::{self, SessionUse, ShellNames};
use karyi_core::limits;
use karyi_pty::health::{self, Check};
use karyi_pty::{CommandRequest, Session, SessionOptions, StartupFiles, find_shell};

/// Shells that a session can use, with the arguments that print their versions.
const SHELLS: &[(&str, &[&str])] = &[
    ("bash", &["--version"]),
    ("zsh", &["--version"]),
    ("dash", &[]),
    ("ksh", &["-c", "echo $KSH_VERSION"]),
    ("mksh", &["-c", "echo $KSH_VERSION"]),
    ("busybox", &["--help"]),
    ("sh", &[]),
    ("fish", &["--version"]),
];
/// Shell of scripts.
const SCRIPT_SHELL: &str = "bash";
/// Maximum length of a shell's version text, in bytes.
const MAX_VERSION_BYTES: u64 = 4096;
/// Number of commands run to measure the time of one.
const ROUNDS: usize = 9;

/// Checks the shells in use: that of scripts, the user's, and the one that was named. Then it tries a session.
pub(super) async fn checks(args: &DoctorArgs) -> Vec<Check> {
    let own = std::env::var_os("SHELL").map(PathBuf::from);
    let in_use = [own.as_deref(), args.shell.as_deref()].map(|path| path.and_then(Path::file_name));
    let mut checks = Vec::new();
    for (name, arguments) in SHELLS {
        if *name == SCRIPT_SHELL || in_use.contains(&Some(OsStr::new(name))) {
            checks.push(shell(name, arguments).await);
        }
    }
    checks.extend(session("session", SessionUse::Script, args).await);
    if args.shell.is_none() {
        let tried = session("MCP session", SessionUse::Conversation, args).await;
        // The checks of the shell's process are those of the first session.
        checks.extend(
            tried
                .into_iter()
                .filter(|check| check.name == "MCP session"),
        );
    }
    checks
}

fn options(names: &ShellNames, rc: StartupFiles) -> anyhow::Result<SessionOptions> {
    Ok(SessionOptions {
        shell: names.requested.clone(),
        preferred_shell: names.preferred.clone(),
        bootstrap: crate::cli::own_program::own_program()?,
        runtime_dir: runtime_dir(),
        cwd: std::env::current_dir()?,
        env: std::env::vars_os().collect(),
        overrides: Vec::new(),
        rc,
        fork_state: None,
        secrets: karyi_pty::ShellSecrets::default(),
    })
}

/// Checks a shell by starting it.
async fn shell(name: &str, arguments: &[&str]) -> Check {
    let label = format!("shell {name}");
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let Some(path) = find_shell(Path::new(name), &search_path) else {
        let meaning = "no session can use it";
        return Check::limited(
            &label,
            "not found",
            meaning,
            "install it if you want to use it",
        );
    };
    let version = version(&path, arguments).await;
    let found = format!("{}{version}", path.display());
    match try_shell(path).await {
        Ok(()) => Check::ok(&label, found, "a session can use it"),
        Err(reason) => Check::limited(
            &label,
            format!("{found}: {reason}"),
            "no session can use it",
            "choose another one with --shell",
        ),
    }
}

/// Starts a session with a shell and closes it.
async fn try_shell(path: PathBuf) -> Result<(), String> {
    let names = ShellNames {
        requested: Some(path),
        ..ShellNames::default()
    };
    let options = options(&names, StartupFiles::None).map_err(|error| format!("{error:#}"))?;
    match timeout(limits::CHECK_TIMEOUT, Session::start(options)).await {
        Ok(Ok(session)) => {
            session.close().await;
            Ok(())
        }
        Ok(Err(error)) => Err(error.message),
        Err(_) => Err("it did not start in time".to_owned()),
    }
}

/// Returns a comma and the first line of a shell's version text.
async fn version(path: &Path, arguments: &[&str]) -> String {
    if arguments.is_empty() {
        return String::new();
    }
    let mut command = Command::new(path);
    command.args(arguments).kill_on_drop(true);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        return ", cannot be started".to_owned();
    };
    let Some(output) = child.stdout.take() else {
        return String::new();
    };
    let mut bytes = Vec::new();
    let mut output = output.take(MAX_VERSION_BYTES);
    if timeout(limits::VERSION_TIMEOUT, output.read_to_end(&mut bytes))
        .await
        .is_err()
    {
        return ", did not report its version in time".to_owned();
    }
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() {
        String::new()
    } else {
        format!(", {line}")
    }
}

/// Starts the session that `karyi run` or `karyi mcp` would start, and runs commands in it.
async fn session(label: &str, session_use: SessionUse, args: &DoctorArgs) -> Vec<Check> {
    let failed_with =
        |found: String, advice: &str| vec![Check::missing(label, found, "nothing can run", advice)];
    let failed = |found| failed_with(found, "install bash, or name a shell with --shell");
    let names = ShellNames::find(args.shell.as_deref(), session_use, &shell::search_path());
    let options = names.and_then(|names| {
        let rc = match session_use == SessionUse::Conversation || names.requested.is_some() {
            true => StartupFiles::User(limits::RC_TIMEOUT),
            false => StartupFiles::None,
        };
        Ok((options(&names, rc)?, names.place))
    });
    let (options, place) = match options {
        Ok(options) => options,
        Err(error) if error.is::<SettingsError>() => {
            return failed_with(format!("{error:#}"), "correct it with `karyi config edit`");
        }
        Err(error) => return failed(format!("{error:#}")),
    };
    let start = Instant::now();
    let limit = limits::RC_TIMEOUT + limits::SHELL_START_TIMEOUT;
    let session = match timeout(limit, Session::start(options)).await {
        Ok(Ok(session)) => session,
        Ok(Err(error)) => return failed(error.message),
        Err(_) => return failed("the shell did not start in time".to_owned()),
    };
    let took = start.elapsed();
    let checks = match timeout(limits::CHECK_TIMEOUT, measure(&session)).await {
        Ok(Ok((round, pid))) => {
            let found = format!(
                "{} ({place}), started in {}, a command takes {}",
                session.shell_name(),
                milliseconds(took),
                milliseconds(round)
            );
            let check = match session.take_startup_note() {
                Some(note) => Check::limited(label, found, &note, "shorten the start-up files"),
                None => Check::ok(label, found, "commands can run"),
            };
            vec![health::of_child(pid), check]
        }
        Ok(Err(message)) => failed(message),
        Err(_) => failed("a command did not end in time".to_owned()),
    };
    session.close().await;
    checks
}

/// Returns the time of a command, and the shell's process id.
async fn measure(session: &Session) -> Result<(Duration, i32), String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    run(session, "echo $$", Some(sender)).await?;
    let output: Vec<u8> = receiver.into_iter().flatten().collect();
    let text = String::from_utf8_lossy(&output);
    let pid = text.trim().parse();
    let pid = pid.map_err(|_| format!("`echo $$` printed {:?}", text.trim()))?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        run(session, "true", None).await?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok((times.get(ROUNDS / 2).copied().unwrap_or_default(), pid))
}

async fn run(
    session: &Session,
    script: &str,
    output: Option<std::sync::mpsc::Sender<Vec<u8>>>,
) -> Result<(), String> {
    let request = CommandRequest {
        script: script.into(),
        ..CommandRequest::default()
    };
    let sink = Box::new(move |bytes: &[u8]| {
        if let Some(output) = &output {
            let _ = output.send(bytes.to_vec());
        }
    });
    let progress = session.command(request, sink).await;
    match progress.map_err(|error| error.message)?.exit_code {
        Some(0) => Ok(()),
        Some(status) => Err(format!("`{script}` ended with status {status}")),
        None => Err(format!("`{script}` did not end")),
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
