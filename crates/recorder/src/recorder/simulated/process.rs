//! A recorder's process: the spool's thread, the writers and the door, each working when it is told to. Main type: [`Process`].

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loadline_segments::segments::Disk;
use loadline_segments::segments::simulated::{MemoryDisk, Told};

use super::clock::MadeClock;
use super::database::FailingDatabase;
use super::failing::{FORGETS_WITHIN, Failing};
use super::senders::REMEMBER;
use crate::database::Database;
use crate::random::Stream;
use crate::recorder::admission::{Gate, Governor};
use crate::recorder::clock::SharedClock;
use crate::recorder::config::{self, Config, NewColumns};
use crate::recorder::intake::{Door, DoorSettings, Live, Route};
use crate::recorder::meter::Meter;
use crate::recorder::pace::Pace;
use crate::recorder::progress::Progress;
use crate::recorder::pulse::Pulse;
use crate::recorder::spool::{
    APART_LANES, CommitterHandle, FIRST_DIRECT_LANE, GREEDY_LANES, Reader, SpoolError, SpoolFile,
};
use crate::recorder::stop::Stop;
use crate::recorder::writer::{LaneEnd, LaneSettings, Preparing, Registry, Shape, Stepped};

/// The number of the sources' writers.
pub const LANES: u32 = 2;

static CONFIG: LazyLock<Config> = LazyLock::new(|| {
    let text = "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n";
    config::read(text, "simulated.toml").unwrap_or_else(|errors| panic!("{errors}"))
});

/// The configuration of a recorder.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub shape: Shape,
    pub new_columns: NewColumns,
    /// Maximum number of rows per transaction.
    pub batch: u32,
    pub bound: u64,
    pub quarantine_bound: u64,
    pub compresses: bool,
    /// How long entries are kept whose commits the database may forget.
    pub keep: Option<Duration>,
    /// Whether requests go straight to the database, whose commit acknowledges them.
    pub is_direct: bool,
}

