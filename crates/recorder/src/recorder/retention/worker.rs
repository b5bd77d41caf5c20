//! The thread that deletes: its connection, its pace, its log. Main type: [`Worker`].

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::counted;
use super::gauges::Gauges;
use super::load::Load;
use super::right_time::{Ahead, RightTime};
use crate::database::{Database, DatabaseError, Session, SessionLimits};
use crate::recorder::clock::SharedClock;
use crate::recorder::config::RetentionConfig;
use crate::recorder::log;
use crate::recorder::meter::Meter;
use crate::recorder::stop::Stop;
use crate::recorder::writer::Backoff;
use crate::units::show_utc_ms;

/// How long deletions wait before they look again whether the recorder is near its load line.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// After this time near the load line, one small transaction is made all the same: a database without room would carry less.
const TRICKLE_EVERY: Duration = Duration::from_secs(10);
/// The readings of that transaction, and of the smallest.
pub(super) const ROWS_LEAST: u32 = 10;
/// The time that a transaction should take at most.
const STEP_MOST: Duration = Duration::from_millis(50);
/// Work is rested from once it has taken this long.
const WORK_LEAST: Duration = Duration::from_millis(5);
/// MySQL's refusal of a change without gap locks, where its log consists of statements.
pub(super) const NEEDS_GAP_LOCKS: &str = "1665";

/// What deletes old readings.
pub(super) struct Worker {
    /// `None` if readings are only counted that were retired earlier.
    pub(super) config: Option<RetentionConfig>,
    pub(super) database: Arc<dyn Database>,
    pub(super) limits: Arc<SessionLimits>,
    pub(super) recorders: BTreeSet<String>,
    pub(super) clock: SharedClock,
    pub(super) stop: Arc<Stop>,
    pub(super) meter: Arc<Meter>,
    pub(super) gauges: Arc<Gauges>,
    pub(super) load: Load,
    pub(super) state: State,
}

/// What the thread remembers.
#[derive(Default)]
pub(super) struct State {
    /// The last time that is known to be right; `None` until the database was asked.
    time: Option<RightTime>,
    /// The readings of the next transaction; 0 before the first.
    step_rows: u32,
    /// The time worked since the last rest.
    worked: Duration,
    /// Whether the session's deletions must lock gaps too.
    locks_gaps: bool,
    /// The last complaint about each measurement, or about the connection (an empty name).
    said: BTreeMap<String, String>,
    /// Tables that are known to have the index, and writers that are known to have a row; of the present connection.
    pub(super) indexed: HashSet<String>,
    pub(super) counted: BTreeSet<i64>,
    /// The writers of this recorder whose records come through the spool.
    pub(super) spooled: BTreeSet<i64>,
    /// The number of retired records whose commit was their acknowledgement, since the start.
    pub(super) unspooled: u64,
}

