//! Observations of an agent, which drove a part of the load. Main type: [`AgentMeasurement`].

use serde::{Deserialize, Serialize};

use super::Resources;
use crate::histogram::Histogram;

/// An agent may begin later than the others by this time in seconds, whatever the warm-up is.
pub const APART_LEAST_S: f64 = 1e-3;
/// CPUs that others may keep busy on an agent's host before the load begins without being named.
pub const OTHERS_BEFORE_MOST: f64 = 0.5;
/// Number of agents or recorders from which on one of them can differ from the others.
const COMPARED_LEAST: usize = 3;
/// One differs from the others if its figure is this multiple of theirs, or this part of it.
const DIFFERS_FROM: f64 = 1.5;

/// One agent's share of a trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AgentMeasurement {
    /// Name of its host, if it is not on the machine of the run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<String>,
    /// Number of its clients.
    pub clients: u32,
    /// Time from the planned start of the load to its own start, in seconds.
    pub began_late_s: f64,
    /// Uncertainty of that time, in seconds: half of the shortest round trip in which its clock was read; 0 on the same machine.
    #[serde(skip_serializing_if = "super::resources::is_zero", default)]
    pub clock_error_s: f64,
    /// Time by which its clock went ahead of that of the run while the load lasted, in seconds; `None` on the same machine, and where it was not read again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clock_drift_s: Option<f64>,
    /// Operations whose intended time was in the measured phase.
    pub scheduled: u64,
    /// Of these, operations that ended correctly.
    pub completed: u64,
    /// Of these, operations that failed.
    pub failed: u64,
    /// CPU time of its load threads in the measured phase, in seconds.
    pub cpu_s: f64,
    /// Number of its load threads. The measurement lists those of all agents, in the order of these.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub load_threads: u32,
    /// Use of its host in the measured phase, if that is not the machine of the run. Its own processes are the client's there, and a database on the
    /// same host is among the others.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resources: Option<Resources>,
    /// CPUs that others kept busy on its host before the load began, if that is not the machine of the run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub others_cpu_before: Option<f64>,
    /// Response times of its completed operations.
    pub response_time: Histogram,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Returns the time between the first and the last start of agents, in seconds.
pub fn starts_apart_s(agents: &[AgentMeasurement]) -> f64 {
    let late_s = || agents.iter().map(|agent| agent.began_late_s);
    (late_s().fold(f64::NEG_INFINITY, f64::max) - late_s().fold(f64::INFINITY, f64::min)).max(0.0)
}

/// Returns the place of the agent whose median response time differs most from that of the others, and the ratio of the two; `None` if none differs by
/// half or more.
pub fn outlying<'h>(times: impl Iterator<Item = &'h Histogram>) -> Option<(usize, f64)> {
    differing(times.map(|times| times.quantile_ns(0.5) as f64))
}

/// Returns the place of the figure that differs most from the median of the others, and the ratio of the two; `None` if none differs by half or more, or if
/// fewer than three figures are above 0. A figure of 0 says nothing.
pub(super) fn differing(figures: impl Iterator<Item = f64>) -> Option<(usize, f64)> {
    let figures: Vec<(usize, f64)> = figures.enumerate().filter(|(_, figure)| *figure > 0.0).collect();
    if figures.len() < COMPARED_LEAST {
        return None;
    }
    let of_others = |place: usize| {
        let others = figures.iter().filter(|(other, _)| *other != place);
        let mut others: Vec<f64> = others.map(|(_, figure)| *figure).collect();
        others.sort_by(f64::total_cmp);
        others[others.len() / 2]
    };
    let ratios = figures.iter().map(|(place, figure)| (*place, figure / of_others(*place)));
    let distance = |ratio: f64| ratio.ln().abs();
    ratios
        .max_by(|(_, a), (_, b)| distance(*a).total_cmp(&distance(*b)))
        .filter(|(_, ratio)| distance(*ratio) >= DIFFERS_FROM.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(median_us: u64) -> Histogram {
        let mut times = Histogram::new();
        times.record_many(1_000 * median_us, 100);
        times
    }

    #[test]
    fn the_agent_that_differs_most_is_found_and_two_do_not_differ_from_each_other() {
        let found = |medians_us: &[u64]| {
            let all: Vec<Histogram> = medians_us.iter().map(|median_us| times(*median_us)).collect();
            outlying(all.iter()).map(|(place, _)| place)
        };
        assert_eq!(found(&[1_000, 1_100, 2_000, 1_000]), Some(2));
        assert_eq!(found(&[1_000, 1_100, 400, 1_000]), Some(2));
        assert_eq!(found(&[1_000, 1_100, 1_200]), None);
        assert_eq!(found(&[1_000, 9_000]), None);
        let (empty, one, two) = (Histogram::new(), times(1_000), times(2_000));
        assert_eq!(outlying([&empty, &one, &two].into_iter()), None, "nothing is known of the first");
        let (place, ratio) = outlying([&one, &one, &two].into_iter()).unwrap();
        assert!(place == 2 && (ratio - 2.0).abs() < 0.02, "{place} {ratio}");
    }

    #[test]
    fn starts_are_apart_by_the_time_between_the_first_and_the_last() {
        let agent = |began_late_s| AgentMeasurement { began_late_s, ..AgentMeasurement::default() };
        assert!((starts_apart_s(&[agent(2e-4), agent(1e-4), agent(9e-4)]) - 8e-4).abs() < 1e-12);
        assert_eq!(starts_apart_s(&[]), 0.0);
    }
}
