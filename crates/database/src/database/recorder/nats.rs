//! Records to a stream of a NATS server: each operation is a message, done when JetStream has acknowledged it. Main type: [`NatsWire`].
//!
//! The protocol is lines: `PUB subject reply bytes`, answered by `MSG reply id bytes` with JSON; `PING` may come at any time.

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
use crate::statement::{Program, Request};

/// How long the server may take to answer when a connection is made.
const GREETING_WITHIN: Duration = Duration::from_secs(20);

/// Numbers the inboxes of this process.
static INBOXES: AtomicU64 = AtomicU64::new(0);

/// A connection to a NATS server.
#[derive(Debug)]
pub(super) struct NatsWire {
    socket: Socket,
    lines: Arc<Lines>,
    /// Messages go to this and the number of their source.
    subject: String,
    version: String,
    /// Where answers come to.
    inbox: String,
    /// Number of the message that is not answered yet.
    message: u64,
    body: Vec<u8>,
    records: u64,
}

/// One thing that the server says.
#[derive(Debug, PartialEq)]
enum Said<'a> {
    Ping,
    Nothing,
    /// A subject and what came to it.
    Message(&'a str, &'a [u8]),
    Error(&'a str),
}

impl NatsWire {
    /// Introduces the connection and subscribes to the answers.
    pub(super) fn connect(endpoint: &Endpoint, subject: &str, lines: Arc<Lines>) -> Result<Self, DatabaseError> {
        let inbox = format!("_INBOX.loadline{}x{}", std::process::id(), INBOXES.fetch_add(1, Ordering::Relaxed));
        let (socket, version) = greeted(endpoint, &inbox)?;
        let subject = subject.to_owned();
        Ok(NatsWire { socket, lines, subject, version, inbox, message: 0, body: Vec::new(), records: 0 })
    }
}

/// Connects, over TLS where the endpoint asks for it, says hello and waits until the server has taken it in; the server's version besides.
fn greeted(endpoint: &Endpoint, inbox: &str) -> Result<(Socket, String), DatabaseError> {
    let unavailable = |error: DatabaseError| DatabaseError::Unavailable(format!("the NATS server: {error}"));
    let version_of = |greeting: &serde_json::Value| greeting["version"].as_str().unwrap_or_default().to_owned();
    let (socket, greeting) = connect(endpoint)?;
    let mut version = greeting.as_ref().map(version_of).unwrap_or_default();
    let mut channel = Channel::over(socket.as_raw_fd(), socket.secure());
    channel.set_timeout(Some(GREETING_WITHIN));
    let hello = format!(
        "CONNECT {{\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true,\"lang\":\"rust\",\"version\":\"{}\",\
         \"protocol\":1}}\r\nSUB {inbox}.* 1\r\nPING\r\n",
        env!("CARGO_PKG_VERSION")
    );
    channel.send(hello.as_bytes()).map_err(unavailable)?;
    loop {
        let Some(end) = channel.input().windows(2).position(|window| window == b"\r\n") else {
            channel.receive().map_err(unavailable)?;
            continue;
        };
        let line = String::from_utf8_lossy(&channel.input()[..end]).into_owned();
        channel.consume(end + 2);
        if let Some(json) = line.strip_prefix("INFO ") {
            version = version_of(&serde_json::from_str(json).unwrap_or_default());
        } else if line == "PONG" {
            return Ok((socket, version));
        } else if let Some(error) = line.strip_prefix("-ERR ") {
            return Err(DatabaseError::Unavailable(format!("the NATS server: {error}")));
        }
    }
}

/// The first thing in the input, with how many bytes it takes; none while it is not whole.
fn read_said(input: &[u8]) -> Result<Option<(Said<'_>, usize)>, String> {
    let Some(end) = input.windows(2).position(|window| window == b"\r\n") else { return Ok(None) };
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
                        Said::Error(what) => Some(Err(DatabaseError::Lost(format!("the NATS server: {what}")))),
                        Said::Message(subject, payload) if is_answer(subject, &self.inbox, self.message) => {
                            Some(acknowledged(payload, self.records))
                        }
                        // Answers to what was given up, and what is of no interest.
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
                Said::Error(_) => return Err(Unasked::Wrong),
            }
            consumed += length;
        }
        Ok(consumed)
    }

    fn keep_rows(&mut self, _: Option<Cells>) -> Option<Cells> {
        Some(Cells::new())
    }
}

/// Whether a subject is the one that the answer to a message comes to.
fn is_answer(subject: &str, inbox: &str, message: u64) -> bool {
    let number = subject.strip_prefix(inbox).and_then(|rest| rest.strip_prefix('.'));
    number.is_some_and(|number| number.parse() == Ok(message))
}

/// What JetStream's answer says.
fn acknowledged(payload: &[u8], records: u64) -> Result<Answer, DatabaseError> {
    let answer: serde_json::Value = serde_json::from_slice(payload).unwrap_or_default();
    if answer["seq"].as_u64().is_some() && answer["error"].is_null() {
        return Ok(Answer { changed: records, ..Answer::default() });
    }
    let (code, what) = (answer["error"]["code"].as_u64().unwrap_or(503), answer["error"]["description"].as_str());
    let what = what.unwrap_or("no stream takes messages of this subject");
    Err(DatabaseError::refused(code.to_string(), what))
}

impl Prepare for NatsWire {
    fn prepare(&mut self, _: &mut Channel, program: &Program) -> Result<(), DatabaseError> {
        check(program)
    }

    fn version(&mut self, _: &mut Channel) -> Result<String, DatabaseError> {
        Ok(self.version.clone())
    }
}

/// Makes a stream in files that takes all messages below a subject; the server's version.
///
/// # Errors
/// [`DatabaseError::Unavailable`] with what the server says.
pub fn create_stream(endpoint: &Endpoint, stream: &str, subject: &str) -> Result<String, DatabaseError> {
    let inbox = format!("_INBOX.loadline{}x{}", std::process::id(), INBOXES.fetch_add(1, Ordering::Relaxed));
    let (socket, version) = greeted(endpoint, &inbox)?;
    let settings = serde_json::json!({
        "name": stream, "subjects": [format!("{subject}.>")], "storage": "file", "retention": "limits", "num_replicas": 1,
    });
    let settings = settings.to_string();
    let mut channel = Channel::over(socket.as_raw_fd(), socket.secure());
    channel.set_timeout(Some(GREETING_WITHIN));
    channel.send(
        format!("PUB $JS.API.STREAM.CREATE.{stream} {inbox}.1 {}\r\n{settings}\r\n", settings.len()).as_bytes(),
    )?;
    loop {
        let said = read_said(channel.input()).map_err(DatabaseError::Unavailable)?;
        let Some((said, length)) = said else {
            channel.receive()?;
            continue;
        };
        let (mut error, mut is_done) = (None, false);
        if let Said::Message(_, payload) = said {
            let answer: serde_json::Value = serde_json::from_slice(payload).unwrap_or_default();
            error = answer["error"]["description"].as_str().map(str::to_owned);
            is_done = true;
        }
        channel.consume(length);
        match error {
            Some(what) => return Err(DatabaseError::Unavailable(format!("the NATS server makes no stream: {what}"))),
            None if is_done => return Ok(version),
            None => {}
        }
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
