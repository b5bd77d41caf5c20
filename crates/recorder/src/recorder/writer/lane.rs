//! A writer with one connection. Main type: [`Lane`].
//!
//! Invariant: an entry leaves the spool, or is answered, only when each of its rows is committed or in quarantine.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ahead::{Ahead, Preparing};
use super::backoff::Backoff;
use super::batch::BATCH_BYTES;
use super::bind::Binder;
use super::feed::{Direct, Feed, take, wait};
use super::identity::{Ends, Identities};
use super::kept::Kept;
use super::leave::{Found, LaneEnd, Leave, ended_by};
use super::ledger::writer_of;
use super::refusal::{Meaning, meaning};
use super::registry::Registry;
use super::store::{Connection, Context, Ready};
use super::turns::{Turns, Waiting};
use crate::database::{Database, DatabaseError, SessionLimits};
use crate::recorder::clock::SharedClock;
use crate::recorder::config::{SchemaConfig, WriterConfig};
use crate::recorder::hold::Hold;
use crate::recorder::log;
use crate::recorder::meter::Meter;
use crate::recorder::pace::Pace;
use crate::recorder::pulse::Pulse;
use crate::recorder::quote::quoted;
use crate::recorder::spool::{CommitterHandle, IdClock, LaneNews, LaneOpening, Reader, SpoolError};
use crate::recorder::stop::Stop;

/// How long an idle lane waits before it looks for work again.
pub(super) const IDLE: Duration = Duration::from_millis(200);
/// How often ids of messages in the database are forgotten.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// The settings and the shared parts of a lane.
#[derive(Clone)]
pub struct LaneSettings {
    /// The lane's number.
    pub lane: u32,
    /// The opening that the lane shows to the ledger.
    pub opening: LaneOpening,
    /// The configuration's `[writer]`.
    pub writer: WriterConfig,
    /// The configuration's `[schema]`.
    pub schema: SchemaConfig,
    /// How long ids of messages are remembered.
    pub remember: Duration,
    /// The database that the lane writes.
    pub database: Arc<dyn Database>,
    /// The tables of the database.
    pub registry: Arc<Registry>,
    /// The handle to the thread that writes the spool.
    pub spool: CommitterHandle,
    /// The reader of the spool.
    pub reader: Reader,
    /// The pace at which the lane may write.
    pub pace: Arc<dyn Pace>,
    /// The counters.
    pub meter: Arc<Meter>,
    /// The sign of life of the lane.
    pub pulse: Arc<Pulse>,
    /// The signal to end.
    pub stop: Arc<Stop>,
    /// The clock that the lane uses.
    pub clock: SharedClock,
    /// Where the lane prepares its next batch.
    pub preparing: Preparing,
    /// The right to write a part of a shared stream, if the lane is fed by one.
    pub hold: Option<Arc<Hold>>,
}

/// A writer with one connection.
pub struct Lane {
    pub(super) settings: LaneSettings,
    /// The limits on how long the lane's sessions wait for the server.
    pub(super) limits: Arc<SessionLimits>,
    connection: Option<Connection>,
    /// Whether the lane's entries come from the spool.
    is_spooled: bool,
    /// If they do not, the number of the first record that was not noted as committed yet; `None` before the first connection.
    unspooled_from: Option<i64>,
    pub(super) identities: Identities,
    binder: Binder,
    /// The next batch, as far as it was prepared.
    pub(super) ahead: Ahead,
    ends: Ends,
    pub(super) backoff: Backoff,
    ends_written: Instant,
    /// When ids of messages were forgotten last.
    messages_forgotten: Option<Instant>,
    /// The clock by which the ids in the database age; `None` until it was read there.
    pub(super) id_clock: Option<IdClock>,
    /// The time until which the lane goes on trying; `None` while there is no hurry.
    pub(super) until: Option<Instant>,
    pub(super) was_told: Option<String>,
    /// How long entries are kept whose commits the database may forget; `None` if it must not forget any.
    may_keep: Option<Duration>,
    /// The same for the present connection; `None` if its commits last.
    pub(super) keep_now: Option<Duration>,
    /// Entries that are committed and kept.
    pub(super) kept: Kept,
    /// Whether the connection is a new one since the last look.
    pub(super) is_new_connection: bool,
    /// The ledger's sequence when it was last read or moved.
    pub(super) written: i64,
    /// News from the ledger that has not been dealt with yet.
    found: Option<Found>,
    /// Whether rows were refused the last time, so that the next ones may be, too.
    pub(super) expects_refusals: bool,
    /// Whether a transaction is open that waits for its refused rows to be in quarantine.
    pub(super) has_open: bool,
    /// Rows that were bound and refused by the last try, until they are searched for bad ones.
    pub(super) refused: Option<(Range<usize>, Ready)>,
    /// How far the lane had come in a ledger row that now belongs to another, until it is asked for or something else is committed.
    pub(super) came_to: Option<i64>,
    /// The entry up to which the spool has been settled, and the one up to which the ledger had moved by then.
    pub(super) settled: i64,
    pub(super) settled_written: i64,
    /// How often the database has refused records that wait apart, since it last took some.
    pub(super) refusals: u32,
    /// The code of a lasting refusal of records that wait apart, which is put down to a record.
    pub(super) suspected: Option<String>,
    /// How a lane of greedy sources takes its turns.
    pub(super) turns: Turns,
}

