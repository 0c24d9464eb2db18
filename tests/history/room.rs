//! Where changes are recorded: a place that cannot be written, and one that is full.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use karyi::files::edit::{self, Diffs, EditOptions, EditPair, FileEdit, Masking};
use karyi::files::journal::{Journal, JournalCaps};
use karyi::files::root::Root;
use karyi::files::transaction::Recorder;
use karyi::files::undo::{self, UndoError, UndoTarget};

use crate::harness::Karyi;

#[test]
fn a_place_that_cannot_be_written_means_no_undo() {
    let karyi = Karyi::new()
        .arg("--json")
        .env("KARYI_HOME", "/proc/nowhere");
    let script =
        "<tools><edit><file src=\"a\"><find></find><replace>x</replace></file></edit></tools>";
    let ran = karyi.stdin(script).run().exit(0).file("a", "x");
    let result = &ran.json()["results"][0];
    assert_eq!(result["undo"], "unavailable");
    assert_eq!(
        result["warning"],
        "this change cannot be undone: the state directory, where changes are recorded, cannot be written"
    );
}

#[test]
fn several_files_do_not_change_without_a_record() {
    let script = "<tools><edit><file src=\"a\"><find></find><replace>x</replace></file>\
        <file src=\"b\" to=\"c\"/></edit></tools>";
    let karyi = Karyi::new()
        .arg("--json")
        .env("KARYI_HOME", "/proc/nowhere")
        .file("b", "y");
    let ran = karyi
        .stdin(script)
        .run()
        .exit(1)
        .file("b", "y")
        .tree(&["b"]);
    let result = &ran.json()["results"][0];
    assert_eq!(result["code"], "no_journal");
    let hint = result["hint"].as_str().unwrap();
    assert!(hint.contains("KARYI_HOME"), "{hint}");
}

/// Edits the file `f` of a directory, whose text is `N` and noise, so that it says `N + 1`.
fn count_up(directory: &std::path::Path, recorder: &Recorder, from: usize) -> edit::EditOutcome {
    let pair = EditPair::new(format!("number {from};"), format!("number {};", from + 1));
    let file = FileEdit {
        path: "f".into(),
        pairs: vec![pair],
        ..FileEdit::default()
    };
    let options = EditOptions {
        cwd: directory,
        root: &Root::unconfined(),
        recorder,
        is_private: &|_| false,
        masking: Masking::Part(&|text| text.to_owned()),
        diffs: Diffs::Full,
    };
    edit::apply(&[file], options).unwrap()
}

/// Returns a text that hardly shrinks.
fn noise() -> String {
    let mut noise = 1_u64;
    let words = std::iter::repeat_with(|| {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{:08x}", noise >> 32)
    });
    words.take(5000).collect()
}

#[test]
fn a_full_journal_drops_the_oldest_changes_and_says_so() {
    let (work, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let caps = JournalCaps {
        bytes: 200_000,
        ..JournalCaps::default()
    };
    let journal = Arc::new(Journal::with_caps(state.path(), None, caps).unwrap());
    let recorder = Recorder {
        journal: Some(Arc::clone(&journal)),
        ..Recorder::default()
    };
    let noise = noise();
    let path = work.path().join("f");
    std::fs::write(&path, format!("number 0;\n{noise}")).unwrap();
    let contents = || {
        let shards = std::fs::read_dir(state.path().join("contents")).unwrap();
        let files = shards.flat_map(|shard| std::fs::read_dir(shard.unwrap().path()).unwrap());
        files.map(|file| file.unwrap().path()).collect::<Vec<_>>()
    };
    let mut told = Vec::new();
    for from in 0..20 {
        // As if every change were an hour after the one before.
        for content in contents() {
            let file = std::fs::File::open(content).unwrap();
            let hour = Duration::from_secs(60 * 60);
            file.set_modified(SystemTime::now() - hour).unwrap();
        }
        let done = count_up(work.path(), &recorder, from);
        assert_eq!(done.no_undo, None, "{from}");
        told.extend(done.pruned);
    }
    let entries = journal.entries().unwrap();
    let gone: usize = told.iter().map(|pruned| pruned.changes).sum();
    assert_eq!((gone + entries.len(), told.is_empty()), (20, false));
    assert_eq!(told.last().unwrap().last, entries[0].number - 1);
    let words = told[0].to_string();
    assert!(
        words.starts_with("the journal is full (it holds 1 GiB, 30 days and 100000 changes)"),
        "{words}"
    );
    let sizes = contents()
        .into_iter()
        .map(|path| path.metadata().unwrap().len());
    let size: u64 = sizes.sum();
    assert!(size < 250_000, "{size}");
    // What is left can be taken back, the newest first, and what is gone says so.
    for left in (0..entries.len()).rev() {
        undo::undo(&recorder, &journal, &UndoTarget::Last(1)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let number = 20 - entries.len() + left;
        assert!(text.starts_with(&format!("number {number};")), "{left}");
    }
    let Err(UndoError::Other(error)) = undo::undo(&recorder, &journal, &UndoTarget::Number(1))
    else {
        panic!("change 1 was taken back");
    };
    assert!(
        error
            .message
            .starts_with("change 1 is no longer in the journal"),
        "{}",
        error.message
    );
}
