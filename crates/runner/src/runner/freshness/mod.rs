//! A trial of the workload `freshness`: writers as in every open loop, and next to them groups of readers that record how long it
//! took until they saw each event.
//!
//! Main function: `measure`. Invariant: the load engine alone drives the writers, which know nothing of the readers.

mod group;
mod historian;

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::agents::take_readers;
use super::attendant::Attendant;
use super::beside::drive_beside;
use super::driving::{Executed, Ready, connect_all, connect_session, connect_wire, measured};
use super::filling::fill;
use super::instruments::{Beginning, Ending, begin_all};
use super::reading::ReadersOrder;
use super::stage::Current;
use super::unanswered::Counted;
use crate::database::Target;
use crate::load::sightings::{Acknowledged, Control, Ledger, Sightings, Stamper, monotonic};
use crate::load::{
    Changing, Clock, Group as Writers, Observed, Observer, Reconnect, ReconnectSession, Recording, Share, Source,
    validity,
};
use crate::measurement::{FreshnessMeasurement, GroupMeasurement, Measurement};
use crate::monitor::cpu_s_of;
use crate::reason::Reason;
use crate::trial::{FreshnessSettings, RunAs, Settings, Trial};
use crate::units::NS_PER_S;
use crate::workload::freshness::Events;
use crate::workload::{self, Work};

use group::{Group, Seen};
use historian::Broker;

pub use group::work_as_readers;
pub use historian::{check, work_as_historian};

/// Largest permitted lateness of the generator, as a share of the mean response time. Readers take CPUs too, and a writer that has
/// slept waits for its turn. Freshness counts from the start of a write and excludes the lateness; response times include it, as everywhere.
const LATE_SHARE: f64 = 1.0;

/// How long readers on other machines may take for their answer once they have ended, besides the time for which they look for the last events.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Largest permitted error of the time between two hosts, as a share of the median freshness.
const CLOCK_SHARE_MOST: f64 = 0.1;

/// Runs writers and readers, and returns what was measured.
///
/// # Errors
/// Fails if something cannot be started.
pub(super) fn measure(
    trial: &Trial,
    ready: Ready,
    current: &mut Current,
    filling: &dyn Fn(u64, u64),
) -> anyhow::Result<Executed> {
    let settings = &trial.case.settings;
    let Ready { work, session, .. } = ready;
    let events = Arc::clone(work.events().context("the workload has no events")?);
    fill(settings, &work, current, session.context("events are read from the database itself")?, filling)?;
    let target = current.target_of_clients(settings)?;
    let freshness = settings.freshness.clone().unwrap_or_default();
    let mut broker = start_broker(current, &freshness)?;
    let published = broker.as_ref().map(Broker::database);
    let written_to: &dyn Target = published.as_ref().map_or(&*target, |published| published);
    let connections = connect_all(written_to, &work, settings, (&settings.load, Share::WHOLE))?;
    let groups = start_groups(&trial.id, settings, current, broker.as_mut())?;
    let (control, ledger) = (Arc::new(Control::default()), Ledger::new(settings.load.clients));
    let sources = sources(trial, &work, &events, &control, &ledger)?;
    let (load, share) = (&settings.load, Share::WHOLE);
    let writers = Writers { settings: load, share, connections, sources, keeps_acknowledged: false, pins_loops: false };
    let (sender, receiver) = mpsc::channel();
    let is_eventful = !settings.events.is_empty();
    let mut attendant = Attendant::new(current, None, settings, is_eventful.then_some(sender))?;
    attendant.instruments = begin_all(&Beginning { settings, work: &work, target: written_to, current })?;
    let mut overseer = Overseer { attendant, control, groups, broker, cpu: Vec::new() };
    let wire = |client| connect_wire(written_to, client, &work, settings);
    let session = |client| connect_session(written_to, client, &work, settings);
    let by = (&wire as &Reconnect<'_>, &session as &ReconnectSession<'_>);
    let driven = drive_beside(trial, vec![writers], by, &mut overseer, (None, receiver), current);
    let Overseer { mut attendant, mut groups, mut broker, cpu, .. } = overseer;
    let instruments = std::mem::take(&mut attendant.instruments);
    let written_ns = monotonic::now_ns();
    groups.iter_mut().for_each(|group| group.written(written_ns));
    broker.iter_mut().for_each(|broker| broker.tell("written", written_ns));
    let (mut observed, happenings) = driven?;
    let observed = observed.pop().context("nothing was driven")?;
    let attended = attendant.finish(observed.measured_s);
    if let Some(fixture) = &mut current.fixture {
        fixture.is_changed = true;
    }
    let (mut measurement, samples) = measured(trial, &observed, attended, current);
    measurement.invalid_because = judge(&measurement, settings, &observed, current.target.is_embedded());
    let parts = Parts { groups, broker, cpu };
    let seen = collect(parts, &mut measurement, &observed, &events, &ledger, current, &freshness)?;
    measurement.freshness = Some(seen);
    let stored = if is_eventful { stored(&events, &ledger, current)? } else { None };
    happenings.tell(&mut measurement, &observed, Counted { stored, unanswered: None });
    let ending = Ending { settings, work: &work, current, found: None };
    instruments.into_iter().try_for_each(|instrument| instrument.tell(&ending, &mut measurement))?;
    Ok(Executed { measurement, samples, refused: None, is_lost: observed.tally.has_lost })
}

