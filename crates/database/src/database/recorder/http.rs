//! Records to a recorder over HTTP, one request for each operation on a persistent connection. Main type: [`HttpWire`].

use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use super::check;
use super::lines::Lines;
use crate::database::error::TOLD_MOST;
use crate::database::http::read_answer;
use crate::database::session::{CONNECT_TIMEOUT, Channel, Prepare, dial};
use crate::database::tls::{SharedSecure, Socket};
use crate::database::{Answer, DatabaseError, Endpoint, Progress, Wire};
use crate::record::Cells;
use crate::statement::{Program, Request, shortened};

/// The status of an answer that leaves open whether the records are stored.
const UNKNOWN: u16 = 500;

/// A connection to a recorder.
#[derive(Debug)]
pub(super) struct HttpWire {
    socket: Socket,
    lines: Arc<Lines>,
    /// The header with the token; empty where there is no token.
    authorization: String,
    body: Vec<u8>,
    records: u64,
}

impl HttpWire {
    /// Connects to a recorder, whose token is the endpoint's password.
    pub(super) fn connect(endpoint: &Endpoint, lines: Arc<Lines>) -> Result<Self, DatabaseError> {
        let mut socket = Socket::from(dial(endpoint)?);
        protect(&mut socket, endpoint)?;
        Ok(HttpWire::over(socket, lines, &endpoint.password))
    }

    /// Creates a connection over an open socket.
    pub(super) fn over(socket: Socket, lines: Arc<Lines>, token: &str) -> Self {
        let authorization = if token.is_empty() { String::new() } else { format!("Authorization: Token {token}\r\n") };
        HttpWire { socket, lines, authorization, body: Vec::new(), records: 0 }
    }
}

impl HttpWire {
    /// Shows the token before anything is measured, as clients of InfluxDB do that create their database: a recorder keeps few connections whose clients have not
    /// shown one, and a source may not send for a while.
    fn introduce(&self, channel: &mut Channel) -> Result<(), DatabaseError> {
        let token = &self.authorization;
        let asked = format!(
            "GET /query?q=CREATE%20DATABASE%20loadline HTTP/1.1\r\nHost: recorder\r\n{token}Connection: keep-alive\r\n\r\n"
        );
        channel.send(asked.as_bytes())?;
        loop {
            if let Some(answer) = read_answer(channel.input()).map_err(DatabaseError::Lost)? {
                let message = shortened(&String::from_utf8_lossy(&channel.input()[answer.body.clone()]), TOLD_MOST);
                channel.consume(answer.body.end);
                let is_let_in = answer.status == 200;
                return if is_let_in {
                    Ok(())
                } else {
                    Err(DatabaseError::refused(answer.status.to_string(), message))
                };
            }
            channel.receive()?;
        }
    }
}

/// Performs the TLS handshake where the endpoint asks for TLS: over HTTP the client speaks first.
fn protect(socket: &mut Socket, endpoint: &Endpoint) -> Result<(), DatabaseError> {
    let Some((host, port)) = endpoint.tcp.as_ref().filter(|_| endpoint.tls.is_tried()) else { return Ok(()) };
    let mut channel = Channel::new(socket.as_raw_fd());
    channel.set_timeout(Some(CONNECT_TIMEOUT));
    socket.protect(&mut channel, &endpoint.tls, host).map_err(|error| {
        DatabaseError::Unavailable(format!("no connection over TLS to the recorder at {host}:{port}: {error}"))
    })
}

impl Wire for HttpWire {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn secure(&self) -> Option<SharedSecure> {
        self.socket.secure()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.body.clear();
        self.records = self.lines.append(request, &mut self.body);
        let (source, length, token) = (self.lines.source(request), self.body.len(), &self.authorization);
        // Writing to a vector never fails.
        let _ = write!(
            out,
            "POST /write HTTP/1.1\r\nHost: recorder\r\n{token}X-Loadline-Source: m{source}\r\nContent-Length: {length}\r\n\r\n"
        );
        out.extend_from_slice(&self.body);
    }

    fn advance(&mut self, _: &Request, input: &[u8], _: &mut Vec<u8>) -> Progress {
        match read_answer(input) {
            Ok(None) => Progress { consumed: 0, outcome: None },
            Ok(Some(answer)) => {
                let outcome = match answer.status {
                    204 => Ok(Answer { changed: self.records, ..Answer::default() }),
                    status => {
                        let message = shortened(&String::from_utf8_lossy(&input[answer.body.clone()]), TOLD_MOST);
                        match status {
                            // The records may be stored or not, as after a connection that was lost.
                            UNKNOWN => Err(DatabaseError::Lost(format!("{message} ({status})"))),
                            _ => Err(DatabaseError::refused(status.to_string(), message)),
                        }
                    }
                };
                Progress { consumed: answer.body.end, outcome: Some(outcome) }
            }
            Err(what) => Progress { consumed: input.len(), outcome: Some(Err(DatabaseError::Lost(what))) },
        }
    }

    fn keep_rows(&mut self, _: Option<Cells>) -> Option<Cells> {
        Some(Cells::new())
    }
}

impl Prepare for HttpWire {
    fn prepare(&mut self, channel: &mut Channel, program: &Program) -> Result<(), DatabaseError> {
        check(program)?;
        if self.authorization.is_empty() { Ok(()) } else { self.introduce(channel) }
    }

    fn version(&mut self, _: &mut Channel) -> Result<String, DatabaseError> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordType;

    #[test]
    fn an_answer_that_leaves_the_outcome_open_is_no_refusal() {
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let (name, identity, values) = (String::new(), Vec::new(), Vec::new());
        let record_type =
            RecordType { name, identity, identity_key: 0, identity_end: None, key: None, values, series: None };
        let lines = Arc::new(Lines::new("m", &record_type, 1));
        let mut wire = HttpWire::over(Socket::from(std::os::fd::OwnedFd::from(socket)), lines, "");
        for (status, is_lost) in [(500, true), (503, false), (403, false)] {
            let text = format!("HTTP/1.1 {status} No\r\nContent-Length: 4\r\n\r\nwhy.");
            let progress = wire.advance(&Request::default(), text.as_bytes(), &mut Vec::new());
            let error = progress.outcome.unwrap().unwrap_err();
            assert_eq!((progress.consumed, error.is_lost()), (text.len(), is_lost), "{error}");
            assert!(error.to_string().contains("why.") && error.to_string().contains(&status.to_string()), "{error}");
        }
    }
}
