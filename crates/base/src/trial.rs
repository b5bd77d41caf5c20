//! Trials: resolved, seeded points of a study. A trial carries everything that decides what is done, so that it can be stored, resumed and sent to another machine.
//!
//! Invariant: [`Trial::id`] is a hash of the trial's content; equal content means equal id, on every machine.

mod database;
mod durability;
mod events;
mod evolve;
mod freshness;
mod layout;
mod levels;
mod record;
mod replay;
mod retention;
mod statements;
mod surroundings;
mod tables;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::operation::KindNames;
use crate::query::Query;
use crate::question::Question;

pub use database::DatabaseSettings;
pub use durability::{DurabilityPlan, FaultKind};
pub use events::{CutKeeps, EventKind, EventSettings};
pub use evolve::{EVOLVE_AT_MOST_S, EvolveSettings, SchemaChangeKind};
pub use freshness::{EventPath, FreshnessSettings, Poll, RunAs};
pub use layout::LayoutSettings;
pub use levels::{level_text, show_level, show_levels};
pub use record::{CustomColumn, SeriesSettings, TimeIndex, UsertableSettings};
pub use replay::{ReplayLoad, ReplaySettings, Replayed};
pub use retention::{RetentionSettings, RetireBy};
pub use statements::{Asked, Fill, SqlPart, SqlStatement, TimeBlocks, Times};
pub use surroundings::{
    BackgroundSettings, BlocksSettings, DiskSettings, DiskSync, LinkHosts, LinkSettings, RECORDERS_MAX, RecorderBuffer,
    RecorderPath, RecorderSettings, TUNNELS,
};
pub use tables::{ColumnFill, TableSettings};

/// The level of each factor, by the factor's dotted setting: `{"layout.name": "star", "load.clients": 4}`.
pub type Levels = BTreeMap<String, serde_json::Value>;

/// One combination of levels, with every setting resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Hash of the settings, 16 hexadecimal digits.
    pub id: String,
    /// The factors' levels.
    pub levels: Levels,
    /// All settings.
    pub settings: Settings,
}

/// One repetition of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Hash of the case, the round and the seed, 16 hexadecimal digits.
    pub id: String,
    /// The case that is repeated; shared by its trials, which may be thousands.
    pub case: Arc<Case>,
    /// Number of the repetition, from 0.
    pub round: u32,
    /// Seed of everything random in this trial.
    pub seed: u64,
    /// The requirements of a search for the load line; `None` outside of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sought: Option<Sought>,
    /// Number of the attempt, from 1, if it was lost with an agent and the trial was driven once more; `None` for the attempt that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_attempt: Option<u32>,
}

/// What a search for the load line requires of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sought {
    /// Quantile of response time, 0..1.
    pub quantile: f64,
    /// Bound on that quantile, in seconds.
    pub below_s: f64,
    /// Length of the measured phase in seconds; `None` where the case's own length is long enough for the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

impl Case {
    /// Creates a case and computes its id.
    pub fn new(levels: Levels, settings: Settings) -> Self {
        let id = content_hash(&settings);
        Case { id, levels, settings }
    }
}

impl Trial {
    /// Creates a trial and computes its id.
    pub fn new(case: impl Into<Arc<Case>>, round: u32, seed: u64) -> Self {
        let case = case.into();
        let id = content_hash(&(&case.settings, round, seed));
        Trial { id, case, round, seed, sought: None, lost_attempt: None }
    }

    /// Returns the trial as an attempt that was lost with an agent. Its id is another one than that of the trial, which is driven once more.
    #[must_use]
    pub fn lost(&self, attempt: u32) -> Trial {
        let id = content_hash(&(&self.case.settings, self.round, self.seed, attempt));
        Trial { id, lost_attempt: Some(attempt), ..self.clone() }
    }

