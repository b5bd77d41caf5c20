//! Opening a connection: TLS where the address asks for it, the login and the selection of the database.
//!
//! Invariant: every failure here is [`DatabaseError::Unavailable`], with the address and the server's message.

use std::sync::Arc;

use super::reply::ask;
use crate::database::opening::open_logged_in;
use crate::database::session::Channel;
use crate::database::tls::Socket;
use crate::database::{DatabaseError, Endpoint, SessionLimits};

/// Opens a connection that is ready for its first command; within limits if there are any.
///
/// # Errors
/// [`DatabaseError::Unavailable`] as described above.
pub(super) fn connect(endpoint: &Endpoint, limits: Option<&Arc<SessionLimits>>) -> Result<Socket, DatabaseError> {
    let log_in = |channel: &mut Channel| log_in(channel, endpoint);
    open_logged_in("Redis", endpoint, limits, log_in, explained).map(|(socket, ())| socket)
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
