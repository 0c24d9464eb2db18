//! Files with the whole redacted output of calls, for results that show only part of it and for jobs.
//!
//! A file is created when a result does not show everything. All files of a run are in one private
//! directory, which is removed at the end of the run unless the user keeps it.

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

/// Output files of a run.
#[derive(Clone)]
pub struct OutputLogs {
    directory: Arc<Mutex<LogDirectory>>,
    /// Maximum size of one file, in bytes.
    max_bytes: u64,
    /// Maps each job to its file, for the tools.
    files: JobFiles,
}

/// Time that output files exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLifetime {
    /// Until the end of the run of one message.
    Message,
    /// Until the end of a session that takes several messages.
    Session,
    /// Until somebody removes them.
    Kept,
}

struct LogDirectory {
    path: PathBuf,
    is_created: bool,
    lifetime: LogLifetime,
    /// Number of files created so far.
    count: u64,
    /// Existing files, oldest first.
    created: VecDeque<LogFile>,
    /// Reason why no file can be created.
    problem: Option<String>,
    /// Locks the directory, so that later runs do not remove it as abandoned.
    lock: Option<File>,
}

/// An output file.
struct LogFile {
    path: PathBuf,
    /// Dangling once the log that writes the file is dropped.
    writer: Weak<()>,
}

impl LogDirectory {
    /// Creates the directory and locks it; retries when another run removed it as abandoned before it was
    /// locked.
    fn create(&mut self) -> io::Result<()> {
        if let Some(problem) = &self.problem {
            return Err(io::Error::other(problem.clone()));
        }
        for _ in 0..limits::MAX_OUTPUT_DIRECTORY_TRIES {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700).create(&self.path)?;
            let Ok(directory) = File::open(&self.path) else {
                continue;
            };
            // Where locks are not supported, no run removes directories.
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

    /// Removes the oldest file that no job writes any more when there are too many. Returns its path.
    fn remove_oldest(&mut self) -> Option<PathBuf> {
        if self.lifetime == LogLifetime::Kept || self.created.len() < limits::MAX_OUTPUT_FILES {
            return None;
        }
        let is_over = |made: &LogFile| made.writer.strong_count() == 0;
        let oldest = self.created.iter().position(is_over)?;
        let made = self.created.remove(oldest)?;
        let _ = std::fs::remove_file(&made.path);
        Some(made.path)
    }
}

impl OutputLogs {
    /// Prepares a directory; it is created with the first file.
    #[must_use]
    pub fn new(path: PathBuf, max_bytes: u64, lifetime: LogLifetime, files: JobFiles) -> Self {
        let directory = LogDirectory {
            path,
            is_created: false,
            lifetime,
            count: 0,
            created: VecDeque::new(),
            problem: None,
            lock: None,
        };
        Self {
            directory: Arc::new(Mutex::new(directory)),
            max_bytes,
            files,
        }
    }

    /// Returns files in the same directory, for the jobs of a session of its own.
    #[must_use]
    pub fn separate(&self, files: JobFiles) -> Self {
        Self {
            directory: Arc::clone(&self.directory),
            max_bytes: self.max_bytes,
            files,
        }
    }

    /// Creates no files, for a reason that results report.
    #[must_use]
    pub fn unusable(problem: String, files: JobFiles) -> Self {
        let logs = Self::new(PathBuf::new(), 0, LogLifetime::Session, files);
        logs.lock().problem = Some(problem);
        logs
    }

    /// Returns the log of a call; no file is created yet.
    #[must_use]
    pub fn log(&self, id: &str) -> OutputLog {
        OutputLog {
            logs: self.clone(),
            id: id.to_owned(),
            path: None,
            writes: Arc::new(()),
            state: State::NotCreated,
            length: 0,
            tail: String::new(),
        }
    }

    /// Returns true when the id has a file.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.files.contains(id)
    }

    /// Removes the directory unless it is to be kept.
    pub fn remove(&self) {
        let mut directory = self.lock();
        if directory.is_created && directory.lifetime != LogLifetime::Kept {
            let _ = std::fs::remove_dir_all(&directory.path);
            directory.is_created = false;
            directory.lock = None;
        }
    }

