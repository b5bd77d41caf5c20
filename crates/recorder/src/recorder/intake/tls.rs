//! TLS for intakes that listen. Main functions: [`acceptor`] and [`is_unproven`].

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{Error, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::recorder::config::TlsConfig;

/// A certificate for a server that serves each connection on a thread of its own.
#[derive(Clone)]
pub struct Protection(Arc<ServerConfig>);

impl Protection {
    /// Reads the certificate and key of `config`.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn new(config: &TlsConfig) -> Result<Self, String> {
        acceptor(config).map(|acceptor| Protection(Arc::clone(acceptor.config())))
    }

    /// Wraps a connection in TLS; the handshake takes place when it is first used.
    ///
    /// # Errors
    /// The error of the TLS library.
    pub fn over<S: Read + Write>(&self, stream: S) -> Result<impl Read + Write + use<S>, std::io::Error> {
        let connection = ServerConnection::new(Arc::clone(&self.0)).map_err(std::io::Error::other)?;
        Ok(StreamOwned::new(connection, stream))
    }
}

/// Returns the acceptor for a certificate and its key; it requires a client certificate if an authority for clients is given.
///
/// # Errors
/// A sentence that names the file.
pub(in crate::recorder) fn acceptor(config: &TlsConfig) -> Result<TlsAcceptor, String> {
    let certificates = certificates(&config.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&config.key).map_err(|error| unreadable(&config.key, &error))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match &config.client_authority {
        None => builder.with_no_client_auth(),
        Some(authority) => builder.with_client_cert_verifier(verifier(authority)?),
    };
    let config = builder.with_single_cert(certificates, key);
    let config = config.map_err(|error| format!("certificate and key do not belong together: {error}"))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Returns whether a handshake failed because the client showed no certificate, or one that its authority has not signed or that is not valid now.
pub(in crate::recorder) fn is_unproven(failure: &std::io::Error) -> bool {
    let failure = failure.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    matches!(failure, Some(Error::NoCertificatesPresented | Error::InvalidCertificate(_)))
}

/// Returns the verifier that requires a client certificate signed by one of those in a file.
fn verifier(authority: &Path) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let unusable = |error: &dyn std::fmt::Display| format!("{} is no authority: {error}", authority.display());
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority)? {
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(ring::default_provider()));
    builder.build().map_err(|error| unusable(&error))
}

/// Reads the certificates of a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| unreadable(path, &error))?;
    match certificates.is_empty() {
        true => Err(unreadable(path, &"there is no certificate in it")),
        false => Ok(certificates),
    }
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{} cannot be read as PEM: {error}", path.display())
}
