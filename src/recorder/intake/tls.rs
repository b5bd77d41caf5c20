//! TLS for intakes that listen. Main function: [`acceptor`].

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::recorder::config::TlsConfig;

/// What accepts TLS with a certificate and its key.
///
/// # Errors
/// A sentence that names the file.
pub(in crate::recorder) fn acceptor(config: &TlsConfig) -> Result<TlsAcceptor, String> {
    let unreadable =
        |path: &Path, error: &dyn std::fmt::Display| format!("{} cannot be read as PEM: {error}", path.display());
    let certificates = CertificateDer::pem_file_iter(&config.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(&config.certificate, &error))?;
    if certificates.is_empty() {
        return Err(unreadable(&config.certificate, &"there is no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_file(&config.key).map_err(|error| unreadable(&config.key, &error))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = builder.with_no_client_auth().with_single_cert(certificates, key);
    let config = config.map_err(|error| format!("certificate and key do not belong together: {error}"))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
