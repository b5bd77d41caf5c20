//! What every request goes through: it is checked line by line, made durable, and only then answered. Main type: [`Door`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::checking::{Checked, check};
use super::live::Live;
use crate::recorder::access::Sender;
use crate::recorder::admission::{Gate, Turn};
use crate::recorder::clock::{MachineClock, now_ns};
use crate::recorder::line::{LineBounds, LineError, Precision};
use crate::recorder::meter::Meter;
use crate::recorder::spool::{
    CommitterHandle, Entry, Offer, Placed, Refusal, Refused as RefusedRecord, SpoolError, Stored, lane_of,
    unspooled_number,
};
use crate::recorder::writer::{DirectAnswer, DirectHandle, DirectWait, message_number};

/// A request with more bytes is looked through on a thread of its own.
pub(super) const LONG_BYTES: usize = 256 << 10;
/// Memory is counted in pieces of this many bytes.
const PIECE_BYTES: u64 = 1024;
/// It is reserved in doublings, of at most so many at a time.
const AHEAD_BYTES_MAX: u64 = 4 << 20;

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
    /// The sender holds more of the quarantine than its share: a sentence.
    Closed(String),
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
    held: Option<OwnedSemaphorePermit>,
    bytes: u64,
    meter: Arc<Meter>,
}

impl Memory {
    fn new(held: OwnedSemaphorePermit, meter: &Arc<Meter>) -> Self {
        let bytes = held.num_permits() as u64 * PIECE_BYTES;
        meter.memory_bytes.add(bytes);
        Memory { held: Some(held), bytes, meter: Arc::clone(meter) }
    }

