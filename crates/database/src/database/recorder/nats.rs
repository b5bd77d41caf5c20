//! Records to a stream of a NATS server: each operation is a message, complete when JetStream has acknowledged it. Main type: [`NatsWire`].
//!
//! The protocol consists of lines: `PUB subject reply bytes`, answered by `MSG reply id bytes` with JSON; `PING` may come at any time.

use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::check;
use super::lines::Lines;
use crate::database::nats::connect;
use crate::database::session::{Channel, Prepare};
use crate::database::tls::{SharedSecure, Socket};
use crate::database::{Answer, DatabaseError, Endpoint, Progress, Unasked, Wire};
use crate::record::Cells;
use crate::statement::{Program, Request, shortened};

/// The maximum time for the server to answer when a connection is made.
pub(super) const GREETING_WITHIN: Duration = Duration::from_secs(20);

/// The maximum bytes of a line; the addresses of a large cluster fit into a greeting.
const LINE_BYTES_MAX: usize = 256 << 10;
/// The maximum bytes of a message: JetStream acknowledges in a line of JSON.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// The maximum number of other lines that a server may send before the awaited answer.
pub(super) const ASIDES_MOST: usize = 100;
/// The maximum characters of a server's message that errors quote.
pub(super) const TOLD_MOST: usize = 300;

/// The number of the next inbox of this process.
static INBOXES: AtomicU64 = AtomicU64::new(0);

/// Returns the prefix of the subjects that answers come to, which no other connection of this process has.
pub(super) fn new_inbox() -> String {
    format!("_INBOX.loadline{}x{}", std::process::id(), INBOXES.fetch_add(1, Ordering::Relaxed))
}

/// A connection to a NATS server.
#[derive(Debug)]
pub(super) struct NatsWire {
    socket: Socket,
    lines: Arc<Lines>,
    /// The prefix of the subjects, to which the number of the source is appended.
    subject: String,
    version: String,
    /// The prefix of the subjects that answers come to.
    inbox: String,
    /// The number of the message that is not yet answered.
    message: u64,
    body: Vec<u8>,
    records: u64,
}

/// One item of the server's output.
#[derive(Debug, PartialEq)]
pub(super) enum Said<'a> {
    Ping,
    Nothing,
    /// A subject and the message that came to it.
    Message(&'a str, &'a [u8]),
    Error(&'a str),
}

impl NatsWire {
    /// Opens a connection and subscribes to the answers.
    pub(super) fn connect(endpoint: &Endpoint, subject: &str, lines: Arc<Lines>) -> Result<Self, DatabaseError> {
        let inbox = new_inbox();
        let (socket, greeting) = connect(endpoint)?;
        NatsWire::over(socket, greeting.as_ref(), subject, (inbox, lines))
    }

    /// Creates a connection over an open socket; `greeting` is the server's greeting where it was already received.
    pub(super) fn over(
        socket: Socket,
        greeting: Option<&serde_json::Value>,
        subject: &str,
        (inbox, lines): (String, Arc<Lines>),
    ) -> Result<Self, DatabaseError> {
        let version = greet(&socket, greeting, &inbox)?;
        Ok(NatsWire::greeted(socket, version, subject, (inbox, lines)))
    }

    /// Creates a connection over a socket whose server has already accepted the hello.
    pub(super) fn greeted(
        socket: Socket,
        version: String,
        subject: &str,
        (inbox, lines): (String, Arc<Lines>),
    ) -> Self {
        let subject = subject.to_owned();
        NatsWire { socket, lines, subject, version, inbox, message: 0, body: Vec::new(), records: 0 }
    }
}

