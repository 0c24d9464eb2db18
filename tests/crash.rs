//! Killed at any instant, a change of several files is whole or not there once the next one ran.
//!
//! A child changes the same set of files again and again: it edits three, deletes one and makes one.
//! The parent kills it after a random time. The next child lets the library end what was left and
//! looks whether all files are of one state, with nothing else beside them.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use karyi::files::edit::{self, Diffs, EditOptions, EditPair, FileEdit, Masking};
use karyi::files::journal::Journal;
use karyi::files::root::Root;
use karyi::files::transaction::Recorder;

/// Tells a child where to work.
const PLACE: &str = "KARYI_CRASH_PLACE";
/// What a child writes when the files are whole, and after each change.
const READY: u8 = 1;
const CHANGED: u8 = 2;
/// Longest time a child works before it is killed, in microseconds: at first, at least and at most.
const LONGEST_WAITS_US: (u64, u64, u64) = (10_000, 2_000, 1_000_000);
/// Padding that makes writes take a while.
const PADDING: usize = 5_000;

fn pair(find: &str, replace: &str) -> EditPair {
    EditPair::new(find, replace)
}

fn file(path: &str, find: &str, replace: &str) -> FileEdit {
    FileEdit {
        path: path.into(),
        pairs: vec![pair(find, replace)],
        ..FileEdit::default()
    }
}

/// The step from one state to the next.
fn step(state: u64) -> Vec<FileEdit> {
    let (old, new) = (format!("state {state};"), format!("state {};", state + 1));
    let mut gone = file(&format!("flag-{state}"), "", "");
    gone.pairs.clear();
    gone.delete = true;
    vec![
        file("a", &old, &new),
        file("sub/b", &old, &new),
        gone,
        file(&format!("flag-{}", state + 1), "", "x"),
        file("sub/deep/c", &old, &new),
    ]
}

fn apply(place: &Path, recorder: &Recorder, edits: &[FileEdit]) {
    let options = EditOptions {
        cwd: &place.join("work"),
        root: &Root::unconfined(),
        recorder,
        is_private: &|_| false,
        masking: Masking::Part(&|text| text.to_owned()),
        diffs: Diffs::Full,
    };
    edit::apply(edits, options).unwrap();
}

/// Reads the state of every file; panics when they are not of one, or something else lies around.
pub(crate) fn state(place: &Path) -> u64 {
    let work = place.join("work");
    let read = |name: &str| {
        let text = std::fs::read_to_string(work.join(name)).unwrap();
        let (number, rest) = text
            .strip_prefix("state ")
            .unwrap()
            .split_once(';')
            .unwrap();
        assert_eq!(rest, "x".repeat(PADDING), "{name} is torn");
        number.parse::<u64>().unwrap()
    };
    let states = ["a", "sub/b", "sub/deep/c"].map(read);
    assert_eq!(states, [states[0]; 3], "a set is half applied");
    let mut names = Vec::new();
    for directory in ["", "sub", "sub/deep"] {
        for entry in std::fs::read_dir(work.join(directory)).unwrap() {
            names.push(entry.unwrap().file_name().into_string().unwrap());
        }
    }
    names.sort();
    let flag = format!("flag-{}", states[0]);
    assert_eq!(
        names,
        ["a", "b", "c", "deep", &flag, "probe", "sub"],
        "a set is half applied"
    );
    states[0]
}

/// What a child does until it is killed; without a place it is no child.
#[test]
fn child() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let journal = Journal::open(&place.join("state"), None).unwrap();
    let recorder = Recorder {
        journal: Some(Arc::new(journal)),
        ..Recorder::default()
    };
    // Whatever is changed next ends what was left.
    let text = std::fs::read_to_string(place.join("work/probe")).unwrap();
    apply(
        &place,
        &recorder,
        &[file("probe", &text, if text == "0" { "1" } else { "0" })],
    );
    let mut now = state(&place);
    let mut out = std::io::stdout();
    let mut tell = |byte| out.write_all(&[byte]).and_then(|()| out.flush()).unwrap();
    tell(READY);
    loop {
        apply(&place, &recorder, &step(now));
        now += 1;
        tell(CHANGED);
    }
}

