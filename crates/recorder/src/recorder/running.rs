//! A running recorder: intakes, spool and writers, started and stopped in order. Main type: [`Recorder`].

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::admission::gate::CLOSES_AT;
use super::admission::{Gate, Governor, ModelLine};
use super::clock;
use super::condition::{Condition, Page};
use super::config::Config;
use super::control::{Control, listen};
use super::durability;
use super::hold::Holds;
use super::intake::{self, Door, DoorSettings, Live, Publisher, Renewal, Route, Running, Surroundings};
use super::line::LineBounds;
use super::log;
use super::meter::Meter;
use super::metrics;
use super::outcome::{End, StartError};
use super::pace::Pace;
use super::part_lanes::PartLanes;
use super::pulse::{Heartbeat, Pulse};
use super::retention::{Beside, Retention};
use super::spool::{
    APART_LANES, Committer, CommitterHandle, Counts, Damage, FIRST_DIRECT_LANE, GREEDY_LANES, LaneOpening, Reader,
    Salvaged, SpoolError, SpoolFile,
};
use super::stop::Stop;
use super::writer::{DirectHandle, Feed, Lane, LaneEnd, LaneSettings, Preparing, Registry, Shape};
use crate::database::Database;
use crate::recorder::threads;

/// How long requests under way may take after the recorder is asked to stop.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// How long requests wait for the database if their sender cannot be told to send them again.
const LONG_PATIENCE: Duration = Duration::from_secs(7 * 86_400);

/// A filling at which the gate compares sources most strictly, and does not close.
const JUST_OPEN: f64 = CLOSES_AT - 0.001;

/// A running recorder.
pub struct Recorder {
    runtime: tokio::runtime::Runtime,
    control: Option<Control>,
    committer: Committer,
    condition: Arc<Condition>,
    lanes: Vec<JoinHandle<LaneEnd>>,
    intakes: Vec<Running>,
    retention: Option<Retention>,
    surroundings: Option<Surroundings>,
    intake_stop: Arc<Stop>,
    lane_stop: Arc<Stop>,
    drain: Mutex<Duration>,
    quarantined_before: u64,
    /// Rows in quarantine that stood for damage before the start.
    damaged_before: u64,
}

