//! A database with faults: SQLite, behind connections that are lost, answers that never come, and a process that ends and may forget what it has
//! committed. Main type: [`Failing`].
//!
//! Invariant: what the database says of its durability is true: it forgets no commit that is older than it says, and none before the position it calls durable.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use loadline_segments::segments::simulated::Told;

use super::clock::MadeClock;
use super::faults::Faults;
use crate::database::{Database, DatabaseError, LogPosition, Opens, sqlite};
use crate::random::Stream;
use crate::recorder::clock::Clock;
use crate::trial::DatabaseSettings;

/// The most calls of one turn: a turn that makes more never ends.
const CALLS_MAX: u64 = 20_000;
/// The time within which a commit may be forgotten by a database that says so.
pub const FORGETS_WITHIN: Duration = Duration::from_secs(1);

/// Codes of refusals that pass.
const PASSING: [&str; 8] =
    ["SQLITE_BUSY", "SQLITE_FULL", "55P03", "40001", "57P01", "1205", "1290", "something that nobody knows"];

/// An action in the middle of a call, while nobody holds a lock.
pub type Meanwhile = Box<dyn FnMut() + Send>;

/// The fault of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blow {
    None,
    /// The call is refused, for a while.
    Refused(&'static str),
    /// The connection is lost, before or after the request is done.
    Lost {
        is_done: bool,
    },
    /// The database's process ends.
    Crash {
        is_done: bool,
    },
    /// The recorder's process ends.
    Kill {
        is_done: bool,
    },
}

/// The state of a database that forgets commits when its process ends.
struct Forgetful {
    /// Whether the database tells how far its log has come.
    tells: bool,
    /// The copy of the database as it is on the disk.
    durable: PathBuf,
    written: u64,
    flushed: u64,
    /// When the first commit came that is not on the disk; `None` if all are.
    pending: Option<Instant>,
}

struct State {
    directory: PathBuf,
    files: u32,
    file: PathBuf,
    inner: Arc<dyn Database>,
    random: Stream,
    /// The number of calls in a thousand that fail.
    per_mille: u64,
    down_until: Option<Instant>,
    /// Whether the calling process has ended.
    is_dead: bool,
    /// Whether a process calls that does not end.
    is_spared: bool,
    generation: u64,
    /// The number of open transactions.
    open: u32,
    forgetful: Option<Forgetful>,
    meanwhile: Option<Meanwhile>,
    kill: Option<Meanwhile>,
    calls: u64,
    /// Whether a turn did not end.
    is_endless: bool,
    faults: Faults,
}

/// The state that a database shares with its connections and with the code that lets it fail.
#[derive(Clone)]
pub struct Failing {
    state: Arc<Mutex<State>>,
    pub(super) clock: Arc<MadeClock>,
}

fn open(path: &Path) -> Result<Arc<dyn Database>, Told> {
    let config =
        [("journal_mode", "memory"), ("synchronous", "off"), ("wal_autocheckpoint", "0"), ("busy_timeout", "0")];
    let settings = DatabaseSettings {
        name: "sqlite".to_owned(),
        path: Some(path.display().to_string()),
        config: config.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        ..DatabaseSettings::default()
    };
    let Opens::Sql(open) = &sqlite::SQLITE.opens else { return Err("SQLite speaks SQL".to_owned()) };
    open(&settings, None).map(Arc::from).map_err(|error| error.to_string())
}

