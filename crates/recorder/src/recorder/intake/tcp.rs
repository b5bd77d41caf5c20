//! TCP: line protocol in batches that end with an empty line; each batch is answered with a line when it is durable.
//!
//! A batch may begin with a comment of `key=value`s: `# token=… source=… id=… precision=ms`; token, source and precision then hold for
//! the connection. Answers: `ok 3` (points stored), `duplicate`, `partial 2 line 3, column 5: …` (points stored, and what is wrong with the
//! others), `error …` (nothing stored, and sending it again is of no use), `busy 5 …` (nothing stored; send it again after so many
//! seconds), `unknown …` (the disk failed while it was being stored: with an id it can be sent again). Strings cannot hold empty lines here.
//!
//! A client that sends no empty lines does not ask, and gets no answers: unread ones would cost it its last lines when it closes. Its lines are
//! stored when it is silent, goes on for long, or ends the connection; without room they wait, and lines that are not
//! points go to quarantine. An answer counts all points since the one before. A batch with an id but without its empty line was never sent whole:
//! nothing of it is stored.
//!
//! Where a token is needed, the first line must contain it: nothing behind that line is read before the token is checked.

mod reading;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;

use super::anteroom::Place;
use super::checking::{bad_lines_of, reason_of};
use super::door::{Memory, Taken};
use super::framing::{batch_end, has_id, head};
use super::incoming::{Incoming, Refused};
use super::listen::{Stream, serve};
use super::request::retry_after_s;
use super::response::SEND_AGAIN;
use super::{Entry, Running, Surroundings};
use crate::recorder::access::{Owner, Sender, TokenHash, Why};
use crate::recorder::clock::now_ns;
use crate::recorder::config::ListenConfig;
use crate::recorder::line::{LineError, Precision};
use crate::recorder::log;
use crate::recorder::quote::in_quotes;
use crate::recorder::spool::SpoolError;

/// Registry entry.
pub(super) static TCP: Entry = Entry {
    name: "tcp",
    start: |surroundings| {
        let config = surroundings.config.tcp.clone()?;
        Some(start(config, surroundings))
    },
};

const TOO_MANY: &[u8] = b"busy 5 too many connections\n";
/// The silence after which lines are stored that nobody asks about.
const SILENCE: Duration = Duration::from_secs(1);
fn start(config: ListenConfig, surroundings: &Surroundings) -> Result<Running, String> {
    let shared = Arc::new((config.clone(), surroundings.clone()));
    let is_open = surroundings.live.senders("tcp").are_all();
    serve("tcp", &config, is_open, &surroundings.stop, TOO_MANY, move |stream, ends, place| {
        let shared = Arc::clone(&shared);
        async move {
            let (config, surroundings) = &*shared;
            Connection::new(stream, (ends.peer, place), config, surroundings).serve().await;
        }
    })
}

/// Serves a connection that comes from no socket.
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub(super) async fn fuzzed_connection(stream: Box<dyn Stream>, peer: SocketAddr, surroundings: Surroundings) {
    let Some(config) = surroundings.config.tcp.clone() else { return };
    let place = super::anteroom::lone_place(&config, surroundings.live.senders("tcp").are_all(), peer.ip());
    Connection::new(stream, (peer, place), &config, &surroundings).serve().await;
}

/// The state of a connection.
struct Connection<'a> {
    stream: Box<dyn Stream>,
    config: &'a ListenConfig,
    surroundings: &'a Surroundings,
    peer: SocketAddr,
    place: Arc<Place>,
    source: Arc<str>,
    precision: Precision,
    /// The token that was sent last.
    token: Option<TokenHash>,
    input: Vec<u8>,
    memory: Option<Memory>,
    /// When the first byte of the waiting input arrived, if there is any, and when the last one did.
    first: Instant,
    last: Instant,
    last_ns: i64,
    /// The length of the input when it was last searched for whole lines.
    looked_at: usize,
    /// True if the input continues a batch of which a part was stored.
    goes_on: bool,
    unanswered: Unanswered,
}

