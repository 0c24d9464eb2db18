//! Store in a file encrypted with age, for a passphrase or an ssh or age identity.
//!
//! The file is replaced as a whole, under a lock. Its decrypted content stays in memory as long as the file does not
//! change, since checking a passphrase takes a second.

mod age_key;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use zeroize::Zeroizing;

use crate::store::slow_notice::{Notice, SlowNotice};
use crate::store::{Key, Kind, Store, StoredEntry, nul_pairs, private_file};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};

pub use age_key::{
    AgeKey, GetKey, KeyRequest, identity_bytes, new_identity, passphrase_of, secret_lines,
};

/// Header of the decrypted text.
const HEAD: &[u8] = b"karyi-vault 1\n";

type Texts = BTreeMap<Key, SecretValue>;

/// Version of the file, its bytes, and its decrypted content.
type DecryptedFile = (FileVersion, Zeroizing<Vec<u8>>, Result<Texts, ToolError>);

/// Store in an encrypted file.
pub struct AgeStore {
    path: PathBuf,
    get_key: GetKey,
    opened: Mutex<CachedFile>,
    /// Notice for the user that a passphrase takes time.
    slow_notice: SlowNotice,
}

#[derive(Default)]
struct CachedFile {
    key: Option<AgeKey>,
    /// True when the last key did not open the file.
    was_wrong: bool,
    /// Version and content of the file at the last read.
    held: Option<(FileVersion, Texts)>,
}

/// Identity of one version of a file.
#[derive(PartialEq, Eq)]
struct FileVersion {
    modified: Option<SystemTime>,
    size: u64,
    inode: u64,
}

/// State of the lock of the file during a read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LockState {
    Locked,
    Unlocked,
}

impl AgeStore {
    /// Makes a store in `path`. The key is requested at the first read or write.
    #[must_use]
    pub fn new(path: PathBuf, get_key: GetKey) -> Self {
        Self {
            path,
            get_key,
            opened: Mutex::default(),
            slow_notice: SlowNotice::default(),
        }
    }

    /// Sets the notice for the user that a passphrase takes time.
    #[must_use]
    pub fn with_notice(self, notice: Notice) -> Self {
        Self {
            slow_notice: SlowNotice::with_notice(notice),
            ..self
        }
    }

    /// Runs `work` on the content of the file.
    fn with<T>(&self, work: impl FnOnce(&mut Texts) -> T) -> Result<T, ToolError> {
        let mut opened = self.opened();
        self.refresh(&mut opened, LockState::Unlocked)?;
        let (_, texts) = opened
            .held
            .get_or_insert_with(|| (file_version(None), Texts::new()));
        Ok(work(texts))
    }

    /// Changes the content of the file.
    fn change<T>(&self, work: impl FnOnce(&mut Texts) -> T) -> Result<T, ToolError> {
        let mut opened = self.opened();
        // The key is typed before the file is locked.
        self.refresh(&mut opened, LockState::Unlocked)?;
        match self.key(&mut opened, LockState::Unlocked)?.takes_memory() {
            true => self
                .slow_notice
                .during(|| self.change_opened(&mut opened, work)),
            false => self.change_opened(&mut opened, work),
        }
    }

    /// Changes the content of the file with the key that was found.
    fn change_opened<T>(
        &self,
        opened: &mut CachedFile,
        work: impl FnOnce(&mut Texts) -> T,
    ) -> Result<T, ToolError> {
        let _guard = private_file::lock(&self.path)?;
        self.refresh(opened, LockState::Locked)?;
        // Taken out, so that memory never differs from the file when writing fails.
        let mut texts = opened
            .held
            .take()
            .map(|(_, texts)| texts)
            .unwrap_or_default();
        let result = work(&mut texts);
        let key = self.key(opened, LockState::Locked)?;
        let sealed = seal(key, &texts)?;
        self.check_size(&sealed)?;
        private_file::write(&self.path, &sealed)?;
        opened.held = Some((file_version(Some(&self.path)), texts));
        Ok(result)
    }

    /// Checks that the file stays within the size limit for reading.
    fn check_size(&self, sealed: &[u8]) -> Result<(), ToolError> {
        let most = limits::MAX_VAULT_FILE_BYTES;
        if sealed.len() as u64 <= most {
            return Ok(());
        }
        let message = format!("{} would be larger than {most} bytes", self.path.display());
        Err(ToolError::new(ErrorCode::BadValue, message).with_hint(
            "remove values with `karyi var rm NAME`; encrypt long data in files of their own, and keep the keys \
             to them here",
        ))
    }

