//! The control connection: lines in, replies out, both bounded in size and time. Main type: [`Lines`].
//!
//! Invariant: a client that has not logged in cannot make the server hold more than [`LINE_BYTES_MAX`] and what one read brings.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use crate::recorder::intake::listen::Stream;

/// The longest line, in bytes; the longest name of a block fits twice.
const LINE_BYTES_MAX: usize = 512;
/// The most bytes of lines that a client may send ahead.
const AHEAD_BYTES_MAX: usize = 4_096;

/// A control connection.
pub(super) struct Lines {
    stream: Box<dyn Stream>,
    input: Vec<u8>,
    patience: Duration,
}

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, without its end.
    Text(Vec<u8>),
    /// A line that is too long.
    TooLong,
    /// The client has disconnected.
    End,
}

impl Lines {
    pub(super) fn new(stream: Box<dyn Stream>, patience: Duration) -> Self {
        Lines { stream, input: Vec::new(), patience }
    }

    /// Returns the next line. The future may be dropped: what has arrived is kept.
    pub(super) async fn next(&mut self) -> Line {
        loop {
            if let Some(line) = self.take_line() {
                return line;
            }
            if !self.read().await {
                return Line::End;
            }
        }
    }

    /// Waits, during other work, until the client aborts (true) or disconnects (false). Other lines are kept for later.
    pub(super) async fn aborts(&mut self) -> bool {
        loop {
            if let Some(line) = self.abort_line() {
                self.input.drain(line);
                return true;
            }
            if self.input.len() >= AHEAD_BYTES_MAX {
                return std::future::pending().await;
            }
            if !self.read().await {
                return false;
            }
        }
    }

    /// Sends a reply; returns whether the client accepted it in time.
    pub(super) async fn say(&mut self, reply: &str) -> bool {
        debug_assert!(reply.ends_with("\r\n"), "{reply}");
        let said = async {
            self.stream.write_all(reply.as_bytes()).await?;
            self.stream.flush().await
        };
        matches!(tokio::time::timeout(self.patience, said).await, Ok(Ok(())))
    }

    /// Goes on with TLS.
    ///
    /// # Errors
    /// If the client does not, or has sent lines ahead in the clear, which would be taken as if they had been protected.
    pub(super) async fn secure(self, acceptor: &TlsAcceptor) -> io::Result<Self> {
        if !self.input.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "commands came behind AUTH TLS in the clear"));
        }
        let accepted = tokio::time::timeout(self.patience, acceptor.accept(self.stream)).await;
        let stream = accepted.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok(Lines::new(Box::new(stream), self.patience))
    }

    /// Closes the connection.
    pub(super) async fn close(mut self) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.stream.shutdown()).await;
    }

    fn take_line(&mut self) -> Option<Line> {
        match self.input.iter().take(LINE_BYTES_MAX + 2).position(|byte| *byte == b'\n') {
            Some(end) => {
                let mut line: Vec<u8> = self.input.drain(..=end).collect();
                line.pop();
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                Some(Line::Text(without_telnet(&line)))
            }
            None if self.input.len() > LINE_BYTES_MAX => {
                self.input = Vec::new();
                Some(Line::TooLong)
            }
            None => None,
        }
    }

    /// Returns the range of the line that says `ABOR`, with its end.
    fn abort_line(&self) -> Option<std::ops::Range<usize>> {
        let mut from = 0;
        while let Some(end) = self.input[from..].iter().position(|byte| *byte == b'\n') {
            let line = without_telnet(&self.input[from..from + end]);
            if line.get(..4).is_some_and(|verb| verb.eq_ignore_ascii_case(b"ABOR")) {
                return Some(from..from + end + 1);
            }
            from += end + 1;
        }
        None
    }

    /// Reads what has arrived; false at the end.
    async fn read(&mut self) -> bool {
        let mut piece = [0; LINE_BYTES_MAX];
        match self.stream.read(&mut piece).await {
            Ok(read) if read > 0 => {
                self.input.extend_from_slice(&piece[..read]);
                true
            }
            _ => false,
        }
    }
}

/// Returns a line without the bytes that Telnet puts before `ABOR`: interrupt, and the mark of urgent data.
fn without_telnet(line: &[u8]) -> Vec<u8> {
    let start = line.iter().position(|byte| ![0xff, 0xf4, 0xf2].contains(byte)).unwrap_or(line.len());
    line[start..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(sent: &[u8]) -> Lines {
        let (mut client, server) = tokio::io::duplex(64 << 10);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(client.write_all(sent)).unwrap();
        Lines::new(Box::new(server), Duration::from_secs(5))
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    #[test]
    fn lines_are_told_apart_and_the_last_half_is_none() {
        let mut lines = lines(b"NOOP\r\nQUIT\nSTOR half");
        assert_eq!(run(lines.next()), Line::Text(b"NOOP".to_vec()));
        assert_eq!(run(lines.next()), Line::Text(b"QUIT".to_vec()));
        assert_eq!(run(lines.next()), Line::End);
    }

    #[test]
    fn an_endless_line_ends_at_its_bound() {
        let mut endless = lines(&vec![b'A'; 60_000]);
        assert_eq!(run(endless.next()), Line::TooLong);
        assert!(endless.input.capacity() <= 2 * LINE_BYTES_MAX);
        let mut long = lines(&[vec![b'A'; LINE_BYTES_MAX], b"\r\n".to_vec()].concat());
        assert!(matches!(run(long.next()), Line::Text(line) if line.len() == LINE_BYTES_MAX));
    }

    #[test]
    fn an_abort_is_heard_behind_other_lines_which_are_kept() {
        let mut aborted = lines(b"NOOP\r\n\xff\xf4\xff\xf2ABOR\r\nQUIT\r\n");
        assert!(run(aborted.aborts()));
        assert_eq!(run(aborted.next()), Line::Text(b"NOOP".to_vec()));
        assert_eq!(run(aborted.next()), Line::Text(b"QUIT".to_vec()));
        assert!(!run(lines(b"NOOP\r\n").aborts()), "it has gone");
    }
}