/// The outcome of what was stored since the last answer.
#[derive(Debug, Default)]
struct Unanswered {
    rows: u32,
    lines: usize,
    /// The first error of the lines that were left out.
    error: Option<String>,
}

/// The result of waiting for more input.
enum Came {
    Bytes,
    /// This number of bytes are whole lines, and nothing more is waited for; true if a pause ended them.
    Lines(usize, bool),
    /// The client has closed its side.
    End,
    /// The connection broke, was silent for too long, or the recorder stops: an incomplete last line may be cut short.
    Cut(&'static str),
    /// The input cannot be stored; the answer to send.
    Refused(String),
}

impl<'a> Connection<'a> {
    fn new(
        stream: Box<dyn Stream>,
        (peer, place): (SocketAddr, Arc<Place>),
        config: &'a ListenConfig,
        surroundings: &'a Surroundings,
    ) -> Self {
        let now = Instant::now();
        Connection {
            stream,
            config,
            surroundings,
            peer,
            place,
            source: peer.ip().to_string().into(),
            precision: Precision::default(),
            token: None,
            input: Vec::new(),
            memory: None,
            first: now,
            last: now,
            last_ns: now_ns(),
            looked_at: 0,
            goes_on: false,
            unanswered: Unanswered::default(),
        }
    }

    /// Stores batch after batch, until the client disconnects, makes an error or takes too long.
    async fn serve(mut self) {
        if !self.shows_a_token().await {
            return;
        }
        let mut searched = 0;
        loop {
            while let Some(end) = batch_end(&self.input, searched) {
                searched = 0;
                let batch = self.split(end);
                let (answer, goes_on) = self.answer(batch).await;
                self.goes_on = false;
                if !self.say(&answer).await || !goes_on {
                    return;
                }
                self.give_memory_back();
                self.first = Instant::now();
            }
            searched = self.input.len().saturating_sub(2);
            match self.read_more().await {
                Came::Bytes => {}
                Came::Lines(end, is_pause) => {
                    searched = 0;
                    let batch = self.split(end);
                    if !self.take_unasked(batch).await {
                        return;
                    }
                    self.goes_on = !is_pause;
                    self.give_memory_back();
                    self.first = Instant::now();
                }
                Came::End if self.has_id() => return,
                Came::End => {
                    let batch = self.split(self.input.len());
                    self.take_unasked(batch).await;
                    return;
                }
                Came::Cut(_) if self.has_id() => return,
                Came::Cut(why) => return self.take_what_is_whole(why).await,
                Came::Refused(answer) => {
                    self.say(&answer).await;
                    return;
                }
            }
        }
    }

    fn has_id(&self) -> bool {
        !self.goes_on && has_id(&self.input)
    }

    /// Removes and returns the first `end` bytes of the input.
    fn split(&mut self, end: usize) -> Vec<u8> {
        (self.looked_at, self.first) = (0, Instant::now());
        // Many small batches may arrive in one piece; none of them may hold the memory of all.
        match end == self.input.len() {
            true => std::mem::take(&mut self.input),
            false => self.input.drain(..end).collect(),
        }
    }

    fn give_memory_back(&mut self) {
        if self.input.is_empty() {
            self.memory = None;
            self.input = Vec::new();
        }
    }

    async fn say(&mut self, answer: &str) -> bool {
        let said = tokio::time::timeout(self.config.patience, self.stream.write_all(answer.as_bytes())).await;
        matches!(said, Ok(Ok(())))
    }

    /// Stores the whole lines of the input at the end of a connection; the rest goes to quarantine, as it may be cut short.
    async fn take_what_is_whole(mut self, why: &str) {
        if let Some(end) = self.whole() {
            let batch = self.split(end);
            if !self.take_unasked(batch).await {
                return;
            }
        }
        if !self.input.is_empty()
            && let Ok(sender) = self.sender()
        {
            let rest = std::mem::take(&mut self.input);
            self.keep(&sender, rest, format!("{why} within this line"), 1).await;
        }
    }