/// Sends the hello and waits until the server has accepted it. Returns the server's version.
pub(super) fn greet(
    socket: &Socket,
    greeting: Option<&serde_json::Value>,
    inbox: &str,
) -> Result<String, DatabaseError> {
    let unavailable = |error: DatabaseError| DatabaseError::Unavailable(format!("the NATS server: {error}"));
    let version_of =
        |greeting: &serde_json::Value| shortened(greeting["version"].as_str().unwrap_or_default(), TOLD_MOST);
    let mut version = greeting.map(version_of).unwrap_or_default();
    let mut channel = Channel::over(socket.as_raw_fd(), socket.secure());
    channel.set_timeout(Some(GREETING_WITHIN));
    let hello = format!(
        "CONNECT {{\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true,\"lang\":\"rust\",\"version\":\"{}\",\
         \"protocol\":1}}\r\nSUB {inbox}.* 1\r\nPING\r\n",
        env!("CARGO_PKG_VERSION")
    );
    channel.send(hello.as_bytes()).map_err(unavailable)?;
    let mut is_taken_in = false;
    for _ in 0..ASIDES_MOST {
        // A line that has begun to arrive is read to its end: nothing else would read the rest.
        if is_taken_in && channel.input().is_empty() {
            return Ok(version);
        }
        let (line, length) = loop {
            match read_said(channel.input()).map_err(DatabaseError::Unavailable)? {
                Some((Said::Error(what), _)) => {
                    return Err(DatabaseError::Unavailable(format!("the NATS server: {}", shortened(what, TOLD_MOST))));
                }
                Some((_, length)) => break (&channel.input()[..length], length),
                None => channel.receive().map_err(unavailable)?,
            }
        };
        if let Some(json) = line.strip_prefix(b"INFO ") {
            version = version_of(&serde_json::from_slice(json).unwrap_or_default());
        }
        is_taken_in |= line.starts_with(b"PONG\r\n");
        let is_ping = line.starts_with(b"PING\r\n");
        channel.consume(length);
        if is_ping {
            channel.send(b"PONG\r\n").map_err(unavailable)?;
        }
    }
    if is_taken_in {
        return Err(DatabaseError::Unavailable("the NATS server says more than what was asked for".to_owned()));
    }
    Err(DatabaseError::Unavailable(format!("the NATS server says {ASIDES_MOST} other things before it answers a PING")))
}

/// Reads the first item of the input. Returns it with its length in bytes; `None` while it is incomplete.
pub(super) fn read_said(input: &[u8]) -> Result<Option<(Said<'_>, usize)>, String> {
    let looked_at = &input[..input.len().min(LINE_BYTES_MAX)];
    let Some(end) = looked_at.windows(2).position(|window| window == b"\r\n") else {
        let is_too_long = input.len() > LINE_BYTES_MAX;
        return if is_too_long { Err("the NATS server says something that does not end".to_owned()) } else { Ok(None) };
    };
    let strange = || format!("the NATS server says {:?}", String::from_utf8_lossy(&input[..end.min(100)]));
    let line = std::str::from_utf8(&input[..end]).map_err(|_| strange())?;
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let said = match verb {
        "PING" => Said::Ping,
        "PONG" | "+OK" | "INFO" => Said::Nothing,
        "-ERR" => Said::Error(rest),
        "MSG" | "HMSG" => {
            let mut words = rest.split(' ');
            let subject = words.next().unwrap_or_default();
            let length = words.next_back().and_then(|length| length.parse::<usize>().ok()).ok_or_else(strange)?;
            if length > MESSAGE_BYTES_MAX {
                return Err(format!(
                    "the NATS server sends a message of {length} bytes, and {MESSAGE_BYTES_MAX} are read at most"
                ));
            }
            let from = end + 2;
            let Some(payload) = input.get(from..from + length + 2) else { return Ok(None) };
            return Ok(Some((Said::Message(subject, &payload[..length]), from + length + 2)));
        }
        _ => return Err(strange()),
    };
    Ok(Some((said, end + 2)))
}

impl Wire for NatsWire {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn secure(&self) -> Option<SharedSecure> {
        self.socket.secure()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.body.clear();
        self.records = self.lines.append(request, &mut self.body);
        self.message += 1;
        let source = self.lines.source(request);
        // Writing to a vector never fails.
        let _ = write!(out, "PUB {}.m{source} {}.{} {}\r\n", self.subject, self.inbox, self.message, self.body.len());
        out.extend_from_slice(&self.body);
        out.extend_from_slice(b"\r\n");
    }

