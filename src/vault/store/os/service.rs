//! The secret service over D-Bus, which is asked for what many entries are kept under in one go: with one question
//! after the other each entry costs a wait.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use futures::executor::block_on;
use futures::future::join_all;
use keyring::Error;
use keyring_core::Entry;
use keyring_core::api::{Credential, CredentialApi, CredentialStore, CredentialStoreApi};
use secret_service::{EncryptionType, SecretService};
use zbus::zvariant::OwnedObjectPath;
use zeroize::Zeroizing;

use super::asking::{Ahead, Known, Unlock};
use crate::error::{ErrorCode, ToolError};
use crate::limits;

/// The secret service. What it finds is read by its own connection; what is known by name is left to another store.
pub(super) struct Service {
    bus: Arc<Bus>,
    /// Reads and changes what is known by name, once that is asked for.
    by_name: OnceLock<Arc<CredentialStore>>,
}

/// The connection: one, since a keyring may unlock entries for whoever asked alone.
struct Bus {
    connection: zbus::Connection,
    /// Shows no value to anybody who listens at the bus, as none is asked for with it.
    plain: SecretService<'static>,
    /// Has values encrypted; agreeing on a key takes a moment, so it is there once a value is asked for.
    sealed: OnceLock<SecretService<'static>>,
    /// Whether the user may be asked to unlock what is found.
    may_unlock: AtomicBool,
}

/// Entries that are asked for together.
struct Part {
    bus: Arc<Bus>,
    paths: Vec<OwnedObjectPath>,
    specifiers: OnceLock<Vec<Specifiers>>,
}

/// The service and the user of an entry, if it has both; an error when nobody could tell.
type Specifiers = Result<Option<(String, String)>, Lost>;

/// Why nobody could tell something of an entry.
#[derive(Clone)]
enum Lost {
    Locked,
    Failed(String),
}

/// An entry that was found.
pub(super) struct Found {
    part: Arc<Part>,
    at: usize,
}

impl Service {
    /// Connects to the secret service.
    pub(super) fn open() -> Result<Self, ToolError> {
        let bus = block_on(Bus::connect()).map_err(unavailable)?;
        Ok(Self {
            bus: Arc::new(bus),
            by_name: OnceLock::new(),
        })
    }

    /// Says whether the user may be asked to unlock what is looked for from now on.
    pub(super) fn may_unlock(&self, unlock: Unlock) {
        let may = unlock == Unlock::May;
        self.bus.may_unlock.store(may, Ordering::SeqCst);
    }

    /// Checks that the default keyring is there and open; the user may be asked to unlock it.
    pub(super) fn check(&self, unlock: Unlock) -> Result<(), ToolError> {
        block_on(check(&self.bus.plain, unlock))
    }

    /// Finds out what is easily read of some users of a service, all asked for in one go. What is known stands there as
    /// soon as it is known: who gives up waiting for one has the others.
    pub(super) fn ahead(&self, service: &str, users: &[String], known: &Known) {
        let all = async {
            let Ok(sealed) = self.bus.sealed().await else {
                return;
            };
            let each = users.iter().enumerate().map(async |(at, user)| {
                let wanted = HashMap::from([("service", service), ("username", user.as_str())]);
                known.put(at, look(sealed, wanted).await);
            });
            join_all(each).await;
        };
        block_on(all);
    }
}

async fn check(service: &SecretService<'_>, unlock: Unlock) -> Result<(), ToolError> {
    let locked = |message: &str| ToolError::new(ErrorCode::KeyringLocked, message);
    let collection = match service.get_default_collection().await {
        Ok(collection) => collection,
        Err(secret_service::Error::NoResult) => {
            let message = "the secret service has no default keyring";
            let hint = "make one with the program of the desktop, or use --vault age";
            return Err(ToolError::new(ErrorCode::KeyringUnavailable, message).with_hint(hint));
        }
        Err(error) => return Err(unavailable(error)),
    };
    if !collection.is_locked().await.map_err(unavailable)? {
        return Ok(());
    }
    match unlock {
        Unlock::MustNot => Err(locked(
            "the default keyring is locked, and nobody is there to unlock it",
        )),
        Unlock::May => collection
            .unlock()
            .await
            .map_err(|_| locked("the default keyring is locked and was not unlocked")),
    }
}

