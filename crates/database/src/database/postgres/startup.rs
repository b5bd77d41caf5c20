//! Opening a connection: TLS where requested, the startup message, and authentication by trust, plain-text password, MD5 or SCRAM-SHA-256, which is bound to the
//! connection where possible.
//!
//! Invariant: every failure here is [`DatabaseError::Unavailable`], with the address, the server's message and
//! a remedy.

use std::sync::Arc;

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256};

use super::message::{self, ServerError, take_i32, take_text};
use crate::database::opening::{address, dialled, login_channel};
use crate::database::session::Channel;
use crate::database::tls::{ChannelBinding as Wanted, SharedSecure, Socket, TlsMode};
use crate::database::{DatabaseError, Endpoint, SessionLimits};

/// Version 3.0 of the protocol.
const PROTOCOL: i32 = 3 << 16;

/// The request for TLS before the protocol begins.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Opens a connection that is ready for its first statement, within limits if there are any. Where TLS is optional, the other way is tried when
/// the server refuses the first because of encryption.
///
/// # Errors
/// [`DatabaseError::Unavailable`] as described above.
pub fn connect(endpoint: &Endpoint, limits: Option<&Arc<SessionLimits>>) -> Result<Socket, DatabaseError> {
    connect_to("PostgreSQL", endpoint, limits)
}

/// Opens a connection like [`connect`] to another server that speaks this protocol; `whose` names it in messages.
///
/// # Errors
/// [`DatabaseError::Unavailable`] as described above.
pub(in crate::database) fn connect_to(
    whose: &str,
    endpoint: &Endpoint,
    limits: Option<&Arc<SessionLimits>>,
) -> Result<Socket, DatabaseError> {
    // A unix socket stays on the machine.
    let mode = if endpoint.unix.is_some() { TlsMode::Disable } else { endpoint.tls.mode };
    let first = connect_once(endpoint, limits, mode > TlsMode::Allow);
    let outcome = match (first, mode) {
        (Err(Failure::Server(error)), TlsMode::Allow | TlsMode::Prefer) if is_about_encryption(&error) => {
            connect_once(endpoint, limits, mode == TlsMode::Allow)
        }
        // libpq does the same; if the second attempt also fails, the first error explains more.
        (Err(Failure::Unprotected(error)), TlsMode::Prefer) => {
            connect_once(endpoint, limits, false).map_err(|_| Failure::Unprotected(error))
        }
        (first, _) => first,
    };
    outcome.map_err(|failure| match failure {
        Failure::Unreachable(error) => error,
        failure => DatabaseError::Unavailable(format!("no connection to {whose} at {}: {failure}", address(endpoint))),
    })
}

/// Returns whether a line of pg_hba.conf admits this user only with TLS, or only without.
fn is_about_encryption(error: &ServerError) -> bool {
    error.code == "28000" && (error.message.contains("encryption") || error.message.contains("SSL o"))
}

fn connect_once(endpoint: &Endpoint, limits: Option<&Arc<SessionLimits>>, tries_tls: bool) -> Result<Socket, Failure> {
    let mut socket = dialled(endpoint, limits).map_err(Failure::Unreachable)?;
    let mut channel = login_channel(&socket, limits);
    if tries_tls && has_tls(&mut channel, endpoint)? {
        let host = endpoint.tcp.as_ref().map_or("", |(host, _)| host);
        socket.protect(&mut channel, &endpoint.tls, host).map_err(Failure::Unprotected)?;
    }
    start(&mut channel, endpoint, socket.secure().as_ref())?;
    Ok(socket)
}

/// Requests TLS. Returns whether the handshake comes next; it does not where the server has no TLS and none is required.
fn has_tls(channel: &mut Channel, endpoint: &Endpoint) -> Result<bool, Failure> {
    channel.send(&TLS_REQUEST)?;
    while channel.input().is_empty() {
        channel.receive()?;
    }
    let answer = channel.input().first().copied();
    channel.consume(1);
    match answer {
        Some(b'S') => Ok(true),
        Some(b'N') if endpoint.tls.is_required() => Err(Failure::Other(format!(
            "the server has no TLS, and sslmode={} asks for it; let it have a certificate (ssl = on), or leave sslmode out",
            endpoint.tls.mode.name()
        ))),
        Some(b'N') => Ok(false),
        // A server that does not know the request refuses it; libpq then connects without TLS, too.
        Some(b'E') if !endpoint.tls.is_required() => {
            Err(Failure::Unprotected(message::broken("it refuses to be asked for TLS")))
        }
        // Plain text could come from an attacker.
        _ => Err(message::broken("it answers a request for TLS with something else").into()),
    }
}

