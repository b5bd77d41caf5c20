//! Findings: what a run's measurements amount to, as `run --json` and `report --json` print it.
//!
//! Main type: [`Findings`]. Invariant: a figure that the evidence does not give is `null`, never 0.

mod durability;
mod events;
mod invalidity;
mod load_line;
mod note;
mod outcome;
mod verdict;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::imported::TimeKind;
use crate::trial::Levels;
use crate::units::{Carried, show_number};

pub use durability::{DurabilityCase, DurabilityTest, HarmfulFailure, RecoveryTimes};
pub use events::{EventFinding, EventsFinding};
pub use invalidity::Invalidity;
pub use load_line::LoadLine;
pub use note::{Cached, FewRows, Note, Unsettled};
pub use outcome::{Outcome, RefutedSeen, Seen, UNUSABLE};
pub use verdict::{Compared, Found, Leader, Pays, Told, Verdict};

/// Everything that is said about a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Findings {
    /// The run directory.
    pub run: String,
    /// Name of the study.
    pub study: String,
    /// The tool that measured, if it was not loadline; left out of JSON otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<String>,
    /// What was to be found out.
    pub question: String,
    /// Seed of the study.
    pub seed: u64,
    /// Whether there is a trial, and no trial is invalid but those that a search repeated well.
    pub valid: bool,
    /// Whether sizes and repeats were shrunk: figures are then not to be quoted.
    pub rehearsal: bool,
    /// What the figures mean; the answer to the question first.
    pub verdicts: Vec<Verdict>,
    /// What a reader should know about the figures: what did not settle, what is missing.
    pub notes: Vec<Note>,
    /// One entry per case, in the study's order.
    pub cases: Vec<CaseFinding>,
    /// The load lines found.
    pub load_lines: Vec<LoadLine>,
    /// What became of the source's claims.
    pub claims: Vec<ClaimFinding>,
}

/// What was found about one case.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct CaseFinding {
    /// The case's id.
    pub id: String,
    /// The factors' levels.
    pub levels: Levels,
    /// Trials that count, valid or not.
    pub trials: u64,
    /// Trials whose figures are used below.
    pub valid_trials: u64,
    /// Invalid trials of a search that were not driven as they should be, and that were repeated well; they do not make the run
    /// invalid. Left out of JSON when there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeated: u64,
    /// First trials left out because the study says so.
    pub discarded: u64,
    /// Whether the study's repeat rule is met.
    pub settled: bool,
    /// What an acknowledged write survives.
    pub durability: DurabilityFinding,
    /// Operations completed per second.
    pub throughput_per_s: Estimate,
    /// Records written or read per second.
    pub records_per_s: Estimate,
    /// Bytes of content of the records written per second; none where records differ in length, or others are not written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_bytes_per_s: Option<Estimate>,
    /// Bytes on the disk for each record, tables and indexes, right behind the trials; none where the database does not tell.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes_per_record: Option<Estimate>,
    /// What a writer beside the load wrote to the disk, in bytes per second; none without one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub disk_written_bytes_per_s: Option<Estimate>,
    /// Per kind of operation, over all valid trials.
    pub operations: BTreeMap<String, OperationFinding>,
    /// Arrivals scheduled per second; null for a closed loop, which offers what the database takes.
    pub offered_per_s: Option<f64>,
    /// Whether the database fell behind an open loop: operations were abandoned, or it carried noticeably fewer than were
    /// offered; null (left out of JSON) for a closed loop. Response times of an overloaded case grow with the trial's length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overloaded: Option<bool>,
    /// The generator's own lateness.
    pub generator_late_s: LateFinding,
    /// CPU time of loadline per completed operation; null when nothing was completed.
    pub client_cpu_s_per_operation: Option<f64>,
    /// Means over the valid trials; null where nothing was monitored.
    pub resources: Option<ResourceFinding>,
    /// The schema changes made meanwhile; null (left out of JSON) where the study asks for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evolution: Option<EvolutionFinding>,
    /// What happened to the server on purpose; left out of JSON where the study asks for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<EventsFinding>,
    /// What readers saw of the events that were written, by group of readers; left out of JSON where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freshness_s: Option<BTreeMap<String, SightingFinding>>,
    /// From the start of a write until a historian had stored the event; left out of JSON where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_s: Option<SightingFinding>,
    /// Content of the events that were written, per second; left out of JSON where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_bytes_per_s: Option<Estimate>,
    /// CPUs that each part kept busy, where parts are told apart; means over the valid trials.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cpus: BTreeMap<String, f64>,
    /// What became of the records acknowledged, and how fast; null (left out of JSON) without `[recorder]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedFinding>,
    /// What was uploaded; null (left out of JSON) where no blocks were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uploads: Option<UploadFinding>,
    /// Messages of failed operations and how often each occurred, invalid trials included.
    pub errors: BTreeMap<String, u64>,
    /// Why trials of this case are not used.
    pub invalid_because: Vec<Invalidity>,
}

