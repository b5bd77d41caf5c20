//! A recorder that runs: intakes, spool and writers, started and stopped in order. Main type: [`Recorder`].

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::admission::gate::CLOSES_AT;
use super::admission::{Gate, Governor, ModelLine};
use super::config::Config;
use super::durability;
use super::intake::{self, Door, DoorSettings, Live, Renewal, Route, Running, Surroundings, lane_of};
use super::line::LineBounds;
use super::log;
use super::meter::Meter;
use super::metrics::{self, Shown};
use super::pace::Pace;
use super::progress::{LaneProgress, oldest, why_late};
use super::spool::{
    APART_LANES, Committer, CommitterHandle, Counts, LaneOpening, Reader, SpoolError, SpoolFile, now_ns,
};
use super::stop::Stop;
use super::writer::{DirectHandle, Feed, Lane, LaneEnd, LaneSettings, Registry, Shape};
use crate::database::Database;

/// Lanes that are fed straight from the intake have numbers from here on.
const FIRST_DIRECT_LANE: u32 = 1_000;
/// How long requests that were being taken in when the recorder is stopped may take.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// How long requests wait for the database whose sender cannot be told to send them again.
const LONG_PATIENCE: Duration = Duration::from_secs(7 * 86_400);

/// A gate that sees so much filled compares sources most strictly, and does not close.
const JUST_OPEN: f64 = CLOSES_AT - 0.001;

/// Why a recorder does not start. A sentence with place, value and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The spool.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// An intake.
    #[error("{0}")]
    Intake(String),
    /// The database may forget what it commits.
    #[error("{0}")]
    Database(String),
    /// The system has no thread or runtime left.
    #[error("the recorder cannot start: {0}")]
    System(String),
}

/// How a recorder ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct End {
    /// The counters at the end.
    pub counts: Counts,
    /// Records quarantined since the start.
    pub quarantined: u64,
    /// What went wrong.
    pub failures: Vec<String>,
}

/// A recorder that runs.
pub struct Recorder {
    runtime: tokio::runtime::Runtime,
    committer: Committer,
    shared: Arc<Shared>,
    lanes: Vec<JoinHandle<LaneEnd>>,
    intakes: Vec<Running>,
    surroundings: Option<Surroundings>,
    intake_stop: Arc<Stop>,
    lane_stop: Arc<Stop>,
    drain: Mutex<Duration>,
    quarantined_before: u64,
}

/// What is looked at from outside.
struct Shared {
    spool: Mutex<Option<CommitterHandle>>,
    meter: Arc<Meter>,
    governor: Arc<Governor>,
    gate: Arc<Gate>,
    bound_bytes: u64,
    is_direct: bool,
    /// Writers that the spool feeds, or would.
    lanes: u32,
    /// When rows were counted last, how many, and how many a second.
    speed: Mutex<(Instant, u64, f64)>,
    /// What else is shown on `/metrics`.
    more: Mutex<Vec<Page>>,
    /// What looks into the spool for whoever asks how long records wait.
    reader: Mutex<Reader>,
    /// How long the oldest may wait where the recorder is ready.
    ready_within: Duration,
}

/// Writes a part of `/metrics`.
pub type Page = Box<dyn Fn() -> String + Send + Sync>;

impl Shared {
    fn spool(&self) -> Option<CommitterHandle> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn counts(&self) -> Counts {
        self.spool().map(|spool| spool.counts()).unwrap_or_default()
    }

    fn rows_per_s(&self) -> f64 {
        let mut speed = self.speed.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, passed_s) = (self.meter.rows.get(), speed.0.elapsed().as_secs_f64());
        if passed_s >= 1.0 {
            *speed = (Instant::now(), rows, (rows - speed.1) as f64 / passed_s);
        }
        speed.2
    }

    fn metrics(&self) -> String {
        let is_broken = self.spool().is_none_or(|spool| spool.broken().is_some());
        let more = self.more.lock().unwrap_or_else(PoisonError::into_inner);
        let more: String = more.iter().map(|page| page()).collect();
        more + &metrics::text(&Shown {
            counts: self.counts(),
            bound_bytes: self.bound_bytes,
            meter: &self.meter,
            view: self.governor.view(),
            gate: &self.gate,
            rows_per_s: self.rows_per_s(),
            is_broken,
            waiting: oldest(&self.waiting(), now_ns()),
            apart: self.spool().map_or(0, |spool| spool.apart().len()),
        })
    }

    /// What is known of each writer, and since when the oldest record waits for it.
    fn waiting(&self) -> Vec<(bool, LaneProgress, Option<i64>)> {
        let mut lanes = self.meter.progress.lanes();
        // Those that have not come anywhere yet have all that is in the spool before them.
        let spooled = (0..self.lanes).chain(APART_LANES);
        for lane in spooled {
            lanes.entry(lane).or_default();
        }
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = lanes.into_iter().map(|(number, lane)| {
            // A spool that cannot be read says so elsewhere.
            let spooled = reader.oldest(number, lane.through).unwrap_or_default();
            let oldest = [spooled, lane.waits_since_ns].into_iter().flatten().min();
            (APART_LANES.contains(&number), lane, oldest)
        });
        waiting.collect()
    }

    fn why_not_ready(&self) -> Option<String> {
        let Some(spool) = self.spool() else { return Some("the recorder is stopping".to_owned()) };
        if let Some(broken) = spool.broken() {
            return Some(broken.to_string());
        }
        if self.is_direct && self.meter.lanes_connected.get() == 0 {
            return Some("the database is not connected yet".to_owned());
        }
        if self.gate.is_closed() {
            let is_quarantine = self.counts().quarantined_bytes > self.bound_bytes / 2;
            let reason = match is_quarantine {
                true => "the quarantine takes most of the spool; replay or discard it",
                false => "the spool is full",
            };
            return Some(reason.to_owned());
        }
        if let Some(full) = spool.full() {
            spool.try_again();
            return Some(full);
        }
        why_late(&self.waiting(), self.ready_within, now_ns())
    }
}

