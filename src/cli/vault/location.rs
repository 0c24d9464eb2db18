//! Location of the vault: its directory, the chosen store and its keys.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::identity::{IDENTITY_FILE, make_identity};
use super::run_values::{given, mask_keys, passphrase};
use super::{AGE_FILE, VaultFlags, absolute, service};
use crate::cli::prompt::{Asker, hidden};
use crate::cli::{say, state_dir};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::SecretValue;
use karyi_vault::index::{FILE_NAME, Index, StoreChoice};
use karyi_vault::session::Secrets;
use karyi_vault::store::age::{self, AgeKey, AgeStore, GetKey, KeyRequest};
use karyi_vault::store::env::EnvStore;
use karyi_vault::store::memory::MemoryStore;
use karyi_vault::store::os::{OsStore, UserPresence};
use karyi_vault::store::slow_notice::Notice;
use karyi_vault::store::{Kind, Store};
use karyi_vault::sync::{ChooseStore, OpenChosenStore, UnlistedFile};
use karyi_vault::vault::Vault;

/// Location of the vault, and how it is opened.
#[derive(Clone)]
pub(in crate::cli) struct VaultLocation {
    /// The directory of index and encrypted file.
    pub(in crate::cli) directory: PathBuf,
    flags: VaultFlags,
    /// The user whom an opening store can ask.
    pub(in crate::cli) asker: Option<Asker>,
}

impl VaultLocation {
    /// Finds the vault's directory.
    pub(in crate::cli) fn find(
        flags: &VaultFlags,
        asker: Option<Asker>,
    ) -> Result<Self, ToolError> {
        let directory = state_dir::data_dir().map_err(|error| {
            let other = |error| ToolError::new(ErrorCode::NotFound, format!("{error:#}"));
            error.downcast().unwrap_or_else(other)
        })?;
        Ok(Self {
            directory,
            flags: flags.clone(),
            asker,
        })
    }

    /// Returns the chosen store, unless another one was settled, or an encrypted file that no index lists.
    pub(super) fn chosen_or_unlisted(
        &self,
        index: &Index,
        initial_choice: Option<&StoreChoice>,
    ) -> (Option<StoreChoice>, UnlistedFile) {
        let chosen = initial_choice.cloned().or_else(|| self.chosen(index));
        let is_in_use = chosen
            .as_ref()
            .is_some_and(|chosen| chosen.kind == Kind::Age);
        let unlisted = match self.has_unlisted(index) {
            false => UnlistedFile::Nothing,
            true if is_in_use => UnlistedFile::InUse,
            true => UnlistedFile::NotInUse,
        };
        (chosen, unlisted)
    }

    /// Returns the same place without questions.
    pub(super) fn quiet(&self) -> Self {
        Self {
            asker: None,
            ..self.clone()
        }
    }

    /// Returns how a session chooses its store: the one in use at its start, else the one in the index at the time of
    /// use.
    pub(super) fn choosing(&self, initial_choice: Option<StoreChoice>) -> ChooseStore {
        let place = self.clone();
        Box::new(move |index| place.chosen_or_unlisted(index, initial_choice.as_ref()))
    }

    /// Returns how that store is opened.
    pub(super) fn opening(&self, initial_choice: Option<StoreChoice>) -> OpenChosenStore {
        let place = self.clone();
        Box::new(move |opening| {
            let (chosen, _) = place.chosen_or_unlisted(opening.index, initial_choice.as_ref());
            let chosen = chosen.unwrap_or_else(|| unopened(Kind::Memory));
            place.mask_keys(opening.secrets, Some(&chosen));
            Ok(place.store(&chosen))
        })
    }

    /// Masks the keys of a store.
    pub(super) fn mask_keys(&self, secrets: &Secrets, chosen: Option<&StoreChoice>) {
        let identity = chosen.and_then(|chosen| chosen.identity.as_deref());
        mask_keys(secrets, self.flags.age_passphrase_fd, identity);
    }

    /// Returns true when there is an encrypted file without an index that names a store.
    pub(in crate::cli) fn has_unlisted(&self, index: &Index) -> bool {
        index.store.is_none() && self.has_age_file()
    }

    /// Returns true when a file with the name of the encrypted file exists.
    pub(in crate::cli) fn has_age_file(&self) -> bool {
        self.age_file().symlink_metadata().is_ok()
    }

    /// Returns the path of the encrypted file.
    pub(in crate::cli) fn age_file(&self) -> PathBuf {
        self.directory.join(AGE_FILE)
    }

