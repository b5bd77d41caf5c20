//! Opening a connection, as far as it is the same for targets with a codec of their own: the endpoint that must be there, dialling, limits, and TLS.
//!
//! Main function: [`open_logged_in`]. Invariant: every failure of it is [`DatabaseError::Unavailable`], with the address and the server's message.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use super::session::{CONNECT_TIMEOUT, Channel, Pace, dial, dial_within};
use super::tls::Socket;
use super::{DatabaseError, Endpoint, SessionLimits};

/// Returns the endpoint of a target that needs a server.
///
/// # Errors
/// [`DatabaseError::Unavailable`] with what to give, where there is none.
pub fn server_of<'a>(name: &str, endpoint: Option<&'a Endpoint>) -> Result<&'a Endpoint, DatabaseError> {
    endpoint.ok_or_else(|| {
        DatabaseError::Unavailable(format!("{name} needs a server: a private one, or the one of database.url"))
    })
}

/// Dials an endpoint, within limits if there are any. Nothing has been sent or read.
///
/// # Errors
/// [`DatabaseError::Unavailable`] with the address.
pub fn dialled(endpoint: &Endpoint, limits: Option<&Arc<SessionLimits>>) -> Result<Socket, DatabaseError> {
    limits.map_or_else(|| dial(endpoint), |limits| dial_within(endpoint, limits)).map(Socket::from)
}

/// Returns the blocking end of a socket on which a login is about to begin or has ended.
pub fn login_channel(socket: &Socket, limits: Option<&Arc<SessionLimits>>) -> Channel {
    let mut channel = Channel::over(socket.as_raw_fd(), socket.secure());
    match limits {
        Some(limits) => channel.set_limits(Arc::clone(limits), Pace::Login),
        None => channel.set_timeout(Some(CONNECT_TIMEOUT)),
    }
    channel
}

/// Opens a connection to a server whose protocol begins with TLS where the address asks for it, and logs in. `whose` names the server in messages, and `explained` says what
/// went wrong, with a remedy if one is known.
///
/// # Errors
/// [`DatabaseError::Unavailable`] as described above.
pub fn open_logged_in<T>(
    whose: &str,
    endpoint: &Endpoint,
    limits: Option<&Arc<SessionLimits>>,
    log_in: impl FnOnce(&mut Channel) -> Result<T, DatabaseError>,
    explained: impl FnOnce(&DatabaseError) -> String,
) -> Result<(Socket, T), DatabaseError> {
    let mut socket = dialled(endpoint, limits)?;
    let mut channel = login_channel(&socket, limits);
    let host = endpoint.tcp.as_ref().filter(|_| endpoint.unix.is_none());
    let protected = match host {
        Some((host, _)) if endpoint.tls.is_tried() => socket.protect(&mut channel, &endpoint.tls, host),
        _ => Ok(()),
    };
    let found = protected.and_then(|()| log_in(&mut channel)).map_err(|error| {
        DatabaseError::Unavailable(format!("no connection to {whose} at {}: {}", address(endpoint), explained(&error)))
    })?;
    Ok((socket, found))
}

/// Returns an endpoint's address for messages.
pub fn address(endpoint: &Endpoint) -> String {
    match (&endpoint.unix, &endpoint.tcp) {
        (Some(path), _) => path.display().to_string(),
        (None, Some((host, port))) => format!("{host}:{port}"),
        (None, None) => "nowhere".to_owned(),
    }
}
