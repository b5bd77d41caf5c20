//! Opening a connection: TLS where the address asks for it, the first query, and the study's own settings.
//!
//! Invariant: every failure here is [`DatabaseError::Unavailable`], with the address and the server's message.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use super::Clickhouse;
use super::exchange::{Line, ask};
use super::settings::Own;
use super::wire::ClickhouseWire;
use crate::database::session::{CONNECT_TIMEOUT, Channel, Pace, dial, dial_within};
use crate::database::tls::Socket;
use crate::database::{DatabaseError, Endpoint};

/// Opens a connection that is ready for its first request; within limits if there are any.
///
/// # Errors
/// [`DatabaseError::Unavailable`] as described above.
pub(super) fn connect(target: &Clickhouse) -> Result<ClickhouseWire, DatabaseError> {
    let Clickhouse { endpoint, limits, .. } = target;
    let dialled = limits.as_ref().map_or_else(|| dial(endpoint), |limits| dial_within(endpoint, limits));
    let mut socket = Socket::from(dialled?);
    let mut channel = Channel::new(socket.as_raw_fd());
    match limits {
        Some(limits) => channel.set_limits(Arc::clone(limits), Pace::Login),
        None => channel.set_timeout(Some(CONNECT_TIMEOUT)),
    }
    let protected = match &endpoint.tcp {
        Some((host, _)) if endpoint.tls.is_tried() => socket.protect(&mut channel, &endpoint.tls, host),
        _ => Ok(()),
    };
    let logged_in = protected.and_then(|()| log_in(&mut channel, target));
    let (line, own, version) = logged_in.map_err(|error| {
        DatabaseError::Unavailable(format!(
            "no connection to ClickHouse at {}: {}",
            address(endpoint),
            explained(&error)
        ))
    })?;
    Ok(ClickhouseWire::new(socket, line, own, target.engine, version))
}

/// Asks for the version as the account, and what the study's settings belong to.
fn log_in(channel: &mut Channel, target: &Clickhouse) -> Result<(Line, Own, String), DatabaseError> {
    let plain = Line::new(&target.endpoint, &[]);
    let version = ask(channel, &plain, "SELECT version()")?;
    let is_version =
        version.starts_with(|first: char| first.is_ascii_digit()) && version.len() < 100 && version.is_ascii();
    if !is_version || version.contains(char::is_control) {
        return Err(DatabaseError::Lost("the server does not tell its version".to_owned()));
    }
    let own = match target.own.get() {
        Some(own) => own.clone(),
        None => {
            let own = Own::of(&target.config, channel, &plain, &version)?;
            target.own.get_or_init(|| own).clone()
        }
    };
    Ok((Line::new(&target.endpoint, &own.of_queries), own, version))
}

/// Returns the server's message, with a remedy if one is known.
fn explained(error: &DatabaseError) -> String {
    let remedy = match error {
        // Unknown user, wrong password, required password, and authentication that failed in newer versions.
        DatabaseError::Refused { code, .. } if ["192", "193", "194", "516", "401", "403"].contains(&code.as_str()) => {
            "; give user and password in the address, as in clickhouse://user:password@host, or the password in LOADLINE_PASSWORD"
        }
        DatabaseError::Refused { code, .. } if code == "81" => "; check the name of the database",
        DatabaseError::Lost(_) => {
            "; the address must be that of its HTTP interface, usually port 8123, and clickhouses:// where it has TLS"
        }
        _ => "",
    };
    format!("{error}{remedy}")
}

fn address(endpoint: &Endpoint) -> String {
    endpoint.tcp.as_ref().map_or_else(|| "nowhere".to_owned(), |(host, port)| format!("{host}:{port}"))
}