/// What an acknowledged write survives, by the settings that decide it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct DurabilityFinding {
    /// `power-cut`: a power failure of the machine; `crash`: a `kill -9` of the server; `none`: neither; `unknown` where the settings
    /// are not told.
    pub level: String,
    /// What tries have shown, as in `0 of 300 cuts`; null where nobody tried.
    pub proved: Option<String>,
}

impl CaseFinding {
    /// Rows that a query gave, mean over all queries; none where none were counted.
    pub fn rows_of_queries(&self) -> Option<f64> {
        let counted = self.operations.values().filter_map(|queries| Some((queries.rows?, queries.count)));
        let (rows, count) =
            counted.fold((0.0, 0), |(rows, all), (own, count)| (rows + own * count as f64, all + count));
        (count > 0).then(|| rows / count as f64)
    }

    /// Whether its operations carry several records each, so that records are what is compared. Sums of the same may differ in their last digits.
    pub fn is_batched(&self) -> bool {
        let means = self.records_per_s.mean.zip(self.throughput_per_s.mean);
        means.is_some_and(|(records, operations)| (records - operations).abs() > 1e-6 * operations.abs())
    }

    /// Which of an operation's times are told: response times, unless another tool measured that tells residence times alone.
    pub fn time_kind(&self) -> TimeKind {
        let has = |time: fn(&OperationFinding) -> &TimeFinding| {
            self.operations.values().any(|operation| time(operation).mean.is_some())
        };
        let is_response = has(|operation| &operation.response_time_s) || !has(|operation| &operation.residence_time_s);
        if is_response { TimeKind::ResponseTime } else { TimeKind::ResidenceTime }
    }
}

/// What was found about records on their way through a recorder. Counts are of all trials, figures of the valid ones.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct RecordedFinding {
    /// Records acknowledged.
    pub acknowledged: u64,
    /// Acknowledged and not found in the database.
    pub missing: u64,
    /// Found twice, or never sent.
    pub surplus: u64,
    /// Found behind a later one of the same source.
    pub out_of_order: u64,
    /// In quarantine.
    pub quarantined: u64,
    /// Records stored per second within the measured phase.
    pub stored_per_s: Estimate,
    /// From the end of the last source until the last record was stored, in seconds.
    pub buffer_s: Estimate,
    /// The most records that were in the spool at once.
    pub spooled_max: u64,
    /// CPUs that the recorder kept busy, with the NATS server where there is one; mean over trials.
    pub recorder_cpu: f64,
    /// Largest resident memory of the recorder, in bytes.
    pub memory_max_bytes: u64,
}

/// What was found about blocks that were uploaded. Bytes per second are of the measured phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct UploadFinding {
    /// Bytes of a block, mean.
    pub block_bytes: f64,
    /// Bytes that cameras made; null for a closed loop.
    pub offered_bytes_per_s: Option<f64>,
    /// Bytes that were acknowledged.
    pub intake_bytes_per_s: Estimate,
    /// Bytes that came over the network: the server's end of the link, where there is one.
    pub received_bytes_per_s: Estimate,
    /// Bytes that the disk took right before the trials.
    pub disk_bytes_per_s: Estimate,
    /// What was acknowledged as a share of that, 0..1 and more.
    pub disk_share: Estimate,
    /// The longest time that the recorder took to say how it does, in any trial.
    pub answer_max_s: f64,
    /// Times that it did not say so.
    pub unanswered: u64,
}