/// Starts the NATS server, if events are published.
fn start_broker(current: &Current, freshness: &FreshnessSettings) -> anyhow::Result<Option<Broker>> {
    let publishes = freshness.path.publishes();
    if historian::is_in_process(current) && (publishes || freshness.run_as == RunAs::Processes) {
        let remedy = "take another database.name";
        bail!("freshness.path and freshness.run_as need a database that other processes can open; {remedy}");
    }
    publishes.then(|| Broker::start(freshness)).transpose()
}

/// Starts the historian, if there is one, and all groups of readers, ready to begin.
fn start_groups(
    trial: &str,
    settings: &Settings,
    current: &Current,
    broker: Option<&mut Broker>,
) -> anyhow::Result<Vec<Group>> {
    let nats = broker.as_ref().map(|broker| broker.endpoint().clone());
    let order =
        |group, reach| ReadersOrder { settings: settings.clone(), group, reach, nats: nats.clone(), ahead_ns: 0 };
    if let Some(broker) = broker {
        broker.start_historian(&order(0, current.reach()))?;
    }
    let groups = settings.freshness.as_ref().map_or(0, FreshnessSettings::groups_in_all);
    let is_elsewhere = settings.freshness.as_ref().is_some_and(|freshness| freshness.run_as == RunAs::Agents);
    let mut agents = match &current.muster {
        Some(muster) if is_elsewhere => take_readers(muster, trial, groups as usize)?,
        None if is_elsewhere => {
            bail!("freshness.run_as is \"agents\" and no agents are named; add --nats URL, where loadline agent waits")
        }
        _ => Vec::new(),
    }
    .into_iter();
    let start = |group| {
        let (target, reach) = current.of_readers(settings, group);
        Group::start(order(group, reach), &target, agents.next())
    };
    (0..groups).map(start).collect()
}

/// The parts that worked next to the writers, and the CPU time of their processes in the measured phase.
struct Parts {
    groups: Vec<Group>,
    broker: Option<Broker>,
    cpu: Vec<(String, f64)>,
}

