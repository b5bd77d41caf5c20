//! Measurements: everything observed in one trial. Immutable once stored; every analysis can be run again from it.
//!
//! Invariant: for each kind of operation, scheduled = completed + failed + abandoned.

mod agent;
mod backlog;
mod client;
mod conflicts;
mod disk;
mod environment;
mod events;
mod evolution;
mod freshness;
mod interval;
mod link;
mod loops;
mod operation;
mod recorded;
mod resources;
mod retention;
mod standstill;
pub mod starved;
mod table_size;
mod timeline;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::imported::{ImportedFrom, StatedTimes, TimeKind};
use crate::reason::Reason;
use crate::trial::Trial;
use crate::units::NS_PER_S;

pub use agent::{APART_LEAST_S, AgentMeasurement, OTHERS_BEFORE_MOST, outlying, starts_apart_s};
pub use backlog::is_growing;
pub use client::{ClientMeasurement, ClientTimes};
pub use conflicts::ConflictsMeasurement;
pub use disk::DiskMeasurement;
pub use environment::{DiskSync, Environment, PROVED, ServerFacts};
pub use events::{EventMeasurement, EventsMeasurement};
pub use evolution::{AsideMeasurement, ChangeMeasurement, EvolutionMeasurement};
pub use freshness::{FreshnessMeasurement, GroupMeasurement};
pub use interval::IntervalMeasurement;
pub use link::LinkMeasurement;
pub use loops::LoopMeasurement;
pub use operation::OperationMeasurement;
pub use recorded::{RecordedMeasurement, RecorderMeasurement, outlying_recorder};
pub use resources::{ResourceSample, Resources};
pub use retention::RetentionMeasurement;
pub use standstill::{Standstill, standstill};
pub use starved::{Starvation, Waited, starvation};
pub use table_size::TableSize;
pub use timeline::{MOMENTS_MOST, Moment, Timeline, Told, ToldFigure, ToldHow, ToldUnit};

/// Version of the stored form; raised when a field's meaning would change, which it never does silently.
/// Since 2 the reasons in `invalid_because` are objects with their figures; before they were sentences, which are still read.
pub const MEASUREMENT_VERSION: u32 = 2;

/// One finished trial: a line of `trials.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// [`MEASUREMENT_VERSION`] of the writer.
    pub version: u32,
    /// The trial that was measured.
    pub trial: Trial,
    /// Position in the order in which the run's trials were executed, from 0.
    pub sequence: u64,
    /// Start of the trial, UTC, RFC 3339.
    pub started: String,
    /// Length of all phases together, in seconds.
    pub total_s: f64,
    /// Length of the measured phase, in seconds: from its start to the last operation that counts.
    pub measured_s: f64,
    /// Time in seconds to open the connections before the measured phase, where throughput includes it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connecting_s: Option<f64>,
    /// Operations of an open loop that were completed within the measured phase, whenever they were intended; none for a
    /// closed loop. Throughput is computed from it, because an overloaded database's backlog reaches over both ends.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub carried: Option<u64>,
    // A map has room for eleven of its values, however few it holds: boxed values reduce the memory of a trial to a fifth.
    /// Per kind of operation, by its name: `insert`, `read`, `statement-1`. Each operation that is not a part of another is counted here once.
    pub operations: BTreeMap<String, Box<OperationMeasurement>>,
    /// Per kind of operation, the operations that were part of another one, as reads and updates are of read-modify-writes. The whole is
    /// in `operations`, and only that counts in throughput and other totals.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub parts: BTreeMap<String, Box<OperationMeasurement>>,
    /// Per kind of operation, the operations of the load in the background. They count in no total and not in throughput.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub background: BTreeMap<String, Box<OperationMeasurement>>,
    /// Operations per client. Shows whether clients were served alike. Left out when a run is read, because no report needs it: with
    /// hundreds of clients it is most of a trial.
    pub clients: Vec<ClientMeasurement>,
    /// Number of clients that were left out of `clients`.
    #[serde(skip)]
    pub clients_left_out: u32,
    /// Time from the intended time to sending for clients that were free: the generator's own lateness, without queueing.
    pub generator_late: Histogram,
    /// The threads that drove the load.
    pub loops: Vec<LoopMeasurement>,
    /// The agents that drove the load together, in their order; empty where loadline drove it itself.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub agents: Vec<AgentMeasurement>,
    /// Equal intervals of the measured phase.
    pub series: Vec<IntervalMeasurement>,
    /// Figures of the machine and the database over the trial; `None` where nothing was sampled.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeline: Option<Timeline>,
    /// CPU time of loadline in the measured phase, in seconds; it includes the work of an embedded database.
    pub client_cpu_s: f64,
    /// Resource use of the machine and the processes; `None` where monitoring failed.
    pub resources: Option<Resources>,
    /// Version of the database, as the database states it.
    pub database_version: String,
    /// Messages of failed operations and how often each occurred; at most 20 different ones.
    pub errors: BTreeMap<String, u64>,
    /// The database's query plans, by kind of operation, line by line; empty where the study does not ask for them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub plans: BTreeMap<String, Vec<String>>,
    /// Schema changes made during the trial; `None` where the study asks for none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub evolution: Option<EvolutionMeasurement>,
    /// Readings retired during the trial; `None` where the study asks for no retention.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retention: Option<RetentionMeasurement>,
    /// Events of the server that the study asked for; `None` where it asks for none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub events: Option<EventsMeasurement>,
    /// Sightings of the written events by readers; `None` where there were no readers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub freshness: Option<FreshnessMeasurement>,
    /// The fate of the acknowledged records, where the study has a `[recorder]`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recorded: Option<RecordedMeasurement>,
    /// Number of operations with raw times in `samples/<trial>.samples`, including those of the warm-up; `None` where none were asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub samples: Option<u64>,
    /// Conflicts between transactions; `None` where none are known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub conflicts: Option<ConflictsMeasurement>,
    /// Writes to the disk by a writer beside the load; `None` without such a writer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub disk: Option<DiskMeasurement>,
    /// Capacity of the link between load and server, measured before the trial; `None` without a link.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub link: Option<LinkMeasurement>,
    /// Size of the tables on the disk after the trial; `None` where the database does not report it, or the number of records is unknown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub table_size: Option<TableSize>,
    /// Reasons why this trial is not to be trusted; empty when it is valid.
    pub invalid_because: Vec<Reason>,
    /// Origin of the trial, if another tool measured it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub imported: Option<ImportedFrom>,
}

