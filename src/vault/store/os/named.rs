//! What the secret service keeps under one name, by the connection that all the rest is asked with.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use futures::executor::block_on;
use keyring::Error;
use keyring_core::api::{Credential, CredentialApi};
use zbus::zvariant::OwnedObjectPath;

use super::bus::{Ask, Bus, failure};

/// What is kept for a user of a service.
pub(super) struct Named {
    pub(super) bus: Arc<Bus>,
    pub(super) service: String,
    pub(super) user: String,
}

impl Named {
    fn attributes(&self) -> HashMap<&str, &str> {
        HashMap::from([("service", &*self.service), ("username", &*self.user)])
    }

    /// Returns where it is, if there is one.
    fn place(&self) -> Result<Option<OwnedObjectPath>, Error> {
        let found = block_on(self.bus.find(&self.attributes(), Ask::ForAny));
        let mut paths = found.and_then(|found| found.all()).map_err(failure)?;
        match paths.len() {
            0 | 1 => Ok(paths.pop()),
            _ => Err(Error::Ambiguous(self.bus.entries(paths).collect())),
        }
    }

    fn known_place(&self) -> Result<OwnedObjectPath, Error> {
        self.place()?.ok_or(Error::NoEntry)
    }
}

impl CredentialApi for Named {
    fn set_secret(&self, secret: &[u8]) -> Result<(), Error> {
        match self.place()? {
            Some(path) => block_on(self.bus.replace(path, secret)),
            None => {
                let label = format!("{} of {}", self.user, self.service);
                block_on(self.bus.add(&label, self.attributes(), secret))
            }
        }
    }

    fn get_secret(&self) -> Result<Vec<u8>, Error> {
        block_on(self.bus.value(&self.known_place()?))
    }

    fn get_specifiers(&self) -> Option<(String, String)> {
        Some((self.service.clone(), self.user.clone()))
    }

    fn delete_credential(&self) -> Result<(), Error> {
        block_on(self.bus.remove(self.known_place()?))
    }

    fn get_credential(&self) -> Result<Option<Arc<Credential>>, Error> {
        Ok(None)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
