//! Validity: the rules by which a trial's figures are not to be trusted. Pure; the reasons are sentences for people.

use crate::measurement::{EvolutionMeasurement, GroupMeasurement, Measurement, OperationMeasurement};

/// Share of a CPU from which on a loop is taken to be saturated.
const SATURATED_SHARE: f64 = 0.95;
/// Tolerated distance of the number of arrivals from its expectation, in standard deviations of a Poisson count.
const ARRIVALS_SIGMA: f64 = 5.0;
/// Share of the time that clients must have been busy for unanswered operations to be the database's fault.
const SATURATED_CLIENTS: f64 = 0.8;
/// The generator is late when its mean lateness is above this share of the mean response time, and above this time.
pub const LATE_SHARE: f64 = 0.1;
const LATE_NS: f64 = 50_000.0;
/// Relative tolerance of Little's law.
const LITTLE_TOLERANCE: f64 = 0.05;

/// What the rules need to know besides the measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Circumstances {
    /// Tolerated share of failed operations, 0..1.
    pub tolerated_failures: f64,
    /// Whether the database's own work is done by the loops' threads.
    pub is_embedded: bool,
    /// Whether the trial ended before its time.
    pub is_cut_short: bool,
    /// Clients without a think time, each of which always has one operation running; none where that is not so.
    pub always_busy_clients: Option<u32>,
    /// Arrivals per second of an open loop; none for a closed one.
    pub offered_per_s: Option<f64>,
    /// Share of the mean response time that the generator's own mean lateness may reach, in an open loop.
    pub late_share: f64,
    /// Records that were acknowledged, and those found in the table afterwards; none where that was not counted.
    pub stored: Option<(u64, u64)>,
}

/// Why the schema changes of a trial say nothing, or not all that they should.
fn schema_reason(evolution: &EvolutionMeasurement) -> Option<String> {
    let failed: u64 = evolution.changes.iter().map(|change| change.failed).sum();
    let first = evolution.changes.iter().find_map(|change| Some((&change.what, change.error.as_ref()?)));
    match first {
        Some((what, error)) => Some(format!("{failed} schema changes failed, first \"{what}\": {error}")),
        None if evolution.changes.is_empty() => {
            let remedy = "make load.duration longer than workload.evolve";
            Some(format!("no schema change was made in the measured phase; {remedy}"))
        }
        None => None,
    }
}

/// All reasons for which a trial is not to be trusted; none when it is valid.
pub fn reasons(measurement: &Measurement, circumstances: Circumstances) -> Vec<String> {
    let mut reasons = Vec::new();
    let total = |pick: fn(&OperationMeasurement) -> u64| -> u64 { measurement.operations.values().map(pick).sum() };
    let (scheduled, completed, failed) = (total(|o| o.scheduled), total(|o| o.completed), total(|o| o.failed));
    let (abandoned, empty) = (total(|o| o.abandoned), total(|o| o.empty));
    if circumstances.is_cut_short {
        reasons.push("it ended before its time: interrupted, or the database answered nothing any more".to_owned());
    }
    if completed == 0 {
        reasons.push("no operation was completed".to_owned());
    }
    if failed as f64 > circumstances.tolerated_failures * scheduled as f64 {
        let most = measurement.errors.iter().max_by_key(|(_, count)| **count);
        let example = most.map_or(String::new(), |(message, count)| format!("; {count} times: {message}"));
        reasons.push(format!("{failed} of {scheduled} operations failed{example}"));
    }
    if abandoned > 0 && circumstances.offered_per_s.is_none() {
        reasons.push(format!("{abandoned} of {scheduled} operations were not answered before the trial ended"));
    }
    if let Some(evolution) = &measurement.evolution {
        reasons.extend(schema_reason(evolution));
    }
    if empty > 0 {
        reasons.push(format!("{empty} reads found nothing although they should have"));
    }
    if scheduled != completed + failed + abandoned {
        reasons.push(format!(
            "the counts do not add up: {scheduled} scheduled, {completed} completed, {failed} failed, {abandoned} abandoned"
        ));
    }
    if let Some((acknowledged, found)) = circumstances.stored
        && (found < acknowledged || (found > acknowledged && failed + abandoned == 0))
    {
        reasons.push(format!("{acknowledged} records were acknowledged and {found} are in the table"));
    }
    reasons.extend(missed_schedule(measurement, circumstances, scheduled, abandoned));
    reasons.extend(saturated_loop(measurement, circumstances));
    reasons.extend(contradiction_of_little(measurement, circumstances));
    reasons
}