impl Recorder {
    /// Starts a recorder. The database need not answer yet, unless it is embedded.
    ///
    /// # Errors
    /// The reason why it cannot be started; nothing runs then.
    pub fn start(config: &Config, database: Arc<dyn Database>, line: Option<ModelLine>) -> Result<Self, StartError> {
        let is_direct = check_database(config, &database)?;
        let mut file = open_spool(config, is_direct)?;
        let (reader, before) = (file.reader(), file.counts().quarantined);
        let damaged_before = reader.damaged_rows()?.saturating_sub(file.damage().rows);
        let (openings, runtime) = (openings(&mut file, config, is_direct)?, runtime()?);
        let (committer, spool) = Committer::start(file).map_err(|error| StartError::System(error.to_string()))?;
        let (meter, registry) = (Arc::new(Meter::default()), Arc::new(registry(config)));
        let ((holds, governor), pulses, recorders) = (governor(config, line), pulses(&openings), names(&openings));
        let gate = gate(&spool, &meter, config, is_direct);
        let condition = Arc::new(Condition {
            spool: Mutex::new(Some(spool.clone())),
            meter: Arc::clone(&meter),
            governor: Arc::clone(&governor),
            gate,
            bound_bytes: config.spool.bound_bytes,
            quarantine_bound_bytes: config.quarantine_bound_bytes,
            is_direct,
            speed: Mutex::new((Instant::now(), 0, 0.0)),
            more: Mutex::default(),
            reader: Mutex::new(counted(&reader, &meter)?),
            pulses: pulses.clone(),
            heartbeat: Heartbeat::start(runtime.handle()),
            parts: Mutex::default(),
            publisher: Publisher::of(config, &meter),
            ready_within: config.ready_within,
            lanes: config.writer.count,
        });
        let (intake_stop, lane_stop) = (Arc::new(Stop::default()), Arc::new(Stop::default()));
        let settings = |((lane, opening), (_, pulse)): ((u32, LaneOpening), (u32, Arc<Pulse>))| LaneSettings {
            lane,
            opening,
            writer: config.writer,
            schema: config.schema,
            remember: config.spool.remember,
            database: Arc::clone(&database),
            registry: Arc::clone(&registry),
            spool: spool.clone(),
            reader: reader.clone(),
            pace: Arc::clone(&governor) as Arc<dyn Pace>,
            meter: Arc::clone(&meter),
            pulse,
            stop: Arc::clone(&lane_stop),
            clock: clock::machine(),
            preparing: Preparing::InThread,
            hold: None,
        };
        let of_part = || settings(((0, LaneOpening::none()), (0, Arc::new(Pulse::new()))));
        condition.set_parts(holds.map(|holds| PartLanes::new(of_part(), runtime.handle().clone(), holds)));
        let (lanes, direct) = spawn_lanes(openings.into_iter().zip(pulses).map(&settings), &runtime)?;
        let retention = retention(config, &condition, &database, recorders)?;
        let control = listen(&config.spool.path, runtime.handle(), spool.clone(), Arc::clone(&intake_stop));
        let surroundings = surroundings(config, &condition, spool, direct, Arc::clone(&intake_stop));
        let recorder = Recorder {
            runtime,
            control,
            committer,
            condition,
            lanes,
            intakes: Vec::new(),
            retention,
            surroundings: Some(surroundings),
            intake_stop,
            lane_stop,
            drain: Mutex::new(config.writer.drain),
            quarantined_before: before,
            damaged_before,
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
        self.show_also(intake::connections_page("", &self.intakes));
        Ok(())
    }

    /// Returns the addresses on which the intakes listen, by name.
    pub fn addresses(&self) -> Vec<(&'static str, std::net::SocketAddr)> {
        self.intakes.iter().filter_map(|running| Some((running.name, running.address?))).collect()
    }

    /// Returns the counters.
    pub fn counts(&self) -> Counts {
        self.condition.counts()
    }

    /// Returns the page `/metrics`.
    pub fn metrics(&self) -> String {
        self.condition.metrics()
    }

    /// Returns the function that writes this page, to show it elsewhere.
    pub fn metrics_page(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let condition = Arc::clone(&self.condition);
        move || condition.metrics()
    }

    /// Returns whether data are accepted; where the commit is the acknowledgement, that requires a connection to the database.
    pub fn takes_in(&self) -> bool {
        self.condition.takes_in()
    }

    /// Returns how many parts of a shared stream this recorder may write now, and how many there are; `None` without such a stream.
    pub fn stream_parts(&self) -> Option<(u32, u32)> {
        self.condition.parts().map(|parts| (parts.holds().open(), parts.holds().parts()))
    }

    /// Returns why records are not stored in time; `None` if they are.
    pub fn why_not_ready(&self) -> Option<String> {
        self.condition.why_not_ready(&self.condition.waiting())
    }

    /// Returns the name of a part that did nothing for this long without waiting for another; `None` if all parts move.
    pub fn stuck(&self, within: Duration) -> Option<String> {
        self.condition.stuck(within)
    }

    /// Adds a part to `/metrics` that another component of this process writes.
    pub fn show_also(&self, page: Page) {
        self.condition.more.lock().unwrap_or_else(PoisonError::into_inner).push(page);
    }

    /// Returns the governor, whose bound can be changed.
    pub fn governor(&self) -> &Governor {
        &self.condition.governor
    }

    /// Applies the settings of a newly read configuration that can change at run time, except the admission and certificates: the senders,
    /// the bounds of a line, and how long the recorder may write when it is stopped.
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

    /// Returns why the recorder cannot go on; `None` while it can.
    pub fn failure(&self) -> Option<String> {
        let broken = self.condition.spool().and_then(|spool| spool.broken());
        let is_finished = self.lanes.iter().any(JoinHandle::is_finished);
        broken.map(|broken| broken.to_string()).or_else(|| is_finished.then(|| "a writer has ended".to_owned()))
    }

    /// Stops: first nothing more is accepted, then the remaining records are written as far as the time allows. The rest stays in the spool.
    pub fn stop(mut self) -> End {
        self.intake_stop.ask(LAST_REQUESTS);
        let tasks: Vec<_> = self.intakes.drain(..).map(|running| running.task).collect();
        self.runtime.block_on(async {
            for task in tasks {
                let _ = tokio::time::timeout(LAST_REQUESTS + Duration::from_secs(1), task).await;
            }
        });
        (self.surroundings, self.control) = (None, None);
        if let Some(retention) = self.retention.take() {
            retention.stop();
        }
        // Whoever has a handle to the spool keeps it open.
        self.condition.set_parts(None);
        self.lane_stop.ask(*self.drain.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(spool) = self.condition.spool() {
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
        let spool = self.condition.spool.lock().unwrap_or_else(PoisonError::into_inner).take();
        let broken = spool.as_ref().and_then(CommitterHandle::broken);
        failures.extend(broken.map(|broken| broken.to_string()).filter(|broken| !failures.contains(broken)));
        let damaged = self.condition.meter.damaged.get().saturating_sub(self.damaged_before);
        if damaged > 0 {
            failures.push(format!("{damaged} records were damaged in the spool and are in quarantine: look at --quarantine list, and at the disk"));
        }
        let counts = spool.map(|spool| spool.into_last_counts(self.committer)).unwrap_or_default();
        let counts = counts.with_retired(self.condition.meter.retired.get());
        End { counts, quarantined: counts.quarantined.saturating_sub(self.quarantined_before), failures }
    }
}

fn shape(config: &Config) -> Shape {
    Shape::named(&config.layout.name).unwrap_or(Shape::Star)
}

/// Returns the bounds of a line. A layout without columns of numbers can hold every number.
fn line_bounds(config: &Config) -> LineBounds {
    let whole_max = if shape(config).has_field_columns() { i64::MAX as u64 } else { u64::MAX };
    LineBounds { whole_max, ..config.limits }
}

/// Returns the governor and, if recorders share a stream, the parts of which this one has a share.
fn governor(config: &Config, line: Option<ModelLine>) -> (Option<Arc<Holds>>, Arc<Governor>) {
    let shared = config.intake.nats.as_ref().and_then(|nats| nats.shared);
    let holds = shared.map(|shared| Arc::new(Holds::new(shared.partitions)));
    let governor = Governor::new(&config.admission, config.writer.batch, line, clock::machine());
    (holds.clone(), Arc::new(governor.sharing(holds)))
}

fn registry(config: &Config) -> Registry {
    Registry::new(shape(config), config.layout.hot.clone(), config.layout.time_index, config.schema.measurements_max)
}

/// Checks that the database may be written into, as far as it answers; returns whether it is embedded.
fn check_database(config: &Config, database: &Arc<dyn Database>) -> Result<bool, StartError> {
    // Records that are acknowledged straight after the commit are in no spool that could keep them.
    let keep = config.writer.keep.filter(|_| !database.is_embedded() && config.intake.nats.is_none());
    durability::check(database, keep, config.writer.statement_timeout).map_err(StartError::Database)?;
    Ok(database.is_embedded())
}

fn open_spool(config: &Config, is_direct: bool) -> Result<SpoolFile, SpoolError> {
    let file = SpoolFile::open(&config.spool.path, config.spool.bound_bytes, config.spool.remember)?;
    let mut file = file.with_quarantine(config.quarantine_bound_bytes).with_compression(config.spool.compress);
    say_damage(file.damage());
    match file.set_lanes(config.writer.count) {
        // Entries for other lanes are no obstacle if nothing new goes through the spool.
        Err(_) if is_direct => {}
        set => set?,
    }
    Ok(file)
}

/// Logs the damage in the spool, and where the damaged data are now.
fn say_damage(damage: &Damage) {
    if let Some(Salvaged { kept, read, damage }) = &damage.older {
        let (kept, read) = (kept.display().to_string(), read.to_string());
        log::error(
            "the spool of an older version was damaged",
            &[("damage", damage), ("kept", &kept), ("readable", &read)],
        );
    }
    if damage.uncertain_rows > 0 {
        let records = damage.uncertain_rows.to_string();
        log::warning(
            "records that were just being written are not in the spool: their senders were not told that they are, unless the disk was damaged",
            &[("records", &records)],
        );
    }
    if damage.rows > 0 || damage.files > 0 {
        let (records, files) = (damage.rows.to_string(), damage.files.to_string());
        log::error(
            "the spool was damaged: what is not as it was acknowledged is in quarantine, and everything else is there",
            &[
                ("records", &records),
                ("files_cut_or_gone", &files),
                ("remedy", "look at it with --quarantine list, and at the disk"),
            ],
        );
    }
    if damage.is_state_lost {
        log::error(
            "the spool does not know any more what the database knows it by: what waits in it is stored under a new number in loadline_writer, and \
             what had been stored and not yet forgotten is stored once more",
            &[],
        );
    }
}

/// Returns a reader of the spool for statistics; records that were damaged before count from now on.
fn counted(reader: &Reader, meter: &Meter) -> Result<Reader, SpoolError> {
    meter.damaged.add(reader.damaged_rows()?);
    Ok(reader.clone())
}

/// Returns the lanes to open, each with what it shows to the ledger: the lanes of the spool, and those straight from the intake.
fn openings(file: &mut SpoolFile, config: &Config, is_direct: bool) -> Result<Vec<(u32, LaneOpening)>, SpoolError> {
    let has_direct = is_direct || config.intake.nats.as_ref().is_some_and(|nats| nats.shared.is_none());
    let lanes = |is_there: bool, first: u32| first..first + if is_there { config.writer.count } else { 0 };
    // Replayed records go through the spool, wherever the others go.
    let spooled = lanes(true, 0).chain(GREEDY_LANES).chain(APART_LANES);
    let all = spooled.chain(lanes(has_direct, FIRST_DIRECT_LANE));
    file.lane_openings(&all.collect::<Vec<_>>())
}

fn runtime() -> Result<tokio::runtime::Runtime, StartError> {
    threads::runtime("intake", 2, 4).map_err(|error| StartError::System(error.to_string()))
}

/// Returns the source of a lane's entries and, if that is the intake, the handle by which it hands them over.
fn feed_of(lane: u32, runtime: &tokio::runtime::Runtime) -> (Feed, Option<DirectHandle>) {
    if lane < FIRST_DIRECT_LANE {
        return (Feed::Spool, None);
    }
    let (feed, handle) = Feed::direct(runtime.handle().clone(), clock::machine());
    (feed, Some(handle))
}

/// Returns the names by which the ledger knows the entries of these lanes.
fn names(openings: &[(u32, LaneOpening)]) -> BTreeSet<String> {
    openings.iter().map(|(_, opening)| opening.recorder.clone()).collect()
}

/// Returns a sign of life for each lane.
fn pulses(openings: &[(u32, LaneOpening)]) -> Vec<(u32, Arc<Pulse>)> {
    openings.iter().map(|(lane, _)| (*lane, Arc::new(Pulse::new()))).collect()
}

/// Starts what deletes old readings, and shows it on `/metrics`.
fn retention(
    config: &Config,
    condition: &Condition,
    database: &Arc<dyn Database>,
    recorders: BTreeSet<String>,
) -> Result<Option<Retention>, StartError> {
    let beside = Beside {
        database: Arc::clone(database),
        meter: Arc::clone(&condition.meter),
        governor: Arc::clone(&condition.governor),
        gate: Arc::clone(&condition.gate),
        recorders,
        clock: clock::machine(),
    };
    let retention = Retention::start(config, beside).map_err(|error| StartError::System(error.to_string()))?;
    if let Some(page) = retention.as_ref().and_then(Retention::page) {
        condition.more.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(page));
    }
    Ok(retention)
}

/// Starts lanes; returns their threads, and the handles of those that are fed straight from the intake.
fn spawn_lanes(
    settings: impl Iterator<Item = LaneSettings>,
    runtime: &tokio::runtime::Runtime,
) -> Result<(Vec<JoinHandle<LaneEnd>>, Vec<DirectHandle>), StartError> {
    let (mut lanes, mut direct) = (Vec::new(), Vec::new());
    for settings in settings {
        let (feed, handle) = feed_of(settings.lane, runtime);
        direct.extend(handle);
        lanes.push(spawn_lane(settings, feed)?);
    }
    Ok((lanes, direct))
}

fn spawn_lane(settings: LaneSettings, feed: Feed) -> Result<JoinHandle<LaneEnd>, StartError> {
    let lane = Lane::new(settings);
    let thread = std::thread::Builder::new().name("writer".to_owned()).spawn(move || lane.run(feed));
    thread.map_err(|error| StartError::System(error.to_string()))
}

fn surroundings(
    config: &Config,
    condition: &Arc<Condition>,
    spool: CommitterHandle,
    direct: Vec<DirectHandle>,
    stop: Arc<Stop>,
) -> Surroundings {
    let live = Arc::new(Live::new(&config.intake, &config.access, line_bounds(config)));
    let door = |route: Route, patience: Duration| {
        Arc::new(Door::new(DoorSettings {
            route,
            spool: spool.clone(),
            meter: Arc::clone(&condition.meter),
            gate: Arc::clone(&condition.gate),
            memory_bytes: config.intake.memory_bytes,
            keeps_good_lines: config.intake.keeps_good_lines,
            live: Arc::clone(&live),
            patience,
        }))
    };
    let publisher = condition.publisher.clone();
    let route = match &publisher {
        Some(publisher) => Route::Stream(Arc::clone(publisher)),
        None if condition.is_direct => Route::Direct(direct.clone()),
        None => Route::Spool(spool.clone(), config.writer.count),
    };
    // A message that was given up would be delivered again behind later ones of its source; so it waits as long as it takes.
    let direct_door = door(Route::Direct(direct), LONG_PATIENCE);
    let patient_door = door(route.clone(), LONG_PATIENCE);
    let (for_metrics, for_readiness, for_quarantine) =
        (Arc::clone(condition), Arc::clone(condition), Arc::clone(condition));
    Surroundings {
        config: config.intake.clone(),
        live: Arc::clone(&live),
        door: door(route, Duration::from_secs(30)),
        direct_door,
        patient_door,
        parts: condition.parts(),
        publisher,
        meter: Arc::clone(&condition.meter),
        stop,
        metrics: Arc::new(move || for_metrics.metrics()),
        readiness: Arc::new(move || for_readiness.why_not_ready(&for_readiness.waiting())),
        quarantine: Arc::new(move || metrics::quarantine_facts(&for_quarantine.counts(), &for_quarantine.quarantine())),
    }
}

/// Returns the gate in front of the spool. Without a spool requests wait in memory: then greedy sources are asked to wait when memory gets
/// short, and the door refuses what does not fit.
fn gate(spool: &CommitterHandle, meter: &Arc<Meter>, config: &Config, is_direct: bool) -> Arc<Gate> {
    let (spool, meter, for_progress) = (spool.counts_reader(), Arc::clone(meter), Arc::clone(meter));
    let (bound, quarantine_bound) = (config.spool.bound_bytes, config.quarantine_bound_bytes);
    let memory = config.intake.memory_bytes as f64;
    let filled = move || {
        let held = spool().held_bytes(bound, quarantine_bound) as f64 / bound as f64;
        if is_direct { held.max((meter.memory_bytes.get() as f64 / memory).min(JUST_OPEN)) } else { held }
    };
    let lanes = config.writer.count;
    let wait = move || if is_direct { Duration::ZERO } else { for_progress.progress.wait_of(0..lanes) };
    Arc::new(Gate::new(Box::new(filled), Box::new(wait), clock::machine()))
}
