//! What befalls a database: SQLite, behind connections that are lost, answers that never come, and a process that ends and may forget what it has
//! committed. Main type: [`Failing`].
//!
//! Invariant: what is told of its durability is so: it forgets no commit that is older than it says, and none in front of what it calls durable.

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

/// Calls of one turn, at most: whoever makes more never comes to an end.
const CALLS_MAX: u64 = 20_000;
/// How long a commit may be forgotten by a database that says so.
pub const FORGETS_WITHIN: Duration = Duration::from_secs(1);

/// Codes of refusals that pass.
const PASSING: [&str; 8] =
    ["SQLITE_BUSY", "SQLITE_FULL", "55P03", "40001", "57P01", "1205", "1290", "something that nobody knows"];

/// What happens in the middle of a call, while nobody holds anything.
pub type Meanwhile = Box<dyn FnMut() + Send>;

/// What befalls one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blow {
    None,
    /// It is refused, for a while.
    Refused(&'static str),
    /// The connection is lost, before or after what was asked is done.
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

/// What a database forgets when its process ends.
struct Forgetful {
    /// Whether it tells how far its log has come.
    tells: bool,
    /// What is on the disk.
    durable: PathBuf,
    written: u64,
    flushed: u64,
    /// When the first commit came that is not on the disk; none where all are.
    pending: Option<Instant>,
}

struct State {
    directory: PathBuf,
    files: u32,
    file: PathBuf,
    inner: Arc<dyn Database>,
    random: Stream,
    /// Of a thousand calls so many fail.
    per_mille: u64,
    down_until: Option<Instant>,
    /// Whether the process that calls has ended.
    is_dead: bool,
    generation: u64,
    /// Transactions that are open.
    open: u32,
    forgetful: Option<Forgetful>,
    meanwhile: Option<Meanwhile>,
    kill: Option<Meanwhile>,
    calls: u64,
    /// Whether a turn did not come to an end.
    is_endless: bool,
    faults: Faults,
}

/// What is shared between a database, its connections and whoever lets it fail.
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
    /// A database in a directory, with nothing in it yet.
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

    /// Of a thousand calls so many fail from now on.
    pub fn set_trouble(&self, per_mille: u64) {
        self.lock().per_mille = per_mille;
    }

    /// Nobody reaches it for a while.
    pub fn be_down_for(&self, time: Duration) {
        self.lock().down_until = Some(self.clock.now() + time);
    }

    /// It is well from now on: it answers, keeps what it commits, and nothing happens meanwhile.
    pub fn be_well(&self) -> Result<(), Told> {
        let mut state = self.lock();
        state.flush()?;
        (state.per_mille, state.down_until, state.meanwhile) = (0, None, None);
        Ok(())
    }

    /// A process begins that calls it, which ends by `kill`.
    pub fn begin(&self, kill: Meanwhile) {
        let mut state = self.lock();
        (state.is_dead, state.kill) = (false, Some(kill));
    }

    /// The process that calls it has ended: connections are closed.
    pub fn end(&self) {
        let mut state = self.lock();
        (state.is_dead, state.kill, state.meanwhile) = (true, None, None);
        state.generation += 1;
        state.open = 0;
    }

    /// Whether a blow has ended the process that calls it.
    pub fn has_killed(&self) -> bool {
        self.lock().is_dead
    }

    /// A turn does not come to an end: it is ended with the process.
    pub fn end_endless(&self) {
        self.lock().is_endless = true;
        self.strike(Blow::Kill { is_done: false });
    }

    /// Whether nobody has a transaction open.
    pub fn is_free(&self) -> bool {
        self.lock().open == 0
    }

    /// An error where a turn did not come to an end.
    pub fn came_to_an_end(&self) -> Result<(), Told> {
        match self.lock().is_endless {
            true => Err("a turn of a writer did not come to an end".to_owned()),
            false => Ok(()),
        }
    }

    /// What happens in the middle of calls until the next one is given.
    pub fn meanwhile(&self, act: Option<Meanwhile>) {
        let mut state = self.lock();
        (state.meanwhile, state.calls) = (act, 0);
    }

    /// Its process ends, and comes back a little later.
    pub fn crash(&self) -> Result<(), Told> {
        let now = self.clock.now();
        self.lock().crash(now)
    }

    /// Counts something.
    pub fn count(&self, what: impl FnOnce(&mut Faults)) {
        what(&mut self.lock().faults);
    }

    /// What was counted.
    pub fn faults(&self) -> Faults {
        self.lock().faults
    }

    /// A connection of somebody else; none while a transaction is open.
    pub fn other(&self) -> Result<Option<rusqlite::Connection>, Told> {
        let state = self.lock();
        if state.open > 0 {
            return Ok(None);
        }
        rusqlite::Connection::open(&state.file).map(Some).map_err(|error| error.to_string())
    }

    /// Somebody else changes it, for good; whether that could be done now.
    pub fn change(&self, sql: &str) -> bool {
        let is_done = self.other().ok().flatten().is_some_and(|other| other.execute_batch(sql).is_ok());
        is_done && self.lock().flush().is_ok()
    }

    /// A call begins: time passes, things happen, and then it is decided what befalls it.
    ///
    /// # Errors
    /// Where there is nobody to call any more.
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

    /// What a blow does, besides that the connection is lost.
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

    /// The database as it is without failing, and which of those that came to be by crashes it is.
    pub(super) fn inner(&self) -> (Arc<dyn Database>, u64) {
        let state = self.lock();
        (Arc::clone(&state.inner), state.generation)
    }

    /// How far its log has come, where it tells that.
    pub(super) fn position(&self) -> Option<LogPosition> {
        let position = |forgetful: &Forgetful| LogPosition { written: forgetful.written, durable: forgetful.flushed };
        self.lock().forgetful.as_ref().filter(|forgetful| forgetful.tells).map(position)
    }

    /// Whether it may forget what it has just committed.
    pub(super) fn forgets(&self) -> bool {
        self.lock().forgetful.is_some()
    }

    /// Something may be committed now.
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

    /// Everything that is committed is on the disk from now on.
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
