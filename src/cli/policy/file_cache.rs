//! A value that was read from files, kept until one of them changes.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use karyi_core::limits;

/// Value that was read from files.
pub(super) struct FileCache<T> {
    kept: Mutex<Option<(Vec<FileStamp>, T)>>,
}

/// A path as it was: the file that it leads to, and the link where it is one. Both are nothing where no file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    file: Option<FileState>,
    link: Option<FileState>,
}

/// Identity, length and times of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    place: (u64, u64),
    length: u64,
    modified: (i64, i64),
    /// Time of the last change of content, owner or mode: nobody can set it.
    changed: (i64, i64),
}

impl<T> Default for FileCache<T> {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
        }
    }
}

impl<T: Clone> FileCache<T> {
    /// Returns the value; `read` reads it again if one of its files has changed.
    ///
    /// # Errors
    /// Those of `read`.
    pub(super) fn get(
        &self,
        files: &[PathBuf],
        read: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemTime::now();
        // Before the value is read: what changes meanwhile has another stamp.
        let stamps = files.iter().map(|file| FileStamp::of(file));
        let stamps = stamps.collect::<io::Result<Vec<_>>>().ok();
        if let (Some((known, value)), Some(stamps)) = (&*kept, &stamps)
            && known == stamps
        {
            return Ok(value.clone());
        }
        *kept = None;
        let value = read()?;
        // A second change within the same moment would have the same time.
        let stamps = stamps.filter(|stamps| stamps.iter().all(|stamp| stamp.is_settled(now)));
        *kept = stamps.map(|stamps| (stamps, value.clone()));
        Ok(value)
    }
}

impl FileStamp {
    fn of(path: &Path) -> io::Result<Self> {
        let state = |found: io::Result<fs::Metadata>| match found {
            Ok(found) => Ok(Some(FileState::of(&found))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        Ok(Self {
            file: state(fs::metadata(path))?,
            link: state(fs::symlink_metadata(path))?,
        })
    }

    fn is_settled(&self, now: SystemTime) -> bool {
        let states = [self.file, self.link];
        states.into_iter().flatten().all(|state| {
            let (seconds, nanos) = state.changed;
            let seconds = u64::try_from(seconds).unwrap_or_default();
            let nanos = u32::try_from(nanos).unwrap_or_default();
            let changed = UNIX_EPOCH + Duration::new(seconds, nanos);
            let age = now.duration_since(changed);
            age.is_ok_and(|age| age >= limits::FOLDER_TIME_GRAIN)
        })
    }
}

impl FileState {
    fn of(found: &fs::Metadata) -> Self {
        Self {
            place: (found.dev(), found.ino()),
            length: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs::{File, FileTimes};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    struct Reader {
        cache: FileCache<String>,
        files: [PathBuf; 2],
        reads: Cell<usize>,
    }

    impl Reader {
        fn new(directory: &Path) -> Self {
            Self {
                cache: FileCache::default(),
                files: ["a", "b"].map(|name| directory.join(name)),
                reads: Cell::new(0),
            }
        }

        fn get(&self) -> String {
            let value = self.cache.get(&self.files, || {
                self.reads.set(self.reads.get() + 1);
                let text = |file| fs::read_to_string(file).unwrap_or_default();
                Ok(self.files.each_ref().map(text).join("|"))
            });
            value.unwrap()
        }

        /// Gets the value until the files are old enough to be trusted; returns the number of reads.
        fn settle(&self, expected: &str) -> usize {
            loop {
                let before = self.reads.get();
                assert_eq!(self.get(), expected);
                if self.reads.get() == before {
                    return before;
                }
            }
        }
    }

    #[test]
    fn files_are_read_again_when_they_change_and_only_then() {
        let temp = tempfile::tempdir().unwrap();
        let reader = Reader::new(temp.path());
        let [a, b] = reader.files.clone();
        assert_eq!((reader.settle("|"), reader.get()), (1, "|".to_owned()));
        fs::write(&a, "1").unwrap();
        let reads = reader.settle("1|");
        for _ in 0..100 {
            reader.get();
        }
        assert_eq!(reader.reads.get(), reads);
        // The same length and the same time of the content.
        let modified = fs::metadata(&a).unwrap().modified().unwrap();
        fs::write(&a, "2").unwrap();
        let file = File::options().write(true).open(&a).unwrap();
        file.set_times(FileTimes::new().set_modified(modified))
            .unwrap();
        reader.settle("2|");
        // Another file with the same content, another mode, and a link.
        fs::write(&b, "3").unwrap();
        let reads = reader.settle("2|3");
        fs::set_permissions(&b, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(reader.settle("2|3") > reads);
        fs::remove_file(&a).unwrap();
        reader.settle("|3");
        symlink(&b, &a).unwrap();
        let reads = reader.settle("3|3");
        fs::remove_file(&a).unwrap();
        fs::hard_link(&b, &a).unwrap();
        assert!(reader.settle("3|3") > reads);
    }

    #[test]
    fn every_change_of_a_file_that_changes_again_and_again_counts() {
        let temp = tempfile::tempdir().unwrap();
        let reader = Reader::new(temp.path());
        for number in 0..2000 {
            let text = format!("{:04}", number);
            fs::write(&reader.files[0], &text).unwrap();
            assert_eq!(reader.get(), format!("{text}|"));
        }
    }

    #[test]
    fn a_failure_is_not_kept() {
        let cache: FileCache<u8> = FileCache::default();
        assert!(cache.get(&[], || anyhow::bail!("no")).is_err());
        assert_eq!(cache.get(&[], || Ok(1)).unwrap(), 1);
        assert_eq!(cache.get(&[], || Ok(2)).unwrap(), 1);
    }
}
