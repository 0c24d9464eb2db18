//! A state directory with a work directory and a clock that only moves when a test moves it.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use karyi_tasks::condition::Condition;
use karyi_tasks::evaluation::{self, Evaluation};
use karyi_tasks::lifecycle::{self, Finish};
use karyi_tasks::staged_work::PlannerSession;
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::{Aging, Task, TaskRequest, TaskRole};
use karyi_tasks::task_id::TaskId;
use karyi_tasks::task_result::Ending;
use karyi_tasks::trigger::TriggerPlan;
use serde_json::Value;

pub(crate) struct Home {
    pub(crate) temp: tempfile::TempDir,
    pub(crate) state: StateDirectory,
    pub(crate) now: Timestamp,
    sessions: u64,
}

impl Home {
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("work")).unwrap();
        let state = StateDirectory::open(&temp.path().join("state")).unwrap();
        let now = "2026-01-31T10:00:00Z".parse().unwrap();
        Self {
            temp,
            state,
            now,
            sessions: 0,
        }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.temp.path().join("work")
    }

    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.temp.path().join("state").join(path)
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.file(path)).unwrap()).unwrap()
    }

    /// Names in a directory of the state directory, sorted.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.file(path)).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Names without those of files that a killed process was writing.
    pub(crate) fn whole(&self, path: &str) -> Vec<String> {
        let mut names = self.names(path);
        names.retain(|name| !name.starts_with('.'));
        names
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += jiff::SignedDuration::from_secs(seconds);
    }

    /// Makes a plan real, as a Planner that ended well.
    pub(crate) fn plan(&mut self, prompt: &str, plan: Option<TriggerPlan>) -> TaskId {
        let request = TaskRequest::new(prompt, None, None).unwrap();
        self.request(request, plan)
    }

    pub(crate) fn request(&mut self, request: TaskRequest, plan: Option<TriggerPlan>) -> TaskId {
        self.sessions += 1;
        let mut session = PlannerSession::new(&format!("session {}", self.sessions));
        let id = session.stage(request, plan, self.now).unwrap();
        lifecycle::commit(&self.state, session.into_staged(), self.now).unwrap();
        id
    }

    pub(crate) fn when(&mut self, condition: Value) -> TaskId {
        let condition = Condition::parse(&condition).unwrap();
        self.plan("when", Some(TriggerPlan::Once(condition)))
    }

    pub(crate) fn whenever(&mut self, condition: Value, cooldown: i64) -> TaskId {
        let condition = Condition::parse(&condition).unwrap();
        let plan = TriggerPlan::conditional(condition, cooldown).unwrap();
        self.plan("whenever", Some(plan))
    }

    pub(crate) fn look(&self) -> Evaluation {
        evaluation::evaluate(&self.state, &self.work(), self.now).unwrap()
    }

    /// Number of tasks that one look makes.
    pub(crate) fn fired(&self) -> usize {
        self.look().queued.len()
    }

    pub(crate) fn claim(&self) -> Option<Task> {
        lifecycle::claim(&self.state, TaskRole::Worker, Aging::Off, self.now).unwrap()
    }

    pub(crate) fn finish(&self, task: &Task, ending: Ending) -> Finish {
        lifecycle::finish(&self.state, TaskRole::Worker, task, ending, self.now).unwrap()
    }

    /// Claims the next task and ends it well.
    pub(crate) fn run_one(&self) -> TaskId {
        let task = self.claim().unwrap();
        self.finish(&task, Ending::Done(format!("result of {}", task.prompt)));
        task.id
    }
}

/// Long counts where `KARYI_FULL` is set, short ones elsewhere.
pub(crate) fn count(short: usize, long: usize) -> usize {
    match std::env::var_os("KARYI_FULL") {
        Some(_) => long,
        None => short,
    }
}

/// Numbers that look random and are the same in each run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    pub(crate) fn micros(&mut self, most: u64) -> Duration {
        Duration::from_micros(self.below(most))
    }
}
