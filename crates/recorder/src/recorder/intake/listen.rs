//! Listening and accepting, for all intakes with connections. Main function: [`serve`].
//!
//! Invariant: there are never more connections than configured. One too many gets a message and is closed, or takes the place of a stranger.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use super::Running;
use super::anteroom::{Anteroom, Bounds, Place};
use super::live::{Renewable, section};
use super::tls::is_unproven;
use crate::recorder::config::ListenConfig;
use crate::recorder::log;
use crate::recorder::stop::Stop;

/// A connection, with TLS or without.
pub(in crate::recorder) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The addresses of both ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::recorder) struct Ends {
    /// The client's address.
    pub(in crate::recorder) peer: SocketAddr,
    /// The recorder's address, as the client reached it.
    pub(in crate::recorder) own: SocketAddr,
}

/// How often a listener checks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Listens, and serves each connection in a task of its own for as long as it has its place. `too_many` is the message for one connection too many;
/// `is_open` means that nobody needs a token here.
///
/// # Errors
/// A sentence, when the address is taken or TLS cannot be had.
pub(in crate::recorder) fn serve<S, F>(
    name: &'static str,
    config: &ListenConfig,
    is_open: bool,
    stop: &Arc<Stop>,
    too_many: &'static [u8],
    connection: S,
) -> Result<Running, String>
where
    S: Fn(Box<dyn Stream>, Ends, Arc<Place>) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let section = section(name);
    let wrong = |what: String| format!("{section}: {what}");
    let certificate = config.tls.as_ref().map(Renewable::new).transpose().map_err(wrong)?;
    let renewable = certificate.clone();
    let listener = std::net::TcpListener::bind(config.listen).and_then(|listener| {
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    });
    let listener = listener.map_err(|error| wrong(format!("cannot listen on {}: {error}", config.listen)))?;
    let address = listener.local_addr().ok();
    let anteroom = Anteroom::new(name, Bounds::new(config, is_open));
    let room = Arc::clone(&anteroom);
    let configured = config.listen;
    let (stop, patience, connection) = (Arc::clone(stop), config.patience, Arc::new(connection));
    let task = tokio::spawn(async move {
        // Nothing is sent: the channel closes when all connections have ended.
        let (open, mut all_ended) = mpsc::channel::<()>(1);
        while !stop.is_asked() {
            let Ok(accepted) = tokio::time::timeout(LOOK_EVERY, listener.accept()).await else { continue };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Mostly too many open files: that gets better when connections end.
                    log::warning("a connection could not be accepted", &[("reason", &error.to_string())]);
                    room.make_room();
                    tokio::time::sleep(LOOK_EVERY).await;
                    continue;
                }
            };
            let Ok(place) = room.enter(peer.ip()) else {
                tokio::spawn(turn_away(stream, too_many));
                continue;
            };
            let ends = Ends { peer, own: stream.local_addr().unwrap_or(configured) };
            let (acceptor, connection) = (renewable.as_ref().map(Renewable::acceptor), Arc::clone(&connection));
            let (place, open) = (Arc::new(place), open.clone());
            tokio::spawn(async move {
                let of_connection = Arc::clone(&place);
                let connection = |stream| connection(stream, ends, of_connection);
                place.hold(secured(stream, acceptor, patience, &place, connection)).await;
                drop((place, open));
            });
        }
        drop((listener, open));
        // Connections end by themselves: they check the same flag.
        let _ = all_ended.recv().await;
    });
    Ok(Running { name, address, anteroom: Some(anteroom), certificates: certificate.into_iter().collect(), task })
}

/// Serves a connection, after the TLS handshake if TLS is configured.
async fn secured<F: Future<Output = ()>>(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    patience: Duration,
    place: &Place,
    connection: impl FnOnce(Box<dyn Stream>) -> F,
) {
    let _ = stream.set_nodelay(true);
    match acceptor {
        None => connection(Box::new(stream)).await,
        Some(acceptor) => match tokio::time::timeout(patience, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => connection(Box::new(stream)).await,
            Ok(Err(failure)) if is_unproven(&failure) => place.count_unproven(),
            Ok(Err(_)) | Err(_) => {}
        },
    }
}

async fn turn_away(mut stream: TcpStream, words: &'static [u8]) {
    let say = async {
        let _ = stream.write_all(words).await;
        let _ = stream.shutdown().await;
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), say).await;
}
