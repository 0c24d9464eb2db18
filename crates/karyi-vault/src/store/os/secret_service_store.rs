//! The secret service as a store of `keyring-core`. Entries have the attributes `service` and `username`, as
//! the keyring crate names them, so that other programs find them, too.
//!
//! `zbus-secret-service-keyring-store` does the same, but enables a second asynchronous runtime in zbus.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use keyring_core::api::{Credential, CredentialApi, CredentialStore, CredentialStoreApi};
use keyring_core::{Entry, Error, Result};
use secret_service::{EncryptionType, Item, SecretService};

use super::secret_service::SecretServiceConnection;

/// Attribute with the program of an entry.
const SERVICE: &str = "service";
/// Attribute with the name of an entry.
const USER: &str = "username";
/// Type of every content.
const CONTENT_TYPE: &str = "application/octet-stream";

/// Store of the secret service.
#[derive(Clone)]
struct SecretServiceStore(Arc<SecretServiceConnection>);

/// Opens the store.
///
/// # Errors
/// The secret service is not available.
pub(super) fn open() -> Result<Arc<CredentialStore>> {
    let service = SecretServiceConnection::connect(EncryptionType::Dh).map_err(platform_failure)?;
    Ok(Arc::new(SecretServiceStore(Arc::new(service))))
}

impl SecretServiceStore {
    /// Returns the paths of all items with these attributes. A user is asked to unlock what is locked.
    fn find(&self, attributes: &HashMap<&str, &str>) -> Result<Vec<String>> {
        let paths = self.0.call(async |keyring| {
            let found = keyring.search_items(attributes.clone()).await?;
            if !found.locked.is_empty() {
                let locked: Vec<&Item<'_>> = found.locked.iter().collect();
                keyring.unlock_all(&locked).await?;
            }
            let items = found.unlocked.iter().chain(&found.locked);
            Ok(items.map(|item| item.item_path.to_string()).collect())
        });
        paths.map_err(failure)
    }

    /// Makes a request about one item.
    fn on_item<T>(
        &self,
        path: &str,
        request: impl AsyncFnOnce(Item<'_>) -> std::result::Result<T, secret_service::Error>,
    ) -> Result<T> {
        let reply = self.0.call(async |keyring: &SecretService<'static>| {
            let path = path.to_owned().try_into()?;
            request(keyring.get_item_by_path(path).await?).await
        });
        reply.map_err(failure)
    }

    fn set(&self, path: &str, secret: &[u8]) -> Result<()> {
        self.on_item(path, async |item| {
            item.set_secret(secret, CONTENT_TYPE).await
        })
    }

    fn entry(&self, path: String) -> Entry {
        let store = self.clone();
        Entry::new_with_credential(Arc::new(ItemEntry { store, path }))
    }
}

impl fmt::Debug for SecretServiceStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretServiceStore")
    }
}

impl CredentialStoreApi for SecretServiceStore {
    fn vendor(&self) -> String {
        "Secret Service".to_owned()
    }

    fn id(&self) -> String {
        "karyi".to_owned()
    }

    fn build(
        &self,
        service: &str,
        user: &str,
        modifiers: Option<&HashMap<&str, &str>>,
    ) -> Result<Entry> {
        let label = modifiers.and_then(|modifiers| modifiers.get("label"));
        let label = label.map(|label| (*label).to_owned());
        Ok(Entry::new_with_credential(Arc::new(NamedEntry {
            store: self.clone(),
            label: label.unwrap_or_else(|| format!("keyring:{user}@{service}")),
            service: service.to_owned(),
            user: user.to_owned(),
        })))
    }

