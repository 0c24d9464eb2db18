//! A bare terminal with a program behind it, and a session as the program makes one.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use karyi::pty::{CommandRequest, Progress, Session, SessionOptions, Sink, StartupFiles};
use nix::sys::termios::{OutputFlags, SetArg, cfmakeraw, tcgetattr, tcsetattr};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};

/// What the terminal does with bytes on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Modes {
    /// As a new one does.
    Usual,
    /// It passes output on as it is.
    PlainOutput,
    /// It passes everything on as it is, without echo.
    Raw,
}

/// A terminal and the program on it.
pub(crate) struct Terminal {
    pub(crate) reader: Box<dyn Read + Send>,
    pub(crate) writer: Box<dyn Write + Send>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
}

impl Terminal {
    /// Starts a program on a new terminal.
    pub(crate) fn start(modes: Modes, program: &str, arguments: &[&str]) -> Self {
        let size = PtySize {
            rows: 40,
            cols: 120,
            ..PtySize::default()
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let name = pair.master.tty_name().unwrap();
        set_modes(&name, modes);
        let mut builder = CommandBuilder::new(program);
        builder.args(arguments);
        builder.env("PS1", "$ ");
        let child = pair.slave.spawn_command(builder).unwrap();
        Self {
            reader: pair.master.try_clone_reader().unwrap(),
            writer: pair.master.take_writer().unwrap(),
            child,
        }
    }

    /// Reads up to a byte that comes last.
    pub(crate) fn read_to(&mut self, last: u8) {
        let mut buffer = [0; 4096];
        loop {
            let count = self.reader.read(&mut buffer).unwrap();
            assert!(count > 0, "the program has ended");
            if buffer.iter().take(count).any(|byte| *byte == last) {
                return;
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn set_modes(terminal: &Path, modes: Modes) {
    let terminal = std::fs::File::options()
        .read(true)
        .write(true)
        .open(terminal);
    let terminal = terminal.unwrap();
    let mut flags = tcgetattr(&terminal).unwrap();
    match modes {
        Modes::Usual => {}
        Modes::PlainOutput => flags.output_flags.remove(OutputFlags::OPOST),
        Modes::Raw => cfmakeraw(&mut flags),
    }
    tcsetattr(&terminal, SetArg::TCSANOW, &flags).unwrap();
}

/// A session of the library and the runtime it is driven on, as the program drives it.
pub(crate) struct DrivenSession {
    pub(crate) session: Session,
    pub(crate) runtime: tokio::runtime::Runtime,
    _home: tempfile::TempDir,
}

impl DrivenSession {
    /// Starts bash without start-up files.
    pub(crate) fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        let session = runtime.block_on(Session::start(options(home.path())));
        Self {
            session: session.unwrap(),
            runtime,
            _home: home,
        }
    }

    /// Runs a command to its result.
    pub(crate) fn command(&self, script: &str, sink: Sink) -> Progress {
        let request = CommandRequest {
            script: script.into(),
            ..CommandRequest::default()
        };
        let call = self.session.command(request, sink);
        self.runtime.block_on(call).unwrap()
    }
}

impl Drop for DrivenSession {
    fn drop(&mut self) {
        self.runtime.block_on(self.session.close());
    }
}

fn options(home: &Path) -> SessionOptions {
    let variable = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    SessionOptions {
        shell: Some(PathBuf::from("/bin/bash")),
        preferred_shell: None,
        bootstrap: PathBuf::from(env!("CARGO_BIN_EXE_karyi")),
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
