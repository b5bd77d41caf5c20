//! Checks whether the client of a trial got the CPU time that it needed. Main function: [`starvation`]; its result is a note or a reason against
//! the trial.
//!
//! A load thread that shares its CPUs with the server it drives waits for them like any other thread: it is ready most of the time, and every
//! answer that it has not read yet waits with it. A loaded machine looks like that, and it is no fault. It is a fault when the thread gets
//! much less than its turn although CPUs are idle (a quota, or a list of CPUs that is too short), or because processes other than the server use them.
//!
//! Invariant: an imported trial, and one whose database works on the load's own threads, is never judged here.

use serde::Serialize;

use super::{LoopMeasurement, Measurement, Resources};
use crate::reason::{Reason, show_stolen, show_turn};
use crate::units::{NS_PER_S, show_seconds};

/// Share of the measured phase for which a thread must have been ready or running to count as busy without a pause.
const BUSY: f64 = 0.8;
/// The same share for a thread that got next to no CPU time: while it waits it sends nothing to the server, and then has to wait for the answers, too.
const BUSY_WITHOUT_TURN: f64 = 0.5;
/// Share of the mean time of a round trip that may be the client's own waiting before it is worth a note.
const OWN_SHARE: f64 = 0.5;
/// Longest wait that is not worth a note.
const WAIT_S: f64 = 200e-6;
/// Share of its ready and running time for which a busy thread must have had a CPU if other CPUs were idle.
const TURN_BESIDE_IDLE: f64 = 0.25;
/// The same share if all CPUs were busy with other work than the server's.
const TURN_BESIDE_OTHERS: f64 = 0.05;
/// Idle share of all CPU time from which CPUs count as idle.
const IDLE: f64 = 0.25;
/// Share of all CPUs below which the server cannot have kept the client from running.
const SERVER: f64 = 0.5;
/// Shortest sum of waits that is judged at all.
const WAITED_S: f64 = 0.1;
/// Shares of all CPU time taken by the hypervisor: from the first on there is a note, from the second on the trial is not trusted.
const STOLEN: [f64; 2] = [0.02, 0.10];
/// Seconds of CPU time that must also have been taken for the second: the kernel counts in hundredths, and a few of them in a short trial say nothing.
const STOLEN_S: f64 = 0.2;
/// Lower and upper limit of the tolerated share where a quantile must keep a bound, and the seconds of CPU time that must also have been taken.
const STOLEN_OF_BOUND: [f64; 2] = [0.01, 0.05];
const STOLEN_OF_BOUND_S: f64 = 0.03;

/// The judgement on a client that was kept from running.
#[derive(Debug, Clone, PartialEq)]
pub enum Starvation {
    /// The figures hold, but a reader should know about the waiting.
    Note(Waited),
    /// The figures describe the client rather than the database.
    Reason(Reason),
}

/// How a client waited whose figures still hold.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Waited {
    /// The hypervisor gave CPU time to other machines.
    #[error("{}", show_stolen(*stolen_share, host.as_deref()))]
    Stolen {
        /// Share of the CPU time of all CPUs.
        stolen_share: f64,
        /// Name of the agent's host, if it is not the machine of the run.
        #[serde(skip_serializing_if = "Option::is_none")]
        host: Option<String>,
    },
    /// A load thread waited for its turn.
    #[error(
        "{}: of the mean {} of a round trip up to {} was waiting for the client; with a CPU of its own (load.cpus and database.cpus, or a \
         machine of its own) the times would be the database's alone",
        show_turn(*connections, *ready_share, *cpu_share),
        show_seconds(*round_trip_s),
        show_seconds(*waited_s)
    )]
    Turn {
        /// Connections of the load thread.
        connections: u32,
        /// Share of the time for which it was ready to run.
        ready_share: f64,
        /// Share of the time for which it had a CPU.
        cpu_share: f64,
        /// Mean time of a round trip.
        round_trip_s: f64,
        /// The part of that time that may have been the client's own waiting.
        waited_s: f64,
    },
}