    fn search(&self, attributes: &HashMap<&str, &str>) -> Result<Vec<Entry>> {
        let paths = self.find(attributes)?.into_iter();
        Ok(paths.map(|path| self.entry(path)).collect())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn debug_fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Entry with a name, which may not exist yet.
#[derive(Debug)]
struct NamedEntry {
    store: SecretServiceStore,
    /// Label of a new item.
    label: String,
    service: String,
    user: String,
}

impl NamedEntry {
    fn attributes(&self) -> HashMap<&str, &str> {
        HashMap::from([(SERVICE, self.service.as_str()), (USER, self.user.as_str())])
    }

    /// Returns the path of the one item with this name.
    fn path(&self) -> Result<String> {
        let mut paths = self.store.find(&self.attributes())?;
        match paths.len() {
            0 | 1 => paths.pop().ok_or(Error::NoEntry),
            _ => {
                let entries = paths.into_iter().map(|path| self.store.entry(path));
                Err(Error::Ambiguous(entries.collect()))
            }
        }
    }

    /// Makes an item in the default keyring, which a user may be asked to unlock.
    fn create(&self, secret: &[u8]) -> Result<()> {
        let created = self.store.0.call(async |keyring| {
            let collection = keyring.get_default_collection().await?;
            if collection.is_locked().await? {
                collection.unlock().await?;
            }
            let attributes = self.attributes();
            let item = collection.create_item(&self.label, attributes, secret, true, CONTENT_TYPE);
            Ok(item.await.map(drop))
        });
        created.map_err(failure)?.map_err(platform_failure)
    }
}

impl CredentialApi for NamedEntry {
    fn set_secret(&self, secret: &[u8]) -> Result<()> {
        match self.path() {
            Ok(path) => self.store.set(&path, secret),
            Err(Error::NoEntry) => self.create(secret),
            Err(error) => Err(error),
        }
    }

    fn get_secret(&self) -> Result<Vec<u8>> {
        let path = self.path()?;
        self.store
            .on_item(&path, async |item| item.get_secret().await)
    }

    fn get_attributes(&self) -> Result<HashMap<String, String>> {
        let path = self.path()?;
        self.store
            .on_item(&path, async |item| item.get_attributes().await)
    }

    fn delete_credential(&self) -> Result<()> {
        let path = self.path()?;
        self.store.on_item(&path, async |item| item.delete().await)
    }

    fn get_credential(&self) -> Result<Option<Arc<Credential>>> {
        let (store, path) = (self.store.clone(), self.path()?);
        Ok(Some(Arc::new(ItemEntry { store, path })))
    }

    fn get_specifiers(&self) -> Option<(String, String)> {
        Some((self.service.clone(), self.user.clone()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn debug_fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Entry that a search found. A locked one is an error: no user is asked.
#[derive(Debug)]
struct ItemEntry {
    store: SecretServiceStore,
    path: String,
}

impl CredentialApi for ItemEntry {
    fn set_secret(&self, secret: &[u8]) -> Result<()> {
        self.store.on_item(&self.path, async |item| {
            item.ensure_unlocked().await?;
            item.set_secret(secret, CONTENT_TYPE).await
        })
    }

    fn get_secret(&self) -> Result<Vec<u8>> {
        self.store.on_item(&self.path, async |item| {
            item.ensure_unlocked().await?;
            item.get_secret().await
        })
    }

    fn get_attributes(&self) -> Result<HashMap<String, String>> {
        self.store.on_item(&self.path, async |item| {
            item.ensure_unlocked().await?;
            item.get_attributes().await
        })
    }

    fn delete_credential(&self) -> Result<()> {
        self.store
            .on_item(&self.path, async |item| item.delete().await)
    }

    fn get_credential(&self) -> Result<Option<Arc<Credential>>> {
        self.store
            .on_item(&self.path, async |item| item.ensure_unlocked().await)?;
        Ok(None)
    }

    fn get_specifiers(&self) -> Option<(String, String)> {
        let mut attributes = self.get_attributes().ok()?;
        attributes.remove(SERVICE).zip(attributes.remove(USER))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn debug_fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Maps an error of the secret service; locked and refused is no access.
fn failure(error: secret_service::Error) -> Error {
    use secret_service::Error as Reason;
    match error {
        Reason::Locked | Reason::NoResult | Reason::Prompt => Error::NoStorageAccess(error.into()),
        _ => platform_failure(error),
    }
}

fn platform_failure(error: secret_service::Error) -> Error {
    Error::PlatformFailure(error.into())
}
