//! A user's home with a vault in it, and the program run there.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use age::secrecy::ExposeSecret;

use crate::harness::{program, wait};

/// A home of its own; everything the program keeps goes below it.
pub struct Home {
    root: tempfile::TempDir,
    env: Vec<(String, String)>,
}

/// What came out of the program.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Home {
    pub fn new() -> Self {
        let root = tempfile::Builder::new()
            .prefix("karyi-vault-")
            .tempdir()
            .unwrap();
        for dir in ["work", "home", "tmp", "run"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        fs::set_permissions(root.path().join("run"), fs::Permissions::from_mode(0o700)).unwrap();
        let home = Self {
            root,
            env: Vec::new(),
        };
        let identity = age::x25519::Identity::generate();
        fs::write(home.identity(), identity.to_string().expose_secret()).unwrap();
        fs::set_permissions(home.identity(), fs::Permissions::from_mode(0o600)).unwrap();
        home
    }

    /// Sets a variable for everything run later.
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    pub fn path(&self) -> &Path {
        self.root.path()
    }

    pub fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    /// A home with a secret, `TOKEN`, behind the passphrase `pass-1`.
    pub fn locked(value: &str) -> Self {
        let home = Self::new();
        home.import_locked("TOKEN", value, "pass-1");
        home
    }

    /// Imports a value into the file behind a passphrase.
    pub fn import_locked(&self, name: &str, value: &str, passphrase: &str) {
        let file = self.path().join("p.env");
        fs::write(&file, format!("{name}={value}\n")).unwrap();
        let import = ["var", "import", file.to_str().unwrap(), "--all"];
        let age = ["--vault", "age", "--age-passphrase-fd", "3"];
        self.karyi_with_fd(&[import, age].concat(), passphrase.as_bytes())
            .exit(0)
            .hides(value);
        fs::remove_file(file).unwrap();
    }

    /// An identity file that opens the encrypted file.
    pub fn identity(&self) -> PathBuf {
        self.path().join("identity")
    }

    pub fn index(&self) -> PathBuf {
        self.path().join("karyi/data/vars.json")
    }

    pub fn command(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("HOME", self.path().join("home"))
            .env("TMPDIR", self.path().join("tmp"))
            .env("XDG_RUNTIME_DIR", self.path().join("run"))
            .env("KARYI_HOME", self.path().join("karyi"))
            .env("SHELL", "/bin/bash")
            .env("LANG", "C.UTF-8")
            .env("KARYI_TEST_PASSPHRASE_WORK", "1")
            .envs(self.env.iter().map(|(key, value)| (key, value)));
        command
    }

    /// Runs a program with a text on standard input.
    pub fn spawn(&self, program: &Path, args: &[&str], stdin: &str) -> Ran {
        let mut child = self
            .command(program, args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // A child that does not read to the end is a case, not a failure.
        let _ = pipe.write_all(stdin.as_bytes());
        drop(pipe);
        let Output {
            status,
            stdout,
            stderr,
        } = wait(child);
        Ran {
            code: status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
        }
    }

    /// Runs karyi.
    pub fn karyi(&self, args: &[&str], stdin: &str) -> Ran {
        self.spawn(program(), args, stdin)
    }

    /// Runs karyi with a file on descriptor 3.
    pub fn karyi_with_fd(&self, args: &[&str], content: &[u8]) -> Ran {
        let file = self.path().join("descriptor");
        fs::write(&file, content).unwrap();
        let script = format!("exec \"$0\" \"$@\" 3< '{}'", file.display());
        let mut all = vec!["-c", &script, program().to_str().unwrap()];
        all.extend(args);
        let ran = self.spawn(Path::new("/bin/bash"), &all, "");
        fs::remove_file(file).unwrap();
        ran
    }

    /// Keeps a value in the encrypted file; further arguments are for `var set`.
    #[track_caller]
    pub fn set(&self, name: &str, value: &str, args: &[&str]) {
        let identity = self.identity();
        let mut all = vec!["var", "set", name, "--stdin", "--vault", "age"];
        all.extend(["--age-identity", identity.to_str().unwrap()]);
        all.extend(args);
        self.karyi(&all, value).exit(0);
    }

    /// Runs a script without anybody to ask.
    pub fn script(&self, script: &str) -> Ran {
        self.karyi(&["run", "--no-interactive", "-"], script)
    }

    /// Asserts that no file below the home holds the text.
    #[track_caller]
    pub fn assert_nowhere(&self, text: &str) {
        let mut files = Vec::new();
        collect(self.path(), &mut files);
        assert!(!files.is_empty());
        for file in files {
            let bytes = fs::read(&file).unwrap();
            let found = bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes());
            assert!(!found, "{} holds the value", file.display());
        }
    }
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            collect(&entry.path(), files);
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
}

impl Ran {
    #[track_caller]
    pub fn exit(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self
    }

    /// Asserts that the error has this code.
    #[track_caller]
    pub fn error(self, code: &str) -> Self {
        assert!(
            self.stderr.contains(&format!("karyi: {code}: ")) || self.stdout.contains(code),
            "expected {code}; stdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Asserts that neither stream shows the text.
    #[track_caller]
    pub fn hides(self, text: &str) -> Self {
        assert!(
            !self.stdout.contains(text) && !self.stderr.contains(text),
            "stdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}
