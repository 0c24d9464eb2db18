//! The same search over the same tree with the same lines as its result, beside `rg`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::gate::Gate;
use crate::median;

const FILES: usize = 12_000;
const LINES: usize = 150;
const ROUNDS: usize = 11;
/// Most times the time of `rg`.
const MOST: f64 = 1.3;

/// A search, and how many lines match.
const SEARCHES: [(&str, &str, bool); 3] = [
    ("a rare word", "needle", false),
    ("a word in many files", "fn handle_77", false),
    ("a regular expression", r"\bval_\d*999\b.*;$", true),
];

/// Measures and reports.
pub(crate) fn measure(gate: &mut Gate) {
    let directory = tempfile::tempdir().unwrap();
    let bytes = plant(directory.path());
    println!(
        "search of {FILES} files, {} MB, {ROUNDS} rounds",
        bytes >> 20
    );
    for (name, pattern, is_regex) in SEARCHES {
        let mut karyi = karyi(directory.path(), pattern, is_regex);
        let Some(mut rg) = rg(directory.path(), pattern, is_regex, &[]) else {
            println!("{name:<44} left out: there is no rg");
            continue;
        };
        let sort = ["--sort", "path"];
        let mut sorted = rg_command(directory.path(), pattern, is_regex, &sort);
        let expected = lines(&String::from_utf8(output(&mut rg).1).unwrap());
        assert_eq!(found(&output(&mut karyi).1), expected, "{name}");
        let mut times: [Vec<Duration>; 3] = Default::default();
        for _ in 0..ROUNDS {
            for (times, command) in times.iter_mut().zip([&mut karyi, &mut rg, &mut sorted]) {
                times.push(output(command).0);
            }
        }
        let [karyi, rg, sorted] = times.map(median);
        let count = expected.len();
        println!(
            "  {name}, {count} lines: karyi {karyi:.1?}, rg {rg:.1?}, rg --sort path {sorted:.1?}"
        );
        gate.check(
            &format!("{name} ÷ rg"),
            karyi.as_secs_f64() / rg.as_secs_f64(),
            ..=MOST,
        );
    }
}

/// Writes a tree of source files, some ignored and some binary; returns its size.
fn plant(top: &Path) -> usize {
    std::fs::create_dir(top.join(".git")).unwrap();
    std::fs::write(top.join(".gitignore"), "*.log\nout/\n").unwrap();
    let mut bytes = 0;
    for file in 0..FILES {
        let mut text = String::new();
        for line in 0..LINES {
            let number = (file * 7919 + line * 104_729) % 100_003;
            writeln!(
                text,
                "    let val_{number} = handle_{}({line}, \"text\");",
                number % 997
            )
            .unwrap();
        }
        if file % 1000 == 0 {
            text.push_str("// a needle\n");
        }
        if file % 10 == 0 {
            writeln!(text, "fn handle_77{}() {{}}", file % 7).unwrap();
        }
        let extension = ["rs", "rs", "txt", "log"][file % 4];
        let directory = top.join(format!("d{}/e{}", file % 40, file % 13));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("f{file}.{extension}")), &text).unwrap();
        bytes += text.len();
    }
    std::fs::write(top.join("data.bin"), b"needle\0\n".repeat(1000)).unwrap();
    bytes
}

fn karyi(top: &Path, pattern: &str, is_regex: bool) -> Command {
    let attribute = format!("regex=\"{is_regex}\" max=\"10000\"");
    let block = format!("<tools><read><search pattern=\"{pattern}\" {attribute}/></read></tools>");
    let mut command = Command::new(env!("CARGO_BIN_EXE_karyi"));
    command.args(["run", "--no-rc", "--json", "-c", &block]);
    command.current_dir(top);
    command
}

/// Returns the peer when it is there.
fn rg(top: &Path, pattern: &str, is_regex: bool, more: &[&str]) -> Option<Command> {
    let version = Command::new("rg").arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&version.stdout);
    println!("  beside {}", version.lines().next().unwrap_or_default());
    Some(rg_command(top, pattern, is_regex, more))
}

fn rg_command(top: &Path, pattern: &str, is_regex: bool, more: &[&str]) -> Command {
    let mut command = Command::new("rg");
    command.args(["--no-config", "-n", "--no-heading", "--color", "never"]);
    command.args(more);
    command.args((!is_regex).then_some("-F"));
    command.args(["-e", pattern]);
    command.current_dir(top);
    command
}

fn output(command: &mut Command) -> (Duration, Vec<u8>) {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output().unwrap();
    (start.elapsed(), output.stdout)
}

/// Returns the lines of a report, which must all be shown.
fn found(report: &[u8]) -> Vec<String> {
    let report: serde_json::Value = serde_json::from_slice(report).unwrap();
    let search = &report["results"][0]["searches"][0];
    let omitted = &search["omitted_matches"];
    assert!(omitted.is_null(), "{omitted} matches are not shown");
    lines(search["output"].as_str().unwrap())
}

fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}
