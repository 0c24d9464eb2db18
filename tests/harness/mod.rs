//! Runs the program in a directory of its own and compares everything that comes out.
//!
//! ```ignore
//! Karyi::new().file("a.txt", "one").stdin("<tools>...</tools>")
//!     .stdout_xml("<results>...</results>").exit(0);
//! ```
//!
//! The child gets a small fixed environment. Before outputs are compared, durations become 0 and
//! the temporary directory becomes `ROOT`.

pub mod context;
pub mod escape;
pub mod process;
#[allow(dead_code)]
pub mod scripted_server;
pub mod terminal;

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use regex::Regex;

/// How long a child may take before the test fails instead of hanging.
const CHILD_LIMIT: Duration = Duration::from_secs(120);

/// A run of the program that is being prepared.
pub struct Karyi {
    root: tempfile::TempDir,
    args: Vec<OsString>,
    stdin: Vec<u8>,
    env: Vec<(String, OsString)>,
    uid: Option<u32>,
}

impl Karyi {
    /// Prepares `karyi run -` with XML reports.
    pub fn new() -> Self {
        Self::with_args(&["run", "--no-interactive"])
    }

    /// Prepares the program with these arguments.
    pub fn with_args(args: &[&str]) -> Self {
        let root = tempfile::Builder::new()
            .prefix("karyi-test-")
            .tempdir()
            .unwrap();
        for dir in ["work", "home", "tmp", "bin"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        Self {
            root,
            args: args.iter().map(OsString::from).collect(),
            stdin: Vec::new(),
            env: Vec::new(),
            uid: None,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(OsString::from));
        self
    }

    /// Puts a file into the working directory.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Puts a program that stands for another one on the PATH.
    pub fn program(self, name: &str, script: &str) -> Self {
        let path = self.root.path().join("bin").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// Sets what is piped in.
    pub fn stdin(mut self, text: impl AsRef<[u8]>) -> Self {
        self.stdin = text.as_ref().to_vec();
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, key: &str, value: impl Into<OsString>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Runs as this user; the whole root is given to them.
    pub fn run_as(mut self, uid: u32) -> Self {
        self.uid = Some(uid);
        self
    }

    /// Returns the working directory of the child.
    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// Returns the directory of runtime files.
    pub fn runtime(&self) -> PathBuf {
        let user = nix::unistd::geteuid();
        self.root.path().join("tmp").join(format!("karyi-{user}"))
    }

    /// Returns the command, ready to be started.
    pub fn command(&self) -> Command {
        let root = self.root.path();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program());
        command
            .args(&self.args)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", format!("{}:{path}", root.join("bin").display()))
            .env("HOME", root.join("home"))
            .env("TMPDIR", root.join("tmp"))
            .env("SHELL", "/bin/bash")
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("KARYI_TEST_PASSPHRASE_WORK", "1")
            .envs(self.env.iter().map(|(key, value)| (key, value)));
        if let Some(uid) = self.uid {
            use std::os::unix::process::CommandExt;
            for path in [
                root,
                &root.join("work"),
                &root.join("home"),
                &root.join("tmp"),
            ] {
                std::os::unix::fs::chown(path, Some(uid), Some(uid)).unwrap();
            }
            command.uid(uid).gid(uid);
        }
        command
    }

    /// Runs the program.
    pub fn run(self) -> Ran {
        let mut command = self.command();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let text = self.stdin.clone();
        // A child that does not read to the end is a case, not a failure.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&text)));
        let output = wait(child);
        writer.join().unwrap();
        Ran {
            root: self.root,
            output,
        }
    }

    /// Runs the program and compares its report.
    #[track_caller]
    pub fn stdout_xml(self, expected: &str) -> Ran {
        self.run().stdout_xml(expected)
    }
}

/// Returns the path of the program under test.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_karyi"))
}

/// Waits for a child; one that hangs is killed and fails the test.
pub fn wait(child: Child) -> Output {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(CHILD_LIMIT) {
        Ok(output) => {
            let _ = thread.join();
            output.unwrap()
        }
        Err(_) => {
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            panic!("the program did not end within {CHILD_LIMIT:?}");
        }
    }
}

/// A run that has ended.
pub struct Ran {
    root: tempfile::TempDir,
    output: Output,
}

impl Ran {
    /// Returns stdout with durations and the root replaced.
    pub fn stdout(&self) -> String {
        self.plain(&self.output.stdout)
    }

