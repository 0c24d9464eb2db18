//! Changes two files in one transaction, shows the diffs, and takes the change back.
//!
//! Run it with `cargo run -p karyi-files --example edit_and_undo`.

#![allow(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::fs;
use std::sync::Arc;

use karyi_files::edit::{self, Diffs, EditOptions, EditPair, FileEdit, Masking};
use karyi_files::journal::Journal;
use karyi_files::root::Root;
use karyi_files::transaction::Recorder;
use karyi_files::undo::{self, UndoError, UndoTarget};

fn main() -> Result<(), Box<dyn Error>> {
    let (project, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
    fs::write(project.path().join("port.txt"), "port = 80\n")?;
    fs::write(project.path().join("host.txt"), "host = local\n")?;

    // The journal stores old contents outside the project; a key would encrypt them.
    let journal = Arc::new(Journal::open(state.path(), None)?);
    let recorder = Recorder {
        journal: Some(Arc::clone(&journal)),
        session: "example".into(),
        tool: "edit".into(),
        ..Recorder::default()
    };
    let root = Root::confined(project.path())?;
    let options = EditOptions {
        cwd: project.path(),
        root: &root,
        recorder: &recorder,
        is_private: &|_| false,
        masking: Masking::Part(&str::to_owned),
        diffs: Diffs::Full,
    };

    let change = |path: &str, find: &str, replace: &str| FileEdit {
        path: path.into(),
        pairs: vec![EditPair::new(find, replace)],
        ..FileEdit::default()
    };
    let edits = [
        change("port.txt", "80", "8080"),
        change("host.txt", "local", "example.org"),
    ];
    for file in edit::apply(&edits, options)?.files {
        print!("{}\n{}", file.path.display(), file.diff.text);
    }

    // A text that is not found leaves all files unchanged.
    let failing = [
        change("port.txt", "8080", "443"),
        change("host.txt", "nowhere", "x"),
    ];
    if let Err(error) = edit::apply(&failing, options) {
        println!("refused: {}", error.message);
    }

    match undo::undo(&recorder, &journal, &UndoTarget::Last(1)) {
        Ok(undone) => println!("took back change {:?}", undone.numbers),
        Err(UndoError::Conflicts(conflicts)) => println!("{} conflicts", conflicts.len()),
        Err(UndoError::Other(error)) => return Err(error.into()),
    }
    print!("{}", fs::read_to_string(project.path().join("port.txt"))?);
    Ok(())
}