    fn advance(&mut self, _: &Request, input: &[u8], out: &mut Vec<u8>) -> Progress {
        let mut consumed = 0;
        loop {
            match read_said(&input[consumed..]) {
                Ok(None) => return Progress { consumed, outcome: None },
                Ok(Some((said, length))) => {
                    consumed += length;
                    let outcome = match said {
                        Said::Ping => {
                            out.extend_from_slice(b"PONG\r\n");
                            None
                        }
                        Said::Error(what) => {
                            let what = shortened(what, TOLD_MOST);
                            Some(Err(DatabaseError::Lost(format!("the NATS server: {what}"))))
                        }
                        Said::Message(subject, payload) if is_answer(subject, &self.inbox, self.message) => {
                            Some(acknowledged(payload, self.records))
                        }
                        // Answers to messages that were given up, and lines without significance.
                        Said::Message(..) | Said::Nothing => None,
                    };
                    if outcome.is_some() {
                        return Progress { consumed, outcome };
                    }
                }
                Err(what) => return Progress { consumed: input.len(), outcome: Some(Err(DatabaseError::Lost(what))) },
            }
        }
    }

    fn unasked(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Unasked> {
        let mut consumed = 0;
        while let Some((said, length)) = read_said(&input[consumed..]).map_err(|_| Unasked::Wrong)? {
            match said {
                Said::Ping => out.extend_from_slice(b"PONG\r\n"),
                Said::Nothing | Said::Message(..) => {}
                Said::Error(_) => return Err(Unasked::Ended),
            }
            consumed += length;
        }
        Ok(consumed)
    }

    fn keep_rows(&mut self, _: Option<Cells>) -> Option<Cells> {
        Some(Cells::new())
    }
}

/// Returns whether a subject is the one to which the answer to a message comes.
pub(super) fn is_answer(subject: &str, inbox: &str, message: u64) -> bool {
    let number = subject.strip_prefix(inbox).and_then(|rest| rest.strip_prefix('.'));
    number.is_some_and(|number| number.parse() == Ok(message))
}

/// Returns the meaning of JetStream's answer.
pub(super) fn acknowledged(payload: &[u8], records: u64) -> Result<Answer, DatabaseError> {
    let answer: serde_json::Value = serde_json::from_slice(payload).unwrap_or_default();
    if answer["seq"].as_u64().is_some() && answer["error"].is_null() {
        return Ok(Answer { changed: records, ..Answer::default() });
    }
    let (code, what) = (answer["error"]["code"].as_u64().unwrap_or(503), answer["error"]["description"].as_str());
    let what = what.unwrap_or("no stream takes messages of this subject");
    Err(DatabaseError::refused(code.to_string(), shortened(what, TOLD_MOST)))
}

impl Prepare for NatsWire {
    fn prepare(&mut self, _: &mut Channel, program: &Program) -> Result<(), DatabaseError> {
        check(program)
    }

    fn version(&mut self, _: &mut Channel) -> Result<String, DatabaseError> {
        Ok(self.version.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_says_is_read_whole() {
        let text = b"MSG _INBOX.a.7 1 5\r\nhello\r\nPING\r\n";
        let (said, length) = read_said(text).unwrap().unwrap();
        assert_eq!((said, length), (Said::Message("_INBOX.a.7", b"hello"), 27));
        assert_eq!(read_said(&text[27..]).unwrap(), Some((Said::Ping, 6)));
        for cut in 0..27 {
            assert_eq!(read_said(&text[..cut]).unwrap(), None, "{cut}");
        }
        let (said, _) = read_said(b"HMSG _INBOX.a.7 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n").unwrap().unwrap();
        assert!(matches!(said, Said::Message(_, payload) if payload.starts_with(b"NATS/1.0 503")));
        assert!(read_said(b"HTTP/1.1 200 OK\r\n").is_err());
        for length in ["1048577", "18446744073709551615", "18446744073709551616", "-1"] {
            assert!(read_said(format!("MSG a 1 {length}\r\nx").as_bytes()).is_err(), "{length}");
        }
        assert_eq!(read_said(&vec![b'x'; LINE_BYTES_MAX]), Ok(None));
        assert!(read_said(&vec![b'x'; LINE_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn only_the_answer_to_the_last_message_counts_and_a_refusal_is_one() {
        assert!(is_answer("_INBOX.a.7", "_INBOX.a", 7) && !is_answer("_INBOX.a.6", "_INBOX.a", 7));
        assert_eq!(acknowledged(br#"{"stream":"s","seq":3}"#, 5).unwrap().changed, 5);
        let full = acknowledged(br#"{"error":{"code":400,"description":"maximum bytes exceeded"}}"#, 5).unwrap_err();
        assert_eq!(full.to_string(), "maximum bytes exceeded (400)");
        assert!(acknowledged(b"NATS/1.0 503\r\n\r\n", 5).is_err());
    }
}
