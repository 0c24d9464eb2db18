//! The journal for display: opened with the vault's key, with values masked.

use std::process::ExitCode;
use std::sync::Arc;

use crate::cli::interrupts::Interrupts;
use crate::cli::prompt::Asker;
use crate::cli::run::is_ci;
use crate::cli::vault::{self, VaultFlags};
use crate::cli::{say, undo_journal};
use karyi_core::error::{Code, ErrorCode, ToolError};
use karyi_files::journal::{Entry, Journal};
use karyi_vault::redact::Redactor;
use karyi_vault::session::LoadIssueKind;

/// The journal for a command that displays entries.
pub(super) struct HistoryView {
    /// The journal, with its key when a vault was opened.
    pub(super) journal: Arc<Journal>,
    /// Masks the values of the vault.
    pub(super) redactor: Redactor,
    /// Signals stay caught while this exists, since they cannot be handed back to the system.
    _interrupts: Option<Interrupts>,
}

impl HistoryView {
    /// Takes the journal of the running session.
    pub(super) fn new(journal: Arc<Journal>, redactor: Redactor) -> Self {
        Self {
            journal,
            redactor,
            _interrupts: None,
        }
    }
}

/// The reason why the journal cannot be shown.
pub(super) struct JournalUnavailable {
    pub(super) error: ToolError,
    /// Exit status after a signal, or after Ctrl+C at a question.
    interrupted: Option<u8>,
}

impl JournalUnavailable {
    /// Returns the exit status.
    pub(super) fn exit_code(&self) -> ExitCode {
        let status = || super::status(&self.error);
        ExitCode::from(self.interrupted.unwrap_or_else(status))
    }
}

/// Opens the journal to show some entries. Encrypted entries also need the vault's key; for others no
/// question is asked and only known values are masked.
///
/// # Errors
/// The vault is needed and cannot be opened, or lacks the key of an entry.
pub(super) fn open(
    flags: &VaultFlags,
    entries: &[&Entry],
) -> Result<HistoryView, JournalUnavailable> {
    let is_needed = entries.iter().any(|entry| entry.key.is_some());
    let asker = Asker::default().found(is_needed && !is_ci());
    let interrupts = asker.as_ref();
    let interrupts = interrupts.and_then(|asker| Interrupts::watch(&asker.stop_source).ok());
    match opened(flags, asker, entries, is_needed) {
        Ok((journal, redactor)) => Ok(HistoryView {
            journal: Arc::new(journal),
            redactor,
            _interrupts: interrupts,
        }),
        Err(error) => Err(JournalUnavailable {
            error,
            interrupted: interrupts.as_ref().and_then(Interrupts::exit_code),
        }),
    }
}

fn opened(
    flags: &VaultFlags,
    asker: Option<Asker>,
    entries: &[&Entry],
    is_needed: bool,
) -> Result<(Journal, Redactor), ToolError> {
    let (secrets, key) = vault::open_to_show(flags, asker, is_needed)?;
    for lack in secrets.load_issues() {
        let cause = lack.error.message;
        let (code, what) = match lack.kind {
            LoadIssueKind::Unread | LoadIssueKind::Elsewhere => {
                (Code::RedactionIncomplete, "values of the vault may show")
            }
            LoadIssueKind::Unusable => (
                Code::UnusableSecret,
                "values in the store cannot be used, and are masked",
            ),
        };
        say(&format!("{}: {what}: {cause}", code.as_str()));
    }
    let journal = undo_journal::open(key.as_ref())
        .map_err(|error| ToolError::new(ErrorCode::Io, format!("{error:#}")))?;
    for entry in entries {
        journal.check_key(entry)?;
    }
    Ok((journal, Redactor::new(&secrets)))
}
