//! Searches against a server that sometimes serves nothing for a while, whatever the load.

use super::*;

/// Arrivals per second that the server carries: a tenth of those of a quick server, with times ten times as long, so that the simulation is fast.
const CAPACITY_PER_S: f64 = 300.0;

/// Returns lines as shares of the true one, the lowest first, for stalls that come every `apart_s` seconds on average and last `stall_s`.
fn lines_beside_stalls([apart_s, stall_s]: [f64; 2]) -> Vec<f64> {
    let (length, start_per_s) = (TrialLength::Seconds(20.0), 10.0);
    let bound = Bound { quantile: 0.99, below_s: 0.2, within: 0.1, length, start_per_s, ..BOUND };
    let server = Server { service_s: 1.0 / CAPACITY_PER_S, stalls_s: [apart_s, stall_s], ..MM1 };
    // Operations are late if they arrive between the beginning of a stall and the time when its queue is short enough again; otherwise the wait is that of M/M/1.
    let stalled = |rate: f64| (stall_s - bound.below_s) / (1.0 - rate / CAPACITY_PER_S) / apart_s;
    let late = |rate: f64| (-(CAPACITY_PER_S - rate) * bound.below_s).exp() + stalled(rate);
    let truth_per_s = crossing(&bound, CAPACITY_PER_S - 1.0, late);
    let (mut lines, mut trials) = (Vec::new(), 0);
    for seed in 0..seeds(10) {
        let mut random = Random::new(1000 + seed);
        let (answer, probes) = search(&bound, |rate, seconds| trial(&bound, &server, rate, seconds, &mut random));
        trials += probes.len();
        lines.extend(answer.line.map(|line| line.rate_per_s / truth_per_s));
    }
    lines.sort_by(f64::total_cmp);
    let near = near_median(&lines);
    let (median, [low, high]) = (lines[lines.len() / 2], [lines[0], lines[lines.len() - 1]]);
    let (count, trials) = (lines.len(), trials / seeds(10) as usize);
    println!(
        "{stall_s} s every {apart_s} s: {count} lines, {near} near {median:.2} [{low:.2}, {high:.2}], {trials} trials"
    );
    lines
}

/// Returns how many lines are within a tenth of the median.
fn near_median(lines: &[f64]) -> usize {
    lines.iter().filter(|line| (*line / lines[lines.len() / 2] - 1.0).abs() <= 0.1).count()
}

#[test]
fn searches_beside_rare_stalls_agree() {
    for stalls_s in [[2000.0, 0.6], [2000.0, 1.0], [600.0, 0.4], [600.0, 0.6], [600.0, 1.0]] {
        let lines = lines_beside_stalls(stalls_s);
        assert_eq!(lines.len() as u64, seeds(10));
        assert!(near_median(&lines) as f64 >= 0.8 * lines.len() as f64, "{stalls_s:?}: {lines:?}");
        assert!(lines.iter().all(|line| (0.8..1.15).contains(line)), "{stalls_s:?}: {lines:?}");
    }
}

/// Tests what the decision on the search says about servers with stalls so frequent, or so long, that they take up much of the tolerated share.
#[test]
fn lines_beside_frequent_stalls_are_too_high_by_what_is_said_of_them() {
    for (stalls_s, most) in [([200.0, 0.6], 1.2), ([600.0, 2.0], 1.4), ([200.0, 1.0], 1.6)] {
        let lines = lines_beside_stalls(stalls_s);
        assert!(lines.iter().all(|line| (0.4..most).contains(line)), "{stalls_s:?}: {lines:?}");
    }
}