/// What was found about schema changes during a load, over all valid trials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct EvolutionFinding {
    /// Per kind of change: `add`, `write`, `erase`, `remove`.
    pub changes: BTreeMap<String, ChangeFinding>,
    /// Per kind of operation: the others during changes and outside of them.
    pub operations: BTreeMap<String, DuringFinding>,
    /// The longest time in which no operation was completed, in seconds, that met a change of each kind, and that met none (`outside`).
    pub longest_silence_s: BTreeMap<String, f64>,
}

/// What was found about one kind of schema change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct ChangeFinding {
    /// How often it was made.
    pub count: u64,
    /// Changes, or records of them, that failed; invalid trials included.
    pub failed: u64,
    /// How long it took: mean, in seconds.
    pub mean_s: f64,
    /// The longest, in seconds.
    pub max_s: f64,
    /// Records written by each.
    pub records: u64,
    /// The statements that databases accepted for it, each once.
    pub statements: Vec<String>,
}

/// One kind of operation during schema changes, and outside of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct DuringFinding {
    /// Operations whose intended time lies within a change of any kind.
    pub during: AsideFinding,
    /// All others.
    pub outside: AsideFinding,
    /// Those during changes by the kind of change.
    pub each: BTreeMap<String, AsideFinding>,
}

/// A part of the operations of a kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct AsideFinding {
    /// Completed.
    pub count: u64,
    /// Failed.
    pub failed: u64,
    /// Completed, and took longer than 100 ms.
    pub over_100_ms: u64,
    /// done - intended.
    pub response_time_s: TimeFinding,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A mean over trials with what is known about it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct Estimate {
    /// Mean over the trials; null without any.
    pub mean: Option<f64>,
    /// Standard deviation of the trials, divisor n - 1; null below two.
    pub sd: Option<f64>,
    /// Number of trials.
    pub n: u64,
    /// 95 % t-interval of the mean; null below two trials.
    pub ci95: Option<[f64; 2]>,
    /// Whether the interval was cut off at 0, below which there is no rate; left out of JSON where it was not.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub cut_off: bool,
}

impl Estimate {
    /// The digits that it carries: the interval as far as it was not cut off says so.
    pub fn carried(&self) -> Carried {
        Carried::by(self.ci95)
    }

    /// `[39.1, 45.0]`, and `[0 (cut off), 45.0]` where it reached below.
    pub fn show_interval(&self) -> Option<String> {
        let [low, high] = self.ci95?;
        let show = |end| self.carried().show(end, show_number);
        let low = if self.cut_off { "0 (cut off)".to_owned() } else { show(low) };
        Some(format!("[{low}, {}]", show(high)))
    }

    /// The mean with the digits that its interval carries; `-` without any trial.
    pub fn show_mean(&self, unit: impl Fn(f64) -> String) -> String {
        self.mean.map_or("-".to_owned(), |mean| self.carried().show(mean, unit))
    }

    /// The mean of bytes in millions, with all digits that its interval carries, also where these are more than three: `16.042`. `-` without
    /// any trial.
    pub fn show_megabytes(&self) -> String {
        let carried = Carried::by(self.ci95.map(|ends| ends.map(|bytes| bytes / 1e6)));
        self.mean.map_or("-".to_owned(), |bytes| carried.show_plain(bytes / 1e6))
    }

    /// Mean and interval, `-` without any trial. For what cannot be negative: the interval does not begin below 0.
    pub fn show(&self, unit: impl Fn(f64) -> String) -> String {
        let mean = self.show_mean(&unit);
        match self.ci95 {
            Some([low, high]) => format!("{mean} {}", self.carried().show_ends([low.max(0.0), high], unit)),
            None => mean,
        }
    }
}

