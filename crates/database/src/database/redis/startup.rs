//! Opening a connection: TLS where the address asks for it, the login and the selection of the database.
//!
//! Invariant: every failure here is [`DatabaseError::Unavailable`], with the address and the server's message.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use super::reply::ask;
use crate::database::session::{CONNECT_TIMEOUT, Channel, Pace, dial, dial_within};
use crate::database::tls::Socket;
use crate::database::{DatabaseError, Endpoint, SessionLimits};

/// Opens a connection that is ready for its first command; within limits if there are any.
///
/// # Errors
/// [`DatabaseError::Unavailable`] as described above.
pub(super) fn connect(endpoint: &Endpoint, limits: Option<&Arc<SessionLimits>>) -> Result<Socket, DatabaseError> {
    let mut socket = Socket::from(limits.map_or_else(|| dial(endpoint), |limits| dial_within(endpoint, limits))?);
    let mut channel = Channel::new(socket.as_raw_fd());
    match limits {
        Some(limits) => channel.set_limits(Arc::clone(limits), Pace::Login),
        None => channel.set_timeout(Some(CONNECT_TIMEOUT)),
    }
    let host = endpoint.tcp.as_ref().filter(|_| endpoint.unix.is_none());
    let protected = match host {
        Some((host, _)) if endpoint.tls.is_tried() => socket.protect(&mut channel, &endpoint.tls, host),
        _ => Ok(()),
    };
    protected.and_then(|()| log_in(&mut channel, endpoint)).map_err(|error| {
        DatabaseError::Unavailable(format!("no connection to Redis at {}: {}", address(endpoint), explained(&error)))
    })?;
    Ok(socket)
}

/// Logs in where the endpoint has a user or password, and selects the database.
fn log_in(channel: &mut Channel, endpoint: &Endpoint) -> Result<(), DatabaseError> {
    match (endpoint.user.as_str(), endpoint.password.as_str()) {
        ("", "") => {}
        ("", password) => drop(ask(channel, &[b"AUTH", password.as_bytes()])?),
        (user, password) => drop(ask(channel, &[b"AUTH", user.as_bytes(), password.as_bytes()])?),
    }
    match endpoint.database.as_str() {
        // Also where none is to be selected: a server that refuses clients says so here.
        "" | "0" => ask(channel, &[b"PING"]).map(drop),
        number => ask(channel, &[b"SELECT", number.as_bytes()]).map(drop),
    }
}

/// Returns the server's message, with a remedy if one is known.
fn explained(error: &DatabaseError) -> String {
    let remedy = match error {
        DatabaseError::Refused { code, .. } if code == "NOAUTH" => {
            "; give the password in the address, as in redis://:password@host, or in LOADLINE_PASSWORD"
        }
        DatabaseError::Refused { code, .. } if code == "WRONGPASS" => "; check the user and the password",
        DatabaseError::Refused { code, .. } if code == "LOADING" => "; wait until it has read its data",
        _ => "",
    };
    format!("{error}{remedy}")
}

fn address(endpoint: &Endpoint) -> String {
    match (&endpoint.unix, &endpoint.tcp) {
        (Some(path), _) => path.display().to_string(),
        (None, Some((host, port))) => format!("{host}:{port}"),
        (None, None) => "nowhere".to_owned(),
    }
}