/// A machine on which load threads ran.
struct Place<'m> {
    loops: &'m [LoopMeasurement],
    resources: Option<&'m Resources>,
    cpus: f64,
    /// Its name, if it is an agent's host and not the machine of the run.
    host: Option<&'m str>,
}

/// Returns the machines on which load threads ran: the machine of the run with `cpus` CPUs, or the hosts of agents that have told how theirs was used.
fn places(measurement: &Measurement, cpus: f64) -> Vec<Place<'_>> {
    let mut left = &measurement.loops[..];
    let mut places = Vec::new();
    for agent in measurement.agents.iter().filter(|agent| agent.resources.is_some()) {
        let loops = left.split_off(..(agent.load_threads as usize).min(left.len())).unwrap_or_default();
        let (resources, host) = (agent.resources.as_ref(), agent.host.as_deref());
        let cpus = resources.and_then(|used| used.cpus).map_or(cpus, f64::from);
        places.push(Place { loops, resources, cpus, host });
    }
    let resources = measurement.resources.as_ref();
    places.push(Place { loops: left, resources, cpus, host: None });
    places
}

/// Returns what kept the client of a trial from running, on this machine with `cpus` CPUs or on the hosts of agents; empty where nothing did.
pub fn starvation(measurement: &Measurement, cpus: f64) -> Vec<Starvation> {
    if measurement.imported.is_some() || measurement.loops.iter().any(|each| each.driver == "blocking") {
        return Vec::new();
    }
    let places = places(measurement, cpus);
    stolen(measurement, &places).into_iter().chain(without_turn(measurement, &places)).collect()
}

