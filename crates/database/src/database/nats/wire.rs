//! A connection to a NATS server as a state machine: a write is a message and a PING, whose PONG confirms that the server has taken it.
//!
//! Invariant: an outcome is given only at PONG, or when the connection is lost.

use std::os::fd::{AsRawFd, RawFd};

use super::message::encode;
use super::subject_of;
use crate::database::session::{Channel, Prepare, WireSession};
use crate::database::tls::{SharedSecure, Socket};
use crate::database::{Answer, DatabaseError, Endpoint, Progress, Unasked, Wire};
use crate::record::Cells;
use crate::statement::{Program, Request, Statement};

/// The largest message that a server can be configured to allow, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// The maximum bytes of a server's line; the addresses of a large cluster fit.
const LINE_BYTES_MAX: usize = 256 << 10;

/// A connection that publishes messages.
#[derive(Debug)]
pub struct NatsWire {
    socket: Socket,
    /// For each statement, the subject of its rows and the number of values of each; `None` for statements that cannot be published.
    subjects: Vec<Option<(String, u32)>>,
    rows: u64,
    content: Vec<u8>,
}

impl NatsWire {
    pub(super) fn new(socket: Socket) -> Self {
        NatsWire { socket, subjects: Vec::new(), rows: 0, content: Vec::new() }
    }
}

impl WireSession<NatsWire> {
    /// Sends the client's greeting and waits until the server accepts it.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] when the server does not accept it.
    pub(super) fn greet(&mut self, endpoint: &Endpoint) -> Result<(), DatabaseError> {
        let (wire, channel) = self.parts();
        wire.run(channel, &greeting(endpoint))
    }
}

/// Returns the client's first message.
pub(super) fn greeting(endpoint: &Endpoint) -> String {
    let who = match endpoint.user.as_str() {
        "" => serde_json::json!({}),
        user => serde_json::json!({ "user": user, "pass": endpoint.password }),
    };
    let mut about =
        serde_json::json!({ "verbose": false, "pedantic": false, "name": "loadline", "lang": "rust", "version": "1" });
    if let (Some(about), Some(who)) = (about.as_object_mut(), who.as_object()) {
        about.extend(who.clone());
    }
    format!("CONNECT {about}\r\nPING\r\n")
}

/// The meaning of a server's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// The server asks whether the client is there.
    Ping,
    /// The server has processed everything before the PING.
    Pong,
    /// The header of a message, with the message's length in bytes.
    Message(usize),
    /// An error.
    Error(&'a str),
    /// Information about the server.
    Other,
}

/// Returns the line at the start of the input and its length; `None` while it is incomplete.
pub(super) fn read_line(input: &[u8]) -> Option<(Line<'_>, usize)> {
    let looked_at = &input[..input.len().min(LINE_BYTES_MAX)];
    let Some(end) = looked_at.windows(2).position(|pair| pair == b"\r\n") else {
        return (input.len() >= LINE_BYTES_MAX).then_some((Line::Error("a line without an end"), LINE_BYTES_MAX));
    };
    let text = std::str::from_utf8(&input[..end]).unwrap_or("");
    let mut words = text.split_ascii_whitespace();
    let line = match words.next() {
        Some("PING") => Line::Ping,
        Some("PONG") => Line::Pong,
        Some("MSG") => {
            let length = words.next_back().and_then(|length| length.parse().ok());
            length.filter(|length| *length <= MESSAGE_BYTES_MAX).map_or(Line::Error(text), Line::Message)
        }
        Some("-ERR") => Line::Error(text),
        _ => Line::Other,
    };
    Some((line, end + 2))
}

fn refused(text: &str) -> DatabaseError {
    DatabaseError::Lost(format!("the NATS server says: {text}"))
}

impl Wire for NatsWire {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn secure(&self) -> Option<SharedSecure> {
        self.socket.secure()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.rows = 0;
        for step in &request.steps {
            let Some(Some((subject, width))) = self.subjects.get(usize::from(step.statement)) else { continue };
            self.content.clear();
            encode(&request.cells, step.first_cell as usize, step.rows, *width, &mut self.content);
            out.extend_from_slice(format!("PUB {subject} {}\r\n", self.content.len()).as_bytes());
            out.extend_from_slice(&self.content);
            out.extend_from_slice(b"\r\n");
            self.rows += u64::from(step.rows);
        }
        out.extend_from_slice(b"PING\r\n");
    }

