//! Which calls overlap: never two that could see each other, however the files are named, however
//! the scheduler decides, and whatever becomes of links meanwhile.

use std::cell::{Cell, RefCell};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use karyi::exec::plan::{Claim, Planner};
use karyi::secret::Template;
use karyi::tool::Effect;
use karyi::tool::effect::Access;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::prop_assert_eq;

use crate::harness::{Karyi, results};
use crate::toolsxml::choices::{Choices, check_all};

/// Names of files: plain ones, links, a hard link, through links to directories, missing ones.
const FILES: &[&str] = &[
    "a", "d/b", "d/hard", "to_b", "to_d/b", "d/../a", "to_new", "d/new", "to_d/new", "moved/b",
    "moved", "other/x",
];
const DIRECTORIES: &[&str] = &["", "d", "to_d", "moved", "other"];

/// A call of the model: what it does when it starts, and what when it ends.
#[derive(Debug, Clone)]
enum Call {
    /// Reads a file at its start and writes it, with a word more, at its end.
    Append(&'static str),
    /// Reads a file at its end.
    Read(&'static str),
    /// Lists everything below a directory at its end.
    List(&'static str),
    /// Moves a file, directory or link, itself and not what it leads to.
    Move(&'static str, &'static str),
    /// Changes the directory, as only the session does.
    Session(&'static str),
}

impl Call {
    fn any(choices: &mut Choices<'_>) -> Self {
        match choices.below(10) {
            0..=3 => Self::Append(choices.pick(FILES)),
            4..=6 => Self::Read(choices.pick(FILES)),
            7 => Self::List(choices.pick(DIRECTORIES)),
            8 => Self::Move(
                choices.pick(&["to_d", "to_b", "to_new"]),
                choices.pick(&["moved", "to_d"]),
            ),
            _ => Self::Session(choices.pick(&["d", "..", "."])),
        }
    }

    fn effect(&self) -> Effect {
        let path = |path: &str| Template::new(if path.is_empty() { "." } else { path });
        match self {
            Self::Append(name) => Effect::Files(vec![Access::write(&path(name))]),
            Self::Read(name) | Self::List(name) => Effect::Files(vec![Access::read(&path(name))]),
            Self::Move(from, to) => {
                Effect::Files(vec![Access::write(&path(from)), Access::write(&path(to))])
            }
            Self::Session(_) => Effect::Session,
        }
    }
}

/// Files, the session's directory, and what each call has seen.
struct World {
    top: PathBuf,
    cwd: RefCell<PathBuf>,
    seen: Vec<String>,
}

impl World {
    fn new(temp: &tempfile::TempDir, calls: usize) -> Self {
        let top = temp.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("d/e")).unwrap();
        fs::create_dir(top.join("other")).unwrap();
        for name in ["a", "d/b", "d/e/deep"] {
            fs::write(top.join(name), name).unwrap();
        }
        fs::hard_link(top.join("a"), top.join("d/hard")).unwrap();
        symlink("d/b", top.join("to_b")).unwrap();
        symlink("d", top.join("to_d")).unwrap();
        symlink("d/new", top.join("to_new")).unwrap();
        let cwd = RefCell::new(top.clone());
        let seen = vec![String::new(); calls];
        Self { top, cwd, seen }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.cwd.borrow().join(name)
    }

    fn start(&mut self, number: usize, call: &Call) {
        if let Call::Append(name) = call {
            self.seen[number] = fs::read_to_string(self.path(name)).unwrap_or_default();
        }
    }

    fn end(&mut self, number: usize, call: &Call) {
        let told = match call {
            Call::Append(name) => {
                let text = format!("{} {number}", self.seen[number]);
                fs::write(self.path(name), text).map_err(|error| error.kind())
            }
            Call::Read(name) => fs::read_to_string(self.path(name))
                .map(|text| self.seen[number] = text)
                .map_err(|error| error.kind()),
            Call::List(name) => {
                self.seen[number] = tree(&self.path(name));
                Ok(())
            }
            Call::Move(from, to) => {
                fs::rename(self.path(from), self.path(to)).map_err(|error| error.kind())
            }
            Call::Session(name) => {
                if let Ok(cwd) = self.path(name).canonicalize()
                    && cwd.starts_with(&self.top)
                {
                    *self.cwd.borrow_mut() = cwd;
                }
                Ok(())
            }
        };
        self.seen[number].push_str(&format!("{told:?}"));
    }
}

/// Everything below a directory, with the text of files.
fn tree(directory: &Path) -> String {
    let Ok(entries) = fs::read_dir(directory) else {
        return "none".to_owned();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let shown = paths.iter().map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.symlink_metadata().unwrap() {
            found if found.is_dir() => format!("{name}/({})", tree(path)),
            found if found.is_symlink() => format!("{name}->"),
            _ => format!("{name}={}", fs::read_to_string(path).unwrap_or_default()),
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Runs calls as a planner allows; a running call ends when the scheduler says so. Returns what each
/// has seen, the files, and how many calls overlapped at most.
fn run(
    mut planner: Planner,
    calls: &[Call],
    scheduler: &mut Choices<'_>,
) -> ((Vec<String>, String), usize) {
    let temp = tempfile::tempdir().unwrap();
    let mut world = World::new(&temp, calls.len());
    let (mut pushed, mut most) = (0, 0);
    let mut running: Vec<usize> = Vec::new();
    while pushed < calls.len() || !planner.is_done() {
        // Calls arrive while others run, as they do with `--stream`.
        if pushed < calls.len() && (running.is_empty() || scheduler.below(2) == 0) {
            planner.push(pushed, calls[pushed].effect());
            pushed += 1;
        }
        let cwd = world.cwd.borrow().clone();
        let resolve = |access: &Access| Claim::of(access, &cwd);
        for number in planner.startable(&resolve) {
            world.start(number, &calls[number]);
            running.push(number);
        }
        most = most.max(running.len());
        if !running.is_empty() && scheduler.below(3) < 2 {
            let number = running.swap_remove(scheduler.below(running.len()));
            world.end(number, &calls[number]);
            planner.finish(number);
        }
    }
    let files = tree(&world.top);
    ((world.seen, files), most)
}

/// It was seen to fail within the first blocks with each of these mistakes planted in the planner: calls
/// that wait do not hold back later ones; only two writes exclude each other; paths looked up before a
/// link was changed stay in use; places are compared by path alone, so that a hard link is a file of
/// its own.
#[test]
fn any_schedule_is_as_if_one_by_one() {
    let most = Cell::new(0);
    let bytes = (vec(any::<u8>(), 2..40), vec(any::<u8>(), 0..150));
    check_all((300, 10_000), &bytes, |(calls, schedule)| {
        let mut choices = Choices::new(calls);
        let calls: Vec<Call> = (0..calls.len().div_ceil(3))
            .map(|_| Call::any(&mut choices))
            .collect();
        let (expected, _) = run(Planner::sequential(), &calls, &mut Choices::new(&[]));
        let (found, overlap) = run(Planner::overlapping(), &calls, &mut Choices::new(schedule));
        most.set(most.get().max(overlap));
        prop_assert_eq!(found, expected, "{:?}", calls);
        Ok(())
    });
    assert!(most.get() > 3, "at most {} calls overlapped", most.get());
}

#[test]
fn sixty_four_edits_of_one_file() {
    let calls: String = (0..64)
        .map(|number| {
            let name = ["a", "./a", "link", "d/../a"][number % 4];
            let next = number + 1;
            format!("<edit><file src=\"{name}\"><find>#{number};</find><replace>#{number}.#{next};</replace></file></edit>")
        })
        .collect();
    let karyi = Karyi::new().file("a", "#0;").file("d/x", "").arg("--json");
    symlink("a", karyi.work().join("link")).unwrap();
    let expected: String = (0..64).map(|number| format!("#{number}.")).collect();
    let ran = karyi.stdin(format!("<tools>{calls}</tools>")).run().exit(0);
    let report = ran.json();
    assert!(
        results(&report)
            .iter()
            .all(|result| result["status"] == "ok")
    );
    ran.file("a", format!("{expected}#64;"));
}