impl Measurement {
    /// Creates the measurement of a trial in which nothing has been observed yet.
    pub fn unmeasured(trial: &Trial) -> Self {
        Measurement {
            version: MEASUREMENT_VERSION,
            trial: trial.clone(),
            sequence: 0,
            started: String::new(),
            total_s: 0.0,
            measured_s: 0.0,
            connecting_s: None,
            carried: None,
            operations: BTreeMap::new(),
            parts: BTreeMap::new(),
            background: BTreeMap::new(),
            clients: Vec::new(),
            clients_left_out: 0,
            generator_late: Histogram::new(),
            loops: Vec::new(),
            agents: Vec::new(),
            series: Vec::new(),
            timeline: None,
            client_cpu_s: 0.0,
            resources: None,
            database_version: String::new(),
            errors: BTreeMap::new(),
            plans: BTreeMap::new(),
            evolution: None,
            retention: None,
            events: None,
            conflicts: None,
            freshness: None,
            disk: None,
            link: None,
            table_size: None,
            recorded: None,
            samples: None,
            invalid_because: Vec::new(),
            imported: None,
        }
    }

    /// Returns whether no reason speaks against the trial's figures.
    pub fn is_valid(&self) -> bool {
        self.invalid_because.is_empty()
    }

    /// Returns the number of operations completed, of all kinds.
    pub fn completed(&self) -> u64 {
        self.counted().map(|operation| operation.completed).sum()
    }

    /// Returns the number of operations failed, of all kinds.
    pub fn failed(&self) -> u64 {
        self.counted().map(|operation| operation.failed).sum()
    }

    /// Returns the number of operations whose intended time was in the measured phase, of all kinds.
    pub fn scheduled(&self) -> u64 {
        self.counted().map(|operation| operation.scheduled).sum()
    }

    /// Returns the number of operations not answered when the drain phase ended, of all kinds.
    pub fn abandoned(&self) -> u64 {
        self.counted().map(|operation| operation.abandoned).sum()
    }

    /// Returns the operations scheduled per second; 0 when nothing was measured.
    pub fn offered_per_s(&self) -> f64 {
        per_second(self.scheduled() as f64, self.measured_s)
    }

