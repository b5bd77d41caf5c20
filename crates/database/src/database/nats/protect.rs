//! Opening a socket to a NATS server, with TLS where requested: the server greets in plain text, and everything behind its greeting is sealed.
//! Main function: [`connect`].
//!
//! Invariant: plain text behind the greeting is never taken for sealed data of the server.

use std::os::fd::AsRawFd;

use serde_json::Value;

use crate::database::session::{CONNECT_TIMEOUT, Channel, dial};
use crate::database::tls::Socket;
use crate::database::{DatabaseError, Endpoint};

/// The maximum bytes of a greeting; the addresses of a large cluster fit.
const GREETING_BYTES_MAX: usize = 256 << 10;

/// Opens a socket. Where the endpoint asks for TLS, the server's greeting is received first and returned, since it does not come again; without TLS it is
/// `None`, and the greeting is still to come.
///
/// # Errors
/// [`DatabaseError::Unavailable`] when the server cannot be reached, has no TLS, does not prove its identity, or sends plain text behind its
/// greeting.
pub(in crate::database) fn connect(endpoint: &Endpoint) -> Result<(Socket, Option<Value>), DatabaseError> {
    let mut socket = Socket::from(dial(endpoint)?);
    let Some((host, port)) = endpoint.tcp.as_ref().filter(|_| endpoint.tls.is_tried()) else {
        return Ok((socket, None));
    };
    let greeting = protect(&mut socket, endpoint, host).map_err(|error| {
        DatabaseError::Unavailable(format!("no connection over TLS to the NATS server at {host}:{port}: {error}"))
    })?;
    Ok((socket, Some(greeting)))
}

/// Waits for the server's greeting and performs the TLS handshake. Returns the greeting.
fn protect(socket: &mut Socket, endpoint: &Endpoint, host: &str) -> Result<Value, DatabaseError> {
    let mut channel = Channel::new(socket.as_raw_fd());
    channel.set_timeout(Some(CONNECT_TIMEOUT));
    let greeting = greeting(&mut channel)?;
    if greeting["tls_required"] != true && greeting["tls_available"] != true {
        let what = "it has no TLS, and TLS is asked for; start it with a certificate, or leave TLS out";
        return Err(DatabaseError::Unavailable(what.to_owned()));
    }
    socket.protect(&mut channel, &endpoint.tls, host)?;
    Ok(greeting)
}

/// Receives the first line of the server and nothing more.
pub(super) fn greeting(channel: &mut Channel) -> Result<Value, DatabaseError> {
    let strange = || DatabaseError::Unavailable("it does not greet as a NATS server does".to_owned());
    loop {
        let input = channel.input();
        let looked_at = &input[..input.len().min(GREETING_BYTES_MAX)];
        let Some(end) = looked_at.windows(2).position(|pair| pair == b"\r\n") else {
            if input.len() >= GREETING_BYTES_MAX {
                return Err(strange());
            }
            channel.receive()?;
            continue;
        };
        let json = looked_at[..end].strip_prefix(b"INFO ").ok_or_else(strange)?;
        let greeting = serde_json::from_slice(json).map_err(|_| strange())?;
        channel.consume(end + 2);
        return Ok(greeting);
    }
}
