//! How soon a job that waits for the terminal is known to wait.
//!
//! The job prints the time just before it waits; what counts is the time from there to the result.
//! It then gets a line and waits again, so that each kind is seen many times in one process.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use karyi::outcome::Status;
use karyi::pty::{InputRequest, Sink};

use crate::report::Report;
use crate::samples::Samples;
use crate::terminal::DrivenSession;

const TIMES: usize = 200;
/// How often a job waits after a long silence, and how long that lasts.
const SILENCES: usize = 5;
const SILENCE: Duration = Duration::from_secs(10);
/// Most milliseconds that the median of a kind may take. The aim is 10 for all of them; a machine
/// with other work makes single ones longer.
const MOST_MILLISECONDS: f64 = 10.0;

/// What the job does in Python after it has told the time.
const PYTHON: [(&str, &str); 6] = [
    ("read", "os.read(0, 99)"),
    ("Python input()", "input()"),
    ("Python getpass()", "getpass.getpass('')"),
    ("select", "select.select([0], [], []); os.read(0, 99)"),
    ("poll", "poll.poll(); os.read(0, 99)"),
    ("epoll", "epoll.poll(); os.read(0, 99)"),
];

/// Measures and reports.
pub(crate) fn measure(report: &mut Report) {
    let mut kinds = vec![(
        "bash read",
        "while printf '%s\\n' ${EPOCHREALTIME/./}000; do read x; done".to_owned(),
    )];
    if crate::machine::has_program("python3") {
        kinds.extend(PYTHON.map(|(name, wait)| (name, python(wait))));
    } else {
        report.note("Not there: python3.");
    }
    let heads = ["a program that waits in", "median", "99 of 100", "longest"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let mut slowest = 0.0_f64;
    let silent = format!("bash read, after {} s of silence", SILENCE.as_secs());
    let each = kinds
        .iter()
        .map(|(name, script)| (*name, watch(script)))
        .chain([(silent.as_str(), watch_after_silence())]);
    for (name, samples) in each {
        let shown = |share: f64| format!("{:.1} ms", samples.quantile(share) * 1e3);
        rows.push(vec![name.to_owned(), shown(0.5), shown(0.99), shown(1.0)]);
        slowest = slowest.max(samples.median() * 1e3);
    }
    let title = format!(
        "From waiting to the result that says so, {TIMES} times each, {SILENCES} after a silence"
    );
    report.table(&title, &rows);
    let what = "milliseconds to a known wait, slowest median";
    report.check(what, slowest, ..=MOST_MILLISECONDS);
}

fn python(wait: &str) -> String {
    let imports = "import getpass, os, select, time";
    let polls = "poll = select.poll(); poll.register(0, select.POLLIN)\n\
                 epoll = select.epoll(); epoll.register(0, select.EPOLLIN)";
    format!(
        "python3 -c '{imports}\n{polls}\nwhile True:\n print(time.time_ns(), flush=True); {}'",
        wait.replace('\'', "\"")
    )
}

fn watch(script: &str) -> Samples {
    let driven = DrivenSession::start();
    let (output, sink) = collector();
    let progress = driven.command(script, sink);
    assert_eq!(progress.status, Status::AwaitingInput, "{script}");
    drop(output);
    let mut samples = Samples::default();
    for _ in 0..TIMES {
        let (output, sink) = collector();
        let call = driven.session.input(b"\n", InputRequest::default(), sink);
        let progress = driven.runtime.block_on(call).unwrap();
        let seen = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert_eq!(progress.status, Status::AwaitingInput, "{script}");
        samples.push(seen.saturating_sub(told(&output)));
    }
    samples
}

/// Looks become rarer while nothing happens: the job is silent for long, and tells only afterwards
/// when it began to wait.
fn watch_after_silence() -> Samples {
    let driven = DrivenSession::start();
    let seconds = SILENCE.as_secs();
    let script =
        format!("while sleep {seconds}; do at=${{EPOCHREALTIME/./}}000; read x; echo $at; done");
    let (_, sink) = collector();
    let mut status = driven.command(&script, sink).status;
    let mut samples = Samples::default();
    for _ in 0..SILENCES {
        let seen = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert_eq!(status, Status::AwaitingInput, "{script}");
        let (output, sink) = collector();
        let request = InputRequest {
            timeout: Some(10 * SILENCE),
            ..InputRequest::default()
        };
        let call = driven.session.input(b"\n", request, sink);
        status = driven.runtime.block_on(call).unwrap().status;
        samples.push(seen.saturating_sub(told(&output)));
    }
    samples
}

/// Returns the time the job told.
fn told(output: &Mutex<Vec<u8>>) -> Duration {
    let text = String::from_utf8(output.lock().unwrap().clone()).unwrap();
    let mut words = text.split_whitespace().rev();
    Duration::from_nanos(words.find_map(|word| word.parse().ok()).unwrap())
}

fn collector() -> (Arc<Mutex<Vec<u8>>>, Sink) {
    let output = Arc::new(Mutex::new(Vec::new()));
    let target = Arc::clone(&output);
    let sink: Sink = Box::new(move |bytes| target.lock().unwrap().extend_from_slice(bytes));
    (output, sink)
}