    /// Returns stderr with the root replaced.
    pub fn stderr_text(&self) -> String {
        self.plain(&self.output.stderr)
    }

    /// Returns stdout as it came.
    pub fn raw_stdout(&self) -> &[u8] {
        &self.output.stdout
    }

    /// Returns stdout as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout())
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout()))
    }

    fn plain(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let root = self.root.path().canonicalize().unwrap();
        let text = text.replace(&*root.to_string_lossy(), "ROOT");
        let text = text.replace(&*self.root.path().to_string_lossy(), "ROOT");
        without_durations(&text)
    }

    /// Compares the exit status.
    #[track_caller]
    pub fn exit(self, code: i32) -> Self {
        let found = self.output.status.code();
        assert_eq!(
            found,
            Some(code),
            "stdout: {}\nstderr: {}",
            self.stdout(),
            self.stderr_text()
        );
        self
    }

    /// Compares the report; white space between the lines of the report is ignored.
    #[track_caller]
    pub fn stdout_xml(self, expected: &str) -> Self {
        assert_eq!(
            layout(&self.stdout()),
            layout(expected),
            "stderr: {}",
            self.stderr_text()
        );
        self
    }

    /// Compares stdout as a whole.
    #[track_caller]
    pub fn stdout_text(self, expected: &str) -> Self {
        assert_eq!(self.stdout(), expected, "stderr: {}", self.stderr_text());
        self
    }

    /// Compares stderr as a whole.
    #[track_caller]
    pub fn stderr(self, expected: &str) -> Self {
        assert_eq!(self.stderr_text(), expected);
        self
    }

    /// Returns the directory of the test, above the working directory.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Prepares another run in the same directory.
    pub fn again(self, args: &[&str]) -> Karyi {
        Karyi {
            root: self.root,
            args: args.iter().map(OsString::from).collect(),
            stdin: Vec::new(),
            env: Vec::new(),
            uid: None,
        }
    }

    /// Compares one file of the working directory.
    #[track_caller]
    pub fn file(self, path: &str, expected: impl AsRef<[u8]>) -> Self {
        let found = fs::read(self.root.path().join("work").join(path)).unwrap();
        let (found, expected) = (
            String::from_utf8_lossy(&found),
            String::from_utf8_lossy(expected.as_ref()),
        );
        assert_eq!(found, expected, "{path}");
        self
    }

    /// Compares the names of everything in the working directory.
    #[track_caller]
    pub fn tree(self, expected: &[&str]) -> Self {
        let mut names = Vec::new();
        list(&self.root.path().join("work"), "", &mut names);
        names.sort();
        assert_eq!(names, expected);
        self
    }
}

fn list(dir: &Path, prefix: &str, names: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            list(&entry.path(), &format!("{name}/"), names);
        } else {
            names.push(name);
        }
    }
}

/// Takes away the indentation a test adds around the lines of a report, and times of slow calls.
pub fn layout(xml: &str) -> String {
    let lines = xml.trim().lines().map(str::trim_start);
    let text = lines.collect::<Vec<_>>().join("\n");
    without_slow(&text)
}

/// Takes away the duration, which an XML report gives of calls that took a second.
pub fn without_slow(xml: &str) -> String {
    xml.replace(" duration_ms=\"0\"", "")
}

/// Returns the results of a JSON report.
pub fn results(report: &serde_json::Value) -> &Vec<serde_json::Value> {
    report["results"].as_array().unwrap()
}

/// Says why a test did nothing; the test script collects these lines.
pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// Whether the tests run as root, as some must.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Replaces the durations of a report by 0.
pub fn without_durations(text: &str) -> String {
    let durations = Regex::new(r#"((?:duration|age)_ms="|"(?:duration|age)_ms":)[0-9]+"#).unwrap();
    durations.replace_all(text, "${1}0").into_owned()
}

/// Replaces names that `mktemp` made.
pub fn without_temporary_names(text: &str) -> String {
    let name = Regex::new(r"/tmp\.[A-Za-z0-9]+").unwrap();
    name.replace_all(text, "/tmp.X").into_owned()
}