    /// Returns the trial as it is driven: its case with the length that the search requires.
    pub fn driven(&self) -> Trial {
        let mut driven = self.clone();
        let Some(sought) = self.sought else { return driven };
        let load = &self.case.settings.load;
        if let Some(replay) = load.replay {
            let replay = replay.lasting(sought.seconds, load.rate_per_s);
            Arc::make_mut(&mut driven.case).settings.load.replay = Some(replay);
        } else if let Some(seconds) = sought.seconds {
            Arc::make_mut(&mut driven.case).settings.load.length = Length::Seconds(seconds);
        }
        driven
    }
}

/// Returns the hash of the JSON form of a value. Maps are sorted, so that the form is canonical.
fn content_hash(content: &impl Serialize) -> String {
    text_hash(&serde_json::to_string(content).expect("settings are plain data and always have a JSON form"))
}

/// Returns the FNV-1a hash of a text, 64 bits as 16 hexadecimal digits.
pub fn text_hash(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// All settings of a trial, resolved from the study file, `--set` and the case's levels.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Settings {
    /// `[database]`
    pub database: DatabaseSettings,
    /// `[record]`
    pub record: RecordSettings,
    /// `[layout]`
    pub layout: LayoutSettings,
    /// `[workload]`
    pub workload: WorkloadSettings,
    /// `[load]`
    pub load: LoadSettings,
    /// `[background]`: a second load beside the main one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub background: Option<BackgroundSettings>,
    /// `[retention]`: how old readings are thrown away while others come in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retention: Option<RetentionSettings>,
    /// `[freshness]`: the readers of the workload `freshness`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub freshness: Option<FreshnessSettings>,
    /// `[disk]`: a writer beside the load.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub disk: Option<DiskSettings>,
    /// `[link]`: the network between load and server.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub link: Option<LinkSettings>,
    /// `[recorder]`: the recorder through which records reach the database.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recorder: Option<RecorderSettings>,
    /// `[blocks]`: the blocks that are uploaded, where the study has any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub blocks: Option<BlocksSettings>,
    /// `[[tables]]`: the study's own tables in this case.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tables: Vec<TableSettings>,
    /// `[[events]]`: events of the server.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub events: Vec<EventSettings>,
}

/// The order of the numbers of `wisconsin` unless a study sets another one.
pub const WISCONSIN_PERMUTATION: &str = "feistel";

