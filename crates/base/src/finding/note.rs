//! What a reader should know about the figures of a run. Main type: [`Note`].
//!
//! Invariant: the sentence of a note is made of its figures.

use schemars::JsonSchema;
use serde::Serialize;

use crate::measurement::{Standstill, Waited};
use crate::reason::Reason;
use crate::said::{said, with_says};
use crate::trial::{Levels, show_levels};
use crate::units::{show_bit_rate, show_bytes, show_seconds};

/// Cases that are named in a note.
const NAMED: usize = 4;

/// Something that a reader should know: what did not settle, what is missing, what set the pace. As JSON it is an object with `kind`, its
/// figures and `says`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
#[schemars(transform = with_says)]
pub enum Note {
    /// Sizes and repeats were shrunk.
    #[error("rehearsal: figures are not to be quoted")]
    Rehearsal {},
    /// Cases that could not be carried out here, as the study permits.
    #[error("left out: {}: {why}", some_of(cases.iter().map(show_levels)))]
    LeftOut {
        /// Levels of these cases: those that they have in common, where no other case has them.
        cases: Vec<Levels>,
        /// Why.
        why: String,
    },
    /// What `loadline durability` has shown of the settings here.
    #[error(
        "{proved} of the power did harm to what {database} ({version}) had acknowledged with these settings, as loadline durability found on this machine: at 95 %, at most {:.1} % of \
         such cuts do",
        100.0 * harm_share_upper95
    )]
    Proved {
        /// The database.
        database: String,
        /// Its version.
        version: String,
        /// As in `0 of 300 cuts`.
        proved: String,
        /// The largest share of such cuts that do harm which goes together with that, at 95 %.
        harm_share_upper95: f64,
    },
    /// The servers' data were on a disk that can lose its power.
    #[error(
        "the servers' data were on a disk in user space, and the figures contain what happened to it: throughput and response times say nothing of the databases"
    )]
    OnPowerDisk {},
    /// Cases that were not measured yet.
    #[error("{missing} of {all} cases have no trial yet")]
    CasesMissing {
        /// Cases without a trial.
        missing: usize,
        /// All cases of the study.
        all: usize,
    },
    /// Cases of which no trial is valid.
    #[error("{} of {all} cases have no valid trial: {}", cases.len(), some_of(cases.iter().map(show_levels)))]
    CasesInvalid {
        /// Levels of these cases.
        cases: Vec<Levels>,
        /// Cases with a trial.
        all: usize,
    },
    /// Cases that the repeat rule asks more trials of.
    #[error(
        "{} of {all} cases did not settle ({rule}): {}",
        cases.len(),
        some_of(cases.iter().map(|Unsettled { levels, n }| format!("{} (n = {n})", show_levels(levels))))
    )]
    CasesUnsettled {
        /// These cases.
        cases: Vec<Unsettled>,
        /// Cases with a trial.
        all: usize,
        /// The study's rule in words.
        rule: String,
    },
    /// The first trial of a case, which is left out, was invalid.
    #[error("the discarded first trial of {} was invalid: {reason}", show_levels(levels))]
    DiscardedInvalid {
        /// Levels of the case.
        levels: Levels,
        /// Why.
        reason: Reason,
    },
    /// What another tool's output does not tell, or tells in another way.
    #[error("{tool}: {told}")]
    Imported {
        /// The tool.
        tool: String,
        /// What the import noted.
        told: String,
    },
    /// Trials of a search that were repeated.
    #[error(
        "in {repeated} {} of the search loadline could not send the load as planned, and repeated it at the same rate; the repetition is \
         used, so that this says nothing against the result; the reasons of the invalid trials name what to do about it",
        if *repeated == 1 { "trial" } else { "trials" }
    )]
    Repeated {
        /// Such trials.
        repeated: u64,
    },
    /// CPUs change their frequency.
    #[error("the CPU frequency governor is \"{governor}\": speed may drift with temperature and load")]
    Governor {
        /// The governor's name.
        governor: String,
    },
    /// Queries that mostly found nothing.
    #[error(
        "queries found less than one row in two; their figures are those of looking for nothing, and they are compared with nothing: {}",
        some_of(cases.iter().map(|FewRows { levels, rows }| format!("{} ({rows:.2} rows)", show_levels(levels))))
    )]
    FoundNothing {
        /// Cases with such queries.
        cases: Vec<FewRows>,
    },
    /// Cases that had hardly begun when they were measured.
    #[error(
        "the load had hardly begun when these cases were measured, so that they are compared with nothing and claims on them stay undecided (in most \
         trials fewer operations were completed than there are clients, or the first part of the measured phase carried less than half as much a \
         second as the rest; a longer load.warmup shows what lasts): {}",
        some_of(cases.iter().map(show_levels))
    )]
    Cold {
        /// Levels of these cases.
        cases: Vec<Levels>,
    },
    /// Other processes kept CPUs busy.
    #[error("{}", show_others(*busy_cpus, *cpus, *n, *is_database_unknown))]
    OthersBusy {
        /// CPUs that they kept busy, mean.
        busy_cpus: f64,
        /// CPUs of the machine.
        cpus: u32,
        /// Trials.
        n: usize,
        /// Whether a database may be among them that loadline did not start.
        is_database_unknown: bool,
    },
    /// The disk set the pace of writing.
    #[error(
        "the disk set the pace in {cases} of {all} cases that write: half of the writes took {} or less, and a bare sync of 4 KiB {} \
         (median of {syncs} before the first trial), while client and server had CPU left. Alternatives that differ in CPU time differ more \
         with a larger workload.batch, or on a faster disk",
        show_seconds(*write_p50_s),
        show_seconds(*sync_p50_s)
    )]
    DiskPaced {
        /// Cases in which it did.
        cases: usize,
        /// Cases that write.
        all: usize,
        /// Median time of their writes.
        write_p50_s: f64,
        /// Median time of a sync.
        sync_p50_s: f64,
        /// Syncs that were tried.
        syncs: u32,
    },
    /// Transactions left in one round trip.
    #[error(
        "pipelined: all statements of a transaction left in one round trip (load.pipeline = true); most applications wait for the answer to \
         each, and get less out of the same database"
    )]
    Pipelined {},
    /// Nothing is known of the machine of the server.
    #[error(
        "in {unknown} of {all} trials nothing is known of the server's CPU, disk and memory: {}",
        if *is_asked { "its watcher found no process of it, or was lost" } else { "it is on another machine; start loadline watch there, and name it with database.watch" }
    )]
    ServerUnwatched {
        /// Trials in which it is not.
        unknown: usize,
        /// All valid trials.
        all: usize,
        /// Whether somebody watches it.
        is_asked: bool,
    },
    /// Statements of a trace that change something are not sent.
    #[error(
        "{left_out} of {all} statements of the trace change something and are left out; write writes = true in [workload] to send them too, to a database \
         that is as it was when the trace began"
    )]
    WritesLeftOut {
        /// How many.
        left_out: u64,
        /// Statements of the trace, up to where it is sent.
        all: u64,
    },
    /// The client waited for a CPU.
    #[error("in {trials} of {all} trials the client waited for a CPU; in the first of them {first}")]
    ClientWaited {
        /// Trials in which it did.
        trials: usize,
        /// All valid trials.
        all: usize,
        /// How it waited in the first of them.
        first: Waited,
    },
    /// Nothing was completed for a while.
    #[error(
        "in {trials} of {all} trials nothing was completed for a while, although clients waited for answers: at the longest, in round {round} of {}, {longest}. \
         Throughput is lower for it, and the quantiles do not show it: look at the server's log, and at what the machine did meanwhile",
        show_levels(levels)
    )]
    StoodStill {
        /// Trials in which that was so.
        trials: usize,
        /// All valid trials.
        all: usize,
        /// The round of the longest one.
        round: u32,
        /// Levels of its case.
        levels: Levels,
        /// How long it was.
        longest: Standstill,
    },
    /// Queries are executed in the same way in all layouts.
    #[error("the database's plans of {queries} queries are the same in all layouts")]
    PlansAlike {
        /// Queries with plans of several layouts.
        queries: usize,
    },
    /// Queries are executed in another way in one layout than in another.
    #[error("the database's plans of {} of {all} queries differ between layouts: {}", queries.len(), queries.join(", "))]
    PlansDiffer {
        /// Names of these queries.
        queries: Vec<String>,
        /// Queries with plans of several layouts.
        all: usize,
    },
    /// What a link carried before the trials; medians.
    #[error("{}", show_link(self))]
    Link {
        /// The rate that it was set to; null without a limit.
        rate_bits_per_s: Option<f64>,
        /// The delay that it was set to.
        delay_s: f64,
        /// The tunnel on it, and how its packets are encrypted.
        tunnel: Option<[String; 2]>,
        /// Bits to the server.
        up_bits_per_s: f64,
        /// Of these, bits of payload.
        up_payload_bits_per_s: f64,
        /// Bits from the server.
        down_bits_per_s: f64,
        /// Time of a round trip.
        round_trip_s: f64,
        /// Trials before which it was tried.
        n: usize,
        /// Whether it carried noticeably less than its rate.
        is_short: bool,
    },
    /// What a writer beside the load wrote to the disk.
    #[error("{}", show_disk(self))]
    DiskWriter {
        /// When it synced, in words.
        sync: &'static str,
        /// Bytes of a block.
        block_bytes: u64,
        /// Writers.
        writers: u32,
        /// Bytes written per second, mean.
        written_bytes_per_s: f64,
        /// The same in words, with its interval.
        speed: String,
        /// Median time of a block.
        block_p50_s: f64,
        /// 99th percentile of it.
        block_p99_s: f64,
        /// Bytes that the page cache took, and the time of the last sync; null where it took no more than the disk.
        cached: Option<Cached>,
    },
}