impl Recorder {
    /// Starts a recorder. The database need not answer yet, unless it is embedded.
    ///
    /// # Errors
    /// What cannot be started; nothing runs then.
    pub fn start(config: &Config, database: Arc<dyn Database>, line: Option<ModelLine>) -> Result<Self, StartError> {
        check_database(config, &database)?;
        let is_direct = database.is_embedded();
        let mut file = open_spool(config, is_direct)?;
        let (path, before) = (file.path().to_owned(), file.counts());
        let openings = openings(&mut file, config, is_direct)?;
        let runtime = runtime()?;
        let (committer, spool) = Committer::start(file);
        let meter = Arc::new(Meter::default());
        let governor = Arc::new(Governor::new(&config.admission, config.writer.batch, line));
        let gate = gate(&spool, &meter, config, is_direct);
        let shared = Arc::new(Shared {
            spool: Mutex::new(Some(spool.clone())),
            meter: Arc::clone(&meter),
            governor: Arc::clone(&governor),
            gate,
            bound_bytes: config.spool.bound_bytes,
            is_direct,
            speed: Mutex::new((Instant::now(), 0, 0.0)),
            more: Mutex::default(),
            reader: Mutex::new(Reader::open(&path)?),
            ready_within: config.ready_within,
            lanes: config.writer.count,
        });
        let lane_stop = Arc::new(Stop::default());
        let registry = Arc::new(registry(config));
        let settings = |lane, opening| LaneSettings {
            lane,
            opening,
            writer: config.writer,
            schema: config.schema,
            remember: config.spool.remember,
            database: Arc::clone(&database),
            registry: Arc::clone(&registry),
            spool: spool.clone(),
            pace: Arc::clone(&governor) as Arc<dyn Pace>,
            meter: Arc::clone(&meter),
            stop: Arc::clone(&lane_stop),
        };
        let (mut lanes, mut direct) = (Vec::new(), Vec::<DirectHandle>::new());
        for (lane, opening) in openings {
            let feed = if lane < FIRST_DIRECT_LANE {
                Feed::Spool(Reader::open(&path)?)
            } else {
                let (feed, handle) = Feed::direct(runtime.handle().clone());
                direct.push(handle);
                feed
            };
            lanes.push(spawn_lane(settings(lane, opening), feed)?);
        }
        let intake_stop = Arc::new(Stop::default());
        let surroundings = surroundings(config, &shared, spool, direct, Arc::clone(&intake_stop));
        let recorder = Recorder {
            runtime,
            committer,
            shared,
            lanes,
            intakes: Vec::new(),
            surroundings: Some(surroundings),
            intake_stop,
            lane_stop,
            drain: Mutex::new(config.writer.drain),
            quarantined_before: before.quarantined,
        };
        recorder.with_intakes()
    }

    fn with_intakes(mut self) -> Result<Self, StartError> {
        match self.start_intakes() {
            Ok(()) => Ok(self),
            Err(reason) => {
                self.stop();
                Err(StartError::Intake(reason))
            }
        }
    }

    fn start_intakes(&mut self) -> Result<(), String> {
        let _inside = self.runtime.enter();
        for entry in intake::REGISTRY {
            let Some(surroundings) = &self.surroundings else { continue };
            let Some(started) = (entry.start)(surroundings) else { continue };
            self.intakes.push(started?);
        }
        Ok(())
    }