    /// Stores lines that nobody asks about; returns whether the connection goes on.
    async fn take_unasked(&mut self, body: Vec<u8>) -> bool {
        if let Err(reason) = self.read_head(&body) {
            self.say(&format!("error {reason}\n")).await;
            return false;
        }
        let sender = match self.sender() {
            Ok(sender) => sender,
            Err(reason) => {
                self.say(&format!("error {reason}\n")).await;
                return false;
            }
        };
        let lines = body.iter().filter(|byte| **byte == b'\n').count();
        let (rows, errors, bad) = match self.take_patiently(&sender, &body, String::new()).await {
            Ok(taken) => (taken.rows, taken.errors, taken.bad_lines),
            Err(Refused::Bad(errors, bad)) => (0, errors, bad),
            Err(refused) => {
                let reason = self.refusal(&refused);
                let facts = [("source", &*self.source), ("lines", &lines.to_string()), ("reason", reason.trim_end())];
                log::error("lines that came over TCP are not taken in", &facts);
                if let Refused::Closed(_) = refused {
                    self.say(&reason).await;
                }
                return false;
            }
        };
        if bad > 0 {
            let reason = reason_of(&errors, bad);
            let bounds = self.surroundings.live.line_bounds();
            let kept = match rows {
                // Where a bad line makes the whole batch bad, it is kept as a whole.
                0 => vec![(body, bad as u32)],
                _ => bad_lines_of(&body, self.precision, bounds),
            };
            for (lines, count) in kept {
                if !self.keep(&sender, lines, reason.clone(), count).await {
                    return false;
                }
            }
        }
        let error = errors.first().map(|error| shown(error, self.unanswered.lines));
        self.unanswered.rows = self.unanswered.rows.saturating_add(rows);
        self.unanswered.error = self.unanswered.error.take().or(error);
        self.unanswered.lines += lines;
        true
    }