impl Failing {
    /// Returns a database in a directory, with nothing in it yet.
    pub fn new(directory: &Path, clock: Arc<MadeClock>, random: Stream, forgets: Option<bool>) -> Result<Self, Told> {
        let file = directory.join("0.db");
        let inner = open(&file)?;
        let forgetful = forgets.map(|tells| Forgetful {
            tells,
            durable: directory.join("durable.db"),
            written: 0,
            flushed: 0,
            pending: None,
        });
        let state = State {
            directory: directory.to_owned(),
            files: 0,
            file,
            inner,
            random,
            per_mille: 0,
            down_until: None,
            is_dead: false,
            is_spared: false,
            generation: 0,
            open: 0,
            forgetful,
            meanwhile: None,
            kill: None,
            calls: 0,
            is_endless: false,
            faults: Faults::default(),
        };
        let failing = Failing { state: Arc::new(Mutex::new(state)), clock };
        failing.lock().flush()?;
        Ok(failing)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how many calls in a thousand fail from now on.
    pub fn set_trouble(&self, per_mille: u64) {
        self.lock().per_mille = per_mille;
    }

    /// Makes the database unreachable for a while.
    pub fn be_down_for(&self, time: Duration) {
        self.lock().down_until = Some(self.clock.now() + time);
    }

    /// Ends all faults: the database answers, keeps its commits, and nothing happens meanwhile.
    pub fn be_well(&self) -> Result<(), Told> {
        let mut state = self.lock();
        state.flush()?;
        (state.per_mille, state.down_until, state.meanwhile) = (0, None, None);
        Ok(())
    }

    /// Begins a calling process, which `kill` ends.
    pub fn begin(&self, kill: Meanwhile) {
        let mut state = self.lock();
        (state.is_dead, state.kill) = (false, Some(kill));
    }

    /// Notes that the calling process has ended: its connections are closed.
    pub fn end(&self) {
        let mut state = self.lock();
        (state.is_dead, state.kill, state.meanwhile) = (true, None, None);
        state.generation += 1;
        state.open = 0;
    }

    /// Says whether the process that calls from now on is one that no fault ends.
    pub fn spare(&self, is_spared: bool) {
        self.lock().is_spared = is_spared;
    }

    /// Returns whether a fault has ended the calling process.
    pub fn has_killed(&self) -> bool {
        self.lock().is_dead
    }

    /// Notes that a turn did not end, and ends it with the process.
    pub fn end_endless(&self) {
        let is_spared = {
            let mut state = self.lock();
            state.is_endless = true;
            state.is_spared
        };
        assert!(!is_spared, "a turn of the second recorder did not come to an end");
        self.strike(Blow::Kill { is_done: false });
    }

    /// Returns whether no transaction is open.
    pub fn is_free(&self) -> bool {
        self.lock().open == 0
    }

    /// Returns an error if a turn did not end.
    pub fn came_to_an_end(&self) -> Result<(), Told> {
        match self.lock().is_endless {
            true => Err("a turn of a writer did not come to an end".to_owned()),
            false => Ok(()),
        }
    }

    /// Sets the action that happens in the middle of calls, until the next one is set.
    pub fn meanwhile(&self, act: Option<Meanwhile>) {
        let mut state = self.lock();
        (state.meanwhile, state.calls) = (act, 0);
    }

    /// Ends the database's process; it comes back a little later.
    pub fn crash(&self) -> Result<(), Told> {
        let now = self.clock.now();
        self.lock().crash(now)
    }

    /// Changes the counters.
    pub fn count(&self, what: impl FnOnce(&mut Faults)) {
        what(&mut self.lock().faults);
    }

    /// Returns the counters.
    pub fn faults(&self) -> Faults {
        self.lock().faults
    }

    /// Returns a connection of somebody else; `None` while a transaction is open.
    pub fn other(&self) -> Result<Option<rusqlite::Connection>, Told> {
        let state = self.lock();
        if state.open > 0 {
            return Ok(None);
        }
        rusqlite::Connection::open(&state.file).map(Some).map_err(|error| error.to_string())
    }

    /// Lets somebody else change the database for good; returns whether that could be done now.
    pub fn change(&self, sql: &str) -> bool {
        let is_done = self.other().ok().flatten().is_some_and(|other| other.execute_batch(sql).is_ok());
        is_done && self.lock().flush().is_ok()
    }

    /// Begins a call: time passes, things happen, and then its fault is chosen.
    ///
    /// # Errors
    /// Returns an error if there is no process to call any more.
    pub(super) fn call(&self, generation: u64) -> Result<Blow, DatabaseError> {
        let (takes, meanwhile) = {
            let mut state = self.lock();
            state.calls += 1;
            if state.calls > CALLS_MAX {
                drop(state);
                self.end_endless();
                return Err(DatabaseError::Lost("too many calls".to_owned()));
            }
            state.check(generation, self.clock.now())?;
            let micros = 20 + state.random.below(400);
            let is_late = state.per_mille > 0 && state.random.below(200) == 0;
            state.faults.delays += u64::from(is_late);
            let takes =
                if is_late { Duration::from_millis(state.random.below(9_000)) } else { Duration::from_micros(micros) };
            let meanwhile = if state.open == 0 { state.meanwhile.take() } else { None };
            (takes, meanwhile)
        };
        self.clock.pass(takes);
        if let Some(mut meanwhile) = meanwhile {
            meanwhile();
            self.lock().meanwhile = Some(meanwhile);
        }
        let mut state = self.lock();
        state.check(generation, self.clock.now())?;
        state.flush_if_due(self.clock.now()).map_err(DatabaseError::Lost)?;
        Ok(state.blow())
    }

    /// Does what a fault does, besides losing the connection.
    pub(super) fn strike(&self, blow: Blow) {
        match blow {
            Blow::None => {}
            Blow::Refused(_) => self.lock().faults.refusals += 1,
            Blow::Lost { .. } => self.lock().faults.losses += 1,
            Blow::Crash { .. } => {
                let crashed = self.crash();
                assert!(crashed.is_ok(), "{crashed:?}");
            }
            Blow::Kill { .. } => {
                let kill = {
                    let mut state = self.lock();
                    state.faults.kills += 1;
                    state.is_dead = true;
                    state.kill.take()
                };
                if let Some(mut kill) = kill {
                    kill();
                }
            }
        }
    }

    pub(super) fn note_transaction(&self, is_open: bool) {
        let mut state = self.lock();
        state.open = if is_open { state.open + 1 } else { state.open.saturating_sub(1) };
    }

    /// Returns the database without faults, and the generation that its connections belong to.
    pub(super) fn inner(&self) -> (Arc<dyn Database>, u64) {
        let state = self.lock();
        (Arc::clone(&state.inner), state.generation)
    }

    /// Returns how far the database's log has come, if it tells that.
    pub(super) fn position(&self) -> Option<LogPosition> {
        let position = |forgetful: &Forgetful| LogPosition { written: forgetful.written, durable: forgetful.flushed };
        self.lock().forgetful.as_ref().filter(|forgetful| forgetful.tells).map(position)
    }

    /// Returns whether the database may forget its latest commits.
    pub(super) fn forgets(&self) -> bool {
        self.lock().forgetful.is_some()
    }

    /// Notes that something may be committed now.
    pub(super) fn note_commit(&self) {
        let now = self.clock.now();
        if let Some(forgetful) = &mut self.lock().forgetful {
            forgetful.written += 1;
            forgetful.pending.get_or_insert(now);
        }
    }
}

impl State {
    fn check(&self, generation: u64, now: Instant) -> Result<(), DatabaseError> {
        if self.is_dead || generation != self.generation {
            return Err(DatabaseError::Lost("the connection is gone".to_owned()));
        }
        if self.down_until.is_some_and(|until| now < until) {
            return Err(DatabaseError::Unavailable("nobody listens".to_owned()));
        }
        Ok(())
    }