/// Performs the startup over a socket that was not dialled.
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub(in crate::database) fn over(socket: std::os::fd::OwnedFd, endpoint: &Endpoint) -> Result<Socket, DatabaseError> {
    let socket = Socket::from(socket);
    let started = start(&mut Channel::new(std::os::fd::AsRawFd::as_raw_fd(&socket)), endpoint, None);
    started.map(|()| socket).map_err(|failure| DatabaseError::Unavailable(failure.to_string()))
}

/// The cause of a failed connection; its text completes a sentence.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{}{}", .0.message, remedy(.0))]
    Server(ServerError),
    #[error("{0}")]
    Broken(DatabaseError),
    #[error("{0}")]
    Other(String),
    #[error("{0}")]
    Unprotected(DatabaseError),
    /// No socket to the server can be opened; this text is a whole sentence.
    #[error("{0}")]
    Unreachable(DatabaseError),
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        Failure::Broken(error)
    }
}

fn start(channel: &mut Channel, endpoint: &Endpoint, secure: Option<&SharedSecure>) -> Result<(), Failure> {
    let mut out = Vec::with_capacity(256);
    message::write(&mut out, 0, |out| {
        out.extend_from_slice(&PROTOCOL.to_be_bytes());
        let parameters = [
            ("user", endpoint.user.as_str()),
            ("database", &endpoint.database),
            ("client_encoding", "UTF8"),
            ("application_name", "loadline"),
        ];
        for (name, value) in parameters {
            message::write_text(out, name);
            message::write_text(out, value);
        }
        out.push(0);
    });
    let sent = channel.send(&out);
    let mut scram = None;
    loop {
        let (tag, body) = match receive(channel) {
            Ok(received) => received,
            // A failed send explains more than a missing answer.
            Err(error) => return Err(sent.err().unwrap_or(error).into()),
        };
        match tag {
            b'R' => authenticate(channel, (endpoint, secure), &mut scram, &body)?,
            b'E' => return Err(Failure::Server(ServerError::read(&body))),
            b'Z' => return Ok(()),
            b'N' | b'S' | b'A' | b'K' => {}
            b'v' => return Err(Failure::Other("it does not know version 3.0 of the protocol".into())),
            _ => return Err(message::broken(&format!("it answers a greeting with {tag:#04x}")).into()),
        }
    }
}

/// Answers one authentication message.
fn authenticate(
    channel: &mut Channel,
    (endpoint, secure): (&Endpoint, Option<&SharedSecure>),
    scram: &mut Option<ScramSha256>,
    mut body: &[u8],
) -> Result<(), Failure> {
    let short = || message::broken("a request for authentication is cut off");
    let method = take_i32(&mut body).ok_or_else(short)?;
    if matches!(method, 3 | 5 | 10) && endpoint.password.is_empty() {
        return Err(Failure::Other(format!(
            "the server asks for the password of user {:?}, and none is given; set LOADLINE_PASSWORD, or put it into the address: \
             postgres://user:password@host:port/database",
            endpoint.user
        )));
    }
    match method {
        0 => Ok(()),
        3 => send_password(channel, endpoint.password.as_bytes()),
        5 => {
            let salt = body.first_chunk().ok_or_else(short)?;
            let hash = md5_hash(endpoint.user.as_bytes(), endpoint.password.as_bytes(), *salt);
            send_password(channel, hash.as_bytes())
        }
        10 => {
            let offered: Vec<&[u8]> =
                std::iter::from_fn(|| take_text(&mut body).filter(|name| !name.is_empty())).collect();
            let (mechanism, binding) = mechanism(&offered, endpoint.tls.channel_binding, secure)?;
            let exchange = ScramSha256::new(endpoint.password.as_bytes(), binding);
            let mut out = Vec::new();
            message::write(&mut out, b'p', |out| {
                message::write_text(out, mechanism);
                out.extend_from_slice(&(exchange.message().len() as u32).to_be_bytes());
                out.extend_from_slice(exchange.message());
            });
            *scram = Some(exchange);
            Ok(channel.send(&out)?)
        }
        11 | 12 => continue_scram(channel, scram, method == 12, body),
        other => Err(Failure::Other(format!(
            "the server asks for a way of authentication that loadline does not know (number {other}); \
             let it accept this user by trust, password, md5 or scram-sha-256 in pg_hba.conf"
        ))),
    }
}