/// Judges the CPU time that the hypervisor gave to other machines, on the machine from which it took most. A search for the load line judges that itself.
fn stolen(measurement: &Measurement, places: &[Place<'_>]) -> Option<Starvation> {
    let stolen_of = |place: &Place<'_>| place.resources.map(|used| used.mean.stolen);
    let found = places.iter().filter_map(|place| Some((place, stolen_of(place)?)));
    let (place, stolen_share) = found.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let host = place.host.map(str::to_owned);
    let is_judged =
        measurement.trial.sought.is_none() && stolen_share * place.cpus * measurement.measured_s >= STOLEN_S;
    match stolen_share {
        share if is_judged && share > STOLEN[1].max(stolen_permitted(measurement)) => {
            Some(Starvation::Reason(Reason::Stolen { stolen_share, host }))
        }
        share if share >= STOLEN[0] => Some(Starvation::Note(Waited::Stolen { stolen_share, host })),
        _ => None,
    }
}

/// Returns the share of CPU time that may be taken from this trial because its user has said so.
fn stolen_permitted(measurement: &Measurement) -> f64 {
    measurement.resources.as_ref().and_then(|used| used.stolen_permitted).unwrap_or_default()
}

/// Returns whether a hypervisor took more CPU time, on any of the machines, than is tolerated in a trial that asks about this quantile.
pub fn is_stolen(measurement: &Measurement, quantile: f64) -> bool {
    let most = stolen_most(quantile).max(stolen_permitted(measurement));
    let is_too_much = |used: &Resources| {
        let stolen_s = used.mean.stolen * f64::from(used.cpus.unwrap_or(1)) * measurement.measured_s;
        used.mean.stolen > most && stolen_s >= STOLEN_OF_BOUND_S
    };
    let of_agents = measurement.agents.iter().filter_map(|agent| agent.resources.as_ref());
    measurement.resources.iter().chain(of_agents).any(is_too_much)
}

/// Returns the share of CPU time that a hypervisor may have taken where a quantile must keep its bound. A CPU that stands still for a
/// share of the time delays the same share of operations, of which 1 - q may be late in all; and capacity falls by the same share.
pub fn stolen_most(quantile: f64) -> f64 {
    (1.0 - quantile).clamp(STOLEN_OF_BOUND[0], STOLEN_OF_BOUND[1])
}

/// Returns the judgement on the thread that waited longest for its turn; a reason comes before a note.
fn without_turn(measurement: &Measurement, places: &[Place<'_>]) -> Option<Starvation> {
    let of_place = |place| move |each| judged(each, measurement, place);
    let mut found: Vec<(f64, Starvation)> =
        places.iter().flat_map(|place| place.loops.iter().filter_map(of_place(place))).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    // A reason weighs more than the note on another thread.
    let reason = found.iter().position(|(_, found)| matches!(found, Starvation::Reason(_)));
    (!found.is_empty()).then(|| found.swap_remove(reason.unwrap_or(0)).1)
}

/// Returns how long a thread waited for its turn, and the judgement on it.
fn judged(each: &LoopMeasurement, measurement: &Measurement, place: &Place<'_>) -> Option<(f64, Starvation)> {
    let (delayed_s, turns) = (each.delayed_s.filter(|delayed_s| *delayed_s >= WAITED_S)?, each.turns?.max(1));
    let passes = each.passes.filter(|passes| *passes > 0)?;
    let needed_s = each.cpu_s + delayed_s;
    let had = each.cpu_s / needed_s;
    let busy = if had < TURN_BESIDE_OTHERS { BUSY_WITHOUT_TURN } else { BUSY };
    if each.wall_s <= 0.0 || needed_s < busy * each.wall_s {
        return None;
    }
    let residence_ns: f64 = measurement.operations.values().map(|o| o.residence_time.sum_ns() as f64).sum();
    // An answer waits for the pass that reads it; between two passes the thread may have had several turns.
    let wait_s = delayed_s / passes.min(turns) as f64;
    let all_answers: u64 = measurement.loops.iter().filter_map(|each| each.answers).sum();
    let round_trip_s = residence_ns / NS_PER_S / all_answers.max(1) as f64;
    let mean = place.resources.map(|used| used.mean);
    let turn_beside_others = TURN_BESIDE_OTHERS.min(1.0 - stolen_permitted(measurement));
    let idle = mean.map_or(0.0, |mean| mean.idle + mean.iowait);
    let server = mean.map(|mean| mean.server_cpu + mean.recorder_cpu).filter(|server| *server > 0.0);
    let (connections, ready_share, cpu_share) = (each.clients, needed_s / each.wall_s, each.cpu_s / each.wall_s);
    // A thread that got next to no CPU time made so few passes that their mean says little.
    let is_own = wait_s >= OWN_SHARE * round_trip_s || had < TURN_BESIDE_OTHERS;
    let says = if is_own && idle >= IDLE && had < TURN_BESIDE_IDLE {
        Starvation::Reason(Reason::ClientStarved { connections, ready_share, cpu_share, idle_share: idle })
    } else if is_own && had < turn_beside_others && server.is_some_and(|server| server < SERVER * place.cpus) {
        Starvation::Reason(Reason::ClientStarvedByOthers { connections, ready_share, cpu_share })
    } else if is_own && wait_s > WAIT_S {
        let waited_s = wait_s.min(round_trip_s);
        Starvation::Note(Waited::Turn { connections, ready_share, cpu_share, round_trip_s, waited_s })
    } else {
        return None;
    };
    Some((wait_s, says))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{AgentMeasurement, OperationMeasurement};

    /// Creates one second of 8 connections in one loop on two CPUs: its CPU time and delay, passes, the CPU time of the server, and the idle share.
    fn trial(cpu_s: f64, delayed_s: f64, passes: u64, server_cpu: f64, idle: f64) -> Measurement {
        let case = crate::trial::Case::new(Default::default(), Default::default());
        let mut read = OperationMeasurement::default();
        // 8 connections are always waiting: 8 s of residence time in a second.
        (0..8_000).for_each(|_| read.residence_time.record(1_000_000));
        let mut resources = Resources::default();
        (resources.mean.server_cpu, resources.mean.idle) = (server_cpu, idle);
        let turns = Some(passes);
        Measurement {
            operations: [("read".to_owned(), Box::new(read))].into(),
            loops: vec![LoopMeasurement {
                driver: "epoll".to_owned(),
                clients: 8,
                cpu_s,
                wall_s: 1.0,
                delayed_s: Some(delayed_s),
                turns,
                passes: turns,
                answers: Some(8_000),
                ..LoopMeasurement::default()
            }],
            resources: Some(resources),
            ..Measurement::unmeasured(&crate::trial::Trial::new(case, 0, 0))
        }
    }

    fn kinds(measurement: &Measurement) -> Vec<&'static str> {
        let kind = |found: &Starvation| match found {
            Starvation::Note(_) => "note",
            Starvation::Reason(_) => "reason",
        };
        starvation(measurement, 2.0).iter().map(kind).collect()
    }

    #[test]
    fn a_client_that_takes_turns_with_its_server_is_not_starved() {
        // PostgreSQL with 64 connections on two CPUs looks like this.
        assert_eq!(kinds(&trial(0.25, 0.75, 2_800, 1.6, 0.0)), Vec::<&str>::new());
        assert_eq!(
            kinds(&trial(0.02, 0.93, 950, 1.9, 0.0)),
            ["note"],
            "its waiting is most of the times, and the server has the CPUs"
        );
        assert_eq!(kinds(&trial(0.3, 0.05, 9_000, 0.4, 0.6)), Vec::<&str>::new(), "it had pauses");
    }

    #[test]
    fn a_client_that_others_keep_from_running_is_starved() {
        assert_eq!(kinds(&trial(0.03, 0.97, 900, 0.2, 0.0)), ["reason"]);
        assert_eq!(kinds(&trial(0.3, 0.7, 900, 0.2, 0.0)), ["note"], "beside equals it has its share");
        assert_eq!(kinds(&trial(0.1, 0.85, 900, 0.2, 0.7)), ["reason"], "a quota");
        assert_eq!(
            kinds(&trial(0.006, 0.79, 51, 0.02, 0.5)),
            ["reason"],
            "pauses, in which the server did the little that it was asked"
        );
        assert_eq!(
            kinds(&trial(0.006, 0.4, 51, 0.02, 0.5)),
            Vec::<&str>::new(),
            "it waited less than half of the time"
        );
        let with_permit = |share| {
            let mut trial = trial(0.03, 0.97, 900, 0.2, 0.0);
            trial.resources.as_mut().unwrap().stolen_permitted = Some(share);
            kinds(&trial)
        };
        assert_eq!([0.3, 0.96, 0.98, 1.0].map(with_permit), [["reason"], ["reason"], ["note"], ["note"]]);
        let mut unknown = trial(0.03, 0.97, 900, 0.0, 0.0);
        assert_eq!(kinds(&unknown), ["note"], "a server whose CPU time nobody knows may have had the CPUs");
        unknown.loops[0].delayed_s = None;
        assert_eq!(kinds(&unknown), Vec::<&str>::new(), "a kernel that does not tell");
    }

    #[test]
    fn stolen_time_is_noted_and_then_a_reason() {
        let with = |stolen, measured_s| {
            let mut trial = Measurement { measured_s, ..trial(0.3, 0.05, 9_000, 0.4, 0.6) };
            trial.resources.as_mut().unwrap().mean.stolen = stolen;
            kinds(&trial)
        };
        assert_eq!([with(0.01, 1.0), with(0.05, 1.0), with(0.2, 1.0)], [vec![], vec!["note"], vec!["reason"]]);
        assert_eq!(with(0.2, 0.2), ["note"], "a few hundredths of a second say nothing");
        let mut taken = Measurement { measured_s: 1.0, ..trial(0.3, 0.05, 9_000, 0.4, 0.6) };
        taken.resources.as_mut().unwrap().mean.stolen = 0.2;
        let mut with_permit = |share| {
            taken.resources.as_mut().unwrap().stolen_permitted = Some(share);
            kinds(&taken)
        };
        assert_eq!([with_permit(0.3), with_permit(0.15)], [["note"], ["reason"]]);
        let mut searched = taken.clone();
        searched.trial.sought = Some(crate::trial::Sought { quantile: 0.99, below_s: 0.02, seconds: None });
        assert_eq!(kinds(&searched), ["note"], "a search judges it itself");
    }

    #[test]
    fn the_load_threads_of_agents_are_judged_by_their_own_hosts() {
        let mut alone = trial(0.1, 0.85, 900, 0.2, 0.0);
        assert_eq!(kinds(&alone), ["note"], "no CPU was idle, and the database may have had the others");
        let host = |name: &str, idle: f64, stolen: f64| {
            let mut resources = Resources { cpus: Some(4), ..Resources::default() };
            (resources.mean.idle, resources.mean.stolen) = (idle, stolen);
            let (host, resources) = (Some(name.to_owned()), Some(resources));
            AgentMeasurement { host, load_threads: 1, resources, ..AgentMeasurement::default() }
        };
        alone.agents = vec![host("busy", 0.0, 0.0)];
        assert_eq!(kinds(&alone), ["note"]);
        alone.agents = vec![host("idle", 0.7, 0.0)];
        assert_eq!(kinds(&alone), ["reason"], "a quota on the agent's host");
        // The first agent's thread had its turn, and the second one's had not.
        alone.loops.insert(0, LoopMeasurement { delayed_s: Some(0.0), ..alone.loops[0].clone() });
        alone.agents = vec![host("idle", 0.7, 0.0), host("busy", 0.0, 0.0)];
        assert_eq!(kinds(&alone), ["note"]);
        alone.agents = vec![host("busy", 0.0, 0.0), host("idle", 0.7, 0.0)];
        assert_eq!(kinds(&alone), ["reason"]);
        let mut taken = Measurement { measured_s: 1.0, ..trial(0.3, 0.05, 9_000, 0.4, 0.6) };
        taken.agents = vec![host("one", 0.5, 0.0), host("two", 0.5, 0.3)];
        let found = starvation(&taken, 2.0);
        let [Starvation::Reason(reason)] = &found[..] else { panic!("{found:?}") };
        assert!(reason.to_string().contains("two"), "{reason}");
        assert!(super::is_stolen(&taken, 0.99));
        taken.resources.as_mut().unwrap().stolen_permitted = Some(0.5);
        assert!(kinds(&taken) == ["note"] && !super::is_stolen(&taken, 0.99));
    }

    #[test]
    fn a_trial_of_a_search_bears_less_stolen_time_the_higher_its_quantile() {
        let is_stolen = |quantile, stolen, measured_s, permitted| {
            let mut trial = Measurement { measured_s, ..trial(0.3, 0.05, 9_000, 0.4, 0.6) };
            let used = trial.resources.as_mut().unwrap();
            (used.mean.stolen, used.cpus, used.stolen_permitted) = (stolen, Some(2), permitted);
            super::is_stolen(&trial, quantile)
        };
        assert_eq!([0.008, 0.015].map(|stolen| is_stolen(0.99, stolen, 2.0, None)), [false, true]);
        assert_eq!([0.015, 0.06].map(|stolen| is_stolen(0.9, stolen, 2.0, None)), [false, true]);
        assert!(!is_stolen(0.99, 0.015, 0.5, None), "one hundredth of a second");
        assert!(!is_stolen(0.99, 0.2, 2.0, Some(0.3)) && is_stolen(0.99, 0.2, 2.0, Some(0.15)));
        assert_eq!([stolen_most(0.98), stolen_most(0.5), stolen_most(0.999)], [1.0 - 0.98, 0.05, 0.01]);
    }
}
