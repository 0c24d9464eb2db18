//! Finds the addresses of a name, and judges each before anything connects to it.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::is_public;

/// Addresses of a name, once they are known.
pub type Lookup<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Source of the addresses of names.
pub trait NameSource: fmt::Debug + Send + Sync {
    /// Returns the addresses of a name.
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a>;
}

/// Names as the system knows them.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNames;

impl NameSource for SystemNames {
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Addresses that a request may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Those of the public internet.
    Public,
    /// All.
    Everywhere,
}

/// Resolver of the HTTP library. A name of which one address may not be reached is refused whole. The library connects
/// to the addresses it gets here and asks for no others.
#[derive(Debug)]
pub(crate) struct JudgingResolver {
    pub(crate) source: Arc<dyn NameSource>,
    pub(crate) reach: Reach,
}

impl Resolve for JudgingResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (source, reach) = (Arc::clone(&self.source), self.reach);
        Box::pin(async move {
            let found = match is_this_machine(name.as_str()) {
                // No file of names leads the traffic of this machine elsewhere.
                true => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
                false => source.lookup(name.as_str()).await?,
            };
            if let Some(address) = found.iter().find(|address| !reach.has(**address)) {
                return Err(PrivateAddress(*address).into());
            }
            // A URL has the port.
            let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}

impl Reach {
    /// Returns true when a request may reach an address.
    pub(crate) fn has(self, address: IpAddr) -> bool {
        match self {
            Self::Public => is_public(address),
            Self::Everywhere => true,
        }
    }
}

/// Returns true for names that always mean this machine.
pub(crate) fn is_this_machine(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or_default();
    last.eq_ignore_ascii_case("localhost")
}

/// Error of a name that leads to an address which is not public.
#[derive(Debug)]
pub(crate) struct PrivateAddress(pub(crate) IpAddr);

impl fmt::Display for PrivateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the name leads to {}, which is not public", self.0)
    }
}

impl Error for PrivateAddress {}
