//! What every request goes through: it is checked line by line, made durable, and only then answered. Main type: [`Door`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::live::Live;
use crate::recorder::access::Sender;
use crate::recorder::admission::{Gate, Turn};
use crate::recorder::line::{LineBounds, LineError, Parser, Point, Precision};
use crate::recorder::meter::Meter;
use crate::recorder::spool::{
    CommitterHandle, Entry, Offer, Refusal, Refused as RefusedRecord, SpoolError, Stored, now_ns, unspooled_number,
};
use crate::recorder::writer::{DirectAnswer, DirectHandle, DirectWait, message_number};

/// Errors of lines that are told to the client, at most.
const ERRORS_MAX: usize = 20;
/// A request with more bytes is looked through on a thread of its own.
pub(super) const LONG_BYTES: usize = 256 << 10;
/// Memory is counted in pieces of this many bytes.
const PIECE_BYTES: u64 = 1024;

/// A request as it arrived.
#[derive(Debug)]
pub struct Incoming {
    /// Who sent it, as its token says: what it may send, and whose its id is.
    pub sender: Arc<Sender>,
    /// What the sender calls itself.
    pub source: Arc<str>,
    /// The sender's id of it; empty for none.
    pub message_id: String,
    /// Unit of its time stamps.
    pub precision: Precision,
    /// Line protocol.
    pub body: Vec<u8>,
    /// Whether it is to be refused as a whole where a line is bad, whatever the configuration says.
    pub is_whole: bool,
    /// When its last byte arrived, in nanoseconds since 1970.
    pub received_ns: i64,
    /// The same by a clock that does not jump.
    pub received: Instant,
}

/// What was made durable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// Points.
    pub rows: u32,
    /// What is wrong with the lines that were left out; the first ones.
    pub errors: Vec<LineError>,
    /// How many lines were left out.
    pub bad_lines: usize,
    /// Whether it had been taken in before.
    pub is_duplicate: bool,
}

/// Why nothing of a request was taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Lines are wrong; the first errors, and how many there are.
    Bad(Vec<LineError>, usize),
    /// The sender may not send this: the line, where it is about one, and a sentence.
    Forbidden(Option<usize>, String),
    /// The sender has sent more than its rate: a sentence, and how long it is to wait.
    TooFast(String, Duration),
    /// The sender has had more than its share while others wait.
    Unfair(Duration),
    /// There is no room; it can be sent again after this time.
    Full(String, Duration),
    /// Nothing can be made durable.
    Broken(String),
    /// It may have been stored or not: it was being made durable when that failed.
    Unknown(String),
}

/// Where requests are made durable.
#[derive(Clone)]
pub enum Route {
    /// In the spool, in as many lanes.
    Spool(CommitterHandle, u32),
    /// In the database itself, one handle a lane.
    Direct(Vec<DirectHandle>),
}

/// What a door is made with.
pub struct DoorSettings {
    /// Where requests are made durable.
    pub route: Route,
    /// Where the quarantine is.
    pub spool: CommitterHandle,
    /// What is counted.
    pub meter: Arc<Meter>,
    /// Who may come in.
    pub gate: Arc<Gate>,
    /// The most bytes of requests in memory.
    pub memory_bytes: u64,
    /// Whether the good lines of a batch with bad ones are kept.
    pub keeps_good_lines: bool,
    /// What can be changed while it runs: how large a line may be.
    pub live: Arc<Live>,
    /// How long a request may wait for the database.
    pub patience: Duration,
}

/// What every request goes through.
pub struct Door {
    settings: DoorSettings,
    memory: Arc<Semaphore>,
}

/// Memory that a request holds; given back when dropped.
#[derive(Debug)]
pub struct Memory {
    held: OwnedSemaphorePermit,
    bytes: u64,
    meter: Arc<Meter>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        let pieces = self.held.num_permits() as u64;
        self.meter.memory_bytes.subtract(pieces * PIECE_BYTES);
    }
}

impl Door {
    /// A door that is open.
    pub fn new(settings: DoorSettings) -> Self {
        let pieces =
            usize::try_from(settings.memory_bytes / PIECE_BYTES).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Door { settings, memory: Arc::new(Semaphore::new(pieces)) }
    }

