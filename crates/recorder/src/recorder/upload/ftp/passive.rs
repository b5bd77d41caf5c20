//! Data connections: a port is opened, and the client connects to it. Main type: [`Passive`].
//!
//! Invariant: only the host of the control connection is admitted.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::recorder::upload::Body;

/// A port that is open for one data connection.
#[derive(Debug)]
pub(super) struct Passive {
    listener: TcpListener,
    port: u16,
}

impl Passive {
    /// Opens a port: one of the range, tried from a random one on, or any that is free.
    ///
    /// # Errors
    /// If none is free.
    pub(super) fn open(address: IpAddr, ports: Option<(u16, u16)>) -> io::Result<Self> {
        let Some((first, last)) = ports else { return Self::bind(address, 0) };
        let count = u32::from(last - first) + 1;
        let mut random = [0; 4];
        SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("no random numbers"))?;
        let start = u32::from_ne_bytes(random) % count;
        let ports = (0..count).map(|step| first + ((start + step) % count) as u16);
        let mut last_error = io::Error::from(io::ErrorKind::AddrInUse);
        for port in ports {
            match Self::bind(address, port) {
                Ok(passive) => return Ok(passive),
                Err(error) => last_error = error,
            }
        }
        Err(last_error)
    }

    fn bind(address: IpAddr, port: u16) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((address, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Passive { listener: TcpListener::from_std(listener)?, port })
    }

    /// Returns the number of the port.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Accepts the client's data connection, with TLS if it was agreed. Connections of other hosts are closed.
    ///
    /// # Errors
    /// If the connection does not come about.
    pub(super) async fn accept(self, peer: SocketAddr, acceptor: Option<&TlsAcceptor>) -> io::Result<Data> {
        let stream = loop {
            let (stream, from) = self.listener.accept().await?;
            if from.ip().to_canonical() == peer.ip().to_canonical() {
                break stream;
            }
        };
        // The port is free for others from here on.
        drop(self.listener);
        match acceptor {
            None => Ok(Data::Plain(stream)),
            Some(acceptor) => acceptor.accept(stream).await.map(|stream| Data::Protected(Box::new(stream))),
        }
    }
}

/// A data connection. With TLS its end is authenticated: a connection that only breaks off is an error.
#[derive(Debug)]
pub(super) enum Data {
    Plain(TcpStream),
    Protected(Box<TlsStream<TcpStream>>),
}

impl Body for Data {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let room = (buffer.capacity() - buffer.len()) as u64;
        let read = AsyncReadExt::take(&mut *self, room).read_buf(buffer).await?;
        if read == 0 {
            // Sends our own end, without waiting for a client that does not read it.
            let _ = self.shutdown().await;
        }
        Ok(read)
    }
}

impl AsyncRead for Data {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Data::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Data::Protected(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Data {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Data::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Data::Protected(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Data::Plain(stream) => Pin::new(stream).poll_flush(context),
            Data::Protected(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Data::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Data::Protected(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    #[test]
    fn ports_are_those_of_the_range_until_none_is_left() {
        run(async {
            // Free ones, found by asking for them.
            let found: Vec<_> = (0..3).map(|_| Passive::open(HERE, None).unwrap()).collect();
            let port = found[0].port();
            assert!(Passive::open(HERE, Some((port, port))).is_err(), "it is taken");
            drop(found);
            let passive = Passive::open(HERE, Some((port, port))).unwrap();
            assert_eq!(passive.port(), port);
        });
    }

    #[test]
    fn only_the_host_of_the_control_connection_is_let_in() {
        run(async {
            let passive = Passive::open(HERE, None).unwrap();
            let port = passive.port();
            let stranger = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
            let peer: SocketAddr = "127.0.0.2:9".parse().unwrap();
            let waits = tokio::time::timeout(std::time::Duration::from_millis(50), passive.accept(peer, None)).await;
            assert!(waits.is_err(), "{stranger:?} is not 127.0.0.2");
        });
    }
}