/// Draws one of some values.
pub fn one_of<T: Copy>(random: &mut Stream, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

impl Setup {
    /// Draws a setup, and whether the database forgets commits and tells how far it has come.
    pub fn drawn(random: &mut Stream) -> (Self, Option<bool>) {
        let is_direct = random.below(4) == 0;
        // Some databases may forget their latest commits; some of these tell how far they have come. If commits acknowledge requests, they must last.
        let forgets = one_of(random, &[None, None, Some(true), Some(false)]).filter(|_| !is_direct);
        let setup = Setup {
            shape: Shape::named(one_of(random, Shape::NAMES)).unwrap_or(Shape::Star),
            // If nobody creates columns, everything is in quarantine in the end.
            new_columns: match random.below(10) {
                0 => NewColumns::Refuse,
                1..4 => NewColumns::Json,
                _ => NewColumns::Add,
            },
            batch: one_of(random, &[1, 4, 50, 50]),
            bound: one_of(random, &[128 << 10, 1 << 20]),
            quarantine_bound: one_of(random, &[8 << 10, 1 << 20]),
            compresses: random.below(2) == 0,
            keep: forgets.map(|_| 2 * FORGETS_WITHIN),
            is_direct,
        };
        (setup, forgets)
    }
}

/// Writers, with their numbers; `None` for one that is at work or has ended.
type Lanes = Arc<Mutex<Vec<(u32, Option<Stepped>)>>>;

/// A running recorder.
pub struct Process {
    pub spool: CommitterHandle,
    pub reader: Reader,
    pub door: Option<Arc<Door>>,
    pub stop: Arc<Stop>,
    meter: Arc<Meter>,
    lanes: Lanes,
    registry: Arc<Registry>,
    /// Why a writer ended that was not told to.
    failed: Arc<Mutex<Option<String>>>,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets a writer take a turn, unless it is at work or has ended; returns whether it took one.
fn turn(lanes: &Lanes, place: usize, failed: &Mutex<Option<String>>) -> bool {
    let taken = lock(lanes).get_mut(place).and_then(|(_, lane)| lane.take());
    let Some(mut lane) = taken else { return false };
    match lane.turn() {
        None => lock(lanes)[place].1 = Some(lane),
        Some(LaneEnd::Failed(reason)) => drop(lock(failed).get_or_insert(reason)),
        Some(LaneEnd::Drained | LaneEnd::Stopped) => {}
    }
    true
}

impl Process {
    /// Starts a recorder over what is on its disks.
    ///
    /// # Errors
    /// Returns an error if the spool cannot be opened.
    pub fn start(
        setup: Setup,
        disks: [Arc<dyn Disk>; 2],
        clock: &Arc<MadeClock>,
        failing: &Failing,
    ) -> Result<Self, SpoolError> {
        let shared: SharedClock = Arc::<MadeClock>::clone(clock);
        let [entries, lasting] = disks;
        let file = SpoolFile::open_on(entries, lasting, setup.bound, REMEMBER, &shared)?;
        let mut file = file.with_quarantine(setup.quarantine_bound).with_compression(setup.compresses);
        file.set_lanes(LANES)?;
        let direct = FIRST_DIRECT_LANE..FIRST_DIRECT_LANE + if setup.is_direct { LANES } else { 0 };
        let all: Vec<u32> = (0..LANES).chain(GREEDY_LANES).chain(APART_LANES).chain(direct).collect();
        let openings = file.lane_openings(&all)?;
        let reader = file.reader();
        let spool = CommitterHandle::here(file);
        let meter = Arc::new(Meter { progress: Progress::by(SharedClock::clone(&shared)), ..Meter::default() });
        let stop = Arc::new(Stop::by(SharedClock::clone(&shared)));
        let registry = Arc::new(Registry::new(setup.shape, vec!["v".to_owned()], true, 1_000));
        let pace: Arc<dyn Pace> =
            Arc::new(Governor::new(&CONFIG.admission, setup.batch, None, SharedClock::clone(&shared)));
        let writer = config::WriterConfig {
            count: LANES,
            batch: setup.batch,
            statement_timeout: Duration::from_secs(5),
            keep: setup.keep,
            ..CONFIG.writer
        };
        let schema = config::SchemaConfig { new_columns: setup.new_columns, ..CONFIG.schema };
        let mut handles = Vec::new();
        let database: Arc<dyn Database> = Arc::new(FailingDatabase::new(failing, setup.is_direct));
        let lanes = openings.into_iter().map(|(lane, opening)| {
            let settings = LaneSettings {
                lane,
                opening,
                writer,
                schema,
                remember: REMEMBER,
                database: Arc::clone(&database),
                registry: Arc::clone(&registry),
                spool: spool.clone(),
                reader: reader.clone(),
                pace: Arc::clone(&pace),
                meter: Arc::clone(&meter),
                pulse: Arc::new(Pulse::new()),
                stop: Arc::clone(&stop),
                clock: SharedClock::clone(&shared),
                hold: None,
                preparing: Preparing::InTurn,
            };
            if lane < FIRST_DIRECT_LANE {
                return (lane, Some(Stepped::new(settings)));
            }
            let (stepped, handle) = Stepped::direct(settings);
            handles.push(handle);
            (lane, Some(stepped))
        });
        let lanes = Arc::new(Mutex::new(lanes.collect()));
        let route = if setup.is_direct { Route::Direct(handles) } else { Route::Spool(spool.clone(), LANES) };
        let door = Some(Arc::new(door(setup, route, &spool, &meter, &shared)));
        Ok(Process { spool, reader, door, stop, meter, lanes, registry, failed: Arc::default() })
    }

    /// Returns the writers that have something to do, or may have.
    pub fn at_work(&self) -> Result<Vec<usize>, Told> {
        let numbers: Vec<u32> = lock(&self.lanes).iter().map(|(number, _)| *number).collect();
        let mut busy = Vec::new();
        for (place, number) in numbers.into_iter().enumerate() {
            if number >= FIRST_DIRECT_LANE || self.reader.first(number, 0).map_err(|error| error.to_string())?.is_some()
            {
                busy.push(place);
            }
        }
        Ok(busy)
    }

    /// Returns the number of batches that were prepared while the one before was committed.
    pub fn prepared(&self) -> u64 {
        self.meter.prepared.get()
    }

    /// Returns the number of writers.
    pub fn lanes(&self) -> usize {
        lock(&self.lanes).len()
    }

    /// Lets a writer take a turn; returns whether it took one.
    pub fn turn(&self, place: usize) -> bool {
        turn(&self.lanes, place, &self.failed)
    }

    /// Returns a function that lets a writer take a turn, without keeping this process alive.
    pub fn turning(&self) -> impl Fn(usize) + Send + 'static {
        let (lanes, failed) = (Arc::downgrade(&self.lanes), Arc::clone(&self.failed));
        let registry = Arc::clone(&self.registry);
        move |place| {
            // A writer that needs the registry while another holds it would wait for that one, which waits for this call.
            if let Some(lanes) = lanes.upgrade().filter(|_| !registry.is_held()) {
                turn(&lanes, place, &failed);
            }
        }
    }

    /// Returns why a writer has ended that was not told to.
    pub fn failed(&self) -> Option<String> {
        lock(&self.failed).clone()
    }

    /// Returns whether every writer has ended.
    pub fn has_ended(&self) -> bool {
        lock(&self.lanes).iter().all(|(_, lane)| lane.is_none())
    }

    /// Ends the process: in order, or as a kill does.
    pub fn end(self, in_order: bool) {
        lock(&self.lanes).clear();
        self.spool.end(in_order);
    }
}

fn door(setup: Setup, route: Route, spool: &CommitterHandle, meter: &Arc<Meter>, clock: &SharedClock) -> Door {
    let (counts, progress) = (spool.counts_reader(), Arc::clone(meter));
    let filled = move || counts().held_bytes(setup.bound, setup.quarantine_bound) as f64 / setup.bound as f64;
    let wait = move || progress.progress.wait_of(0..LANES);
    let gate = Gate::new(Box::new(filled), Box::new(wait), SharedClock::clone(clock));
    Door::new(DoorSettings {
        route,
        spool: spool.clone(),
        meter: Arc::clone(meter),
        gate: Arc::new(gate),
        memory_bytes: 1 << 30,
        keeps_good_lines: true,
        live: Arc::new(Live::new(&CONFIG.intake, &[], CONFIG.limits)),
        patience: Duration::from_secs(30),
    })
}

/// Returns the disks in the form in which a spool is opened on them.
pub fn opened(disks: &[MemoryDisk; 2]) -> [Arc<dyn Disk>; 2] {
    disks.each_ref().map(|disk| Arc::new(disk.clone()) as Arc<dyn Disk>)
}
