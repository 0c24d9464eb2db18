//! Other ways to have a shell run `true` and to know that it has.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use expectrl::repl::ReplSession;
use expectrl::session::OsSession;

use crate::samples::Samples;
use crate::terminal::{Modes, Terminal};

/// An interactive bash that is typed to.
pub(crate) struct TypedShell {
    terminal: Terminal,
}

/// A byte no echo of the script has.
const MARK: u8 = 1;

/// bash given the same line as by a session, and nothing else: no engine, no checks, no result.
/// What a session takes longer is its own doing.
pub(crate) struct Bare {
    _terminal: Terminal,
    lines: File,
    marks: File,
    script: File,
    directory: tempfile::TempDir,
}

impl Bare {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let fifo = |name: &str| {
            let path = directory.path().join(name);
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            (path, file)
        };
        let ((input, lines), (output, marks)) = (fifo("in"), fifo("marks"));
        let script = File::create(directory.path().join("script")).unwrap();
        let shell = "exec bash --norc --noprofile --noediting -i <\"$0\"";
        let arguments = ["-c", shell, input.to_str().unwrap()];
        let mut bare = Self {
            _terminal: Terminal::start(Modes::PlainOutput, "sh", &arguments),
            lines,
            marks,
            script,
            directory,
        };
        let quiet = format!("\\exec >'{}' 2>/dev/null\n", output.display());
        bare.lines.write_all(quiet.as_bytes()).unwrap();
        bare.trip();
        bare
    }

    pub(crate) fn trip(&mut self) {
        let script = self.directory.path().join("script");
        let mark = "\\builtin printf '\\033]133;D;%s\\001%.0s' \"n0;7;$?;$-;${PWD-};n0\" \"7;$?\"";
        let script = script.display();
        let line = format!("\\builtin . '{script}' 0<&255 1>&255 2>&255; {mark}\n");
        self.script.write_all_at(b"true\n", 0).unwrap();
        self.lines.write_all(line.as_bytes()).unwrap();
        let mut buffer = [0; 4096];
        let mut is_told = false;
        while !is_told {
            let count = self.marks.read(&mut buffer).unwrap();
            is_told = buffer.iter().take(count).any(|byte| *byte == MARK);
        }
    }
}

impl TypedShell {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut all = vec!["--norc", "--noprofile", "-i"];
        all.splice(0..0, arguments.iter().copied());
        let mut typed = Self {
            terminal: Terminal::start(Modes::Usual, "bash", &all),
        };
        typed.trip();
        typed
    }

    pub(crate) fn trip(&mut self) {
        let line = b"true; printf '\\001'\n";
        self.terminal.writer.write_all(line).unwrap();
        self.terminal.read_to(MARK);
    }
}

/// bash driven by expectrl.
pub(crate) struct Expectrl {
    bash: ReplSession<OsSession>,
}

impl Expectrl {
    pub(crate) fn start() -> Self {
        let bash = expectrl::repl::spawn_bash().unwrap();
        Self { bash }
    }

    pub(crate) fn trip(&mut self) {
        self.bash.execute("true").unwrap();
    }
}

/// bash driven by rexpect.
pub(crate) struct Rexpect {
    bash: rexpect::session::PtyReplSession,
}

impl Rexpect {
    pub(crate) fn start() -> Self {
        let bash = rexpect::spawn_bash(Some(10_000)).unwrap();
        Self { bash }
    }

    pub(crate) fn trip(&mut self) {
        self.bash.send_line("true").unwrap();
        self.bash.wait_for_prompt().unwrap();
    }
}

/// bash driven by pexpect, in a Python of its own that measures.
pub(crate) struct Pexpect {
    child: Child,
    requests: ChildStdin,
    times: BufReader<ChildStdout>,
}

impl Pexpect {
    /// Starts it in the way named; nothing when there is no pexpect.
    pub(crate) fn start(way: &str) -> Option<Self> {
        let pythons = ["target/python/bin/python", "python3"];
        pythons
            .iter()
            .find_map(|python| Self::start_with(python, way))
    }

    fn start_with(python: &str, way: &str) -> Option<Self> {
        let mut command = Command::new(python);
        command.args(["-c", include_str!("pexpect_trip.py"), way]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().ok()?;
        let mut started = Self {
            requests: child.stdin.take()?,
            times: BufReader::new(child.stdout.take()?),
            child,
        };
        started.read()?;
        Some(started)
    }

    pub(crate) fn trips(&mut self, count: usize, samples: &mut Samples) {
        for _ in 0..count {
            self.requests.write_all(b"\n").unwrap();
            samples.push(self.read().unwrap());
        }
    }

    fn read(&mut self) -> Option<Duration> {
        let mut line = String::new();
        self.times.read_line(&mut line).ok()?;
        line.trim().parse().ok().map(Duration::from_nanos)
    }
}

impl Drop for Pexpect {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// bash in a window of a tmux server of its own.
pub(crate) struct Tmux {
    server: String,
}

impl Tmux {
    /// Starts it; nothing when there is no tmux.
    pub(crate) fn start() -> Option<Self> {
        let tmux = Self {
            server: format!("karyi-bench-{}", std::process::id()),
        };
        let window = "new-session -d -x 120 -y 40 bash --norc --noprofile";
        let arguments: Vec<&str> = window.split(' ').collect();
        let status = tmux.command(&arguments).status().ok()?;
        status.success().then_some(())?;
        tmux.trip();
        Some(tmux)
    }

    pub(crate) fn trip(&self) {
        let line = format!("true; tmux -L {} wait-for -S done", self.server);
        let arguments = ["send-keys", &line, "Enter", ";", "wait-for", "done"];
        assert!(self.command(&arguments).status().unwrap().success());
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.server, "-f", "/dev/null"]);
        command.args(arguments).stderr(Stdio::null());
        command
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).status();
    }
}