/// Returns a directory in memory where there is one: what is killed is a process, not the machine.
pub(crate) fn place() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let place = tempfile::Builder::new()
        .prefix("karyi-crash-")
        .tempdir_in(memory);
    let place = place.unwrap_or_else(|_| tempfile::tempdir().unwrap());
    let work = place.path().join("work");
    std::fs::create_dir_all(work.join("sub/deep")).unwrap();
    for name in ["a", "sub/b", "sub/deep/c"] {
        std::fs::write(work.join(name), format!("state 0;{}", "x".repeat(PADDING))).unwrap();
    }
    std::fs::write(work.join("flag-0"), "x").unwrap();
    std::fs::write(work.join("probe"), "0").unwrap();
    place
}

/// Lets a child work for a random time; returns how many changes it told of.
fn kill_one(place: &Path, wait: Duration) -> usize {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--test-threads=1"])
        .env(PLACE, place)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut byte = [0];
    let is_ready = loop {
        match out.read(&mut byte) {
            Ok(1) if byte[0] == READY => break true,
            Ok(1) => {}
            _ => break false,
        }
    };
    if is_ready {
        // The random instant itself: there is nothing to wait for.
        std::thread::sleep(wait);
    }
    child.kill().unwrap();
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
    let told = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(is_ready, "{}{told}", String::from_utf8_lossy(&rest));
    rest.iter().filter(|byte| **byte == CHANGED).count()
}

/// What came of many kills.
#[derive(Debug, Default)]
struct Counts {
    kills: usize,
    /// Changes that children told of.
    changes: usize,
    /// Kills that met one under way, before it was decided.
    before: usize,
    /// Kills that met one under way after that.
    after: usize,
}

impl Counts {
    /// Whether a quarter of so many kills met a change, and a twentieth each part of one.
    fn met_enough_of(&self, kills: usize) -> bool {
        (self.before + self.after) * 4 > kills
            && self.before * 20 > kills
            && self.after * 20 > kills
    }
}

/// Kills so many children at random instants, which reach over one or two changes, however fast the
/// machine is; on one that is busy up to six times as many, until enough have met a change.
fn kill_many(kills: usize, seed: u64) -> Counts {
    let mut random = seed;
    let place = place();
    let mut counts = Counts::default();
    let (mut longest, least, most) = LONGEST_WAITS_US;
    while counts.kills < kills || (counts.kills < kills * 6 && !counts.met_enough_of(kills)) {
        counts.kills += 1;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let told = kill_one(place.path(), Duration::from_micros(random % longest));
        counts.changes += told;
        longest = match told {
            0 => longest + longest / 32,
            1 | 2 => longest,
            _ => longest - longest / 8,
        };
        longest = longest.clamp(least, most);
        let records = std::fs::read_dir(place.path().join("state/transactions")).unwrap();
        for record in records {
            let path = record.unwrap().path();
            // Under another name it is not whole, and stays for a while.
            if path.extension() != Some("json".as_ref()) {
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            match text.matches('\n').count() {
                2 => counts.after += 1,
                _ => counts.before += 1,
            }
        }
    }
    counts
}

#[test]
fn a_killed_change_is_whole_or_not_there() {
    // Several places at a time, as the children wait for the disk now and then.
    let (places, kills) = match std::env::var_os("KARYI_FULL") {
        Some(_) => (8, 1250),
        None => (2, 50),
    };
    let seed = std::env::var("KARYI_SEED").ok();
    let seed: u64 = seed.and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed);
    let counts: Vec<Counts> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..places)
            .map(|place| scope.spawn(move || kill_many(kills, seed + place)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let sum = |count: fn(&Counts) -> usize| counts.iter().map(count).sum::<usize>();
    let (before, after) = (sum(|count| count.before), sum(|count| count.after));
    let (all, changes) = (sum(|count| count.kills), sum(|count| count.changes));
    println!(
        "seed {seed}: {all} kills, {before} of them inside a change before its decision and {after} after it; \
         {changes} changes completed"
    );
    assert!(
        counts.iter().all(|count| count.met_enough_of(kills)),
        "too few kills met a change: {counts:?}"
    );
}
