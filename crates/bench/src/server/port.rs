//! A TCP port that the kernel gives to nobody else.
//!
//! Main type: [`HeldPort`]. Invariant: as long as it lives, no other program is given its port, neither one that connects nor one that listens on port 0; a
//! server that is told to listen on it can, as often as it is started.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use socket2::{Domain, Socket, Type};

use super::ServerError;

/// A TCP port of the loopback address, held by a socket that is bound to it and never listens.
///
/// Linux lets a second socket bind to a port, and listen on it, when both have `SO_REUSEADDR` and the first one does not listen; each server that loadline
/// starts sets it, as it could not be restarted on its port otherwise. A port that was only found free could be lost to a neighbour before the server listens,
/// for which Cassandra needs half a minute.
#[derive(Debug)]
pub(super) struct HeldPort {
    number: u16,
    _socket: Socket,
}

impl HeldPort {
    /// Holds a port that is free now.
    ///
    /// # Errors
    /// [`ServerError::Path`] if there is none.
    pub(super) fn take() -> Result<HeldPort, ServerError> {
        let bind = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).into())?;
            let bound = socket.local_addr()?.as_socket().map_or(0, |address| address.port());
            Ok(HeldPort { number: bound, _socket: socket })
        };
        bind().map_err(|source| ServerError::Path { path: "127.0.0.1".into(), action: "find a free port on", source })
    }

    /// Returns the port, from 1 to 65,535.
    pub(super) fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// The standard library sets `SO_REUSEADDR`, as servers do.
    #[test]
    fn a_server_can_listen_on_a_held_port_again_and_again() {
        let held = HeldPort::take().unwrap();
        let address = (Ipv4Addr::LOCALHOST, held.number());
        for _ in 0..2 {
            let server = TcpListener::bind(address).unwrap();
            assert_eq!(TcpStream::connect(address).unwrap().peer_addr().unwrap(), server.local_addr().unwrap());
        }
        assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }

    /// A socket that shares no port is refused the held one, as every port is looked at before the kernel gives it away.
    #[test]
    fn nobody_is_given_a_held_port() {
        let held = HeldPort::take().unwrap();
        let alone = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let address = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, held.number())).into();
        assert_eq!(alone.bind(&address).unwrap_err().kind(), ErrorKind::AddrInUse);
        for _ in 0..10 {
            let given: Vec<HeldPort> = (0..100).map(|_| HeldPort::take().unwrap()).collect();
            assert!(given.iter().all(|other| other.number() != held.number()));
        }
    }
}
