//! The whole redacted output of a call in a file, for results that show only a part of it and for
//! jobs that go on after their call.
//!
//! A file is made when there is something that a result does not show. All files of a run lie in one
//! private directory, which is removed at the end of the run unless it is to be kept.

use std::collections::VecDeque;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::tool::sessions::{JOB_PREFIX, JobFiles};
use karyi_core::head_tail;
use karyi_core::limits;
use karyi_vault::redact::Redacted;

/// Where the files of a run go.
#[derive(Clone)]
pub struct Logs {
    directory: Arc<Mutex<Directory>>,
    /// Most bytes of one file.
    max_bytes: u64,
    /// Which job each file belongs to, as the tools see it.
    files: JobFiles,
}

struct Directory {
    path: PathBuf,
    is_made: bool,
    is_kept: bool,
    /// How many files were made.
    count: u64,
    /// The files there are, oldest first.
    names: VecDeque<Made>,
    /// Why there can be none.
    problem: Option<String>,
    /// Keeps the next runs away, which remove what is abandoned.
    lock: Option<File>,
}

/// A file that was made.
struct Made {
    path: PathBuf,
    /// Gone with the log that writes it.
    writer: Weak<()>,
}

impl Directory {
    /// Makes the directory and locks it; again when somebody took it for an abandoned one before it
    /// was locked.
    fn make(&mut self) -> io::Result<()> {
        if let Some(problem) = &self.problem {
            return Err(io::Error::other(problem.clone()));
        }
        for _ in 0..limits::MAX_OUTPUT_DIRECTORY_TRIES {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(&self.path)?;
            let Ok(directory) = File::open(&self.path) else {
                continue;
            };
            // Where locks do not work nobody removes anything.
            let is_locked = !matches!(directory.try_lock(), Err(TryLockError::WouldBlock));
            let own = directory.metadata().map(|file| (file.dev(), file.ino()));
            let there = std::fs::metadata(&self.path).map(|file| (file.dev(), file.ino()));
            if is_locked && own.is_ok() && own.ok() == there.ok() {
                self.lock = Some(directory);
                return Ok(());
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// Makes room for one more file when there are many: the oldest goes that no job writes any more.
    /// Returns it.
    fn remove_oldest(&mut self) -> Option<PathBuf> {
        if self.is_kept || self.names.len() < limits::MAX_OUTPUT_FILES {
            return None;
        }
        let is_over = |made: &Made| made.writer.strong_count() == 0;
        let oldest = self.names.iter().position(is_over)?;
        let made = self.names.remove(oldest)?;
        let _ = std::fs::remove_file(&made.path);
        Some(made.path)
    }
}

impl Logs {
    /// Plans a directory; it is made with the first file.
    #[must_use]
    pub fn new(path: PathBuf, max_bytes: u64, is_kept: bool, files: JobFiles) -> Self {
        let directory = Directory {
            path,
            is_made: false,
            is_kept,
            count: 0,
            names: VecDeque::new(),
            problem: None,
            lock: None,
        };
        Self {
            directory: Arc::new(Mutex::new(directory)),
            max_bytes,
            files,
        }
    }

    /// Makes no files, for a reason that results tell.
    #[must_use]
    pub fn unusable(problem: String, files: JobFiles) -> Self {
        let logs = Self::new(PathBuf::new(), 0, false, files);
        logs.lock().problem = Some(problem);
        logs
    }

    /// Starts the log of a call; no file is made yet.
    #[must_use]
    pub fn log(&self, id: &str) -> Log {
        Log {
            logs: self.clone(),
            id: id.to_owned(),
            path: None,
            writes: Arc::new(()),
            state: State::Unmade,
            length: 0,
            tail: String::new(),
        }
    }

    /// Whether there is a file under an id.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.files.contains(id)
    }

    /// Removes the directory unless it is to be kept.
    pub fn remove(&self) {
        let mut directory = self.lock();
        if directory.is_made && !directory.is_kept {
            let _ = std::fs::remove_dir_all(&directory.path);
            directory.is_made = false;
            directory.lock = None;
        }
    }

    fn open(&self, id: &str, writer: Weak<()>) -> io::Result<(PathBuf, File)> {
        let mut directory = self.lock();
        if !directory.is_made {
            directory.make()?;
            directory.is_made = true;
        }
        if let Some(oldest) = directory.remove_oldest() {
            self.files.remove(&oldest);
        }
        directory.count += 1;
        let name = format!("{}-{}.txt", directory.count, safe_name(id));
        let path = directory.path.join(name);
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        directory.names.push_back(Made {
            path: path.clone(),
            writer,
        });
        drop(directory);
        self.files.insert(id, path.clone());
        Ok((path, file))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Directory> {
        self.directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an id as a part of a file name.
fn safe_name(id: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    id.chars().filter(is_plain).take(40).collect()
}

/// Who printed a text, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printer {
    /// The job whose log it is, or another one in the background of its terminal.
    Job,
    /// A command in the foreground, unless it was a job in the background meanwhile.
    Another,
}

/// The log of one call.
pub struct Log {
    logs: Logs,
    id: String,
    path: Option<PathBuf>,
    /// Tells the directory that the file is in use.
    writes: Arc<()>,
    state: State,
    /// Bytes of the file that stay.
    length: u64,
    /// The end of what the job printed.
    tail: String,
}

enum State {
    /// There is nothing yet that a result would not show.
    Unmade,
    Open(File),
    /// The file has all the bytes it may have.
    Full,
    /// The file cannot be made or written.
    Broken(String),
}

impl Log {
    /// Makes the file if there is none, with what came before.
    pub fn begin(&mut self, earlier: &Redacted) {
        if !self.is_unmade() {
            return;
        }
        match self.logs.open(&self.id, Arc::downgrade(&self.writes)) {
            Ok((path, file)) => {
                self.path = Some(path);
                self.state = State::Open(file);
                self.append(earlier, Printer::Job);
            }
            Err(error) => {
                self.state = State::Broken(error.to_string());
                self.append(earlier, Printer::Job);
            }
        }
    }

    /// Begins the log of another job with what is in this one, or with its end when that is long:
    /// a command may leave many jobs.
    #[must_use]
    pub fn copy(&self, id: &str) -> Self {
        let mut copy = self.logs.log(id);
        copy.begin(&Redacted::default());
        match self.end() {
            Ok((0, text)) => copy.write(&text),
            Ok((omitted, text)) => {
                copy.write(&format!(
                    "[... the first {omitted} bytes are in the file {JOB_PREFIX}{} ...]\n{text}",
                    self.id
                ));
            }
            Err(error) => copy.state = State::Broken(error.to_string()),
        }
        copy
    }

    /// Returns the last lines of the file, and how many bytes stand before them.
    fn end(&self) -> io::Result<(u64, String)> {
        let Some(path) = &self.path else {
            return Ok((0, String::new()));
        };
        let from = self.length.saturating_sub(limits::COPIED_LOG_BYTES);
        let mut bytes = Vec::new();
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        file.take(self.length - from).read_to_end(&mut bytes)?;
        let start = match from {
            0 => 0,
            // Nothing that was masked stands in two lines.
            _ => memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |end| end + 1),
        };
        let lines = bytes.get(start..).unwrap_or_default();
        let text = String::from_utf8_lossy(lines).into_owned();
        Ok((from + start as u64, text))
    }

    /// Takes what it knows of the job's end for that of another program.
    pub fn forget_tail(&mut self) {
        self.tail.clear();
    }

    /// Whether no file was asked for yet.
    #[must_use]
    pub fn is_unmade(&self) -> bool {
        matches!(self.state, State::Unmade)
    }

    /// Adds text to the file, if there is one, and to what is known of the job's end, even when the
    /// file takes no more.
    pub fn append(&mut self, text: &Redacted, by: Printer) {
        let text = text.as_str();
        if by == Printer::Job && !self.is_unmade() {
            keep_tail(&mut self.tail, text);
        }
        self.write(text);
    }

    fn write(&mut self, text: &str) {
        let State::Open(file) = &self.state else {
            return;
        };
        let room = self.logs.max_bytes.saturating_sub(self.length);
        let fits = usize::try_from(room).unwrap_or(usize::MAX).min(text.len());
        let end = match text.floor_char_boundary(fits) {
            end if end < text.len() => head_tail::before_marker(text.as_bytes(), end),
            end => end,
        };
        let (first, rest) = text.split_at(end);
        if let Err(error) = write_at(file, first, self.length) {
            self.state = State::Broken(error.to_string());
            return;
        }
        self.length += first.len() as u64;
        if !rest.is_empty() {
            let note = format!(
                "\n[... the file ends here: it may have {} bytes ...]\n",
                self.logs.max_bytes
            );
            let _ = write_at(file, &note, self.length);
            self.state = State::Full;
        }
    }

    /// Shows in the file, until more comes, a line that has not ended.
    pub fn show_unfinished(&mut self, line: &Redacted) {
        if let State::Open(file) = &self.state {
            let _ = write_at(file, line.as_str(), self.length);
        }
    }

    /// Returns the file, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns why there is no whole file, when there should be one.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        match &self.state {
            State::Broken(reason) => Some(reason),
            State::Unmade | State::Open(_) | State::Full => None,
        }
    }

    /// Returns the end of what the job printed.
    #[must_use]
    pub fn tail(&self) -> &str {
        &self.tail
    }
}

/// Writes text at a place and cuts the file after it.
fn write_at(file: &File, text: &str, at: u64) -> io::Result<()> {
    if file.metadata()?.len() > at {
        file.set_len(at)?;
    }
    file.write_all_at(text.as_bytes(), at)
}

/// Keeps the last few kilobytes of a text that grows.
fn keep_tail(tail: &mut String, text: &str) {
    let keep = limits::JOB_TAIL_BYTES;
    let from = text.ceil_char_boundary(text.len().saturating_sub(keep));
    tail.push_str(text.get(from..).unwrap_or_default());
    if tail.len() > 2 * keep {
        let excess = tail.ceil_char_boundary(tail.len() - keep);
        tail.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_vault::redact::Redactor;
    use karyi_vault::session::Secrets;

    fn logs(directory: &Path, max_bytes: u64) -> Logs {
        Logs::new(directory.join("run"), max_bytes, false, JobFiles::default())
    }

    fn text_of(text: &str) -> Redacted {
        Redactor::new(&Secrets::default()).redact(text)
    }

    fn text(log: &Log) -> String {
        std::fs::read_to_string(log.path().unwrap()).unwrap()
    }

    #[test]
    fn nothing_is_written_before_it_is_needed() {
        let directory = tempfile::tempdir().unwrap();
        let logs = logs(directory.path(), 1000);
        let mut log = logs.log("../1 é");
        log.append(&text_of("lost?"), Printer::Job);
        assert_eq!((log.path(), log.problem()), (None, None));
        assert!(!directory.path().join("run").exists());
        log.begin(&text_of("one\n"));
        log.append(&text_of("two\n"), Printer::Another);
        assert_eq!(log.tail(), "one\n");
        assert_eq!(text(&log), "one\ntwo\n");
        assert_eq!(
            log.path(),
            Some(directory.path().join("run/1-1.txt").as_path())
        );
        assert_eq!(logs.files.find("../1 é").unwrap(), log.path().unwrap());
        logs.remove();
        assert!(!directory.path().join("run").exists());
    }

    #[test]
    fn an_unfinished_line_makes_room_for_what_follows() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = logs(directory.path(), 1000).log("1");
        log.begin(&text_of("a\n"));
        log.show_unfinished(&text_of("50 %"));
        assert_eq!(text(&log), "a\n50 %");
        log.append(&text_of("b\n"), Printer::Job);
        assert_eq!(text(&log), "a\nb\n");
    }

    #[test]
    fn a_file_has_only_so_many_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = logs(directory.path(), 5).log("1");
        log.begin(&text_of("abc"));
        log.append(&text_of("éé"), Printer::Job);
        log.append(&text_of("more"), Printer::Job);
        assert_eq!(
            text(&log),
            "abcé\n[... the file ends here: it may have 5 bytes ...]\n"
        );
        assert_eq!(log.problem(), None);
        assert_eq!(log.tail(), "abcéémore");
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_told() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("run"), "").unwrap();
        let mut log = logs(directory.path(), 5).log("1");
        log.begin(&text_of("abc"));
        assert_eq!(log.path(), None);
        assert!(log.problem().is_some());
        log.append(&text_of("d"), Printer::Job);
        assert_eq!(log.tail(), "abcd");
    }

    #[test]
    fn only_the_newest_files_stay() {
        let directory = tempfile::tempdir().unwrap();
        let logs = logs(directory.path(), 5);
        for number in 0..limits::MAX_OUTPUT_FILES + 3 {
            logs.log(&number.to_string()).begin(&text_of("x"));
        }
        let files = std::fs::read_dir(directory.path().join("run")).unwrap();
        assert_eq!(files.count(), limits::MAX_OUTPUT_FILES);
    }

    #[test]
    fn the_file_of_a_job_that_runs_stays() {
        let directory = tempfile::tempdir().unwrap();
        let logs = logs(directory.path(), 5);
        let mut running = logs.log("job");
        running.begin(&text_of("x"));
        for number in 0..limits::MAX_OUTPUT_FILES + 3 {
            logs.log(&number.to_string()).begin(&text_of("x"));
        }
        assert_eq!(text(&running), "x");
        assert!(logs.has("job") && !logs.has("0"));
        let files = std::fs::read_dir(directory.path().join("run")).unwrap();
        assert_eq!(files.count(), limits::MAX_OUTPUT_FILES);
        drop(running);
        logs.log("last").begin(&text_of("x"));
        assert!(!logs.has("job"));
    }
}
