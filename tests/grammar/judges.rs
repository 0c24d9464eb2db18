//! Programs that know a notation, asked about many texts at once.
//!
//! A judge that is not installed answers `None` and says so; `tests/run` installs them all.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::harness::{skip, wait};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn run(command: &mut Command, stdin: &str) -> Option<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        skip(&format!("{name} is not installed"));
        return None;
    };
    let mut pipe = child.stdin.take().unwrap();
    let text = stdin.to_owned();
    // A child that fails at once does not read; its own words come below.
    let writer = std::thread::spawn(move || drop(pipe.write_all(text.as_bytes())));
    let output = wait(child);
    writer.join().unwrap();
    Some(output)
}

/// A folder with the schema and one file per document; it is removed with this.
struct Files {
    _folder: tempfile::TempDir,
    schema: PathBuf,
    documents: Vec<PathBuf>,
}

impl Files {
    fn new(extension: &str, schema: &str, documents: &[Vec<u8>]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let schema_path = dir.path().join(format!("schema.{extension}"));
        std::fs::write(&schema_path, schema).unwrap();
        let documents = documents.iter().enumerate().map(|(number, document)| {
            let path = dir.path().join(format!("{number}.xml"));
            std::fs::write(&path, document).unwrap();
            path
        });
        Self {
            documents: documents.collect(),
            schema: schema_path,
            _folder: dir,
        }
    }
}

/// Asks xmllint; `option` is `--schema` or `--relaxng`.
pub(super) fn xmllint(option: &str, schema: &str, documents: &[Vec<u8>]) -> Option<Vec<bool>> {
    let files = Files::new("xml", schema, documents);
    let mut command = Command::new("xmllint");
    command.args(["--noout", "--nonet", option]);
    command.arg(&files.schema).args(&files.documents);
    let output = run(&mut command, "")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("failed to compile"), "{said}");
    let is_valid = |path: &PathBuf| said.contains(&format!("{} validates\n", path.display()));
    Some(files.documents.iter().map(is_valid).collect())
}

/// Tells which documents are well-formed.
fn well_formed(documents: &[Vec<u8>]) -> Option<Vec<bool>> {
    let files = Files::new("xml", "", documents);
    let mut command = Command::new("xmllint");
    command.args(["--noout", "--nonet"]).args(&files.documents);
    let output = run(&mut command, "")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_good = |path: &PathBuf| !said.contains(&format!("{}:", path.display()));
    Some(files.documents.iter().map(is_good).collect())
}

/// Asks jing; the schema is compact syntax when `extension` is `rnc`. It stops at a document that
/// is not well-formed, so it is not asked about those.
pub(super) fn jing(extension: &str, schema: &str, documents: &[Vec<u8>]) -> Option<Vec<bool>> {
    let good = well_formed(documents)?;
    let files = Files::new(extension, schema, documents);
    let asked = files.documents.iter().zip(&good);
    let asked = asked.filter_map(|(path, is_good)| is_good.then_some(path));
    let mut command = Command::new("jing");
    if extension == "rnc" {
        command.arg("-c");
    }
    command.arg(&files.schema).args(asked);
    let output = run(&mut command, "")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let about = |path: &PathBuf| said.contains(&format!("{}:", path.display()));
    let is_done = matches!(output.status.code(), Some(0 | 1));
    let is_fatal = said.contains(": fatal: ") || about(&files.schema);
    assert!(is_done && !is_fatal, "{said}{output:?}");
    let pairs = files.documents.iter().zip(&good);
    Some(
        pairs
            .map(|(path, is_good)| *is_good && !about(path))
            .collect(),
    )
}

/// Asks the judge of that name in `judge.py`.
pub(super) fn python(request: &Value) -> Option<Vec<Value>> {
    let python = root().join("target/python/bin/python");
    if !python.exists() {
        skip("target/python, which tests/run makes, is missing");
        return None;
    }
    let mut command = Command::new(python);
    command.arg(root().join("tests/grammar/judge.py"));
    Some(answer(&run(&mut command, &request.to_string())?))
}

/// Asks the engine of llama.cpp.
pub(super) fn llama(grammar: &str, texts: &[String]) -> Option<Vec<bool>> {
    let package = root().join("target/node/node_modules/@node-llama-cpp");
    let Some(addon) = find(&package, "llama-addon.node") else {
        skip("target/node, where tests/run puts llama.cpp's grammar engine, is missing");
        return None;
    };
    let mut command = Command::new("node");
    command
        .arg(root().join("tests/grammar/judge.js"))
        .arg(addon);
    let request = json!({ "grammar": grammar, "texts": texts });
    Some(verdicts(answer(&run(&mut command, &request.to_string())?)))
}

/// Asks a judge in Python for verdicts.
pub(super) fn judged(judge: &str, grammar: &str, texts: &[String]) -> Option<Vec<bool>> {
    let request = json!({ "judge": judge, "grammar": grammar, "texts": texts });
    python(&request).map(verdicts)
}

fn answer(output: &Output) -> Vec<Value> {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn verdicts(answer: Vec<Value>) -> Vec<bool> {
    answer
        .iter()
        .map(|verdict| verdict.as_bool().unwrap())
        .collect()
}

fn find(dir: &Path, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(dir).ok()?;
    entries.flatten().find_map(|entry| {
        let path = entry.path();
        match path.is_dir() {
            true => find(&path, name),
            false => path.ends_with(name).then_some(path),
        }
    })
}
