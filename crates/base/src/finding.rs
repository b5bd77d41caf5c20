//! Findings: what a run's measurements amount to, as `run --json` and `report --json` print it.
//!
//! Main type: [`Findings`]. Invariant: a figure that the evidence does not give is `null`, never 0.

mod agents;
mod conflicts;
mod durability;
mod events;
mod invalidity;
mod load_line;
mod note;
mod outcome;
mod recorded;
mod retention;
mod verdict;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::imported::TimeKind;
use crate::trial::Levels;
use crate::units::{Carried, show_number};

pub use agents::{AgentFinding, AgentsFinding, HostUse};
pub use conflicts::ConflictsFinding;
pub use durability::{DurabilityCase, DurabilityTest, HarmfulFailure, NotTested, RECORDER_NAME, RecoveryTimes};
pub use events::{EventFinding, EventsFinding};
pub use invalidity::Invalidity;
pub use load_line::LoadLine;
pub use note::{Cached, FewRows, Note, Unsettled};
pub use outcome::{Outcome, RefutedSeen, Seen, UNUSABLE};
pub use recorded::{RecordedFinding, RecorderFinding};
pub use retention::RetentionFinding;
pub use verdict::{Compared, Found, Leader, Pays, Told, Verdict};

/// All findings of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Findings {
    /// The run directory.
    pub run: String,
    /// Name of the study.
    pub study: String,
    /// The tool that measured, if it was not loadline; left out of JSON otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<String>,
    /// The study's question.
    pub question: String,
    /// Seed of the study.
    pub seed: u64,
    /// Whether the run has a trial and no invalid one, except trials of a search that were repeated well.
    pub valid: bool,
    /// Whether sizes and repeats were shrunk; if so, the figures are not to be quoted.
    pub rehearsal: bool,
    /// The meaning of the figures; the answer to the question comes first.
    pub verdicts: Vec<Verdict>,
    /// What a reader should know about the figures: cases that did not settle, measurements that are missing.
    pub notes: Vec<Note>,
    /// One entry per case, in the study's order.
    pub cases: Vec<CaseFinding>,
    /// The load lines found.
    pub load_lines: Vec<LoadLine>,
    /// The outcome of each of the source's claims.
    pub claims: Vec<ClaimFinding>,
}

/// Findings about one case.
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
    /// First trials that were left out because the study says so.
    pub discarded: u64,
    /// Whether the study's repeat rule is met.
    pub settled: bool,
    /// What an acknowledged write survives.
    pub durability: DurabilityFinding,
    /// Operations completed per second.
    pub throughput_per_s: Estimate,
    /// Records written or read per second.
    pub records_per_s: Estimate,
    /// Bytes of content of the records written per second; none where records differ in length or records of another kind are written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_bytes_per_s: Option<Estimate>,
    /// Bytes on the disk per record, tables and indexes, right after the trials; none where the database does not report them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes_per_record: Option<Estimate>,
    /// Bytes per second that a writer beside the load wrote to the disk; none without such a writer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub disk_written_bytes_per_s: Option<Estimate>,
    /// Findings per kind of operation, over all valid trials.
    pub operations: BTreeMap<String, OperationFinding>,
    /// Arrivals scheduled per second; null for a closed loop, which offers what the database takes.
    pub offered_per_s: Option<f64>,
    /// Whether the database fell behind an open loop: operations were abandoned, or it carried noticeably fewer than were
    /// offered; null (left out of JSON) for a closed loop. Response times of an overloaded case grow with the trial's length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overloaded: Option<bool>,
    /// The generator's own lateness.
    pub generator_late_s: LateFinding,
    /// CPU time of loadline per completed operation; null when no operation was completed.
    pub client_cpu_s_per_operation: Option<f64>,
    /// Resources used, means over the valid trials; null where nothing was monitored.
    pub resources: Option<ResourceFinding>,
    /// Schema changes made during the load; null (left out of JSON) where the study asks for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evolution: Option<EvolutionFinding>,
    /// Readings retired during the load; left out of JSON where the study asks for no retention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionFinding>,
    /// Events of the server that the study asked for; left out of JSON where it asks for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<EventsFinding>,
    /// Conflicts between transactions; left out of JSON where none are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<ConflictsFinding>,
    /// Sightings of the written events, by group of readers; left out of JSON where there were no readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freshness_s: Option<BTreeMap<String, SightingFinding>>,
    /// Time from the start of a write until a historian had stored the event; left out of JSON without a historian.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_s: Option<SightingFinding>,
    /// Bytes of content of the written events, per second; left out of JSON where there are no events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_bytes_per_s: Option<Estimate>,
    /// CPUs that each part kept busy, where the parts are told apart; means over the valid trials.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cpus: BTreeMap<String, f64>,
    /// The fate of the acknowledged records, and the rate at which they were stored; null (left out of JSON) without `[recorder]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedFinding>,
    /// The agents that drove the load; null (left out of JSON) where loadline drove it itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<AgentsFinding>,
    /// Uploads of blocks; null (left out of JSON) where no blocks were uploaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uploads: Option<UploadFinding>,
    /// Messages of failed operations and how often each occurred, invalid trials included.
    pub errors: BTreeMap<String, u64>,
    /// Reasons why trials of this case are not used.
    pub invalid_because: Vec<Invalidity>,
}