    /// Reserves memory for a request of this many bytes, and waits for it a little.
    ///
    /// # Errors
    /// [`Refused::Full`].
    pub async fn reserve(&self, bytes: u64) -> Result<Memory, Refused> {
        const WITHIN: Duration = Duration::from_secs(1);
        let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES).max(1)).unwrap_or(u32::MAX);
        let asked = Arc::clone(&self.memory).acquire_many_owned(pieces);
        match tokio::time::timeout(WITHIN, asked).await {
            Ok(Ok(held)) => {
                let meter = Arc::clone(&self.settings.meter);
                meter.memory_bytes.add(u64::from(pieces) * PIECE_BYTES);
                Ok(Memory { held, bytes: u64::from(pieces) * PIECE_BYTES, meter })
            }
            _ => Err(self.no_memory()),
        }
    }

    /// Reserves more, so that it is `bytes` in all; does not wait, because what one request waits for another may hold.
    ///
    /// # Errors
    /// [`Refused::Full`].
    pub fn reserve_more(&self, memory: &mut Memory, bytes: u64) -> Result<(), Refused> {
        let Some(more) = bytes.checked_sub(memory.bytes).filter(|more| *more > 0) else { return Ok(()) };
        // In doublings, so that a long request asks a few times only.
        let pieces = u32::try_from(more.max(memory.bytes.min(4 << 20)).div_ceil(PIECE_BYTES)).unwrap_or(u32::MAX);
        let smallest = u32::try_from(more.div_ceil(PIECE_BYTES)).unwrap_or(u32::MAX);
        for pieces in [pieces, smallest] {
            if let Ok(held) = Arc::clone(&self.memory).try_acquire_many_owned(pieces) {
                memory.held.merge(held);
                memory.bytes += u64::from(pieces) * PIECE_BYTES;
                self.settings.meter.memory_bytes.add(u64::from(pieces) * PIECE_BYTES);
                return Ok(());
            }
        }
        Err(self.no_memory())
    }

    fn no_memory(&self) -> Refused {
        self.settings.meter.turned_away.add(1);
        Refused::Full("requests in memory have reached intake.memory".to_owned(), Duration::from_secs(1))
    }

    /// Makes a request durable.
    ///
    /// # Errors
    /// Why nothing of it was taken in.
    pub async fn take(&self, incoming: Incoming) -> Result<Taken, Refused> {
        let received = incoming.received;
        let outcome = self.try_to_take(incoming).await;
        self.count(&outcome, received);
        outcome
    }

    /// Counts what became of a request that arrived then.
    pub fn count(&self, outcome: &Result<Taken, Refused>, received: Instant) {
        let meter = &self.settings.meter;
        match outcome {
            Ok(taken) => {
                meter.acknowledged_requests.add(1);
                meter.duplicates.add(u64::from(taken.is_duplicate));
                meter.bad_lines.add(taken.bad_lines as u64);
                meter.acknowledgement_times.add(received.elapsed());
            }
            Err(Refused::Bad(_, bad_lines)) => {
                meter.refused_requests.add(1);
                meter.bad_lines.add(*bad_lines as u64);
            }
            Err(Refused::Forbidden(..)) => meter.refused_requests.add(1),
            Err(Refused::Unknown(_)) => {}
            Err(_) => meter.turned_away.add(1),
        }
    }

    /// Keeps lines in quarantine that are no points, where nobody can be told; comes back when they are durable. Those of a message
    /// with an id are kept once, however often it comes.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn quarantine(
        &self,
        source: Arc<str>,
        message_id: String,
        body: Vec<u8>,
        reason: String,
        rows: u32,
    ) -> Result<(), SpoolError> {
        let offer = Offer {
            lane: 0,
            source,
            message_id,
            received_ns: now_ns(),
            precision: Precision::default(),
            rows,
            body: Vec::new(),
        };
        let refusal = Refusal { row: -1, rows, body, reason };
        let sequence = message_number(&offer).unwrap_or_else(unspooled_number);
        let entry = Arc::new(Entry { sequence, offer });
        self.settings.spool.quarantine_async(vec![RefusedRecord { entry, refusal, is_spooled: false }]).await
    }

    async fn try_to_take(&self, incoming: Incoming) -> Result<Taken, Refused> {
        self.begin(incoming).await?.finish().await
    }

    /// Takes a request in as far as its place in the order of its source: what is begun later is stored later.
    ///
    /// # Errors
    /// Why nothing of it was taken in.
    pub async fn begin(&self, incoming: Incoming) -> Result<Begun, Refused> {
        let (body, precision, bounds) = (incoming.body, incoming.precision, self.settings.live.line_bounds());
        let keeps_good_lines = self.settings.keeps_good_lines && !incoming.is_whole;
        let sender = incoming.sender;
        let sent_bytes = body.len() as u64;
        // Long work must not keep the threads of the network from others.
        let checked = if body.len() > LONG_BYTES {
            let sender = Arc::clone(&sender);
            let checked = tokio::task::spawn_blocking(move || check(body, precision, bounds, &sender)).await;
            checked.map_err(|_| Refused::Broken("the recorder is stopping".to_owned()))?
        } else {
            check(body, precision, bounds, &sender)
        };
        let Checked { body, rows, errors, bad_lines } =
            checked.map_err(|(line, sentence)| Refused::Forbidden(Some(line), sentence))?;
        if bad_lines > 0 && (rows == 0 || !keeps_good_lines) {
            return Err(Refused::Bad(errors, bad_lines));
        }
        let taken = Taken { rows, errors, bad_lines, is_duplicate: false };
        if rows == 0 {
            return Ok(Begun { taken, waits_for: None });
        }
        sender.pass(rows, sent_bytes).map_err(|wait| Refused::TooFast(sender.bounds(), wait))?;
        let refused = match self.settings.gate.ask(&incoming.source, body.len() as u64) {
            Turn::In => None,
            Turn::Unfair(wait) => Some(Refused::Unfair(wait)),
            Turn::Closed(reason, wait) => Some(Refused::Full(reason, wait)),
        };
        if let Some(refused) = refused {
            sender.give_back(rows, sent_bytes);
            return Err(refused);
        }
        let mut offer = Offer {
            lane: 0,
            source: incoming.source,
            message_id: sender.own_id(&incoming.message_id),
            received_ns: incoming.received_ns,
            precision,
            rows,
            body,
        };
        match &self.settings.route {
            Route::Spool(spool, lanes) => {
                offer.lane = lane_of(&offer.source, *lanes);
                match spool.append(offer).await {
                    Ok(stored) => {
                        let taken = Taken { is_duplicate: stored == Stored::Duplicate, ..taken };
                        Ok(Begun { taken, waits_for: None })
                    }
                    Err(SpoolError::Full(reason)) => {
                        sender.give_back(rows, sent_bytes);
                        Err(Refused::Full(reason, Duration::from_secs(5)))
                    }
                    Err(error @ SpoolError::Unknown(_)) => Err(Refused::Unknown(error.to_string())),
                    Err(error) => Err(Refused::Broken(error.to_string())),
                }
            }
            Route::Direct(lanes) => {
                let lane = lane_of(&offer.source, lanes.len() as u32);
                let waits_for = lanes[lane as usize].begin(offer, self.settings.patience).await;
                Ok(Begun { taken, waits_for: Some(waits_for) })
            }
        }
    }
}

