//! Listening and accepting, for all intakes with connections. Main function: [`serve`].
//!
//! Invariant: there are never more connections than configured; one too many is told so and closed.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::Running;
use super::live::{Renewable, section};
use crate::recorder::config::ListenConfig;
use crate::recorder::log;
use crate::recorder::stop::Stop;

/// A connection, with TLS or without.
pub(in crate::recorder) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::recorder) struct Ends {
    /// The client's.
    pub(in crate::recorder) peer: SocketAddr,
    /// Ours, as the client reached it.
    pub(in crate::recorder) own: SocketAddr,
}

/// How often a listener looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Listens, and serves each connection in a task of its own. `too_many` is what one connection too many is told.
///
/// # Errors
/// A sentence, when the address is taken or TLS cannot be had.
pub(in crate::recorder) fn serve<S, F>(
    name: &'static str,
    config: &ListenConfig,
    stop: &Arc<Stop>,
    too_many: &'static [u8],
    connection: S,
) -> Result<Running, String>
where
    S: Fn(Box<dyn Stream>, Ends) -> F + Send + Sync + 'static,
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
    let places = Arc::new(Semaphore::new(config.connections as usize));
    let configured = config.listen;
    let (stop, patience, connection) = (Arc::clone(stop), config.patience, Arc::new(connection));
    let task = tokio::spawn(async move {
        let all = places.available_permits();
        while !stop.is_asked() {
            let Ok(accepted) = tokio::time::timeout(LOOK_EVERY, listener.accept()).await else { continue };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Too many open files, mostly: it gets better when connections end.
                    log::warning("a connection could not be accepted", &[("reason", &error.to_string())]);
                    tokio::time::sleep(LOOK_EVERY).await;
                    continue;
                }
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                tokio::spawn(turn_away(stream, too_many));
                continue;
            };
            let ends = Ends { peer, own: stream.local_addr().unwrap_or(configured) };
            let (acceptor, connection) = (renewable.as_ref().map(Renewable::acceptor), Arc::clone(&connection));
            tokio::spawn(async move {
                let _ = stream.set_nodelay(true);
                match acceptor {
                    None => connection(Box::new(stream), ends).await,
                    Some(acceptor) => {
                        if let Ok(Ok(stream)) = tokio::time::timeout(patience, acceptor.accept(stream)).await {
                            connection(Box::new(stream), ends).await;
                        }
                    }
                }
                drop(place);
            });
        }
        drop(listener);
        // Connections end by themselves: they look at the same flag.
        let _ = places.acquire_many(all as u32).await;
    });
    Ok(Running { name, address, certificates: certificate.into_iter().collect(), task })
}

async fn turn_away(mut stream: TcpStream, words: &'static [u8]) {
    let say = async {
        let _ = stream.write_all(words).await;
        let _ = stream.shutdown().await;
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), say).await;
}
