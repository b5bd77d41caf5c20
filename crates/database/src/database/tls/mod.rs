//! TLS between loadline and a server. Main types: [`Tls`], the settings; [`Secure`], a protected connection.
//!
//! TLS runs in this process, between the sockets and the codecs: blocking sessions and event loops seal what they send and open what they receive.
//!
//! Invariant: data from a server that must prove its certificate is not used before it has; data that was not sealed is never taken for an answer.

mod certificate;
mod options;
pub mod private;
mod secure;
#[cfg(test)]
mod tests;
mod verifying;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub use options::{TlsOption, TlsParts};
pub use secure::{Secure, SharedSecure, Socket};

/// The time for which a configuration is reused: certificates are renewed while a recorder runs, and three hundred clients connect in a second.
const CONFIG_FOR: Duration = Duration::from_secs(10);

/// Whether a connection is protected, and what the server must prove; the names are those of PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// No TLS.
    #[default]
    Disable,
    /// TLS only where the server refuses connections without it.
    Allow,
    /// TLS where the server supports it.
    Prefer,
    /// Always TLS; the server's certificate is not verified.
    Require,
    /// Always TLS; a trusted authority must have signed the server's certificate.
    VerifyCa,
    /// Always TLS; in addition, the certificate must be for the requested host.
    VerifyFull,
}

impl TlsMode {
    /// Returns the name of the mode in addresses.
    pub fn name(self) -> &'static str {
        match self {
            TlsMode::Disable => "disable",
            TlsMode::Allow => "allow",
            TlsMode::Prefer => "prefer",
            TlsMode::Require => "require",
            TlsMode::VerifyCa => "verify-ca",
            TlsMode::VerifyFull => "verify-full",
        }
    }
}

/// The TLS settings for connections to a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Tls {
    /// Whether connections are protected, and what the server must prove.
    pub mode: TlsMode,
    /// The PEM file with the certificates of the trusted authorities; `None` for those of the system.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub authorities: Option<PathBuf>,
    /// The PEM files of the client's own certificate, with those that signed it, and of its key; `None` for no client certificate.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Whether PostgreSQL's login is bound to the TLS connection that carries it.
    #[serde(skip_serializing_if = "ChannelBinding::is_usual", default)]
    pub channel_binding: ChannelBinding,
}

/// Whether a SCRAM login is bound to the TLS connection that carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelBinding {
    /// Never bound.
    Disable,
    /// Bound where the server supports it.
    #[default]
    Prefer,
    /// Always bound; otherwise the login fails.
    Require,
}

impl ChannelBinding {
    fn is_usual(&self) -> bool {
        *self == ChannelBinding::Prefer
    }
}

impl Tls {
    /// Returns whether a connection without TLS is never used.
    pub fn is_required(&self) -> bool {
        self.mode >= TlsMode::Require
    }

    /// Returns whether TLS is tried at all.
    pub fn is_tried(&self) -> bool {
        self.mode > TlsMode::Disable
    }

    /// Returns the configuration for making connections.
    ///
    /// # Errors
    /// A sentence that names the unusable file.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, String> {
        static LAST: Mutex<Option<(Tls, Instant, Arc<ClientConfig>)>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((tls, made, config)) = &*last
            && tls == self
            && made.elapsed() < CONFIG_FOR
        {
            return Ok(Arc::clone(config));
        }
        let config = self.new_config()?;
        *last = Some((self.clone(), Instant::now(), Arc::clone(&config)));
        Ok(config)
    }

    fn new_config(&self) -> Result<Arc<ClientConfig>, String> {
        let provider = Arc::new(ring::default_provider());
        let verifier = verifying::verifier(self, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let own = PrivateKeyDer::from_pem_file(key);
                let own = own.map_err(|error| format!("{} cannot be read as a key in PEM: {error}", key.display()))?;
                let (certificate, key) = (certificate.display(), key.display());
                builder.with_client_auth_cert(chain, own).map_err(|error| {
                    format!("the certificate {certificate} and the key {key} do not belong together: {error}")
                })?
            }
        };
        // No session is resumed: each connection is opened as the first one is.
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

/// Returns the certificates of a PEM file, at least one.
fn certificates(path: &std::path::Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("{} cannot be read as PEM: {error}", path.display());
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| unreadable(&error))?;
    if certificates.is_empty() { Err(unreadable(&"there is no certificate in it")) } else { Ok(certificates) }
}