/// A request that has its place in the order of its source.
#[derive(Debug)]
pub struct Begun {
    taken: Taken,
    waits_for: Option<DirectWait>,
}

impl Begun {
    /// Comes back when it is durable.
    ///
    /// # Errors
    /// Why nothing of it was taken in.
    pub async fn finish(self) -> Result<Taken, Refused> {
        let Some(waits_for) = self.waits_for else { return Ok(self.taken) };
        match waits_for.finish().await {
            DirectAnswer::Committed => Ok(self.taken),
            DirectAnswer::Duplicate => Ok(Taken { is_duplicate: true, ..self.taken }),
            DirectAnswer::Unavailable(reason) => Err(Refused::Full(reason, Duration::from_secs(2))),
            DirectAnswer::Unknown(reason) => Err(Refused::Unknown(reason)),
        }
    }
}

/// The lane of a source: always the same, in every version and on every machine, so that a source's records keep their order.
pub(in crate::recorder) fn lane_of(source: &str, lanes: u32) -> u32 {
    crc32fast::hash(source.as_bytes()) % lanes.max(1)
}

struct Checked {
    /// The good lines.
    body: Vec<u8>,
    rows: u32,
    errors: Vec<LineError>,
    bad_lines: usize,
}

/// Looks at every line; a measurement that the sender may not send is all that there is to say, with its line.
fn check(body: Vec<u8>, precision: Precision, bounds: LineBounds, sender: &Sender) -> Result<Checked, (usize, String)> {
    let mut parser = Parser::bounded(&body, precision, bounds);
    let mut point = Point::default();
    let (mut rows, mut errors, mut bad_lines) = (0, Vec::new(), 0);
    let may_send_all = sender.may_send_all();
    let mut allowed: &[u8] = &[];
    while let Some(read) = parser.next(&mut point) {
        match read {
            Ok(()) => {
                rows += 1;
                let measurement = point.measurement();
                // Most lines have the measurement of the one before.
                if !may_send_all && measurement.raw() != allowed {
                    sender.may_send(&measurement.resolve()).map_err(|sentence| (point.line, sentence))?;
                    allowed = measurement.raw();
                }
            }
            Err(error) => {
                bad_lines += 1;
                if errors.len() < ERRORS_MAX {
                    errors.push(error);
                }
            }
        }
    }
    if bad_lines == 0 {
        return Ok(Checked { body, rows, errors, bad_lines });
    }
    let mut good = Vec::with_capacity(body.len());
    let mut parser = Parser::bounded(&body, precision, bounds);
    let mut point = Point::default();
    while let Some(read) = parser.next(&mut point) {
        if read.is_ok() {
            good.extend_from_slice(point.bytes);
            good.push(b'\n');
        }
    }
    Ok(Checked { body: good, rows, errors, bad_lines })
}