/// Returns the SASL mechanism and the channel binding, which prevents an attacker in between, with another certificate, from passing the proof on.
fn mechanism(
    offered: &[&[u8]],
    wanted: Wanted,
    secure: Option<&SharedSecure>,
) -> Result<(&'static str, ChannelBinding), Failure> {
    let has = |name: &str| offered.contains(&name.as_bytes());
    let end_point = secure.filter(|_| wanted != Wanted::Disable).and_then(SharedSecure::end_point);
    match end_point {
        Some(end_point) if has(SCRAM_SHA_256_PLUS) => {
            return Ok((SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(end_point)));
        }
        _ if wanted == Wanted::Require => {
            let remedy = "leave channel_binding=require out, or let the server use TLS and scram-sha-256";
            return Err(Failure::Other(format!("the log-in cannot be bound to the connection; {remedy}")));
        }
        // The server learns that the client supports binding, so that an attacker in between cannot remove the offer.
        Some(_) if has(SCRAM_SHA_256) => return Ok((SCRAM_SHA_256, ChannelBinding::unrequested())),
        _ => {}
    }
    if has(SCRAM_SHA_256) {
        return Ok((SCRAM_SHA_256, ChannelBinding::unsupported()));
    }
    Err(Failure::Other("the server offers no SASL mechanism that loadline knows, which is SCRAM-SHA-256".into()))
}

fn continue_scram(
    channel: &mut Channel,
    scram: &mut Option<ScramSha256>,
    is_last: bool,
    body: &[u8],
) -> Result<(), Failure> {
    let exchange = scram.as_mut().ok_or_else(|| message::broken("SCRAM goes on before it has begun"))?;
    let outcome = if is_last { exchange.finish(body) } else { exchange.update(body) };
    outcome
        .map_err(|error| Failure::Other(format!("the server failed to prove that it knows the password: {error}")))?;
    if is_last {
        return Ok(());
    }
    let mut out = Vec::new();
    message::write(&mut out, b'p', |out| out.extend_from_slice(exchange.message()));
    Ok(channel.send(&out)?)
}

fn send_password(channel: &mut Channel, password: &[u8]) -> Result<(), Failure> {
    let mut out = Vec::new();
    message::write(&mut out, b'p', |out| {
        out.extend_from_slice(password);
        out.push(0);
    });
    Ok(channel.send(&out)?)
}

/// Waits for one message and takes it off the channel.
pub fn receive(channel: &mut Channel) -> Result<(u8, Vec<u8>), DatabaseError> {
    loop {
        if let Some(message) = message::read(channel.input())? {
            let received = (message.tag, message.body.to_vec());
            let length = message.length();
            channel.consume(length);
            return Ok(received);
        }
        channel.receive()?;
    }
}

