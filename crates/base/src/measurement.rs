//! Measurements: everything observed in one trial. Immutable once stored; every analysis can be run again from it.
//!
//! Invariant: for each kind of operation, scheduled = completed + failed + abandoned.

mod backlog;
mod client;
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

pub use backlog::is_growing;
pub use client::{ClientMeasurement, ClientTimes};
pub use disk::DiskMeasurement;
pub use environment::{DiskSync, Environment, PROVED, ServerFacts};
pub use events::{EventMeasurement, EventsMeasurement};
pub use evolution::{AsideMeasurement, ChangeMeasurement, EvolutionMeasurement};
pub use freshness::{FreshnessMeasurement, GroupMeasurement};
pub use interval::IntervalMeasurement;
pub use link::LinkMeasurement;
pub use loops::LoopMeasurement;
pub use operation::OperationMeasurement;
pub use recorded::RecordedMeasurement;
pub use resources::{ResourceSample, Resources};
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
    /// What was done.
    pub trial: Trial,
    /// Place in the order in which the run's trials were executed, from 0.
    pub sequence: u64,
    /// When the trial began, UTC, RFC 3339.
    pub started: String,
    /// Length of all phases together, in seconds.
    pub total_s: f64,
    /// Length of the measured phase, in seconds: from its start to the last operation that counts.
    pub measured_s: f64,
    /// How long opening the connections took before it, in seconds, where that counts in throughput.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connecting_s: Option<f64>,
    /// Operations of an open loop that were completed within the measured phase, whenever they were intended; none for a
    /// closed loop. Throughput is computed from it, because an overloaded database's backlog reaches over both ends.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub carried: Option<u64>,
    // A map has room for eleven of its values, however few there are: boxed, a trial takes a fifth of the memory.
    /// Per kind of operation, by its name: `insert`, `read`, `statement-1`. Each of a kind that stands for itself is here once.
    pub operations: BTreeMap<String, Box<OperationMeasurement>>,
    /// Per kind of operation, those that were a part of another one, as reads and updates are of read-modify-writes. The whole is
    /// in `operations`, and only that counts in throughput and other totals.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub parts: BTreeMap<String, Box<OperationMeasurement>>,
    /// Per kind of operation, those of the load in the background. They count in no total and have no part in throughput.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub background: BTreeMap<String, Box<OperationMeasurement>>,
    /// Per client: how much it did. Shows whether clients were served alike. Left out of what is read from a run, which no report needs: with
    /// hundreds of clients it is most of a trial.
    pub clients: Vec<ClientMeasurement>,
    /// How many clients were left out of `clients`.
    #[serde(skip)]
    pub clients_left_out: u32,
    /// How long a free client took from the intended time to sending: the generator's own lateness, apart from queueing.
    pub generator_late: Histogram,
    /// The threads that drove the load.
    pub loops: Vec<LoopMeasurement>,
    /// Equal intervals of the measured phase.
    pub series: Vec<IntervalMeasurement>,
    /// What machine and database did meanwhile; none where nothing was sampled.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeline: Option<Timeline>,
    /// CPU time of loadline in the measured phase, in seconds; with an embedded database that database's work is part of it.
    pub client_cpu_s: f64,
    /// What the machine and the processes did; none where monitoring failed.
    pub resources: Option<Resources>,
    /// Version of the database as it states it.
    pub database_version: String,
    /// Messages of failed operations and how often each occurred; at most 20 different ones.
    pub errors: BTreeMap<String, u64>,
    /// The database's plans of its queries, by kind of operation, line by line; empty where the study does not ask for them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub plans: BTreeMap<String, Vec<String>>,
    /// The schema changes that were made meanwhile; none where the study asks for none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub evolution: Option<EvolutionMeasurement>,
    /// What happened to the server on purpose; none where the study asks for nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub events: Option<EventsMeasurement>,
    /// What readers saw of the events that were written; none where nobody looked for them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub freshness: Option<FreshnessMeasurement>,
    /// What became of the records that were acknowledged, where the study has a `[recorder]`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recorded: Option<RecordedMeasurement>,
    /// Operations whose raw times are in `samples/<trial>.samples`, the warm-up's included; none where they were not asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub samples: Option<u64>,
    /// What a writer beside the load wrote to the disk; none without one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub disk: Option<DiskMeasurement>,
    /// What the link between load and server carried, measured before the trial; none without a link.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub link: Option<LinkMeasurement>,
    /// What its tables took on the disk behind it; none where the database does not tell, or nobody knows how many records they hold.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub table_size: Option<TableSize>,
    /// Why this trial is not to be trusted; empty when it is valid.
    pub invalid_because: Vec<Reason>,
    /// Where the trial comes from, if another tool measured it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub imported: Option<ImportedFrom>,
}

