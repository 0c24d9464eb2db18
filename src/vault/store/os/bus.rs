//! The connection to the secret service, and the entries that are found by it.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use futures::executor::block_on;
use futures::future::join_all;
use keyring::Error;
use keyring_core::Entry;
use keyring_core::api::{Credential, CredentialApi};
use secret_service::{EncryptionType, SecretService};
use zbus::zvariant::OwnedObjectPath;

use super::asking::Unlock;
use crate::limits;

/// What a value is said to be.
const KIND: &str = "application/octet-stream";

/// The connection: one, since a keyring may unlock entries for whoever asked alone.
pub(super) struct Bus {
    pub(super) connection: zbus::Connection,
    /// Shows no value to anybody who listens at the bus, as none is asked for with it.
    pub(super) plain: SecretService<'static>,
    /// Has values encrypted; agreeing on a key takes a moment, so it is there once a value is asked for.
    sealed: OnceLock<SecretService<'static>>,
    /// Whether the user may be asked to unlock what is found.
    pub(super) may_unlock: AtomicBool,
    /// Whether the user was asked to unlock entries beside the default keyring: who did not want that, or did not see
    /// it, is not asked again and again.
    was_asked: AtomicBool,
}

/// Entries that are asked for together.
struct Part {
    bus: Arc<Bus>,
    paths: Vec<OwnedObjectPath>,
    specifiers: OnceLock<Vec<Specifiers>>,
}

/// The service and the user of an entry, if it has both; an error when nobody could tell.
type Specifiers = Result<Option<(String, String)>, Lost>;

/// When a user is asked to unlock what is found, once at most.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// When something is locked.
    ForAny,
    /// When there is nothing that is not: a dialogue that nobody sees would hide the rest as long as it stands.
    ForAll,
}

/// Where entries are that fit.
pub(super) struct Places {
    pub(super) open: Vec<OwnedObjectPath>,
    /// Whether there are others, which are locked.
    pub(super) has_locked: bool,
}

impl Places {
    /// Returns them, if none is locked.
    pub(super) fn all(self) -> Result<Vec<OwnedObjectPath>, secret_service::Error> {
        match self.has_locked {
            true => Err(secret_service::Error::Locked),
            false => Ok(self.open),
        }
    }
}

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

impl Bus {
    pub(super) async fn connect(
        known: Option<zbus::Connection>,
    ) -> Result<Self, secret_service::Error> {
        let connection = match known {
            Some(connection) => connection,
            None => zbus::Connection::session().await.map_err(no_bus)?,
        };
        let with = SecretService::connect_with_existing;
        Ok(Self {
            plain: with(EncryptionType::Plain, connection.clone()).await?,
            connection,
            sealed: OnceLock::new(),
            may_unlock: AtomicBool::new(false),
            was_asked: AtomicBool::new(false),
        })
    }

    fn unlock(&self) -> Unlock {
        match self.may_unlock.load(Ordering::SeqCst) {
            true => Unlock::May,
            false => Unlock::MustNot,
        }
    }

    /// Returns where everything is that fits. What is locked is unlocked, if the user may be asked, was not before, and
    /// agrees.
    pub(super) async fn find(
        &self,
        wanted: &HashMap<&str, &str>,
        ask: Ask,
    ) -> Result<Places, secret_service::Error> {
        let mut found = self.plain.search_items(wanted.clone()).await?;
        let is_wanted = ask == Ask::ForAny || found.unlocked.is_empty();
        let may_ask = !found.locked.is_empty() && is_wanted && self.unlock() == Unlock::May;
        if may_ask && !self.was_asked.swap(true, Ordering::SeqCst) {
            let locked: Vec<_> = found.locked.iter().collect();
            match self.plain.unlock_all(&locked).await {
                Ok(()) | Err(secret_service::Error::Prompt) => {}
                Err(error) => return Err(error),
            }
            // Not all of them may be open by that.
            found = self.plain.search_items(wanted.clone()).await?;
        }
        let open = found.unlocked.iter();
        Ok(Places {
            open: open.map(|item| item.item_path.clone()).collect(),
            has_locked: !found.locked.is_empty(),
        })
    }

