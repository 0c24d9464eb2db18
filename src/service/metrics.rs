//! Metrics of calls in the OpenMetrics text format. Labels name tools, never tenants or callers.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Media type of [`Metrics::text`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the histogram's buckets, in seconds.
const BUCKETS: [f64; 11] = [
    0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    tool: String,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolLabels {
    tool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    status: u16,
}

/// Counters of calls.
pub struct Metrics {
    registry: Registry,
    calls: Family<CallLabels, Counter>,
    durations: Family<ToolLabels, Histogram, fn() -> Histogram>,
    responses: Family<ResponseLabels, Counter>,
    /// Responses replayed for an idempotency key.
    pub replays: Counter,
    /// Callers who disconnected before the response.
    pub disconnects: Counter,
    /// Requests that are too malformed for a record.
    pub unrecorded: Counter,
    /// Records that could not be written.
    pub ledger_failures: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let calls = Family::default();
        let durations =
            Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        let responses = Family::default();
        let mut registry = Registry::with_prefix("karyi");
        registry.register("tool_calls", "Calls by tool and status", calls.clone());
        registry.register_with_unit(
            "tool_call_duration",
            "Duration of calls by tool",
            Unit::Seconds,
            durations.clone(),
        );
        registry.register(
            "http_responses",
            "Responses by HTTP status",
            responses.clone(),
        );
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let replays = counter("replays", "Responses replayed for an idempotency key");
        let disconnects = counter(
            "disconnects",
            "Callers who disconnected before the response",
        );
        let unrecorded = counter(
            "unrecorded_requests",
            "Requests without valid identifying headers",
        );
        let ledger_failures = counter("ledger_failures", "Records that could not be written");
        Self {
            registry,
            calls,
            durations,
            responses,
            replays,
            disconnects,
            unrecorded,
            ledger_failures,
        }
    }
}

impl Metrics {
    /// Counts a call of a registered tool.
    pub fn count_call(&self, tool: &str, status: &'static str, latency_ms: u64) {
        let tool = tool.to_owned();
        let seconds = std::time::Duration::from_millis(latency_ms).as_secs_f64();
        let labels = ToolLabels { tool };
        self.durations.get_or_create(&labels).observe(seconds);
        let tool = labels.tool;
        self.calls.get_or_create(&CallLabels { tool, status }).inc();
    }

    /// Counts a response.
    pub fn count_response(&self, status: u16) {
        self.responses
            .get_or_create(&ResponseLabels { status })
            .inc();
    }

    /// Returns all counters in the text format.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut out, &self.registry);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_tool_and_time() {
        let metrics = Metrics::default();
        metrics.count_call("t", "success", 3);
        metrics.count_call("t", "success", 30_000);
        metrics.count_response(200);
        let text = metrics.text();
        for line in [
            "karyi_tool_calls_total{tool=\"t\",status=\"success\"} 2",
            "karyi_tool_call_duration_seconds_bucket{le=\"0.005\",tool=\"t\"} 1",
            "karyi_tool_call_duration_seconds_bucket{le=\"+Inf\",tool=\"t\"} 2",
            "karyi_tool_call_duration_seconds_sum{tool=\"t\"} 30.003",
            "karyi_http_responses_total{status=\"200\"} 1",
            "karyi_replays_total 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
