//! Notes on the figures of a run. Main type: [`Note`].
//!
//! Invariant: the sentence of a note is generated from its figures.

use schemars::JsonSchema;
use serde::Serialize;

use crate::measurement::{Standstill, Waited};
use crate::reason::Reason;
use crate::said::{said, with_says};
use crate::trial::{Levels, show_levels};
use crate::units::{show_bit_rate, show_bytes, show_seconds};

/// Largest number of cases that are named in a note.
const NAMED: usize = 4;

/// A note on the figures: cases that did not settle, measurements that are missing, the resource that set the pace. As JSON it is an object with
/// `kind`, its figures and `says`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
#[schemars(transform = with_says)]
pub enum Note {
    /// Sizes and repeats were shrunk.
    #[error("rehearsal: figures are not to be quoted")]
    Rehearsal {},
    /// Cases could not be carried out on this machine, as the study permits.
    #[error("left out: {}: {why}", some_of(cases.iter().map(show_levels)))]
    LeftOut {
        /// Levels of these cases: only the levels that they have in common, where no other case has them.
        cases: Vec<Levels>,
        /// The reason.
        why: String,
    },
    /// `loadline durability` has tested the settings that are used here.
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
        /// The result of the tests, as in `0 of 300 cuts`.
        proved: String,
        /// Upper bound on the share of such cuts that do harm, at 95 % confidence.
        harm_share_upper95: f64,
    },
    /// Another program with the same protocol was measured in place of a database.
    #[error("{database} is {version} here, another program: these figures say nothing about {database} itself")]
    StandIn {
        /// The database.
        database: String,
        /// The program and its version.
        version: String,
    },
    /// The values of answers were compared with the records.
    #[error("every value of {checked} answers was compared with what the records say: {wrong} answers are wrong")]
    AnswersChecked {
        /// Answers that were compared.
        checked: u64,
        /// Answers with a wrong value.
        wrong: u64,
    },
    /// One of several recorders stored more or less than the others.
    #[error(
        "{}: recorder {recorder} stored {ratio:.2} times as many records per second as the others{}; look at how the sources are dealt out, and with a stream at \
         the parts that it had",
        show_levels(levels), if *further > 0 { format!(", and a recorder differed in {further} more cases") } else { String::new() }
    )]
    RecorderDiffers {
        /// Levels of the case.
        levels: Levels,
        /// The recorder's number, from 1.
        recorder: usize,
        /// What it stored per second, as a multiple of the median of the others.
        ratio: f64,
        /// Number of further cases in which a recorder differed from the others.
        further: usize,
    },
    /// Parts of a shared stream went to other recorders while the load lasted.
    #[error(
        "in {trials} of {all} trials, parts of the stream went to another recorder while the load lasted (at most {most} in a trial): a recorder gave no sign of life \
         for the time of a lease, or joined; figures of single recorders are those of what they had at the time"
    )]
    PartsMoved {
        /// Number of trials in which that happened.
        trials: usize,
        /// Number of valid trials with recorders that share a stream.
        all: usize,
        /// Most parts that moved in a trial.
        most: u64,
    },
    /// One of several agents saw other response times than the others.
    #[error(
        "{}: agent {agent}{} saw a median response time of {ratio:.2} times that of the others{}; look at its machine and its way to the database",
        show_levels(levels), host.as_ref().map_or(String::new(), |host| format!(" on {host}")),
        if *further > 0 { format!(", and an agent differed in {further} more cases") } else { String::new() }
    )]
    AgentDiffers {
        /// Levels of the case.
        levels: Levels,
        /// The agent's number, from 1.
        agent: usize,
        /// Its host; left out of JSON if it is the machine of the run.
        #[serde(skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        /// Its median response time over that of the others.
        ratio: f64,
        /// Number of further cases in which an agent differed, by less.
        further: usize,
    },
    /// Events were seen on another host than that on which they were written.
    #[error(
        "the readers of group {group} were on {host}, whose clock was compared with that of this machine: each of their times is right to ± {}",
        show_seconds(*error_s)
    )]
    SeenElsewhere {
        /// The group's name.
        group: String,
        /// Its host.
        host: String,
        /// Largest error of a freshness, in seconds.
        error_s: f64,
    },
    /// Attempts at trials were lost with agents.
    #[error(
        "{attempts} {} lost with an agent, and the trial was driven once more; nothing of a lost attempt counts; {}: {first}",
        if *attempts == 1 { "attempt at a trial was" } else { "attempts at trials were" },
        if *attempts == 1 { "it ended" } else { "the first one ended" }
    )]
    AttemptsLost {
        /// Number of lost attempts.
        attempts: usize,
        /// How the first one ended.
        first: Reason,
    },
    /// A trial was driven by fewer agents than its case names.
    #[error(
        "{trials} of {all} trials were driven by fewer agents than their case names, because others were lost: {least} at least; each of them drove a \
         larger share of the same load"
    )]
    FewerAgents {
        /// Number of trials with fewer agents.
        trials: usize,
        /// Number of all valid trials.
        all: usize,
        /// Smallest number of agents in a trial.
        least: usize,
    },
    /// Others kept CPUs of an agent's host busy before the load began.
    #[error(
        "before the load began, others kept up to {busy_cpus:.1} of the {cpus} CPUs of agent {agent}'s host {host} busy; its figures contain that, \
         unless they ended before the load did"
    )]
    AgentHostBusy {
        /// The agent's number, from 1.
        agent: usize,
        /// Its host.
        host: String,
        /// Number of its CPUs.
        cpus: u32,
        /// CPUs that others kept busy.
        busy_cpus: f64,
    },
    /// Arrivals waited in the queue of one agent although others may have had free clients.
    #[error(
        "{}: operations waited up to {:.0} % of their response time for a free client of their agent; several agents are several queues in front of the \
         database, where one process has one: give them more load.clients",
        some_of(cases.iter().map(show_levels)), 100.0 * waiting_share
    )]
    AgentsQueue {
        /// Levels of these cases.
        cases: Vec<Levels>,
        /// Largest share of the response time for which operations waited for a free client, 0..1.
        waiting_share: f64,
    },
    /// The servers' data are on a disk that can lose its power.
    #[error(
        "the servers' data were on a disk in user space, and the figures contain what happened to it: throughput and response times say nothing of the databases"
    )]
    OnPowerDisk {},
    /// Some cases are not measured yet.
    #[error("{missing} of {all} cases have no trial yet")]
    CasesMissing {
        /// Number of cases without a trial.
        missing: usize,
        /// Number of cases of the study.
        all: usize,
    },
    /// Some cases have no valid trial.
    #[error("{} of {all} cases have no valid trial: {}", cases.len(), some_of(cases.iter().map(show_levels)))]
    CasesInvalid {
        /// Levels of these cases.
        cases: Vec<Levels>,
        /// Number of cases with a trial.
        all: usize,
    },
    /// The repeat rule asks for more trials of some cases.
    #[error(
        "{} of {all} cases did not settle ({rule}): {}",
        cases.len(),
        some_of(cases.iter().map(|Unsettled { levels, n }| format!("{} (n = {n})", show_levels(levels))))
    )]
    CasesUnsettled {
        /// These cases.
        cases: Vec<Unsettled>,
        /// Number of cases with a trial.
        all: usize,
        /// The study's rule in words.
        rule: String,
    },
    /// The first trial of a case, which is discarded, was invalid.
    #[error("the discarded first trial of {} was invalid: {reason}", show_levels(levels))]
    DiscardedInvalid {
        /// Levels of the case.
        levels: Levels,
        /// The reason.
        reason: Reason,
    },
    /// Another tool's output lacks something, or reports it in another way.
    #[error("{tool}: {told}")]
    Imported {
        /// The tool.
        tool: String,
        /// The note of the import.
        told: String,
    },
    /// Trials of a search were repeated.
    #[error(
        "in {repeated} {} of the search loadline could not send the load as planned, and repeated it at the same rate; the repetition is \
         used, so that this says nothing against the result; the reasons of the invalid trials name what to do about it",
        if *repeated == 1 { "trial" } else { "trials" }
    )]
    Repeated {
        /// Number of repeated trials.
        repeated: u64,
    },
    /// CPUs change their frequency.
    #[error("the CPU frequency governor is \"{governor}\": speed may drift with temperature and load")]
    Governor {
        /// The governor's name.
        governor: String,
    },
    /// Queries mostly found nothing.
    #[error(
        "queries found less than one row in two; their figures are those of looking for nothing, and they are compared with nothing: {}",
        some_of(cases.iter().map(|FewRows { levels, rows }| format!("{} ({rows:.2} rows)", show_levels(levels))))
    )]
    FoundNothing {
        /// The cases with such queries.
        cases: Vec<FewRows>,
    },
    /// The load had hardly begun when cases were measured.
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
        /// Mean number of CPUs that they kept busy.
        busy_cpus: f64,
        /// Number of CPUs of the machine.
        cpus: u32,
        /// Number of trials.
        n: usize,
        /// Whether a database that loadline did not start may be among these processes.
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
        /// Number of cases in which the disk set the pace.
        cases: usize,
        /// Number of cases that write.
        all: usize,
        /// Median time of their writes.
        write_p50_s: f64,
        /// Median time of a sync.
        sync_p50_s: f64,
        /// Number of syncs that were measured.
        syncs: u32,
    },
    /// Transactions left in one round trip.
    #[error(
        "pipelined: all statements of a transaction left in one round trip (load.pipeline = true); most applications wait for the answer to \
         each, and get less out of the same database"
    )]
    Pipelined {},
    /// Resource use of the server's machine is not known.
    #[error(
        "in {unknown} of {all} trials nothing is known of the server's CPU, disk and memory: {}",
        if *is_asked { "its watcher found no process of it, or was lost" } else { "it is on another machine; start loadline watch there, and name it with database.watch" }
    )]
    ServerUnwatched {
        /// Trials in which it is not known.
        unknown: usize,
        /// Number of valid trials.
        all: usize,
        /// Whether the study asks for a watcher of that machine.
        is_asked: bool,
    },
    /// Statements of a trace that change something are left out.
    #[error(
        "{left_out} of {all} statements of the trace change something and are left out; write writes = true in [workload] to send them too, to a database \
         that is as it was when the trace began"
    )]
    WritesLeftOut {
        /// Number of statements left out.
        left_out: u64,
        /// Number of statements of the trace, up to the time at which the replay ends.
        all: u64,
    },
    /// The client waited for a CPU.
    #[error("in {trials} of {all} trials the client waited for a CPU; in the first of them {first}")]
    ClientWaited {
        /// Number of trials in which the client waited.
        trials: usize,
        /// Number of valid trials.
        all: usize,
        /// Figures of the wait in the first of these trials.
        first: Waited,
    },
    /// Nothing was completed for a while.
    #[error(
        "in {trials} of {all} trials nothing was completed for a while, although clients waited for answers: at the longest, in round {round} of {}, {longest}. \
         Throughput is lower for it, and the quantiles do not show it: look at the server's log, and at what the machine did meanwhile",
        show_levels(levels)
    )]
    StoodStill {
        /// Number of trials with a standstill.
        trials: usize,
        /// Number of valid trials.
        all: usize,
        /// The round of the trial with the longest standstill.
        round: u32,
        /// Levels of the case of that trial.
        levels: Levels,
        /// The longest standstill.
        longest: Standstill,
    },
    /// Queries are executed alike in all layouts.
    #[error("the database's plans of {queries} queries are the same in all layouts")]
    PlansAlike {
        /// Number of queries with plans of several layouts.
        queries: usize,
    },
    /// Some queries are executed differently in different layouts.
    #[error("the database's plans of {} of {all} queries differ between layouts: {}", queries.len(), queries.join(", "))]
    PlansDiffer {
        /// Names of these queries.
        queries: Vec<String>,
        /// Number of queries with plans of several layouts.
        all: usize,
    },
    /// Capacity of a link before the trials; medians.
    #[error("{}", show_link(self))]
    Link {
        /// The configured rate; null without a limit.
        rate_bits_per_s: Option<f64>,
        /// The configured delay.
        delay_s: f64,
        /// The tunnel over the link, and the encryption of its packets; null without a tunnel.
        tunnel: Option<[String; 2]>,
        /// Bits per second to the server.
        up_bits_per_s: f64,
        /// Bits of payload per second to the server.
        up_payload_bits_per_s: f64,
        /// Bits per second from the server.
        down_bits_per_s: f64,
        /// Round-trip time.
        round_trip_s: f64,
        /// Number of trials before which the link was measured.
        n: usize,
        /// Whether the link carried noticeably less than its rate.
        is_short: bool,
    },
    /// Writes to the disk by a writer beside the load.
    #[error("{}", show_disk(self))]
    DiskWriter {
        /// When the writer synced, in words.
        sync: &'static str,
        /// Bytes of a block.
        block_bytes: u64,
        /// Number of writers.
        writers: u32,
        /// Mean number of bytes written per second.
        written_bytes_per_s: f64,
        /// The same in words, with its interval.
        speed: String,
        /// Median time of a block.
        block_p50_s: f64,
        /// 99th percentile of the time of a block.
        block_p99_s: f64,
        /// Bytes that the page cache accepted, and the time of the last sync; null where the cache accepted no more than the disk.
        cached: Option<Cached>,
    },
}

said!(Note);

/// A case that did not settle.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Unsettled {
    /// Levels of the case.
    pub levels: Levels,
    /// Number of its valid trials.
    pub n: u64,
}

/// A case whose queries found next to nothing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FewRows {
    /// Levels of the case.
    pub levels: Levels,
    /// Mean number of rows per query.
    pub rows: f64,
}

/// The part of the writing that the page cache accepted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Cached {
    /// Bytes accepted per second.
    pub accepted_bytes_per_s: f64,
    /// Duration of the last sync.
    pub flush_s: f64,
}

/// Lists the first four texts, and the number of further ones.
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
