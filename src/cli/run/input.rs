//! The scripts of a run: all opened before the first one runs, and read in the background.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tokio::sync::mpsc;

use crate::cli::args::RunArgs;
use crate::exec::message_runner::{Chunk, Unreadable};

/// Bytes read from a script at a time.
pub(in crate::cli) const CHUNK_BYTES: usize = 64 << 10;

/// A script.
pub(in crate::cli) enum Input {
    /// Its text.
    Text(String),
    /// An open file and its name.
    File(PathBuf, File),
    /// Standard input.
    Stdin,
}

/// Opens all scripts before the first one runs, so that a wrong name runs nothing.
pub(super) fn inputs(args: &RunArgs) -> anyhow::Result<Vec<Input>> {
    if let Some(code) = &args.code {
        return Ok(vec![Input::Text(code.clone())]);
    }
    if args.files.is_empty() {
        if io::stdin().is_terminal() {
            anyhow::bail!(
                "no script: name a file, use -c XML, or pipe a script in (see `karyi run --help`)"
            );
        }
        return Ok(vec![Input::Stdin]);
    }
    args.files.iter().map(|path| open(path)).collect()
}

/// Opens a script; `-` is standard input.
pub(in crate::cli) fn open(path: &Path) -> anyhow::Result<Input> {
    if path.as_os_str() == "-" {
        return Ok(Input::Stdin);
    }
    let file =
        File::open(path).with_context(|| format!("opening the script {}", path.display()))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        anyhow::bail!("the script {} is a directory", path.display());
    }
    Ok(Input::File(path.to_owned(), file))
}

/// Reports whether a script was read to its end.
pub(super) struct Reader(std::sync::mpsc::Receiver<anyhow::Result<()>>);

impl Reader {
    /// Returns the error when the script could not be read.
    pub(super) fn check(self) -> anyhow::Result<()> {
        self.0.try_recv().unwrap_or(Ok(()))
    }
}

/// Reads a script in its own thread, unless its text is available: a blocking read must not delay anything.
pub(super) fn read(input: Input) -> anyhow::Result<(Reader, mpsc::Receiver<Chunk>)> {
    let (chunks, receiver) = mpsc::channel(4);
    let (ends, ended) = std::sync::mpsc::channel();
    let (name, source): (String, Box<dyn Read + Send>) = match input {
        Input::Text(text) => {
            // The channel has room and a receiver.
            let _ = chunks.try_send(Ok(text.into_bytes()));
            let _ = ends.send(Ok(()));
            return Ok((Reader(ended), receiver));
        }
        Input::File(path, file) => (path.display().to_string(), Box::new(file)),
        Input::Stdin => ("standard input".into(), Box::new(io::stdin())),
    };
    let work = move || {
        let result = copy(source, &chunks);
        let result = result.with_context(|| format!("reading {name}"));
        // Sent before the channel closes, so that it is available when the message has ended.
        let is_readable = result.is_ok();
        let _ = ends.send(result);
        if !is_readable {
            let _ = chunks.blocking_send(Err(Unreadable));
        }
    };
    std::thread::Builder::new()
        .name("script".into())
        .spawn(work)
        .context("starting to read")?;
    Ok((Reader(ended), receiver))
}

fn copy(mut input: impl Read, chunks: &mpsc::Sender<Chunk>) -> io::Result<()> {
    loop {
        let mut buffer = vec![0; CHUNK_BYTES];
        let length = match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        buffer.truncate(length);
        if chunks.blocking_send(Ok(buffer)).is_err() {
            return Ok(());
        }
    }
}
