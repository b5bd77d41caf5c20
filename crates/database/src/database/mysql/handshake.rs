//! Handshake: greeting, capabilities and login. Main function: [`shake_hands`]; [`Abilities`] are the capabilities that the two
//! sides agreed upon, which decide the form of every later answer.
//!
//! The handshake is our own, not a driver's, because the codec must know exactly which capabilities are in force, and because a
//! connection then holds only its socket.
//!
//! Invariant: a plain-text password is sent only through a unix socket or TLS; where the server asks for it by `mysql_clear_password`, over TLS only to a verified server.

use std::sync::Arc;

use super::packet::{self, Fields, Message};
use super::password::{self, NONCE_BYTES};
use super::response;
use crate::database::opening::login_channel;
use crate::database::session::Channel;
use crate::database::tls::{Socket, TlsMode};
use crate::database::{DatabaseError, Endpoint, SessionLimits};

const LONG_PASSWORD: u32 = 1;
const FOUND_ROWS: u32 = 1 << 1;
const LONG_FLAG: u32 = 1 << 2;
const CONNECT_WITH_DATABASE: u32 = 1 << 3;
const PROTOCOL_41: u32 = 1 << 9;
const TLS: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const MULTI_RESULTS: u32 = 1 << 17;
const PREPARED_MULTI_RESULTS: u32 = 1 << 18;
const PLUGIN_AUTHENTICATION: u32 = 1 << 19;
const DEPRECATE_EOF: u32 = 1 << 24;

// MariaDB's own capabilities, in the bytes that MySQL leaves unused.
const BULK_OPERATIONS: u32 = 1 << 2;
const CACHED_METADATA: u32 = 1 << 4;

/// utf8mb4_general_ci, which all servers know.
const CHARACTER_SET: u8 = 45;
const NATIVE: &[u8] = b"mysql_native_password";
const CACHING_SHA2: &[u8] = b"caching_sha2_password";
const CLEAR: &[u8] = b"mysql_clear_password";

/// The capabilities that the two sides of a connection agreed upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Abilities {
    /// True if no EOF packet follows column definitions and an OK packet follows rows.
    pub deprecates_eof: bool,
    /// True if the columns of a prepared statement are defined again only when they changed (MariaDB from 10.6).
    pub caches_metadata: bool,
    /// True if one command can carry many rows for one prepared statement (MariaDB from 10.2).
    pub has_bulk: bool,
}

/// The server's greeting.
#[derive(Debug, Clone, PartialEq)]
struct Greeting {
    capabilities: u32,
    mariadb_capabilities: u32,
    nonce: [u8; NONCE_BYTES],
    plugin: Vec<u8>,
}

/// Takes a fresh socket through greeting, TLS and login, within limits if there are any. Returns the agreed capabilities.
///
/// # Errors
/// The server's error message, without the address.
pub fn shake_hands(
    socket: &mut Socket,
    endpoint: &Endpoint,
    limits: Option<&Arc<SessionLimits>>,
) -> Result<Abilities, DatabaseError> {
    let mut channel = login_channel(socket, limits);
    let mut sequence = 0;
    let greeting = receive(&mut channel, &mut sequence)?;
    let greeting = Greeting::parse(&greeting)?;
    let (mut capabilities, mariadb) = greeting.agree(endpoint)?;
    let mut out = Vec::new();
    if greeting.goes_on_with_tls(endpoint)? {
        capabilities |= TLS;
        let at = packet::begin(&mut out);
        greeting.begin_answer(capabilities, mariadb, &mut out);
        packet::end(&mut out, at, sequence);
        channel.send(&out)?;
        let host = endpoint.tcp.as_ref().map_or("localhost", |(host, _)| host);
        socket.protect(&mut channel, &endpoint.tls, host)?;
        sequence = sequence.wrapping_add(1);
        out.clear();
    }
    greeting.answer(endpoint, capabilities, mariadb, sequence, &mut out)?;
    channel.send(&out)?;
    log_in(&mut channel, endpoint, socket.secure().is_some(), greeting.plugin, greeting.nonce)?;
    Ok(Abilities {
        deprecates_eof: capabilities & DEPRECATE_EOF != 0,
        caches_metadata: mariadb & CACHED_METADATA != 0,
        has_bulk: mariadb & BULK_OPERATIONS != 0,
    })
}

/// Returns the payload of the next message; `sequence` becomes the number of the answer to it.
fn receive(channel: &mut Channel, sequence: &mut u8) -> Result<Vec<u8>, DatabaseError> {
    loop {
        if let Some(message) = Message::at_front_of(channel.input()) {
            let (payload, length) = (message.payload().into_owned(), message.length());
            *sequence = message.sequence().wrapping_add(1);
            channel.consume(length);
            return match payload.first() {
                Some(0xff) => Err(response::error(&payload)),
                _ => Ok(payload),
            };
        }
        channel.receive()?;
    }
}

