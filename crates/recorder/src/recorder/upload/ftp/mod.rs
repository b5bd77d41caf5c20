//! FTP and FTPS: cameras upload blocks, and 226 is sent after a block is durable. Nothing can be read, changed or removed.
//!
//! The server is our own, for the reasons in docs/decisions/0030-ftp-server.md. It understands what uploading needs: `AUTH TLS`, `PBSZ`, `PROT`, `USER`, `PASS`,
//! `TYPE I`, `PASV`, `EPSV`, `ALLO`, `STOR`, `ABOR`, and what clients ask before. With `ALLO` an interrupted upload is recognised even without
//! TLS; with TLS by the end of the stream, which only the client can make.
//!
//! Invariant: 226 is sent only after [`Blocks::deposit`] has returned; any other end of a session discards what has arrived.

mod command;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod lines;
mod passive;
mod reply;
mod session;

use std::sync::Arc;

use lines::Lines;
use session::{Session, Shared};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::{Blocks, Entry, Surroundings};
use crate::recorder::config::{FtpConfig, ListenConfig};
use crate::recorder::intake::anteroom::Place;
use crate::recorder::intake::listen::{Ends, Stream, serve};
use crate::recorder::intake::{Renewable, Running};

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::FTP as FUZZED;

/// FTP, with TLS if the client asks for it.
pub(super) static FTP: Entry = Entry {
    name: "ftp",
    start: |surroundings| {
        let config = surroundings.config.ftp.as_ref()?;
        Some(start("ftp", config, config.listen.listen, false, surroundings))
    },
};

/// FTP with TLS from the first byte.
pub(super) static FTPS: Entry = Entry {
    name: "ftps",
    start: |surroundings| {
        let config = surroundings.config.ftp.as_ref()?;
        Some(start("ftps", config, config.implicit?, true, surroundings))
    },
};

fn start(
    name: &'static str,
    config: &FtpConfig,
    address: std::net::SocketAddr,
    is_implicit: bool,
    surroundings: &Surroundings,
) -> Result<Running, String> {
    let wrong = |what: String| format!("intake.{name}: {what}");
    let blocks: Arc<Blocks> = Arc::clone(&surroundings.blocks);
    let certificate = config.listen.tls.as_ref().map(Renewable::new).transpose().map_err(wrong)?;
    let listen = ListenConfig {
        listen: address,
        tls: config.listen.tls.clone().filter(|_| is_implicit),
        ..config.listen.clone()
    };
    let shared = Arc::new(Shared {
        config: config.clone(),
        blocks,
        certificate: certificate.clone(),
        stop: Arc::clone(&surroundings.stop),
    });
    let is_open = surroundings.blocks.is_open();
    let mut running =
        serve(name, &listen, is_open, &surroundings.stop, reply::TOO_MANY, move |stream, ends, place| {
            connection(stream, ends, place, Arc::clone(&shared), is_implicit)
        })?;
    running.certificates.extend(certificate);
    Ok(running)
}

/// Returns the TLS acceptor for data connections. It sends no session tickets: an uploading client that never reads, and closes with them unread, would
/// reset the connection, and the end of its block would be lost. Sessions of control connections can still be resumed.
fn for_data(acceptor: &TlsAcceptor) -> TlsAcceptor {
    let mut config = ServerConfig::clone(acceptor.config());
    config.send_tls13_tickets = 0;
    TlsAcceptor::from(Arc::new(config))
}

async fn connection(stream: Box<dyn Stream>, ends: Ends, place: Arc<Place>, shared: Arc<Shared>, is_secure: bool) {
    let _open = shared.blocks.meter.connection();
    let lines = Lines::new(stream, shared.config.listen.patience);
    Session::new(&shared, lines, ends, place, is_secure).serve().await;
}