    fn advance(&mut self, _: &Request, input: &[u8], out: &mut Vec<u8>) -> Progress {
        let mut consumed = 0;
        while let Some((line, length)) = read_line(&input[consumed..]) {
            consumed += length;
            match line {
                Line::Pong => {
                    let answer = Answer { changed: self.rows, ..Answer::default() };
                    return Progress { consumed, outcome: Some(Ok(answer)) };
                }
                Line::Ping => out.extend_from_slice(b"PONG\r\n"),
                Line::Error(text) => return Progress { consumed, outcome: Some(Err(refused(text))) },
                Line::Message(_) | Line::Other => {}
            }
        }
        Progress { consumed, outcome: None }
    }

    fn unasked(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Unasked> {
        let mut consumed = 0;
        while let Some((line, length)) = read_line(&input[consumed..]) {
            match line {
                Line::Ping => out.extend_from_slice(b"PONG\r\n"),
                Line::Other => {}
                // The server closes the connection after an error.
                Line::Error(_) => return Err(Unasked::Ended),
                // It would be taken for the next PING's answer, and the message before that for stored.
                Line::Pong | Line::Message(_) => return Err(Unasked::Wrong),
            }
            consumed += length;
        }
        Ok(consumed)
    }

    fn keep_rows(&mut self, _: Option<Cells>) -> Option<Cells> {
        None
    }
}

impl NatsWire {
    /// Sends lines that end with a PING and waits for the PONG.
    fn run(&mut self, channel: &mut Channel, lines: &str) -> Result<(), DatabaseError> {
        channel.send(lines.as_bytes())?;
        loop {
            while let Some((line, length)) = read_line(channel.input()) {
                let (line, failure) = match line {
                    Line::Error(text) => (Line::Other, Some(refused(text))),
                    Line::Pong => (Line::Pong, None),
                    _ => (Line::Other, None),
                };
                let is_done = line == Line::Pong;
                channel.consume(length);
                if let Some(failure) = failure {
                    return Err(failure);
                }
                if is_done {
                    return Ok(());
                }
            }
            channel.receive()?;
        }
    }
}

impl Prepare for NatsWire {
    fn prepare(&mut self, _: &mut Channel, program: &Program) -> Result<(), DatabaseError> {
        let is_numbered = |name: &str| program.tables.iter().any(|table| table.numbered && table.name == name);
        let of = |statement: &Statement| match statement {
            Statement::Insert { table, columns } if is_numbered(table) => {
                Some((subject_of(table), columns.len() as u32))
            }
            _ => None,
        };
        self.subjects = program.statements.iter().map(of).collect();
        Ok(())
    }

    fn version(&mut self, _: &mut Channel) -> Result<String, DatabaseError> {
        Ok("NATS".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_whole_and_told_apart() {
        assert_eq!(read_line(b"PONG\r"), None);
        assert_eq!(read_line(b"PONG\r\nX"), Some((Line::Pong, 6)));
        assert_eq!(read_line(b"MSG a.b 1 12\r\n"), Some((Line::Message(12), 14)));
        assert_eq!(read_line(b"MSG a.b 1 reply.to 7\r\n"), Some((Line::Message(7), 22)));
        assert_eq!(read_line(b"-ERR 'no'\r\n"), Some((Line::Error("-ERR 'no'"), 11)));
        assert_eq!(read_line(b"INFO {}\r\n"), Some((Line::Other, 9)));
        assert!(matches!(read_line(b"MSG a b many\r\n"), Some((Line::Error(_), _))));
    }

    #[test]
    fn what_a_server_may_say_unasked_is_answered_and_an_answer_too_many_is_none() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut wire = NatsWire::new(std::os::fd::OwnedFd::from(ours).into());
        let mut unasked = |said: &[u8]| {
            let mut out = Vec::new();
            (wire.unasked(said, &mut out), String::from_utf8(out).unwrap())
        };
        assert_eq!(unasked(b"INFO {}\r\nPING\r\nPI"), (Ok(15), "PONG\r\n".to_owned()));
        assert_eq!(unasked(b"PING\r\nPONG\r\n").0, Err(Unasked::Wrong));
        assert_eq!(unasked(b"MSG a 1 0\r\n").0, Err(Unasked::Wrong));
        assert_eq!(unasked(b"-ERR 'Stale Connection'\r\n").0, Err(Unasked::Ended));
    }

    #[test]
    fn what_no_server_says_is_an_error_and_is_not_waited_for() {
        let endless = format!("MSG a 1 {}\r\n", usize::MAX);
        assert!(matches!(read_line(endless.as_bytes()), Some((Line::Error(_), _))), "no message is so long");
        assert_eq!(read_line(&vec![b'x'; LINE_BYTES_MAX - 1]), None);
        assert!(matches!(read_line(&vec![b'x'; LINE_BYTES_MAX]), Some((Line::Error(_), _))), "no line is so long");
    }
}
