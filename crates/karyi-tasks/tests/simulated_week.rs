//! A week of simulated clock.

use karyi_tasks::history::{self, Speaker};
use karyi_tasks::settle::prune;
use karyi_tasks::task_result::{Ending, FailureReason};
use karyi_tasks::teller_input;
use karyi_tasks::trigger::TriggerPlan;
use serde_json::json;

use crate::harness::{Home, count};

#[test]
fn a_week_leaves_what_the_limits_say() {
    let mut home = Home::new();
    let interval = i64::try_from(count(3600, 600)).unwrap();
    let hourly = home.plan("hourly", Some(TriggerPlan::recurring(interval).unwrap()));
    home.whenever(
        json!({"type": "task_done", "params": {"task_id": hourly}}),
        0,
    );
    home.whenever(
        json!({"type": "task_failed", "params": {"task_id": hourly}}),
        7200,
    );
    let week = 7 * 24 * 3600;
    let start = home.now;
    let (mut runs, mut reports) = (0, 0);
    while (home.now - start).get_seconds() < week {
        home.pass(interval / 4);
        home.look();
        while let Some(task) = home.claim() {
            runs += 1;
            let fails = task.prompt == "hourly" && runs % 7 == 0;
            home.finish(
                &task,
                match fails {
                    true => Ending::Failed(FailureReason::Error, "no".into()),
                    false => Ending::Done("x".repeat(1000)),
                },
            );
        }
        let input = teller_input::waiting(&home.state).unwrap();
        if !input.events.is_empty() {
            reports += input.events.len();
            teller_input::begin(&home.state, &input).unwrap();
            history::add(&home.state, Speaker::Assistant, "it is done", home.now).unwrap();
            teller_input::end(&home.state, &input).unwrap();
        }
        prune(&home.state, home.now).unwrap();
    }
    let expected = usize::try_from(week / interval).unwrap();
    let results = home.names("worker/results");
    let of_trigger = results
        .iter()
        .filter(|name| name.starts_with(hourly.as_str()))
        .count();
    assert!(
        (expected - 1..=expected).contains(&of_trigger),
        "{of_trigger} of {expected}"
    );
    assert_eq!(reports, results.len());
    assert_eq!(home.names("events"), [""; 0]);
    assert_eq!(home.names("triggers").len(), 3);
    // Thirty days later only what the triggers name is left.
    home.pass(31 * 24 * 3600);
    prune(&home.state, home.now).unwrap();
    assert_eq!(home.names("worker/results").len(), of_trigger);
}
