//! Opening a connection: TLS where the address asks for it, and the first query.
//!
//! Invariant: every failure here is [`DatabaseError::Unavailable`], with the address and the server's message.

use super::Victoriametrics;
use super::exchange::{Lines, ask};
use super::wire::VictoriametricsWire;
use crate::database::DatabaseError;
use crate::database::opening::open_logged_in;
use crate::database::session::Channel;

/// Opens a connection that is ready for its first request; within limits if there are any.
///
/// # Errors
/// [`DatabaseError::Unavailable`] as described above.
pub(super) fn connect(target: &Victoriametrics) -> Result<VictoriametricsWire, DatabaseError> {
    let Victoriametrics { endpoint, limits } = target;
    let log_in = |channel: &mut Channel| {
        let lines = Lines::new(endpoint);
        // MetricsQL has this operator, and PromQL has not.
        let answer = ask(channel, &lines, "40 default 2", "1")?;
        match answer.result.first().and_then(super::answer::Figures::figure) {
            Some(40.0) => Ok(lines),
            _ => Err(DatabaseError::refused("query", "it does not answer queries in MetricsQL")),
        }
    };
    let (socket, lines) = open_logged_in("VictoriaMetrics", endpoint, limits.as_ref(), log_in, explained)?;
    Ok(VictoriametricsWire::new(socket, lines))
}

/// Returns the server's message, with a remedy if one is known.
fn explained(error: &DatabaseError) -> String {
    let remedy = match error {
        DatabaseError::Refused { code, .. } if ["401", "403"].contains(&code.as_str()) => {
            "; give user and password in the address, as in victoriametrics://user:password@host, or the password in LOADLINE_PASSWORD"
        }
        DatabaseError::Refused { .. } | DatabaseError::Lost(_) => {
            "; the address must be that of the HTTP interface of a single server, usually port 8428, and victoriametricss:// where it has TLS"
        }
        _ => "",
    };
    format!("{error}{remedy}")
}
