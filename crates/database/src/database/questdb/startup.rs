//! Opening a connection: as to PostgreSQL, and with a look whether the server knows the study's settings.
//!
//! Invariant: every failure here is [`DatabaseError::Unavailable`], with the address and the server's message.

use super::{Questdb, settings};
use crate::database::DatabaseError;
use crate::database::opening::{address, login_channel};
use crate::database::postgres::{PostgresWire, startup};

/// Opens a connection that is ready for its first request; within limits if there are any.
///
/// # Errors
/// [`DatabaseError::Unavailable`] as described above.
pub(super) fn connect(target: &Questdb) -> Result<PostgresWire, DatabaseError> {
    let (endpoint, limits) = (&target.endpoint, target.limits.as_ref());
    let socket = startup::connect_to("QuestDB", endpoint, limits)?;
    let is_checked = target.is_checked.get().is_some();
    let mut channel = login_channel(&socket, limits);
    let mut wire = PostgresWire::new(socket);
    if !is_checked {
        let checked = settings::check(&mut channel, &mut wire, &target.config);
        checked.map_err(|error| match error {
            DatabaseError::Unavailable(what) => DatabaseError::Unavailable(what),
            error => DatabaseError::Unavailable(format!("no connection to QuestDB at {}: {error}", address(endpoint))),
        })?;
        let _ = target.is_checked.set(());
    }
    Ok(wire)
}