impl Greeting {
    fn parse(payload: &[u8]) -> Result<Self, DatabaseError> {
        Self::fields(payload).ok_or_else(|| {
            DatabaseError::Unavailable("what listens there does not greet as a MySQL or MariaDB server does".into())
        })
    }

    fn fields(payload: &[u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        if fields.u8()? != 10 {
            return None;
        }
        fields.until_zero();
        fields.u32()?;
        let mut nonce = [0; NONCE_BYTES];
        nonce[..8].copy_from_slice(fields.bytes(8)?);
        fields.u8()?;
        let low = fields.u16()?;
        fields.bytes(3)?;
        let capabilities = u32::from(low) | u32::from(fields.u16()?) << 16;
        fields.bytes(7)?;
        let last = fields.u32()?;
        let mariadb_capabilities = if capabilities & LONG_PASSWORD == 0 { last } else { 0 };
        nonce[8..].copy_from_slice(fields.bytes(NONCE_BYTES - 8)?);
        fields.until_zero();
        let plugin = if capabilities & PLUGIN_AUTHENTICATION == 0 { NATIVE } else { fields.until_zero() };
        Some(Greeting { capabilities, mariadb_capabilities, nonce, plugin: plugin.to_vec() })
    }

    /// Returns the capabilities that both sides have and the codec wants.
    fn agree(&self, endpoint: &Endpoint) -> Result<(u32, u32), DatabaseError> {
        let needed = PROTOCOL_41 | SECURE_CONNECTION;
        if self.capabilities & needed != needed {
            return Err(DatabaseError::Unavailable("the server is older than MySQL 5.5 or MariaDB 5.5".into()));
        }
        let mut wanted = needed | FOUND_ROWS | LONG_FLAG | TRANSACTIONS | MULTI_RESULTS | PREPARED_MULTI_RESULTS;
        wanted |= PLUGIN_AUTHENTICATION | DEPRECATE_EOF;
        if !endpoint.database.is_empty() {
            wanted |= CONNECT_WITH_DATABASE;
        }
        // A MariaDB server reads its own capabilities only from clients that do not claim to be MySQL's.
        let is_mariadb = self.capabilities & LONG_PASSWORD == 0;
        wanted |= if is_mariadb { 0 } else { LONG_PASSWORD };
        let agreed = self.capabilities & wanted;
        let mut mariadb = self.mariadb_capabilities & (BULK_OPERATIONS | CACHED_METADATA);
        if agreed & DEPRECATE_EOF == 0 {
            mariadb &= !CACHED_METADATA;
        }
        Ok((agreed, mariadb))
    }

    /// Returns whether TLS comes next. A unix socket stays on the machine, so TLS is used there only where it is required.
    fn goes_on_with_tls(&self, endpoint: &Endpoint) -> Result<bool, DatabaseError> {
        let tls = &endpoint.tls;
        match self.capabilities & TLS != 0 {
            true if endpoint.unix.is_some() => Ok(tls.is_required()),
            true => Ok(tls.mode > TlsMode::Allow),
            false if tls.is_required() => Err(DatabaseError::Unavailable(format!(
                "the server has no TLS, and ssl-mode={} asks for it; let it have a certificate (ssl_cert and ssl_key), or leave ssl-mode out",
                tls.mode.name()
            ))),
            false => Ok(false),
        }
    }

    /// Appends the beginning of the answer, which is also the request for TLS in front of it.
    fn begin_answer(&self, capabilities: u32, mariadb: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&capabilities.to_le_bytes());
        out.extend_from_slice(&(1u32 << 30).to_le_bytes());
        out.push(CHARACTER_SET);
        out.extend_from_slice(&[0; 19]);
        out.extend_from_slice(&mariadb.to_le_bytes());
    }

    fn answer(
        &self,
        endpoint: &Endpoint,
        capabilities: u32,
        mariadb: u32,
        sequence: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), DatabaseError> {
        // A server's default plugin that is unknown here matters only if the account uses it: the server will then ask again.
        let proof = scrambled(&self.plugin, &endpoint.password, &self.nonce).unwrap_or_default();
        let plugin = if is_scrambling(&self.plugin) { &self.plugin } else { NATIVE };
        let at = packet::begin(out);
        self.begin_answer(capabilities, mariadb, out);
        zero_ended(out, &endpoint.user, "user name")?;
        out.push(proof.len() as u8);
        out.extend_from_slice(&proof);
        if capabilities & CONNECT_WITH_DATABASE != 0 {
            zero_ended(out, &endpoint.database, "database name")?;
        }
        if capabilities & PLUGIN_AUTHENTICATION != 0 {
            out.extend_from_slice(plugin);
            out.push(0);
        }
        packet::end(out, at, sequence);
        Ok(())
    }
}

