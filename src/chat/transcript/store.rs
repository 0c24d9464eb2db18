//! The directory with the transcripts of all chats.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::chat::transcript::file::{SUFFIX, Transcript, TranscriptWriter, lock, path_of};
use crate::chat::transcript::record::{ChatStart, VERSION};
use crate::chat::transcript::state::ChatState;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::ids;
use karyi_model::ModelRequest;
use karyi_vault::redact::Redactor;

/// Directory with transcripts.
#[derive(Clone)]
pub struct ChatStore {
    directory: PathBuf,
    redactor: Redactor,
}

/// Summary of a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatSummary {
    /// Id.
    pub id: String,
    /// Time of its start.
    pub started: Timestamp,
    /// Time of its last record.
    pub changed: Timestamp,
    /// Title, or the first text of the user.
    pub title: String,
    /// Directory.
    pub cwd: String,
    /// Model that answered last.
    pub model: String,
    /// Number of texts of the user.
    pub turns: usize,
    /// Sentence about damage.
    pub damage: Option<String>,
}

impl ChatStore {
    /// Makes the store of a directory, which may not exist yet. Texts are redacted again when they are read.
    #[must_use]
    pub fn new(directory: PathBuf, redactor: Redactor) -> Self {
        Self {
            directory,
            redactor,
        }
    }

    /// Starts a chat in a directory with a model. Its file is made with the first record.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn create(&self, cwd: &Path, model: &str) -> Result<TranscriptWriter, ToolError> {
        let random = ids::random::<3>()
            .map_err(|_| ToolError::new(ErrorCode::Io, "the system has no random bytes"))?;
        let now = Timestamp::now().strftime("%Y%m%d-%H%M%S");
        let id = format!("{now}-{}", ids::hex(&random));
        let start = ChatStart {
            version: VERSION,
            cwd: self.redactor.redact_whole_again(&cwd.to_string_lossy()),
            model: self.redactor.redact_whole_again(model),
        };
        Ok(TranscriptWriter::new(&self.directory, id, start))
    }

    /// Returns the chats of a directory, or all, newest first. A file that is no transcript is left out.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn list(&self, cwd: Option<&Path>) -> Result<Vec<ChatSummary>, ToolError> {
        let cwd = cwd.map(|cwd| self.redactor.redact_whole_again(&cwd.to_string_lossy()));
        let mut chats = Vec::new();
        for id in self.ids()? {
            let path = path_of(&self.directory, &id);
            // The start first: a whole transcript may be large.
            if let Some(cwd) = &cwd
                && Transcript::read_start(&path, &self.redactor)
                    .is_ok_and(|start| start.cwd != *cwd)
            {
                continue;
            }
            let transcript = Transcript::read(&path, &self.redactor);
            chats.extend(transcript.ok().map(|transcript| summary(id, &transcript)));
        }
        chats.sort_by_key(|chat| std::cmp::Reverse(chat.changed));
        Ok(chats)
    }

    /// Returns the id that a text names: an id, or the start of one only.
    ///
    /// # Errors
    /// There is no such chat, or several.
    pub fn find(&self, text: &str) -> Result<String, ToolError> {
        let mut ids = self.ids()?;
        if let Some(at) = ids.iter().position(|id| id == text) {
            return Ok(ids.swap_remove(at));
        }
        ids.retain(|id| !text.is_empty() && id.starts_with(text));
        match ids.as_slice() {
            [only] => Ok(only.clone()),
            [] => {
                let message = format!("there is no chat {text:?}");
                Err(ToolError::new(ErrorCode::NotFound, message)
                    .with_hint("`karyi chats list --all` lists the chats"))
            }
            several => {
                let several = several.join(", ");
                let message = format!("{text:?} is the start of several chats: {several}");
                Err(ToolError::new(ErrorCode::BadArguments, message).with_hint("write more of it"))
            }
        }
    }

    /// Reads a chat.
    ///
    /// # Errors
    /// Its file cannot be read, or is no transcript.
    pub fn read(&self, id: &str) -> Result<Transcript, ToolError> {
        Transcript::read(&path_of(&self.directory, id), &self.redactor)
    }

    /// Opens a chat to go on with. The record that was being written when the last program died is cut off.
    ///
    /// # Errors
    /// Its file cannot be read or written, is no transcript, or is open in another karyi.
    pub fn resume(&self, id: &str) -> Result<(Transcript, TranscriptWriter), ToolError> {
        TranscriptWriter::resume(&self.directory, id.to_owned(), &self.redactor)
    }

    /// Removes a chat.
    ///
    /// # Errors
    /// Its file cannot be removed, or it is open in another karyi.
    pub fn remove(&self, id: &str) -> Result<(), ToolError> {
        let path = path_of(&self.directory, id);
        let _lock = lock(&path, id, File::options().read(true))?;
        fs::remove_file(&path).map_err(|error| ToolError::from_io(&path, &error))
    }

    /// Returns the ids of all chats; none when the directory does not exist.
    fn ids(&self) -> Result<Vec<String>, ToolError> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ToolError::from_io(&self.directory, &error)),
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let ids = names.filter_map(|name| Some(name.to_str()?.strip_suffix(SUFFIX)?.to_owned()));
        Ok(ids.collect())
    }
}

/// Returns the summary of a chat.
#[must_use]
pub fn summary(id: String, transcript: &Transcript) -> ChatSummary {
    let state = ChatState::replay(ModelRequest::default(), transcript);
    ChatSummary {
        id,
        started: transcript.at,
        changed: transcript
            .records
            .last()
            .map_or(transcript.at, |last| last.at),
        title: state.title().unwrap_or_default(),
        cwd: transcript.start.cwd.as_str().to_owned(),
        model: state.model().as_str().to_owned(),
        turns: state.history().turn_count(),
        damage: transcript.damage.sentence(),
    }
}
