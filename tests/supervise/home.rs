//! A state directory, settings with short times, and the program that works on it.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use karyi_tasks::lifecycle;
use karyi_tasks::staged_work::PlannerSession;
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::TaskRequest;
use karyi_tasks::task_id::TaskId;
use karyi_tasks::trigger::TriggerPlan;
use serde_json::Value;

use super::role_server::RoleServer;
use crate::harness::{Karyi, wait};

/// Times short enough for tests.
const SETTINGS: &str =
    "tick = 0.05\ndebounce = 0.01\nretry_pause = 0.2\nmodel_pause = 0.1\nquestion_pause = 300\n";

/// Longest wait for something that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Home {
    pub karyi: Karyi,
    pub state: StateDirectory,
    sessions: u64,
}

impl Home {
    /// Prepares `karyi supervise --worker full` with these arguments and lines of `[supervise]`.
    pub fn new(server: &RoleServer, args: &[&str], settings: &str) -> Self {
        let all = [
            "supervise",
            "--no-rc",
            "--shell",
            "bash",
            "--state-dir",
            "../state",
        ];
        let all: Vec<&str> = all.iter().chain(args).copied().collect();
        let karyi = Karyi::with_args(&all)
            .env("KARYI_MODEL", "openai_chat:tiny")
            .env("KARYI_MODEL_URL", &server.url)
            .env("OPENAI_API_KEY", "sk-test-9f8e7d6c5b4a");
        let root = karyi.work().parent().unwrap().to_owned();
        let config = root.join("home/.config/karyi");
        fs::create_dir_all(&config).unwrap();
        fs::write(
            config.join("config.toml"),
            format!("[supervise]\n{SETTINGS}{settings}"),
        )
        .unwrap();
        let state = StateDirectory::open(&root.join("state")).unwrap();
        Self {
            karyi,
            state,
            sessions: 0,
        }
    }

    /// Queues a task for a Worker, at once or by a trigger, as a Planner that ended well.
    pub fn plan(
        &mut self,
        prompt: &str,
        timeout: Option<i64>,
        plan: Option<TriggerPlan>,
    ) -> TaskId {
        let request = TaskRequest::new(prompt, None, timeout).unwrap();
        self.sessions += 1;
        let mut session = PlannerSession::new(&format!("test {}", self.sessions));
        let now = Timestamp::now();
        let id = session.stage(request, plan, now).unwrap();
        lifecycle::commit(&self.state, session.into_staged(), now).unwrap();
        id
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.state.path().join(path)
    }

    /// Reads a JSON file of the state directory.
    pub fn json(&self, path: &str) -> Value {
        let text = fs::read_to_string(self.path(path));
        serde_json::from_str(&text.unwrap_or_else(|error| panic!("{path}: {error}"))).unwrap()
    }

    /// Names in a directory of the state directory, sorted, without files that are being written.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    /// Events of the log with this word.
    pub fn logged(&self, event: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path("log.jsonl")).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .filter(|line: &Value| line["event"] == event)
            .collect()
    }

    pub fn spawn(&self) -> Child {
        let mut command = self.karyi.command();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    pub fn run(&self) -> Output {
        wait(self.spawn())
    }

    /// Runs until there is nothing to do, which has to end well.
    #[track_caller]
    pub fn run_well(&self) -> String {
        let output = self.run();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{error}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Waits until something holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the events of output in JSON lines.
pub fn events(stdout: &str) -> Vec<Value> {
    let lines = stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