/// Returns the remedy for a refusal, as the end of a sentence.
fn remedy(error: &ServerError) -> &'static str {
    match error.code.as_str() {
        "28000" if error.message.contains("no encryption") => {
            "; the server lets this user in with TLS only, if at all: say sslmode=require or more in database.url, and look at its pg_hba.conf"
        }
        "28000" if error.message.contains("SSL encryption") || error.message.contains("SSL on") => {
            "; the server lets this user in without TLS only, if at all: say sslmode=disable in database.url, and look at its pg_hba.conf"
        }
        "28000" if error.message.contains("client certificate") => {
            "; name one that the server's authority has signed for this user with sslcert=FILE and sslkey=FILE in database.url"
        }
        "28P01" | "28000" => "; check user and password in database.url, and the server's pg_hba.conf",
        "3D000" => "; create the database, or name another one in database.url",
        "53300" => "; let fewer clients connect (load.clients), or raise the server's max_connections",
        "57P03" => "; wait until the server is ready",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    /// Connects to a server that sends these bytes and reads until the client hangs up. Returns the error and the bytes sent to it.
    fn answered(bytes: &[u8], password: &str) -> (Option<String>, Vec<u8>) {
        let name = format!("loadline-startup-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        let listener = UnixListener::bind(&path).unwrap();
        let bytes = bytes.to_vec();
        let server = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            peer.write_all(&bytes).unwrap();
            let mut heard = Vec::new();
            peer.read_to_end(&mut heard).unwrap();
            heard
        });
        let endpoint = Endpoint {
            unix: Some(path.clone()),
            user: "me".into(),
            password: password.into(),
            database: "data".into(),
            ..Endpoint::default()
        };
        let outcome = connect(&endpoint, None).map(drop).map_err(|error| error.to_string()).err();
        std::fs::remove_file(path).unwrap();
        (outcome, server.join().unwrap())
    }

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        message::write(&mut out, tag, |out| out.extend_from_slice(body));
        out
    }

    #[test]
    fn notices_and_settings_before_the_server_is_ready_are_passed_over() {
        let parts = [
            message(b'N', b"Mhello\0\0"),
            message(b'R', &[0, 0, 0, 0]),
            message(b'S', b"server_version\x0015\0"),
            message(b'K', &[0; 8]),
            message(b'Z', b"I"),
        ];
        let (error, heard) = answered(&parts.concat(), "");
        assert_eq!(error, None);
        assert!(heard.windows(8).any(|part| part == b"user\0me\0"), "{heard:?}");
        assert!(heard.windows(14).any(|part| part == b"database\0data\0"), "{heard:?}");
    }

    #[test]
    fn md5_passwords_are_salted() {
        let mut parts = message(b'R', &[0, 0, 0, 5, 1, 2, 3, 4]);
        parts.extend(message(b'R', &[0, 0, 0, 0]));
        parts.extend(message(b'Z', b"I"));
        let (error, heard) = answered(&parts, "secret");
        assert_eq!(error, None);
        let hash = md5_hash(b"me", b"secret", [1, 2, 3, 4]);
        assert!(String::from_utf8_lossy(&heard).ends_with(&format!("{hash}\0")));
    }

    #[test]
    fn a_missing_password_an_unknown_method_and_another_protocol_are_explained() {
        let (error, _) = answered(&message(b'R', &[0, 0, 0, 3]), "");
        assert!(error.unwrap().contains("none is given"));
        let (error, _) = answered(&message(b'R', &[0, 0, 0, 7]), "secret");
        assert!(error.unwrap().contains("number 7"));
        let (error, _) = answered(b"\x4a\0\0\0\x0a5.5.5-10.11.14-MariaDB\0 and more of a greeting", "");
        assert!(error.unwrap().contains("does not keep to PostgreSQL's protocol"));
        let (error, _) = answered(&message(b'E', b"SFATAL\0C3D000\0Mdatabase \"data\" does not exist\0\0"), "");
        let error = error.unwrap();
        assert!(error.contains("does not exist; create the database"), "{error}");
    }

    #[test]
    fn an_impostor_that_does_not_know_the_password_is_refused() {
        let mut parts = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
        parts.extend(message(b'R', b"\0\0\0\x0br=not-ours,s=c2FsdA==,i=1"));
        let (error, _) = answered(&parts, "secret");
        assert!(error.unwrap().contains("prove"));
    }

    /// Runs a server that accepts the request for TLS but then speaks something else. Returns the error and the first bytes of the second connection.
    fn without_working_tls(mode: TlsMode) -> (Option<String>, Vec<u8>) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut first, _) = listener.accept().unwrap();
            let mut request = [0; 8];
            first.read_exact(&mut request).unwrap();
            assert_eq!(request, TLS_REQUEST);
            first.write_all(b"S").unwrap();
            // Bytes sent before the client has begun would not be taken for TLS at all.
            first.read_exact(&mut request).unwrap();
            first.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
            let _ = first.read_to_end(&mut Vec::new());
            if mode > TlsMode::Prefer {
                return Vec::new();
            }
            let (mut second, _) = listener.accept().unwrap();
            let mut heard = vec![0; 8];
            second.read_exact(&mut heard).unwrap();
            second.write_all(&[message(b'R', &[0; 4]), message(b'Z', b"I")].concat()).unwrap();
            let _ = second.read_to_end(&mut Vec::new());
            heard
        });
        let tls = crate::database::tls::Tls { mode, ..Default::default() };
        let tcp = Some(("127.0.0.1".to_owned(), port));
        let endpoint = Endpoint { tcp, tls, user: "me".into(), database: "data".into(), ..Endpoint::default() };
        let outcome = connect(&endpoint, None).map(drop).map_err(|error| error.to_string()).err();
        (outcome, server.join().unwrap())
    }

    #[test]
    fn tls_that_does_not_work_is_done_without_only_where_it_may_be() {
        let (error, heard) = without_working_tls(TlsMode::Prefer);
        assert_eq!((error, &heard[4..]), (None, &PROTOCOL.to_be_bytes()[..]));
        let (error, _) = without_working_tls(TlsMode::Require);
        assert!(error.as_ref().is_some_and(|error| error.contains("127.0.0.1 does not speak TLS there")), "{error:?}");
    }
}