/// Reads what fits, if it is one thing and can be read as it is.
async fn look(service: &SecretService<'_>, wanted: HashMap<&str, &str>) -> Ahead {
    let Ok(found) = service.search_items(wanted).await else {
        return Ahead::Unclear;
    };
    match (found.unlocked.as_slice(), found.locked.as_slice()) {
        ([], []) => Ahead::Nothing,
        ([item], []) => match item.get_secret().await {
            Ok(bytes) => Ahead::Value(Zeroizing::new(bytes)),
            Err(_) => Ahead::Unclear,
        },
        _ => Ahead::Unclear,
    }
}

impl CredentialStoreApi for Service {
    fn vendor(&self) -> String {
        "secret service".into()
    }

    fn id(&self) -> String {
        "secret service".into()
    }

    fn build(
        &self,
        service: &str,
        user: &str,
        modifiers: Option<&HashMap<&str, &str>>,
    ) -> Result<Entry, Error> {
        let store = match self.by_name.get() {
            Some(store) => store,
            None => {
                let store = zbus_secret_service_keyring_store::Store::new()?;
                self.by_name.get_or_init(|| store)
            }
        };
        store.build(service, user, modifiers)
    }

    fn search(&self, wanted: &HashMap<&str, &str>) -> Result<Vec<Entry>, Error> {
        let paths = block_on(self.bus.find(wanted)).map_err(failure)?;
        let parts = paths.chunks(limits::KEYRING_PART);
        let entries = parts.flat_map(|paths| {
            let part = Arc::new(Part {
                bus: Arc::clone(&self.bus),
                paths: paths.to_vec(),
                specifiers: OnceLock::new(),
            });
            let found = move |at| Found {
                part: Arc::clone(&part),
                at,
            };
            (0..paths.len()).map(move |at| Entry::new_with_credential(Arc::new(found(at))))
        });
        Ok(entries.collect())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Bus {
    async fn connect() -> Result<Self, secret_service::Error> {
        let connection = zbus::Connection::session().await.map_err(no_bus)?;
        let with = SecretService::connect_with_existing;
        Ok(Self {
            plain: with(EncryptionType::Plain, connection.clone()).await?,
            connection,
            sealed: OnceLock::new(),
            may_unlock: AtomicBool::new(false),
        })
    }

    /// Returns where everything is that fits, unlocked.
    async fn find(
        &self,
        wanted: &HashMap<&str, &str>,
    ) -> Result<Vec<OwnedObjectPath>, secret_service::Error> {
        let mut found = self.plain.search_items(wanted.clone()).await?;
        if !found.locked.is_empty() && self.may_unlock.load(Ordering::SeqCst) {
            let locked: Vec<_> = found.locked.iter().collect();
            self.plain.unlock_all(&locked).await?;
            // Not all of them may be open by that.
            found = self.plain.search_items(wanted.clone()).await?;
        }
        if !found.locked.is_empty() {
            return Err(secret_service::Error::Locked);
        }
        let all = found.unlocked.iter();
        Ok(all.map(|item| item.item_path.clone()).collect())
    }

    /// Returns the service and the user of an entry. One that went meanwhile, or is odd, has none.
    async fn specifiers(&self, path: &OwnedObjectPath) -> Specifiers {
        let attributes = async {
            let item = self.plain.get_item_by_path(path.clone()).await?;
            item.get_attributes().await
        };
        match attributes.await {
            Ok(mut of) => Ok(of.remove("service").zip(of.remove("username"))),
            Err(error) if is_of_the_entry(&error) => Ok(None),
            Err(error) if is_named(&error, ".IsLocked") => Err(Lost::Locked),
            Err(error) => Err(Lost::Failed(error.to_string())),
        }
    }

    async fn sealed(&self) -> Result<&SecretService<'static>, secret_service::Error> {
        if let Some(sealed) = self.sealed.get() {
            return Ok(sealed);
        }
        let connection = self.connection.clone();
        let sealed = SecretService::connect_with_existing(EncryptionType::Dh, connection).await?;
        Ok(self.sealed.get_or_init(|| sealed))
    }

    async fn value(&self, path: &OwnedObjectPath) -> Result<Vec<u8>, secret_service::Error> {
        let item = self.sealed().await?.get_item_by_path(path.clone()).await?;
        item.get_secret().await
    }
}

impl Part {
    /// Returns what the entries are kept under; all of them are asked before the first answer is waited for.
    fn specifiers(&self) -> &[Specifiers] {
        let ask = || {
            block_on(join_all(
                self.paths.iter().map(|path| self.bus.specifiers(path)),
            ))
        };
        self.specifiers.get_or_init(ask)
    }
}

impl Found {
    /// Checks that it could be told what the entry is kept under, if anything: a keyring that went away has not lost its
    /// entries.
    pub(super) fn check(&self) -> Result<(), Error> {
        let lost = |lost: &Lost| match lost {
            Lost::Locked => Error::NoStorageAccess("an entry is locked".into()),
            Lost::Failed(why) => Error::PlatformFailure(why.as_str().into()),
        };
        self.specifiers().as_ref().map(drop).map_err(lost)
    }