impl Measurement {
    /// A measurement of a trial in which nothing was observed yet.
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
            series: Vec::new(),
            timeline: None,
            client_cpu_s: 0.0,
            resources: None,
            database_version: String::new(),
            errors: BTreeMap::new(),
            plans: BTreeMap::new(),
            evolution: None,
            events: None,
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

    /// Whether nothing speaks against the trial's figures.
    pub fn is_valid(&self) -> bool {
        self.invalid_because.is_empty()
    }

    /// Operations of all kinds completed.
    pub fn completed(&self) -> u64 {
        self.counted().map(|operation| operation.completed).sum()
    }

    /// Operations of all kinds failed.
    pub fn failed(&self) -> u64 {
        self.counted().map(|operation| operation.failed).sum()
    }

    /// Operations of all kinds whose intended time fell into the measured phase.
    pub fn scheduled(&self) -> u64 {
        self.counted().map(|operation| operation.scheduled).sum()
    }

    /// Operations of all kinds not answered when the drain phase ended.
    pub fn abandoned(&self) -> u64 {
        self.counted().map(|operation| operation.abandoned).sum()
    }

    /// Operations scheduled per second; 0 when nothing was measured.
    pub fn offered_per_s(&self) -> f64 {
        per_second(self.scheduled() as f64, self.measured_s)
    }

    /// Response times of all kinds of operation; abandoned operations count with the time that they had waited, so that with
    /// them every quantile is a lower bound.
    pub fn response_times(&self) -> Histogram {
        self.times(TimeKind::ResponseTime)
    }

    /// Kinds of operation that are not made of others: those that totals are taken over.
    fn counted(&self) -> impl Iterator<Item = &OperationMeasurement> {
        self.operations.values().map(Box::as_ref).filter(|operation| !operation.composite)
    }

    /// The counted times of all kinds of operation; empty where they are not known, or stated without a histogram.
    pub fn times(&self, kind: TimeKind) -> Histogram {
        let mut counted = self.counted();
        // One kind alone stays packed as it was read.
        let mut all = counted.next().map_or_else(Histogram::new, |first| first.times(kind));
        counted.for_each(|operation| all.merge(&operation.times(kind)));
        all
    }

    /// The times of all kinds of operation as another tool states them, if it does.
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

    /// Mean of a time over all kinds of operation, in seconds; none where it is not known.
    pub fn mean_s(&self, kind: TimeKind) -> Option<f64> {
        let all = self.times(kind);
        if all.count() > 0 { Some(all.mean_ns() / NS_PER_S) } else { self.stated(kind)?.mean_s }
    }

    /// Largest time over all kinds of operation, in seconds; none where it is not known.
    pub fn max_s(&self, kind: TimeKind) -> Option<f64> {
        let all = self.times(kind);
        if all.count() > 0 { Some(all.max_ns() as f64 / NS_PER_S) } else { self.stated(kind)?.max_s }
    }

    /// A quantile (0..1) of a time over all kinds of operation, in seconds; none where it is not known: quantiles that are
    /// stated for several kinds do not give that of all.
    pub fn quantile_s(&self, kind: TimeKind, quantile: f64) -> Option<f64> {
        let all = self.times(kind);
        if all.count() > 0 {
            return Some(all.quantile_ns(quantile) as f64 / NS_PER_S);
        }
        self.stated(kind)?.quantile_s(quantile)
    }

    /// CPU time of loadline in the measured phase, in seconds; none where another tool measured.
    pub fn known_client_cpu_s(&self) -> Option<f64> {
        self.imported.is_none().then_some(self.client_cpu_s)
    }

    /// Records written or read per second; none where another tool measured that does not tell.
    pub fn known_records_per_s(&self) -> Option<f64> {
        self.imported.as_ref().is_none_or(|from| from.records_known).then(|| self.records_per_s())
    }

    /// Operations completed per second, of the time of connecting too where that counts; 0 when nothing was measured. Uploads over an edge
    /// of the measured phase count in proportion.
    pub fn throughput_per_s(&self) -> f64 {
        let told = self.imported.as_ref().and_then(|from| from.operations);
        let took_s = self.measured_s + self.connecting_s.unwrap_or(0.0);
        let counted = || per_second(self.carried.or(told).unwrap_or_else(|| self.completed()) as f64, took_s);
        self.recorded.as_ref().and_then(|recorded| recorded.blocks_per_s).unwrap_or_else(counted)
    }

    /// Records written or read per second; 0 when nothing was measured.
    pub fn records_per_s(&self) -> f64 {
        let records: u64 = self.counted().map(|operation| operation.records).sum();
        self.throughput_per_s() * records as f64 / self.completed().max(1) as f64
    }
}

fn per_second(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}