    fn open(&self, id: &str, writer: Weak<()>) -> io::Result<(PathBuf, File)> {
        let mut directory = self.lock();
        if !directory.is_created {
            directory.create()?;
            directory.is_created = true;
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
        directory.created.push_back(LogFile {
            path: path.clone(),
            writer,
        });
        drop(directory);
        self.files.insert(id, path.clone());
        Ok((path, file))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LogDirectory> {
        self.directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an id as part of a file name.
fn safe_name(id: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    id.chars().filter(is_plain).take(40).collect()
}

/// The program that printed a text, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputSource {
    /// The job that owns the log, or another background job of its terminal.
    Job,
    /// A foreground command, unless a background job printed meanwhile.
    Other,
}

/// Output log of one call.
pub struct OutputLog {
    logs: OutputLogs,
    id: String,
    path: Option<PathBuf>,
    /// Marks the file as in use for the directory.
    writes: Arc<()>,
    state: State,
    /// Bytes of the file that are final.
    length: u64,
    /// The last part of the job's output.
    tail: String,
}

enum State {
    /// A result shows everything so far.
    NotCreated,
    Open(File),
    /// The file has reached its maximum size.
    Full,
    /// The file cannot be created or written.
    Broken(String),
}

impl OutputLog {
    /// Creates the file with the earlier output, if there is none.
    pub fn create(&mut self, earlier: &Redacted) {
        if !self.is_not_created() {
            return;
        }
        match self.logs.open(&self.id, Arc::downgrade(&self.writes)) {
            Ok((path, file)) => {
                self.path = Some(path);
                self.state = State::Open(file);
                self.append(earlier, OutputSource::Job);
            }
            Err(error) => {
                self.state = State::Broken(error.to_string());
                self.append(earlier, OutputSource::Job);
            }
        }
    }

    /// Returns the log of another job that begins with a copy of this one, or of its end when it is long:
    /// a command may leave many jobs.
    #[must_use]
    pub fn copy(&self, id: &str) -> Self {
        let mut copy = self.logs.log(id);
        copy.create(&Redacted::default());
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

    /// Returns the last lines of the file and the number of bytes before them.
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
            // A masked value never spans two lines.
            _ => memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |end| end + 1),
        };
        let lines = bytes.get(start..).unwrap_or_default();
        let text = String::from_utf8_lossy(lines).into_owned();
        Ok((from + start as u64, text))
    }

    /// Clears the tail, which another program printed.
    pub fn clear_tail(&mut self) {
        self.tail.clear();
    }

    /// Returns true while no file was created.
    #[must_use]
    pub fn is_not_created(&self) -> bool {
        matches!(self.state, State::NotCreated)
    }

    /// Appends text to the file, if there is one, and to the tail, even when the file is full.
    pub fn append(&mut self, text: &Redacted, source: OutputSource) {
        let text = text.as_str();
        if source == OutputSource::Job && !self.is_not_created() {
            append_tail(&mut self.tail, text);
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

    /// Writes an unfinished line at the end of the file, until more output replaces it.
    pub fn show_unfinished(&mut self, line: &Redacted) {
        if let State::Open(file) = &self.state {
            let _ = write_at(file, line.as_str(), self.length);
        }
    }

    /// Returns the path of the file, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the time that the file exists.
    #[must_use]
    pub fn lifetime(&self) -> LogLifetime {
        self.logs.lock().lifetime
    }

    /// Returns the reason why the file is missing or incomplete.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        match &self.state {
            State::Broken(reason) => Some(reason),
            State::NotCreated | State::Open(_) | State::Full => None,
        }
    }

    /// Returns the last part of the job's output.
    #[must_use]
    pub fn tail(&self) -> &str {
        &self.tail
    }
}

/// Writes text at an offset and truncates the file after it.
fn write_at(file: &File, text: &str, at: u64) -> io::Result<()> {
    if file.metadata()?.len() > at {
        file.set_len(at)?;
    }
    file.write_all_at(text.as_bytes(), at)
}

/// Appends to the tail and limits its size.
fn append_tail(tail: &mut String, text: &str) {
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

    fn logs(directory: &Path, max_bytes: u64) -> OutputLogs {
        OutputLogs::new(
            directory.join("run"),
            max_bytes,
            LogLifetime::Session,
            JobFiles::default(),
        )
    }

    fn text_of(text: &str) -> Redacted {
        Redactor::new(&Secrets::default()).redact(text)
    }

    fn text(log: &OutputLog) -> String {
        std::fs::read_to_string(log.path().unwrap()).unwrap()
    }

    #[test]
    fn nothing_is_written_before_it_is_needed() {
        let directory = tempfile::tempdir().unwrap();
        let logs = logs(directory.path(), 1000);
        let mut log = logs.log("../1 é");
        log.append(&text_of("lost?"), OutputSource::Job);
        assert_eq!((log.path(), log.problem()), (None, None));
        assert!(!directory.path().join("run").exists());
        log.create(&text_of("one\n"));
        log.append(&text_of("two\n"), OutputSource::Other);
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
        log.create(&text_of("a\n"));
        log.show_unfinished(&text_of("50 %"));
        assert_eq!(text(&log), "a\n50 %");
        log.append(&text_of("b\n"), OutputSource::Job);
        assert_eq!(text(&log), "a\nb\n");
    }

    #[test]
    fn a_file_has_a_maximum_size() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = logs(directory.path(), 5).log("1");
        log.create(&text_of("abc"));
        log.append(&text_of("éé"), OutputSource::Job);
        log.append(&text_of("more"), OutputSource::Job);
        assert_eq!(
            text(&log),
            "abcé\n[... the file ends here: it may have 5 bytes ...]\n"
        );
        assert_eq!(log.problem(), None);
        assert_eq!(log.tail(), "abcéémore");
    }

    #[test]
    fn a_directory_that_cannot_be_created_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("run"), "").unwrap();
        let mut log = logs(directory.path(), 5).log("1");
        log.create(&text_of("abc"));
        assert_eq!(log.path(), None);
        assert!(log.problem().is_some());
        log.append(&text_of("d"), OutputSource::Job);
        assert_eq!(log.tail(), "abcd");
    }

    #[test]
    fn only_the_newest_files_stay() {
        let directory = tempfile::tempdir().unwrap();
        let logs = logs(directory.path(), 5);
        for number in 0..limits::MAX_OUTPUT_FILES + 3 {
            logs.log(&number.to_string()).create(&text_of("x"));
        }
        let files = std::fs::read_dir(directory.path().join("run")).unwrap();
        assert_eq!(files.count(), limits::MAX_OUTPUT_FILES);
    }

    #[test]
    fn the_file_of_a_running_job_stays() {
        let directory = tempfile::tempdir().unwrap();
        let logs = logs(directory.path(), 5);
        let mut running = logs.log("job");
        running.create(&text_of("x"));
        for number in 0..limits::MAX_OUTPUT_FILES + 3 {
            logs.log(&number.to_string()).create(&text_of("x"));
        }
        assert_eq!(text(&running), "x");
        assert!(logs.has("job") && !logs.has("0"));
        let files = std::fs::read_dir(directory.path().join("run")).unwrap();
        assert_eq!(files.count(), limits::MAX_OUTPUT_FILES);
        drop(running);
        logs.log("last").create(&text_of("x"));
        assert!(!logs.has("job"));
    }
}