    /// Stores lines, and waits for room if there is none: nobody could be told to send them again.
    async fn take_patiently(
        &mut self,
        sender: &Arc<Sender>,
        body: &[u8],
        message_id: String,
    ) -> Result<Taken, Refused> {
        loop {
            let incoming = self.incoming(Arc::clone(sender), body.to_vec(), message_id.clone());
            match self.surroundings.patient_door.take(incoming).await {
                Err(Refused::Unfair(wait) | Refused::Full(_, wait) | Refused::TooFast(_, wait))
                    if !self.surroundings.stop.is_asked() =>
                {
                    tokio::time::sleep(wait.min(SILENCE)).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Keeps input that is not points in quarantine; returns whether it is kept.
    async fn keep(&mut self, sender: &Sender, body: Vec<u8>, reason: String, rows: u32) -> bool {
        if let Some(reason) = self.surroundings.door.why_closed(sender, &self.source) {
            let facts = [("source", &*self.source), ("lines", &rows.to_string()), ("reason", &reason)];
            log::error("lines that came over TCP are not taken in", &facts);
            self.say(&self.refusal(&Refused::Closed(reason))).await;
            return false;
        }
        loop {
            let whose = (sender, Arc::clone(&self.source));
            let kept = self.surroundings.door.quarantine(whose, String::new(), body.clone(), reason.clone(), rows);
            match kept.await {
                Ok(()) => return true,
                Err(SpoolError::Full(_)) if !self.surroundings.stop.is_asked() => tokio::time::sleep(SILENCE).await,
                Err(_) => return false,
            }
        }
    }

    fn incoming(&self, sender: Arc<Sender>, body: Vec<u8>, message_id: String) -> Incoming {
        let (source, precision) = (Arc::clone(&self.source), self.precision);
        let (received_ns, received) = (self.last_ns, self.last);
        Incoming { sender, source, message_id, precision, body, is_whole: false, received_ns, received }
    }

    /// Returns the answer to a batch, and whether the connection goes on.
    async fn answer(&mut self, body: Vec<u8>) -> (String, bool) {
        let message_id = match self.read_head(&body) {
            Ok(message_id) => message_id,
            Err(reason) => return (format!("error {reason}\n"), false),
        };
        let sender = match self.sender() {
            Ok(sender) => sender,
            Err(reason) => return (format!("error {reason}\n"), false),
        };
        let before = std::mem::take(&mut self.unanswered);
        let outcome = match before.rows {
            0 => self.surroundings.door.take(self.incoming(sender, body, message_id)).await,
            // A part of it is stored; it cannot be sent again.
            _ => self.take_patiently(&sender, &body, message_id).await,
        };
        let (rows, errors) = match &outcome {
            Ok(Taken { is_duplicate: true, .. }) => return ("duplicate\n".to_owned(), true),
            Ok(taken) => (taken.rows, taken.errors.first()),
            Err(Refused::Bad(errors, _)) => (0, errors.first()),
            Err(refused) => return (self.refusal(refused), true),
        };
        let all = before.rows.saturating_add(rows);
        let error = before.error.or_else(|| errors.map(|error| shown(error, before.lines)));
        let answer = match error {
            None => format!("ok {all}"),
            Some(error) if all == 0 => format!("error {error}"),
            Some(error) => format!("partial {all} {error}"),
        };
        (answer.replace('\n', " ") + "\n", true)
    }

    /// Returns the sender by the present configuration: a token that was removed ends its connections with their next batch.
    fn sender(&self) -> Result<Arc<Sender>, String> {
        let senders = self.surroundings.live.senders("tcp");
        let in_time = || if self.place.let_in() { Ok(()) } else { Err("others came before".to_owned()) };
        if senders.are_all() {
            in_time()?;
            return Ok(Arc::new(Sender::free(Owner::Address(self.peer.ip()))));
        }
        let Some(sender) = self.token.and_then(|token| senders.find(&token)) else {
            self.refuse(Why::Token);
            self.surroundings.meter.refused_requests.add(1);
            return Err("send a known token first: # token=...".to_owned());
        };
        in_time()?;
        // A client that does not name itself is named by its address.
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

    /// Returns the answer to a batch of which nothing was stored.
    fn refusal(&self, refused: &Refused) -> String {
        let said = match refused {
            Refused::Bad(errors, _) => format!("error {}", errors.first().map(ToString::to_string).unwrap_or_default()),
            Refused::Forbidden(line, sentence) => {
                self.refuse(Why::Measurement);
                let place = line.map_or(String::new(), |line| format!("line {line}: "));
                format!("error nothing is stored: {place}{sentence}")
            }
            Refused::Closed(reason) => format!("error not taken in: {reason}"),
            Refused::TooFast(reason, wait) => {
                self.refuse(Why::Rate);
                format!("busy {} {reason}", retry_after_s(*wait))
            }
            Refused::Unknown(reason) => format!("unknown {reason}; {SEND_AGAIN}"),
            Refused::Unfair(wait) => {
                format!("busy {} this source has had more than its share", retry_after_s(*wait))
            }
            Refused::Full(reason, wait) => format!("busy {} {reason}", retry_after_s(*wait)),
            Refused::Broken(reason) => format!("busy 30 {reason}"),
        };
        said.replace('\n', " ") + "\n"
    }

    /// Reads the comment that a batch may begin with; returns the message id.
    fn read_head(&mut self, body: &[u8]) -> Result<String, String> {
        let (mut message_id, mut token) = (String::new(), None);
        if self.goes_on {
            return Ok(message_id);
        }
        for (key, value) in head(body) {
            match key {
                "token" => token = Some(value),
                "source" if value.len() <= 200 => self.source = value.into(),
                "id" if value.len() <= 200 => message_id = value.to_owned(),
                "precision" => {
                    self.precision = Precision::named(value).ok_or_else(|| {
                        format!("precision {} is not known; there are ns, us, ms and s", in_quotes(value))
                    })?;
                }
                "source" | "id" => return Err(format!("{key} is longer than 200 bytes")),
                _ => {}
            }
        }
        // Once, however many there are: a long head of nothing but tokens would keep the network's thread.
        self.token = token.map(TokenHash::of).or(self.token);
        Ok(message_id)
    }
}

/// Returns an error of a line as text, if `lines_before` lines of its batch were stored before.
fn shown(error: &LineError, lines_before: usize) -> String {
    LineError { line: error.line + lines_before, ..error.clone() }.to_string()
}