impl Lane {
    /// Returns a lane that is not connected yet.
    pub fn new(settings: LaneSettings) -> Self {
        let (schema, now) = (settings.schema, settings.clock.now());
        let binder = Binder::new(schema.new_columns, schema.columns_max);
        Lane {
            limits: Arc::new(limits(&settings)),
            connection: None,
            is_spooled: false,
            unspooled_from: None,
            identities: Identities::new(schema.identities_max),
            ahead: Ahead::new(settings.preparing, binder.like(), Arc::clone(&settings.meter)),
            binder,
            ends: Ends::default(),
            backoff: Backoff::new(Duration::from_millis(20), Duration::from_secs(5), settings.clock.day_ns() as u64),
            ends_written: now,
            messages_forgotten: None,
            id_clock: None,
            until: None,
            was_told: None,
            may_keep: None,
            keep_now: None,
            kept: Kept::new(Arc::clone(&settings.meter), now),
            is_new_connection: false,
            written: 0,
            found: None,
            came_to: None,
            expects_refusals: false,
            has_open: false,
            refused: None,
            settled: 0,
            settled_written: 0,
            refusals: 0,
            suspected: None,
            turns: Turns::default(),
            settings,
        }
    }

    /// Writes what the feed gives until the lane is told to stop.
    pub fn run(mut self, mut feed: Feed) -> LaneEnd {
        let ended = match &mut feed {
            Feed::Spool => {
                self.feed_from_spool();
                self.run_spooled()
            }
            Feed::Direct(receiver, runtime) => self.run_direct(receiver, runtime),
        };
        self.disconnect();
        LaneEnd::of(ended)
    }

    /// Takes the lane's entries from the spool from here on.
    pub(super) fn feed_from_spool(&mut self) {
        self.is_spooled = true;
        self.may_keep = self.settings.writer.keep;
    }

    fn run_direct(
        &mut self,
        receiver: &mut tokio::sync::mpsc::Receiver<Direct>,
        runtime: &tokio::runtime::Handle,
    ) -> Result<LaneEnd, Leave> {
        let mut waiting = if self.is_of_part() { Waiting::in_order() } else { Waiting::default() };
        self.connect_when_idle()?;
        loop {
            self.settings.pulse.wait_for(IDLE);
            if self.settings.stop.is_over() {
                return Ok(LaneEnd::Stopped);
            }
            let is_closed = waiting.is_empty() && wait(receiver, &mut waiting, runtime, IDLE);
            if let Some(end) = self.turn_directly(receiver, &mut waiting, is_closed)? {
                return Ok(end);
            }
        }
    }

    /// Writes the next of the waiting offers; returns how the lane has ended, if no more can come.
    pub(super) fn turn_directly(
        &mut self,
        receiver: &mut tokio::sync::mpsc::Receiver<Direct>,
        waiting: &mut Waiting,
        is_closed: bool,
    ) -> Result<Option<LaneEnd>, Leave> {
        if is_closed {
            self.write_ends_if_due(true)?;
            return Ok(Some(LaneEnd::Drained));
        }
        if waiting.is_empty() {
            self.connect_when_idle()?;
        } else {
            let directs = take(receiver, waiting, self.batch_rows(), BATCH_BYTES);
            if self.is_of_part() { self.store_messages(directs)? } else { self.store_direct(directs)? }
        }
        self.write_ends_if_due(false)?;
        self.forget_messages_if_due()?;
        Ok(None)
    }

    /// Connects while nothing is to be written.
    fn connect_when_idle(&mut self) -> Result<(), Leave> {
        if self.is_of_part() {
            return self.open_part();
        }
        self.connect_if_idle();
        Ok(())
    }

