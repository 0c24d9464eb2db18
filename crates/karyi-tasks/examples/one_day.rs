//! A plan of two tasks, the second of which waits for the first, without a model.

use std::error::Error;

use jiff::Timestamp;
use karyi_tasks::condition::Condition;
use karyi_tasks::evaluation::evaluate;
use karyi_tasks::lifecycle::{claim, delegate, finish};
use karyi_tasks::staged_work::PlannerSession;
use karyi_tasks::state_directory::StateDirectory;
use karyi_tasks::task::{Aging, TaskRequest, TaskRole};
use karyi_tasks::task_id::TaskId;
use karyi_tasks::task_result::Ending;
use karyi_tasks::teller_input::waiting;
use karyi_tasks::trigger::TriggerPlan;

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let state = StateDirectory::open(directory.path())?;
    let now = Timestamp::now();

    // The Teller hands a task over.
    let request = TaskRequest::new("build, then deploy", None, None)?;
    delegate(&state, TaskId::random()?, request, now)?;

    // The Planner delegates two tasks and ends.
    let task = claim(&state, TaskRole::Planner, Aging::Off, now)?.ok_or("no task")?;
    let mut session = PlannerSession::new(&task.session_name());
    let build = session.stage(TaskRequest::new("build", None, Some(600))?, None, now)?;
    let once = TriggerPlan::Once(Condition::TaskDone(build));
    session.stage(TaskRequest::new("deploy", Some(9), None)?, Some(once), now)?;
    let planned = Ending::Planned(String::new(), session.into_staged());
    finish(&state, TaskRole::Planner, &task, planned, now)?;

    // Workers do what is there until nothing is left.
    loop {
        evaluate(&state, directory.path(), now)?;
        let Some(task) = claim(&state, TaskRole::Worker, Aging::Off, now)? else {
            break;
        };
        println!("a Worker does: {}", task.prompt);
        let done = Ending::Done(format!("{} is done", task.prompt));
        finish(&state, TaskRole::Worker, &task, done, now)?;
    }
    for event in waiting(&state)?.events {
        println!("the Teller is told: {:?}", event.content);
    }
    Ok(())
}
