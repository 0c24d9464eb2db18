//! The files of jobs in the background have what was printed in its order.

use super::*;
use crate::exec::log::Logs;
use crate::exec::output::Output;
use crate::tool::sessions::JobFiles;
use crate::vault::session::Secrets;

/// A terminal, and where its files are.
struct Printed {
    redactor: Redactor,
    journal: Journal,
    logs: Logs,
    directory: tempfile::TempDir,
}

impl Printed {
    fn new() -> Self {
        let redactor = Redactor::new(&Secrets::default());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run");
        Self {
            journal: Journal::new(&redactor),
            logs: Logs::new(path, 1 << 20, false, JobFiles::default()),
            redactor,
            directory,
        }
    }

    /// A command prints some bytes; its stages are returned.
    fn command(&self, id: &str, bytes: &[u8]) -> Output {
        let log = self.logs.log(id);
        let journal = self.journal.clone();
        journal.begin();
        let output = Output::new(&self.redactor, Cap::default(), Some(log), Some(journal));
        output.sink(None)(bytes);
        output
    }

    /// The command ends, and leaves a job that has its file.
    fn leave(&self, id: &str, output: &Output) {
        output.keep_whole();
        let _ = output.detach(Ending::Whole);
        let log = output.take_log().unwrap();
        self.journal.add(vec![(id.to_owned(), log)]);
    }

    /// What is printed between two commands.
    fn idle(&self, text: &str) {
        self.journal.sink()(text.as_bytes());
    }

    /// The file that was made as the n-th.
    fn file(&self, number: usize, id: &str) -> String {
        self.journal.write_files();
        let path = self.directory.path().join(format!("run/{number}-{id}.txt"));
        std::fs::read_to_string(path).unwrap()
    }
}

#[test]
fn what_is_held_back_does_not_come_behind_what_follows() {
    let printed = Printed::new();
    let first = printed.command("1", b"start\n");
    printed.leave("1", &first);
    printed.idle("idle 1\nidle 2\n");
    assert_eq!(printed.file(1, "1"), "start\nidle 1\nidle 2\n");
    let second = printed.command("2", b"a\nL3\n");
    assert_eq!(printed.file(1, "1"), "start\nidle 1\nidle 2\na\nL3\n");
    // The next program prints before the call of the last one was told.
    printed.idle("idle 3\nunfin");
    let _ = second.detach(Ending::Whole);
    let expected = "start\nidle 1\nidle 2\na\nL3\nidle 3\nunfin";
    assert_eq!(printed.file(1, "1"), expected);
    assert_eq!(printed.journal.last_line("1").unwrap(), "unfin");
    let _third = printed.command("3", b"ished\n");
    assert_eq!(printed.journal.last_line("1").unwrap(), "unfin");
    assert_eq!(printed.file(1, "1"), format!("{expected}ished\n"));
}

#[test]
fn a_file_begins_with_the_command_and_has_what_came_before_it_was_known() {
    let printed = Printed::new();
    printed.idle("older\n");
    let first = printed.command("1", b"one\n");
    printed.idle("late 1\n");
    printed.leave("1", &first);
    assert_eq!(printed.file(1, "1"), "one\nlate 1\n");
    printed.idle("idle\n");
    // It prints nothing itself.
    let second = printed.command("2", b"");
    printed.idle("late 2\n");
    printed.leave("2", &second);
    printed.idle("both\n");
    let all = "one\nlate 1\nidle\nlate 2\nboth\n";
    assert_eq!(printed.file(1, "1"), all);
    assert_eq!(printed.file(2, "2"), "late 2\nboth\n");
    printed.journal.remove("1");
    printed.idle("more\n");
    assert_eq!(printed.file(1, "1"), all);
    assert_eq!(printed.file(2, "2"), "late 2\nboth\nmore\n");
}

#[test]
fn the_screen_of_a_program_that_was_killed_is_shown_once() {
    let printed = Printed::new();
    let first = printed.command("1", b"");
    printed.leave("1", &first);
    let _editor = printed.command("2", b"\x1b[?1049h\x1b[Htext");
    let _next = printed.command("3", b"one\n");
    printed.idle("two\n");
    let file = printed.file(1, "1");
    assert_eq!(file.matches("text").count(), 1, "{file}");
    assert!(file.ends_with("one\ntwo\n"), "{file}");
}

/// A command may leave many jobs after much output.
#[test]
fn a_further_job_begins_with_the_end_of_what_is_long() {
    let printed = Printed::new();
    let text = "a line of 20 bytes.\n".repeat(10_000);
    let output = printed.command("1", text.as_bytes());
    output.keep_whole();
    let _ = output.detach(Ending::Whole);
    let copy = output.copy_log("1-2").unwrap();
    let copied = std::fs::read_to_string(copy.path().unwrap()).unwrap();
    let (note, rest) = copied.split_once('\n').unwrap();
    assert_eq!(
        note,
        "[... the first 68940 bytes are in the file job:1 ...]"
    );
    assert_eq!(rest, &text[68940..]);
}