    fn blow(&mut self) -> Blow {
        if self.random.below(1_000) >= self.per_mille {
            return Blow::None;
        }
        let is_done = self.random.below(2) == 0;
        match self.random.below(20) {
            0..9 => Blow::Refused(PASSING[self.random.below(PASSING.len() as u64) as usize]),
            9..16 => Blow::Lost { is_done },
            16..18 => Blow::Crash { is_done },
            _ if self.is_spared => Blow::Lost { is_done },
            _ => Blow::Kill { is_done },
        }
    }

    fn crash(&mut self, now: Instant) -> Result<(), Told> {
        self.faults.crashes += 1;
        let forgets = self.random.below(100) < 70;
        let (mut from, mut is_forgotten) = (self.file.clone(), false);
        if let Some(forgetful) = &mut self.forgetful {
            let is_young = |since: Instant| now.saturating_duration_since(since) < FORGETS_WITHIN;
            if forgets && forgetful.pending.is_some_and(is_young) {
                (from, is_forgotten) = (forgetful.durable.clone(), true);
                forgetful.written = forgetful.flushed;
                forgetful.pending = None;
            }
        }
        self.faults.forgotten += u64::from(is_forgotten);
        self.files += 1;
        let next = self.directory.join(format!("{}.db", self.files));
        std::fs::copy(&from, &next).map_err(|error| error.to_string())?;
        self.inner = open(&next)?;
        let before = std::mem::replace(&mut self.file, next);
        std::fs::remove_file(before).map_err(|error| error.to_string())?;
        self.generation += 1;
        self.open = 0;
        self.down_until = Some(now + Duration::from_millis(self.random.below(3_000)));
        if self.forgetful.is_some() { self.flush() } else { Ok(()) }
    }

    /// Brings everything that is committed to the disk.
    fn flush(&mut self) -> Result<(), Told> {
        let Some(forgetful) = &mut self.forgetful else { return Ok(()) };
        std::fs::copy(&self.file, &forgetful.durable).map_err(|error| error.to_string())?;
        (forgetful.flushed, forgetful.pending) = (forgetful.written, None);
        Ok(())
    }

    fn flush_if_due(&mut self, now: Instant) -> Result<(), Told> {
        let half = FORGETS_WITHIN / 2;
        let pending = self.forgetful.as_ref().and_then(|forgetful| forgetful.pending);
        let is_due = pending.is_some_and(|since| now.saturating_duration_since(since) > half);
        if is_due && self.open == 0 { self.flush() } else { Ok(()) }
    }
}