said!(Note);

/// A case that did not settle.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Unsettled {
    /// Its levels.
    pub levels: Levels,
    /// Its valid trials.
    pub n: u64,
}

/// A case whose queries found next to nothing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FewRows {
    /// Its levels.
    pub levels: Levels,
    /// Rows that a query gave, mean.
    pub rows: f64,
}

/// What the page cache took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Cached {
    /// Bytes per second.
    pub accepted_bytes_per_s: f64,
    /// How long the last sync took.
    pub flush_s: f64,
}

/// The first four of a list, and how many more there are.
fn some_of(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<String> = texts.collect();
    let shown = texts.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    if texts.len() > NAMED { format!("{shown}; and {} more", texts.len() - NAMED) } else { shown }
}

fn show_others(busy_cpus: f64, cpus: u32, n: usize, is_database_unknown: bool) -> String {
    let kept = format!("kept {busy_cpus:.1} of {cpus} CPUs busy while trials ran (mean of {n})");
    if is_database_unknown {
        return format!(
            "processes that loadline did not start {kept}: the database at database.url is among them if it is on this machine; whatever \
             else is makes intervals wider and absolute figures lower"
        );
    }
    format!(
        "other processes {kept}: intervals are wider for it, and absolute figures lower; end them, or keep client and server apart from \
         them with load.cpus and database.cpus"
    )
}

