//! TODO files under eight processes that are killed at random instants: whole, and no entry lost or doubled.
//!
//! Each child adds and completes entries, and tells its parent of each change once it is made. The parent kills one
//! after the other and starts others in their place. In the end every entry that was told of is there once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use karyi::error::ErrorCode;
use karyi::files::journal::Journal;
use karyi::files::transaction::Recorder;
use karyi::notebook::todo_entry::{TodoEntry, minute};
use karyi::notebook::todo_file::{TodoFile, TodoKind};
use karyi::notebook::todo_store::{TodoRecorder, TodoStore};

/// Tells a child where to work, and its number.
const PLACE: &str = "KARYI_TODO_PLACE";
const NUMBER: &str = "KARYI_TODO_NUMBER";
/// Processes that work at a time.
const CHILDREN: usize = 8;
/// Kills after which a new directory is used: its journal grows with every change.
const KILLS_OF_A_PLACE: usize = 100;
/// Longest time between two kills, in microseconds.
const LONGEST_WAIT_US: u64 = 8_000;
/// Entries that are open at a time, beyond which children complete more.
const MANY_OPEN: usize = 40;
/// What the files hold besides entries.
const COMMENT: &str = "<!--\n- [ ] [Created](2026-01-01 00:00) | an example\n-->\n";

fn recorder(place: &Path) -> Recorder {
    Recorder {
        journal: Some(Arc::new(Journal::open(&place.join("state"), None).unwrap())),
        ..Recorder::default()
    }
}

fn journal(recorder: &Recorder) -> TodoRecorder<'_> {
    TodoRecorder {
        recorder,
        is_private: &|_| false,
    }
}

fn entry(content: String) -> TodoEntry {
    TodoEntry {
        created_at: minute(Timestamp::now()),
        done_at: None,
        chat_id: None,
        content,
    }
}

/// Xorshift, so that a seed repeats a run as far as the system lets it.
fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

/// What a child does until it is killed; without a place it is no child.
#[test]
fn child() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let number: u64 = std::env::var(NUMBER).unwrap().parse().unwrap();
    let (recorder, store) = (
        recorder(&place),
        TodoStore::new(&place.join("todo")).unwrap(),
    );
    let mut out = std::io::stdout();
    let mut tell = |line: String| {
        out.write_all(line.as_bytes())
            .and_then(|()| out.flush())
            .unwrap()
    };
    let mut random = number + 1;
    tell("ready\n".to_owned());
    for count in 0_u64.. {
        let content = format!("work {number}-{count}");
        store
            .add(
                journal(&recorder),
                entry(content.clone()),
                &[],
                Timestamp::now(),
            )
            .unwrap();
        tell(format!("added {content}\n"));
        let open = store.open_entries().unwrap();
        let completed = if open.len() > MANY_OPEN { 3 } else { 1 };
        for _ in 0..completed {
            let chosen = usize::try_from(next(&mut random)).unwrap() % open.len().max(1);
            let Some(chosen) = open.get(chosen) else {
                break;
            };
            match store.complete(journal(&recorder), chosen, Timestamp::now()) {
                Ok(change) => tell(format!("completed {}\n", change.entry.content)),
                // Another child was faster.
                Err(error) => assert_eq!(error.code, ErrorCode::NotFound, "{error}"),
            }
        }
    }
}

/// A child, and what it tells.
struct Worker {
    child: Child,
    lines: Receiver<String>,
    reader: JoinHandle<()>,
    is_ready: bool,
}

impl Worker {
    fn start(place: &Path, number: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "notebook::child",
                "--test-threads=1",
                "--nocapture",
            ])
            .env(PLACE, place)
            .env(NUMBER, number.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        let reader = std::thread::spawn(move || {
            for line in out.lines() {
                // A line that a kill cut tells of nothing.
                let _ = line.map(|line| sender.send(line));
            }
        });
        Self {
            child,
            lines,
            reader,
            is_ready: false,
        }
    }

    /// Waits until it works.
    fn wait(&mut self) {
        while !self.is_ready {
            self.is_ready = self.lines.recv().unwrap().ends_with("ready");
        }
    }

    /// Kills it, and adds what it told to the changes.
    fn kill(mut self, told: &mut Told) {
        let is_alive = self.child.try_wait().unwrap().is_none();
        assert!(is_alive, "a child failed");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.reader.join().unwrap();
        for line in self.lines.try_iter() {
            match line.split_once(' ') {
                Some(("added", content)) => _ = told.added.insert(content.to_owned()),
                Some(("completed", content)) => _ = told.completed.insert(content.to_owned()),
                _ => {}
            }
        }
    }
}