/// `[record]`: the data.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecordSettings {
    /// Name in the registry, or `custom`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Table name; layouts with several tables derive their names from it.
    pub table: String,
    /// Records present before the measured phase.
    pub rows: u64,
    /// Seed of the data.
    pub seed: u64,
    /// Consecutive records that share one identity, at least 1. A multiple of [`WorkloadSettings::batch`].
    pub per_measurement: u64,
    /// The order of the numbers of `wisconsin`: always set for studies that were read. Older runs without it used `lfsr`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub permutation: Option<String>,
    /// Measurements of several lengths, in order: (number of measurements, records of each), with `scale` already applied; empty
    /// where all have the same length. [`RecordSettings::rows`] is their sum.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub runs: Vec<(u64, u64)>,
    /// Factor by which the lengths of `runs` were multiplied; `None` for 1. Values that count up within a run do so by its inverse.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scale: Option<f64>,
    /// Bytes of content of a `sensor` record; `None` for the type's default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub length: Option<u32>,
    /// Settings of the record type `usertable`.
    #[serde(skip_serializing_if = "is_default", default)]
    pub usertable: UsertableSettings,
    /// Whether the tables and their rows are there already: loadline then neither creates, fills nor drops them.
    #[serde(skip_serializing_if = "is_default", default)]
    pub existing: bool,
    /// Sources and times of the records; `None` where they have none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub series: Option<SeriesSettings>,
    /// Identity columns of a custom record.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub identity: Vec<CustomColumn>,
    /// Value columns of a custom record.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub values: Vec<CustomColumn>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `[workload]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WorkloadSettings {
    /// Name in the registry.
    pub name: String,
    /// Records per transaction, at least 1.
    pub batch: u32,
    /// Statements of the workload `sql`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub statements: Vec<SqlStatement>,
    /// SQL that is executed before each trial.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub set_up: Vec<String>,
    /// SQL that is executed after each trial.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub clean_up: Vec<String>,
    /// The design of the study's own tables that this case uses.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub design: Option<String>,
    /// The database's answers to the queries of [`Fill::From`] and [`Fill::SequenceFrom`]; empty before a trial.
    #[serde(skip)]
    pub asked: Asked,
    /// The statements that the workload `replay` sends, in their stored form.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub replay: Option<ReplaySettings>,
    /// The statements that the workload `replay` sends, in full; not stored.
    #[serde(skip)]
    pub replayed: Replayed,
    /// Relative shares of the workload `mix`, by the name of the workload.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub mix: BTreeMap<String, f64>,
    /// The value column that `select` reads and `update` sets. Without it `select` reads all columns, and `update` sets the
    /// first hot value column, or the first one where none is hot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attribute: Option<String>,
    /// Queries of the workload `query`: all of them, or the one that `workload.query` names.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub queries: Vec<Query>,
    /// Questions of the workload `questions`: all of them, or the one that `workload.question` names.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub questions: Vec<Question>,
    /// Name of the question, where one was chosen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub question: Option<String>,
    /// Name of the query, where one was chosen.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub query: Option<String>,
    /// Number of latest records that the queries of `recent` read; 0 for all of them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub window: Option<u64>,
    /// Whether the database's query plans are kept.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub explain: bool,
    /// Whether the statements of `sql` may change a database that loadline did not start itself.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub writes: bool,
    /// Time from one schema change to the next, which reverts it, in seconds; `None` where the schema stays as it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub evolve_s: Option<f64>,
    /// Records that get a value of the added field; `None` for 100.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub evolve_records: Option<u64>,
    /// The kind of schema change.
    #[serde(skip_serializing_if = "is_default", default)]
    pub evolve: EvolveSettings,
    /// Deviations of a YCSB workload from its letter.
    #[serde(skip_serializing_if = "is_default", default)]
    pub ycsb: YcsbSettings,
}

/// Changes to a YCSB workload; settings that are absent are those of its letter, or YCSB's defaults where it has no letter.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct YcsbSettings {
    /// Shares of the operations, relative to each other: `read`, `update`, `insert`, `scan`, `read_modify_write`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shares: BTreeMap<String, f64>,
    /// How records are chosen: `uniform`, `zipfian`, `latest`, `hotspot`, `exponential` or `sequential`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<String>,
    /// Whether reads and scans ask for all fields; otherwise they ask for a random one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_all_fields: Option<bool>,
    /// Whether updates set all fields; otherwise they set a random one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_all_fields: Option<bool>,
    /// Smallest number of records of a scan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_least: Option<u32>,
    /// Largest number of records of a scan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_most: Option<u32>,
    /// Distribution of the lengths of scans: `uniform` or `zipfian`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_lengths: Option<String>,
    /// `hotspot`: share of the records that are hot, 0..1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hot_records: Option<f64>,
    /// `hotspot`: share of the operations on hot records, 0..1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hot_operations: Option<f64>,
    /// `exponential`: share of the records, 0..1, counted from the last one, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent_records: Option<f64>,
    /// … that receives this share of the operations, 0..1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent_operations: Option<f64>,
    /// Number of operations for whose inserts `zipfian` makes room; without it the number that ends the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations_expected: Option<u64>,
    /// Number of the first record that `ycsb-load` inserts, or that the other workloads ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// Number of records from `first` on; `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
}

impl WorkloadSettings {
    /// Returns the names of the kinds of operation in results.
    pub fn kind_names(&self) -> KindNames {
        match &self.replay {
            Some(replay) => KindNames::of(replay.kinds.iter().map(|(name, _)| Some(name.as_str()))),
            None if !self.questions.is_empty() => {
                KindNames::of(self.questions.iter().map(|question| Some(question.name.as_str())))
            }
            None => KindNames::of(self.statements.iter().map(|statement| statement.name.as_deref())),
        }
    }
}

