//! The place of the vault: its directory, the store that was chosen, and how that is opened.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::given::{given, mask_keys, passphrase};
use super::identity::{IDENTITY_FILE, make_identity};
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

/// The place of the vault and how it is opened.
#[derive(Clone)]
pub(in crate::cli) struct Place {
    /// The directory of index and encrypted file.
    pub(in crate::cli) directory: PathBuf,
    flags: VaultFlags,
    /// Whom a store that is opened can ask.
    pub(in crate::cli) asker: Option<Asker>,
}

impl Place {
    /// Finds the place.
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

    /// Returns the store that was chosen, unless another one was settled, and what there is of an encrypted file that
    /// no index lists.
    pub(super) fn chosen_or_unlisted(
        &self,
        index: &Index,
        settled: Option<&StoreChoice>,
    ) -> (Option<StoreChoice>, UnlistedFile) {
        let chosen = settled.cloned().or_else(|| self.chosen(index));
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

    /// Returns the same place where nobody is asked.
    pub(super) fn quiet(&self) -> Self {
        Self {
            asker: None,
            ..self.clone()
        }
    }

    /// Returns which store a session uses: the one that was in use at its start, else the one that the index names by
    /// the time somebody wants to know.
    pub(super) fn choosing(&self, settled: Option<StoreChoice>) -> ChooseStore {
        let place = self.clone();
        Box::new(move |index| place.chosen_or_unlisted(index, settled.as_ref()))
    }

    /// Returns how that store is opened.
    pub(super) fn opening(&self, settled: Option<StoreChoice>) -> OpenChosenStore {
        let place = self.clone();
        Box::new(move |opening| {
            let (chosen, _) = place.chosen_or_unlisted(opening.index, settled.as_ref());
            let chosen = chosen.unwrap_or_else(|| unopened(Kind::Memory));
            place.mask_keys(opening.secrets, Some(&chosen));
            Ok(place.store(&chosen))
        })
    }

    /// Lets redaction know what opens a store.
    pub(super) fn mask_keys(&self, secrets: &Secrets, chosen: Option<&StoreChoice>) {
        let identity = chosen.and_then(|chosen| chosen.identity.as_deref());
        mask_keys(secrets, self.flags.age_passphrase_fd, identity);
    }

    /// Whether there is an encrypted file, and no index says which store is in use.
    pub(in crate::cli) fn has_unlisted(&self, index: &Index) -> bool {
        index.store.is_none() && self.has_age_file()
    }

    /// Whether anything has the name of the encrypted file.
    pub(in crate::cli) fn has_age_file(&self) -> bool {
        self.age_file().symlink_metadata().is_ok()
    }

    /// Returns the path of the encrypted file.
    pub(in crate::cli) fn age_file(&self) -> PathBuf {
        self.directory.join(AGE_FILE)
    }

    /// Returns the store that was chosen: by flag, else the remembered one, else an encrypted file that no index
    /// lists: the index was lost.
    pub(in crate::cli) fn chosen(&self, index: &Index) -> Option<StoreChoice> {
        let unlisted = || {
            let is_unlisted = self.has_unlisted(index);
            is_unlisted.then(|| unopened(Kind::Age))
        };
        // An index that cannot be read any more was made for a store.
        let keyring = || index.is_damaged.then(StoreChoice::os);
        let remembered = index.store.clone().or_else(unlisted).or_else(keyring);
        let kind = self.flags.vault.0;
        let kind = kind.or(remembered.as_ref().map(|chosen| chosen.kind))?;
        let flags = &self.flags;
        let identity = || {
            let given = flags.age_identity.as_deref().map(absolute);
            // A file that is made anew is for what was said of it; one that is there opens as before.
            let is_said = flags.vault.0 == Some(Kind::Age) && flags.age_passphrase_fd.is_some();
            let is_new = is_said && !self.age_file().exists();
            let kept = remembered.and_then(|chosen| chosen.identity);
            let kept = kept.filter(|_| !is_new);
            // The directory may have been moved, with the identity in it.
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

    /// Returns the identity that karyi made, where it opens the encrypted file or a new one.
    fn own_identity(&self) -> Option<PathBuf> {
        let path = self.own_identity_path();
        let is_wanted = || match self.has_age_file() {
            true => age::is_for_identity(&self.age_file()),
            false => self.flags.age_passphrase_fd.is_none(),
        };
        (path.is_file() && is_wanted()).then_some(path)
    }

    /// Returns the store with what opens it: a new encrypted file gets an identity where nothing else is named.
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
            // Another program may have made both since the store was chosen.
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

    /// Returns a store; nothing is opened or asked before it is used.
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

    /// Returns the vault: a store that is open already, and the index.
    pub(super) fn joined(&self, chosen: StoreChoice, store: Arc<dyn Store>) -> Vault {
        let vault = Vault::new(self.directory.clone(), chosen, store);
        match self.flags.vault.0 {
            None => vault.requiring_current_store(),
            Some(_) => vault,
        }
    }

    /// Whether the store can be asked without asking the user.
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

    /// Returns how the key of the encrypted file is found: a file, a descriptor, the user.
    fn key(&self, identity: Option<PathBuf>) -> GetKey {
        let descriptor = self.flags.age_passphrase_fd;
        let (asker, file) = (self.asker.clone(), self.age_file());
        Arc::new(move |asked| {
            let given = descriptor.map(passphrase).transpose()?;
            match (&identity, given) {
                (Some(path), given) => AgeKey::identity(path, given.as_ref()),
                (None, Some(given)) => Ok(AgeKey::passphrase(&given)),
                (None, None) if asked == KeyRequest::New || age::is_for_identity(&file) => {
                    Err(no_identity(&file))
                }
                (None, None) => {
                    let typed = ask_passphrase(asker.as_ref(), asked)?;
                    Ok(AgeKey::passphrase(&typed).typed())
                }
            }
        })
    }

    /// Warns of a directory that others can write to: they can put another store in the place of the one there.
    pub(super) fn warn_if_open(&self) {
        if let Some(mode) = mode_for(&self.directory, WRITABLE) {
            let directory = self.directory.display();
            say(&format!(
                "warning: others can write to {directory} (mode {mode:04o}), where the vault is: chmod 700 {directory}"
            ));
        }
    }

    /// Returns what of the vault others can read or write, with its mode: its directory and its files.
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

/// Returns a store of which nothing is known that opens it.
pub(in crate::cli) fn unopened(kind: Kind) -> StoreChoice {
    let identity = None;
    StoreChoice { kind, identity }
}

/// Returns the keyring for whoever asks nobody: one that hangs is waited for once.
pub(in crate::cli) fn keyring() -> Arc<dyn Store> {
    static KEYRING: LazyLock<Arc<dyn Store>> =
        LazyLock::new(|| Arc::new(OsStore::new(service(), UserPresence::Absent)));
    Arc::clone(&KEYRING)
}

/// Says that the keyring is waited for, and how long at most.
fn of_keyring(most: Duration) -> String {
    let seconds = most.as_secs();
    format!("waiting for the keyring to answer ({seconds} s at most; Ctrl+C ends)")
}

/// Says what takes long with an encrypted file; nobody knows how long.
fn of_file(_: Duration) -> String {
    "waiting for the vault: its passphrase takes seconds to check".to_owned()
}

/// Returns what tells the user why nothing happens.
fn waiting(asker: &Asker, words: fn(Duration) -> String) -> Notice {
    let terminal_lock = asker.terminal_lock.clone();
    Arc::new(move |most| {
        // Who looks at a question knows what is waited for, and nobody waits for its end here.
        let is_free = terminal_lock.is_free();
        if is_free {
            say(&words(most));
        }
        is_free
    })
}

/// The bits of a mode by which others can write.
const WRITABLE: u32 = 0o022;
/// The bits of a mode by which others can do anything.
const ACCESSIBLE: u32 = 0o077;

/// Returns the mode of what is there when it has some of these bits.
fn mode_for(path: &Path, bits: u32) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = path.metadata().ok()?.permissions().mode() & 0o7777;
    (mode & bits != 0).then_some(mode)
}

/// Returns the error for an encrypted file whose identity nobody named.
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