fn zero_ended(out: &mut Vec<u8>, text: &str, what: &str) -> Result<(), DatabaseError> {
    if text.contains('\0') {
        return Err(DatabaseError::Unavailable(format!("the {what} contains a zero byte")));
    }
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    Ok(())
}

/// Answers the server's authentication requests until the login succeeds.
fn log_in(
    channel: &mut Channel,
    endpoint: &Endpoint,
    is_protected: bool,
    mut plugin: Vec<u8>,
    mut nonce: [u8; NONCE_BYTES],
) -> Result<(), DatabaseError> {
    let mut sequence = 0;
    let is_private = is_protected || endpoint.unix.is_some();
    // A server that asks for the plain-text password must have proven its identity.
    let is_proven = endpoint.unix.is_some() || is_protected && endpoint.tls.mode >= TlsMode::VerifyCa;
    // An exchange has at most a switch of the plugin, a request for the key and the password; a server that goes on beyond that is broken.
    for _ in 0..8 {
        let message = receive(channel, &mut sequence)?;
        let answer = match message.as_slice() {
            [0x00, ..] => return Ok(()),
            [0xfe, switch @ ..] => {
                let mut fields = Fields(switch);
                plugin = fields.until_zero().to_vec();
                if let Some(fresh) = fields.array() {
                    nonce = fresh;
                }
                match plugin.as_slice() {
                    CLEAR if is_proven => clear(&endpoint.password),
                    plugin => scrambled(plugin, &endpoint.password, &nonce).ok_or_else(|| unknown(plugin))?,
                }
            }
            // The server has the password in its cache, and it was right; OK follows.
            [0x01, 0x03] if plugin == CACHING_SHA2 => continue,
            [0x01, 0x04] if plugin == CACHING_SHA2 && is_private => clear(&endpoint.password),
            [0x01, 0x04] if plugin == CACHING_SHA2 => vec![0x02],
            [0x01, key @ ..] if plugin == CACHING_SHA2 => encrypted(&endpoint.password, &nonce, key)?,
            _ => return Err(unknown(&plugin)),
        };
        let mut out = Vec::new();
        let at = packet::begin(&mut out);
        out.extend_from_slice(&answer);
        packet::end(&mut out, at, sequence);
        channel.send(&out)?;
    }
    Err(unknown(&plugin))
}

fn is_scrambling(plugin: &[u8]) -> bool {
    plugin == NATIVE || plugin == CACHING_SHA2
}

/// Returns the proof of the password: empty for no password, `None` for an unknown plugin.
fn scrambled(plugin: &[u8], password: &str, nonce: &[u8; NONCE_BYTES]) -> Option<Vec<u8>> {
    let password = password.as_bytes();
    match plugin {
        NATIVE => Some(password::native(password, nonce)),
        CACHING_SHA2 => Some(password::caching_sha2(password, nonce)),
        _ => None,
    }
}

fn clear(password: &str) -> Vec<u8> {
    [password.as_bytes(), &[0]].concat()
}

fn encrypted(password: &str, nonce: &[u8; NONCE_BYTES], key: &[u8]) -> Result<Vec<u8>, DatabaseError> {
    password::encrypted(password.as_bytes(), nonce, key).ok_or_else(|| {
        DatabaseError::Unavailable("the server sent no RSA key that the password could be encrypted with".into())
    })
}