/// What a group of readers saw, over all valid trials; times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct SightingFinding {
    /// From stamp to visible.
    #[serde(flatten)]
    pub times: TimeFinding,
    /// Sightings.
    pub count: u64,
    /// Sightings that were missing at the end, those of invalid trials included.
    pub lost: u64,
    /// Sightings of events that the same reader had seen before, those of invalid trials included.
    pub duplicates: u64,
    /// Readers of the group.
    pub readers: u32,
    /// Rows that were read for each sighting, those read again included.
    pub rows_per_sighting: Option<f64>,
    /// How often subscribers were cut off because they could not keep up; left out of JSON when they never were.
    #[serde(skip_serializing_if = "is_zero")]
    pub cut_off: u64,
}

/// What was found about one kind of operation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct OperationFinding {
    /// Completed.
    pub count: u64,
    /// Failed.
    pub failed: u64,
    /// Completed reads that found nothing although they should have; null where another tool measured that does not tell.
    pub empty: Option<u64>,
    /// Rows that a query gave, mean; left out of JSON where they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<f64>,
    /// Not answered when the drain phase ended.
    pub abandoned: u64,
    /// done - intended; abandoned operations count with the time that they had waited.
    pub response_time_s: TimeFinding,
    /// Whether response times are lower bounds, because operations were abandoned; left out of JSON when they are not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub response_time_at_least: bool,
    /// done - sent.
    pub residence_time_s: TimeFinding,
    /// sent - intended.
    pub schedule_lag_s: TimeFinding,
}

impl OperationFinding {
    /// One of the three times.
    pub fn times(&self, kind: TimeKind) -> &TimeFinding {
        match kind {
            TimeKind::ResponseTime => &self.response_time_s,
            TimeKind::ResidenceTime => &self.residence_time_s,
            TimeKind::ScheduleLag => &self.schedule_lag_s,
        }
    }
}

/// Times in seconds, read from the merged histogram of all valid trials; null when it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct TimeFinding {
    /// Mean, exact.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest, exact.
    pub max: Option<f64>,
}

/// How late the generator was by its own fault, in seconds; null when nothing was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct LateFinding {
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// Means over trials of what was used in the measured phase; units as in [`crate::measurement::ResourceSample`].
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct ResourceFinding {
    /// CPUs that the server's processes kept busy.
    pub server_cpu: f64,
    /// CPUs that loadline kept busy.
    pub client_cpu: f64,
    /// Share of all CPU time in user mode.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
    /// Idle with an outstanding disk request.
    pub iowait: f64,
    /// Idle without.
    pub idle: f64,
    /// Write requests to all disks per second.
    pub write_requests_per_s: f64,
    /// Bytes written to all disks per second.
    pub written_bytes_per_s: f64,
    /// Bytes that the server's processes gave to the kernel to write, per second.
    pub server_written_bytes_per_s: f64,
    /// Memory of the machine in use, without caches.
    pub memory_used_bytes: f64,
    /// Resident memory of the server's processes.
    pub server_memory_bytes: f64,
    /// Resident memory of loadline.
    pub client_memory_bytes: f64,
    /// Bytes received on all network interfaces per second.
    pub received_bytes_per_s: f64,
    /// Bytes sent on all network interfaces per second.
    pub sent_bytes_per_s: f64,
    /// Context switches of the machine per second.
    pub context_switches_per_s: f64,
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClaimFinding {
    /// The claim in words.
    pub says: String,
    /// What was compared; empty where a model is claimed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub metric: String,
    /// The range of ratios that bears the claim out; no upper end is no limit. None where a model is claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<(f64, Option<f64>)>,
    /// What is claimed in words: `at least 1.2`, `M/M/1 + delay fits`.
    pub claimed: String,
    /// Whether the evidence bears it out.
    pub verdict: ClaimVerdict,
    /// The evidence: `ratio 0.71 [0.68, 0.74], n = 12 + 12`, or why there is none.
    pub evidence: String,
}

/// Whether the evidence bears a claim out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClaimVerdict {
    /// The whole interval lies within the claimed range.
    Reproduced,
    /// The whole interval lies outside.
    Contradicted,
    /// Neither, or there is no evidence.
    Undecided,
}

impl std::fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            ClaimVerdict::Reproduced => "reproduced",
            ClaimVerdict::Contradicted => "contradicted",
            ClaimVerdict::Undecided => "undecided",
        })
    }
}
