//! How certain totals are, from repeated trials.
//!
//! Main function: [`uncertainty`]. Trials are resampled within their case and alternative; with few of them a bootstrap is too
//! narrow, so that deviations are widened to what a t-interval would have (Hesterberg 2015, section 4.1). Invariant: no interval
//! where a value rests on a single trial.

use super::{Evidence, Measured, Weighting};
use crate::statistics::bootstrap::sorted_quantile;
use crate::statistics::mean;
use crate::statistics::random::Random;
use crate::statistics::student::t_quantile;

/// Resamples.
const RESAMPLES: usize = 4000;
/// The 97.5 % quantile of the normal distribution.
const NORMAL_QUANTILE: f64 = 1.959_963_984_540_054;
/// A resampled mean is at least this share of the mean: widening must not make it negative.
const MEAN_LEAST: f64 = 0.01;

/// What repeated trials say about totals.
#[derive(Debug, Clone, PartialEq)]
pub struct Uncertainty {
    /// 95 % interval of each alternative's total.
    pub totals_ci95: Vec<[f64; 2]>,
    /// Share of the resamples in which each alternative has the highest total.
    pub first_share: Vec<f64>,
}

/// Intervals of totals at a weight of writing. None when a case has a single trial of an alternative, or evidence is lacking.
pub fn uncertainty(evidence: &Evidence, weighting: Weighting, write_weight: f64, seed: u64) -> Option<Uncertainty> {
    evidence.check().ok()?;
    let cells = || evidence.writing.iter().chain(&evidence.reading).flat_map(|measured| &measured.values);
    if cells().any(|trials| trials.len() < 2) {
        return None;
    }
    let count = evidence.alternatives.len();
    let mut random = Random::new(seed);
    let mut totals: Vec<Vec<f64>> = vec![Vec::with_capacity(RESAMPLES); count];
    let mut firsts = vec![0_u32; count];
    for _ in 0..RESAMPLES {
        let writing = resample(&evidence.writing, &mut random);
        let reading = resample(&evidence.reading, &mut random);
        let scores = evidence.scores_of(&writing, &reading, weighting);
        for (place, total) in scores.totals(write_weight).into_iter().enumerate() {
            totals[place].push(total);
        }
        firsts[scores.ranking(write_weight)[0]] += 1;
    }
    let interval = |mut replicates: Vec<f64>| {
        replicates.sort_by(f64::total_cmp);
        [sorted_quantile(&replicates, 0.025), sorted_quantile(&replicates, 0.975)]
    };
    Some(Uncertainty {
        totals_ci95: totals.into_iter().map(interval).collect(),
        first_share: firsts.into_iter().map(|firsts| f64::from(firsts) / RESAMPLES as f64).collect(),
    })
}

fn resample(cases: &[Measured], random: &mut Random) -> Vec<Vec<f64>> {
    cases.iter().map(|case| case.values.iter().map(|trials| resampled_mean(trials, random)).collect()).collect()
}

/// The mean of as many trials drawn with replacement, its distance from the mean widened for their number.
fn resampled_mean(trials: &[f64], random: &mut Random) -> f64 {
    let n = trials.len() as f64;
    let centre = mean(trials).unwrap_or(f64::NAN);
    let drawn: f64 = (0..trials.len()).map(|_| trials[random.below(trials.len())]).sum::<f64>() / n;
    let widening = (n / (n - 1.0)).sqrt() * t_quantile(0.975, n - 1.0) / NORMAL_QUANTILE;
    (centre + (drawn - centre) * widening).max(MEAN_LEAST * centre)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(spread: f64) -> Evidence {
        let trials = |mean: f64| vec![mean * (1.0 - spread), mean, mean * (1.0 + spread), mean * (1.0 + spread / 2.0)];
        let measured = |query: &str, means: [f64; 2]| Measured {
            query: query.to_owned(),
            case: String::new(),
            values: means.map(trials).to_vec(),
        };
        Evidence {
            alternatives: vec!["a".to_owned(), "b".to_owned()],
            writing: vec![measured("", [100.0, 90.0])],
            reading: vec![measured("1", [1.0, 1.1])],
        }
    }

    #[test]
    fn intervals_grow_with_the_spread_of_trials_and_are_the_same_for_a_seed() {
        let of = |spread| uncertainty(&evidence(spread), Weighting::ByQuery, 2.0, 7).unwrap();
        let width = |found: &Uncertainty| found.totals_ci95[1][1] - found.totals_ci95[1][0];
        let (narrow, wide) = (of(0.01), of(0.1));
        assert!(width(&narrow) > 0.0 && width(&wide) > 5.0 * width(&narrow), "{narrow:?} {wide:?}");
        assert_eq!(narrow, of(0.01));
        assert_eq!(narrow.first_share, [1.0, 0.0]);
        assert!(wide.first_share[0] < 1.0 && (wide.first_share.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn there_is_no_interval_where_a_value_rests_on_one_trial() {
        let mut single = evidence(0.1);
        single.reading[0].values[1].truncate(1);
        assert_eq!(uncertainty(&single, Weighting::ByQuery, 2.0, 7), None);
    }
}
