//! One file of a change: what was found on the disk and what it is to become.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::attributes::Attributes;
use super::directory::{Directory, Stamp, split};
use super::journal::IsPrivate;
use super::metadata::SavedMetadata;
use super::prefetch::{Prefetch, Prefetcher};
use super::recover::RecoveryForecast;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// One path with its old and new content.
#[derive(Debug)]
pub struct Change {
    /// The path as it was given, for messages.
    pub(super) shown: PathBuf,
    /// The path with all symlinks followed.
    pub(super) real: PathBuf,
    /// The file as it was read; none when it does not exist.
    pub(super) before: Option<FileSnapshot>,
    /// The file as it will be; none when it is removed.
    pub(super) after: Option<NewContent>,
    /// Where its content goes, when it is renamed.
    pub(super) renamed_to: Option<PathBuf>,
    /// What it held, being made ready for the journal already.
    pub(super) prefetch: Option<Prefetch>,
}

/// A file that was read.
#[derive(Debug)]
pub(super) struct FileSnapshot {
    pub(super) stamp: Stamp,
    pub(super) bytes: Arc<Vec<u8>>,
    pub(super) attributes: Attributes,
}

/// What a file is to hold.
#[derive(Debug)]
pub(super) struct NewContent {
    pub(super) bytes: Vec<u8>,
    pub(super) metadata: MetadataSource,
}

/// Whose owner, permissions and attributes a file gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MetadataSource {
    /// Those of the file it replaces; of any new file when there is none.
    Replaced,
    /// Those of another file.
    CopyOf(PathBuf),
    /// Those of another file, with these permissions.
    CopyWithMode(PathBuf, u32),
    /// Those of the file it replaces, if there is one, with these permissions.
    Mode(u32),
    /// Those of a file that comes back, whatever is there now.
    Saved(SavedMetadata),
}

impl Change {
    /// Reads a file whole, as the first half of a change; `real` has every symlink resolved. A
    /// missing file is one that may be made.
    ///
    /// # Errors
    /// The path leads to something else than a file, to one that is too large, or cannot be read.
    pub fn read(shown: &Path, real: &Path) -> Result<Self, ToolError> {
        let before = FileSnapshot::read(shown, real)?;
        Ok(Self {
            before,
            ..Self::absent(shown, real)
        })
    }

    /// Reads a file as it will be once a change that was left half done is ended.
    pub(super) fn read_forecast(
        path: &Path,
        forecast: &RecoveryForecast,
    ) -> Result<Self, ToolError> {
        let Some(location) = forecast.location(path) else {
            return Self::read(path, path);
        };
        let mut before = None;
        if let Some(at) = &location.at {
            before = FileSnapshot::read(path, at)?;
        }
        if let Some(found) = &mut before {
            found.stamp.links = found.stamp.links.saturating_sub(location.names_less);
        }
        Ok(Self {
            before,
            ..Self::absent(path, path)
        })
    }

    fn absent(shown: &Path, real: &Path) -> Self {
        Self {
            shown: shown.to_owned(),
            real: real.to_owned(),
            before: None,
            after: None,
            renamed_to: None,
            prefetch: None,
        }
    }

