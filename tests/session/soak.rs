//! One session for very many commands: nothing may grow with their number.
//!
//! It runs in a process of its own, this test binary started again, so that no other test's
//! descriptors and threads are counted. `KARYI_FULL=1` runs 20,000 commands, `KARYI_SOAK=N` N of
//! them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use karyi::outcome::Status;
use karyi::pty::Background;

use super::support::{Shell, run};

const COMMANDS: u64 = 20_000;
/// Tells the process of its own how many commands it is to run.
const CHILD: &str = "KARYI_SOAK_CHILD";
/// How many times counts are taken.
const READINGS: u64 = 20;
/// How often the shell ends and starts again.
const RESTART_EVERY: u64 = 10_000;
const INPUT_EVERY: u64 = 1_000;
/// Most growth of this process after the warm-up: what its allocator leaves between its pages.
const MOST_OWN_GROWTH_KIB: u64 = 1_024;
/// Most growth of the shell, which keeps the last status of every background process it had until
/// there are as many as the system allows a user.
const MOST_SHELL_GROWTH_KIB: u64 = 8_192;
/// Copies of the shell's descriptors that a session keeps only while nothing speaks against them.
const KEPT_COPIES: usize = 2;
/// How long processes that end by themselves may take to be gone.
const SETTLING: Duration = Duration::from_secs(20);

/// What could grow.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Counts {
    own_kib: u64,
    shell_kib: u64,
    /// What they are of, without numbers, in order.
    descriptors: Vec<String>,
    threads: usize,
    files: usize,
    processes: usize,
}

#[test]
fn nothing_grows_with_the_number_of_commands() {
    if let Some(count) = number(CHILD) {
        return run(soak(count));
    }
    let asked = number("KARYI_SOAK");
    if asked.is_none() && std::env::var_os("KARYI_FULL").is_none() {
        println!("skipped: the soak (it runs with KARYI_FULL=1)");
        return;
    }
    let name = "session::soak::nothing_grows_with_the_number_of_commands";
    let count = asked.unwrap_or(COMMANDS).to_string();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture"]);
    let output = command
        .env(CHILD, count)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{told}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{errors}");
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

async fn soak(count: u64) {
    let shell = Shell::bash().await;
    let start = Instant::now();
    let mut first = None;
    for number in 1..=count {
        one_command(&shell, number).await;
        // Not while it warms up, to which the first restart belongs, and in the middle between two, where the shell has not just been
        // started: what is kept of it is opened by its first commands.
        let every = (count / READINGS).max(1);
        let is_warm = number > RESTART_EVERY.min(count / 2);
        if is_warm && number % every == every / 2 {
            let counts = settled(&shell).await;
            println!("{number} commands in {:.0?}: {counts:?}", start.elapsed());
            compare(first.get_or_insert_with(|| counts.clone()), &counts);
        }
    }
    shell.session.close().await;
}

/// Checks counts against the first ones, which were taken after the warm-up.
fn compare(first: &Counts, now: &Counts) {
    let grown = |part: fn(&Counts) -> u64| part(now).saturating_sub(part(first));
    assert!(
        grown(|counts| counts.own_kib) <= MOST_OWN_GROWTH_KIB,
        "{first:?} {now:?}"
    );
    assert!(
        grown(|counts| counts.shell_kib) <= MOST_SHELL_GROWTH_KIB,
        "{first:?} {now:?}"
    );
    let more = now
        .descriptors
        .len()
        .saturating_sub(first.descriptors.len());
    assert!(more <= KEPT_COPIES, "{first:?} {now:?}");
    let exact = Counts {
        own_kib: now.own_kib,
        shell_kib: now.shell_kib,
        descriptors: now.descriptors.clone(),
        ..first.clone()
    };
    assert_eq!(*now, exact);
}

async fn one_command(shell: &Shell, number: u64) {
    if number.is_multiple_of(RESTART_EVERY) {
        let seen = shell.command("exit 3").await;
        assert_eq!(seen.brief(), (Status::Failed, Some(3), ""));
        assert!(seen.progress.restarted.is_some());
    } else if number.is_multiple_of(INPUT_EVERY) {
        let seen = shell.command("read -r line && echo \"got $line\"").await;
        assert_eq!(seen.brief(), (Status::AwaitingInput, None, ""));
        let seen = shell.input("it\n").await;
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "it\ngot it\n"));
    } else {
        let (script, exit_code, output) = mixed(number);
        let seen = shell.command(&script).await;
        let printed = without_notices(&seen.output);
        let expected = (Some(exit_code), output);
        assert_eq!((seen.exit_code, printed), expected, "{script:?}");
    }
}

