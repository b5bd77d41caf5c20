//! Requests to the server, and the server's words. Main type: [`Line`], the head of each request of a connection; [`ask`] sends one and waits for its text.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::database::http::{Part, Reading, TOLD_MOST, shown};
use crate::database::session::Channel;
use crate::database::{DatabaseError, Endpoint};

/// The maximum bytes of an answer in words, and of an error.
pub(super) const TEXT_BYTES_MAX: usize = 256 << 10;
/// The room for the length of a body, which is known when the body is there.
const LENGTH_ROOM: usize = 12;

/// The head of each request, up to the length of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    head: Vec<u8>,
}

impl Line {
    /// Creates the head for an endpoint's account and database, with these settings of ClickHouse's own for each query. Answers wait until a query has ended, so that their status
    /// tells its outcome.
    pub(super) fn new(endpoint: &Endpoint, settings: &[(String, String)]) -> Self {
        let mut head = String::from("POST /?wait_end_of_query=1");
        let database = Some(("database".to_owned(), endpoint.database.clone())).filter(|(_, name)| !name.is_empty());
        for (name, value) in database.iter().chain(settings) {
            head += &format!("&{}={}", encoded(name), encoded(value));
        }
        let host = endpoint.tcp.as_ref().map_or_else(
            || "clickhouse".to_owned(),
            |(host, port)| match host.contains(':') {
                true => format!("[{host}]:{port}"),
                false => format!("{host}:{port}"),
            },
        );
        // Characters of a host's name are no others; what else there is cannot begin a line.
        let host: String = host.chars().filter(|letter| letter.is_ascii_graphic()).collect();
        let user = if endpoint.user.is_empty() { "default" } else { &endpoint.user };
        let account = STANDARD.encode(format!("{user}:{}", endpoint.password));
        head += &format!(" HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {account}\r\nContent-Length:");
        Line { head: head.into_bytes() }
    }

    /// Appends a request whose body `write` appends. If that fails, nothing is appended.
    ///
    /// # Errors
    /// The error of `write`.
    pub(super) fn append<E>(
        &self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = out.len();
        out.extend_from_slice(&self.head);
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
}

/// Encodes a text for the query of a URL.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if plain(byte) { out.push(char::from(byte)) } else { out += &format!("%{byte:02X}") }
    }
    out
}

/// Sends a query and returns the text of its answer, without the last line break.
///
/// # Errors
/// The server's error; [`DatabaseError::Lost`] when the connection breaks or the answer is none.
pub(super) fn ask(channel: &mut Channel, line: &Line, query: &str) -> Result<String, DatabaseError> {
    let mut out = Vec::new();
    line.append(&mut out, |body| {
        body.extend_from_slice(query.as_bytes());
        Ok::<(), DatabaseError>(())
    })?;
    channel.ask(query);
    let sent = channel.send(&out);
    let (mut reading, mut status, mut told) = (Reading::default(), 0, Vec::new());
    loop {
        let Some((part, consumed)) = reading.take(channel.input()).map_err(DatabaseError::Lost)? else {
            sent.clone()?;
            channel.receive()?;
            continue;
        };
        let is_end = part == Part::End;
        match part {
            Part::Head(head) => status = head.status,
            Part::Body(bytes) if told.len() + bytes.len() > TEXT_BYTES_MAX => return Err(too_long()),
            Part::Body(bytes) => told.extend_from_slice(bytes),
            Part::Framing | Part::End => {}
        }
        channel.consume(consumed);
        if is_end {
            break;
        }
    }
    if status != 200 {
        return Err(refusal(status, &told));
    }
    let text = String::from_utf8(told).map_err(|_| DatabaseError::Lost("the answer is no text".to_owned()))?;
    Ok(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text))
}

pub(super) fn too_long() -> DatabaseError {
    DatabaseError::Lost(format!("the server answers with more than {} KiB, and no more are read", TEXT_BYTES_MAX >> 10))
}

/// Returns the error that the server's words say, with its code: `Code: 60, e.displayText() = DB::Exception: Table …` or, in newer versions, `Code: 60. DB::Exception: Table …`. Whatever
/// stands before the server, such as a proxy, has no such code; whether a query was carried out then is known only if the request itself was refused.
pub(super) fn refusal(status: u16, told: &[u8]) -> DatabaseError {
    let told = String::from_utf8_lossy(told);
    let code = told.trim_start().strip_prefix("Code: ").map(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        (&rest[..digits], rest[digits..].trim_start_matches([',', '.', ' ']))
    });
    match code {
        Some((code, rest)) if !code.is_empty() => {
            let rest = rest.strip_prefix("e.displayText() = ").unwrap_or(rest);
            let rest = rest.split(", e.what() = ").next().unwrap_or(rest);
            let rest = rest.strip_prefix("DB::Exception: ").unwrap_or(rest);
            DatabaseError::refused(code, shown(rest, TOLD_MOST))
        }
        _ if (400..500).contains(&status) => DatabaseError::refused(status.to_string(), shown(&told, TOLD_MOST)),
        _ => DatabaseError::Lost(format!("the server answers with status {status}: {}", shown(&told, TOLD_MOST))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_length_of_its_body() {
        let endpoint = Endpoint {
            tcp: Some(("::1".to_owned(), 8123)),
            user: "me\r\nX: y".to_owned(),
            password: "p:w".to_owned(),
            database: "a b".to_owned(),
            ..Endpoint::default()
        };
        let line = Line::new(&endpoint, &[("max_threads".to_owned(), "1&x=2".to_owned())]);
        let mut out = b"own".to_vec();
        let write = |body: &mut Vec<u8>| {
            body.extend_from_slice(b"SELECT 1");
            Ok::<(), ()>(())
        };
        line.append(&mut out, write).unwrap();
        let text = String::from_utf8(out.clone()).unwrap();
        let right = "ownPOST /?wait_end_of_query=1&database=a%20b&max_threads=1%26x%3D2 HTTP/1.1\r\nHost: [::1]:8123\r\n\
                     Authorization: Basic bWUNClg6IHk6cDp3\r\nContent-Length:           8\r\n\r\nSELECT 1";
        assert_eq!(text, right);
        let fail = |body: &mut Vec<u8>| {
            body.push(1);
            Err(())
        };
        assert_eq!(line.append(&mut out, fail), Err(()));
        assert_eq!(out, right.as_bytes());
    }

    #[test]
    fn errors_of_old_and_new_versions_have_their_code() {
        for told in [
            "Code: 60, e.displayText() = DB::Exception: Table t doesn't exist., e.what() = DB::Exception\n",
            "Code: 60. DB::Exception: Table t doesn't exist.",
        ] {
            assert_eq!(refusal(404, told.as_bytes()), DatabaseError::refused("60", "Table t doesn't exist."));
        }
        assert!(refusal(502, b"Bad Gateway").is_lost());
        assert_eq!(refusal(403, b"no\x1b[0m"), DatabaseError::refused("403", "no?[0m"));
        assert!(refusal(500, b"Code: none").is_lost());
    }
}