    /// Returns what the file holds; none when it does not exist.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        let before = self.before.as_ref();
        before.map(|found| found.bytes.as_slice())
    }

    /// Says what the file is to hold. Without this the change removes it.
    #[must_use]
    pub fn with_content(mut self, bytes: Vec<u8>) -> Self {
        let metadata = MetadataSource::Replaced;
        self.after = Some(NewContent { bytes, metadata });
        self
    }

    /// Lets nobody but its owner read a file that is made now, when its content is private.
    pub(super) fn keep_private(&mut self, is_private: IsPrivate<'_>) {
        if let (None, Some(after)) = (&self.before, &mut self.after)
            && after.metadata == MetadataSource::Replaced
            && is_private(&after.bytes)
        {
            after.metadata = MetadataSource::Mode(0o600);
        }
    }

    /// Has what the file held made ready for the journal, if it is large.
    pub(super) fn start_prefetch(&mut self, prefetcher: &mut Prefetcher<'_, '_>) {
        let found = self.before.as_ref();
        self.prefetch = found.and_then(|found| prefetcher.start(&found.bytes));
    }

    /// Returns the file that its content comes from as it is.
    pub(super) fn source(&self) -> Option<&Path> {
        match &self.after.as_ref()?.metadata {
            MetadataSource::CopyOf(path) => Some(path),
            MetadataSource::Replaced
            | MetadataSource::CopyWithMode(..)
            | MetadataSource::Mode(_)
            | MetadataSource::Saved(_) => None,
        }
    }

    /// Whether the content that was read goes from its path.
    pub(super) fn leaves(&self) -> bool {
        let after = self.after.as_ref().map(|after| after.bytes.as_slice());
        self.before.is_some() && after != self.bytes()
    }

    /// Whether there is something to do.
    pub(super) fn is_needed(&self) -> bool {
        match (&self.before, &self.after) {
            (None, None) => false,
            (Some(_), None) | (None, Some(_)) => true,
            (Some(before), Some(after)) => {
                let has_mode = match &after.metadata {
                    MetadataSource::Mode(mode) => before.stamp.mode & 0o7777 == mode & 0o7777,
                    MetadataSource::Saved(_) => false,
                    MetadataSource::Replaced
                    | MetadataSource::CopyOf(_)
                    | MetadataSource::CopyWithMode(..) => true,
                };
                *before.bytes != after.bytes || !has_mode
            }
        }
    }
}

impl FileSnapshot {
    /// Reads a file; a missing one is none.
    pub(super) fn read(shown: &Path, real: &Path) -> Result<Option<Self>, ToolError> {
        let io = |error: io::Error| ToolError::from_io(shown, &error);
        let Some((parent, name)) = split(real) else {
            return Err(io(io::ErrorKind::IsADirectory.into()));
        };
        let directory = match Directory::open(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let above = parent
                    .ancestors()
                    .find_map(|path| Directory::open(path).ok());
                return above
                    .map_or(Ok(()), |above| check_place(shown, &above))
                    .map(|()| None);
            }
            opened => opened.map_err(io)?,
        };
        check_place(shown, &directory)?;
        let Some(stamp) = directory.stamp(name).map_err(io)? else {
            return Ok(None);
        };
        // Opening a device or a pipe can do something already.
        check_kind(shown, stamp)?;
        let file = directory.read(name).map_err(io)?;
        let stamp = Stamp::of(&file).map_err(io)?;
        check_kind(shown, stamp)?;
        let attributes = Attributes::read(&file).own();
        let mut bytes = Vec::with_capacity(usize::try_from(stamp.size + 1).unwrap_or(0));
        let most = limits::MAX_EDIT_FILE_BYTES + 1;
        file.take(most).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() as u64 == most {
            let message = format!("{}: grew while it was read", shown.display());
            return Err(ToolError::new(ErrorCode::FileTooLarge, message));
        }
        let bytes = Arc::new(bytes);
        Ok(Some(Self {
            stamp,
            bytes,
            attributes,
        }))
    }
}

/// Refuses a place where no file can be replaced.
fn check_place(shown: &Path, directory: &Directory) -> Result<(), ToolError> {
    if !directory.is_pseudo_file_system() {
        return Ok(());
    }
    let message = format!(
        "{}: expected a file that can be replaced, found one that the system makes up, as in /proc and /sys",
        shown.display()
    );
    let hint = "write to it with <command>, such as echo VALUE > PATH";
    Err(ToolError::new(ErrorCode::NotAFile, message).with_hint(hint))
}

fn check_kind(shown: &Path, found: Stamp) -> Result<(), ToolError> {
    let shown = shown.display();
    if found.is_directory() {
        let message = format!("{shown}: expected a file, found a directory");
        return Err(ToolError::new(ErrorCode::IsDirectory, message));
    }
    if found.is_link() {
        let message = format!("{shown}: expected a file, found a symlink that leads to no file");
        return Err(ToolError::new(ErrorCode::SymlinkLoop, message));
    }
    if !found.is_file() {
        let message = format!("{shown}: expected a file, found a pipe, socket or device");
        return Err(ToolError::new(ErrorCode::NotAFile, message));
    }
    if found.size > limits::MAX_EDIT_FILE_BYTES {
        let (size, most) = (found.size, limits::MAX_EDIT_FILE_BYTES);
        let message = format!("{shown}: {size} bytes, at most {most} can be edited");
        return Err(ToolError::new(ErrorCode::FileTooLarge, message));
    }
    Ok(())
}
