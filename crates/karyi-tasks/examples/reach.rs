//! Times of large state directories: `cargo run -p karyi-tasks --release --example reach`.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use karyi_tasks::condition::Condition;
use karyi_tasks::evaluation::evaluate;
use karyi_tasks::instance_lock::InstanceLock;
use karyi_tasks::lifecycle::{claim, commit};
use karyi_tasks::listing::{ListOptions, list};
use karyi_tasks::settle::settle;
use karyi_tasks::staged_work::PlannerSession;
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::{Aging, TaskRequest, TaskRole};
use karyi_tasks::trigger::TriggerPlan;

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn show(what: &str, times: &mut [Duration]) {
    times.sort();
    let middle = times.get(times.len() / 2).copied().unwrap_or_default();
    let longest = times.last().copied().unwrap_or_default();
    println!("{what}: {middle:.2?}, at most {longest:.2?}");
}

fn timed<T>(what: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let value = what();
    (start.elapsed(), value)
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let now = Timestamp::now();
    queue(directory.path(), now)
}

/// 10,000 queued tasks and 100 triggers.
fn queue(path: &Path, now: Timestamp) -> Result<(), Box<dyn Error>> {
    let state = StateDirectory::open(path)?;
    for plan in 0..50 {
        let mut session = PlannerSession::new(&format!("plan {plan}"));
        for task in 0..200 {
            let request = TaskRequest::new(&"task ".repeat(100), Some(task % 11), None)?;
            session.stage(request, None, now)?;
        }
        commit(&state, session.into_staged(), now)?;
    }
    let mut session = PlannerSession::new("triggers");
    for number in 0..100 {
        let condition = Condition::FileChanged(format!("file-{number}"));
        let plan = TriggerPlan::conditional(condition, 0)?;
        session.stage(TaskRequest::new("watch", None, None)?, Some(plan), now)?;
    }
    commit(&state, session.into_staged(), now)?;
    let (start, state) = timed(|| {
        let state = StateDirectory::open(path)?;
        let lock = InstanceLock::take(&state)?;
        settle(&state, &lock, now)?;
        Ok::<_, Box<dyn Error>>(state)
    });
    let state = state?;
    show("start", &mut [start]);
    evaluate(&state, path, now)?;
    let mut dispatches = Vec::new();
    let mut lists = Vec::new();
    let mut looks = Vec::new();
    for _ in 0..100 {
        let (time, task) = timed(|| claim(&state, TaskRole::Worker, Aging::Off, now));
        task?.ok_or("no task")?;
        dispatches.push(time);
        let (time, tasks) = timed(|| list(&state, ListOptions::default(), now));
        assert!(tasks?.len() > 10_000);
        lists.push(time);
        let (time, look) = timed(|| evaluate(&state, path, now));
        look?;
        looks.push(time);
    }
    show("dispatch", &mut dispatches);
    show("list_tasks", &mut lists);
    show("look at 100 triggers", &mut looks);
    Ok(())
}