fn unknown(plugin: &[u8]) -> DatabaseError {
    DatabaseError::Unavailable(format!(
        "the account uses the authentication plugin {:?}, which loadline does not speak; give it mysql_native_password or \
         caching_sha2_password",
        String::from_utf8_lossy(plugin)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn greeting(capabilities: u32, mariadb: u32, plugin: &str) -> Vec<u8> {
        let mut payload = vec![10];
        payload.extend_from_slice(b"10.11.0-Test\0");
        payload.extend_from_slice(&7u32.to_le_bytes());
        payload.extend_from_slice(b"12345678\0");
        payload.extend_from_slice(&(capabilities as u16).to_le_bytes());
        payload.extend_from_slice(&[45, 2, 0]);
        payload.extend_from_slice(&((capabilities >> 16) as u16).to_le_bytes());
        payload.push(21);
        payload.extend_from_slice(&[0; 6]);
        payload.extend_from_slice(&mariadb.to_le_bytes());
        payload.extend_from_slice(b"901234567890\0");
        payload.extend_from_slice(plugin.as_bytes());
        payload.push(0);
        payload
    }

    const SERVER: u32 = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTHENTICATION | DEPRECATE_EOF | CONNECT_WITH_DATABASE;

    fn framed(payload: &[u8], sequence: u8) -> Vec<u8> {
        let mut out = Vec::new();
        let at = packet::begin(&mut out);
        out.extend_from_slice(payload);
        packet::end(&mut out, at, sequence);
        out
    }

    /// Returns the outcome of a handshake with a server that sends these payloads, each but the first after an answer; and the answers.
    fn shake(password: &str, payloads: &[Vec<u8>]) -> (Result<Abilities, DatabaseError>, Vec<Vec<u8>>) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let endpoint = Endpoint {
            user: "ann".into(),
            password: password.into(),
            database: "d".into(),
            unix: Some("/s".into()),
            ..Endpoint::default()
        };
        let payloads = payloads.to_vec();
        let server = std::thread::spawn(move || {
            let mut answers = Vec::new();
            for (number, payload) in payloads.iter().enumerate() {
                theirs.write_all(&framed(payload, 2 * number as u8)).unwrap();
                let mut answer = vec![0; 4096];
                let read = theirs.read(&mut answer).unwrap();
                answer.truncate(read);
                answers.push(answer);
            }
            answers
        });
        let mut ours = Socket::from(std::os::fd::OwnedFd::from(ours));
        let outcome = shake_hands(&mut ours, &endpoint, None);
        drop(ours);
        (outcome, server.join().unwrap())
    }

    const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

    #[test]
    fn capabilities_are_those_that_both_sides_have() {
        let mariadb = greeting(SERVER, BULK_OPERATIONS | CACHED_METADATA | 1 << 5, "mysql_native_password");
        let (outcome, answers) = shake("", &[mariadb, OK.to_vec()]);
        let all = Abilities { deprecates_eof: true, caches_metadata: true, has_bulk: true };
        assert_eq!(outcome, Ok(all));
        assert_eq!(answers[0][3], 1, "sequence");
        assert_eq!(answers[0][4] & 1, 0, "not a MySQL client");
        assert_eq!(answers[0][32..36], (BULK_OPERATIONS | CACHED_METADATA).to_le_bytes());
        assert!(answers[0].ends_with(b"ann\0\0d\0mysql_native_password\0"));

        let mysql = greeting(SERVER | LONG_PASSWORD, 0xffff_ffff, "caching_sha2_password");
        let (outcome, _) = shake("", &[mysql, OK.to_vec()]);
        assert_eq!(outcome, Ok(Abilities { deprecates_eof: true, ..Abilities::default() }));

        let old = greeting(SERVER & !DEPRECATE_EOF, CACHED_METADATA, "mysql_native_password");
        assert_eq!(shake("", &[old, OK.to_vec()]).0, Ok(Abilities::default()));
    }

    #[test]
    fn a_plugin_is_switched_and_an_uncached_password_goes_through_the_unix_socket() {
        let first = greeting(SERVER, 0, "mysql_native_password");
        let switch = b"\xfecaching_sha2_password\0abcdefghijklmnopqrst\0".to_vec();
        let (outcome, answers) = shake("secret", &[first, switch, vec![1, 4], OK.to_vec()]);
        assert!(outcome.is_ok(), "{outcome:?}");
        let proof = password::caching_sha2(b"secret", b"abcdefghijklmnopqrst");
        assert_eq!(answers[1], framed(&proof, 3));
        assert_eq!(answers[2], framed(b"secret\0", 5));
    }

    #[test]
    fn what_cannot_be_spoken_is_said() {
        let first = greeting(SERVER, 0, "mysql_native_password");
        let (outcome, _) = shake("x", &[first.clone(), b"\xfeauth_gssapi_client\0".to_vec()]);
        assert!(outcome.unwrap_err().to_string().contains("auth_gssapi_client"));
        let (outcome, _) = shake("x", &[b"SSH-2.0-OpenSSH".to_vec()]);
        assert!(outcome.unwrap_err().to_string().contains("does not greet"));
        let denied = b"\xff\x15\x04#28000Access denied".to_vec();
        assert_eq!(shake("x", &[first, denied]).0, Err(DatabaseError::refused("1045", "Access denied")));
        assert!(encrypted("p", &[0; 20], b"no key").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_greetings_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            let _ = Greeting::parse(&bytes);
            let _ = Greeting::parse(&[&[10, 0][..], &bytes].concat());
        }
    }
}
