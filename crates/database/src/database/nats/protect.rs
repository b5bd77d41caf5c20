//! TLS with a NATS server, which greets in the clear; what stands behind its greeting is sealed. Main function: [`protect`].
//!
//! Invariant: what came in the clear behind the greeting is never taken for what the server sealed.

use serde_json::Value;

use crate::database::session::Channel;
use crate::database::tls::Socket;
use crate::database::{DatabaseError, Endpoint};

/// The longest greeting; the addresses of a large cluster fit.
const GREETING_BYTES_MAX: usize = 256 << 10;

/// Where the endpoint asks for TLS, waits for the server's greeting and agrees with it upon TLS. What the greeting says, which does not come again; none without
/// TLS, where it is still to come.
///
/// # Errors
/// [`DatabaseError::Unavailable`] when the server has no TLS or does not prove who it is, [`DatabaseError::Lost`] when the connection broke, or something
/// came in the clear behind the greeting.
pub(in crate::database) fn protect(
    socket: &mut Socket,
    channel: &mut Channel,
    endpoint: &Endpoint,
) -> Result<Option<Value>, DatabaseError> {
    let host = endpoint.tcp.as_ref().map_or("", |(host, _)| host);
    if !endpoint.tls.is_tried() {
        return Ok(None);
    }
    let greeting = greeting(channel)?;
    if greeting["tls_required"] != true && greeting["tls_available"] != true {
        let what = "it has no TLS, and TLS is asked for; start it with a certificate, or leave TLS out";
        return Err(DatabaseError::Unavailable(what.to_owned()));
    }
    socket.protect(channel, &endpoint.tls, host)?;
    Ok(Some(greeting))
}

/// Takes in the first line of the server and no more.
fn greeting(channel: &mut Channel) -> Result<Value, DatabaseError> {
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
