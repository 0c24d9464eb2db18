//! Settings of encryption: rustls with ring, and the certificate authorities that are trusted.

use std::path::Path;
use std::sync::Arc;
use std::sync::Once;

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::{NetError, NetErrorKind};

static RING: Once = Once::new();

/// Makes settings that trust the authorities of a file, or those of the machine.
pub(crate) fn settings(authority: Option<&Path>) -> Result<ClientConfig, NetError> {
    let trusted = match authority {
        Some(path) => in_file(path)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted);
    if roots.is_empty() {
        let message = "this machine trusts no certificate authority; name one with --ca FILE";
        return Err(NetError::new(NetErrorKind::Settings, message));
    }
    with_roots(roots)
}

/// Makes settings that trust nobody, for connections without encryption: loading certificates takes time.
pub(crate) fn unused() -> Result<ClientConfig, NetError> {
    with_roots(RootCertStore::empty())
}

fn with_roots(roots: RootCertStore) -> Result<ClientConfig, NetError> {
    RING.call_once(|| {
        // The program may have installed a provider of its own.
        let _ = default_provider().install_default();
    });
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| {
            NetError::new(
                NetErrorKind::Settings,
                format!("setting up encryption: {error}"),
            )
        })?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn in_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, NetError> {
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    certificates.map_err(|error| {
        let message = format!("reading the certificate {}: {error}", path.display());
        NetError::new(NetErrorKind::Settings, message)
    })
}