    /// Connects while nothing is to be written, so that the recorder's state shows that it is ready.
    fn connect_if_idle(&mut self) {
        let (lane, progress) = (self.settings.lane, Arc::clone(&self.settings.meter));
        let has_failed = progress.progress.has_failed(lane);
        if self.connection.is_none() || has_failed {
            // If the database cannot be reached now, it is tried again, and reported, when something is to be written. If the last try failed and
            // nobody sends anything, a try without records finds out whether the next one would.
            let tried =
                self.with_connection(|connection, _| if has_failed { connection.probe_without_rows() } else { Ok(()) });
            if tried.is_ok() {
                progress.progress.note_success(lane);
            }
        }
    }

    pub(super) fn is_spooled(&self) -> bool {
        self.is_spooled
    }

    /// Notes the numbers of the records that were committed since this was called last.
    pub(super) fn note_unspooled(&mut self) {
        let Some(next) = self.connection.as_ref().map(|connection| connection.ledger.next_record()) else { return };
        let from = self.unspooled_from.replace(next).filter(|from| writer_of(*from) == writer_of(next));
        self.settings.meter.unspooled.add(from.unwrap_or(next)..next);
    }

    /// Closes the connection; the next one reads the ledger again.
    pub(super) fn disconnect(&mut self) {
        if self.connection.take().is_some() {
            self.settings.meter.lanes_connected.subtract(1);
        }
    }

    /// Closes the connection and forgets everything learned from it: the next one reads the tables, the catalogue and the identities anew.
    pub(super) fn forget_connection(&mut self) {
        self.disconnect();
        self.identities.clear();
        // The next connection finds in the database the ends that are not written yet.
        self.ends = Ends::default();
    }

    /// Returns whether there is a connection.
    pub(super) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Connects if necessary, however long it takes, and returns how far the lane has come. News that must be dealt with first are returned once, as [`Leave::Found`].
    pub(super) fn connected(&mut self) -> Result<i64, Leave> {
        loop {
            self.leave_what_was_found()?;
            if let Some(sequence) = self.came_to.take() {
                return Ok(sequence);
            }
            match self.with_connection(|connection, _| Ok(connection.ledger.sequence)) {
                Ok(sequence) => return Ok(sequence),
                Err(error) => self.wait_out(&error)?,
            }
        }
    }

