//! Opens a session, runs two commands in its shell, and prints their output and exit status.
//!
//! The shell must be started by a program that calls [`bootstrap`] before it does anything else. Here that is this
//! very program, started again with [`bootstrap::ARGUMENT`]; a helper program of your own works as well.

#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;

use karyi_pty::{
    CommandRequest, Session, SessionOptions, ShellSecrets, StartupFiles, bootstrap, runtime,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() == Some(OsStr::new(bootstrap::ARGUMENT)) {
        // Becomes the shell, and returns only if that fails.
        return Err(bootstrap::bootstrap(arguments).into());
    }
    let runtime_dir = std::env::temp_dir().join(format!("one-session-{}", std::process::id()));
    runtime::prepare(&runtime_dir)?;
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = tokio.block_on(run(&runtime_dir));
    std::fs::remove_dir_all(&runtime_dir)?;
    result
}

async fn run(runtime_dir: &Path) -> Result<(), Box<dyn Error>> {
    let session = Session::start(SessionOptions {
        shell: None,
        preferred_shell: std::env::var_os("SHELL").map(Into::into),
        bootstrap: std::env::current_exe()?,
        runtime_dir: runtime_dir.to_owned(),
        cwd: std::env::current_dir()?,
        env: std::env::vars_os().collect(),
        overrides: Vec::new(),
        rc: StartupFiles::None,
        fork_state: None,
        secrets: ShellSecrets::default(),
    })
    .await?;
    // The shell keeps its state, so the second command sees the variable of the first.
    for script in [
        "name=world; cd /",
        "echo \"hello $name from $PWD\"; (exit 3)",
    ] {
        let request = CommandRequest {
            script: script.to_owned(),
            ..CommandRequest::default()
        };
        // Output comes as raw bytes, in pieces; `TerminalText` would remove the escape sequences.
        let sink = |bytes: &[u8]| {
            let _ = std::io::stdout().write_all(bytes);
        };
        let progress = session.command(request, Box::new(sink)).await?;
        println!("[{script}] exit status {:?}", progress.exit_code);
    }
    session.close().await;
    Ok(())
}
