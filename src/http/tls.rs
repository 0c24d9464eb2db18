//! TLS of the server, with ring.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
pub use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Creates a TLS acceptor from a certificate chain and its key, both PEM.
///
/// # Errors
/// A file cannot be read, or the key does not belong to the certificate.
pub fn acceptor(certificate: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let chain = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("reading the key {}", key.display()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("using the certificate with its key")?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let context = || format!("reading the certificate {}", path.display());
    CertificateDer::pem_file_iter(path)
        .with_context(context)?
        .collect::<Result<_, _>>()
        .with_context(context)
}