    /// Returns the chosen store: by flag, else the remembered one, else an encrypted file that no index lists, since the
    /// index was lost.
    pub(in crate::cli) fn chosen(&self, index: &Index) -> Option<StoreChoice> {
        let unlisted = || {
            let is_unlisted = self.has_unlisted(index);
            is_unlisted.then(|| unopened(Kind::Age))
        };
        // An unreadable index belonged to a store.
        let keyring = || index.is_damaged.then(StoreChoice::os);
        let remembered = index.store.clone().or_else(unlisted).or_else(keyring);
        let kind = self.flags.vault.0;
        let kind = kind.or(remembered.as_ref().map(|chosen| chosen.kind))?;
        let flags = &self.flags;
        let identity = || {
            let given = flags.age_identity.as_deref().map(absolute);
            // A new file uses the given keys; an existing one opens as before.
            let is_said = flags.vault.0 == Some(Kind::Age) && flags.age_passphrase_fd.is_some();
            let is_new = is_said && !self.age_file().exists();
            let kept = remembered.and_then(|chosen| chosen.identity);
            let kept = kept.filter(|_| !is_new);
            // The directory may have been moved together with the identity.
            let there = kept.clone().filter(|path| path.exists());
            let known = given.or(there).or_else(|| self.own_identity());
            known.or(kept)
        };
        let identity = (kind == Kind::Age).then(identity).flatten();
        Some(StoreChoice { kind, identity })
    }

    fn own_identity_path(&self) -> PathBuf {
        self.directory.join(IDENTITY_FILE)
    }

    /// Returns the identity that karyi created, when it opens the encrypted file or a new one.
    fn own_identity(&self) -> Option<PathBuf> {
        let path = self.own_identity_path();
        let is_wanted = || match self.has_age_file() {
            true => age::is_for_identity(&self.age_file()),
            false => self.flags.age_passphrase_fd.is_none(),
        };
        (path.is_file() && is_wanted()).then_some(path)
    }

    /// Returns the store with its keys: a new encrypted file gets an identity when none is named.
    ///
    /// # Errors
    /// The identity file cannot be written.
    pub(in crate::cli) fn with_identity(
        &self,
        chosen: StoreChoice,
    ) -> Result<StoreChoice, ToolError> {
        let has_key = chosen.identity.is_some() || self.flags.age_passphrase_fd.is_some();
        if chosen.kind != Kind::Age || has_key {
            return Ok(chosen);
        }
        if self.has_age_file() {
            // Another process may have created both since the store was chosen.
            let identity = self.own_identity();
            return Ok(StoreChoice { identity, ..chosen });
        }
        let path = self.own_identity_path();
        if make_identity(&path)? {
            let (file, path) = (self.age_file(), path.display());
            say(&format!(
                "secrets are encrypted in {}, and {path} opens it: keep a copy of both",
                file.display()
            ));
        }
        Ok(StoreChoice {
            identity: Some(path),
            ..chosen
        })
    }

    /// Returns a store; it is opened on first use.
    pub(in crate::cli) fn store(&self, chosen: &StoreChoice) -> Arc<dyn Store> {
        let waiting = |words| self.asker.as_ref().map(|asker| waiting(asker, words));
        match chosen.kind {
            Kind::Os => match waiting(of_keyring) {
                Some(notice) => {
                    Arc::new(OsStore::new(service(), UserPresence::Present).with_notice(notice))
                }
                None => keyring(),
            },
            Kind::Age => {
                let store = AgeStore::new(self.age_file(), self.key(chosen.identity.clone()));
                Arc::new(match waiting(of_file) {
                    Some(notice) => store.with_notice(notice),
                    None => store,
                })
            }
            Kind::Memory => Arc::new(MemoryStore::default()),
            Kind::Env => Arc::new(EnvStore::new(given().unwrap_or_default())),
        }
    }

    /// Returns the vault: a store and the index.
    pub(in crate::cli) fn vault(&self, chosen: StoreChoice) -> Vault {
        let store = self.store(&chosen);
        self.joined(chosen, store)
    }

    /// Returns the vault: an open store and the index.
    pub(super) fn joined(&self, chosen: StoreChoice, store: Arc<dyn Store>) -> Vault {
        let vault = Vault::new(self.directory.clone(), chosen, store);
        match self.flags.vault.0 {
            None => vault.requiring_current_store(),
            Some(_) => vault,
        }
    }

    /// Returns true when the store can be queried without asking the user.
    pub(in crate::cli) fn is_quiet(&self, chosen: &StoreChoice) -> bool {
        match chosen.kind {
            Kind::Os | Kind::Memory | Kind::Env => true,
            Kind::Age => {
                chosen.identity.is_some()
                    || self.flags.age_passphrase_fd.is_some()
                    || !self.has_age_file()
                    || age::is_for_identity(&self.age_file())
            }
        }
    }

    /// Returns the source of the file's key: a file, a descriptor or the user.
    fn key(&self, identity: Option<PathBuf>) -> GetKey {
        let descriptor = self.flags.age_passphrase_fd;
        let (asker, file) = (self.asker.clone(), self.age_file());
        Arc::new(move |asked| {
            let given = descriptor.map(passphrase).transpose()?;
            match (&identity, given) {
                (Some(path), given) => AgeKey::identity(path, given.as_ref()),
                (None, Some(given)) => Ok(passphrase_key(&given)),
                (None, None) if asked == KeyRequest::New || age::is_for_identity(&file) => {
                    Err(no_identity(&file))
                }
                (None, None) => {
                    let typed = ask_passphrase(asker.as_ref(), asked)?;
                    Ok(passphrase_key(&typed).typed())
                }
            }
        })
    }

