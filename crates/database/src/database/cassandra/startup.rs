//! Opening a connection: TLS where the address asks for it, the login, and the keyspace.
//!
//! Invariant: every failure here is [`DatabaseError::Unavailable`], with the address and the server's message.

use super::frame::{BAD_CREDENTIALS, Body, Said, ask, broken, long_bytes, opcode, string_map};
use super::{Cassandra, tables};
use crate::database::opening::open_logged_in;
use crate::database::session::Channel;
use crate::database::tls::Socket;
use crate::database::{DatabaseError, Endpoint};

/// The version of the language, and who speaks it.
const OPTIONS: [(&str, &str); 3] =
    [("CQL_VERSION", "3.0.0"), ("DRIVER_NAME", "loadline"), ("DRIVER_VERSION", env!("CARGO_PKG_VERSION"))];
/// The steps that a login may have.
const STEPS_MAX: u32 = 4;

/// Appends the message that begins a connection, without its header.
pub(super) fn startup_body(out: &mut Vec<u8>) {
    string_map(&OPTIONS, out);
}

/// Opens a connection that is ready for its first statement; within limits if there are any.
///
/// # Errors
/// [`DatabaseError::Unavailable`] as described above.
pub(super) fn connect(target: &Cassandra) -> Result<Socket, DatabaseError> {
    let (endpoint, limits) = (&target.endpoint, target.limits.as_ref());
    let log_in = |channel: &mut Channel| log_in(channel, endpoint).and_then(|()| find_keyspace(channel, target));
    open_logged_in("Cassandra", endpoint, limits, log_in, explained).map(|(socket, ())| socket)
}

/// Logs in by user and password where the server asks who connects.
pub(super) fn log_in(channel: &mut Channel, endpoint: &Endpoint) -> Result<(), DatabaseError> {
    let mut body = Vec::new();
    startup_body(&mut body);
    let mut message = opcode::STARTUP;
    for _ in 0..STEPS_MAX {
        let kept = ask(channel, message, &body)?;
        match kept.opcode {
            opcode::READY | opcode::AUTH_SUCCESS => return Ok(()),
            opcode::ERROR => return Err(Said::of(&kept.body)?.outcome(false)),
            opcode::AUTHENTICATE if endpoint.user.is_empty() => {
                let class = Body(&kept.body).string()?.chars().filter(|letter| !letter.is_control()).take(200);
                let class: String = class.collect();
                return Err(DatabaseError::refused(ASKS_WHO, format!("it asks for a user and a password ({class})")));
            }
            opcode::AUTHENTICATE | opcode::AUTH_CHALLENGE => {
                let plain = format!("\0{}\0{}", endpoint.user, endpoint.password);
                body.clear();
                long_bytes(plain.as_bytes(), &mut body);
                message = opcode::AUTH_RESPONSE;
            }
            _ => return Err(broken("answers to a login with something else")),
        }
    }
    Err(broken("does not come to an end with the login"))
}

/// The code of a server that asks who connects.
const ASKS_WHO: &str = "login";
/// The code of a missing keyspace.
const NO_KEYSPACE: &str = "keyspace";

/// Checks that there is the keyspace. That of a private server is made with its first connection.
fn find_keyspace(channel: &mut Channel, target: &Cassandra) -> Result<(), DatabaseError> {
    let keyspace = &target.endpoint.database;
    if tables::has_keyspace(channel, keyspace)? {
        return Ok(());
    }
    if target.is_private {
        return tables::create_keyspace(channel, keyspace);
    }
    Err(DatabaseError::refused(NO_KEYSPACE, format!("there is no keyspace {keyspace:?}")))
}

/// Returns the server's message, with a remedy if one is known.
fn explained(error: &DatabaseError) -> String {
    let DatabaseError::Refused { code, .. } = error else { return error.to_string() };
    let remedy = match code.as_str() {
        ASKS_WHO => {
            "; give them in the address, as in cassandra://user:password@host/keyspace, the password also in LOADLINE_PASSWORD"
        }
        NO_KEYSPACE => "; make it, with the number of copies that you want, or name another one in the address",
        code if code == format!("{BAD_CREDENTIALS:#06x}") => "; check the user and the password",
        _ => "",
    };
    format!("{error}{remedy}")
}
