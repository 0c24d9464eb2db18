//! The journal as commands show it: opened with the key that the vault has, its values masked.

use std::sync::Arc;

use crate::cli::interrupts::Interrupts;
use crate::cli::prompt::Outside;
use crate::cli::run::is_ci;
use crate::cli::vault::{self, Asker, Asking, VaultFlags};
use crate::cli::{journal, say};
use crate::error::{Code, ErrorCode, ToolError};
use crate::files::journal::{Entry, Journal};
use crate::vault::redact::Redactor;
use crate::vault::session::LackKind;

/// The journal for a command that shows what it holds.
pub(super) struct Shown {
    /// The journal, with its key when a vault was opened.
    pub(super) journal: Arc<Journal>,
    /// Masks the values of the vault.
    pub(super) redactor: Redactor,
    /// What was caught once is not left to the system again: it ends the command as long as this exists.
    _interrupts: Option<Interrupts>,
}

/// Opens the journal to show some of its entries, and the vault with it: without its key nothing is
/// known of encrypted entries. For others nobody is asked, and what is masked is what is at hand.
///
/// # Errors
/// The vault has to be opened and cannot be, or it has not the key of every entry.
pub(super) fn open(flags: &VaultFlags, entries: &[&Entry]) -> Result<Shown, ToolError> {
    let is_needed = entries.iter().any(|entry| entry.key.is_some());
    let outside = Outside::default();
    let asker = Asker {
        floor: None,
        outside: outside.clone(),
    };
    let asking = vault::asking(is_needed && !is_ci(), asker);
    let interrupts = match &asking {
        Asking::OnTerminal(_) => Interrupts::watch(&outside).ok(),
        Asking::Nobody => None,
    };
    let (secrets, key) = vault::open_to_show(flags, asking, is_needed)?;
    for lack in secrets.lacks() {
        let cause = lack.error.message;
        let (code, what) = match lack.kind {
            LackKind::Unread | LackKind::Elsewhere => {
                (Code::RedactionIncomplete, "values of the vault may show")
            }
            LackKind::Unusable => (
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
    Ok(Shown {
        journal: Arc::new(journal),
        redactor: Redactor::new(&secrets),
        _interrupts: interrupts,
    })
}
