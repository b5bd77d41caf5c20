//! Connections to a station, with and without TLS. Main types: [`Dialer`] and [`Secured`].

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::{StationSettings, lost};
use crate::database::session::dial;
use crate::database::{DatabaseError, Endpoint, Namespace};

/// The maximum wait for an answer, or for room for more bytes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens connections to one station.
#[derive(Debug, Clone)]
pub(super) struct Dialer {
    endpoint: Endpoint,
    host: String,
    tls: Option<Arc<ClientConfig>>,
}

/// A connection, with or without TLS.
pub(super) enum Secured {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Dialer {
    pub(super) fn new(settings: &StationSettings, needs_tls: bool) -> Result<Self, DatabaseError> {
        let endpoint = Endpoint { tcp: Some((settings.host.clone(), settings.port)), ..Endpoint::default() };
        let tls = needs_tls.then(|| client_config(settings)).transpose().map_err(DatabaseError::Unavailable)?;
        Ok(Dialer { endpoint, host: settings.host.clone(), tls })
    }

    /// Returns a dialer for the same station from the network whose turn it is for this slot.
    pub(super) fn at(&self, networks: &[Namespace], place: u64) -> Dialer {
        let turn = place.checked_rem(networks.len() as u64).map(|turn| networks[turn as usize].clone());
        Dialer { endpoint: Endpoint { namespace: turn, ..self.endpoint.clone() }, ..self.clone() }
    }

    /// Returns the host as clients name it.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Returns whether the dialer's connections use TLS.
    pub(super) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Opens a connection to the station's own port.
    pub(super) fn dial(&self) -> Result<TcpStream, DatabaseError> {
        patient(dial(&self.endpoint)?.into()).map_err(|error| lost(&error))
    }

    /// Opens a connection to another port of the station.
    pub(super) fn dial_port(&self, peer: SocketAddr, port: u16) -> Result<TcpStream, DatabaseError> {
        let inside = self.endpoint.namespace.as_ref().map(Namespace::enter).transpose();
        let _inside = inside.map_err(|error| lost(&error))?;
        let connected = TcpStream::connect_timeout(&SocketAddr::new(peer.ip(), port), PATIENCE);
        connected.and_then(patient).map_err(|error| lost(&error))
    }

    /// Performs the TLS handshake on a socket.
    pub(super) fn secure(&self, socket: TcpStream) -> Result<Secured, DatabaseError> {
        let wrong = |what: &str| DatabaseError::Unavailable(format!("TLS with {}: {what}", self.host));
        let config = self.tls.clone().ok_or_else(|| wrong("no certificate to trust was named"))?;
        let name = ServerName::try_from(self.host.clone()).map_err(|error| wrong(&error.to_string()))?;
        let connection = ClientConnection::new(config, name).map_err(|error| wrong(&error.to_string()))?;
        Ok(Secured::Tls(Box::new(StreamOwned::new(connection, socket))))
    }
}

fn patient(socket: TcpStream) -> io::Result<TcpStream> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

fn client_config(settings: &StationSettings) -> Result<Arc<ClientConfig>, String> {
    let path = settings.certificate.as_ref().ok_or("TLS needs the certificate to trust; name its file")?;
    let unreadable = |error: &dyn std::fmt::Display| format!("{} cannot be read as PEM: {error}", path.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
        let added = certificate.map_err(|error| unreadable(&error))?;
        roots.add(added).map_err(|error| unreadable(&error))?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

impl Secured {
    /// Ends the stream; with TLS by a message that no attacker could have sent.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self {
            Secured::Plain(stream) => stream.shutdown(std::net::Shutdown::Write),
            Secured::Tls(stream) => {
                stream.conn.send_close_notify();
                stream.flush()?;
                stream.sock.shutdown(std::net::Shutdown::Write)
            }
        }
    }
}

impl Read for Secured {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Secured::Plain(stream) => stream.read(buffer),
            Secured::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Secured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Secured::Plain(stream) => stream.write(bytes),
            Secured::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Secured::Plain(stream) => stream.flush(),
            Secured::Tls(stream) => stream.flush(),
        }
    }
}