/// Leaves out what the shell says of a background job whenever it sees its end.
fn without_notices(output: &str) -> String {
    let lines = output.split_inclusive('\n');
    lines.filter(|line| !line.starts_with('[')).collect()
}

/// Returns a script, its exit status and its output.
fn mixed(number: u64) -> (String, i32, String) {
    let silent = |script: String| (script, 0, String::new());
    match number % 10 {
        4 => silent(format!("export V{}={number}", number % 7)),
        5 => {
            let script = format!("f() {{ echo \"$1 {number}\"; }}; f called");
            (script, 0, format!("called {number}\n"))
        }
        6 => ("printf '%1024s' x".into(), 0, format!("{:>1024}", "x")),
        7 => ("test -e /no/such/file".into(), 1, String::new()),
        8 if number % 40 == 8 => silent("sleep 0 &".into()),
        // Nobody but this process can collect a process without a parent.
        8 if number % 40 == 28 => silent("(sleep 0 &)".into()),
        9 => {
            let script = format!("read -r line <<END\nline {number}\nEND\necho \"$line\"");
            (script, 0, format!("line {number}\n"))
        }
        _ => silent("true".into()),
    }
}

/// Counts once nothing is left of the background commands.
async fn settled(shell: &Shell) -> Counts {
    let until = Instant::now() + SETTLING;
    loop {
        shell.command("wait").await;
        drop(shell.session.take_background());
        let counts = take(shell);
        if counts.processes == 1 {
            return counts;
        }
        if Instant::now() > until {
            let own = std::process::id().to_string();
            descendants(&own).iter().for_each(|pid| show(pid));
            return counts;
        }
    }
}

fn show(pid: &str) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    println!("left: {}", stat.unwrap_or_default().trim_end());
}

fn take(shell: &Shell) -> Counts {
    let own = std::process::id().to_string();
    let descendants = descendants(&own);
    let sizes = descendants.iter().map(|pid| resident_kib(pid));
    let shell_kib = sizes.max().unwrap_or(0);
    Counts {
        own_kib: resident_kib(&own),
        shell_kib,
        descriptors: descriptors(),
        threads: entries(Path::new("/proc/self/task")),
        files: files(&shell.home.path().join("run")),
        processes: descendants.len(),
    }
}

fn resident_kib(pid: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

/// Returns the children of a process and theirs, ended ones that nobody collected included.
fn descendants(pid: &str) -> Vec<String> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            found.push(child.to_owned());
            found.extend(descendants(child));
        }
    }
    found
}

fn descriptors() -> Vec<String> {
    let links = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
    let mut found: Vec<String> = targets
        .map(|target| {
            target
                .to_string_lossy()
                .replace(|c: char| c.is_ascii_digit(), "")
        })
        .collect();
    found.sort();
    found
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

fn files(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let count = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => 1 + files(&entry.path()),
        _ => 1,
    };
    entries.map(count).sum()
}

/// Who never asks for what was left in the background holds a bounded number of descriptors, and none
/// of what has ended.
#[test]
fn jobs_that_nobody_asks_for_hold_few_descriptors() {
    run(async {
        let shell = Shell::bash().await;
        for _ in 0..5 {
            let pairs = "for i in {1..32}; do sleep 500 | sleep 500 & done";
            assert_eq!(shell.command(pairs).await.exit_code, Some(0));
        }
        let held =
            |left: &[(u64, Background)]| left.iter().map(|(_, job)| job.size()).sum::<usize>();
        let left = shell.session.take_background();
        assert_eq!((left.len(), held(&left)), (128, 256));
        assert_eq!(shell.session.take_omitted_background(), 64);
        assert_eq!(
            shell
                .command("for group in $(jobs -p); do kill -- -$group; done; wait")
                .await
                .exit_code,
            Some(0)
        );
        assert_eq!(held(&left), 0);
        shell.session.close().await;
    });
}