    /// Reads the file again when it changed. A user who types the key may try again, now and at later reads. The key
    /// is typed before the lock is taken, so that no process waits for it.
    fn refresh(&self, opened: &mut CachedFile, lock: LockState) -> Result<(), ToolError> {
        let now = file_version(Some(&self.path));
        if opened.held.as_ref().is_some_and(|(then, _)| *then == now) {
            return Ok(());
        }
        opened.held = None;
        if self.read()?.is_none() {
            return Ok(());
        }
        let mut tries = 1;
        loop {
            // Checking a passphrase takes much memory, so only one process does it at a time. A reader continues
            // without the lock: the directory may be read-only, and a lock that another process holds must not keep
            // values from being masked.
            let key = self.key(opened, lock)?;
            let decrypted = match key.takes_memory() && lock == LockState::Unlocked {
                true => self.slow_notice.during(|| {
                    let _guard = private_file::lock_to_read(&self.path).ok();
                    self.decrypted(key)
                }),
                false => self.decrypted(key),
            };
            let Some((now, bytes, texts)) = decrypted? else {
                return Ok(());
            };
            let error = match texts {
                Ok(texts) => {
                    opened.was_wrong = false;
                    opened.held = Some((now, texts));
                    return Ok(());
                }
                Err(error) => error,
            };
            let is_wrong = error.code == ErrorCode::WrongKey && key.may_be_mistyped(&bytes);
            (opened.key, opened.was_wrong) = (None, is_wrong);
            if is_wrong && lock == LockState::Locked {
                return Err(self.replaced());
            }
            if !is_wrong || tries == limits::PASSPHRASE_TRIES {
                return Err(ToolError {
                    message: format!("{}: {}", self.path.display(), error.message),
                    ..error
                });
            }
            tries += 1;
        }
    }

    /// Returns version, bytes and content of the file; `None` when it is gone.
    fn decrypted(&self, key: &AgeKey) -> Result<Option<DecryptedFile>, ToolError> {
        let now = file_version(Some(&self.path));
        let bytes = self.read()?;
        Ok(bytes.map(|bytes| {
            let texts = unseal(key, &bytes);
            (now, bytes, texts)
        }))
    }

    fn read(&self) -> Result<Option<Zeroizing<Vec<u8>>>, ToolError> {
        private_file::read(&self.path, limits::MAX_VAULT_FILE_BYTES)
    }

    /// Returns the error for a file that was replaced and needs another key.
    fn replaced(&self) -> ToolError {
        let message = format!(
            "{} was replaced by a file with another key while something was about to be changed",
            self.path.display()
        );
        ToolError::new(ErrorCode::VaultBusy, message).with_hint("run it again")
    }