    /// Calls a function with the connection, which is opened if there is none, and closed if its state is unknown afterwards.
    pub(super) fn with_connection<T>(
        &mut self,
        work: impl FnOnce(&mut Connection, &mut Context<'_>) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let settings = &self.settings;
        // For looking up names, and for databases without limits of their own. A database that has limits says more.
        settings.pulse.wait_for(self.limits.change());
        let mut context = Context {
            database: &*settings.database,
            limits: &self.limits,
            registry: &settings.registry,
            opening: &settings.opening,
            is_spooled: self.is_spooled,
            lane: settings.lane,
            rows_max: settings.writer.batch as usize,
            keep: self.may_keep,
            suspected: self.suspected.as_deref(),
            clock: &settings.clock,
            identities: &mut self.identities,
            binder: &mut self.binder,
            ends: &mut self.ends,
            reader: &settings.reader,
            ahead: &mut self.ahead,
        };
        if self.connection.is_none() {
            if settings.hold.as_ref().is_some_and(|hold| !hold.is_valid()) {
                // A new session would end that of the recorder that has the part now.
                return Err(DatabaseError::Unavailable("the part belongs to another recorder".to_owned()));
            }
            let mut connection = Connection::open(&mut context)?;
            self.keep_now = connection.terms.keep;
            self.is_new_connection = true;
            let has_forgotten = connection.ledger.sequence < self.written;
            self.written = connection.ledger.sequence;
            let (sequence, news) = (self.written, connection.news.take());
            self.found = (has_forgotten || news.is_some()).then_some(Found { sequence, has_forgotten, news });
            settings.meter.note_terms(&connection.terms);
            self.unspooled_from.get_or_insert(connection.ledger.next_record());
            self.connection = Some(connection);
            settings.meter.connections.add(1);
            settings.meter.lanes_connected.add(1);
        }
        if self.found.is_some() {
            // Nothing is written before the caller knows of it.
            return Err(DatabaseError::refused("found", "the ledger is not where it was"));
        }
        let Some(connection) = &mut self.connection else {
            return Err(DatabaseError::Unavailable("there is no connection".to_owned()));
        };
        let outcome = work(connection, &mut context);
        settings.pulse.beat();
        self.written = connection.ledger.sequence;
        let is_lost = |error: &DatabaseError| matches!(meaning(error), Meaning::Lost | Meaning::Ledger);
        if outcome.as_ref().is_err_and(is_lost) {
            self.limits.note_lost();
            // The database may have forgotten some of what was learned from it.
            self.forget_connection();
        }
        outcome
    }

    /// Deals with news from the ledger that nobody knows of yet. Returns them as an error if the caller must handle them, and true if the batch can go on.
    fn leave_what_was_found(&mut self) -> Result<bool, Leave> {
        let Some(found) = self.found.take() else { return Ok(false) };
        match found.news {
            Some(news) if !self.is_spooled && !found.has_forgotten => {
                self.note_directly(&news)?;
                Ok(true)
            }
            _ => Err(Leave::Found(found)),
        }
    }

    /// Makes news about the lane's opening durable in the spool.
    pub(super) fn note(&mut self, news: &LaneNews) -> Result<(), Leave> {
        if self.is_of_part() {
            return self.note_part(news);
        }
        loop {
            match self.settings.spool.note(self.settings.lane, news.clone()) {
                Err(SpoolError::Full(reason)) => {
                    let waited = self.wait_out(&DatabaseError::refused("SQLITE_FULL", reason));
                    if waited.is_err() {
                        // The next connection finds the same.
                        self.disconnect();
                    }
                    waited?;
                }
                opening => {
                    self.settings.opening = opening?;
                    return Ok(());
                }
            }
        }
    }

    /// Waits before the next try.
    pub(super) fn wait_out(&mut self, error: &DatabaseError) -> Result<(), Leave> {
        if self.leave_what_was_found()? {
            return Ok(());
        }
        self.check_hold()?;
        self.settings.meter.retries.add(1);
        let reason = quoted(&error.to_string()).into_owned();
        self.settings.meter.progress.note_failed(self.settings.lane, &reason);
        ended_by(error)?;
        if self.was_told.as_ref() != Some(&reason) {
            log::warning("waiting for the database", &[("reason", &reason)]);
            self.was_told = Some(reason.clone());
        }
        if self.is_apart() && self.settings.stop.is_asked() {
            // The next start goes on with the batch.
            return Err(Leave::Stopped);
        }
        let wait = self.backoff.wait();
        self.settings.pulse.wait_for(wait);
        if self.until.is_some_and(|until| self.settings.clock.now() + wait >= until) {
            return Err(Leave::GaveUp(reason));
        }
        if self.settings.stop.wait(wait) {
            return Err(Leave::Stopped);
        }
        Ok(())
    }

    /// Brings the ends of measurements up to date: all of them at the end; otherwise, when it is time, as many as do not keep
    /// rows waiting for long. There are never more left than the cache of identities may hold.
    pub(super) fn write_ends_if_due(&mut self, now: bool) -> Result<(), Leave> {
        const LONG: Duration = Duration::from_millis(250);
        let clock = SharedClock::clone(&self.settings.clock);
        let (every, begun) = (self.settings.schema.ends_every, clock.now());
        if self.ends.is_empty() || self.connection.is_none() || (!now && clock.since(self.ends_written) < every) {
            return Ok(());
        }
        loop {
            let mut ends = std::mem::take(&mut self.ends);
            let outcome = self.with_connection(|connection, _| connection.write_ends(&mut ends));
            if self.connection.is_some() {
                std::mem::swap(&mut self.ends, &mut ends);
                self.ends.merge(&ends.into_times());
            }
            outcome.as_ref().err().map_or(Ok(()), ended_by)?;
            let is_enough =
                !now && clock.since(begun) > LONG && self.ends.len() <= self.settings.schema.identities_max as usize;
            if outcome.is_err() || self.ends.is_empty() || is_enough {
                break;
            }
        }
        self.ends_written = clock.now();
        Ok(())
    }

    fn forget_messages_if_due(&mut self) -> Result<(), Leave> {
        let is_recent = |last| self.settings.clock.since(last) < FORGET_EVERY;
        if self.connection.is_none() || self.messages_forgotten.is_some_and(is_recent) {
            return Ok(());
        }
        // Ids that are not forgotten now are forgotten the next time.
        let forgotten = self.forget_messages();
        self.messages_forgotten = Some(self.settings.clock.now());
        forgotten.as_ref().err().map_or(Ok(()), ended_by)
    }
}

/// Returns the limits of a lane's sessions; no other sessions have their name.
fn limits(settings: &LaneSettings) -> SessionLimits {
    let name = match &settings.hold {
        // The same in every recorder: a new holder's session ends that of the holder before, with its locks.
        Some(hold) => format!("loadline-part-{}-{}", settings.opening.recorder, hold.part()),
        None => format!("loadline-{:x}-{:x}-{}", std::process::id(), settings.clock.day_ns(), settings.lane),
    };
    let (stop, pulse) = (Arc::clone(&settings.stop), Arc::clone(&settings.pulse));
    let limits = SessionLimits::new(&name, settings.writer.statement_timeout, Box::new(move || stop.over_at()));
    limits.telling(Box::new(move |at_most| pulse.wait_for(at_most)))
}
