//! Searches among few and among many texts: how long one caller waits for the answer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::calls;
use crate::load;
use crate::report::Report;
use crate::servers;

/// Numbers of texts; the first is that of the village.
const SIZES: [usize; 3] = [48, 1_000, 10_000];

/// A hundred questions about the village.
const QUESTIONS: &str = include_str!("../../tests/serve/questions.tsv");

/// How often each question is asked, after a round that does not count.
const ROUNDS: usize = 10;

/// Longest wait at the 99th percentile, in milliseconds.
const MOST_MS: f64 = 20.0;

/// Measures and reports.
pub(crate) fn measure(report: &mut Report) {
    let head = ["texts", "median, ms", "99th percentile, ms", "longest, ms"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut most = 0.0_f64;
    for size in SIZES {
        let waits = waits(size);
        let place = |share: usize| waits[(waits.len() - 1) * share / 100];
        most = most.max(place(99));
        let cells = [50, 99, 100].map(|share| format!("{:.2}", place(share)));
        rows.push([vec![size.to_string()], cells.to_vec()].concat());
    }
    report.table("`search_content`, one caller, a hundred questions", &rows);
    report.note("The texts are those of the village, again and again, each with words of another.");
    report.check("search, 99th percentile, ms", most, ..=MOST_MS);
}

/// Returns the waits for all answers among so many texts, the shortest first.
fn waits(size: usize) -> Vec<f64> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let data = dir.path().join("data");
    write_site(&data, size);
    let server = servers::karyi(&data, dir.path());
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut waits = Vec::new();
    for round in 0..=ROUNDS {
        for line in QUESTIONS.lines() {
            let (question, _) = line.split_once('\t').unwrap();
            let body =
                json!({"tool_name": "search_content", "input": {"query": question, "limit": 5}});
            let since = Instant::now();
            ask(&mut stream, &calls::request(&body.to_string()));
            waits.extend((round > 0).then(|| since.elapsed().as_secs_f64() * 1000.0));
        }
    }
    waits.sort_by(f64::total_cmp);
    waits
}

/// Sends a request and waits for its whole answer, which must be a good one.
fn ask(stream: &mut TcpStream, request: &str) {
    stream.write_all(request.as_bytes()).unwrap();
    let (mut answer, mut part) = (Vec::new(), vec![0; 64 << 10]);
    while !load::is_whole(&answer) {
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "the server closed the connection");
        answer.extend_from_slice(&part[..read]);
    }
}

/// Writes the village with so many texts.
fn write_site(data: &Path, size: usize) {
    let mut village = karyi_store::import::read(&servers::village()).unwrap();
    let village = village.remove(0);
    let own = &village.contents;
    let contents: Vec<_> = (0..size)
        .map(|number| {
            let (mut content, again) = (own[number % own.len()].clone(), number / own.len());
            if again > 0 {
                let other = &own[(number + again) % own.len()];
                content.id = format!("{}-{again}", content.id);
                content.body = format!("{} {}", content.body, other.title);
            }
            content
        })
        .collect();
    std::fs::create_dir(data).unwrap();
    let files = [
        ("site.json", serde_json::to_value(&village.site)),
        (
            "contents.json",
            serde_json::to_value(json!({"contents": contents})),
        ),
    ];
    for (name, value) in files {
        std::fs::write(data.join(name), value.unwrap().to_string()).unwrap();
    }
}
