//! The path of every request: its lines are checked, it is made durable, and only then it is answered. Main type: [`Door`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::checking::{Checked, check, reason_of};
use super::incoming::{Incoming, Refused};
use super::live::Live;
use super::publisher::Publisher;
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

/// A request with more bytes than this is parsed on a thread of its own.
pub(super) const LONG_BYTES: usize = 256 << 10;
/// Memory is counted in pieces of this many bytes.
const PIECE_BYTES: u64 = 1024;
/// A growing reservation doubles, by at most this many bytes at a time.
const AHEAD_BYTES_MAX: u64 = 4 << 20;

/// The part of a request that was made durable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// Number of points.
    pub rows: u32,
    /// The errors of the lines that were left out; only the first ones.
    pub errors: Vec<LineError>,
    /// Number of lines that were left out.
    pub bad_lines: usize,
    /// True if the same message had been stored before.
    pub is_duplicate: bool,
}

/// The place where requests are made durable.
#[derive(Clone)]
pub enum Route {
    /// In the spool, with this number of lanes.
    Spool(CommitterHandle, u32),
    /// Directly in the database, with one handle per lane.
    Direct(Vec<DirectHandle>),
    /// In the stream that recorders share, from which any of them stores them.
    Stream(Arc<Publisher>),
}

/// The settings of a [`Door`].
pub struct DoorSettings {
    /// The place where requests are made durable.
    pub route: Route,
    /// The spool that holds the quarantine.
    pub spool: CommitterHandle,
    /// The counters.
    pub meter: Arc<Meter>,
    /// The gate that admits requests.
    pub gate: Arc<Gate>,
    /// The most bytes that all requests may hold in memory.
    pub memory_bytes: u64,
    /// True if the good lines of a batch that also has bad ones are stored.
    pub keeps_good_lines: bool,
    /// The settings that can change at run time, such as the bounds of a line.
    pub live: Arc<Live>,
    /// How long a request may wait for the database.
    pub patience: Duration,
}

/// The path of every request into the spool or the database.
pub struct Door {
    settings: DoorSettings,
    memory: Arc<Semaphore>,
}

/// Memory that a request has reserved; released on drop.
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

    /// Returns the reserved bytes.
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
    /// Creates an open door.
    pub fn new(settings: DoorSettings) -> Self {
        let pieces =
            usize::try_from(settings.memory_bytes / PIECE_BYTES).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Door { settings, memory: Arc::new(Semaphore::new(pieces)) }
    }

    /// Reserves memory for a request of this many bytes; waits up to one second for it.
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

    /// Grows the reservation to `bytes` in all. Does not wait, because another request may hold what this one waits for.
    ///
    /// # Errors
    /// [`Refused::Full`].
    pub fn reserve_more(&self, memory: &mut Memory, bytes: u64) -> Result<(), Refused> {
        if self.has_more(memory, bytes, u64::MAX) { Ok(()) } else { Err(self.no_memory()) }
    }

    /// Grows the reservation of a request that is still arriving to `bytes` in all, never beyond `announced`. Waits for it for a short time, and
    /// returns how long that was.
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

    /// Tries to grow the reservation to `bytes` without waiting. It grows by doubling, up to `most`, so that a long request reserves only a few times.
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
    /// The reason why nothing of it was stored.
    pub async fn take(&self, incoming: Incoming) -> Result<Taken, Refused> {
        let received = incoming.received;
        let outcome = self.try_to_take(incoming).await;
        self.count(&outcome, received);
        outcome
    }

    /// Counts the outcome of a request that arrived at `received`.
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

    /// Returns why nothing more is accepted from a sender whose refused records fill more than its share of the quarantine; `None` if it may send.
    pub fn why_closed(&self, sender: &Sender, source: &str) -> Option<String> {
        // Publishers of a stream cannot be told, and one of them must not keep the others' messages waiting.
        if sender.is_stream() { None } else { self.settings.spool.why_closed(sender.name(), source) }
    }

    /// Puts lines that are not points into quarantine, for senders that cannot be told; returns once they are durable. The lines of a message
    /// with an id are kept once, however often it arrives.
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

    /// Takes a request as far as its place in the order of its source: a request that begins later is stored later.
    ///
    /// # Errors
    /// The reason why nothing of it was stored.
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
            Route::Stream(publisher) => {
                let published = publisher.publish(&offer).await;
                let published = published.inspect_err(|_| sender.give_back(rows, sent_bytes));
                published.map(|is_duplicate| Begun { taken: Taken { is_duplicate, ..taken }, waits_for: None, sent })
            }
            Route::Direct(lanes) => {
                let lane = lane_of(&offer.source, lanes.len() as u32);
                let waits_for = lanes[lane as usize].begin(offer, self.settings.patience).await;
                Ok(Begun { taken, waits_for: Some(waits_for), sent })
            }
        }
    }
}

/// A message of a part of a shared stream.
pub struct PartMessage {
    /// The message.
    pub incoming: Incoming,
    /// Its number in the stream.
    pub number: i64,
}

impl Door {
    /// Gives a message of a part its place behind the earlier ones of the part. What is not a point of it is durable in quarantine before. Waits while
    /// there is no room.
    ///
    /// # Errors
    /// The reason why nothing of it was stored; no later message of the part may be given then.
    pub async fn begin_message(&self, message: PartMessage, lane: &DirectHandle) -> Result<Begun, Refused> {
        let PartMessage { incoming: Incoming { sender, source, message_id, precision, body, received_ns, .. }, number } =
            message;
        let (sent_bytes, original) = (body.len() as u64, body.clone());
        let Checked { body, rows, errors, bad_lines } =
            look_through(body, precision, self.settings.live.line_bounds(), &sender).await?;
        let is_kept = bad_lines == 0 || self.settings.keeps_good_lines;
        if bad_lines > 0 {
            let reason = reason_of(&errors, bad_lines);
            let reason =
                if is_kept && rows > 0 { format!("the message's other lines are stored; {reason}") } else { reason };
            let (source, id) = (Arc::clone(&source), message_id.clone());
            let kept = self.quarantine((&sender, source), id, original, reason, bad_lines as u32).await;
            kept.map_err(|error| Refused::Broken(error.to_string()))?;
        }
        let (body, rows) = if is_kept { (body, rows) } else { (Vec::new(), 0) };
        let offer = Offer {
            lane: 0,
            source: Arc::clone(&source),
            sender: Arc::clone(sender.name()),
            message_id: sender.own_id(&message_id),
            received_ns,
            precision,
            rows,
            body,
            is_packed: false,
        };
        let waits_for = lane.begin_message(offer, self.settings.patience, number).await;
        let taken = Taken { rows, errors, bad_lines, is_duplicate: false };
        let sent = Some((Arc::clone(&self.settings.meter), source, sent_bytes));
        Ok(Begun { taken, waits_for: Some(waits_for), sent })
    }
}

/// Parses every line. A long body is parsed on another thread, so that it does not block the network threads.
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
    /// The meter of bytes per source, the source, and the bytes of this request.
    sent: Option<(Arc<Meter>, Arc<str>, u64)>,
}

impl Begun {
    /// Waits until the request is durable.
    ///
    /// # Errors
    /// The reason why nothing of it was stored.
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
