//! TCP: the same lines, in batches that an empty line ends, each answered with a line when it is durable.
//!
//! A batch may begin with a comment of `key=value`s: `# token=… source=… id=… precision=ms`; token, source and precision then hold for
//! the connection. Answers: `ok 3` (points stored), `duplicate`, `partial 2 line 3, column 5: …` (points stored, and what is wrong with the
//! others), `error …` (nothing stored, and sending it again is of no use), `busy 5 …` (nothing stored; send it again after so many
//! seconds), `unknown …` (the disk failed while it was being stored: with an id it can be sent again). Strings cannot hold empty lines here.
//!
//! Who sends no empty lines does not ask, and gets no answers: unread ones would cost it its last lines when it closes. What it has sent is taken
//! in when it is silent, goes on for long, or ends the connection; it is waited for where there is no room, and lines that are no
//! points go to quarantine. An answer counts all points since the one before. A batch with an id was never sent whole without its empty line:
//! nothing of it is stored.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::door::{Incoming, LONG_BYTES, Memory, Refused, Taken, bad_lines_of, reason_of};
use super::framing::{batch_end, has_id, head};
use super::listen::{Stream, serve};
use super::request::retry_after_s;
use super::response::SEND_AGAIN;
use super::{Entry, Running, Surroundings};
use crate::recorder::access::{Owner, Sender, TokenHash, Why};
use crate::recorder::config::ListenConfig;
use crate::recorder::line::{LineError, Precision, whole_lines};
use crate::recorder::log;
use crate::recorder::spool::{SpoolError, now_ns};

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
/// After so much silence lines are taken in that nobody asks about.
const SILENCE: Duration = Duration::from_secs(1);
/// So long they may wait while others follow them.
const AGE_MAX: Duration = Duration::from_secs(5);
/// How often a connection looks at the clock.
const LOOK: Duration = Duration::from_millis(200);

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
    /// When the first byte of the input came, and the last one.
    first: Instant,
    last: Instant,
    last_ns: i64,
    /// How long the input was when it was last looked at for whole lines.
    looked_at: usize,
    /// Whether the input goes on with a batch of which a part was taken in.
    goes_on: bool,
    unanswered: Unanswered,
}

/// What was taken in since the last answer.
#[derive(Debug, Default)]
struct Unanswered {
    rows: u32,
    lines: usize,
    /// What is wrong with the first of those that were left out.
    error: Option<String>,
}

/// What came of waiting for more.
enum Came {
    Bytes,
    /// So many bytes are whole lines, and nothing more is waited for; whether a pause ended them.
    Lines(usize, bool),
    /// The client has said everything.
    End,
    /// The connection broke, was silent for too long, or the recorder stops: a last line that is not whole may be cut short.
    Cut(&'static str),
    /// It cannot be taken in; what is said.
    Refused(String),
}

impl<'a> Connection<'a> {
    fn new(
        stream: Box<dyn Stream>,
        peer: SocketAddr,
        config: &'a ListenConfig,
        surroundings: &'a Surroundings,
    ) -> Self {
        let now = Instant::now();
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
            first: now,
            last: now,
            last_ns: now_ns(),
            looked_at: 0,
            goes_on: false,
            unanswered: Unanswered::default(),
        }
    }