/// What an acknowledged write survives, by the settings that decide it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct DurabilityFinding {
    /// `power-cut`: a power failure of the machine; `crash`: a `kill -9` of the server; `none`: neither; `unknown` where the server does
    /// not report its settings.
    pub level: String,
    /// The result of tests, as in `0 of 300 cuts`; null where no test was made.
    pub proved: Option<String>,
}

impl CaseFinding {
    /// Returns the mean number of rows per query, over all queries; `None` where rows were not counted.
    pub fn rows_of_queries(&self) -> Option<f64> {
        let counted = self.operations.values().filter_map(|queries| Some((queries.rows?, queries.count)));
        let (rows, count) =
            counted.fold((0.0, 0), |(rows, all), (own, count)| (rows + own * count as f64, all + count));
        (count > 0).then(|| rows / count as f64)
    }

    /// Returns whether operations carry several records each, so that records are compared. Sums of equal counts may differ in their last digits.
    pub fn is_batched(&self) -> bool {
        let means = self.records_per_s.mean.zip(self.throughput_per_s.mean);
        means.is_some_and(|(records, operations)| (records - operations).abs() > 1e-6 * operations.abs())
    }

    /// Returns the kind of time that is reported: response times, unless another tool measured that reports residence times alone.
    pub fn time_kind(&self) -> TimeKind {
        let has = |time: fn(&OperationFinding) -> &TimeFinding| {
            self.operations.values().any(|operation| time(operation).mean.is_some())
        };
        let is_response = has(|operation| &operation.response_time_s) || !has(|operation| &operation.residence_time_s);
        if is_response { TimeKind::ResponseTime } else { TimeKind::ResidenceTime }
    }
}

/// Findings about uploaded blocks. Bytes per second are those of the measured phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct UploadFinding {
    /// Mean size of a block in bytes.
    pub block_bytes: f64,
    /// Bytes per second that the cameras made; null for a closed loop.
    pub offered_bytes_per_s: Option<f64>,
    /// Bytes acknowledged per second.
    pub intake_bytes_per_s: Estimate,
    /// Bytes per second received over the network, at the server's end of the link where there is one.
    pub received_bytes_per_s: Estimate,
    /// Bytes per second that the disk took right before the trials.
    pub disk_bytes_per_s: Estimate,
    /// Bytes acknowledged as a share of `disk_bytes_per_s`; 0 or more, and possibly above 1.
    pub disk_share: Estimate,
    /// The longest time in which the recorder answered a request for its status, in any trial.
    pub answer_max_s: f64,
    /// Requests for its status that the recorder did not answer.
    pub unanswered: u64,
}

/// Findings about schema changes during a load, over all valid trials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct EvolutionFinding {
    /// Findings per kind of change: `add`, `write`, `erase`, `remove`.
    pub changes: BTreeMap<String, ChangeFinding>,
    /// Findings per kind of operation: the other operations during changes and outside of them.
    pub operations: BTreeMap<String, DuringFinding>,
    /// The longest time without a completed operation, in seconds, that met a change of each kind, and that met none (`outside`).
    pub longest_silence_s: BTreeMap<String, f64>,
}

/// Findings about one kind of schema change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct ChangeFinding {
    /// Number of changes.
    pub count: u64,
    /// Changes, or records of them, that failed; invalid trials included.
    pub failed: u64,
    /// Mean duration of a change, in seconds.
    pub mean_s: f64,
    /// Longest duration of a change, in seconds.
    pub max_s: f64,
    /// Records written by each change.
    pub records: u64,
    /// The statements that databases accepted for the change, each once; the first eight.
    pub statements: Vec<String>,
}

/// One kind of operation during schema changes, and outside of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct DuringFinding {
    /// Operations whose intended time lies within a change of any kind.
    pub during: AsideFinding,
    /// All other operations.
    pub outside: AsideFinding,
    /// Operations during changes, by the kind of change.
    pub each: BTreeMap<String, AsideFinding>,
}

