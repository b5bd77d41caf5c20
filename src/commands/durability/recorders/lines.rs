//! Batches of lines over TCP, as loadline's own recorder takes them: each ends with an empty line and is answered with a line.
//!
//! Main type: [`LinesConnection`]. Invariant: one batch is under way, and its answer is one whole line.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::ensure;

use super::connection::{Answered, Connection, Said, dial};
use crate::database::{TOLD_MOST, shown};

/// The maximum bytes of an answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// How many bytes are read at a time.
const READ_BYTES: usize = 4 << 10;

/// A connection over TCP.
pub struct LinesConnection {
    stream: TcpStream,
    source: u64,
    arrived: Vec<u8>,
}

impl LinesConnection {
    /// Opens a connection for the source with this number.
    ///
    /// # Errors
    /// Fails if nobody listens.
    pub fn open(address: SocketAddr, source: u64) -> anyhow::Result<Self> {
        Ok(LinesConnection { stream: dial(address)?, source, arrived: Vec::new() })
    }
}

impl Connection for LinesConnection {
    fn send(&mut self, lines: &str, count: u64) -> anyhow::Result<Answered> {
        // Without a name, the sources of one address would be one source.
        self.stream.write_all(format!("# source=s{}\n{lines}\n", self.source).as_bytes())?;
        let answer = read_line(&mut self.stream, &mut self.arrived)?;
        // Whatever says more than it was asked for is not trusted with the next request.
        Ok((meaning(&answer, count), self.arrived.is_empty()))
    }
}

/// Reads one line, and returns it without its end. Bytes behind it are left where they are.
fn read_line(from: &mut impl Read, arrived: &mut Vec<u8>) -> anyhow::Result<String> {
    loop {
        if let Some(end) = arrived.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = arrived.drain(..=end).collect();
            return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
        }
        ensure!(arrived.len() <= ANSWER_BYTES_MAX, "an answer of more than 64 KiB");
        let mut more = [0; READ_BYTES];
        let read = from.read(&mut more)?;
        ensure!(read > 0, "the connection ended within an answer");
        arrived.extend_from_slice(&more[..read]);
    }
}

/// Returns the meaning of the answer to a batch of so many lines.
fn meaning(answer: &str, count: u64) -> Said {
    match answer.split_once(' ').unwrap_or((answer, "")) {
        ("ok", stored) if stored.trim().parse() == Ok(count) => Said::Acknowledged,
        ("error" | "partial", _) => Said::Refused(shown(answer, TOLD_MOST)),
        // `busy`, `unknown`, and what only answers to requests of others would say.
        _ => Said::Later,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_number_of_all_lines_acknowledges_a_batch() {
        assert_eq!(meaning("ok 3", 3), Said::Acknowledged);
        for later in ["ok 2", "ok", "ok 4", "duplicate", "busy 5 full", "unknown the disk failed", ""] {
            assert_eq!(meaning(later, 3), Said::Later, "{later}");
        }
        for refused in ["error line 1: x", "partial 2 line 3: x"] {
            assert_eq!(meaning(refused, 3), Said::Refused(refused.to_owned()));
        }
    }

    #[test]
    fn answers_are_read_whole_and_have_a_bound() {
        let mut arrived = Vec::new();
        assert_eq!(read_line(&mut &b"ok 3\nok"[..], &mut arrived).unwrap(), "ok 3");
        assert_eq!(arrived, b"ok");
        assert!(read_line(&mut &b"ok 3"[..], &mut Vec::new()).is_err());
        assert!(read_line(&mut &vec![b'x'; 2 * ANSWER_BYTES_MAX][..], &mut Vec::new()).is_err());
    }
}
