//! Files of background jobs contain the output in its order.

use super::*;
use crate::exec::output::OutputPipeline;
use crate::exec::output_log::{LogLifetime, OutputLogs};
use crate::tool::sessions::JobFiles;
use karyi_core::secret::{SecretName, SecretValue};
use karyi_vault::session::Secrets;

/// A terminal and the directory of its files.
struct TestTerminal {
    redactor: Redactor,
    journal: TerminalJournal,
    logs: OutputLogs,
    directory: tempfile::TempDir,
}

impl TestTerminal {
    fn new() -> Self {
        Self::with(&Secrets::default())
    }

    fn with(secrets: &Secrets) -> Self {
        let redactor = Redactor::new(secrets);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run");
        Self {
            journal: TerminalJournal::new(&redactor),
            logs: OutputLogs::new(path, 1 << 20, LogLifetime::Session, JobFiles::default()),
            redactor,
            directory,
        }
    }

    /// Runs a command that prints some bytes; returns its pipeline.
    fn command(&self, id: &str, bytes: &[u8]) -> OutputPipeline {
        let log = self.logs.log(id);
        let journal = self.journal.clone();
        journal.begin();
        let output = OutputPipeline::new(&self.redactor, Cap::default(), Some(log), Some(journal));
        output.sink(None)(bytes);
        output
    }

    /// Ends the command, which leaves a job with a file.
    fn leave(&self, id: &str, output: &OutputPipeline) {
        output.log_everything();
        let _ = output.detach(Ending::Whole);
        let log = output.take_log().unwrap();
        self.journal.add(vec![(id.to_owned(), log)], Some(output));
    }

    /// Prints text between two commands.
    fn idle(&self, text: &str) {
        self.journal.sink()(text.as_bytes());
    }

    /// Returns the content of the n-th file.
    fn file(&self, number: usize, id: &str) -> String {
        self.journal.write_files();
        let path = self.directory.path().join(format!("run/{number}-{id}.txt"));
        std::fs::read_to_string(path).unwrap()
    }
}

#[test]
fn withheld_output_stays_before_later_output() {
    let printed = TestTerminal::new();
    let first = printed.command("1", b"start\n");
    printed.leave("1", &first);
    printed.idle("idle 1\nidle 2\n");
    assert_eq!(printed.file(1, "1"), "start\nidle 1\nidle 2\n");
    let second = printed.command("2", b"a\nL3\n");
    assert_eq!(printed.file(1, "1"), "start\nidle 1\nidle 2\na\nL3\n");
    // The next program prints before the call of the last one was reported.
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
fn a_file_begins_with_the_output_before_the_job_was_known() {
    let printed = TestTerminal::new();
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
    let printed = TestTerminal::new();
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
fn a_further_job_begins_with_the_end_of_long_output() {
    let printed = TestTerminal::new();
    let text = "a line of 20 bytes.\n".repeat(10_000);
    let output = printed.command("1", text.as_bytes());
    output.log_everything();
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

/// A background program prints a value byte by byte; each result of another command has a few of the bytes.
#[test]
fn a_value_spread_over_results_is_masked() {
    const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";
    let secrets = Secrets::default();
    let name = SecretName::parse("K").unwrap();
    let value = SecretValue::new(VALUE.into());
    secrets.insert(name, value).unwrap();
    for (size, idle) in [(3, 0), (5, 0), (5, 2), (11, 0), (11, 3)] {
        let printed = TestTerminal::with(&secrets);
        let first = printed.command("1", &VALUE.as_bytes()[..size]);
        printed.idle(&VALUE[size..size + idle]);
        let ending = |output: &OutputPipeline, leaves| match output.may_continue_line(leaves) {
            true => Ending::Broken,
            false => Ending::Whole,
        };
        first.log_everything();
        let (view, _) = first.detach(ending(&first, true));
        let mut shown = view.into_inner().text;
        let log = first.take_log().unwrap();
        printed.journal.add(vec![("1".into(), log)], Some(&first));
        let mut rest = &VALUE[size + idle..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(size.min(rest.len()));
            let output = printed.command("2", piece.as_bytes());
            shown.push_str(&output.detach(ending(&output, false)).0.get().text);
            let (between, after) = after.split_at(idle.min(after.len()));
            printed.idle(between);
            rest = after;
        }
        let plain = shown.replace("[KARYI:K:part]", "");
        assert!(plain.len() < 4, "{size} {idle}: {shown}");
        let file = printed.file(1, "1").replace("[KARYI:K:part]", "");
        assert!(file.len() < 4, "{size} {idle}: {file}");
    }
}

/// Text that only resembles the start of a value, and whole lines, stay unmasked beside a job.
#[test]
fn ordinary_text_beside_a_job_is_shown_whole() {
    let secrets = Secrets::default();
    let name = SecretName::parse("K").unwrap();
    let value = SecretValue::new("production-S3cr3t".into());
    secrets.insert(name, value).unwrap();
    let printed = TestTerminal::with(&secrets);
    let first = printed.command("1", b"production\n");
    assert!(!first.may_continue_line(true));
    printed.leave("1", &first);
    // A part of a value in one result makes no shorter part a secret in the next one.
    for text in [
        "production\n",
        "production-S3cr3t\n",
        "production\n",
        "a prompt> ",
        "product",
        "-S3\n",
    ] {
        let output = printed.command("2", text.as_bytes());
        let expected = match text {
            "production-S3cr3t\n" => "$KARYI{K}\n",
            "product" => "[KARYI:K:part]",
            text => text,
        };
        let ending = match output.may_continue_line(false) {
            true => Ending::Broken,
            false => Ending::Whole,
        };
        assert_eq!(output.detach(ending).0.get().text, expected, "{text}");
    }
}
