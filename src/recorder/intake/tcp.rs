//! TCP: the same lines, in batches that an empty line ends, each answered with a line when it is durable.
//!
//! A batch may begin with a comment of `key=value`s: `# token=… source=… id=… precision=ms`; token, source and precision then hold for
//! the connection. Answers: `ok 3` (points stored), `duplicate`, `partial 2 line 3, column 5: …` (points stored, and what is wrong with the
//! others), `error …` (nothing stored, and sending it again is of no use), `busy 5 …` (nothing stored; send it again after so many
//! seconds), `unknown …` (the disk failed while it was being stored: with an id it can be sent again). A batch without its empty line was never sent whole: nothing of it is stored. Strings cannot hold empty lines here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::door::{Incoming, Memory, Refused, Taken};
use super::listen::{Stream, serve};
use super::request::retry_after_s;
use super::response::SEND_AGAIN;
use super::{Entry, Running, Surroundings};
use crate::recorder::access::{Owner, Sender, TokenHash, Why};
use crate::recorder::config::ListenConfig;
use crate::recorder::line::Precision;
use crate::recorder::spool::now_ns;

/// Registry entry.
pub(super) static TCP: Entry = Entry {
    name: "tcp",
    start: |surroundings| {
        let config = surroundings.config.tcp.clone()?;
        Some(start(config, surroundings))
    },
};

const TOO_MANY: &[u8] = b"busy 5 too many connections\n";
/// Bytes read at a time within a batch, and while there is none.
const STEP_BYTES: usize = 64 << 10;
const IDLE_STEP_BYTES: usize = 2 << 10;

fn start(config: ListenConfig, surroundings: &Surroundings) -> Result<Running, String> {
    let shared = Arc::new((config.clone(), surroundings.clone()));
    serve("tcp", &config, &surroundings.stop, TOO_MANY, move |stream, ends| {
        let shared = Arc::clone(&shared);
        async move {
            let (config, surroundings) = &*shared;
            Connection::new(stream, ends.peer, config, surroundings).serve().await;
        }
    })
}

/// What holds for a connection.
struct Connection<'a> {
    stream: Box<dyn Stream>,
    config: &'a ListenConfig,
    surroundings: &'a Surroundings,
    peer: SocketAddr,
    source: Arc<str>,
    precision: Precision,
    /// The token that was sent last.
    token: Option<TokenHash>,
    input: Vec<u8>,
    memory: Option<Memory>,
}

impl<'a> Connection<'a> {
    fn new(
        stream: Box<dyn Stream>,
        peer: SocketAddr,
        config: &'a ListenConfig,
        surroundings: &'a Surroundings,
    ) -> Self {
        Connection {
            stream,
            config,
            surroundings,
            peer,
            source: peer.ip().to_string().into(),
            precision: Precision::default(),
            token: None,
            input: Vec::new(),
            memory: None,
        }
    }

    /// Answers batch after batch, until the client goes, errs or takes too long.
    async fn serve(mut self) {
        let mut searched = 0;
        loop {
            while let Some(end) = batch_end(&self.input, searched) {
                let rest = self.input.split_off(end);
                let batch = std::mem::replace(&mut self.input, rest);
                searched = 0;
                let (answer, goes_on) = self.answer(batch).await;
                let said = tokio::time::timeout(self.config.patience, self.stream.write_all(answer.as_bytes())).await;
                if !goes_on || !matches!(said, Ok(Ok(()))) {
                    return;
                }
                if self.input.is_empty() {
                    self.memory = None;
                    self.input = Vec::new();
                }
            }
            searched = self.input.len().saturating_sub(2);
            if !self.read_more().await {
                return;
            }
        }
    }

    /// Reads what comes next; whether something came.
    async fn read_more(&mut self) -> bool {
        let begun = Instant::now();
        // A connection may be idle for long, and there may be many.
        let mut chunk = vec![0; if self.input.is_empty() { IDLE_STEP_BYTES } else { STEP_BYTES }];
        let read = loop {
            match tokio::time::timeout(Duration::from_millis(200), self.stream.read(&mut chunk)).await {
                Ok(read) => break read.unwrap_or(0),
                // A client may be silent between its batches, not within one.
                Err(_) if self.surroundings.stop.is_asked() => return false,
                Err(_) if !self.input.is_empty() && begun.elapsed() > self.config.patience => return false,
                Err(_) => {}
            }
        };
        let bytes = (self.input.len() + read) as u64;
        let refusal = match &mut self.memory {
            _ if bytes > self.surroundings.config.request_bytes => {
                Some(format!("error the batch has more than {} bytes\n", self.surroundings.config.request_bytes))
            }
            Some(memory) => {
                self.surroundings.door.reserve_more(memory, bytes).err().map(|_| "busy 1 no memory left\n".to_owned())
            }
            None => match self.surroundings.door.reserve(bytes).await {
                Ok(memory) => {
                    self.memory = Some(memory);
                    None
                }
                Err(_) => Some("busy 1 no memory left\n".to_owned()),
            },
        };
        if let Some(refusal) = refusal {
            let _ = tokio::time::timeout(self.config.patience, self.stream.write_all(refusal.as_bytes())).await;
            return false;
        }
        self.input.extend_from_slice(&chunk[..read]);
        read > 0
    }