fn show_link(note: &Note) -> String {
    let Note::Link { rate_bits_per_s, delay_s, tunnel, round_trip_s, n, is_short, .. } = note else {
        return String::new();
    };
    let Note::Link { up_bits_per_s, up_payload_bits_per_s, down_bits_per_s, .. } = note else { return String::new() };
    let rate = rate_bits_per_s.map_or("without a limit".to_owned(), show_bit_rate);
    let delay = if *delay_s > 0.0 { format!(", delay {}", show_seconds(*delay_s)) } else { String::new() };
    let tunnel = tunnel.as_ref().map_or(String::new(), |[name, suite]| format!(", tunnel {name} ({suite})"));
    let short =
        if *is_short { "; that is LESS than its rate: this machine is too slow for it, or was busy" } else { "" };
    format!(
        "link {rate}{delay}{tunnel}: before the trials it carried {} to the server ({} of payload) and {} from it, round trip {}; median, \
         n = {n}{short}",
        show_bit_rate(*up_bits_per_s),
        show_bit_rate(*up_payload_bits_per_s),
        show_bit_rate(*down_bits_per_s),
        show_seconds(*round_trip_s)
    )
}

fn show_disk(note: &Note) -> String {
    let Note::DiskWriter { sync, block_bytes, writers, speed, block_p50_s, block_p99_s, cached, .. } = note else {
        return String::new();
    };
    let show = |Cached { accepted_bytes_per_s, flush_s }: &Cached| {
        let (accepted, flush) = (show_bytes(*accepted_bytes_per_s), show_seconds(*flush_s));
        format!("; the page cache took {accepted}/s, and the last sync {flush}")
    };
    let cached = cached.as_ref().map(show).unwrap_or_default();
    let writers = if *writers > 1 { format!(" by {writers} writers") } else { String::new() };
    let [p50, p99] = [*block_p50_s, *block_p99_s].map(show_seconds);
    format!(
        "disk: blocks of {} {sync}{writers}: {speed}; a block took {p50} (p50), {p99} (p99){cached}",
        show_bytes(*block_bytes as f64)
    )
}
