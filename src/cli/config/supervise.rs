//! Settings of `karyi supervise`: the table `[supervise]`.

use std::time::Duration;

use toml_edit::Item;

use crate::cli::config::Settings;
use crate::cli::config::check::number;
use crate::cli::config::worker_power::WorkerPower;
use crate::supervisor::settings::{Intervals, RoleLimits, SupervisorSettings};
use karyi_tasks::pauses::Pauses;
use karyi_tasks::task::Aging;

impl Settings {
    /// Returns the settings of a supervisor.
    pub(in crate::cli) fn supervisor(&self) -> SupervisorSettings {
        let usual = SupervisorSettings::default();
        let seconds = |name: &str, usual: Duration| {
            let seconds = self.supervise(name).and_then(number);
            let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            seconds.unwrap_or(usual)
        };
        let count = |name: &str| {
            let count = self.supervise(name).and_then(Item::as_integer);
            count.and_then(|count| u64::try_from(count).ok())
        };
        let limits = |role: &str, usual: RoleLimits| RoleLimits {
            timeout: seconds(&format!("{role}_timeout"), usual.timeout),
            steps: count(&format!("{role}_steps")).unwrap_or(usual.steps),
        };
        let workers = count("workers").and_then(|count| usize::try_from(count).ok());
        let is_aging = self.supervise("aging").and_then(Item::as_bool);
        SupervisorSettings {
            workers: workers.unwrap_or(usual.workers),
            max_tokens_per_day: count("max_tokens_per_day").unwrap_or(usual.max_tokens_per_day),
            aging: match is_aging.unwrap_or(false) {
                true => Aging::On,
                false => Aging::Off,
            },
            intervals: Intervals {
                tick: seconds("tick", usual.intervals.tick),
                debounce: seconds("debounce", usual.intervals.debounce),
                model_pause: seconds("model_pause", usual.intervals.model_pause),
            },
            pauses: Pauses {
                retry: seconds("retry_pause", usual.pauses.retry),
                question: seconds("question_pause", usual.pauses.question),
            },
            teller: limits("teller", usual.teller),
            planner: limits("planner", usual.planner),
            worker: limits("worker", usual.worker),
        }
    }

    /// Returns a text of the table `[supervise]`.
    pub(in crate::cli) fn supervise_text(&self, name: &str) -> Option<&str> {
        self.supervise(name)?.as_str()
    }

    /// Returns the calls of Workers that run.
    pub(in crate::cli) fn worker_power(&self) -> Option<WorkerPower> {
        let word = self.supervise_text("worker")?;
        let mut all = WorkerPower::ALL.into_iter();
        all.find(|power| power.as_str() == word)
    }

    fn supervise(&self, name: &str) -> Option<&Item> {
        self.item(&["supervise", name])
    }
}
