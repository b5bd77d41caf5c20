//! Requests to the server, and the server's words. Main type: [`Lines`], the heads of a connection's requests; [`ask`] sends a query and waits for its answer.

use std::collections::BTreeMap;
use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::influxql::encoded;
use super::msgpack::{Token, token};
use crate::database::http::{Part, Reading, TOLD_MOST, shown};
use crate::database::session::Channel;
use crate::database::{DatabaseError, Endpoint};

/// The maximum bytes of an answer to [`ask`], and of an error.
pub(super) const TEXT_BYTES_MAX: usize = 256 << 10;
/// The room for the length of a body, which is known when the body is there.
const LENGTH_ROOM: usize = 12;
/// The maximum characters of a version.
const VERSION_CHARACTERS_MAX: usize = 60;
/// Status of a write that is acknowledged.
pub(super) const WRITTEN: u16 = 204;
/// Status of an answer to a query.
pub(super) const ANSWERED: u16 = 200;

/// The heads of requests, up to the length of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    /// Of writes.
    pub write: Vec<u8>,
    /// Of queries whose rows are read.
    pub query: Vec<u8>,
    /// Of queries that are answered in JSON.
    words: Vec<u8>,
}

impl Lines {
    /// Creates the heads for an endpoint's account and database.
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        let database = String::from_utf8_lossy(&encoded(endpoint.database.as_bytes())).into_owned();
        let host = endpoint.tcp.as_ref().map_or_else(
            || "influxdb".to_owned(),
            |(host, port)| match host.contains(':') {
                true => format!("[{host}]:{port}"),
                false => format!("{host}:{port}"),
            },
        );
        // Characters of a host's name are no others; what else there is cannot begin a line.
        let host: String = host.chars().filter(|letter| letter.is_ascii_graphic()).collect();
        let account = match endpoint.user.is_empty() {
            true => String::new(),
            false => {
                let account = STANDARD.encode(format!("{}:{}", endpoint.user, endpoint.password));
                format!("Authorization: Basic {account}\r\n")
            }
        };
        let head = |path: &str, more: &str| {
            format!("POST /{path} HTTP/1.1\r\nHost: {host}\r\n{account}{more}Content-Length:").into_bytes()
        };
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let query = format!("query?db={database}&epoch=ns");
        Lines {
            write: head(&format!("write?db={database}&precision=ns"), ""),
            query: head(&query, &format!("{form}Accept: application/x-msgpack\r\n")),
            words: head(&query, form),
        }
    }
}

/// Appends a request whose body `write` appends. If that fails, nothing is appended.
///
/// # Errors
/// The error of `write`.
pub(super) fn append<E>(
    head: &[u8],
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    out.extend_from_slice(head);
    let room = out.len();
    // Spaces may stand before a value.
    out.extend_from_slice(&[b' '; LENGTH_ROOM]);
    out.extend_from_slice(b"\r\n\r\n");
    let body = out.len();
    if let Err(error) = write(out) {
        out.truncate(start);
        return Err(error);
    }
    let length = out.len() - body;
    // Requests are smaller than ten gigabytes, and writing into enough room cannot fail.
    let _ = write!(&mut out[room..room + LENGTH_ROOM], "{length:>LENGTH_ROOM$}");
    Ok(())
}

/// A series of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Series {
    pub name: String,
    pub tags: BTreeMap<String, String>,
    pub columns: Vec<String>,
    pub values: Vec<Vec<Value>>,
}