/// Waits for all readers and the historian and returns what they saw. A problem with them makes the measurement invalid.
fn collect(
    parts: Parts,
    measurement: &mut Measurement,
    observed: &Observed,
    events: &Events,
    ledger: &Ledger,
    current: &Current,
    freshness: &FreshnessSettings,
) -> anyhow::Result<FreshnessMeasurement> {
    let acknowledged = ledger.read();
    let measured_s = observed.measured_s.max(1e-9);
    let mut seen = FreshnessMeasurement { record_bytes: events.record_bytes(), ..FreshnessMeasurement::default() };
    let patience = ANSWERS_WITHIN + Duration::from_secs_f64(measurement.trial.case.settings.load.drain_s);
    let (waited, mut groups) = (Instant::now(), parts.groups);
    // All of them are told meanwhile that the run is there.
    while waited.elapsed() < patience {
        let answered: Vec<bool> = groups.iter_mut().map(Group::has_answered).collect();
        if answered.iter().all(|has_answered| *has_answered) {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    for group in groups {
        let name = group.name.clone();
        let is_process = group.pid().is_some();
        let read = group.finish(patience).with_context(|| format!("group {name}"))?;
        take_in(measurement, &mut seen, &name, &read, &acknowledged, freshness);
        if !is_process {
            let cpu_s: f64 = read.sightings.iter().map(|reader| reader.cpu_s).sum();
            seen.cpus.insert(format!("readers {name}"), cpu_s / measured_s);
        }
    }
    if let Some(mut broker) = parts.broker {
        let (stored, errors) = gather(&broker.stored()?, &acknowledged);
        let ended = |error| Reason::HistorianEnded { error };
        measurement.invalid_because.extend(errors.into_iter().map(ended));
        (seen.stored, seen.protection) = (Some(stored), broker.protection);
    }
    let load_cpu_s: f64 = observed.loops.iter().map(|each| each.cpu_s).sum();
    seen.cpus.insert("writers".to_owned(), load_cpu_s / measured_s);
    if let (Some(used), true) = (&measurement.resources, current.server.is_some()) {
        seen.cpus.insert("database".to_owned(), used.mean.server_cpu);
    }
    seen.cpus.extend(parts.cpu.into_iter().map(|(name, cpu_s)| (name, cpu_s / measured_s)));
    let all: u64 = acknowledged.iter().map(|writer| writer.all).sum();
    // What events cost is counted, and no reason against the trial.
    if freshness.tolerated == 0.0 && measurement.trial.case.settings.events.is_empty() {
        measurement.invalid_because.extend(stored_reason(events, all, measurement.failed() > 0, current)?);
    }
    Ok(seen)
}

/// Returns the writers: each stamps its events when it begins to write them.
fn sources(
    trial: &Trial,
    work: &Arc<Work>,
    events: &Arc<Events>,
    control: &Arc<Control>,
    ledger: &Ledger,
) -> anyhow::Result<Vec<Box<dyn Source>>> {
    let clients = trial.case.settings.load.clients;
    let source = |number| -> anyhow::Result<Box<dyn Source>> {
        let client = workload::Client { number, of: clients, seed: trial.seed };
        let mut own = work.workload(client).map_err(anyhow::Error::msg)?;
        let events = Arc::clone(events);
        let fill = move |request: &mut crate::statement::Request, written_ns| {
            let operation = own.next(&mut request.cells);
            if let crate::operation::Operation::Insert { first, records } = operation {
                events.write(first, records, written_ns, request);
            }
            operation
        };
        Ok(Box::new(Stamper::new(number, Box::new(fill), Arc::clone(control), ledger.clone())))
    };
    (0..clients).map(source).collect()
}

/// Watches the machine during the measured phase and tells writers, readers and the historian when it begins.
struct Overseer {
    attendant: Attendant,
    /// Tells the writers when the measured phase begins.
    control: Arc<Control>,
    groups: Vec<Group>,
    broker: Option<Broker>,
    /// CPU time of processes by name, in seconds: the value at the start of the measured phase, then the time used in it.
    cpu: Vec<(String, f64)>,
}

impl Overseer {
    fn cpu_now(&self) -> Vec<(String, f64)> {
        let of = |group: &Group| Some((format!("readers {}", group.name), cpu_s_of(&[group.pid()?])));
        self.groups.iter().filter_map(of).chain(self.broker.iter().flat_map(Broker::cpu_s)).collect()
    }
}

impl AsMut<Attendant> for Overseer {
    fn as_mut(&mut self) -> &mut Attendant {
        &mut self.attendant
    }
}

impl Observer for Overseer {
    fn measure(&mut self) {
        self.attendant.measure();
        self.cpu = self.cpu_now();
    }

    fn drained(&mut self) {
        self.attendant.drained();
        let now = self.cpu_now();
        for ((_, used_s), (_, now_s)) in self.cpu.iter_mut().zip(now) {
            *used_s = now_s - *used_s;
        }
    }

    fn changing(&mut self, clock: Clock) -> Option<Arc<Changing>> {
        self.attendant.changing(clock)
    }

    fn begins(&mut self, clock: Clock, measure_ns: u64) {
        let from_ns = monotonic::now_ns() + measure_ns.saturating_sub(clock.now_ns());
        self.control.begin(from_ns);
        self.groups.iter_mut().for_each(|group| group.begin(from_ns));
        self.broker.iter_mut().for_each(|broker| broker.tell("begin", from_ns));
    }

    fn is_interrupted(&mut self) -> bool {
        // A trial that has lost a group is not driven to its end.
        let are_there = self.groups.iter_mut().all(Group::is_there);
        !are_there || self.attendant.is_interrupted()
    }

    fn recording(&self) -> Option<&Recording> {
        self.attendant.recording()
    }
}

/// Returns the reasons why the writers' figures are invalid.
fn judge(measurement: &Measurement, settings: &Settings, observed: &Observed, is_embedded: bool) -> Vec<Reason> {
    let circumstances = validity::Circumstances {
        tolerated_failures: if settings.events.is_empty() { settings.load.tolerated_failures } else { 1.0 },
        is_embedded,
        is_cut_short: observed.is_cut_short,
        always_busy_clients: None,
        offered_per_s: settings.load.rate_per_s,
        late_share: LATE_SHARE,
        is_sought: false,
        stored: None,
    };
    validity::reasons(measurement, circumstances)
}

/// Adds what a group saw, with the reasons that make the trial invalid.
fn take_in(
    measurement: &mut Measurement,
    seen: &mut FreshnessMeasurement,
    name: &str,
    read: &Seen,
    acknowledged: &[Acknowledged],
    freshness: &FreshnessSettings,
) {
    let (group, errors) = gather(&read.sightings, acknowledged);
    let group = GroupMeasurement { host: read.host.clone(), clock_error_s: read.clock_error_s, ..group };
    measurement.invalid_because.extend(uncertain(name, &group));
    let ended = |error| Reason::ReaderEnded { group: name.to_owned(), error };
    measurement.invalid_because.extend(errors.into_iter().map(ended));
    measurement.invalid_because.extend(validity::sightings_reason(name, &group, freshness.tolerated));
    seen.groups.insert(name.to_owned(), Box::new(group));
}

/// Returns why the freshness of a group on another machine says too little: its clock is not known well enough.
fn uncertain(name: &str, group: &GroupMeasurement) -> Option<Reason> {
    let (error_s, median_s) = (group.clock_error_s, group.freshness.quantile_ns(0.5) as f64 / NS_PER_S);
    let is_uncertain = group.freshness.count() > 0 && error_s > CLOCK_SHARE_MOST * median_s;
    let (group, host) = (name.to_owned(), group.host.clone());
    is_uncertain.then_some(Reason::FreshnessUncertain { group, host, error_s, median_s })
}

/// Combines what the readers of a group saw, and returns why some ended early.
fn gather(sightings: &[Sightings], acknowledged: &[Acknowledged]) -> (GroupMeasurement, Vec<String>) {
    let mut group = GroupMeasurement { readers: sightings.len() as u32, ..GroupMeasurement::default() };
    for reader in sightings {
        let (expected, lost) = reader.missed(acknowledged);
        group.expected += expected;
        group.lost += lost;
        group.duplicates += reader.duplicates;
        group.polls += reader.polls;
        group.rows += reader.rows;
        group.read_again += reader.read_again;
        group.cut_off += reader.cut_off;
        group.freshness.merge(&reader.freshness);
        group.each.entry(reader.reader).or_default().merge(&reader.freshness);
    }
    (group, sightings.iter().filter_map(|reader| reader.error.clone()).collect())
}

/// Returns the number of acknowledged events and of those in the tables; `None` if they cannot be counted.
fn stored(events: &Events, ledger: &Ledger, current: &Current) -> anyhow::Result<Option<(u64, u64)>> {
    let acknowledged = ledger.read().iter().map(|writer| writer.all).sum();
    Ok(found(events, current)?.map(|found| (acknowledged, found)))
}

/// Returns the number of events in the tables; `None` if they cannot be counted.
fn found(events: &Events, current: &Current) -> anyhow::Result<Option<u64>> {
    current.await_even_writers()?;
    let mut session = current.target.open()?;
    let mut found = 0;
    for table in &events.tables {
        let Some(count) = session.count_rows(table)? else { return Ok(None) };
        found += count;
    }
    Ok(Some(found))
}

/// Returns what is wrong with the number of rows in the tables, if anything.
fn stored_reason(
    events: &Events,
    acknowledged: u64,
    has_failed: bool,
    current: &Current,
) -> anyhow::Result<Option<Reason>> {
    let Some(found) = found(events, current)? else { return Ok(None) };
    let is_wrong = found < acknowledged || (found > acknowledged && !has_failed);
    Ok(is_wrong.then_some(Reason::EventsDiffer { acknowledged, found }))
}