    fn specifiers(&self) -> &Specifiers {
        &self.part.specifiers()[self.at]
    }
}

impl CredentialApi for Found {
    fn get_secret(&self) -> Result<Vec<u8>, Error> {
        let path = &self.part.paths[self.at];
        block_on(self.part.bus.value(path)).map_err(failure)
    }

    fn get_specifiers(&self) -> Option<(String, String)> {
        self.specifiers().clone().ok().flatten()
    }

    fn set_secret(&self, _: &[u8]) -> Result<(), Error> {
        Err(only_read())
    }

    fn delete_credential(&self) -> Result<(), Error> {
        Err(only_read())
    }

    fn get_credential(&self) -> Result<Option<Arc<Credential>>, Error> {
        Ok(None)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Whether an error is about one entry, and not about the keyring.
fn is_of_the_entry(error: &secret_service::Error) -> bool {
    use secret_service::Error::{NoResult, Zvariant};
    use zbus::fdo::Error::{UnknownInterface, UnknownMethod, UnknownObject, UnknownProperty};
    let is_unknown = |error: &zbus::fdo::Error| {
        matches!(
            error,
            UnknownObject(_) | UnknownMethod(_) | UnknownInterface(_) | UnknownProperty(_)
        )
    };
    matches!(error, NoResult | Zvariant(_))
        || matches!(of_bus(error), Some(zbus::Error::Variant(_)))
        || of_standard(error).is_some_and(is_unknown)
        || is_named(error, ".NoSuchObject")
}

/// Whether the secret service said so with an error of its own of this name.
fn is_named(error: &secret_service::Error, end: &str) -> bool {
    matches!(of_bus(error), Some(zbus::Error::MethodError(name, ..)) if name.as_str().ends_with(end))
}

fn of_bus(error: &secret_service::Error) -> Option<&zbus::Error> {
    match error {
        secret_service::Error::Zbus(error)
        | secret_service::Error::ZbusFdo(zbus::fdo::Error::ZBus(error)) => Some(error),
        _ => None,
    }
}

fn of_standard(error: &secret_service::Error) -> Option<&zbus::fdo::Error> {
    match error {
        secret_service::Error::ZbusFdo(error) => Some(error),
        secret_service::Error::Zbus(zbus::Error::FDO(error)) => Some(error),
        _ => None,
    }
}

/// Returns the error of a bus that cannot be reached: there is none, or what it says.
fn no_bus(error: zbus::Error) -> secret_service::Error {
    let is_none = match &error {
        zbus::Error::InterfaceNotFound | zbus::Error::Address(_) => true,
        zbus::Error::InputOutput(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    };
    match is_none {
        true => secret_service::Error::Unavailable,
        false => error.into(),
    }
}

fn only_read() -> Error {
    Error::NotSupportedByStore("what was found is only read".into())
}

fn unavailable(error: secret_service::Error) -> ToolError {
    let message = format!("the secret service cannot be reached: {error}");
    ToolError::new(ErrorCode::KeyringUnavailable, message)
}

fn failure(error: secret_service::Error) -> Error {
    use secret_service::Error::{Locked, NoResult, Prompt};
    match error {
        Locked | NoResult | Prompt => Error::NoStorageAccess(Box::new(error)),
        _ if is_named(&error, ".IsLocked") => Error::NoStorageAccess(Box::new(error)),
        _ => Error::PlatformFailure(Box::new(error)),
    }
}