    /// Warns about a directory writable by others, who could replace the store.
    pub(super) fn warn_if_open(&self) {
        if let Some(mode) = mode_for(&self.directory, WRITABLE) {
            let directory = self.directory.display();
            say(&format!(
                "warning: others can write to {directory} (mode {mode:04o}), where the vault is: chmod 700 {directory}"
            ));
        }
    }

    /// Returns the parts of the vault that others can read or write, with their modes: directory and files.
    pub(in crate::cli) fn open_to_others(
        &self,
        chosen: Option<&StoreChoice>,
    ) -> Vec<(PathBuf, u32)> {
        let identity = chosen.and_then(|chosen| chosen.identity.clone());
        let files = [self.directory.join(FILE_NAME), self.age_file()];
        let all = std::iter::once(self.directory.clone())
            .chain(files)
            .chain(identity);
        all.filter_map(|path| mode_for(&path, ACCESSIBLE).map(|mode| (path, mode)))
            .collect()
    }
}

/// Returns the key of a passphrase. A debug build takes the work factor of the variable `KARYI_TEST_PASSPHRASE_WORK`,
/// so that tests need not spend seconds on each file.
fn passphrase_key(passphrase: &SecretValue) -> AgeKey {
    if cfg!(debug_assertions)
        && let Some(work) = std::env::var_os("KARYI_TEST_PASSPHRASE_WORK")
        && let Some(work) = work.to_str().and_then(|text| text.parse().ok())
    {
        return AgeKey::with_work(passphrase, work);
    }
    AgeKey::passphrase(passphrase)
}

fn ask_passphrase(asker: Option<&Asker>, asked: KeyRequest) -> Result<SecretValue, ToolError> {
    let label = match asked {
        KeyRequest::New | KeyRequest::First => "passphrase of the vault (hidden): ",
        KeyRequest::Again => "wrong passphrase, try again\npassphrase of the vault (hidden): ",
    };
    let otherwise =
        "give the passphrase of the vault with --age-passphrase-fd N, or run karyi on a terminal";
    let typed = hidden(asker, label, otherwise)?;
    let most = limits::MAX_SECRET_BYTES;
    if typed.expose().len() > most {
        let message = format!("the passphrase is longer than {most} bytes");
        return Err(ToolError::new(ErrorCode::BadValue, message).with_hint("use a shorter one"));
    }
    Ok(typed)
}

/// Returns a store without keys.
pub(in crate::cli) fn unopened(kind: Kind) -> StoreChoice {
    let identity = None;
    StoreChoice { kind, identity }
}

/// Returns the keyring without questions; a hanging one is waited for only once.
pub(in crate::cli) fn keyring() -> Arc<dyn Store> {
    static KEYRING: LazyLock<Arc<dyn Store>> =
        LazyLock::new(|| Arc::new(OsStore::new(service(), UserPresence::Absent)));
    Arc::clone(&KEYRING)
}

/// Returns the message for waiting for the keyring, with the time limit.
fn of_keyring(most: Duration) -> String {
    let seconds = most.as_secs();
    format!("waiting for the keyring to answer ({seconds} s at most; Ctrl+C ends)")
}

/// Returns the message for a slow encrypted file; its duration is unknown.
fn of_file(_: Duration) -> String {
    "waiting for the vault: its passphrase takes seconds to check".to_owned()
}

/// Returns the notice shown while the user waits.
fn waiting(asker: &Asker, words: fn(Duration) -> String) -> Notice {
    let terminal_lock = asker.terminal_lock.clone();
    Arc::new(move |most| {
        // The user knows what a question waits for; and nothing waits for this notice.
        let is_free = terminal_lock.is_free();
        if is_free {
            say(&words(most));
        }
        is_free
    })
}

/// Mode bits that let others write.
const WRITABLE: u32 = 0o022;
/// Mode bits that give others any access.
const ACCESSIBLE: u32 = 0o077;

/// Returns the mode of a file when it has some of these bits.
fn mode_for(path: &Path, bits: u32) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = path.metadata().ok()?.permissions().mode() & 0o7777;
    (mode & bits != 0).then_some(mode)
}

/// Returns the error for an encrypted file without a known identity.
fn no_identity(file: &Path) -> ToolError {
    let message = format!(
        "{} is encrypted for an identity, and no index says for which",
        file.display()
    );
    ToolError::new(ErrorCode::WrongKey, message).with_hint(
        "name it with --age-identity FILE; `karyi var doctor --repair --vault age --age-identity FILE` makes the \
         index anew",
    )
}
