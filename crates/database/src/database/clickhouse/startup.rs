//! Opening a connection: TLS where the address asks for it, the first query, and the study's own settings.
//!
//! Invariant: every failure here is [`DatabaseError::Unavailable`], with the address and the server's message.

use super::Clickhouse;
use super::exchange::{Line, ask};
use super::settings::Own;
use super::wire::ClickhouseWire;
use crate::database::DatabaseError;
use crate::database::opening::open_logged_in;
use crate::database::session::Channel;

/// Opens a connection that is ready for its first request; within limits if there are any.
///
/// # Errors
/// [`DatabaseError::Unavailable`] as described above.
pub(super) fn connect(target: &Clickhouse) -> Result<ClickhouseWire, DatabaseError> {
    let Clickhouse { endpoint, limits, .. } = target;
    let log_in = |channel: &mut Channel| log_in(channel, target);
    let (socket, (line, own, version)) = open_logged_in("ClickHouse", endpoint, limits.as_ref(), log_in, explained)?;
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