    /// Where the intakes listen, by name.
    pub fn addresses(&self) -> Vec<(&'static str, std::net::SocketAddr)> {
        self.intakes.iter().filter_map(|running| Some((running.name, running.address?))).collect()
    }

    /// The counters.
    pub fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// What `/metrics` says.
    pub fn metrics(&self) -> String {
        self.shared.metrics()
    }

    /// Shows more on `/metrics`: what other parts of this process have to say.
    pub fn show_also(&self, page: Page) {
        self.shared.more.lock().unwrap_or_else(PoisonError::into_inner).push(page);
    }

    /// The governor, to be told another bound.
    pub fn governor(&self) -> &Governor {
        &self.shared.governor
    }

    /// Takes over what of a configuration that was read again can be changed while it runs, but for the admission and certificates: who may
    /// send, how large a line may be, and how long it may write when it is stopped.
    pub fn reconfigure(&self, config: &Config) {
        if let Some(surroundings) = &self.surroundings {
            surroundings.live.set(&config.intake, &config.access, line_bounds(config));
        }
        *self.drain.lock().unwrap_or_else(PoisonError::into_inner) = config.writer.drain;
    }

    /// Reads the certificates again; nothing is changed.
    ///
    /// # Errors
    /// A sentence that names the intake and the file.
    pub fn read_certificates(&self) -> Result<Renewal, String> {
        Renewal::read(&self.intakes)
    }

    /// Why it cannot go on, if that is so.
    pub fn failure(&self) -> Option<String> {
        let broken = self.shared.spool().and_then(|spool| spool.broken());
        let is_finished = self.lanes.iter().any(JoinHandle::is_finished);
        broken.map(|broken| broken.to_string()).or_else(|| is_finished.then(|| "a writer has ended".to_owned()))
    }

    /// Stops: first nothing more is taken in, then what was taken in is written as far as the time allows. What is left is in the spool.
    pub fn stop(mut self) -> End {
        self.intake_stop.ask(LAST_REQUESTS);
        let tasks: Vec<_> = self.intakes.drain(..).map(|running| running.task).collect();
        self.runtime.block_on(async {
            for task in tasks {
                let _ = tokio::time::timeout(LAST_REQUESTS + Duration::from_secs(1), task).await;
            }
        });
        self.surroundings = None;
        self.lane_stop.ask(*self.drain.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(spool) = self.shared.spool() {
            spool.wake();
        }
        let mut failures = Vec::new();
        for lane in self.lanes.drain(..) {
            match lane.join() {
                Ok(LaneEnd::Failed(reason)) => failures.push(reason),
                Ok(LaneEnd::Drained | LaneEnd::Stopped) => {}
                Err(_) => failures.push("a writer ended in a panic".to_owned()),
            }
        }
        // Tasks that are cut off here were not answered.
        self.runtime.shutdown_timeout(Duration::from_secs(2));
        let spool = self.shared.spool.lock().unwrap_or_else(PoisonError::into_inner).take();
        let broken = spool.as_ref().and_then(CommitterHandle::broken);
        failures.extend(broken.map(|broken| broken.to_string()).filter(|broken| !failures.contains(broken)));
        let counts = spool.map(|spool| spool.into_last_counts(self.committer)).unwrap_or_default();
        End { counts, quarantined: counts.quarantined.saturating_sub(self.quarantined_before), failures }
    }
}

fn shape(config: &Config) -> Shape {
    Shape::named(&config.layout.name).unwrap_or(Shape::Star)
}

/// How large a line may be. What has no columns of numbers holds every number.
fn line_bounds(config: &Config) -> LineBounds {
    let whole_max = if shape(config).has_field_columns() { i64::MAX as u64 } else { u64::MAX };
    LineBounds { whole_max, ..config.limits }
}

fn registry(config: &Config) -> Registry {
    Registry::new(shape(config), config.layout.hot.clone(), config.schema.measurements_max)
}

/// Whether the database may be written into, as far as it answers.
fn check_database(config: &Config, database: &Arc<dyn Database>) -> Result<(), StartError> {
    // What is acknowledged straight after the commit is in no spool that could keep it.
    let keep = config.writer.keep.filter(|_| !database.is_embedded() && config.intake.nats.is_none());
    durability::check(database, keep, config.writer.statement_timeout).map_err(StartError::Database)
}

fn open_spool(config: &Config, is_direct: bool) -> Result<SpoolFile, SpoolError> {
    let mut file = SpoolFile::open(&config.spool.path, config.spool.bound_bytes, config.spool.remember)?;
    if let Some(salvaged) = file.salvaged() {
        let (kept, read) = (salvaged.kept.display().to_string(), salvaged.read.to_string());
        log::error("the spool was damaged", &[("damage", &salvaged.damage), ("kept", &kept), ("readable", &read)]);
    }
    if !is_direct {
        file.set_lanes(config.writer.count)?;
    }
    Ok(file)
}

/// The lanes that there are to be, with what they show to the ledger: those of the spool, and those straight from the intake.
fn openings(file: &mut SpoolFile, config: &Config, is_direct: bool) -> Result<Vec<(u32, LaneOpening)>, SpoolError> {
    let has_spool = !is_direct || file.counts().entries > 0;
    let has_direct = is_direct || config.intake.nats.is_some();
    let lanes = |is_there: bool, first: u32| first..first + if is_there { config.writer.count } else { 0 };
    let all = lanes(has_spool, 0).chain(lanes(has_direct, FIRST_DIRECT_LANE)).chain(APART_LANES);
    all.map(|lane| Ok((lane, file.lane_opening(lane)?))).collect()
}

fn runtime() -> Result<tokio::runtime::Runtime, StartError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(4)
        .thread_name("intake")
        .enable_all()
        .build()
        .map_err(|error| StartError::System(error.to_string()))
}

