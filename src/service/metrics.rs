//! Metrics of calls in the Prometheus text format. Labels name tools, never tenants or callers.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::service::shards::Shards;

/// Upper bounds of the histogram's buckets, in milliseconds.
const BUCKETS_MS: [u64; 11] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000];

#[derive(Default)]
struct Histogram {
    counts: [u64; BUCKETS_MS.len()],
    count: u64,
    sum_ms: u64,
}

#[derive(Default)]
struct ToolCounters {
    /// By status.
    counts: BTreeMap<&'static str, u64>,
    histogram: Histogram,
}

impl ToolCounters {
    fn add(&mut self, status: &'static str, latency_ms: u64) {
        *self.counts.entry(status).or_default() += 1;
        let histogram = &mut self.histogram;
        histogram.count += 1;
        histogram.sum_ms += latency_ms;
        for (bound, count) in BUCKETS_MS.iter().zip(&mut histogram.counts) {
            *count += u64::from(latency_ms <= *bound);
        }
    }

    fn join(&mut self, part: &Self) {
        for (status, count) in &part.counts {
            *self.counts.entry(status).or_default() += count;
        }
        self.histogram.count += part.histogram.count;
        self.histogram.sum_ms += part.histogram.sum_ms;
        for (count, of_part) in self.histogram.counts.iter_mut().zip(part.histogram.counts) {
            *count += of_part;
        }
    }
}

#[derive(Default)]
struct Counters {
    /// By tool.
    calls: BTreeMap<String, ToolCounters>,
    /// By HTTP status.
    answers: BTreeMap<u16, u64>,
    replays: u64,
    disconnects: u64,
    without_record: u64,
    ledger_failures: u64,
}

impl Counters {
    /// Adds the counters of another shard.
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

/// Counters of calls.
#[derive(Default)]
pub struct Metrics {
    counters: Shards<Counters>,
}

impl Metrics {
    fn change(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut self.counters.own());
    }

    /// Counts a call of a registered tool.
    pub fn count_call(&self, tool: &str, status: &'static str, latency_ms: u64) {
        self.change(|counters| match counters.calls.get_mut(tool) {
            Some(calls) => calls.add(status, latency_ms),
            None => {
                let calls = counters.calls.entry(tool.to_owned()).or_default();
                calls.add(status, latency_ms);
            }
        });
    }

    /// Counts a response.
    pub fn count_response(&self, status: u16) {
        self.change(|counters| *counters.answers.entry(status).or_default() += 1);
    }

    /// Counts a replayed response.
    pub fn count_replay(&self) {
        self.change(|counters| counters.replays += 1);
    }

    /// Counts a caller who disconnected.
    pub fn count_disconnect(&self) {
        self.change(|counters| counters.disconnects += 1);
    }

    /// Counts a request that is too malformed for a record.
    pub fn count_unrecorded(&self) {
        self.change(|counters| counters.without_record += 1);
    }

    /// Counts a record that could not be written.
    pub fn count_ledger_failure(&self) {
        self.change(|counters| counters.ledger_failures += 1);
    }

    /// Returns all counters in the text format.
    #[must_use]
    pub fn text(&self) -> String {
        let mut counters = Counters::default();
        self.counters.all().for_each(|part| counters.add(&part));
        let mut out = String::new();
        write_head(
            &mut out,
            "karyi_tool_calls_total",
            "counter",
            "Calls by tool and status",
        );
        for (tool, calls) in &counters.calls {
            for (status, count) in &calls.counts {
                let _ = writeln!(
                    out,
                    "karyi_tool_calls_total{{tool=\"{tool}\",status=\"{status}\"}} {count}"
                );
            }
        }
        write_head(
            &mut out,
            "karyi_tool_call_duration_seconds",
            "histogram",
            "Duration of calls by tool",
        );
        for (tool, calls) in &counters.calls {
            write_histogram(&mut out, tool, &calls.histogram);
        }
        write_head(
            &mut out,
            "karyi_http_responses_total",
            "counter",
            "Responses by HTTP status",
        );
        for (status, count) in &counters.answers {
            let _ = writeln!(
                out,
                "karyi_http_responses_total{{status=\"{status}\"}} {count}"
            );
        }
        for (name, help, count) in totals(&counters) {
            write_head(&mut out, name, "counter", help);
            let _ = writeln!(out, "{name} {count}");
        }
        out
    }
}

/// Returns name, help text and value of the counters without labels.
fn totals(counters: &Counters) -> [(&'static str, &'static str, u64); 4] {
    [
        (
            "karyi_replays_total",
            "Responses replayed for an idempotency key",
            counters.replays,
        ),
        (
            "karyi_disconnects_total",
            "Callers who disconnected before the response",
            counters.disconnects,
        ),
        (
            "karyi_unrecorded_requests_total",
            "Requests without valid identifying headers",
            counters.without_record,
        ),
        (
            "karyi_ledger_failures_total",
            "Records that could not be written",
            counters.ledger_failures,
        ),
    ]
}

fn write_head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}.\n# TYPE {name} {kind}");
}

fn write_histogram(out: &mut String, tool: &str, histogram: &Histogram) {
    let name = "karyi_tool_call_duration_seconds";
    for (bound, count) in BUCKETS_MS.iter().zip(&histogram.counts) {
        let end = format!("{}.{:03}", bound / 1000, bound % 1000);
        let _ = writeln!(out, "{name}_bucket{{tool=\"{tool}\",le=\"{end}\"}} {count}");
    }
    let _ = writeln!(
        out,
        "{name}_bucket{{tool=\"{tool}\",le=\"+Inf\"}} {}",
        histogram.count
    );
    let sum = format!("{}.{:03}", histogram.sum_ms / 1000, histogram.sum_ms % 1000);
    let _ = writeln!(
        out,
        "{name}_sum{{tool=\"{tool}\"}} {sum}\n{name}_count{{tool=\"{tool}\"}} {}",
        histogram.count
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_tool_and_time() {
        let metrics = Metrics::default();
        metrics.count_call("t", "success", 3);
        // Each thread has its own shard.
        std::thread::scope(|scope| {
            scope
                .spawn(|| metrics.count_call("t", "success", 30_000))
                .join()
        })
        .unwrap();
        metrics.count_response(200);
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
