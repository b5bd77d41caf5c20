//! Notes on the limits of a run's pace other than its alternatives: other work on the machine, and the disk's syncs. They keep readers from
//! mistaking a comparison of layouts on a slow disk for one of the layouts alone.

use crate::finding::{CaseFinding, Note};
use crate::measurement::{DiskSync, Environment, Measurement};
use crate::report::case_trials::CaseTrials;
use crate::statistics::summary::mean;
use crate::trial::Arrivals;
use crate::units::show_seconds;

/// The share of all CPUs above which other processes are noted.
const OTHERS_SHARE: f64 = 0.1;
/// The multiples of a sync's duration between which the median time of operations is taken to consist of syncs.
const SYNCS: [f64; 2] = [0.6, 3.0];
/// The least number of disk writes per commit if every commit is synced.
const WRITES_SHARE: f64 = 0.5;
/// The share of all CPUs below which neither client nor server can have set the pace.
const UNHURRIED_SHARE: f64 = 0.5;

/// Returns notes on the limits of the trials other than the varied factors.
pub fn notes(environment: &Environment, groups: &[CaseTrials<'_>], cases: &[CaseFinding]) -> Vec<Note> {
    let others = others(environment, groups);
    let synced: Vec<&CaseTrials<'_>> = groups.iter().filter(|group| waits_for_syncs(group, cases)).collect();
    others.into_iter().chain(environment.disk_sync.and_then(|sync| paced_by_disk(environment, sync, &synced))).collect()
}

/// Returns whether the commits of a case wait for syncs: its settings require them, and the machine's disks were written to at least once per
/// commit, or per group of as many commits as clients can have in progress at once.
fn waits_for_syncs(group: &CaseTrials<'_>, cases: &[CaseFinding]) -> bool {
    let case = cases.iter().find(|case| case.id == group.case.id);
    let asks = case.is_some_and(|case| case.durability.level == "power-cut");
    let clients = f64::from(group.case.settings.load.clients.max(1));
    let mut counted = group.valid().filter_map(|trial| Some((trial, trial.resources.as_ref()?.mean))).peekable();
    asks && counted.peek().is_some()
        && counted.all(|(trial, used)| used.write_requests_per_s * clients >= WRITES_SHARE * trial.throughput_per_s())
}

/// Formats `4.0 ms for a sync of 4 KiB (median of 64 before the first trial, p90 4.1 ms)`.
pub fn show_sync(sync: DiskSync) -> String {
    let [p50, p90] = [sync.p50_s, sync.p90_s].map(show_seconds);
    format!("{p50} for a sync of 4 KiB (median of {} before the first trial, p90 {p90})", sync.count)
}

/// Notes CPUs kept busy by processes other than client, server and recorder, in valid and invalid trials: counted by processes if that was
/// done, otherwise as the rest of the machine's use. The processes of a database at an address of its own may be unknown.
fn others(environment: &Environment, groups: &[CaseTrials<'_>]) -> Option<Note> {
    let watched = groups.iter().flat_map(|group| group.trials.iter()).find_map(|trial| trial.resources.as_ref()?.cpus);
    // For a server elsewhere, these are the CPUs of its machine.
    let machine_cpus = watched.unwrap_or(environment.cpus);
    let cpus = f64::from(machine_cpus);
    let trials = || groups.iter().flat_map(|group| group.trials.iter());
    let is_unknown = |trial: &&&Measurement| {
        let resources = trial.resources.as_ref();
        let is_counted = resources.is_some_and(|used| used.others_cpu.is_some() && !used.server_unknown);
        trial.trial.case.settings.database.url.is_some() && !is_counted
    };
    let is_foreign = trials().any(|trial| is_unknown(&trial));
    let busy: Vec<f64> = trials()
        .filter_map(|trial| {
            let resources = trial.resources.as_ref()?;
            if let Some(others) = resources.others_cpu {
                return Some(others);
            }
            let used = resources.mean;
            Some((used.user + used.system) * cpus - used.server_cpu - used.recorder_cpu - used.client_cpu)
        })
        .collect();
    let mean = mean(&busy)?;
    (mean > OTHERS_SHARE * cpus).then_some(Note::OthersBusy {
        busy_cpus: mean,
        cpus: machine_cpus,
        n: busy.len(),
        is_database_unknown: is_foreign,
    })
}

/// Notes that writing waited for the disk in most cases of a closed loop, so that its pace hides other differences.
fn paced_by_disk(environment: &Environment, sync: DiskSync, groups: &[&CaseTrials<'_>]) -> Option<Note> {
    let closed = |group: &&&CaseTrials<'_>| group.case.settings.load.arrivals == Arrivals::Closed;
    let medians: Vec<Option<f64>> =
        groups.iter().filter(closed).filter_map(|group| median_write_s(environment, sync, group)).collect();
    let mut waited: Vec<f64> = medians.iter().copied().flatten().collect();
    if waited.len() * 2 <= medians.len() {
        return None;
    }
    waited.sort_by(f64::total_cmp);
    Some(Note::DiskPaced {
        cases: waited.len(),
        all: medians.len(),
        write_p50_s: waited[waited.len() / 2],
        sync_p50_s: sync.p50_s,
        syncs: sync.count,
    })
}

/// Returns the median time of a case's writes in seconds if it consists of syncs while CPUs were idle, otherwise `Some(None)`; `None` for a
/// case that does not write.
fn median_write_s(environment: &Environment, sync: DiskSync, group: &CaseTrials<'_>) -> Option<Option<f64>> {
    let mut times = crate::histogram::Histogram::new();
    let mut used = Vec::new();
    for trial in group.valid() {
        for (kind, operation) in &trial.operations {
            if ["insert", "update", "delete"].contains(&kind.as_str()) {
                times.merge(&operation.residence_time);
            }
        }
        used.extend(
            trial.resources.as_ref().map(|used| used.mean.server_cpu + used.mean.recorder_cpu + used.mean.client_cpu),
        );
    }
    if times.count() == 0 {
        return None;
    }
    let median_s = times.quantile_ns(0.5) as f64 / crate::units::NS_PER_S;
    let [least, most] = SYNCS.map(|factor| factor * sync.p50_s);
    let unhurried = mean(&used).is_some_and(|cpus| cpus < UNHURRIED_SHARE * f64::from(environment.cpus));
    Some((unhurried && (least..=most).contains(&median_s)).then_some(median_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::DurabilityFinding;
    use crate::measurement::{OperationMeasurement, Resources};
    use crate::trial::{Case, Settings, Trial};

    /// Returns a valid trial of writes that took this long each, with the CPUs that the client and the whole two-CPU machine kept busy.
    fn trial(write_s: f64, client_cpu: f64, machine_cpus: f64) -> Measurement {
        let case = Case::new(Default::default(), Settings::default());
        let mut insert = OperationMeasurement { scheduled: 100, completed: 100, ..Default::default() };
        (0..100).for_each(|_| insert.residence_time.record((write_s * 1e9) as u64));
        let mut resources = Resources::default();
        resources.mean.client_cpu = client_cpu;
        resources.mean.user = machine_cpus / 2.0;
        resources.mean.write_requests_per_s = 250.0;
        Measurement {
            operations: [("insert".to_owned(), Box::new(insert))].into(),
            resources: Some(resources),
            measured_s: 1.0,
            ..Measurement::unmeasured(&Trial::new(case, 0, 0))
        }
    }

    fn notes_of(trial: &Measurement) -> Vec<String> {
        notes_at("power-cut", trial)
    }

    /// Returns the notes on a case whose acknowledged writes survive `level`.
    fn notes_at(level: &str, trial: &Measurement) -> Vec<String> {
        let disk_sync = Some(DiskSync { p50_s: 0.004, p90_s: 0.005, count: 64 });
        let environment = Environment { cpus: 2, disk_sync, ..Default::default() };
        let group = CaseTrials { case: &trial.trial.case, discarded: None, trials: vec![trial] };
        let durability = DurabilityFinding { level: level.to_owned(), proved: None };
        let case = CaseFinding { id: trial.trial.case.id.clone(), durability, ..CaseFinding::default() };
        notes(&environment, &[group], &[case]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn writes_as_long_as_a_sync_with_idle_cpus_are_the_disks_doing() {
        let found = notes_of(&trial(0.004, 0.1, 0.2));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("the disk set the pace in 1 of 1 cases that write"), "{found:?}");
    }

    #[test]
    fn where_nothing_is_synced_the_disk_set_no_pace() {
        assert_eq!(notes_at("crash", &trial(0.004, 0.1, 0.2)), Vec::<String>::new(), "the settings ask for no syncs");
        assert_eq!(notes_at("unknown", &trial(0.004, 0.1, 0.2)), Vec::<String>::new());
        let mut unwritten = trial(0.004, 0.1, 0.2);
        unwritten.resources.as_mut().unwrap().mean.write_requests_per_s = 1.0;
        assert_eq!(notes_of(&unwritten), Vec::<String>::new(), "the disk was written to too rarely for that");
    }

    #[test]
    fn other_work_is_named_where_all_trials_are_invalid_and_beside_a_server_at_an_address() {
        let mut invalid = trial(0.000_2, 0.5, 1.9);
        invalid.invalid_because = vec![crate::reason::Reason::NothingCompleted {}];
        assert!(notes_of(&invalid)[0].starts_with("other processes kept 1.4 of 2 CPUs busy"));
        let mut foreign = trial(0.000_2, 0.5, 1.9);
        std::sync::Arc::make_mut(&mut foreign.trial.case).settings.database.url = Some("mysql://u@h/d".to_owned());
        assert!(notes_of(&foreign)[0].contains("the database at database.url is among them if it is on this machine"));
    }

    #[test]
    fn writes_shorter_than_a_sync_or_with_busy_cpus_are_not() {
        assert_eq!(notes_of(&trial(0.000_2, 0.1, 0.2)), Vec::<String>::new());
        assert_eq!(notes_of(&trial(0.1, 0.1, 0.2)), Vec::<String>::new());
        assert_eq!(notes_of(&trial(0.004, 1.5, 1.6)), Vec::<String>::new());
    }

    #[test]
    fn other_work_on_the_machine_is_named() {
        let found = notes_of(&trial(0.000_2, 0.5, 1.9));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("other processes kept 1.4 of 2 CPUs busy"), "{found:?}");
        let mut recorded = trial(0.000_2, 0.5, 1.9);
        recorded.resources.as_mut().unwrap().mean.recorder_cpu = 1.3;
        assert_eq!(notes_of(&recorded), Vec::<String>::new(), "a recorder in front is no other work");
    }
}
