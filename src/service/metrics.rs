//! Numbers about calls, as Prometheus reads them. They name tools, never tenants or callers.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::service::shards::Shards;

/// Upper ends of the histogram's steps, in milliseconds.
const STEPS_MS: [u64; 11] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000];

#[derive(Default)]
struct Times {
    counts: [u64; STEPS_MS.len()],
    count: u64,
    sum_ms: u64,
}

#[derive(Default)]
struct Calls {
    /// By status.
    counts: BTreeMap<&'static str, u64>,
    times: Times,
}

impl Calls {
    fn add(&mut self, status: &'static str, latency_ms: u64) {
        *self.counts.entry(status).or_default() += 1;
        let times = &mut self.times;
        times.count += 1;
        times.sum_ms += latency_ms;
        for (step, count) in STEPS_MS.iter().zip(&mut times.counts) {
            *count += u64::from(latency_ms <= *step);
        }
    }

    fn join(&mut self, part: &Self) {
        for (status, count) in &part.counts {
            *self.counts.entry(status).or_default() += count;
        }
        self.times.count += part.times.count;
        self.times.sum_ms += part.times.sum_ms;
        for (count, of_part) in self.times.counts.iter_mut().zip(part.times.counts) {
            *count += of_part;
        }
    }
}

#[derive(Default)]
struct Numbers {
    /// By tool.
    calls: BTreeMap<String, Calls>,
    /// By HTTP status.
    answers: BTreeMap<u16, u64>,
    replays: u64,
    disconnects: u64,
    without_record: u64,
    ledger_failures: u64,
}

impl Numbers {
    /// Adds the numbers of a part.
    fn add(&mut self, part: &Self) {
        for (tool, calls) in &part.calls {
            self.calls.entry(tool.clone()).or_default().join(calls);
        }
        for (status, count) in &part.answers {
            *self.answers.entry(*status).or_default() += count;
        }
        self.replays += part.replays;
        self.disconnects += part.disconnects;
        self.without_record += part.without_record;
        self.ledger_failures += part.ledger_failures;
    }
}

/// Counts calls.
#[derive(Default)]
pub struct Metrics {
    numbers: Shards<Numbers>,
}

impl Metrics {
    fn change(&self, change: impl FnOnce(&mut Numbers)) {
        change(&mut self.numbers.own());
    }

    /// Counts a call of a registered tool.
    pub fn called(&self, tool: &str, status: &'static str, latency_ms: u64) {
        self.change(|numbers| match numbers.calls.get_mut(tool) {
            Some(calls) => calls.add(status, latency_ms),
            None => {
                let calls = numbers.calls.entry(tool.to_owned()).or_default();
                calls.add(status, latency_ms);
            }
        });
    }

    /// Counts an answer.
    pub fn answered(&self, status: u16) {
        self.change(|numbers| *numbers.answers.entry(status).or_default() += 1);
    }

    /// Counts an answer that was given before.
    pub fn replayed(&self) {
        self.change(|numbers| numbers.replays += 1);
    }

    /// Counts a caller who did not wait.
    pub fn disconnected(&self) {
        self.change(|numbers| numbers.disconnects += 1);
    }

    /// Counts a request that is too broken to have a record.
    pub fn unrecorded(&self) {
        self.change(|numbers| numbers.without_record += 1);
    }

    /// Counts a record that could not be written.
    pub fn ledger_failed(&self) {
        self.change(|numbers| numbers.ledger_failures += 1);
    }

    /// Returns all numbers as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut numbers = Numbers::default();
        self.numbers.all().for_each(|part| numbers.add(&part));
        let mut out = String::new();
        head(
            &mut out,
            "karyi_tool_calls_total",
            "counter",
            "Calls by tool and status",
        );
        for (tool, calls) in &numbers.calls {
            for (status, count) in &calls.counts {
                let _ = writeln!(
                    out,
                    "karyi_tool_calls_total{{tool=\"{tool}\",status=\"{status}\"}} {count}"
                );
            }
        }
        head(
            &mut out,
            "karyi_tool_call_duration_seconds",
            "histogram",
            "Time of calls by tool",
        );
        for (tool, calls) in &numbers.calls {
            histogram(&mut out, tool, &calls.times);
        }
        head(
            &mut out,
            "karyi_http_responses_total",
            "counter",
            "Answers by HTTP status",
        );
        for (status, count) in &numbers.answers {
            let _ = writeln!(
                out,
                "karyi_http_responses_total{{status=\"{status}\"}} {count}"
            );
        }
        for (name, help, count) in totals(&numbers) {
            head(&mut out, name, "counter", help);
            let _ = writeln!(out, "{name} {count}");
        }
        out
    }
}

/// Returns the numbers that belong to no tool: name, meaning, count.
fn totals(numbers: &Numbers) -> [(&'static str, &'static str, u64); 4] {
    [
        (
            "karyi_replays_total",
            "Answers given again for their idempotency key",
            numbers.replays,
        ),
        (
            "karyi_disconnects_total",
            "Callers who did not wait for the answer",
            numbers.disconnects,
        ),
        (
            "karyi_unrecorded_requests_total",
            "Requests without valid identifying headers",
            numbers.without_record,
        ),
        (
            "karyi_ledger_failures_total",
            "Records that could not be written",
            numbers.ledger_failures,
        ),
    ]
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}.\n# TYPE {name} {kind}");
}

fn histogram(out: &mut String, tool: &str, times: &Times) {
    let name = "karyi_tool_call_duration_seconds";
    for (step, count) in STEPS_MS.iter().zip(&times.counts) {
        let end = format!("{}.{:03}", step / 1000, step % 1000);
        let _ = writeln!(out, "{name}_bucket{{tool=\"{tool}\",le=\"{end}\"}} {count}");
    }
    let _ = writeln!(
        out,
        "{name}_bucket{{tool=\"{tool}\",le=\"+Inf\"}} {}",
        times.count
    );
    let sum = format!("{}.{:03}", times.sum_ms / 1000, times.sum_ms % 1000);
    let _ = writeln!(
        out,
        "{name}_sum{{tool=\"{tool}\"}} {sum}\n{name}_count{{tool=\"{tool}\"}} {}",
        times.count
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_tool_and_time() {
        let metrics = Metrics::default();
        metrics.called("t", "success", 3);
        // Each thread counts for itself.
        std::thread::scope(|scope| {
            scope
                .spawn(|| metrics.called("t", "success", 30_000))
                .join()
        })
        .unwrap();
        metrics.answered(200);
        let text = metrics.text();
        for line in [
            "karyi_tool_calls_total{tool=\"t\",status=\"success\"} 2",
            "karyi_tool_call_duration_seconds_bucket{tool=\"t\",le=\"0.005\"} 1",
            "karyi_tool_call_duration_seconds_bucket{tool=\"t\",le=\"+Inf\"} 2",
            "karyi_tool_call_duration_seconds_sum{tool=\"t\"} 30.003",
            "karyi_http_responses_total{status=\"200\"} 1",
            "karyi_replays_total 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
