//! Opening a connection: TLS where the address asks for it, the greeting, the login, and a look whether the database may be used.
//!
//! Invariant: every failure here is [`DatabaseError::Unavailable`], with the address and the server's message.

use super::Mongodb;
use super::bson::{self, Document, Value, broken};
use super::message::ask;
use super::scram::Scram;
use super::tables::list_of;
use crate::database::DatabaseError;
use crate::database::opening::open_logged_in;
use crate::database::session::Channel;
use crate::database::tls::Socket;

/// The protocol of MongoDB 5.0, the first version whose `hello` every server has. FerretDB 1.24 speaks 21.
const PROTOCOL_LEAST: i64 = 13;
/// The steps that a login may have.
const STEPS_MAX: u32 = 4;
/// The database for commands that concern none.
const ADMIN: &str = "admin";

/// The codes of errors of a login: wrong user or password, and a user that must log in or may not.
const BAD_CREDENTIALS: &str = "18";
const UNAUTHORIZED: &str = "13";

/// Appends the greeting.
pub(super) fn hello(out: &mut Vec<u8>) {
    bson::int32("hello", 1, out);
    bson::document("client", out, |out| {
        bson::document("application", out, |out| bson::text("name", b"loadline", out));
        bson::document("driver", out, |out| {
            bson::text("name", b"loadline", out);
            bson::text("version", env!("CARGO_PKG_VERSION").as_bytes(), out);
        });
        bson::document("os", out, |out| bson::text("type", std::env::consts::OS.as_bytes(), out));
    });
}

/// Opens a connection that is ready for its first command; within limits if there are any.
///
/// # Errors
/// [`DatabaseError::Unavailable`] as described above.
pub(super) fn connect(target: &Mongodb) -> Result<Socket, DatabaseError> {
    let log_in = |channel: &mut Channel| {
        ask(channel, ADMIN, hello, check_greeting)?;
        log_in(channel, target)?;
        look(channel, &target.endpoint.database)
    };
    open_logged_in("MongoDB", &target.endpoint, target.limits.as_ref(), log_in, explained).map(|(socket, ())| socket)
}

/// Checks that the server is one that takes writes and speaks the protocol.
pub(super) fn check_greeting(told: Document<'_>) -> Result<(), DatabaseError> {
    let number = |name: &str| Ok::<_, DatabaseError>(told.get(name)?.and_then(Value::whole));
    let newest = number("maxWireVersion")?.ok_or_else(|| broken("does not say which protocol it speaks"))?;
    if newest < PROTOCOL_LEAST {
        let why = format!(
            "it speaks version {newest} of the protocol; MongoDB 5.0 (version {PROTOCOL_LEAST}) is the oldest that can be used"
        );
        return Err(DatabaseError::refused("version", why));
    }
    let takes_writes = told.get("isWritablePrimary")?.is_none_or(Value::is_true);
    if !takes_writes || told.get("msg")?.and_then(|value| value.shown(20)).as_deref() == Some("isdbgrid") {
        let why = "it is a secondary or a router, and loadline measures one server that takes writes; name the primary";
        return Err(DatabaseError::refused("primary", why));
    }
    Ok(())
}

/// Logs in by user and password where the address has a user.
fn log_in(channel: &mut Channel, target: &Mongodb) -> Result<(), DatabaseError> {
    let (user, password) = (&target.endpoint.user, &target.endpoint.password);
    if user.is_empty() {
        return Ok(());
    }
    let source = &target.options.auth_source;
    let wrong = |why: String| DatabaseError::refused("login", why);
    let mut login = Scram::begin(user).map_err(wrong)?;
    let first = login.message();
    let start = |out: &mut Vec<u8>| {
        bson::int32("saslStart", 1, out);
        bson::text("mechanism", b"SCRAM-SHA-256", out);
        bson::binary("payload", first.as_bytes(), out);
        bson::document("options", out, |out| bson::boolean("skipEmptyExchange", true, out));
    };
    let Step { id, payload, .. } = ask(channel, source, start, Step::of)?;
    let proof = login.prove(&payload, password).map_err(wrong)?;
    let mut step = ask(channel, source, |out| go_on(id, proof.as_bytes(), out), Step::of)?;
    login.check(&step.payload).map_err(wrong)?;
    for _ in 0..STEPS_MAX {
        if step.is_done {
            return Ok(());
        }
        step = ask(channel, source, |out| go_on(id, b"", out), Step::of)?;
    }
    Err(broken("does not come to an end with the login"))
}

fn go_on(id: i64, payload: &[u8], out: &mut Vec<u8>) {
    bson::int32("saslContinue", 1, out);
    // Servers number logins from 1 on, and take no longer numbers.
    bson::int32("conversationId", i32::try_from(id).unwrap_or_default(), out);
    bson::binary("payload", payload, out);
}

/// A step of a login.
struct Step {
    id: i64,
    payload: Vec<u8>,
    is_done: bool,
}

impl Step {
    fn of(told: Document<'_>) -> Result<Self, DatabaseError> {
        let payload = match told.get("payload")? {
            Some(Value::Binary(payload)) => payload.to_vec(),
            _ => return Err(broken("answers to a login with something else")),
        };
        let id = told.get("conversationId")?.and_then(Value::whole).unwrap_or_default();
        Ok(Step { id, payload, is_done: told.get("done")?.is_some_and(Value::is_true) })
    }
}

/// Looks whether the database may be used: a server that asks who connects says so only to a command of this kind.
fn look(channel: &mut Channel, database: &str) -> Result<(), DatabaseError> {
    let list = |out: &mut Vec<u8>| list_of("loadline", out);
    ask(channel, database, list, |_| Ok(()))
}

/// Returns the server's message, with a remedy if one is known.
fn explained(error: &DatabaseError) -> String {
    let DatabaseError::Refused { code, .. } = error else { return error.to_string() };
    let remedy = match code.as_str() {
        BAD_CREDENTIALS => "; check the user and the password, and name the database that knows the user in authSource",
        UNAUTHORIZED => {
            "; give user and password in the address, as in mongodb://user:password@host/database, the password also in LOADLINE_PASSWORD"
        }
        _ => "",
    };
    format!("{error}{remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeted(fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), DatabaseError> {
        let mut out = Vec::new();
        let from = bson::begin(&mut out);
        fill(&mut out);
        bson::end(from, &mut out);
        check_greeting(Document::whole(&out)?)
    }

    #[test]
    fn servers_that_are_too_old_or_take_no_writes_are_refused() {
        let of = |version: i32, writable: bool| {
            greeted(|out| {
                bson::boolean("isWritablePrimary", writable, out);
                bson::int32("maxWireVersion", version, out);
            })
        };
        assert_eq!(of(21, true), Ok(()));
        assert!(of(9, true).unwrap_err().to_string().contains("MongoDB 5.0"));
        assert!(of(21, false).unwrap_err().to_string().contains("primary"));
        assert!(greeted(|_| ()).unwrap_err().is_lost());
    }
}