/// In an open loop: arrivals must come as scheduled, and be sent as soon as a client is free. Arrivals that are not answered
/// because all clients are busy are what an overloaded database does; they are no fault of the trial.
fn missed_schedule(
    measurement: &Measurement,
    circumstances: Circumstances,
    scheduled: u64,
    abandoned: u64,
) -> Option<String> {
    let expected = circumstances.offered_per_s? * measurement.measured_s;
    if (scheduled as f64 - expected).abs() > ARRIVALS_SIGMA * expected.sqrt() + 1.0 {
        return Some(format!(
            "{scheduled} operations arrived instead of about {expected:.0}: the offered rate was missed"
        ));
    }
    let sum_ns = |pick: fn(&OperationMeasurement) -> u128| -> f64 {
        measurement.operations.values().map(|operation| pick(operation) as f64).sum()
    };
    let busy_share = sum_ns(|operation| operation.residence_time.sum_ns())
        / 1e9
        / (measurement.measured_s * measurement.clients.len().max(1) as f64);
    if abandoned > 0 && busy_share < SATURATED_CLIENTS {
        return Some(format!(
            "{abandoned} of {scheduled} operations were not answered although clients were busy only {:.0} % of the time",
            100.0 * busy_share
        ));
    }
    let (late_ns, response_ns) = (
        measurement.generator_late.mean_ns(),
        sum_ns(|operation| operation.response_time.sum_ns()) / measurement.completed().max(1) as f64,
    );
    (late_ns > circumstances.late_share * response_ns && late_ns > LATE_NS).then(|| {
        format!(
            "the generator was late: {:.0} µs on average, of a mean response time of {:.0} µs",
            late_ns / 1e3,
            response_ns / 1e3
        )
    })
}

fn saturated_loop(measurement: &Measurement, circumstances: Circumstances) -> Option<String> {
    if circumstances.is_embedded {
        return None;
    }
    let busy = measurement.loops.iter().filter(|each| each.wall_s > 0.05 && each.cpu_s > SATURATED_SHARE * each.wall_s);
    let worst = busy.map(|each| each.cpu_s / each.wall_s).max_by(f64::total_cmp)?;
    Some(format!(
        "the client was saturated: a load thread used {:.0} % of a CPU; set load.loops to use more threads",
        100.0 * worst
    ))
}

/// Little's law: the mean number of running operations is throughput times mean residence time. Clients that never pause
/// keep exactly one operation running each; the product may be lower by the client's own time, and never higher.
fn contradiction_of_little(measurement: &Measurement, circumstances: Circumstances) -> Option<String> {
    let clients = f64::from(circumstances.always_busy_clients?);
    let sum_ns: f64 = measurement.operations.values().map(|o| o.residence_time.sum_ns() as f64).sum();
    if measurement.measured_s <= 0.0 || measurement.completed() < 100 * clients as u64 {
        return None;
    }
    // The last operations of the phase may end after it: the time they are spread over reaches to the last answer.
    let last_s = measurement.clients.iter().map(|client| client.elapsed_s).fold(measurement.measured_s, f64::max);
    let running = sum_ns / 1e9 / last_s;
    let bound = clients * (1.0 + LITTLE_TOLERANCE);
    (running > bound).then(|| {
        format!("Little's law does not hold: {running:.2} operations were running on average with {clients:.0} clients")
    })
}

/// What is wrong with the sightings of a group of readers, of which a share may be missing or double.
pub fn sightings_reason(name: &str, group: &GroupMeasurement, tolerated: f64) -> Option<String> {
    let GroupMeasurement { expected, lost, duplicates, .. } = *group;
    if expected == 0 {
        return Some(format!("group {name}: there was no event to be seen"));
    }
    ((lost + duplicates) as f64 > tolerated * expected as f64).then(|| {
        format!("group {name}: of {expected} sightings {lost} were lost and {duplicates} were of events seen before")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::LoopMeasurement;

    const PLAIN: Circumstances = Circumstances {
        tolerated_failures: 0.0,
        is_embedded: false,
        is_cut_short: false,
        always_busy_clients: Some(1),
        late_share: LATE_SHARE,
        offered_per_s: None,
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
            operations: [("insert".to_owned(), insert)].into(),
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
    }

    #[test]
    fn a_trial_in_which_nothing_was_completed_is_invalid() {
        assert_eq!(reasons(&measurement(0, 0, 0), PLAIN), ["no operation was completed"]);
    }

    #[test]
    fn reads_that_find_nothing_invalidate_a_trial() {
        let mut trial = measurement(10, 0, 100);
        trial.operations.get_mut("insert").unwrap().empty = 3;
        assert_eq!(reasons(&trial, PLAIN), ["3 reads found nothing although they should have"]);
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
        assert!(reasons(&late, open)[0].contains("generator was late"));
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
        let found = sightings_reason("1", &group, 0.0).unwrap();
        assert_eq!(found, "group 1: of 1000 sightings 3 were lost and 2 were of events seen before");
        assert_eq!(sightings_reason("1", &group, 0.005), None);
        assert!(sightings_reason("1", &GroupMeasurement::default(), 1.0).unwrap().contains("no event to be seen"));
    }

    #[test]
    fn times_that_contradict_littles_law_are_found() {
        let found = reasons(&measurement(1000, 0, 1_200_000), PLAIN);
        assert!(found[0].starts_with("Little's law does not hold: 1.20"), "{found:?}");
        let mut stalled_at_its_end = measurement(1000, 0, 1_200_000);
        stalled_at_its_end.clients =
            vec![crate::measurement::ClientMeasurement { elapsed_s: 1.2, ..Default::default() }];
        assert!(reasons(&stalled_at_its_end, PLAIN).is_empty());
    }
}
