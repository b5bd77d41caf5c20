//! Validity: the rules by which the figures of a trial are rejected. Pure.

use crate::histogram::Histogram;
use crate::measurement::{
    EvolutionMeasurement, GroupMeasurement, Measurement, OperationMeasurement, RetentionMeasurement,
};
use crate::operation::OperationKind;
use crate::reason::{EmptyReads, Failed, Little, Reason, RetentionTrouble};
use crate::statement::shortened;
use crate::trial::Arrivals;

/// Share of a CPU from which on a loop counts as saturated.
const SATURATED_SHARE: f64 = 0.95;
/// Tolerated distance of the number of arrivals from its expectation, in standard deviations of a Poisson count.
const ARRIVALS_SIGMA: f64 = 5.0;
/// Share of the time for which clients must have been busy for unanswered operations to be the database's fault.
const SATURATED_CLIENTS: f64 = 0.8;
/// The generator is late when its mean lateness is above this share of the mean response time, and above this time.
pub const LATE_SHARE: f64 = 0.1;
const LATE_NS: f64 = 50_000.0;
/// Maximum number of errors named in a reason.
const ERRORS_NAMED: usize = 3;
/// Maximum number of characters of a statement in a reason.
const STATEMENT_MOST: usize = 80;
/// Relative tolerance of Little's law against the number of clients; the length of the phase is known less exactly.
const LITTLE_TOLERANCE: f64 = 0.05;
/// Relative tolerance between two sums of the same nanoseconds.
const LITTLE_ROUNDING: f64 = 1e-3;

/// The facts that the rules need besides the measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Circumstances {
    /// Tolerated share of failed operations, 0..1.
    pub tolerated_failures: f64,
    /// Whether the database's own work is done by the loops' threads.
    pub is_embedded: bool,
    /// Whether the trial ended before its time.
    pub is_cut_short: bool,
    /// Number of clients if each of them always has one operation running, without a think time; `None` otherwise.
    pub always_busy_clients: Option<u32>,
    /// Arrivals per second of an open loop; `None` for a closed loop.
    pub offered_per_s: Option<f64>,
    /// Share of the mean response time that the generator's own mean lateness may reach, in an open loop.
    pub late_share: f64,
    /// Whether the trial belongs to a search that asks whether a quantile of response time keeps a bound; the search judges the generator's lateness itself.
    pub is_sought: bool,
    /// Number of acknowledged records, and of those found in the table afterwards; `None` if they were not counted.
    pub stored: Option<(u64, u64)>,
}

/// Returns why the schema changes of a trial say nothing, or less than they should.
fn schema_reason(evolution: &EvolutionMeasurement) -> Option<Reason> {
    let failed: u64 = evolution.changes.iter().map(|change| change.failed).sum();
    let first = evolution.changes.iter().find_map(|change| Some((&change.what, change.error.as_ref()?)));
    match first {
        Some((what, error)) => Some(Reason::SchemaChangesFailed { failed, first: what.clone(), error: error.clone() }),
        None if evolution.changes.is_empty() => Some(Reason::NoSchemaChange {}),
        None => {
            let change = evolution.changes.iter().find(|change| change.outlasted)?;
            Some(Reason::SchemaChangeOutlasted { change: change.what.clone(), took_s: change.took_s })
        }
    }
}

/// Returns why the retention of a trial says nothing, or less than it should.
fn retention_reason(retention: &RetentionMeasurement) -> Option<Reason> {
    let changes = &retention.meanwhile.changes;
    let failed: u64 = changes.iter().map(|change| change.failed).sum();
    let first = changes.iter().find_map(|change| Some((change.what.clone(), change.error.clone()?)));
    let (advanced_s, behind_s) = (retention.advanced_s, retention.behind_s);
    let trouble = match first {
        Some((first, error)) => RetentionTrouble::Failed { failed, first, error },
        None if retention.is_held => RetentionTrouble::Asked { advanced_s },
        None if retention.steps > 0 => return None,
        None if behind_s > 0.0 => RetentionTrouble::NoneEnded { behind_s },
        None => RetentionTrouble::NothingOld { advanced_s },
    };
    Some(Reason::Retention { retention: trouble })
}