    /// Returns the response times of all kinds of operation; abandoned operations count with the time for which they had waited, so that
    /// with them every quantile is a lower bound.
    pub fn response_times(&self) -> Histogram {
        self.times(TimeKind::ResponseTime)
    }

    /// Returns the kinds of operation over which totals are taken: those that are not made of others.
    fn counted(&self) -> impl Iterator<Item = &OperationMeasurement> {
        self.operations.values().map(Box::as_ref).filter(|operation| !operation.composite)
    }

    /// Returns the recorded times of all kinds of operation; empty where they are not known, or stated without a histogram.
    pub fn times(&self, kind: TimeKind) -> Histogram {
        let mut counted = self.counted();
        // The histogram of a single kind stays packed as it was read.
        let mut all = counted.next().map_or_else(Histogram::new, |first| first.times(kind));
        counted.for_each(|operation| all.merge(&operation.times(kind)));
        all
    }

    /// Returns the times of all kinds of operation as another tool states them, if it does.
    fn stated(&self, kind: TimeKind) -> Option<StatedTimes> {
        let mut all: Option<(u64, StatedTimes)> = None;
        for operation in self.counted().filter(|operation| operation.completed > 0) {
            let stated = operation.stated.get(&kind)?;
            let (count, joined) = match &all {
                None => (0, stated.clone()),
                Some((count, before)) => (*count, before.joined(*count, stated, operation.completed)),
            };
            all = Some((count + operation.completed, joined));
        }
        all.map(|(_, stated)| stated)
    }

    /// Returns the mean of a time over all kinds of operation, in seconds; `None` where it is not known.
    pub fn mean_s(&self, kind: TimeKind) -> Option<f64> {
        let all = self.times(kind);
        if all.count() > 0 { Some(all.mean_ns() / NS_PER_S) } else { self.stated(kind)?.mean_s }
    }

    /// Returns the largest value of a time over all kinds of operation, in seconds; `None` where it is not known.
    pub fn max_s(&self, kind: TimeKind) -> Option<f64> {
        let all = self.times(kind);
        if all.count() > 0 { Some(all.max_ns() as f64 / NS_PER_S) } else { self.stated(kind)?.max_s }
    }

    /// Returns a quantile (0..1) of a time over all kinds of operation, in seconds; `None` where it is not known: the quantiles
    /// stated for several kinds do not give the quantile over all.
    pub fn quantile_s(&self, kind: TimeKind, quantile: f64) -> Option<f64> {
        let all = self.times(kind);
        if all.count() > 0 {
            return Some(all.quantile_ns(quantile) as f64 / NS_PER_S);
        }
        self.stated(kind)?.quantile_s(quantile)
    }

    /// Returns the CPU time of loadline in the measured phase, in seconds; `None` where another tool measured.
    pub fn known_client_cpu_s(&self) -> Option<f64> {
        self.imported.is_none().then_some(self.client_cpu_s)
    }

    /// Returns how many CPUs loadline kept busy, on this machine and on the hosts of agents; `None` without monitoring.
    pub fn client_cpus(&self) -> Option<f64> {
        let of_agents = self.agents.iter().filter_map(|agent| agent.resources.as_ref());
        let used = of_agents.map(|used| used.mean.client_cpu).sum::<f64>();
        self.resources.as_ref().map(|here| here.mean.client_cpu + used)
    }

    /// Returns the records written or read per second; `None` where another tool measured that does not report them.
    pub fn known_records_per_s(&self) -> Option<f64> {
        self.imported.as_ref().is_none_or(|from| from.records_known).then(|| self.records_per_s())
    }

    /// Returns the operations completed per second, including the time to connect where that counts; 0 when nothing was measured. Uploads across an
    /// edge of the measured phase count in proportion.
    pub fn throughput_per_s(&self) -> f64 {
        let told = self.imported.as_ref().and_then(|from| from.operations);
        let took_s = self.measured_s + self.connecting_s.unwrap_or(0.0);
        let counted = || per_second(self.carried.or(told).unwrap_or_else(|| self.completed()) as f64, took_s);
        self.recorded.as_ref().and_then(|recorded| recorded.blocks_per_s).unwrap_or_else(counted)
    }

    /// Returns the records written or read per second; 0 when nothing was measured.
    pub fn records_per_s(&self) -> f64 {
        let records: u64 = self.counted().map(|operation| operation.records).sum();
        self.throughput_per_s() * records as f64 / self.completed().max(1) as f64
    }
}

fn per_second(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}