    /// Takes in batch after batch, until the client goes, errs or takes too long.
    async fn serve(mut self) {
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

    /// Takes the first bytes of the input.
    fn split(&mut self, end: usize) -> Vec<u8> {
        let rest = self.input.split_off(end);
        (self.looked_at, self.first) = (0, Instant::now());
        std::mem::replace(&mut self.input, rest)
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

    /// Reads what comes next, or says what there is to do meanwhile.
    async fn read_more(&mut self) -> Came {
        // A connection may be idle for long, and there may be many.
        let mut chunk = vec![0; if self.input.is_empty() { IDLE_STEP_BYTES } else { STEP_BYTES }];
        let begun = Instant::now();
        let read = loop {
            match tokio::time::timeout(LOOK, self.stream.read(&mut chunk)).await {
                Ok(Ok(0)) => return Came::End,
                Ok(Ok(read)) => break read,
                Ok(Err(_)) => return Came::Cut("the connection broke"),
                Err(_) if self.surroundings.stop.is_asked() => return Came::Cut("the recorder was stopped"),
                // A client may be silent between its batches, not within one.
                Err(_) if !self.input.is_empty() && begun.elapsed() > self.config.patience => {
                    return Came::Cut("nothing came for longer than intake.tcp.patience");
                }
                Err(_) if self.last.elapsed() > SILENCE => {
                    if self.input.len() > self.looked_at
                        && let Some(end) = self.whole()
                    {
                        return Came::Lines(end, true);
                    }
                }
                Err(_) => {}
            }
        };
        (self.last, self.last_ns) = (Instant::now(), now_ns());
        if self.input.is_empty() {
            self.first = self.last;
        }
        self.input.extend_from_slice(&chunk[..read]);
        self.make_room().await
    }

    /// Reserves memory for what came. Where there is too much of it, whole lines are taken in first.
    async fn make_room(&mut self) -> Came {
        let (bytes, most) = (self.input.len() as u64, self.surroundings.config.request_bytes);
        if bytes > most {
            let refusal = format!("error the batch has more than {most} bytes\n");
            return self.whole().map_or(Came::Refused(refusal), |end| Came::Lines(end, false));
        }
        let busy = || "busy 1 no memory left\n".to_owned();
        match &mut self.memory {
            Some(memory) => {
                if self.surroundings.door.reserve_more(memory, bytes).is_err() {
                    return self.whole().map_or_else(|| Came::Refused(busy()), |end| Came::Lines(end, false));
                }
            }
            None => loop {
                match self.surroundings.door.reserve(bytes).await {
                    Ok(memory) => break self.memory = Some(memory),
                    // Who does not ask cannot be told to come again.
                    Err(_) if self.is_asked() || self.surroundings.stop.is_asked() => return Came::Refused(busy()),
                    Err(_) => {}
                }
            },
        }
        // What had no whole lines is looked at again when it is twice as long, so that the work stays linear.
        match self.first.elapsed() > AGE_MAX && self.input.len() >= 2 * self.looked_at {
            true => self.whole().map_or(Came::Bytes, |end| Came::Lines(end, false)),
            false => Came::Bytes,
        }
    }

    /// Whether somebody waits for an answer to what is there.
    fn is_asked(&self) -> bool {
        self.has_id() || batch_end(&self.input, 0).is_some()
    }

    /// How much of the input can be taken in unasked, if there is any: whole lines of a batch without an id.
    fn whole(&mut self) -> Option<usize> {
        self.looked_at = self.input.len();
        if self.has_id() {
            return None;
        }
        // Long work must not keep the threads of the network from others.
        let end = match self.input.len() > LONG_BYTES {
            true => tokio::task::block_in_place(|| whole_lines(&self.input)),
            false => whole_lines(&self.input),
        };
        Some(end).filter(|end| *end > 0)
    }

    /// Takes in what is whole of the input at the end of a connection; the rest goes to quarantine, as it may be cut short.
    async fn take_what_is_whole(mut self, why: &str) {
        if let Some(end) = self.whole() {
            let batch = self.split(end);
            if !self.take_unasked(batch).await {
                return;
            }
        }
        if !self.input.is_empty() && self.sender().is_ok() {
            let rest = std::mem::take(&mut self.input);
            self.keep(rest, format!("{why} within this line"), 1).await;
        }
    }

    /// Takes lines in that nobody asks about; whether the connection goes on.
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
                return false;
            }
        };
        if bad > 0 {
            let reason = reason_of(&errors, bad);
            let bounds = self.surroundings.live.line_bounds();
            let kept = match rows {
                // Where a bad line makes the whole batch bad, it is kept as a whole.
                0 => body,
                _ => bad_lines_of(&body, self.precision, bounds),
            };
            if !self.keep(kept, reason, bad as u32).await {
                return false;
            }
        }
        let error = errors.first().map(|error| shown(error, self.unanswered.lines));
        self.unanswered.rows = self.unanswered.rows.saturating_add(rows);
        self.unanswered.error = self.unanswered.error.take().or(error);
        self.unanswered.lines += lines;
        true
    }

    /// Takes lines in, and waits for room where there is none: nobody could be told to send them again.
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

    /// Keeps what is no point in quarantine; whether it is kept.
    async fn keep(&mut self, body: Vec<u8>, reason: String, rows: u32) -> bool {
        loop {
            let source = Arc::clone(&self.source);
            let kept = self.surroundings.door.quarantine(source, String::new(), body.clone(), reason.clone(), rows);
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

    /// What is said where nothing is taken in.
    fn refusal(&self, refused: &Refused) -> String {
        let said = match refused {
            Refused::Bad(errors, _) => format!("error {}", errors.first().map(ToString::to_string).unwrap_or_default()),
            Refused::Forbidden(line, sentence) => {
                self.refuse(Why::Measurement);
                let place = line.map_or(String::new(), |line| format!("line {line}: "));
                format!("error nothing is stored: {place}{sentence}")
            }
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

    /// Reads the comment that a batch may begin with; the message's id.
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
                    self.precision = Precision::named(value)
                        .ok_or_else(|| format!("precision {value:?} is not known; there are ns, us, ms and s"))?;
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

/// What is wrong with a line, where others of its batch were taken in before.
fn shown(error: &LineError, lines_before: usize) -> String {
    LineError { line: error.line + lines_before, ..error.clone() }.to_string()
}
