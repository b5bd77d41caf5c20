//! TLS between loadline and a server. Main types: [`Tls`], what is asked for; [`Secure`], a connection that is protected.
//!
//! TLS is spoken in this process, between the sockets and the codecs: blocking sessions and event loops seal what they send and open what they receive.
//!
//! Invariant: from a server whose certificate is to be proven, nothing is taken before it is; what was not sealed is never taken for an answer.

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

/// For how long a configuration is used again: certificates are renewed while a recorder runs, and three hundred clients connect in a second.
const CONFIG_FOR: Duration = Duration::from_secs(10);

/// Whether a connection is protected, and what the server must prove; the names are those of PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// Never.
    #[default]
    Disable,
    /// Where the server lets nobody in without.
    Allow,
    /// Where the server can.
    Prefer,
    /// Always; whoever answers is trusted.
    Require,
    /// Always; an authority that is trusted has signed the server's certificate.
    VerifyCa,
    /// Always; besides, the certificate is for the host that was asked for.
    VerifyFull,
}

impl TlsMode {
    /// Its name in addresses.
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

/// How connections to a server are protected.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Tls {
    /// Whether they are, and what the server must prove.
    pub mode: TlsMode,
    /// A file with the certificates of the authorities that are trusted, in PEM; none for those of the system.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub authorities: Option<PathBuf>,
    /// Our own certificate, with those that signed it, and its key, in PEM.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Whether PostgreSQL's log-in is bound to this very connection.
    #[serde(skip_serializing_if = "ChannelBinding::is_usual", default)]
    pub channel_binding: ChannelBinding,
}

/// Whether a log-in by SCRAM is bound to the connection that it travels through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// Where the server can.
    #[default]
    Prefer,
    /// Nobody is let in otherwise.
    Require,
}

impl ChannelBinding {
    fn is_usual(&self) -> bool {
        *self == ChannelBinding::Prefer
    }
}

impl Tls {
    /// Whether a connection without TLS is never used.
    pub fn is_required(&self) -> bool {
        self.mode >= TlsMode::Require
    }

    /// Whether TLS is tried at all.
    pub fn is_tried(&self) -> bool {
        self.mode > TlsMode::Disable
    }

    /// What connections are made with.
    ///
    /// # Errors
    /// A sentence that names the file that cannot be used.
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
        // Each connection is opened as the first one is.
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

/// The certificates of a file, at least one.
fn certificates(path: &std::path::Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("{} cannot be read as PEM: {error}", path.display());
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| unreadable(&error))?;
    if certificates.is_empty() { Err(unreadable(&"there is no certificate in it")) } else { Ok(certificates) }
}
