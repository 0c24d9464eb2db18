//! The secret service over D-Bus, which is asked for what many entries are kept under in one go: with one question
//! after the other each entry costs a wait.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use futures::executor::block_on;
use futures::future::join_all;
use keyring::Error;
use keyring_core::Entry;
use keyring_core::api::CredentialStoreApi;
use secret_service::SecretService;
use zeroize::Zeroizing;

use super::asking::{Ahead, Known, Unlock};
use super::bus::{Ask, Bus, Places, failure};
use super::named::Named;
use crate::error::{ErrorCode, ToolError};

/// The secret service.
pub(super) struct Service {
    bus: Arc<Bus>,
}

/// The connection, once there is one, for all who are to be the same to the keyring.
pub(super) type Shared = Arc<Mutex<Option<zbus::Connection>>>;

impl Service {
    /// Connects to the secret service, by the connection that is shared if there is one and it still works.
    pub(super) fn open(shared: &Shared) -> Result<Self, ToolError> {
        // Not locked while the bus is asked: who hangs there hinders nobody else.
        let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().take();
        let known = known.map(|known| block_on(Bus::connect(Some(known))));
        let bus = match known {
            Some(Ok(bus)) => bus,
            Some(Err(_)) | None => block_on(Bus::connect(None)).map_err(unavailable)?,
        };
        *lock() = Some(bus.connection.clone());
        Ok(Self { bus: Arc::new(bus) })
    }

    /// Returns the entries that fit and are not locked, and whether others are.
    pub(super) fn open_entries(
        &self,
        wanted: &HashMap<&str, &str>,
    ) -> Result<(Vec<Entry>, bool), Error> {
        let places = block_on(self.bus.find(wanted, Ask::ForAll)).map_err(failure)?;
        let entries = self.bus.entries(places.open).collect();
        Ok((entries, places.has_locked))
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
            let hint = "make one with the program of the desktop, without one as docs/vault.md says (\"Where there is no desktop\"), or use --vault age";
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
        _: Option<&HashMap<&str, &str>>,
    ) -> Result<Entry, Error> {
        let named = Named {
            bus: Arc::clone(&self.bus),
            service: service.to_owned(),
            user: user.to_owned(),
        };
        Ok(Entry::new_with_credential(Arc::new(named)))
    }

    fn search(&self, wanted: &HashMap<&str, &str>) -> Result<Vec<Entry>, Error> {
        let found = block_on(self.bus.find(wanted, Ask::ForAny));
        let paths = found.and_then(Places::all).map_err(failure)?;
        Ok(self.bus.entries(paths).collect())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn unavailable(error: secret_service::Error) -> ToolError {
    let message = format!("the secret service cannot be reached: {error}");
    ToolError::new(ErrorCode::KeyringUnavailable, message)
}