/// Some of the operations of one kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct AsideFinding {
    /// Operations completed.
    pub count: u64,
    /// Operations failed.
    pub failed: u64,
    /// Operations completed that took longer than 100 ms.
    pub over_100_ms: u64,
    /// done - intended.
    pub response_time_s: TimeFinding,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A mean over trials with its spread and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct Estimate {
    /// Mean over the trials; null without trials.
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
    /// Returns the digits that the mean carries, which the interval as far as it was not cut off decides.
    pub fn carried(&self) -> Carried {
        Carried::by(self.ci95)
    }

    /// Shows the interval as `[39.1, 45.0]`, or as `[0 (cut off), 45.0]` where it reached below 0.
    pub fn show_interval(&self) -> Option<String> {
        let [low, high] = self.ci95?;
        let show = |end| self.carried().show(end, show_number);
        let low = if self.cut_off { "0 (cut off)".to_owned() } else { show(low) };
        Some(format!("[{low}, {}]", show(high)))
    }

    /// Shows the mean with the digits that its interval carries; `-` without any trial.
    pub fn show_mean(&self, unit: impl Fn(f64) -> String) -> String {
        self.mean.map_or("-".to_owned(), |mean| self.carried().show(mean, unit))
    }

    /// Shows a mean of bytes in millions, with all digits that its interval carries, even if these are more than three: `16.042`; `-` without
    /// any trial.
    pub fn show_megabytes(&self) -> String {
        let carried = Carried::by(self.ci95.map(|ends| ends.map(|bytes| bytes / 1e6)));
        self.mean.map_or("-".to_owned(), |bytes| carried.show_plain(bytes / 1e6))
    }

    /// Shows mean and interval, `-` without any trial. For figures that cannot be negative: the interval does not begin below 0.
    pub fn show(&self, unit: impl Fn(f64) -> String) -> String {
        let mean = self.show_mean(&unit);
        match self.ci95 {
            Some([low, high]) => format!("{mean} {}", self.carried().show_ends([low.max(0.0), high], unit)),
            None => mean,
        }
    }
}

/// Sightings of a group of readers, over all valid trials; times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct SightingFinding {
    /// Time from the stamp of an event until it was visible.
    #[serde(flatten)]
    pub times: TimeFinding,
    /// Number of sightings.
    pub count: u64,
    /// Sightings missing at the end, including those of invalid trials.
    pub lost: u64,
    /// Sightings of events that the same reader had seen before, including those of invalid trials.
    pub duplicates: u64,
    /// Number of readers in the group.
    pub readers: u32,
    /// Rows read per sighting, including those read again.
    pub rows_per_sighting: Option<f64>,
    /// How often subscribers were cut off because they could not keep up; left out of JSON when they never were.
    #[serde(skip_serializing_if = "is_zero")]
    pub cut_off: u64,
    /// Largest error of each time because readers and writers were on two hosts with a clock each; null on one host.
    pub clock_error: Option<f64>,
}

/// Findings about one kind of operation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct OperationFinding {
    /// Operations completed.
    pub count: u64,
    /// Operations failed.
    pub failed: u64,
    /// Completed reads that found nothing although they should have; null where the figures are from another tool that does not report it.
    pub empty: Option<u64>,
    /// Mean number of rows per query; left out of JSON where rows were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<f64>,
    /// Answers with a wrong value, which also count in `failed`; left out of JSON where values are not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong: Option<u64>,
    /// Operations not answered when the drain phase ended.
    pub abandoned: u64,
    /// done - intended; abandoned operations count with the time for which they had waited.
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
    /// Returns one of the three times.
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

/// Lateness of the generator that is loadline's own fault, in seconds; null when nothing was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct LateFinding {
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// Resources used in the measured phase, means over trials; units as in [`crate::measurement::ResourceSample`].
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct ResourceFinding {
    /// CPUs that the server's processes kept busy.
    pub server_cpu: f64,
    /// CPUs that loadline kept busy.
    pub client_cpu: f64,
    /// Share of all CPU time in user mode.
    pub user: f64,
    /// Share in the kernel.
    pub system: f64,
    /// Share idle with an outstanding disk request.
    pub iowait: f64,
    /// Share idle without an outstanding disk request.
    pub idle: f64,
    /// Write requests to all disks per second.
    pub write_requests_per_s: f64,
    /// Bytes written to all disks per second.
    pub written_bytes_per_s: f64,
    /// Bytes that the server's processes handed to the kernel for writing, per second.
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

/// The outcome of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClaimFinding {
    /// The claim in words.
    pub says: String,
    /// The metric that was compared; empty where the claim is about a model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub metric: String,
    /// The range of ratios that supports the claim; no upper end means no limit. None where the claim is about a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<(f64, Option<f64>)>,
    /// The claimed range or model in words: `at least 1.2`, `M/M/1 + delay fits`.
    pub claimed: String,
    /// Whether the evidence supports the claim.
    pub verdict: ClaimVerdict,
    /// The evidence, `ratio 0.71 [0.68, 0.74], n = 12 + 12`, or the reason why there is none.
    pub evidence: String,
}

/// Whether the evidence supports a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClaimVerdict {
    /// The whole interval lies within the claimed range.
    Reproduced,
    /// The whole interval lies outside the claimed range.
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
