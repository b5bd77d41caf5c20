//! Requests over HTTP/1.1, as they are written, and short answers to them, as a whole.
//!
//! Invariant: nothing that a study or an address says ends a line of a head, and no more than 256 KiB of an answer are kept.

use std::convert::Infallible;
use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Part, Reading};
use crate::database::session::Channel;
use crate::database::{DatabaseError, Endpoint};

/// The maximum bytes of an answer in words, and of an error.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// The room for the length of a body, which is known when the body is there.
const LENGTH_ROOM: usize = 12;

/// Returns the line of a head that names the server; `unnamed` where it has no address.
pub fn host_line(endpoint: &Endpoint, unnamed: &str) -> String {
    let host = endpoint.tcp.as_ref().map_or_else(
        || unnamed.to_owned(),
        |(host, port)| match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        },
    );
    // Characters of a host's name are no others; what else there is cannot begin a line.
    let host: String = host.chars().filter(|letter| letter.is_ascii_graphic()).collect();
    format!("Host: {host}\r\n")
}

/// Returns the line of a head that names the account.
pub fn account_line(user: &str, password: &str) -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{password}")))
}

/// Appends a text as it is written in the query of a URL and in a form.
pub fn append_encoded(text: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text {
        match byte {
            byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') => out.push(*byte),
            byte => out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
        }
    }
}

/// Returns a text as [`append_encoded`] writes it.
pub fn encoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    append_encoded(text.as_bytes(), &mut out);
    out.into_iter().map(char::from).collect()
}

/// Appends a request with a head up to `Content-Length:`, and a body that `write` appends. If that fails, nothing is appended.
///
/// # Errors
/// The error of `write`.
pub fn append<E>(head: &[u8], out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
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

/// Appends a request with this body.
pub fn append_body(head: &[u8], out: &mut Vec<u8>, body: &[u8]) {
    let Ok(()) = append::<Infallible>(head, out, |out| {
        out.extend_from_slice(body);
        Ok(())
    });
}

/// A short answer.
#[derive(Debug, Default)]
pub struct Told {
    /// The status.
    pub status: u16,
    /// The head, with its first line.
    pub head: Vec<u8>,
    /// The body, of 256 KiB at most.
    pub body: Vec<u8>,
}

/// Sends a request and returns its answer. `asked` is what a message names if no answer comes.
///
/// # Errors
/// [`DatabaseError::Lost`] when the connection breaks, or the answer is none or too long.
pub fn exchange(channel: &mut Channel, asked: &str, head: &[u8], body: &[u8]) -> Result<Told, DatabaseError> {
    let mut out = Vec::new();
    append_body(head, &mut out, body);
    channel.ask(asked);
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
                told.head = channel.input()[..consumed].to_vec();
            }
            Part::Body(bytes) => take_words(&mut told.body, bytes)?,
            Part::Framing | Part::End => {}
        }
        channel.consume(consumed);
        if is_end {
            return Ok(told);
        }
    }
}

/// Takes more bytes of an answer in words.
///
/// # Errors
/// [`DatabaseError::Lost`] if there are more than 256 KiB.
pub fn take_words(told: &mut Vec<u8>, bytes: &[u8]) -> Result<(), DatabaseError> {
    if told.len() + bytes.len() > TEXT_BYTES_MAX {
        let most = TEXT_BYTES_MAX >> 10;
        return Err(DatabaseError::Lost(format!("the server answers with more than {most} KiB, and no more are read")));
    }
    told.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_length_of_its_body_and_one_that_fails_is_not_appended() {
        let mut out = b"own".to_vec();
        let right = "ownPOST / HTTP/1.1\r\nContent-Length:           8\r\n\r\nSELECT 1";
        append_body(b"POST / HTTP/1.1\r\nContent-Length:", &mut out, b"SELECT 1");
        assert_eq!(String::from_utf8(out.clone()).unwrap(), right);
        let fail = |body: &mut Vec<u8>| {
            body.push(1);
            Err(())
        };
        assert_eq!(append(b"POST", &mut out, fail), Err(()));
        assert_eq!(out, right.as_bytes());
    }

    #[test]
    fn what_an_address_says_ends_no_line() {
        let endpoint = |host: &str| Endpoint { tcp: Some((host.to_owned(), 8123)), ..Endpoint::default() };
        assert_eq!(host_line(&endpoint("::1"), "x"), "Host: [::1]:8123\r\n");
        assert_eq!(host_line(&endpoint("a\r\nb: c"), "x"), "Host: [ab:c]:8123\r\n");
        assert_eq!(host_line(&Endpoint::default(), "x"), "Host: x\r\n");
        assert_eq!(account_line("me\r\nX: y", "p:w"), "Authorization: Basic bWUNClg6IHk6cDp3\r\n");
        assert_eq!(encoded("a b&c=\r\n~"), "a%20b%26c%3D%0D%0A~");
    }

    #[test]
    fn words_have_a_bound() {
        let mut told = vec![b'x'; TEXT_BYTES_MAX - 1];
        assert_eq!(take_words(&mut told, b"y"), Ok(()));
        assert!(take_words(&mut told, b"z").is_err_and(|error| error.is_lost()));
    }
}