/// Returns which reads found nothing, and what to do about it.
fn empty_reason(measurement: &Measurement, empty: u64) -> Reason {
    let statements = &measurement.trial.case.settings.workload.statements;
    let names = measurement.trial.case.settings.workload.kind_names();
    let reads_of = |(kind, empty): (&String, u64)| {
        let is_it = |number: &usize| names.name(OperationKind::Statement(*number as u16)) == *kind;
        let statement = (0..statements.len()).find(is_it).and_then(|number| statements.get(number));
        let sql = statement.map(|statement| shortened(&statement.sql, STATEMENT_MOST));
        EmptyReads { operation: kind.clone(), sql, empty }
    };
    let kinds = measurement.operations.iter().map(|(kind, operation)| (kind, operation.empty));
    Reason::FoundNothing { empty, reads: kinds.filter(|(_, empty)| *empty > 0).map(reads_of).collect() }
}

/// Returns the errors of failed operations, the most frequent first. The cause of all others may well be rare: a full
/// disk, for instance, before foreign keys to the rows that it did not store.
fn most_frequent_errors(measurement: &Measurement) -> Vec<Failed> {
    let mut errors: Vec<_> = measurement.errors.iter().collect();
    errors.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let failed = |(message, count): &(&String, &u64)| Failed { message: (*message).clone(), count: **count };
    errors.iter().take(ERRORS_NAMED).map(failed).collect()
}

/// Returns all reasons for which a trial is invalid; empty if it is valid.
pub fn reasons(measurement: &Measurement, circumstances: Circumstances) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let operations = || measurement.operations.values().map(Box::as_ref);
    let total = |pick: fn(&OperationMeasurement) -> u64| -> u64 { operations().map(pick).sum() };
    let (scheduled, completed, failed) = (total(|o| o.scheduled), total(|o| o.completed), total(|o| o.failed));
    let (abandoned, empty) = (total(|o| o.abandoned), total(|o| o.empty));
    if circumstances.is_cut_short {
        reasons.push(Reason::CutShort {});
    }
    if completed == 0 {
        reasons.push(Reason::NothingCompleted {});
    }
    let wrong = total(|o| o.wrong.unwrap_or(0));
    if (failed - wrong) as f64 > circumstances.tolerated_failures * scheduled as f64 {
        reasons.push(Reason::OperationsFailed { failed, scheduled, errors: most_frequent_errors(measurement) });
    }
    if wrong > 0 {
        let checked = total(|o| o.wrong.map_or(0, |_| o.completed + o.failed));
        reasons.push(Reason::WrongAnswers { wrong, checked, errors: most_frequent_errors(measurement) });
    }
    if abandoned > 0 && circumstances.offered_per_s.is_none() && measurement.events.is_none() {
        reasons.push(Reason::NotAnswered { abandoned, scheduled });
    }
    if let Some(evolution) = &measurement.evolution {
        reasons.extend(schema_reason(evolution));
    }
    if let Some(retention) = &measurement.retention {
        reasons.extend(retention_reason(retention));
    }
    let events = measurement.events.iter().flat_map(|events| &events.events);
    reasons.extend(
        events.filter_map(|event| Some(Reason::NotBack { what: event.what.clone(), error: event.error.clone()? })),
    );
    if empty > 0 {
        reasons.push(empty_reason(measurement, empty));
    }
    if scheduled != completed + failed + abandoned {
        reasons.push(Reason::CountsDiffer { scheduled, completed, failed, abandoned });
    }
    if let Some((acknowledged, found)) = circumstances.stored
        && (found < acknowledged || (found > acknowledged && failed + abandoned == 0))
    {
        reasons.push(Reason::RecordsDiffer { acknowledged, found });
    }
    reasons.extend(missed_schedule(measurement, circumstances, scheduled, abandoned));
    reasons.extend(saturated_loop(measurement, circumstances));
    reasons.extend(contradiction_of_little(measurement, circumstances));
    reasons
}

/// Checks an open loop: arrivals must come as scheduled and be sent as soon as a client is free. Arrivals that are not
/// answered because all clients are busy show an overloaded database; they do not make the trial invalid.
fn missed_schedule(
    measurement: &Measurement,
    circumstances: Circumstances,
    scheduled: u64,
    abandoned: u64,
) -> Option<Reason> {
    let expected = circumstances.offered_per_s? * measurement.measured_s;
    if (scheduled as f64 - expected).abs() > ARRIVALS_SIGMA * expected.sqrt() + 1.0 {
        return Some(Reason::RateMissed { arrived: scheduled, expected });
    }
    let sum_ns = |pick: fn(&OperationMeasurement) -> u128| -> f64 {
        measurement.operations.values().map(|operation| pick(operation) as f64).sum()
    };
    let busy_share = sum_ns(|operation| operation.residence_time.sum_ns())
        / 1e9
        / (measurement.measured_s * f64::from(measurement.client_count().max(1)));
    // A session of a trace waits for the end of its own previous statement: no other connection may take over.
    let is_of_any = measurement.trial.case.settings.load.arrivals != Arrivals::Replay;
    if abandoned > 0 && is_of_any && busy_share < SATURATED_CLIENTS {
        return Some(Reason::NotAnsweredThoughIdle { abandoned, scheduled, busy_share });
    }
    lateness(measurement, circumstances)
}

