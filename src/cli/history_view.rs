//! The journal as commands show it: opened with the key that the vault has, its values masked.

use std::process::ExitCode;
use std::sync::Arc;

use crate::cli::interrupts::Interrupts;
use crate::cli::prompt::Asker;
use crate::cli::run::is_ci;
use crate::cli::vault::{self, VaultFlags};
use crate::cli::{journal, say};
use karyi_core::error::{Code, ErrorCode, ToolError};
use karyi_files::journal::{Entry, Journal};
use karyi_vault::redact::Redactor;
use karyi_vault::session::LoadIssueKind;

/// The journal for a command that shows what it holds.
pub(super) struct HistoryView {
    /// The journal, with its key when a vault was opened.
    pub(super) journal: Arc<Journal>,
    /// Masks the values of the vault.
    pub(super) redactor: Redactor,
    /// What was caught once is not left to the system again: it ends the command as long as this exists.
    _interrupts: Option<Interrupts>,
}

/// Why the journal cannot be shown.
pub(super) struct Refused {
    pub(super) error: ToolError,
    /// The exit status of a signal that came meanwhile, or of Ctrl+C at a question.
    interrupted: Option<u8>,
}

impl Refused {
    /// Returns the exit status.
    pub(super) fn exit_code(&self) -> ExitCode {
        let status = || super::status(&self.error);
        ExitCode::from(self.interrupted.unwrap_or_else(status))
    }
}

/// Opens the journal to show some of its entries, and the vault with it: without its key nothing is
/// known of encrypted entries. For others nobody is asked, and what is masked is what is at hand.
///
/// # Errors
/// The vault has to be opened and cannot be, or it has not the key of every entry.
pub(super) fn open(flags: &VaultFlags, entries: &[&Entry]) -> Result<HistoryView, Refused> {
    let is_needed = entries.iter().any(|entry| entry.key.is_some());
    let asker = Asker::default().found(is_needed && !is_ci());
    let interrupts = asker.as_ref();
    let interrupts = interrupts.and_then(|asker| Interrupts::watch(&asker.outside).ok());
    match opened(flags, asker, entries, is_needed) {
        Ok((journal, redactor)) => Ok(HistoryView {
            journal: Arc::new(journal),
            redactor,
            _interrupts: interrupts,
        }),
        Err(error) => Err(Refused {
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
    let journal = journal::open(key.as_ref())
        .map_err(|error| ToolError::new(ErrorCode::Io, format!("{error:#}")))?;
    for entry in entries {
        journal.check_key(entry)?;
    }
    Ok((journal, Redactor::new(&secrets)))
}