    fn key<'a>(
        &self,
        opened: &'a mut CachedFile,
        lock: LockState,
    ) -> Result<&'a AgeKey, ToolError> {
        if opened.key.is_none() {
            if lock == LockState::Locked {
                return Err(self.replaced());
            }
            let asked = match (self.path.exists(), opened.was_wrong) {
                (false, _) => KeyRequest::New,
                (true, false) => KeyRequest::First,
                (true, true) => KeyRequest::Again,
            };
            opened.key = Some((self.get_key)(asked)?);
        }
        let missing = || ToolError::new(ErrorCode::Internal, "the key is gone");
        opened.key.as_ref().ok_or_else(missing)
    }

    // A poisoned lock only means that another thread panicked between two whole changes.
    fn opened(&self) -> MutexGuard<'_, CachedFile> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for AgeStore {
    fn kind(&self) -> Kind {
        Kind::Age
    }

    fn probe(&self) -> Result<(), ToolError> {
        let mut opened = self.opened();
        // A path that cannot be written is reported before the user types anything.
        drop(private_file::lock(&self.path)?);
        self.refresh(&mut opened, LockState::Unlocked)?;
        self.key(&mut opened, LockState::Unlocked).map(|_| ())
    }

    fn list(&self) -> Result<Vec<SecretName>, ToolError> {
        let names = |texts: &mut Texts| {
            let names = texts
                .keys()
                .filter_map(|key| SecretName::parse(key.as_str()));
            names.collect()
        };
        self.with(names)
    }

    fn get(&self, key: &Key) -> Result<Option<SecretValue>, ToolError> {
        self.with(|texts| texts.get(key).map(SecretValue::duplicate))
    }

    fn read_all(&self) -> Result<Vec<StoredEntry>, ToolError> {
        let held = |(key, text): (&Key, &SecretValue)| StoredEntry {
            key: key.clone(),
            text: Ok(text.duplicate()),
        };
        self.with(|texts| texts.iter().map(held).collect())
    }

    fn set(&self, key: &Key, text: &SecretValue) -> Result<(), ToolError> {
        self.apply(&[(key.clone(), Some(text.duplicate()))])
    }

    fn remove(&self, key: &Key) -> Result<bool, ToolError> {
        if !self.with(|texts| texts.contains_key(key))? {
            return Ok(false);
        }
        self.change(|texts| texts.remove(key).is_some())
    }

    fn remove_empty(&self) -> Result<(), ToolError> {
        let mut opened = self.opened();
        self.refresh(&mut opened, LockState::Unlocked)?;
        let _guard = private_file::lock(&self.path)?;
        self.refresh(&mut opened, LockState::Locked)?;
        let is_empty = |(_, texts): &(FileVersion, Texts)| texts.is_empty();
        if opened.held.take_if(|held| is_empty(held)).is_some() {
            match fs::remove_file(&self.path) {
                // There was none.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(|error| ToolError::from_io(&self.path, &error))?,
            }
        }
        Ok(())
    }

    fn apply(&self, changes: &[(Key, Option<SecretValue>)]) -> Result<(), ToolError> {
        let mut texts = changes.iter().filter_map(|(_, text)| text.as_ref());
        if texts.any(|text| text.expose().contains('\0')) {
            let message = "a value with a NUL byte cannot be kept";
            return Err(ToolError::new(ErrorCode::BadValue, message));
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.change(|texts| {
            for (key, text) in changes {
                match text {
                    Some(text) => texts.insert(key.clone(), text.duplicate()),
                    None => texts.remove(key),
                };
            }
        })
    }
}

/// Returns true when an encrypted file is for an identity, which no passphrase opens; false when it cannot be read.
#[must_use]
pub fn is_for_identity(path: &Path) -> bool {
    let read = private_file::read(path, limits::MAX_VAULT_FILE_BYTES);
    read.ok()
        .flatten()
        .is_some_and(|bytes| age_key::is_for_identity(&bytes))
}

/// Returns the version of a file, or of a missing one.
fn file_version(path: Option<&Path>) -> FileVersion {
    let metadata = path.and_then(|path| fs::metadata(path).ok());
    #[cfg(unix)]
    let inode = metadata
        .as_ref()
        .map_or(0, std::os::unix::fs::MetadataExt::ino);
    #[cfg(not(unix))]
    let inode = 0;
    FileVersion {
        modified: metadata.as_ref().and_then(|file| file.modified().ok()),
        size: metadata.as_ref().map_or(0, fs::Metadata::len),
        inode,
    }
}

fn seal(key: &AgeKey, texts: &Texts) -> Result<Vec<u8>, ToolError> {
    let plain = texts
        .iter()
        .map(|(key, text)| (key.as_str(), text.expose()));
    let plain = nul_pairs::write(plain);
    let mut sealed = Vec::new();
    let mut write = || -> io::Result<()> {
        let mut writer = key.encryptor()?.wrap_output(&mut sealed)?;
        writer.write_all(HEAD)?;
        writer.write_all(&plain)?;
        writer.finish().map(drop)
    };
    write()
        .map_err(|error| ToolError::new(ErrorCode::Io, format!("encrypting the store: {error}")))?;
    Ok(sealed)
}

fn unseal(key: &AgeKey, bytes: &[u8]) -> Result<Texts, ToolError> {
    let mut reader = key.open(bytes)?;
    let mut plain = Zeroizing::new(Vec::with_capacity(bytes.len()));
    reader
        .read_to_end(&mut plain)
        .map_err(|_| bad("the file is cut off or was changed"))?;
    let rest = plain
        .strip_prefix(HEAD)
        .ok_or_else(|| bad("it holds no values of karyi"))?;
    let pairs = nul_pairs::read(rest).map_err(bad)?;
    let keyed = pairs.into_iter().map(|(key, text)| (Key(key), text));
    Ok(keyed.collect())
}

fn bad(message: &str) -> ToolError {
    ToolError::new(ErrorCode::BadVault, message)
        .with_hint("restore the file from a backup, or move it away and store the values again")
}