/// Returns a reason if the generator's own lateness is too large a part of the mean response time.
fn lateness(measurement: &Measurement, circumstances: Circumstances) -> Option<Reason> {
    if circumstances.is_sought {
        return None;
    }
    let late_ns = measurement.generator_late.mean_ns();
    let sum_ns: f64 = measurement.operations.values().map(|operation| operation.response_time.sum_ns() as f64).sum();
    let response_ns = sum_ns / measurement.completed().max(1) as f64;
    (late_ns > circumstances.late_share * response_ns && late_ns > LATE_NS)
        .then(|| Reason::SentLate { late_s: late_ns / 1e9, mean_s: response_ns / 1e9 })
}

fn saturated_loop(measurement: &Measurement, circumstances: Circumstances) -> Option<Reason> {
    if circumstances.is_embedded {
        return None;
    }
    let busy = measurement.loops.iter().filter(|each| each.wall_s > 0.05 && each.cpu_s > SATURATED_SHARE * each.wall_s);
    busy.map(|each| each.cpu_s / each.wall_s)
        .max_by(f64::total_cmp)
        .map(|cpu_share| Reason::ClientSaturated { cpu_share })
}

/// Checks Little's law: the mean number of running operations is throughput times mean residence time, in open and
/// closed loops. The time for which clients had operations running is counted separately from the times of operations
/// and must equal their sum. A client runs one operation at a time, so the sum is at most the time of all clients. In
/// the whole system, which an operation enters at its intended time, response time is the wait for a client plus
/// residence time. All are sums of whole nanoseconds: they differ only by rounding.
fn contradiction_of_little(measurement: &Measurement, circumstances: Circumstances) -> Option<Reason> {
    let sum_s = |pick: fn(&OperationMeasurement) -> &Histogram| -> f64 {
        let counted = measurement.operations.values().filter(|operation| !operation.composite);
        counted.map(|operation| pick(operation).sum_ns() as f64 / 1e9).sum()
    };
    let (response_s, residence_s) = (sum_s(|o| &o.response_time), sum_s(|o| &o.residence_time));
    // The last operations of the phase may end after it: their time extends to the last answer.
    let last_s = measurement.clients.iter().map(|client| client.elapsed_s).fold(measurement.measured_s, f64::max);
    if last_s <= 0.0 {
        return None;
    }
    let says = |between, operations, expected| Some(Reason::LittlesLaw { between, operations, expected });
    let running = residence_s / last_s;
    if let Some(clients) = circumstances.always_busy_clients.map(f64::from)
        && measurement.completed() >= 100 * clients as u64
        && running > clients * (1.0 + LITTLE_TOLERANCE)
    {
        return says(Little::Clients, running, clients);
    }
    let differs = |a_s: f64, b_s: f64| (a_s - b_s).abs() > LITTLE_ROUNDING * a_s.max(b_s) + 1e-6;
    let counted_s: f64 = measurement.clients.iter().map(|client| client.running_s).sum();
    if counted_s > 0.0 && differs(counted_s, residence_s) {
        return says(Little::Counted, counted_s / last_s, running);
    }
    let clients_s: f64 = measurement.clients.iter().map(|client| client.elapsed_s).sum();
    if counted_s > 0.0 && residence_s > clients_s * (1.0 + LITTLE_ROUNDING) + 1e-6 {
        return says(Little::AtWork, running, clients_s / last_s);
    }
    let within_s = residence_s + sum_s(|o| &o.schedule_lag);
    if counted_s > 0.0 && differs(response_s, within_s) {
        return says(Little::InSystem, response_s / last_s, within_s / last_s);
    }
    None
}