impl Series {
    /// Returns the value of the first row in a column.
    pub(super) fn value(&self, column: &str) -> Option<&Value> {
        let place = self.columns.iter().position(|known| known == column)?;
        self.values.first()?.get(place)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Words {
    results: Vec<Outcome>,
    error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Outcome {
    series: Vec<Series>,
    error: Option<String>,
}

/// Sends a query and returns the series of its answer.
///
/// # Errors
/// The server's error; [`DatabaseError::Lost`] when the connection breaks or the answer is none.
pub(super) fn ask(channel: &mut Channel, lines: &Lines, query: &str) -> Result<Vec<Series>, DatabaseError> {
    asked(channel, lines, query).map(|(series, _)| series)
}

/// Sends a query like [`ask`], and also returns the server's version, as the head of its answer states it.
///
/// # Errors
/// As for [`ask`].
pub(super) fn asked(
    channel: &mut Channel,
    lines: &Lines,
    query: &str,
) -> Result<(Vec<Series>, Option<String>), DatabaseError> {
    let body = [b"q=", &*encoded(query.as_bytes())].concat();
    let Told { status, version, body: told } = exchange(channel, &lines.words, &body)?;
    if status != ANSWERED {
        return Err(refusal(status, &told));
    }
    let no_answer = |_| DatabaseError::Lost("the server answers a query with something else than JSON".to_owned());
    let words: Words = serde_json::from_slice(&told).map_err(no_answer)?;
    let error = words.error.or_else(|| words.results.iter().find_map(|outcome| outcome.error.clone()));
    match error {
        Some(told) => Err(DatabaseError::refused("influxdb", shown(&told, TOLD_MOST))),
        None => Ok((words.results.into_iter().flat_map(|outcome| outcome.series).collect(), version)),
    }
}

/// Writes lines, and waits until they are acknowledged.
///
/// # Errors
/// As for [`ask`].
pub(super) fn put(channel: &mut Channel, lines: &Lines, text: &[u8]) -> Result<(), DatabaseError> {
    let Told { status, body, .. } = exchange(channel, &lines.write, text)?;
    if status == WRITTEN { Ok(()) } else { Err(refusal(status, &body)) }
}

/// A short answer.
#[derive(Debug, Default)]
struct Told {
    status: u16,
    version: Option<String>,
    body: Vec<u8>,
}

/// Sends a request and returns its answer.
fn exchange(channel: &mut Channel, head: &[u8], body: &[u8]) -> Result<Told, DatabaseError> {
    let mut out = Vec::new();
    let written = append(head, &mut out, |out| {
        out.extend_from_slice(body);
        Ok::<(), std::convert::Infallible>(())
    });
    let Ok(()) = written;
    // An answer may be there although not everything was taken.
    let sent = channel.send(&out);
    let (mut reading, mut told) = (Reading::default(), Told::default());
    loop {
        let Some((part, consumed)) = reading.take(channel.input()).map_err(DatabaseError::Lost)? else {
            sent.clone()?;
            channel.receive()?;
            continue;
        };
        let is_end = part == Part::End;
        match part {
            Part::Head(head) => {
                told.status = head.status;
                told.version = channel.input().get(..consumed).and_then(version_of);
            }
            Part::Body(bytes) if told.body.len() + bytes.len() > TEXT_BYTES_MAX => return Err(too_long()),
            Part::Body(bytes) => told.body.extend_from_slice(bytes),
            Part::Framing | Part::End => {}
        }
        channel.consume(consumed);
        if is_end {
            return Ok(told);
        }
    }
}

/// Returns the version that the head of an answer states.
fn version_of(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let (_, version) = fields.find(|(name, _)| name.eq_ignore_ascii_case("x-influxdb-version"))?;
    Some(shown(version.trim(), VERSION_CHARACTERS_MAX))
}

pub(super) fn too_long() -> DatabaseError {
    DatabaseError::Lost(format!("the server answers with more than {} KiB, and no more are read", TEXT_BYTES_MAX >> 10))
}

/// Returns the error that the server's words say: `{"error": "…"}` in JSON or MessagePack. What a status of 500 and above leaves behind is not known.
pub(super) fn refusal(status: u16, told: &[u8]) -> DatabaseError {
    let told = error_of(told).unwrap_or_else(|| String::from_utf8_lossy(told).into_owned());
    let told = shown(&told, TOLD_MOST);
    if told.starts_with("partial write") {
        return DatabaseError::refused(status.to_string(), format!("{told}; the other points of the request stay"));
    }
    // A full cache takes nothing in.
    if (400..500).contains(&status) || told.starts_with("engine: cache-max-memory-size exceeded") {
        return DatabaseError::refused(status.to_string(), told);
    }
    DatabaseError::Lost(format!("the server answers with status {status}: {told}"))
}

fn error_of(told: &[u8]) -> Option<String> {
    if let Ok(Words { error: Some(error), .. }) = serde_json::from_slice(told) {
        return Some(error);
    }
    let mut rest = told;
    let mut next = || {
        let (token, length) = token(rest).ok()?.ok()?;
        rest = &rest[length..];
        Some(token)
    };
    match [next()?, next()?, next()?] {
        [Token::Map(1), Token::Text(b"error"), Token::Text(error)] => Some(String::from_utf8_lossy(error).into_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_length_of_its_body() {
        let endpoint = Endpoint {
            tcp: Some(("::1".to_owned(), 8086)),
            user: "me\r\nX: y".to_owned(),
            password: "p:w".to_owned(),
            database: "a b".to_owned(),
            ..Endpoint::default()
        };
        let lines = Lines::new(&endpoint);
        let mut out = b"own".to_vec();
        let write = |body: &mut Vec<u8>| {
            body.extend_from_slice(b"t v=1 1");
            Ok::<(), ()>(())
        };
        append(&lines.write, &mut out, write).unwrap();
        let text = String::from_utf8(out.clone()).unwrap();
        let right = "ownPOST /write?db=a+b&precision=ns HTTP/1.1\r\nHost: [::1]:8086\r\n\
                     Authorization: Basic bWUNClg6IHk6cDp3\r\nContent-Length:           7\r\n\r\nt v=1 1";
        assert_eq!(text, right);
        let fail = |body: &mut Vec<u8>| {
            body.push(1);
            Err(())
        };
        assert_eq!(append(&lines.query, &mut out, fail), Err(()));
        assert_eq!(out, right.as_bytes());
        let open = Lines::new(&Endpoint { user: String::new(), ..endpoint });
        assert!(!String::from_utf8(open.query).unwrap().contains("Authorization"));
    }

    #[test]
    fn the_version_is_in_the_head() {
        assert_eq!(version_of(b"HTTP/1.1 200 OK\r\nX-Influxdb-Version: 1.6.7~rc0\r\n").as_deref(), Some("1.6.7~rc0"));
        assert_eq!(version_of(b"HTTP/1.1 200 OK\r\n"), None);
    }

    #[test]
    fn errors_are_the_servers_words() {
        let of_json = refusal(404, b"{\"error\":\"database not found: \\\"x\\\"\"}\n");
        assert_eq!(of_json, DatabaseError::refused("404", "database not found: \"x\""));
        assert_eq!(refusal(400, b"\x81\xa5error\xa2no"), DatabaseError::refused("400", "no"));
        assert!(
            refusal(400, b"{\"error\":\"partial write: x dropped=1\"}")
                .to_string()
                .contains("points of the request stay")
        );
        assert!(refusal(500, b"{\"error\":\"timeout\"}").is_lost());
        assert!(!refusal(500, b"{\"error\":\"engine: cache-max-memory-size exceeded: (1/1)\"}").is_lost());
        assert_eq!(refusal(403, b"no\x1b[0m"), DatabaseError::refused("403", "no?[0m"));
    }
}