fn spawn_lane(settings: LaneSettings, feed: Feed) -> Result<JoinHandle<LaneEnd>, StartError> {
    let lane = Lane::new(settings);
    let thread = std::thread::Builder::new().name("writer".to_owned()).spawn(move || lane.run(feed));
    thread.map_err(|error| StartError::System(error.to_string()))
}

fn surroundings(
    config: &Config,
    shared: &Arc<Shared>,
    spool: CommitterHandle,
    direct: Vec<DirectHandle>,
    stop: Arc<Stop>,
) -> Surroundings {
    let live = Arc::new(Live::new(&config.intake, &config.access, line_bounds(config)));
    let door = |route: Route, patience: Duration| {
        Arc::new(Door::new(DoorSettings {
            route,
            spool: spool.clone(),
            meter: Arc::clone(&shared.meter),
            gate: Arc::clone(&shared.gate),
            memory_bytes: config.intake.memory_bytes,
            keeps_good_lines: config.intake.keeps_good_lines,
            live: Arc::clone(&live),
            patience,
        }))
    };
    let route = match shared.is_direct {
        true => Route::Direct(direct.clone()),
        false => Route::Spool(spool.clone(), config.writer.count),
    };
    // A message that was given up would be delivered again behind later ones of its source: it is waited for as long as it takes.
    let direct_door = door(Route::Direct(direct), LONG_PATIENCE);
    let patient_door = door(route.clone(), LONG_PATIENCE);
    let (for_metrics, for_readiness) = (Arc::clone(shared), Arc::clone(shared));
    Surroundings {
        config: config.intake.clone(),
        live: Arc::clone(&live),
        door: door(route, Duration::from_secs(30)),
        direct_door,
        patient_door,
        meter: Arc::clone(&shared.meter),
        stop,
        metrics: Arc::new(move || for_metrics.metrics()),
        readiness: Arc::new(move || for_readiness.why_not_ready()),
    }
}

/// The gate in front of the spool. Without a spool requests wait in memory: then greedy sources are asked to wait when that gets
/// short, and the door turns away what does not fit.
fn gate(spool: &CommitterHandle, meter: &Arc<Meter>, config: &Config, is_direct: bool) -> Arc<Gate> {
    let (spool, meter) = (spool.counts_reader(), Arc::clone(meter));
    let (bound, memory) = (config.spool.bound_bytes as f64, config.intake.memory_bytes as f64);
    let filled = move || {
        let held = spool().held_bytes() as f64 / bound;
        if is_direct { held.max((meter.memory_bytes.get() as f64 / memory).min(JUST_OPEN)) } else { held }
    };
    Arc::new(Gate::new(Box::new(filled)))
}

/// Gives the quarantined records of a spool back to its queue; how many. No recorder may work on it.
///
/// # Errors
/// As the spool answers; when there is none.
pub fn replay_quarantine(config: &Config) -> Result<u64, SpoolError> {
    let mut file = existing_spool(config)?;
    file.set_lanes(config.writer.count)?;
    file.replay(&|source| lane_of(source, config.writer.count))
}

/// Gives the quarantined records of a spool up; how many. No recorder may work on it.
///
/// # Errors
/// As the spool answers; when there is none.
pub fn discard_quarantine(config: &Config) -> Result<u64, SpoolError> {
    existing_spool(config)?.discard(i64::MAX)
}

fn existing_spool(config: &Config) -> Result<SpoolFile, SpoolError> {
    let path = &config.spool.path;
    if !path.join("spool.db").exists() {
        let reason = "there is no spool.db in it; name the directory that the recorder was started with".to_owned();
        return Err(SpoolError::Unusable { path: path.display().to_string(), reason });
    }
    SpoolFile::open(path, config.spool.bound_bytes, config.spool.remember)
}
