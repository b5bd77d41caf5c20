//! A TLS connection and the socket that it protects. Main types: [`Secure`] and [`Socket`].

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConnection, Error};

use super::{Tls, TlsMode, certificate, verifying};
use crate::database::DatabaseError;
use crate::database::session::Channel;

/// One end of TLS, without a socket: seals bytes to be sent and opens bytes received.
#[derive(Debug)]
pub struct Secure {
    connection: ClientConnection,
    host: String,
    /// What the server has proven, once the handshake is complete.
    proven: &'static str,
    /// Why the connection is gone, where the server said so or TLS failed.
    failure: Option<DatabaseError>,
}

/// A shared [`Secure`], for each temporary user of the socket. Only one at a time works with it.
#[derive(Debug, Clone)]
pub struct SharedSecure(Arc<Mutex<Secure>>);

/// A socket and the TLS connection that protects it, if any.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    secure: Option<SharedSecure>,
    /// True if the TLS handshake failed.
    has_failed: bool,
}

impl From<OwnedFd> for Socket {
    fn from(fd: OwnedFd) -> Self {
        Socket { fd, secure: None, has_failed: false }
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Socket {
    /// Returns the TLS connection on the socket; `None` for plain text.
    pub fn secure(&self) -> Option<SharedSecure> {
        self.secure.clone()
    }

    /// Performs the TLS handshake with the server over a channel of this socket.
    ///
    /// # Errors
    /// The errors of [`Channel::protect`].
    pub fn protect(&mut self, channel: &mut Channel, tls: &Tls, host: &str) -> Result<(), DatabaseError> {
        self.has_failed = true;
        self.secure = Some(channel.protect(tls, host)?);
        self.has_failed = false;
        Ok(())
    }

    /// Returns whether another connection may go without TLS because the handshake failed and the mode is `Prefer`, as other clients do.
    pub fn may_do_without(&self, tls: &Tls) -> bool {
        self.has_failed && tls.mode == TlsMode::Prefer
    }
}

impl SharedSecure {
    /// Begins a TLS connection to a host of that name.
    ///
    /// # Errors
    /// A sentence: a file cannot be used, or the host has no name for which there could be a certificate.
    pub fn begin(tls: &Tls, host: &str) -> Result<Self, String> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| format!("{host:?} is no name that a certificate could be for"))?;
        let mut connection =
            ClientConnection::new(tls.config()?, name).map_err(|error| format!("TLS cannot be begun: {error}"))?;
        // All sealed bytes are taken out at once.
        connection.set_buffer_limit(None);
        Ok(SharedSecure(Arc::new(Mutex::new(Secure {
            connection,
            host: host.to_owned(),
            proven: match tls.mode {
                TlsMode::VerifyFull => "the server has proven who it is",
                TlsMode::VerifyCa => "an authority has signed the server's certificate",
                _ => "nobody has asked who the server is",
            },
            failure: None,
        }))))
    }

    fn lock(&self) -> MutexGuard<'_, Secure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the sealed form of these bytes and any messages that TLS itself has to send.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`].
    pub fn seal(&self, plain: &[u8], sealed: &mut Vec<u8>) -> Result<(), DatabaseError> {
        self.lock().seal(plain, sealed)
    }

    /// Appends the plain text of these bytes from the server; nothing while a record is incomplete.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] where the server did not seal them or fails to prove what it must.
    pub fn open(&self, sealed: &[u8], plain: &mut Vec<u8>) -> Result<(), DatabaseError> {
        self.lock().open(sealed, plain)
    }

    /// Returns why the connection is gone, where the server said so or TLS failed; this explains more than an error of the socket.
    pub fn failure(&self) -> Option<DatabaseError> {
        self.lock().failure.clone()
    }

    /// Returns whether the handshake is still in progress.
    pub fn is_beginning(&self) -> bool {
        self.lock().connection.is_handshaking()
    }

    /// Returns the version, the cipher and what the server has proven, as in "TLS 1.3, AES 256 GCM; the server has proven who it is".
    pub fn agreed(&self) -> String {
        let secure = self.lock();
        let version = secure.connection.protocol_version().and_then(|version| version.as_str().map(version_name));
        let cipher = secure.connection.negotiated_cipher_suite().map(|suite| cipher_name(suite.suite().as_str()));
        let parts: Vec<String> = [version, cipher].into_iter().flatten().collect();
        format!("{}; {}", parts.join(", "), secure.proven)
    }

    /// Returns the channel binding of a login: the hash of the server's certificate (RFC 5929, `tls-server-end-point`); `None` where it is not defined.
    pub fn end_point(&self) -> Option<Vec<u8>> {
        let secure = self.lock();
        let own: &CertificateDer<'_> = secure.connection.peer_certificates()?.first()?;
        certificate::end_point(own)
    }
}

fn version_name(version: &str) -> String {
    version.replace("TLSv1_", "TLS 1.")
}

/// Returns the cipher's name: `TLS13_AES_256_GCM_SHA384` and `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384` protect data by AES 256 GCM.
fn cipher_name(suite: Option<&str>) -> String {
    let suite = suite.unwrap_or("a cipher without a name");
    let behind = suite.rsplit_once("_WITH_").map_or(suite, |(_, cipher)| cipher);
    let cipher = behind.trim_start_matches("TLS13_");
    let cipher = cipher.rsplit_once("_SHA").map_or(cipher, |(cipher, _)| cipher);
    cipher.replace('_', " ")
}

impl Secure {
    fn seal(&mut self, plain: &[u8], sealed: &mut Vec<u8>) -> Result<(), DatabaseError> {
        let broken = |error: std::io::Error| DatabaseError::Lost(format!("TLS: {error}"));
        self.connection.writer().write_all(plain).map_err(broken)?;
        while self.connection.wants_write() {
            self.connection.write_tls(sealed).map_err(broken)?;
        }
        Ok(())
    }

    fn open(&mut self, mut sealed: &[u8], plain: &mut Vec<u8>) -> Result<(), DatabaseError> {
        while !sealed.is_empty() {
            let read = self.connection.read_tls(&mut sealed);
            let read = read.map_err(|error| DatabaseError::Lost(format!("TLS: {error}")))?;
            let state = self.connection.process_new_packets();
            let state = match state {
                Ok(state) => state,
                Err(error) => return Err(self.failed(&error)),
            };
            let ready = state.plaintext_bytes_to_read();
            if ready > 0 {
                let start = plain.len();
                plain.resize(start + ready, 0);
                let opened = self.connection.reader().read_exact(&mut plain[start..]);
                opened.map_err(|error| DatabaseError::Lost(format!("TLS: {error}")))?;
            }
            if read == 0 {
                return Err(DatabaseError::Lost("the server closed the connection".to_owned()));
            }
        }
        Ok(())
    }

    fn failed(&mut self, error: &Error) -> DatabaseError {
        let sentence = verifying::sentence(error, &self.host);
        let failure = match self.connection.is_handshaking() {
            true => DatabaseError::Unavailable(sentence),
            false => DatabaseError::Lost(sentence),
        };
        self.failure.insert(failure).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_are_named_by_what_protects_the_data() {
        assert_eq!(cipher_name(Some("TLS13_AES_256_GCM_SHA384")), "AES 256 GCM");
        assert_eq!(cipher_name(Some("TLS13_CHACHA20_POLY1305_SHA256")), "CHACHA20 POLY1305");
        assert_eq!(cipher_name(Some("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")), "AES 128 GCM");
        assert_eq!(version_name("TLSv1_3"), "TLS 1.3");
    }
}