    /// The answer to a batch, and whether the connection goes on.
    async fn answer(&mut self, body: Vec<u8>) -> (String, bool) {
        let message_id = match self.read_head(&body) {
            Ok(message_id) => message_id,
            Err(reason) => return (format!("error {reason}\n"), false),
        };
        let sender = match self.sender() {
            Ok(sender) => sender,
            Err(reason) => return (format!("error {reason}\n"), false),
        };
        let (source, precision) = (Arc::clone(&self.source), self.precision);
        let (received_ns, received) = (now_ns(), Instant::now());
        let incoming = Incoming { sender, source, message_id, precision, body, received_ns, received };
        let outcome = self.surroundings.door.take(incoming).await;
        match &outcome {
            Err(Refused::Forbidden(..)) => self.refuse(Why::Measurement),
            Err(Refused::TooFast(..)) => self.refuse(Why::Rate),
            _ => {}
        }
        let answer = match outcome {
            Ok(Taken { is_duplicate: true, .. }) => "duplicate".to_owned(),
            Ok(Taken { bad_lines: 0, rows, .. }) => format!("ok {rows}"),
            Ok(taken) => format!("partial {} {}", taken.rows, first(&taken.errors)),
            Err(Refused::Bad(errors, _)) => format!("error {}", first(&errors)),
            Err(Refused::Forbidden(line, sentence)) => {
                let place = line.map_or(String::new(), |line| format!("line {line}: "));
                format!("error nothing is stored: {place}{sentence}")
            }
            Err(Refused::TooFast(reason, wait)) => format!("busy {} {reason}", retry_after_s(wait)),
            Err(Refused::Unknown(reason)) => format!("unknown {reason}; {SEND_AGAIN}"),
            Err(Refused::Unfair(wait)) => {
                format!("busy {} this source has had more than its share", retry_after_s(wait))
            }
            Err(Refused::Full(reason, wait)) => format!("busy {} {reason}", retry_after_s(wait)),
            Err(Refused::Broken(reason)) => format!("busy 30 {reason}"),
        };
        (answer.replace('\n', " ") + "\n", true)
    }

    /// Who sends, as it is configured now: a token that was taken away ends a connection with its next batch.
    fn sender(&self) -> Result<Arc<Sender>, String> {
        let senders = self.surroundings.live.senders("tcp");
        if senders.are_all() {
            return Ok(Arc::new(Sender::free(Owner::Address(self.peer.ip()))));
        }
        let Some(sender) = self.token.and_then(|token| senders.find(&token)) else {
            self.refuse(Why::Token);
            self.surroundings.meter.refused_requests.add(1);
            return Err("send a known token first: # token=...".to_owned());
        };
        // Whoever does not name itself goes by its address.
        if *self.source != *self.peer.ip().to_string() {
            sender.may_be(&self.source).inspect_err(|_| {
                self.refuse(Why::Source);
                self.surroundings.meter.refused_requests.add(1);
            })?;
        }
        Ok(sender)
    }

    fn refuse(&self, why: Why) {
        self.surroundings.meter.strangers.refuse("tcp", why, self.peer.ip());
    }

    /// Reads the comment that a batch may begin with; the message's id.
    fn read_head(&mut self, body: &[u8]) -> Result<String, String> {
        let line = body.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let Some(head) = line.strip_prefix(b"#").and_then(|head| std::str::from_utf8(head).ok()) else {
            return Ok(String::new());
        };
        let mut message_id = String::new();
        for (key, value) in head.split_whitespace().filter_map(|word| word.split_once('=')) {
            match key {
                "token" => self.token = Some(TokenHash::of(value)),
                "source" if value.len() <= 200 => self.source = value.into(),
                "id" if value.len() <= 200 => message_id = value.to_owned(),
                "precision" => {
                    self.precision = Precision::named(value)
                        .ok_or_else(|| format!("precision {value:?} is not known; there are ns, us, ms and s"))?;
                }
                "source" | "id" => return Err(format!("{key} is longer than 200 bytes")),
                _ => {}
            }
        }
        Ok(message_id)
    }
}

fn first(errors: &[crate::recorder::line::LineError]) -> String {
    errors.first().map(ToString::to_string).unwrap_or_default()
}

/// Where the first batch ends, its empty line included; the search begins at `from`.
fn batch_end(input: &[u8], from: usize) -> Option<usize> {
    // An empty line may also be the very first.
    if input.first() == Some(&b'\n') {
        return Some(1);
    }
    let mut at = from;
    while let Some(end) = input[at..].iter().position(|byte| *byte == b'\n').map(|place| at + place) {
        match &input[end + 1..] {
            [b'\n', ..] => return Some(end + 2),
            [b'\r', b'\n', ..] => return Some(end + 3),
            _ => at = end + 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_ends_with_an_empty_line() {
        assert_eq!(batch_end(b"m f=1\n\nm", 0), Some(7));
        assert_eq!(batch_end(b"m f=1\r\n\r\nm", 0), Some(9));
        assert_eq!(batch_end(b"m f=1\nm f=2\n", 0), None);
        assert_eq!(batch_end(b"\nm f=1", 0), Some(1));
        assert_eq!(batch_end(b"", 0), None);
        let long = b"m f=1\nm f=2\n\n";
        (0..long.len()).for_each(|cut| assert_eq!(batch_end(&long[..cut], cut.saturating_sub(3)), None));
        assert_eq!(batch_end(long, long.len() - 3), Some(13));
    }
}
