//! Opening a connection: TLS where the address asks for it, the account and database of a private server, and the first query.
//!
//! Invariant: every failure here is [`DatabaseError::Unavailable`], with the address and the server's message.

use super::Influxdb;
use super::exchange::{Lines, ask, asked};
use super::influxql::{literal, name};
use super::wire::InfluxdbWire;
use crate::database::opening::open_logged_in;
use crate::database::session::Channel;
use crate::database::{DatabaseError, Endpoint};

/// Opens a connection that is ready for its first request; within limits if there are any.
///
/// # Errors
/// [`DatabaseError::Unavailable`] as described above.
pub(super) fn connect(target: &Influxdb) -> Result<InfluxdbWire, DatabaseError> {
    let Influxdb { endpoint, limits, .. } = target;
    let log_in = |channel: &mut Channel| log_in(channel, target);
    let (socket, (lines, version)) = open_logged_in("InfluxDB", endpoint, limits.as_ref(), log_in, explained)?;
    Ok(InfluxdbWire::new(socket, lines, endpoint.database.clone(), version))
}

/// Asks the database something as the account, which fails where it is not there, and reads the version from the answer.
fn log_in(channel: &mut Channel, target: &Influxdb) -> Result<(Lines, String), DatabaseError> {
    let lines = Lines::new(&target.endpoint);
    if target.is_private && target.is_made.get().is_none() {
        make(channel, &lines, &target.endpoint)?;
        let _ = target.is_made.set(());
    }
    let (_, version) = asked(channel, &lines, "SHOW RETENTION POLICIES")?;
    let version = version.filter(|version| version.is_ascii());
    let version = version.ok_or_else(|| DatabaseError::Lost("the server does not tell its version".to_owned()))?;
    if !version.trim_start_matches('v').starts_with("1.") {
        let why = format!("it is InfluxDB {version}, and only version 1 is spoken here");
        return Err(DatabaseError::refused("version", why));
    }
    Ok((lines, version))
}

/// Makes the account and the database of a private server, if they are not there.
fn make(channel: &mut Channel, lines: &Lines, endpoint: &Endpoint) -> Result<(), DatabaseError> {
    let database = format!("CREATE DATABASE {}", name(&endpoint.database));
    match ask(channel, lines, &database) {
        Err(DatabaseError::Refused { message, .. }) if message.contains("create admin user first") => {
            let (user, password) = (name(&endpoint.user), literal(&endpoint.password));
            ask(channel, lines, &format!("CREATE USER {user} WITH PASSWORD {password} WITH ALL PRIVILEGES"))?;
            ask(channel, lines, &database).map(drop)
        }
        outcome => outcome.map(drop),
    }
}

/// Returns the server's message, with a remedy if one is known.
fn explained(error: &DatabaseError) -> String {
    let remedy = match error {
        DatabaseError::Refused { code, .. } if ["401", "403"].contains(&code.as_str()) => {
            "; give user and password in the address, as in influxdb://user:password@host/database, or the password in LOADLINE_PASSWORD"
        }
        DatabaseError::Refused { message, .. } if message.starts_with("database not found") => {
            "; make it with CREATE DATABASE, or check the name in the address"
        }
        DatabaseError::Lost(_) => {
            "; the address must be that of its HTTP interface, usually port 8086, and influxdbs:// where it has TLS"
        }
        _ => "",
    };
    format!("{error}{remedy}")
}