/// Why lines of a batch are kept in quarantine: what is wrong with the first one. All of it would be many times as long as the lines may be.
pub(super) fn reason_of(errors: &[LineError], bad_lines: usize) -> String {
    let first = errors.first().map(ToString::to_string).unwrap_or_default();
    match bad_lines {
        0 | 1 => first,
        more => format!("{first}; and {} more lines", more - 1),
    }
}

/// The lines of a batch that are no points, with the comments before them.
pub(super) fn bad_lines_of(body: &[u8], precision: Precision, bounds: LineBounds) -> Vec<u8> {
    let mut parser = Parser::bounded(body, precision, bounds);
    let mut point = Point::default();
    let (mut bad, mut start) = (Vec::new(), 0);
    while let Some(read) = parser.next(&mut point) {
        if read.is_err() {
            bad.extend_from_slice(&body[start..parser.place()]);
        }
        start = parser.place();
    }
    bad
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::access::{Grant, Names, Owner, Senders, TokenHash};

    #[test]
    fn bad_lines_are_told_and_left_out() {
        let body = b"m f=1\nm f=\nm f=\"a\nb\"\n# c\nm f=2".to_vec();
        let sender = Sender::free(Owner::Tokens);
        let checked = check(body, Precision::Nanoseconds, LineBounds::default(), &sender).unwrap_or_else(|_| panic!());
        assert_eq!((checked.rows, checked.bad_lines), (3, 1));
        assert_eq!(checked.body, b"m f=1\nm f=\"a\nb\"\nm f=2\n");
        assert_eq!((checked.errors[0].line, checked.errors[0].column), (2, 5));
    }

    #[test]
    fn a_measurement_that_the_sender_may_not_send_is_found_by_its_line() {
        let grant = Grant {
            name: "probes".to_owned(),
            token: TokenHash::of("t"),
            sources: Names::ALL,
            measurements: Names::new(vec!["q s".to_owned(), "cpu".to_owned()]),
            rows_per_s: None,
            bytes_per_s: None,
        };
        let sender = Arc::clone(&Senders::named(&[grant], &[])[0]);
        let check = |body: &str| check(body.into(), Precision::default(), LineBounds::default(), &sender);
        let good = check("q\\ s f=1\n\ncpu f=1\n# x\n");
        assert_eq!(good.map(|checked| checked.rows).unwrap_or(0), 2);
        let (line, said) = check("cpu f=1\nbad line\n\ncpu f=2\nq f=1\n").err().unwrap();
        assert!(line == 5 && said.contains("measurement \"q\" is none of sender \"probes\""), "{line} {said}");
    }

    #[test]
    fn bad_lines_are_found_again() {
        let bad = bad_lines_of(b"m f=1\nm f=\nm f=2\n# c\nm\nm f=3", Precision::Nanoseconds, LineBounds::default());
        assert_eq!(bad, b"m f=\n# c\nm\n");
    }

    #[test]
    fn a_source_always_has_the_same_lane() {
        let lanes: std::collections::BTreeSet<_> = (0..100).map(|source| lane_of(&source.to_string(), 4)).collect();
        assert_eq!(lanes.len(), 4);
        assert_eq!(lane_of("a", 1), 0);
        assert_eq!((lane_of("a", 7), lane_of("b", 5)), (4, 1), "it is stored with what waits");
    }
}