/// `[load]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadSettings {
    /// Arrival process.
    pub arrivals: Arrivals,
    /// Connections, at least 1.
    pub clients: u32,
    /// Arrivals per second, open loop only; for sources, the sum over all sources.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_per_s: Option<f64>,
    /// The shape of the rate over the measured phase, as points (time, weight) connected by straight lines; empty where the rate is constant.
    /// [`LoadSettings::rate_per_s`] is its mean.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub profile: Vec<[f64; 2]>,
    /// Arrivals per second of each source, where clients are sources.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_rate_per_s: Option<f64>,
    /// File with the intended times of `arrivals = "trace"`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trace: Option<String>,
    /// The trace that is replayed; all of it lies in the measured phase.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub replay: Option<ReplayLoad>,
    /// What ends the measured phase.
    pub length: Length,
    /// Where a number of operations ends the measured phase: the time in seconds after which it ends in any case.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at_most_s: Option<f64>,
    /// Length of the discarded phase before it, in seconds.
    pub warmup_s: f64,
    /// Pause of a client between the end of an operation and the intended time of the next, in seconds; closed loop only.
    pub think_s: f64,
    /// Longest wait for operations still running after the measured phase, in seconds.
    pub drain_s: f64,
    /// Whether the raw times of every operation are kept.
    pub samples: bool,
    /// CPUs that the client is pinned to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpus: Option<String>,
    /// Number of event-loop threads; `None` for one per 64 clients.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub loops: Option<u32>,
    /// Whether statements are sent as text with their values in it, and none is prepared.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub statements_as_text: bool,
    /// Whether the statements of a transaction are sent in one round trip. If not, BEGIN, each statement and COMMIT wait for the answer to the previous one.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub pipeline: bool,
    /// Whether each operation opens and closes its own connection.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub connects_each_time: bool,
    /// How often an operation is sent again whose transaction lost against another one.
    #[serde(skip_serializing_if = "is_default", default)]
    pub retries: u32,
    /// Share of failed operations that is tolerated before a trial is invalid, 0..1.
    pub tolerated_failures: f64,
    /// Whether throughput includes the time to open the connections; closed loop only.
    #[serde(skip_serializing_if = "is_default", default)]
    pub count_connecting: bool,
    /// Number of agents that drive the load together; `None` if loadline drives it itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agents: Option<u32>,
}

/// When operations arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Each client sends its next operation when its previous one is done and the think time has passed.
    #[default]
    Closed,
    /// Exponential gaps, independent of the answers.
    Poisson,
    /// Equal gaps, independent of the answers.
    Constant,
    /// Gaps from a file.
    Trace,
    /// The statements of a trace, each at its own time over the connection of its session.
    Replay,
    /// Each client is a source: it starts at its own time within the warm-up, sends at equal gaps independently of the answers, and
    /// ends when it has sent for as long as the warm-up and the measured phase together. All are active in the measured phase.
    Sources,
}

/// What ends the measured phase of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// A number of operations, counted over all clients.
    Operations(u64),
    /// A number of operations of each client.
    OperationsPerClient(u64),
    /// A number of seconds.
    Seconds(f64),
}

impl Default for Length {
    fn default() -> Self {
        Length::Seconds(10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_trial_depends_on_its_content_and_on_nothing_else() {
        let case = Case::new(Levels::new(), Settings::default());
        let again = Case::new([("x".to_owned(), 1.into())].into(), Settings::default());
        assert_eq!(case.id, again.id, "labels do not change what is done");
        let first = Trial::new(case.clone(), 0, 7);
        assert_eq!(first, Trial::new(case.clone(), 0, 7));
        assert_ne!(first.id, Trial::new(case.clone(), 1, 7).id);
        assert_ne!(first.id, Trial::new(case, 0, 8).id);
    }
}