    /// Returns what is at some places as entries, which are asked for together what they are kept under.
    pub(super) fn entries(
        self: &Arc<Self>,
        paths: Vec<OwnedObjectPath>,
    ) -> impl Iterator<Item = Entry> {
        let parts: Vec<_> = paths
            .chunks(limits::KEYRING_PART)
            .map(<[_]>::to_vec)
            .collect();
        let bus = Arc::clone(self);
        parts.into_iter().flat_map(move |paths| {
            let count = paths.len();
            let part = Arc::new(Part {
                bus: Arc::clone(&bus),
                paths,
                specifiers: OnceLock::new(),
            });
            let found = move |at| Found {
                part: Arc::clone(&part),
                at,
            };
            (0..count).map(move |at| Entry::new_with_credential(Arc::new(found(at))))
        })
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

    pub(super) async fn sealed(&self) -> Result<&SecretService<'static>, secret_service::Error> {
        if let Some(sealed) = self.sealed.get() {
            return Ok(sealed);
        }
        let connection = self.connection.clone();
        let sealed = SecretService::connect_with_existing(EncryptionType::Dh, connection).await?;
        Ok(self.sealed.get_or_init(|| sealed))
    }

    pub(super) async fn value(&self, path: &OwnedObjectPath) -> Result<Vec<u8>, Error> {
        let sealed = self.sealed().await.map_err(failure)?;
        let read = async {
            sealed
                .get_item_by_path(path.clone())
                .await?
                .get_secret()
                .await
        };
        read.await.map_err(failure_of_one)
    }

    /// Keeps something new in the default keyring.
    pub(super) async fn add(
        &self,
        label: &str,
        attributes: HashMap<&str, &str>,
        secret: &[u8],
    ) -> Result<(), Error> {
        let make = async {
            let collection = self.sealed().await?.get_default_collection().await?;
            if collection.is_locked().await? {
                match self.unlock() {
                    Unlock::MustNot => return Err(secret_service::Error::Locked),
                    Unlock::May => collection.unlock().await?,
                }
            }
            let made = collection.create_item(label, attributes, secret, true, KIND);
            made.await.map(drop)
        };
        make.await.map_err(failure)
    }

    /// Keeps something in place of what is there.
    pub(super) async fn replace(&self, path: OwnedObjectPath, secret: &[u8]) -> Result<(), Error> {
        let sealed = self.sealed().await.map_err(failure)?;
        let write = async {
            let item = sealed.get_item_by_path(path).await?;
            item.set_secret(secret, KIND).await
        };
        write.await.map_err(failure_of_one)
    }

    pub(super) async fn remove(&self, path: OwnedObjectPath) -> Result<(), Error> {
        let remove = async { self.plain.get_item_by_path(path).await?.delete().await };
        remove.await.map_err(failure_of_one)
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
        block_on(self.part.bus.value(path))
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
    matches!(error, secret_service::Error::Zvariant(_))
        || matches!(of_bus(error), Some(zbus::Error::Variant(_)))
        || is_gone(error)
}

/// Whether there is no such entry any more.
fn is_gone(error: &secret_service::Error) -> bool {
    use zbus::fdo::Error::{UnknownInterface, UnknownMethod, UnknownObject, UnknownProperty};
    let is_unknown = |error: &zbus::fdo::Error| {
        matches!(
            error,
            UnknownObject(_) | UnknownMethod(_) | UnknownInterface(_) | UnknownProperty(_)
        )
    };
    matches!(error, secret_service::Error::NoResult)
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

/// Maps an error about one entry, which may have gone since it was found.
fn failure_of_one(error: secret_service::Error) -> Error {
    match is_gone(&error) {
        true => Error::NoEntry,
        false => failure(error),
    }
}

/// Maps an error of the secret service.
pub(super) fn failure(error: secret_service::Error) -> Error {
    use secret_service::Error::{Locked, NoResult, Prompt};
    match error {
        Locked | NoResult | Prompt => Error::NoStorageAccess(Box::new(error)),
        _ if is_named(&error, ".IsLocked") => Error::NoStorageAccess(Box::new(error)),
        _ => Error::PlatformFailure(Box::new(error)),
    }
}
