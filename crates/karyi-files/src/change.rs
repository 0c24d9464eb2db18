//! Change of one path: the file as it was read and the file as it will be.

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
    /// Path as the caller wrote it, for messages.
    pub(super) shown: PathBuf,
    /// Path with all symlinks resolved.
    pub(super) real: PathBuf,
    /// File as it was read; `None` when it does not exist.
    pub(super) before: Option<FileSnapshot>,
    /// File as it will be; `None` when it is removed.
    pub(super) after: Option<NewContent>,
    /// New path of its content after a rename.
    pub(super) renamed_to: Option<PathBuf>,
    /// Old content that a thread is already preparing for the journal.
    pub(super) prefetch: Option<Prefetch>,
}

/// Content and metadata of a file at the time it was read.
#[derive(Debug)]
pub(super) struct FileSnapshot {
    pub(super) stamp: Stamp,
    pub(super) bytes: Arc<Vec<u8>>,
    pub(super) attributes: Attributes,
}

/// Content that a file will have.
#[derive(Debug)]
pub(super) struct NewContent {
    pub(super) bytes: Vec<u8>,
    pub(super) metadata: MetadataSource,
}

/// Source of the owner, permissions and attributes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MetadataSource {
    /// The file it replaces, or the defaults of a new file.
    Replaced,
    /// Another file.
    CopyOf(PathBuf),
    /// Another file, with this mode.
    CopyWithMode(PathBuf, u32),
    /// The file it replaces, if any, with this mode.
    Mode(u32),
    /// Metadata from the journal, whatever is at the path now.
    Saved(SavedMetadata),
}

impl Change {
    /// Reads a whole file as the first half of a change; `real` has every symlink resolved. A missing file is
    /// not an error: the change may create it.
    ///
    /// # Errors
    /// The path is not a regular file, is too large, or cannot be read.
    pub fn read(shown: &Path, real: &Path) -> Result<Self, ToolError> {
        let before = FileSnapshot::read(shown, real)?;
        Ok(Self {
            before,
            ..Self::absent(shown, real)
        })
    }

    /// Reads a file as it will be after the recovery of an interrupted change.
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

    /// Returns the content of the file; `None` when it does not exist.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        let before = self.before.as_ref();
        before.map(|found| found.bytes.as_slice())
    }

    /// Sets the new content. A change without one removes the file.
    #[must_use]
    pub fn with_content(mut self, bytes: Vec<u8>) -> Self {
        let metadata = MetadataSource::Replaced;
        self.after = Some(NewContent { bytes, metadata });
        self
    }

    /// Restricts a new file to its owner when its content is private.
    pub fn restrict_if_private(&mut self, is_private: IsPrivate<'_>) {
        if let (None, Some(after)) = (&self.before, &mut self.after)
            && after.metadata == MetadataSource::Replaced
            && is_private(&after.bytes)
        {
            after.metadata = MetadataSource::Mode(0o600);
        }
    }

    /// Starts preparing the old content for the journal when it is large.
    pub(super) fn start_prefetch(&mut self, prefetcher: &mut Prefetcher<'_, '_>) {
        let found = self.before.as_ref();
        self.prefetch = found.and_then(|found| prefetcher.start(&found.bytes));
    }

    /// Returns the file that this one is an unchanged copy of.
    pub(super) fn source(&self) -> Option<&Path> {
        match &self.after.as_ref()?.metadata {
            MetadataSource::CopyOf(path) => Some(path),
            MetadataSource::Replaced
            | MetadataSource::CopyWithMode(..)
            | MetadataSource::Mode(_)
            | MetadataSource::Saved(_) => None,
        }
    }

    /// Tells whether the content that was read will no longer be at this path.
    pub(super) fn moves_away(&self) -> bool {
        let after = self.after.as_ref().map(|after| after.bytes.as_slice());
        self.before.is_some() && after != self.bytes()
    }

    /// Tells whether the change does anything.
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
    /// Reads a file; returns `None` when it does not exist.
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
        // Merely opening a device or a pipe can have an effect.
        check_kind(shown, stamp)?;
        let file = directory.read(name).map_err(io)?;
        let stamp = Stamp::of(&file).map_err(io)?;
        check_kind(shown, stamp)?;
        let attributes = Attributes::read(&file).without_system();
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

/// Refuses pseudo file systems, where a file cannot be replaced.
fn check_place(shown: &Path, directory: &Directory) -> Result<(), ToolError> {
    if !directory.is_pseudo_file_system() {
        return Ok(());
    }
    let message = format!(
        "{}: expected a file that can be replaced, found one of a pseudo file system such as /proc or /sys",
        shown.display()
    );
    let hint = "write to it with a command, such as `echo VALUE > PATH`";
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
