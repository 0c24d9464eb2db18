//! How long `true` takes from being asked for to its result, by every way to run it.

use std::process::{Command, Stdio};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::peers::{Bare, Expectrl, Pexpect, Rexpect, Tmux, TypedShell};
use crate::report::Report;
use crate::samples::Samples;
use crate::terminal::{DrivenSession, Modes, Terminal};

/// Most times as long as one byte through a terminal and back a command may take. The aim is 2.5; the
/// byte's own time is four times as long or as short with the mood of the scheduler, so the gate
/// leaves room for that.
const MOST_OF_BYTE: f64 = 7.0;
/// Most times as long as the same command typed into bash, which meets the same scheduler.
const MOST_OF_TYPED: f64 = 1.5;
/// Most times as long as the same line given to bash without karyi.
const MOST_OF_BARE: f64 = 2.0;
/// Least times as long as `true` expectrl must take.
const LEAST_OF_EXPECTRL: f64 = 1.0;
/// Least times as long as a command a new shell must take. The aim is 10.
const LEAST_OF_SPAWN: f64 = 7.0;
const ROUNDS: usize = 40;

/// Does something so many times and keeps how long each took.
type Act = Box<dyn FnMut(usize, &mut Samples)>;

/// One way to run a command.
struct Contestant {
    name: &'static str,
    per_round: usize,
    act: Act,
    samples: Samples,
}

impl Contestant {
    fn new(name: &'static str, per_round: usize, mut act: impl FnMut() + 'static) -> Self {
        let act = move |count: usize, samples: &mut Samples| {
            for _ in 0..count {
                samples.time(&mut act);
            }
        };
        Self {
            name,
            per_round,
            act: Box::new(act),
            samples: Samples::default(),
        }
    }
}

/// Measures and reports, on one processor: the time that a sleeping processor takes to wake differs from machine to
/// machine, outweighs the work, and falls on whoever the scheduler puts on two.
pub(crate) fn measure(report: &mut Report) {
    let all = sched_getaffinity(Pid::from_raw(0)).unwrap();
    if !crate::has("--all-processors") {
        let mut one = CpuSet::new();
        let first = (0..CpuSet::count()).find(|processor| all.is_set(*processor).unwrap());
        one.set(first.unwrap()).unwrap();
        sched_setaffinity(Pid::from_raw(0), &one).unwrap();
    }
    measure_here(report);
    sched_setaffinity(Pid::from_raw(0), &all).unwrap();
}

fn measure_here(report: &mut Report) {
    let (mut contestants, missing) = contestants();
    for _ in 0..ROUNDS {
        for contestant in &mut contestants {
            (contestant.act)(contestant.per_round, &mut contestant.samples);
        }
    }
    let times: Vec<(&str, f64)> = contestants
        .iter()
        .map(|contestant| (contestant.name, contestant.samples.median()))
        .collect();
    let of = |name: &str| {
        let found = times.iter().find(|(other, _)| *other == name);
        found.map_or(f64::NAN, |(_, time)| *time)
    };
    let (byte, karyi) = (of(BYTE), of(KARYI));
    let mut rows = vec![
        ["", "median", "÷ one byte", "÷ karyi"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(times.iter().map(|(name, time)| {
        vec![
            (*name).to_owned(),
            microseconds(*time),
            format!("{:.1}", time / byte),
            format!("{:.1}", time / karyi),
        ]
    }));
    report.table("Round trip of `true`", &rows);
    if !missing.is_empty() {
        report.note(&format!("Not there: {}.", missing.join(", ")));
    }
    if crate::has("--alone") {
        return;
    }
    report.check(
        "`true` / the same typed",
        karyi / of(TYPED),
        ..=MOST_OF_TYPED,
    );
    report.check("`true` / one byte", karyi / byte, ..=MOST_OF_BYTE);
    report.check(
        "`true` / the same line without karyi",
        karyi / of(BARE),
        ..=MOST_OF_BARE,
    );
    report.check(
        "expectrl / `true`",
        of(EXPECTRL) / karyi,
        LEAST_OF_EXPECTRL..,
    );
    report.check("bash -c true / `true`", of(SPAWN) / karyi, LEAST_OF_SPAWN..);
}

const BYTE: &str = "one byte through a terminal and back";
const KARYI: &str = "karyi";
const BARE: &str = "the same line without karyi";
const TYPED: &str = "typed into bash";
const EXPECTRL: &str = "expectrl";
const SPAWN: &str = "`bash -c true`";

/// Returns who takes part, and who is not on this machine.
fn contestants() -> (Vec<Contestant>, Vec<String>) {
    let mut echo = Terminal::start(Modes::Raw, "dd", &["bs=1", "status=none"]);
    let driven = DrivenSession::start();
    let mut bare = Bare::start();
    let mut found = vec![
        Contestant::new(BYTE, 50, move || ping(&mut echo)),
        Contestant::new(KARYI, 50, move || {
            let progress = driven.command("true", Box::new(|_| {}));
            assert_eq!(progress.exit_code, Some(0));
        }),
        Contestant::new(BARE, 50, move || bare.trip()),
    ];
    if crate::has("--alone") {
        return (found, Vec::new());
    }
    let mut missing = Vec::new();
    let mut typed = TypedShell::start(&[]);
    found.push(Contestant::new(TYPED, 20, move || typed.trip()));
    let mut typed = TypedShell::start(&["--noediting"]);
    let name = "typed into bash without line editor";
    found.push(Contestant::new(name, 20, move || typed.trip()));
    let mut expectrl = Expectrl::start();
    found.push(Contestant::new(EXPECTRL, 10, move || expectrl.trip()));
    let mut rexpect = Rexpect::start();
    found.push(Contestant::new("rexpect", 1, move || rexpect.trip()));
    add_pexpect(&mut found, &mut missing);
    match Tmux::start() {
        Some(tmux) => found.push(Contestant::new("tmux", 2, move || tmux.trip())),
        None => missing.push("tmux".to_owned()),
    }
    found.push(Contestant::new(SPAWN, 3, || spawn(&["-c", "true"])));
    let name = "`bash -lc true`";
    found.push(Contestant::new(name, 3, || spawn(&["-lc", "true"])));
    (found, missing)
}

fn add_pexpect(found: &mut Vec<Contestant>, missing: &mut Vec<String>) {
    let ways = [
        ("pexpect", 1, ""),
        ("pexpect without its delay", 10, "fast"),
    ];
    for (name, per_round, way) in ways {
        let Some(mut pexpect) = Pexpect::start(way) else {
            missing.push(name.to_owned());
            continue;
        };
        found.push(Contestant {
            name,
            per_round,
            act: Box::new(move |count, samples| pexpect.trips(count, samples)),
            samples: Samples::default(),
        });
    }
}

fn ping(echo: &mut Terminal) {
    let mut byte = [0];
    echo.writer.write_all(b"x").unwrap();
    echo.reader.read_exact(&mut byte).unwrap();
    assert_eq!(byte, *b"x");
}

fn spawn(arguments: &[&str]) {
    let mut command = Command::new("bash");
    command.args(arguments).stdin(Stdio::null());
    assert!(command.status().unwrap().success());
}

fn microseconds(seconds: f64) -> String {
    let digits = if seconds < 1e-3 { 1 } else { 0 };
    format!("{:.digits$} µs", seconds * 1e6)
}
