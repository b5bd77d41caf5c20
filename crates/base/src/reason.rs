//! Reasons why a trial is not to be trusted. Main type: [`Reason`].
//!
//! Invariant: a stored reason is read back with its figures, and a reason that this version does not know keeps its sentence.

mod parts;
mod words;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::said::{said, with_says};
use crate::units::{show_bytes, show_number, show_seconds};
use words::{SAMPLES_REMOVED, show_empty, show_errors, show_host, show_little};

pub use parts::{EmptyReads, Failed, Little, RetentionTrouble};
pub use words::show_reasons;
pub use words::{show_stolen, show_turn};

/// The reason why a trial is not to be trusted, with its figures. As JSON it is an object with `kind`, these figures and `says`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
#[schemars(transform = with_says)]
pub enum Reason {
    /// The trial was interrupted, or the database fell silent.
    #[error("it ended before its time: interrupted, or the database answered nothing any more")]
    CutShort {},
    /// Nothing was measured.
    #[error("no operation was completed")]
    NothingCompleted {},
    /// More operations failed than the study tolerates.
    #[error("{failed} of {scheduled} operations failed{}", show_errors(.errors))]
    OperationsFailed {
        /// Operations that failed.
        failed: u64,
        /// All operations that were scheduled.
        scheduled: u64,
        /// The most frequent errors, the most frequent first.
        errors: Vec<Failed>,
    },
    /// Answers had wrong values.
    #[error("{wrong} of {checked} answers were wrong{}", show_errors(.errors))]
    WrongAnswers {
        /// Answers with a wrong value.
        wrong: u64,
        /// Answers whose values were checked.
        checked: u64,
        /// The most frequent messages, the most frequent first.
        errors: Vec<Failed>,
    },
    /// Operations of a closed loop were without an answer at the end.
    #[error("{abandoned} of {scheduled} operations were not answered before the trial ended")]
    NotAnswered {
        /// Operations without an answer.
        abandoned: u64,
        /// All operations that were scheduled.
        scheduled: u64,
    },
    /// Operations of an open loop were without an answer although clients were free.
    #[error(
        "{abandoned} of {scheduled} operations were not answered although clients were busy only {:.0} % of the time",
        100.0 * busy_share
    )]
    NotAnsweredThoughIdle {
        /// Operations without an answer.
        abandoned: u64,
        /// All operations that were scheduled.
        scheduled: u64,
        /// Share of the time that clients were busy.
        busy_share: f64,
    },
    /// A server did not come back after an event.
    #[error("the server did not come back after the {what} of [[events]]: {error}")]
    NotBack {
        /// The event.
        what: String,
        /// The error.
        error: String,
    },
    /// Changes of the schema failed.
    #[error("{failed} schema changes failed, first \"{first}\": {error}")]
    SchemaChangesFailed {
        /// Changes, or records of them, that failed.
        failed: u64,
        /// The change that failed first.
        first: String,
        /// The database's message.
        error: String,
    },
    /// The load ended before the first change of the schema.
    #[error("no schema change was made in the measured phase; make load.duration longer than workload.evolve")]
    NoSchemaChange {},
    /// A change of the schema took longer than the load.
    #[error(
        "the schema change \"{change}\" took {} and outlasted the load; raise workload.evolve_at_most, so that the load lasts as long as \
         the change",
        show_seconds(*took_s)
    )]
    SchemaChangeOutlasted {
        /// The change.
        change: String,
        /// Duration of the change.
        took_s: f64,
    },
    /// Old readings could not be thrown away as they should.
    #[error("{retention}")]
    Retention {
        /// What stood in the way.
        retention: RetentionTrouble,
    },
    /// Reads found nothing although they should have.
    #[error("{}", show_empty(*empty, .reads))]
    FoundNothing {
        /// Reads that found nothing.
        empty: u64,
        /// Reads that found nothing, by kind of operation.
        reads: Vec<EmptyReads>,
    },
    /// Operations were lost or counted twice.
    #[error(
        "the counts do not add up: {scheduled} scheduled, {completed} completed, {failed} failed, {abandoned} abandoned"
    )]
    CountsDiffer {
        /// Operations that were scheduled.
        scheduled: u64,
        /// Operations that were completed.
        completed: u64,
        /// Operations that failed.
        failed: u64,
        /// Operations without an answer.
        abandoned: u64,
    },
    /// The number of records in the table differs from the number acknowledged.
    #[error("{acknowledged} records were acknowledged and {found} are in the table")]
    RecordsDiffer {
        /// Records that were acknowledged, plus those present before.
        acknowledged: u64,
        /// Records in the table.
        found: u64,
    },
    /// The number of events in the tables differs from the number acknowledged.
    #[error("{acknowledged} events were acknowledged and {found} are in the tables")]
    EventsDiffer {
        /// Events that were acknowledged.
        acknowledged: u64,
        /// Events in the tables.
        found: u64,
    },
    /// Operations of an open loop did not arrive at the requested rate.
    #[error("{arrived} operations arrived instead of about {expected:.0}: the offered rate was missed")]
    RateMissed {
        /// Operations that arrived.
        arrived: u64,
        /// Expected number of operations at that rate.
        expected: f64,
    },
    /// Another tool did not reach the rate that it should have offered.
    #[error(
        "{} of {}/s were reached: the schedule was missed, and the times of what still waited at the end are not told",
        show_number(*reached_per_s),
        show_number(*rate_per_s)
    )]
    ScheduleMissed {
        /// Operations per second that were reached.
        reached_per_s: f64,
        /// Operations per second that were requested.
        rate_per_s: f64,
    },
    /// The generator's own lateness is too large a part of the mean response time.
    #[error(
        "loadline sent operations late: {} on average, and the mean response time is {}",
        show_seconds(*late_s),
        show_seconds(*mean_s)
    )]
    SentLate {
        /// Mean lateness.
        late_s: f64,
        /// Mean response time.
        mean_s: f64,
    },
    /// A load thread used up its CPU.
    #[error(
        "the client was saturated: a load thread used {:.0} % of a CPU; set load.loops to use more threads",
        100.0 * cpu_share
    )]
    ClientSaturated {
        /// Share of a CPU that it used.
        cpu_share: f64,
    },
    /// Counts and times contradict each other by Little's law.
    #[error("counts and times contradict each other (by Little's law): {}", show_little(*between, *operations, *expected))]
    LittlesLaw {
        /// The two sides that were compared.
        between: Little,
        /// Mean number of operations under way, as counted.
        operations: f64,
        /// The expected value of that number, or its upper bound.
        expected: f64,
    },
    /// Readers had no events to see.
    #[error("group {group}: there was no event to be seen")]
    NoEvents {
        /// The group of readers.
        group: String,
    },
    /// Readers missed events, or saw events twice.
    #[error("group {group}: of {expected} sightings {lost} were lost and {duplicates} were of events seen before")]
    SightingsWrong {
        /// The group of readers.
        group: String,
        /// Expected number of sightings.
        expected: u64,
        /// Sightings missing.
        lost: u64,
        /// Sightings of events that the same reader had seen before.
        duplicates: u64,
    },
    /// A reader of events ended early.
    #[error("a reader of group {group} ended before its time: {error}")]
    ReaderEnded {
        /// The group of readers.
        group: String,
        /// The error.
        error: String,
    },
    /// The historian ended early.
    #[error("the historian ended before its time: {error}")]
    HistorianEnded {
        /// The error.
        error: String,
    },
    /// The hypervisor gave much CPU time to other machines.
    #[error("{}, or permit it with LOADLINE_STOLEN", show_stolen(*stolen_share, host.as_deref()))]
    Stolen {
        /// Share of the CPU time of all CPUs.
        stolen_share: f64,
        /// Name of the agent's host, if it is not the machine of the run.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        host: Option<String>,
    },
    /// The client did not get its turn although CPUs were idle.
    #[error(
        "the client was starved: {}, although {:.0} % of the CPU time was idle; give loadline's cgroup a larger quota, or load.cpus CPUs \
         that nothing else keeps busy",
        show_turn(*connections, *ready_share, *cpu_share),
        100.0 * idle_share
    )]
    ClientStarved {
        /// Connections of the load thread.
        connections: u32,
        /// Share of the time for which the thread was ready to run.
        ready_share: f64,
        /// Share of the time for which the thread had a CPU.
        cpu_share: f64,
        /// Idle share of the CPU time of all CPUs.
        idle_share: f64,
    },
    /// Processes other than the server used the CPUs that the client needed.
    #[error(
        "the client was starved by other processes: {}; end what else runs, give loadline the same priority (nice), set load.cpus and \
         database.cpus, or permit it with LOADLINE_STOLEN=1",
        show_turn(*connections, *ready_share, *cpu_share)
    )]
    ClientStarvedByOthers {
        /// Connections of the load thread.
        connections: u32,
        /// Share of the time for which the thread was ready to run.
        ready_share: f64,
        /// Share of the time for which the thread had a CPU.
        cpu_share: f64,
    },
    /// The trial could not be carried out.
    #[error("it could not be carried out: {error}")]
    NotCarriedOut {
        /// The error with its causes.
        error: String,
    },
    /// A program that loadline had started ended early.
    #[error("the {program} ended by itself; the end of its log: {log}")]
    ProgramEnded {
        /// `server`, `recorder`, `NATS server`.
        program: String,
        /// The last line of its log.
        log: String,
    },
    /// Processes of the server used more memory than the study allows.
    #[error(
        "the system ended {ended} of the server's processes, which took more than database.memory = {}; raise it, or have the server take less with \
         database.config",
        show_bytes(*limit_bytes as f64)
    )]
    MemoryExceeded {
        /// Number of processes that were ended.
        ended: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// An agent was lost during the trial.
    #[error("agent {agent} of {of}{} was lost: {why}", show_host(.host.as_deref()))]
    AgentLost {
        /// The agent's number, from 1.
        agent: u32,
        /// Number of agents.
        of: u32,
        /// Its host, if it is not on the machine of the run.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        host: Option<String>,
        /// What became of it.
        why: String,
    },
    /// An agent began too late.
    #[error(
        "the agents began {} apart, and at most {} were allowed: the load was not whole from its beginning",
        show_seconds(*apart_s), show_seconds(*most_s)
    )]
    AgentsApart {
        /// Time between the first and the last start, in seconds.
        apart_s: f64,
        /// The longest time allowed, in seconds: the warm-up.
        most_s: f64,
    },
    /// The clocks of two hosts are not known well enough for a freshness between them.
    #[error(
        "the readers of group {group}{} have another clock, which is known to {} at best, and half of the events took less than {}; a tenth of that is \
         allowed; take a shorter way between the two hosts, or events that take longer",
        show_host(.host.as_deref()), show_seconds(*error_s), show_seconds(*median_s)
    )]
    FreshnessUncertain {
        /// The group's name.
        group: String,
        /// Its host.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        host: Option<String>,
        /// Largest error of a freshness, in seconds.
        error_s: f64,
        /// Median freshness, in seconds.
        median_s: f64,
    },
    /// The clock of an agent's host was set or stood still during the load.
    #[error(
        "the clock of agent {agent}{} went {} apart from that of this machine within {}; times by it cannot be trusted",
        show_host(.host.as_deref()), show_seconds(*drift_s), show_seconds(*within_s)
    )]
    AgentClock {
        /// The agent's number, from 1.
        agent: u32,
        /// Its host, if it is not on the machine of the run.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        host: Option<String>,
        /// Time by which the clocks went apart, in seconds.
        drift_s: f64,
        /// Time in which they did, in seconds.
        within_s: f64,
    },
    /// The recorder had to be ended by force.
    #[error("the recorder did not stop in order")]
    RecorderNotStopped {},
    /// Writing raw times delayed the load.
    #[error("the disk did not keep up with load.samples: load threads waited {:.1} ms for it", 1e3 * waited_s)]
    SamplesHeldUp {
        /// Total time for which load threads waited, in seconds.
        waited_s: f64,
    },
    /// Raw times are missing.
    #[error("load.samples could not all be written: {error}{}", if *removed { SAMPLES_REMOVED } else { "" })]
    SamplesNotWritten {
        /// The error.
        error: String,
        /// Whether the written part of the raw times was removed.
        removed: bool,
    },
    /// The recorder's own counts do not add up to the acknowledged records.
    #[error(
        "{acknowledged} records were acknowledged and the recorder counts {committed} committed, {spooled} spooled and {quarantined} \
         quarantined"
    )]
    RecorderCountsDiffer {
        /// Records that were acknowledged.
        acknowledged: u64,
        /// Records in the database, by the recorder's count.
        committed: u64,
        /// Records in the recorder's spool.
        spooled: u64,
        /// Records in quarantine.
        quarantined: u64,
    },
    /// Records were lost.
    #[error("{missing} acknowledged records are not in the database")]
    RecordsMissing {
        /// Records that were acknowledged and not found.
        missing: u64,
    },
    /// Records are stored twice, or were never sent.
    #[error("{surplus} records are in the database that should not be there, or twice")]
    RecordsSurplus {
        /// Number of such records.
        surplus: u64,
    },
    /// Records are out of order.
    #[error("{out_of_order} records are not in their source's order")]
    RecordsOutOfOrder {
        /// Records behind a later one of the same source.
        out_of_order: u64,
    },
    /// Records were still in the spool.
    #[error("{spooled} records were still spooled when the trial ended; make load.drain longer")]
    RecordsSpooled {
        /// Records in the spool.
        spooled: u64,
    },
    /// The database refused records.
    #[error("{quarantined} records are in quarantine")]
    RecordsQuarantined {
        /// Records in quarantine.
        quarantined: u64,
    },
    /// The recorder did not answer requests for its status.
    #[error("the recorder did not answer {unanswered} times when it was asked how it does")]
    RecorderUnanswered {
        /// Number of requests without an answer.
        unanswered: u64,
    },
    /// The load in the background has a reason of its own.
    #[error("in the background: {reason}")]
    InBackground {
        /// That reason.
        reason: Box<Reason>,
    },
    /// Another tool ended with an error.
    #[error("{tool} ended with \"{message}\"")]
    ToolEnded {
        /// The tool.
        tool: String,
        /// Its message.
        message: String,
    },
    /// Another tool complained.
    #[error("{tool} said \"{message}\"")]
    ToolSaid {
        /// The tool.
        tool: String,
        /// Its message.
        message: String,
    },
    /// Another tool lost connections.
    #[error("{reconnects} reconnects: connections were lost")]
    Reconnects {
        /// Number of reconnections.
        reconnects: u64,
    },
    /// The log of one of another tool's threads is missing.
    #[error(
        "the logs are those of some of pgbench's threads: {log} is missing, so that rates and counts are too low; give all of them"
    )]
    LogMissing {
        /// The file that is missing.
        log: String,
    },
    /// A reason of another version: a sentence of version 1, or a kind that this version does not know.
    #[error("{says}")]
    Other {
        /// The sentence.
        #[serde(skip)]
        says: String,
    },
}

said!(Reason);

impl Reason {
    /// Creates a reason of which only the sentence is known.
    pub fn told(says: impl Into<String>) -> Self {
        Reason::Other { says: says.into() }
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Valid trials have no reasons, so that reading each of them twice costs nothing there.
        let told = match Value::deserialize(deserializer)? {
            Value::String(says) => return Ok(Reason::Other { says }),
            told => told,
        };
        match (Reason::deserialize(&told), told.get("says").and_then(Value::as_str)) {
            (Err(_) | Ok(Reason::Other { .. }), Some(says)) => Ok(Reason::told(says)),
            (known, _) => {
                known.map_err(|error| D::Error::custom(format!("no reason for a trial to be invalid: {error}")))
            }
        }
    }
}

#[cfg(test)]
mod tests;
