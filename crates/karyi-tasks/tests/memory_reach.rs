//! Memory and times of the search in 10 MB of memory: `KARYI_FULL=1 cargo test --release -p karyi-tasks -- reach`.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use karyi_tasks::memory;
use karyi_tasks::state_directory::StateDirectory;

use crate::harness::{Home, Random};
use crate::processes::{child, parameters};

/// Notes, with a hundred passages each.
const NOTES: u64 = 200;
/// Most memory of the passages, in KiB.
const MOST_KIB: u64 = 60 << 10;
/// Longest time until they can be searched, and of one search.
const LONGEST: [Duration; 2] = [Duration::from_secs(1), Duration::from_millis(30)];

/// Writes 20,000 passages.
fn write_notes(state: &StateDirectory) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut bytes = 0;
    for note in 0..NOTES {
        let mut text = format!("# note {note}\n\n");
        for _ in 0..100 {
            for _ in 0..12 {
                let sign = 0x4e00 + u32::try_from(random.below(4096)).unwrap();
                let sign = char::from_u32(sign).unwrap();
                let word = random.below(1024);
                write!(text, "部署{sign}超时 word{word} {sign}了云函数 ").unwrap();
            }
            text.push_str("\n\n");
        }
        bytes += text.len();
        let name = format!("memory/2026-01-{:02}-{note}.md", note % 28 + 1);
        fs::write(state.path().join(name), text).unwrap();
    }
    assert!((9_500_000..11_500_000).contains(&bytes), "{bytes}");
}

/// Returns a size of this process in KiB.
fn size(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let words = line.unwrap().trim_start_matches(':').split_whitespace();
    words.take(1).collect::<String>().parse().unwrap()
}

#[test]
fn child_that_searches() {
    let Some((path, _)) = parameters() else {
        return;
    };
    let figures = measure(&path.join("state"));
    fs::write(path.join("figures"), figures).unwrap();
}

/// Searches, and returns memory and times as text.
fn measure(path: &Path) -> String {
    let state = StateDirectory::open(path).unwrap();
    let find = |query: &str| {
        let start = Instant::now();
        let now = Some(Timestamp::now());
        let hits = memory::search(&state, query, None, now, None).unwrap();
        (hits.len(), start.elapsed())
    };
    let before = size("VmRSS");
    let (hits, first) = find("部署超时");
    assert_eq!(hits, 5);
    let (kept, peak) = (size("VmRSS") - before, size("VmHWM") - before);
    let queries = ["部署超时", "word17", "云函数 deploy word3 超时", "none"];
    let mut times: Vec<Duration> = (0..80).map(|turn| find(queries[turn % 4]).1).collect();
    times.sort();
    let (middle, longest) = (times[40], times[79]);
    let figures = format!(
        "{kept} KiB, at most {peak} KiB; first search {first:.2?}; search {middle:.2?}, at most {longest:.2?}"
    );
    assert!(peak <= MOST_KIB, "{figures}");
    // Times of a program that is not optimised say nothing.
    if !cfg!(debug_assertions) {
        assert!(first <= LONGEST[0] && middle <= LONGEST[1], "{figures}");
    }
    figures
}

#[test]
fn ten_megabytes_are_searched_within_reach() {
    if std::env::var_os("KARYI_FULL").is_none() {
        return;
    }
    let home = Home::new();
    write_notes(&home.state);
    let mut child = child("memory_reach::child_that_searches", &home, "");
    assert!(child.wait().unwrap().success());
    let figures = fs::read_to_string(home.temp.path().join("figures"));
    println!("{}", figures.unwrap());
}