/// Returns what is wrong with the sightings of a group of readers, of which the share `tolerated` may be missing or duplicate.
pub fn sightings_reason(name: &str, group: &GroupMeasurement, tolerated: f64) -> Option<Reason> {
    let GroupMeasurement { expected, lost, duplicates, .. } = *group;
    if expected == 0 {
        return Some(Reason::NoEvents { group: name.to_owned() });
    }
    ((lost + duplicates) as f64 > tolerated * expected as f64).then(|| Reason::SightingsWrong {
        group: name.to_owned(),
        expected,
        lost,
        duplicates,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::LoopMeasurement;

    /// Returns the reasons as sentences.
    fn reasons(measurement: &Measurement, circumstances: Circumstances) -> Vec<String> {
        super::reasons(measurement, circumstances).iter().map(ToString::to_string).collect()
    }

    const PLAIN: Circumstances = Circumstances {
        tolerated_failures: 0.0,
        is_embedded: false,
        is_cut_short: false,
        always_busy_clients: Some(1),
        late_share: LATE_SHARE,
        offered_per_s: None,
        is_sought: false,
        stored: None,
    };

    fn measurement(completed: u64, failed: u64, residence_ns: u64) -> Measurement {
        let mut insert =
            OperationMeasurement { scheduled: completed + failed, completed, failed, ..Default::default() };
        (0..completed).for_each(|_| insert.residence_time.record(residence_ns));
        let case = crate::trial::Case::new(Default::default(), Default::default());
        Measurement {
            total_s: 1.0,
            measured_s: 1.0,
            operations: [("insert".to_owned(), Box::new(insert))].into(),
            errors: [("disk is full (13)".to_owned(), failed)].into(),
            ..Measurement::unmeasured(&crate::trial::Trial::new(case, 0, 0))
        }
    }

    #[test]
    fn a_trial_without_fault_is_valid() {
        assert_eq!(reasons(&measurement(1000, 0, 900_000), PLAIN), Vec::<String>::new());
    }

    #[test]
    fn failed_operations_beyond_the_tolerated_share_are_named_with_their_message() {
        let found = reasons(&measurement(500, 500, 900_000), PLAIN);
        assert_eq!(found, ["500 of 1000 operations failed; 500 times: disk is full (13)"]);
        let tolerant = Circumstances { tolerated_failures: 0.5, ..PLAIN };
        assert!(reasons(&measurement(500, 500, 900_000), tolerant).is_empty());
        let mut caused = measurement(500, 510, 900_000);
        for (error, count) in [("no such parent", 490), ("a deadlock", 6), ("a seldom one", 1)] {
            caused.errors.insert(error.to_owned(), count);
        }
        caused.errors.insert("disk is full (13)".to_owned(), 13);
        let found = reasons(&caused, PLAIN);
        let named = "490 times: no such parent; 13 times: disk is full (13); 6 times: a deadlock";
        assert_eq!(found, [format!("510 of 1010 operations failed; {named}")], "the cause is seldom");
    }

    #[test]
    fn a_trial_in_which_nothing_was_completed_is_invalid() {
        assert_eq!(reasons(&measurement(0, 0, 0), PLAIN), ["no operation was completed"]);
    }

    #[test]
    fn reads_that_find_nothing_invalidate_a_trial() {
        let mut trial = measurement(10, 0, 100);
        trial.operations.get_mut("insert").unwrap().empty = 3;
        assert_eq!(reasons(&trial, PLAIN), ["3 reads found nothing although they should have: insert 3 times"]);
    }

    #[test]
    fn a_saturated_client_invalidates_unless_the_database_runs_in_it() {
        let mut trial = measurement(1000, 0, 900_000);
        trial.loops = vec![LoopMeasurement { cpu_s: 0.99, wall_s: 1.0, ..Default::default() }];
        assert!(reasons(&trial, PLAIN)[0].contains("saturated"));
        assert!(reasons(&trial, Circumstances { is_embedded: true, ..PLAIN }).is_empty());
    }

    #[test]
    fn an_open_loop_must_arrive_as_scheduled_and_be_sent_in_time() {
        let open = Circumstances { always_busy_clients: None, offered_per_s: Some(1000.0), ..PLAIN };
        assert_eq!(reasons(&measurement(1000, 0, 900_000), open), Vec::<String>::new());
        assert!(reasons(&measurement(700, 0, 900_000), open)[0].contains("instead of about 1000"));
        let mut late = measurement(1000, 0, 900_000);
        (0..1000).for_each(|_| late.generator_late.record(400_000));
        (0..1000).for_each(|_| late.operations.get_mut("insert").unwrap().response_time.record(1_000_000));
        assert!(reasons(&late, open)[0].contains("sent operations late"));
        assert_eq!(
            reasons(&late, Circumstances { is_sought: true, ..open }),
            Vec::<String>::new(),
            "the search judges it"
        );
        assert!(!late.is_late_beside(0.99, 0.02), "400 µs are nothing beside a bound of 20 ms");
        assert!(late.is_late_beside(0.99, 0.002));
    }

    #[test]
    fn an_overloaded_database_is_no_fault_of_the_trial_and_idle_clients_are() {
        let open = Circumstances { always_busy_clients: None, offered_per_s: Some(1500.0), ..PLAIN };
        let mut trial = measurement(1000, 0, 900_000);
        let insert = trial.operations.get_mut("insert").unwrap();
        (insert.scheduled, insert.abandoned) = (1500, 500);
        assert_eq!(reasons(&trial, open), Vec::<String>::new());
        trial.clients = vec![Default::default(); 4];
        assert!(reasons(&trial, open)[0].contains("busy only 22 %"), "{:?}", reasons(&trial, open));
    }

    #[test]
    fn acknowledged_records_that_are_not_in_the_table_are_found() {
        let lost = Circumstances { stored: Some((1000, 999)), ..PLAIN };
        assert_eq!(
            reasons(&measurement(1000, 0, 900_000), lost),
            ["1000 records were acknowledged and 999 are in the table"]
        );
        let unknown = Circumstances { stored: Some((500, 510)), tolerated_failures: 1.0, ..PLAIN };
        assert!(reasons(&measurement(500, 20, 900_000), unknown).is_empty(), "a failed write may have been stored");
        assert!(reasons(&measurement(10, 0, 900), Circumstances { stored: Some((10, 10)), ..PLAIN }).is_empty());
    }

    #[test]
    fn sightings_that_are_lost_or_double_are_found_unless_they_are_tolerated() {
        let group = GroupMeasurement { expected: 1000, lost: 3, duplicates: 2, ..GroupMeasurement::default() };
        let found = sightings_reason("1", &group, 0.0).unwrap().to_string();
        assert_eq!(found, "group 1: of 1000 sightings 3 were lost and 2 were of events seen before");
        assert_eq!(sightings_reason("1", &group, 0.005), None);
        assert!(matches!(sightings_reason("1", &GroupMeasurement::default(), 1.0), Some(Reason::NoEvents { .. })));
    }

    /// Makes operations of 900 µs each by one client, whose own count of the running time is `running_s`.
    fn counted(running_s: f64, elapsed_s: f64) -> Measurement {
        let mut trial = measurement(1000, 0, 900_000);
        trial.clients = vec![crate::measurement::ClientMeasurement { elapsed_s, running_s, ..Default::default() }];
        let insert = trial.operations.get_mut("insert").unwrap();
        (0..1000).for_each(|_| insert.response_time.record(1_000_000));
        (0..1000).for_each(|_| insert.schedule_lag.record(100_000));
        trial
    }

    #[test]
    fn littles_law_is_held_against_the_clients_own_count_from_both_sides_in_open_and_closed_loops() {
        let open = Circumstances { always_busy_clients: None, offered_per_s: Some(1000.0), ..PLAIN };
        for circumstances in [PLAIN, open] {
            assert_eq!(reasons(&counted(0.9, 0.99), circumstances), Vec::<String>::new());
            for (running_s, elapsed_s) in [(0.8, 0.99), (0.99, 0.99), (0.9, 0.7)] {
                let found = reasons(&counted(running_s, elapsed_s), circumstances);
                assert!(
                    found[0].starts_with("counts and times contradict each other"),
                    "{running_s} {elapsed_s}: {found:?}"
                );
            }
            let mut without_wait = counted(0.9, 0.99);
            without_wait.operations.get_mut("insert").unwrap().schedule_lag = Histogram::new();
            assert!(reasons(&without_wait, circumstances)[0].contains("in the system"));
        }
    }

    #[test]
    fn times_that_contradict_littles_law_are_found() {
        let found = reasons(&measurement(1000, 0, 1_200_000), PLAIN);
        assert!(found[0].starts_with("counts and times contradict each other (by Little's law): 1.20"), "{found:?}");
        let mut stalled_at_its_end = measurement(1000, 0, 1_200_000);
        stalled_at_its_end.clients =
            vec![crate::measurement::ClientMeasurement { elapsed_s: 1.2, ..Default::default() }];
        assert!(reasons(&stalled_at_its_end, PLAIN).is_empty());
    }
}
