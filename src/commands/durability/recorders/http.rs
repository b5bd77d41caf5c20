//! Requests of line protocol over HTTP.
//!
//! Main type: [`HttpConnection`]. Invariant: only a whole answer with 2xx acknowledges a request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, ensure};

use super::connection::{Answered, Connection, Said, dial};
use crate::database::http::{Part, Reading};
use crate::database::{TOLD_MOST, shown};

/// The maximum bytes of an answer's body.
const BODY_BYTES_MAX: usize = 1 << 20;
/// How many bytes are read at a time.
const READ_BYTES: usize = 4 << 10;
/// The status of a request that came too early.
const TOO_MANY: u16 = 429;

/// A connection, with what has arrived and was not read yet.
pub struct HttpConnection {
    stream: TcpStream,
    arrived: Vec<u8>,
    address: SocketAddr,
    path: String,
    headers: Vec<String>,
}

impl HttpConnection {
    /// Opens a connection for requests to a path, with further header lines.
    ///
    /// # Errors
    /// Fails if nobody listens.
    pub fn open(address: SocketAddr, path: String, headers: Vec<String>) -> anyhow::Result<Self> {
        Ok(HttpConnection { stream: dial(address)?, arrived: Vec::new(), address, path, headers })
    }
}

impl Connection for HttpConnection {
    fn send(&mut self, lines: &str, _: u64) -> anyhow::Result<Answered> {
        self.stream.write_all(&request(self.address, &self.path, &self.headers, lines))?;
        let answer = read_answer(&mut self.stream, &mut self.arrived)?;
        let said = match answer.status {
            200..300 => Said::Acknowledged,
            400..500 if answer.status != TOO_MANY => Said::Refused(format!("{} {}", answer.status, answer.body.trim())),
            _ => Said::Later,
        };
        // Whatever says more than it was asked for is not trusted with the next request.
        Ok((said, !answer.closes && self.arrived.is_empty()))
    }
}

/// Returns a request for a page, behind which the connection ends.
pub fn get(page: &str) -> Vec<u8> {
    format!("GET {page} HTTP/1.1\r\nHost: recorder\r\nConnection: close\r\n\r\n").into_bytes()
}

fn request(address: SocketAddr, path: &str, headers: &[String], lines: &str) -> Vec<u8> {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = lines.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{lines}"
    )
    .into_bytes()
}

/// The answer to a request.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    body: String,
    /// Whether the other side closes the connection behind it.
    closes: bool,
}

/// Reads one answer. Bytes behind it are left where they are.
fn read_answer(from: &mut impl Read, arrived: &mut Vec<u8>) -> anyhow::Result<Answer> {
    let (mut reading, mut answer, mut body) = (Reading::default(), None, Vec::new());
    loop {
        let Some((part, consumed)) = reading.take(arrived).map_err(anyhow::Error::msg)? else {
            let mut more = [0; READ_BYTES];
            let read = from.read(&mut more)?;
            ensure!(read > 0, "the connection ended within an answer");
            arrived.extend_from_slice(&more[..read]);
            continue;
        };
        let is_end = part == Part::End;
        match part {
            Part::Head(head) => answer = Some((head.status, head.closes)),
            Part::Body(bytes) => {
                ensure!(body.len() + bytes.len() <= BODY_BYTES_MAX, "an answer of more than 1 MiB");
                body.extend_from_slice(bytes);
            }
            Part::Framing | Part::End => {}
        }
        arrived.drain(..consumed);
        if is_end {
            let (status, closes) = answer.context("an answer without a head")?;
            return Ok(Answer { status, body: shown(&String::from_utf8_lossy(&body), TOLD_MOST), closes });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Answer> {
        read_answer(&mut text.as_bytes(), &mut Vec::new())
    }

    #[test]
    fn answers_of_each_form_are_read_and_what_follows_stays() {
        let answer = |status, body: &str, closes| Answer { status, body: body.to_owned(), closes };
        assert_eq!(read("HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n").unwrap(), answer(204, "", false));
        assert_eq!(read("HTTP/1.1 400 Bad\r\ncontent-length: 3\r\n\r\nwhy").unwrap(), answer(400, "why", false));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n";
        assert_eq!(read(chunked).unwrap(), answer(200, "abc", true));
        let mut arrived = Vec::new();
        read_answer(&mut &b"HTTP/1.1 204 No Content\r\n\r\nHTTP"[..], &mut arrived).unwrap();
        assert_eq!(arrived, b"HTTP");
    }

    #[test]
    fn answers_that_are_cut_or_endless_acknowledge_nothing() {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "{cut}");
        }
        assert!(read(&format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 17))).is_err());
        let endless =
            format!("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}", "x".repeat(BODY_BYTES_MAX + 1));
        assert!(read(&endless).unwrap_err().to_string().contains("1 MiB"));
        assert!(read("SSH-2.0-x\r\n\r\n").is_err());
    }

    #[test]
    fn a_request_has_the_headers_of_the_file_and_its_length() {
        let address = "127.0.0.1:1".parse().unwrap();
        let text = String::from_utf8(request(address, "/write", &["A: b".to_owned()], "m f=1\n")).unwrap();
        assert!(text.starts_with("POST /write HTTP/1.1\r\nHost: 127.0.0.1:1\r\nA: b\r\n"), "{text}");
        assert!(text.ends_with("Content-Length: 6\r\n\r\nm f=1\n"), "{text}");
    }
}