/// Changes that children told of.
#[derive(Default)]
struct Told {
    added: BTreeSet<String>,
    completed: BTreeSet<String>,
}

/// Lets children work in a new directory until so many were killed, and checks the files. Returns the number of
/// changes.
fn kill_in_one_place(kills: usize, random: &mut u64) -> usize {
    let memory = Path::new("/dev/shm");
    let place = tempfile::Builder::new()
        .prefix("karyi-todo-")
        .tempdir_in(memory);
    let place = place.unwrap_or_else(|_| tempfile::tempdir().unwrap());
    std::fs::create_dir(place.path().join("todo")).unwrap();
    for kind in [TodoKind::Open, TodoKind::Done] {
        let path = place.path().join("todo").join(kind.file_name());
        std::fs::write(path, format!("# Mine\n\n{COMMENT}\n## Below\n")).unwrap();
    }
    let mut told = Told::default();
    let mut started = 0;
    let mut start = || {
        started += 1;
        Worker::start(place.path(), started)
    };
    let mut workers: Vec<Worker> = (0..CHILDREN).map(|_| start()).collect();
    for _ in 0..kills {
        let chosen = usize::try_from(next(random)).unwrap() % workers.len();
        workers[chosen].wait();
        // The random instant itself: there is nothing to wait for.
        std::thread::sleep(Duration::from_micros(next(random) % LONGEST_WAIT_US));
        workers.swap_remove(chosen).kill(&mut told);
        workers.push(start());
    }
    for mut worker in workers {
        worker.wait();
        worker.kill(&mut told);
    }
    check(place.path(), &told);
    told.added.len() + told.completed.len()
}

/// Checks that the next change finds all files whole, and every entry that was told of once.
fn check(place: &Path, told: &Told) {
    let store = TodoStore::new(&place.join("todo")).unwrap();
    store
        .add(
            journal(&recorder(place)),
            entry("last".to_owned()),
            &[],
            Timestamp::now(),
        )
        .unwrap();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut contents = Vec::new();
    for kind in [TodoKind::Open, TodoKind::Done] {
        let text = std::fs::read_to_string(store.path(kind)).unwrap();
        let file = TodoFile::parse(kind, text.clone());
        let lines: Vec<String> = file
            .entries()
            .iter()
            .map(|entry| entry.line() + "\n")
            .collect();
        let rest = lines
            .iter()
            .fold(text, |text, line| text.replacen(line.as_str(), "", 1));
        // The first entry has put an empty line between the entries and the text below.
        assert_eq!(
            rest,
            format!("# Mine\n\n{COMMENT}\n\n## Below\n"),
            "{kind:?}"
        );
        let names: BTreeSet<String> = file
            .entries()
            .iter()
            .map(|entry| entry.content.clone())
            .collect();
        for name in file.entries().iter().map(|entry| entry.content.clone()) {
            *counts.entry(name).or_default() += 1;
        }
        contents.push(names);
    }
    let doubled: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    assert!(doubled.is_empty(), "doubled: {doubled:?}");
    let lost: Vec<_> = told
        .added
        .iter()
        .filter(|name| !counts.contains_key(*name))
        .collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    let undone: Vec<_> = told.completed.difference(&contents[1]).collect();
    assert!(undone.is_empty(), "open again: {undone:?}");
    let mut others: Vec<String> = std::fs::read_dir(place.join("todo"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    others.sort();
    assert_eq!(others, ["TODO.DONE.md", "TODO.md"]);
}

#[test]
fn killed_processes_lose_and_double_no_entry() {
    let places = match std::env::var_os("KARYI_FULL") {
        Some(_) => 20,
        None => 4,
    };
    let seed = std::env::var("KARYI_SEED").ok();
    let seed: u64 = seed.and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed);
    let mut random = seed;
    let changes: usize = (0..places)
        .map(|_| kill_in_one_place(KILLS_OF_A_PLACE, &mut random))
        .sum();
    println!(
        "seed {seed}: {} kills, {changes} changes",
        places * KILLS_OF_A_PLACE
    );
}