    /// How much it is.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn merge(&mut self, mut other: Memory) {
        if let (Some(own), Some(more)) = (&mut self.held, other.held.take()) {
            own.merge(more);
            self.bytes += std::mem::take(&mut other.bytes);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.meter.memory_bytes.subtract(self.bytes);
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
            Ok(Ok(held)) => Ok(Memory::new(held, &self.settings.meter)),
            _ => Err(self.no_memory()),
        }
    }

    /// Reserves more, so that it is `bytes` in all; does not wait, because what one request waits for another may hold.
    ///
    /// # Errors
    /// [`Refused::Full`].
    pub fn reserve_more(&self, memory: &mut Memory, bytes: u64) -> Result<(), Refused> {
        if self.has_more(memory, bytes, u64::MAX) { Ok(()) } else { Err(self.no_memory()) }
    }

    /// Reserves more for a request that arrives, so that it is `bytes` in all and never more than `announced`; waits for it a little. How long
    /// that was.
    ///
    /// # Errors
    /// [`Refused::Full`].
    pub async fn reserve_arriving(&self, memory: &mut Memory, bytes: u64, announced: u64) -> Result<Duration, Refused> {
        if self.has_more(memory, bytes, announced) {
            return Ok(Duration::ZERO);
        }
        let begun = Instant::now();
        memory.merge(self.reserve(bytes.saturating_sub(memory.bytes)).await?);
        Ok(begun.elapsed())
    }

    /// Whether it has so many bytes now. Asks in doublings, as far as `most`, so that a long request asks a few times only.
    fn has_more(&self, memory: &mut Memory, bytes: u64, most: u64) -> bool {
        let Some(more) = bytes.checked_sub(memory.bytes).filter(|more| *more > 0) else { return true };
        let ahead = memory.bytes.min(AHEAD_BYTES_MAX).min(most.saturating_sub(memory.bytes));
        [more.max(ahead), more].into_iter().any(|more| {
            let pieces = u32::try_from(more.div_ceil(PIECE_BYTES)).unwrap_or(u32::MAX);
            let held = Arc::clone(&self.memory).try_acquire_many_owned(pieces);
            held.map(|held| memory.merge(Memory::new(held, &self.settings.meter))).is_ok()
        })
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
            Err(Refused::Forbidden(..) | Refused::Closed(_)) => meter.refused_requests.add(1),
            Err(Refused::Unknown(_)) => {}
            Err(_) => meter.turned_away.add(1),
        }
    }

    /// Why nothing more is taken in from a sender, if the database refuses so much of it that it holds more of the quarantine than its share.
    pub fn why_closed(&self, sender: &Sender, source: &str) -> Option<String> {
        // Publishers of a stream cannot be told, and one of them must not keep the others' messages waiting.
        if sender.is_stream() { None } else { self.settings.spool.why_closed(sender.name(), source) }
    }

    /// Keeps lines in quarantine that are no points, where nobody can be told; comes back when they are durable. Those of a message
    /// with an id are kept once, however often it comes.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn quarantine(
        &self,
        (sender, source): (&Sender, Arc<str>),
        message_id: String,
        body: Vec<u8>,
        reason: String,
        rows: u32,
    ) -> Result<(), SpoolError> {
        let offer = Offer {
            lane: 0,
            source,
            sender: Arc::clone(sender.name()),
            message_id,
            received_ns: now_ns(),
            precision: Precision::default(),
            rows,
            body: Vec::new(),
            is_packed: false,
        };
        let refusal = Refusal { row: -1, rows, body, reason };
        let sequence = message_number(&offer).unwrap_or_else(|| unspooled_number(&MachineClock));
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
        if let Some(reason) = self.why_closed(&sender, &incoming.source) {
            return Err(Refused::Closed(reason));
        }
        let sent_bytes = body.len() as u64;
        let Checked { body, rows, errors, bad_lines } = look_through(body, precision, bounds, &sender).await?;
        if bad_lines > 0 && (rows == 0 || !keeps_good_lines) {
            return Err(Refused::Bad(errors, bad_lines));
        }
        let taken = Taken { rows, errors, bad_lines, is_duplicate: false };
        if rows == 0 {
            return Ok(Begun { taken, waits_for: None, sent: None });
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
            sender: Arc::clone(sender.name()),
            message_id: sender.own_id(&incoming.message_id),
            received_ns: incoming.received_ns,
            precision,
            rows,
            body,
            is_packed: false,
        };
        let sent = Some((Arc::clone(&self.settings.meter), Arc::clone(&offer.source), offer.body.len() as u64));
        match &self.settings.route {
            Route::Spool(spool, lanes) => {
                offer.lane = lane_of(&offer.source, *lanes);
                let is_greedy = self.settings.gate.is_greedy(&offer.source);
                match spool.append(offer, is_greedy).await {
                    Ok(Placed { stored, lane }) => {
                        if let Stored::New(sequence) = stored {
                            self.settings.meter.progress.note_entry(lane, sequence);
                        }
                        let taken = Taken { is_duplicate: stored == Stored::Duplicate, ..taken };
                        Ok(Begun { taken, waits_for: None, sent })
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
                Ok(Begun { taken, waits_for: Some(waits_for), sent })
            }
        }
    }
}

/// Looks at every line. Long work is done elsewhere, so that it does not keep the threads of the network from others.
async fn look_through(
    body: Vec<u8>,
    precision: Precision,
    bounds: LineBounds,
    sender: &Arc<Sender>,
) -> Result<Checked, Refused> {
    let checked = if body.len() > LONG_BYTES {
        let sender = Arc::clone(sender);
        let checked = tokio::task::spawn_blocking(move || check(body, precision, bounds, &sender)).await;
        checked.map_err(|_| Refused::Broken("the recorder is stopping".to_owned()))?
    } else {
        check(body, precision, bounds, sender)
    };
    checked.map_err(|(line, sentence)| Refused::Forbidden(Some(line), sentence))
}

/// A request that has its place in the order of its source.
#[derive(Debug)]
pub struct Begun {
    taken: Taken,
    waits_for: Option<DirectWait>,
    /// What counts how much a source has sent, the source, and bytes.
    sent: Option<(Arc<Meter>, Arc<str>, u64)>,
}

impl Begun {
    /// Comes back when it is durable.
    ///
    /// # Errors
    /// Why nothing of it was taken in.
    pub async fn finish(self) -> Result<Taken, Refused> {
        let taken = match self.waits_for {
            None => self.taken,
            Some(waits_for) => match waits_for.finish().await {
                DirectAnswer::Committed => self.taken,
                DirectAnswer::Duplicate => Taken { is_duplicate: true, ..self.taken },
                DirectAnswer::Unavailable(reason) => return Err(Refused::Full(reason, Duration::from_secs(2))),
                DirectAnswer::Unknown(reason) => return Err(Refused::Unknown(reason)),
            },
        };
        if let Some((meter, source, bytes)) = self.sent.filter(|_| !taken.is_duplicate) {
            meter.sources.note_sent(&source, bytes, u64::from(taken.rows));
        }
        Ok(taken)
    }
}
