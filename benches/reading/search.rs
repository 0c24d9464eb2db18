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

/// A search of the large tree: what it is, its pattern, and whether that is a regular expression.
const SEARCHES: [(&str, &str, bool); 3] = [
    ("a rare word", "needle", false),
    ("a word in many files", "fn handle_77", false),
    ("a regular expression", r"\bval_\d*999\b.*;$", true),
];

/// The small tree is as large as a small project, and every tenth line of it matches.
const SMALL_FILES: usize = 480;
const SMALL_LINES: usize = 200;
/// A search takes milliseconds there, and some rounds are disturbed.
const SMALL_ROUNDS: usize = 41;

/// Measures and reports.
pub(crate) fn measure(gate: &mut Gate) {
    let Some(version) = version() else {
        println!("searches are left out: there is no rg");
        return;
    };
    println!("searches beside {version}");
    let directory = tempfile::tempdir().unwrap();
    let bytes = plant(directory.path());
    println!("{FILES} files, {} MB, {ROUNDS} rounds", bytes >> 20);
    for (name, pattern, is_regex) in SEARCHES {
        let search = Search {
            top: directory.path(),
            pattern,
            is_regex,
        };
        search.compare(gate, name, "json", ROUNDS);
    }
}

/// Measures searches of a small tree with many lines as their result: what a line costs from the file
/// to the report, and the start of the program, weigh more than the search.
pub(crate) fn measure_lines(gate: &mut Gate) {
    if version().is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let bytes = plant_small(directory.path());
    println!(
        "{SMALL_FILES} files, {} MB, {SMALL_ROUNDS} rounds",
        bytes >> 20
    );
    let search = Search {
        top: directory.path(),
        pattern: "let",
        is_regex: false,
    };
    for format in ["json", "xml", "text"] {
        let name = format!("many lines as {format}");
        search.compare(gate, &name, format, SMALL_ROUNDS);
    }
}

/// Returns what the peer says of itself when it is there.
fn version() -> Option<String> {
    let output = Command::new("rg").arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().map(str::to_owned)
}

struct Search<'a> {
    top: &'a Path,
    pattern: &'a str,
    is_regex: bool,
}

impl Search<'_> {
    /// Measures karyi and its peer by turns; both must give the same lines.
    fn compare(&self, gate: &mut Gate, name: &str, format: &str, rounds: usize) {
        let mut karyi = self.karyi(format);
        let mut rg = self.rg(&[]);
        let mut sorted = self.rg(&["--sort", "path"]);
        let expected = lines(&String::from_utf8(output(&mut rg).1).unwrap());
        assert_eq!(found(format, output(&mut karyi).1), expected, "{name}");
        let mut times: [Vec<Duration>; 3] = Default::default();
        for _ in 0..rounds {
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

    fn karyi(&self, format: &str) -> Command {
        let Self {
            pattern, is_regex, ..
        } = self;
        let attributes = format!("regex=\"{is_regex}\" max=\"10000\"");
        let block =
            format!("<tools><read><search pattern=\"{pattern}\" {attributes}/></read></tools>");
        let mut command = Command::new(env!("CARGO_BIN_EXE_karyi"));
        command.args(["run", "--no-rc", "--format", format, "-c", &block]);
        command.current_dir(self.top);
        command
    }

    fn rg(&self, more: &[&str]) -> Command {
        let mut command = Command::new("rg");
        command.args(["--no-config", "-n", "--no-heading", "--color", "never"]);
        command.args(more);
        command.args((!self.is_regex).then_some("-F"));
        command.args(["-e", self.pattern, "."]);
        command.current_dir(self.top);
        command
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

/// Writes a tree of short source files; returns its size.
fn plant_small(top: &Path) -> usize {
    std::fs::create_dir(top.join(".git")).unwrap();
    let mut bytes = 0;
    for file in 0..SMALL_FILES {
        let mut text = String::new();
        for line in 0..SMALL_LINES {
            let number = (file * 7919 + line * 104_729) % 100_003;
            let line = match line % 10 {
                0 => format!("\n    fn name_{number}(&self) -> Option<&str> {{"),
                3 => format!("        let name_{number} = self.names.get(\"{line}\")?;"),
                6 => format!("        // What stands here says why, as in §{number}."),
                9 => "    }".to_owned(),
                _ => format!("        self.look(name_{number}, {line}); // and so on"),
            };
            text.push_str(&line);
            text.push('\n');
        }
        let directory = top.join(format!("src/d{}/e{}", file % 12, file % 5));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("file_{file}.rs")), &text).unwrap();
        bytes += text.len();
    }
    bytes
}

fn output(command: &mut Command) -> (Duration, Vec<u8>) {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output().unwrap();
    (start.elapsed(), output.stdout)
}

/// Returns the lines that a report shows, all of which must be.
fn found(format: &str, report: Vec<u8>) -> Vec<String> {
    let report = String::from_utf8(report).unwrap();
    assert!(!report.contains("omitted_matches"), "some are not shown");
    match format {
        "json" => {
            let report: serde_json::Value = serde_json::from_str(&report).unwrap();
            let output = &report["results"][0]["searches"][0]["output"];
            lines(output.as_str().unwrap())
        }
        "xml" => {
            let report = roxmltree::Document::parse(&report).unwrap();
            let mut nodes = report.descendants();
            let output = nodes.find(|node| node.has_tag_name("output")).unwrap();
            lines(output.text().unwrap_or_default())
        }
        _ => {
            // The first line names the call, and the last one counts.
            let (_, rest) = report.split_once('\n').unwrap();
            let (output, _) = rest.trim_end().rsplit_once('\n').unwrap();
            lines(output)
        }
    }
}

fn lines(text: &str) -> Vec<String> {
    let short = |line: &str| line.strip_prefix("./").unwrap_or(line).to_owned();
    let mut lines: Vec<String> = text.lines().map(short).collect();
    lines.sort_unstable();
    lines
}