impl Worker {
    /// Works until it is told to stop.
    pub(super) fn run(mut self) {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(30), self.clock.day_ns() as u64);
        while !self.stop.is_asked() {
            let error = match self.connect().and_then(|mut session| self.work(&mut *session, &mut backoff)) {
                Ok(()) => return,
                Err(error) => error,
            };
            if matches!(&error, DatabaseError::Refused { code, .. } if code == NEEDS_GAP_LOCKS) {
                self.state.locks_gaps = true;
            } else if !self.stop.is_asked() {
                self.complain("", &error.to_string(), "", "old readings cannot be deleted now");
            }
            if self.stop.wait(backoff.wait()) {
                return;
            }
        }
    }

    fn connect(&mut self) -> Result<Box<dyn Session>, DatabaseError> {
        let mut session = self.database.connect_writer(&self.limits)?;
        for sql in self.database.dialect().beside_others().iter().filter(|_| !self.state.locks_gaps) {
            session.run(sql)?;
        }
        counted::ensure_tables(self.database.dialect(), &mut *session)?;
        self.state.indexed.clear();
        self.state.counted.clear();
        Ok(session)
    }

    /// Deletes what is old, again and again; returns when it is told to stop, or has nothing to do but count.
    fn work(&mut self, session: &mut dyn Session, backoff: &mut Backoff) -> Result<(), DatabaseError> {
        loop {
            let known_ns = self.count_all(session)?;
            let Some(config) = self.config.clone() else { return Ok(()) };
            if let Some(now_ns) = self.believed(session, &config, known_ns)? {
                self.pass(session, &config, now_ns)?;
            }
            backoff.reset();
            self.state.said.remove("");
            if self.stop.wait(config.every) {
                return Ok(());
            }
        }
    }

    /// Reads what was retired so far, by whomever; returns the time that is known to be right.
    fn count_all(&mut self, session: &mut dyn Session) -> Result<Option<i64>, DatabaseError> {
        let retired = counted::read(session, &self.recorders)?;
        let (spooled, others) = retired.totals();
        let unspooled = self.state.unspooled;
        self.meter.retired.set(spooled + unspooled);
        self.gauges.of_others.set(others.saturating_sub(unspooled));
        self.state.counted.extend(retired.rows.keys());
        self.state.spooled = retired.spooled;
        Ok(retired.known_ns)
    }

    /// Returns the time by the machine's clock; `None` if it is not to be believed.
    fn believed(
        &mut self,
        session: &mut dyn Session,
        config: &RetentionConfig,
        known_ns: Option<i64>,
    ) -> Result<Option<i64>, DatabaseError> {
        let (day_ns, now) = (self.clock.day_ns(), self.clock.now());
        let new = || RightTime::new(known_ns.unwrap_or(day_ns), now, config.jump, config.clock_until_ns);
        let time = self.state.time.get_or_insert_with(new);
        // Where several recorders delete, they know one time together.
        time.learn(known_ns.unwrap_or(i64::MIN), now);
        match time.believe(day_ns, now) {
            Ok(now_ns) => {
                let known_ns = time.known_ns();
                if self.gauges.is_held.get() > 0 {
                    log::info("the clock is believed again; old readings are deleted", &[]);
                }
                self.gauges.is_held.set(0);
                counted::store_clock(session, known_ns)?;
                Ok(Some(now_ns))
            }
            Err(ahead) => {
                if self.gauges.is_held.get() == 0 {
                    say_ahead(ahead, config.jump);
                }
                self.gauges.is_held.set(1);
                Ok(None)
            }
        }
    }

    /// Waits until the recorder is not near its load line; returns how many readings the next transaction may delete, or `None` when it is told to stop.
    pub(super) fn admitted(&mut self, config: &RetentionConfig) -> Option<u32> {
        if self.state.step_rows == 0 {
            self.state.step_rows = config.rows;
        }
        let mut waited = Duration::ZERO;
        while self.load.is_near() {
            self.gauges.yields.add(1);
            if waited >= TRICKLE_EVERY {
                return Some(ROWS_LEAST);
            }
            if self.stop.wait(LOOK_EVERY) {
                return None;
            }
            waited += LOOK_EVERY;
        }
        (!self.stop.is_asked()).then_some(self.state.step_rows)
    }

    /// Notes how long a transaction took that deleted `rows`, and makes the next one smaller or larger.
    pub(super) fn note_step(&mut self, rows: u32, took: Duration, config: &RetentionConfig) {
        self.gauges.step_times.add(took);
        let step_rows = &mut self.state.step_rows;
        if took > STEP_MOST {
            *step_rows = (*step_rows / 2).max(ROWS_LEAST);
        } else if rows >= *step_rows {
            *step_rows = (*step_rows + *step_rows / 4 + 1).min(config.rows);
        }
    }

    /// Rests after work, so that work takes no more than its share of time; returns false when it is told to stop.
    pub(super) fn rest(&mut self, worked: Duration, config: &RetentionConfig) -> bool {
        self.state.worked += worked;
        if self.state.worked < WORK_LEAST {
            return !self.stop.is_asked();
        }
        let share = f64::from(config.share_percent) / 100.0;
        let rest = self.state.worked.mul_f64((1.0 - share) / share);
        self.state.worked = Duration::ZERO;
        !self.stop.wait(rest)
    }

    /// Logs why nothing is deleted of a measurement, once until that changes. An empty remedy is left out.
    pub(super) fn complain(&mut self, measurement: &str, reason: &str, remedy: &str, event: &str) {
        if self.state.said.get(measurement).is_some_and(|said| said == reason) {
            return;
        }
        self.state.said.insert(measurement.to_owned(), reason.to_owned());
        let facts = [("measurement", measurement), ("reason", reason), ("remedy", remedy)];
        let facts: Vec<_> = facts.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        log::warning(event, &facts);
    }

    /// Notes that there is nothing to complain about a measurement any more.
    pub(super) fn is_well(&mut self, measurement: &str) {
        self.state.said.remove(measurement);
    }
}

fn say_ahead(ahead: Ahead, jump: Duration) {
    let [clock, expected] = [ahead.day_ns, ahead.expected_ns].map(show_utc_ms);
    let jump = crate::units::show_seconds(jump.as_secs_f64());
    let remedy = "set the clock; if it is right, because the recorder was off for so long, write retention.clock_until with a time after it and start the recorder again";
    log::error(
        "the clock has jumped ahead, so that new readings would seem old; none are deleted",
        &[("clock", &clock), ("expected", &expected), ("retention.jump", &jump), ("remedy", remedy)],
    );
}
